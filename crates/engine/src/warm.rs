//! Fetching what is about to be touched into the cache.
//!
//! With a million leases each step waits for memory several times over. Looked up together, the
//! waits of many steps overlap. Nothing is decided or changed here, and it may be left out.

use crate::command::{Command, Request};
use crate::lease::NONE;
use crate::state::State;
use crate::timer::Timers;
use leasehold_model::{Body, LeaseNo, NodeNo, Record, TenantNo};
use smallvec::SmallVec;

struct Warmth<'s> {
    state: &'s State,
    timers: Option<&'s Timers>,
    neighbours: SmallVec<[u32; 64]>,
    /// Whose leases end, and where.
    held: SmallVec<[(TenantNo, NodeNo); 32]>,
    seen: u64,
}

impl<'s> Warmth<'s> {
    fn of(state: &'s State, timers: Option<&'s Timers>) -> Self {
        Self { state, timers, neighbours: SmallVec::new(), held: SmallVec::new(), seen: 0 }
    }

    /// Keeps the compiler from leaving the look-up out.
    fn see(&mut self, value: u64) {
        self.seen ^= value;
    }

    fn key(&mut self, scope: u128) {
        self.see(u64::from(self.state.idempotency_keys.touch(scope)));
    }

    /// A lease that is about to change, or to end and leave its neighbours on the node behind.
    fn lease(&mut self, lease: Option<LeaseNo>, ends: bool) {
        let Some(slot) = lease.and_then(|lease| self.state.leases.slot(lease)) else { return };
        let lease = self.state.leases.at(slot);
        // A lease spans several lines of the cache.
        self.see(lease.expires_at.0 ^ lease.devices ^ u64::from(lease.tenant.0 ^ lease.node_prev));
        self.see(self.timers.map_or(0, |timers| timers.touch(slot)));
        if ends {
            self.neighbours.extend([lease.node_next, lease.node_prev].into_iter().filter(|slot| *slot != NONE));
            self.held.push((lease.tenant, lease.node));
        }
    }
}

impl Drop for Warmth<'_> {
    fn drop(&mut self) {
        for slot in &self.neighbours {
            self.seen ^= u64::from(self.state.leases.at(*slot).node_next);
        }
        for (tenant, node) in &self.held {
            self.seen ^= u64::from(self.state.leases_seen_on(*tenant, *node));
        }
        std::hint::black_box(self.seen);
    }
}

impl State {
    /// Before requests are decided.
    pub(crate) fn warm_requests<'r>(&self, timers: &Timers, requests: impl Iterator<Item = &'r Request>) {
        let mut warmth = Warmth::of(self, Some(timers));
        let mut next_lease = self.next_lease;
        for request in requests {
            if let Some(key) = &request.key {
                warmth.key(key.scope);
            }
            // The three that come by the thousand.
            if let Command::Request(_) = &request.command {
                // Where the lease will be filed, if it is granted.
                warmth.see(u64::from(self.leases.slot(LeaseNo(next_lease)).is_some()));
                next_lease += 1;
            } else if let Command::Renew(renewals) = &request.command {
                warmth.lease(renewals.first().map(|one| one.lease), false);
            } else if let Command::Release(releases) = &request.command {
                warmth.lease(releases.first().map(|one| one.lease), true);
            }
        }
    }

    /// Before records are folded; `scopes` are those of their idempotency keys.
    pub(crate) fn warm_records(&self, records: &[(Record, Option<u128>)]) {
        let mut warmth = Warmth::of(self, None);
        for (record, scope) in records {
            scope.iter().for_each(|scope| warmth.key(*scope));
            if let Body::Granted(granted) = &record.body {
                warmth.held.extend(record.identity.tenant.map(|tenant| (tenant, granted.node)));
            } else if let Body::Renewed(renewed) = &record.body {
                warmth.lease(renewed.renewals.first().map(|one| one.lease), false);
            } else if let Body::Released(released) = &record.body {
                warmth.lease(released.leases.leases().next(), true);
            } else if let Body::Expired(expired) = &record.body {
                warmth.lease(expired.leases.0.first().copied(), true);
            }
        }
        // As many old keys will be forgotten as new ones come in.
        for found in self.idempotency_keys.in_order().take(records.len()) {
            warmth.key(found.scope);
        }
    }
}
