//! Allocations: gangs of leases for one workload, granted all or none, and the queue they wait in.

use crate::lease::{Ask, GrantedLease, Revocation};
use crate::once;
use crate::time::{Ttl, When};
use leasehold_model::{AllocationState, AttemptEnd, Domain, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Asks for a gang: `replicas` times the asks, each replica on one node, all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitAllocation {
    /// Needed unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Needed unless the token belongs to a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// User on whose behalf it is submitted: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Which work it is for, in the caller's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// What each replica asks for, on one node.
    pub asks: Vec<Ask>,
    /// One unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// How long an attempt may run in all; renewal stops there. Without one it runs as long as it is renewed, and
    /// others cannot be promised its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walltime: Option<Ttl>,
    /// What its leases are granted for at first; the walltime, or what the pool allows, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// `standard` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Pool in which it must run: name or number. Any pool unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// It is staged first, and says itself when it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
    /// What cannot be suspended goes back into the queue instead of failing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requeue: bool,
    /// Labels that its nodes must carry.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// All replicas within one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Domain>,
    /// No two replicas within one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Domain>,
    /// The app instance of the project that it is for; a ceiling may be over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
    /// Sensitive work names its user and runs on claimed nodes only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// The story this belongs to: 32 hexadecimal digits. Made if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// Where one replica lies, and the leases it holds there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replica {
    /// Name of the node.
    pub node: String,
    /// Name of the pool.
    pub pool: String,
    /// The leases of the replica.
    pub leases: Vec<GrantedLease>,
    /// When its leases end unless they are renewed; of an attempt that is over, what they were granted until.
    pub expires_at: When,
    /// While they are revoked and still held: when they must be given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ends_at: Option<When>,
}

/// A gang that was submitted: it runs, is staged, or waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submitted {
    /// The sequence of the record that sealed it.
    pub sequence: u64,
    /// Its number, which is that sequence.
    pub id: u64,
    /// `pending` where it waits.
    pub state: AllocationState,
    /// When it was submitted.
    pub submitted_at: When,
    /// Correlation ID that groups related requests: 32 hexadecimal digits.
    pub correlation_id: String,
    /// Where its replicas lie, if it could start at once.
    pub replicas: Vec<Replica>,
}

/// How much of one class each replica asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Name of the resource class.
    pub class: String,
    /// In billing units.
    pub quantity: String,
    /// Amount in quanta.
    pub quanta: u64,
}

/// An allocation as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    /// Its number: the sequence of the record that submitted it.
    pub id: u64,
    /// State of the allocation.
    pub state: AllocationState,
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the project.
    pub project: String,
    /// Name of the user; null if it was submitted for none.
    pub user: Option<String>,
    /// Name of the workload as its submitter gave it; null if none was given.
    pub workload: Option<String>,
    /// What each replica asks for.
    pub asks: Vec<Asked>,
    /// Number of replicas.
    pub replicas: u32,
    /// Priority class; a higher class may preempt a lower one.
    pub priority: Priority,
    /// Where it must lie; any pool if absent.
    pub pool: Option<String>,
    /// Longest time that an attempt may run; null if there is no limit.
    pub walltime: Option<Ttl>,
    /// TTL with which its leases are first granted; null if the walltime or the pool decides.
    pub ttl: Option<Ttl>,
    /// Whether it is staged first and reports itself when it starts to run.
    pub staged: bool,
    /// Whether it is requeued instead of failing when interrupted without a checkpoint.
    pub requeue: bool,
    /// Labels that its nodes must have.
    pub labels: BTreeMap<String, String>,
    /// All replicas lie within one of these; null if that is not required.
    pub together: Option<Domain>,
    /// No two replicas lie within one of these; null if that is not required.
    pub apart: Option<Domain>,
    /// Whether it is sensitive work, which runs only on nodes that its user has claimed.
    pub sensitive: bool,
    /// The app instance that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
    /// Correlation ID that groups related requests: 32 hexadecimal digits.
    pub correlation_id: String,
    /// When it was submitted.
    pub submitted_at: When,
    /// While it waits: its place among those that wait for a pool that it may use, counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// How often it was given capacity.
    pub attempt: u32,
    /// When the attempt that runs began.
    pub placed_at: Option<When>,
    /// When it must have ended, where it has a walltime.
    pub ends_by: Option<When>,
    /// When it was over, once it is.
    pub ended_at: Option<When>,
}

