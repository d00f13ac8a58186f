//! Which reservations of lower priority are taken over, by trying (SEMANTICS 11).

use crate::eviction::Plan;
use crate::gang::{Allow, Occupancy};
use crate::lease::{Lease, Phase};
use crate::quota::Demand;
use crate::world::World;
use leasehold_model::{AllocationNo, AllocationSpec, Instant, LeaseNo};
use std::cmp::Reverse;

impl World {
    /// What an allocation without room takes over and evicts so that all of it fits; `None` if nothing helps.
    pub(crate) fn plan_room(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        now: Instant,
        allow: Allow<'_>,
    ) -> Option<Plan> {
        if self.gang_terms(demand, now).refusal.is_some() {
            return None;
        }
        let lower = self.allocations.values().filter(|a| a.reservation.is_some() && a.spec.priority < spec.priority);
        let mut order: Vec<_> = lower.map(|a| (a.spec.priority, Reverse(a.submitted_at), Reverse(a.number))).collect();
        order.sort_unstable();
        let order: Vec<AllocationNo> = order.into_iter().map(|(.., Reverse(number))| number).collect();

        // Reservations alone, as few as possible in that order; then those that are not needed are kept after all.
        let fits = |taken: &[AllocationNo]| {
            let placed = self.place_gang(demand, spec, &self.occupancy_without(taken), now, allow);
            placed.ok().map(|gang| gang.places)
        };
        if let Some(count) = (1..=order.len()).find(|count| fits(&order[..*count]).is_some()) {
            let taken = keep_unneeded(&order[..count], |rest| fits(rest).is_some());
            let places = fits(&taken).expect("it was seen to fit");
            let (victims, awaited, dropped) = (Vec::new(), Vec::new(), Vec::new());
            let plan = Plan { places, victims, quanta: 0, awaited, dropped, headroom: None };
            return Some(self.taking(plan, &taken));
        }

        // All of them, and evictions. A reservation is kept if the same leases are evicted without taking it.
        let evict =
            |taken: &[AllocationNo]| self.plan_eviction(demand, spec, &self.occupancy_without(taken), now, allow);
        let victims = evict(&order)?.victims;
        let taken = keep_unneeded(&order, |rest| evict(rest).is_some_and(|plan| plan.victims == victims));
        let plan = self.taking(evict(&taken).expect("it was seen to fit"), &taken);
        (!plan.victims.is_empty() || !plan.dropped.is_empty()).then_some(plan)
    }

    /// What is used without some reservations and without the leases that they wait for.
    fn occupancy_without(&self, taken: &[AllocationNo]) -> Occupancy {
        let mut occupancy = Occupancy::of(self);
        for number in taken {
            let reservation = self.allocations[number].reservation.as_ref().expect("it has one");
            for (node, class, index, kept) in reservation.kept() {
                occupancy.unreserve(node, class, index, kept);
            }
            self.ending_for(*number).for_each(|lease| occupancy.lift(lease, true));
        }
        occupancy
    }

    /// The leases that a reservation waits for and that will be torn down.
    fn ending_for(&self, number: AllocationNo) -> impl Iterator<Item = &Lease> {
        let waits = self.allocations[&number].reservation.as_ref().expect("it has one");
        let live = waits.victims.iter().filter_map(|lease| self.lease(*lease));
        live.filter(|lease| !matches!(lease.phase, Phase::Closed | Phase::Fenced))
    }

    fn taking(&self, plan: Plan, taken: &[AllocationNo]) -> Plan {
        let here = |lease: &&Lease| plan.places.iter().any(|place| place.node == lease.node);
        let ending = taken.iter().flat_map(|number| self.ending_for(*number)).filter(here);
        let mut awaited: Vec<LeaseNo> = ending.map(|lease| lease.number).collect();
        awaited.sort_unstable();
        awaited.dedup();
        let mut dropped = taken.to_vec();
        dropped.sort_unstable();
        Plan { awaited, dropped, ..plan }
    }
}

/// Removes, in reverse order, each number without which `is_enough` still holds.
fn keep_unneeded(order: &[AllocationNo], is_enough: impl Fn(&[AllocationNo]) -> bool) -> Vec<AllocationNo> {
    let mut needed = order.to_vec();
    for number in order.iter().rev() {
        let rest: Vec<AllocationNo> = needed.iter().copied().filter(|other| other != number).collect();
        if is_enough(&rest) {
            needed = rest;
        }
    }
    needed
}
