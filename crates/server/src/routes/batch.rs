//! Batches: each operation is authorised, decided and answered on its own, in order.

use super::leases::{confirmation, no_lease, release, renewal, revocation, to_activity, to_known_request};
use super::release_again::{self, may_be_repeated};
use super::submitted_again;
use crate::access::Caller;
use crate::answer;
use crate::app::{App, request};
use crate::context::{Answer, Context, json_bytes, rate};
use crate::problem::refusal_for;
use crate::reply::ask;
use crate::show_allocations::Ended;
use leasehold_api::endpoint::by_id;
use leasehold_api::{Batch, Endpoint, Operation, Problem, Released, codes, limits};
use leasehold_cell::{Reply, Sealed, Unsealed};
use leasehold_engine::command::{self, ReleaseOne};
use leasehold_engine::{Command, CommandKind, Request, State};
use leasehold_model::LeaseNo;
use smallvec::smallvec;

/// What an operation does; this determines the format of its answer.
#[derive(Clone, Copy)]
enum Action {
    Request,
    Renew,
    Release,
    Revoke,
    Ready,
    Report,
    Confirm,
    Unfence,
}

impl Action {
    /// The endpoint of the single operation. Roles that may call it may use the operation in a batch.
    fn alone(self) -> &'static Endpoint {
        match self {
            Self::Request => by_id::request_lease,
            Self::Renew => by_id::renew_lease,
            Self::Release => by_id::release_lease,
            Self::Revoke => by_id::revoke_lease,
            Self::Ready => by_id::lease_ready,
            Self::Report => by_id::report_activity,
            Self::Confirm => by_id::confirm_teardown,
            Self::Unfence => by_id::unfence_lease,
        }
    }
}

/// Operations that are prepared while the view is held.
const AT_ONCE: usize = 256;

pub(super) async fn batch(context: Context) -> Answer {
    let batch: Batch = context.body()?;
    let operations = batch.operations;
    if operations.len() > limits::BATCH_OPERATIONS_MAX {
        let most = limits::BATCH_OPERATIONS_MAX;
        let detail = format!("The batch has {} operations; the limit is {most}.", operations.len());
        return Err(codes::TOO_MANY_OPERATIONS
            .problem(detail)
            .with("limit", most.to_string())
            .with("unit", "operation"));
    }
    let (app, caller) = (&*context.app, context.caller());
    rate(app, caller, u32::try_from(operations.len()).unwrap_or(u32::MAX))?;
    let mut prepared: Vec<Prepared> = Vec::with_capacity(operations.len());
    let mut requests = Vec::with_capacity(operations.len());
    for some in operations.chunks(AT_ONCE) {
        app.now.read(|state| {
            for operation in some {
                prepared.push(prepare(app, state, caller, operation).map(|(action, lease, request)| {
                    let kind = request.command.kind();
                    requests.push(request);
                    (action, lease, kind)
                }));
            }
        });
    }
    let share = app.wait_with(caller, requests.len())?;
    let replies = ask(&app.cell, requests).await;
    drop(share);
    let decided = operations.iter().zip(&prepared).filter(|(_, prepared)| prepared.is_ok()).zip(&replies);
    for ((operation, _), reply) in decided {
        if let (Some(_), Ok(sealed)) = (&operation.key, reply) {
            context.key_memory.add(sealed);
        }
    }
    let released_before = release_again::look_up(&context.app, caller, repeated_releases(&prepared, &replies)).await?;
    let again = replies.iter().filter_map(|reply| reply.as_ref().ok());
    let ended = submitted_again::look_up(&context.app, caller, again).await?;
    let mut replies = replies.into_iter();
    let mut out = Vec::with_capacity(64 + operations.len() * 256);
    out.extend_from_slice(b"{\"results\":[");
    for (place, some) in prepared.chunks(AT_ONCE).enumerate() {
        app.now.read(|state| {
            for (within, prepared) in some.iter().enumerate() {
                if place + within > 0 {
                    out.push(b',');
                }
                let result = match prepared {
                    Err(problem) => Err(problem.clone()),
                    Ok((action, lease, kind)) => {
                        let reply = replies.next().expect("one reply per request");
                        app.metrics.replied(*kind, &reply);
                        let tell = |refusal: &_| refusal_for(state, caller, refusal);
                        match (released_before.get(lease), reply) {
                            (Some(first), Err(_)) if matches!(action, Action::Release) => {
                                write_released_before(first, &mut out);
                                Ok(())
                            }
                            (_, reply) => reply
                                .map_err(|unsealed| crate::app::problem(&unsealed, tell))
                                .and_then(|sealed| write(app, state, *action, *lease, &sealed, &ended, &mut out)),
                        }
                    }
                };
                if let Err(problem) = result {
                    write_problem(&problem, &mut out);
                }
            }
        });
    }
    out.extend_from_slice(b"]}");
    Ok(json_bytes(200, out))
}

type Prepared = Result<(Action, LeaseNo, CommandKind), Problem>;

