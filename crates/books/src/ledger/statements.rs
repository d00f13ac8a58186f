//! Where the statements of a month are: the records by which tenants prove their invoices (ADR 25).

use super::{Followed, LedgerBook};
use crate::Books;
use leasehold_model::body::PeriodStated;
use leasehold_model::{Month, Record, TenantNo};

impl LedgerBook {
    pub(crate) fn stated(&mut self, record: &Record, stated: &PeriodStated) -> Followed {
        let tenant = record.identity.tenant.ok_or("a statement without a tenant")?;
        self.stated.insert((stated.month, tenant), record.sequence);
        Ok(())
    }
}

impl Books {
    /// The statement about a tenant and a month: the sequence of its record.
    pub fn statement(&self, tenant: TenantNo, month: Month) -> Option<u64> {
        self.ledger.stated.get(&(month, tenant)).copied()
    }

    /// Whose statements of a month are sealed, in order, with the sequences of their records.
    pub fn statements(&self, month: Month) -> impl Iterator<Item = (TenantNo, u64)> + '_ {
        let all = self.ledger.stated.range((month, TenantNo(0))..=(month, TenantNo(u32::MAX)));
        all.map(|((_, tenant), sequence)| (*tenant, *sequence))
    }
}
