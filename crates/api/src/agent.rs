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
    /// Labels of the node, replacing those it has. Absent keeps them.
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRegistered {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// Name of the node.
    pub node: String,
    /// Number of the node.
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
    /// How high the load of the node is.
    #[serde(default)]
    pub load: Level,
    /// How many errors the node reports.
    #[serde(default)]
    pub errors: Level,
    /// Whether the hardware reports that it is throttled.
    #[serde(default)]
    pub throttled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// Generation under which the agent is registered.
    pub generation: u64,
    /// Condition of the node. Absent keeps the last one reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A lease on the node, as its agent needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeWork {
    /// ID of the lease: 32 hexadecimal digits.
    pub lease: String,
    /// State of the lease.
    pub state: LeaseState,
    /// Name of the resource class.
    pub class: String,
    /// Amount in billing units.
    pub quantity: String,
    /// Indexes of the devices that the lease holds; empty for classes without devices.
    pub devices: Vec<u32>,
    /// Until when teardown must be confirmed, where it is under way.
    pub teardown_by: Option<When>,
    /// Deadline of the lease.
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
    /// IDs of the leases that are torn down.
    pub leases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeardownsConfirmed {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// IDs of the leases whose teardown was confirmed.
    pub confirmed: Vec<String>,
    /// Those that were not, with why.
    pub refused: BTreeMap<String, crate::Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DetachedAgent {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// Name of the node.
    pub node: String,
}
