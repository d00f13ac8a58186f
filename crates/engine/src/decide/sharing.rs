//! Commands about the sharing of the cost of control planes (SEMANTICS 9 and 12).

use super::Draft;
use crate::apps::AppInstance;
use crate::command::{PutSharing, ShareCost};
use crate::refusal::Refusal;
use leasehold_ledger::shared;
use leasehold_model::body::{
    LedgerShared, PolicyScope, ServiceTiers, ShareWeight, Sharing, SharingBasis, SharingMethod, SharingPut,
};
use leasehold_model::limits::{SERVICE_TIERS_MAX, SHARING_PROJECTS_MAX};
use leasehold_model::rate::{BILLION, Decimal};
use leasehold_model::{ControlPlaneScope, Month, Name, ProjectNo, Steps, TenantNo, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

/// One hundred percent.
const ALL: u128 = 100 * BILLION as u128;

/// What a project's share is in proportion to, and its service tier.
type Weights = BTreeMap<ProjectNo, (u128, Option<Name>)>;

impl Draft<'_> {
    pub(super) fn put_sharing(&mut self, put: &PutSharing) -> Result<(), Refusal> {
        let PutSharing { of, mut control_plane_billable, mut distributable, ref sharing } = *put;
        let state = self.state();
        let app_type = of.app_type;
        let app = state.app_type(app_type).ok_or(Refusal::UnknownAppType { app_type })?;
        if let Some(tenant) = of.tenant {
            let found = state.tenant(tenant).filter(|_| self.may_see(tenant));
            found.ok_or(Refusal::UnknownTenant { tenant })?;
        }
        let instance = of.app_instance.map(|app_instance| {
            let own = |found: &&AppInstance| found.app_type == app_type && Some(found.tenant) == of.tenant;
            state.app_instance(app_instance).filter(own).ok_or(Refusal::UnknownAppInstance { app_instance })
        });
        let instance = instance.transpose()?;
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
        let named: Vec<ProjectNo> = match basis {
            SharingBasis::Fixed(weights) => weights.iter().map(|(project, _)| *project).collect(),
            SharingBasis::ByTier(tiers) => tiers.projects.iter().map(|(project, _)| *project).collect(),
            SharingBasis::None
            | SharingBasis::Owner
            | SharingBasis::Even
            | SharingBasis::ByUsage(_)
            | SharingBasis::ByQuota(_) => Vec::new(),
        };
        for project in named {
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
        let pool = state.shared_pool(month, app_instance, currency);
        let rules = state.sharing_rules_at_cut(instance);
        let nobody = BTreeMap::new();
        let (put, method, unit, weights, entries) = match (rules.not_billable, rules.applied()) {
            (Some(put), _) => (put, SharingMethod::NotBillable, None, nobody, true),
            (None, Some((put, Sharing { basis, entries }))) => {
                (put, basis.method(), basis.unit(), self.weights(basis, instance, month), *entries)
            }
            (None, None) => return Err(Refusal::NothingToShare { app_instance }),
        };
        let list: Vec<u128> = weights.values().map(|(weight, _)| *weight).collect();
        let parts = shared(pool, &list).map_err(|_| Refusal::AmountTooLarge)?;
        let total_weight = ShareWeight(list.iter().fold(0, |sum, weight| sum.saturating_add(*weight)));
        let owner = instance.project;
        let takes_part = |project: ProjectNo| {
            let found = state.project(project)?;
            (found.tenant == instance.tenant || instance.scope == ControlPlaneScope::Platform).then_some(found.tenant)
        };
        // What nobody else takes stays with the owner, or with the operator if the owner is not to pay.
        let mut shares: BTreeMap<ProjectNo, (TenantNo, Steps)> = BTreeMap::new();
        let mut left = pool;
        for (project, part) in weights.keys().zip(parts.into_iter().flatten()) {
            if let Some(tenant) = takes_part(*project).filter(|_| *project != owner && part != Steps::ZERO) {
                shares.insert(*project, (tenant, part));
                left = Steps(left.0 - part.0);
            }
        }
        let kept = if method == SharingMethod::NotBillable { Steps::ZERO } else { left };
        shares.insert(owner, (instance.tenant, kept));
        let mut records = Vec::with_capacity(shares.len());
        for (project, (tenant, share)) in shares {
            let booked = match (entries, project == owner) {
                (false, _) => Steps::ZERO,
                (true, true) => Steps(share.0 - pool.0),
                (true, false) => share,
            };
            let payer = self.payer(project, currency);
            payer.unbilled_in(month).checked_add(booked).ok_or(Refusal::AmountTooLarge)?;
            let (weight, tier) = weights.get(&project).cloned().unwrap_or_default();
            let body = LedgerShared {
                app_instance,
                owner,
                month,
                currency,
                previous: payer.last,
                policy: put.of,
                version: put.version,
                method,
                unit,
                tier,
                weight: ShareWeight(weight),
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

    /// What the shares are in proportion to; nothing if nobody used the runtime.
    fn weights(&self, basis: &SharingBasis, instance: &AppInstance, month: Month) -> Weights {
        let state = self.state();
        let work: Vec<_> = state.sharing.work_on(month, instance.number).collect();
        let users: BTreeSet<ProjectNo> = work.iter().map(|(_, project, _)| *project).collect();
        match basis {
            SharingBasis::None => Weights::new(),
            SharingBasis::Owner => Weights::from([(instance.project, (1, None))]),
            SharingBasis::Even => users.into_iter().map(|project| (project, (1, None))).collect(),
            SharingBasis::ByUsage(unit) => {
                let in_unit = work.into_iter().filter(|(of, ..)| of == unit);
                in_unit.map(|(_, project, used)| (project, (used, None))).collect()
            }
            SharingBasis::ByQuota(_) | SharingBasis::Fixed(_) if users.is_empty() => Weights::new(),
            SharingBasis::ByQuota(unit) => self.limits(*unit, instance),
            SharingBasis::Fixed(weights) => {
                weights.iter().map(|(project, Decimal(weight))| (*project, (u128::from(*weight), None))).collect()
            }
            SharingBasis::ByTier(tiers) => {
                let weight = |project: ProjectNo| {
                    let tier = tiers.of(project)?;
                    Some((project, (u128::from(tier.weight.0), Some(tier.name.clone()))))
                };
                users.into_iter().filter_map(weight).collect()
            }
        }
    }

    /// What projects may use of a unit on an app instance: by a limit for it, or else by one for all.
    fn limits(&self, unit: UnitNo, instance: &AppInstance) -> Weights {
        let state = self.state();
        let is_for_all = instance.scope == ControlPlaneScope::Platform;
        let mut limits = Weights::new();
        // Those for all instances come first.
        for entitlement in state.entitlements.values().filter(|found| found.of.unit == unit) {
            let is_own = entitlement.of.app_instance.is_none_or(|app| app == instance.number);
            if !is_own || !(is_for_all || entitlement.tenant == instance.tenant) {
                continue;
            }
            if let (Some(project), Some(hard)) = (entitlement.of.project, entitlement.hard) {
                limits.insert(project, (hard.0, None));
            }
        }
        limits.retain(|_, (weight, _)| *weight > 0);
        limits
    }
}

fn check_basis(basis: &SharingBasis) -> Result<(), Refusal> {
    match basis {
        SharingBasis::Fixed(weights) => check_percentages(weights),
        SharingBasis::ByTier(tiers) => check_tiers(tiers),
        SharingBasis::None
        | SharingBasis::Owner
        | SharingBasis::Even
        | SharingBasis::ByUsage(_)
        | SharingBasis::ByQuota(_) => Ok(()),
    }
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
