//! The state for readers: with leases in order of number, without idempotency keys, and with a placement index that is
//! updated only when a quote or an explanation needs it, so that following the journal stays cheap.

use crate::follow::Follower;
use crate::lease::Lease;
use crate::lease_order::LeaseOrder;
use crate::placement::Placement;
use crate::state::{FoldError, State};
use crate::view::View;
use leasehold_model::{LeaseNo, NodeNo, Record};
use std::ops::Deref;
use std::sync::RwLock;

#[derive(Debug)]
pub struct Readers {
    state: State,
    lease_order: LeaseOrder,
    index: RwLock<Index>,
}

impl Readers {
    /// A copy of `state` for readers, without its idempotency keys. `state` itself is unchanged.
    pub fn beside(state: &mut State) -> Self {
        let keys = std::mem::take(&mut state.idempotency_keys);
        let copy = state.clone();
        state.idempotency_keys = keys;
        let mut index = Index::default();
        copy.nodes().for_each(|node| index.mark(node.number, Mark::Put));
        Self { lease_order: LeaseOrder::of(&copy.leases), state: copy, index: RwLock::new(index) }
    }

    /// Folds one record. After an error the state must be discarded.
    pub fn apply(&mut self, record: &Record) -> Result<(), FoldError> {
        let index = self.index.get_mut().expect(NO_PANIC);
        self.state.fold(record, None, &mut Beside { lease_order: &mut self.lease_order, index })
    }

    /// Loads what folding these records will need into the CPU cache. Changes nothing.
    pub fn warm(&self, records: &[Record]) {
        self.state.warm_records(records.iter());
    }

    /// Leases that are not closed with a higher number than `after`, by number.
    pub fn leases_after(&self, after: Option<LeaseNo>) -> impl Iterator<Item = &Lease> {
        self.lease_order.after(after, &self.state.leases)
    }

    /// Calls `read` with the state and an up-to-date placement index. The cost depends on how many nodes have changed
    /// since the last call. `read` must not call this again: it could wait for itself to update the index.
    pub fn view<T>(&self, read: impl FnOnce(View<'_>) -> T) -> T {
        let is_stale = !self.index.read().expect(NO_PANIC).stale.is_empty();
        if is_stale {
            self.index.write().expect(NO_PANIC).catch_up(&self.state);
        }
        // No record is folded in between: `apply` needs exclusive access.
        read(self.index.read().expect(NO_PANIC).placement.view(&self.state))
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self::beside(&mut State::new())
    }
}

impl Deref for Readers {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

const NO_PANIC: &str = "no thread panics while it holds the placement index";

/// How a node has changed since the index was last updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    #[default]
    Fresh,
    Changed,
    Put,
}

#[derive(Debug, Default)]
struct Index {
    placement: Placement,
    /// By node number.
    marks: Vec<Mark>,
    /// The nodes that are not `Fresh`.
    stale: Vec<NodeNo>,
}

impl Index {
    fn mark(&mut self, node: NodeNo, mark: Mark) {
        let index = node.0 as usize;
        if self.marks.len() <= index {
            self.marks.resize(index + 1, Mark::Fresh);
        }
        if self.marks[index] == Mark::Fresh {
            self.stale.push(node);
        }
        self.marks[index] = self.marks[index].max(mark);
    }

    fn catch_up(&mut self, state: &State) {
        for node in self.stale.drain(..) {
            match std::mem::take(&mut self.marks[node.0 as usize]) {
                Mark::Fresh => {}
                Mark::Changed => self.placement.recount(state, node),
                Mark::Put => self.placement.put(state, node),
            }
        }
        self.placement.refresh_eviction_bounds(state);
    }
}

struct Beside<'a> {
    lease_order: &'a mut LeaseOrder,
    index: &'a mut Index,
}

impl Follower for Beside<'_> {
    fn lease_granted(&mut self, state: &State, slot: u32) {
        self.lease_order.add(state.leases.at(slot).number, slot);
    }
    fn lease_closed(&mut self, state: &State) {
        self.lease_order.note_removed(&state.leases);
    }
    fn node_put(&mut self, _: &State, node: NodeNo) {
        self.index.mark(node, Mark::Put);
    }
    fn node_changed(&mut self, _: &State, node: NodeNo) {
        self.index.mark(node, Mark::Changed);
    }
    fn evictable_changed(&mut self, _: &State, node: NodeNo) {
        self.index.mark(node, Mark::Changed);
    }
}
