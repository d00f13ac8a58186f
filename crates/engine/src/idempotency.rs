//! Idempotency keys: recorded together with the command they protect, and remembered for a time (SEMANTICS 11).
//!
//! Keys of commands that can safely be repeated (renewals, releases, readiness, activity) are remembered briefly and not
//! counted. All others are remembered for a whole window, unless their tenant has so many that the oldest must go.

mod key_index;
mod key_store;
#[cfg(test)]
mod tests;

use crate::prefetch::prefetch;
pub(crate) use key_index::KeyIndex;
use key_store::{Chunks, KeyQueue};
use leasehold_model::limits::{IDEMPOTENCY_KEYS_PER_TENANT_MAX, IDEMPOTENCY_KEYS_SURE_MAX, IDEMPOTENCY_SURE};
use leasehold_model::{Instant, Span, TenantNo};

/// An idempotency key that was used: when, and for which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RememberedKey {
    pub(crate) stamp: Instant,
    /// The first record of the command, and [`BRIEF`] if the key is remembered briefly.
    place: u64,
    /// The hash of the owner, the principal and the key (`command::key_scope`).
    pub(crate) scope: u64,
    /// The hash of the command.
    pub(crate) payload: u64,
}

const BRIEF: u64 = 1 << 63;

impl RememberedKey {
    /// In memory that no key uses.
    const NONE: Self = Self { stamp: Instant(0), place: 0, scope: 0, payload: 0 };

    pub(crate) fn new(stamp: Instant, sequence: u64, scope: u64, payload: u64) -> Self {
        Self { stamp, place: sequence & !BRIEF, scope, payload }
    }

    fn brief(self) -> Self {
        Self { place: self.place | BRIEF, ..self }
    }

    /// The first record of the command.
    pub(crate) fn sequence(&self) -> u64 {
        self.place & !BRIEF
    }

    fn is_brief(&self) -> bool {
        self.place & BRIEF != 0
    }

    /// Whether the key is no longer valid at `now`, even if nobody has removed it yet.
    pub(crate) fn is_over(&self, now: Instant, window: Span) -> bool {
        is_over(self.stamp, now, if self.is_brief() { sure(window) } else { window })
    }
}

fn is_over(stamp: Instant, now: Instant, window: Span) -> bool {
    stamp.saturating_add(window) <= now
}

/// How long every key is remembered. Earlier versions let the window be shorter than what is sure today.
fn sure(window: Span) -> Span {
    window.min(IDEMPOTENCY_SURE)
}

/// Whose key it is, and for how long it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptAs {
    /// Counted to this tenant, or to nobody.
    Counted(Option<TenantNo>),
    Brief,
}

/// At most this many keys are removed for one record, so that no record has to wait for the removal of a million.
const REMOVED_PER_RECORD: usize = 4;

/// How many keys are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyLimits {
    /// A tenant with more keys loses the oldest ones that are past the time for which they are sure.
    pub(crate) counted: u32,
    /// A tenant with so many keys that are all within that time may add no others.
    pub(crate) sure: u32,
}

pub(crate) const KEY_LIMITS: KeyLimits =
    KeyLimits { counted: IDEMPOTENCY_KEYS_PER_TENANT_MAX, sure: IDEMPOTENCY_KEYS_SURE_MAX };

/// The remembered keys: one queue for each tenant and one for brief keys, each in the order of the records. Stamps never
/// decrease, so the oldest keys are always in front. Nothing can be looked up here: only deciding does that, with a
/// [`KeyIndex`].
#[derive(Clone, Debug, Default)]
pub(crate) struct RememberedKeys {
    chunks: Chunks,
    brief: KeyQueue,
    /// The keys that are counted to nobody, then those of each tenant by tenant number.
    counted: Vec<KeyQueue>,
    /// The queue in `counted` that is examined with the next record.
    examined: u32,
}

fn owner_index(owner: Option<TenantNo>) -> usize {
    owner.map_or(0, |tenant| tenant.0 as usize + 1)
}

impl RememberedKeys {
    pub(crate) fn at(&self, slot: u32) -> &RememberedKey {
        self.chunks.at(slot)
    }

    /// Loads the queue of an owner.
    pub(crate) fn prefetch_queue(&self, owner: Option<TenantNo>) {
        if let Some(queue) = self.counted.get(owner_index(owner)) {
            prefetch(queue);
        }
    }

    /// The slot in which the next key of an owner will be, if its queue has room for it.
    pub(crate) fn next_slot(&self, owner: Option<TenantNo>) -> Option<u32> {
        self.counted.get(owner_index(owner))?.next_slot()
    }

