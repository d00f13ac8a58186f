//! `leasehold usage-record …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::session::Session;
use crate::cli::usage_record::{UsageRecordCommand, UsageReportArgs, UsageSendArgs, UsageShowArgs};
use crate::numbers::{counted, thousands};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term;
use crate::time_format::to_the_second;
use leasehold_api::{
    NewUsageRecord, NewUsageRecords, RefusedUsageList, UnitQuantityText, UsageAccepted, UsageAnswer, UsageRecord,
    UsageReports, UsageResult, UsageResults,
};
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Records in one request.
const AT_ONCE: usize = 2_000;
/// Refused records that are told one by one.
const TOLD: usize = 20;

pub(super) async fn usage_record(session: &Session, command: UsageRecordCommand) -> Result<(), Failed> {
    match command {
        UsageRecordCommand::Report(args) => report(session, *args).await,
        UsageRecordCommand::Send(args) => send(session, args).await,
        UsageRecordCommand::Show(args) => show(session, args).await,
        UsageRecordCommand::Refused(args) => {
            let call = session.client.list_refused_usage().maybe("month", args.month).maybe("tenant", args.tenant);
            session.show(call, |list| refused(session, list)).await
        }
    }
}

async fn report(session: &Session, args: UsageReportArgs) -> Result<(), Failed> {
    let client = &session.client;
    let instance = client.show_app_instance(&args.app_instance).maybe("tenant", args.tenant.clone()).await;
    // One of the platform is found without its tenant, which is not the one whose usage it is.
    let instance = match instance {
        Err(_) if args.tenant.is_some() => client.show_app_instance(&args.app_instance).await?,
        found => found?,
    };
    let record = NewUsageRecord {
        id: Some(args.id),
        source: None,
        org_id: Some(args.tenant.unwrap_or_else(|| instance.tenant.clone())),
        project_id: Some(args.project.unwrap_or_else(|| instance.project.clone())),
        app_instance_id: Some(instance.id.to_string()),
        app_slug: Some(instance.app.clone()),
        operating_mode: Some(instance.operating_mode),
        control_plane_scope: Some(instance.control_plane_scope),
        runtime_backend: Some(instance.runtime_backend),
        correlation_id: Some(args.correlation),
        usage_source: None,
        usage_unit: Some(args.unit),
        quantity: Some(UnitQuantityText::Text(args.quantity)),
        from: session.times.past("--from", Some(&args.from))?,
        to: session.times.past("--to", Some(&args.to))?,
        requested_by_user_id: args.user,
        control_plane_component: args.control_plane,
        attachment_id: args.attachment,
        allocation_id: args.allocation,
        supersedes: args.supersedes,
    };
    let call = client.record_usage(&UsageReports::One(Box::new(record)));
    let text = |answer: &UsageAnswer| match answer {
        UsageAnswer::One(accepted) => told(accepted),
        UsageAnswer::Several(results) => summary(results),
    };
    session.show(call, text).await
}

fn told(accepted: &UsageAccepted) -> String {
    if accepted.repeated {
        return format!("{} was recorded before, as record {}; nothing was done\n", accepted.id, accepted.sequence);
    }
    let charge = format!("; it is {}", word(accepted.charge));
    let owner = if accepted.no_submitter { ", without a submitter" } else { "" };
    format!("{} was recorded as record {}{charge}{owner}\n", accepted.id, accepted.sequence)
}

fn summary(results: &UsageResults) -> String {
    format!("{} accepted, {} refused\n", thousands(results.accepted), thousands(results.refused))
}

pub(super) fn read_file(path: &Path) -> Result<String, Problem> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Problem::usage("unreadable_file", format!("cannot read the file: {error}")).at(path))?;
    Ok(text)
}

/// The records of a file: a list, an object with `records`, or one record on each line.
fn records(path: &Path, text: &str) -> Result<Vec<Value>, Problem> {
    let bad = |what: String| {
        let advice = "write a list of usage records, or one record on each line";
        Problem::usage("bad_json", what).at(path).advice(advice)
    };
    let whole: Result<Value, _> = serde_json::from_str(text);
    match whole {
        Ok(Value::Array(records)) => return Ok(records),
        Ok(Value::Object(mut object)) => {
            return Ok(match object.remove("records") {
                Some(Value::Array(records)) => records,
                Some(_) => return Err(bad("`records` is not a list".into())),
                None => vec![Value::Object(object)],
            });
        }
        Ok(_) => return Err(bad("the file has no usage records".into())),
        Err(_) => {}
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let one = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| bad(format!("line {} is not JSON: {error}", number + 1)))
    };
    lines.map(one).collect()
}

