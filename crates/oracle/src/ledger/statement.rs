//! Statements about the records of a month, for tenants that got an invoice (ADR 25). What they say about the records is
//! checked by whoever verifies the journal; here it is checked who may get one, when, and about which range.

use super::Ledger;
use crate::foretell::{Told, sealed};
use crate::violation::{Checked, demand, found};
use leasehold_model::body::PeriodStated;
use leasehold_model::{Month, Record, TenantNo};

impl Ledger {
    pub(crate) fn month_stated(&mut self, record: &Record, stated: &PeriodStated) -> Checked {
        let tenant = found!(record.identity.tenant, "statement", "one without a tenant");
        demand!(record.identity.project.is_none(), "statement", "one about a project");
        let fault = self.fault_of_statement(tenant, stated);
        demand!(fault.is_none(), "statement", "{tenant}: {fault:?}");
        self.stated.push((tenant, stated.month));
        Ok(())
    }

    /// Why a statement is refused: the first of these that applies.
    fn fault_of_statement(&self, tenant: TenantNo, stated: &PeriodStated) -> Option<&'static str> {
        let Some((month, cut)) = self.closing else {
            return Some(if self.opened.is_none() { "ledger_not_open" } else { "no_period_closing" });
        };
        let in_range = [stated.from, stated.border, cut].is_sorted();
        let faults = [
            (stated.month != month, "no_period_closing"),
            (!self.invoices.iter().any(|one| (one.tenant, one.month) == (tenant, month)), "invoice_missing"),
            (self.stated.contains(&(tenant, month)), "statement_exists"),
            (stated.cut != cut || !in_range, "statement_mismatch"),
        ];
        faults.into_iter().find(|(applies, _)| *applies).map(|(_, code)| code)
    }

    pub(crate) fn foretell_statement(&self, tenant: TenantNo, stated: &PeriodStated) -> Told {
        match self.fault_of_statement(tenant, stated) {
            Some(code) => Err(code),
            None => sealed(Some(tenant), *stated),
        }
    }

    /// How many statements a month has.
    pub fn statements_of(&self, month: Month) -> u64 {
        self.stated.iter().filter(|(_, of)| *of == month).count() as u64
    }

    /// Who got an invoice of a month, and who has a statement of it already.
    pub fn invoiced_in(&self, month: Month) -> Vec<(TenantNo, bool)> {
        let of_month = self.invoices.iter().filter(|one| one.month == month).map(|one| one.tenant);
        let mut tenants: Vec<TenantNo> = of_month.collect();
        tenants.sort();
        tenants.dedup();
        tenants.into_iter().map(|tenant| (tenant, self.stated.contains(&(tenant, month)))).collect()
    }
}
