//! Usage that the runtimes of apps report (SEMANTICS 9 and 12).

use super::leases::correlation;
use crate::access::Caller;
use crate::app::{App, problem as unsealed_problem};
use crate::books::{glance, look_up};
use crate::context::{Answer, Context, json, rate};
use crate::past::Known as KnownNames;
use crate::problem::refusal_for;
use crate::reply::ask;
use crate::usage_reports::{self, Reports};
use crate::{names, show};
use leasehold_api::{
    AllocationId, NewUsageRecord, Problem, UnitQuantityText, UsageAccepted, UsageRecord, UsageResult, UsageResults,
    When, codes, limits,
};
use leasehold_books::KnownUsage;
use leasehold_cell::{Reply, Unsealed};
use leasehold_engine::command::RecordUsage;
use leasehold_engine::{AppInstance, Command, Refusal, Request, State};
use leasehold_model::body::{Body, ReplacedUsage, UsageKey, UsageRecorded, UsageReport};
use leasehold_model::{
    AllocationNo, AppInstanceNo, AttachmentNo, ControlPlaneScope, CorrelationId, Identity, Name, Record, Role,
    TenantNo, UnitQuantity, UsageSource,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// IDs that are remembered.
const USAGE_IDS_MAX: u64 = 200_000_000;
/// How often the books are asked again because they were behind.
const TRIES: usize = 5;

fn missing(field: &str) -> Problem {
    let detail = format!("The usage record lacks `{field}`; every usage record states it.");
    codes::MISSING_ANCHOR.problem(detail).with("field", field)
}

fn unknown(field: &str, text: &str, why: &str) -> Problem {
    let detail = format!("`{field}` names \"{}\", {why}.", text.escape_debug());
    codes::UNKNOWN_ANCHOR.problem(detail).with("field", field)
}

fn mismatch(field: &str, registered: &str) -> Problem {
    let detail = format!("`{field}` differs from the registry, where it is {registered}.");
    codes::ANCHOR_MISMATCH.problem(detail).with("field", field)
}

fn name(field: &str, text: &str) -> Result<Name, Problem> {
    Name::new(text).map_err(|why| codes::BAD_NAME.problem(format!("`{field}`: {why}.")).with("field", field))
}

/// The token by whose name a record is told from those of others.
struct Source {
    name: Name,
    tenant: Option<TenantNo>,
}

/// The instance that a record is about, if the caller reports for it.
fn instance<'s>(state: &'s State, caller: &Caller, text: &str) -> Option<&'s AppInstance> {
    let may_report = |instance: &&AppInstance| match caller.role {
        Role::AppOperator => caller.app_instances.contains(&instance.number),
        _ => true,
    };
    let by_number = names::digits(text).and_then(|number| state.app_instance(AppInstanceNo(number)));
    let found = by_number.or_else(|| {
        let name = Name::new(text).ok()?;
        match caller.tenant {
            Some(tenant) => state.app_instance_named(tenant, &name),
            // An operator names one of any tenant, if there is only one of that name.
            None => {
                let mut named = state.app_instances_after(None).filter(|one| one.name == name);
                named.next().filter(|_| named.next().is_none())
            }
        }
    });
    found.filter(may_report)
}

