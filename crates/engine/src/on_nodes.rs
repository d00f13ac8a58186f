//! The nodes on which a tenant holds leases. Every grant and every end looks this up, so it is an open-addressing hash
//! table: a lookup waits for memory only once.

use crate::prefetch::prefetch;
use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::{Instant, NodeNo};

/// The leases of a tenant on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    node: NodeNo,
    /// The number of leases; zero if the cell is empty.
    pub(crate) leases: u32,
    /// The latest end of the tenant's leases on the node since it last had none there.
    pub(crate) last_end: Instant,
}

const EMPTY: Cell = Cell { node: NodeNo(0), leases: 0, last_end: Instant(0) };
const CELLS_MIN: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct OnNodes {
    /// Their number is a power of two, or zero. There is no empty cell between a node's home and its cell.
    cells: Vec<Cell>,
    len: usize,
}

impl OnNodes {
    /// The index at which the search for a node begins.
    fn home(&self, node: NodeNo) -> usize {
        let hash = u64::from(node.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(hash >> 32).expect("32 bits") & (self.cells.len() - 1)
    }

    /// The index of a node's cell, or of the empty cell for it. The table must have an empty cell.
    fn find(&self, node: NodeNo) -> usize {
        let mask = self.cells.len() - 1;
        let mut at = self.home(node);
        while self.cells[at].leases > 0 && self.cells[at].node != node {
            at = (at + 1) & mask;
        }
        at
    }

    /// Loads the cell at which the search for a node begins.
    #[inline]
    pub(crate) fn prefetch(&self, node: NodeNo) {
        if !self.cells.is_empty() {
            prefetch(&self.cells[self.home(node)]);
        }
    }

    /// Adds a lease on a node. Returns whether it is the first there.
    pub(crate) fn add(&mut self, node: NodeNo) -> bool {
        // At most half full, so that runs of cells stay short.
        if (self.len + 1) * 2 > self.cells.len() {
            self.grow();
        }
        let at = self.find(node);
        let here = &mut self.cells[at];
        let is_first = here.leases == 0;
        if is_first {
            *here = Cell { node, ..EMPTY };
            self.len += 1;
        }
        self.cells[at].leases += 1;
        is_first
    }

    /// Removes a lease that ended. If it was the last on the node, returns the latest end of all leases there.
    pub(crate) fn remove(&mut self, node: NodeNo, ended: Instant) -> Option<Instant> {
        let at = self.find(node);
        let here = &mut self.cells[at];
        assert!(here.leases > 0, "a lease ended that was not counted");
        here.leases -= 1;
        here.last_end = here.last_end.max(ended);
        let (left, last) = (here.leases, here.last_end);
        (left == 0).then(|| {
            self.close_gap(at);
            self.len -= 1;
            last
        })
    }

    /// Moves later cells into the gap that a search for their node would otherwise stop at.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.cells.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let next = self.cells[at];
            if next.leases == 0 {
                break;
            }
            if (at.wrapping_sub(self.home(next.node)) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.cells[gap] = next;
                gap = at;
            }
        }
        self.cells[gap] = EMPTY;
    }

    fn grow(&mut self) {
        let cells = (self.cells.len() * 2).max(CELLS_MIN);
        for here in std::mem::replace(&mut self.cells, vec![EMPTY; cells]) {
            if here.leases > 0 {
                let at = self.find(here.node);
                self.cells[at] = here;
            }
        }
    }

    /// Sorted by node number, because the order of the cells depends on history.
    pub(crate) fn in_order(&self) -> Vec<(NodeNo, (u32, Instant))> {
        let taken = self.cells.iter().filter(|here| here.leases > 0);
        let mut all: Vec<_> = taken.map(|here| (here.node, (here.leases, here.last_end))).collect();
        all.sort_unstable();
        all
    }
}

impl PartialEq for OnNodes {
    fn eq(&self, other: &Self) -> bool {
        self.in_order() == other.in_order()
    }
}
impl Eq for OnNodes {}

impl Field for OnNodes {
    fn put(&self, out: &mut Vec<u8>) {
        self.in_order().put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let all: Vec<(NodeNo, (u32, Instant))> = Field::get(r)?;
        if !all.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(DecodeError::Forbidden("nodes out of order"));
        }
        if all.iter().any(|(_, (leases, _))| *leases == 0) {
            return Err(DecodeError::Forbidden("a node on which nothing is held"));
        }
        let cells = if all.is_empty() { 0 } else { (all.len() * 2).next_power_of_two().max(CELLS_MIN) };
        let mut found = Self { cells: vec![EMPTY; cells], len: all.len() };
        for (node, (leases, last_end)) in all {
            let at = found.find(node);
            found.cells[at] = Cell { node, leases, last_end };
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// There are few nodes, so that runs of cells meet and wrap around the end.
    #[test]
    fn it_equals_a_map() {
        let mut on = OnNodes::default();
        let mut map: BTreeMap<NodeNo, (u32, Instant)> = BTreeMap::new();
        let mut random = 1u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let node = NodeNo(u32::try_from((random >> 33) % 40).expect("small"));
            let wanted = if step % 4000 < 2000 { 3 } else { 1 };
            if random >> 62 < wanted {
                let here = map.entry(node).or_insert((0, Instant(0)));
                here.0 += 1;
                assert_eq!(on.add(node), here.0 == 1);
            } else if let Some(here) = map.get_mut(&node) {
                here.0 -= 1;
                here.1 = Instant(step);
                let last = (here.0 == 0).then_some(here.1);
                if last.is_some() {
                    map.remove(&node);
                }
                assert_eq!(on.remove(node, Instant(step)), last);
            }
            assert_eq!(on.in_order(), map.iter().map(|(node, here)| (*node, *here)).collect::<Vec<_>>());
        }
        let mut bytes = Vec::new();
        on.put(&mut bytes);
        assert_eq!(OnNodes::get(&mut Reader::new(&bytes)), Ok(on));
    }
}
