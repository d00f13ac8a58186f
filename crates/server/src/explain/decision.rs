//! Explains a recorded decision from the state on which it was made, and makes it again.

use super::ending::LastAttempt;
use super::eviction::{Decided, Evicted, Part};
use super::{Explainer, TOP, ending};
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
    codes::RECORD_NOT_FOUND.problem(format!("There is no record {sequence}."))
}

fn no_decision(asked: u64, first: &Record) -> Problem {
    let word = first.body.word();
    let detail = if asked == first.sequence {
        format!("Record {asked} ({word}) contains no decision, so there is nothing to explain.")
    } else {
        format!("Record {asked} belongs to record {} ({word}), which contains no decision.", first.sequence)
    };
    codes::NOT_A_DECISION.problem(detail)
}

/// Reads one record.
pub(crate) fn read(app: &App, sequence: u64) -> Result<Record, Problem> {
    let found = app.journal.record(sequence).map_err(|error| unreadable(&error))?;
    let record = found.ok_or_else(|| no_record(sequence))?.raw().decode();
    record.map_err(|_| codes::INTERNAL.problem("Cannot decode a record of the journal."))
}

/// All records of the decision that a record is part of.
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

/// The state on which a decision was made. Without a snapshot, the journal is replayed from its beginning.
pub(super) fn state_at(app: &App, sequence: u64) -> Result<State, Problem> {
    state_before(&*app.journal, sequence).map_err(|error| match error {
        StartError::Read(error) => unreadable(&error),
        error => {
            tracing::error!(%error, "cannot rebuild a past state");
            codes::INTERNAL.problem("Cannot rebuild the state of that time; the daemon's log has the details.")
        }
    })
}

/// Whether the caller may see a decision, judged by its records alone: rebuilding a state for everybody who guesses a
/// sequence would cost too much.
fn may_see(app: &App, caller: &Caller, sealed: &[Record]) -> Result<bool, Problem> {
    let first = &sealed[0];
    if let Some(decided) = Decided::of(&first.body) {
        // The following records of the decision revoke its victims.
        let of_caller = |record: &Record| record.identity.tenant.is_some_and(|tenant| caller.sees_tenant(tenant));
        let asker = || read(app, decided.allocation().0).map(|record| of_caller(&record));
        let lost = |state: &State| {
            let mut found = decided.dropped().iter().filter_map(|number| state.allocation(*number));
            found.any(|found| caller.sees_project(found.tenant, found.project))
        };
        return Ok(caller.sees_all() || sealed.iter().any(of_caller) || asker()? || app.now.read(lost));
    }
    Ok(match (first.identity.tenant, first.identity.project) {
        (Some(tenant), Some(project)) => caller.sees_project(tenant, project),
        _ => caller.sees_all(),
    })
}

/// Explains the decision that a record is part of, and decides it again. For a gang, the replica of `lease` is
/// explained.
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
    let mut explanation = SealedDecision { app, caller, sealed: &sealed, state, index, lease }.explain(sequence)?;
    explanation.sequence = Some(first);
    explanation.part = (first != sequence).then_some(sequence).filter(|_| lease.is_none());
    explanation.replayed = Some(verdict.to_owned());
    Ok(explanation)
}

/// A recorded decision that is being explained.
struct SealedDecision<'a> {
    app: &'a App,
    caller: &'a Caller,
    sealed: &'a [Record],
    state: State,
    index: Placement,
    lease: Option<LeaseNo>,
}

