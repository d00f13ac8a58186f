//! Allocations: gangs of leases for one workload, granted all or none, and the queue they wait in.

use crate::id::AllocationId;
use crate::lease::{Ask, GrantedLease, Revocation};
use crate::once;
use crate::patch::Patch;
use crate::time::{Ttl, When};
use leasehold_model::{AllocationState, AttemptEnd, Domain, Priority, WhenOverQuota};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Submits a gang of `replicas` members. Each replica is placed on one node; all replicas start together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitAllocation {
    /// Tenant: name or number. Required unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number. Required unless the token belongs to a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// User on whose behalf it is submitted: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of the workload, chosen by the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Amounts per replica, all on one node.
    pub asks: Vec<Ask>,
    /// Number of replicas. 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Longest time that one attempt may run; leases cannot be renewed beyond it. Without a walltime it runs as long as
    /// it is renewed, and no other allocation can be assured of a start on its capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walltime: Option<Ttl>,
    /// TTL with which its leases are first granted. The walltime, or the longest TTL of the pool, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// Priority class; a higher class may preempt a lower one. `standard` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Pool in which it must run: name or number. Any pool unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Whether it is staged first: it then reports itself when it starts to run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
    /// Requeue instead of failing when interrupted without a checkpoint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requeue: bool,
    /// Labels that its nodes must have, all of them.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Place all replicas within one node, rack or zone. No constraint unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Domain>,
    /// Place no two replicas within the same node, rack or zone. No constraint unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Domain>,
    /// App instance of the project that it is for: name or number. Its quotas and its cost ceiling then apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Whether it runs the control plane of that app instance, which usage, cost and invoices show apart from workloads.
    /// Only with `app_instance`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    /// Number of the attachment by which another project lends the capacity to the app instance, and pays for it. Only
    /// with `app_instance`. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<u64>,
    /// Whether it is sensitive work, which must name its user and runs only on nodes that this user has claimed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Correlation ID that groups related requests: a UUID, or 32 hexadecimal digits. Generated unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What becomes of it if it would exceed a quota now: `refuse` denies it, `wait` queues it until there is headroom,
    /// unless it exceeds the base limit all by itself. The tenant's default unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_over_quota: Option<WhenOverQuota>,
    /// A reference chosen by the caller; the records of the allocation and of its leases show it as
    /// `affected_hcl_entry`. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hcl_entry: Option<String>,
    /// Reference to a Kubernetes DRA claim, shown in the same records. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dra_claim_id: Option<String>,
}

/// Placement of one replica, with its leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replica {
    /// Name of the node.
    pub node: String,
    /// Name of the pool.
    pub pool: String,
    /// The leases of the replica.
    pub leases: Vec<GrantedLease>,
    /// Deadline of its leases; in an attempt that is over, the deadline that they had last.
    pub expires_at: When,
    /// When the grace ends. Absent if its leases are not revoked, or no longer held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ends_at: Option<When>,
    /// Number of the burst quota that shortened the TTL. Only in the answer to the submission, and absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capped_by_quota_id: Option<u32>,
}

/// An allocation that was submitted: it runs, is staged, or waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submitted {
    /// Sequence number of the record that sealed it.
    pub sequence: u64,
    /// The allocation: `alloc-` and its number, which is that sequence number.
    pub id: AllocationId,
    /// State of the allocation: `pending` if it waits in the queue. If it had to wait and the submission is repeated under
    /// its idempotency key, the state that it has by then.
    pub state: AllocationState,
    /// When it was submitted.
    pub submitted_at: When,
    /// Correlation ID that groups related requests, as a UUID.
    pub correlation_id: String,
    /// Placement of its replicas; empty if it waits or, in the answer to a repeated submission, if it had to wait and has
    /// ended.
    pub replicas: Vec<Replica>,
}

/// Amount of one class that each replica asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Name of the resource class.
    pub class: String,
    /// Amount in billing units.
    pub quantity: String,
    /// Amount in quanta.
    pub quanta: u64,
}

/// An allocation in its current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    /// The allocation: `alloc-` and its number, which is the sequence number of the record that submitted it.
    pub id: AllocationId,
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
    /// Amounts per replica.
    pub asks: Vec<Asked>,
    /// Number of replicas.
    pub replicas: u32,
    /// Priority class; a higher class may preempt a lower one.
    pub priority: Priority,
    /// Pool in which it must run; null if any pool will do.
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
    /// All replicas are placed within one node, rack or zone; null if that is not required.
    pub together: Option<Domain>,
    /// No two replicas are placed within the same node, rack or zone; null if that is not required.
    pub apart: Option<Domain>,
    /// Whether it is sensitive work, which runs only on nodes that its user has claimed.
    pub sensitive: bool,
    /// Name of the app instance that it is for. Absent if it is for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Number of the attachment by which the capacity is lent. Absent if it is not lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<u64>,
    /// Name of the project that lends the capacity and pays for it. Absent if it is not lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_project: Option<String>,
    /// Correlation ID that groups related requests, as a UUID.
    pub correlation_id: String,
    /// When it was submitted.
    pub submitted_at: When,
    /// Position in the queue among the allocations that wait for a pool that it may use, counted from 1. Absent if it
    /// does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Number of attempts so far, including the current one.
    pub attempt: u32,
    /// When the current attempt began; null if it holds no capacity.
    pub placed_at: Option<When>,
    /// When the current attempt must have ended because of its walltime; null without a walltime.
    pub ends_by: Option<When>,
    /// When it was completed, failed or was cancelled; null before.
    pub ended_at: Option<When>,
    /// Present while it is on hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<Hold>,
}

