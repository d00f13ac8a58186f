//! Sharing policies (SEMANTICS 13, "Sharing the cost of a control plane"): which may be set by whom, and what they say
//! about a runtime.

use crate::apps::{those, unless};
use crate::foretell::{Caller, Told, sealed};
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::body::{AppInstancePut, PolicyScope, ServiceTiers, Sharing, SharingBasis, SharingPut};
use leasehold_model::limits::{SERVICE_TIERS_MAX, SHARING_PROJECTS_MAX};
use leasehold_model::rate::Decimal;
use leasehold_model::{ControlPlaneScope, ProjectNo, Record, TenantNo, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

/// A hundred per cent.
const ALL: u64 = 100_000_000_000;

/// A sharing policy to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingWish {
    pub of: PolicyScope,
    pub control_plane_billable: Option<bool>,
    pub distributable: Option<bool>,
    pub sharing: Option<Sharing>,
}

/// What the policies say about a runtime, with the policy that decides.
pub(crate) enum Decides<'a> {
    /// Nothing is recorded.
    Nothing,
    /// The operator bears the cost.
    NotBillable(&'a SharingPut),
    By(&'a SharingPut, &'a Sharing),
}

fn is_bad_fixed(weights: &[(ProjectNo, Decimal)]) -> bool {
    let named: BTreeSet<ProjectNo> = weights.iter().map(|(project, _)| *project).collect();
    let sum: u128 = weights.iter().map(|(_, percent)| u128::from(percent.0)).sum();
    named.len() < weights.len()
        || !weights.is_sorted_by_key(|(project, _)| *project)
        || weights.len() > SHARING_PROJECTS_MAX
        || weights.iter().any(|(_, percent)| percent.0 == 0)
        || sum != u128::from(ALL)
}

fn are_bad_tiers(of: &ServiceTiers) -> bool {
    let names: BTreeSet<&str> = of.tiers.iter().map(|tier| tier.name.as_str()).collect();
    let named: BTreeSet<ProjectNo> = of.projects.iter().map(|(project, _)| *project).collect();
    let mut places = of.projects.iter().map(|(_, place)| *place).chain(of.default_tier);
    of.tiers.is_empty()
        || names.len() < of.tiers.len()
        || named.len() < of.projects.len()
        || !of.projects.is_sorted_by_key(|(project, _)| *project)
        || of.tiers.len() > SERVICE_TIERS_MAX
        || of.projects.len() > SHARING_PROJECTS_MAX
        || of.tiers.iter().any(|tier| tier.weight.0 == 0)
        || places.any(|place| place as usize >= of.tiers.len())
}

/// The projects that a policy names.
fn named(basis: &SharingBasis) -> Vec<ProjectNo> {
    match basis {
        SharingBasis::Fixed(weights) => weights.iter().map(|(project, _)| *project).collect(),
        SharingBasis::ByTier(tiers) => tiers.projects.iter().map(|(project, _)| *project).collect(),
        SharingBasis::None
        | SharingBasis::Owner
        | SharingBasis::Even
        | SharingBasis::ByUsage(_)
        | SharingBasis::ByQuota(_) => Vec::new(),
    }
}

