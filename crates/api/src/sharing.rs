//! How the cost of control planes is shared.

use crate::ledger::MonthText;
use crate::time::When;
use leasehold_model::body::{SharedAs, SharingMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The percentage of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareWeight {
    /// Tenant of the project: name or number. Absent for the tenant of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number.
    pub project: String,
    /// Percentage, with up to nine decimals. All of them add up to 100.
    pub percent: crate::UnitQuantityText,
}

/// A service tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceTier {
    /// Name of the tier.
    pub name: String,
    /// What its projects bear in proportion to those of other tiers.
    pub weight: crate::UnitQuantityText,
}

/// The service tier of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierOfProject {
    /// Tenant of the project: name or number. Absent for the tenant of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number.
    pub project: String,
    /// Name of its tier.
    pub tier: String,
}

/// How the cost of a control plane is divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    /// How it is divided: not `not_billable`, which is what shares say if the control plane is not billable.
    pub method: SharingMethod,
    /// Whether the shares are booked, or only recorded.
    pub result: SharedAs,
    /// Usage unit, for `by_usage` and `by_quota`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unit: Option<String>,
    /// Percentages, for `fixed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<ShareWeight>,
    /// Tiers, for `by_tier`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<ServiceTier>,
    /// Tiers of projects, for `by_tier`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<TierOfProject>,
    /// Tier of all other projects, for `by_tier`. Without one they take no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_tier: Option<String>,
}

/// A sharing policy: for an app, for an app as a tenant uses it, or for one app instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharingPolicy {
    /// Slug of the app.
    pub app: String,
    /// Name of the tenant; null if it is for all tenants.
    pub tenant: Option<String>,
    /// Name of the app instance; null if it is for all.
    pub app_instance: Option<String>,
    /// Version of the policy of this scope, counted from 1.
    pub version: u32,
    /// Whether the control plane is billed at all; null if this policy does not say.
    pub control_plane_billable: Option<bool>,
    /// Whether its cost may be divided; null if this policy does not say.
    pub distributable: Option<bool>,
    /// How it is divided; null if this policy does not say.
    pub sharing: Option<Sharing>,
}

/// Sets a sharing policy as a whole: what is absent is left to the policy of the next wider scope. Only operators set
/// `control_plane_billable` and `distributable`; what they have set stays when a tenant sets the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharingChange {
    /// Slug of the app.
    pub app: String,
    /// Tenant: name or number. Absent for that of the token; an operator's is for all tenants then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// App instance of the tenant: name or number. Absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Whether the control plane is billed at all. If not, the operator bears its cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_billable: Option<bool>,
    /// Whether its cost may be divided among projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributable: Option<bool>,
    /// How it is divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

/// A sharing policy that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharingPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The policy as it is now.
    pub policy: SharingPolicy,
}

/// One page of sharing policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharingList {
    /// The policies in force, the widest scopes of each app first.
    pub policies: Vec<SharingPolicy>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One version of a sharing policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharingVersion {
    /// Sequence number of its record.
    pub sequence: u64,
    /// From when on it holds.
    pub from: When,
    /// The policy.
    pub policy: SharingPolicy,
}

/// All versions of a sharing policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharingHistory {
    /// The oldest first; the last one is in force.
    pub versions: Vec<SharingVersion>,
}

/// What a project bears of the cost of a control plane in a month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostShare {
    /// Sequence number of its record; null for a draft.
    pub sequence: Option<u64>,
    /// The entry that books it; null if it is a draft or a report, or if nothing is booked.
    pub entry: Option<String>,
    /// Name of the app instance.
    pub app_instance: String,
    /// Number of the app instance.
    pub app_instance_id: u64,
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the project.
    pub project: String,
    /// Number of the project.
    pub project_id: u32,
    /// Whether the project owns the app instance, and was charged for the control plane.
    pub owner: bool,
    /// Month of the cost.
    pub month: MonthText,
    /// Currency.
    pub currency: String,
    /// How the cost is divided.
    pub method: SharingMethod,
    /// App of the policy that decides.
    pub policy_app: String,
    /// Tenant of that policy; null if it is for all tenants.
    pub policy_tenant: Option<String>,
    /// App instance of that policy; null if it is for all.
    pub policy_app_instance: Option<String>,
    /// Version of that policy.
    pub policy_version: u32,
    /// Usage unit whose usage or limits decide; null if none does.
    pub usage_unit: Option<String>,
    /// Service tier of the project; null if none decides.
    pub tier: Option<String>,
    /// What the share is in proportion to: units, percent, or the weight of the tier.
    pub weight: String,
    /// The sum of all weights.
    pub total_weight: String,
    /// What the control plane cost.
    pub pool: String,
    /// What of it falls to the project.
    pub share: String,
    /// What is booked as a debit of the project: its share, or for the owner less what others bear.
    pub booked: String,
}

/// The shares of a month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostShareList {
    /// The month.
    pub month: MonthText,
    /// Whether it is what the shares would be if the month were closed now.
    pub draft: bool,
    /// In order of app instance, project and currency.
    pub shares: Vec<CostShare>,
}