async fn send(session: &Session, args: UsageSendArgs) -> Result<(), Failed> {
    let records = records(&args.file, &read_file(&args.file)?)?;
    let typed = |(place, record): (usize, Value)| {
        serde_json::from_value::<NewUsageRecord>(record).map_err(|error| {
            let what = format!("record {place} (counted from 0) is not a usage record: {error}");
            Problem::usage("bad_body", what).at(&args.file)
        })
    };
    let records: Vec<NewUsageRecord> = records.into_iter().enumerate().map(typed).collect::<Result<_, _>>()?;
    let count = records.len();
    let at_once = if args.atomic { count.max(1) } else { AT_ONCE };
    let draws = term::drawable().is_some() && count > at_once;
    let mut all = UsageResults { accepted: 0, refused: 0, results: Vec::new() };
    let mut repeated = 0;
    for some in records.chunks(at_once) {
        let reports = NewUsageRecords { records: some.to_vec(), atomic: args.atomic };
        let answer = session.client.record_usage(&UsageReports::Several(reports)).await?;
        let UsageAnswer::Several(results) = answer else { continue };
        all.accepted += results.accepted;
        all.refused += results.refused;
        repeated += results.results.iter().filter(|one| one.accepted.as_ref().is_some_and(|a| a.repeated)).count();
        all.results.extend(results.results);
        if draws {
            let done = all.results.len() as u64;
            let bar = term::fine_bar(done, count as u64, 30);
            let text = format!("{bar:<30}  {} of {}", thousands(done), counted(count as u64, "usage record"));
            term::say(&format!("\r{text}\x1b[K"));
        }
    }
    if draws {
        term::say("\r\x1b[K");
    }
    let text = sent_text(&all, repeated as u64);
    if all.refused == 0 && session.json {
        let value = serde_json::to_value(&all).map_err(|error| Problem::usage("internal", error.to_string()))?;
        print_json(&value)?;
    } else if all.refused == 0 {
        print(&text)?;
    } else {
        if !session.json {
            term::say(&text);
        }
        let what = format!("{} of {} refused", thousands(all.refused), counted(count as u64, "usage record"));
        return Err(Problem::refused("usage_refused", what)
            .advice("correct them and send the file again; the others stay recorded once")
            .answered(&all)
            .into());
    }
    Ok(())
}

fn sent_text(all: &UsageResults, repeated: u64) -> String {
    let refused = |(place, result): (usize, &UsageResult)| {
        let problem = result.problem.as_ref()?;
        Some(format!("record {place}: {} ({})\n", problem.detail, problem.code))
    };
    let mut told: Vec<String> = all.results.iter().enumerate().filter_map(refused).collect();
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    if more > 0 {
        told.push(format!("and {} more\n", thousands(more as u64)));
    }
    let new = all.accepted - repeated;
    let (new, repeated) = (thousands(new), thousands(repeated));
    format!("{}{new} recorded, {repeated} recorded before, {} refused\n", told.concat(), thousands(all.refused))
}

async fn show(session: &Session, args: UsageShowArgs) -> Result<(), Failed> {
    let call = session.client.show_usage_record(args.id).maybe("source", args.source).maybe("tenant", args.tenant);
    session.show(call, |record| one(session, record)).await
}

fn one(session: &Session, record: &UsageRecord) -> String {
    Details::new()
        .add("id", &record.id)
        .add("source", &record.source)
        .add("record", record.sequence)
        .add("recorded at", to_the_second(record.recorded_at))
        .add("tenant", &record.org_id)
        .add("project", &record.project_id)
        .add("user", or_dash(record.requested_by_user_id.as_ref()))
        .add("app instance", &record.app_instance_id)
        .maybe("app", record.app_slug.as_ref())
        .maybe("operating mode", record.operating_mode.map(word))
        .maybe("control plane", record.control_plane_scope.map(word))
        .maybe("backend", record.runtime_backend.map(word))
        .add("quantity", format!("{} {}", record.quantity, record.usage_unit))
        .add("from", to_the_second(record.from))
        .add("to", to_the_second(record.to))
        .maybe("used by", record.control_plane_component.then_some("the control plane"))
        .maybe("attachment", record.attachment_id)
        .maybe("allocation", record.allocation_id.map(word))
        .add("correlation", &record.correlation_id)
        .add("charge", word(record.charge))
        .maybe("submitter", record.no_submitter.then_some("none; it is the owner's"))
        .maybe("supersedes", record.supersedes.as_ref())
        .maybe("superseded by", record.superseded_by)
        .text(session.paint)
}

fn refused(session: &Session, list: &RefusedUsageList) -> String {
    if list.refused.is_empty() {
        return format!("entitlements refused nothing in {}\n", list.month);
    }
    let headings = [
        ("id", Align::Left),
        ("source", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("app instance", Align::Left),
        ("quantity", Align::Right),
        ("unit", Align::Left),
        ("used", Align::Right),
        ("limit", Align::Right),
        ("accepted later", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["source", "app instance"]);
    for one in &list.refused {
        table.row([
            one.id.clone(),
            one.source.clone(),
            one.tenant.clone(),
            one.project.clone(),
            one.app_instance.clone(),
            one.quantity.clone(),
            one.usage_unit.clone(),
            one.used.clone(),
            one.hard.clone(),
            one.accepted_later.map_or_else(|| "no".into(), |sequence| format!("record {sequence}")),
        ]);
    }
    let more = if list.has_more { "and more\n" } else { "" };
    session.lines(&table).join("\n") + "\n" + more
}
