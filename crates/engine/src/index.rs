//! A hash index with open addressing: maps hashes to positions in a table, which the caller compares with the key. A
//! cell has eight bytes, so that a lookup usually waits for memory once. The index is never iterated, so its order
//! cannot influence anything.

use crate::prefetch::prefetch;

/// A cell: the upper half of the hash with [`TAKEN`] set, then the position. Zero if the cell is empty.
type Cell = u64;

const TAKEN: Cell = 1 << 32;
const CELLS_MIN: usize = 64;

/// An index of which at most `FULL` eighths are used. It grows by a factor of `GROWTH` quarters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index<const FULL: usize, const GROWTH: usize> {
    /// An entry is at its home cell or after it, without an empty cell between. After the last cell comes the first.
    cells: Vec<Cell>,
    len: usize,
}

/// At most half full, so that a lookup takes few steps.
pub(crate) type Fast = Index<4, 8>;
/// At least three fifths full, once it is large, so that an entry takes at most 13.4 bytes.
pub(crate) type Dense = Index<6, 5>;

#[expect(clippy::cast_possible_truncation, reason = "the lower half is the position")]
fn place(cell: Cell) -> u32 {
    cell as u32
}

fn cell(hash: u64, place: u32) -> Cell {
    (hash & !u64::from(u32::MAX)) | TAKEN | Cell::from(place)
}

impl<const FULL: usize, const GROWTH: usize> Index<FULL, GROWTH> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The home cell of an entry: the upper half of the hash, scaled to the number of cells.
    #[inline]
    fn home(&self, cell: Cell) -> usize {
        let scaled = ((cell >> 32) * self.cells.len() as u64) >> 32;
        usize::try_from(scaled).expect("less than the number of cells")
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.cells.len() { 0 } else { at + 1 }
    }

    /// The position stored under `hash` for which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let wanted = cell(hash, 0);
        let mut at = self.home(wanted);
        while let Some(found) = self.cells.get(at) {
            if (found ^ wanted) < TAKEN {
                if is_it(place(*found)) {
                    return Some(place(*found));
                }
            } else if *found == 0 {
                return None;
            }
            at = self.after(at);
        }
        None
    }

    /// Loads the home cell of a hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(home) = self.cells.get(self.home(cell(hash, 0))) {
            prefetch(home);
        }
    }

    /// The position in the home cell of a hash, which is often the one that is wanted.
    #[inline]
    pub(crate) fn likely(&self, hash: u64) -> u32 {
        self.cells.get(self.home(cell(hash, 0))).map_or(0, |found| place(*found))
    }

    /// Adds a position that is not in the index.
    pub(crate) fn insert(&mut self, hash: u64, place: u32) {
        if (self.len + 1) * 8 > self.cells.len() * FULL {
            self.resize((self.cells.len() * GROWTH / 4).max(CELLS_MIN));
        }
        self.put(cell(hash, place));
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, cell: Cell) {
        let mut at = self.home(cell);
        while self.cells[at] != 0 {
            at = self.after(at);
        }
        self.cells[at] = cell;
    }

    /// Removes a position that is in the index, and closes the gap.
    pub(crate) fn remove(&mut self, hash: u64, place: u32) {
        let gone = cell(hash, place);
        let mut gap = self.home(gone);
        while self.cells[gap] != gone {
            assert!(self.cells[gap] != 0, "the removed position is in the index");
            gap = self.after(gap);
        }
        let cells = self.cells.len();
        let distance = |from: usize, to: usize| if to >= from { to - from } else { to + cells - from };
        let mut at = gap;
        loop {
            at = self.after(at);
            let next = self.cells[at];
            if next == 0 {
                break;
            }
            if distance(self.home(next), at) >= distance(gap, at) {
                self.cells[gap] = next;
                gap = at;
            }
        }
        self.cells[gap] = 0;
        self.len -= 1;
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        let cells = ((self.len + more) * 8).div_ceil(FULL).max(CELLS_MIN);
        if cells > self.cells.len() {
            self.resize(cells);
        }
    }

    fn resize(&mut self, cells: usize) {
        assert!(cells <= 1 << 31, "fewer than 2^31 cells");
        let before = std::mem::replace(&mut self.cells, vec![0; cells]);
        before.into_iter().filter(|cell| *cell != 0).for_each(|cell| self.put(cell));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Compares with a map, using hashes that collide often and that wrap around the end of the array.
    #[test]
    fn it_finds_what_was_filed_and_nothing_else() {
        finds_what_was_filed_and_nothing_else(Fast::default);
        finds_what_was_filed_and_nothing_else(Dense::default);
    }

    fn finds_what_was_filed_and_nothing_else<const F: usize, const G: usize>(new: fn() -> Index<F, G>) {
        for crowd in [1u64, 7, 64, u64::MAX] {
            let mut index = new();
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

    #[test]
    fn a_large_dense_index_takes_few_bytes_for_an_entry() {
        let mut index = Dense::default();
        for n in 0..100_000u32 {
            index.insert(u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15), n);
            let bytes = index.cells.len() * size_of::<Cell>();
            assert!(index.len() < 1000 || bytes * 10 <= index.len() * 134, "{bytes} bytes for {} entries", index.len());
        }
    }
}
