//! Which reservations of lower priority an allocation takes over (SEMANTICS 11).
//!
//! They are taken as a whole: lowest priority first, then the latest submission, then the highest number, until the
//! gang fits on what is free, on what they hold and on what the leases that they wait for will free. Those that turn
//! out not to be needed are kept, in reverse order. Only if all of them are not enough is anything evicted.

use super::{Plan, Victims};
use crate::admission::NodeQuotas;
use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::lease::{Lease, Phase};
use crate::placement::Tentative;
use crate::reservation::Reservation;
use crate::state::State;
use crate::view::View;
use leasehold_model::body::{Leases, ReplicaPlacement};
use leasehold_model::limits::{LEASES_PER_RECORD_MAX, RESERVATIONS_TAKEN_MAX};
use leasehold_model::{AllocationNo, LeaseNo, NodeNo, Priority};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A reservation that can be taken over.
struct Taken<'a> {
    number: AllocationNo,
    reservation: &'a Reservation,
    /// The leases that it waits for and that will free their capacity.
    ending: Vec<&'a Lease>,
}

impl Taken<'_> {
    fn nodes(&self) -> BTreeSet<NodeNo> {
        let places = self.reservation.places.iter().map(|place| place.node);
        places.chain(self.ending.iter().map(|lease| lease.node)).collect()
    }
}

impl State {
    /// The allocations of lower priority that have a reservation.
    fn reserved_below(&self, priority: Priority) -> impl Iterator<Item = (&Allocation, &Reservation)> {
        let all = self.queue.reserved.iter().filter_map(|number| self.allocation(*number));
        let below = all.filter(move |found| found.spec.priority < priority);
        below.filter_map(|found| Some((found, found.reservation.as_deref()?)))
    }

    pub(crate) fn has_reservation_below(&self, priority: Priority) -> bool {
        self.reserved_below(priority).next().is_some()
    }

    /// Whether a node has capacity that an allocation of this priority may take over.
    pub(crate) fn could_take_over_on(&self, node: NodeNo, priority: Priority) -> bool {
        let is_here = |lease: &LeaseNo| self.lease(*lease).is_some_and(|lease| lease.node == node);
        self.reserved_below(priority)
            .any(|(_, kept)| kept.places.iter().any(|place| place.node == node) || kept.victims.0.iter().any(is_here))
    }

