//! Invoices: what a tenant was posted in a month, by tax rate, rounded (SEMANTICS 12, "Months").

use super::entry::Entry;
use super::fraction::Fraction;
use super::{Issued, Ledger};
use crate::violation::{Checked, demand, found};
use leasehold_model::body::{InvoiceIssued, TaxLine};
use leasehold_model::ledger::{
    Account, EntryId, InvoiceNo, InvoiceSeries, Item, Month, STEP_DECIMALS, Steps, currency_decimals,
};
use leasehold_model::rate::{BILLION, Currency, Decimal};
use leasehold_model::{AppInstanceNo, PoolNo, Priority, ProjectNo, Record, TenantNo};
use std::collections::BTreeMap;

/// What the lines of an invoice tell apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvoiceKey {
    /// The month of the usage.
    pub month: Month,
    /// Who pays.
    pub project: ProjectNo,
    /// Corrections and entries by hand. They are not told apart any further here.
    pub correction: bool,
    pub usage: Option<(ProjectNo, PoolNo, Item, Priority, Option<AppInstanceNo>, bool)>,
}

/// Usage and posted amount of each line.
pub type InvoiceLines = BTreeMap<InvoiceKey, (i128, i128)>;

/// An amount in steps, rounded to the decimals in which the currency is paid.
fn rounded(amount: &Fraction, currency: Currency) -> Steps {
    let unit = 10_i128.pow(STEP_DECIMALS - currency_decimals(currency));
    let units = amount.divided(unit).half_even();
    Steps(i128::try_from(units).expect("small enough") * unit)
}

/// The tax on what was posted with one rate.
fn tax_line(rate: Decimal, posted: i128, currency: Currency) -> TaxLine {
    let net = rounded(&Fraction::integer(posted), currency);
    let tax = rounded(&Fraction::integer(net.0).times(rate.0).divided(BILLION), currency);
    TaxLine { rate, posted: Steps(posted), net, tax }
}

/// A sum of steps, rounded the same way.
pub(crate) fn rounded_steps(steps: i128, currency: Currency) -> i128 {
    rounded(&Fraction::integer(steps), currency).0
}

impl Ledger {
    fn entries_of(&self, tenant: TenantNo, currency: Currency, month: Month) -> impl Iterator<Item = &Entry> {
        let of = move |entry: &&Entry| {
            (entry.tenant, entry.currency) == (tenant, currency)
                && entry.months.is_some_and(|(booked, _)| booked == month)
        };
        self.entries.values().filter(of)
    }

    /// What each project owes for a month; those that owe nothing are left out.
    pub fn owed(&self, tenant: TenantNo, currency: Currency, month: Month) -> Vec<(ProjectNo, Steps)> {
        let mut sums: BTreeMap<ProjectNo, i128> = BTreeMap::new();
        for (entry, project) in self.entries_of(tenant, currency, month).filter_map(|one| Some((one, one.project?))) {
            *sums.entry(project).or_default() += entry.owed_by(project);
        }
        sums.into_iter().filter(|(_, sum)| *sum != 0).map(|(project, sum)| (project, Steps(sum))).collect()
    }

    /// The taxes of a month, by the rates of the months that the entries are about; rates without an amount are left out.
    pub fn taxes(&self, tenant: TenantNo, currency: Currency, month: Month) -> Vec<TaxLine> {
        let mut sums: BTreeMap<Decimal, i128> = BTreeMap::new();
        for entry in self.entries_of(tenant, currency, month) {
            let (Some((_, original)), Some(project)) = (entry.months, entry.project) else { continue };
            let amount = entry.owed_by(project);
            if amount != 0 {
                *sums.entry(self.tax_rate(tenant, original)).or_default() += amount;
            }
        }
        sums.retain(|_, posted| *posted != 0);
        sums.into_iter().map(|(rate, posted)| tax_line(rate, posted, currency)).collect()
    }

    /// Nobody owes anything, with no tax rate.
    pub(crate) fn is_empty(&self, tenant: TenantNo, currency: Currency, month: Month) -> bool {
        self.taxes(tenant, currency, month).is_empty() && self.owed(tenant, currency, month).is_empty()
    }

