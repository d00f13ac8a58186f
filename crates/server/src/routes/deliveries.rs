//! What is delivered to webhooks: how far it came, and what failed. Sending it again is in `resend.rs`.

use super::webhooks::{id, number, running, sees, shown};
use crate::config::{Accounting, BUFFER_SIZE_MAX};
use crate::context::{Answer, Context, cursor_after, json};
use crate::deliveries::Rate;
use leasehold_api as api;
use leasehold_api::{Problem, Role, Ttl, When, codes};
use leasehold_deliver::{Attempt, DeliverError, Place, SinkStatus};
use leasehold_model::{Instant, SinkNo, Span};

pub(super) fn problem(error: &DeliverError) -> Problem {
    match error {
        DeliverError::UnknownSink(_) => Problem::new(404, "unknown_webhook", "The webhook was deleted."),
        DeliverError::TooManySinks => codes::DELIVERY_BUSY.problem("There are too many webhooks; delete one first."),
        DeliverError::Busy => codes::DELIVERY_BUSY.problem(
            "Another retry, replay or reconciliation of this webhook is running; try again when it is done.",
        ),
        DeliverError::NoDeadLetter(event) => codes::NO_DEAD_LETTER.problem(format!(
            "No event with the ID {} was set aside for this webhook; `dead-letters` lists those that were.",
            event.escape_debug()
        )),
        DeliverError::Disabled => {
            Problem::new(409, "webhook_disabled", "The webhook is disabled, so nothing is sent to it; a change of it enables it.")
        }
        DeliverError::Stopped => codes::DELIVERY_INTERRUPTED
            .problem("The webhook was changed, deleted or stopped meanwhile; what was not acknowledged is not lost. Run it again."),
        DeliverError::Gone(_) => codes::DELIVERY_INTERRUPTED.problem(crate::problem::sentence(&error.to_string())),
        DeliverError::Unread(why) | DeliverError::Store(why) => {
            codes::DELIVERY_INTERRUPTED.problem(format!("{}; run it again.", crate::problem::sentence(why)))
        }
    }
}

fn attempt(attempt: Attempt) -> api::DeliveryAttempt {
    api::DeliveryAttempt {
        at: When(Instant(attempt.at_ns)),
        event_id: attempt.event_id,
        event_type: attempt.kind,
        status: attempt.status,
        error: attempt.error,
        took: Ttl(Span(attempt.took_ns)),
    }
}

fn status_of(webhook: api::Webhook, status: SinkStatus, job: Option<api::DeliveryJob>) -> api::DeliveryStatus {
    let state = match (status.enabled, status.backs_off_until) {
        (false, _) => "disabled",
        (true, Some(_)) => "failing",
        (true, None) => "delivering",
    };
    let reachable = match state {
        "disabled" => None,
        "failing" => Some(false),
        _ if status.last_success.is_some() => Some(true),
        _ => (status.counters.attempts > 0).then_some(false),
    };
    api::DeliveryStatus {
        webhook,
        state: state.to_owned(),
        reachable,
        cursor: status.cursor.sequence,
        lag_records: status.lag_records,
        lag_events: status.lag_events,
        in_memory: status.in_memory_events,
        on_disk: status.on_disk_events,
        oldest: status.oldest.map(When),
        attempts: status.counters.attempts,
        delivered: status.counters.delivered,
        failures: status.counters.failures,
        dead_letters: status.dead_letters,
        dropped: status.counters.dropped,
        dropped_open: status.counters.dropped_open,
        memory_high: status.is_memory_high,
        over_threshold: status.is_over_threshold,
        next_attempt_at: status.backs_off_until.map(When),
        last_error: status.last_error,
        last_success: status.last_success.map(When),
        trouble: status.source_error.or_else(|| lost(&status.lost_records)).or(status.restarted),
        job,
    }
}

/// What cannot be delivered any more.
fn lost(records: &[(u64, u64)]) -> Option<String> {
    let (first, last) = (records.first()?, records.last()?);
    let more = if records.len() > 1 { ", with others between them" } else { "" };
    Some(format!(
        "the records {} to {}{more} were archived or deleted before their events were delivered; bring them back and \
         reconcile, or compare with the receiver by other means",
        first.0,
        last.1 - 1
    ))
}

pub(super) fn unreadable(records: &[(u64, u64)]) -> Vec<api::UnreadableRecords> {
    records.iter().map(|(first, after)| api::UnreadableRecords { first: *first, last: after - 1 }).collect()
}

