//! Quotas.

use crate::time::{Ttl, When};
use leasehold_model::{Measure, Priority, ResourceKind};
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

/// Users or app instances that a quota counts: each one on its own, or one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holders {
    /// Each one on its own.
    Each,
    /// One of them: the name or number of a user or of an app instance.
    One(String),
}

/// An amount, or a percentage of the base limit: `120%`, `+20%` or `-10%`, in whole percent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AmountOrPercent {
    /// An amount, as in a limit.
    Amount(u64),
    /// A percentage of the base limit, which the daemon computes and rounds down.
    Percent(String),
}

impl AmountOrPercent {
    /// The amount, or the percentage and `true`.
    pub fn parse(&self) -> Result<(u64, bool), BadPercent> {
        let text = match self {
            Self::Amount(amount) => return Ok((*amount, false)),
            Self::Percent(text) => text,
        };
        let bad = || BadPercent(text.clone());
        let number = text.strip_suffix('%').ok_or_else(bad)?;
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        let percent: u64 =
            digits.parse().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit())).ok_or_else(bad)?;
        let percent = match number.as_bytes() {
            [b'+', ..] => percent.checked_add(100),
            [b'-', ..] => 100u64.checked_sub(percent),
            _ => Some(percent),
        };
        Ok((percent.ok_or_else(bad)?, true))
    }
}

/// A text that is no percentage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPercent(String);

impl std::fmt::Display for BadPercent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is not a percentage; write 120%, +20% or -10%, in whole percent", self.0)
    }
}
impl std::error::Error for BadPercent {}

/// A new limit, in amounts or in percentages of the base limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum LimitChange {
    /// Deny requests beyond the limit.
    Hard {
        /// The most that may be held.
        limit: AmountOrPercent,
    },
    /// Grant requests beyond the limit, but mark them.
    Soft {
        /// The amount beyond which grants are marked.
        limit: AmountOrPercent,
    },
    /// Allow up to `burst_limit` for `burst_ttl` at a time.
    Burst {
        /// The most that may be held outside of a burst.
        limit: AmountOrPercent,
        /// The most that may be held during a burst; at least `limit`. A percentage is of the base's burst limit.
        burst_limit: AmountOrPercent,
        /// How long a burst may last.
        burst_ttl: Ttl,
    },
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
    /// Whether it counts all higher priority classes too.
    pub and_above: bool,
    /// All classes of this kind together, in billing units; null if it is not on a kind.
    pub kind: Option<ResourceKind>,
    /// Which users it counts; null if it counts all of them together.
    pub user: Option<Holders>,
    /// Which app instances it counts; null if it counts all of them together.
    pub app_instance: Option<Holders>,
    /// What it counts.
    pub measure: Measure,
    /// The limit that applies now, and what happens beyond it.
    pub limit: Limit,
    /// When the limit ends, if it is temporary.
    pub until: Option<When>,
    /// The limit that applies again when a temporary one ends; null without a temporary limit.
    pub base_limit: Option<Limit>,
    /// Amount that counts against it now, rounded down.
    pub used: u64,
    /// The exact amount, in billing units, if the quota is on a kind: `13/7`.
    pub used_exact: Option<String>,
    /// What was held beyond a soft limit, times how long: unit-seconds, or seconds of a count. Null if no soft limit
    /// was ever set.
    pub overage: Option<String>,
    /// When the current burst began; null if there is none.
    pub burst_since: Option<When>,
    /// Whether a request that fails on this quota alone may evict leases of lower priority that it counts.
    pub evict_own_lower: bool,
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
    /// Resource class: name or number. A quota on quanta needs a class or a kind.
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
    /// Count all priority classes above `priority` too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub and_above: bool,
    /// All classes of this kind together, whatever their model. The limit is in billing units of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ResourceKind>,
    /// Count by user. Requests that name no user are then refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Holders>,
    /// Count by app instance. Requests that name no app instance are then refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<Holders>,
    /// What it counts.
    pub measure: Measure,
    /// The limit, and what happens beyond it.
    pub limit: Limit,
    /// Let a request that fails on this quota alone evict leases of lower priority that it counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evict_own_lower: bool,
}

/// Changes the limit of a quota, or whether requests may evict. Its scope cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    /// The new limit. Without it, the limits stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitChange>,
    /// Let the limit apply only until then; the base limit stays as it is and applies again afterwards. Without it,
    /// the limit becomes the base limit, and a temporary limit ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<When>,
    /// Let a request that fails on this quota alone evict leases of lower priority that it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict_own_lower: Option<bool>,
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
