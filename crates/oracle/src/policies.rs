//! Policies about the usage of app runtimes (SEMANTICS 13, "Policies").

use crate::apps::{those, unless};
use crate::foretell::{Caller, Told, sealed};
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::body::{AppInstancePut, AppPolicyPut, Attribution, PolicyScope};
use leasehold_model::{ControlPlaneScope, Record, TenantNo, UnitList, UnitNo};

/// A policy to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWish {
    pub of: PolicyScope,
    pub units: Option<UnitList>,
    pub attribution: Option<Attribution>,
    pub billed_work: Option<UnitList>,
}

impl World {
    /// The policies for what a tenant uses of an instance, the narrowest first.
    fn policies_about(&self, instance: &AppInstancePut, tenant: TenantNo) -> Vec<&AppPolicyPut> {
        let number = instance.app_instance;
        let of_instance = self.policies.values().find(|put| put.of.app_instance == Some(number));
        let of_app = |tenant: Option<TenantNo>| {
            self.policies.get(&PolicyScope { app_type: instance.app_type, tenant, app_instance: None })
        };
        [of_instance, of_app(Some(tenant)), of_app(None)].into_iter().flatten().collect()
    }

    /// Whether no policy excludes a unit.
    pub(crate) fn is_unit_accepted(&self, instance: &AppInstancePut, tenant: TenantNo, unit: UnitNo) -> bool {
        let excludes = |put: &&AppPolicyPut| put.units.as_ref().is_some_and(|units| !units.contains(unit));
        !self.policies_about(instance, tenant).iter().any(excludes)
    }

    /// Whether the usage of a project's own runtime is that of the project that asked for it.
    pub(crate) fn is_of_caller(&self, instance: &AppInstancePut, tenant: TenantNo) -> bool {
        let said = self.policies_about(instance, tenant).into_iter().find_map(|put| put.attribution);
        said == Some(Attribution::Caller)
    }

    /// Whether work in a unit of a runtime that a tenant shares is charged: by the narrowest policy that says anything.
    pub(crate) fn is_work_billed(&self, instance: &AppInstancePut, tenant: TenantNo, unit: UnitNo) -> bool {
        let said = self.policies_about(instance, tenant).into_iter().find_map(|put| put.billed_work.as_ref());
        said.is_some_and(|units| units.contains(unit))
    }

    fn faults_of_policy(&self, wish: &PolicyWish) -> Vec<&'static str> {
        let of = &wish.of;
        let app = self.apps.types.get(&of.app_type);
        let instance = of.app_instance.map(|number| self.apps.instances.get(&number));
        // The instance is one of the tenant, and of the app.
        let fits = |found: &(TenantNo, AppInstancePut)| Some(found.0) == of.tenant && found.1.app_type == of.app_type;
        let is_shared = |found: &(TenantNo, AppInstancePut)| found.1.scope != ControlPlaneScope::Project;
        // That usage of a shared runtime is not the caller's can be said, because it changes nothing.
        let of_caller = wish.attribution == Some(Attribution::Caller);
        let units = || wish.units.iter().chain(&wish.billed_work).flat_map(UnitList::iter);
        let is_not_of_tenant = |found: &(TenantNo, AppInstancePut)| found.1.scope != ControlPlaneScope::Tenant;
        let bills_work = wish.billed_work.is_some();
        those(&[
            (app.is_none(), "unknown_app"),
            (of.tenant.is_some_and(|tenant| !self.tenants.contains_key(&tenant)), "unknown_tenant"),
            (instance.is_some_and(|found| !found.is_some_and(fits)), "unknown_app_instance"),
            (app.is_some_and(|app| units().any(|unit| !app.units.contains(unit))), "unit_not_enabled"),
            (units().any(|unit| !self.unit_exists(unit)), "unknown_usage_unit"),
            (of_caller && instance.flatten().is_some_and(is_shared), "attribution_fixed"),
            (bills_work && instance.flatten().is_some_and(is_not_of_tenant), "work_is_billed"),
        ])
    }

    fn next_policy(&self, wish: &PolicyWish) -> AppPolicyPut {
        let PolicyWish { of, units, attribution, billed_work } = wish.clone();
        let version = self.policies.get(&of).map_or(0, |old| old.version) + 1;
        AppPolicyPut { of, version, units, attribution, billed_work }
    }

    pub(crate) fn app_policy_put(&mut self, record: &Record, put: &AppPolicyPut) -> Checked {
        let AppPolicyPut { of, units, attribution, billed_work, .. } = put.clone();
        let wish = PolicyWish { of, units, attribution, billed_work };
        let faults = self.faults_of_policy(&wish);
        demand!(faults.is_empty(), "app-policy", "must be refused: {faults:?}");
        let expected = self.next_policy(&wish);
        demand!(*put == expected, "app-policy", "{put:?} instead of {expected:?}");
        demand!(record.identity.tenant == put.of.tenant, "app-policy", "it is of {:?}", put.of.tenant);
        self.policies.insert(put.of, put.clone());
        Ok(())
    }

    pub(crate) fn foretell_app_policy(&self, caller: &Caller, wish: &PolicyWish) -> Told {
        let of = &wish.of;
        let mut faults = self.faults_of_policy(wish);
        if let Some(own) = caller.tenant {
            let foreign = of.tenant.is_some_and(|tenant| tenant != own);
            faults.extend(those(&[
                (of.tenant.is_none(), "policy_by_operator"),
                (foreign, "unknown_tenant"),
                (foreign && of.app_instance.is_some(), "unknown_app_instance"),
            ]));
        }
        unless(faults, || sealed(of.tenant, self.next_policy(wish)))
    }

    /// Policies go with their apps, tenants and instances.
    pub(crate) fn drop_policies(&mut self) {
        let (apps, tenants) = (&self.apps, &self.tenants);
        let is_left = |of: &PolicyScope| {
            apps.types.contains_key(&of.app_type)
                && of.tenant.is_none_or(|tenant| tenants.contains_key(&tenant))
                && of.app_instance.is_none_or(|app| apps.instances.contains_key(&app))
        };
        self.policies.retain(|of, _| is_left(of));
        self.sharing.retain(|of, _| is_left(of));
    }
}