pub(super) async fn accounting_status(context: Context) -> Answer {
    let app = &context.app;
    let config = app.deliveries.config();
    let all = app.deliveries.running().map(|running| running.status()).unwrap_or_default();
    let caller = context.caller();
    let deliveries = app.now.read(|state| {
        let of = |status: SinkStatus| {
            let sink = state.sink(SinkNo(u32::try_from(status.id.0).ok()?)).filter(|sink| sees(caller, sink))?;
            let job = app.deliveries.jobs.latest(sink.put.sink).map(|job| job.shown());
            Some(status_of(shown(state, sink), status, job))
        };
        all.into_iter().filter_map(of).collect()
    });
    let trouble = running(app).err().filter(|_| config.enabled).map(|problem| problem.detail);
    let is_shown = caller.role == Role::Operator && config.enabled;
    let advice = is_shown.then(|| advice(config, app.deliveries.events_per_minute(app.time())));
    let provider = app.deliveries.token().filter(|_| is_shown).map(|token| {
        let state = token.state();
        api::ProviderStatus {
            provider: config.provider.map(|provider| provider.word().to_owned()).unwrap_or_default(),
            sends_usage: false,
            token_secret_ref: token.reference.to_string(),
            token_readable: state.is_readable(),
            token_read_at: state.read_at.map(When),
            token_trouble: state.trouble.map(|trouble| trouble.to_string()),
        }
    });
    json(200, &api::AccountingStatus { enabled: config.enabled, trouble, deliveries, provider, advice })
}

/// Memory that covers the longest outage, and pushes whose events fit into it (SEMANTICS 10; the rule of thumb is
/// events per minute x minutes).
fn advice(config: &Accounting, rate: Rate) -> api::DeliveryAdvice {
    let pushed = config.provider.map(|_| (config.waldur.push_interval_seconds, config.waldur_buffer_size()));
    let seconds = |interval: u32| (rate.accounting * u64::from(interval)).div_ceil(60);
    let fit = |memory: u32| (u64::from(memory) * 8 / 10 * 60).checked_div(rate.accounting);
    // The memory is that of each webhook; one that is still to be made may be sent everything.
    let busiest = rate.busiest.unwrap_or(rate.all);
    api::DeliveryAdvice {
        events_per_minute: rate.all,
        busiest_webhook_events_per_minute: busiest,
        accounting_events_per_minute: rate.accounting,
        measured_over: Ttl(rate.over),
        buffer_size: config.buffer_size,
        minutes_in_memory: u64::from(config.buffer_size).checked_div(busiest),
        buffer_size_for_two_hours: busiest.saturating_mul(120).min(u64::from(BUFFER_SIZE_MAX)),
        push_interval_seconds: pushed.map(|(interval, _)| interval),
        events_per_push: pushed.map(|(interval, _)| seconds(interval)),
        push_interval_seconds_max: pushed.and_then(|(_, memory)| fit(memory)),
    }
}

pub(super) async fn test_webhook(context: Context) -> Answer {
    let sink = number(&context)?;
    let tried = running(&context.app)?.test_event(id(sink)).await.map_err(|error| problem(&error))?;
    json(200, &attempt(tried))
}

pub(super) async fn list_attempts(context: Context) -> Answer {
    let sink = number(&context)?;
    let attempts = running(&context.app)?.attempts(id(sink)).map_err(|error| problem(&error))?;
    json(200, &api::DeliveryAttempts { attempts: attempts.into_iter().map(attempt).collect() })
}

/// A place as a cursor: records have fewer events than fit into sixteen bits.
fn place_after(cursor: Option<u64>) -> Place {
    cursor.map_or_else(Place::default, |at| Place { sequence: at >> 16, position: (at & 0xffff) as u16 }.after())
}

pub(super) async fn list_dead_letters(context: Context) -> Answer {
    let sink = number(&context)?;
    let (after, limit) = (context.cursor()?, context.limit()?);
    let running = running(&context.app)?.clone();
    let read = move || running.dead_letters(id(sink), place_after(after), limit + 1);
    let letters = tokio::task::spawn_blocking(read).await;
    let letters = letters.map_err(|_| codes::INTERNAL.problem("The dead letters could not be read."))?;
    let mut letters = letters.map_err(|error| problem(&error))?;
    let is_more = letters.len() > limit;
    letters.truncate(limit);
    let last = letters.last().map_or(0, |letter| letter.place.sequence << 16 | u64::from(letter.place.position));
    let dead_letters = letters.into_iter().map(|letter| api::DeadLetter {
        event_id: letter.id,
        event_type: letter.kind,
        sequence: letter.place.sequence,
        subject: letter.order,
        time: When(Instant(letter.time_ns)),
        dead_at: When(Instant(letter.dead_at_ns)),
        attempts: letter.attempts,
        status: letter.status,
        reason: letter.reason,
    });
    let next_cursor = is_more.then(|| cursor_after(last));
    json(200, &api::DeadLetterList { dead_letters: dead_letters.collect(), next_cursor })
}
