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
    /// Where idempotency keys will be written.
    keys: SmallVec<[u32; 32]>,
    seen: u64,
}

impl<'s> Prefetch<'s> {
    fn of(state: &'s State, timers: Option<&'s Timers>) -> Self {
        let (neighbours, held, tenants, keys) = Default::default();
        Self { state, timers, neighbours, held, tenants, keys, seen: 0 }
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

    /// Leases that are about to change, or to end, which also changes their neighbours in the chain of their node. Each
    /// step loads what the step after it needs, for all of them, so that the waits overlap.
    fn leases(&mut self, leases: impl Iterator<Item = (LeaseNo, bool)> + Clone) {
        let table = &self.state.leases;
        let likely: SmallVec<[u32; 64]> = leases.clone().map(|(lease, _)| table.touch(lease)).collect();
        for slot in likely {
            // A lease spans several cache lines.
            let seen = table
                .try_at(slot)
                .map_or(0, |lease| lease.expires_at.0 ^ lease.devices ^ u64::from(lease.tenant.0 ^ lease.node_prev));
            self.see(seen ^ self.timers.map_or(0, |timers| timers.touch(slot)));
        }
        for (lease, ends) in leases {
            if ends && let Some(lease) = table.get(lease) {
                self.neighbours.extend([lease.node_next, lease.node_prev].into_iter().filter(|slot| *slot != NONE));
                self.held.push((lease.tenant, lease.node));
            }
        }
    }
}

impl Drop for Prefetch<'_> {
    fn drop(&mut self) {
        for slot in &self.neighbours {
            self.seen ^= u64::from(self.state.leases.at(*slot).node_next);
        }
        for (tenant, node) in &self.held {
            self.seen ^= u64::from(self.state.touch_counts(*tenant, *node));
            self.seen ^= self.state.node(*node).and_then(|node| node.classes.first()).map_or(0, |class| class.held);
        }
        for tenant in &self.tenants {
            self.state.quotas_of(*tenant).for_each(|quota| self.seen ^= quota.touch());
        }
        for slot in &self.keys {
            self.seen ^= self.state.idempotency_keys.at(*slot).scope;
        }
        std::hint::black_box(self.seen);
    }
}

/// The lease that a request is about, and whether it ends. Only the most frequent commands are worth it.
fn lease_of_request(request: &Request) -> Option<(LeaseNo, bool)> {
    if let Command::Renew(renewals) = &request.command {
        Some((renewals.first()?.lease, false))
    } else if let Command::Release(releases) = &request.command {
        Some((releases.first()?.lease, true))
    } else {
        None
    }
}

/// The same for a record.
fn lease_of_record(record: &Record) -> Option<(LeaseNo, bool)> {
    if let Body::Renewed(renewed) = &record.body {
        Some((renewed.renewals.first()?.lease, false))
    } else if let Body::Released(released) = &record.body {
        Some((released.leases.leases().next()?, true))
    } else if let Body::Expired(expired) = &record.body {
        Some((*expired.leases.0.first()?, true))
    } else {
        None
    }
}

impl State {
    /// To be called before requests are decided.
    pub(crate) fn warm_requests<'r>(
        &self,
        timers: &Timers,
        keys: &KeyIndex,
        requests: impl Iterator<Item = &'r Request> + Clone,
    ) {
        let mut prefetch = Prefetch::of(self, Some(timers));
        for request in requests.clone() {
            if let Some(key) = &request.key {
                prefetch.see(keys.touch(key.scope));
                prefetch.keys.extend(self.idempotency_keys.next_slot(request.identity.tenant.or(key.sealed.owner)));
            }
        }
        prefetch.leases(requests.clone().filter_map(lease_of_request));
        let mut next_lease = self.next_lease;
        for request in requests {
            prefetch.tenant(request.identity.tenant);
            if let Command::Request(_) = &request.command {
                // The slot of the lease table that a grant would use.
                prefetch.see(u64::from(self.leases.touch(LeaseNo(next_lease))));
                next_lease += 1;
            }
        }
    }

    /// To be called as soon as a grant knows its node, so that memory is loaded while the record is made.
    pub(crate) fn warm_grant(&self, tenant: Option<TenantNo>, node: NodeNo) {
        let neighbour = self.node(node).map(|node| node.first_lease).filter(|slot| *slot != NONE);
        let chained = neighbour.map_or(0, |slot| u64::from(self.leases.at(slot).node_prev));
        let seen = tenant.map_or(0, |tenant| u64::from(self.touch_counts(tenant, node)));
        std::hint::black_box(chained ^ seen);
    }

    /// To be called before records are folded.
    pub(crate) fn warm_records<'r>(&self, records: impl Iterator<Item = &'r Record> + Clone) {
        let mut prefetch = Prefetch::of(self, None);
        prefetch.leases(records.clone().filter_map(lease_of_record));
        for record in records {
            prefetch.tenant(record.identity.tenant);
            if let Body::Granted(granted) = &record.body {
                prefetch.held.extend(record.identity.tenant.map(|tenant| (tenant, granted.node)));
            }
        }
    }
}
