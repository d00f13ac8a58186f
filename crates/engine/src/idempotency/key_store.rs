//! Where remembered keys are: queues that share one table of chunks, so that a key has a slot of 32 bits and keeps it.

use super::RememberedKey;
use leasehold_model::Instant;
use std::collections::VecDeque;

/// Keys in a chunk. Most tenants have few keys, and a queue wastes at most two chunks.
const CHUNK: u32 = 64;

/// The chunks of all queues. The key with slot `s` is in chunk `s / CHUNK`.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    all: Vec<Vec<RememberedKey>>,
    /// Chunks that belong to no queue.
    unused: Vec<u32>,
}

impl Chunks {
    pub(super) fn at(&self, slot: u32) -> &RememberedKey {
        &self.all[(slot / CHUNK) as usize][(slot % CHUNK) as usize]
    }

    fn take(&mut self) -> u32 {
        self.unused.pop().unwrap_or_else(|| {
            self.all.push(Vec::new());
            u32::try_from(self.all.len() - 1).expect("the keys fit in memory")
        })
    }

    fn give_back(&mut self, chunk: u32) {
        self.all[chunk as usize] = Vec::new();
        self.unused.push(chunk);
    }
}

/// Keys in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyQueue {
    chunks: VecDeque<u32>,
    /// How many keys at the beginning of the first chunk are gone.
    gone: u32,
    len: u32,
    /// The stamp of the first key.
    oldest: Instant,
}

impl KeyQueue {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// The stamp of the oldest key, if there is a key.
    pub(super) fn oldest(&self) -> Instant {
        self.oldest
    }

    pub(super) fn push(&mut self, chunks: &mut Chunks, key: RememberedKey) -> u32 {
        let within = (self.gone + self.len) % CHUNK;
        if within == 0 {
            self.chunks.push_back(chunks.take());
        }
        let chunk = *self.chunks.back().expect("a chunk was added if there was none");
        let keys = &mut chunks.all[chunk as usize];
        if keys.len() == keys.capacity() && self.chunks.len() > 1 {
            // A queue that fills one chunk will fill another.
            keys.reserve_exact(CHUNK as usize - keys.len());
        }
        keys.push(key);
        if self.len == 0 {
            self.oldest = key.stamp;
        }
        self.len += 1;
        chunk * CHUNK + within
    }

    /// Removes the oldest key; there must be one.
    pub(super) fn pop(&mut self, chunks: &mut Chunks) -> (u32, RememberedKey) {
        let chunk = self.chunks[0];
        let slot = chunk * CHUNK + self.gone;
        let key = *chunks.at(slot);
        self.gone += 1;
        self.len -= 1;
        if self.gone == CHUNK || self.len == 0 {
            self.chunks.pop_front();
            self.gone = 0;
            chunks.give_back(chunk);
        }
        if let Some(chunk) = self.chunks.front() {
            self.oldest = chunks.at(chunk * CHUNK + self.gone).stamp;
        }
        (slot, key)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let place = move |place: u32| self.chunks[(place / CHUNK) as usize] * CHUNK + place % CHUNK;
        (self.gone..self.gone + self.len).map(place)
    }
}
