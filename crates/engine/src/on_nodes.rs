//! On which nodes a tenant holds something. Looked up with every grant and every end, so it is one open array to a
//! tenant: a look-up waits for memory once.

use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::{Instant, NodeNo};

/// What a tenant holds on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    node: NodeNo,
    /// How many leases. Zero where the cell is empty.
    pub(crate) leases: u32,
    /// The last end of those that were there meanwhile.
    pub(crate) last_end: Instant,
}

const EMPTY: Cell = Cell { node: NodeNo(0), leases: 0, last_end: Instant(0) };
const CELLS_MIN: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct OnNodes {
    /// A power of two of them, or none. A cell lies at or after its home, with no gap between.
    cells: Vec<Cell>,
    len: usize,
}

impl OnNodes {
    fn home(&self, node: NodeNo) -> usize {
        let hash = u64::from(node.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(hash >> 32).expect("32 bits") & (self.cells.len() - 1)
    }

    /// The cell of a node, or the empty one where it belongs. There must be an empty one.
    fn place(&self, node: NodeNo) -> usize {
        let mask = self.cells.len() - 1;
        let mut at = self.home(node);
        while self.cells[at].leases > 0 && self.cells[at].node != node {
            at = (at + 1) & mask;
        }
        at
    }

    /// How many leases are there.
    pub(crate) fn leases(&self, node: NodeNo) -> u32 {
        if self.cells.is_empty() { 0 } else { self.cells[self.place(node)].leases }
    }

    /// One more lease there; answers whether it is the first.
    pub(crate) fn add(&mut self, node: NodeNo) -> bool {
        // At most half full: runs stay short.
        if (self.len + 1) * 2 > self.cells.len() {
            self.grow();
        }
        let at = self.place(node);
        let here = &mut self.cells[at];
        let is_first = here.leases == 0;
        if is_first {
            *here = Cell { node, ..EMPTY };
            self.len += 1;
        }
        self.cells[at].leases += 1;
        is_first
    }

    /// A lease there ended; where it was the last one, answers the last end of all that were there.
    pub(crate) fn remove(&mut self, node: NodeNo, ended: Instant) -> Option<Instant> {
        let at = self.place(node);
        let here = &mut self.cells[at];
        assert!(here.leases > 0, "a lease that ends was counted");
        here.leases -= 1;
        here.last_end = here.last_end.max(ended);
        let (left, last) = (here.leases, here.last_end);
        (left == 0).then(|| {
            self.close_gap(at);
            self.len -= 1;
            last
        })
    }

    /// Moves those behind an emptied cell up that would not be found any more.
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
                let at = self.place(here.node);
                self.cells[at] = here;
            }
        }
    }

    /// By number: the order of the cells means nothing.
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
            let at = found.place(node);
            found.cells[at] = Cell { node, leases, last_end };
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Against a map, with few nodes, so that runs meet and wrap round the end.
    #[test]
    fn it_counts_as_a_map_does() {
        let mut on = OnNodes::default();
        let mut map: BTreeMap<NodeNo, (u32, Instant)> = BTreeMap::new();
        let mut dice = 1u64;
        for step in 0..20_000u64 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let node = NodeNo(u32::try_from((dice >> 33) % 40).expect("small"));
            let wanted = if step % 4000 < 2000 { 3 } else { 1 };
            if dice >> 62 < wanted {
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
