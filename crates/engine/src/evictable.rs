//! What could be evicted from a node, kept beside its capacity: so that a plan of eviction looks closely at few nodes.

use crate::lease::Lease;
use leasehold_model::Priority;

/// Leases that may fall, on one device or, for kinds without devices, on the node; by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evictable {
    pub(crate) quanta: [u64; 3],
    /// How many of them lie nowhere else.
    pub(crate) leases: [u32; 3],
}

impl Evictable {
    /// Quanta of those below a priority.
    pub(crate) fn below(&self, priority: Priority) -> u64 {
        self.quanta[..priority.index()].iter().sum()
    }

    pub(crate) fn change(&mut self, lease: &Lease, quanta: u64, added: bool) {
        let (index, one) = (lease.priority.index(), u32::from(lease.devices.count_ones() <= 1));
        let (of, count) = (&mut self.quanta[index], &mut self.leases[index]);
        (*of, *count) = if added { (*of + quanta, *count + one) } else { (*of - quanta, *count - one) };
    }
}
