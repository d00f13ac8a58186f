//! All sinks of a daemon: one task for each, and one that writes their progress once a second.

use crate::event::{Event, Place, SinkId, SinkSpec};
use crate::limits::{Limits, SHARE_BYTES_MIN, SINKS_MAX};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::progress::{Attempt, DeadLetter, Progress, Stored};
use crate::sink::Sink;
use crate::source::{Source, SourceError};
use crate::status::SinkStatus;
use crate::store::{Opened, Store, StoreError};
use crate::task;
use crate::transport::Transport;
use leasehold_model::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};

/// How often progress is written. A crash repeats what was delivered since.
const COMMIT_EVERY: Duration = Duration::from_secs(1);
/// How long new records are collected before the sinks are told.
const TELL_EVERY: Duration = Duration::from_millis(2);
/// With very many sinks, telling them takes at most one part of so many of a processor.
const TELL_PART: u32 = 20;
/// How many sinks read the journal at the same time.
const READERS_MAX: usize = 4;
/// How long requests in flight have to end when the service stops.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// In the place of a counter of due events: the journal has not been read up to its head.
pub(crate) const NEVER: u64 = u64::MAX;

/// The daemon's time. It never goes backwards.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Instant;
}

/// Called when an endpoint answered 410, so that the daemon can seal that the sink is disabled.
pub type OnDisabled = Arc<dyn Fn(SinkId) + Send + Sync>;

/// What the service needs.
pub struct Parts {
    pub source: Arc<dyn Source>,
    pub transport: Arc<dyn Transport>,
    pub store: Store,
    /// How the store was found.
    pub opened: Opened,
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    /// The attribute `source` of events: `leasehold://ORIGIN`.
    pub origin: String,
    pub on_disabled: OnDisabled,
    pub runtime: Handle,
}

/// One sink while it is known to the service.
pub(crate) struct Running {
    pub(crate) spec: SinkSpec,
    pub(crate) sink: Mutex<Sink>,
    /// Something has changed: events have become due, a job added some, or the service stops.
    pub(crate) nudge: Notify,
    /// The counter of due events when the journal was last read up to its head.
    pub(crate) due_read: AtomicU64,
    /// Events of records from this one on were counted as they became due, the others exactly.
    pub(crate) counted_from: AtomicU64,
    pub(crate) stopping: AtomicBool,
    /// Its task is no more.
    pub(crate) ended: AtomicBool,
    /// Events of jobs that came to an end.
    pub(crate) settled: Mutex<Vec<(u64, Place, bool)>>,
    pub(crate) settled_news: Notify,
    /// Held by the one job.
    pub(crate) job: tokio::sync::Mutex<()>,
    pub(crate) source_error: Mutex<Option<String>>,
    /// When the oldest event happened that a disabled sink has to deliver.
    pub(crate) oldest: Mutex<Option<Instant>>,
    restarted: Option<String>,
    task: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Shared {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) origin: String,
    pub(crate) on_disabled: OnDisabled,
    pub(crate) readers: Semaphore,
    opened: Opened,
    runtime: Handle,
    sinks: Mutex<BTreeMap<SinkId, Arc<Running>>>,
    /// How many there are.
    count: AtomicUsize,
    /// There are new records of which the sinks have not been told.
    is_rung: AtomicBool,
    bell: Notify,
    /// One commit at a time.
    commits: Mutex<()>,
    /// What runs while there are sinks: the one that writes, and the one that listens.
    helpers: Mutex<Vec<AbortHandle>>,
}

/// Why something cannot be done for a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliverError {
    UnknownSink(SinkId),
    TooManySinks,
    /// The sink is disabled: nothing is sent to it.
    Disabled,
    /// Another retry, replay or reconciliation of the sink runs.
    Busy,
    /// There is no dead letter with this ID.
    NoDeadLetter(String),
    /// The sink was changed, removed or stopped meanwhile.
    Stopped,
    /// The records from where reading should begin up to this one were archived or deleted.
    Gone(u64),
    Unread(String),
    Store(String),
}

impl From<SourceError> for DeliverError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Gone { until } => Self::Gone(until),
            SourceError::Later(_) => Self::Unread(error.to_string()),
        }
    }
}

