//! What the engine keeps of the ledger: enough to refuse a posting that is stale, repeated or for a closed month
//! (SEMANTICS 12). The entries themselves are in the books, so neither memory nor the cost of a fold grows with them.

mod payer_index;

pub use payer_index::PayerIndex;

use leasehold_model::ledger::{EntryId, HOUR_NS, InvoiceSeries};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Instant, InvoiceNo, LineKey, Month, ProjectNo, Residual, Span, Steps, TenantNo};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// The length of the time that is posted at once.
pub const HOUR: Span = Span(HOUR_NS);

/// Who pays, in one currency.
pub type PayerKey = (ProjectNo, Currency);

/// One payer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payer {
    pub tenant: TenantNo,
    /// Its last posting or correction.
    pub last: Option<u64>,
    /// Its usage before this instant is posted.
    pub through: Instant,
    /// The number of records that its last posting was computed from.
    pub as_of_size: u64,
    /// Whether its last posting has all its parts.
    pub complete: bool,
    /// The last line of a posting that lacks parts.
    pub last_line: Option<Box<(Month, LineKey)>>,
    pub residual: Residual,
    /// What was posted for months that are not invoiced yet; no amount is zero.
    pub unbilled: ByMonth,
}

impl Payer {
    pub(crate) fn new(tenant: TenantNo) -> Self {
        Self {
            tenant,
            last: None,
            through: Instant(0),
            as_of_size: 0,
            complete: true,
            last_line: None,
            residual: Residual::NONE,
            unbilled: SmallVec::new(),
        }
    }

    /// What was posted for a month that is not invoiced yet.
    pub fn unbilled_in(&self, month: Month) -> Steps {
        in_month(&self.unbilled, month)
    }

    /// Adds to what is owed for a month. `None` if the sum is too large.
    pub(crate) fn add(&mut self, month: Month, amount: Steps) -> Option<()> {
        add_in_month(&mut self.unbilled, month, amount)
    }
}

/// Amounts by month; none is zero.
pub(crate) type ByMonth = SmallVec<[(Month, Steps); 2]>;

/// The amount of a month.
pub(crate) fn in_month(amounts: &ByMonth, month: Month) -> Steps {
    amounts.iter().find(|(of, _)| *of == month).map_or(Steps::ZERO, |(_, amount)| *amount)
}

/// Adds to the amount of a month. `None` if the sum is too large.
pub(crate) fn add_in_month(amounts: &mut ByMonth, month: Month, amount: Steps) -> Option<()> {
    let sum = in_month(amounts, month).checked_add(amount)?;
    amounts.retain(|(of, _)| *of != month);
    if sum != Steps::ZERO {
        amounts.push((month, sum));
        amounts.sort_unstable();
    }
    Some(())
}

/// A month that is being closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    pub month: Month,
    /// The sequence of the record that made the cut: what is before it belongs to the month.
    pub cut: u64,
    /// Whose invoices are issued.
    pub issued: BTreeSet<(TenantNo, Currency)>,
    pub invoices: u64,
    pub credit_notes: u64,
    /// Whose statements are sealed.
    pub stated: BTreeSet<TenantNo>,
}

impl Closing {
    /// Whether an invoice of the month was issued to a tenant.
    pub fn has_invoice(&self, tenant: TenantNo) -> bool {
        self.issued.range((tenant, Currency::FIRST)..).next().is_some_and(|(of, _)| *of == tenant)
    }

    /// Who got an invoice and has no statement yet, in order.
    pub fn unstated(&self) -> impl Iterator<Item = TenantNo> {
        let mut last = None;
        let tenants = self.issued.iter().map(|(tenant, _)| *tenant);
        let tenants = tenants.filter(move |tenant| last.replace(*tenant) != Some(*tenant));
        tenants.filter(|tenant| !self.stated.contains(tenant))
    }
}

/// The ledger as the engine knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Usage is posted from this hour on, if the ledger is open.
    pub opened: Option<Instant>,
    /// All usage before this instant is posted, as far as it was known then.
    pub settled_through: Instant,
    /// The number of records that the last hour was computed from.
    pub settled_size: u64,
    /// The first month that is not closed.
    pub first_open: Month,
    pub closing: Option<Closing>,
    pub payers: BTreeMap<PayerKey, Payer>,
    pub payer_index: PayerIndex,
    /// What tenants owe by their invoices; no amount is zero.
    pub invoiced: BTreeMap<(TenantNo, Currency), Steps>,
    /// How many invoices and credit notes there are.
    pub invoices: u64,
    pub credit_notes: u64,
    /// To whom each was issued, and in which currency.
    pub(crate) issued_to: BTreeMap<InvoiceNo, (TenantNo, Currency)>,
    /// The payments by their references, with the sequences of their records.
    pub payments: BTreeMap<(TenantNo, leasehold_model::Name), u64>,
    /// Tax rates, by the month from which they apply.
    pub tax_rates: BTreeMap<(TenantNo, Month), Decimal>,
    /// Entries that are disputed.
    pub disputed: BTreeSet<EntryId>,
}

impl Ledger {
    /// The month in which corrections are booked.
    pub fn open_month(&self) -> Month {
        match &self.closing {
            Some(closing) => closing.month.next(),
            None => self.first_open,
        }
    }

    /// Whether a posting of an hour that is not settled was computed from so many records.
    pub(crate) fn is_begun(&self, as_of_size: u64) -> bool {
        self.payers.values().any(|payer| payer.through > self.settled_through && payer.as_of_size == as_of_size)
    }

    pub fn payer(&self, project: ProjectNo, currency: Currency) -> Option<&Payer> {
        self.payers.get(&(project, currency))
    }

    /// The payers of a project, in order of currency.
    pub fn payers_of(&self, project: ProjectNo) -> impl Iterator<Item = (Currency, &Payer)> {
        let after = (ProjectNo(project.0.saturating_add(1)), Currency::FIRST);
        self.payers.range((project, Currency::FIRST)..after).map(|((_, currency), payer)| (*currency, payer))
    }

    /// The tax rate of a tenant for a month.
    pub fn tax_rate(&self, tenant: TenantNo, month: Month) -> Decimal {
        let found = self.tax_rates.range((tenant, Month::default())..=(tenant, month)).next_back();
        found.map_or(Decimal::default(), |(_, rate)| *rate)
    }

    /// The number of the next invoice or credit note.
    pub(crate) fn next_number(&self, series: InvoiceSeries) -> InvoiceNo {
        let issued = match series {
            InvoiceSeries::Invoice => self.invoices,
            InvoiceSeries::CreditNote => self.credit_notes,
        };
        InvoiceNo { series, number: issued + 1 }
    }

    /// Whether an invoice was issued to a tenant in a currency.
    pub fn is_issued(&self, invoice: InvoiceNo, to: TenantNo, currency: Currency) -> bool {
        self.issued_to.get(&invoice) == Some(&(to, currency))
    }
}
