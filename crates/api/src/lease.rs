//! Leases: requests, answers and views.

use crate::id::AllocationId;
use crate::once;
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::time::{Ttl, When};
use leasehold_model::{LeaseState, Priority, RevokeReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amount of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Resource class: name or number.
    pub class: String,
    /// Amount in billing units, such as `8`, `500m`, `80GiB` or `1/7`.
    pub quantity: Quantity,
}

/// Requests one or several classes on one node, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestLease {
    /// Tenant: name or number. Required unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project: name or number. Required unless the token belongs to a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// User on whose behalf it is requested: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of the workload, chosen by the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Amounts by class, all on one node.
    pub asks: Vec<Ask>,
    /// Time to live: the lease ends this long after the grant unless it is renewed.
    pub ttl: Ttl,
    /// Priority class; a higher class may preempt a lower one. `standard` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Pool to place it in: name or number. Any pool unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Node to place it on: name or number. Any node unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Labels that the node must have, all of them.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// App instance of the project that it is for: name or number. Its quotas and its cost ceiling then apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// Whether it runs the control plane of that app instance, which usage, cost and invoices show apart from workloads.
    /// Only with `app_instance`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    /// Whether it is sensitive work, which must name its user and runs only on nodes that this user has claimed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Correlation ID that groups related requests: a UUID, or 32 hexadecimal digits. Generated unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// A reference chosen by the caller; records show it as `affected_hcl_entry`. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hcl_entry: Option<String>,
    /// ID of the DRA claim that the lease serves; records show it. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dra_claim_id: Option<String>,
}

/// One lease of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantedLease {
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
    /// Name of the resource class.
    pub class: String,
    /// Amount in billing units.
    pub quantity: String,
    /// Amount in quanta.
    pub quanta: u64,
    /// Indexes of the devices that it holds; empty for classes without devices.
    pub devices: Vec<u32>,
}

/// A request that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Sequence number of the record that sealed the grant.
    pub sequence: u64,
    /// One lease per class.
    pub leases: Vec<GrantedLease>,
    /// Name of the node.
    pub node: String,
    /// Name of the pool.
    pub pool: String,
    /// Priority class of the leases.
    pub priority: Priority,
    /// When it was granted.
    pub granted_at: When,
    /// Deadline: the leases end here unless they are renewed.
    pub expires_at: When,
    /// Correlation ID that groups related requests, as a UUID.
    pub correlation_id: String,
    /// Numbers of the soft quotas that the grant exceeded. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_soft_quota_ids: Vec<u32>,
    /// Number of the burst quota that shortened the TTL. Absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capped_by_quota_id: Option<u32>,
    /// Number of the maintenance window that shortened the TTL. Absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capped_by_window_id: Option<u32>,
}

/// Reports the activity of a lease from the end of the last report until now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// How much of that time the report covers.
    pub covered: Ttl,
    /// How long any part of the lease was in use.
    pub active: Ttl,
    /// Use in quantum-nanoseconds, as a string of digits: one quantum that is busy for one second is `1000000000`.
    pub busy_quantum_ns: String,
    /// Time that the workload spent waiting, by kind of resource.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, Ttl>,
}

/// Renews a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// New TTL: the deadline becomes now plus this.
    pub ttl: Ttl,
    /// Activity since the last report. Absent if there is nothing to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

/// A lease that was renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Renewed {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
    /// The new deadline.
    pub expires_at: When,
    /// Why the activity report was refused; the renewal is valid. Absent if it was accepted or not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_problem: Option<Problem>,
}

/// Releases a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Activity since the last report. Absent if there is nothing to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

/// A lease that was released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
    /// `closed` if the node has no agent, otherwise `releasing` until the agent confirms the teardown.
    pub state: LeaseState,
    /// When billing stopped.
    pub ended_at: When,
    /// Why the activity report was refused; the release is valid. Absent if it was accepted or not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_problem: Option<Problem>,
}

/// Revokes a lease and the rest of its gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revoke {
    /// Reason of the revocation. `operator` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RevokeReason>,
    /// Time that the holder has before the teardown starts; may be zero. The grace of the pool unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
}

/// Leases that were revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The revoked leases, all leases of the gang: `lease-` and their numbers.
    pub ids: Vec<String>,
    /// The 128-bit IDs of the revoked leases, in the same order.
    #[serde(default)]
    pub uids: Vec<String>,
    /// Time that the holder has before the teardown starts.
    pub grace: Ttl,
}

/// A revoked lease whose holder reported that it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyAnswer {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
    /// When billing stopped.
    pub ended_at: When,
}

