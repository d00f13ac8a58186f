//! Commands about the sharing of the cost of control planes (SEMANTICS 9 and 12).

use super::Draft;
use crate::command::{PutSharing, ShareCost};
use crate::refusal::Refusal;
use crate::sharing::{Division, Share};
use leasehold_model::body::{LedgerShared, PolicyScope, ServiceTiers, Sharing, SharingBasis, SharingPut};
use leasehold_model::limits::{SERVICE_TIERS_MAX, SHARING_PROJECTS_MAX};
use leasehold_model::rate::{BILLION, Decimal};
use leasehold_model::{ControlPlaneScope, Name, ProjectNo, TenantNo};
use std::collections::BTreeSet;

/// One hundred percent.
const ALL: u128 = 100 * BILLION as u128;

impl Draft<'_> {
    pub(super) fn put_sharing(&mut self, put: &PutSharing) -> Result<(), Refusal> {
        let PutSharing { of, mut control_plane_billable, mut distributable, ref sharing } = *put;
        let state = self.state();
        let app_type = of.app_type;
        let app = state.app_type(app_type).ok_or(Refusal::UnknownAppType { app_type })?;
        let instance = self.instance_of_policy(of)?;
        let is_for_all = instance.is_some_and(|found| found.scope == ControlPlaneScope::Platform);
        let old = state.sharing_policy(of);
        if self.identity.tenant.is_some() {
            if of.tenant.is_none() || is_for_all || control_plane_billable.is_some() || distributable.is_some() {
                return Err(Refusal::SharingByOperator);
            }
            control_plane_billable = old.and_then(|old| old.control_plane_billable);
            distributable = old.and_then(|old| old.distributable);
            let divides = sharing.as_ref().is_some_and(|sharing| sharing.basis.divides());
            if divides && !self.is_distributable(of) {
                return Err(Refusal::NotDistributable);
            }
        }
        if let Some(Sharing { basis, .. }) = sharing {
            if let Some(unit) = basis.unit() {
                state.unit(unit).ok_or(Refusal::UnknownUnit { unit })?;
                if !app.units.contains(unit) {
                    return Err(Refusal::UnitNotEnabled { unit, app_type });
                }
            }
            check_basis(basis)?;
            let tenant = of.tenant.filter(|_| !is_for_all);
            self.check_sharing_projects(basis, tenant)?;
        }
        let version = old.map_or(0, |old| old.version) + 1;
        let body = SharingPut { of, version, control_plane_billable, distributable, sharing: sharing.clone() };
        self.emit(of.tenant, body, |_| {});
        Ok(())
    }

    /// Whether operators allow that cost is divided within a scope.
    fn is_distributable(&self, of: PolicyScope) -> bool {
        let of_tenant = PolicyScope { app_instance: None, ..of };
        let of_app = PolicyScope { tenant: None, ..of_tenant };
        let said = [of, of_tenant, of_app].into_iter().find_map(|of| self.state().sharing_policy(of)?.distributable);
        said.unwrap_or(true)
    }

    /// The projects that a policy names exist, in the tenant that it is for.
    fn check_sharing_projects(&self, basis: &SharingBasis, tenant: Option<TenantNo>) -> Result<(), Refusal> {
        for project in basis.projects() {
            let found = self.state().project(project).filter(|found| tenant.is_none_or(|own| found.tenant == own));
            found.ok_or(Refusal::UnknownProject { project })?;
        }
        Ok(())
    }

    pub(super) fn share_cost(&mut self, share: ShareCost) -> Result<(), Refusal> {
        let ShareCost { app_instance, currency } = share;
        let ledger = self.open_ledger()?;
        let month = ledger.closing.as_ref().ok_or(Refusal::NoPeriodIsClosing)?.month;
        self.check_complete(ledger)?;
        let state = self.state();
        if !state.shares_due().any(|due| due == (app_instance, currency)) {
            return Err(Refusal::NothingToShare { app_instance });
        }
        let instance = state.app_instance(app_instance).ok_or(Refusal::UnknownAppInstance { app_instance })?;
        let owner = instance.project;
        let divided = state.divided(instance, (month, currency), state.sharing_rules_at_cut(instance));
        let divided = divided.map_err(|_| Refusal::AmountTooLarge)?;
        let Division { policy, method, unit, total_weight, pool, shares, .. } =
            divided.ok_or(Refusal::NothingToShare { app_instance })?;
        let mut records = Vec::with_capacity(shares.len());
        for Share { tenant, project, weight, tier, share, booked } in shares {
            let payer = self.payer(project, currency);
            payer.unbilled_in(month).checked_add(booked).ok_or(Refusal::AmountTooLarge)?;
            let body = LedgerShared {
                app_instance,
                owner,
                month,
                currency,
                previous: payer.last,
                policy: policy.of,
                version: policy.version,
                method,
                unit,
                tier,
                weight,
                total_weight,
                pool,
                share,
                booked,
            };
            records.push(((tenant, Some(project)), body));
        }
        for (of, body) in records {
            self.emit_of(of, body, |_| {});
        }
        Ok(())
    }

    /// The shares of the month that is being closed are all made.
    pub(super) fn check_shared(&self) -> Result<(), Refusal> {
        match self.state().shares_due().next() {
            Some((app_instance, _)) => Err(Refusal::SharesPending { app_instance }),
            None => Ok(()),
        }
    }
}

fn check_basis(basis: &SharingBasis) -> Result<(), Refusal> {
    if matches!(basis, SharingBasis::Fixed(_)) {
        check_percentages(basis.percentages())?;
    }
    basis.tiers().map_or(Ok(()), check_tiers)
}

fn check_percentages(weights: &[(ProjectNo, Decimal)]) -> Result<(), Refusal> {
    let sum: u128 = weights.iter().map(|(_, weight)| u128::from(weight.0)).sum();
    let is_good = weights.len() <= SHARING_PROJECTS_MAX
        && weights.is_sorted_by(|a, b| a.0 < b.0)
        && weights.iter().all(|(_, weight)| weight.0 > 0)
        && sum == ALL;
    if is_good { Ok(()) } else { Err(Refusal::BadShares { limit: SHARING_PROJECTS_MAX }) }
}

fn check_tiers(tiers: &ServiceTiers) -> Result<(), Refusal> {
    let names: BTreeSet<&Name> = tiers.tiers.iter().map(|tier| &tier.name).collect();
    let count = tiers.tiers.len();
    let is_one = |place: u32| (place as usize) < count;
    let is_good = (1..=SERVICE_TIERS_MAX).contains(&count)
        && names.len() == count
        && tiers.tiers.iter().all(|tier| tier.weight.0 > 0)
        && tiers.projects.len() <= SHARING_PROJECTS_MAX
        && tiers.projects.is_sorted_by(|a, b| a.0 < b.0)
        && tiers.projects.iter().all(|(_, place)| is_one(*place))
        && tiers.default_tier.is_none_or(is_one);
    if is_good { Ok(()) } else { Err(Refusal::BadTiers) }
}
