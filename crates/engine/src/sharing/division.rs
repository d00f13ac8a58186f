//! How a cost is divided.

use super::SharingRules;
use crate::apps::AppInstance;
use crate::state::State;
use leasehold_ledger::{Overflow, shared};
use leasehold_model::body::{ShareWeight, Sharing, SharingBasis, SharingMethod, SharingPut};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{ControlPlaneScope, Month, Name, ProjectNo, Steps, TenantNo, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

/// What a project bears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub weight: ShareWeight,
    pub tier: Option<Name>,
    pub share: Steps,
    /// What is booked: the share, or for the owner less what others bear.
    pub booked: Steps,
}

/// The cost of a control plane as it is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division<'a> {
    /// The policy that decides.
    pub policy: &'a SharingPut,
    pub method: SharingMethod,
    pub unit: Option<UnitNo>,
    pub total_weight: ShareWeight,
    pub pool: Steps,
    /// Whether the shares are booked.
    pub entries: bool,
    /// In order of the projects; the owner is always among them.
    pub shares: Vec<Share>,
}

/// What a project's share is in proportion to, and its service tier.
type Weights = BTreeMap<ProjectNo, (u128, Option<Name>)>;

impl State {
    /// Divides what the control plane of an app instance cost in a month that is not closed, if anything is to be divided.
    pub fn divided<'a>(
        &'a self,
        instance: &AppInstance,
        (month, currency): (Month, Currency),
        rules: SharingRules<'a>,
    ) -> Result<Option<Division<'a>>, Overflow> {
        let pool = self.shared_pool(month, instance.number, currency);
        let (policy, method, unit, weights, entries) = match (rules.not_billable, rules.applied()) {
            (Some(policy), _) => (policy, SharingMethod::NotBillable, None, Weights::new(), true),
            (None, Some((policy, Sharing { basis, entries }))) => {
                (policy, basis.method(), basis.unit(), self.weights(basis, instance, month), *entries)
            }
            (None, None) => return Ok(None),
        };
        if pool == Steps::ZERO {
            return Ok(None);
        }
        let list: Vec<u128> = weights.values().map(|(weight, _)| *weight).collect();
        let parts = shared(pool, &list)?.into_iter().flatten();
        let owner = instance.project;
        // What nobody else takes stays with the owner, or with the operator if the owner is not to pay.
        let mut shares: BTreeMap<ProjectNo, (TenantNo, Steps)> = BTreeMap::new();
        let mut left = pool;
        for (project, part) in weights.keys().zip(parts) {
            let Some(tenant) = self.shares_with(instance, *project) else { continue };
            if *project != owner && part != Steps::ZERO {
                shares.insert(*project, (tenant, part));
                left = Steps(left.0 - part.0);
            }
        }
        let kept = if method == SharingMethod::NotBillable { Steps::ZERO } else { left };
        shares.insert(owner, (instance.tenant, kept));
        let share = |(project, (tenant, share)): (ProjectNo, (TenantNo, Steps))| {
            let booked = match (entries, project == owner) {
                (false, _) => Steps::ZERO,
                (true, true) => Steps(share.0 - pool.0),
                (true, false) => share,
            };
            let (weight, tier) = weights.get(&project).cloned().unwrap_or_default();
            Share { tenant, project, weight: ShareWeight(weight), tier, share, booked }
        };
        Ok(Some(Division {
            policy,
            method,
            unit,
            total_weight: ShareWeight(list.iter().fold(0, |sum, weight| sum.saturating_add(*weight))),
            pool,
            entries,
            shares: shares.into_iter().map(share).collect(),
        }))
    }

    /// The tenant of a project that can bear a share of a runtime.
    fn shares_with(&self, instance: &AppInstance, project: ProjectNo) -> Option<TenantNo> {
        let tenant = self.project(project)?.tenant;
        (tenant == instance.tenant || instance.scope == ControlPlaneScope::Platform).then_some(tenant)
    }

    /// What the shares are in proportion to; nothing if nobody used the runtime.
    fn weights(&self, basis: &SharingBasis, instance: &AppInstance, month: Month) -> Weights {
        let work: Vec<_> = self.sharing.work_on(month, instance.number).collect();
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
        let is_for_all = instance.scope == ControlPlaneScope::Platform;
        let mut limits = Weights::new();
        // Those for all instances come before those for one.
        for entitlement in self.entitlements.values().filter(|found| found.of.unit == unit) {
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
