//! Sending events to webhooks again: retries, replays and reconciliations. They are jobs of the daemon; an answer waits for
//! the result for a few seconds, and after that says how far the job is.

use super::deliveries::{problem, unreadable};
use super::webhooks::{id, number, running};
use crate::access::Caller;
use crate::app::App;
use crate::context::{Answer, Context, json};
use crate::deliveries::work::{Asked, Job, Outcome};
use leasehold_api as api;
use leasehold_api::{Problem, ReconcileDeliveries, ReplayDeliveries, RetryDeliveries, When, codes};
use leasehold_deliver::{DeliverError, Deliveries, Difference, Report, SinkId, Which};
use leasehold_engine::{Command, Refusal};
use leasehold_model::body::AccountingReconciled;
use leasehold_model::{Instant, SinkNo};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an answer waits for the result. With a shorter time limit for requests, half of that counts.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Events that a dry run lists.
const DIFFERENCES_MAX: usize = 1_000;
/// How often, and with which pauses, the result of a reconciliation is offered to an engine that is busy.
const SEAL_ATTEMPTS: u32 = 30;
const SEAL_PAUSE: Duration = Duration::from_secs(1);

fn sent(report: &Report) -> Outcome {
    Outcome::Sent(api::DeliveriesSent {
        sent: report.sent,
        delivered: report.delivered,
        failed: report.dead,
        unreadable: unreadable(&report.unreadable),
    })
}

/// Begins a job, and answers with its result or, if it takes longer, with how far it is.
async fn answer<W>(context: &Context, sink: SinkNo, asked: Asked, work: impl FnOnce(Arc<Job>) -> W) -> Answer
where
    W: Future<Output = Result<Outcome, Problem>> + Send + 'static,
{
    let app = &context.app;
    let key = match context.key()? {
        Some(key) if leasehold_model::Key::new(key).is_none() => {
            return Err(crate::problem::refused(&Refusal::BadIdempotencyKey { bytes: key.len() }));
        }
        key => key.map(|key| (context.caller().token, key.to_vec())),
    };
    let clock = {
        let cell = Arc::downgrade(&app.cell);
        move || cell.upgrade().map_or(Instant(0), |cell| cell.time())
    };
    let job = app.deliveries.jobs.begin(sink, asked, key, clock, work)?;
    match job.ends_within(ANSWER_WITHIN.min(app.request_timeout / 2)).await {
        Some(Ok(Outcome::Sent(sent))) => json(200, &sent),
        Some(Ok(Outcome::Reconciled(reconciled))) => json(200, &reconciled),
        Some(Err(problem)) => Err(problem),
        None => json(202, &job.shown()),
    }
}

pub(super) async fn show_delivery_job(context: Context) -> Answer {
    let sink = number(&context)?;
    let job = context.app.deliveries.jobs.latest(sink).ok_or_else(|| {
        let detail = "There was no retry, replay or reconciliation of this webhook since the daemon started.";
        codes::NO_DELIVERY_JOB.problem(detail)
    })?;
    json(200, &job.shown())
}

pub(super) async fn retry_deliveries(context: Context) -> Answer {
    let retry: RetryDeliveries = context.body()?;
    let sink = number(&context)?;
    let running = running(&context.app)?.clone();
    let all = running.status().into_iter().find(|status| status.id == id(sink)).map_or(0, |status| status.dead_letters);
    let asked = Asked::Retry { event_id: retry.event_id.clone() };
    answer(&context, sink, asked, |job| async move {
        job.is_due(if retry.event_id.is_some() { 1 } else { all });
        let which = retry.event_id.map_or(Which::All, Which::One);
        let report = running.retry(id(sink), which, |report| job.has_done(report)).await;
        report.map(|report| sent(&report)).map_err(|error| problem(&error))
    })
    .await
}

pub(super) async fn replay_deliveries(context: Context) -> Answer {
    let replay: ReplayDeliveries = context.body()?;
    let sink = number(&context)?;
    let running = running(&context.app)?.clone();
    let from = replay.from_sequence;
    let head = context.app.journal.head().size;
    if from >= head {
        let detail = format!("The journal has {head} records, so there is none with the sequence {from}.");
        return Err(codes::NO_SUCH_RECORD.problem(detail));
    }
    answer(&context, sink, Asked::Replay { from }, |job| async move {
        let due = running.replayable(id(sink), from).await.map_err(|error| problem(&error))?;
        job.is_due(due);
        let report = running.replay(id(sink), from, |report| job.has_done(report)).await;
        report.map(|report| sent(&report)).map_err(|error| problem(&error))
    })
    .await
}

