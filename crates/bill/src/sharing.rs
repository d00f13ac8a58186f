//! How the cost of a control plane is divided, as far as the records of one tenant tell (SEMANTICS 9 and 12).

use crate::common::Common;
use crate::list::KnownApp;
use crate::reported::Work;
use crate::tenant::Tenant;
use leasehold_model::body::{PolicyScope, Sharing, SharingBasis, SharingMethod, SharingPut};
use leasehold_model::{AppInstanceNo, Name, ProjectNo, TenantNo, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

/// What the share of a project is in proportion to, and its service tier.
pub(crate) type Weights = BTreeMap<ProjectNo, (u128, Option<Name>)>;

/// The policy that decides about the cost of a control plane.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) of: PolicyScope,
    pub(crate) version: u32,
    /// None if the control plane is not billable.
    basis: Option<SharingBasis>,
    /// Whether the shares are booked.
    pub(crate) entries: bool,
}

impl Rule {
    pub(crate) fn method(&self) -> SharingMethod {
        self.basis.as_ref().map_or(SharingMethod::NotBillable, SharingBasis::method)
    }

    pub(crate) fn is_not_billable(&self) -> bool {
        self.basis.is_none()
    }

    pub(crate) fn unit(&self) -> Option<UnitNo> {
        self.basis.as_ref().and_then(SharingBasis::unit)
    }
}

/// An app instance as one tenant sees it.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    pub(crate) app: KnownApp,
    /// Whether all who can bear a part of its cost are projects of the tenant.
    pub(crate) is_own: bool,
}

impl Runtime {
    /// `None` if the tenant has no such app instance, and the platform has none either.
    pub(crate) fn of(common: &Common, tenant: &Tenant, app: AppInstanceNo) -> Option<Self> {
        let own = tenant.app_instances.get(&app).map(|app| Self { app: app.clone(), is_own: true });
        own.or_else(|| common.app_instances.get(&app).map(|app| Self { app: app.clone(), is_own: false }))
    }

    /// The policy that decides, if one does: of each question the narrowest that says something about it.
    pub(crate) fn rule(&self, common: &Common, (number, tenant): (TenantNo, &Tenant)) -> Option<Rule> {
        let KnownApp { app_instance, app_type, .. } = self.app;
        let of_app = PolicyScope { app_type, tenant: None, app_instance: None };
        let of_tenant = PolicyScope { tenant: Some(number), ..of_app };
        let of_instance = PolicyScope { app_instance: Some(app_instance), ..of_tenant };
        let narrow = match self.is_own {
            true => [tenant.sharing.get(&of_instance), tenant.sharing.get(&of_tenant)],
            // Its policy names the tenant of its owner, which may be another one.
            false => [common.sharing.values().find(|put| put.of.app_instance == Some(app_instance)), None],
        };
        let all = || narrow.into_iter().flatten().chain(common.sharing.get(&of_app));
        let says = |what: fn(&SharingPut) -> Option<bool>| all().find(|put| what(put).is_some());
        let not_billable =
            says(|put| put.control_plane_billable).filter(|put| put.control_plane_billable == Some(false));
        if let Some(put) = not_billable {
            return Some(Rule { of: put.of, version: put.version, basis: None, entries: true });
        }
        let is_divisible = says(|put| put.distributable).is_none_or(|put| put.distributable != Some(false));
        let (put, Sharing { basis, entries }) = all().find_map(|put| Some((put, put.sharing.as_ref()?)))?;
        let applies = if basis.divides() { is_divisible } else { *basis != SharingBasis::None };
        applies.then(|| Rule { of: put.of, version: put.version, basis: Some(basis.clone()), entries: *entries })
    }

    /// The weights of the tenant's projects, and the total weight where it can be told. `said` is the total weight that was
    /// recorded: whether anybody else used a runtime of the platform is known by it alone.
    pub(crate) fn weights(&self, rule: &Rule, tenant: &Tenant, work: &Work, said: u128) -> (Weights, Option<u128>) {
        let app = self.app.app_instance;
        let own = work.iter().filter(|((_, of, ..), sum)| *of == app && **sum > 0);
        let own: Vec<(ProjectNo, UnitNo, u128)> =
            own.map(|((_, _, project, unit), sum)| (*project, *unit, sum.unsigned_abs())).collect();
        let users: BTreeSet<ProjectNo> = own.iter().map(|(project, ..)| *project).collect();
        let is_used = !users.is_empty() || (!self.is_own && said > 0);
        let sum = |weights: &Weights| weights.values().fold(0, |sum: u128, (weight, _)| sum.saturating_add(*weight));
        let all_of = |weights: Weights| {
            let total = self.is_own.then(|| sum(&weights));
            (weights, total)
        };
        match &rule.basis {
            None | Some(SharingBasis::None) => (Weights::new(), Some(0)),
            Some(SharingBasis::Owner) => (Weights::from([(self.app.project, (1, None))]), Some(1)),
            Some(SharingBasis::Even) => all_of(users.into_iter().map(|project| (project, (1, None))).collect()),
            Some(SharingBasis::ByUsage(unit)) => {
                let in_unit = own.into_iter().filter(|(_, of, _)| of == unit);
                all_of(in_unit.map(|(project, _, used)| (project, (used, None))).collect())
            }
            Some(SharingBasis::ByTier(tiers)) => {
                let weight = |project: ProjectNo| {
                    let tier = tiers.of(project)?;
                    Some((project, (u128::from(tier.weight.0), Some(tier.name.clone()))))
                };
                all_of(users.into_iter().filter_map(weight).collect())
            }
            Some(SharingBasis::ByQuota(_) | SharingBasis::Fixed(_)) if !is_used => (Weights::new(), Some(0)),
            Some(SharingBasis::ByQuota(unit)) => all_of(self.limits(tenant, *unit)),
            // The policy names everybody.
            Some(SharingBasis::Fixed(percentages)) => {
                let weights: Weights =
                    percentages.iter().map(|(project, percent)| (*project, (u128::from(percent.0), None))).collect();
                let total = sum(&weights);
                (weights, Some(total))
            }
        }
    }

    /// What projects may use of a unit on it: by a limit for it, or else by one for all app instances.
    fn limits(&self, tenant: &Tenant, unit: UnitNo) -> Weights {
        let mut limits = Weights::new();
        // Those for all app instances come before those for one.
        for ((project, app, of), hard) in &tenant.limits {
            if *of == unit && app.is_none_or(|app| app == self.app.app_instance) {
                limits.insert(*project, (hard.0, None));
            }
        }
        limits.retain(|_, (weight, _)| *weight > 0);
        limits
    }
}