impl fmt::Display for DeliverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSink(id) => write!(f, "there is no sink with the number {}", id.0),
            Self::TooManySinks => write!(f, "there are already {SINKS_MAX} sinks"),
            Self::Disabled => f.write_str("the sink is disabled; enable it first"),
            Self::Busy => f.write_str("another retry, replay or reconciliation of this sink is running"),
            Self::NoDeadLetter(id) => write!(f, "there is no dead letter with the event ID {id}"),
            Self::Stopped => f.write_str("the sink was changed, removed or stopped; run it again"),
            Self::Gone(until) => write!(f, "the records before {until} were archived or deleted"),
            Self::Unread(why) | Self::Store(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for DeliverError {}

/// The sinks of a daemon.
#[derive(Clone)]
pub struct Deliveries(pub(crate) Arc<Shared>);

impl Deliveries {
    /// Starts nothing yet: tasks run as soon as there is a sink.
    pub fn start(parts: Parts) -> Self {
        let Parts { source, transport, store, opened, clock, limits, origin, on_disabled, runtime } = parts;
        if let Opened::Replaced { why, kept_as } = &opened {
            tracing::error!(
                why, kept_as = %kept_as.display(),
                "the progress of deliveries could not be used; every sink begins again where it was created"
            );
        }
        Self(Arc::new(Shared {
            source,
            transport,
            store,
            clock,
            limits,
            origin,
            on_disabled,
            readers: Semaphore::new(READERS_MAX),
            opened,
            runtime,
            sinks: Mutex::default(),
            count: AtomicUsize::new(0),
            // Nobody listens while there is no sink.
            is_rung: AtomicBool::new(true),
            bell: Notify::new(),
            commits: Mutex::default(),
            helpers: Mutex::default(),
        }))
    }

    /// Adds a sink, or changes one. A sink that is not enabled is known, but nothing is sent to it.
    pub fn put(&self, spec: SinkSpec) -> Result<(), DeliverError> {
        let mut sinks = lock(&self.0.sinks);
        let (sink, restarted) = match sinks.get(&spec.id) {
            Some(before) if before.spec.created_at_sequence == spec.created_at_sequence => {
                before.end();
                let sink = lock(&before.sink).restarted(self.0.limits.clone());
                (sink, before.restarted.clone())
            }
            Some(_) => (self.0.fresh(&spec), None),
            None if sinks.len() >= SINKS_MAX => return Err(DeliverError::TooManySinks),
            None => self.0.load(&spec),
        };
        self.run(&mut sinks, spec, sink, restarted);
        Ok(())
    }

    fn run(&self, sinks: &mut BTreeMap<SinkId, Arc<Running>>, spec: SinkSpec, sink: Sink, restarted: Option<String>) {
        let running = Arc::new(Running {
            spec,
            sink: Mutex::new(sink),
            nudge: Notify::new(),
            due_read: AtomicU64::new(NEVER),
            counted_from: AtomicU64::new(NEVER),
            stopping: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            settled: Mutex::default(),
            settled_news: Notify::new(),
            job: tokio::sync::Mutex::default(),
            source_error: Mutex::default(),
            oldest: Mutex::default(),
            restarted,
            task: Mutex::default(),
        });
        let (shared, its) = (Arc::clone(&self.0), Arc::clone(&running));
        let task = if running.spec.enabled {
            self.0.runtime.spawn(task::run(shared, its))
        } else {
            self.0.runtime.spawn(task::watch_disabled(shared, its))
        };
        *lock(&running.task) = Some(task);
        sinks.insert(running.spec.id, running);
        self.0.count.store(sinks.len(), Ordering::Relaxed);
        let mut helpers = lock(&self.0.helpers);
        if helpers.is_empty() {
            helpers.push(self.0.runtime.spawn(commit_regularly(Arc::clone(&self.0))).abort_handle());
            helpers.push(self.0.runtime.spawn(listen(Arc::clone(&self.0))).abort_handle());
        }
    }

    /// The sink as it was put last.
    pub fn spec(&self, id: SinkId) -> Option<SinkSpec> {
        lock(&self.0.sinks).get(&id).map(|running| running.spec.clone())
    }

    /// All sinks as they were put last.
    pub fn specs(&self) -> Vec<SinkSpec> {
        lock(&self.0.sinks).values().map(|running| running.spec.clone()).collect()
    }

    /// Forgets a sink and its progress.
    pub fn remove(&self, id: SinkId) {
        let mut sinks = lock(&self.0.sinks);
        let Some(running) = sinks.remove(&id) else { return };
        running.end();
        self.0.count.store(sinks.len(), Ordering::Relaxed);
        if sinks.is_empty() {
            self.0.stop_helpers();
        }
        let shared = Arc::clone(&self.0);
        self.0.runtime.spawn_blocking(move || {
            let _one = lock(&shared.commits);
            if let Err(error) = shared.store.forget(id) {
                tracing::warn!(sink = id.0, %error, "the progress of a removed sink is left in the file");
            }
        });
    }

    /// New records are durable, and counted as due where they are. Costs a few nanoseconds, except for the first call
    /// after the sinks were told.
    pub fn wake(&self) {
        // Pairs with the one in `listen`: either it sees the new counters, or this sees that it has to be rung.
        fence(Ordering::SeqCst);
        if !self.0.is_rung.load(Ordering::Relaxed) && !self.0.is_rung.swap(true, Ordering::SeqCst) {
            self.0.bell.notify_one();
        }
    }

    pub fn status(&self) -> Vec<SinkStatus> {
        let all: Vec<_> = lock(&self.0.sinks).values().cloned().collect();
        let (head, now) = (self.0.source.head(), self.0.clock.now());
        let status = |running: Arc<Running>| {
            let due = self.0.source.due(&running.spec);
            let sink = lock(&running.sink);
            let of_disabled = *lock(&running.oldest);
            let status = SinkStatus::of(&running.spec, &self.0.limits, &sink, of_disabled, (head, due, now));
            let source_error = lock(&running.source_error).clone();
            SinkStatus { restarted: running.restarted.clone(), source_error, ..status }
        };
        all.into_iter().map(status).collect()
    }

    /// The last attempts, oldest first.
    pub fn attempts(&self, id: SinkId) -> Result<Vec<Attempt>, DeliverError> {
        let running = self.running(id)?;
        let sink = lock(&running.sink);
        Ok(sink.attempts().cloned().collect())
    }

    /// Dead letters from a place on, oldest first. Blocks.
    pub fn dead_letters(&self, id: SinkId, from: Place, most: usize) -> Result<Vec<DeadLetter>, DeliverError> {
        self.running(id)?;
        self.0.commit().map_err(|error| DeliverError::Store(error.to_string()))?;
        self.0.store.dead_letters(id, from, most).map_err(|error| DeliverError::Store(error.to_string()))
    }

    /// Sends one event that says nothing, once, and answers what came of it. Also to a sink that is not enabled.
    pub async fn test_event(&self, id: SinkId) -> Result<Attempt, DeliverError> {
        let running = self.running(id)?;
        let now = self.0.clock.now();
        let event = Event {
            sequence: 0,
            position: 0,
            id: format!("test_{:016x}{:016x}", fastrand::u64(..), now.0),
            kind: "leasehold.test".to_owned(),
            order: "test".to_owned(),
            subject: id.to_string(),
            time: now,
            data: serde_json::json!({"sink": running.spec.name}),
        };
        let message = Message::new(event, &self.0.origin);
        let outcome = self.0.transport.send(&running.spec, &message, now).await;
        let error = matches!(outcome, Outcome::Failed(_)).then(|| outcome.reason());
        let took_ns = self.0.clock.now().since(now).0;
        let (event_id, kind) = (message.id, message.kind);
        let attempt = Attempt { at_ns: now.0, event_id, kind, status: outcome.status(), error, took_ns };
        lock(&running.sink).remember(attempt.clone());
        Ok(attempt)
    }

    /// Lets a sink go on at another record. Events up to a later record count as dropped and can be sent with
    /// `reconcile`; events after an earlier record are sent again.
    pub async fn restart_at(&self, id: SinkId, sequence: u64) -> Result<(), DeliverError> {
        let before = self.running(id)?;
        let cursor = lock(&before.sink).cursor().sequence;
        let (shared, spec) = (Arc::clone(&self.0), before.spec.clone());
        let count = move || if cursor < sequence { shared.source.count(&spec, cursor, sequence) } else { Ok(0) };
        let skipped = self.0.runtime.spawn_blocking(count).await.map_err(|_| DeliverError::Stopped)?;
        let skipped = skipped?;
        tracing::warn!(sink = id.0, cursor, sequence, skipped, "an operator moved the cursor of a sink");
        let mut sinks = lock(&self.0.sinks);
        // It may have been changed meanwhile.
        if !sinks.get(&id).is_some_and(|now| Arc::ptr_eq(now, &before)) {
            return Err(DeliverError::Stopped);
        }
        before.end();
        let sink = lock(&before.sink).moved(self.0.limits.clone(), sequence, skipped);
        self.run(&mut sinks, before.spec.clone(), sink, None);
        Ok(())
    }

    pub(crate) fn running(&self, id: SinkId) -> Result<Arc<Running>, DeliverError> {
        lock(&self.0.sinks).get(&id).cloned().ok_or(DeliverError::UnknownSink(id))
    }

    /// Ends all tasks and writes what they did. Requests in flight have two seconds.
    pub async fn stop(&self) {
        let all: Vec<_> = lock(&self.0.sinks).values().cloned().collect();
        self.0.stop_helpers();
        let mut tasks = Vec::new();
        for running in all {
            running.stopping.store(true, Ordering::SeqCst);
            running.nudge.notify_one();
            tasks.extend(lock(&running.task).take());
        }
        let deadline = tokio::time::Instant::now() + STOP_GRACE;
        for mut task in tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
        let shared = Arc::clone(&self.0);
        let written = self.0.runtime.spawn_blocking(move || shared.commit()).await;
        if let Ok(Err(error)) = written {
            tracing::error!(%error, "the progress of deliveries could not be written; some will be repeated");
        }
        lock(&self.0.sinks).clear();
    }
}

impl Running {
    /// Ends the task now; what is in flight is repeated.
    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
        self.settled_news.notify_waiters();
    }
}

