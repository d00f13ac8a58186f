//! Idempotency keys: claimed in the same append as what they guard, kept for a window by stamp.

use crate::lease::NumberMap;
use leasehold_model::{Instant, Span, TenantNo};
use std::collections::VecDeque;

/// What a key was used for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) stamp: Instant,
    /// The hash of whose key it is and which.
    pub(crate) scope: u128,
    pub(crate) owner: Option<TenantNo>,
    pub(crate) payload: [u8; 16],
    /// The first record of the command.
    pub(crate) sequence: u64,
}

/// Claims in the order they were made, and where in that order each stands. Stamps never go back,
/// so the oldest are always in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    in_order: VecDeque<Claimed>,
    /// How many have been forgotten: the place of the first that is left.
    forgotten: u64,
    places: NumberMap<u128, u64>,
    /// Claims of nobody in particular, then of each tenant by number.
    per_owner: Vec<u32>,
}

fn owner_place(owner: Option<TenantNo>) -> usize {
    owner.map_or(0, |tenant| tenant.0 as usize + 1)
}

fn is_over(stamp: Instant, now: Instant, window: Span) -> bool {
    stamp.saturating_add(window) <= now
}

impl Claims {
    /// What `scope` was used for, if that lies within `window` of `now`.
    pub(crate) fn find(&self, scope: u128, now: Instant, window: Span) -> Option<&Claimed> {
        let place = self.places.get(&scope)?;
        let claimed = &self.in_order[usize::try_from(place - self.forgotten).expect("a place in memory")];
        (!is_over(claimed.stamp, now, window)).then_some(claimed)
    }

    /// Fetches the place of a claim into the cache; see `Engine::warm`.
    pub(crate) fn touch(&self, scope: u128) -> bool {
        self.places.contains_key(&scope)
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

    pub(crate) fn newest(&self) -> Option<&Claimed> {
        self.in_order.back()
    }

    pub(crate) fn claim(&mut self, claimed: Claimed) {
        self.places.insert(claimed.scope, self.forgotten + self.in_order.len() as u64);
        let place = owner_place(claimed.owner);
        if self.per_owner.len() <= place {
            self.per_owner.resize(place + 1, 0);
        }
        self.per_owner[place] += 1;
        self.in_order.push_back(claimed);
    }

    /// Forgets claims that are over at `stamp`, the stamp of a record.
    pub(crate) fn sweep(&mut self, stamp: Instant, window: Span) {
        while self.in_order.front().is_some_and(|oldest| is_over(oldest.stamp, stamp, window)) {
            let oldest = self.in_order.pop_front().expect("there is a front");
            self.forgotten += 1;
            self.places.remove(&oldest.scope);
            self.per_owner[owner_place(oldest.owner)] -= 1;
        }
    }

    /// Every claim, oldest first.
    pub(crate) fn in_order(&self) -> impl ExactSizeIterator<Item = &Claimed> + '_ {
        self.in_order.iter()
    }

    pub(crate) fn reserve(&mut self, claims: usize) {
        self.places.reserve(claims);
        self.in_order.reserve(claims);
    }
}