/// A hold: the allocation keeps its place in the queue, and is not scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// Since when.
    pub since: When,
    /// Whether an operator did it; only an operator releases it then.
    pub by_operator: bool,
    /// The reason that was given; null if none was.
    pub reason: Option<String>,
}

/// Changes an allocation that waits: an absent field keeps its value, null clears it. It keeps its time of submission;
/// what was reserved for it is not reserved any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllocationChange {
    /// New priority class, at most the highest that its tenant may use. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Pool in which it must run: name or number. Absent keeps it, null allows any pool.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub pool: Patch<String>,
    /// Longest time that one attempt may run. Absent keeps it, null removes it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub walltime: Patch<Ttl>,
    /// TTL with which its leases are first granted. Absent keeps it, null removes it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub ttl: Patch<Ttl>,
    /// Requeue instead of failing when interrupted without a checkpoint. Absent keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue: Option<bool>,
}

/// A checkpoint that the workload reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenCheckpoint {
    /// When it was reported.
    pub at: When,
    /// Size in bytes.
    pub bytes: u64,
    /// How long it took to write.
    pub took: Ttl,
}

/// One attempt, from its placement to the end of its last lease. Attempts are kept, also when the allocation starts
/// again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Number of the attempt, counted from 1.
    pub number: u32,
    /// When it was placed.
    pub placed_at: When,
    /// When it ended; null while it runs.
    pub ended_at: Option<When>,
    /// Why it was interrupted or failed; null while it runs, and if it was completed or cancelled.
    pub end: Option<AttemptEnd>,
    /// Why its leases were revoked. Absent if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    /// Placement of its replicas.
    pub replicas: Vec<Replica>,
    /// Checkpoints that were reported during the attempt, in order.
    pub checkpoints: Vec<WrittenCheckpoint>,
}

/// Why an allocation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A quota has no headroom for it; `used`, `requested` and `limit` say by how much.
    Quota,
    /// A cost ceiling has no headroom for it; money that is reserved for others may become available again.
    Cost,
    /// A burst quota is above its base limit until its burst ends.
    Burst,
    /// Too little is free; `class` and `short` say what is missing.
    Capacity,
    /// The capacity that it could use would delay a higher-ranked allocation, which starts by `ahead_starts_by`.
    Behind,
    /// The leases evicted for it are being torn down on `nodes`.
    Victims,
    /// Its tenant has reached the limit of evictions per hour; otherwise an eviction would make it fit.
    Evictions,
    /// Its project is paused on every pool that it may use.
    Paused,
    /// It is on hold; `detail` says by whom and why.
    Hold,
    /// Nothing prevents it from starting; it starts on the next scheduling pass.
    Due,
}

/// Why an allocation waits, and its position in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Position in the queue among the allocations that wait for a pool that it may use, counted from 1. While it is on
    /// hold, the position that it would have.
    pub position: u64,
    /// Why it waits.
    pub reason: WaitReason,
    /// Why it waits, as a sentence.
    pub detail: String,
    /// When it starts at the latest; null if that cannot be known.
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
    /// The higher-ranked allocation that it would delay. Absent for other reasons, and if the caller may not
    /// see that allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<AllocationId>,
    /// When that higher-ranked allocation starts at the latest. Absent for other reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_starts_by: Option<When>,
    /// Names of the nodes on which evicted leases are being torn down. Absent for other reasons, and for callers that
    /// may not see nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Names of the nodes on which it is protected because it has waited for longer than `head_wait_max`: nothing of its
    /// priority or below starts there unless it ends before. Absent if it is not protected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_on: Vec<String>,
    /// A lease that may be renewed forever, which is why an allocation that has waited for longer than `head_wait_max` is
    /// not protected. Absent for other allocations, and if the caller may not see that lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endless_lease_id: Option<String>,
}

/// An allocation with all of its attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationDetail {
    #[serde(flatten)]
    pub allocation: Allocation,
    /// Why it waits; null if it does not.
    pub waiting: Option<Waiting>,
    /// Exit status that its holder reported at the end; null before, or if none was reported.
    pub exit_status: Option<u32>,
    /// Bytes of storage written, as its holder reported at the end; null before, or if it is not known.
    pub storage_written: Option<u64>,
    /// Every attempt, in order.
    pub attempts: Vec<Attempt>,
}

/// One page of allocations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationList {
    /// Allocations in order of their numbers.
    pub allocations: Vec<Allocation>,
    /// Pass as `cursor` to get the next page. Absent on the last page. A page may have fewer items than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A change of an allocation that was sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationChanged {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The allocation: `alloc-` and its number.
    pub id: AllocationId,
    /// State of the allocation after the change.
    pub state: AllocationState,
}

/// Reports that a checkpoint was written. During the grace of a revocation it also reports that nothing runs any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointReport {
    /// Size of the checkpoint in bytes.
    pub bytes: u64,
    /// How long it took to write.
    pub took: Ttl,
}

/// Reports that the work is complete or has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteAllocation {
    /// Exit status. Above 0 means that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u32>,
    /// Bytes of storage that it wrote. 0 says that it is not known, as does leaving it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_written: Option<u64>,
}

/// Reports that the work of an allocation could not be started. What is charged for it is up to the charge policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedStart {
    /// The allocation: `alloc-` and its number, or the number. It must be staging and hold a lease on the node.
    pub allocation: String,
    /// Generation of the agent. Agents must send it; operators leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The answer to a request for a lease: the grant, or (status 202) the allocation that waits until leases of lower
/// priority have been evicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Requested {
    Granted(crate::lease::Granted),
    Waiting(Submitted),
}
