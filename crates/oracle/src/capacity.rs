//! The capacity of a node by state, recomputed each time (SEMANTICS 1 and 3).

use crate::lease::Lease;
use crate::world::{Node, World};
use leasehold_model::{ClassNo, ClassSpec, NodeNo};

/// The six parts of SEMANTICS 3 and their total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) held: u64,
    pub(crate) tearing_down: u64,
    pub(crate) reserved: u64,
    pub(crate) fenced: u64,
    pub(crate) offline: u64,
    pub(crate) idle: u64,
    pub(crate) capacity: u64,
}

impl Parts {
    /// What is used by leases and reservations.
    pub(crate) fn in_use(&self) -> u64 {
        self.held + self.tearing_down + self.reserved + self.fenced
    }
}

/// The quanta that a lease uses of the device at `index`: up to one unit is within one device, more are whole devices
/// (SEMANTICS 1).
pub(crate) fn share_of_device(lease: &Lease, spec: &ClassSpec, index: usize) -> u64 {
    match lease.devices >> index & 1 {
        0 => 0,
        _ => lease.quanta.min(spec.quanta_per_unit),
    }
}

impl World {
    pub(crate) fn leases_on(&self, node: NodeNo, class: ClassNo) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(move |l| l.phase.takes_capacity() && l.node == node && l.class == class)
    }

    pub(crate) fn parts(&self, number: NodeNo, node: &Node, class: ClassNo) -> Parts {
        let mut parts = Parts { capacity: node.capacity(class), ..Parts::default() };
        for lease in self.leases_on(number, class) {
            if lease.phase.is_held() {
                parts.held += lease.quanta;
            } else if lease.phase.is_tearing_down() {
                parts.tearing_down += lease.quanta;
            } else {
                parts.fenced += lease.quanta;
            }
        }
        parts.reserved = self.kept_on(number, class).iter().map(|(_, kept)| kept).sum();
        // Unused capacity is idle if some work may be placed there, even if only the claimer's; else it is offline. If
        // more than the capacity is used, the parts do not add up.
        let rest = parts.capacity.saturating_sub(parts.in_use());
        if node.is_open_to(None) || node.is_open_to(node.custody.claimer()) {
            parts.idle = rest;
        } else {
            parts.offline = rest;
        }
        parts
    }

    /// Unused quanta, also on nodes that accept no new work.
    pub(crate) fn free(&self, number: NodeNo, node: &Node, class: ClassNo) -> u64 {
        let parts = self.parts(number, node, class);
        parts.capacity.saturating_sub(parts.in_use())
    }

    /// The use of each device by leases and reservations; empty for kinds without devices.
    pub(crate) fn device_use(&self, number: NodeNo, node: &Node, class: ClassNo) -> Vec<u64> {
        self.class_on_node(number, node, class).map_or_else(Vec::new, |found| found.devices)
    }

    /// Capacity and use of a class on a node; `None` if the class does not exist.
    pub(crate) fn class_on_node(&self, number: NodeNo, node: &Node, class: ClassNo) -> Option<ClassOnNode> {
        let spec = self.classes.get(&class)?;
        let per_device = if spec.has_devices() { spec.quanta_per_unit } else { 0 };
        let count = node.capacity(class).checked_div(per_device).unwrap_or(0).min(64);
        let mut devices = vec![0; usize::try_from(count).expect("at most 64")];
        for lease in self.leases_on(number, class) {
            for (index, used) in devices.iter_mut().enumerate() {
                *used += share_of_device(lease, spec, index);
            }
        }
        for (index, kept) in self.kept_on(number, class) {
            if let Some(used) = devices.get_mut(index) {
                *used += kept;
            }
        }
        let parts = self.parts(number, node, class);
        Some(ClassOnNode { capacity: parts.capacity, used: parts.in_use(), per_device, devices })
    }

    /// The devices for `quanta` of a class on a node, as a set; zero for kinds without devices; `None` if they do not
    /// fit.
    pub(crate) fn place(&self, number: NodeNo, node: &Node, class: ClassNo, quanta: u64) -> Option<u64> {
        self.class_on_node(number, node, class)?.choose(quanta)
    }
}

/// One class on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassOnNode {
    pub(crate) capacity: u64,
    pub(crate) used: u64,
    /// Quanta of one device; zero for kinds without devices.
    pub(crate) per_device: u64,
    /// Used quanta of each device.
    pub(crate) devices: Vec<u64>,
}

impl ClassOnNode {
    pub(crate) fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// The most that would fit instead of `quanta`, in one device or in whole devices.
    pub(crate) fn room_for(&self, quanta: u64) -> u64 {
        match self.per_device {
            0 => self.free(),
            per if quanta <= per => (1..=per).rev().find(|less| self.choose(*less).is_some()).unwrap_or(0),
            per => (1..=self.devices.len() as u64).rev().map(|n| n * per).find(|n| self.choose_whole(*n)).unwrap_or(0),
        }
    }

    fn choose_whole(&self, quanta: u64) -> bool {
        let free = self.devices.iter().filter(|used| **used == 0).count() as u64;
        free * self.per_device >= quanta
    }

    /// The devices for `quanta`, as a set; zero for kinds without devices; `None` if they do not fit.
    pub(crate) fn choose(&self, quanta: u64) -> Option<u64> {
        if self.free() < quanta {
            return None;
        }
        if self.per_device == 0 {
            return Some(0);
        }
        if quanta <= self.per_device {
            // The fullest device that still has room, the lowest index among equals.
            let fits = self.devices.iter().enumerate().filter(|(_, used)| **used + quanta <= self.per_device);
            let (index, _) = fits.max_by_key(|(index, used)| (**used, std::cmp::Reverse(*index)))?;
            return Some(1 << index);
        }
        // Whole free devices, lowest indexes first.
        let wanted = usize::try_from(quanta / self.per_device).ok()?;
        let free: Vec<usize> = (0..self.devices.len()).filter(|i| self.devices[*i] == 0).take(wanted).collect();
        let whole = quanta.is_multiple_of(self.per_device) && free.len() == wanted;
        whole.then(|| free.iter().fold(0, |set, index| set | 1 << index))
    }

    /// Adds `quanta` to the use of some devices, or subtracts them.
    pub(crate) fn change(&mut self, devices: u64, quanta: u64, taken: bool) {
        let by = |of: &mut u64, amount: u64| *of = if taken { *of + amount } else { *of - amount };
        by(&mut self.used, quanta);
        for index in indexes(devices) {
            by(&mut self.devices[index], quanta.min(self.per_device));
        }
    }
}

/// The indexes in a set of devices.
pub(crate) fn indexes(devices: u64) -> impl Iterator<Item = usize> {
    (0..64usize).filter(move |index| devices >> index & 1 == 1)
}
