//! The placement index: where every node ranks that may be given work, and what evicting from it costs at least.
//!
//! All of it follows from the nodes of a state, so that it is never in snapshots (ADR 12). Whoever decides keeps it up
//! to date record by record; readers bring it up to date when somebody asks.

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

    /// A state with the index over its nodes. The index must have been told of every change.
    pub fn view<'a>(&'a self, state: &'a State) -> View<'a> {
        View { state, placement: self }
    }

    /// A node is new, gone, or has another capacity, location or condition.
    pub(crate) fn put(&mut self, state: &State, number: NodeNo) {
        self.trees.remove(number);
        self.eviction_bounds.forget(number);
        self.evictables.recount(state, number);
        let Some(node) = state.node(number) else { return };
        self.eviction_bounds.update(node, self.evictables.on(number));
        if node.is_available() {
            self.trees.insert(node, state.heat_left(node));
        } else {
            // Sensitive work is placed near its own, too.
            self.trees.note_site(node);
        }
    }

    /// What is free on a node has changed, or its heat.
    pub(crate) fn change(&mut self, state: &State, number: NodeNo) {
        let node = state.node(number).expect("a node that changes exists");
        self.trees.change(node, state.heat_left(node));
        self.eviction_bounds.update(node, self.evictables.on(number));
    }

    /// The same of a node whose leases nobody has counted meanwhile.
    pub(crate) fn recount(&mut self, state: &State, number: NodeNo) {
        self.evictables.recount(state, number);
        self.change(state, number);
    }

    /// A lease may be evicted from now on, or no longer. The node is told to have changed after that.
    pub(crate) fn count_evictable(&mut self, lease: &Lease, added: bool) {
        self.evictables.count(lease, added);
    }

    /// Which leases on a node may be evicted has changed; what is free there has not.
    pub(crate) fn change_evictable(&mut self, state: &State, number: NodeNo) {
        let node = state.node(number).expect("a lease's node exists");
        self.eviction_bounds.update(node, self.evictables.on(number));
    }

    /// Whether enough would be free on a node if all of lower priority were evicted.
    pub(crate) fn could_make_room(&self, node: &Node, ask: &Ask<'_>) -> bool {
        ask.asks.iter().all(|(class, asked)| {
            let evictable = || self.evictables.below_on(node.number, *class, ask.priority);
            node.class(*class).is_some_and(|found| found.free() + evictable() >= asked.0)
        })
    }
}
