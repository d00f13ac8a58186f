//! Recorded evictions, with the state on which they were decided: the requester, its nodes, the victims and why they
//! were chosen.

use super::Explainer;
use super::decision::{read, state_at};
use crate::access::Caller;
use crate::app::App;
use leasehold_api as api;
use leasehold_api::{Problem, When, codes};
use leasehold_engine::{Allocation, Lease, State};
use leasehold_model::body::{Body, PreemptionDecided};
use leasehold_model::{Instant, LeaseNo, NodeNo, Priority, Span};

pub(super) struct Evicted {
    sequence: u64,
    at: Instant,
    decided: PreemptionDecided,
    state: State,
}

/// How a caller is concerned by an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It made the request, or may see everything.
    Requester,
    /// Its leases are evicted. It may not see the other victims.
    Victim,
}

impl Evicted {
    pub(super) fn find(app: &App, sequence: u64) -> Result<Self, Problem> {
        let record = read(app, sequence)?;
        let Body::PreemptionDecided(decided) = record.body else {
            return Err(codes::NOT_A_DECISION.problem(format!("Record {sequence} contains no decision to evict.")));
        };
        Ok(Self { sequence, at: record.stamp, decided, state: state_at(app, sequence)? })
    }

    pub(super) fn of(sequence: u64, at: Instant, decided: &PreemptionDecided, state: State) -> Self {
        Self { sequence, at, decided: decided.clone(), state }
    }

    pub(super) fn requester(&self) -> Option<&Allocation> {
        self.state.allocation(self.decided.allocation)
    }

    /// How the caller is concerned; `None` if it may not see the eviction.
    pub(super) fn part_of(&self, caller: &Caller) -> Option<Part> {
        let asked = self.requester().is_some_and(|found| caller.sees_project(found.tenant, found.project));
        if caller.sees_all() || asked {
            return Some(Part::Requester);
        }
        self.victims_of(caller).next().map(|_| Part::Victim)
    }

    fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.decided.victims.0.iter().filter_map(|lease| self.state.lease(*lease))
    }

    fn victims_of(&self, caller: &Caller) -> impl Iterator<Item = &Lease> {
        self.leases().filter(|lease| caller.sees_lease(lease.tenant, Some(lease.project), lease.node))
    }

    /// The nodes of its replicas.
    pub(super) fn nodes(&self) -> Vec<NodeNo> {
        self.decided.places.iter().map(|place| place.node).collect()
    }

    pub(super) fn priority(&self) -> Priority {
        self.decided.priority
    }

    /// The tenant that made the request, by name if the caller may know it.
    pub(super) fn requester_name(&self, explainer: &Explainer<'_>) -> String {
        self.requester().map_or_else(|| "another tenant".to_owned(), |found| explainer.tenant(found.tenant))
    }

    /// The priority of a victim when it was chosen, and the time it had left: the longest of its gang.
    pub(super) fn chosen(&self, lease: LeaseNo) -> Option<(Priority, Span)> {
        let lease = self.state.lease(lease)?;
        let in_same_gang = |other: &&Lease| match lease.of {
            Some(allocation) => other.of == Some(allocation),
            None => other.gang == lease.gang,
        };
        let latest = self.leases().filter(in_same_gang).map(|other| other.expires_at).max()?;
        Some((lease.priority, latest.since(self.at)))
    }

    /// The decision as the caller may see it. With the current state in `now`, victims that have ended are marked.
    pub(super) fn shown_to(&self, app: &App, caller: &Caller, part: Part, now: Option<&State>) -> api::DecidedEviction {
        let own = if part == Part::Requester { self.nodes() } else { Vec::new() };
        let explainer = Explainer { app, state: &self.state, caller, own: &own };
        let seen: Vec<&Lease> = match part {
            Part::Requester => self.leases().collect(),
            Part::Victim => self.victims_of(caller).collect(),
        };
        let victim = |lease: &&Lease| api::Victim {
            gone: now.is_some_and(|now| now.lease(lease.number).is_none()),
            ..explainer.victim(lease)
        };
        let number = self.requester().map(|found| found.number.0);
        api::DecidedEviction {
            sequence: self.sequence,
            decided_at: When(self.at),
            requester: self.requester_name(&explainer),
            allocation_id: number.filter(|_| part == Part::Requester).map(api::AllocationId),
            priority: self.decided.priority.to_string(),
            nodes: own.iter().filter_map(|node| explainer.node(*node)).collect(),
            victims: seen.iter().map(victim).collect(),
        }
    }

    /// The explanation for the owner of a victim.
    pub(super) fn explain_to_victim(&self, app: &App, caller: &Caller) -> api::Explanation {
        let decided = self.shown_to(app, caller, Part::Victim, None);
        let (leases, are) = match decided.victims.len() {
            1 => ("One of your leases".to_owned(), "is"),
            many => (format!("{many} of your leases"), "are"),
        };
        let why = format!("{leases} {are} evicted for a {} request of {}.", decided.priority, decided.requester);
        api::Explanation { decided: Some(decided), ..Explainer::bare(self.at, "evicted", why) }
    }
}
