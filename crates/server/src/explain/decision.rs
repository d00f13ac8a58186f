//! A sealed decision, explained from the state it was made on, and made again.

use super::ending::LastAttempt;
use super::eviction::{Evicted, Part};
use super::{TOP, Teller, ending};
use crate::access::Caller;
use crate::app::App;
use crate::problem::refused;
use crate::scans::unreadable;
use crate::show_allocations::waiting;
use leasehold_api::{Explanation, Problem, codes};
use leasehold_books::Row;
use leasehold_cell::{StartError, state_before};
use leasehold_engine::{Command, Placement, Replayed, State, View, asked_by, replay};
use leasehold_model::body::{AllocationPlaced, Body};
use leasehold_model::{AllocationNo, AttemptEnd, Instant, LeaseNo, LeaseState, NodeNo, Record, Span};
use std::ops::ControlFlow;

pub(crate) fn no_record(sequence: u64) -> Problem {
    codes::RECORD_NOT_FOUND.problem(format!("There is no record {sequence} here."))
}

fn no_decision(asked: u64, first: &Record) -> Problem {
    let word = first.body.word();
    let detail = if asked == first.sequence {
        format!("Record {asked} ({word}) seals no decision; there is nothing to explain.")
    } else {
        format!("Record {asked} follows from record {} ({word}), which seals no decision.", first.sequence)
    };
    codes::NOT_A_DECISION.problem(detail)
}

/// One record.
pub(super) fn read(app: &App, sequence: u64) -> Result<Record, Problem> {
    let found = app.journal.record(sequence).map_err(|error| unreadable(&error))?;
    let record = found.ok_or_else(|| no_record(sequence))?.raw().decode();
    record.map_err(|_| codes::INTERNAL.problem("A record of the journal cannot be read."))
}

/// The whole decision that a record is part of, from its first record on.
fn decision(app: &App, sequence: u64) -> Result<Vec<Record>, Problem> {
    let mut first = sequence;
    while first > 0 && read(app, first)?.continues {
        first -= 1;
    }
    let mut found: Vec<Record> = Vec::new();
    let scanned = app.journal.scan(first, &mut |at, raw| match raw.decode() {
        Ok(record) if at == first || record.continues => {
            found.push(record);
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(()),
    });
    scanned.map_err(|error| unreadable(&error))?;
    if found.is_empty() { Err(no_record(sequence)) } else { Ok(found) }
}

/// The state that a decision was made on. Where no snapshot helps, the journal is folded from its beginning.
pub(super) fn state_at(app: &App, sequence: u64) -> Result<State, Problem> {
    state_before(&*app.journal, sequence).map_err(|error| match error {
        StartError::Read(error) => unreadable(&error),
        error => {
            tracing::error!(%error, "the past cannot be folded");
            codes::INTERNAL.problem("The state of that time cannot be made again; the log says more.")
        }
    })
}

/// Whether a decision may be the caller's business, by its records alone: folding the past for everybody who guesses a
/// number would cost too much.
fn may_see(app: &App, caller: &Caller, sealed: &[Record]) -> Result<bool, Problem> {
    let first = &sealed[0];
    if let Body::PreemptionDecided(decided) = &first.body {
        // Its victims are revoked in the records that continue it.
        let of_caller = |record: &Record| record.identity.tenant.is_some_and(|tenant| caller.sees_tenant(tenant));
        let asker = || read(app, decided.allocation.0).map(|record| of_caller(&record));
        return Ok(caller.sees_all() || sealed.iter().any(of_caller) || asker()?);
    }
    Ok(match (first.identity.tenant, first.identity.project) {
        (Some(tenant), Some(project)) => caller.sees_project(tenant, project),
        _ => caller.sees_all(),
    })
}

/// Explains the decision that a record seals or is part of, and decides it again. Of a gang, the replica that a lease
/// belongs to.
pub(crate) fn explain_record(
    app: &App,
    caller: &Caller,
    sequence: u64,
    lease: Option<LeaseNo>,
) -> Result<Explanation, Problem> {
    let sealed = decision(app, sequence)?;
    if !may_see(app, caller, &sealed)? {
        return Err(no_record(sequence));
    }
    let first = sealed[0].sequence;
    let state = state_at(app, first)?;
    let verdict = match replay(state.clone(), &sealed) {
        Replayed::Same => "same",
        Replayed::Differs(_) => "differs",
        Replayed::OtherRules(_) => "other_rules",
        Replayed::NotADecision | Replayed::PartOf(_) => return Err(no_decision(sequence, &sealed[0])),
    };
    let index = Placement::of(&state);
    let mut told = Told { app, caller, sealed: &sealed, state, index, lease }.explain(sequence)?;
    told.sequence = Some(first);
    told.part = (first != sequence).then_some(sequence).filter(|_| lease.is_none());
    told.replayed = Some(verdict.to_owned());
    Ok(told)
}

/// A decision that is being told.
struct Told<'a> {
    app: &'a App,
    caller: &'a Caller,
    sealed: &'a [Record],
    state: State,
    index: Placement,
    lease: Option<LeaseNo>,
}

