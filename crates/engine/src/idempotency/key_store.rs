//! Where remembered keys are: queues of chunks. All chunks are in one table, so a key has a slot of 32 bits and keeps it.
//!
//! Each request of another tenant adds to another queue, which is rarely in the CPU cache. So adding a key touches two
//! places only: the queue, and the memory of the key.

use super::RememberedKey;
use leasehold_model::Instant;

/// Keys in a chunk. Most tenants have few keys, and a queue wastes at most two chunks.
const CHUNK: u32 = 16;
/// Chunks in a page, which is allocated and returned as a whole.
const PAGE: u32 = 256;

const NO_CHUNK: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
struct Page {
    /// The keys of its chunks; no memory while all of its chunks are unused.
    keys: Vec<RememberedKey>,
    unused: Vec<u32>,
}

/// The chunks of all queues. The key with slot `s` is in chunk `s / CHUNK`.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    pages: Vec<Page>,
    /// The pages with unused chunks.
    roomy: Vec<u32>,
    /// The chunk that follows each chunk in its queue.
    next: Vec<u32>,
}

impl Chunks {
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &RememberedKey {
        &self.pages[(slot / (CHUNK * PAGE)) as usize].keys[(slot % (CHUNK * PAGE)) as usize]
    }

    #[inline]
    fn set(&mut self, slot: u32, key: RememberedKey) {
        self.pages[(slot / (CHUNK * PAGE)) as usize].keys[(slot % (CHUNK * PAGE)) as usize] = key;
    }

    #[cfg(test)]
    pub(super) fn pages_in_memory(&self) -> usize {
        self.pages.iter().filter(|page| page.keys.capacity() > 0).count()
    }

    fn take(&mut self) -> u32 {
        let Some(page) = self.roomy.last().copied() else {
            return self.take_from_new_page();
        };
        let found = &mut self.pages[page as usize];
        let chunk = found.unused.pop().expect("a page with room has an unused chunk");
        if found.unused.is_empty() {
            self.roomy.pop();
        }
        found.keys.resize((CHUNK * PAGE) as usize, RememberedKey::NONE);
        self.next[chunk as usize] = NO_CHUNK;
        chunk
    }

    fn take_from_new_page(&mut self) -> u32 {
        let page = u32::try_from(self.pages.len()).expect("the keys fit in memory");
        let first = page.checked_mul(PAGE).filter(|first| *first < u32::MAX / CHUNK - PAGE);
        let first = first.expect("fewer than 2^32 keys are remembered");
        // In descending order, so that the first chunk is used first.
        let unused = (first..first + PAGE).rev().collect();
        self.pages.push(Page { keys: Vec::new(), unused });
        self.next.resize(self.next.len() + PAGE as usize, NO_CHUNK);
        self.roomy.push(page);
        self.take()
    }

    fn give_back(&mut self, chunk: u32) {
        let page = chunk / PAGE;
        let found = &mut self.pages[page as usize];
        if found.unused.is_empty() {
            self.roomy.push(page);
        }
        found.unused.push(chunk);
        if found.unused.len() == PAGE as usize {
            found.keys = Vec::new();
        }
    }
}

/// Keys in the order in which they were added.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyQueue {
    /// The stamp of the first key.
    oldest: Instant,
    first_chunk: u32,
    last_chunk: u32,
    /// How many keys at the beginning of the first chunk are gone.
    gone: u32,
    len: u32,
}

impl Default for KeyQueue {
    fn default() -> Self {
        Self { oldest: Instant::default(), first_chunk: NO_CHUNK, last_chunk: NO_CHUNK, gone: 0, len: 0 }
    }
}

impl KeyQueue {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// The stamp of the oldest key, if there is a key.
    pub(super) fn oldest(&self) -> Instant {
        self.oldest
    }

    /// The slot of the next key, unless that needs another chunk.
    pub(super) fn next_slot(&self) -> Option<u32> {
        let within = (self.gone + self.len) % CHUNK;
        (within > 0).then(|| self.last_chunk * CHUNK + within)
    }

    pub(super) fn push(&mut self, chunks: &mut Chunks, key: RememberedKey) -> u32 {
        let slot = self.next_slot().unwrap_or_else(|| {
            let chunk = chunks.take();
            match self.last_chunk {
                NO_CHUNK => self.first_chunk = chunk,
                last => chunks.next[last as usize] = chunk,
            }
            self.last_chunk = chunk;
            chunk * CHUNK
        });
        chunks.set(slot, key);
        if self.len == 0 {
            self.oldest = key.stamp;
        }
        self.len += 1;
        slot
    }

    /// Removes the oldest key; there must be one.
    pub(super) fn pop(&mut self, chunks: &mut Chunks) -> (u32, RememberedKey) {
        let slot = self.first_chunk * CHUNK + self.gone;
        let key = *chunks.at(slot);
        self.gone += 1;
        self.len -= 1;
        if self.len == 0 {
            chunks.give_back(self.first_chunk);
            *self = Self::default();
        } else {
            if self.gone == CHUNK {
                let next = chunks.next[self.first_chunk as usize];
                chunks.give_back(self.first_chunk);
                (self.first_chunk, self.gone) = (next, 0);
            }
            self.oldest = chunks.at(self.first_chunk * CHUNK + self.gone).stamp;
        }
        (slot, key)
    }

    pub(super) fn slots<'c>(&self, chunks: &'c Chunks) -> impl Iterator<Item = u32> + use<'c> {
        let (mut chunk, mut within) = (self.first_chunk, self.gone);
        (0..self.len).map(move |_| {
            if within == CHUNK {
                (chunk, within) = (chunks.next[chunk as usize], 0);
            }
            within += 1;
            chunk * CHUNK + within - 1
        })
    }
}
