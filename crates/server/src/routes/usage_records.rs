//! Usage that the runtimes of apps report (SEMANTICS 9 and 12).

mod known;
mod one;
mod resolve;

pub(super) use one::show_usage_record;
pub(super) use resolve::quantity;

use crate::access::Caller;
use crate::app::{App, problem as unsealed_problem};
use crate::context::{Answer, Context, json, rate};
use crate::problem::refusal_for;
use crate::reply::ask;
use crate::usage_reports::{self, Reports};
use known::{Step, UsageRecords, accepted, again, ask_books, read_all, with_books};
use leasehold_api::{NewUsageRecord, Problem, UsageAccepted, UsageResult, UsageResults, codes, limits};
use leasehold_cell::{Reply, Sealed, Unsealed};
use leasehold_engine::command::RecordUsage;
use leasehold_engine::{Command, Refusal, Request, State};
use leasehold_model::body::{Body, UsageRefused};
use leasehold_model::{Identity, Name, Record};
use resolve::{Source, resolve};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports that are compared with the registry while the view is held.
const AT_ONCE: usize = 256;
/// How often the books are asked again because they were behind.
const TRIES: usize = 5;

fn refused(app: &App, caller: &Caller, refusal: &Refusal) -> Problem {
    app.now.read(|state| refusal_for(state, caller, refusal))
}

/// Usage that an entitlement refused.
pub(super) fn read_refused(app: &App, sequence: u64) -> Result<(Record, UsageRefused), Problem> {
    let record = crate::explain::decision::read(app, sequence)?;
    let Body::UsageRefused(refused) = &record.body else {
        return Err(codes::INTERNAL.problem("The books name a record that is no refused usage."));
    };
    let refused = refused.clone();
    Ok((record, refused))
}

fn identity(caller: &Caller) -> Identity {
    Identity { tenant: caller.tenant, token: Some(caller.token), ..Identity::default() }
}

fn answer_of(
    app: &App,
    caller: &Caller,
    before: &UsageRecords,
    id: &Name,
    reply: Reply,
) -> Result<UsageAccepted, Problem> {
    let sealed = reply.map_err(|unsealed| unsealed_problem(&unsealed, |refusal| refused(app, caller, refusal)))?;
    if sealed.repeated {
        return again(before, id, sealed.sequence());
    }
    let record = sealed.first();
    if let Body::UsageRefused(UsageRefused { of, month, used, hard, .. }) = &record.body {
        let refusal = Refusal::EntitlementExceeded { of: *of, month: *month, used: *used, hard: *hard };
        return Err(refused(app, caller, &refusal));
    }
    let Body::UsageRecorded(recorded) = &record.body else { unreachable!("usage was recorded") };
    Ok(accepted(id, record.sequence, recorded, false))
}

/// Records each report by itself. One that the books have to know first is tried again.
async fn record_each(
    app: &Arc<App>,
    caller: &Caller,
    commands: Vec<Result<RecordUsage, Problem>>,
) -> Result<Vec<Result<UsageAccepted, Problem>>, Problem> {
    let mut steps: Vec<Step> = Vec::with_capacity(commands.len());
    for command in commands {
        steps.push(match command {
            Ok(command) => Step::Waits(Box::new(command)),
            Err(problem) => Step::Decided(Err(problem)),
        });
    }
    let mut at_least = 0;
    for _ in 0..TRIES {
        let waiting = steps.iter().filter_map(|step| match step {
            Step::Waits(command) => Some(&**command),
            Step::Decided(_) => None,
        });
        let waiting: Vec<&RecordUsage> = waiting.collect();
        if waiting.is_empty() {
            break;
        }
        let books = ask_books(app, caller, waiting, at_least).await?;
        for step in &mut steps {
            let decided = Step::Decided(Err(codes::INTERNAL.problem("It was not decided.")));
            *step = match std::mem::replace(step, decided) {
                Step::Waits(command) => with_books(&books, command),
                decided @ Step::Decided(_) => decided,
            };
        }
        books.has_room_for(&steps)?;
        at_least = submit(app, caller, &mut steps).await?;
    }
    let done = |step: Step| match step {
        Step::Decided(answer) => answer,
        Step::Waits(_) => {
            let detail = "The books do not keep up with what is reported; try again in a few seconds.";
            Err(codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5))
        }
    };
    Ok(steps.into_iter().map(done).collect())
}

