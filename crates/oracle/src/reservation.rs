//! Capacity that is reserved for an allocation while its victims are torn down. It is not billed (SEMANTICS 3).
//!
//! A preemption decision contains the placement of the replicas. From then on everything that is free there, up to
//! what they need of each device, is reserved for them. If several allocations need the same, the lower number goes
//! first. Reserved capacity stays reserved.

use crate::allocation::Allocation;
use crate::capacity::indexes;
use crate::lease::Phase;
use crate::world::World;
use leasehold_model::body::{Member, ReplicaPlacement};
use leasehold_model::{AllocationNo, ClassNo, LeaseNo, NodeNo, QuotaNo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) places: Vec<ReplicaPlacement>,
    pub(crate) victims: Vec<LeaseNo>,
    /// The quota in which the victims make headroom for it.
    pub(crate) headroom: Option<QuotaNo>,
    /// For each placement and member: the reserved quanta of each device, or the total for kinds without devices.
    kept: Vec<Vec<Vec<u64>>>,
}

/// The number of devices of a member and its quanta on each; one and all quanta for kinds without devices.
fn shares(member: &Member) -> (usize, u64) {
    let count = member.devices.count_ones().max(1);
    (count as usize, member.quanta.0 / u64::from(count))
}

impl Reservation {
    pub(crate) fn new(places: Vec<ReplicaPlacement>, victims: Vec<LeaseNo>, headroom: Option<QuotaNo>) -> Self {
        let nothing = |place: &ReplicaPlacement| place.members.iter().map(|member| vec![0; shares(member).0]).collect();
        let kept = places.iter().map(nothing).collect();
        Self { places, victims, headroom, kept }
    }

    /// Every member with its reserved quanta.
    fn members(&self) -> impl Iterator<Item = (NodeNo, &Member, &Vec<u64>)> {
        let places = self.places.iter().zip(&self.kept);
        places.flat_map(|(place, kept)| place.members.iter().zip(kept).map(|(member, kept)| (place.node, member, kept)))
    }

    /// What is reserved: node, class, device (none for kinds without devices) and quanta.
    pub(crate) fn kept(&self) -> Vec<(NodeNo, ClassNo, Option<usize>, u64)> {
        let mut all = Vec::new();
        for (node, member, kept) in self.members() {
            let devices: Vec<Option<usize>> = match member.devices {
                0 => vec![None],
                set => indexes(set).map(Some).collect(),
            };
            all.extend(devices.into_iter().zip(kept).map(|(index, kept)| (node, member.class, index, *kept)));
        }
        all
    }

    /// The nodes on which something is missing.
    fn short_on(&self) -> Vec<NodeNo> {
        let is_short = |(_, member, kept): &(NodeNo, &Member, &Vec<u64>)| kept.iter().any(|k| *k < shares(member).1);
        self.members().filter(is_short).map(|(node, ..)| node).collect()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.members().all(|(_, member, kept)| kept.iter().all(|kept| *kept == shares(member).1))
    }

    pub(crate) fn nodes(&self) -> Vec<NodeNo> {
        self.places.iter().map(|place| place.node).collect()
    }
}

impl World {
    /// Whether nothing is missing: neither capacity, nor headroom that victims still use.
    pub(crate) fn is_fulfilled(&self, found: &Allocation) -> bool {
        let Some(reservation) = &found.reservation else { return false };
        let quota = reservation.headroom.and_then(|number| self.quotas.get(&number));
        let who = (found.user, found.spec.app_instance);
        let is_used = quota.is_some_and(|quota| self.use_of_leases(quota, &reservation.victims, who) > 0);
        reservation.is_full() && !is_used
    }

    /// Reserved quanta of a class on a node by device; under device 0 for kinds without devices.
    pub(crate) fn kept_on(&self, node: NodeNo, class: ClassNo) -> Vec<(usize, u64)> {
        let mut kept_on = Vec::new();
        for reservation in self.allocations.values().filter_map(|found| found.reservation.as_ref()) {
            for (on, member, kept) in reservation.members() {
                if on == node && member.class == class {
                    let places = if member.devices == 0 { vec![0] } else { indexes(member.devices).collect() };
                    kept_on.extend(places.into_iter().zip(kept.iter().copied()));
                }
            }
        }
        kept_on
    }

    /// Reserves free capacity for the reservations that need it.
    pub(crate) fn fill_reservations(&mut self) {
        let reserved = self.allocations.iter().filter(|(_, found)| found.reservation.is_some());
        let numbers: Vec<AllocationNo> = reserved.map(|(number, _)| *number).collect();
        for number in numbers {
            let reservation = self.allocations[&number].reservation.clone().expect("just listed");
            for (at, place) in reservation.places.iter().enumerate() {
                for (which, member) in place.members.iter().enumerate() {
                    let (_, each) = shares(member);
                    let Some(node) = self.nodes.get(&place.node) else { continue };
                    let Some(found) = self.class_on_node(place.node, node, member.class) else { continue };
                    let free: Vec<u64> = match member.devices {
                        0 => vec![found.free()],
                        set => indexes(set).map(|i| found.devices.get(i).map_or(0, |d| found.per_device - d)).collect(),
                    };
                    let found = self.allocations.get_mut(&number).expect("just listed");
                    let kept = &mut found.reservation.as_mut().expect("just listed").kept[at][which];
                    for (kept, free) in kept.iter_mut().zip(free) {
                        *kept += free.min(each - *kept);
                    }
                }
            }
        }
    }

    /// Whether the reservation can no longer be completed: a node is unavailable, a victim is fenced, or all victims
    /// are gone and capacity is missing on nodes where no lease is ending.
    pub(crate) fn is_broken(&self, reservation: &Reservation) -> bool {
        let lies = |node: &NodeNo| self.nodes.get(node).is_some_and(|node| node.is_open_to(None));
        let phase = |lease: &LeaseNo| self.lease(*lease).map_or(Phase::Closed, |lease| lease.phase);
        let gone = |lease: &LeaseNo| phase(lease) == Phase::Closed;
        let is_ending = |phase: Phase| phase == Phase::Revoking || phase.is_tearing_down();
        !reservation.nodes().iter().all(lies)
            || reservation.victims.iter().any(|lease| phase(lease) == Phase::Fenced)
            || !reservation.is_full()
                && reservation.victims.iter().all(gone)
                && !self.leases.iter().any(|l| is_ending(l.phase) && reservation.short_on().contains(&l.node))
    }
}
