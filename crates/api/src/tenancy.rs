//! Tenants, projects and users.

use crate::lease::Priority;
use crate::patch::Patch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who pays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    pub id: u32,
    pub name: String,
    /// Inherited by every lease and every charge.
    pub accounting_tag: Option<String>,
    /// The highest priority it may ask for.
    pub max_priority: Priority,
    /// How much it may have evicted in an hour.
    pub max_evicted_quanta_per_hour: Option<u64>,
    /// The most distinct nodes it may hold something on.
    pub max_nodes: Option<u64>,
    /// The most leases it may hold.
    pub max_leases: Option<u64>,
    /// Leases that are not closed.
    pub live_leases: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTenant {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_tag: Option<String>,
    /// `standard` unless raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_evicted_quanta_per_hour: Option<u64>,
}

/// A change of a tenant: an absent field keeps its value, null clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub accounting_tag: Patch<String>,
    /// Null sets it back to `standard`.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_priority: Patch<Priority>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_evicted_quanta_per_hour: Patch<u64>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_nodes: Patch<u64>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub max_leases: Patch<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantPut {
    /// The sequence of the first record that sealed it.
    pub sequence: u64,
    pub tenant: Tenant,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
    /// Pass as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The anchor of a charge, within a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    pub id: u32,
    pub name: String,
    pub tenant: String,
    pub tenant_id: u32,
    pub live_leases: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    pub name: String,
    /// Needed unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectPut {
    pub sequence: u64,
    pub project: Project,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    pub projects: Vec<Project>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    pub id: u32,
    pub name: String,
    pub tenant: String,
    pub tenant_id: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    pub name: String,
    /// Needed unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserPut {
    pub sequence: u64,
    pub user: User,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserList {
    pub users: Vec<User>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