    fn without(&self, taken: &[&Taken<'_>]) -> Tentative {
        let mut overlay = Tentative::default();
        taken.iter().for_each(|one| self.take_over(one, &mut overlay));
        overlay
    }

    /// Frees what a reservation holds, and what the leases that it waits for hold.
    fn take_over(&self, taken: &Taken<'_>, overlay: &mut Tentative) {
        for place in &taken.reservation.places {
            overlay.unreserve(self.node(place.node).expect("a reserved node exists"), &place.members);
        }
        for lease in &taken.ending {
            overlay.vacate(self.node(lease.node).expect("a lease's node exists"), lease);
        }
    }
}

impl<'a> View<'a> {
    /// The reservations that matter for an ask, in the order in which they are taken over.
    fn in_order_of_taking(&self, ask: &Ask<'_>) -> Vec<Taken<'a>> {
        let state = self.state;
        let mut below: Vec<_> = state.reserved_below(ask.priority).collect();
        below.sort_by_key(|(found, _)| (found.spec.priority, Reverse(found.submitted_at), Reverse(found.number)));
        let taken = |(found, reservation): (&'a Allocation, &'a Reservation)| {
            let live = reservation.victims.0.iter().filter_map(|lease| state.lease(*lease));
            let ending = live.filter(|lease| lease.phase != Phase::Fenced).collect();
            Taken { number: found.number, reservation, ending }
        };
        let suits = |number: &NodeNo| state.node(*number).is_some_and(|node| state.suits(node, ask));
        below.into_iter().map(taken).filter(|taken| taken.nodes().iter().any(suits)).collect()
    }

    /// Plans which reservations are taken over, and what is evicted if they are not enough, so that the gang fits. `None`
    /// if nothing helps, or if it would be too much.
    pub(crate) fn plan_preemption(&self, ask: &Ask<'_>, of_nodes: &NodeQuotas) -> Option<Plan> {
        let below = self.in_order_of_taking(ask);
        if below.is_empty() {
            let planned = self.plan_evictions(ask, of_nodes, &Tentative::default())?;
            return self.as_plan(&[], planned);
        }
        if let Some((taken, places)) = self.take_without_evictions(ask, &below) {
            return self.as_plan(&taken, (places, Victims::new()));
        }
        let mut taken: Vec<&Taken<'_>> = below.iter().collect();
        let mut planned = self.plan_evictions(ask, of_nodes, &self.without(&taken))?;
        for one in below.iter().rev() {
            let rest: Vec<&Taken<'_>> = taken.iter().copied().filter(|other| other.number != one.number).collect();
            // Where nothing is placed on its nodes, less capacity there changes nothing.
            let nodes = one.nodes();
            if planned.0.iter().any(|place| nodes.contains(&place.node)) {
                match self.plan_evictions(ask, of_nodes, &self.without(&rest)) {
                    Some(again) if again.1 == planned.1 => planned = again,
                    _ => continue,
                }
            }
            taken = rest;
        }
        self.as_plan(&taken, planned)
    }

    /// The fewest reservations that make room without an eviction, and where the replicas are placed then.
    fn take_without_evictions<'t>(
        &self,
        ask: &Ask<'_>,
        below: &'t [Taken<'a>],
    ) -> Option<(Vec<&'t Taken<'a>>, Vec<ReplicaPlacement>)> {
        let place = |overlay: &Tentative| self.place_gang(ask, &mut overlay.clone()).ok();
        let mut overlay = Tentative::default();
        let enough = below.iter().position(|one| {
            self.take_over(one, &mut overlay);
            let fits = |number: &NodeNo| self.node(*number).is_some_and(|node| self.fit(node, ask, &overlay).is_some());
            one.nodes().iter().any(fits) && place(&overlay).is_some()
        })?;
        let mut taken: Vec<&Taken<'_>> = below[..=enough].iter().collect();
        for one in below[..=enough].iter().rev() {
            let rest: Vec<&Taken<'_>> = taken.iter().copied().filter(|other| other.number != one.number).collect();
            if place(&self.without(&rest)).is_some() {
                taken = rest;
            }
        }
        let gang = place(&self.without(&taken))?;
        let places = gang.places.into_iter().map(|one| ReplicaPlacement { node: one.node, members: one.members });
        Some((taken, places.collect()))
    }

    /// `None` if nothing is evicted or taken over, or if one record cannot name everything.
    fn as_plan(&self, taken: &[&Taken<'_>], (places, victims): (Vec<ReplicaPlacement>, Victims)) -> Option<Plan> {
        let mut victims: Vec<LeaseNo> = victims.values().flatten().copied().collect();
        victims.sort_unstable();
        let nodes: BTreeSet<NodeNo> = places.iter().map(|place| place.node).collect();
        let ending = taken.iter().flat_map(|one| &one.ending).filter(|lease| nodes.contains(&lease.node));
        let awaited: BTreeSet<LeaseNo> = ending.map(|lease| lease.number).collect();
        let dropped: BTreeSet<AllocationNo> = taken.iter().map(|one| one.number).collect();
        let is_empty = victims.is_empty() && dropped.is_empty();
        let most = victims.len().max(awaited.len());
        if is_empty || most > LEASES_PER_RECORD_MAX || dropped.len() > RESERVATIONS_TAKEN_MAX {
            return None;
        }
        let quanta = victims.iter().filter_map(|lease| self.lease(*lease)).map(|lease| lease.quanta.0).sum();
        let victims: Leases = victims.into_iter().collect();
        let awaited = awaited.into_iter().collect();
        let dropped = dropped.into_iter().collect();
        Some(Plan { places, victims, quanta, awaited, dropped, headroom: None })
    }
}
