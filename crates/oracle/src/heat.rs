//! How hot a node is: everything that ever heated it, counted afresh (SEMANTICS 5).

use crate::world::{Condition, World};
use leasehold_model::{Instant, NodeNo, Span};

/// Something that has to do with heat, in the order it was sealed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heating {
    Rise { node: NodeNo, by: u16 },
    HalfLife(Span),
}

/// What a report of an agent's adds: 100 for each level of load that it is worse, 200 for each of errors, 150 for
/// throttling that was not there.
pub(crate) fn of_report(before: Condition, after: Condition) -> u16 {
    let worse = |before: usize, after: usize| u16::try_from(after.saturating_sub(before)).expect("few levels");
    100 * worse(before.0 as usize, after.0 as usize)
        + 200 * worse(before.1 as usize, after.1 as usize)
        + 150 * worse(usize::from(before.2), usize::from(after.2))
}

/// What is left of a level from one instant to another: at each step of the grid between them it becomes its
/// 2^(-1/8)th, to the nearest, and nothing once it is below ten.
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
