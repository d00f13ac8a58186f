//! Policies about the usage of app runtimes: for an app, for an app as a tenant uses it, and for one app instance
//! (SEMANTICS 9). What a narrow one leaves open, the next wider one says.

use crate::apps::AppInstance;
use crate::state::State;
use leasehold_model::body::{AppPolicyPut, Attribution, PolicyScope};
use leasehold_model::{TenantNo, UnitNo};
use std::collections::BTreeMap;

/// The policies in force.
pub(crate) type Policies = BTreeMap<PolicyScope, AppPolicyPut>;

impl State {
    pub fn app_policy(&self, of: PolicyScope) -> Option<&AppPolicyPut> {
        self.policies.get(&of)
    }
    /// All policies in force, in order of their scopes.
    pub fn app_policies(&self) -> impl Iterator<Item = &AppPolicyPut> {
        self.policies.values()
    }

    /// The policies for usage that a tenant has of an app instance, the narrowest first.
    pub fn policies_for(&self, instance: &AppInstance, tenant: TenantNo) -> impl Iterator<Item = &AppPolicyPut> {
        let app_type = instance.app_type;
        let scopes = [
            PolicyScope { app_type, tenant: Some(instance.tenant), app_instance: Some(instance.number) },
            PolicyScope { app_type, tenant: Some(tenant), app_instance: None },
            PolicyScope { app_type, tenant: None, app_instance: None },
        ];
        scopes.into_iter().filter_map(|of| self.policies.get(&of))
    }

    /// Whether usage in a unit is accepted: each policy can only take units away.
    pub(crate) fn accepts_unit(&self, instance: &AppInstance, tenant: TenantNo, unit: UnitNo) -> bool {
        self.policies_for(instance, tenant).all(|policy| policy.units.as_ref().is_none_or(|units| units.contains(unit)))
    }

    /// Whether work in a unit on a shared runtime is charged to the project that submits it.
    pub(crate) fn bills_work(&self, instance: &AppInstance, unit: UnitNo) -> bool {
        let said = self.policies_for(instance, instance.tenant).find_map(|policy| policy.billed_work.as_ref());
        said.is_some_and(|units| units.contains(unit))
    }

    /// Whose the usage of a project's own runtime is.
    pub fn attribution_for(&self, instance: &AppInstance) -> Attribution {
        let said = self.policies_for(instance, instance.tenant).find_map(|policy| policy.attribution);
        said.unwrap_or(Attribution::Owner)
    }
}
