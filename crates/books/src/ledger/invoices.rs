//! Invoices: their lines, which add up while a month is open, and what is paid of them.

use super::{Followed, LedgerBook, StoredBody, TOO_LARGE, invoice_legs};
use crate::bytes::{get_list, put_list};
use crate::facts::{Books, BooksError};
use crate::store::INVOICES;
pub use leasehold_ledger::{InvoiceLine, InvoiceLineKey};
use leasehold_ledger::{IssueInvoice, Taxed, lines_hash, total, total_rounding};
use leasehold_model::body::{InvoiceIssued, TaxLine};
use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Instant, InvoiceNo, Month, Name, ProjectNo, Record, Span, Steps, TenantNo, fields};
use std::collections::BTreeMap;

/// The month, tenant and currency of an invoice.
pub(crate) type MonthKey = (Month, TenantNo, Currency);

fields! {
    /// An invoice or a credit note, without its lines.
    pub struct InvoiceHead {
        pub number: InvoiceNo,
        /// The sequence of its record.
        pub sequence: u64,
        pub issued_at: Instant,
        pub tenant: TenantNo,
        pub month: Month,
        pub currency: Currency,
        pub total: Steps,
        pub due_at: Instant,
    }
}

fields! {
    pub struct Payment {
        pub sequence: u64,
        pub recorded_at: Instant,
        pub tenant: TenantNo,
        pub currency: Currency,
        pub amount: Steps,
        pub invoice: Option<InvoiceNo>,
        pub reference: Name,
        pub received_at: Instant,
    }
}

/// An invoice with everything on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoice {
    pub head: InvoiceHead,
    pub lines: Vec<(InvoiceLineKey, InvoiceLine)>,
    pub taxes: Vec<TaxLine>,
}

/// What the invoice of an open month would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoiceDraft {
    pub tenant: TenantNo,
    pub month: Month,
    pub currency: Currency,
    pub lines: Vec<(InvoiceLineKey, InvoiceLine)>,
    pub taxes: Vec<TaxLine>,
}

impl InvoiceDraft {
    /// The sum of the lines.
    pub fn posted(&self) -> Result<Steps, BooksError> {
        let sum = Steps::sum(self.lines.iter().map(|(_, line)| line.posted));
        sum.ok_or(BooksError::Overflow(leasehold_meter::Overflow))
    }
    pub fn rounding(&self) -> Result<Steps, BooksError> {
        total_rounding(&self.taxes).ok_or(BooksError::Overflow(leasehold_meter::Overflow))
    }
    pub fn total(&self) -> Result<Steps, BooksError> {
        total(&self.taxes).ok_or(BooksError::Overflow(leasehold_meter::Overflow))
    }
    /// What each project owes, without those that owe nothing.
    pub fn projects(&self) -> Result<Vec<(ProjectNo, Steps)>, BooksError> {
        let mut projects: BTreeMap<ProjectNo, Steps> = BTreeMap::new();
        for (key, line) in &self.lines {
            let sum = projects.entry(key.project).or_default();
            *sum = sum.checked_add(line.posted).ok_or(leasehold_meter::Overflow)?;
        }
        Ok(projects.into_iter().filter(|(_, amount)| *amount != Steps::ZERO).collect())
    }
    /// The SHA-256 of the lines, as an invoice record has it.
    pub fn lines_hash(&self) -> [u8; 32] {
        lines_hash(self.lines.iter().map(|(key, line)| (key, line)))
    }
}

fn file_key(number: InvoiceNo) -> u64 {
    number.number * 2 + u64::from(number.series == InvoiceSeries::CreditNote)
}

/// An invoice in the file.
struct StoredInvoice {
    head: InvoiceHead,
    lines: Vec<(InvoiceLineKey, InvoiceLine)>,
    taxes: Vec<TaxLine>,
}

