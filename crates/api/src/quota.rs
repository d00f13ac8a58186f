//! Limits on what a tenant may hold.

use crate::time::{Ttl, When};
use leasehold_model::{Measure, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which nodes a quota looks at: all of them together, each on its own, or one by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    #[default]
    All,
    Each,
    One(String),
}

/// How strictly a quota holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// Refuse at once.
    Hard { limit: u64 },
    /// Admit, mark and count.
    Soft { limit: u64 },
    /// Up to `burst_limit` for one episode of `burst_ttl`.
    Burst { limit: u64, burst_limit: u64, burst_ttl: Ttl },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quota {
    pub id: u32,
    pub tenant: String,
    pub project: Option<String>,
    pub class: Option<String>,
    pub pool: Option<String>,
    pub nodes: Nodes,
    pub priority: Option<Priority>,
    pub measure: Measure,
    pub limit: Limit,
    /// What counts against it now.
    pub used: u64,
    /// When the running burst episode began, if one runs.
    pub burst_since: Option<When>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQuota {
    pub tenant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Needed where quanta are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// `all` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    pub measure: Measure,
    pub limit: Limit,
}

/// A quota's limit changes; what it applies to does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaPut {
    pub sequence: u64,
    pub quota: Quota,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaList {
    pub quotas: Vec<Quota>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