/// A checkpoint that was reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenCheckpoint {
    /// When it was reported.
    pub at: When,
    /// Size in bytes.
    pub bytes: u64,
    /// How long it took to write.
    pub took: Ttl,
}

/// One time that it was given capacity. Kept for ever: what was used before is not lost by beginning again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Counted from one.
    pub number: u32,
    /// When it was given capacity.
    pub placed_at: When,
    /// Absent while it lasts.
    pub ended_at: Option<When>,
    /// Why it ended, where its work was not done and it was not cancelled.
    pub end: Option<AttemptEnd>,
    /// Why its leases were taken back, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    /// Where its replicas lie.
    pub replicas: Vec<Replica>,
    /// Checkpoints that were reported during the attempt, in order.
    pub checkpoints: Vec<WrittenCheckpoint>,
}

/// What one that waits waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A quota has no headroom for it; `used`, `requested` and `limit` say by how much.
    Quota,
    /// A cost ceiling has no headroom for it; money that is reserved for others may return.
    Cost,
    /// A burst quota is over its base for as long as its episode lasts.
    Burst,
    /// There is no room; `class` and `short` say of what.
    Capacity,
    /// There is room that would delay one that goes first, which starts by `ahead_starts_by`.
    Behind,
    /// Its victims are being torn down on `nodes`.
    Victims,
    /// There would be room if its tenant had not had so much evicted within the hour.
    Evictions,
    /// Nothing stands in its way; it starts when the queue is looked at next.
    Due,
}

/// Why one waits, and how many go before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Its place among those that wait for a pool that it may use, counted from one.
    pub position: u64,
    /// Why it waits.
    pub reason: WaitReason,
    /// The same in words.
    pub detail: String,
    /// When it starts at the latest, if that can be told.
    pub starts_by: Option<When>,
    /// Number of the quota that has no headroom. Absent for other reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_id: Option<u32>,
    /// Amount already counted against the limit. Absent where no limit is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Amount that it would add. Absent where no limit is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    /// The limit that would be exceeded. Absent where no limit is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Name of the resource class of which too little is free. Absent for other reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// How much more of the class would have to be free, in billing units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// Which allocation goes first, where that is one of the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// When the allocation that goes first starts at the latest. Absent for other reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_starts_by: Option<When>,
    /// Names of the nodes on which evicted leases are being torn down. Absent for other reasons, and for those who may
    /// not see nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

/// An allocation with all that happened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationDetail {
    #[serde(flatten)]
    pub allocation: Allocation,
    /// While it waits.
    pub waiting: Option<Waiting>,
    /// What its holder reported at the end.
    pub exit_status: Option<u32>,
    /// Bytes, as its holder reported at the end.
    pub storage_written: Option<u64>,
    /// Every attempt, in order.
    pub attempts: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationList {
    /// Allocations in order of their numbers.
    pub allocations: Vec<Allocation>,
    /// Pass as `cursor` for the next page; absent on the last one. A page may hold fewer than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Something was said of an allocation, and sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationChanged {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// Number of the allocation.
    pub id: u64,
    /// Where that put it.
    pub state: AllocationState,
}

/// A checkpoint was written. Within the grace of a revocation it also says that nothing runs any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointReport {
    /// Size of the checkpoint in bytes.
    pub bytes: u64,
    /// How long it took to write.
    pub took: Ttl,
}

/// The work is done, or has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteAllocation {
    /// Above zero it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u32>,
    /// Bytes of storage that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_written: Option<u64>,
}

/// What a request for a lease comes to: the grant; or, where others must make room first, the allocation that waits
/// for them (status 202).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Requested {
    Granted(crate::lease::Granted),
    Waiting(Submitted),
}