    /// Adds the newest key and returns its slot.
    pub(crate) fn add(&mut self, key: RememberedKey, kept: KeptAs) -> u32 {
        let KeptAs::Counted(owner) = kept else {
            return self.brief.push(&mut self.chunks, key.brief());
        };
        let owner = owner_index(owner);
        if self.counted.len() <= owner {
            self.counted.resize_with(owner + 1, KeyQueue::default);
        }
        self.counted[owner].push(&mut self.chunks, key)
    }

    /// Removes the oldest keys of an owner that is about to get another one, if it has too many of them. Keys that are
    /// sure to be remembered stay.
    pub(crate) fn make_room(
        &mut self,
        owner: Option<TenantNo>,
        now: Instant,
        window: Span,
        limits: KeyLimits,
        mut removed: impl FnMut(u32, &RememberedKey),
    ) {
        let Some(queue) = self.counted.get_mut(owner_index(owner)) else { return };
        for _ in 0..REMOVED_PER_RECORD {
            if queue.len() < limits.counted || !is_over(queue.oldest(), now, sure(window)) {
                return;
            }
            let (slot, key) = queue.pop(&mut self.chunks);
            removed(slot, &key);
        }
    }

    /// Removes keys whose time is over at `stamp`, the stamp of a record, and reports each with its slot. Some may stay a
    /// little longer: a record removes few keys and examines one tenant.
    #[inline]
    pub(crate) fn sweep(&mut self, stamp: Instant, window: Span, mut removed: impl FnMut(u32, &RememberedKey)) {
        let chunks = &mut self.chunks;
        let mut sweep = |queue: &mut KeyQueue, window| {
            for _ in 0..REMOVED_PER_RECORD {
                if queue.len() == 0 || !is_over(queue.oldest(), stamp, window) {
                    return false;
                }
                let (slot, key) = queue.pop(chunks);
                removed(slot, &key);
            }
            true
        };
        sweep(&mut self.brief, sure(window));
        if let Some(queue) = self.counted.get_mut(self.examined as usize)
            && sweep(queue, window)
        {
            return;
        }
        self.examined += 1;
        if self.examined as usize >= self.counted.len() {
            self.examined = 0;
        }
    }

    /// Removes all keys whose time is over at `stamp`. Called before the window grows, which must not bring back keys that
    /// may have been used again since.
    pub(crate) fn forget_over(&mut self, stamp: Instant, window: Span, mut removed: impl FnMut(u32, &RememberedKey)) {
        let chunks = &mut self.chunks;
        let mut forget = |queue: &mut KeyQueue, window| {
            while queue.len() > 0 && is_over(queue.oldest(), stamp, window) {
                let (slot, key) = queue.pop(chunks);
                removed(slot, &key);
            }
        };
        forget(&mut self.brief, sure(window));
        self.counted.iter_mut().for_each(|queue| forget(queue, window));
    }

    /// Whether the owner has used so many keys in the time for which keys are sure that it may use no others.
    pub(crate) fn is_full(&self, owner: Option<TenantNo>, now: Instant, window: Span, limits: KeyLimits) -> bool {
        let queue = self.counted.get(owner_index(owner));
        queue.is_some_and(|queue| queue.len() >= limits.sure && !is_over(queue.oldest(), now, sure(window)))
    }

    /// The number of queues: that of brief keys, that of keys without an owner, and those of the tenants.
    pub(crate) fn queues(&self) -> usize {
        1 + self.counted.len()
    }

    fn queue_at(&self, queue: usize) -> &KeyQueue {
        if queue == 0 { &self.brief } else { &self.counted[queue - 1] }
    }

    pub(crate) fn queue_len(&self, queue: usize) -> u32 {
        self.queue_at(queue).len()
    }

    /// The keys of one queue with their slots, oldest first.
    pub(crate) fn queue(&self, queue: usize) -> impl Iterator<Item = (u32, &RememberedKey)> + '_ {
        self.queue_at(queue).slots(&self.chunks).map(|slot| (slot, self.at(slot)))
    }

    /// The queue of a tenant that is examined next. It decides which keys are removed when, so it is in snapshots.
    pub(crate) fn examined(&self) -> u32 {
        self.examined
    }

    /// What a snapshot says besides the keys.
    pub(crate) fn restore(&mut self, examined: u32, queues: usize) -> Result<(), &'static str> {
        if queues == 0 || (examined > 0 && examined as usize + 1 >= queues) {
            return Err("a queue of idempotency keys that does not exist");
        }
        self.counted.resize_with(queues - 1, KeyQueue::default);
        self.examined = examined;
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        (0..self.queues()).map(|queue| self.queue_len(queue) as usize).sum()
    }
}