impl Told<'_> {
    fn view(&self) -> View<'_> {
        self.index.view(&self.state)
    }

    fn at(&self) -> Instant {
        self.sealed[0].stamp
    }

    /// The nodes of its grants, replica by replica, each with its first lease.
    fn grants(&self) -> Vec<(LeaseNo, NodeNo)> {
        let grant = |record: &Record| match &record.body {
            Body::Granted(granted) => Some((granted.first_lease, granted.node)),
            _ => None,
        };
        self.sealed.iter().filter_map(grant).collect()
    }

    /// Which replica the lease belongs to, counted from one.
    fn replica(&self) -> Option<u32> {
        let lease = self.lease?;
        let before = self.grants().iter().filter(|(first, _)| *first <= lease).count();
        u32::try_from(before).ok().filter(|replica| *replica > 0)
    }

    fn node_name(&self, node: NodeNo) -> String {
        self.state.node(node).map_or_else(|| node.to_string(), |node| node.name.to_string())
    }

    /// What became of a gang that was placed: of the lease's replica, where one is named.
    fn placed(&self, placed: &AllocationPlaced) -> String {
        let grants = self.grants();
        let number = placed.allocation;
        let replica = self.replica().and_then(|replica| Some((replica, grants.get(replica as usize - 1)?.1)));
        match (replica, grants.as_slice()) {
            (Some((replica, node)), [_, _, ..]) => {
                let (node, of) = (self.node_name(node), grants.len());
                format!(
                    "It was granted on {node}, as replica {replica} of {of} of {number}, attempt {}",
                    placed.attempt
                )
            }
            (_, [(_, node)]) => {
                format!("Attempt {} of {number} began on {}", placed.attempt, self.node_name(*node))
            }
            _ => format!("Attempt {} of {number} began", placed.attempt),
        }
    }

    fn explain(&self, asked: u64) -> Result<Explanation, Problem> {
        let (app, caller, state, at) = (self.app, self.caller, &self.state, self.at());
        let record = &self.sealed[0];
        let own: Vec<NodeNo> = self.grants().iter().map(|(_, node)| *node).collect();
        let teller = Teller { app, state, caller, own: &own };
        let tenant = record.identity.tenant;
        let missing = || no_record(asked);
        let lone = || match asked_by(record) {
            Some(Command::Request(request)) => {
                self.view().explain_lease(at, &record.identity, &request, TOP).map_err(|refusal| refused(&refusal))
            }
            _ => Err(no_decision(asked, record)),
        };
        let gang = || match asked_by(record) {
            Some(Command::SubmitAllocation(spec)) => {
                self.view().explain_gang(at, &record.identity, &spec, self.replica(), TOP).ok_or_else(missing)
            }
            _ => Err(no_decision(asked, record)),
        };
        Ok(match &record.body {
            Body::Granted(granted) => {
                let why = format!("It was granted on {}.", self.node_name(granted.node));
                teller.tell(at, "granted", why, &lone()?)
            }
            Body::Denied(denied) => teller.tell(at, "denied", teller.cause(tenant, &denied.cause), &lone()?),
            Body::AllocationDenied(denied) => teller.tell(at, "denied", teller.cause(tenant, &denied.cause), &gang()?),
            Body::AllocationSubmitted(_) => {
                let placed = self.sealed.iter().find_map(|record| match &record.body {
                    Body::AllocationPlaced(placed) => Some(placed),
                    _ => None,
                });
                match placed {
                    Some(placed) => {
                        let outcome = if self.lease.is_some() { "granted" } else { "submitted" };
                        let why = format!("{}: it started at once, all of it had a place.", self.placed(placed));
                        teller.tell(at, outcome, why, &gang()?)
                    }
                    None => {
                        let why = "It was taken into the queue: not all of it had a place.".to_owned();
                        teller.tell(at, "submitted", why, &gang()?)
                    }
                }
            }
            Body::AllocationPlaced(placed) => self.started(&teller, placed)?,
            Body::PreemptionDecided(decided) => {
                let evicted = Evicted::of(record.sequence, at, decided, state.clone());
                match evicted.part_of(caller).ok_or_else(missing)? {
                    Part::Victim => evicted.tell_victim(app, caller),
                    part @ Part::Requester => {
                        let found = evicted.requester().ok_or_else(missing)?;
                        let leases = match decided.victims.0.len() {
                            1 => "One lease of lower priority falls".to_owned(),
                            many => format!("{many} leases of lower priority fall"),
                        };
                        let why =
                            format!("{leases} for {}, which is {} and finds no room.", found.number, decided.priority);
                        let own = evicted.nodes();
                        let teller = Teller { own: &own, ..teller };
                        let explained = self.view().explain_allocation(found, at, None, TOP);
                        let told = teller.tell(at, "evicts", why, &explained);
                        Explanation { decided: Some(evicted.tell(app, caller, part, None)), ..told }
                    }
                }
            }
            Body::ReservationDropped(dropped) => {
                let number = dropped.allocation;
                let why = format!(
                    "What its victims gave back for {number} was given up: a node of it left service, a victim's place \
                     was fenced, something was still missing, or quotas or its pool stood in the way. It waits in line \
                     again."
                );
                Teller::bare(at, "dropped", why)
            }
            Body::AllocationSuspended(one) => Teller::bare(
                at,
                "suspended",
                settled(one.allocation, one.end, "It has a checkpoint in that attempt, so it waits to go on from it."),
            ),
            Body::AllocationRequeued(one) => Teller::bare(
                at,
                "requeued",
                settled(one.allocation, one.end, "It had asked to be requeued, so it waits again."),
            ),
            Body::AllocationFailed(one) => {
                let why = match one.end {
                    AttemptEnd::Walltime => "It had the time that it asked for, so it failed.",
                    _ => "It had no checkpoint in that attempt and had not asked to be requeued, so it failed.",
                };
                Teller::bare(at, "failed", settled(one.allocation, one.end, why))
            }
            _ => return Err(no_decision(asked, record)),
        })
    }

    /// A gang that was placed some time after it was submitted: where its victims made room, or where there was some.
    fn started(&self, teller: &Teller<'_>, placed: &AllocationPlaced) -> Result<Explanation, Problem> {
        let (app, at, state) = (self.app, self.at(), &self.state);
        let found = state.allocation(placed.allocation).ok_or_else(|| no_record(self.sealed[0].sequence))?;
        let began = self.placed(placed);
        let Some(by) = found.kept_by() else {
            let explained = self.view().explain_allocation(found, at, self.replica(), TOP);
            let told = teller.tell(at, "granted", format!("{began}: all of it had a place."), &explained);
            // It no longer waits.
            return Ok(Explanation { queue: None, ..told });
        };
        let evicted = Evicted::find(app, by)?;
        let why = format!("{began}, where its victims made room, as decided in record {by}.");
        let told = teller.tell(at, "granted", why, &self.view().explain_kept(found, at));
        let decided = evicted.tell(app, self.caller, Part::Requester, None);
        Ok(Explanation { queue: None, decided: Some(decided), ..told })
    }
}

