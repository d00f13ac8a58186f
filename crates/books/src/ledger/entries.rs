//! Entries: one by its number, and lists.

use super::stored::{StoredBody, StoredEntry};
use super::{InvoiceLeg, PrepaidEvent, invoice_legs, payment_legs, prepaid_legs};
use crate::facts::{Books, BooksError};
use crate::store::ENTRIES;
use leasehold_ledger::{correction_parts, line_legs, shared_legs};
use leasehold_model::codec::Field;
pub use leasehold_model::ledger::EntryKind;
use leasehold_model::ledger::ExactSteps;
use leasehold_model::rate::Currency;
use leasehold_model::record::Key;
use leasehold_model::{
    Account, EntryId, Instant, InvoiceNo, Leg, LineKey, Month, Name, ProjectNo, Steps, TenantNo, UsageDelta,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The usage of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryLine {
    pub key: LineKey,
    pub usage: UsageDelta,
    pub exact: ExactSteps,
}

/// One entry: amounts on accounts that sum to zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub id: EntryId,
    pub kind: EntryKind,
    /// When it was booked.
    pub at: Instant,
    pub tenant: TenantNo,
    /// None for tax, rounding and payments of a tenant.
    pub project: Option<ProjectNo>,
    pub currency: Currency,
    /// The month in which it is booked; payments have none.
    pub month: Option<Month>,
    /// The month that it is about.
    pub original_month: Option<Month>,
    pub legs: Vec<Leg>,
    pub line: Option<EntryLine>,
    pub corrects: Option<EntryId>,
    pub reason: Option<Name>,
    pub invoice: Option<InvoiceNo>,
    pub reference: Option<Name>,
    /// The number of records that a posting was computed from.
    pub as_of_size: Option<u64>,
    /// The idempotency key of the command that booked it; none for what the daemon books by itself.
    pub key: Option<Key>,
}

impl Entry {
    /// What it changes of what the payer owes.
    pub fn amount(&self) -> Steps {
        let owed = |leg: &&Leg| matches!(leg.account, Account::Receivable(_) | Account::Invoiced(_));
        match self.kind {
            EntryKind::Invoice => self.legs.iter().find(|leg| matches!(leg.account, Account::Invoiced(_))),
            _ => self.legs.iter().find(owed),
        }
        .map_or(Steps::ZERO, |leg| leg.amount)
    }
}

fn positioned(sequence: u64, position: usize) -> EntryId {
    EntryId { sequence, position: u16::try_from(position).expect("fewer than 2^16 entries in a record") }
}

