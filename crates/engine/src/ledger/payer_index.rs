//! The payers of each tenant, and those whose posting lacks parts: invoices and hours are checked without a walk over all
//! payers. It follows from them and is in no snapshot.

use super::{Payer, PayerKey};
use leasehold_model::rate::Currency;
use leasehold_model::{ProjectNo, TenantNo};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PayerIndex {
    by_tenant: BTreeSet<(TenantNo, Currency, ProjectNo)>,
    incomplete: BTreeSet<PayerKey>,
}

impl PayerIndex {
    pub(crate) fn of(payers: &BTreeMap<PayerKey, Payer>) -> Self {
        let mut index = Self::default();
        for (key, payer) in payers {
            index.update(*key, payer.tenant, payer.complete);
        }
        index
    }

    /// A payer is new, or whether its posting has all its parts has changed.
    pub(crate) fn update(&mut self, key: PayerKey, tenant: TenantNo, complete: bool) {
        let (project, currency) = key;
        self.by_tenant.insert((tenant, currency, project));
        if complete {
            self.incomplete.remove(&key);
        } else {
            self.incomplete.insert(key);
        }
    }

    /// The first payer whose posting lacks parts.
    pub(crate) fn first_incomplete(&self) -> Option<PayerKey> {
        self.incomplete.first().copied()
    }

    /// The payers of a tenant in a currency, in order of project.
    pub(crate) fn of_tenant(&self, tenant: TenantNo, currency: Currency) -> impl Iterator<Item = ProjectNo> + '_ {
        let all = (tenant, currency, ProjectNo(0))..=(tenant, currency, ProjectNo(u32::MAX));
        self.by_tenant.range(all).map(|(.., project)| *project)
    }
}
