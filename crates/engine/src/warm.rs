//! Prefetches memory that the next requests or records will need into the CPU cache.
//!
//! With a million leases, each step waits for memory several times. Prefetching for many steps together
//! lets these waits overlap. It decides and changes nothing, and leaving it out would only be slower.

use crate::command::{Command, Request};
use crate::idempotency::KeyIndex;
use crate::lease::NONE;
use crate::state::State;
use crate::timer::Timers;
use leasehold_model::{Body, LeaseNo, NodeNo, Record, TenantNo};
use smallvec::SmallVec;

struct Prefetch<'s> {
    state: &'s State,
    timers: Option<&'s Timers>,
    neighbours: SmallVec<[u32; 64]>,
    /// The tenants and nodes of leases that begin or end.
    held: SmallVec<[(TenantNo, NodeNo); 32]>,
    tenants: SmallVec<[TenantNo; 32]>,
    seen: u64,
}

impl<'s> Prefetch<'s> {
    fn of(state: &'s State, timers: Option<&'s Timers>) -> Self {
        Self { state, timers, neighbours: SmallVec::new(), held: SmallVec::new(), tenants: SmallVec::new(), seen: 0 }
    }

    /// Uses a value, so that the compiler cannot remove the load.
    fn see(&mut self, value: u64) {
        self.seen ^= value;
    }

    /// A tenant whose quotas are about to be read or counted.
    fn tenant(&mut self, tenant: Option<TenantNo>) {
        let Some(found) = tenant.and_then(|number| self.state.tenant(number)) else { return };
        self.see(found.quotas.len() as u64);
        self.tenants.push(found.number);
    }

    /// A lease that is about to change, or to end, which also changes its neighbours in the chain of its node.
    fn lease(&mut self, lease: Option<LeaseNo>, ends: bool) {
        let Some(slot) = lease.and_then(|lease| self.state.leases.slot(lease)) else { return };
        let lease = self.state.leases.at(slot);
        // A lease spans several cache lines.
        self.see(lease.expires_at.0 ^ lease.devices ^ u64::from(lease.tenant.0 ^ lease.node_prev));
        self.see(self.timers.map_or(0, |timers| timers.touch(slot)));
        if ends {
            self.neighbours.extend([lease.node_next, lease.node_prev].into_iter().filter(|slot| *slot != NONE));
            self.held.push((lease.tenant, lease.node));
        }
    }
}

impl Drop for Prefetch<'_> {
    fn drop(&mut self) {
        for slot in &self.neighbours {
            self.seen ^= u64::from(self.state.leases.at(*slot).node_next);
        }
        for (tenant, node) in &self.held {
            self.seen ^= u64::from(self.state.leases_seen_on(*tenant, *node));
            self.seen ^= self.state.node(*node).and_then(|node| node.classes.first()).map_or(0, |class| class.held);
        }
        for tenant in &self.tenants {
            self.state.quotas_of(*tenant).for_each(|quota| self.seen ^= quota.used);
        }
        std::hint::black_box(self.seen);
    }
}

impl State {
    /// To be called before requests are decided.
    pub(crate) fn warm_requests<'r>(
        &self,
        timers: &Timers,
        keys: &KeyIndex,
        requests: impl Iterator<Item = &'r Request>,
    ) {
        let mut prefetch = Prefetch::of(self, Some(timers));
        let mut next_lease = self.next_lease;
        for request in requests {
            prefetch.tenant(request.identity.tenant);
            if let Some(key) = &request.key {
                prefetch.see(u64::from(keys.lookup(&self.idempotency_keys, key.scope).is_some()));
            }
            // Only the most frequent commands are worth it.
            if let Command::Request(_) = &request.command {
                // The slot of the lease table that a grant would use.
                prefetch.see(u64::from(self.leases.slot(LeaseNo(next_lease)).is_some()));
                next_lease += 1;
            } else if let Command::Renew(renewals) = &request.command {
                prefetch.lease(renewals.first().map(|one| one.lease), false);
            } else if let Command::Release(releases) = &request.command {
                prefetch.lease(releases.first().map(|one| one.lease), true);
            }
        }
    }

    /// To be called before records are folded.
    pub(crate) fn warm_records<'r>(&self, records: impl Iterator<Item = &'r Record>) {
        let mut prefetch = Prefetch::of(self, None);
        for record in records {
            prefetch.tenant(record.identity.tenant);
            if let Body::Granted(granted) = &record.body {
                prefetch.held.extend(record.identity.tenant.map(|tenant| (tenant, granted.node)));
            } else if let Body::Renewed(renewed) = &record.body {
                prefetch.lease(renewed.renewals.first().map(|one| one.lease), false);
            } else if let Body::Released(released) = &record.body {
                prefetch.lease(released.leases.leases().next(), true);
            } else if let Body::Expired(expired) = &record.body {
                prefetch.lease(expired.leases.0.first().copied(), true);
            }
        }
    }
}
