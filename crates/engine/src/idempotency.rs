//! Idempotency keys: recorded together with the command they protect, and remembered for a window of time.

use crate::index::Index;
use leasehold_model::{Instant, Span, TenantNo};
use std::collections::VecDeque;

/// An idempotency key that was used: when, and for which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RememberedKey {
    pub(crate) stamp: Instant,
    /// The first record of the command.
    pub(crate) sequence: u64,
    /// Kept as bytes: the alignment of a `u128` would make every key eight bytes longer.
    scope: [u8; 16],
    pub(crate) payload: [u8; 16],
    pub(crate) owner: Option<TenantNo>,
}

impl RememberedKey {
    pub(crate) fn new(stamp: Instant, scope: u128, owner: Option<TenantNo>, payload: [u8; 16], sequence: u64) -> Self {
        Self { stamp, sequence, scope: scope.to_ne_bytes(), payload, owner }
    }

    /// The hash of the owner, the principal and the key (`command::key_scope`).
    pub(crate) fn scope(&self) -> u128 {
        u128::from_ne_bytes(self.scope)
    }
}

/// Keys are stored in chunks of this size, so that growing does not move them.
const CHUNK: usize = 1024;

/// The remembered keys in the order of their records. Stamps never decrease, so the oldest keys are always in front.
/// Nothing can be looked up here: only deciding does that, with a [`KeyIndex`].
#[derive(Clone, Debug, Default)]
pub(crate) struct RememberedKeys {
    /// The key at position `p` is in the chunk for the positions with the same `p / CHUNK`.
    chunks: VecDeque<Vec<RememberedKey>>,
    /// How many keys have been forgotten, which is also the position of the first remembered one.
    forgotten: u64,
    /// The position after the last key.
    end: u64,
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

    pub(crate) fn newest(&self) -> Option<&RememberedKey> {
        self.chunks.back().and_then(|chunk| chunk.last())
    }

    /// Adds the newest key and returns its position.
    pub(crate) fn add(&mut self, key: RememberedKey) -> u64 {
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push_back(Vec::with_capacity(CHUNK));
        }
        self.chunks.back_mut().expect("a chunk was added if there was none").push(key);
        self.end += 1;
        self.end - 1
    }

    /// Forgets keys whose window is over at `stamp`, the stamp of a record, and reports each with its position.
    #[inline]
    pub(crate) fn sweep(&mut self, stamp: Instant, window: Span, mut forgotten: impl FnMut(u64, &RememberedKey)) {
        while self.forgotten < self.end {
            let oldest = self.at(self.forgotten);
            if !is_over(oldest.stamp, stamp, window) {
                return;
            }
            forgotten(self.forgotten, oldest);
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
        usize::try_from(self.end - self.forgotten).expect("the keys fit in memory")
    }
}

/// Finds remembered keys, and counts them by owner. It follows from the keys of a state and is not part of one (ADR 18).
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyIndex {
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

impl KeyIndex {
    /// An index of all remembered keys.
    pub(crate) fn of(keys: &RememberedKeys) -> Self {
        let mut index = Self::default();
        index.reserve(keys.len());
        (keys.forgotten..).zip(keys.in_order()).for_each(|(position, key)| index.add(position, key));
        index
    }

    pub(crate) fn reserve(&mut self, keys: usize) {
        self.positions.reserve(keys);
    }

    pub(crate) fn add(&mut self, position: u64, key: &RememberedKey) {
        self.positions.insert(hash(key.scope()), lower_half(position));
        let owner = owner_index(key.owner);
        if self.per_owner.len() <= owner {
            self.per_owner.resize(owner + 1, 0);
        }
        self.per_owner[owner] += 1;
    }

    pub(crate) fn remove(&mut self, position: u64, key: &RememberedKey) {
        self.positions.remove(hash(key.scope()), lower_half(position));
        self.per_owner[owner_index(key.owner)] -= 1;
    }

    /// Loads where a scope is looked up.
    pub(crate) fn touch(&self, scope: u128) -> u64 {
        u64::from(self.positions.touch(hash(scope)))
    }

    /// The key with this scope among `keys`, even if its window is over.
    pub(crate) fn lookup<'k>(&self, keys: &'k RememberedKeys, scope: u128) -> Option<&'k RememberedKey> {
        let whole = |half: u32| keys.forgotten + u64::from(half.wrapping_sub(lower_half(keys.forgotten)));
        let position = self.positions.find(hash(scope), |half| keys.at(whole(half)).scope() == scope)?;
        Some(keys.at(whole(position)))
    }

    /// The key with this scope, if it was used within `window` before `now`.
    pub(crate) fn find<'k>(
        &self,
        keys: &'k RememberedKeys,
        scope: u128,
        now: Instant,
        window: Span,
    ) -> Option<&'k RememberedKey> {
        self.lookup(keys, scope).filter(|key| !is_over(key.stamp, now, window))
    }

    /// Whether the owner has `limit` keys that were used within `window` before `now`.
    pub(crate) fn is_full(
        &self,
        keys: &RememberedKeys,
        owner: Option<TenantNo>,
        limit: u32,
        now: Instant,
        window: Span,
    ) -> bool {
        let kept = self.per_owner.get(owner_index(owner)).copied().unwrap_or(0);
        // Keys whose window is over may not be swept yet; they are subtracted only when the limit seems reached.
        kept >= limit && {
            let over = keys.in_order().take_while(|c| is_over(c.stamp, now, window));
            kept as usize - over.filter(|c| c.owner == owner).count() >= limit as usize
        }
    }
}
