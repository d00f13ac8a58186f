//! The ledger in the books: entries, balances, what is not posted yet, months and invoices (SEMANTICS 12).
//!
//! Entries come from records alone: what the settlement computes here goes round as a command, and is an entry when its
//! record comes back.

mod entries;
mod explain;
mod index;
mod invoices;
mod late;
mod persist;
mod prepaid;
mod rating;
mod settle;
mod shares;
mod statements;
mod stored;
mod story;

pub(crate) use entries::entries_of;
pub use entries::{Entry, EntryKind, EntryLine, EntryPage, EntryQuestion};
pub use explain::{LineLease, LineSource};
pub use invoices::{Invoice, InvoiceDraft, InvoiceHead, InvoiceLine, InvoiceLineKey, Payment};
pub(crate) use late::LateChange;
pub(crate) use prepaid::prepaid_legs;
pub use prepaid::{PrepaidEntry, PrepaidEvent};
pub(crate) use rating::{PayerLines, Rated};
pub use settle::{PayerPosting, Settlement};
pub use shares::Share;
pub(crate) use stored::{StoredBody, StoredEntry};
pub(crate) use story::{LineOfStory, StoryLines};

use crate::facts::Books;
use crate::runs::Runs;
use invoices::MonthKey;
use leasehold_ledger::{correction_parts, line_legs, total_rounding};
use leasehold_model::body::{
    HourSettled, InvoiceIssued, LedgerAdjusted, LedgerCorrected, LedgerDisputed, LedgerOpened, LedgerPosted,
    PaymentRecorded, PeriodClosed, TaxLine,
};
use leasehold_model::codec::Field;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    Account, EntryId, Instant, Leg, LineKey, Month, ProjectNo, Record, Residual, Steps, TenantNo, fields,
};
use std::collections::{BTreeMap, BTreeSet};

type Followed = Result<(), &'static str>;

const TOO_LARGE: &str = "an amount is too large";

fields! {
    /// A payer in one currency, as of the last record.
    pub struct PayerBook {
        pub tenant: TenantNo,
        /// Its last posting or correction.
        pub last: u64,
        /// Its usage before this instant is posted.
        pub through: Instant,
        /// The number of records that its last complete posting was computed from.
        pub as_of_size: u64,
        pub residual: Residual,
        /// A posting that lacks parts.
        pub partial: Option<Partial>,
    }
}

fields! {
    /// A posting that lacks parts, with its last line.
    pub struct Partial { pub through: Instant, pub as_of_size: u64, pub month: Month, pub key: LineKey }
}

fields! {
    /// A month that is being closed: the sequence of the cut.
    #[derive(Copy)]
    pub struct Cut { pub month: Month, pub sequence: u64 }
}

#[derive(Default)]
pub(crate) struct LedgerBook {
    pub(crate) opened: Option<Instant>,
    pub(crate) settled_through: Instant,
    pub(crate) first_open: Month,
    pub(crate) closing: Option<Cut>,
    pub(crate) payers: BTreeMap<(ProjectNo, Currency), PayerBook>,
    /// Changes of hours that are over, and may have been posted before them; by billing series.
    pub(crate) late: BTreeMap<u32, Vec<LateChange>>,
    pub(crate) balances: BTreeMap<(Account, Currency), Steps>,
    /// The lines of the invoices of months that are not closed.
    pub(crate) months: BTreeMap<MonthKey, BTreeMap<InvoiceLineKey, InvoiceLine>>,
    pub(crate) tax_rates: BTreeMap<(TenantNo, Month), Decimal>,
    /// Entries that were corrected, with the sequence of the correction.
    pub(crate) corrected: BTreeMap<EntryId, u64>,
    /// Lines that were corrected by hand, and entries that changed one of them afterwards.
    pub(crate) corrected_lines: BTreeSet<(ProjectNo, Currency, LineKey)>,
    pub(crate) changed_lines: Vec<EntryId>,
    pub(crate) disputed: BTreeSet<EntryId>,
    pub(crate) invoices: Vec<InvoiceHead>,
    pub(crate) payments: Vec<Payment>,
    pub(crate) prepaid: Vec<PrepaidEntry>,
    /// When months were closed.
    pub(crate) closed: BTreeMap<Month, Instant>,
    /// The statements by which tenants prove their invoices, with the sequences of their records.
    pub(crate) stated: BTreeMap<(Month, TenantNo), u64>,
    /// The number of entries, and of records with entries.
    pub(crate) entries: u64,
    pub(crate) kept: u64,
    /// Records with entries, and invoices, that are not in the file yet.
    pub(crate) fresh_entries: BTreeMap<u64, Vec<u8>>,
    pub(crate) fresh_invoices: BTreeMap<u64, Vec<u8>>,
    /// Records with entries by payer, and those with lines by payer and hour; see `index.rs`.
    pub(crate) payer_entries: Runs,
    pub(crate) line_hours: Runs,
    /// Records with shares, by month and app instance.
    pub(crate) shares: Runs,
}

