//! Quotas.

use crate::time::{Ttl, When};
use leasehold_model::{Measure, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes that a quota counts: all nodes together, each node on its own, or one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    #[default]
    /// All nodes together.
    All,
    /// Each node on its own.
    Each,
    /// One node: its name or number.
    One(String),
}

/// Kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// Deny requests beyond the limit.
    Hard {
        /// The most that may be held.
        limit: u64,
    },
    /// Grant requests beyond the limit, but mark them.
    Soft {
        /// The amount beyond which grants are marked.
        limit: u64,
    },
    /// Allow up to `burst_limit` for `burst_ttl` at a time.
    Burst {
        /// The most that may be held outside of a burst.
        limit: u64,
        /// The most that may be held during a burst; at least `limit`.
        burst_limit: u64,
        /// How long a burst may last.
        burst_ttl: Ttl,
    },
}

/// A limit on what a tenant may hold, and its current use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quota {
    /// Number of the quota.
    pub id: u32,
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the project; null if it counts all projects.
    pub project: Option<String>,
    /// Name of the resource class; null if it counts all classes.
    pub class: Option<String>,
    /// Name of the pool; null if it counts all pools.
    pub pool: Option<String>,
    /// Which nodes it counts.
    pub nodes: Nodes,
    /// Only this priority class; null if it counts all of them.
    pub priority: Option<Priority>,
    /// What it counts.
    pub measure: Measure,
    /// The limit, and what happens beyond it.
    pub limit: Limit,
    /// Amount that counts against it now.
    pub used: u64,
    /// When the current burst began; null if there is none.
    pub burst_since: Option<When>,
}

/// Creates a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQuota {
    /// Tenant: name or number.
    pub tenant: String,
    /// Project: name or number. All projects unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Resource class: name or number. Required if the measure is quanta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Pool: name or number. All pools unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Nodes that it counts. `all` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Only this priority class. All of them unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What it counts.
    pub measure: Measure,
    /// The limit, and what happens beyond it.
    pub limit: Limit,
}

/// Changes the limit of a quota. Its scope cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    /// The new limit.
    pub limit: Limit,
}

/// A quota that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The quota as it is now.
    pub quota: Quota,
}

/// One page of quotas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaList {
    /// Quotas in order of their numbers.
    pub quotas: Vec<Quota>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
