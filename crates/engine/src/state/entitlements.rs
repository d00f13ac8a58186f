//! How records about entitlements, and usage that counts in them, change the state.

use super::State;
use crate::entitlement::{Entitlement, scopes_of};
use leasehold_model::body::{EntitlementPut, EntitlementScope, EntitlementWarned, UsageRefused, UsageReport};
use leasehold_model::{AppInstanceNo, Instant, Month, ProjectNo, Record, TenantNo, UnitQuantity};

type Folded = Result<(), &'static str>;

impl State {
    /// The tenant that an entitlement belongs to.
    pub(crate) fn tenant_of_entitlement(&self, of: EntitlementScope) -> Option<TenantNo> {
        match (of.project, of.app_instance) {
            (Some(project), _) => self.project(project).map(|found| found.tenant),
            (None, Some(app_instance)) => self.app_instance(app_instance).map(|found| found.tenant),
            (None, None) => None,
        }
    }

    pub(super) fn fold_entitlement(&mut self, put: &EntitlementPut) -> Folded {
        let EntitlementPut { of, soft, hard } = put.clone();
        let tenant = self.tenant_of_entitlement(of).ok_or("an entitlement of nobody")?;
        let mut months = match self.entitlements.remove(&of) {
            Some(old) => old.months,
            None => self.used_within(of),
        };
        // The limit may be another one, of which nothing was said yet.
        months.values_mut().for_each(|entitled| entitled.warned = false);
        self.entitlements.insert(of, Entitlement { tenant, of, soft, hard, months });
        Ok(())
    }

    pub(super) fn fold_entitlement_deleted(&mut self, of: EntitlementScope) -> Folded {
        self.entitlements.remove(&of).map(drop).ok_or("no such entitlement")
    }

    pub(super) fn fold_entitlement_warned(&mut self, warned: &EntitlementWarned) -> Folded {
        let entitlement = self.entitlements.get_mut(&warned.of).ok_or("no such entitlement")?;
        entitlement.months.entry(warned.month).or_default().warned = true;
        Ok(())
    }

    /// Remembers refused usage, so that it is not sealed again.
    pub(super) fn fold_usage_refused(&mut self, record: &Record, refused: &UsageRefused) -> Folded {
        record.identity.project.ok_or("usage without a project")?;
        let report = &refused.report;
        self.usage.remember_refused((report.key(), report.payload(&record.identity)), record.sequence);
        Ok(())
    }

    /// Counts billed usage in the entitlements that it falls under, or takes it away from them.
    pub(super) fn count_entitled(
        &mut self,
        project: ProjectNo,
        report: &UsageReport,
        (to, more, less): (Instant, UnitQuantity, UnitQuantity),
    ) {
        if self.entitlements.is_empty() {
            return;
        }
        for of in scopes_of(project, report) {
            if let Some(entitlement) = self.entitlements.get_mut(&of) {
                entitlement.count(Month::of(to), more.0, less.0);
            }
        }
    }

    /// The entitlements of an app instance go with it.
    pub(super) fn drop_entitlements_on(&mut self, app_instance: AppInstanceNo) {
        self.entitlements.retain(|of, _| of.app_instance != Some(app_instance));
    }

    /// The entitlements and policies of a tenant go with it, and those of others on its app instances, which are gone.
    pub(super) fn drop_limits_of(&mut self, tenant: TenantNo) {
        let instances = &self.apps.instances;
        let is_there = |app: Option<AppInstanceNo>| app.is_none_or(|app| instances.contains_key(&app));
        self.entitlements.retain(|of, found| found.tenant != tenant && is_there(of.app_instance));
        self.policies.retain(|of, _| of.tenant != Some(tenant) && is_there(of.app_instance));
        self.drop_sharing_of(tenant);
    }

    /// The entitlements of a project go with it.
    pub(super) fn drop_entitlements_of(&mut self, project: ProjectNo) {
        self.entitlements.retain(|of, _| of.project != Some(project));
    }
}