/// How far the books should have come before IDs are looked up again. What the engine remembers begins later and later
/// while others report, so that books which have just reached its beginning are behind again when it is asked.
fn well_after(app: &App, known_to: u64) -> u64 {
    known_to.midpoint(app.now.read(State::size).max(known_to))
}

/// Sends what waits to the engine. Returns how many records the books need for what has to be tried again.
async fn submit(app: &Arc<App>, caller: &Caller, steps: &mut [Step]) -> Result<u64, Problem> {
    let mut requests = Vec::with_capacity(steps.len());
    for step in steps.iter() {
        if let Step::Waits(command) = step {
            requests.push(Request::new(identity(caller), Command::RecordUsage((**command).clone())));
        }
    }
    let share = app.wait_with(caller, requests.len())?;
    let replies = ask(&app.cell, requests).await;
    drop(share);
    let repeated = replies.iter().filter_map(|reply| reply.as_ref().ok().filter(|sealed| sealed.repeated));
    let before = read_all(app, repeated.map(Sealed::sequence).collect()).await?;
    let mut replies = replies.into_iter();
    let mut at_least = 0;
    for step in steps {
        let Step::Waits(command) = &*step else { continue };
        let reply = replies.next().expect("one reply per request");
        app.metrics.replied(leasehold_engine::CommandKind::RecordUsage, &reply);
        if let Err(Unsealed::Refused(Refusal::UsageIdsBehind { known_to })) = reply {
            at_least = at_least.max(well_after(app, known_to));
            continue;
        }
        *step = Step::Decided(answer_of(app, caller, &before, &command.report.id, reply));
    }
    Ok(at_least)
}

/// Records all reports or none.
async fn record_together(
    app: &Arc<App>,
    caller: &Caller,
    commands: Vec<Result<RecordUsage, Problem>>,
) -> Result<Vec<Result<UsageAccepted, Problem>>, Problem> {
    let mut all = Vec::with_capacity(commands.len());
    for (place, command) in commands.into_iter().enumerate() {
        all.push(command.map_err(|problem| refused_together(place, &problem))?);
    }
    let mut at_least = 0;
    for _ in 0..TRIES {
        let books = ask_books(app, caller, &all, at_least).await?;
        let mut results: Vec<Option<UsageAccepted>> = Vec::with_capacity(all.len());
        let mut waiting = Vec::with_capacity(all.len());
        let steps: Vec<Step> = all.iter().map(|command| with_books(&books, Box::new(command.clone()))).collect();
        books.has_room_for(&steps)?;
        for (place, step) in steps.into_iter().enumerate() {
            match step {
                Step::Decided(Ok(before)) => results.push(Some(before)),
                Step::Decided(Err(problem)) => return Err(refused_together(place, &problem)),
                Step::Waits(command) => {
                    waiting.push(*command);
                    results.push(None);
                }
            }
        }
        if waiting.is_empty() {
            return Ok(results.into_iter().flatten().map(Ok).collect());
        }
        let request = Request::new(identity(caller), Command::RecordUsageTogether(waiting));
        let share = app.wait_with(caller, results.len())?;
        let reply = ask(&app.cell, vec![request]).await.pop().expect("one request, one reply");
        drop(share);
        app.metrics.replied(leasehold_engine::CommandKind::RecordUsageTogether, &reply);
        let sealed = match reply {
            Err(Unsealed::Refused(Refusal::UsageIdsBehind { known_to })) => {
                at_least = well_after(app, known_to);
                continue;
            }
            // Others recorded them at the same time; the books will know them.
            Err(Unsealed::Refused(Refusal::UsageKnown)) => {
                at_least = app.now.read(State::size);
                continue;
            }
            Err(unsealed) => return Err(unsealed_problem(&unsealed, |refusal| refused(app, caller, refusal))),
            Ok(sealed) => sealed,
        };
        // Those that were recorded before in the meantime have no record; they are looked up once more.
        let mut records: BTreeMap<Name, UsageAccepted> = BTreeMap::new();
        for record in &sealed.records {
            let Body::UsageRecorded(recorded) = &record.body else { continue };
            let id = &recorded.report.id;
            records.insert(id.clone(), accepted(id, record.sequence, recorded, false));
        }
        let take = |(result, command): (Option<UsageAccepted>, &RecordUsage)| {
            result.or_else(|| records.get(&command.report.id).cloned())
        };
        let answers: Vec<Option<UsageAccepted>> = results.into_iter().zip(&all).map(take).collect();
        if answers.iter().all(Option::is_some) {
            return Ok(answers.into_iter().flatten().map(Ok).collect());
        }
        at_least = app.now.read(State::size);
    }
    let detail = "The books do not keep up with what is reported; try again in a few seconds.";
    Err(codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5))
}