/// The entries of a record.
pub(crate) fn entries_of(sequence: u64, stored: &StoredEntry) -> Vec<Entry> {
    let blank = |position: usize, kind: EntryKind, currency: Currency, legs: Vec<Leg>| Entry {
        id: positioned(sequence, position),
        kind,
        at: stored.stamp,
        tenant: stored.tenant,
        project: stored.project,
        currency,
        month: None,
        original_month: None,
        legs,
        line: None,
        corrects: None,
        reason: None,
        invoice: None,
        reference: None,
        as_of_size: None,
        key: stored.key,
    };
    match &stored.body {
        StoredBody::Posted(posted) => {
            let payer = stored.project.expect("a posting has a payer");
            let entry = |(position, line): (usize, &leasehold_model::body::PostedLine)| Entry {
                month: Some(posted.month),
                original_month: Some(Month::of(line.key.hour)),
                line: Some(EntryLine { key: line.key.clone(), usage: line.usage, exact: line.exact.clone() }),
                as_of_size: Some(posted.as_of_size),
                ..blank(position, EntryKind::Usage, posted.currency, line_legs(payer, line).to_vec())
            };
            posted.lines.iter().enumerate().map(entry).collect()
        }
        StoredBody::Corrected(corrected) => {
            let payer = stored.project.expect("a correction has a payer");
            let rounding = vec![
                Leg { account: Account::Receivable(payer), amount: corrected.rounding },
                Leg { account: Account::Rounding, amount: -corrected.rounding },
            ];
            let with_line = |usage: i128, exact: Option<ExactSteps>| {
                let line = corrected.line.as_ref()?;
                Some(EntryLine { key: line.key.clone(), usage: UsageDelta(usage), exact: exact? })
            };
            let usage = corrected.line.as_ref().map_or(0, |line| line.usage.0);
            let negated = corrected.line.as_ref().map(|line| ExactSteps {
                negative: !line.exact.negative && !line.exact.numerator.is_zero(),
                ..line.exact.clone()
            });
            let own = leasehold_ledger::payer_amount(&corrected.replacement, payer).unwrap_or_default();
            let whole = leasehold_ledger::Amount::from(own).encoded().ok();
            let all = [
                (EntryKind::Reversal, corrected.reversal.clone(), with_line(-usage, negated)),
                (EntryKind::Replacement, corrected.replacement.clone(), with_line(usage, whole)),
                (EntryKind::Rounding, rounding, None),
            ];
            let booked = correction_parts(corrected);
            let booked = all.into_iter().enumerate().filter(|(position, _)| booked[*position]);
            let entry = |(position, (kind, legs, line)): (usize, (EntryKind, Vec<Leg>, Option<EntryLine>))| Entry {
                month: Some(corrected.month),
                original_month: Some(corrected.original_month),
                line,
                corrects: Some(corrected.corrects),
                reason: Some(corrected.reason.clone()),
                ..blank(position, kind, corrected.currency, legs)
            };
            booked.map(entry).collect()
        }
        StoredBody::Adjusted(adjusted) => vec![Entry {
            month: Some(adjusted.month),
            original_month: Some(adjusted.original_month),
            reason: Some(adjusted.reason.clone()),
            ..blank(0, EntryKind::Adjustment, adjusted.currency, adjusted.legs.clone())
        }],
        StoredBody::Shared(shared) => {
            let payer = stored.project.expect("a share has a payer");
            let entry = Entry {
                month: Some(shared.month),
                original_month: Some(shared.month),
                ..blank(0, EntryKind::Share, shared.currency, shared_legs(payer, shared).to_vec())
            };
            // One that is only a report books nothing.
            Some(entry).filter(|entry| is_booked(&entry.legs)).into_iter().collect()
        }
        StoredBody::Invoiced(invoice) => {
            let legs = invoice_legs(stored.tenant, invoice).unwrap_or_default();
            let entry = |(position, (of, legs)): (usize, (InvoiceLeg, [Leg; 2]))| {
                let (kind, project) = match of {
                    InvoiceLeg::Project(project) => (EntryKind::Invoice, Some(project)),
                    InvoiceLeg::Rounding => (EntryKind::Rounding, None),
                    InvoiceLeg::Tax => (EntryKind::Tax, None),
                };
                Entry {
                    project,
                    month: Some(invoice.month),
                    original_month: Some(invoice.month),
                    invoice: Some(invoice.number),
                    ..blank(position, kind, invoice.currency, legs.to_vec())
                }
            };
            legs.into_iter().enumerate().map(entry).collect()
        }
        StoredBody::Paid(payment) => vec![Entry {
            invoice: payment.invoice,
            reference: Some(payment.reference.clone()),
            ..blank(0, EntryKind::Payment, payment.currency, payment_legs(stored.tenant, payment).to_vec())
        }],
        StoredBody::Prepaid(event) => {
            let legs = prepaid_legs(stored.tenant, stored.project, event);
            let (kind, month, invoice, reference) = match event {
                PrepaidEvent::ToppedUp(topped) => (EntryKind::TopUp, None, None, Some(topped.reference.clone())),
                PrepaidEvent::Lapsed(_) => (EntryKind::Lapse, None, None, None),
                PrepaidEvent::Applied(applied) => {
                    (EntryKind::PrepaidUse, Some(applied.month), Some(applied.invoice), None)
                }
            };
            let entry =
                Entry { month, original_month: month, invoice, reference, ..blank(0, kind, event.currency(), legs) };
            Some(entry).filter(|entry| is_booked(&entry.legs)).into_iter().collect()
        }
    }
}

/// Whether an entry books anything.
fn is_booked(legs: &[Leg]) -> bool {
    legs.iter().any(|leg| leg.amount != Steps::ZERO)
}

/// Which entries are asked for.
#[derive(Clone, Debug, Default)]
pub struct EntryQuestion {
    pub tenant: Option<TenantNo>,
    pub project: Option<ProjectNo>,
    pub currency: Option<Currency>,
    pub month: Option<Month>,
    pub kind: Option<EntryKind>,
    pub account: Option<Account>,
    /// Only entries after this one.
    pub after: Option<EntryId>,
    pub limit: usize,
}

/// A page of entries, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// Where the next page begins, if there is one.
    pub next: Option<EntryId>,
}

