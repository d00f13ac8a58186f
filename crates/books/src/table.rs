//! Series by key, numbered in the order in which they came.

use crate::mix::MixMap;
use crate::store::Store;
use leasehold_meter::Series;
use leasehold_model::Instant;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Table<K> {
    pub(crate) keys: Vec<K>,
    pub(crate) all: Vec<Series>,
    index: MixMap<K, u32>,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), all: Vec::new(), index: MixMap::default() }
    }
}

impl<K: Copy + Eq + Hash> Table<K> {
    pub(crate) fn number(&mut self, key: K) -> u32 {
        *self.index.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.all.push(Series::default());
            u32::try_from(self.keys.len() - 1).expect("fewer than 2^32 series")
        })
    }

    pub(crate) fn series(&self, number: u32) -> &Series {
        &self.all[number as usize]
    }

    pub(crate) fn change(&mut self, number: u32, at: Instant, delta: i64, store: &mut Store) {
        self.all[number as usize].change(at, delta, store);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &Series)> {
        self.keys.iter().zip(&self.all)
    }

    pub(crate) fn restore(&mut self, key: K, series: Series) {
        let number = self.number(key) as usize;
        self.all[number] = series;
    }
}

/// Quanta as a change of level.
pub(crate) fn signed(quanta: u64) -> i64 {
    i64::try_from(quanta).expect("quanta are far below 2^63")
}
