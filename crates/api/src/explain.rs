//! Why something was decided as it was: every check with its numbers, every candidate with its terms.

use crate::ceiling::Money;
use crate::weights::Weights;
use crate::{Ttl, When};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one quota said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaChecked {
    /// Number of the quota.
    pub quota_id: u32,
    /// What it counts.
    pub what: String,
    /// `hard`, `soft` or `burst`.
    pub limit_type: String,
    /// Amount already counted against it.
    pub used: u64,
    /// Amount that the request adds.
    pub requested: u64,
    /// The limit.
    pub limit: u64,
    /// `within`, `over_soft`, `until`, `refused`, or `by_node` where its answer depends on the node.
    pub said: String,
}

/// What one cost ceiling said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingChecked {
    /// Absent where it is of the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
    /// `hard` or `soft`.
    pub mode: String,
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Cost of leases that have ended.
    pub spent: Money,
    /// Cost reserved for leases that are held.
    pub reserved: Money,
    /// What it would cost by its deadline, at the most.
    pub requested: Money,
    /// The ceiling.
    pub amount: Money,
    /// `within`, `over_soft` or `refused`.
    pub said: String,
}

/// What one node was worth. Terms and score lie between 0 and 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateScore {
    /// For those who see nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Name of the pool.
    pub pool: String,
    /// Weighed score, from 0 to 1, reduced by heat.
    pub score: String,
    /// Pressure term, from 0 to 1.
    pub pressure: String,
    /// Fit term, from 0 to 1.
    pub fit: String,
    /// Locality term, from 0 to 1.
    pub locality: String,
    /// Fragmentation term, from 0 to 1.
    pub fragmentation: String,
    /// Heat of the node, from 0 to 1.
    pub heat: String,
    /// Whose weights they were weighed by: `spread`, `bin_pack` or `custom`.
    pub weights: String,
    /// What each term weighs by them.
    pub weighed: Weights,
}

/// Where one replica of a gang goes, and by what it goes there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaScore {
    /// Counted from one.
    pub replica: u32,
    /// For those who see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Name of the pool.
    pub pool: String,
    /// Score of the node that was chosen, from 0 to 1.
    pub score: String,
    /// As in the explanation itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<String>,
}

/// One who falls, or would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Victim {
    /// Of one's own tenant, and for those who see all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    /// Its name, or `another tenant`.
    pub tenant: String,
    /// Priority class of the lease.
    pub priority: String,
    /// Name of the resource class.
    pub class: String,
    /// Amount in quanta.
    pub quanta: u64,
    /// Where it lies, for those who see that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When it would have ended.
    pub expires_at: When,
    /// Its capacity is back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// An eviction as it was sealed: who asked, where it will lie, who falls. Victims see themselves only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedEviction {
    /// The record that sealed it; `audit/decisions` explains it.
    pub sequence: u64,
    /// When it was decided.
    pub decided_at: When,
    /// The tenant that asked: its name, or `another tenant`.
    pub requester: String,
    /// The allocation that asked, for those who see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<u64>,
    /// Priority class of the allocation that asked.
    pub priority: String,
    /// Where its replicas lie, in order, for those who see it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The leases that are evicted.
    pub victims: Vec<Victim>,
}

/// How something came to its end, or is coming to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// `preempted`, `quota`, `budget`, `operator`, `node_lost`, `policy`, `duplicate_holder`, `expired`, `walltime`,
    /// `released`; of an allocation also `completed`, `failed` or `cancelled`.
    pub how: String,
    /// In words.
    pub why: String,
    /// The record that says so.
    pub sequence: u64,
    /// When that was sealed.
    pub at: When,
    /// How long its holder had, or has, to get ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
    /// When it must be given back, while it is still held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ends_at: Option<When>,
    /// The decision to evict it; `audit/decisions` explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<u64>,
    /// What it was when it was chosen to fall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// How long it would have had, when it was chosen to fall: the longest of its gang.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Ttl>,
    /// Where its billing stopped, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<When>,
}

/// What one node would have to give up for one replica: the first line hurts least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Eviction {
    /// Name of the node, for those who see nodes; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The highest priority among the victims.
    pub highest_priority: String,
    /// Number of gangs that would lose a lease.
    pub gangs: u64,
    /// Amount that would be evicted, in quanta.
    pub quanta: u64,
    /// The leases that would be evicted.
    pub victims: Vec<Victim>,
}

/// Where an allocation stands that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePlace {
    /// Counted from one, among those that wait for a pool that it may use.
    pub position: u64,
    /// Between 0.05 and 1, by how much of the tenant's budget is used.
    pub budget_factor: String,
    /// How far the tenant is below its fair share; negative where it is above.
    pub fair_share_deficit: String,
    /// When it starts at the latest, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_by: Option<When>,
}

/// The tree of checks behind a decision, from the sealed facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// As of when: the decision's instant, or now.
    pub as_of: When,
    /// The record that sealed the decision; absent where nothing is decided yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The record that was asked about, where it is a later part of that decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// `granted`, `denied`, `waits`, `submitted`, `evicts`; `evicted` to a victim; of an attempt that ended `suspended`,
    /// `requeued` or `failed`; `dropped` where what was kept for one is given up.
    pub outcome: String,
    /// In one sentence.
    pub why: String,
    /// Whether deciding it again from the journal came to the same: `same`, `differs` or `other_rules`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
    /// How much each kind of resource mattered to the workload, where that was known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profile: BTreeMap<String, String>,
    /// Of the whole gang.
    pub quotas: Vec<QuotaChecked>,
    /// Cost ceilings over it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<CeilingChecked>,
    /// For which replica of a gang the candidates are told, counted from one; each finds what those before it leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<u32>,
    /// How many replicas the gang has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_count: Option<u32>,
    /// Where they go, the first ones of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaScore>,
    /// The best candidates, the winner first.
    pub candidates: Vec<CandidateScore>,
    /// How many there were in all.
    pub candidate_count: u64,
    /// How many nodes were no candidates, by why.
    pub unfit: BTreeMap<String, u64>,
    /// What made the winner win: a term, `heat`, `number` where they are worth the same, or `alone`. Absent where nothing
    /// was placed, or where victims made room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<String>,
    /// What would have to fall.
    pub evictions: Vec<Eviction>,
    /// What was decided to fall, where it started, or waits to start, on what its victims give back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<DecidedEviction>,
    /// How what was granted came to its end, or is coming to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Where it stands in the queue. Absent if it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlace>,
}

/// One class of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassExplained {
    /// Name of the resource class.
    pub class: String,
    /// The whole capacity, in quanta.
    pub capacity: u64,
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
    /// What leases of lower priority hold that could be evicted for a guaranteed one.
    pub evictable: u64,
}

/// Why a node gets work, or gets none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeExplanation {
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Name of the node.
    pub node: String,
    /// Name of its pool.
    pub pool: String,
    /// Whether new work may come, and if not, why.
    pub available: bool,
    /// Why it is available or not, as a sentence.
    pub why: String,
    /// From 0 to 1000; scores are multiplied by what is left.
    pub heat: u16,
    /// One entry per resource class.
    pub classes: Vec<NodeClassExplained>,
    /// Number of live leases on the node.
    pub leases: u64,
    /// Allocations that something is kept for here, while their victims are torn down.
    pub reserved_for: Vec<u64>,
    /// Allocations that are promised to start here, and by when.
    pub promised_to: Vec<NodePromise>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePromise {
    /// Number of the allocation.
    pub allocation_id: u64,
    /// When it starts at the latest.
    pub starts_by: When,
}
