//! Capacity that is reserved, and not billed, for an allocation whose victims are being torn down (SEMANTICS 3).

use crate::allocation::Allocation;
use crate::lease::Phase;
use crate::node::{Node, NodeClass};
use crate::state::State;
use leasehold_model::body::{Leases, Member, ReplicaPlacement};
use leasehold_model::{ClassNo, LeaseNo, NodeNo, Quanta, QuotaNo};

/// The capacity of one class that is reserved for one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReservedMember {
    pub(crate) class: ClassNo,
    /// Which devices, as a bit set; zero for kinds without devices.
    pub(crate) devices: u64,
    /// The quanta to reserve on each device, or on the node.
    pub(crate) each: u64,
    /// The quanta reserved so far: one number for each device of the set in order, or one for the node.
    pub(crate) have: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReservedReplica {
    pub(crate) node: NodeNo,
    pub(crate) members: Vec<ReservedMember>,
}

/// The capacity that is reserved by one eviction decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// The sequence of the record of the decision.
    pub(crate) sequence: u64,
    pub(crate) places: Vec<ReservedReplica>,
    pub(crate) victims: Leases,
    /// The quota in which the victims make headroom, which is held for the allocation.
    pub(crate) headroom: Option<QuotaNo>,
}

/// The indexes in a set of devices.
fn indexes(devices: u64) -> impl Iterator<Item = usize> {
    (0..64usize).filter(move |index| devices >> index & 1 == 1)
}

impl ReservedMember {
    /// Reserves as much of what is missing as is free.
    pub(crate) fn fill(&mut self, class: &mut NodeClass) {
        if class.per_device == 0 {
            let more = (self.each - self.have[0]).min(class.free());
            self.have[0] += more;
            class.reserved += more;
            return;
        }
        for (slot, index) in indexes(self.devices).enumerate() {
            let used = &mut class.devices[index];
            let more = (self.each - self.have[slot]).min(class.per_device - *used);
            *used += more;
            self.have[slot] += more;
            class.reserved += more;
        }
    }

    /// Returns everything that is reserved.
    pub(crate) fn empty(&mut self, class: &mut NodeClass) {
        for (slot, index) in indexes(self.devices).enumerate() {
            class.devices[index] -= self.have[slot];
        }
        class.reserved -= self.have.iter().sum::<u64>();
        self.have.iter_mut().for_each(|have| *have = 0);
    }

    /// Adds what is reserved to the sum of each device, or of the node.
    pub(crate) fn add_to(&self, sums: &mut [u64]) {
        if self.devices == 0 {
            sums[0] += self.have[0];
        }
        indexes(self.devices).zip(&self.have).for_each(|(index, have)| sums[index] += have);
    }

    /// What the lease of the replica will hold.
    pub(crate) fn member(&self) -> Member {
        let devices = u64::from(self.devices.count_ones()).max(1);
        Member { class: self.class, quanta: Quanta(self.each * devices), devices: self.devices }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.have.iter().all(|have| *have == self.each)
    }
}

impl Reservation {
    pub(crate) fn new(sequence: u64, places: &[ReplicaPlacement], victims: &Leases, headroom: Option<QuotaNo>) -> Self {
        let reserved = |place: &ReplicaPlacement| {
            let members = place.members.iter().map(|member| {
                let devices = u64::from(member.devices.count_ones()).max(1);
                let count = usize::try_from(devices).expect("at most 64 devices");
                ReservedMember {
                    class: member.class,
                    devices: member.devices,
                    each: member.quanta.0 / devices,
                    have: vec![0; count],
                }
            });
            ReservedReplica { node: place.node, members: members.collect() }
        };
        Self { sequence, places: places.iter().map(reserved).collect(), victims: victims.clone(), headroom }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.places.iter().flat_map(|place| &place.members).all(ReservedMember::is_full)
    }
}

impl State {
    /// Whether everything that a reservation waits for is there: its capacity, and the headroom that its victims leave.
    pub(crate) fn is_complete(&self, found: &Allocation, reservation: &Reservation) -> bool {
        reservation.is_full() && !self.is_headroom_awaited(found, reservation)
    }

    /// Whether a reservation can no longer be filled: one of its nodes has left service, a lease that it waits for was
    /// fenced, or something is missing where nothing is ending any more.
    pub(crate) fn is_broken(&self, reservation: &Reservation) -> bool {
        let node = |place: &ReservedReplica| self.node(place.node);
        let is_available = |place: &ReservedReplica| node(place).is_some_and(Node::is_available);
        let is_fenced = |lease: &LeaseNo| self.lease(*lease).is_some_and(|lease| lease.phase == Phase::Fenced);
        let is_gone = |lease: &LeaseNo| self.lease(*lease).is_none();
        // Another reservation may have been filled with the capacity of a victim, and leave that of its own.
        let can_fill = |place: &&ReservedReplica| node(place).is_some_and(|node| node.ending > 0);
        let mut missing = reservation.places.iter().filter(|place| !place.members.iter().all(ReservedMember::is_full));
        !reservation.places.iter().all(is_available)
            || reservation.victims.0.iter().any(is_fenced)
            || !reservation.is_full()
                && reservation.victims.0.iter().all(is_gone)
                && !missing.any(|place| can_fill(&place))
    }
}
