//! Evictions as they were sealed, with the state they were decided on: who asked, where it lies, who fell and why they.

use super::Teller;
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

/// What a caller is to an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It asked, or sees all.
    Requester,
    /// Leases of its own fall. It learns nothing of the others.
    Victim,
}

impl Evicted {
    pub(super) fn find(app: &App, sequence: u64) -> Result<Self, Problem> {
        let record = read(app, sequence)?;
        let Body::PreemptionDecided(decided) = record.body else {
            return Err(codes::NOT_A_DECISION.problem(format!("Record {sequence} decides no eviction.")));
        };
        Ok(Self { sequence, at: record.stamp, decided, state: state_at(app, sequence)? })
    }

    pub(super) fn of(sequence: u64, at: Instant, decided: &PreemptionDecided, state: State) -> Self {
        Self { sequence, at, decided: decided.clone(), state }
    }

    pub(super) fn requester(&self) -> Option<&Allocation> {
        self.state.allocation(self.decided.allocation)
    }

    /// What the caller is to it; `None` if it is none of its business.
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

    /// Where its replicas lie.
    pub(super) fn nodes(&self) -> Vec<NodeNo> {
        self.decided.places.iter().map(|place| place.node).collect()
    }

    pub(super) fn priority(&self) -> Priority {
        self.decided.priority
    }

    /// Who asked, as the caller may know it: of its own tenant, by name.
    pub(super) fn requester_name(&self, teller: &Teller<'_>) -> String {
        self.requester().map_or_else(|| "another tenant".to_owned(), |found| teller.tenant(found.tenant))
    }

    /// What a victim was when it was chosen: its priority and how long it had left, the longest of its gang.
    pub(super) fn chosen(&self, lease: LeaseNo) -> Option<(Priority, Span)> {
        let lease = self.state.lease(lease)?;
        let falls_with = |other: &&Lease| match lease.of {
            Some(allocation) => other.of == Some(allocation),
            None => other.gang == lease.gang,
        };
        let latest = self.leases().filter(falls_with).map(|other| other.expires_at).max()?;
        Some((lease.priority, latest.since(self.at)))
    }

    /// The decision as the caller may see it. Of those that wait for their victims, `now` says which are gone.
    pub(super) fn tell(&self, app: &App, caller: &Caller, part: Part, now: Option<&State>) -> api::DecidedEviction {
        let own = if part == Part::Requester { self.nodes() } else { Vec::new() };
        let teller = Teller { app, state: &self.state, caller, own: &own };
        let seen: Vec<&Lease> = match part {
            Part::Requester => self.leases().collect(),
            Part::Victim => self.victims_of(caller).collect(),
        };
        let victim = |lease: &&Lease| api::Victim {
            gone: now.is_some_and(|now| now.lease(lease.number).is_none()),
            ..teller.victim(lease)
        };
        let number = self.requester().map(|found| found.number.0);
        api::DecidedEviction {
            sequence: self.sequence,
            decided_at: When(self.at),
            requester: self.requester_name(&teller),
            allocation_id: number.filter(|_| part == Part::Requester),
            priority: self.decided.priority.to_string(),
            nodes: own.iter().filter_map(|node| teller.node(*node)).collect(),
            victims: seen.iter().map(victim).collect(),
        }
    }

    /// The same for a victim, as an explanation.
    pub(super) fn tell_victim(&self, app: &App, caller: &Caller) -> api::Explanation {
        let decided = self.tell(app, caller, Part::Victim, None);
        let (leases, fall) = match decided.victims.len() {
            1 => ("One of your leases".to_owned(), "falls"),
            many => (format!("{many} of your leases"), "fall"),
        };
        let why = format!("{leases} {fall} for a {} request of {}.", decided.priority, decided.requester);
        api::Explanation { decided: Some(decided), ..Teller::bare(self.at, "evicted", why) }
    }
}
