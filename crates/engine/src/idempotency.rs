//! Idempotency keys: recorded together with the command they protect, and remembered for a window of time.

use crate::index::Index;
use leasehold_model::{Instant, Span, TenantNo};
use std::collections::VecDeque;

/// An idempotency key that was used: when, and for which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RememberedKey {
    pub(crate) stamp: Instant,
    /// The hash of the owner, the principal and the key (`command::key_scope`).
    pub(crate) scope: u128,
    pub(crate) owner: Option<TenantNo>,
    pub(crate) payload: [u8; 16],
    /// The first record of the command.
    pub(crate) sequence: u64,
}

/// Keys are stored in chunks of this size, so that growing does not move them.
const CHUNK: usize = 1024;

/// The remembered keys in the order of their records. Stamps never decrease, so the oldest keys are always in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct RememberedKeys {
    /// The key at position `p` is in the chunk for the positions with the same `p / CHUNK`.
    chunks: VecDeque<Vec<RememberedKey>>,
    /// How many keys have been forgotten, which is also the position of the first remembered one.
    forgotten: u64,
    /// The position after the last key.
    end: u64,
    /// Positions by scope. Only the lower halves are stored, which are enough to distinguish the remembered ones.
    positions: Index,
    /// The number of keys without an owner, then of those of each tenant by tenant number.
    per_owner: Vec<u32>,
}

/// Scopes are hashes already, but a forged snapshot may contain any scopes and must not make lookups slow.
#[expect(clippy::cast_possible_truncation, reason = "both halves are folded in")]
fn hash(scope: u128) -> u64 {
    (scope as u64 ^ (scope >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 keys are remembered at a time")]
fn lower_half(position: u64) -> u32 {
    position as u32
}

fn owner_index(owner: Option<TenantNo>) -> usize {
    owner.map_or(0, |tenant| tenant.0 as usize + 1)
}

/// The index of the chunk among the remaining ones, and the offset in it.
fn chunk_and_offset(position: u64, forgotten: u64) -> (usize, usize) {
    let chunk = position / CHUNK as u64 - forgotten / CHUNK as u64;
    let offset = position % CHUNK as u64;
    (
        usize::try_from(chunk).expect("the number of chunks fits in memory"),
        usize::try_from(offset).expect("below a small constant"),
    )
}

fn is_over(stamp: Instant, now: Instant, window: Span) -> bool {
    stamp.saturating_add(window) <= now
}

impl RememberedKeys {
    fn at(&self, position: u64) -> &RememberedKey {
        let (chunk, offset) = chunk_and_offset(position, self.forgotten);
        &self.chunks[chunk][offset]
    }

    fn lookup(&self, scope: u128) -> Option<&RememberedKey> {
        let whole = |half: u32| self.forgotten + u64::from(half.wrapping_sub(lower_half(self.forgotten)));
        let position = self.positions.find(hash(scope), |half| self.at(whole(half)).scope == scope)?;
        Some(self.at(whole(position)))
    }

    /// The key with this scope, if it was used within `window` before `now`.
    pub(crate) fn find(&self, scope: u128, now: Instant, window: Span) -> Option<&RememberedKey> {
        self.lookup(scope).filter(|key| !is_over(key.stamp, now, window))
    }

    /// Whether a key with this scope is remembered, even if its window is over. Loads it into the cache, see
    /// `Engine::warm`.
    pub(crate) fn touch(&self, scope: u128) -> bool {
        self.lookup(scope).is_some()
    }

    /// Whether the owner has `limit` keys that were used within `window` before `now`.
    pub(crate) fn is_full(&self, owner: Option<TenantNo>, limit: u32, now: Instant, window: Span) -> bool {
        let kept = self.per_owner.get(owner_index(owner)).copied().unwrap_or(0);
        // Keys whose window is over may not be swept yet; they are subtracted only when the limit seems reached.
        kept >= limit && {
            let over = self.in_order().take_while(|c| is_over(c.stamp, now, window));
            kept as usize - over.filter(|c| c.owner == owner).count() >= limit as usize
        }
    }

    pub(crate) fn newest(&self) -> Option<&RememberedKey> {
        self.chunks.back().and_then(|chunk| chunk.last())
    }

    pub(crate) fn add(&mut self, key: RememberedKey) {
        self.positions.insert(hash(key.scope), lower_half(self.end));
        let owner = owner_index(key.owner);
        if self.per_owner.len() <= owner {
            self.per_owner.resize(owner + 1, 0);
        }
        self.per_owner[owner] += 1;
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push_back(Vec::with_capacity(CHUNK));
        }
        self.chunks.back_mut().expect("a chunk was added if there was none").push(key);
        self.end += 1;
    }

    /// Forgets keys whose window is over at `stamp`, the stamp of a record.
    pub(crate) fn sweep(&mut self, stamp: Instant, window: Span) {
        while self.forgotten < self.end {
            let oldest = self.at(self.forgotten);
            if !is_over(oldest.stamp, stamp, window) {
                return;
            }
            let (scope, owner) = (oldest.scope, oldest.owner);
            self.positions.remove(hash(scope), lower_half(self.forgotten));
            self.per_owner[owner_index(owner)] -= 1;
            self.forgotten += 1;
            if self.forgotten.is_multiple_of(CHUNK as u64) {
                self.chunks.pop_front();
            }
        }
    }

    /// Every remembered key, oldest first.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &RememberedKey> + '_ {
        let (_, gone) = chunk_and_offset(self.forgotten, self.forgotten);
        let mut chunks = self.chunks.iter();
        let first = chunks.next().map_or(&[][..], |oldest| &oldest[gone..]);
        first.iter().chain(chunks.flatten())
    }

    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(crate) fn reserve(&mut self, keys: usize) {
        self.positions.reserve(keys);
    }
}
