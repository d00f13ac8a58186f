//! Classes, pools and nodes.

use crate::agent::Condition;
use crate::books::Amount;
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

/// A resource class: what can be leased, and the smallest part of it that can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Class {
    /// Number of the class.
    pub id: u32,
    /// Name of the class; unique.
    pub name: String,
    /// Kind of resource.
    pub kind: Kind,
    /// Tier or model: `h100`, `dram`, `cxl`, `rdma`; null if it has none.
    pub tier: Option<String>,
    /// Number of quanta in one billing unit. A quantum is the smallest part that can be leased.
    pub quanta_per_unit: u64,
    /// The billing unit: GPU, core, GiB or Gb/s.
    pub unit: String,
    /// Whether it is expensive hardware, whose waste is reported first.
    pub premium: bool,
}

/// Creates a resource class.
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
    /// Number of quanta in one billing unit. Unless given: 1 for GPUs, 1000 for cores, 1024 for memory, 1 for block
    /// storage, 1000 for network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quanta_per_unit: Option<u64>,
    /// Whether it is expensive hardware, whose waste is reported first.
    #[serde(default)]
    pub premium: bool,
}

/// Changes a class. `kind`, `tier` and `quanta_per_unit` are fixed once the class is in use.
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

/// A resource class that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The class as it is now.
    pub class: Class,
}

/// One page of resource classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassList {
    /// Classes in order of their numbers.
    pub classes: Vec<Class>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A length of time for each priority; null if the priority has no limit of its own.
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
    /// Placement strategy of the pool.
    pub strategy: Strategy,
    /// Longest TTL, by priority.
    pub ttl_max: SpansByPriority,
    /// Longest time from grant to end including renewals, by priority.
    pub lifetime_max: SpansByPriority,
    /// Grace of revocations that do not set one themselves; null for the default of the settings.
    pub grace: Option<Ttl>,
    /// Weights of the placement score; null if those of the strategy are used.
    pub weights: Option<Weights>,
    /// How long a lease is held before it may be evicted.
    #[serde(default)]
    pub min_runtime_before_eviction: Ttl,
    /// How often an allocation is requeued before it fails.
    #[serde(default = "requeue_limit_default")]
    pub requeue_limit: u32,
    /// Number of nodes.
    pub nodes: u32,
}

fn requeue_limit_default() -> u32 {
    leasehold_model::body::PoolQueue::default().requeue_limit
}

/// Creates a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    /// Name of the pool; unique.
    pub name: String,
    /// Placement strategy. `spread` unless given.
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
    /// Weights of the placement score. Those of the strategy unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// How long a lease is held before it may be evicted. 0 s unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_runtime_before_eviction: Option<Ttl>,
    /// How often an allocation is requeued before it fails. 10 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_limit: Option<u32>,
}

/// Changes a pool: an absent field keeps its value, null clears it.
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
    /// Weights of the placement score. Absent keeps them, null goes back to those of the strategy.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub weights: Patch<Weights>,
    /// How long a lease is held before it may be evicted. Absent keeps it, null goes back to 0 s.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub min_runtime_before_eviction: Patch<Ttl>,
    /// How often an allocation is requeued before it fails. Absent keeps it, null goes back to 10.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub requeue_limit: Patch<u32>,
}

/// A pool that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The pool as it is now.
    pub pool: Pool,
}

/// One page of pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolList {
    /// Pools in order of their numbers.
    pub pools: Vec<Pool>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Capacity of one class on one node, in quanta. The six parts add up to the capacity.
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

/// A machine with a capacity per resource class.
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
    /// How capacity becomes free after a lease: `confirmed` by an agent, or at once.
    pub teardown: Teardown,
    /// Whether no new work is placed on it.
    pub drained: bool,
    /// Why it was drained, as the operator said; null if nothing was said or it is not drained.
    #[serde(default)]
    pub drain_reason: Option<String>,
    /// Whether it is lost: silent for too long, or declared lost.
    pub lost: bool,
    /// Who may use the node.
    pub custody: Custody,
    /// Generation of its registered agent; null if no agent is registered.
    pub agent_generation: Option<u64>,
    /// Condition that its agent last reported.
    pub condition: Condition,
    /// A number from 0 to 1000 that is high for nodes that had trouble lately. Placement prefers nodes with less heat.
    pub heat: u16,
    /// Capacity of the node, one entry per resource class.
    pub capacity: Vec<NodeCapacity>,
    /// Since when it has been empty. Absent unless `empty_for` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyNode>,
}

/// A node without leases, reservations and claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyNode {
    /// When its last lease or claim was over, or when the node was created.
    pub since: When,
    /// What its idle capacity would have cost since then at scavenger priority, one amount per currency.
    pub could_have_earned: Vec<Amount>,
}

/// Creates a node.
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
    /// How capacity becomes free after a lease. `confirmed` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<Teardown>,
    /// Capacity of the node, by class. May be left out if an agent will report it.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
}

/// Changes a node: an absent field keeps its value, null clears it.
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
    /// How capacity becomes free after a lease. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<Teardown>,
    /// Capacity of the node, by class, replacing all of it. Absent keeps it.
    #[serde(default, deserialize_with = "once::optional_map", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
}

/// Why an operator does something. The record keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithReason {
    /// The reason, in a few words: one line of at most 128 bytes. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Declares a node lost: its leases end at the instant at which it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoseNode {
    /// When the node was last seen. Now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<When>,
}

/// A node that was created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The node as it is now.
    pub node: Node,
}

/// One page of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeList {
    /// Nodes in order of their numbers.
    pub nodes: Vec<Node>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
