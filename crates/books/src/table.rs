//! Series by key, numbered in the order in which they came.

use crate::mix::MixMap;
use crate::store::Store;
use leasehold_meter::Series;
use leasehold_model::Instant;
use std::hash::Hash;

/// A series, and how many of its blocks' heads the store has as they are.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) series: Series,
    pub(crate) heads_stored: usize,
}

#[derive(Debug)]
pub(crate) struct Table<K> {
    pub(crate) keys: Vec<K>,
    pub(crate) kept: Vec<Kept>,
    index: MixMap<K, u32>,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), kept: Vec::new(), index: MixMap::default() }
    }
}

impl<K: Copy + Eq + Hash> Table<K> {
    pub(crate) fn number(&mut self, key: K) -> u32 {
        *self.index.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.kept.push(Kept::default());
            u32::try_from(self.keys.len() - 1).expect("fewer than 2^32 series")
        })
    }

    pub(crate) fn series(&self, number: u32) -> &Series {
        &self.kept[number as usize].series
    }

    pub(crate) fn change(&mut self, number: u32, at: Instant, delta: i64, store: &mut Store) {
        let kept = &mut self.kept[number as usize];
        kept.series.change(at, delta, store);
        // A block that was opened again is no longer as the store has it.
        kept.heads_stored = kept.heads_stored.min(kept.series.heads().len());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &Series)> {
        self.keys.iter().zip(self.kept.iter().map(|kept| &kept.series))
    }

    pub(crate) fn restore(&mut self, key: K, series: Series) {
        let heads_stored = series.heads().len();
        let number = self.number(key) as usize;
        self.kept[number] = Kept { series, heads_stored };
    }
}

/// Quanta as a change of level.
pub(crate) fn signed(quanta: u64) -> i64 {
    i64::try_from(quanta).expect("quanta are far below 2^63")
}
