//! Finds remembered keys.

use super::{RememberedKey, RememberedKeys};
use crate::index::Dense;
use leasehold_model::{Instant, Span};

/// The index grows in so many parts, one at a time, so that no command waits until all of it has grown.
const PARTS: usize = 64;

/// The slots of remembered keys by scope. It follows from the keys of a state and is not part of one (ADR 18).
#[derive(Clone, Debug)]
pub(crate) struct KeyIndex {
    parts: Vec<Dense>,
}

impl Default for KeyIndex {
    fn default() -> Self {
        Self { parts: vec![Dense::default(); PARTS] }
    }
}

/// Scopes are hashes already, but a forged snapshot may contain any scopes and must not make lookups slow.
fn hash(scope: u64) -> u64 {
    let mixed = scope.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

#[expect(clippy::cast_possible_truncation, reason = "the part is chosen by a few of the lower bits")]
fn part(hash: u64) -> usize {
    hash as usize % PARTS
}

impl KeyIndex {
    /// An index of all remembered keys.
    pub(crate) fn of(keys: &RememberedKeys) -> Self {
        let mut index = Self::default();
        for queue in 0..keys.queues() {
            keys.queue(queue).for_each(|(slot, key)| index.add(slot, key));
        }
        index
    }

    pub(crate) fn add(&mut self, slot: u32, key: &RememberedKey) {
        let hash = hash(key.scope);
        self.parts[part(hash)].insert(hash, slot);
    }

    pub(crate) fn remove(&mut self, slot: u32, key: &RememberedKey) {
        let hash = hash(key.scope);
        self.parts[part(hash)].remove(hash, slot);
    }

    /// Loads where a scope is looked up.
    pub(crate) fn prefetch(&self, scope: u64) {
        let hash = hash(scope);
        self.parts[part(hash)].prefetch(hash);
    }

    /// The key with this scope that is valid at `now`. Older ones with the same scope may not be removed yet.
    pub(crate) fn find<'k>(
        &self,
        keys: &'k RememberedKeys,
        scope: u64,
        now: Instant,
        window: Span,
    ) -> Option<&'k RememberedKey> {
        let hash = hash(scope);
        let is_it = |slot: u32| {
            let key = keys.at(slot);
            key.scope == scope && !key.is_over(now, window)
        };
        self.parts[part(hash)].find(hash, is_it).map(|slot| keys.at(slot))
    }
}
