//! `leasehold admin accounting …`.

use super::deliveries::{not_acknowledged, style};
use super::delivery_job::{Ended, follow, goes_on};
use super::details::or_dash;
use super::failure::{Failed, plain};
use super::session::Session;
use crate::cli::deliveries::{AccountingCommand, ReconcileArgs};
use crate::cli::remote::ChangeArgs;
use crate::cli::webhook::WebhookArgs;
use crate::numbers::{counted, thousands};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{self, Style};
use crate::time_format::{distance, now, span, to_the_second};
use leasehold_api::{AccountingStatus, DeliveriesReconciled, DeliveryStatus, ReconcileDeliveries, Webhook, When};
use leasehold_model::Span;
use serde_json::{Value, json};

pub(super) async fn run(session: &Session, command: AccountingCommand) -> Result<(), Failed> {
    match command {
        AccountingCommand::Status => {
            let answer = session.client.accounting_status().json().await?;
            if session.json {
                return Ok(print_json(&answer)?);
            }
            let status = serde_json::from_value(answer.clone()).map_err(|error| invalid(&error))?;
            Ok(print(&text(session, &status, &answer["advice"]))?)
        }
        AccountingCommand::Reconcile(args) => reconcile(session, args).await,
    }
}

fn invalid(error: &serde_json::Error) -> Problem {
    Problem::refused("bad_answer", format!("the daemon's answer is invalid: {error}"))
}

/// The name of a webhook, after its tenant if it has one.
fn name(webhook: &Webhook) -> String {
    match &webhook.tenant {
        Some(tenant) => format!("{tenant}/{}", webhook.name),
        None => webhook.name.clone(),
    }
}

/// Whether the receiver takes events.
fn reachable(one: &DeliveryStatus) -> (String, Style) {
    let word = match one.state.as_str() {
        "disabled" => "disabled",
        "failing" => "no",
        _ if one.last_success.is_some() => "yes",
        _ if one.attempts > 0 => "no",
        _ => "not tried yet",
    };
    (word.to_owned(), if word == "no" { Style::Red } else { style(&one.state) })
}

fn sinks(all: &[DeliveryStatus]) -> Table {
    let headings = [
        ("webhook", Align::Left),
        ("reachable", Align::Left),
        ("behind", Align::Right),
        ("in memory", Align::Right),
        ("on disk", Align::Right),
        ("oldest", Align::Left),
        ("attempts", Align::Right),
        ("dropped", Align::Right),
        ("set aside", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["attempts", "oldest"]);
    let now = now();
    for one in all {
        let plain = |text: String| (text, Style::Plain);
        let warned = |count: u64, is_bad: bool| (thousands(count), if is_bad { Style::Yellow } else { Style::Plain });
        table.styled([
            plain(name(&one.webhook)),
            reachable(one),
            warned(one.lag_events, one.over_threshold),
            warned(one.in_memory, one.memory_high),
            plain(thousands(one.on_disk)),
            plain(or_dash(one.oldest.map(|at| distance(at, now)))),
            plain(thousands(one.attempts)),
            warned(one.dropped, one.dropped_open > 0),
            warned(one.dead_letters, one.dead_letters > 0),
        ]);
    }
    table
}

/// What needs attention, in sentences.
fn notes(one: &DeliveryStatus) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(error) = &one.last_error {
        let next = one.next_attempt_at.map(|at| format!("; next attempt {}", distance(at, now())));
        notes.push(format!("the last attempt failed: {error}{}", next.unwrap_or_default()));
    }
    if let Some(trouble) = &one.trouble {
        notes.push(trouble.clone());
    }
    if one.memory_high {
        notes.push("80 % of the memory for events is used".to_owned());
    }
    if one.over_threshold {
        notes.push("it is behind by more than accounting.disk_buffer_max_events".to_owned());
    }
    if one.dropped_open > 0 {
        let dropped = counted(one.dropped_open, "event");
        notes.push(format!("{dropped} dropped and not sent since; `leasehold admin accounting reconcile` sends them"));
    }
    if one.dead_letters > 0 {
        notes.push("`leasehold webhook dead-letters` says why events were set aside".to_owned());
    }
    notes
}

