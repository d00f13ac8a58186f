//! Nodes sorted by how much of their one class is free.
//!
//! The list is stored in short pieces. A grant or an end moves one node, nearly always within its
//! piece, which is cheaper than a removal and an insertion in a tree.

use leasehold_model::NodeNo;

/// The most nodes in one piece.
const PIECE_MAX: usize = 64;

/// The sort key of a node: its free quanta, then its number.
type Rank = (u64, NodeNo);

/// Ranks in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking {
    /// None of them empty.
    pieces: Vec<Vec<u128>>,
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
        let before = self.pieces.partition_point(|piece| piece.last().is_some_and(|last| *last < key));
        before.min(self.pieces.len().saturating_sub(1))
    }

    pub(crate) fn insert(&mut self, rank: Rank) {
        let key = key(rank);
        let at = self.piece_of(key);
        let Some(piece) = self.pieces.get_mut(at) else {
            self.pieces.push(vec![key]);
            return;
        };
        let index = piece.partition_point(|other| *other < key);
        if piece.get(index) == Some(&key) {
            return;
        }
        piece.insert(index, key);
        if piece.len() > PIECE_MAX {
            let upper = piece.split_off(PIECE_MAX / 2);
            self.pieces.insert(at + 1, upper);
        }
    }

    pub(crate) fn remove(&mut self, rank: Rank) {
        let key = key(rank);
        let at = self.piece_of(key);
        let Some(piece) = self.pieces.get_mut(at) else { return };
        if let Ok(index) = piece.binary_search(&key) {
            piece.remove(index);
            if piece.is_empty() {
                self.pieces.remove(at);
            }
        }
    }

    /// Moves a node whose free quanta change from `before` to `after`.
    pub(crate) fn change(&mut self, node: NodeNo, before: u64, after: u64) {
        let (from, to) = (key((before, node)), key((after, node)));
        let at = self.piece_of(from);
        if let Some(piece) = self.pieces.get_mut(at)
            && let [first, .., last] = piece.as_slice()
            && (*first..=*last).contains(&to)
        {
            // The node stays within its piece: shift the entries between its old and its new index.
            let old = piece.partition_point(|other| *other < from);
            assert_eq!(piece[old], from, "the ranking lacks a node that changes");
            if to > from {
                let new = old + piece[old + 1..].partition_point(|other| *other < to);
                piece.copy_within(old + 1..new + 1, old);
                piece[new] = to;
            } else {
                let new = piece[..old].partition_point(|other| *other < to);
                piece.copy_within(new..old, new + 1);
                piece[new] = to;
            }
            return;
        }
        self.remove((before, node));
        self.insert((after, node));
    }

    /// The nodes with at least `free`, in order.
    pub(crate) fn from(&self, free: u64) -> impl Iterator<Item = Rank> + '_ {
        let least = key((free, NodeNo(0)));
        let at = self.pieces.partition_point(|piece| piece.last().is_some_and(|last| *last < least));
        let mut pieces = self.pieces[at..].iter();
        let first = pieces.next().map_or(&[][..], |piece| &piece[piece.partition_point(|key| *key < least)..]);
        first.iter().chain(pieces.flatten()).map(|key| rank(*key))
    }

    /// The last node with less than `free`; without `free`, the last of all.
    pub(crate) fn last_below(&self, free: Option<u64>) -> Option<Rank> {
        let Some(free) = free else { return self.pieces.last()?.last().map(|key| rank(*key)) };
        let end = key((free, NodeNo(0)));
        let at = self.pieces.partition_point(|piece| piece.first().is_some_and(|first| *first < end));
        let piece = &self.pieces[at.checked_sub(1)?];
        piece[..piece.partition_point(|key| *key < end)].last().map(|key| rank(*key))
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
            assert_eq!(ranking.last_below(None), set.last().copied());
            if step % 500 == 0 {
                let least = draw(42);
                assert!(ranking.from(least).eq(set.range((least, NodeNo(0))..).copied()));
                assert!(ranking.from(0).eq(set.iter().copied()));
                let below = set.range(..(least, NodeNo(0))).next_back().copied();
                assert_eq!(ranking.last_below(Some(least)), below);
            }
        }
    }
}
