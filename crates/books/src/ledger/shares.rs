//! Shares of the cost of control planes, as they were recorded when a month was closed.

use super::{Followed, InvoiceLineKey, LedgerBook, StoredBody, owner};
use crate::facts::{Books, BooksError};
use crate::runs::month_number;
use crate::store::SHARES;
use leasehold_ledger::shared_legs;
use leasehold_model::body::LedgerShared;
use leasehold_model::{AppInstanceNo, Instant, Month, ProjectNo, Record, Steps, TenantNo};

/// A share of the cost of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The sequence of its record.
    pub sequence: u64,
    pub at: Instant,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub shared: LedgerShared,
}

impl LedgerBook {
    pub(crate) fn shared(&mut self, record: &Record, shared: &LedgerShared) -> Followed {
        let (tenant, project) = owner(record)?;
        self.payer(record, shared.currency, shared.previous)?;
        if shared.booked != Steps::ZERO {
            self.book(shared.currency, &shared_legs(project, shared))?;
            let key = InvoiceLineKey::of_share(project, shared);
            self.month_line((shared.month, tenant, shared.currency), key, 0, shared.booked)?;
            self.entries += 1;
        }
        self.index_payer(record, shared.currency);
        let month = month_number(shared.month);
        self.shares.add([month, shared.app_instance.0, project.0.into(), record.sequence, 0]);
        self.keep(record, tenant, StoredBody::Shared(shared.clone()));
        Ok(())
    }
}

impl Books {
    /// The shares of a month, of one app instance or of all, in order of app instance and project.
    pub fn shares(
        &self,
        month: Month,
        app_instance: Option<AppInstanceNo>,
        takes: impl Fn(&Share) -> bool,
    ) -> Result<Vec<Share>, BooksError> {
        let month = month_number(month);
        let (first, last) = app_instance.map_or((0, u64::MAX), |app| (app.0, app.0));
        let range = ([month, first, 0, 0, 0], [month, last, u64::MAX, u64::MAX, 0]);
        let mut shares = Vec::new();
        for [_, _, _, sequence, _] in self.ledger.shares.range(SHARES, &self.store, range, usize::MAX)? {
            let share = self.share(sequence)?.ok_or_else(|| self.store.damage())?;
            if takes(&share) {
                shares.push(share);
            }
        }
        Ok(shares)
    }

    /// The share that a record is about.
    pub fn share(&self, sequence: u64) -> Result<Option<Share>, BooksError> {
        let Some(stored) = self.stored_entry(sequence)? else { return Ok(None) };
        let (at, tenant, project) = (stored.stamp, stored.tenant, stored.project);
        Ok(match (stored.body, project) {
            (StoredBody::Shared(shared), Some(project)) => Some(Share { sequence, at, tenant, project, shared }),
            _ => None,
        })
    }
}