/// The rule of thumb is: events per minute, times the minutes of an outage that memory is to cover.
fn advice(advice: &Value) -> Vec<String> {
    let number = |name: &str| advice[name].as_u64();
    let (Some(rate), Some(size)) = (number("events_per_minute"), number("buffer_size")) else { return Vec::new() };
    let mut said = Vec::new();
    match number("minutes_in_memory").filter(|_| rate > 0) {
        None => said.push(format!(
            "accounting.buffer_size is {}; less than one event per minute became due, so that it is large enough.",
            thousands(size)
        )),
        Some(minutes) => {
            let covered = span(Span::from_secs(minutes.saturating_mul(60)));
            said.push(format!(
                "accounting.buffer_size is {} and covers an outage of {covered}, at {} per minute.",
                thousands(size),
                counted(rate, "event")
            ));
            if let Some(enough) = number("buffer_size_for_two_hours") {
                said.push(format!(
                    "For an outage of two hours it would have to be {} (events per minute x minutes of outage). Events \
                     that do not fit are read from the journal again; none is lost.",
                    thousands(enough)
                ));
            }
        }
    }
    if let Some(seconds) = number("push_interval_seconds") {
        said.push(format!("accounting.push_interval_seconds: {seconds} would fit this rate."));
    }
    const KNOWN: [&str; 5] =
        ["events_per_minute", "buffer_size", "minutes_in_memory", "buffer_size_for_two_hours", "push_interval_seconds"];
    // What a newer daemon adds is shown as it is.
    let others = advice.as_object().into_iter().flatten().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    said.extend(others.filter(|(_, value)| !value.is_null()).map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    }));
    said
}

fn text(session: &Session, status: &AccountingStatus, about_settings: &Value) -> String {
    let paint = session.paint;
    let enabled = match (status.enabled, &status.trouble) {
        (true, None) => paint.paint(Style::Green, "enabled"),
        (true, Some(why)) => paint.paint(Style::Red, &format!("enabled, but they do not run: {why}")),
        (false, _) => paint.paint(Style::Yellow, "off (accounting.enabled is false); no events are delivered"),
    };
    let mut text = format!("Deliveries of events: {enabled}\n");
    if status.enabled && status.deliveries.is_empty() {
        text.push_str("There are no webhooks; `leasehold webhook create` makes one.\n");
    }
    if !status.deliveries.is_empty() {
        text.push_str(&format!("\n{}\n", session.lines(&sinks(&status.deliveries)).join("\n")));
    }
    let notes: Vec<String> = status
        .deliveries
        .iter()
        .flat_map(|one| notes(one).into_iter().map(|note| format!("  {}: {note}\n", name(&one.webhook))))
        .collect();
    if !notes.is_empty() {
        text.push_str(&format!("\n{}", paint.paint(Style::Yellow, &notes.concat())));
    }
    let advice = advice(about_settings);
    if !advice.is_empty() {
        text.push('\n');
        advice.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
    }
    text
}

/// What came of the reconciliation of one webhook.
struct Reconciled {
    of: WebhookArgs,
    name: String,
    ended: Result<Ended, Problem>,
}

async fn reconcile(session: &Session, args: ReconcileArgs) -> Result<(), Failed> {
    let since = session.times.past("--since", Some(&args.since))?.expect("it was given");
    let until = session.times.past("--until", args.until.as_ref())?.unwrap_or_else(|| When(now()));
    let time = ReconcileDeliveries { since, until, dry_run: args.dry_run };
    if let Some(webhook) = args.webhook.clone() {
        let of = WebhookArgs { webhook, tenant: args.tenant.clone() };
        let ended = ask(session, &of, &of.webhook, &time, &args.change, args.no_wait).await?;
        if session.json {
            let (Ended::Result(value) | Ended::Running(value)) = &ended;
            print_json(value)?;
        }
        let failed = match &ended {
            Ended::Result(value) => read(value)?.failed,
            Ended::Running(_) => 0,
        };
        if !session.json {
            tell(session, &time, &[Reconciled { name: of.webhook.clone(), of: of.clone(), ended: Ok(ended) }])?;
        }
        return not_acknowledged(failed, &of);
    }
    let webhooks = session.client.list_webhooks().maybe("tenant", args.tenant.as_ref());
    let webhooks = webhooks.query("limit", leasehold_api::limits::PAGE_MAX).all().await?;
    let mut all = Vec::new();
    for webhook in &webhooks {
        // By number: names are unique for one owner only.
        let of = WebhookArgs { webhook: webhook.webhook_id.to_string(), tenant: None };
        let key = args.change.key.as_ref().map(|key| format!("{key}-{}", webhook.webhook_id));
        let name = name(webhook);
        let ended = match ask(session, &of, &name, &time, &ChangeArgs { key }, args.no_wait).await {
            Ok(ended) => Ok(ended),
            // The daemon cannot be reached: the others would fail as well.
            Err(Failed::Daemon(error)) if error.problem().is_none() => return Err(Failed::Daemon(error)),
            Err(Failed::Daemon(error)) => Err(plain(&error)),
            Err(Failed::Here(problem)) => Err(problem),
        };
        all.push(Reconciled { of, name, ended });
    }
    if session.json {
        let shown = webhooks.iter().zip(&all).map(|(webhook, one)| as_json(webhook, one)).collect::<Vec<_>>();
        print_json(&json!({ "since": since, "until": until, "dry_run": args.dry_run, "webhooks": shown }))?;
    } else {
        tell(session, &time, &all)?;
    }
    all_reconciled(&all)
}

async fn ask(
    session: &Session,
    of: &WebhookArgs,
    name: &str,
    time: &ReconcileDeliveries,
    change: &ChangeArgs,
    no_wait: bool,
) -> Result<Ended, Failed> {
    let call = session.client.reconcile_deliveries(&of.webhook, time);
    follow(session, of, &format!("reconciling {name}"), (call, change, no_wait)).await
}

