//! Capacity that is reserved for an allocation while its victims are torn down (SEMANTICS 3). It is free, but nobody
//! else can have it.
//!
//! A preemption decision names the nodes and devices. From then on everything that becomes free there is reserved, up
//! to the requested quanta of each device. If several allocations wait for the same device, the lower number goes
//! first.

use crate::facts::Books;
use crate::nodes::NodeBook;
use crate::row::Row;
use leasehold_model::body::{Body, ReplicaPlacement};
use leasehold_model::{AllocationNo, ClassNo, NodeNo, Record};
use std::collections::BTreeMap;

leasehold_model::fields! {
    /// The reservation of one class on one node for one replica.
    pub struct Kept {
        pub node: NodeNo,
        pub class: ClassNo,
        /// The devices as a bit set; zero for kinds without devices.
        pub devices: u64,
        /// Requested quanta of each device; the total for kinds without devices.
        pub each: u64,
        /// Quanta that are reserved already, for each device of the set in order; one total for kinds without devices.
        pub have: Vec<u64>,
    }
}

#[derive(Default)]
pub(crate) struct Reserved {
    pub(crate) waiting: BTreeMap<AllocationNo, Vec<Kept>>,
    /// Quanta that open leases use of each device. Not stored: it is computed from the open leases.
    used: BTreeMap<(NodeNo, ClassNo), [u64; 64]>,
}

fn indexes(devices: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |index| devices >> index & 1 == 1)
}

fn kept(place: &ReplicaPlacement) -> impl Iterator<Item = Kept> + '_ {
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

/// The allocation whose reservation ends with this record.
fn reservation_ended(body: &Body) -> Option<AllocationNo> {
    if let Body::ReservationDropped(dropped) = body {
        Some(dropped.allocation)
    } else if let Body::AllocationPlaced(placed) = body {
        Some(placed.allocation)
    } else if let Body::AllocationCancelled(gone) = body {
        Some(gone.allocation)
    } else if let Body::AllocationHoldSet(held) = body {
        Some(held.allocation)
    } else if let Body::AllocationChanged(changed) = body {
        Some(changed.allocation)
    } else {
        None
    }
}

impl Reserved {
    /// Adds the quanta of a lease to the use of its devices, or subtracts them.
    pub(crate) fn use_devices(&mut self, lease: &Row, taken: bool) {
        let devices = lease.life.devices;
        if devices == 0 {
            return;
        }
        let each = lease.quanta / u64::from(devices.count_ones());
        let place = (lease.node, lease.class);
        let used = self.used.entry(place).or_insert([0; 64]);
        indexes(devices).for_each(|index| used[index] = if taken { used[index] + each } else { used[index] - each });
        if used.iter().all(|used| *used == 0) {
            self.used.remove(&place);
        }
    }

    /// Quanta of a device that are reserved, over all reservations.
    fn kept_of_device(&self, place: (NodeNo, ClassNo), device: usize) -> u64 {
        let here = self.waiting.values().flatten().filter(|kept| (kept.node, kept.class) == place);
        here.flat_map(|kept| indexes(kept.devices).zip(&kept.have)).filter(|(i, _)| *i == device).map(|(_, n)| n).sum()
    }
}

impl Books {
    /// Starts and ends reservations as the record demands, then reserves what became free.
    pub(crate) fn follow_reservations(&mut self, record: &Record) -> Result<(), &'static str> {
        if let Body::PreemptionDecided(decided) = &record.body {
            let places = decided.places.iter().flat_map(kept).collect();
            self.reserved.waiting.insert(decided.allocation, places);
        }
        if let Body::ReservationTakenOver(taken) = &record.body {
            for number in &taken.dropped {
                self.drop_reservation(*number, record)?;
            }
            let places = taken.places.iter().flat_map(kept).collect();
            self.reserved.waiting.insert(taken.allocation, places);
        }
        if let Some(number) = reservation_ended(&record.body) {
            self.drop_reservation(number, record)?;
        }
        // The records that follow grant the leases of a placed allocation on the capacity that was reserved for it.
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

    /// Reserves what is free for one replica's class, up to what it requests.
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
            let kept = &mut self.reserved.waiting.get_mut(&number).expect("the reservation was just read")[place].have;
            kept.iter_mut().zip(more).for_each(|(have, more)| *have += more);
        }
        Ok(())
    }

    /// Recomputes what is not stored, after open leases and reservations were decoded. `None`: they contradict each
    /// other.
    pub(crate) fn restore_reserved(&mut self) -> Option<()> {
        self.open.values().for_each(|open| self.reserved.use_devices(&open.row, true));
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
