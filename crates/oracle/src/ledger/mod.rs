//! The ledger by the simplest means (SEMANTICS 12): the list of all entries, and what may follow them.
//!
//! [`Ledger`] knows the rules that need the ledger's own records alone: chains, months, numbers, sums and rounding. The
//! engine keeps them, so the oracle checks them in every simulated history. [`Audit`] also knows what everything cost,
//! and checks each amount.

mod audit;
mod correction;
mod entry;
mod fraction;
mod invoice;
mod month;
mod posting;
mod prepaid;
mod share;
mod statement;

pub use audit::{Audit, DueLine};
pub use entry::Entry;
pub(crate) use fraction::Fraction;
pub(crate) use invoice::rounded_steps;
pub use invoice::{InvoiceKey, InvoiceLines};

use crate::violation::{Broken, Checked, demand, found};
use leasehold_model::body::{HourSettled, LedgerOpened, PaymentRecorded, TaxRatePut};
use leasehold_model::ledger::{Account, EntryId, HOUR_NS, InvoiceNo, Month, Residual, Steps};
use leasehold_model::limits::TAX_RATE_MAX;
use leasehold_model::rate::Currency;
use leasehold_model::{AppInstanceNo, Body, Instant, LineKey, Name, ProjectNo, Record, TenantNo};
use std::collections::{BTreeMap, BTreeSet};

/// A payer in one currency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payer {
    /// Its last posting or correction.
    pub(crate) last: Option<u64>,
    pub(crate) residual: Residual,
    /// A posting that lacks parts: its instant and size, and the last key.
    pub(crate) partial: Option<(Instant, u64, LineKey)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) number: InvoiceNo,
    pub(crate) tenant: TenantNo,
    pub(crate) currency: Currency,
    pub(crate) month: Month,
}

/// Everything that the records say about money.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) opened: Option<Instant>,
    /// The record that opened it.
    pub(crate) opened_by: Option<u64>,
    /// The end of the last settled hour.
    pub(crate) settled: Instant,
    /// The first month that has had no cut.
    pub(crate) first_open: Month,
    /// The month that is being closed, and the sequence of its cut.
    pub(crate) closing: Option<(Month, u64)>,
    pub(crate) payers: BTreeMap<(ProjectNo, Currency), Payer>,
    pub(crate) entries: BTreeMap<EntryId, Entry>,
    pub(crate) corrected: BTreeSet<EntryId>,
    disputed: BTreeSet<EntryId>,
    pub(crate) invoices: Vec<Issued>,
    /// Whose statements are sealed, and of which month.
    pub(crate) stated: Vec<(TenantNo, Month)>,
    references: BTreeSet<(TenantNo, Name)>,
    /// In the order in which they were set.
    pub(crate) tax_rates: Vec<TaxRatePut>,
    /// The decisions about the cost of control planes.
    pub(crate) shared: BTreeSet<(AppInstanceNo, Currency, Month)>,
}

