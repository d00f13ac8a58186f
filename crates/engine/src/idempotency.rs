//! Idempotency keys: claimed in the same append as what they guard, kept for a window by stamp.

use crate::index::Index;
use leasehold_model::{Instant, Span, TenantNo};
use std::collections::VecDeque;

/// What a key was used for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RememberedKey {
    pub(crate) stamp: Instant,
    /// The hash of whose key it is and which.
    pub(crate) scope: u128,
    pub(crate) owner: Option<TenantNo>,
    pub(crate) payload: [u8; 16],
    /// The first record of the command.
    pub(crate) sequence: u64,
}

/// Claims of one stretch of memory: growing moves none of them.
const CHUNK: usize = 1024;

/// Claims in the order they were made, and where in that order each stands. Stamps never go back,
/// so the oldest are always in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct RememberedKeys {
    /// The claim with position `p` stands in the chunk of positions `p / CHUNK`.
    chunks: VecDeque<Vec<RememberedKey>>,
    /// How many have been forgotten: the position of the first that is left.
    forgotten: u64,
    /// The position after the last.
    end: u64,
    /// Places by scope; their lower halves, which tell all that are left apart.
    positions: Index,
    /// Claims of nobody in particular, then of each tenant by number.
    per_owner: Vec<u32>,
}

/// Scopes are hashes already; but a snapshot can say anything, and must not make look-ups slow.
#[expect(clippy::cast_possible_truncation, reason = "both halves are folded in")]
fn hash(scope: u128) -> u64 {
    (scope as u64 ^ (scope >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 claims are left at a time")]
fn lower_half(position: u64) -> u32 {
    position as u32
}

fn owner_index(owner: Option<TenantNo>) -> usize {
    owner.map_or(0, |tenant| tenant.0 as usize + 1)
}

/// Which chunk of those that are left, and where in it.
fn chunk_and_offset(position: u64, forgotten: u64) -> (usize, usize) {
    let chunk = position / CHUNK as u64 - forgotten / CHUNK as u64;
    let offset = position % CHUNK as u64;
    (usize::try_from(chunk).expect("a position in memory"), usize::try_from(offset).expect("below a small constant"))
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

    /// What `scope` was used for, if that lies within `window` of `now`.
    pub(crate) fn find(&self, scope: u128, now: Instant, window: Span) -> Option<&RememberedKey> {
        self.lookup(scope).filter(|key| !is_over(key.stamp, now, window))
    }

    /// Whether `scope` is claimed, within the window or not. Fetches its position into the cache; see
    /// `Engine::warm`.
    pub(crate) fn touch(&self, scope: u128) -> bool {
        self.lookup(scope).is_some()
    }

    /// Whether the owner has `limit` claims within `window` of `now`.
    pub(crate) fn is_full(&self, owner: Option<TenantNo>, limit: u32, now: Instant, window: Span) -> bool {
        let kept = self.per_owner.get(owner_index(owner)).copied().unwrap_or(0);
        // Claims that are over without having been swept do not count; they matter at the limit only.
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
        let position = owner_index(key.owner);
        if self.per_owner.len() <= position {
            self.per_owner.resize(position + 1, 0);
        }
        self.per_owner[position] += 1;
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push_back(Vec::with_capacity(CHUNK));
        }
        self.chunks.back_mut().expect("it was just made sure of").push(key);
        self.end += 1;
    }

    /// Forgets claims that are over at `stamp`, the stamp of a record.
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

    /// Every claim, oldest first.
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
