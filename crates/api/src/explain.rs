//! Explanations of decisions: every check with its numbers, every candidate node with its scores.

use crate::ceiling::Money;
use crate::id::AllocationId;
use crate::prepaid::FundsText;
use crate::weights::Weights;
use crate::{Ttl, When};
use leasehold_model::PrepaidState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Result of checking one quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaChecked {
    /// Number of the quota.
    pub quota_id: u32,
    /// What the quota counts, in words.
    pub what: String,
    /// `hard`, `soft` or `burst`.
    pub limit_type: String,
    /// Amount already counted against it: quanta, or what else it counts. Rounded down for a quota on a kind.
    pub used: u64,
    /// Amount that the request adds, likewise.
    pub requested: u64,
    /// The limit, likewise.
    pub limit: u64,
    /// Billing unit of the exact amounts. Absent if the quota counts leases, nodes or allocations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The exact amount already counted, in its unit: `8`, `0.5` or `13/7`.
    #[serde(default)]
    pub used_exact: String,
    /// The exact amount that the request adds, likewise.
    #[serde(default)]
    pub requested_exact: String,
    /// The exact limit, likewise.
    #[serde(default)]
    pub limit_exact: String,
    /// Result: `within`, `over_soft`, `until` if a burst limits the TTL, `refused`, or `by_node` if it depends on the
    /// node.
    pub said: String,
}

/// Result of checking one cost ceiling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingChecked {
    /// Name of the app instance. Absent for the ceiling of the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// `hard` or `soft`.
    pub mode: String,
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// Cost of leases that have ended, and of claimed nodes so far.
    pub spent: Money,
    /// Cost reserved for leases that are held, and for claimed nodes up to their expected ends.
    pub reserved: Money,
    /// The most that the request can cost up to its deadline.
    pub requested: Money,
    /// Amount of the ceiling.
    pub amount: Money,
    /// Result: `within`, `over_soft` or `refused`.
    pub said: String,
}

/// Result of checking one account of prepaid credit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepaidChecked {
    /// Whose credit it is: `tenant` or `project`.
    pub of: String,
    /// Currency code of three capital letters, as in ISO 4217.
    pub currency: String,
    /// How much is left.
    pub state: PrepaidState,
    /// What new work may cost.
    pub available: FundsText,
    /// The most that the request can cost up to its deadline.
    pub requested: Money,
    /// Result: `within` or `refused`.
    pub said: String,
}

/// Placement score of one node. The terms and the score are between 0 and 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateScore {
    /// Name of the node. Absent for callers that may not see nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Name of the pool.
    pub pool: String,
    /// Weighted score, from 0 to 1, reduced by heat.
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
    /// Where the weights come from: `spread`, `bin_pack` or `custom`.
    pub weights: String,
    /// Weight of each term.
    pub weighed: Weights,
}

/// Node on which one replica of a gang is placed, and the term that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaScore {
    /// Number of the replica, counted from 1.
    pub replica: u32,
    /// Name of the node. Absent if the caller may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Name of the pool.
    pub pool: String,
    /// Score of the node that was chosen, from 0 to 1.
    pub score: String,
    /// The deciding term, as in the explanation itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<String>,
}

/// A lease that is evicted, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Victim {
    /// The lease: `lease-` and its number. Absent if the caller may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    /// The 128-bit ID of the lease: 32 hexadecimal digits. Absent if the caller may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_uid: Option<String>,
    /// Name of the tenant, or `another tenant`.
    pub tenant: String,
    /// The holder as `tenant/project` with its user, or `another tenant`.
    #[serde(default)]
    pub holder: String,
    /// Priority class of the lease.
    pub priority: String,
    /// Name of the resource class.
    pub class: String,
    /// Amount in quanta.
    pub quanta: u64,
    /// Amount with its billing unit, for example `2 GPU`.
    #[serde(default)]
    pub capacity: String,
    /// Name of the node. Absent if the caller may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Deadline of the lease.
    pub expires_at: When,
    /// Time left until the deadline when it was chosen, or would be chosen.
    #[serde(default)]
    pub remaining: Ttl,
    /// Whether its capacity is free again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// A recorded eviction: who requested it, where the requester is placed, and which leases are evicted. Owners of
