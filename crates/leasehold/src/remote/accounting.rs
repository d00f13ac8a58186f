//! `leasehold admin accounting …`.

use super::deliveries::{not_acknowledged, style, unreadable};
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
use leasehold_api::{
    AccountingStatus, DeliveriesReconciled, DeliveryAdvice, DeliveryStatus, ProviderStatus, ReconcileDeliveries,
    Webhook, When,
};
use leasehold_model::Span;
use serde_json::{Value, json};

pub(super) async fn run(session: &Session, command: AccountingCommand) -> Result<(), Failed> {
    match command {
        AccountingCommand::Status => {
            let call = session.client.accounting_status();
            if session.json {
                return Ok(print_json(&call.json().await?)?);
            }
            Ok(print(&text(session, &call.await?))?)
        }
        AccountingCommand::Reconcile(args) => reconcile(session, args).await,
    }
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
    let word = match one.reachable {
        Some(true) => "yes",
        Some(false) => "no",
        None if one.state == "disabled" => "disabled",
        None => "not tried yet",
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
fn advice(advice: &DeliveryAdvice) -> Vec<String> {
    let (rate, size) = (advice.busiest_webhook_events_per_minute, thousands(u64::from(advice.buffer_size)));
    let mut said = Vec::new();
    match advice.minutes_in_memory {
        None => said.push(format!(
            "accounting.buffer_size is {size}; nothing became due during the last {}, so it is large enough.",
            span(advice.measured_over.0)
        )),
        Some(minutes) => {
            let covered = span(Span::from_secs(minutes.saturating_mul(60)));
            said.push(format!(
                "accounting.buffer_size is {size} and covers an outage of {covered}, at {} per minute for the busiest \
                 webhook.",
                counted(rate, "event")
            ));
            said.push(format!(
                "For an outage of two hours it would have to be {} (events per minute x minutes of outage, at most \
                 1,000,000). Events that do not fit are read from the journal again; none is lost.",
                thousands(advice.buffer_size_for_two_hours)
            ));
        }
    }
    if let (Some(every), Some(events)) = (advice.push_interval_seconds, advice.events_per_push) {
        let most = advice.push_interval_seconds_max.map_or_else(String::new, |most| {
            format!(" Up to {most} seconds, the events of one push fit into 80 % of the memory.")
        });
        said.push(format!(
            "accounting.waldur.push_interval_seconds is {every}: {} in one push.{most}",
            counted(events, "event")
        ));
    }
    said
}

/// The accounting system beside the webhooks.
fn provider(provider: &ProviderStatus) -> Vec<String> {
    let token = match (&provider.token_trouble, provider.token_read_at) {
        (Some(why), _) => format!("its token cannot be read: {why}"),
        (None, Some(at)) => format!("its token was read {}", distance(at, now())),
        (None, None) => "its token was not read yet".to_owned(),
    };
    let mut said = vec![format!("Accounting system {}: {token} ({}).", provider.provider, provider.token_secret_ref)];
    if !provider.sends_usage {
        said.push("This version does not send usage to it yet.".to_owned());
    }
    said
}

fn text(session: &Session, status: &AccountingStatus) -> String {
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
    let mut said: Vec<String> = status.provider.iter().flat_map(provider).collect();
    said.extend(status.advice.iter().flat_map(advice));
    if !said.is_empty() {
        text.push('\n');
        said.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
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
    serde_json::from_value(value.clone())
        .map_err(|error| Problem::refused("bad_answer", format!("the daemon's answer is invalid: {error}")))
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

/// What a dry run found missing, event by event.
fn differences(session: &Session, name: &str, result: &DeliveriesReconciled) -> String {
    if result.differences.is_empty() {
        return String::new();
    }
    let headings = [
        ("event", Align::Left),
        ("type", Align::Left),
        ("about", Align::Left),
        ("happened", Align::Left),
        ("record", Align::Right),
        ("missing because", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["event", "missing because"]);
    for one in &result.differences {
        let why = match &one.reason {
            Some(reason) => format!("set aside: {reason}"),
            None => "dropped".to_owned(),
        };
        let (time, record) = (to_the_second(one.time), thousands(one.sequence));
        table.row([one.event_id.clone(), one.event_type.clone(), one.subject.clone(), time, record, why]);
    }
    let left = (result.dead + result.dropped).saturating_sub(result.differences.len() as u64);
    let more = if left > 0 { format!("and {} more\n", thousands(left)) } else { String::new() };
    format!("\nMissing at {name}:\n\n{}\n{more}", session.lines(&table).join("\n"))
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
        unreadable(&one.name, &result.unreadable);
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
    for one in all {
        if let Ok(Ended::Result(value)) = &one.ended {
            let result = read(value)?;
            text.push_str(&differences(session, &one.name, &result));
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
    use leasehold_api::{DeliveryAdvice, Ttl};
    use leasehold_model::Span;

    fn of(events_per_minute: u64) -> DeliveryAdvice {
        DeliveryAdvice {
            events_per_minute,
            busiest_webhook_events_per_minute: events_per_minute,
            accounting_events_per_minute: events_per_minute,
            measured_over: Ttl(Span::from_secs(3_600)),
            buffer_size: 10_000,
            minutes_in_memory: 10_000_u64.checked_div(events_per_minute),
            buffer_size_for_two_hours: events_per_minute * 120,
            push_interval_seconds: None,
            events_per_push: None,
            push_interval_seconds_max: None,
        }
    }

    #[test]
    fn advice_follows_the_rate() {
        let said = advice(&of(100));
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(
            said[0],
            "accounting.buffer_size is 10,000 and covers an outage of 1h 40m, at 100 events per minute for the busiest webhook."
        );
        assert!(said[1].starts_with("For an outage of two hours it would have to be 12,000 (events per minute x"));
        let quiet = advice(&of(0));
        assert!(quiet.len() == 1 && quiet[0].contains("large enough"), "{quiet:?}");
        let pushed = DeliveryAdvice {
            push_interval_seconds: Some(60),
            events_per_push: Some(100),
            push_interval_seconds_max: Some(4_800),
            ..of(100)
        };
        assert_eq!(
            advice(&pushed)[2],
            "accounting.waldur.push_interval_seconds is 60: 100 events in one push. Up to 4800 seconds, the events of \
             one push fit into 80 % of the memory."
        );
    }
}
