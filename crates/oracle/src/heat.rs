//! The heat of a node, recomputed from everything that heated it (SEMANTICS 5).

use crate::world::{Condition, World};
use leasehold_model::{Instant, Level, NodeNo, Span};

/// An event that affects heat, in the order of records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heating {
    Rise {
        node: NodeNo,
        by: u16,
    },
    HalfLife(Span),
    /// The report that stands from now on adds this much.
    Standing {
        node: NodeNo,
        adds: u16,
    },
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

    /// While a report stands, heat does not fall below what it adds (SEMANTICS 11). Before rules version 4 it did.
    pub(crate) fn report_stands(&mut self, node: NodeNo, stamp: Instant) {
        let normal = (Level::Normal, Level::Normal, false);
        let adds = of_report(normal, self.nodes[&node].condition);
        let adds = if self.rules_version.is_none_or(|version| version >= 4) { adds } else { 0 };
        self.heatings.push((stamp, Heating::Standing { node, adds }));
    }

    /// The report of an agent that is gone no longer stands.
    pub(crate) fn report_falls(&mut self, number: NodeNo, stamp: Instant) {
        if self.rules_version.is_none_or(|version| version >= 4) {
            let node = self.nodes.get_mut(&number).expect("it was looked up before");
            node.condition = (Level::Normal, Level::Normal, false);
            self.report_stands(number, stamp);
        }
    }

    pub(crate) fn heat(&self, node: NodeNo, now: Instant) -> u16 {
        let mut half_life = Span::from_secs(600);
        let (mut level, mut since, mut floor) = (0, Instant(0), 0);
        for (stamp, heating) in &self.heatings {
            level = left_of(level, since, *stamp, half_life).max(floor);
            since = *stamp;
            match *heating {
                Heating::Rise { node: other, by } if other == node => level = (level + u64::from(by)).min(1000),
                Heating::Rise { .. } => {}
                Heating::HalfLife(new) => half_life = new,
                Heating::Standing { node: other, adds } if other == node => floor = u64::from(adds),
                Heating::Standing { .. } => {}
            }
        }
        u16::try_from(left_of(level, since, now, half_life).max(floor)).expect("at most 1000")
    }
}
