//! Where a node's capacity is, counted afresh each time (SEMANTICS 1 and 3).

use crate::lease::Lease;
use crate::world::{Node, World};
use leasehold_model::{ClassNo, ClassSpec, NodeNo};

/// The six parts of SEMANTICS 3, and what they must add up to.
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
    /// What leases take, in whichever way.
    pub(crate) fn in_use(&self) -> u64 {
        self.held + self.tearing_down + self.reserved + self.fenced
    }
}

/// The quanta a lease takes of the device at `index`: up to one unit lies within one device, more
/// is whole devices (SEMANTICS 1).
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
        // What nobody uses is idle where work may come, else offline. Use above capacity shows as
        // parts that do not add up.
        let rest = parts.capacity.saturating_sub(parts.in_use());
        if node.is_available() {
            parts.idle = rest;
        } else {
            parts.offline = rest;
        }
        parts
    }

    /// Quanta that no lease takes, whether or not new work may come.
    pub(crate) fn free(&self, number: NodeNo, node: &Node, class: ClassNo) -> u64 {
        let parts = self.parts(number, node, class);
        parts.capacity.saturating_sub(parts.in_use())
    }

    /// The use of each device; empty for kinds without devices.
    pub(crate) fn device_use(&self, number: NodeNo, node: &Node, class: ClassNo) -> Vec<u64> {
        let Some(spec) = self.classes.get(&class).filter(|spec| spec.has_devices()) else { return Vec::new() };
        let count = usize::try_from(node.capacity(class) / spec.quanta_per_unit).unwrap_or(usize::MAX).min(64);
        let leases: Vec<&Lease> = self.leases_on(number, class).collect();
        (0..count).map(|i| leases.iter().map(|lease| share_of_device(lease, spec, i)).sum()).collect()
    }

    /// Where `quanta` of a class would lie on a node: the set of its devices, zero for kinds without
    /// devices; none if it has no room.
    pub(crate) fn place(&self, number: NodeNo, node: &Node, class: ClassNo, quanta: u64) -> Option<u64> {
        let spec = self.classes.get(&class)?;
        if self.free(number, node, class) < quanta {
            return None;
        }
        if !spec.has_devices() {
            return Some(0);
        }
        let per_device = spec.quanta_per_unit;
        let used = self.device_use(number, node, class);
        if quanta <= per_device {
            // The fullest device that still has room, the lowest index among equals.
            let fits = used.iter().enumerate().filter(|(_, used)| **used + quanta <= per_device);
            let (index, _) = fits.max_by_key(|(index, used)| (**used, std::cmp::Reverse(*index)))?;
            return Some(1 << index);
        }
        // Whole free devices, lowest indexes first.
        let wanted = usize::try_from(quanta / per_device).ok()?;
        let free: Vec<usize> = (0..used.len()).filter(|i| used[*i] == 0).take(wanted).collect();
        let whole = quanta.is_multiple_of(per_device) && free.len() == wanted;
        whole.then(|| free.iter().fold(0, |set, index| set | 1 << index))
    }
}
