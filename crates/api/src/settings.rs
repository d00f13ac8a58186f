//! The engine's own limits. They are sealed: a replay decides by the same ones.

use crate::patch::Patch;
use crate::time::Ttl;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// The longest TTL where a pool sets none.
    pub ttl_max: Ttl,
    /// The grace of a revocation where neither it nor the pool says.
    pub grace_default: Ttl,
    /// How long a node has to confirm a teardown.
    pub teardown_deadline: Ttl,
    /// How long a node may be silent.
    pub node_timeout: Ttl,
    /// How long an idempotency key is remembered.
    pub idempotency_window: Ttl,
    /// In what time a node's heat halves.
    pub heat_half_life: Ttl,
    /// How many nodes may be claimed or being wiped, in all; no limit where there is none.
    pub sensitive_pool_size: Option<u64>,
}

/// A change of settings: an absent field keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// Longest TTL where a pool sets none. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_max: Option<Ttl>,
    /// Grace of a revocation where neither it nor the pool sets one. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_default: Option<Ttl>,
    /// How long a node has to confirm a teardown. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown_deadline: Option<Ttl>,
    /// How long a node may be silent before it counts as lost. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_timeout: Option<Ttl>,
    /// How long an idempotency key is remembered. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_window: Option<Ttl>,
    /// Time in which a node's heat halves. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat_half_life: Option<Ttl>,
    /// Null: no limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub sensitive_pool_size: Patch<u64>,
}
