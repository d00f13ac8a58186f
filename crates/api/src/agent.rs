//! What a node's agent says and hears.

use crate::once;
use crate::quantity::Quantity;
use crate::time::{Ttl, When};
use leasehold_model::{LeaseState, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An agent takes up its node: it says who it is and what the node has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterAgent {
    /// 32 hexadecimal digits the agent made up once and keeps: they tell it from another agent.
    pub instance: String,
    /// By class: how much the node has. Absent: as it is.
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRegistered {
    pub sequence: u64,
    pub node: String,
    pub node_id: u32,
    /// Grows with every registration. What an agent says under an older one is refused.
    pub generation: u64,
    /// How long the node may be silent before it is lost.
    pub node_timeout: Ttl,
    /// How long a teardown may take before the lease is fenced.
    pub teardown_deadline: Ttl,
}

/// How a node fares. Sealed only when it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    #[serde(default)]
    pub load: Level,
    #[serde(default)]
    pub errors: Level,
    #[serde(default)]
    pub throttled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    pub generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A lease on the node, as its agent needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeWork {
    pub lease: String,
    pub state: LeaseState,
    pub class: String,
    pub quantity: String,
    pub devices: Vec<u32>,
    /// Until when teardown must be confirmed, where it is under way.
    pub teardown_by: Option<When>,
    pub expires_at: When,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatAnswer {
    /// The newest record that the lists below know of.
    pub sequence: u64,
    /// Leases to tear down and confirm.
    pub teardown: Vec<NodeWork>,
    /// Leases that are held.
    pub held: Vec<NodeWork>,
    /// Leases that were not confirmed in time; only an operator clears them.
    pub fenced: Vec<NodeWork>,
    /// The node was released after sensitive work: it is to be wiped, and that reported, by then.
    #[serde(default)]
    pub wipe_by: Option<When>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmTeardowns {
    /// The agent's own, which an agent always names; an operator needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    pub leases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeardownsConfirmed {
    pub sequence: u64,
    pub confirmed: Vec<String>,
    /// Those that were not, with why.
    pub refused: BTreeMap<String, crate::Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DetachedAgent {
    pub sequence: u64,
    pub node: String,
}
