//! The places of all that wait, found at once: what a list of them shows.

use super::Rank;
use crate::custody::Claimer;
use crate::state::State;
use leasehold_model::{AllocationNo, Instant, PoolNo};
use std::collections::BTreeMap;

/// Which places one waits for; two that wait meet if they could take the same.
type Wants = (Option<Claimer>, Option<PoolNo>);

pub(super) fn meet(one: Wants, other: Wants) -> bool {
    let pools_meet = one.1.is_none() || other.1.is_none() || one.1 == other.1;
    one.0 == other.0 && (pools_meet || one.0.is_some())
}

/// Who waits, in no order yet.
pub struct Standings(Vec<(Rank, Wants)>);

/// The place of each that waits, counted from one.
pub struct Positions(BTreeMap<AllocationNo, u64>);

impl State {
    /// Everything that waits. Putting it in order is left to the caller, who need not hold the state for that.
    pub fn standings(&self, now: Instant) -> Standings {
        let mut of_tenant = BTreeMap::new();
        let mut all = Vec::with_capacity(self.queue.len());
        for (key, waiting) in &self.queue.shapes {
            for (tenant, line) in waiting {
                let standing = *of_tenant.entry(*tenant).or_insert_with(|| self.standing(*tenant, now));
                let rank = |(submitted, number): &(Instant, AllocationNo)| {
                    (std::cmp::Reverse(key.priority), std::cmp::Reverse(standing), *submitted, *number)
                };
                all.extend(line.iter().map(|one| (rank(one), (key.claimer, key.pool))));
            }
        }
        let apart = self.queue.reserved.iter().filter_map(|number| self.allocation(*number));
        all.extend(apart.map(|other| (self.rank_of(other, now), (other.claimer(), other.spec.pool))));
        Standings(all)
    }
}

impl Standings {
    pub fn in_order(mut self) -> Positions {
        self.0.sort_unstable();
        // Of each sort, how many went before. Only those of the same claimer, or of none, can meet.
        let mut gone: BTreeMap<Wants, u64> = BTreeMap::new();
        let place = |(rank, wants): (Rank, Wants)| {
            let same = gone.range((wants.0, None)..=(wants.0, Some(PoolNo(u32::MAX))));
            let before: u64 = same.filter(|(other, _)| meet(wants, **other)).map(|(_, count)| count).sum();
            *gone.entry(wants).or_default() += 1;
            (rank.3, before + 1)
        };
        Positions(self.0.into_iter().map(place).collect())
    }
}

impl Positions {
    pub fn of(&self, allocation: AllocationNo) -> Option<u64> {
        self.0.get(&allocation).copied()
    }
}
