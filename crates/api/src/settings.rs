//! Settings of the engine. They are recorded in the journal, so that a replay uses the same values.

use crate::patch::Patch;
use crate::time::Ttl;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Longest TTL in pools that set none.
    pub ttl_max: Ttl,
    /// Grace of revocations if neither the revocation nor the pool sets one.
    pub grace_default: Ttl,
    /// How long a node has to confirm a teardown.
    pub teardown_deadline: Ttl,
    /// How long a node may send no heartbeat before it counts as lost.
    pub node_timeout: Ttl,
    /// How long an idempotency key is remembered.
    pub idempotency_window: Ttl,
    /// Time in which the heat of a node halves.
    pub heat_half_life: Ttl,
    /// The most nodes that may be claimed or being wiped at the same time; null for no limit.
    pub sensitive_pool_size: Option<u64>,
    /// How long the head of a line waits before it is protected.
    pub head_wait_max: Ttl,
}

/// Changes settings. An absent field keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// Longest TTL in pools that set none. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_max: Option<Ttl>,
    /// Grace of revocations if neither the revocation nor the pool sets one. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_default: Option<Ttl>,
    /// How long a node has to confirm a teardown. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown_deadline: Option<Ttl>,
    /// How long a node may send no heartbeat before it counts as lost. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_timeout: Option<Ttl>,
    /// How long an idempotency key is remembered. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_window: Option<Ttl>,
    /// Time in which the heat of a node halves. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat_half_life: Option<Ttl>,
    /// The most nodes that may be claimed or being wiped at the same time. Absent keeps it, null removes the limit.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub sensitive_pool_size: Patch<u64>,
    /// How long the head of a line waits before it is protected. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_wait_max: Option<Ttl>,
}
