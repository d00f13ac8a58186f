//! What is due when, by (due, kind, id).
//!
//! A lease has one entry in the heap, at or before its true instant. A renewal moves the true
//! instant and leaves the entry: when it comes up early it is pushed back to where it belongs.
//! So the most frequent command costs the heap nothing. Entries of leases that are gone are
//! dropped as they come up, or all at once when they outnumber the living.

use crate::node::Node;
use crate::quota::Quota;
use crate::state::State;
use leasehold_model::{Instant, LeaseNo, NodeNo, QuotaNo, words};
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

/// Of an engine: what is due is decided, not folded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    /// The entry in the heap that stands for each lease, by its slot in the table.
    armed: Vec<Entry>,
}

impl Timers {
    /// Every timer that is really set.
    pub(crate) fn of(state: &State) -> Self {
        let mut timers = Self::default();
        timers.reset(state);
        timers
    }

    /// Leaves out the entries of what is gone.
    pub(crate) fn reset(&mut self, state: &State) {
        let mut entries = Vec::with_capacity(state.leases.len());
        self.armed.clear();
        for (slot, lease) in state.leases.slots() {
            self.make_place(slot);
            if let Some(due) = lease.true_timer() {
                self.armed[slot as usize] = due;
                entries.push(Reverse(due));
            }
        }
        let burst = |quota: &Quota| Some(Reverse(Entry::burst(quota.number, quota.episode_due()?)));
        entries.extend(state.quotas().filter_map(burst));
        let wipe = |node: &Node| Some(Reverse(Entry::wipe(node.number, node.custody.wipe_due()?)));
        entries.extend(state.nodes().filter_map(wipe));
        self.heap = entries.into();
    }

    fn make_place(&mut self, slot: u32) {
        if self.armed.len() <= slot as usize {
            self.armed.resize(slot as usize + 1, Entry::NEVER);
        }
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }
    pub(crate) fn peek(&self) -> Option<Entry> {
        self.heap.peek().map(|e| e.0)
    }
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.heap.pop().map(|e| e.0)
    }

    /// A new lease stands at `slot`.
    pub(crate) fn begin(&mut self, state: &State, slot: u32) {
        self.make_place(slot);
        let due = state.leases.at(slot).true_timer().unwrap_or(Entry::NEVER);
        self.armed[slot as usize] = due;
        self.push(due);
    }

    /// Makes sure that the lease at `slot` is woken at its true instant.
    pub(crate) fn arm(&mut self, state: &State, slot: u32) {
        let armed = &mut self.armed[slot as usize];
        if let Some(due) = state.leases.at(slot).true_timer()
            && due < *armed
        {
            *armed = due;
            self.push(due);
        }
    }

    /// The slot of the lease that an entry stands for; none where another entry does, or the lease is gone.
    pub(crate) fn slot_of(&self, state: &State, entry: Entry) -> Option<u32> {
        state.leases.slot(LeaseNo(entry.id())).filter(|slot| self.armed[*slot as usize] == entry)
    }

    /// Takes the first entry out of the heap; its lease has none until it is armed again.
    pub(crate) fn take(&mut self, state: &State, first: Entry) {
        let taken = self.pop();
        assert_eq!(taken, Some(first), "the entry that was looked at is the one that is taken");
        if first.is_of_lease()
            && let Some(slot) = state.leases.slot(LeaseNo(first.id()))
        {
            self.armed[slot as usize] = Entry::NEVER;
        }
    }

    /// Drops the entries of leases that are gone, when they outnumber the living so far that it pays.
    pub(crate) fn sweep(&mut self, state: &State) {
        if self.heap.len() > 2 * state.leases.len() + 1024 {
            self.reset(state);
        }
    }

    /// Fetches what is known of a lease into the cache.
    pub(crate) fn touch(&self, slot: u32) -> u64 {
        self.armed.get(slot as usize).map_or(0, |entry| entry.due.0)
    }
}
