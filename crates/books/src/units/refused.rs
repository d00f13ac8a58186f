//! Usage that entitlements refused: it is shown when a month is closed.

use super::UnitBook;
use crate::facts::{Books, BooksError};
use crate::runs::month_number;
use crate::store::USAGE_REFUSED;
use leasehold_model::body::UsageRefused;
use leasehold_model::{Month, Record, TenantNo};

impl UnitBook {
    pub(crate) fn refuse(&mut self, record: &Record, refused: &UsageRefused) -> Result<(), &'static str> {
        let tenant = record.identity.tenant.ok_or("usage without a tenant")?;
        let project = record.identity.project.ok_or("usage without a project")?;
        let month = month_number(refused.month);
        self.refused.add([month, tenant.0.into(), project.0.into(), record.sequence, 0]);
        Ok(())
    }
}

impl Books {
    /// The records of usage that entitlements refused in a month, up to a limit, of one tenant or of all; and whether
    /// there are more.
    pub fn refused_usage(
        &self,
        month: Month,
        tenant: Option<TenantNo>,
        limit: usize,
    ) -> Result<(Vec<u64>, bool), BooksError> {
        let month = month_number(month);
        let range = match tenant {
            Some(tenant) => ([month, tenant.0.into(), 0, 0, 0], [month, tenant.0.into(), u64::MAX, u64::MAX, 0]),
            None => ([month, 0, 0, 0, 0], [month, u64::MAX, u64::MAX, u64::MAX, 0]),
        };
        let found = self.units.refused.range(USAGE_REFUSED, &self.store, range, limit + 1)?;
        let mut found: Vec<u64> = found.iter().map(|key| key[3]).collect();
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((found, has_more))
    }
}
