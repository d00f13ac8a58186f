//! `leasehold deliveries …`.

use super::delivery_job::{Ended, follow, goes_on, shown};
use super::details::or_dash;
use super::failure::Failed;
use super::session::Session;
use super::webhook::own;
use crate::cli::deliveries::{DeliveriesCommand, ReplayArgs, RetryArgs};
use crate::cli::webhook::WebhookArgs;
use crate::numbers::{counted, thousands};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{self, Style};
use crate::time_format::{distance, now};
use leasehold_api::{
    DeliveriesSent, DeliveryJobState, DeliveryStatus, ReplayDeliveries, RetryDeliveries, UnreadableRecords,
};

pub(super) async fn run(session: &Session, command: DeliveriesCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        DeliveriesCommand::List => {
            let call = client.accounting_status();
            if session.json {
                return Ok(print_json(&call.json().await?)?);
            }
            session.print_table(&deliveries(&call.await?.deliveries))
        }
        DeliveriesCommand::Job(of) => {
            session.show(own(client.show_delivery_job(&of.webhook), &of), |job| shown(session, job)).await
        }
        DeliveriesCommand::Retry(args) => retry(session, args).await,
        DeliveriesCommand::Replay(args) => replay(session, args).await,
    }
}

/// The colour of a state of deliveries.
pub(super) fn style(state: &str) -> Style {
    match state {
        "delivering" => Style::Green,
        "failing" => Style::Red,
        _ => Style::Yellow,
    }
}

fn deliveries(all: &[DeliveryStatus]) -> Table {
    let headings = [
        ("webhook", Align::Left),
        ("tenant", Align::Left),
        ("state", Align::Left),
        ("cursor", Align::Right),
        ("behind", Align::Right),
        ("delivered", Align::Right),
        ("set aside", Align::Right),
        ("dropped", Align::Right),
        ("next attempt", Align::Left),
        ("job", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["cursor", "job", "next attempt", "delivered"]);
    let now = now();
    for one in all {
        let plain = |text: String| (text, Style::Plain);
        let job = one.job.as_ref().filter(|job| job.state == DeliveryJobState::Running);
        let warned = |count: u64| (thousands(count), if count > 0 { Style::Yellow } else { Style::Plain });
        table.styled([
            plain(one.webhook.name.clone()),
            plain(or_dash(one.webhook.tenant.as_ref())),
            (one.state.clone(), style(&one.state)),
            plain(thousands(one.cursor)),
            plain(thousands(one.lag_events)),
            plain(thousands(one.delivered)),
            warned(one.dead_letters),
            warned(one.dropped_open),
            plain(or_dash(one.next_attempt_at.map(|at| distance(at, now)))),
            plain(or_dash(job.map(|job| job.kind))),
        ]);
    }
    table
}

async fn retry(session: &Session, args: RetryArgs) -> Result<(), Failed> {
    let of = &args.of;
    let call = session.client.retry_deliveries(&of.webhook, &RetryDeliveries { event_id: args.event });
    let what = format!("sending to {} again", of.webhook);
    told(session, of, follow(session, of, &what, (call, &args.job.change, args.job.no_wait)).await?)
}

async fn replay(session: &Session, args: ReplayArgs) -> Result<(), Failed> {
    let of = &args.of;
    let call = session.client.replay_deliveries(&of.webhook, &ReplayDeliveries { from_sequence: args.from });
    let what = format!("replaying to {}", of.webhook);
    told(session, of, follow(session, of, &what, (call, &args.job.change, args.job.no_wait)).await?)
}

/// Prints what was sent. What was not acknowledged is an error.
fn told(session: &Session, of: &WebhookArgs, ended: Ended) -> Result<(), Failed> {
    let value = match ended {
        Ended::Running(job) if session.json => return Ok(print_json(&job)?),
        Ended::Running(job) => return Ok(print(&goes_on(&job, of)?)?),
        Ended::Result(value) => value,
    };
    let result: DeliveriesSent = serde_json::from_value(value.clone())
        .map_err(|error| Problem::refused("bad_answer", format!("the daemon's answer is invalid: {error}")))?;
    if session.json {
        print_json(&value)?;
    } else if result.sent == 0 {
        print("nothing to send\n")?;
    } else {
        let acknowledged = if result.failed == 0 { "all".to_owned() } else { thousands(result.delivered) };
        print(&format!("{} sent, {acknowledged} acknowledged\n", counted(result.sent, "event")))?;
    }
    unreadable(&of.webhook, &result.unreadable);
    not_acknowledged(result.failed, of)
}

/// Says which events could not be sent because their records are not at hand.
pub(super) fn unreadable(webhook: &str, records: &[UnreadableRecords]) {
    for UnreadableRecords { first, last } in records {
        term::say(&format!(
            "leasehold: {webhook}: records {first} to {last} were archived or deleted, so their events were not sent\n"
        ));
    }
}

/// An error if some of what was sent was not acknowledged.
pub(super) fn not_acknowledged(failed: u64, of: &WebhookArgs) -> Result<(), Failed> {
    if failed == 0 {
        return Ok(());
    }
    let events = if failed == 1 { "1 event was".to_owned() } else { format!("{} events were", thousands(failed)) };
    let what = format!("{events} not acknowledged, and set aside again");
    let tenant = of.tenant.as_ref().map_or_else(String::new, |tenant| format!(" --tenant {tenant}"));
    let advice = format!("`leasehold webhook dead-letters {}{tenant}` shows why", of.webhook);
    Err(Problem::refused("partly_failed", what).advice(advice).into())
}
