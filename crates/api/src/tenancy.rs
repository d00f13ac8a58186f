//! Tenants, projects and users.

use crate::patch::Patch;
use crate::rate::Decimal;
use crate::time::When;
use leasehold_model::Priority;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who pays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// Number of the tenant.
    pub id: u32,
    /// Name of the tenant; unique.
    pub name: String,
    /// Inherited by every lease and every charge.
    pub accounting_tag: Option<String>,
    /// Whom to write to or call about this tenant.
    pub contact: Option<String>,
    /// The highest priority it may ask for.
    pub max_priority: Priority,
    /// How much it may have evicted in an hour.
    pub max_evicted_quanta_per_hour: Option<u64>,
    /// The most distinct nodes it may hold something on.
    pub max_nodes: Option<u64>,
    /// The most leases it may hold.
    pub max_leases: Option<u64>,
    /// The most allocations that may hold capacity at once.
    pub max_concurrent_allocations: Option<u64>,
    /// GPU hours that it may use within `budget_period_days` before it waits longer.
    pub gpu_hours_budget: Option<u64>,
    /// Node hours likewise: an hour on a node counts once, however much is held there.
    pub node_hours_budget: Option<u64>,
    /// The rolling window of the budgets.
    pub budget_period_days: u32,
    /// The share of all GPU time that it is meant to have, between 0 and 1.
    pub fair_share_target: Option<Decimal>,
    /// GPU hours beyond the budget that are not held against it.
    pub burst_allowance: Option<u64>,
    /// The most allocations that may wait.
    pub max_pending: Option<u64>,
    /// Leases that are not closed.
    pub live_leases: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTenant {
    /// Name of the tenant; unique.
    pub name: String,
    /// Tag that every lease and every charge inherits. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_tag: Option<String>,
    /// Whom to write to or call about this tenant, such as an email address. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// `standard` unless raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_priority: Option<Priority>,
    /// How many quanta it may have evicted in an hour. No limit unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_evicted_quanta_per_hour: Option<u64>,
}

/// A change of a tenant: an absent field keeps its value, null clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChange {
    /// New name. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tag that every lease and every charge inherits. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub accounting_tag: Patch<String>,
    /// Whom to write to or call about this tenant, such as an email address. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub contact: Patch<String>,
    /// Null sets it back to `standard`.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_priority: Patch<Priority>,
    /// How many quanta it may have evicted in an hour. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_evicted_quanta_per_hour: Patch<u64>,
    /// The most distinct nodes on which it may hold something. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_nodes: Patch<u64>,
    /// The most leases that it may hold. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_leases: Patch<u64>,
    /// The most allocations that may hold capacity at once. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_concurrent_allocations: Patch<u64>,
    /// GPU hours that it may use within `budget_period_days` before it waits longer. Absent keeps it, null removes the
    /// budget.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub gpu_hours_budget: Patch<u64>,
    /// Node hours that it may use within `budget_period_days` before it waits longer. Absent keeps it, null removes the
    /// budget.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub node_hours_budget: Patch<u64>,
    /// Null sets it back to 90.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub budget_period_days: Patch<u64>,
    /// Up to three decimals.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub fair_share_target: Patch<Decimal>,
    /// GPU hours beyond the budget that are not held against it. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub burst_allowance: Patch<u64>,
    /// The most allocations that may wait. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_pending: Patch<u64>,
}

/// What was used of a budget, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetUse {
    /// Hours, as a decimal number of nine decimals, rounded half to even.
    pub used: String,
    /// The same without rounding: a fraction in lowest terms.
    pub exact: String,
    /// The budget in hours; null if there is none.
    pub budget: Option<u64>,
    /// Used of budget, with six decimals; absent where there is no budget.
    pub fraction: Option<String>,
}

/// What a tenant used over the last days, as the queue sees it: as of the last whole minute, in a window that begins
/// on a whole hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantUsage {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Length of the window in days.
    pub days: u32,
    /// First instant of the window.
    pub from: When,
    /// First instant after the window.
    pub to: When,
    /// GPU hours.
    pub gpu_hours: BudgetUse,
    /// Node hours: an hour on a node counts once, however much is held there.
    pub node_hours: BudgetUse,
    /// The window that the budgets are for; `factor` and `fair_share_deficit` are of that one.
    pub budget_period_days: u32,
    /// By how much it is held back: 1 up to 80 % of the budget, falling to 0.05 at 120 %.
    pub factor: String,
    /// The share of all GPU time that it is meant to have, between 0 and 1; null if none is set.
    pub fair_share_target: Option<Decimal>,
    /// How far it is below its fair share; negative where it is above.
    pub fair_share_deficit: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantPut {
    /// The sequence of the first record that sealed it.
    pub sequence: u64,
    /// The tenant as it is now.
    pub tenant: Tenant,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantList {
    /// Tenants in order of their numbers.
    pub tenants: Vec<Tenant>,
    /// Pass as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The anchor of a charge, within a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Number of the project.
    pub id: u32,
    /// Name of the project; unique within its tenant.
    pub name: String,
    /// Name of its tenant.
    pub tenant: String,
    /// Number of its tenant.
    pub tenant_id: u32,
    /// Number of leases that are not closed.
    pub live_leases: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Name of the project; unique within its tenant.
    pub name: String,
    /// Needed unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    /// The new name.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The project as it is now.
    pub project: Project,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    /// Projects in order of their numbers.
    pub projects: Vec<Project>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Number of the user.
    pub id: u32,
    /// Name of the user; unique within its tenant.
    pub name: String,
    /// Name of its tenant.
    pub tenant: String,
    /// Number of its tenant.
    pub tenant_id: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Name of the user; unique within its tenant.
    pub name: String,
    /// Needed unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// The new name.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The user as it is now.
    pub user: User,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserList {
    /// Users in order of their numbers.
    pub users: Vec<User>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