impl Shared {
    fn fresh(&self, spec: &SinkSpec) -> Sink {
        let progress = Progress::new(spec.created_at_sequence);
        Sink::new(self.limits.clone(), Stored { progress, ..Stored::default() })
    }

    /// What is stored for the sink. Where nothing can be used it begins where it was created: nothing is skipped.
    fn load(&self, spec: &SinkSpec) -> (Sink, Option<String>) {
        let restarted = match self.store.load_sink(spec.id) {
            Ok(Some(stored)) if stored.progress.created_at == spec.created_at_sequence => {
                return (Sink::new(self.limits.clone(), stored), None);
            }
            Err(damaged) => Some(damaged.to_string()),
            // It is new, or everything was lost.
            Ok(_) if self.opened == Opened::Continued || self.source.head() <= spec.created_at_sequence + 1 => None,
            Ok(_) => Some("there was no file with the progress of deliveries".to_owned()),
        };
        if let Some(why) = &restarted {
            tracing::error!(
                sink = spec.id.0,
                name = spec.name,
                from = spec.created_at_sequence,
                why,
                "a sink begins again where it was created; its events are sent again"
            );
        }
        (self.fresh(spec), restarted)
    }

    /// The memory that each sink may use.
    pub(crate) fn memory_share(&self) -> usize {
        (self.limits.memory_bytes() / self.count.load(Ordering::Relaxed).max(1)).max(SHARE_BYTES_MIN)
    }