fn owner(record: &Record) -> Result<(TenantNo, ProjectNo), &'static str> {
    let tenant = record.identity.tenant.ok_or("an entry without a tenant")?;
    Ok((tenant, record.identity.project.ok_or("an entry without a project")?))
}

/// What an invoice books: what its projects owe becomes what the tenant owes, with rounding and tax.
pub(crate) fn invoice_legs(
    tenant: TenantNo,
    invoice: &InvoiceIssued,
) -> Result<Vec<(InvoiceLeg, [Leg; 2])>, &'static str> {
    let owed = |amount: Steps| Leg { account: Account::Invoiced(tenant), amount };
    let of_project = |(project, amount): &(ProjectNo, Steps)| {
        (
            InvoiceLeg::Project(*project),
            [owed(*amount), Leg { account: Account::Receivable(*project), amount: -*amount }],
        )
    };
    let mut legs: Vec<_> = invoice.projects.iter().map(of_project).collect();
    let rounding = total_rounding(&invoice.taxes).ok_or(TOO_LARGE)?;
    if rounding != Steps::ZERO {
        legs.push((InvoiceLeg::Rounding, [owed(rounding), Leg { account: Account::Rounding, amount: -rounding }]));
    }
    for TaxLine { tax, .. } in invoice.taxes.iter().filter(|line| line.tax != Steps::ZERO) {
        legs.push((InvoiceLeg::Tax, [owed(*tax), Leg { account: Account::Tax, amount: -*tax }]));
    }
    Ok(legs)
}

/// What an entry of an invoice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvoiceLeg {
    Project(ProjectNo),
    Rounding,
    Tax,
}

impl LedgerBook {
    fn book(&mut self, currency: Currency, legs: &[Leg]) -> Followed {
        for leg in legs {
            let balance = self.balances.entry((leg.account, currency)).or_default();
            *balance = balance.checked_add(leg.amount).ok_or(TOO_LARGE)?;
        }
        Ok(())
    }

