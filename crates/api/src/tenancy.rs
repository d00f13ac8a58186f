//! Tenants, projects and users.

use crate::patch::Patch;
use crate::rate::Decimal;
use crate::time::When;
use leasehold_model::{PoolAccess, Priority, WhenOverQuota};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tenant: who pays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// Number of the tenant.
    pub id: u32,
    /// Name of the tenant; unique.
    pub name: String,
    /// Tag that every lease and every charge inherits; null if there is none.
    pub accounting_tag: Option<String>,
    /// Contact for this tenant, such as an email address; null if there is none.
    pub contact: Option<String>,
    /// Address for invoices, line by line; empty if none is set.
    #[serde(default)]
    pub billing_address: Vec<String>,
    /// Number with the tax authority, printed on invoices; null if none is set.
    #[serde(default)]
    pub tax_id: Option<String>,
    /// What becomes of allocations that would exceed a quota and do not say it themselves.
    #[serde(default)]
    pub when_over_quota: WhenOverQuota,
    /// The highest priority that it may request.
    pub max_priority: Priority,
    /// The most quanta that may be evicted on its behalf in one hour; null for no limit.
    pub max_evicted_quanta_per_hour: Option<u64>,
    /// The most distinct nodes on which it may hold leases; null for no limit.
    pub max_nodes: Option<u64>,
    /// The most leases that it may hold; null for no limit.
    pub max_leases: Option<u64>,
    /// The most allocations that may hold capacity at the same time; null for no limit.
    pub max_concurrent_allocations: Option<u64>,
    /// GPU hours that it may use within `budget_period_days` before it ranks lower in the queue; null for no budget.
    pub gpu_hours_budget: Option<u64>,
    /// Node hours that it may use within `budget_period_days` before it ranks lower in the queue; null for no budget.
    /// An hour on a node counts once, regardless of how much is held there.
    pub node_hours_budget: Option<u64>,
    /// Length of the rolling window of the budgets, in days.
    pub budget_period_days: u32,
    /// Share of all GPU time that it should have, between 0 and 1; null if none is set.
    pub fair_share_target: Option<Decimal>,
    /// GPU hours beyond the budget that do not lower its rank; null if there are none.
    pub burst_allowance: Option<u64>,
    /// The most allocations that may wait; null for no limit.
    pub max_pending: Option<u64>,
    /// Number of leases that are not closed.
    pub live_leases: u32,
}

/// Creates a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTenant {
    /// Name of the tenant; unique.
    pub name: String,
    /// Tag that every lease and every charge inherits. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_tag: Option<String>,
    /// Contact for this tenant, such as an email address. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Address for invoices, line by line; at most 8 lines. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_address: Option<Vec<String>>,
    /// Number with the tax authority, printed on invoices. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tax_id: Option<String>,
    /// What becomes of allocations that would exceed a quota and do not say it themselves. `refuse` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_over_quota: Option<WhenOverQuota>,
    /// The highest priority that it may request. `standard` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_priority: Option<Priority>,
    /// The most quanta that may be evicted on its behalf in one hour. No limit unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_evicted_quanta_per_hour: Option<u64>,
}

