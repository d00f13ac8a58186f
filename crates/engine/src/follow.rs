//! The changes that folding a record reports to components beside the state.
//!
//! A [`State`] contains only what every fold needs. Deciding needs more (timers, the placement index, the scheduler),
//! and readers need other things (leases in order). Each of these is a component that follows the fold and is updated
//! by the methods below. A fold without followers pays nothing for them.

use crate::allocation::Allocation;
use crate::idempotency::RememberedKey;
use crate::lease::Lease;
use crate::queue::ShapeKey;
use crate::state::State;
use crate::timer::Entry;
use leasehold_model::body::UsageKey;
use leasehold_model::{AllocationNo, NodeNo, TenantNo};

/// Receives each change in the order in which it happens. `state` may be in the middle of folding the record.
#[expect(unused_variables, reason = "a follower implements only the methods that it needs")]
pub(crate) trait Follower {
    /// A lease was granted and is complete in the table at `slot`.
    fn lease_granted(&mut self, state: &State, slot: u32) {}
    /// The instant of a lease's next timer may have changed.
    fn lease_due(&mut self, state: &State, slot: u32) {}
    /// A lease was removed from the table.
    fn lease_closed(&mut self, state: &State) {}
    /// All grace periods, teardown deadlines and wipe deadlines were restarted.
    fn limits_restarted(&mut self, state: &State) {}
    /// A timer for something other than a lease was set.
    fn comes_due(&mut self, entry: Entry) {}

    /// What is left of a prepaid account, or how fast it is used, may have changed.
    fn prepaid_touched(&mut self, account: u32) {}

    /// An idempotency key is remembered from now on, in this slot.
    fn key_added(&mut self, slot: u32, key: &RememberedKey) {}
    /// An idempotency key is no longer remembered.
    fn key_forgotten(&mut self, slot: u32, key: &RememberedKey) {}

    /// The ID of a usage record is remembered from now on, in this place.
    fn usage_id_added(&mut self, place: u32, key: UsageKey) {}
    /// The ID of a usage record is left to the books.
    fn usage_id_forgotten(&mut self, place: u32, key: UsageKey) {}

    /// A node was added or deleted, or its capacity, location or condition has changed.
    fn node_put(&mut self, state: &State, node: NodeNo) {}
    /// The free capacity or the heat of a node has changed.
    fn node_changed(&mut self, state: &State, node: NodeNo) {}
    /// A lease became evictable (`added`) or is no longer evictable.
    fn evictable(&mut self, lease: &Lease, added: bool) {}
    /// The set of evictable leases on a node has changed, but not its free capacity.
    fn evictable_changed(&mut self, state: &State, node: NodeNo) {}

    /// An allocation begins to wait for capacity.
    fn waits(&mut self, allocation: AllocationNo) {}
    /// An allocation no longer waits for capacity: it left the queue or waits for its victims.
    fn waits_no_longer(&mut self, key: &ShapeKey, allocation: &Allocation) {}
    /// A waiting allocation moved to another shape.
    fn regrouped(&mut self, from: &ShapeKey, to: &ShapeKey, allocation: &Allocation) {}
    /// A lease of an allocation's attempt has ended or begun to end.
    fn attempt_ends(&mut self, allocation: AllocationNo) {}
    /// An attempt was settled by a record.
    fn attempt_over(&mut self, allocation: AllocationNo) {}
    /// Capacity on a node became free.
    fn freed(&mut self, state: &State, node: NodeNo) {}
    /// Capacity was taken by a tenant.
    fn taken(&mut self, state: &State, by: TenantNo) {}
    /// A tenant may have more room under its quotas and ceilings.
    fn headroom(&mut self, state: &State, tenant: TenantNo) {}
    /// Something has changed that may affect waiting allocations.
    fn queue_affected(&mut self, state: &State) {}
    /// A change may let any waiting allocation start, not only those that fit into freed capacity.
    fn recheck_queue(&mut self) {}
    /// The values that the order of tenants is computed from have changed.
    fn standings_changed(&mut self) {}
}

/// A fold without followers.
impl Follower for () {}
