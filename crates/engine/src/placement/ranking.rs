//! Nodes sorted by how much of their one class is free.
//!
//! The list is stored in short pieces. A grant or an end moves one node, nearly always within its
//! piece, which is cheaper than a removal and an insertion in a tree.

use leasehold_model::NodeNo;

/// The most nodes in one piece.
const PIECE_MAX: usize = 32;

/// The sort key of a node: its free quanta, then its number.
type Rank = (u64, NodeNo);

/// Ranks in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking {
    /// None of them empty.
    pieces: Vec<Vec<u128>>,
    /// The last entry of each piece, side by side: a search for a piece does not visit the pieces.
    lasts: Vec<u128>,
}

fn key((free, node): Rank) -> u128 {
    u128::from(free) << 32 | u128::from(node.0)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower 32 bits are the node, the next 64 what is free")]
fn rank(key: u128) -> Rank {
    ((key >> 32) as u64, NodeNo(key as u32))
}

impl Ranking {
    /// The piece that contains `key`, or into which it would be inserted.
    fn piece_of(&self, key: u128) -> usize {
        let before = self.lasts.partition_point(|last| *last < key);
        before.min(self.lasts.len().saturating_sub(1))
    }

    pub(crate) fn insert(&mut self, rank: Rank) {
        let key = key(rank);
        let at = self.piece_of(key);
        let Some(piece) = self.pieces.get_mut(at) else {
            let mut piece = Vec::with_capacity(PIECE_MAX + 1);
            piece.push(key);
            self.pieces.push(piece);
            self.lasts.push(key);
            return;
        };
        let index = piece.partition_point(|other| *other < key);
        if piece.get(index) == Some(&key) {
            return;
        }
        piece.insert(index, key);
        self.lasts[at] = self.lasts[at].max(key);
        if piece.len() > PIECE_MAX {
            let mut upper = Vec::with_capacity(PIECE_MAX + 1);
            upper.extend(piece.drain(PIECE_MAX / 2..));
            self.lasts.insert(at, piece[PIECE_MAX / 2 - 1]);
            self.pieces.insert(at + 1, upper);
        }
    }

    pub(crate) fn remove(&mut self, rank: Rank) {
        let key = key(rank);
        let at = self.piece_of(key);
        let Some(piece) = self.pieces.get(at) else { return };
        if let Ok(index) = piece.binary_search(&key) {
            self.take_out(at, index);
        }
    }

    fn take_out(&mut self, at: usize, index: usize) {
        let piece = &mut self.pieces[at];
        piece.remove(index);
        match piece.last() {
            Some(last) => self.lasts[at] = *last,
            None => {
                self.pieces.remove(at);
                self.lasts.remove(at);
            }
        }
    }

    /// Moves a node whose free quanta change from `before` to `after`.
    pub(crate) fn change(&mut self, node: NodeNo, before: u64, after: u64) {
        let (from, to) = (key((before, node)), key((after, node)));
        let at = self.piece_of(from);
        let piece = &mut self.pieces[at];
        let old = piece.partition_point(|other| *other < from);
        assert_eq!(piece.get(old), Some(&from), "the ranking lacks a node that changes");
        if !(piece[0]..=self.lasts[at]).contains(&to) {
            self.take_out(at, old);
            self.insert((after, node));
            return;
        }
        // The node stays within its piece: shift the entries between its old and its new index.
        if to > from {
            let new = old + piece[old + 1..].partition_point(|other| *other < to);
            piece.copy_within(old + 1..new + 1, old);
            piece[new] = to;
        } else {
            let new = piece[..old].partition_point(|other| *other < to);
            piece.copy_within(new..old, new + 1);
            piece[new] = to;
            self.lasts[at] = piece[piece.len() - 1];
        }
    }

    /// The pieces from the one with the first node that has at least `free`, and the index of that node in it.
    fn position_from(&self, free: u64) -> (&[Vec<u128>], usize) {
        let least = key((free, NodeNo(0)));
        let pieces = &self.pieces[self.lasts.partition_point(|last| *last < least)..];
        (pieces, pieces.first().map_or(0, |piece| piece.partition_point(|key| *key < least)))
    }

    /// The nodes with exactly `free`, in order, and the most that any node has below it.
    pub(crate) fn equal_to(&self, free: u64) -> (impl Iterator<Item = NodeNo> + '_, Option<u64>) {
        let (pieces, index) = self.position_from(free);
        let before = match index.checked_sub(1) {
            Some(before) => Some(pieces[0][before]),
            None => (self.pieces.len() - pieces.len()).checked_sub(1).map(|at| self.lasts[at]),
        };
        let equals = pieces.iter().flatten().skip(index).map(|key| rank(*key));
        (equals.take_while(move |(other, _)| *other == free).map(|(_, node)| node), before.map(|key| rank(key).0))
    }

    /// The least that any node with at least `free` has.
    pub(crate) fn least_from(&self, free: u64) -> Option<u64> {
        let (pieces, index) = self.position_from(free);
        pieces.first().map(|piece| rank(piece[index]).0)
    }

    /// The last node of all.
    pub(crate) fn last(&self) -> Option<Rank> {
        self.lasts.last().map(|key| rank(*key))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Many nodes have the same amount free, and there are enough of them for many pieces.
    #[test]
    fn it_equals_a_sorted_set() {
        let mut ranking = Ranking::default();
        let mut set: BTreeSet<Rank> = BTreeSet::new();
        let mut free = vec![None; 1500];
        let mut random = 7u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for step in 0..30_000u32 {
            let index = usize::try_from(draw(1500)).expect("small");
            let node = NodeNo(u32::try_from(index).expect("small"));
            match free[index] {
                None => {
                    let now = draw(40);
                    ranking.insert((now, node));
                    set.insert((now, node));
                    free[index] = Some(now);
                }
                Some(before) if draw(10) == 0 => {
                    ranking.remove((before, node));
                    set.remove(&(before, node));
                    free[index] = None;
                }
                Some(before) => {
                    let after = if draw(2) == 0 { before + 1 } else { draw(40) };
                    ranking.change(node, before, after);
                    set.remove(&(before, node));
                    set.insert((after, node));
                    free[index] = Some(after);
                }
            }
            assert_eq!(ranking.last(), set.last().copied());
            if step % 500 == 0 {
                for free in 0..45 {
                    let from = (free, NodeNo(0));
                    let (equals, below) = ranking.equal_to(free);
                    assert!(equals.eq(set.range(from..(free + 1, NodeNo(0))).map(|(_, node)| *node)));
                    assert_eq!(below, set.range(..from).next_back().map(|(free, _)| *free));
                    assert_eq!(ranking.least_from(free), set.range(from..).next().map(|(free, _)| *free));
                }
            }
        }
    }
}
