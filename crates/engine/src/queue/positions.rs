//! The queue positions of all waiting allocations, computed together for lists.

use super::{Rank, Standing};
use crate::custody::Claimer;
use crate::state::State;
use leasehold_model::{AllocationNo, Instant, PoolNo};
use std::collections::{BTreeMap, BTreeSet};

/// The line of an allocation. Two allocations compete if they could use the same nodes.
type LineKey = (Option<Claimer>, Option<PoolNo>);

pub(super) fn compete(one: LineKey, other: LineKey) -> bool {
    let same_pool = one.1.is_none() || other.1.is_none() || one.1 == other.1;
    one.0 == other.0 && (same_pool || one.0.is_some())
}

/// The waiting allocations with their ranks, not yet sorted. Those on hold do not count for the others.
pub struct Standings(Vec<(Rank, LineKey, Counts)>);

/// Whether others wait behind an allocation.
type Counts = bool;

/// The position of each waiting allocation, counted from one. Those on hold have the position that they would have.
pub struct Positions(BTreeMap<AllocationNo, u64>);

impl State {
    /// All waiting allocations. The caller sorts them with [`Standings::in_order`], which does not need the state.
    pub fn standings(&self, now: Instant) -> Standings {
        let mut of_tenant = BTreeMap::new();
        let mut all = Vec::with_capacity(self.queue.len());
        for (key, waiting) in &self.queue.shapes {
            for (tenant, line) in waiting {
                let scarce = self.scarce(key.node, key.pool);
                let standing = of_tenant.entry((*tenant, scarce));
                let standing = *standing.or_insert_with(|| self.standing_by(*tenant, scarce, now));
                let standing = Standing { is_preferred: !self.is_shape_lowered(key, *tenant, now), ..standing };
                let rank = |(submitted, number): &(Instant, AllocationNo)| {
                    (std::cmp::Reverse(key.priority), std::cmp::Reverse(standing), *submitted, *number)
                };
                all.extend(line.iter().map(|one| (rank(one), (key.claimer, key.pool), true)));
            }
        }
        let mut add = |numbers: &BTreeSet<AllocationNo>, counts: Counts| {
            let found = numbers.iter().filter_map(|number| self.allocation(*number));
            all.extend(found.map(|other| (self.rank_of(other, now), (other.claimer(), other.spec.pool), counts)));
        };
        add(&self.queue.reserved, true);
        add(&self.queue.on_hold, false);
        Standings(all)
    }
}

impl Standings {
    pub fn in_order(mut self) -> Positions {
        self.0.sort_unstable();
        // How many of each line went before. Only allocations of the same claimer, or without one, can compete.
        let mut counted: BTreeMap<LineKey, u64> = BTreeMap::new();
        let position = |(rank, line, counts): (Rank, LineKey, Counts)| {
            let same = counted.range((line.0, None)..=(line.0, Some(PoolNo(u32::MAX))));
            let before: u64 = same.filter(|(other, _)| compete(line, **other)).map(|(_, count)| count).sum();
            *counted.entry(line).or_default() += u64::from(counts);
            (rank.3, before + 1)
        };
        Positions(self.0.into_iter().map(position).collect())
    }
}

impl Positions {
    pub fn of(&self, allocation: AllocationNo) -> Option<u64> {
        self.0.get(&allocation).copied()
    }
}
