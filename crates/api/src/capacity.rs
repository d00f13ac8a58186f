//! Classes, pools and nodes.

use crate::agent::Condition;
use crate::claim::Custody;
use crate::once;
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::time::{Ttl, When};
use crate::weights::Weights;
use leasehold_model::{ResourceKind as Kind, Strategy, TeardownMode as Teardown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What can be leased, and in which pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Class {
    pub id: u32,
    pub name: String,
    pub kind: Kind,
    /// The tier or model: `h100`, `dram`, `cxl`, `rdma`.
    pub tier: Option<String>,
    /// How many of the smallest leasable pieces make one billing unit.
    pub quanta_per_unit: u64,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Idle capacity of a premium class counts as premium waste.
    pub premium: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClass {
    pub name: String,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Unless given: 1 for GPUs, 1000 for cores, 1024 for memory, 1 for block, 1000 for network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_per_unit: Option<u64>,
    #[serde(default)]
    pub premium: bool,
}

/// A change of a class. `kind` and `quanta_per_unit` are fixed once it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub tier: Patch<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_per_unit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub premium: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPut {
    pub sequence: u64,
    pub class: Class,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassList {
    pub classes: Vec<Class>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A length of time for each priority; none where there is no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpansByPriority {
    #[serde(default)]
    pub scavenger: Option<Ttl>,
    #[serde(default)]
    pub standard: Option<Ttl>,
    #[serde(default)]
    pub guaranteed: Option<Ttl>,
}

/// A set of nodes with one placement strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    pub id: u32,
    pub name: String,
    pub strategy: Strategy,
    /// The longest TTL per priority.
    pub ttl_max: SpansByPriority,
    /// The longest life with renewals, per priority.
    pub lifetime_max: SpansByPriority,
    /// How long a revoked holder has to get ready, where the revocation does not say.
    pub grace: Option<Ttl>,
    /// By which its nodes are chosen, where not by its strategy's.
    pub weights: Option<Weights>,
    pub nodes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    pub name: String,
    /// `spread` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_max: Option<SpansByPriority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_max: Option<SpansByPriority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
    /// Instead of the strategy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
}

/// A change of a pool: an absent field keeps its value, null clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub ttl_max: Patch<SpansByPriority>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub lifetime_max: Patch<SpansByPriority>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub grace: Patch<Ttl>,
    /// Instead of the strategy's; null goes back to those.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub weights: Patch<Weights>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolPut {
    pub sequence: u64,
    pub pool: Pool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolList {
    pub pools: Vec<Pool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One class on one node, in quanta. The six parts add up to the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCapacity {
    pub class: String,
    /// The capacity in billing units.
    pub quantity: String,
    pub quanta: u64,
    pub held: u64,
    pub tearing_down: u64,
    pub reserved: u64,
    pub fenced: u64,
    pub offline: u64,
    pub idle: u64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    pub id: u32,
    pub name: String,
    pub pool: String,
    pub rack: Option<String>,
    pub zone: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub teardown: Teardown,
    pub drained: bool,
    pub lost: bool,
    pub custody: Custody,
    /// The generation of the agent that speaks for it, if one does.
    pub agent_generation: Option<u64>,
    pub condition: Condition,
    /// How much it is avoided, from 0 to 1000: raised by trouble, lowered by time.
    pub heat: u16,
    pub capacity: Vec<NodeCapacity>,
}

/// How much of a class a node has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    pub name: String,
    pub pool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// `confirmed` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<Teardown>,
    /// By class: how much the node has. May be left out where an agent will say it.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
}

/// A change of a node: an absent field keeps its value, null clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub rack: Patch<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub zone: Patch<String>,
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<Teardown>,
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
}

/// Declares a node lost: its leases end as of when it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoseNode {
    /// Now, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<When>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePut {
    pub sequence: u64,
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeList {
    pub nodes: Vec<Node>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