pub(super) async fn reconcile_deliveries(context: Context) -> Answer {
    let asked: ReconcileDeliveries = context.body()?;
    let sink = number(&context)?;
    let (since, until, dry_run) = (asked.since.0, asked.until.0, asked.dry_run);
    if since > until {
        return Err(Problem::new(422, "bad_reconciliation", "A reconciliation ends after it begins."));
    }
    let running = running(&context.app)?.clone();
    let reconciliation = Reconciliation {
        app: Arc::clone(&context.app),
        caller: context.caller().clone(),
        running,
        sink,
        time: (since, until),
    };
    let asked = Asked::Reconcile { since, until, dry_run };
    answer(&context, sink, asked, |job| reconciliation.run(job, dry_run)).await
}

fn difference(found: Difference) -> api::DeliveryDifference {
    api::DeliveryDifference {
        event_id: found.id,
        event_type: found.kind,
        sequence: found.place.sequence,
        subject: found.order,
        time: When(found.time),
        cause: match found.set_aside {
            Some(_) => api::DeliveryDifferenceCause::SetAside,
            None => api::DeliveryDifferenceCause::Dropped,
        },
        reason: found.set_aside,
    }
}

/// A comparison of what was due with what was acknowledged.
struct Reconciliation {
    app: Arc<App>,
    caller: Caller,
    running: Deliveries,
    sink: SinkNo,
    time: (Instant, Instant),
}

impl Reconciliation {
    async fn run(self, job: Arc<Job>, dry_run: bool) -> Result<Outcome, Problem> {
        let (sink, (since, until)): (SinkId, _) = (id(self.sink), self.time);
        let plan = self.running.plan(sink, since, until).await.map_err(|error| problem(&error))?;
        let mut result = api::DeliveriesReconciled {
            due: plan.due,
            acknowledged: plan.acknowledged,
            pending: plan.pending,
            dead: plan.dead,
            dropped: plan.dropped,
            sent: 0,
            failed: 0,
            unreadable: Vec::new(),
            differences: Vec::new(),
            sequence: None,
        };
        job.is_due(plan.to_send());
        if dry_run {
            let found = self.running.differences(sink, self.time, DIFFERENCES_MAX).await;
            result.differences = found.map_err(|error| problem(&error))?.into_iter().map(difference).collect();
            return Ok(Outcome::Reconciled(result));
        }
        let so_far = Mutex::new(Report::default());
        let note = |report: &Report| {
            job.has_done(report);
            *so_far.lock().unwrap_or_else(PoisonError::into_inner) = report.clone();
        };
        let (report, failure) = match self.running.reconcile(sink, since, until, note).await {
            Ok(report) => (report, None),
            // Nothing has to be sent.
            Err(DeliverError::Disabled) if plan.to_send() == 0 => (Report::default(), None),
            Err(error) => (so_far.into_inner().unwrap_or_else(PoisonError::into_inner), Some(problem(&error))),
        };
        (result.sent, result.failed) = (report.delivered, report.dead);
        result.unreadable = unreadable(&report.unreadable);
        let done = AccountingReconciled {
            sink: self.sink,
            since,
            until,
            due: plan.due,
            acknowledged: plan.acknowledged,
            pending: plan.pending,
            sent: report.delivered,
            failed: report.dead,
        };
        // What was sent before it ended early cannot be taken back either.
        if let Some(failure) = failure {
            if report.delivered + report.dead > 0 {
                self.seal(done).await?;
            }
            return Err(failure);
        }
        result.sequence = Some(self.seal(done).await?);
        Ok(Outcome::Reconciled(result))
    }

    /// Records the result. What was sent cannot be taken back, so an engine that is busy is asked again.
    async fn seal(&self, done: AccountingReconciled) -> Result<u64, Problem> {
        let sent = done.sent;
        let mut attempt = 1;
        loop {
            let (command, identity) = (Command::RecordReconciliation(done.clone()), self.caller.identity());
            let problem = match self.app.seal(&self.caller, identity, command, None).await {
                Ok(sealed) => return Ok(sealed.sequence()),
                Err(problem) => problem,
            };
            let is_passing = [codes::BUSY.code, codes::TOO_MANY_WAITING.code].contains(&problem.code.as_str());
            if !is_passing || attempt == SEAL_ATTEMPTS {
                let detail = format!("{sent} events were sent, but the result was not recorded. {}", problem.detail);
                return Err(Problem { detail, ..problem });
            }
            attempt += 1;
            tokio::time::sleep(SEAL_PAUSE).await;
        }
    }
}
