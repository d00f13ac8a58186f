//! Which records have entries of a payer, and which have lines of an hour: found without walking the payer's chain.

use super::{EntryQuestion, LedgerBook};
use crate::facts::{Books, BooksError};
use crate::runs::RunKey;
use crate::store::{LINE_HOURS, PAYER_ENTRIES};
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::rate::Currency;
use leasehold_model::{Instant, LineKey, Month, ProjectNo, Record, TenantNo};
use std::collections::BTreeSet;

/// A payer in a currency as one number: the project, and the letters.
fn payer_key(payer: ProjectNo, currency: Currency) -> u64 {
    let letters = currency.as_str().bytes().fold(0, |sum, letter| sum * 26 + u64::from(letter - b'A'));
    u64::from(payer.0) << 16 | letters
}

/// A record with lines of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HourRecord {
    pub(crate) sequence: u64,
    pub(crate) at: Instant,
    pub(crate) hour: Instant,
    /// The month in which it is booked.
    pub(crate) month: Month,
    pub(crate) is_correction: bool,
}

/// Records with entries, in order, and where to continue if there are more.
pub(super) struct EntryRecords {
    pub(super) sequences: BTreeSet<u64>,
    pub(super) next: Option<u64>,
}

/// Records that are looked up at a time for each payer.
const RECORDS_AT_ONCE: usize = 512;

impl LedgerBook {
    pub(super) fn index_payer(&mut self, record: &Record, currency: Currency) {
        if let Some(payer) = record.identity.project {
            self.payer_entries.add([payer_key(payer, currency), record.sequence, 0, 0, 0]);
        }
    }

    pub(super) fn index_hours<'k>(
        &mut self,
        record: &Record,
        currency: Currency,
        month: Month,
        is_correction: bool,
        keys: impl Iterator<Item = &'k LineKey>,
    ) {
        let Some(payer) = record.identity.project else { return };
        let booked = u64::from(month.year() * 12 + month.month() - 1) << 1 | u64::from(is_correction);
        for key in keys {
            let hour = key.hour.0 / HOUR_NS;
            self.line_hours.add([payer_key(payer, currency), hour, record.sequence, booked, record.stamp.0]);
        }
    }
}

impl Books {
    /// The next records, from one on, with entries of a tenant or of one of its projects: postings and corrections of
    /// its payers, its invoices, its payments and its prepaid credit.
    pub(super) fn entry_records(&self, question: &EntryQuestion, from: u64) -> Result<EntryRecords, BooksError> {
        let mut sequences = BTreeSet::new();
        let is_asked = |tenant: TenantNo| question.tenant.is_none_or(|asked| asked == tenant);
        let mut tenants = BTreeSet::new();
        // Everything up to this record is found.
        let mut complete_to = u64::MAX;
        for ((project, currency), payer) in &self.ledger.payers {
            let is_payer = question.project.is_none_or(|asked| asked == *project);
            if !is_payer || !is_asked(payer.tenant) || question.currency.is_some_and(|asked| asked != *currency) {
                continue;
            }
            tenants.insert(payer.tenant);
            if payer.last < from {
                continue;
            }
            let of = payer_key(*project, *currency);
            let range = ([of, from, 0, 0, 0], [of, complete_to, 0, 0, 0]);
            let found = self.ledger.payer_entries.range(PAYER_ENTRIES, &self.store, range, RECORDS_AT_ONCE)?;
            if found.len() == RECORDS_AT_ONCE {
                complete_to = complete_to.min(found[RECORDS_AT_ONCE - 1][1]);
            }
            sequences.extend(found.iter().map(|key| key[1]));
        }
        let invoices =
            self.ledger.invoices.iter().filter(|head| tenants.contains(&head.tenant) || is_asked(head.tenant));
        sequences.extend(invoices.map(|head| head.sequence).filter(|sequence| *sequence >= from));
        let prepaid = self
            .ledger
            .prepaid
            .iter()
            .filter(|one| is_asked(one.tenant) && question.project.is_none_or(|asked| one.project == Some(asked)));
        sequences.extend(prepaid.map(|one| one.sequence).filter(|sequence| *sequence >= from));
        let payments = self.ledger.payments.iter().filter(|payment| is_asked(payment.tenant));
        sequences.extend(payments.map(|payment| payment.sequence).filter(|sequence| *sequence >= from));
        sequences.retain(|sequence| *sequence <= complete_to);
        Ok(EntryRecords { sequences, next: complete_to.checked_add(1) })
    }

    /// The records with lines of a payer for some hours, in order of hour.
    pub(crate) fn hour_records(
        &self,
        payer: ProjectNo,
        currency: Currency,
        (first, last): (Instant, Instant),
        most: usize,
    ) -> Result<Vec<HourRecord>, BooksError> {
        let of = payer_key(payer, currency);
        let range = ([of, first.0 / HOUR_NS, 0, 0, 0], [of, last.0 / HOUR_NS, u64::MAX, u64::MAX, u64::MAX]);
        let found = self.ledger.line_hours.range(LINE_HOURS, &self.store, range, most)?;
        let record = |[_, hour, sequence, booked, at]: &RunKey| {
            let month = u32::try_from(booked >> 1).ok()?;
            Some(HourRecord {
                sequence: *sequence,
                at: Instant(*at),
                hour: Instant(hour * HOUR_NS),
                month: Month::new(month / 12, month % 12 + 1)?,
                is_correction: booked & 1 == 1,
            })
        };
        let records: Option<Vec<HourRecord>> = found.iter().map(record).collect();
        records.ok_or_else(|| self.store.damage())
    }
}