impl Field for StoredInvoice {
    fn put(&self, out: &mut Vec<u8>) {
        self.head.put(out);
        put_list(self.lines.iter().cloned(), out);
        put_list(self.taxes.iter().cloned(), out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { head: Field::get(r)?, lines: get_list(r)?, taxes: get_list(r)? })
    }
}

impl LedgerBook {
    pub(crate) fn tax_rate(&self, tenant: TenantNo, month: Month) -> Decimal {
        let found = self.tax_rates.range((tenant, Month::default())..=(tenant, month)).next_back();
        found.map_or(Decimal::default(), |(_, rate)| *rate)
    }

    /// Adds to a line of an open month; lines of which nothing is left are removed.
    pub(super) fn month_line(&mut self, month: MonthKey, key: InvoiceLineKey, usage: i128, posted: Steps) -> Followed {
        let lines = self.months.entry(month).or_default();
        let line = lines.entry(key.clone()).or_default();
        line.usage.0 += usage;
        line.posted = line.posted.checked_add(posted).ok_or(TOO_LARGE)?;
        if line.usage.0 == 0 && line.posted == Steps::ZERO {
            lines.remove(&key);
        }
        Ok(())
    }

    fn taxes(&self, (month, tenant, currency): MonthKey) -> Result<Vec<TaxLine>, leasehold_meter::Overflow> {
        let mut by_rate: BTreeMap<Decimal, Steps> = BTreeMap::new();
        for (key, line) in self.months.get(&(month, tenant, currency)).into_iter().flatten() {
            // Adjustments have the rate of their original month.
            let sum = by_rate.entry(self.tax_rate(tenant, key.month)).or_default();
            *sum = sum.checked_add(line.posted).ok_or(leasehold_meter::Overflow)?;
        }
        by_rate.into_iter().map(|(rate, posted)| Taxed { rate, posted }.line(currency)).collect()
    }

    pub(crate) fn invoiced(&mut self, record: &Record, invoice: &InvoiceIssued) -> Followed {
        let tenant = record.identity.tenant.ok_or("an invoice without a tenant")?;
        for (_, legs) in invoice_legs(tenant, invoice)? {
            self.book(invoice.currency, &legs)?;
            self.entries += 1;
        }
        let lines = self.months.remove(&(invoice.month, tenant, invoice.currency)).unwrap_or_default();
        if lines.len() as u64 != invoice.lines || lines_hash(lines.iter()) != invoice.lines_hash {
            return Err("the lines of an invoice are not those that were posted");
        }
        let head = InvoiceHead {
            number: invoice.number,
            sequence: record.sequence,
            issued_at: record.stamp,
            tenant,
            month: invoice.month,
            currency: invoice.currency,
            total: invoice.total,
            due_at: invoice.due_at,
        };
        self.invoices.push(head.clone());
        let stored = StoredInvoice { head, lines: lines.into_iter().collect(), taxes: invoice.taxes.clone() };
        self.fresh_invoices.insert(file_key(invoice.number), stored.to_bytes());
        self.keep(record, tenant, StoredBody::Invoiced(invoice.clone()));
        Ok(())
    }
}

impl Books {
    /// What the invoice of a month would be now, or will be when the month is closed.
    pub fn invoice_draft(
        &self,
        tenant: TenantNo,
        month: Month,
        currency: Currency,
    ) -> Result<Option<InvoiceDraft>, BooksError> {
        let key = (month, tenant, currency);
        let Some(lines) = self.ledger.months.get(&key).filter(|lines| !lines.is_empty()) else { return Ok(None) };
        let lines = lines.iter().map(|(key, line)| (key.clone(), *line)).collect();
        Ok(Some(InvoiceDraft { tenant, month, currency, lines, taxes: self.ledger.taxes(key)? }))
    }

    /// The invoices that an open month would have: tenants and currencies with at least one line.
    pub fn invoices_due(&self, month: Month) -> Vec<(TenantNo, Currency)> {
        let due = self.ledger.months.iter().filter(|((of, ..), lines)| *of == month && !lines.is_empty());
        due.map(|((_, tenant, currency), _)| (*tenant, *currency)).collect()
    }