    fn stop_helpers(&self) {
        lock(&self.helpers).drain(..).for_each(|helper| helper.abort());
        self.is_rung.store(true, Ordering::SeqCst);
    }

    /// Writes what has changed. Blocks.
    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        let _one = lock(&self.commits);
        let all: Vec<_> = lock(&self.sinks).values().cloned().collect();
        let changed = all.iter().filter_map(|running| Some((Arc::clone(running), lock(&running.sink).changes()?)));
        let (running, changes): (Vec<_>, Vec<_>) =
            changed.map(|(running, changes)| (Arc::clone(&running), (running.spec.id, changes))).unzip();
        if changes.is_empty() {
            return Ok(());
        }
        let written = self.store.commit(&changes);
        if written.is_err() {
            for (running, (_, changes)) in running.into_iter().zip(changes) {
                lock(&running.sink).not_written(changes);
            }
        }
        written
    }
}

/// Tells the sinks for which something has become due.
async fn listen(shared: Arc<Shared>) {
    loop {
        shared.is_rung.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let began = std::time::Instant::now();
        let all: Vec<_> = lock(&shared.sinks).values().cloned().collect();
        for running in all {
            if running.due_read.load(Ordering::SeqCst) != shared.source.due(&running.spec) {
                running.nudge.notify_one();
            }
        }
        let pause = TELL_EVERY.max(began.elapsed() * TELL_PART);
        shared.bell.notified().await;
        tokio::time::sleep(pause).await;
    }
}

async fn commit_regularly(shared: Arc<Shared>) {
    let mut is_failing = false;
    loop {
        tokio::time::sleep(COMMIT_EVERY).await;
        let writer = Arc::clone(&shared);
        let written = tokio::task::spawn_blocking(move || writer.commit()).await;
        match written {
            Ok(Err(error)) if !is_failing => {
                tracing::error!(%error, "the progress of deliveries cannot be written; a crash would repeat them");
                is_failing = true;
            }
            Ok(Ok(())) => is_failing = false,
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deliveries(..)")
    }
}