/// The leases whose release was refused because they have been released before, as it seems.
fn repeated_releases(prepared: &[Prepared], replies: &[Reply]) -> Vec<LeaseNo> {
    let asked = prepared.iter().filter_map(|prepared| prepared.as_ref().ok());
    let refused = asked.zip(replies).filter_map(|((action, lease, _), reply)| match (action, reply) {
        (Action::Release, Err(Unsealed::Refused(refusal))) if may_be_repeated(refusal.code()) => Some(*lease),
        _ => None,
    });
    refused.collect()
}

fn prepare(
    app: &App,
    state: &State,
    caller: &Caller,
    operation: &Operation,
) -> Result<(Action, LeaseNo, Request), Problem> {
    let mut action = None;
    let mut named = 0;
    let mut name = |present: bool, what: Action| {
        if present {
            named += 1;
            action = Some(what);
        }
    };
    name(operation.request.is_some(), Action::Request);
    name(operation.renew.is_some(), Action::Renew);
    name(operation.release.is_some(), Action::Release);
    name(operation.revoke.is_some(), Action::Revoke);
    name(operation.ready.is_some(), Action::Ready);
    name(operation.activity.is_some(), Action::Report);
    name(operation.confirm_teardown.is_some(), Action::Confirm);
    name(operation.unfence.is_some(), Action::Unfence);
    let action = match action {
        Some(action) if named == 1 => action,
        _ => return Err(codes::BAD_OPERATION.problem("An operation must contain exactly one action.")),
    };
    if !action.alone().roles.contains(&caller.role) {
        return Err(codes::ROLE_FORBIDS.problem(format!("The role {} does not allow this.", caller.role)));
    }
    let key = operation.key.as_deref().map(str::as_bytes);
    if let Some(asked) = &operation.request {
        if operation.lease.is_some() {
            return Err(codes::BAD_OPERATION.problem("A request must not contain `lease`."));
        }
        let (identity, command) = to_known_request(app, state, caller, asked)?;
        return Ok((action, LeaseNo(0), request(identity, command, key)?));
    }
    let text = operation.lease.as_deref();
    let text = text.ok_or_else(|| codes::BAD_OPERATION.problem("The operation must contain `lease`."))?;
    let lease = app.lease_number(text).ok_or_else(|| no_lease(text))?;
    let command = command(state, caller, lease, operation)?;
    Ok((action, lease, request(caller.identity(), command, key)?))
}

fn command(state: &State, caller: &Caller, lease: LeaseNo, operation: &Operation) -> Result<Command, Problem> {
    if let Some(renew) = &operation.renew {
        return renewal(lease, renew);
    }
    if let Some(body) = &operation.release {
        return release(lease, body);
    }
    if let Some(revoke) = &operation.revoke {
        return Ok(revocation(lease, revoke));
    }
    if let Some(report) = &operation.activity {
        return Ok(Command::ReportActivity(smallvec![ReleaseOne { lease, activity: Some(to_activity(report)?) }]));
    }
    if let Some(fences) = &operation.confirm_teardown {
        return confirmation(state, caller, lease, fences);
    }
    Ok(match operation.ready {
        Some(_) => Command::Ready(smallvec![lease]),
        None => Command::Unfence(command::Unfence { leases: smallvec![lease], reason: None }),
    })
}

fn write(
    app: &App,
    state: &State,
    action: Action,
    lease: LeaseNo,
    sealed: &Sealed,
    ended: &Ended,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let before = out.len();
    let open = |out: &mut Vec<u8>, status: &str, word: &str| {
        out.extend_from_slice(b"{\"status\":");
        out.extend_from_slice(status.as_bytes());
        out.extend_from_slice(b",\"");
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\":");
    };
    match action {
        Action::Request => {
            let waits = matches!(sealed.first().body, leasehold_model::Body::AllocationSubmitted(_));
            let (status, word) = if waits { ("202", "waiting") } else { ("201", "granted") };
            open(out, status, word);
            if let Err(problem) = answer::granted(app, state, sealed, ended, out) {
                out.truncate(before);
                return Err(problem);
            }
        }
        Action::Renew => {
            open(out, "200", "renewed");
            answer::renewed(app, sealed, lease, out);
        }
        Action::Release => {
            open(out, "200", "released");
            answer::released(app, sealed, lease, out);
        }
        Action::Revoke => {
            open(out, "200", "revoked");
            answer::revoked(app, sealed, out);
        }
        Action::Ready => {
            open(out, "200", "ready");
            answer::ready(app, sealed, lease, out);
        }
        Action::Report => {
            open(out, "200", "reported");
            answer::plain(app, sealed, lease, out);
        }
        Action::Confirm => {
            open(out, "200", "confirmed");
            answer::plain(app, sealed, lease, out);
        }
        Action::Unfence => {
            open(out, "200", "unfenced");
            answer::plain(app, sealed, lease, out);
        }
    }
    out.push(b'}');
    Ok(())
}

fn write_released_before(first: &Released, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"status\":200,\"released\":");
    serde_json::to_writer(&mut *out, first).expect("an answer is valid JSON");
    out.push(b'}');
}

fn write_problem(problem: &Problem, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"status\":{},\"problem\":", problem.status).as_bytes());
    serde_json::to_writer(&mut *out, problem).expect("a problem is valid JSON");
    out.push(b'}');
}
