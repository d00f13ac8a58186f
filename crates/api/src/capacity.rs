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
    /// Number of the class.
    pub id: u32,
    /// Name of the class; unique.
    pub name: String,
    /// Kind of resource.
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
    /// Name of the class; unique.
    pub name: String,
    /// Kind of resource.
    pub kind: Kind,
    /// Tier or model: `h100`, `dram`, `cxl`, `rdma`. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Unless given: 1 for GPUs, 1000 for cores, 1024 for memory, 1 for block, 1000 for network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_per_unit: Option<u64>,
    /// Whether it is expensive hardware, whose waste is reported first.
    #[serde(default)]
    pub premium: bool,
}

/// A change of a class. `kind` and `quanta_per_unit` are fixed once it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassChange {
    /// New name. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New kind. Absent keeps it; it cannot change once the class is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// New tier. Absent keeps it, null clears it; it cannot change once the class is in use.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub tier: Patch<String>,
    /// New number of quanta in one billing unit. Absent keeps it; it cannot change once the class is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_per_unit: Option<u64>,
    /// Whether it is expensive hardware. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub premium: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The class as it is now.
    pub class: Class,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassList {
    /// Classes in order of their numbers.
    pub classes: Vec<Class>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A length of time for each priority; none where there is no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpansByPriority {
    /// For priority `scavenger`; null if there is no limit of its own.
    #[serde(default)]
    pub scavenger: Option<Ttl>,
    /// For priority `standard`; null if there is no limit of its own.
    #[serde(default)]
    pub standard: Option<Ttl>,
    /// For priority `guaranteed`; null if there is no limit of its own.
    #[serde(default)]
    pub guaranteed: Option<Ttl>,
}

/// A set of nodes with one placement strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// Number of the pool.
    pub id: u32,
    /// Name of the pool; unique.
    pub name: String,
    /// How the pool places work.
    pub strategy: Strategy,
    /// The longest TTL per priority.
    pub ttl_max: SpansByPriority,
    /// The longest life with renewals, per priority.
    pub lifetime_max: SpansByPriority,
    /// How long a revoked holder has to get ready, where the revocation does not say.
    pub grace: Option<Ttl>,
    /// By which its nodes are chosen, where not by its strategy's.
    pub weights: Option<Weights>,
    /// Number of nodes.
    pub nodes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    /// Name of the pool; unique.
    pub name: String,
    /// `spread` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Longest TTL, by priority. The limit of the settings unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_max: Option<SpansByPriority>,
    /// Longest time from grant to end including renewals, by priority. No limit unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_max: Option<SpansByPriority>,
    /// Grace of revocations in this pool. The default of the settings unless given.
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
    /// New name. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New strategy. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Longest TTL, by priority. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub ttl_max: Patch<SpansByPriority>,
    /// Longest time from grant to end including renewals, by priority. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub lifetime_max: Patch<SpansByPriority>,
    /// Grace of revocations in this pool. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub grace: Patch<Ttl>,
    /// Instead of the strategy's; null goes back to those.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub weights: Patch<Weights>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The pool as it is now.
    pub pool: Pool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolList {
    /// Pools in order of their numbers.
    pub pools: Vec<Pool>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One class on one node, in quanta. The six parts add up to the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCapacity {
    /// Name of the resource class.
    pub class: String,
    /// The capacity in billing units.
    pub quantity: String,
    /// The whole capacity, in quanta.
    pub quanta: u64,
    /// Held by leases, in quanta.
    pub held: u64,
    /// Held by leases that ended and are being torn down, in quanta.
    pub tearing_down: u64,
    /// Reserved for allocations whose victims are being torn down, in quanta.
    pub reserved: u64,
    /// Held by leases whose teardown was not confirmed in time, in quanta.
    pub fenced: u64,
    /// On nodes that are drained, lost, being wiped or quarantined, in quanta.
    pub offline: u64,
    /// Free, in quanta.
    pub idle: u64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Number of the node.
    pub id: u32,
    /// Name of the node; unique.
    pub name: String,
    /// Name of its pool.
    pub pool: String,
    /// Name of its rack; null if unknown.
    pub rack: Option<String>,
    /// Name of its zone; null if unknown.
    pub zone: Option<String>,
    /// Labels that requests can ask for.
    pub labels: BTreeMap<String, String>,
    /// How the node gives capacity back.
    pub teardown: Teardown,
    /// Whether no new work is placed on it.
    pub drained: bool,
    /// Whether it is lost: silent for too long, or declared lost.
    pub lost: bool,
    /// Who may use the node.
    pub custody: Custody,
    /// The generation of the agent that speaks for it, if one does.
    pub agent_generation: Option<u64>,
    /// Condition that its agent last reported.
    pub condition: Condition,
    /// How much it is avoided, from 0 to 1000: raised by trouble, lowered by time.
    pub heat: u16,
    /// What the node has, one entry per resource class.
    pub capacity: Vec<NodeCapacity>,
}

/// How much of a class a node has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// Name of the node; unique.
    pub name: String,
    /// Pool of the node: name or number.
    pub pool: String,
    /// Name of its rack. Unknown unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    /// Name of its zone. Unknown unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Labels that requests can ask for.
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
    /// New name. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New pool: name or number. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// New rack. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub rack: Patch<String>,
    /// New zone. Absent keeps it, null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub zone: Patch<String>,
    /// New labels, replacing all. Absent keeps them.
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// How the node gives capacity back. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<Teardown>,
    /// By class: how much the node has, replacing all. Absent keeps it.
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
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The node as it is now.
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeList {
    /// Nodes in order of their numbers.
    pub nodes: Vec<Node>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