    /// The postings of hours that are not settled: the end of the hour, and the number of records of each.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let posted = |payer: &PayerBook| match &payer.partial {
            Some(partial) => (partial.through, partial.as_of_size),
            None => (payer.through, payer.as_of_size),
        };
        self.payers.values().map(posted).filter(|(through, _)| *through > self.settled_through)
    }

    fn payer(
        &mut self,
        record: &Record,
        currency: Currency,
        previous: Option<u64>,
    ) -> Result<&mut PayerBook, &'static str> {
        let (tenant, project) = owner(record)?;
        let (key, sequence) = ((project, currency), record.sequence);
        if self.payers.get(&key).map(|payer| payer.last) != previous {
            return Err("an entry follows another one than the payer's last");
        }
        let payer = self.payers.entry(key).or_insert_with(|| PayerBook {
            tenant,
            last: sequence,
            through: Instant(0),
            as_of_size: 0,
            residual: Residual::NONE,
            partial: None,
        });
        payer.last = sequence;
        Ok(payer)
    }

    pub(crate) fn posted(&mut self, record: &Record, posted: &LedgerPosted) -> Followed {
        let (tenant, project) = owner(record)?;
        let payer = self.payer(record, posted.currency, posted.previous)?;
        payer.residual = posted.residual;
        if posted.complete {
            (payer.through, payer.as_of_size, payer.partial) = (posted.through, posted.as_of_size, None);
        } else if let Some(last) = posted.lines.last() {
            let LedgerPosted { through, as_of_size, month, .. } = *posted;
            payer.partial = Some(Partial { through, as_of_size, month, key: last.key.clone() });
        }
        for (position, line) in (0u16..).zip(&posted.lines) {
            // Few ledgers have any.
            let has_corrected = !self.corrected_lines.is_empty();
            if has_corrected && self.corrected_lines.contains(&(project, posted.currency, line.key.clone())) {
                self.changed_lines.push(EntryId { sequence: record.sequence, position });
            }
            self.book(posted.currency, &line_legs(project, line))?;
            let key = InvoiceLineKey::of_usage(project, &line.key);
            self.month_line((posted.month, tenant, posted.currency), key, line.usage.0, line.posted)?;
        }
        self.entries += posted.lines.len() as u64;
        self.index_payer(record, posted.currency);
        self.index_hours(record, posted.currency, posted.month, false, posted.lines.iter().map(|line| &line.key));
        self.keep(record, tenant, StoredBody::Posted(posted.clone()));
        Ok(())
    }

    pub(crate) fn corrected(&mut self, record: &Record, corrected: &LedgerCorrected) -> Followed {
        let (tenant, project) = owner(record)?;
        self.payer(record, corrected.currency, corrected.previous)?.residual = corrected.residual;
        let rounding = [
            Leg { account: Account::Receivable(project), amount: corrected.rounding },
            Leg { account: Account::Rounding, amount: -corrected.rounding },
        ];
        let month = (corrected.month, tenant, corrected.currency);
        let of_line = corrected.line.as_ref().map(|line| &line.key);
        let usage = corrected.line.as_ref().map_or(0, |line| line.usage.0);
        let parts = [(&corrected.reversal[..], -usage), (&corrected.replacement, usage), (&rounding, 0)];
        let booked = correction_parts(corrected);
        for (legs, usage) in parts.into_iter().zip(booked).filter_map(|(part, is_booked)| is_booked.then_some(part)) {
            self.book(corrected.currency, legs)?;
            let own = leasehold_ledger::payer_amount(legs, project).ok_or(TOO_LARGE)?;
            let key = InvoiceLineKey::of_correction(project, corrected.original_month, of_line);
            self.month_line(month, key, usage, own)?;
            self.entries += 1;
        }
        if let Some(line) = &corrected.line {
            self.corrected_lines.insert((project, corrected.currency, line.key.clone()));
        }
        if self.corrected.insert(corrected.corrects, record.sequence).is_some() {
            return Err("the entry was corrected before");
        }
        self.index_payer(record, corrected.currency);
        let key = corrected.line.iter().map(|line| &line.key);
        self.index_hours(record, corrected.currency, corrected.month, true, key);
        self.keep(record, tenant, StoredBody::Corrected(corrected.clone()));
        Ok(())
    }

    pub(crate) fn adjusted(&mut self, record: &Record, adjusted: &LedgerAdjusted) -> Followed {
        let (tenant, project) = owner(record)?;
        self.payer(record, adjusted.currency, adjusted.previous)?;
        self.book(adjusted.currency, &adjusted.legs)?;
        let own = leasehold_ledger::payer_amount(&adjusted.legs, project).ok_or(TOO_LARGE)?;
        let key = InvoiceLineKey::of_correction(project, adjusted.original_month, None);
        self.month_line((adjusted.month, tenant, adjusted.currency), key, 0, own)?;
        self.index_payer(record, adjusted.currency);
        self.keep(record, tenant, StoredBody::Adjusted(adjusted.clone()));
        self.entries += 1;
        Ok(())
    }

    pub(crate) fn paid(&mut self, record: &Record, payment: &PaymentRecorded) -> Followed {
        let tenant = record.identity.tenant.ok_or("a payment without a tenant")?;
        let legs = payment_legs(tenant, payment);
        self.book(payment.currency, &legs)?;
        self.payments.push(Payment {
            sequence: record.sequence,
            recorded_at: record.stamp,
            tenant,
            currency: payment.currency,
            amount: payment.amount,
            invoice: payment.invoice,
            reference: payment.reference.clone(),
            received_at: payment.received_at,
        });
        self.keep(record, tenant, StoredBody::Paid(payment.clone()));
        self.entries += 1;
        Ok(())
    }

    /// Whether the file has all records with entries, and all invoices: an absent one would not show otherwise.
    pub(crate) fn is_complete(&self, entries: u64, invoices: u64) -> bool {
        self.kept == entries && self.invoices.len() as u64 == invoices
    }

    /// Everything is in the file.
    pub(crate) fn written(&mut self) {
        self.fresh_entries.clear();
        self.fresh_invoices.clear();
    }

    /// Keeps a record with entries.
    fn keep(&mut self, record: &Record, tenant: TenantNo, body: StoredBody) {
        let key = record.idempotency.map(|claim| claim.key);
        let stored = StoredEntry { stamp: record.stamp, tenant, project: record.identity.project, key, body };
        self.fresh_entries.insert(record.sequence, stored.to_bytes());
        self.kept += 1;
    }
}

