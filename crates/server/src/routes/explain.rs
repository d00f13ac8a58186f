//! Why: of a lease, an allocation, a node, or any sealed decision.

use crate::access::Caller;
use crate::app::App;
use crate::context::{Answer, Context, json};
use crate::explain::Teller;
use crate::history::{find_grant, scan, unreadable};
use crate::problem::refused;
use crate::show_allocations::waiting;
use leasehold_api::{Explanation, Problem, codes};
use leasehold_cell::{StartError, state_before};
use leasehold_engine::command::RequestLease;
use leasehold_engine::{Command, Replayed, State, asked_by, replay};
use leasehold_model::body::Body;
use leasehold_model::{AllocationSpec, ClassNo, LeaseNo, Quanta, Record};
use std::ops::ControlFlow;

/// Candidates and evictions that are told one by one.
const TOP: usize = 8;

fn no_record(sequence: u64) -> Problem {
    codes::NOT_FOUND.problem(format!("There is no decision {sequence} here."))
}

/// The record and those that continue it.
fn decision(app: &App, sequence: u64) -> Result<Vec<Record>, Problem> {
    let mut found: Vec<Record> = Vec::new();
    let scanned = app.journal.scan(sequence, &mut |at, raw| match raw.decode() {
        Ok(record) if at == sequence || record.continues => {
            found.push(record);
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(()),
    });
    scanned.map_err(|error| unreadable(&error))?;
    if found.is_empty() { Err(no_record(sequence)) } else { Ok(found) }
}

/// The state that a decision was made on. Where no snapshot helps, the journal is folded from its beginning.
fn state_at(app: &App, sequence: u64) -> Result<State, Problem> {
    state_before(&*app.journal, sequence).map_err(|error| match error {
        StartError::Read(error) => unreadable(&error),
        error => {
            tracing::error!(%error, "the past cannot be folded");
            codes::INTERNAL.problem("The state of that time cannot be made again; the log says more.")
        }
    })
}

/// The request that one replica of an allocation comes to.
fn replica_of(spec: &AllocationSpec, state: &State) -> RequestLease {
    let longest = state.settings().ttl_max;
    RequestLease {
        pool: spec.pool,
        asks: spec.asks.clone(),
        priority: spec.priority,
        sensitive: spec.sensitive,
        labels: spec.labels.clone(),
        profile: spec.profile,
        app_instance: spec.app_instance,
        ..RequestLease::of(ClassNo(0), Quanta(0), spec.ttl.or(spec.walltime).unwrap_or(longest).min(longest))
    }
}

/// Explains the decision that a record seals, and decides it again.
fn explain_record(app: &App, caller: &Caller, sequence: u64) -> Result<Explanation, Problem> {
    let sealed = decision(app, sequence)?;
    let record = &sealed[0];
    let tenant = record.identity.tenant;
    let theirs = match (tenant, record.identity.project) {
        (Some(tenant), Some(project)) => caller.sees_project(tenant, project),
        _ => caller.sees_all(),
    };
    if !theirs {
        return Err(no_record(sequence));
    }
    let state = state_at(app, sequence)?;
    let replayed = match replay(state.clone(), &sealed) {
        Replayed::Same => Some("same"),
        Replayed::Differs(_) => Some("differs"),
        Replayed::OtherRules(_) => Some("other_rules"),
        Replayed::NotADecision | Replayed::PartOf(_) => None,
    };
    let teller = Teller { app, state: &state, caller };
    let at = record.stamp;
    // What was asked, as far as the record tells.
    let asked = || {
        let request = match asked_by(record) {
            Some(Command::Request(request)) => request,
            Some(Command::SubmitAllocation(spec)) => replica_of(&spec, &state),
            _ => return Err(no_record(sequence)),
        };
        state.explain_lease(at, &record.identity, &request, TOP).map_err(|refusal| refused(&refusal))
    };
    let mut told = match &record.body {
        Body::Granted(granted) => {
            let node = state.node(granted.node).filter(|_| caller.sees_node(granted.node));
            let place = node.map_or_else(|| "a node".to_owned(), |node| node.name.to_string());
            teller.tell(at, "granted", format!("It was granted on {place}."), &asked()?)
        }
        Body::Denied(denied) => teller.tell(at, "denied", teller.cause(tenant, &denied.cause), &asked()?),
        Body::AllocationDenied(denied) => teller.tell(at, "denied", teller.cause(tenant, &denied.cause), &asked()?),
        Body::AllocationPlaced(placed) => {
            let found = state.allocation(placed.allocation).ok_or_else(|| no_record(sequence))?;
            let why = format!("Attempt {} of {} began: all its replicas had a place.", placed.attempt, found.number);
            teller.tell(at, "granted", why, &state.explain_allocation(found, at, TOP))
        }
        Body::PreemptionDecided(decided) => {
            let found = state.allocation(decided.allocation).ok_or_else(|| no_record(sequence))?;
            let why = format!(
                "{} leases of lower priority fall for {}, which is {} and finds no room.",
                decided.victims.0.len(),
                found.number,
                decided.priority
            );
            teller.tell(at, "evicts", why, &state.explain_allocation(found, at, TOP))
        }
        Body::AllocationSubmitted(_) => {
            let why = match sealed.len() {
                1 => "It was taken into the queue: not all its replicas had a place.",
                _ => "It started at once: all its replicas had a place.",
            };
            teller.tell(at, "submitted", why.to_owned(), &asked()?)
        }
        _ => {
            return Err(
                codes::BAD_QUERY.problem(format!("Record {sequence} is no decision; there is nothing to explain."))
            );
        }
    };
    told.sequence = Some(sequence);
    told.replayed = replayed.map(str::to_owned);
    Ok(told)
}

pub(super) async fn explain_decision(context: Context) -> Answer {
    let sequence =
        context.subject().parse().map_err(|_| codes::BAD_QUERY.problem("A record is named by its sequence."))?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let told = scan(&app, move |app| explain_record(app, &caller, sequence)).await?;
    json(200, &told)
}

pub(super) async fn explain_lease(context: Context) -> Answer {
    let number: LeaseNo = super::leases::subject(&context)?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let missing = super::leases::no_lease(context.subject());
    let told = scan(&app, move |app| {
        let grant = find_grant(app, number)?.filter(|grant| grant.is_visible_to(&caller));
        let Some(grant) = grant else { return Err(missing) };
        let record = &grant.record;
        // The grants of a gang follow the record that places it.
        let first = if record.continues { first_of_command(app, record.sequence)? } else { record.sequence };
        explain_record(app, &caller, first)
    });
    json(200, &told.await?)
}

/// The first record of the command that one belongs to.
fn first_of_command(app: &App, sequence: u64) -> Result<u64, Problem> {
    let mut at = sequence;
    while at > 0 && decision(app, at)?[0].continues {
        at -= 1;
    }
    Ok(at)
}

pub(super) async fn explain_allocation(context: Context) -> Answer {
    let number = super::allocations::subject(&context)?;
    let missing = || super::allocations::no_allocation(context.subject());
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let live = app.now.read(|state| {
        let found = state.allocation(number)?;
        if !caller.sees_project(found.tenant, found.project) {
            return None;
        }
        let at = state.last_stamp();
        let teller = Teller { app: &app, state, caller: &caller };
        if found.state.is_queued() {
            let explained = state.explain_allocation(found, at, TOP);
            let why = waiting(state, &caller, found, at).map_or_else(String::new, |waits| waits.detail);
            return Some(Ok(teller.tell(at, "waits", why, &explained)));
        }
        Some(Err(found.first_lease))
    });
    match live {
        Some(Ok(told)) => json(200, &told),
        Some(Err(lease)) => {
            let told = scan(&app, move |app| {
                let grant = find_grant(app, lease)?.ok_or_else(|| no_record(number.0))?;
                explain_record(app, &caller, first_of_command(app, grant.record.sequence)?)
            });
            json(200, &told.await?)
        }
        // It is over, or was never there: what is left is how it was submitted.
        None => {
            let told = scan(&app, move |app| explain_record(app, &caller, number.0)).await;
            json(200, &told.map_err(|_| missing())?)
        }
    }
}

pub(super) async fn explain_node(context: Context) -> Answer {
    let number = super::capacity::find_node(&context)?;
    let (app, caller) = (&context.app, context.caller());
    let told = app.now.read(|state| Teller { app, state, caller }.node_explained(number, state.last_stamp()));
    json(200, &told.ok_or_else(|| codes::NOT_FOUND.problem("There is no such node here."))?)
}
