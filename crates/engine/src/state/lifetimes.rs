//! When held leases reach the longest lifetime that their pool allows for their priority.
//!
//! The index has an entry only for leases that have such a limit, so that it costs nothing where no pool sets one.

use super::State;
use crate::lease::Lease;
use leasehold_model::body::PerPriority;
use leasehold_model::{Instant, LeaseNo, PoolNo};

/// When a lease has existed for as long as these limits allow.
fn reached_at(limits: &PerPriority, lease: &Lease) -> Option<Instant> {
    Some(lease.granted_at.saturating_add(limits.of(lease.priority)?))
}

impl State {
    /// The entry of a held lease in the index.
    pub(crate) fn lifetime_of(&self, lease: &Lease) -> Option<(Instant, LeaseNo)> {
        Some((reached_at(&self.pool(lease.pool)?.lifetime_max, lease)?, lease.number))
    }

    /// A lease is held from now on.
    pub(crate) fn follow_lifetime(&mut self, lease: &Lease) {
        if let Some(entry) = self.lifetime_of(lease) {
            self.lifetimes.insert(entry);
        }
    }

    /// A lease is no longer held.
    pub(super) fn forget_lifetime(&mut self, lease: &Lease) {
        if let Some(entry) = self.lifetime_of(lease) {
            self.lifetimes.remove(&entry);
        }
    }

    /// The limits of a pool change.
    pub(super) fn change_lifetimes(&mut self, pool: PoolNo, old: &PerPriority, new: &PerPriority) {
        if old == new {
            return;
        }
        for lease in self.leases.in_any_order().filter(|lease| lease.pool == pool && lease.phase.is_held()) {
            if let Some(reached) = reached_at(old, lease) {
                self.lifetimes.remove(&(reached, lease.number));
            }
            if let Some(reached) = reached_at(new, lease) {
                self.lifetimes.insert((reached, lease.number));
            }
        }
    }
}
