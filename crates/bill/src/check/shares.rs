//! Shares of the cost of control planes (SEMANTICS 9 and 12).

use super::Place;
use super::chain::entry;
use super::checker::{Checker, SharedEntry};
use super::replay::Replayed;
use leasehold_model::body::SharingMethod;
use leasehold_model::{AppInstanceNo, LineKey, ProjectNo, Steps};
use std::collections::BTreeMap;

impl Checker<'_> {
    /// Counts what a control plane cost its owner.
    pub(super) fn add_to_pool(&mut self, payer: ProjectNo, key: &LineKey, amount: Steps) {
        if let Some(app) = key.app_instance.filter(|_| key.control_plane) {
            let pool = self.pools.entry((app, payer)).or_default();
            pool.0 = pool.0.saturating_add(amount.0);
        }
    }

    /// Own weight, total weight and amount fit together; where the owner is the tenant, so does the shared cost.
    pub(super) fn check_shares(&mut self, replayed: &Replayed) {
        let mut divided: BTreeMap<AppInstanceNo, (Steps, i128)> = BTreeMap::new();
        for SharedEntry { sequence, project, shared } in std::mem::take(&mut self.shares) {
            let (place, app) = (Place::Entry(entry(sequence, 0)), shared.app_instance);
            let is_owner = project == shared.owner;
            if is_owner {
                let pool = self.pools.get(&(app, project)).copied().unwrap_or_default();
                if pool != shared.pool {
                    let why = format!("The control plane of {app} cost its owner another amount in the month.");
                    self.differ_in(place.clone(), pool, shared.pool, why);
                }
            } else if let Some((low, high)) = share_bounds(shared.pool, shared.weight.0, shared.total_weight.0)
                && !(low..=high).contains(&shared.share.0)
            {
                let why = format!("The share of the cost of {app} is not in proportion to its weight.");
                self.differ_in(place.clone(), Steps(low), shared.share, why);
            }
            let booked = if is_owner { shared.share.0.saturating_sub(shared.pool.0) } else { shared.share.0 };
            if shared.booked != Steps::ZERO && shared.booked.0 != booked {
                let why = "What is booked is the share; for the owner, less the whole cost.";
                self.differ_in(place, Steps(booked), shared.booked, why);
            }
            let sum = divided.entry(app).or_insert((shared.pool, 0));
            sum.1 = sum.1.saturating_add(shared.share.0);
            let borne = shared.method == SharingMethod::NotBillable;
            if borne {
                divided.remove(&app);
            }
        }
        let of_tenant = |app: &AppInstanceNo| {
            let tenant = replayed.tenant(self.evidence.tenant);
            tenant.is_some_and(|tenant| tenant.app_instances.contains_key(app))
        };
        let (own, others): (Vec<_>, Vec<_>) = divided.into_iter().partition(|(app, _)| of_tenant(app));
        for (app, (pool, sum)) in own {
            if pool.0 != sum {
                let why = format!("The shares of the cost of {app} do not add up to it.");
                self.differ_in(Place::Invoice("shares"), pool, Steps(sum), why);
            }
        }
        for (app, _) in others {
            let what = format!("The total weight for {app}, and what its control plane cost, concern other tenants.");
            self.leave_open(None, what);
        }
    }
}

/// Between which amounts a share lies: it is rounded down, or up if its remainder is among the largest.
fn share_bounds(pool: Steps, weight: u128, total: u128) -> Option<(i128, i128)> {
    let (weight, total) = (i128::try_from(weight).ok()?, i128::try_from(total).ok()?);
    if total == 0 {
        return None;
    }
    let exact = leasehold_ledger::Amount::new(1, total.unsigned_abs());
    let product = exact.times(weight.unsigned_abs()).times(pool.0.unsigned_abs());
    let (Steps(low), rest) = product.floor().ok()?;
    let high = if rest.is_zero() { low } else { low + 1 };
    Some(if pool < Steps::ZERO { (-high, -low) } else { (low, high) })
}
