//! The heat of a node, recomputed from everything that heated it (SEMANTICS 5).

use crate::world::{Condition, World};
use leasehold_model::{Instant, NodeNo, Span};

/// An event that affects heat, in the order of records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heating {
    Rise { node: NodeNo, by: u16 },
    HalfLife(Span),
}

/// The heat that an agent's report adds: 100 for each level of load that it is worse, 200 for each level of errors,
/// 150 if throttling is new.
pub(crate) fn of_report(before: Condition, after: Condition) -> u16 {
    let worse = |before: usize, after: usize| u16::try_from(after.saturating_sub(before)).expect("few levels");
    100 * worse(before.0 as usize, after.0 as usize)
        + 200 * worse(before.1 as usize, after.1 as usize)
        + 150 * worse(usize::from(before.2), usize::from(after.2))
}

/// The decay of a level between two instants: at each step of the grid it is multiplied by 2^(-1/8) and rounded to the
/// nearest; below ten it becomes zero.
fn left_of(level: u64, from: Instant, to: Instant, half_life: Span) -> u64 {
    let step = half_life.0 / 8;
    let mut level = level;
    for _ in from.0 / step..to.0 / step {
        if level == 0 {
            break;
        }
        level = (level * 60_097 + 32_768) / 65_536;
        if level < 10 {
            level = 0;
        }
    }
    level
}

impl World {
    pub(crate) fn heats(&mut self, node: NodeNo, by: u16, stamp: Instant) {
        if by > 0 {
            self.heatings.push((stamp, Heating::Rise { node, by }));
        }
    }

    pub(crate) fn heat(&self, node: NodeNo, now: Instant) -> u16 {
        let mut half_life = Span::from_secs(600);
        let (mut level, mut since) = (0, Instant(0));
        for (stamp, heating) in &self.heatings {
            level = left_of(level, since, *stamp, half_life);
            since = *stamp;
            match *heating {
                Heating::Rise { node: other, by } if other == node => level = (level + u64::from(by)).min(1000),
                Heating::Rise { .. } => {}
                Heating::HalfLife(new) => half_life = new,
            }
        }
        u16::try_from(left_of(level, since, now, half_life)).expect("at most 1000")
    }
}
