//! Series by key on one timeline, numbered in order of creation.

use crate::mix::MixMap;
use crate::store::Store;
use leasehold_meter::Timeline;
use leasehold_model::Instant;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Table<K> {
    pub(crate) keys: Vec<K>,
    index: MixMap<K, u32>,
    pub(crate) timeline: Timeline,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), index: MixMap::default(), timeline: Timeline::default() }
    }
}

impl<K: Copy + Eq + Hash> Table<K> {
    pub(crate) fn number(&mut self, key: K) -> u32 {
        *self.index.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.timeline.add()
        })
    }

    /// The number of a key, if it has one.
    pub(crate) fn known(&self, key: &K) -> Option<u32> {
        self.index.get(key).copied()
    }

    pub(crate) fn change(&mut self, number: u32, at: Instant, delta: i64, store: &mut Store) {
        self.timeline.change(number, at, delta, store);
    }

    /// Every key with its number, in order of number.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &K)> {
        (0u32..).zip(&self.keys)
    }

    pub(crate) fn restore(keys: Vec<K>, timeline: Timeline) -> Option<Self> {
        let index: MixMap<K, u32> = (0u32..).zip(&keys).map(|(number, key)| (*key, number)).collect();
        let sound = index.len() == keys.len() && timeline.series() == keys.len();
        sound.then_some(Self { keys, index, timeline })
    }
}

/// Quanta as a change of level.
pub(crate) fn signed(quanta: u64) -> i64 {
    i64::try_from(quanta).expect("quanta are far below 2^63")
}