    /// Lines that say nothing are left out.
    pub fn invoice_lines(&self, tenant: TenantNo, currency: Currency, month: Month) -> InvoiceLines {
        let mut lines = InvoiceLines::new();
        for entry in self.entries_of(tenant, currency, month) {
            let (Some((_, original)), Some(project)) = (entry.months, entry.project) else { continue };
            let of_usage = entry.line.as_ref().filter(|_| !entry.is_correction);
            let usage = of_usage.map(|line| {
                let key = &line.key;
                (key.project, key.pool, key.item, key.priority, key.app_instance, key.control_plane)
            });
            let key = InvoiceKey { month: original, project, correction: entry.is_correction, usage };
            let line = lines.entry(key).or_default();
            line.0 += of_usage.map_or(0, |line| line.usage);
            line.1 += entry.owed_by(project);
        }
        lines.retain(|_, line| *line != (0, 0));
        lines
    }

    pub(crate) fn invoice_issued(&mut self, record: &Record, invoice: &InvoiceIssued) -> Checked {
        let tenant = found!(record.identity.tenant, "payer", "an invoice without a tenant");
        let (month, currency) = (invoice.month, invoice.currency);
        let closing = self.closing.map(|(month, _)| month);
        demand!(closing == Some(month), "period-closing", "{month} is not being closed");
        demand!(
            !self.is_issued(tenant, currency, month),
            "invoice-exists",
            "{tenant} has one of {month} in {currency}"
        );
        let partial = self.payers.iter().find(|(_, payer)| payer.partial.is_some());
        demand!(partial.is_none(), "posting-incomplete", "{partial:?}");
        demand!(!self.is_empty(tenant, currency, month), "invoice-empty", "{tenant} owes nothing for {month}");
        let owed = self.owed(tenant, currency, month);
        demand!(invoice.projects == owed, "invoice-mismatch", "{:?} instead of {owed:?}", invoice.projects);
        self.check_sums(invoice)?;
        let net: i128 = invoice.taxes.iter().map(|line| line.net.0).sum();
        let series = if net < 0 { InvoiceSeries::CreditNote } else { InvoiceSeries::Invoice };
        let before = self.invoices.iter().filter(|one| one.number.series == series).count() as u64;
        let number = InvoiceNo { series, number: before + 1 };
        demand!(invoice.number == number, "invoice-number", "{} where {number} is next", invoice.number);

        let posted: i128 = owed.iter().map(|(_, amount)| amount.0).sum();
        let tax: i128 = invoice.taxes.iter().map(|line| line.tax.0).sum();
        let invoiced = Account::Invoiced(tenant);
        let mut all = Vec::new();
        for (project, amount) in owed {
            all.push((Some(project), [(Account::Receivable(project), -amount), (invoiced, amount)]));
        }
        all.push((None, [(invoiced, Steps(net - posted)), (Account::Rounding, Steps(posted - net))]));
        all.push((None, [(invoiced, Steps(tax)), (Account::Tax, Steps(-tax))]));
        for (position, (project, legs)) in (0..).zip(all) {
            let id = EntryId { sequence: record.sequence, position };
            self.entries.insert(id, Entry::plain(tenant, project, currency, &legs));
        }
        self.invoices.push(Issued { number: invoice.number, tenant, currency, month });
        Ok(())
    }

    /// Rates in order, each rounded and taxed by itself; the total is their sum.
    fn check_sums(&self, invoice: &InvoiceIssued) -> Checked {
        let rates: Vec<Decimal> = invoice.taxes.iter().map(|line| line.rate).collect();
        demand!(rates.is_sorted_by(|one, next| one < next), "tax", "{rates:?} are not in order");
        for line in &invoice.taxes {
            let expected = tax_line(line.rate, line.posted.0, invoice.currency);
            demand!(*line == expected, "tax", "{line:?} instead of {expected:?}");
        }
        let posted: i128 = invoice.taxes.iter().map(|line| line.posted.0).sum();
        let owed: i128 = invoice.projects.iter().map(|(_, amount)| amount.0).sum();
        demand!(posted == owed, "invoice-mismatch", "{posted} is taxed, {owed} is owed");
        let total: i128 = invoice.taxes.iter().map(|line| line.net.0 + line.tax.0).sum();
        demand!(invoice.total == Steps(total), "invoice-total", "{} instead of {}", invoice.total, Steps(total));
        Ok(())
    }
}
