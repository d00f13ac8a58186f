//! The placement index: the search trees over all nodes that may be given work, and lower bounds for the cost of
//! evictions on each node.
//!
//! It is derived from the nodes of a state and never part of a snapshot (ADR 12). The engine updates it with every
//! record; readers update it when a query needs it.

use super::NodeTrees;
use crate::ask::Ask;
use crate::evictable::Evictables;
use crate::lease::Lease;
use crate::node::Node;
use crate::preempt::EvictionBounds;
use crate::state::State;
use crate::view::View;
use leasehold_model::NodeNo;

#[derive(Clone, Debug, Default)]
pub struct Placement {
    pub(crate) trees: NodeTrees,
    pub(crate) eviction_bounds: EvictionBounds,
    pub(crate) evictables: Evictables,
}

impl Placement {
    /// The index over all nodes of a state.
    pub fn of(state: &State) -> Self {
        let mut index = Self::default();
        state.nodes().for_each(|node| index.put(state, node.number));
        index
    }

    /// A state with the index over its nodes. The index must be up to date with the state.
    pub fn view<'a>(&'a self, state: &'a State) -> View<'a> {
        View { state, placement: self }
    }

    /// Updates a node that is new or deleted, or whose capacity, location or condition has changed.
    pub(crate) fn put(&mut self, state: &State, number: NodeNo) {
        self.trees.remove(number);
        self.eviction_bounds.forget(number);
        self.evictables.recount(state, number);
        let Some(node) = state.node(number) else { return };
        self.eviction_bounds.update(node, self.evictables.on(number));
        if node.is_available() {
            self.trees.insert(node, state.heat_left(node));
        } else {
            // Claimed nodes are not in the trees, but sensitive work also needs the locality between them.
            self.trees.note_site(node);
        }
    }

    /// Updates a node whose free capacity or heat has changed.
    pub(crate) fn change(&mut self, state: &State, number: NodeNo) {
        let node = state.node(number).expect("a node that changes exists");
        self.trees.change(node, state.heat_left(node));
        self.eviction_bounds.mark_outdated(number);
    }

    /// Recomputes the eviction bounds of the nodes that have changed.
    pub(crate) fn refresh_eviction_bounds(&mut self, state: &State) {
        self.eviction_bounds.refresh(state, &self.evictables);
    }

    /// As [`Self::change`], for a node whose evictable leases were not counted with each record.
    pub(crate) fn recount(&mut self, state: &State, number: NodeNo) {
        self.evictables.recount(state, number);
        self.change(state, number);
    }

    /// Counts a lease that has become evictable, or is no longer. The caller updates its node afterwards.
    pub(crate) fn count_evictable(&mut self, lease: &Lease, added: bool) {
        self.evictables.count(lease, added);
    }

    /// Updates a node whose evictable leases have changed while its free capacity has not.
    pub(crate) fn change_evictable(&mut self, number: NodeNo) {
        self.eviction_bounds.mark_outdated(number);
    }

    /// Whether enough would be free on a node if all leases of lower priority were evicted.
    pub(crate) fn could_make_room(&self, node: &Node, ask: &Ask<'_>) -> bool {
        ask.asks.iter().all(|(class, asked)| {
            let evictable = || self.evictables.below_on(node.number, *class, ask.priority);
            node.class(*class).is_some_and(|found| found.free() + evictable() >= asked.0)
        })
    }
}
