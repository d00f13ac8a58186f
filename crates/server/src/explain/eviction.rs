//! Recorded evictions, with the state on which they were decided: the requester, its nodes, the victims and why they
//! were chosen.

use super::Explainer;
use super::decision::{read, state_at};
use crate::access::Caller;
use crate::app::App;
use crate::problem::quota_words;
use leasehold_api as api;
use leasehold_api::{Problem, When, codes};
use leasehold_engine::{Allocation, Lease, State};
use leasehold_model::body::{Body, ReplicaPlacement};
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo, Priority, QuotaNo, Span};

pub(super) struct Evicted {
    sequence: u64,
    at: Instant,
    decided: Decided,
    state: State,
}

/// What a decision evicts and takes over.
#[derive(Clone)]
pub(super) struct Decided {
    allocation: AllocationNo,
    priority: Priority,
    nodes: Vec<NodeNo>,
    victims: Vec<LeaseNo>,
    awaited: Vec<LeaseNo>,
    dropped: Vec<AllocationNo>,
    /// The quota in which the victims make headroom.
    headroom: Option<QuotaNo>,
}

impl Decided {
    /// The decision of a record, if it makes room for an allocation.
    pub(super) fn of(body: &Body) -> Option<Self> {
        let nodes = |places: &[ReplicaPlacement]| places.iter().map(|place| place.node).collect();
        if let Body::PreemptionDecided(decided) = body {
            return Some(Self {
                allocation: decided.allocation,
                priority: decided.priority,
                nodes: nodes(&decided.places),
                victims: decided.victims.0.to_vec(),
                awaited: Vec::new(),
                dropped: Vec::new(),
                headroom: decided.headroom,
            });
        }
        let Body::ReservationTakenOver(taken) = body else { return None };
        Some(Self {
            allocation: taken.allocation,
            priority: taken.priority,
            nodes: nodes(&taken.places),
            victims: taken.victims.0.to_vec(),
            awaited: taken.awaited.0.to_vec(),
            dropped: taken.dropped.clone(),
            headroom: None,
        })
    }

    pub(super) fn allocation(&self) -> AllocationNo {
        self.allocation
    }

    pub(super) fn dropped(&self) -> &[AllocationNo] {
        &self.dropped
    }

    /// What it does for its requester, as a sentence.
    pub(super) fn why(&self, state: &State) -> String {
        let evicts = match self.victims.len() {
            0 => None,
            1 => Some("one lease of lower priority is evicted".to_owned()),
            many => Some(format!("{many} leases of lower priority are evicted")),
        };
        let takes = match self.dropped.len() {
            0 => None,
            1 => Some("a reservation of lower priority is taken over".to_owned()),
            many => Some(format!("{many} reservations of lower priority are taken over")),
        };
        let done: Vec<String> = [takes, evicts].into_iter().flatten().collect();
        let (done, who, priority) = (capital(&done.join(", and ")), self.allocation, self.priority);
        match self.headroom {
            None => format!("{done} for {who}, which has priority {priority} and does not fit."),
            Some(quota) => format!(
                "{done} for {who}, which has priority {priority}: {} is full of leases of lower priority, and allows that \
                 these are evicted.",
                quota_words(state, quota)
            ),
        }
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// How a caller is concerned by an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It made the request, or may see everything.
    Requester,
    /// Its leases are evicted. It may not see the other victims.
    Victim,
    /// Its reservation was taken over.
    Loser,
}

impl Evicted {
    pub(super) fn find(app: &App, sequence: u64) -> Result<Self, Problem> {
        let record = read(app, sequence)?;
        let none = || codes::NOT_A_DECISION.problem(format!("Record {sequence} contains no decision to evict."));
        let decided = Decided::of(&record.body).ok_or_else(none)?;
        Ok(Self { sequence, at: record.stamp, decided, state: state_at(app, sequence)? })
    }

    pub(super) fn of(sequence: u64, at: Instant, decided: Decided, state: State) -> Self {
        Self { sequence, at, decided, state }
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
        if self.victims_of(caller).next().is_some() {
            return Some(Part::Victim);
        }
        let mut losers = self.decided.dropped.iter().filter_map(|number| self.state.allocation(*number));
        losers.any(|found| caller.sees_project(found.tenant, found.project)).then_some(Part::Loser)
    }

    fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.decided.victims.iter().filter_map(|lease| self.state.lease(*lease))
    }

    fn victims_of(&self, caller: &Caller) -> impl Iterator<Item = &Lease> {
        self.leases().filter(|lease| caller.sees_lease(lease.tenant, Some(lease.project), lease.node))
    }

    /// The nodes of its replicas.
    pub(super) fn nodes(&self) -> Vec<NodeNo> {
        self.decided.nodes.clone()
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
            Part::Victim | Part::Loser => self.victims_of(caller).collect(),
        };
        let ending = self.decided.awaited.iter().filter_map(|lease| self.state.lease(*lease));
        let victim = |lease: &&Lease| api::Victim {
            gone: now.is_some_and(|now| now.lease(lease.number).is_none()),
            ..explainer.victim(lease, self.at)
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
            awaited: ending.filter(|_| part == Part::Requester).map(|lease| victim(&lease)).collect(),
            headroom_quota_id: self.decided.headroom.filter(|_| part == Part::Requester).map(|quota| quota.0),
            taken_over: self.decided.dropped.len() as u64 * u64::from(part == Part::Requester),
        }
    }

    /// The explanation for the owner of a reservation that was taken over.
    pub(super) fn explain_to_loser(&self, app: &App, caller: &Caller) -> api::Explanation {
        let decided = self.shown_to(app, caller, Part::Loser, None);
        let why = format!(
            "Capacity that was reserved for you was taken over for a {} request of {}. Your allocation waits in the queue \
             again, at its old place.",
            decided.priority, decided.requester
        );
        api::Explanation { decided: Some(decided), ..Explainer::bare(self.at, "taken over", why) }
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
