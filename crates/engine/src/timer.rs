//! Timers, in the order (due, kind, id).
//!
//! Each lease has one entry in the heap, at or before the instant of its actual timer. A renewal moves the timer and
//! leaves the entry unchanged; when the entry comes up too early, it is pushed again with the right instant. So
//! renewals, the most frequent commands, do not touch the heap. Entries of closed leases are dropped when they come up,
//! or all at once when there are too many of them.

use crate::node::Node;
use crate::prefetch::prefetch;
use crate::quota::Quota;
use crate::state::State;
use leasehold_model::{Instant, LeaseNo, NodeNo, QuotaNo, WindowNo, words};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

words! {
    /// The kinds of timers, in the order of SEMANTICS 2 and 11 for equal instants. Missed heartbeats are part of that order,
    /// too, but the cell watches them and asks the engine to declare a node lost.
    pub enum TimerKind {
        Expiry = 0 "expiry",
        Grace = 1 "grace",
        Teardown = 2 "teardown",
        Wipe = 3 "wipe",
        Burst = 4 "burst",
        QuotaUntil = 5 "quota_until",
        WindowEnd = 6 "window_end",
        WindowStart = 7 "window_start",
        Credit = 8 "credit",
        PrepaidMinute = 9 "prepaid_minute",
    }
}

/// One entry: 16 bytes, ordered by (due, kind, id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    due: Instant,
    kind_and_id: u64,
}

const ID_BITS: u32 = 60;
/// All ids are below this.
pub(crate) const ID_MAX: u64 = 1 << ID_BITS;

impl Entry {
    /// Later than every timer.
    pub(crate) const NEVER: Self = Self { due: Instant::MAX, kind_and_id: u64::MAX };

    pub(crate) fn new(due: Instant, kind: TimerKind, id: u64) -> Self {
        assert!(id >> ID_BITS == 0, "a timer id has at most 60 bits");
        Self { due, kind_and_id: (kind as u64) << ID_BITS | id }
    }
    /// The end of a burst quota's episode.
    pub(crate) fn burst(quota: QuotaNo, due: Instant) -> Self {
        Self::new(due, TimerKind::Burst, u64::from(quota.0))
    }
    /// The end of a quota's temporary limit.
    pub(crate) fn quota_until(quota: QuotaNo, due: Instant) -> Self {
        Self::new(due, TimerKind::QuotaUntil, u64::from(quota.0))
    }
    /// The start of a maintenance window.
    pub(crate) fn window_start(window: WindowNo, due: Instant) -> Self {
        Self::new(due, TimerKind::WindowStart, u64::from(window.0))
    }
    /// The end of a maintenance window.
    pub(crate) fn window_end(window: WindowNo, due: Instant) -> Self {
        Self::new(due, TimerKind::WindowEnd, u64::from(window.0))
    }
    /// The expiry of credits of a prepaid account.
    pub(crate) fn credit(account: u32, due: Instant) -> Self {
        Self::new(due, TimerKind::Credit, u64::from(account))
    }
    /// The look at a prepaid account at the end of a minute.
    fn prepaid_minute(account: u32, due: Instant) -> Self {
        Self::new(due, TimerKind::PrepaidMinute, u64::from(account))
    }
    /// The deadline of a node's wipe.
    pub(crate) fn wipe(node: NodeNo, due: Instant) -> Self {
        Self::new(due, TimerKind::Wipe, u64::from(node.0))
    }
    pub(crate) fn due(self) -> Instant {
        self.due
    }
    pub(crate) fn is_burst(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::Burst as u64
    }
    pub(crate) fn is_quota_until(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::QuotaUntil as u64
    }
    pub(crate) fn is_window_start(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::WindowStart as u64
    }
    pub(crate) fn is_window_end(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::WindowEnd as u64
    }
    pub(crate) fn is_credit(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::Credit as u64
    }
    pub(crate) fn is_prepaid_minute(self) -> bool {
        self.kind_and_id >> ID_BITS == TimerKind::PrepaidMinute as u64
    }
    /// Whether it is the timer of a lease.
    pub(crate) fn is_of_lease(self) -> bool {
        self.kind_and_id >> ID_BITS <= TimerKind::Teardown as u64
    }
    pub(crate) fn id(self) -> u64 {
        self.kind_and_id & ((1 << ID_BITS) - 1)
    }
}

/// The timers of an engine. They are no part of the state, because a fold does not need them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    /// The current heap entry of each lease, by its slot in the lease table.
    armed: Vec<Entry>,
    /// When each prepaid account is looked at next.
    minutes: BTreeMap<u32, Instant>,
    /// Prepaid accounts that may have come into another state.
    pub(crate) touched: BTreeSet<u32>,
}