pub(crate) fn payment_legs(tenant: TenantNo, payment: &PaymentRecorded) -> [Leg; 2] {
    [
        Leg { account: Account::CashClearing, amount: payment.amount },
        Leg { account: Account::Invoiced(tenant), amount: -payment.amount },
    ]
}

impl LedgerBook {
    pub(crate) fn open(&mut self, opened: &LedgerOpened) {
        self.opened = Some(opened.from);
        self.settled_through = opened.from;
        self.first_open = Month::of(opened.from);
    }

    pub(crate) fn settled(&mut self, settled: &HourSettled) {
        self.settled_through = settled.through;
        self.forget_late(settled.as_of_size);
    }

    pub(crate) fn dispute(&mut self, disputed: &LedgerDisputed) {
        match disputed.open {
            true => self.disputed.insert(disputed.entry),
            false => self.disputed.remove(&disputed.entry),
        };
    }

    pub(crate) fn close(&mut self, record: &Record, closed: &PeriodClosed) {
        self.closing = None;
        self.first_open = closed.month.next();
        self.closed.insert(closed.month, record.stamp);
        // What was not invoiced summed to nothing in every line.
        self.months.retain(|(month, ..), _| *month > closed.month);
    }
}

impl Books {
    /// The hour from which on usage is posted, if the ledger is open.
    pub fn ledger_opened(&self) -> Option<Instant> {
        self.ledger.opened
    }
    /// All usage before this instant is posted, as far as it was known then.
    pub fn settled_through(&self) -> Instant {
        self.ledger.settled_through
    }
    /// The first month that is not closed for ever; while it is being closed, what is new belongs to the next one.
    pub fn first_open_month(&self) -> Month {
        self.ledger.first_open
    }
    /// The month that is being closed.
    pub fn closing_month(&self) -> Option<Month> {
        self.ledger.closing.map(|cut| cut.month)
    }
    /// The months that were closed, and when.
    pub fn closed_months(&self) -> impl Iterator<Item = (Month, Instant)> + '_ {
        self.ledger.closed.iter().map(|(month, at)| (*month, *at))
    }
    /// The number of entries of the ledger.
    pub fn entry_count(&self) -> u64 {
        self.ledger.entries
    }
    /// The balance of an account in a currency.
    pub fn account_balance(&self, account: Account, currency: Currency) -> Steps {
        self.ledger.balances.get(&(account, currency)).copied().unwrap_or_default()
    }
    /// All balances, in order of account.
    pub fn account_balances(&self) -> impl Iterator<Item = (Account, Currency, Steps)> + '_ {
        self.ledger.balances.iter().map(|((account, currency), balance)| (*account, *currency, *balance))
    }
    /// The payer's last posting or correction.
    pub fn last_entry_of(&self, project: ProjectNo, currency: Currency) -> Option<u64> {
        self.ledger.payers.get(&(project, currency)).map(|payer| payer.last)
    }
    /// What a payer's exact costs exceed its postings by.
    pub fn residual_of(&self, project: ProjectNo, currency: Currency) -> Residual {
        self.ledger.payers.get(&(project, currency)).map_or(Residual::NONE, |payer| payer.residual)
    }
    /// The record that corrected an entry.
    pub fn correction_of(&self, entry: EntryId) -> Option<u64> {
        self.ledger.corrected.get(&entry).copied()
    }
    /// Entries of usage that changed a line after it had been corrected by hand: somebody should look at both.
    pub fn changed_after_correction(&self) -> &[EntryId] {
        &self.ledger.changed_lines
    }
    pub fn is_disputed(&self, entry: EntryId) -> bool {
        self.ledger.disputed.contains(&entry)
    }
    pub fn disputes(&self) -> impl Iterator<Item = EntryId> + '_ {
        self.ledger.disputed.iter().copied()
    }
    /// The tax rate of a tenant for a month.
    pub fn tax_rate(&self, tenant: TenantNo, month: Month) -> Decimal {
        self.ledger.tax_rate(tenant, month)
    }
    /// The tax rates of a tenant, by the month from which they apply.
    pub fn tax_rates(&self, tenant: TenantNo) -> impl Iterator<Item = (Month, Decimal)> + '_ {
        let all = self.ledger.tax_rates.iter();
        all.filter(move |((of, _), _)| *of == tenant).map(|((_, from), rate)| (*from, *rate))
    }
}
