//! Sets of events as ranges of places.
//!
//! A range says nothing about places at which there is no event, so two ranges may be joined when only such places are
//! between them.

use crate::event::Place;
use serde::{Deserialize, Serialize};

/// Half-open ranges, in order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(Vec<(Place, Place)>);

impl Ranges {
    pub fn iter(&self) -> impl Iterator<Item = (Place, Place)> + '_ {
        self.0.iter().copied()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the ranges are in order, not empty and apart: what was read from a file may not be.
    pub fn is_sound(&self) -> bool {
        self.0.iter().all(|(from, to)| from < to) && self.0.windows(2).all(|pair| pair[0].1 < pair[1].0)
    }

    pub fn contains(&self, place: Place) -> bool {
        let after = self.0.partition_point(|(from, _)| *from <= place);
        after > 0 && place < self.0[after - 1].1
    }

    /// Adds the places in [from, to).
    pub fn add(&mut self, from: Place, to: Place) {
        if from >= to {
            return;
        }
        let first = self.0.partition_point(|(_, end)| *end < from);
        let last = self.0.partition_point(|(start, _)| *start <= to);
        let joined = self.0[first..last].iter().fold((from, to), |(from, to), (a, b)| (from.min(*a), to.max(*b)));
        self.0.splice(first..last, [joined]);
    }

    /// Removes the places in [from, to).
    pub fn remove(&mut self, from: Place, to: Place) {
        if from >= to {
            return;
        }
        let first = self.0.partition_point(|(_, end)| *end <= from);
        let last = self.0.partition_point(|(start, _)| *start < to);
        if first >= last {
            return;
        }
        let before = (self.0[first].0, from);
        let after = (to, self.0[last - 1].1);
        self.0.splice(first..last, [before, after].into_iter().filter(|(a, b)| a < b));
    }

    /// The parts of the ranges that lie in [from, to).
    pub fn within(&self, from: Place, to: Place) -> Self {
        let cut = self.0.iter().map(|(a, b)| ((*a).max(from), (*b).min(to)));
        Self(cut.filter(|(a, b)| a < b).collect())
    }

    /// Keeps the first `most` ranges.
    pub fn truncate(&mut self, most: usize) {
        self.0.truncate(most);
    }

    /// Joins neighbours with few records between them until at most `most` ranges are left.
    pub fn coarsen(&mut self, most: usize) {
        while self.0.len() > most.max(1) {
            let gap = |at: usize| self.0[at + 1].0.sequence.saturating_sub(self.0[at].1.sequence);
            let at = (0..self.0.len() - 1).min_by_key(|at| gap(*at)).expect("at least two ranges");
            self.0[at].1 = self.0[at + 1].1;
            self.0.remove(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_are_sets_of_places() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut ranges, mut expected) = (Ranges::default(), BTreeSet::new());
            for step in 0..60 {
                let (from, length) = (random.u64(0..80), random.u64(0..10));
                let (start, end) = (Place::start_of(from), Place::start_of(from + length));
                if random.u8(0..3) > 0 {
                    ranges.add(start, end);
                    expected.extend(from..from + length);
                } else {
                    ranges.remove(start, end);
                    expected.retain(|one| !(from..from + length).contains(one));
                }
                assert!(ranges.is_sound(), "seed {seed}, step {step}: {ranges:?}");
                let held: BTreeSet<_> = (0..100).filter(|one| ranges.contains(Place::start_of(*one))).collect();
                assert_eq!(held, expected, "seed {seed}, step {step}");
                let within = ranges.within(Place::start_of(20), Place::start_of(50));
                let cut: BTreeSet<_> = (0..100).filter(|one| within.contains(Place::start_of(*one))).collect();
                assert_eq!(cut, expected.range(20..50).copied().collect(), "seed {seed}, step {step}");
            }
            let before = ranges.clone();
            ranges.coarsen(3);
            assert!(ranges.len() <= 3 && ranges.is_sound());
            assert!(before.iter().all(|(from, _)| ranges.contains(from)));
        }
    }
}
