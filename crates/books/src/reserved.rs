//! Capacity that is reserved for an allocation while its victims are torn down (SEMANTICS 3): free, and nobody else's.
//!
//! A decision to evict names the places. From then on whatever is free there, up to what is wanted of each device, is
//! reserved; where several wait for the same, the lower number goes first.

use crate::facts::Books;
use crate::nodes::NodeBook;
use leasehold_model::body::{Body, Place};
use leasehold_model::{AllocationNo, ClassNo, LeaseNo, NodeNo, Record};
use std::collections::BTreeMap;

leasehold_model::fields! {
    /// What is reserved of one class on one node for one replica.
    pub struct Kept {
        pub node: NodeNo,
        pub class: ClassNo,
        /// Which devices, as a bit set; zero for kinds without devices.
        pub devices: u64,
        /// What is wanted of each device, or in all.
        pub each: u64,
        /// What is reserved already: for each device of the set in order, or in all.
        pub have: Vec<u64>,
    }
}

#[derive(Default)]
pub(crate) struct Reserved {
    pub(crate) waiting: BTreeMap<AllocationNo, Vec<Kept>>,
    /// The devices of open leases that have some.
    pub(crate) devices_of: BTreeMap<LeaseNo, u64>,
    /// Quanta that open leases use of each device; it follows from the rest.
    used: BTreeMap<(NodeNo, ClassNo), [u64; 64]>,
}

fn indexes(devices: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |index| devices >> index & 1 == 1)
}

fn kept(place: &Place) -> impl Iterator<Item = Kept> + '_ {
    place.members.iter().map(|member| {
        let count = member.devices.count_ones().max(1);
        Kept {
            node: place.node,
            class: member.class,
            devices: member.devices,
            each: member.quanta.0 / u64::from(count),
            have: vec![0; count as usize],
        }
    })
}

/// The allocation for which nothing is reserved from here on.
fn no_longer_waits(body: &Body) -> Option<AllocationNo> {
    if let Body::ReservationDropped(dropped) = body {
        Some(dropped.allocation)
    } else if let Body::AllocationPlaced(placed) = body {
        Some(placed.allocation)
    } else if let Body::AllocationCancelled(gone) = body {
        Some(gone.allocation)
    } else {
        None
    }
}

impl Reserved {
    /// Notes which devices a lease uses, or gives them back.
    pub(crate) fn use_devices(&mut self, place: (NodeNo, ClassNo), quanta: u64, devices: u64, taken: bool) {
        if devices == 0 {
            return;
        }
        let each = quanta / u64::from(devices.count_ones());
        let used = self.used.entry(place).or_insert([0; 64]);
        indexes(devices).for_each(|index| used[index] = if taken { used[index] + each } else { used[index] - each });
        if used.iter().all(|used| *used == 0) {
            self.used.remove(&place);
        }
    }

    /// What all reservations have of a device.
    fn kept_of_device(&self, place: (NodeNo, ClassNo), device: usize) -> u64 {
        let here = self.waiting.values().flatten().filter(|kept| (kept.node, kept.class) == place);
        here.flat_map(|kept| indexes(kept.devices).zip(&kept.have)).filter(|(i, _)| *i == device).map(|(_, n)| n).sum()
    }
}

impl Books {
    /// A lease is granted on devices.
    pub(crate) fn occupy(&mut self, lease: LeaseNo, place: (NodeNo, ClassNo), quanta: u64, devices: u64) {
        if devices != 0 {
            self.reserved.devices_of.insert(lease, devices);
            self.reserved.use_devices(place, quanta, devices, true);
        }
    }

    /// A lease is closed.
    pub(crate) fn vacate(&mut self, lease: LeaseNo, place: (NodeNo, ClassNo), quanta: u64) {
        if let Some(devices) = self.reserved.devices_of.remove(&lease) {
            self.reserved.use_devices(place, quanta, devices, false);
        }
    }

    /// After a record: reservations begin and end with it, and take what it left free.
    pub(crate) fn follow_reservations(&mut self, record: &Record) -> Result<(), &'static str> {
        if let Body::PreemptionDecided(decided) = &record.body {
            let places = decided.places.iter().flat_map(kept).collect();
            self.reserved.waiting.insert(decided.allocation, places);
        }
        if let Some(number) = no_longer_waits(&record.body) {
            self.drop_reservation(number, record)?;
        }
        // The leases of one that is placed are granted in the records that follow, on what it gave up.
        if matches!(record.body, Body::AllocationPlaced(_) | Body::Granted(_)) {
            return Ok(());
        }
        let numbers: Vec<AllocationNo> = self.reserved.waiting.keys().copied().collect();
        for number in numbers {
            for place in 0..self.reserved.waiting[&number].len() {
                self.fill(number, place, record)?;
            }
        }
        Ok(())
    }

    fn drop_reservation(&mut self, number: AllocationNo, record: &Record) -> Result<(), &'static str> {
        for kept in self.reserved.waiting.remove(&number).unwrap_or_default() {
            let total: u64 = kept.have.iter().sum();
            self.nodes.reserve(kept.node, kept.class, total, false, record.stamp, &mut self.store)?;
        }
        Ok(())
    }

    /// Takes what is free and wanted at one of its places.
    fn fill(&mut self, number: AllocationNo, place: usize, record: &Record) -> Result<(), &'static str> {
        let Kept { node, class, devices, each, have } = self.reserved.waiting[&number][place].clone();
        let book =
            self.nodes.books.get(&node).and_then(|node: &NodeBook| node.classes.iter().find(|c| c.class == class));
        let Some(free) = book.map(|class| class.free()) else { return Ok(()) };
        let more: Vec<u64> = if devices == 0 {
            vec![free.min(each - have[0])]
        } else {
            let per_device = self.classes.get(&class).ok_or("a class that was never put")?.quanta_per_unit;
            let used = self.reserved.used.get(&(node, class)).copied().unwrap_or([0; 64]);
            let free = |index: usize| {
                per_device.saturating_sub(used[index] + self.reserved.kept_of_device((node, class), index))
            };
            indexes(devices).zip(&have).map(|(index, have)| free(index).min(each - have)).collect()
        };
        let total: u64 = more.iter().sum();
        if total > 0 {
            self.nodes.reserve(node, class, total, true, record.stamp, &mut self.store)?;
            let kept = &mut self.reserved.waiting.get_mut(&number).expect("it waits")[place].have;
            kept.iter_mut().zip(more).for_each(|(have, more)| *have += more);
        }
        Ok(())
    }

    /// What follows from the leases and reservations that were read back.
    pub(crate) fn restore_reserved(&mut self) -> Option<()> {
        for (lease, devices) in self.reserved.devices_of.clone() {
            let row = &self.open.get(&lease)?.row;
            let (place, quanta) = ((row.node, row.class), row.quanta);
            if devices == 0 {
                return None;
            }
            self.reserved.use_devices(place, quanta, devices, true);
        }
        for kept in self.reserved.waiting.values().flatten() {
            let class = self.nodes.books.get_mut(&kept.node)?.classes.iter_mut().find(|c| c.class == kept.class)?;
            let fits = kept.have.len() == kept.devices.count_ones().max(1) as usize;
            if !fits || kept.have.iter().any(|have| *have > kept.each) {
                return None;
            }
            class.reserved = class.reserved.checked_add(kept.have.iter().try_fold(0u64, |a, b| a.checked_add(*b))?)?;
        }
        Some(())
    }
}
