//! The queue positions of all waiting allocations, computed together for lists.

use super::{Rank, Standing};
use crate::custody::Claimer;
use crate::state::State;
use leasehold_model::{AllocationNo, Instant, PoolNo};
use std::collections::BTreeMap;

/// The line of an allocation. Two allocations compete if they could use the same nodes.
type LineKey = (Option<Claimer>, Option<PoolNo>);

pub(super) fn compete(one: LineKey, other: LineKey) -> bool {
    let same_pool = one.1.is_none() || other.1.is_none() || one.1 == other.1;
    one.0 == other.0 && (same_pool || one.0.is_some())
}

/// The waiting allocations with their ranks, not yet sorted.
pub struct Standings(Vec<(Rank, LineKey)>);

/// The position of each waiting allocation, counted from one.
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
                all.extend(line.iter().map(|one| (rank(one), (key.claimer, key.pool))));
            }
        }
        let with_victims = self.queue.reserved.iter().filter_map(|number| self.allocation(*number));
        all.extend(with_victims.map(|other| (self.rank_of(other, now), (other.claimer(), other.spec.pool))));
        Standings(all)
    }
}

impl Standings {
    pub fn in_order(mut self) -> Positions {
        self.0.sort_unstable();
        // How many of each line went before. Only allocations of the same claimer, or without one, can compete.
        let mut counted: BTreeMap<LineKey, u64> = BTreeMap::new();
        let position = |(rank, line): (Rank, LineKey)| {
            let same = counted.range((line.0, None)..=(line.0, Some(PoolNo(u32::MAX))));
            let before: u64 = same.filter(|(other, _)| compete(line, **other)).map(|(_, count)| count).sum();
            *counted.entry(line).or_default() += 1;
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
