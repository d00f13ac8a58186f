//! Changes of hours that are over: what they change in hours that were posted follows as a difference.

use super::LedgerBook;
use crate::chunk::Depth;
use crate::facts::Books;
use crate::row::{End, Row};
use crate::table::signed;
use leasehold_meter::Window;
use leasehold_model::ledger::hour_of;
use leasehold_model::rate::ChargePolicyPut;
use leasehold_model::{Instant, LeaseNo, fields};

fields! {
    /// From an instant on, so many quanta more are charged (or fewer), as a record said later.
    #[derive(Copy)]
    pub struct LateChange {
        pub sequence: u64,
        pub at: Instant,
        pub more: u64,
        pub less: u64,
    }
}

impl LateChange {
    pub(crate) fn by(self) -> i128 {
        i128::from(self.more) - i128::from(self.less)
    }
}

impl LedgerBook {
    /// Everything that the first `size` records say is posted.
    pub(super) fn forget_late(&mut self, size: u64) {
        self.late.retain(|_, changes| {
            changes.retain(|change| change.sequence >= size);
            !changes.is_empty()
        });
    }
}

impl Books {
    /// Changes what a billing series is charged from an instant on.
    pub(crate) fn bill(&mut self, series: u32, at: Instant, by: i64) {
        self.billing.change(series, at, by, &mut self.store);
        self.note_late(series, at, by);
    }

    fn note_late(&mut self, series: u32, at: Instant, by: i64) {
        // A posting computed from the records before this one covers no later hour.
        if self.ledger.opened.is_none() || at >= hour_of(self.last_stamp) {
            return;
        }
        let (more, less) = if by > 0 { (by.unsigned_abs(), 0) } else { (0, by.unsigned_abs()) };
        self.ledger.late.entry(series).or_default().push(LateChange { sequence: self.cursor, at, more, less });
    }

    /// Charges less for a window, or no longer so.
    pub(crate) fn forgive_window(&mut self, series: u32, quanta: u64, window: Option<Window>, forgiven: bool) {
        let Some(Window { from, to }) = window else { return };
        let number = self.forgiven.number(series);
        let quanta = signed(quanta);
        // The increase comes first, so that the series never becomes negative.
        let (up, down) = if forgiven { (from, to) } else { (to, from) };
        self.forgiven.change(number, up, quanta, &mut self.store);
        self.forgiven.change(number, down, -quanta, &mut self.store);
        self.note_late(series, up, -quanta);
        self.note_late(series, down, quanta);
    }

    /// The part of a lease that is not charged, because of the way it ended.
    pub(crate) fn forgiven(&self, row: &Row) -> Option<Window> {
        if !self.failed_starts.contains(&row.lease) || !row.ended_plainly() {
            return row.forgiven(&self.schedule);
        }
        Row { end: End::FailedStart, ..row.clone() }.forgiven(&self.schedule)
    }

    /// A lease had ended when the start of its allocation was reported as failed.
    pub(crate) fn fail_start_of_ended(&mut self, lease: LeaseNo) -> Result<(), &'static str> {
        let found = self.leases_of([lease]).map_err(|_| "a row cannot be read")?;
        let row = found.into_iter().next().map(|(row, _)| row).ok_or("unknown lease")?;
        let before = self.forgiven(&row);
        self.failed_starts.insert(lease);
        let after = self.forgiven(&row);
        if before != after {
            let series = self.payer(row.billing_key());
            self.forgive_window(series, row.quanta, before, false);
            self.forgive_window(series, row.quanta, after, true);
        }
        Ok(())
    }

    /// What is not charged for a lease has changed with it.
    pub(crate) fn forgive_again(&mut self, series: u32, before: &Row, after: &Row) {
        let (old, new) = (self.forgiven(before), self.forgiven(after));
        if old != new {
            self.forgive_window(series, before.quanta, old, false);
            self.forgive_window(series, after.quanta, new, true);
        }
    }

    /// A policy begins at the instant of its record or later. It also applies to leases that ended at that very instant,
    /// though their records came before it.
    pub(crate) fn put_policy(&mut self, policy: &ChargePolicyPut) -> Result<(), &'static str> {
        let just_ended = |row: &Row| row.is_lease() && row.end != End::Held && row.held.to == policy.from;
        let mut rows: Vec<Row> =
            self.open.values().map(|open| &open.row).filter(|row| just_ended(row)).cloned().collect();
        rows.extend(self.tail.iter().filter(|row| just_ended(row)).cloned());
        for (number, _) in self.chunks.iter().enumerate().filter(|(_, head)| head.latest >= policy.from) {
            let chunk = self.chunk(number, Depth::Lives).map_err(|_| "a chunk cannot be read")?;
            rows.extend(chunk.rows().filter(|row| just_ended(row)));
        }
        let before: Vec<Option<Window>> = rows.iter().map(|row| self.forgiven(row)).collect();
        self.schedule.put_policy(policy.clone());
        for (row, before) in rows.iter().zip(before) {
            let after = self.forgiven(row);
            if before != after {
                let series = self.payer(row.billing_key());
                self.forgive_window(series, row.quanta, before, false);
                self.forgive_window(series, row.quanta, after, true);
            }
        }
        Ok(())
    }
}
