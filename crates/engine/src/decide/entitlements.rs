//! Commands about entitlements and policies, and the check of usage against entitlements (SEMANTICS 9 and 12).

use super::Draft;
use crate::apps::AppInstance;
use crate::command::{PutAppPolicy, PutEntitlement};
use crate::entitlement::{Entitlement, scopes_of};
use crate::refusal::Refusal;
use leasehold_model::body::{
    AppPolicyPut, Attribution, EntitlementDeleted, EntitlementPut, EntitlementScope, EntitlementWarned, PolicyScope,
    ReplacedUsage, UsageRefused, UsageReport,
};
use leasehold_model::limits::{ENTITLEMENTS_PER_TENANT_MAX, USAGE_QUANTITY_MAX};
use leasehold_model::{ControlPlaneScope, Month, ProjectNo, TenantNo, UsageCharge};
use std::collections::BTreeMap;

/// What the records before it in the same command add to what is used of entitlements.
pub(super) type EntitledBefore = BTreeMap<(EntitlementScope, Month), i128>;

impl Draft<'_> {
    /// The tenant of an entitlement, if the caller may see it and what the entitlement names exists.
    fn owner_of_entitlement(&self, of: EntitlementScope) -> Result<TenantNo, Refusal> {
        let state = self.state();
        let unit = of.unit;
        state.unit(unit).ok_or(Refusal::UnknownUnit { unit })?;
        if (of.project, of.app_instance) == (None, None) {
            return Err(Refusal::EntitlementOfNobody);
        }
        let project = of.project.map(|project| {
            let found = state.project(project).filter(|found| self.may_see(found.tenant));
            found.map(|found| found.tenant).ok_or(Refusal::UnknownProject { project })
        });
        let project = project.transpose()?;
        let instance = of.app_instance.map(|app_instance| {
            let found = state.app_instance(app_instance).filter(|found| match project {
                Some(tenant) => found.tenant == tenant || found.scope == ControlPlaneScope::Platform,
                None => self.may_see(found.tenant),
            });
            found.map(|found| found.tenant).ok_or(Refusal::UnknownAppInstance { app_instance })
        });
        let instance = instance.transpose()?;
        Ok(project.or(instance).expect("one of them is named"))
    }

    pub(super) fn put_entitlement(&mut self, put: &PutEntitlement) -> Result<(), Refusal> {
        let PutEntitlement { of, soft, hard } = put.clone();
        let tenant = self.owner_of_entitlement(of)?;
        let is_bad = match (soft, hard) {
            (None, None) => true,
            (Some(soft), Some(hard)) => soft > hard,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_bad || soft.max(hard).is_some_and(|most| most > USAGE_QUANTITY_MAX) {
            return Err(Refusal::BadEntitlement);
        }
        let state = self.state();
        let own = state.entitlements.values().filter(|found| found.tenant == tenant);
        if state.entitlement(of).is_none() && own.count() >= ENTITLEMENTS_PER_TENANT_MAX {
            return Err(Refusal::RegistryFull { what: "entitlements of a tenant", limit: ENTITLEMENTS_PER_TENANT_MAX });
        }
        self.check_limits_are_free(of)?;
        self.emit(Some(tenant), EntitlementPut { of, soft, hard }, |_| {});
        Ok(())
    }

    pub(super) fn delete_entitlement(&mut self, of: EntitlementScope) -> Result<(), Refusal> {
        let found = self.state().entitlement(of).filter(|found| self.may_see(found.tenant));
        let tenant = found.ok_or(Refusal::UnknownEntitlement)?.tenant;
        self.check_limits_are_free(of)?;
        self.emit(Some(tenant), EntitlementDeleted { of }, |_| {});
        Ok(())
    }

    /// The limits of the cut are those by which a month is divided, as with the policies. So none of them changes between
    /// the cut and the shares.
    fn check_limits_are_free(&self, of: EntitlementScope) -> Result<(), Refusal> {
        let unit = of.unit;
        if self.state().is_divided_by_limits(unit) { Err(Refusal::LimitsInUse { unit }) } else { Ok(()) }
    }

    /// Limits go with their projects and tenants, so that these stay as long.
    pub(super) fn check_no_limit_is_used(&self, of: impl Fn(&Entitlement) -> bool) -> Result<(), Refusal> {
        let mut own = self.state().entitlements.values().filter(|found| of(found));
        own.try_for_each(|found| self.check_limits_are_free(found.of))
    }

    /// The app instance that a policy is for, if it is for one. It is of the app and the tenant of the policy, which the
    /// caller may see.
    pub(super) fn instance_of_policy(&self, of: PolicyScope) -> Result<Option<&AppInstance>, Refusal> {
        let state = self.state();
        if let Some(tenant) = of.tenant {
            let found = state.tenant(tenant).filter(|_| self.may_see(tenant));
            found.ok_or(Refusal::UnknownTenant { tenant })?;
        }
        let Some(app_instance) = of.app_instance else { return Ok(None) };
        let own = |found: &&AppInstance| found.app_type == of.app_type && Some(found.tenant) == of.tenant;
        let found = state.app_instance(app_instance).filter(own);
        found.map(Some).ok_or(Refusal::UnknownAppInstance { app_instance })
    }

    pub(super) fn put_app_policy(&mut self, put: &PutAppPolicy) -> Result<(), Refusal> {
        let PutAppPolicy { of, units, attribution, billed_work } = put.clone();
        let state = self.state();
        let app_type = of.app_type;
        let app = state.app_type(app_type).ok_or(Refusal::UnknownAppType { app_type })?;
        if let Some(unit) = units
            .iter()
            .chain(&billed_work)
            .flat_map(leasehold_model::UnitList::iter)
            .find(|unit| !app.units.contains(*unit))
        {
            return Err(Refusal::UnitNotEnabled { unit, app_type });
        }
        if of.tenant.is_none() && self.identity.tenant.is_some() {
            return Err(Refusal::PolicyByOperator);
        }
        if let Some(found) = self.instance_of_policy(of)? {
            let app_instance = found.number;
            if attribution == Some(Attribution::Caller) && found.scope != ControlPlaneScope::Project {
                return Err(Refusal::AttributionFixed { app_instance });
            }
            if billed_work.is_some() && found.scope != ControlPlaneScope::Tenant {
                return Err(Refusal::WorkIsBilled { app_instance });
            }
        }
        let version = state.app_policy(of).map_or(0, |old| old.version) + 1;
        self.emit(of.tenant, AppPolicyPut { of, version, units, attribution, billed_work }, |_| {});
        Ok(())
    }

    /// Checks billed usage against the hard limits that it falls under. Less than before always passes.
    pub(super) fn check_entitlements(
        &self,
        project: ProjectNo,
        report: &UsageReport,
        replaces: Option<&ReplacedUsage>,
        before: &mut EntitledBefore,
    ) -> Result<(), Box<UsageRefused>> {
        if self.state().entitlements.is_empty() {
            return Ok(());
        }
        let month = Month::of(report.to);
        let old = replaces.filter(|old| old.charge == UsageCharge::Billed && Month::of(old.to) == month);
        let counted = |of: EntitlementScope| {
            old.filter(|old| of.project.is_none_or(|own| own == old.project)).map_or(0, |old| old.quantity.0)
        };
        let mut changes = Vec::new();
        for of in scopes_of(project, report) {
            let Some(entitlement) = self.state().entitlement(of) else { continue };
            let change = report.quantity.0.cast_signed() - counted(of).cast_signed();
            let used =
                entitlement.in_month(month).used.0.cast_signed() + before.get(&(of, month)).copied().unwrap_or(0);
            if let Some(hard) = entitlement.hard
                && change > 0
                && used + change > hard.0.cast_signed()
            {
                let used = leasehold_model::body::UsedInMonth(used.max(0).cast_unsigned());
                return Err(Box::new(UsageRefused { report: report.clone(), of, month, used, hard }));
            }
            changes.push(((of, month), change));
        }
        changes.into_iter().for_each(|(of, change)| *before.entry(of).or_default() += change);
        Ok(())
    }

    /// Notes for the records after it in the same command what a superseded record no longer uses elsewhere: of limits
    /// that the new one does not fall under.
    pub(super) fn free_entitlements(
        &self,
        (project, charge): (ProjectNo, UsageCharge),
        report: &UsageReport,
        replaces: Option<&ReplacedUsage>,
        before: &mut EntitledBefore,
    ) {
        let Some(old) = replaces.filter(|old| old.charge == UsageCharge::Billed) else { return };
        let is_same = |of: EntitlementScope| {
            charge == UsageCharge::Billed
                && Month::of(old.to) == Month::of(report.to)
                && of.project.is_none_or(|own| own == project)
        };
        for of in scopes_of(old.project, report).into_iter().filter(|of| !is_same(*of)) {
            if self.state().entitlement(of).is_some() {
                *before.entry((of, Month::of(old.to))).or_default() -= old.quantity.0.cast_signed();
            }
        }
    }

    /// Says for which entitlements more was used than their soft limit, once for each month.
    pub(super) fn warn_of_entitlements(&mut self, project: ProjectNo, report: &UsageReport) {
        if self.state().entitlements.is_empty() {
            return;
        }
        let month = Month::of(report.to);
        for of in scopes_of(project, report) {
            let Some(entitlement) = self.state().entitlement(of) else { continue };
            let (in_month, tenant) = (entitlement.in_month(month), entitlement.tenant);
            if let Some(soft) = entitlement.soft.filter(|soft| !in_month.warned && in_month.used.0 > soft.0) {
                self.emit(Some(tenant), EntitlementWarned { of, month, used: in_month.used, soft }, |_| {});
            }
        }
    }
}