/// The most records that one page looks at.
const RECORDS_PER_PAGE: usize = 20_000;

impl EntryQuestion {
    fn takes(&self, entry: &Entry) -> bool {
        self.tenant.is_none_or(|tenant| entry.tenant == tenant)
            && self.project.is_none_or(|project| entry.project == Some(project))
            && self.currency.is_none_or(|currency| entry.currency == currency)
            && self.month.is_none_or(|month| entry.month == Some(month))
            && self.kind.is_none_or(|kind| entry.kind == kind)
            && self.account.is_none_or(|account| entry.legs.iter().any(|leg| leg.account == account))
            && self.after.is_none_or(|after| entry.id > after)
    }
}

impl Books {
    /// A record with entries.
    pub(crate) fn stored_entry(&self, sequence: u64) -> Result<Option<StoredEntry>, BooksError> {
        let stored;
        let bytes = match self.ledger.fresh_entries.get(&sequence) {
            Some(bytes) => bytes,
            None => match self.store.entry(ENTRIES, sequence)? {
                Some(bytes) => {
                    stored = bytes;
                    &stored
                }
                None => return Ok(None),
            },
        };
        StoredEntry::from_bytes(bytes).map(Some).map_err(|_| self.store.damage())
    }

    /// One entry.
    pub fn entry(&self, id: EntryId) -> Result<Option<Entry>, BooksError> {
        let Some(stored) = self.stored_entry(id.sequence)? else { return Ok(None) };
        Ok(entries_of(id.sequence, &stored).into_iter().find(|entry| entry.id == id))
    }

    /// Entries in the order in which they were booked.
    pub fn entries(&self, question: &EntryQuestion) -> Result<EntryPage, BooksError> {
        let mut page = EntryPage::default();
        let from = question.after.map_or(0, |after| after.sequence);
        let mut looked_at = 0;
        let mut take = |sequence: u64, stored: &StoredEntry| {
            looked_at += 1;
            let all = entries_of(sequence, stored);
            for entry in all.into_iter().filter(|entry| question.takes(entry)) {
                if page.entries.len() == question.limit {
                    page.next = page.entries.last().map(|entry| entry.id);
                    return ControlFlow::Break(());
                }
                page.entries.push(entry);
            }
            if looked_at == RECORDS_PER_PAGE {
                // Not every record has entries, and none has this many.
                page.next = Some(EntryId { sequence, position: u16::MAX });
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        if question.tenant.is_some() || question.project.is_some() {
            let mut next = Some(from);
            while let Some(from) = next {
                let some = self.entry_records(question, from)?;
                next = some.next;
                for sequence in some.sequences {
                    let stored = self.stored_entry(sequence)?.ok_or_else(|| self.store.damage())?;
                    if take(sequence, &stored).is_break() {
                        return Ok(page);
                    }
                }
            }
            return Ok(page);
        }
        let mut sound = true;
        let mut done = false;
        self.store.entries(ENTRIES, from, |sequence, bytes| match StoredEntry::from_bytes(bytes) {
            Ok(stored) => {
                let flow = take(sequence, &stored);
                done = flow.is_break();
                flow
            }
            Err(_) => {
                sound = false;
                ControlFlow::Break(())
            }
        })?;
        if !sound {
            return Err(self.store.damage());
        }
        if !done {
            for (sequence, bytes) in self.ledger.fresh_entries.range(from..) {
                let stored = StoredEntry::from_bytes(bytes).map_err(|_| self.store.damage())?;
                if take(*sequence, &stored).is_break() {
                    break;
                }
            }
        }
        Ok(page)
    }

    /// The sums of all entries of the ledger, by account and currency, counted anew: for checks.
    pub fn recount_balances(&self) -> Result<BTreeMap<(Account, Currency), Steps>, BooksError> {
        let mut sums: BTreeMap<(Account, Currency), Steps> = BTreeMap::new();
        let mut question = EntryQuestion { limit: 10_000, ..EntryQuestion::default() };
        loop {
            let page = self.entries(&question)?;
            for entry in &page.entries {
                for leg in &entry.legs {
                    let sum = sums.entry((leg.account, entry.currency)).or_default();
                    *sum = sum.checked_add(leg.amount).ok_or(leasehold_meter::Overflow)?;
                }
            }
            match page.next {
                Some(next) => question.after = Some(next),
                None => return Ok(sums),
            }
        }
    }
}