    /// The invoices that are still to be issued for the month that is being closed, due after a number of days.
    pub fn invoices_to_issue(&self, terms: Span) -> Result<Vec<IssueInvoice>, BooksError> {
        let Some(month) = self.closing_month() else { return Ok(Vec::new()) };
        let mut due = Vec::new();
        for (tenant, currency) in self.invoices_due(month) {
            let Some(draft) = self.invoice_draft(tenant, month, currency)? else { continue };
            let projects = draft.projects()?;
            // An invoice without any amount is none.
            if projects.is_empty() && draft.taxes.iter().all(|line| line.posted == Steps::ZERO) {
                continue;
            }
            due.push(IssueInvoice {
                tenant,
                currency,
                projects,
                taxed: draft.taxes.iter().map(|line| (line.rate, line.posted)).collect(),
                lines: draft.lines.len() as u64,
                lines_hash: draft.lines_hash(),
                due_at: self.last_stamp.saturating_add(terms),
            });
        }
        Ok(due)
    }

    /// All invoices, in the order in which they were issued.
    pub fn invoices(&self) -> &[InvoiceHead] {
        &self.ledger.invoices
    }

    pub fn payments(&self) -> &[Payment] {
        &self.ledger.payments
    }

    /// An invoice with its lines.
    pub fn invoice(&self, number: InvoiceNo) -> Result<Option<Invoice>, BooksError> {
        let key = file_key(number);
        let stored = match self.ledger.fresh_invoices.get(&key) {
            Some(bytes) => Some(bytes.clone()),
            None => self.store.entry(INVOICES, key)?,
        };
        let Some(bytes) = stored else { return Ok(None) };
        let StoredInvoice { head, lines, taxes } =
            StoredInvoice::from_bytes(&bytes).map_err(|_| self.store.damage())?;
        Ok(Some(Invoice { head, lines, taxes }))
    }

    /// What an invoice asks for after what prepaid credit pays of it.
    fn left_of(&self, head: &InvoiceHead) -> Steps {
        Steps(head.total.0 - self.ledger.prepaid_on(head.number).0)
    }

    /// What is still owed of each invoice of a tenant in a currency: payments that name an invoice are for it, and the
    /// others for the oldest that are open. The rest, if any, is what was paid too much.
    pub fn owed(&self, tenant: TenantNo, currency: Currency) -> (BTreeMap<InvoiceNo, Steps>, Steps) {
        let mine = || self.ledger.invoices.iter().filter(|head| head.tenant == tenant && head.currency == currency);
        let mut owed: BTreeMap<InvoiceNo, Steps> = mine().map(|head| (head.number, self.left_of(head))).collect();
        let mut rest: i128 = 0;
        for payment in self.ledger.payments.iter().filter(|one| one.tenant == tenant && one.currency == currency) {
            let named = payment.invoice.and_then(|invoice| owed.get_mut(&invoice));
            let left = named.map_or(payment.amount.0, |open| {
                let taken = if open.0 > 0 { payment.amount.0.min(open.0) } else { payment.amount.0.max(open.0) };
                open.0 -= taken;
                payment.amount.0 - taken
            });
            rest += left;
        }
        // Credit notes are credit for the oldest invoices, like payments without a number.
        for head in mine().filter(|head| self.left_of(head) < Steps::ZERO) {
            let credit = owed.get_mut(&head.number).expect("it is listed");
            rest -= credit.0;
            credit.0 = 0;
        }
        for head in mine() {
            let open = owed.get_mut(&head.number).expect("it is listed");
            if open.0 > 0 && rest > 0 {
                let taken = open.0.min(rest);
                open.0 -= taken;
                rest -= taken;
            }
        }
        (owed, Steps(rest))
    }
}
