//! Requests and answers of node agents.

use crate::once;
use crate::quantity::Quantity;
use crate::time::{Ttl, When};
use leasehold_model::{LeaseState, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Registers an agent with its node: the agent identifies itself and reports the capacity of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterAgent {
    /// 32 hexadecimal digits that the agent generated once and keeps. They distinguish it from other agents.
    pub instance: String,
    /// Capacity of the node, by class. Absent keeps what is recorded.
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// Labels of the node, replacing the present ones. Absent keeps them.
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// The registration of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRegistered {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// Name of the node.
    pub node: String,
    /// Number of the node.
    pub node_id: u32,
    /// Generation of this registration. It increases with every registration, and requests with an older generation are
    /// refused.
    pub generation: u64,
    /// How long the node may send no heartbeat before it counts as lost.
    pub node_timeout: Ttl,
    /// How long a teardown may take before the capacity of the lease is fenced.
    pub teardown_deadline: Ttl,
}

/// Condition of a node. It is recorded only when it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Load of the node.
    #[serde(default)]
    pub load: Level,
    /// Level of errors on the node.
    #[serde(default)]
    pub errors: Level,
    /// Whether the hardware reports that it is throttled.
    #[serde(default)]
    pub throttled: bool,
}

/// A heartbeat of the agent of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// Generation under which the agent is registered.
    pub generation: u64,
    /// Condition of the node. Absent keeps the last one reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A lease on the node, with what its agent needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeWork {
    /// The 128-bit ID of the lease: 32 hexadecimal digits. Agents name cgroups and files after it.
    pub lease: String,
    /// The lease: `lease-` and its number.
    #[serde(default)]
    pub id: String,
    /// State of the lease.
    pub state: LeaseState,
    /// Name of the resource class.
    pub class: String,
    /// Amount in billing units.
    pub quantity: String,
    /// Indexes of the devices that the lease holds; empty for classes without devices.
    pub devices: Vec<u32>,
    /// When the teardown must be confirmed at the latest; null if none is under way.
    pub teardown_by: Option<When>,
    /// Deadline of the lease.
    pub expires_at: When,
}

/// The leases on the node, as its agent needs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatAnswer {
    /// Number of durable records that the lists below are based on.
    pub sequence: u64,
    /// Leases that the agent must tear down and confirm.
    pub teardown: Vec<NodeWork>,
    /// Leases that are held.
    pub held: Vec<NodeWork>,
    /// Leases whose teardown was not confirmed in time. Only an operator can clear the fence.
    pub fenced: Vec<NodeWork>,
    /// The node was released after sensitive work: it must be wiped, and the wipe reported, by this instant. Null if no
    /// wipe is pending.
    #[serde(default)]
    pub wipe_by: Option<When>,
}

/// Confirms that leases of a node have been torn down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmTeardowns {
    /// Generation of the agent. Agents must send it; operators leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The leases whose teardown is complete: `lease-` and the number, or the 128-bit ID.
    pub leases: Vec<String>,
}

/// The result of confirming teardowns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeardownsConfirmed {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The leases whose teardown was confirmed, written as in the request.
    pub confirmed: Vec<String>,
    /// The leases whose confirmation was refused, written as in the request, with the problem of each.
    pub refused: BTreeMap<String, crate::Problem>,
}

/// The node whose agent was detached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DetachedAgent {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// Name of the node.
    pub node: String,
}
