//! Long work on webhooks: retries, replays and reconciliations.
//!
//! Each runs in a task of the daemon, so that neither the time limit of a request nor a caller that disappears ends it. A
//! webhook has one at a time, and the last one is remembered until the daemon stops.

use leasehold_api::{
    DeliveriesReconciled, DeliveriesSent, DeliveryJob, DeliveryJobKind, DeliveryJobState, Problem, When, codes,
};
use leasehold_deliver::Report;
use leasehold_model::{Instant, SinkNo, TokenNo};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How long work has to end by itself when the daemon stops. The deliveries have stopped before.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Retry { event_id: Option<String> },
    Replay { from: u64 },
    Reconcile { since: Instant, until: Instant, dry_run: bool },
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Sent(DeliveriesSent),
    Reconciled(DeliveriesReconciled),
}

/// The idempotency key of a request, with the token that sent it.
pub(crate) type Key = (TokenNo, Vec<u8>);

#[derive(Clone, Debug, Default)]
struct Progress {
    due: Option<u64>,
    done: u64,
    ended: Option<(Instant, Result<Outcome, Problem>)>,
}

/// One retry, replay or reconciliation.
pub(crate) struct Job {
    number: u64,
    sink: SinkNo,
    asked: Asked,
    key: Option<Key>,
    started_at: Instant,
    progress: watch::Sender<Progress>,
    task: OnceLock<AbortHandle>,
}

impl Job {
    /// Says how many events there are to send.
    pub(crate) fn is_due(&self, events: u64) {
        self.progress.send_modify(|progress| progress.due = Some(events));
    }

    /// Says how many of them came to an end.
    pub(crate) fn has_done(&self, report: &Report) {
        self.progress.send_modify(|progress| progress.done = report.delivered + report.dead);
    }

    fn is_running(&self) -> bool {
        self.progress.borrow().ended.is_none()
    }

    fn has_failed(&self) -> bool {
        matches!(self.progress.borrow().ended, Some((_, Err(_))))
    }

    /// What came of it; `None` if it takes longer than this.
    pub(crate) async fn ends_within(&self, within: Duration) -> Option<Result<Outcome, Problem>> {
        let mut news = self.progress.subscribe();
        let ended = tokio::time::timeout(within, news.wait_for(|progress| progress.ended.is_some())).await;
        let ended = ended.ok()?.ok()?;
        ended.ended.as_ref().map(|(_, result)| result.clone())
    }

    pub(crate) fn shown(&self) -> DeliveryJob {
        let progress = self.progress.borrow();
        let mut shown = DeliveryJob {
            job: self.number,
            webhook_id: self.sink.0,
            kind: DeliveryJobKind::Retry,
            state: DeliveryJobState::Running,
            started_at: When(self.started_at),
            ended_at: None,
            since: None,
            until: None,
            dry_run: None,
            from_sequence: None,
            event_id: None,
            due: progress.due,
            done: progress.done,
            resent: None,
            reconciled: None,
            problem: None,
        };
        match &self.asked {
            Asked::Retry { event_id } => shown.event_id = event_id.clone(),
            Asked::Replay { from } => (shown.kind, shown.from_sequence) = (DeliveryJobKind::Replay, Some(*from)),
            Asked::Reconcile { since, until, dry_run } => {
                shown.kind = DeliveryJobKind::Reconcile;
                (shown.since, shown.until) = (Some(When(*since)), Some(When(*until)));
                shown.dry_run = Some(*dry_run);
            }
        }
        let Some((at, result)) = &progress.ended else { return shown };
        shown.ended_at = Some(When(*at));
        shown.state = DeliveryJobState::Finished;
        match result {
            Ok(Outcome::Sent(sent)) => shown.resent = Some(sent.clone()),
            Ok(Outcome::Reconciled(reconciled)) => shown.reconciled = Some(reconciled.clone()),
            Err(problem) => (shown.state, shown.problem) = (DeliveryJobState::Failed, Some(problem.clone())),
        }
        shown
    }
}

