//! Leases past their deadline whose expiry is not recorded yet.
//!
//! After an outage the first record can be a day later than many deadlines, and the expiries follow one by one. Until
//! then the series still count these leases as held, so answers are computed from the leases themselves, which end at
//! their deadlines (SEMANTICS 2).

use crate::facts::{Books, Phase};
use crate::row::Row;
use leasehold_model::{Instant, LeaseNo};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Every held lease has an entry at or before its deadline; only a renewal that shortens the deadline adds another.
/// The entry of a lease that ends before its deadline remains.
#[derive(Default)]
pub(crate) struct Deadlines {
    ahead: BinaryHeap<Reverse<(Instant, LeaseNo)>>,
    overdue: BTreeSet<LeaseNo>,
}

impl Deadlines {
    pub(crate) fn add(&mut self, deadline: Instant, lease: LeaseNo) {
        self.ahead.push(Reverse((deadline, lease)));
    }
    pub(crate) fn ended(&mut self, lease: LeaseNo) {
        if !self.overdue.is_empty() {
            self.overdue.remove(&lease);
        }
    }
}

impl Books {
    /// Removes the entries of ended leases once they are the majority.
    pub(crate) fn forget_deadlines(&mut self) {
        if self.deadlines.ahead.len() > 1024 + 2 * self.open.len() {
            let held = self.open.iter().filter(|(_, open)| open.phase == Phase::Held);
            self.deadlines.ahead = held.map(|(lease, open)| Reverse((open.row.held.to, *lease))).collect();
        }
    }

    /// Whether a lease is past its deadline and counts as held in its series.
    pub(crate) fn has_overdue(&self) -> bool {
        !self.deadlines.overdue.is_empty()
    }

    /// The leases that are past their deadline and count as held in their series.
    pub(crate) fn overdue_rows(&self) -> impl Iterator<Item = &Row> {
        self.deadlines.overdue.iter().filter_map(|lease| self.open.get(lease)).map(|open| &open.row)
    }

    /// Finds the leases that are overdue at `now`.
    pub(crate) fn pass_deadlines(&mut self, now: Instant) {
        while let Some(Reverse((at, lease))) = self.deadlines.ahead.peek().copied()
            && at < now
        {
            self.deadlines.ahead.pop();
            let Some(open) = self.open.get(&lease).filter(|open| open.phase == Phase::Held) else { continue };
            let deadline = open.row.held.to;
            if deadline < now {
                self.deadlines.overdue.insert(lease);
            } else {
                self.deadlines.add(deadline, lease);
            }
        }
    }

    /// The instant, at most `now`, up to which the books are complete: no deadline before it has an expiry that is not
    /// recorded, unless later records exist.
    pub fn known_until(&mut self, now: Instant) -> Instant {
        while let Some(Reverse((at, lease))) = self.deadlines.ahead.peek().copied()
            && at < now
        {
            let held = self.open.get(&lease).filter(|open| open.phase == Phase::Held);
            match held.map(|open| open.row.held.to) {
                Some(deadline) if deadline == at => return at.max(self.last_stamp),
                deadline => {
                    self.deadlines.ahead.pop();
                    deadline.into_iter().for_each(|deadline| self.deadlines.add(deadline, lease));
                }
            }
        }
        now.max(self.last_stamp)
    }
}
