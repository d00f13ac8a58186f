//! The changes that folding a record reports to whatever is kept beside a state.
//!
//! A [`State`] holds what everybody needs who folds records. Deciding needs more (timers, the placement index, the
//! scheduler), readers need other things (leases in order). Each of these is a component that follows the fold; a fold
//! that nobody follows is compiled without a trace of them.

use crate::allocation::Allocation;
use crate::lease::Lease;
use crate::queue::ShapeKey;
use crate::state::State;
use crate::timer::Entry;
use leasehold_model::{AllocationNo, NodeNo, TenantNo};

/// Told of each change in the order in which it happens. `state` is as far as the fold has come with the record.
#[expect(unused_variables, reason = "a follower that does not care about a change leaves it out")]
pub(crate) trait Follower {
    /// A lease stands in the table at `slot`, with everything that a grant says of it.
    fn lease_granted(&mut self, state: &State, slot: u32) {}
    /// The instant may have changed at which something happens to a lease by itself.
    fn lease_due(&mut self, state: &State, slot: u32) {}
    /// A lease has just left the table.
    fn lease_closed(&mut self, state: &State) {}
    /// All limits on others' work start afresh.
    fn limits_restarted(&mut self, state: &State) {}
    /// Something other than a lease comes due.
    fn comes_due(&mut self, entry: Entry) {}

    /// A node is new, gone, or has another capacity, location or condition.
    fn node_put(&mut self, state: &State, node: NodeNo) {}
    /// What is free on a node has changed, or its heat.
    fn node_changed(&mut self, state: &State, node: NodeNo) {}
    /// A lease may be evicted from now on, or no longer.
    fn evictable(&mut self, lease: &Lease, added: bool) {}
    /// Which leases on a node may be evicted has changed; what is free there has not.
    fn evictable_changed(&mut self, state: &State, node: NodeNo) {}

    /// An allocation waits for capacity from now on.
    fn waits(&mut self, allocation: AllocationNo) {}
    /// An allocation waits no longer, or waits for its victims only.
    fn waits_no_longer(&mut self, key: &ShapeKey, allocation: &Allocation) {}
    /// An allocation that waits is grouped with others from now on.
    fn regrouped(&mut self, from: &ShapeKey, to: &ShapeKey, allocation: &Allocation) {}
    /// A lease of an allocation's attempt has ended, or begun to end.
    fn attempt_ends(&mut self, allocation: AllocationNo) {}
    /// A record says what became of an attempt.
    fn attempt_over(&mut self, allocation: AllocationNo) {}
    /// Capacity on a node was given back.
    fn freed(&mut self, state: &State, node: NodeNo) {}
    /// Capacity was taken by a tenant.
    fn taken(&mut self, state: &State, by: TenantNo) {}
    /// A tenant may have more room under its quotas and ceilings.
    fn headroom(&mut self, state: &State, tenant: TenantNo) {}
    /// Something has changed that may matter to those that wait.
    fn stirred(&mut self, state: &State) {}
    /// More may have become possible for those that wait than what was freed tells.
    fn anything_possible(&mut self) {}
    /// What the order of tenants in the queue is made of has changed.
    fn standings_changed(&mut self) {}
}

/// Nobody follows.
impl Follower for () {}