impl SealedDecision<'_> {
    fn view(&self) -> View<'_> {
        self.index.view(&self.state)
    }

    fn at(&self) -> Instant {
        self.sealed[0].stamp
    }

    /// The nodes of its grants, one per replica, each with its first lease.
    fn grants(&self) -> Vec<(LeaseNo, NodeNo)> {
        let grant = |record: &Record| {
            let Body::Granted(granted) = &record.body else { return None };
            Some((granted.first_lease, granted.node))
        };
        self.sealed.iter().filter_map(grant).collect()
    }

    /// The replica of the lease, counted from 1.
    fn replica(&self) -> Option<u32> {
        let lease = self.lease?;
        let before = self.grants().iter().filter(|(first, _)| *first <= lease).count();
        u32::try_from(before).ok().filter(|replica| *replica > 0)
    }

    fn node_name(&self, node: NodeNo) -> String {
        self.state.node(node).map_or_else(|| node.to_string(), |node| node.name.to_string())
    }

    /// Describes the placement of a gang, or of the replica of the lease.
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
        let explainer = Explainer { app, state, caller, own: &own };
        let tenant = record.identity.tenant;
        let missing = || no_record(asked);
        let single = || {
            let Some(Command::Request(request)) = asked_by(record) else { return Err(no_decision(asked, record)) };
            self.view().explain_lease(at, &record.identity, &request, TOP).map_err(|refusal| refused(&refusal))
        };
        let gang = || {
            if let Some(Command::Request(_)) = asked_by(record) {
                return single();
            }
            let Some(Command::SubmitAllocation(submit)) = asked_by(record) else {
                return Err(no_decision(asked, record));
            };
            self.view().explain_gang(at, &record.identity, &submit.spec, self.replica(), TOP).ok_or_else(missing)
        };
        Ok(match &record.body {
            Body::Granted(granted) => {
                let why = format!("It was granted on {}.", self.node_name(granted.node));
                explainer.explanation(at, "granted", why, &single()?)
            }
            Body::Denied(denied) => {
                explainer.explanation(at, "denied", explainer.cause(tenant, &denied.cause), &single()?)
            }
            Body::AllocationDenied(denied) => {
                explainer.explanation(at, "denied", explainer.cause(tenant, &denied.cause), &gang()?)
            }
            Body::AllocationSubmitted(_) => {
                let placed = self.sealed.iter().find_map(|record| {
                    let Body::AllocationPlaced(placed) = &record.body else { return None };
                    Some(placed)
                });
                match placed {
                    Some(placed) => {
                        let outcome = if self.lease.is_some() { "granted" } else { "submitted" };
                        let why = format!("{}: it started at once, because everything fit.", self.placed(placed));
                        explainer.explanation(at, outcome, why, &gang()?)
                    }
                    None => {
                        let why = "It was queued, because not everything fit.".to_owned();
                        explainer.explanation(at, "submitted", why, &gang()?)
                    }
                }
            }
            Body::AllocationPlaced(placed) => self.started(&explainer, placed)?,
            Body::PreemptionDecided(_) | Body::ReservationTakenOver(_) => {
                let decided = Decided::of(&record.body).ok_or_else(missing)?;
                let why = decided.why(state);
                let evicted = Evicted::of(record.sequence, at, decided, state.clone());
                match evicted.part_of(caller).ok_or_else(missing)? {
                    Part::Victim => evicted.explain_to_victim(app, caller),
                    Part::Loser => evicted.explain_to_loser(app, caller),
                    part @ Part::Requester => {
                        let found = evicted.requester().ok_or_else(missing)?;
                        let own = evicted.nodes();
                        let explainer = Explainer { own: &own, ..explainer };
                        let explained = self.view().explain_allocation(found, at, None, TOP);
                        let explanation = explainer.explanation(at, "evicts", why, &explained);
                        Explanation { decided: Some(evicted.shown_to(app, caller, part, None)), ..explanation }
                    }
                }
            }
            Body::HeadProtected(protected) => {
                let nodes: Vec<String> = protected.nodes.0.iter().map(|node| self.node_name(*node)).collect();
                let why = format!(
                    "{} had waited for longer than `head_wait_max`. On {} nothing of its priority or below starts unless it \
                     is certain to end before {} can start.",
                    protected.allocation,
                    nodes.join(", "),
                    protected.allocation
                );
                Explainer::bare(at, "protected", why)
            }
            Body::ReservationDropped(dropped) => {
                let number = dropped.allocation;
                let why = format!(
                    "The capacity reserved for {number} was given up: a node left service, capacity of a victim \
                     was fenced, something was still missing, or a quota or its pool prevented the start. It waits in the \
                     queue again."
                );
                Explainer::bare(at, "dropped", why)
            }
            Body::AllocationSuspended(one) => Explainer::bare(
                at,
                "suspended",
                settled(
                    one.allocation,
                    one.end,
                    "It wrote a checkpoint in that attempt, so it waits to continue from it.",
                ),
            ),
            Body::AllocationRequeued(one) => Explainer::bare(
                at,
                "requeued",
                settled(one.allocation, one.end, "It was submitted with `requeue`, so it waits again."),
            ),
            Body::AllocationFailed(one) => {
                let why = match one.end {
                    AttemptEnd::Walltime => "It used up its walltime, so it failed.",
                    _ if state.allocation(one.allocation).is_some_and(|found| found.spec.requeue) => {
                        "It had no checkpoint in that attempt and was requeued as often as its pool allows, so it failed."
                    }
                    _ => "It had no checkpoint in that attempt and was submitted without `requeue`, so it failed.",
                };
                Explainer::bare(at, "failed", settled(one.allocation, one.end, why))
            }
            leasehold_model::setup_kinds!()
            | Body::Renewed(_)
            | Body::Released(_)
            | Body::ActivityReported(_)
            | Body::Expired(_)
            | Body::Revoked(_)
            | Body::TeardownStarted(_)
            | Body::TornDown(_)
            | Body::Fenced(_)
            | Body::Unfenced(_)
            | Body::Preempted(_)
            | Body::NodePut(_)
            | Body::NodeDeleted(_)
            | Body::NodeDrained(_)
            | Body::NodeResumed(_)
            | Body::WindowPut(_)
            | Body::WindowStarted(_)
            | Body::WindowEnded(_)
            | Body::WindowAnnounced(_)
            | Body::EndsCorrected(_)
            | Body::ClaimEndCorrected(_)
            | Body::LossSettled(_)
            | leasehold_model::ledger_kinds!()
            | Body::NodeLost(_)
            | Body::NodeReturned(_)
            | Body::NodeCondition(_)
            | Body::AgentRegistered(_)
            | Body::AgentDetached(_)
            | Body::NodeEmpty(_)
            | Body::AllocationStarted(_)
            | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_)
            | Body::AllocationCompleted(_)
            | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_)
            | Body::AllocationHoldCleared(_)
            | Body::AllocationChanged(_)
            | Body::NodesClaimed(_)
            | Body::NodesReleased(_)
            | Body::NodeWiped(_)
            | Body::NodeQuarantined(_)
            | Body::QuarantineCleared(_)
            | Body::Unknown { .. } => return Err(no_decision(asked, record)),
        })
    }

    /// An allocation that was placed some time after it was submitted, with or without an eviction.
    fn started(&self, explainer: &Explainer<'_>, placed: &AllocationPlaced) -> Result<Explanation, Problem> {
        let (app, at, state) = (self.app, self.at(), &self.state);
        let found = state.allocation(placed.allocation).ok_or_else(|| no_record(self.sealed[0].sequence))?;
        let began = self.placed(placed);
        let Some(by) = found.kept_by() else {
            let explained = self.view().explain_allocation(found, at, self.replica(), TOP);
            let explanation = explainer.explanation(at, "granted", format!("{began}: everything fit."), &explained);
            // It no longer waits.
            return Ok(Explanation { queue: None, ..explanation });
        };
        let evicted = Evicted::find(app, by)?;
        let why = format!("{began}, on capacity freed by the eviction in record {by}.");
        let explanation = explainer.explanation(at, "granted", why, &self.view().explain_kept(found, at));
        let decided = evicted.shown_to(app, self.caller, Part::Requester, None);
        Ok(Explanation { queue: None, decided: Some(decided), ..explanation })
    }
}