impl Ledger {
    /// Checks that a record may follow those before it, and applies it. Records of other kinds change nothing.
    pub(crate) fn take(&mut self, record: &Record) -> Checked {
        let is_about_money = matches!(record.body, leasehold_model::ledger_kinds!());
        // Usage is also reported where there is no ledger.
        let is_free = matches!(record.body, Body::LedgerOpened(_) | Body::TaxRatePut(_) | Body::UsageRecorded(_));
        let needs_ledger = is_about_money && !is_free;
        demand!(!needs_ledger || self.opened.is_some(), "ledger-not-open", "{}", record.body.word());
        if let Body::LedgerOpened(body) = &record.body {
            self.ledger_opened(record, body)?;
        } else if let Body::LedgerPosted(body) = &record.body {
            self.posted(record, body)?;
        } else if let Body::HourSettled(body) = &record.body {
            self.hour_settled(record, body)?;
        } else if let Body::LedgerCorrected(body) = &record.body {
            self.entry_corrected(record, body)?;
        } else if let Body::LedgerAdjusted(body) = &record.body {
            self.adjusted(record, body)?;
        } else if let Body::LedgerShared(body) = &record.body {
            self.shared(record, body)?;
        } else if let Body::LedgerDisputed(body) = &record.body {
            let changed = if body.open { self.disputed.insert(body.entry) } else { self.disputed.remove(&body.entry) };
            demand!(changed, "disputes", "{} is in that state already", body.entry);
        } else if let Body::PeriodClosing(body) = &record.body {
            self.month_closing(record, body.month)?;
        } else if let Body::InvoiceIssued(body) = &record.body {
            self.invoice_issued(record, body)?;
        } else if let Body::PeriodStated(body) = &record.body {
            self.month_stated(record, body)?;
        } else if let Body::PeriodClosed(body) = &record.body {
            self.month_closed(body)?;
        } else if let Body::PaymentRecorded(body) = &record.body {
            self.payment_recorded(record, body)?;
        } else if let Body::PrepaidToppedUp(body) = &record.body {
            self.prepaid_topped_up(record, body)?;
        } else if let Body::PrepaidLapsed(body) = &record.body {
            self.prepaid_lapsed(record, body)?;
        } else if let Body::PrepaidApplied(body) = &record.body {
            self.prepaid_applied(record, body)?;
        } else if let Body::TaxRatePut(body) = &record.body {
            demand!(body.rate <= TAX_RATE_MAX, "tax-rate", "{}", body.rate);
            let is_closed = self.opened.is_some() && body.from < self.first_open;
            demand!(!is_closed, "tax-rate", "{} is closed", body.from);
            self.tax_rates.push(body.clone());
        }
        Ok(())
    }

    fn ledger_opened(&mut self, record: &Record, opened: &LedgerOpened) -> Checked {
        demand!(self.opened.is_none(), "ledger-opened", "twice");
        demand!(opened.from.0.is_multiple_of(HOUR_NS), "ledger-opened", "{} is no hour", opened.from);
        demand!(opened.from <= record.stamp, "ledger-opened", "{} has not come", opened.from);
        (self.opened, self.settled) = (Some(opened.from), opened.from);
        self.opened_by = Some(record.sequence);
        self.first_open = Month::of(opened.from);
        Ok(())
    }

    fn hour_settled(&mut self, record: &Record, settled: &HourSettled) -> Checked {
        let next = Instant(self.settled.0 + HOUR_NS);
        demand!(settled.through == next, "hours-in-order", "{} where {next} is next", settled.through);
        demand!(settled.through <= record.stamp, "hour-over", "{} has not come", settled.through);
        demand!(settled.as_of_size <= record.sequence, "as-of-size", "{} of {}", settled.as_of_size, record.sequence);
        let partial = self.payers.iter().find(|(_, payer)| payer.partial.is_some());
        demand!(partial.is_none(), "posting-incomplete", "{partial:?}");
        self.settled = next;
        Ok(())
    }

    fn payment_recorded(&mut self, record: &Record, payment: &PaymentRecorded) -> Checked {
        let tenant = found!(record.identity.tenant, "payment", "without a tenant");
        demand!(payment.amount != Steps::ZERO, "payment", "of nothing");
        demand!(payment.received_at <= record.stamp, "payment", "received in the future");
        let is_new = self.references.insert((tenant, payment.reference.clone()));
        demand!(is_new, "payment", "{:?} twice", payment.reference);
        if let Some(number) = payment.invoice {
            let of = |one: &&Issued| (one.number, one.tenant, one.currency) == (number, tenant, payment.currency);
            demand!(self.invoices.iter().any(|one| of(&one)), "payment", "there is no {number} of {tenant}");
        }
        let legs = [(Account::Invoiced(tenant), -payment.amount), (Account::CashClearing, payment.amount)];
        let id = EntryId { sequence: record.sequence, position: 0 };
        self.entries.insert(id, Entry::plain(tenant, None, payment.currency, &legs));
        Ok(())
    }

