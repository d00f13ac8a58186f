//! Leases: what is asked, what is answered, what is shown.

use crate::once;
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::time::{Ttl, When};
use leasehold_model::{LeaseState, Priority, RevokeReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Resource class: name or number.
    pub class: String,
    /// Amount in billing units, such as `8`, `500m`, `80GiB` or `1/7`.
    pub quantity: Quantity,
}

/// Asks for one or several classes on one node, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestLease {
    /// Needed unless the token belongs to a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Needed unless the token belongs to a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// User on whose behalf it is requested: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Which work it is for, in the caller's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Amounts by class, all on one node.
    pub asks: Vec<Ask>,
    /// Time to live: the lease ends this long after the grant unless it is renewed.
    pub ttl: Ttl,
    /// `standard` unless given.
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
    /// The app instance of the project that it is for; a ceiling may be over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
    /// Sensitive work names its user and runs on claimed nodes only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// The story this belongs to: 32 hexadecimal digits. Made if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// A reference of the caller that its records carry as `affected_hcl_entry`. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hcl_entry: Option<String>,
    /// The DRA claim that the lease serves, which its records carry. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dra_claim_id: Option<String>,
}

/// One lease of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantedLease {
    /// 128 bits, as 32 hexadecimal digits.
    pub id: String,
    /// Name of the resource class.
    pub class: String,
    /// In billing units.
    pub quantity: String,
    /// Amount in quanta.
    pub quanta: u64,
    /// Which devices of the node; empty for classes without devices.
    pub devices: Vec<u32>,
}

/// A request that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// The sequence of the record that sealed the grant.
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
    /// Correlation ID that groups related requests: 32 hexadecimal digits.
    pub correlation_id: String,
    /// Soft quotas that the grant passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_soft_quota_ids: Vec<u32>,
    /// The burst quota that shortened the TTL, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capped_by_quota_id: Option<u32>,
}

/// What a holder reports of a stretch of time: it begins where the last report ended and ends now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// How much of the time the report covers.
    pub covered: Ttl,
    /// How long any of it was in use.
    pub active: Ttl,
    /// Use in quantum-nanoseconds, as a string of digits: one quantum busy for a second is `1000000000`.
    pub busy_quantum_ns: String,
    /// Time spent waiting, by kind of resource.
    #[serde(default, deserialize_with = "once::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, Ttl>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// The new deadline is now plus this.
    pub ttl: Ttl,
    /// Activity since the last report. Absent if there is nothing to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Renewed {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
    /// The new deadline.
    pub expires_at: When,
    /// Why the activity report was not taken; the renewal stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_problem: Option<Problem>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Activity since the last report. Absent if there is nothing to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
    /// `closed` where the node has no agent, else `releasing` until it confirms.
    pub state: LeaseState,
    /// Billing stopped here.
    pub ended_at: When,
    /// Why the activity report was not accepted; the release stands. Absent if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_problem: Option<Problem>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revoke {
    /// `operator` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RevokeReason>,
    /// How long the holder has to get ready; the pool's own unless given. Zero is legal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Ttl>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// All leases of the gang fall together.
    pub ids: Vec<String>,
    /// How long the holder has before teardown begins.
    pub grace: Ttl,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyAnswer {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
    /// Billing stopped here.
    pub ended_at: When,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reported {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
}

/// The generation of the agent that confirms, which an agent always names; an operator needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fences {
    /// The agent's own generation. Operators leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmed {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unfenced {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
}

/// That something was taken back before its time, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revocation {
    /// `preempted`, `quota`, `budget`, `operator`, `node_lost`, `policy` or `duplicate_holder`.
    pub reason: String,
    /// The record that says so.
    pub sequence: u64,
    /// When it was revoked.
    pub at: When,
    /// When its holder must be ready at the latest.
    pub grace_ends_at: When,
    /// The decision to evict it; `audit/decisions` explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<u64>,
}

/// How billing of a lease stopped.
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
}

/// A lease as it stands. `workload`, `labels`, `correlation_id`, `sequence`, `end`, `revocation`, `fenced_at` and
/// `closed_at` are left out of lists of leases that are not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// 128 bits, as 32 hexadecimal digits.
    pub id: String,
    /// The first lease of the request it came with.
    pub gang_id: String,
    /// The allocation whose gang it belongs to, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<u64>,
    /// The app instance that it was granted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance: Option<u64>,
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
    /// In billing units.
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
    /// Labels that its node had to have. Those of a gang are shown with its allocation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it is sensitive work on a claimed node.
    pub sensitive: bool,
    /// Whether it was granted beyond a soft quota.
    pub over_soft: bool,
    /// Correlation ID of the request, as 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Sequence of the record that granted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// When it was granted.
    pub granted_at: When,
    /// Deadline: it ends here unless it is renewed.
    pub expires_at: When,
    /// While it is revoked and still held: when it must be given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ends_at: Option<When>,
    /// Where billing stopped, once it has.
    pub ended_at: Option<When>,
    /// How billing stopped, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<LeaseEnd>,
    /// Why it was revoked, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    /// When its capacity was fenced, because its teardown was not confirmed in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced_at: Option<When>,
    /// When its capacity was free again: at once, when its node confirmed its teardown, or when an operator cleared the
    /// fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<When>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseList {
    /// Leases in order of their numbers.
    pub leases: Vec<Lease>,
    /// Pass as `cursor` for the next page; absent on the last one. A page may hold fewer than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What happened to a lease, in order: its records, as `audit/records` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// ID of the lease: 32 hexadecimal digits.
    pub id: String,
    /// The records about the lease, in order.
    pub records: Vec<serde_json::Value>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What came of one operation of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A request that was granted.
    Granted(Granted),
    /// A request for which others must make room first.
    Waiting(crate::allocation::Submitted),
    /// A lease that was renewed.
    Renewed(Renewed),
    /// A lease that was released.
    Released(Released),
    /// Leases that were revoked.
    Revoked(Revoked),
    /// A lease whose holder is ready.
    Ready(ReadyAnswer),
    /// A lease whose activity was reported.
    Reported(Reported),
    /// A lease whose teardown was confirmed.
    Confirmed(Confirmed),
    /// A lease whose fenced capacity was returned.
    Unfenced(Unfenced),
    /// Why the operation was refused or denied.
    Problem(Problem),
}
