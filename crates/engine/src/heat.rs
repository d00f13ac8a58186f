//! How much placement avoids a node: 0 to 1000, raised by trouble, lowered by time (SEMANTICS 5).
//!
//! Heat decays in steps of a global grid that begins at the epoch, eight steps to a half-life. Between
//! steps and records it is constant, so the heat at an instant follows from its last value and step.
//! Cooling by `a` and then by `b` steps equals cooling by `a + b` steps, and cooling preserves the order
//! of two nodes. The search relies on both. Heat never falls below what the standing report of the node's agent adds
//! (SEMANTICS 11).

use crate::node::Condition;
use leasehold_model::{Instant, Span};

/// The maximum. A node with this heat is chosen only if there is no other candidate.
pub const HEAT_MAX: u16 = 1000;
/// Less than this becomes zero.
const HEAT_MIN: u16 = 10;
/// Steps in which heat halves.
const STEPS_PER_HALF_LIFE: u64 = 8;

/// Capacity was fenced because a teardown was not confirmed; for each record that names the node.
pub(crate) const FENCED: u16 = 250;
/// The node was lost.
pub(crate) const LOST: u16 = 500;
/// The agent reports a load that is one level higher.
const LOAD: u16 = 100;
/// The agent reports errors that are one level higher.
const ERRORS: u16 = 200;
/// The agent reports that throttling began.
const THROTTLED: u16 = 150;

/// The heat that a condition report adds: only levels that rose count.
pub(crate) fn of_report(before: Condition, after: Condition) -> u16 {
    let risen = |before: u8, after: u8| u16::from(after.saturating_sub(before));
    LOAD * risen(before.load as u8, after.load as u8)
        + ERRORS * risen(before.errors as u8, after.errors as u8)
        + THROTTLED * risen(u8::from(before.throttled), u8::from(after.throttled))
}

/// The heat below which a node does not cool while this report of its agent stands.
pub(crate) fn floor_of(standing: Condition) -> u16 {
    of_report(Condition::default(), standing)
}

/// The step of the grid that contains an instant.
pub(crate) fn step_at(now: Instant, half_life: Span) -> u64 {
    now.0 / (half_life.0 / STEPS_PER_HALF_LIFE).max(1)
}

/// The heat one step later: multiplied by 2^(-1/8) and rounded to the nearest integer.
fn cooled(level: u16) -> u16 {
    let level = (u32::from(level) * 60_097 + 32_768) >> 16;
    let level = u16::try_from(level).expect("cooling never raises the level");
    if level < HEAT_MIN { 0 } else { level }
}

/// A heat level, the step at which it was computed, and the level below which it does not fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    pub(crate) level: u16,
    pub(crate) step: u64,
    pub(crate) floor: u16,
}

impl Heat {
    pub(crate) const NONE: Self = Self { level: 0, step: 0, floor: 0 };

    #[inline]
    pub(crate) fn at_step(self, step: u64) -> u16 {
        let mut level = self.level;
        for _ in self.step..step {
            if level == 0 {
                break;
            }
            level = cooled(level);
        }
        level.max(self.floor)
    }

    /// The heat at an instant, which must not be before the last rise.
    pub fn at(self, now: Instant, half_life: Span) -> u16 {
        self.at_step(step_at(now, half_life))
    }

    pub(crate) fn rise(&mut self, by: u16, now: Instant, half_life: Span) {
        if by > 0 {
            let step = step_at(now, half_life);
            *self = Self { level: self.at_step(step).saturating_add(by).min(HEAT_MAX), step, ..*self };
        }
    }

    /// Another report stands from now on. The heat is kept and falls from there.
    pub(crate) fn set_floor(&mut self, floor: u16, now: Instant, half_life: Span) {
        if floor != self.floor {
            let step = step_at(now, half_life);
            *self = Self { level: self.at_step(step), step, floor };
        }
    }

    /// Converts the heat to the grid of a new half-life.
    pub(crate) fn regrid(&mut self, now: Instant, old: Span, new: Span) {
        if *self != Self::NONE {
            *self = Self { level: self.at(now, old), step: step_at(now, new), ..*self };
        }
    }

    /// A heat that is at no later step above either of two heats.
    pub(crate) fn least(self, other: Self) -> Self {
        let step = self.step.max(other.step);
        Self { level: self.at_step(step).min(other.at_step(step)), step, floor: self.floor.min(other.floor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_model::Level;

    #[test]
    fn it_halves_in_eight_steps_and_ends() {
        for level in (0..=HEAT_MAX).step_by(20) {
            let half = Heat { level, step: 5, floor: 0 }.at_step(13);
            assert!(half.abs_diff(level / 2) <= 1 || half == 0 && level < 21, "{level} became {half}");
        }
        assert_eq!(Heat { level: 1000, ..Heat::NONE }.at_step(8), 500);
        assert_eq!(Heat { level: 1000, ..Heat::NONE }.at_step(u64::MAX), 0);
    }

    /// The bounds of the search rely on this.
    #[test]
    fn cooling_keeps_order_and_adds_up() {
        for level in 0..=HEAT_MAX {
            assert!(level == 0 || cooled(level) < level);
            assert!(level == 0 || cooled(level) >= cooled(level - 1));
            for floor in [0, level / 2, level] {
                let heat = Heat { level, step: 0, floor };
                let later = Heat { level: heat.at_step(3), step: 3, floor };
                assert_eq!(heat.at_step(11), later.at_step(11));
                let other = Heat { level: 300, step: 2, floor: 150 };
                let least = heat.least(other);
                assert!((2..40).all(|step| least.at_step(step) <= heat.at_step(step).min(other.at_step(step))));
            }
        }
    }

    #[test]
    fn reports_heat_only_when_a_level_rises() {
        let calm = Condition::default();
        let bad = Condition { load: Level::Critical, errors: Level::High, throttled: true };
        assert_eq!(of_report(calm, bad), 2 * LOAD + ERRORS + THROTTLED);
        assert_eq!(of_report(bad, calm), 0);
        assert_eq!(of_report(bad, Condition { errors: Level::Critical, ..calm }), ERRORS);
    }

    #[test]
    fn a_standing_report_keeps_its_heat() {
        let half_life = Span::from_secs(8);
        let at = Instant::from_secs;
        let mut heat = Heat::NONE;
        heat.rise(300, at(0), half_life);
        heat.set_floor(200, at(0), half_life);
        assert_eq!([0, 4, 8, 80, 8000].map(|secs| heat.at(at(secs), half_life)), [300, 212, 200, 200, 200]);
        heat.set_floor(0, at(8000), half_life);
        assert_eq!([8000, 8008, 8080].map(|secs| heat.at(at(secs), half_life)), [200, 99, 0]);
    }

    #[test]
    fn the_grid_is_global() {
        let half_life = Span::from_secs(8);
        let mut heat = Heat::NONE;
        heat.rise(800, Instant(1_999_999_999), half_life);
        assert_eq!(heat.at(Instant(1_999_999_999), half_life), 800);
        assert_eq!(
            heat.at(Instant::from_secs(2), half_life),
            cooled(800),
            "one step of the grid has passed, though not a second"
        );
        heat.rise(800, Instant::from_secs(10), half_life);
        assert_eq!(heat.level, HEAT_MAX);
    }
}