    /// The month in which something is booked that is known now.
    pub(crate) fn booked_in(&self, own: Month) -> Month {
        own.max(self.first_open)
    }

    /// The sums of all entries. Accounts whose sum is zero are left out.
    pub fn balances(&self) -> BTreeMap<(Account, Currency), i128> {
        let mut sums = BTreeMap::new();
        for entry in self.entries.values() {
            for leg in &entry.legs {
                *sums.entry((leg.account, entry.currency)).or_insert(0) += leg.amount.0;
            }
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    }

    /// The entries of projects that can be corrected: usage, corrections and entries by hand.
    pub fn by_hand(&self) -> impl Iterator<Item = EntryId> {
        self.entries.iter().filter(|(_, entry)| entry.months.is_some()).map(|(id, _)| *id)
    }
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// The payers, each with its last posting or correction and its residual.
    pub fn payers(&self) -> impl Iterator<Item = ((ProjectNo, Currency), Option<u64>, Residual)> {
        self.payers.iter().map(|(of, payer)| (*of, payer.last, payer.residual))
    }
    pub fn opened(&self) -> Option<Instant> {
        self.opened
    }
    pub fn settled(&self) -> Instant {
        self.settled
    }
    /// The first month that is not closed.
    pub fn first_open(&self) -> Month {
        self.first_open
    }
    /// The month that is being closed, and the sequence of its cut.
    pub fn closing(&self) -> Option<(Month, u64)> {
        self.closing
    }
    /// A payer whose posting lacks parts: the instant and the size of the posting, and the key of its last line.
    pub fn partial(&self) -> Option<((ProjectNo, Currency), Instant, u64, LineKey)> {
        let lacking = |(of, payer): (&(ProjectNo, Currency), &Payer)| {
            payer.partial.clone().map(|(through, size, key)| (*of, through, size, key))
        };
        self.payers.iter().find_map(lacking)
    }
    pub fn closing_month(&self) -> Option<Month> {
        self.closing.map(|(month, _)| month)
    }

    pub(crate) fn check_project_deleted(&self, project: ProjectNo) -> Checked {
        let owed = |account: Account| account.project() == Some(project);
        self.check_no_balance(owed)
    }
    pub(crate) fn check_tenant_deleted(&self, tenant: TenantNo, projects: &BTreeSet<ProjectNo>) -> Checked {
        self.check_no_balance(|account| {
            account == Account::Invoiced(tenant)
                || account == Account::TenantPrepaid(tenant)
                || account.project().is_some_and(|project| projects.contains(&project))
        })
    }
    fn check_no_balance(&self, of: impl Fn(Account) -> bool) -> Checked {
        let owed = self.balances().into_iter().find(|((account, _), _)| is_owed(*account) && of(*account));
        demand!(owed.is_none(), "has-balance", "{owed:?}");
        let lacking = self
            .payers
            .iter()
            .find(|((project, _), payer)| payer.partial.is_some() && of(Account::Receivable(*project)));
        demand!(lacking.is_none(), "posting-incomplete", "{lacking:?}");
        Ok(())
    }
}

/// Whether someone owes what is on an account, or has it as credit. What was adjusted by hand stays on its account for ever.
fn is_owed(account: Account) -> bool {
    matches!(
        account,
        Account::Receivable(_) | Account::Invoiced(_) | Account::TenantPrepaid(_) | Account::ProjectPrepaid(_)
    )
}

/// The project and the tenant in the head of a record.
pub(crate) fn payer_of(record: &Record) -> Result<(TenantNo, ProjectNo), Broken> {
    let tenant = found!(record.identity.tenant, "payer", "a record of the ledger without a tenant");
    let project = found!(record.identity.project, "payer", "a record of the ledger without a project");
    Ok((tenant, project))
}