/// What happens to an allocation after its attempt has ended.
fn settled(number: AllocationNo, end: AttemptEnd, so: &str) -> String {
    let how = match end {
        AttemptEnd::Preempted => "was evicted for a higher priority",
        AttemptEnd::NodeLost => "lost a node",
        AttemptEnd::Revoked => "was revoked",
        AttemptEnd::Expired => "was not renewed in time",
        AttemptEnd::Walltime => "reached its walltime",
        AttemptEnd::Reported => "failed, as its holder reported",
        AttemptEnd::FailedStart => "could not be started",
    };
    format!("The attempt of {number} {how}. {so}")
}

/// Explains why a lease was granted on its node, and how it ended or is about to end. `walltime` is that of its
/// allocation.
pub(crate) fn explain_lease(
    app: &App,
    caller: &Caller,
    lease: &(Row, LeaseState),
    walltime: Option<Span>,
) -> Result<Explanation, Problem> {
    let explanation = explain_record(app, caller, lease.0.life.sequence, Some(lease.0.lease))?;
    Ok(Explanation { ending: ending::of_lease(app, caller, lease, walltime)?, ..explanation })
}

/// Explains an allocation that waits for its victims. They are taken from the recorded decision, not computed again.
fn explain_kept(app: &App, caller: &Caller, number: AllocationNo, by: u64) -> Result<Option<Explanation>, Problem> {
    let evicted = Evicted::find(app, by)?;
    let own = evicted.nodes();
    Ok(app.now.readers(|state| {
        let found = state.allocation(number).filter(|found| found.kept_by() == Some(by))?;
        let at = app.time().max(state.last_stamp());
        let waits = waiting(state, caller, found, at).map_or_else(String::new, |waits| waits.detail);
        let why = format!("{}, as decided in record {by}.", waits.trim_end_matches('.'));
        let kept = state.view(|view| view.explain_kept(found, at));
        let explanation = Explainer { app, state, caller, own: &own }.explanation(at, "waits", why, &kept);
        Some(Explanation { decided: Some(evicted.shown_to(app, caller, Part::Requester, Some(state))), ..explanation })
    }))
}