/// Changes a tenant: an absent field keeps its value, null clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChange {
    /// New name. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tag that every lease and every charge inherits. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub accounting_tag: Patch<String>,
    /// Contact for this tenant. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub contact: Patch<String>,
    /// Address for invoices, line by line; at most 8 lines. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub billing_address: Patch<Vec<String>>,
    /// Number with the tax authority, printed on invoices. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub tax_id: Patch<String>,
    /// What becomes of allocations that would exceed a quota and do not say it themselves; null returns to `refuse`.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub when_over_quota: Patch<WhenOverQuota>,
    /// The highest priority that it may request. Absent keeps it, null sets it back to `standard`.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_priority: Patch<Priority>,
    /// The most quanta that may be evicted on its behalf in one hour. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_evicted_quanta_per_hour: Patch<u64>,
    /// The most distinct nodes on which it may hold leases. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_nodes: Patch<u64>,
    /// The most leases that it may hold. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_leases: Patch<u64>,
    /// The most allocations that may hold capacity at the same time. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_concurrent_allocations: Patch<u64>,
    /// GPU hours that it may use within `budget_period_days` before it ranks lower in the queue. Absent keeps it, null
    /// removes the budget.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub gpu_hours_budget: Patch<u64>,
    /// Node hours that it may use within `budget_period_days` before it ranks lower in the queue. Absent keeps it, null
    /// removes the budget.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub node_hours_budget: Patch<u64>,
    /// Length of the rolling window of the budgets, in days. Absent keeps it, null sets it back to 90.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub budget_period_days: Patch<u64>,
    /// Share of all GPU time that it should have, between 0 and 1, with up to three decimals. Absent keeps it, null
    /// removes it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub fair_share_target: Patch<Decimal>,
    /// GPU hours beyond the budget that do not lower its rank. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub burst_allowance: Patch<u64>,
    /// The most allocations that may wait. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_pending: Patch<u64>,
}

/// Use of a budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetUse {
    /// Hours used, with nine decimals, rounded half to even.
    pub used: String,
    /// The same number without rounding: a fraction in lowest terms.
    pub exact: String,
    /// The budget in hours; null if there is none.
    pub budget: Option<u64>,
    /// Used part of the budget, with six decimals; null if there is no budget.
    pub fraction: Option<String>,
}

/// Budget use of a tenant as the queue counts it: up to the last whole minute, in a window that begins at a whole hour.
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
    /// Node hours: an hour on a node counts once, regardless of how much is held there.
    pub node_hours: BudgetUse,
    /// GPU hours beyond the budget that `factor` tolerates; null if none are set.
    pub burst_allowance: Option<u64>,
    /// Length of the window of the budgets, in days; `factor` and `fair_share_deficit` refer to it.
    pub budget_period_days: u32,
    /// Factor on the tenant's rank in the queue: 1 up to 80 % of the budget, falling to 0.05 at 120 %. The GPU budget
    /// counts together with `burst_allowance`.
    pub factor: String,
    /// Share of all GPU time that it should have, between 0 and 1; null if none is set.
    pub fair_share_target: Option<Decimal>,
    /// How far it is below its fair share; negative if it is above.
    pub fair_share_deficit: String,
}

/// A tenant that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantPut {
    /// Sequence number of the first record that sealed this.
    pub sequence: u64,
    /// The tenant as it is now.
    pub tenant: Tenant,
}

/// One page of tenants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantList {
    /// Tenants in order of their numbers.
    pub tenants: Vec<Tenant>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A project: the part of a tenant that a charge belongs to.
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
    /// The pools to which its work is not admitted as that of others. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool_access: Vec<ProjectPoolAccess>,
}

/// How the work of a project is admitted to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectPoolAccess {
    /// Name of the pool.
    pub pool: String,
    /// `deprioritised`: it waits behind the work of others of the same priority. `paused`: nothing new is admitted.
    pub access: PoolAccess,
}

/// Sets how the work of a project is admitted to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolAccessChange {
    /// Pool: name or number.
    pub pool: String,
    /// `normal`: as that of others. `deprioritised`: it waits behind the work of others of the same priority. `paused`:
    /// nothing new is admitted.
    pub access: PoolAccess,
}

/// Creates a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Name of the project; unique within its tenant.
    pub name: String,
    /// Tenant: name or number. Required unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Renames a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    /// The new name.
    pub name: String,
}

/// A project that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The project as it is now.
    pub project: Project,
}

/// One page of projects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    /// Projects in order of their numbers.
    pub projects: Vec<Project>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A user of a tenant.
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

/// Creates a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Name of the user; unique within its tenant.
    pub name: String,
    /// Tenant: name or number. Required unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Renames a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// The new name.
    pub name: String,
}

/// A user that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The user as it is now.
    pub user: User,
}

/// One page of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserList {
    /// Users in order of their numbers.
    pub users: Vec<User>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