/// The command that a report becomes, without what the books know.
fn resolve(state: &State, caller: &Caller, source: &Source, new: &NewUsageRecord) -> Result<RecordUsage, Problem> {
    fn stated<'t>(field: &str, text: Option<&'t String>) -> Result<&'t str, Problem> {
        text.map(String::as_str).filter(|text| !text.is_empty()).ok_or_else(|| missing(field))
    }
    let id = name("id", stated("id", new.id.as_ref())?)?;
    if let Some(given) = new.source.as_ref().filter(|given| given.as_str() != source.name.as_str()) {
        let own = format!("but this token reports as \"{}\"", source.name);
        return Err(unknown("source", given, &own));
    }
    let org = stated("org_id", new.org_id.as_ref())?;
    let in_project = stated("project_id", new.project_id.as_ref())?;
    let app = stated("app_instance_id", new.app_instance_id.as_ref())?;
    let slug = stated("app_slug", new.app_slug.as_ref())?;
    let mode = new.operating_mode.ok_or_else(|| missing("operating_mode"))?;
    let scope = new.control_plane_scope.ok_or_else(|| missing("control_plane_scope"))?;
    let backend = new.runtime_backend.ok_or_else(|| missing("runtime_backend"))?;
    let correlation = correlation(Some(stated("correlation_id", new.correlation_id.as_ref())?))?;
    if new.usage_source == Some(UsageSource::Allocation) {
        return Err(unknown("usage_source", "allocation", "which is not reported: leases are in the journal already"));
    }
    let unit_name = stated("usage_unit", new.usage_unit.as_ref())?;
    let quantity = quantity(new.quantity.as_ref().ok_or_else(|| missing("quantity"))?)?;
    let from = new.from.ok_or_else(|| missing("from"))?.0;
    let to = new.to.ok_or_else(|| missing("to"))?.0;

    let not_own = "which does not exist, or is not one that this token reports for";
    let instance = instance(state, caller, app).ok_or_else(|| unknown("app_instance_id", app, not_own))?;
    let of_platform = instance.scope == ControlPlaneScope::Platform;
    let tenant = names::digits(org).map(TenantNo).or_else(|| state.tenant_named(org));
    let tenant = tenant.filter(|tenant| state.tenant(*tenant).is_some() && (of_platform || *tenant == instance.tenant));
    let tenant = tenant.ok_or_else(|| unknown("org_id", org, "which is not the tenant of the app instance"))?;
    let of_tenant = |project: &leasehold_model::ProjectNo| state.project(*project).is_some_and(|p| p.tenant == tenant);
    let project = names::digits(in_project).map(leasehold_model::ProjectNo);
    let project = project.or_else(|| state.project_named(tenant, in_project)).filter(of_tenant);
    let project = project.ok_or_else(|| unknown("project_id", in_project, "which is no project of this tenant"))?;
    let user = new.requested_by_user_id.as_deref().map(|text| {
        let number = names::digits(text).map(leasehold_model::UserNo).or_else(|| state.user_named(tenant, text));
        let number = number.filter(|user| state.user(*user).is_some_and(|user| user.tenant == tenant));
        number.ok_or_else(|| unknown("requested_by_user_id", text, "which is no user of this tenant"))
    });
    let registered = state.app_type(instance.app_type).map_or("", |app| app.slug.as_str());
    if slug != registered {
        return Err(mismatch("app_slug", registered));
    }
    if mode != instance.mode {
        return Err(mismatch("operating_mode", instance.mode.word()));
    }
    if scope != instance.scope {
        return Err(mismatch("control_plane_scope", instance.scope.word()));
    }
    if backend != instance.backend {
        return Err(mismatch("runtime_backend", instance.backend.word()));
    }
    let unit = state.unit_named(unit_name).map(|unit| unit.number);
    let report = UsageReport {
        reporter: source.tenant,
        source: source.name.clone(),
        id,
        app_instance: instance.number,
        unit: unit.ok_or_else(|| unknown("usage_unit", unit_name, "which does not exist"))?,
        quantity,
        from,
        to,
        correlation: correlation.ok_or_else(|| missing("correlation_id"))?,
        control_plane: new.control_plane_component,
        attachment: new.attachment_id.map(AttachmentNo),
        allocation: new.allocation_id.map(|allocation| AllocationNo(allocation.0)),
        supersedes: new.supersedes.as_deref().map(|text| name("supersedes", text)).transpose()?,
    };
    Ok(RecordUsage { tenant, project, user: user.transpose()?, report, replaces: None, known_to: 0 })
}