/// What becomes of one whose attempt has ended.
fn settled(number: AllocationNo, end: AttemptEnd, so: &str) -> String {
    let how = match end {
        AttemptEnd::Preempted => "was evicted for one of higher priority",
        AttemptEnd::NodeLost => "lost a node",
        AttemptEnd::Revoked => "was revoked",
        AttemptEnd::Expired => "was not renewed in time",
        AttemptEnd::Walltime => "reached its walltime",
        AttemptEnd::Reported => "failed, as its holder reported",
    };
    format!("The attempt of {number} {how}. {so}")
}

/// Explains a lease: why it was granted where it was, and how it ended, or is about to. `walltime`: of its allocation.
pub(crate) fn explain_lease(
    app: &App,
    caller: &Caller,
    lease: &(Row, LeaseState),
    walltime: Option<Span>,
) -> Result<Explanation, Problem> {
    let told = explain_record(app, caller, lease.0.life.sequence, Some(lease.0.lease))?;
    Ok(Explanation { ending: ending::of_lease(app, caller, lease, walltime)?, ..told })
}

/// Explains an allocation that waits for its victims: who they are was decided, and is not decided again.
fn explain_kept(app: &App, caller: &Caller, number: AllocationNo, by: u64) -> Result<Option<Explanation>, Problem> {
    let evicted = Evicted::find(app, by)?;
    let own = evicted.nodes();
    Ok(app.now.readers(|state| {
        let found = state.allocation(number).filter(|found| found.kept_by() == Some(by))?;
        let at = app.clock.wall().max(state.last_stamp());
        let waits = waiting(state, caller, found, at).map_or_else(String::new, |waits| waits.detail);
        let why = format!("{}, as decided in record {by}.", waits.trim_end_matches('.'));
        let kept = state.view(|view| view.explain_kept(found, at));
        let told = Teller { app, state, caller, own: &own }.tell(at, "waits", why, &kept);
        Some(Explanation { decided: Some(evicted.tell(app, caller, Part::Requester, Some(state))), ..told })
    }))
}