/// A lease whose activity was reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reported {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
}

/// Identifies the agent that confirms a teardown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fences {
    /// Generation of the agent. Agents must send it; operators leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// A lease whose teardown was confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmed {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
}

/// A lease whose fence was cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unfenced {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
}

/// A revocation: when and why a lease was taken back before its deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revocation {
    /// `preempted`, `quota`, `budget`, `operator`, `node_lost`, `policy` or `duplicate_holder`.
    pub reason: String,
    /// Sequence number of the record of the revocation.
    pub sequence: u64,
    /// When it was revoked.
    pub at: When,
    /// When the grace ends.
    pub grace_ends_at: When,
    /// Sequence number of the eviction decision; `audit/decisions` explains it. Absent for other reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<u64>,
}

/// How the billing of a lease stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseEnd {
    /// Its holder released it.
    Released,
    /// Its deadline passed.
    Expired,
    /// It was revoked by an operator, a quota, a budget or a policy.
    Revoked,
    /// It was evicted for a request of higher priority.
    Preempted,
    /// Its node was lost.
    NodeLost,
    /// Its allocation could not be started.
    FailedStart,
}

/// A lease in its current state. Lists of leases that are not closed leave out `labels`, `sequence`, `end`,
/// `revocation`, `fenced_at` and `closed_at`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
    /// The first lease of the same gang: `lease-` and its number.
    pub gang_id: String,
    /// Its allocation: `alloc-` and the number. Absent if it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<AllocationId>,
    /// Name of the app instance that it was granted for. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<String>,
    /// State of the lease.
    pub state: LeaseState,
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the project.
    pub project: String,
    /// Name of the user; null if it was requested for none.
    pub user: Option<String>,
    /// Workload that it is for, as the requester named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Accounting tag of the tenant when it was granted; null if it had none.
    pub accounting_tag: Option<String>,
    /// Name of the resource class.
    pub class: String,
    /// Amount in billing units.
    pub quantity: String,
    /// Amount in quanta.
    pub quanta: u64,
    /// Indexes of the devices that it holds; empty for classes without devices.
    pub devices: Vec<u32>,
    /// Name of the node.
    pub node: String,
    /// Name of the pool.
    pub pool: String,
    /// Priority class; a higher class may preempt a lower one.
    pub priority: Priority,
    /// Labels that its node had to have. For leases of an allocation, the allocation has the labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it is sensitive work on a claimed node.
    pub sensitive: bool,
    /// Whether it was granted beyond a soft quota.
    pub over_soft: bool,
    /// Correlation ID of the request, as a UUID. All leases of an allocation have that of the allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Sequence number of the record that granted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// When it was granted.
    pub granted_at: When,
    /// Deadline: it ends here unless it is renewed.
    pub expires_at: When,
    /// When the grace ends. Absent if it is not revoked, or no longer held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ends_at: Option<When>,
    /// When billing stopped; null before.
    pub ended_at: Option<When>,
    /// How billing stopped. Absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<LeaseEnd>,
    /// When and why it was revoked. Absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    /// When its capacity was fenced because the teardown was not confirmed in time. Absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced_at: Option<When>,
    /// When its capacity became free again: at its end, when its node confirmed the teardown, or when an operator
    /// cleared the fence. Absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<When>,
}

/// One page of leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseList {
    /// Leases in order of their numbers.
    pub leases: Vec<Lease>,
    /// Pass as `cursor` to get the next page. Absent on the last page. A page may have fewer items than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The records of a lease, in order, as `audit/records` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The lease: `lease-` and its number.
    pub id: String,
    /// The 128-bit ID of the lease, unique among all journals: 32 hexadecimal digits.
    #[serde(default)]
    pub uid: String,
    /// The records about the lease, in order.
    #[schemars(with = "Vec<crate::record::Record>")]
    pub records: Vec<serde_json::Value>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Result of one operation of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A request that was granted.
    Granted(Granted),
    /// A request that waits until leases of lower priority have been evicted.
    Waiting(crate::allocation::Submitted),
    /// A lease that was renewed.
    Renewed(Renewed),
    /// A lease that was released.
    Released(Released),
    /// Leases that were revoked.
    Revoked(Revoked),
    /// A lease whose holder reported that it is ready.
    Ready(ReadyAnswer),
    /// A lease whose activity was reported.
    Reported(Reported),
    /// A lease whose teardown was confirmed.
    Confirmed(Confirmed),
    /// A lease whose fence was cleared.
    Unfenced(Unfenced),
    /// The reason why the operation was refused or denied.
    Problem(Problem),
}