fn quantity(given: &UnitQuantityText) -> Result<UnitQuantity, Problem> {
    let text = match given {
        UnitQuantityText::Text(text) => text.clone(),
        UnitQuantityText::Integer(number) => number.to_string(),
    };
    let bad = |why| codes::BAD_QUANTITY.problem(format!("`quantity` {why}.")).with("field", "quantity");
    text.parse().map_err(bad)
}

fn refused(app: &App, caller: &Caller, refusal: &Refusal) -> Problem {
    app.now.read(|state| refusal_for(state, caller, refusal))
}

/// What the books know of some IDs.
struct FromBooks {
    known: BTreeMap<UsageKey, KnownUsage>,
    known_to: u64,
}

/// Asks the books for IDs, and for those that are superseded.
async fn ask_books(app: &Arc<App>, caller: &Caller, keys: Vec<UsageKey>, at_least: u64) -> Result<FromBooks, Problem> {
    let books = Arc::clone(&app.books);
    let caught_up = tokio::task::spawn_blocking(move || books.wait_for(at_least, std::time::Duration::from_secs(10)));
    if !caught_up.await.unwrap_or(false) {
        let detail = "The books have to catch up before usage is accepted; try again in a few seconds.";
        return Err(codes::BOOKS_BEHIND.problem(detail).with("retry_after", 5));
    }
    // As they are: the engine knows the last records.
    let answer = glance(app, caller, move |books| {
        let mut known = BTreeMap::new();
        for key in keys {
            known.extend(books.known_usage(key)?.map(|found| (key, found)));
        }
        let full = books.usage_ids() >= USAGE_IDS_MAX;
        Ok((FromBooks { known, known_to: books.size() }, full))
    });
    let (answer, full) = answer.await?;
    if full {
        let detail = format!("{USAGE_IDS_MAX} IDs of usage records are remembered; no other is accepted for now.");
        return Err(codes::TOO_MANY_USAGE_IDS.problem(detail).with("limit", USAGE_IDS_MAX.to_string()));
    }
    Ok(answer)
}

fn read_usage(app: &App, sequence: u64) -> Result<(Record, UsageRecorded), Problem> {
    let record = crate::explain::decision::read(app, sequence)?;
    let Body::UsageRecorded(recorded) = &record.body else {
        return Err(codes::INTERNAL.problem("The books name a record that is no usage record."));
    };
    let recorded = recorded.clone();
    Ok((record, recorded))
}

/// The record that a report supersedes, as the engine wants to know it.
fn replaced(app: &App, command: &RecordUsage, known: &KnownUsage) -> Result<ReplacedUsage, Problem> {
    let report = &command.report;
    let tell = |refusal: Refusal| crate::problem::refused(&refusal);
    if let Some(by) = known.superseded_by {
        return Err(tell(Refusal::UsageSuperseded { by }));
    }
    let (record, old) = read_usage(app, known.sequence)?;
    if (old.report.unit, old.report.app_instance) != (report.unit, report.app_instance) {
        return Err(codes::ANCHOR_MISMATCH
            .problem("The usage record in `supersedes` is about another unit or app instance.")
            .with("field", "supersedes"));
    }
    if record.identity.tenant != Some(command.tenant) {
        return Err(tell(Refusal::SupersedesOtherTenant));
    }
    let project = record.identity.project.ok_or_else(|| codes::INTERNAL.problem("Usage without a project."))?;
    Ok(ReplacedUsage {
        sequence: known.sequence,
        project,
        quantity: old.report.quantity,
        from: old.report.from,
        to: old.report.to,
        control_plane: old.report.control_plane,
        attachment: old.report.attachment,
        charge: old.charge,
    })
}

/// What became of a report so far.
enum Step {
    Decided(Result<UsageAccepted, Problem>),
    Waits(Box<RecordUsage>),
}