/// What to do to explain an allocation.
enum Stands {
    Waits(Box<Explanation>),
    WaitsForVictims(u64),
    /// It runs, or is over.
    Placed,
}

/// Explains an allocation that exists for the caller: what it waits for, or why its last attempt lies where it does;
/// and how that ended.
pub(crate) fn explain_allocation(app: &App, caller: &Caller, last: &LastAttempt) -> Result<Explanation, Problem> {
    let number = last.story.outline.number;
    let stands = app.now.readers(|state| {
        let Some(found) = state.allocation(number) else { return Stands::Placed };
        match found.kept_by() {
            Some(by) => Stands::WaitsForVictims(by),
            None if found.state.is_queued() => {
                let at = app.clock.wall().max(state.last_stamp());
                let explained = state.view(|view| view.explain_allocation(found, at, None, TOP));
                let why = waiting(state, caller, found, at).map_or_else(String::new, |waits| waits.detail);
                let teller = Teller { app, state, caller, own: &[] };
                Stands::Waits(Box::new(teller.tell(at, "waits", why, &explained)))
            }
            None => Stands::Placed,
        }
    });
    let kept = match stands {
        Stands::WaitsForVictims(by) => explain_kept(app, caller, number, by)?,
        _ => None,
    };
    let told = match (stands, kept) {
        (Stands::Waits(told), _) => *told,
        (_, Some(told)) => told,
        // Also where it started in between. What is left of one that never had a place is how it was submitted.
        _ => {
            let told = explain_record(app, caller, last.placed().unwrap_or(number.0), None)?;
            let outcome = if last.placed().is_some() { "granted".to_owned() } else { told.outcome };
            Explanation { part: None, outcome, ..told }
        }
    };
    Ok(Explanation { ending: ending::of_attempt(app, caller, last)?, ..told })
}