/// The last work of each webhook.
#[derive(Default)]
pub(crate) struct DeliveryJobs {
    latest: Mutex<BTreeMap<SinkNo, Arc<Job>>>,
    begun: AtomicU64,
    is_stopping: AtomicBool,
}

impl DeliveryJobs {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<SinkNo, Arc<Job>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn latest(&self, sink: SinkNo) -> Option<Arc<Job>> {
        self.all().get(&sink).cloned()
    }

    /// Forgets the work of a deleted webhook.
    pub(crate) fn forget(&self, sink: SinkNo) {
        self.all().remove(&sink);
    }

    /// Begins work on a webhook. A request that is sent again with its idempotency key gets the work that it has begun,
    /// unless that has failed.
    pub(crate) fn begin<W>(
        &self,
        sink: SinkNo,
        asked: Asked,
        key: Option<Key>,
        clock: impl Fn() -> Instant + Send + 'static,
        work: impl FnOnce(Arc<Job>) -> W,
    ) -> Result<Arc<Job>, Problem>
    where
        W: Future<Output = Result<Outcome, Problem>> + Send + 'static,
    {
        let mut all = self.all();
        if let Some(last) = all.get(&sink) {
            let is_again = key.is_some() && last.key == key;
            if is_again && last.asked != asked {
                let detail = "The idempotency key was used for another request; use a new one.";
                return Err(Problem::new(409, "idempotency_mismatch", detail));
            }
            if is_again && !last.has_failed() {
                return Ok(Arc::clone(last));
            }
            if last.is_running() {
                return Err(codes::DELIVERY_BUSY.problem(
                    "Another retry, replay or reconciliation of this webhook is running; try again when it is done.",
                ));
            }
        }
        // Looked at under the lock that `stop` takes: nothing begins after it has looked.
        if self.is_stopping.load(Ordering::SeqCst) {
            return Err(codes::STOPPING.problem("The daemon is stopping."));
        }
        let job = Arc::new(Job {
            number: self.begun.fetch_add(1, Ordering::Relaxed) + 1,
            sink,
            asked,
            key,
            started_at: clock(),
            progress: watch::Sender::default(),
            task: OnceLock::new(),
        });
        all.insert(sink, Arc::clone(&job));
        let working = tokio::spawn(work(Arc::clone(&job)));
        let _ = job.task.set(working.abort_handle());
        let watched = Arc::clone(&job);
        tokio::spawn(async move {
            let result = working.await.unwrap_or_else(|error| {
                Err(match error.is_cancelled() {
                    true => codes::DELIVERY_INTERRUPTED.problem("The daemon was stopped; run it again."),
                    false => codes::INTERNAL.problem("The daemon failed; its log has the details."),
                })
            });
            let at = clock();
            watched.progress.send_modify(|progress| progress.ended = Some((at, result)));
        });
        Ok(job)
    }