/// Adds what the books know to a command, or decides it by that.
fn with_books(app: &App, books: &FromBooks, mut command: Box<RecordUsage>) -> Step {
    let report = &command.report;
    if let Some(found) = books.known.get(&report.key()) {
        let identity = Identity {
            tenant: Some(command.tenant),
            project: Some(command.project),
            user: command.user,
            ..Identity::default()
        };
        if found.payload == report.payload(&identity) {
            return Step::Decided(again(app, &report.id, found.sequence));
        }
        return Step::Decided(Err(crate::problem::refused(&Refusal::UsageIdTaken { sequence: found.sequence })));
    }
    let superseded = report.superseded_key().and_then(|key| books.known.get(&key));
    match superseded.map(|known| replaced(app, &command, known)).transpose() {
        Ok(replaces) => {
            (command.replaces, command.known_to) = (replaces, books.known_to);
            Step::Waits(command)
        }
        Err(problem) => Step::Decided(Err(problem)),
    }
}

fn again(app: &App, id: &Name, sequence: u64) -> Result<UsageAccepted, Problem> {
    let (_, recorded) = read_usage(app, sequence)?;
    Ok(accepted(id, sequence, &recorded, true))
}

fn accepted(id: &Name, sequence: u64, recorded: &UsageRecorded, repeated: bool) -> UsageAccepted {
    UsageAccepted {
        sequence,
        id: id.to_string(),
        repeated,
        charge: Some(recorded.charge),
        no_submitter: recorded.no_submitter,
    }
}

fn keys_of(command: &RecordUsage) -> impl Iterator<Item = UsageKey> {
    std::iter::once(command.report.key()).chain(command.report.superseded_key())
}

fn identity(caller: &Caller) -> Identity {
    Identity { tenant: caller.tenant, token: Some(caller.token), ..Identity::default() }
}