/// victims see only their own leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedEviction {
    /// Sequence number of the record that sealed the decision; `audit/decisions` explains it.
    pub sequence: u64,
    /// When it was decided.
    pub decided_at: When,
    /// Tenant of the request: its name, or `another tenant`.
    pub requester: String,
    /// The allocation that requested it. Absent if the caller may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<AllocationId>,
    /// Priority class of that allocation.
    pub priority: String,
    /// Names of the nodes of its replicas, in order. Absent if the caller may not see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The leases that are evicted.
    pub victims: Vec<Victim>,
    /// Leases that were ending already, whose capacity it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<Victim>,
    /// The quota in which the victims make headroom, if the request failed on that quota alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom_quota_id: Option<u32>,
    /// Number of reservations of lower priority that were taken over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken_over: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How a lease or an attempt ended, or is about to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// Cause: `preempted`, `quota`, `budget`, `operator`, `node_lost`, `policy`, `duplicate_holder`, `expired`,
    /// `walltime` or `released`; for an allocation also `completed`, `failed` or `cancelled`.
    pub how: String,
    /// The cause as a sentence.
    pub why: String,
    /// Sequence number of the record of the end.
    pub sequence: u64,
    /// Instant of that record.
    pub at: When,
    /// Grace of the revocation. Absent for other causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
    /// When the grace ends. Absent if the lease is no longer held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ends_at: Option<When>,
    /// Sequence number of the eviction decision; `audit/decisions` explains it. Absent for other causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<u64>,
    /// Priority class when it was chosen as a victim. Absent for other causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Time that was left until its deadline when it was chosen as a victim; the longest of its gang. Absent for other
    /// causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Ttl>,
    /// When billing stopped. Absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<When>,
}

/// Leases that would be evicted on one node for one replica. The eviction with the lowest cost comes first.
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

/// Position and rank of a waiting allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePlace {
    /// Position in the queue among the allocations that wait for a pool that it may use, counted from 1.
    pub position: u64,
    /// Whether it waits behind others of its priority, because its project is deprioritised on its pool, or because a
    /// soft quota that counts it was exceeded at the last whole minute. Absent if it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprioritised: bool,
    /// Factor between 0.05 and 1 that falls as the tenant uses up its budget.
    pub budget_factor: String,
    /// How far the tenant is below its fair share; negative if it is above.
    pub fair_share_deficit: String,
    /// When it starts at the latest. Absent if that cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_by: Option<When>,
}

/// Explanation of a decision: the checks, the scores and the evictions behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Instant of the decision; now if nothing is decided yet.
    pub as_of: When,
    /// Sequence number of the record that sealed the decision. Absent if nothing is decided yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Sequence number of the record that was asked about, if it is a later part of that decision. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// Result: `granted`, `denied`, `waits`, `submitted` or `evicts`; `evicted` for the owner of a victim; `suspended`,
    /// `requeued` or `failed` for an attempt that ended; `dropped` if the capacity reserved for an allocation was given
    /// up.
    pub outcome: String,
    /// The result as a sentence.
    pub why: String,
    /// Whether deciding again from the journal gave the same result: `same`, `differs` or `other_rules`. Absent if
    /// nothing is decided yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
    /// How much the workload depends on each kind of resource. Absent if that was not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profile: BTreeMap<String, String>,
    /// Results of the quota checks, for the whole gang.
    pub quotas: Vec<QuotaChecked>,
    /// Results of the cost ceiling checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<CeilingChecked>,
    /// Checks of prepaid credit. Empty if the payer has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepaid: Vec<PrepaidChecked>,
    /// Number of the replica that the candidates are for, counted from 1. Each replica is placed with the capacity that
    /// the replicas before it leave. Absent for single leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<u32>,
    /// Number of replicas of the gang. Absent for single leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_count: Option<u32>,
    /// Placement of the first replicas of the gang.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaScore>,
    /// The nodes with the best scores, the chosen node first.
    pub candidates: Vec<CandidateScore>,
    /// Number of candidate nodes.
    pub candidate_count: u64,
    /// Number of nodes that were not candidates, by reason.
    pub unfit: BTreeMap<String, u64>,
    /// What decided between the best nodes: a term of the score, `heat`, `number` if their scores are equal, or `alone`
    /// if there was one candidate. Absent if nothing was placed, or if it was placed on capacity freed by an eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<String>,
    /// Possible evictions, the one with the lowest cost first.
    pub evictions: Vec<Eviction>,
    /// The recorded eviction that frees the capacity for it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<DecidedEviction>,
    /// How the lease or the last attempt ended, or is about to end. Absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Position in the queue. Absent if it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlace>,
}

/// Capacity of one class on a node.
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
    /// Amount held by leases that could be evicted for a guaranteed request, in quanta.
    pub evictable: u64,
}

/// Explanation of whether a node gets work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeExplanation {
    /// The instant up to which the journal was evaluated.
    pub as_of: When,
    /// Name of the node.
    pub node: String,
    /// Name of its pool.
    pub pool: String,
    /// Whether new work can be placed on it.
    pub available: bool,
    /// Why it is available or not, as a sentence.
    pub why: String,
    /// Heat of the node, from 0 to 1000. It reduces the scores of the node.
    pub heat: u16,
    /// One entry per resource class.
    pub classes: Vec<NodeClassExplained>,
    /// Number of live leases on the node.
    pub leases: u64,
    /// The allocations for which capacity is reserved here while their victims are torn down.
    pub reserved_for: Vec<AllocationId>,
    /// Allocations that are assured of a start on this node.
    pub promised_to: Vec<NodePromise>,
}

/// An allocation that is assured of a start on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePromise {
    /// The allocation: `alloc-` and its number.
    pub allocation_id: AllocationId,
    /// When it starts at the latest.
    pub starts_by: When,
}
