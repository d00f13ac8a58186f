//! What is going on now: one answer for an operator's first look.

use crate::claim::Custody;
use crate::id::AllocationId;
use crate::scrub::AuditStatus;
use crate::time::When;
use crate::webhook::DeliverySummary;
use leasehold_model::{Priority, ResourceKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the cluster and of the daemon. Nodes, leases and allocations are counted one after the other, while
/// changes are made: in a busy cluster the counts can differ by what changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The present instant by the clock of the daemon.
    pub as_of: When,
    /// Capacity by class and state, in order of class numbers.
    pub classes: Vec<ClassStatus>,
    /// Nodes by state.
    pub nodes: NodeCounts,
    /// Leases by state.
    pub leases: LeaseCounts,
    /// Tenants that hold something or wait for it, those with the largest share of a class first; at most 10.
    pub tenants: Vec<TenantStatus>,
    /// Number of tenants that hold something or wait for it.
    pub tenant_count: u64,
    /// The queue.
    pub queue: QueueStatus,
    /// Fenced leases, the oldest first; at most 10. `leases.fenced` counts all of them.
    pub fences: Vec<Fence>,
    /// Quarantined nodes in order of their numbers; at most 10. `nodes.quarantined` counts all of them.
    pub quarantines: Vec<Quarantine>,
    /// The disk with the data directory; null if it cannot be examined.
    pub disk: Option<DiskStatus>,
    /// Deliveries of events; null if they are off.
    pub deliveries: Option<DeliverySummary>,
    /// The newest checkpoint, and what the scrub found.
    pub audit: AuditStatus,
}

/// Capacity of one class on all nodes, in quanta. The six parts add up to the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassStatus {
    /// Name of the resource class.
    pub class: String,
    /// Number of the class.
    pub class_id: u32,
    /// Kind of resource.
    pub kind: ResourceKind,
    /// Name of its billing unit.
    pub unit: String,
    /// Number of quanta in one billing unit.
    pub quanta_per_unit: u64,
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

/// Numbers of nodes. Each node counts in one of the states: the one that needs an operator most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCounts {
    /// All nodes.
    pub all: u64,
    /// Nodes that take work of everyone.
    pub available: u64,
    /// Drained nodes.
    pub drained: u64,
    /// Lost nodes.
    pub lost: u64,
    /// Nodes that are claimed for sensitive work.
    pub claimed: u64,
    /// Nodes that are being wiped.
    pub wiping: u64,
    /// Quarantined nodes.
    pub quarantined: u64,
    /// Nodes without a registered agent, in any state.
    pub without_agent: u64,
}

/// Numbers of leases that are not closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseCounts {
    /// Leases that are held.
    pub active: u64,
    /// Leases that are revoked and within their grace.
    pub revoking: u64,
    /// Leases that ended and are being torn down.
    pub tearing_down: u64,
    /// Leases whose teardown was not confirmed in time.
    pub fenced: u64,
}

/// What one tenant holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantStatus {
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Number of its leases that are held.
    pub leases: u64,
    /// Number of its allocations that wait.
    pub waiting: u64,
    /// What it holds, by class.
    pub held: Vec<HeldInClass>,
}

/// An amount of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldInClass {
    /// Name of the resource class.
    pub class: String,
    /// The amount, in quanta.
    pub held: u64,
    /// The amount in thousandths of the whole capacity of the class, rounded down.
    pub share_permille: u64,
}

/// The queue of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueStatus {
    /// Number of allocations that wait.
    pub waiting: u64,
    /// How many of them have each priority, the highest priority first.
    pub priorities: Vec<WaitingByPriority>,
    /// The allocation that was submitted first among those that wait; null if none waits.
    pub oldest_allocation_id: Option<AllocationId>,
    /// When it was submitted; null if none waits.
    pub oldest_submitted_at: Option<When>,
    /// Number of allocations that run.
    pub running: u64,
}

/// Allocations of one priority that wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingByPriority {
    /// The priority.
    pub priority: Priority,
    /// Number of allocations that wait.
    pub waiting: u64,
}

/// A fenced lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fence {
    /// The lease: `lease-` and its number.
    pub lease: String,
    /// The 128-bit ID of the lease: 32 hexadecimal digits.
    pub lease_uid: String,
    /// Name of its node.
    pub node: String,
    /// Name of its resource class.
    pub class: String,
    /// Its capacity, in quanta.
    pub quanta: u64,
    /// When the lease ended.
    pub ended_at: When,
}

/// A quarantined node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantine {
    /// Name of the node.
    pub node: String,
    /// Since when, and why.
    pub custody: Custody,
}

/// The disk with the data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskStatus {
    /// Free bytes.
    pub free_bytes: u64,
    /// Size of the disk, in bytes.
    pub size_bytes: u64,
    /// Bytes that are allocated for the journal and can be appended.
    pub journal_room_bytes: u64,
}