fn refused_together(place: usize, problem: &Problem) -> Problem {
    let detail = format!(
        "Record {place} of these usage records, counted from 0, was refused, so none was recorded: {}",
        problem.detail
    );
    // As the engine refuses it, which finds what only it can know.
    let mut all =
        Problem::new(422, "usage_batch_refused", detail).with("place", place).with("cause", problem.code.clone());
    if let Some(field) = problem.members.get("field") {
        all = all.with("field", field.clone());
    }
    all
}

pub(super) async fn record_usage(context: Context) -> Answer {
    let (app, caller) = (&context.app, context.caller());
    let (reports, is_one, atomic) = match usage_reports::read(&context.headers, context.bytes())? {
        Reports::One(record) => (vec![Ok(*record)], true, false),
        Reports::Several { records, atomic } => (records, false, atomic),
    };
    let most = if atomic { leasehold_model::limits::USAGE_RECORDS_TOGETHER_MAX } else { limits::USAGE_RECORDS_MAX };
    if reports.len() > most {
        let detail = format!("There are {} usage records; the limit is {most}.", reports.len());
        let problem = codes::TOO_MANY_OPERATIONS.problem(detail);
        return Err(problem.with("limit", most.to_string()).with("unit", "usage record"));
    }
    rate(app, caller, u32::try_from(reports.len().max(1)).unwrap_or(u32::MAX))?;
    let token = app.now.read(|state| state.token(caller.token).map(|token| token.name.clone()));
    let name = token.ok_or_else(|| codes::UNAUTHENTICATED.problem("The token was revoked."))?;
    let source = Source { name, tenant: caller.tenant };
    let mut commands: Vec<Result<RecordUsage, Problem>> = Vec::with_capacity(reports.len());
    for some in reports.chunks(AT_ONCE) {
        let one = |state: &State, report: &Result<NewUsageRecord, Problem>| match report {
            Ok(report) => resolve(state, caller, &source, report),
            Err(problem) => Err(problem.clone()),
        };
        app.now.read(|state| commands.extend(some.iter().map(|report| one(state, report))));
    }
    let mut answers = match atomic && !commands.is_empty() {
        true => record_together(app, caller, commands).await?,
        false => record_each(app, caller, commands).await?,
    };
    let status = |accepted: &UsageAccepted| if accepted.repeated { 200 } else { 201 };
    if is_one {
        let accepted = answers.pop().expect("one report, one answer")?;
        return json(status(&accepted), &accepted);
    }
    let result = |answer: Result<UsageAccepted, Problem>| match answer {
        Ok(accepted) => UsageResult { status: status(&accepted), accepted: Some(accepted), problem: None },
        Err(problem) => UsageResult { status: problem.status, accepted: None, problem: Some(problem) },
    };
    let results: Vec<UsageResult> = answers.into_iter().map(result).collect();
    let refused = results.iter().filter(|result| result.problem.is_some()).count() as u64;
    json(200, &UsageResults { accepted: results.len() as u64 - refused, refused, results })
}
