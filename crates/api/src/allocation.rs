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
    pub node: String,
    pub pool: String,
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
    pub submitted_at: When,
    pub correlation_id: String,
    /// Where its replicas lie, if it could start at once.
    pub replicas: Vec<Replica>,
}

/// How much of one class each replica asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    pub class: String,
    /// In billing units.
    pub quantity: String,
    pub quanta: u64,
}

/// An allocation as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    /// Its number: the sequence of the record that submitted it.
    pub id: u64,
    pub state: AllocationState,
    pub tenant: String,
    pub project: String,
    pub user: Option<String>,
    pub workload: Option<String>,
    /// What each replica asks for.
    pub asks: Vec<Asked>,
    pub replicas: u32,
    pub priority: Priority,
    /// Where it must lie; any pool if absent.
    pub pool: Option<String>,
    pub walltime: Option<Ttl>,
    pub ttl: Option<Ttl>,
    pub staged: bool,
    pub requeue: bool,
    pub labels: BTreeMap<String, String>,
    pub together: Option<Domain>,
    pub apart: Option<Domain>,
    pub sensitive: bool,
    /// The app instance that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
    pub correlation_id: String,
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
    pub at: When,
    pub bytes: u64,
    pub took: Ttl,
}

/// One time that it was given capacity. Kept for ever: what was used before is not lost by beginning again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Counted from one.
    pub number: u32,
    pub placed_at: When,
    /// Absent while it lasts.
    pub ended_at: Option<When>,
    /// Why it ended, where its work was not done and it was not cancelled.
    pub end: Option<AttemptEnd>,
    /// Why its leases were taken back, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    pub replicas: Vec<Replica>,
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
    pub reason: WaitReason,
    /// The same in words.
    pub detail: String,
    /// When it starts at the latest, if that can be told.
    pub starts_by: Option<When>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// How much more of the class would have to be free, in billing units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// Which allocation goes first, where that is one of the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_starts_by: Option<When>,
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
    pub attempts: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationList {
    pub allocations: Vec<Allocation>,
    /// Pass as `cursor` for the next page; absent on the last one. A page may hold fewer than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Something was said of an allocation, and sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationChanged {
    pub sequence: u64,
    pub id: u64,
    /// Where that put it.
    pub state: AllocationState,
}

/// A checkpoint was written. Within the grace of a revocation it also says that nothing runs any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointReport {
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
