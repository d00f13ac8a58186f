//! What is due when, by (due, kind, id).
//!
//! A lease has one entry in the heap, at or before its true instant. A renewal moves the true
//! instant and leaves the entry: when it comes up early it is pushed back to where it belongs.
//! So the most frequent command costs the heap nothing. Entries of leases that are gone are
//! dropped as they come up, or all at once when they outnumber the living.

use leasehold_model::{Instant, NodeNo, QuotaNo, words};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

words! {
    /// What comes due, in the order of SEMANTICS 2 for equal instants. Heartbeats have their
    /// place in that order, too; they are watched by the cell, which asks the engine to lose a node.
    pub enum TimerKind {
        Expiry = 0 "expiry",
        Grace = 1 "grace",
        Teardown = 2 "teardown",
        Wipe = 3 "wipe",
        Burst = 4 "burst",
    }
}

/// One entry: 16 bytes, ordered by (due, kind, id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    due: Instant,
    kind_and_id: u64,
}

const ID_BITS: u32 = 60;
/// Ids lie below this.
pub(crate) const ID_MAX: u64 = 1 << ID_BITS;

impl Entry {
    /// After everything that can come due.
    pub(crate) const NEVER: Self = Self { due: Instant::MAX, kind_and_id: u64::MAX };

    pub(crate) fn new(due: Instant, kind: TimerKind, id: u64) -> Self {
        assert!(id >> ID_BITS == 0, "an id that leaves no room for its kind");
        Self { due, kind_and_id: (kind as u64) << ID_BITS | id }
    }
    /// The end of a burst quota's episode.
    pub(crate) fn burst(quota: QuotaNo, due: Instant) -> Self {
        Self::new(due, TimerKind::Burst, u64::from(quota.0))
    }
    /// The end of the time that a node has to be wiped.
    pub(crate) fn wipe(node: NodeNo, due: Instant) -> Self {
        Self::new(due, TimerKind::Wipe, u64::from(node.0))
    }
    pub(crate) fn due(self) -> Instant {
        self.due
    }
    pub(crate) fn is_burst(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::Burst as u64
    }
    fn is_wipe(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::Wipe as u64
    }
    /// Whether its id is a lease's.
    pub(crate) fn is_of_lease(self) -> bool {
        !self.is_burst() && !self.is_wipe()
    }
    pub(crate) fn id(self) -> u64 {
        self.kind_and_id & ((1 << ID_BITS) - 1)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Timers {
    pub(crate) fn push(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }
    pub(crate) fn peek(&self) -> Option<Entry> {
        self.heap.peek().map(|e| e.0)
    }
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.heap.pop().map(|e| e.0)
    }
    /// Whether gone leases' entries outnumber `live` so far that sweeping them out pays.
    pub(crate) fn is_crowded(&self, live: usize) -> bool {
        self.heap.len() > 2 * live + 1024
    }
    pub(crate) fn replace(&mut self, entries: Vec<Entry>) {
        self.heap = entries.into_iter().map(Reverse).collect();
    }
}
