//! What is delivered to webhooks: how far it came, what failed, and sending it again.

use super::webhooks::{find, id, number, running, sees, shown};
use crate::config::Accounting;
use crate::context::{Answer, Context, cursor_after, json};
use crate::deliveries::Rate;
use leasehold_api as api;
use leasehold_api::{Problem, ReconcileDeliveries, ReplayDeliveries, RetryDeliveries, Role, Ttl, When, codes};
use leasehold_deliver::{Attempt, DeliverError, Place, Report, SinkStatus, Which};
use leasehold_engine::Command;
use leasehold_model::body::AccountingReconciled;
use leasehold_model::{Instant, SinkNo, Span};

fn problem(error: &DeliverError) -> Problem {
    let detail = crate::problem::sentence(&error.to_string());
    match error {
        DeliverError::UnknownSink(_) => Problem::new(404, "unknown_webhook", detail),
        DeliverError::TooManySinks | DeliverError::Busy => codes::DELIVERY_BUSY.problem(detail),
        DeliverError::NoDeadLetter(_) => codes::NO_DEAD_LETTER.problem(detail),
        DeliverError::Disabled => Problem::new(409, "webhook_disabled", detail),
        DeliverError::Stopped | DeliverError::Unread(_) | DeliverError::Store(_) => {
            codes::DELIVERY_INTERRUPTED.problem(detail)
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

fn sent(report: &Report) -> api::DeliveriesSent {
    api::DeliveriesSent { sent: report.sent, delivered: report.delivered, failed: report.dead }
}

fn status_of(webhook: api::Webhook, status: SinkStatus) -> api::DeliveryStatus {
    let state = match (status.enabled, status.backs_off_until) {
        (false, _) => "disabled",
        (true, Some(_)) => "failing",
        (true, None) => "delivering",
    };
    api::DeliveryStatus {
        webhook,
        state: state.to_owned(),
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
        trouble: status.source_error.or(status.restarted),
    }
}

pub(super) async fn accounting_status(context: Context) -> Answer {
    let app = &context.app;
    let config = app.deliveries.config();
    let all = app.deliveries.running().map(|running| running.status()).unwrap_or_default();
    let caller = context.caller();
    let deliveries = app.now.read(|state| {
        let of = |status: SinkStatus| {
            let sink = state.sink(SinkNo(u32::try_from(status.id.0).ok()?)).filter(|sink| sees(caller, sink))?;
            Some(status_of(shown(state, sink), status))
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
    api::DeliveryAdvice {
        events_per_minute: rate.all,
        accounting_events_per_minute: rate.accounting,
        measured_over: Ttl(rate.over),
        buffer_size: config.buffer_size,
        minutes_in_memory: u64::from(config.buffer_size).checked_div(rate.all),
        buffer_size_for_two_hours: rate.all * 120,
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

pub(super) async fn retry_deliveries(context: Context) -> Answer {
    let retry: RetryDeliveries = context.body()?;
    let sink = number(&context)?;
    let which = retry.event_id.map_or(Which::All, Which::One);
    let report = running(&context.app)?.retry(id(sink), which).await.map_err(|error| problem(&error))?;
    json(200, &sent(&report))
}

pub(super) async fn replay_deliveries(context: Context) -> Answer {
    let replay: ReplayDeliveries = context.body()?;
    let sink = context.app.now.read(|state| find(&context, state).map(|sink| (sink.put.sink, sink.made_by)))?;
    let from = replay.from_sequence;
    let head = context.app.journal.head().size;
    if from >= head {
        let detail = format!("The journal has {head} records, so there is none with the sequence {from}.");
        return Err(codes::NO_SUCH_RECORD.problem(detail));
    }
    let replayed = running(&context.app)?.replay(id(sink.0), from, |_| {}).await;
    json(200, &sent(&replayed.map_err(|error| problem(&error))?))
}

pub(super) async fn reconcile_deliveries(context: Context) -> Answer {
    let asked: ReconcileDeliveries = context.body()?;
    let sink = number(&context)?;
    let (since, until) = (asked.since.0, asked.until.0);
    if since > until {
        return Err(Problem::new(422, "bad_reconciliation", "A reconciliation ends after it begins."));
    }
    let running = running(&context.app)?.clone();
    let plan = running.plan(id(sink), since, until).await.map_err(|error| problem(&error))?;
    let mut answer = api::DeliveriesReconciled {
        due: plan.due,
        acknowledged: plan.acknowledged,
        pending: plan.pending,
        dead: plan.dead,
        dropped: plan.dropped,
        sent: 0,
        failed: 0,
        sequence: None,
    };
    if asked.dry_run || plan.to_send() == 0 {
        return json(200, &answer);
    }
    let report = running.reconcile(id(sink), since, until, |_| {}).await.map_err(|error| problem(&error))?;
    (answer.sent, answer.failed) = (report.delivered, report.dead);
    let done = AccountingReconciled {
        sink,
        since,
        until,
        due: plan.due,
        acknowledged: plan.acknowledged,
        pending: plan.pending,
        sent: report.delivered,
        failed: report.dead,
    };
    let sealed = context.seal(Command::RecordReconciliation(done)).await?;
    answer.sequence = Some(sealed.sequence());
    json(200, &answer)
}
