//! Prefetches memory that the next requests or records will need into the CPU cache.
//!
//! With a million leases, each step waits for memory several times. Prefetching for many steps together
//! lets these waits overlap. It decides and changes nothing, and leaving it out would only be slower.

use crate::command::{Command, Request};
use crate::evictable::Evictables;
use crate::idempotency::KeyIndex;
use crate::lease::NONE;
use crate::prefetch::prefetch;
use crate::state::{State, entry};
use crate::timer::Timers;
use leasehold_model::{Body, Identity, LeaseNo, NodeNo, Record, TenantNo};
use smallvec::SmallVec;

/// What some requests or records will need. Each step loads where the next step has to look, for all of them, so that
/// the waits overlap: first tenants and the index of leases, then leases, then what surrounds them.
struct Prefetch<'s> {
    state: &'s State,
    timers: Option<&'s Timers>,
    evictables: Option<&'s Evictables>,
    tenants: SmallVec<[TenantNo; 32]>,
    /// Leases that are about to change, and whether they end.
    leases: SmallVec<[(LeaseNo, bool); 32]>,
    /// The tenants and nodes of leases that begin or end.
    held: SmallVec<[(TenantNo, NodeNo); 32]>,
}

impl<'s> Prefetch<'s> {
    fn of(state: &'s State, timers: Option<&'s Timers>, evictables: Option<&'s Evictables>) -> Self {
        let (tenants, leases, held) = Default::default();
        Self { state, timers, evictables, tenants, leases, held }
    }

    /// A tenant whose quotas are about to be read or counted, and its project.
    fn holder(&mut self, identity: &Identity) {
        if let Some(tenant) = identity.tenant.and_then(|number| self.state.tenant(number)) {
            prefetch(tenant);
            self.tenants.push(tenant.number);
        }
        if let Some(project) = identity.project.and_then(|number| self.state.project(number)) {
            prefetch(project);
        }
    }

    /// A lease that is about to change, or to end, which also changes its neighbours in the chain of its node.
    fn lease(&mut self, lease: LeaseNo, ends: bool) {
        self.state.leases.prefetch_index(lease);
        self.leases.push((lease, ends));
    }

    /// The steps after the first.
    fn follow(mut self) {
        let state = self.state;
        for tenant in self.tenants.iter().filter_map(|tenant| state.tenant(*tenant)) {
            prefetch(&*tenant.spent);
            if let Some(first) = tenant.quotas.first() {
                prefetch(first);
            }
        }
        for (lease, _) in &self.leases {
            let slot = state.leases.prefetch(*lease);
            if let Some(timers) = self.timers {
                timers.prefetch(slot);
            }
        }
        for quota in self.tenants.iter().flat_map(|tenant| state.quotas_of(*tenant)) {
            prefetch(quota);
        }
        let ending = self.leases.iter().filter(|(_, ends)| *ends);
        for lease in ending.filter_map(|(lease, _)| state.leases.get(*lease)) {
            for slot in [lease.node_next, lease.node_prev].into_iter().filter(|slot| *slot != NONE) {
                prefetch(&state.leases.at(slot).node_next);
            }
            self.held.push((lease.tenant, lease.node));
        }
        for (tenant, node) in &self.held {
            state.prefetch_counts(*tenant, *node);
            if let Some(node) = state.node(*node) {
                prefetch(node);
            }
            if let Some(evictables) = self.evictables {
                evictables.prefetch(*node);
            }
        }
        for (_, node) in &self.held {
            if let Some(class) = state.node(*node).and_then(|node| node.classes.first()) {
                prefetch(class);
            }
            if let Some(evictables) = self.evictables {
                evictables.prefetch_first(*node);
            }
        }
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
        evictables: &Evictables,
        keys: &KeyIndex,
        requests: impl Iterator<Item = &'r Request> + Clone,
    ) {
        let mut ahead = Prefetch::of(self, Some(timers), Some(evictables));
        let mut next_lease = self.next_lease;
        for request in requests.clone() {
            ahead.holder(&request.identity);
            if let Some((lease, ends)) = lease_of_request(request) {
                ahead.lease(lease, ends);
            } else if let Command::Request(_) = &request.command {
                // Where the index of leases would have the lease that is granted.
                self.leases.prefetch_index(LeaseNo(next_lease));
                next_lease += 1;
            }
            if let Some(key) = &request.key {
                keys.prefetch(key.scope);
                self.idempotency_keys.prefetch_queue(request.identity.tenant.or(key.sealed.owner));
            }
        }
        for request in requests {
            let owner = request.key.as_ref().map(|key| request.identity.tenant.or(key.sealed.owner));
            if let Some(slot) = owner.and_then(|owner| self.idempotency_keys.next_slot(owner)) {
                prefetch(self.idempotency_keys.at(slot));
            }
        }
        ahead.follow();
    }

    /// To be called as soon as a grant knows its node, so that memory is loaded while the record is made.
    pub(crate) fn warm_grant(&self, tenant: Option<TenantNo>, node: NodeNo) {
        let neighbour = entry(&self.nodes, node.0).map(|node| node.first_lease).filter(|slot| *slot != NONE);
        if let Some(slot) = neighbour {
            prefetch(&self.leases.at(slot).node_prev);
        }
        if let Some(tenant) = tenant {
            self.prefetch_counts(tenant, node);
        }
    }

    /// To be called before records are folded.
    pub(crate) fn warm_records<'r>(&self, records: impl Iterator<Item = &'r Record>) {
        let mut ahead = Prefetch::of(self, None, None);
        for record in records {
            ahead.holder(&record.identity);
            if let Some((lease, ends)) = lease_of_record(record) {
                ahead.lease(lease, ends);
            } else if let Body::Granted(granted) = &record.body {
                self.leases.prefetch_index(granted.first_lease);
                ahead.held.extend(record.identity.tenant.map(|tenant| (tenant, granted.node)));
            }
        }
        ahead.follow();
    }
}
