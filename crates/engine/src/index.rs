//! A hash index with open addressing: maps hashes to positions in a table, which the caller compares with the key. A
//! cell has eight bytes, so that a lookup usually waits for memory once. The index is never iterated, so its order
//! cannot influence anything.

/// A cell: the upper half of the hash with [`TAKEN`] set, then the position. Zero if the cell is empty.
type Cell = u64;

const TAKEN: Cell = 1 << 32;
const CELLS_MIN: usize = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Their number is zero or a power of two. An entry is at its home cell or after it, without an empty cell between.
    cells: Vec<Cell>,
    /// How far a hash is shifted to the right to get its home cell.
    shift: u32,
    len: usize,
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is the position")]
fn place(cell: Cell) -> u32 {
    cell as u32
}

fn cell(hash: u64, place: u32) -> Cell {
    (hash & !u64::from(u32::MAX)) | TAKEN | Cell::from(place)
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The home cell of an entry; the upper bits of the entry are those of its hash.
    #[inline]
    fn home(&self, cell: Cell) -> usize {
        usize::try_from(cell >> self.shift).expect("the shift leaves as many bits as a cell number has")
    }

    /// The position stored under `hash` for which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let cells = self.cells.as_slice();
        let wanted = cell(hash, 0);
        let mut at = self.home(wanted);
        while let Some(found) = cells.get(at & cells.len().wrapping_sub(1)) {
            if (found ^ wanted) < TAKEN {
                if is_it(place(*found)) {
                    return Some(place(*found));
                }
            } else if *found == 0 {
                return None;
            }
            at += 1;
        }
        None
    }

    /// Loads the home cell of a hash, and returns the position in it, which is often the one that is wanted.
    pub(crate) fn touch(&self, hash: u64) -> u32 {
        self.cells.get(self.home(cell(hash, 0))).map_or(0, |found| place(*found))
    }

    /// Adds a position that is not in the index.
    pub(crate) fn insert(&mut self, hash: u64, place: u32) {
        // At most half full, so that runs stay short.
        if (self.len + 1) * 2 > self.cells.len() {
            self.resize((self.cells.len() * 2).max(CELLS_MIN));
        }
        self.put(cell(hash, place));
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, cell: Cell) {
        let mask = self.cells.len() - 1;
        let mut at = self.home(cell);
        while self.cells[at & mask] != 0 {
            at += 1;
        }
        self.cells[at & mask] = cell;
    }

    /// Removes a position that is in the index, and closes the gap.
    pub(crate) fn remove(&mut self, hash: u64, place: u32) {
        let mask = self.cells.len() - 1;
        let gone = cell(hash, place);
        let mut gap = self.home(gone);
        while self.cells[gap & mask] != gone {
            assert!(self.cells[gap & mask] != 0, "the removed position is in the index");
            gap += 1;
        }
        let mut at = gap;
        loop {
            at += 1;
            let next = self.cells[at & mask];
            if next == 0 {
                break;
            }
            let from_home = at.wrapping_sub(self.home(next)) & mask;
            if from_home >= at - gap {
                self.cells[gap & mask] = next;
                gap = at;
            }
        }
        self.cells[gap & mask] = 0;
        self.len -= 1;
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        let cells = ((self.len + more) * 2).next_power_of_two().max(CELLS_MIN);
        if cells > self.cells.len() {
            self.resize(cells);
        }
    }

    fn resize(&mut self, cells: usize) {
        assert!(cells <= 1 << 31, "fewer than 2^31 cells");
        let before = std::mem::replace(&mut self.cells, vec![0; cells]);
        self.shift = 64 - cells.trailing_zeros();
        for cell in before.into_iter().filter(|cell| *cell != 0) {
            self.put(cell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Compares with a map, using hashes that collide often and that wrap around the end of the array.
    #[test]
    fn it_finds_what_was_filed_and_nothing_else() {
        for crowd in [1u64, 7, 64, u64::MAX] {
            let mut index = Index::default();
            let mut filed: BTreeMap<u32, u64> = BTreeMap::new();
            let mut dice = 1u64;
            for step in 0..4000u32 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let hash = !((dice >> 33) % crowd) << 32;
                if dice % 5 < 3 {
                    index.insert(hash, step);
                    filed.insert(step, hash);
                } else if let Some((place, hash)) = filed.pop_first() {
                    index.remove(hash, place);
                    assert_eq!(index.find(hash, |found| found == place), None);
                }
                assert_eq!(index.len(), filed.len());
                if step % 97 == 0 {
                    for (place, hash) in &filed {
                        assert_eq!(index.find(*hash, |found| found == *place), Some(*place));
                    }
                }
            }
        }
    }
}
