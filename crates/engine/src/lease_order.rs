//! Live leases in order of number, for readers that read them page by page.
//!
//! Lease numbers rise, so appending keeps the order and nothing has to be sorted.

use crate::lease::{Lease, LeaseTable};
use leasehold_model::LeaseNo;

/// Every live lease with its slot, and some closed leases that were not removed yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseOrder {
    entries: Vec<(LeaseNo, u32)>,
    gone: usize,
}

impl LeaseOrder {
    pub(crate) fn of(leases: &LeaseTable) -> Self {
        let slot = |lease: &Lease| leases.slot(lease.number).expect("a live lease has a slot");
        Self { entries: leases.in_order().into_iter().map(|lease| (lease.number, slot(lease))).collect(), gone: 0 }
    }

    pub(crate) fn add(&mut self, lease: LeaseNo, slot: u32) {
        assert!(self.entries.last().is_none_or(|(last, _)| *last < lease), "lease numbers rise");
        self.entries.push((lease, slot));
    }

    /// A lease was removed from the table. Its entry is dropped later, together with many others.
    pub(crate) fn note_removed(&mut self, leases: &LeaseTable) {
        self.gone += 1;
        if self.gone * 2 > self.entries.len() {
            self.entries.retain(|(lease, slot)| leases.at(*slot).number == *lease);
            self.gone = 0;
        }
    }

    /// Live leases with a higher number than `after`, in order.
    pub(crate) fn after<'s>(
        &'s self,
        after: Option<LeaseNo>,
        leases: &'s LeaseTable,
    ) -> impl Iterator<Item = &'s Lease> + 's {
        let first = self.entries.partition_point(|(lease, _)| after.is_some_and(|after| *lease <= after));
        // The slot may be empty or belong to another lease by now.
        self.entries[first..]
            .iter()
            .map(|(no, slot)| (no, leases.at(*slot)))
            .filter(|(no, l)| l.number == **no)
            .map(|(_, l)| l)
    }
}