impl World {
    /// The policies in a list that are about an instance, the narrowest first. What a tenant says about an app is not
    /// about the runtimes of the platform.
    fn sharing_about<'a>(
        &self,
        list: &'a BTreeMap<PolicyScope, SharingPut>,
        (tenant, instance): (TenantNo, &AppInstancePut),
    ) -> Vec<&'a SharingPut> {
        let app_type = instance.app_type;
        let of_instance = PolicyScope { app_type, tenant: Some(tenant), app_instance: Some(instance.app_instance) };
        let of_tenant = PolicyScope { app_instance: None, ..of_instance };
        let of_app = PolicyScope { tenant: None, ..of_tenant };
        let is_platform = instance.scope == ControlPlaneScope::Platform;
        let scopes = [Some(of_instance), Some(of_tenant).filter(|_| !is_platform), Some(of_app)];
        scopes.into_iter().flatten().filter_map(|of| list.get(&of)).collect()
    }

    /// What the policies at the last cut say about an instance.
    pub(crate) fn decided_at_cut(&self, of: (TenantNo, &AppInstancePut)) -> Decides<'_> {
        Self::decided(&self.sharing_about(&self.sharing_at_cut, of))
    }

    /// The same by the policies in force.
    pub(crate) fn decided_now(&self, of: (TenantNo, &AppInstancePut)) -> Decides<'_> {
        Self::decided(&self.sharing_about(&self.sharing, of))
    }

    /// Whether the shares of the month that is being closed follow from the limits on a unit, and are still to be made:
    /// from the cut to the first invoice.
    pub(crate) fn is_divided_by_limits(&self, unit: UnitNo) -> bool {
        let Some((month, _)) = self.ledger.closing else { return false };
        let by_limits = |put: &SharingPut| {
            put.sharing.as_ref().is_some_and(|sharing| matches!(sharing.basis, SharingBasis::ByQuota(of) if of == unit))
        };
        !self.ledger.invoices.iter().any(|one| one.month == month) && self.sharing_at_cut.values().any(by_limits)
    }

    fn decided<'p>(all: &[&'p SharingPut]) -> Decides<'p> {
        let billable = all.iter().find(|put| put.control_plane_billable.is_some());
        if let Some(put) = billable.filter(|put| put.control_plane_billable == Some(false)) {
            return Decides::NotBillable(put);
        }
        let divisible = all.iter().find_map(|put| put.distributable).unwrap_or(true);
        let said = all.iter().find_map(|put| Some((*put, put.sharing.as_ref()?)));
        match said {
            None => Decides::Nothing,
            Some((_, sharing)) if sharing.basis == SharingBasis::None => Decides::Nothing,
            Some((_, sharing)) if sharing.basis != SharingBasis::Owner && !divisible => Decides::Nothing,
            Some((put, sharing)) => Decides::By(put, sharing),
        }
    }

    /// What is wrong with a policy, whoever sets it.
    fn faults_of_sharing(&self, wish: &SharingWish) -> Vec<&'static str> {
        let of = &wish.of;
        let app = self.apps.types.get(&of.app_type);
        let instance = of.app_instance.map(|number| self.apps.instances.get(&number));
        let fits = |found: &(TenantNo, AppInstancePut)| Some(found.0) == of.tenant && found.1.app_type == of.app_type;
        let is_platform = instance.flatten().is_some_and(|(_, found)| found.scope == ControlPlaneScope::Platform);
        let basis = wish.sharing.as_ref().map(|sharing| &sharing.basis);
        let unit = basis.and_then(SharingBasis::unit);
        let of_its_tenant = of.tenant.filter(|_| !is_platform);
        let is_missing = |project: &ProjectNo| {
            let found = self.projects.get(project).map(|found| found.tenant);
            found.is_none_or(|found| of_its_tenant.is_some_and(|tenant| tenant != found))
        };
        let bad_shares = matches!(basis, Some(SharingBasis::Fixed(weights)) if is_bad_fixed(weights));
        let bad_tiers = matches!(basis, Some(SharingBasis::ByTier(tiers)) if are_bad_tiers(tiers));
        those(&[
            (app.is_none(), "unknown_app"),
            (of.tenant.is_some_and(|tenant| !self.tenants.contains_key(&tenant)), "unknown_tenant"),
            (instance.is_some_and(|found| !found.is_some_and(fits)), "unknown_app_instance"),
            (unit.is_some_and(|unit| app.is_some_and(|app| !app.units.contains(unit))), "unit_not_enabled"),
            (unit.is_some_and(|unit| !self.unit_exists(unit)), "unknown_usage_unit"),
            (basis.is_some_and(|basis| named(basis).iter().any(is_missing)), "unknown_project"),
            (bad_shares, "bad_shares"),
            (bad_tiers, "bad_tiers"),
        ])
    }

    /// What is wrong with it if an admin of a tenant sets it.
    fn faults_of_admin(&self, own: TenantNo, wish: &SharingWish) -> Vec<&'static str> {
        let of = &wish.of;
        let foreign = of.tenant.is_some_and(|tenant| tenant != own);
        let instance = of.app_instance.and_then(|number| self.apps.instances.get(&number));
        let is_platform = instance.is_some_and(|(_, found)| found.scope == ControlPlaneScope::Platform);
        let says_more = wish.control_plane_billable.is_some() || wish.distributable.is_some();
        // The same scope or a wider one, the narrowest first.
        let of_tenant = PolicyScope { app_instance: None, ..*of };
        let scopes = [*of, of_tenant, PolicyScope { tenant: None, ..of_tenant }];
        let divisible = scopes.iter().find_map(|of| self.sharing.get(of)?.distributable);
        let divides = wish.sharing.as_ref().is_some_and(|sharing| sharing.basis.divides());
        those(&[
            (foreign, "unknown_tenant"),
            (foreign && of.app_instance.is_some(), "unknown_app_instance"),
            (of.tenant.is_none() || is_platform || says_more, "sharing_by_operator"),
            (divides && divisible == Some(false), "not_distributable"),
        ])
    }

    /// The record of a policy. An admin leaves what operators decide as it is.
    fn next_sharing(&self, caller: &Caller, wish: &SharingWish) -> SharingPut {
        let SharingWish { of, control_plane_billable, distributable, sharing } = wish.clone();
        let old = self.sharing.get(&of);
        let version = old.map_or(0, |old| old.version) + 1;
        let kept = old.filter(|_| caller.tenant.is_some());
        SharingPut {
            of,
            version,
            control_plane_billable: kept.map_or(control_plane_billable, |old| old.control_plane_billable),
            distributable: kept.map_or(distributable, |old| old.distributable),
            sharing,
        }
    }

    /// Who has set it is not in the record: only what nobody may set is wrong.
    pub(crate) fn sharing_put(&mut self, record: &Record, put: &SharingPut) -> Checked {
        let SharingPut { of, version, control_plane_billable, distributable, sharing } = put.clone();
        let wish = SharingWish { of, control_plane_billable, distributable, sharing };
        let faults = self.faults_of_sharing(&wish);
        demand!(faults.is_empty(), "sharing", "must be refused: {faults:?}");
        let next = self.sharing.get(&of).map_or(0, |old| old.version) + 1;
        demand!(version == next, "sharing", "version {version} where {next} is next");
        demand!(record.identity.tenant == of.tenant, "sharing", "it is of {:?}", of.tenant);
        self.sharing.insert(of, put.clone());
        Ok(())
    }

    pub(crate) fn foretell_sharing(&self, caller: &Caller, wish: &SharingWish) -> Told {
        let mut faults = self.faults_of_sharing(wish);
        faults.extend(caller.tenant.into_iter().flat_map(|own| self.faults_of_admin(own, wish)));
        unless(faults, || sealed(wish.of.tenant, self.next_sharing(caller, wish)))
    }
}
