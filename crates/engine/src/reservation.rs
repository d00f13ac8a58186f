//! Capacity kept for an allocation whose victims are being torn down: reserved, unbilled (SEMANTICS 3).

use crate::node::NodeClass;
use leasehold_model::body::{Leases, Member, ReplicaPlacement};
use leasehold_model::{ClassNo, NodeNo, Quanta};

/// What is kept of one class for one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) class: ClassNo,
    /// Which devices, as a bit set; zero for kinds without devices.
    pub(crate) devices: u64,
    /// What is wanted of each device, or of the node.
    pub(crate) each: u64,
    /// What is kept already: one number for each device of the set in order, or one in all.
    pub(crate) have: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptPlace {
    pub(crate) node: NodeNo,
    pub(crate) members: Vec<Kept>,
}

/// The capacity that one decision to evict keeps for its requester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// The decision.
    pub(crate) sequence: u64,
    pub(crate) places: Vec<KeptPlace>,
    pub(crate) victims: Leases,
}

/// The indexes in a set of devices.
fn indexes(devices: u64) -> impl Iterator<Item = usize> {
    (0..64usize).filter(move |index| devices >> index & 1 == 1)
}

impl Kept {
    /// Takes what is free and wanted.
    pub(crate) fn fill(&mut self, class: &mut NodeClass) {
        if class.per_device == 0 {
            let more = (self.each - self.have[0]).min(class.free());
            self.have[0] += more;
            class.reserved += more;
            return;
        }
        for (place, index) in indexes(self.devices).enumerate() {
            let used = &mut class.devices[index];
            let more = (self.each - self.have[place]).min(class.per_device - *used);
            *used += more;
            self.have[place] += more;
            class.reserved += more;
        }
    }

    /// Gives back what it has.
    pub(crate) fn empty(&mut self, class: &mut NodeClass) {
        for (place, index) in indexes(self.devices).enumerate() {
            class.devices[index] -= self.have[place];
        }
        class.reserved -= self.have.iter().sum::<u64>();
        self.have.iter_mut().for_each(|have| *have = 0);
    }

    /// Adds what is kept to a sum for each device, or in all.
    pub(crate) fn add_to(&self, sums: &mut [u64]) {
        if self.devices == 0 {
            sums[0] += self.have[0];
        }
        indexes(self.devices).zip(&self.have).for_each(|(index, have)| sums[index] += have);
    }

    /// What the lease will hold.
    pub(crate) fn member(&self) -> Member {
        let devices = u64::from(self.devices.count_ones()).max(1);
        Member { class: self.class, quanta: Quanta(self.each * devices), devices: self.devices }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.have.iter().all(|have| *have == self.each)
    }
}

impl Reservation {
    pub(crate) fn new(sequence: u64, places: &[ReplicaPlacement], victims: &Leases) -> Self {
        let kept = |place: &ReplicaPlacement| {
            let members = place.members.iter().map(|member| {
                let devices = u64::from(member.devices.count_ones()).max(1);
                let count = usize::try_from(devices).expect("at most 64 devices");
                Kept {
                    class: member.class,
                    devices: member.devices,
                    each: member.quanta.0 / devices,
                    have: vec![0; count],
                }
            });
            KeptPlace { node: place.node, members: members.collect() }
        };
        Self { sequence, places: places.iter().map(kept).collect(), victims: victims.clone() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.places.iter().flat_map(|place| &place.members).all(Kept::is_full)
    }
}
