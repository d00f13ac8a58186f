//! Headroom in a quota that is held for an allocation whose victims make it (SEMANTICS 11 "Quotas").
//!
//! For others it counts as used, as far as it exceeds what the victims still use: so much less may be taken by others that
//! the allocation can start when its victims are gone.

use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::lease::Phase;
use crate::quota::Quota;
use crate::reservation::Reservation;
use crate::state::State;
use crate::tally::{Count, Holder};
use leasehold_model::{AllocationNo, Measure};
use std::collections::BTreeSet;

impl State {
    /// What counts in a quota besides its use, for an ask: headroom that is held for others, and what the ask frees.
    #[inline]
    pub(crate) fn headroom_beside(&self, quota: &Quota, ask: &Ask<'_>) -> (Count, Count) {
        let freed = ask.frees.filter(|(number, _)| *number == quota.number).map_or(0, |(_, freed)| freed);
        if self.queue.headroom.is_empty() {
            return (0, freed);
        }
        let holder = quota.holder_of(ask);
        let others = self.queue.headroom.iter().filter(|(of, number)| **number == quota.number && **of != ask.number);
        let held = others.filter_map(|(of, _)| self.headroom_of(quota, self.allocation(*of)?, holder));
        (held.sum(), freed)
    }

    /// What is held in a quota for an allocation with a reservation, of the use of a holder.
    fn headroom_of(&self, quota: &Quota, found: &Allocation, holder: Holder) -> Option<Count> {
        let reservation = found.reservation.as_deref()?;
        let ask = Ask::of(found, self.last_stamp());
        if quota.holder_of(&ask) != holder {
            return None;
        }
        let needed = match quota.measure {
            Measure::Allocations => 1,
            Measure::Quanta | Measure::Leases | Measure::Nodes => {
                let is_inside = |node| self.node(node).is_some_and(|node| quota.covers(node.pool, node.number));
                let replicas = reservation.places.iter().filter(|place| is_inside(place.node)).count();
                quota.asked(&self.facts_of_ask(&ask)) * replicas as u128
            }
        };
        Some(needed.saturating_sub(self.used_by_victims(quota, reservation, holder)))
    }

    /// Whether victims still use what a reservation needs of a quota.
    pub(crate) fn is_headroom_awaited(&self, found: &Allocation, reservation: &Reservation) -> bool {
        let quota = reservation.headroom.and_then(|number| self.quota(number));
        let holder = |quota: &Quota| quota.holder(found.user, found.spec.app_instance);
        quota.is_some_and(|quota| self.used_by_victims(quota, reservation, holder(quota)) > 0)
    }

    /// What the victims of a reservation still use of a quota, in the use of a holder.
    fn used_by_victims(&self, quota: &Quota, reservation: &Reservation, holder: Holder) -> Count {
        let victims = reservation.victims.0.iter().filter_map(|lease| self.lease(*lease));
        match quota.measure {
            Measure::Allocations => {
                let allocations: BTreeSet<AllocationNo> = victims.filter_map(|lease| lease.of).collect();
                let counts = |number: &&AllocationNo| self.counts_allocation_of(quota, **number, holder);
                allocations.iter().filter(counts).count() as u128
            }
            Measure::Quanta | Measure::Leases | Measure::Nodes => {
                let counted = victims.filter(|lease| lease.phase != Phase::Fenced);
                counted.map(|lease| quota.count_of(lease, &self.facts_of(lease), holder)).sum()
            }
        }
    }

    /// Whether a quota counts a placed allocation in the use of a holder.
    pub(crate) fn counts_allocation_of(&self, quota: &Quota, number: AllocationNo, holder: Holder) -> bool {
        self.allocation(number).is_some_and(|found| {
            let app_instance = found.spec.app_instance;
            found.state.is_placed()
                && quota.counts_allocation(found.payer, found.spec.priority, found.user, app_instance)
                && quota.holder(found.user, app_instance) == holder
        })
    }
}