/// How an allocation is explained.
enum Situation {
    Waits(Box<Explanation>),
    WaitsForVictims(u64),
    /// It runs, or has ended.
    Placed,
}

/// Explains an allocation that the caller may see: why it waits, or why its last attempt was placed on its nodes, and
/// how that attempt ended.
pub(crate) fn explain_allocation(app: &App, caller: &Caller, last: &LastAttempt) -> Result<Explanation, Problem> {
    let number = last.story.outline.number;
    let situation = app.now.readers(|state| {
        let Some(found) = state.allocation(number) else { return Situation::Placed };
        match found.kept_by() {
            Some(by) => Situation::WaitsForVictims(by),
            None if found.state.is_queued() => {
                let at = app.time().max(state.last_stamp());
                let explained = state.view(|view| view.explain_allocation(found, at, None, TOP));
                let why = waiting(state, caller, found, at).map_or_else(String::new, |waits| waits.detail);
                let explainer = Explainer { app, state, caller, own: &[] };
                Situation::Waits(Box::new(explainer.explanation(at, "waits", why, &explained)))
            }
            None => Situation::Placed,
        }
    });
    let kept = match situation {
        Situation::WaitsForVictims(by) => explain_kept(app, caller, number, by)?,
        _ => None,
    };
    let explanation = match (situation, kept) {
        (Situation::Waits(explanation), _) => *explanation,
        (_, Some(explanation)) => explanation,
        // Also if it started in the meantime. An allocation that was never placed is explained by its submission.
        _ => {
            let explanation = explain_record(app, caller, last.placed().unwrap_or(number.0), None)?;
            let outcome = if last.placed().is_some() { "granted".to_owned() } else { explanation.outcome };
            Explanation { part: None, outcome, ..explanation }
        }
    };
    Ok(Explanation { ending: ending::of_attempt(app, caller, last)?, ..explanation })
}
