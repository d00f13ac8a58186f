//! Idempotency keys: claimed in the same append as what they guard, kept for a window by stamp.

use crate::lease::NumberMap;
use leasehold_model::{Instant, Span, TenantNo};
use std::collections::VecDeque;

/// What a key was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) payload: [u8; 16],
    /// The first record of the command.
    pub(crate) sequence: u64,
}

/// One claim in the order it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InOrder {
    pub(crate) stamp: Instant,
    pub(crate) scope: u128,
    pub(crate) owner: Option<TenantNo>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    by_scope: NumberMap<u128, Claimed>,
    in_order: VecDeque<InOrder>,
    /// Claims of nobody in particular, then of each tenant by number.
    per_owner: Vec<u32>,
}

fn owner_place(owner: Option<TenantNo>) -> usize {
    owner.map_or(0, |tenant| tenant.0 as usize + 1)
}

impl Claims {
    /// What `scope` was used for, if that lies within `window` of `now`.
    pub(crate) fn find(&self, scope: u128, now: Instant, window: Span) -> Option<Claimed> {
        // The oldest claims may already be over without having been swept: only those need a look.
        let claimed = self.by_scope.get(&scope)?;
        let over = self.in_order.iter().take_while(|c| is_over(c.stamp, now, window)).any(|c| c.scope == scope);
        (!over).then_some(*claimed)
    }

    /// Fetches the place of a claim into the cache; see `Engine::warm`.
    pub(crate) fn touch(&self, scope: u128) -> bool {
        self.by_scope.contains_key(&scope)
    }

    /// Whether the owner has `limit` claims within `window` of `now`.
    pub(crate) fn is_full(&self, owner: Option<TenantNo>, limit: u32, now: Instant, window: Span) -> bool {
        let kept = self.per_owner.get(owner_place(owner)).copied().unwrap_or(0);
        // Claims that are over without having been swept do not count; they matter at the limit only.
        kept >= limit && {
            let over = self.in_order.iter().take_while(|c| is_over(c.stamp, now, window));
            kept as usize - over.filter(|c| c.owner == owner).count() >= limit as usize
        }
    }

    pub(crate) fn newest(&self) -> Option<&InOrder> {
        self.in_order.back()
    }

    pub(crate) fn claim(&mut self, entry: InOrder, claimed: Claimed) {
        self.by_scope.insert(entry.scope, claimed);
        self.in_order.push_back(entry);
        let place = owner_place(entry.owner);
        if self.per_owner.len() <= place {
            self.per_owner.resize(place + 1, 0);
        }
        self.per_owner[place] += 1;
    }

    /// Forgets claims that are over at `stamp`, the stamp of a record.
    pub(crate) fn sweep(&mut self, stamp: Instant, window: Span) {
        while let Some(oldest) = self.in_order.front().copied().filter(|c| is_over(c.stamp, stamp, window)) {
            self.in_order.pop_front();
            self.by_scope.remove(&oldest.scope);
            self.per_owner[owner_place(oldest.owner)] -= 1;
        }
    }

    /// Every claim, oldest first.
    pub(crate) fn in_order(&self) -> impl ExactSizeIterator<Item = (InOrder, Claimed)> + '_ {
        self.in_order.iter().map(|entry| (*entry, self.by_scope[&entry.scope]))
    }

    pub(crate) fn reserve(&mut self, claims: usize) {
        self.by_scope.reserve(claims);
        self.in_order.reserve(claims);
    }
}

fn is_over(stamp: Instant, now: Instant, window: Span) -> bool {
    stamp.saturating_add(window) <= now
}