fn answer_of(app: &App, caller: &Caller, id: &Name, reply: Reply) -> Result<UsageAccepted, Problem> {
    let sealed = reply.map_err(|unsealed| unsealed_problem(&unsealed, |refusal| refused(app, caller, refusal)))?;
    if sealed.repeated {
        return again(app, id, sealed.sequence());
    }
    let record = sealed.first();
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
        let keys: Vec<UsageKey> = waiting.flat_map(keys_of).collect();
        if keys.is_empty() {
            break;
        }
        let books = ask_books(app, caller, keys, at_least).await?;
        for step in &mut steps {
            let decided = Step::Decided(Err(codes::INTERNAL.problem("It was not decided.")));
            *step = match std::mem::replace(step, decided) {
                Step::Waits(command) => with_books(app, &books, command),
                decided @ Step::Decided(_) => decided,
            };
        }
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

/// Sends what waits to the engine. Returns how many records the books need for what has to be tried again.
async fn submit(app: &App, caller: &Caller, steps: &mut [Step]) -> Result<u64, Problem> {
    let mut requests = Vec::with_capacity(steps.len());
    for step in steps.iter() {
        if let Step::Waits(command) = step {
            requests.push(Request::new(identity(caller), Command::RecordUsage((**command).clone())));
        }
    }
    let share = app.wait_with(caller, requests.len())?;
    let mut replies = ask(&app.cell, requests).await.into_iter();
    drop(share);
    let mut at_least = 0;
    for step in steps {
        let Step::Waits(command) = &*step else { continue };
        let reply = replies.next().expect("one reply per request");
        app.metrics.replied(leasehold_engine::CommandKind::RecordUsage, &reply);
        if let Err(Unsealed::Refused(Refusal::UsageIdsBehind { known_to })) = reply {
            at_least = at_least.max(known_to);
            continue;
        }
        *step = Step::Decided(answer_of(app, caller, &command.report.id, reply));
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
        let books = ask_books(app, caller, all.iter().flat_map(keys_of).collect(), at_least).await?;
        let mut results: Vec<Option<UsageAccepted>> = Vec::with_capacity(all.len());
        let mut waiting = Vec::with_capacity(all.len());
        for (place, command) in all.iter().enumerate() {
            match with_books(app, &books, Box::new(command.clone())) {
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
                at_least = known_to;
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
    let commands: Vec<Result<RecordUsage, Problem>> = app.now.read(|state| {
        let Some(token) = state.token(caller.token) else {
            return Err(codes::UNAUTHENTICATED.problem("The token was revoked."));
        };
        let source = Source { name: token.name.clone(), tenant: caller.tenant };
        let one = |report: Result<NewUsageRecord, Problem>| resolve(state, caller, &source, &report?);
        Ok(reports.into_iter().map(one).collect())
    })?;
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

pub(super) async fn show_usage_record(context: Context) -> Answer {
    let caller = context.caller();
    let not_found = || {
        let detail = "There is no usage record with this ID of this source, or it is too old to be found by its ID.";
        codes::NOT_FOUND.problem(detail)
    };
    let key = context.app.now.read(|state| {
        let own = state.token(caller.token).map(|token| token.name.clone());
        let source = match context.query("source") {
            Some(text) => name("source", text)?,
            None => own.ok_or_else(not_found)?,
        };
        let reporter = match context.query("tenant") {
            Some("-") => None,
            Some(text) => Some(names::tenant(state, caller, text)?),
            None => caller.tenant,
        };
        Ok::<_, Problem>(UsageReport::key_for(reporter, &source, &name("id", context.subject())?))
    })?;
    let found = look_up(&context.app, caller, move |_, books| books.known_usage(key)).await?;
    let known = found.ok_or_else(not_found)?;
    let app = Arc::clone(&context.app);
    let read = tokio::task::spawn_blocking(move || read_usage(&app, known.sequence)).await;
    let (record, recorded) = read.map_err(|_| codes::INTERNAL.problem("The record could not be read."))??;
    let seen = record.identity.tenant.is_some_and(|tenant| caller.sees_tenant(tenant))
        || recorded
            .report
            .reporter
            .is_some_and(|tenant| caller.sees_app_instance(tenant, recorded.report.app_instance));
    if !seen {
        return Err(not_found());
    }
    let shown = context.app.books.with_books(|books| {
        Ok(context.app.now.read(|state| shown(&KnownNames { state, books }, &record, &recorded, &known)))
    });
    json(200, &shown.map_err(|error| crate::books::problem(&error))?)
}

fn shown(known: &KnownNames<'_>, record: &Record, recorded: &UsageRecorded, of: &KnownUsage) -> UsageRecord {
    let report = &recorded.report;
    let instance = known.state.app_instance(report.app_instance);
    let identity = &record.identity;
    UsageRecord {
        sequence: record.sequence,
        recorded_at: When(record.stamp),
        id: report.id.to_string(),
        source: report.source.to_string(),
        org_id: identity.tenant.map(|tenant| known.tenant(tenant)).unwrap_or_default(),
        project_id: identity.project.map(|project| known.project(project)).unwrap_or_default(),
        app_instance_id: known.app_instance(report.app_instance),
        app_slug: instance.and_then(|one| Some(known.state.app_type(one.app_type)?.slug.to_string())),
        operating_mode: instance.map(|instance| instance.mode),
        control_plane_scope: instance.map(|instance| instance.scope),
        runtime_backend: instance.map(|instance| instance.backend),
        correlation_id: CorrelationId(report.correlation).to_string(),
        usage_source: UsageSource::AppRuntime,
        usage_unit: known.state.unit(report.unit).map_or_else(|| report.unit.to_string(), |unit| unit.name.to_owned()),
        quantity: report.quantity.to_string(),
        from: When(report.from),
        to: When(report.to),
        requested_by_user_id: identity.user.map(|user| known.user(user)),
        control_plane_component: report.control_plane,
        attachment_id: report.attachment.map(|attachment| attachment.0),
        allocation_id: report.allocation.map(AllocationId::from),
        supersedes: show::text(report.supersedes.as_ref()),
        superseded_by: of.superseded_by,
        charge: recorded.charge,
        no_submitter: recorded.no_submitter,
    }
}