fn read(value: &Value) -> Result<DeliveriesReconciled, Problem> {
    serde_json::from_value(value.clone()).map_err(|error| invalid(&error))
}

fn as_json(webhook: &Webhook, one: &Reconciled) -> Value {
    let mut shown = json!({ "webhook_id": webhook.webhook_id, "name": webhook.name, "tenant": webhook.tenant });
    match &one.ended {
        Ok(Ended::Result(value)) => shown["result"] = value.clone(),
        Ok(Ended::Running(job)) => shown["job"] = job.clone(),
        Err(problem) => shown["problem"] = json!({ "code": problem.code(), "detail": problem.to_string() }),
    }
    shown
}

/// An error if something could not be reconciled, or was not acknowledged.
fn all_reconciled(all: &[Reconciled]) -> Result<(), Failed> {
    let mut failed = 0;
    for one in all {
        match &one.ended {
            Ok(Ended::Result(value)) => failed += u64::from(read(value)?.failed > 0),
            Ok(Ended::Running(_)) => {}
            Err(_) => failed += 1,
        }
    }
    if failed == 0 {
        return Ok(());
    }
    let what = format!("{failed} of {} could not be reconciled", counted(all.len() as u64, "webhook"));
    Err(Problem::refused("partly_failed", what).advice("the others were; the reasons are above").into())
}

fn tell(session: &Session, time: &ReconcileDeliveries, all: &[Reconciled]) -> Result<(), Problem> {
    let mut headings = vec![
        ("webhook", Align::Left),
        ("due", Align::Right),
        ("acknowledged", Align::Right),
        ("pending", Align::Right),
        ("set aside", Align::Right),
        ("dropped", Align::Right),
    ];
    match time.dry_run {
        true => headings.push(("would be sent", Align::Right)),
        false => headings.extend([("sent", Align::Right), ("refused", Align::Right), ("record", Align::Right)]),
    }
    let mut table = Table::new(&headings);
    let (mut missing, mut after) = (0, String::new());
    for one in all {
        let result = match &one.ended {
            Ok(Ended::Result(value)) => read(value)?,
            Ok(Ended::Running(job)) => {
                after.push_str(&format!("{}: {}", one.name, goes_on(job, &one.of)?));
                continue;
            }
            Err(problem) => {
                term::say(&format!("leasehold: {}: {problem}\n", one.name));
                continue;
            }
        };
        missing += result.dead + result.dropped;
        let mut cells = vec![one.name.clone()];
        cells.extend([result.due, result.acknowledged, result.pending, result.dead, result.dropped].map(thousands));
        match time.dry_run {
            true => cells.push(thousands(result.dead + result.dropped)),
            false => cells.extend([
                thousands(result.sent),
                thousands(result.failed),
                or_dash(result.sequence.map(|sequence| sequence.to_string())),
            ]),
        }
        table.row(cells);
    }
    if all.is_empty() {
        term::say("leasehold: there are no webhooks\n");
        return Ok(());
    }
    let mut text = String::new();
    if !table.is_empty() {
        let (since, until) = (to_the_second(time.since), to_the_second(time.until));
        text = format!("Events from {since} to {until}\n\n{}\n", session.lines(&table).join("\n"));
        if missing == 0 {
            text.push_str("\nNothing to send: what was due was acknowledged, or waits for its ordinary delivery.\n");
        }
    }
    print(&(text + &after))?;
    if time.dry_run && missing > 0 {
        let events = counted(missing, "event");
        term::say(&format!("leasehold: {events} would be sent; leave out --dry-run to send them\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::advice;
    use serde_json::{Value, json};

    #[test]
    fn advice_follows_the_rate_and_shows_what_a_newer_daemon_adds() {
        let said = advice(&json!({
            "events_per_minute": 100, "buffer_size": 10_000, "minutes_in_memory": 100,
            "buffer_size_for_two_hours": 12_000, "push_interval_seconds": 30, "batch_size": 500, "nothing": null,
        }));
        assert_eq!(said.len(), 4, "{said:?}");
        assert_eq!(
            said[0],
            "accounting.buffer_size is 10,000 and covers an outage of 1h 40m, at 100 events per minute."
        );
        assert!(said[1].starts_with("For an outage of two hours it would have to be 12,000 (events per minute x"));
        assert_eq!(said[2], "accounting.push_interval_seconds: 30 would fit this rate.");
        assert_eq!(said[3], "batch_size: 500");
        let quiet = advice(&json!({
            "events_per_minute": 0, "buffer_size": 10_000, "minutes_in_memory": null, "buffer_size_for_two_hours": 0,
        }));
        assert!(quiet.len() == 1 && quiet[0].contains("large enough"), "{quiet:?}");
        assert!(advice(&Value::Null).is_empty());
    }
}