    /// Ends all work. What was not sent stays where it was: set aside, or dropped.
    pub(crate) async fn stop(&self) {
        let all: Vec<_> = {
            let all = self.all();
            self.is_stopping.store(true, Ordering::SeqCst);
            all.values().cloned().collect()
        };
        let mut grace = pin!(tokio::time::sleep(STOP_GRACE));
        for job in all {
            tokio::select! {
                _ = job.ends_within(STOP_GRACE) => {}
                () = &mut grace => {}
            }
            if job.is_running() {
                job.task.get().inspect(|task| task.abort());
                let _ = job.ends_within(STOP_GRACE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    const HOOK: SinkNo = SinkNo(7);
    const LONG: Duration = Duration::from_secs(60);

    fn replay(from: u64) -> Asked {
        Asked::Replay { from }
    }

    fn key(text: &str) -> Option<Key> {
        Some((TokenNo(1), text.as_bytes().to_vec()))
    }

    type Finish = oneshot::Sender<Result<Outcome, Problem>>;

    /// Work that ends when the sender says so.
    fn begin(jobs: &DeliveryJobs, asked: Asked, key: Option<Key>) -> Result<(Finish, Arc<Job>), Problem> {
        let (finish, finished) = oneshot::channel();
        let job = jobs.begin(
            HOOK,
            asked,
            key,
            || Instant(5),
            |_| async { finished.await.unwrap_or_else(|_| Err(codes::INTERNAL.problem("Nobody finishes it."))) },
        );
        job.map(|job| (finish, job))
    }

    fn sent(count: u64) -> Result<Outcome, Problem> {
        Ok(Outcome::Sent(DeliveriesSent { sent: count, delivered: count, failed: 0, unreadable: Vec::new() }))
    }

    #[tokio::test]
    async fn a_webhook_has_one_at_a_time_and_remembers_the_last() {
        let jobs = DeliveryJobs::default();
        let (finish, job) = begin(&jobs, replay(3), None).expect("begun");
        job.is_due(9);
        assert!(job.ends_within(Duration::ZERO).await.is_none());
        let busy = begin(&jobs, replay(4), None).map(|_| ()).expect_err("busy");
        assert_eq!(busy.code, "delivery_busy");
        let shown = jobs.latest(HOOK).expect("one").shown();
        assert_eq!((shown.state, shown.due, shown.from_sequence), (DeliveryJobState::Running, Some(9), Some(3)));
        finish.send(sent(9)).expect("somebody waits");
        assert!(matches!(job.ends_within(LONG).await, Some(Ok(Outcome::Sent(sent))) if sent.sent == 9));
        let shown = jobs.latest(HOOK).expect("one").shown();
        assert_eq!((shown.state, shown.resent.map(|sent| sent.sent)), (DeliveryJobState::Finished, Some(9)));
        let (finish, _) = begin(&jobs, replay(4), None).expect("the next one");
        drop(finish);
        jobs.forget(HOOK);
        assert!(jobs.latest(HOOK).is_none());
    }

    #[tokio::test]
    async fn a_request_that_is_sent_again_gets_the_work_that_it_has_begun() {
        let jobs = DeliveryJobs::default();
        let (finish, first) = begin(&jobs, replay(3), key("a")).expect("begun");
        let (_, again) = begin(&jobs, replay(3), key("a")).expect("found");
        finish.send(sent(2)).expect("somebody waits");
        assert!(matches!(again.ends_within(LONG).await, Some(Ok(_))));
        let (_, after) = begin(&jobs, replay(3), key("a")).expect("found");
        assert_eq!((first.number, again.number, after.number), (1, 1, 1));
        let other = begin(&jobs, replay(4), key("a")).map(|_| ()).expect_err("another request");
        assert_eq!(other.code, "idempotency_mismatch");
        let (finish, failing) = begin(&jobs, replay(3), key("b")).expect("begun");
        drop(finish);
        assert!(matches!(failing.ends_within(LONG).await, Some(Err(_))));
        assert_eq!(begin(&jobs, replay(3), key("b")).expect("begun again").1.number, 3);
    }

    #[tokio::test]
    async fn a_panic_ends_it_as_failed() {
        let jobs = DeliveryJobs::default();
        let job = jobs.begin(HOOK, replay(0), None, || Instant(5), |_| async { panic!("on purpose") });
        let ended = job.expect("begun").ends_within(LONG).await.expect("it ends");
        assert_eq!(ended.expect_err("a problem").code, "internal");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_it_and_nothing_begins_after_it() {
        let jobs = DeliveryJobs::default();
        let (_finish, job) = begin(&jobs, replay(3), None).expect("begun");
        jobs.stop().await;
        let shown = job.shown();
        assert_eq!(shown.state, DeliveryJobState::Failed);
        assert_eq!(shown.problem.map(|problem| problem.code).as_deref(), Some("delivery_interrupted"));
        assert_eq!(begin(&jobs, replay(3), None).map(|_| ()).expect_err("refused").code, "stopping");
    }
}
