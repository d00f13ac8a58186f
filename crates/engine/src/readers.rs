//! The state for readers: leases in order of number, no idempotency keys, and a placement index that is brought up to
//! date when somebody asks where something would go, so that following the journal costs readers little.

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
    /// Readers of what `state` says, which its owner keeps: the keys alone are not copied.
    pub fn beside(state: &mut State) -> Self {
        let keys = std::mem::take(&mut state.idempotency_keys);
        let copy = state.clone();
        state.idempotency_keys = keys;
        let mut index = Index::default();
        copy.nodes().for_each(|node| index.mark(node.number, Mark::Put));
        Self { lease_order: LeaseOrder::of(&copy.leases), state: copy, index: RwLock::new(index) }
    }

    /// Folds one record. After an error the state must be thrown away.
    pub fn apply(&mut self, record: &Record) -> Result<(), FoldError> {
        let index = self.index.get_mut().expect(NO_PANIC);
        self.state.fold(record, None, &mut Beside { lease_order: &mut self.lease_order, index })
    }

    /// Leases that are not closed with a higher number than `after`, by number.
    pub fn leases_after(&self, after: Option<LeaseNo>) -> impl Iterator<Item = &Lease> {
        self.lease_order.after(after, &self.state.leases)
    }

    /// Looks at the state with the placement index, which costs as much as nodes have changed since the last look. Do not
    /// look again inside: another look may wait to bring the index up to date.
    pub fn view<T>(&self, look: impl FnOnce(View<'_>) -> T) -> T {
        let is_stale = !self.index.read().expect(NO_PANIC).stale.is_empty();
        if is_stale {
            self.index.write().expect(NO_PANIC).catch_up(&self.state);
        }
        // Nobody folds meanwhile: that takes this exclusively.
        look(self.index.read().expect(NO_PANIC).placement.view(&self.state))
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

const NO_PANIC: &str = "no one panics with the placement index";

/// What has become of a node since the index saw it last.
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
    /// By node.
    marks: Vec<Mark>,
    /// Those that are not fresh.
    stale: Vec<NodeNo>,
}

impl Index {
    fn mark(&mut self, node: NodeNo, mark: Mark) {
        let place = node.0 as usize;
        if self.marks.len() <= place {
            self.marks.resize(place + 1, Mark::Fresh);
        }
        if self.marks[place] == Mark::Fresh {
            self.stale.push(node);
        }
        self.marks[place] = self.marks[place].max(mark);
    }

    fn catch_up(&mut self, state: &State) {
        for node in self.stale.drain(..) {
            match std::mem::take(&mut self.marks[node.0 as usize]) {
                Mark::Fresh => {}
                Mark::Changed => self.placement.recount(state, node),
                Mark::Put => self.placement.put(state, node),
            }
        }
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
        self.lease_order.remove_one(&state.leases);
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