impl Timers {
    /// The timers of everything in the state.
    pub(crate) fn of(state: &State) -> Self {
        let mut timers = Self::default();
        let next = state.next_prepaid_minute();
        timers.minutes = state.prepaid_accounts().map(|(_, account)| (account.number, next)).collect();
        timers.reset(state);
        timers
    }

    /// Rebuilds the heap from the state, without outdated entries.
    pub(crate) fn reset(&mut self, state: &State) {
        let mut entries = Vec::with_capacity(state.leases.len());
        self.armed.clear();
        for (slot, lease) in state.leases.slots() {
            self.ensure_slot(slot);
            if let Some(due) = lease.timer() {
                self.armed[slot as usize] = due;
                entries.push(Reverse(due));
            }
        }
        let burst = |quota: &Quota| Some(Reverse(Entry::burst(quota.number, quota.episode_due()?)));
        entries.extend(state.quotas().filter_map(burst));
        let until = |quota: &Quota| Some(Reverse(Entry::quota_until(quota.number, quota.temporary?.until)));
        entries.extend(state.quotas().filter_map(until));
        let wipe = |node: &Node| Some(Reverse(Entry::wipe(node.number, node.custody.wipe_due()?)));
        entries.extend(state.nodes().filter_map(wipe));
        for window in state.windows() {
            entries.extend((!window.is_open).then(|| Reverse(Entry::window_start(window.number, window.from))));
            entries.push(Reverse(Entry::window_end(window.number, window.until)));
        }
        for (_, account) in state.prepaid_accounts() {
            let due = account.credits.all().iter().filter_map(|credit| credit.expires_at);
            entries.extend(due.map(|due| Reverse(Entry::credit(account.number, due))));
        }
        entries.extend(self.minutes.iter().map(|(account, due)| Reverse(Entry::prepaid_minute(*account, *due))));
        self.heap = entries.into();
    }

    /// Has a prepaid account looked at, unless it is already before that.
    pub(crate) fn arm_minute(&mut self, account: u32, due: Instant) {
        if self.minutes.get(&account).is_none_or(|armed| due < *armed) {
            self.minutes.insert(account, due);
            self.push(Entry::prepaid_minute(account, due));
        }
    }

    /// Whether a prepaid account is due to be looked at. It is no longer then.
    pub(crate) fn minute_came(&mut self, account: u32, due: Instant) -> bool {
        self.minutes.get(&account) == Some(&due) && self.minutes.remove(&account).is_some()
    }

    fn ensure_slot(&mut self, slot: u32) {
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

    /// Sets the timer of a new lease at `slot`.
    pub(crate) fn begin(&mut self, state: &State, slot: u32) {
        self.ensure_slot(slot);
        let due = state.leases.at(slot).timer().unwrap_or(Entry::NEVER);
        self.armed[slot as usize] = due;
        self.push(due);
    }

    /// Makes sure that the lease at `slot` has an entry no later than its timer.
    pub(crate) fn arm(&mut self, state: &State, slot: u32) {
        let armed = &mut self.armed[slot as usize];
        if let Some(due) = state.leases.at(slot).timer()
            && due < *armed
        {
            *armed = due;
            self.push(due);
        }
    }

    /// The slot of the lease to which an entry belongs. `None` if the entry is outdated or the lease is closed.
    pub(crate) fn slot_of(&self, state: &State, entry: Entry) -> Option<u32> {
        state.leases.slot(LeaseNo(entry.id())).filter(|slot| self.armed[*slot as usize] == entry)
    }

    /// Removes the first entry from the heap. Its lease has no entry until `arm` is called.
    pub(crate) fn take(&mut self, state: &State, first: Entry) {
        let taken = self.pop();
        assert_eq!(taken, Some(first), "the entry to take is the first one");
        if first.is_of_lease()
            && let Some(slot) = state.leases.slot(LeaseNo(first.id()))
        {
            self.armed[slot as usize] = Entry::NEVER;
        }
    }

    /// Drops the entries of closed leases when there are so many of them that a rebuild pays off.
    pub(crate) fn sweep(&mut self, state: &State) {
        if self.heap.len() > 2 * state.leases.len() + 1024 {
            self.reset(state);
        }
    }

    /// Loads the entry of a lease into the cache.
    pub(crate) fn prefetch(&self, slot: u32) {
        if let Some(entry) = self.armed.get(slot as usize) {
            prefetch(entry);
        }
    }
}
