//! Policies about the usage of app runtimes.

use crate::time::When;
use leasehold_model::body::Attribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy about the usage of app runtimes: for an app, for an app as a tenant uses it, or for one app instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPolicy {
    /// Slug of the app.
    pub app: String,
    /// Name of the tenant; null if it is for all tenants.
    pub tenant: Option<String>,
    /// Name of the app instance; null if it is for all.
    pub app_instance: Option<String>,
    /// Version of the policy of this scope, counted from 1.
    pub version: u32,
    /// Units that are accepted, among those of the app; null if this policy does not say.
    pub usage_units: Option<Vec<String>>,
    /// Whose the usage of a project's own runtime is; null if this policy does not say.
    pub attribution: Option<Attribution>,
    /// Units in which work on a shared runtime is charged to the project that submits it, and credited to the one that
    /// pays for the capacity; null if this policy does not say.
    pub billed_work: Option<Vec<String>>,
}

/// Sets a policy as a whole: what is absent is left to the policy of the next wider scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppPolicyChange {
    /// Slug of the app.
    pub app: String,
    /// Tenant: name or number. Absent for that of the token; an operator's is for all tenants then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// App instance of the tenant: name or number. Absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Units that are accepted, among those of the app. Absent for all that wider policies accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_units: Option<Vec<String>>,
    /// Whose the usage of a project's own runtime is: that of its owner, or of the project that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// Units in which work on a runtime that a tenant shares is charged to the project that submits it, and credited to
    /// the one that pays for the capacity. Absent for what wider policies say; without any it is only reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_work: Option<Vec<String>>,
}

/// A policy that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPolicyPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The policy as it is now.
    pub policy: AppPolicy,
}

/// One page of policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPolicyList {
    /// The policies in force, the widest scopes of each app first.
    pub policies: Vec<AppPolicy>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One version of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPolicyVersion {
    /// Sequence number of its record.
    pub sequence: u64,
    /// From when on it holds.
    pub from: When,
    /// The policy.
    pub policy: AppPolicy,
}

/// All versions of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPolicyHistory {
    /// The oldest first; the last one is in force.
    pub versions: Vec<AppPolicyVersion>,
}
