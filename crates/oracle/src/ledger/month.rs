//! Months: the cut, and the end of the close (SEMANTICS 12, "Months").

use super::Ledger;
use crate::violation::{Checked, demand, found};
use leasehold_model::body::PeriodClosed;
use leasehold_model::ledger::{InvoiceSeries, Month};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Record, TenantNo};
use std::collections::BTreeSet;

impl Ledger {
    pub(crate) fn month_closing(&mut self, record: &Record, month: Month) -> Checked {
        demand!(self.closing.is_none(), "period-closing", "{:?} is being closed", self.closing);
        demand!(month == self.first_open, "months-in-order", "{month} where {} is next", self.first_open);
        demand!(record.stamp >= month.end(), "month-over", "{month} is not over");
        demand!(self.settled >= month.end(), "month-settled", "{month} is settled up to {}", self.settled);
        let partial = self.payers.iter().find(|(_, payer)| payer.partial.is_some());
        demand!(partial.is_none(), "posting-incomplete", "{partial:?}");
        self.closing = Some((month, record.sequence));
        self.first_open = month.next();
        Ok(())
    }

    pub(crate) fn month_closed(&mut self, closed: &PeriodClosed) -> Checked {
        let (month, _) = found!(self.closing.take(), "period-closing", "{} is not being closed", closed.month);
        demand!(closed.month == month, "period-closing", "{} instead of {month}", closed.month);
        let partial = self.payers.iter().find(|(_, payer)| payer.partial.is_some());
        demand!(partial.is_none(), "posting-incomplete", "{partial:?}");
        for (tenant, currency) in self.invoices_of(month) {
            let issued = self.is_issued(tenant, currency, month);
            demand!(issued, "invoice-missing", "{tenant} has no invoice in {currency} for {month}");
        }
        let count = |series| {
            let of = self.invoices.iter().filter(|one| one.month == month && one.number.series == series);
            of.count() as u64
        };
        let counts = (count(InvoiceSeries::Invoice), count(InvoiceSeries::CreditNote));
        let given = (closed.invoices, closed.credit_notes);
        demand!(given == counts, "invoice-count", "{given:?} instead of {counts:?}");
        // Before rules version 9 there were none, and nothing was said about them.
        let stated = self.statements_of(month);
        let given = closed.statements.unwrap_or(0);
        demand!(given == stated, "statement-count", "{given} instead of {stated}");
        Ok(())
    }

    pub fn is_issued(&self, tenant: TenantNo, currency: Currency, month: Month) -> bool {
        self.invoices.iter().any(|one| (one.tenant, one.currency, one.month) == (tenant, currency, month))
    }

    /// The tenants and currencies that get an invoice of a month.
    pub fn invoices_of(&self, month: Month) -> BTreeSet<(TenantNo, Currency)> {
        let booked = self.entries.values().filter(|entry| entry.months.is_some_and(|(booked, _)| booked == month));
        let all: BTreeSet<_> = booked.map(|entry| (entry.tenant, entry.currency)).collect();
        all.into_iter().filter(|(tenant, currency)| !self.is_empty(*tenant, *currency, month)).collect()
    }

    /// The tax rate of a tenant for usage of a month: the one that was set last for the latest start.
    pub fn tax_rate(&self, tenant: TenantNo, month: Month) -> Decimal {
        let set = self.tax_rates.iter().filter(|rate| rate.tenant == tenant && rate.from <= month);
        // Of several with the same start, `max_by_key` takes the last.
        set.max_by_key(|rate| rate.from).map_or(Decimal(0), |rate| rate.rate)
    }
}
