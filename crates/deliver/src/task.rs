//! The task of one sink: reads, sends and waits, as the state machine says.

use crate::event::{Place, SinkSpec};
use crate::limits::OnOverflow;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::service::{NEVER, Running, Shared, lock};
use crate::sink::{Next, Verdict};
use crate::source::SourceError;
use futures_util::stream::{FuturesUnordered, StreamExt};
use leasehold_model::Instant;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant as Moment;

/// The most events that are read at once.
const PAGE: usize = 1_000;
/// A page with fewer events than this is followed by a pause, so that events are read together.
const SMALL_PAGE: usize = 64;
const PAUSE: Duration = Duration::from_millis(5);
/// How often a sink reads records that contain nothing for it, to move its cursor.
const IDLE_EVERY: Duration = Duration::from_secs(10);
/// How often a sink that drops looks at its lag, and how soon the journal is read again after an error.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The longest time that a task sleeps.
const SLEEP_MAX: Duration = Duration::from_secs(300);

/// What was read: events, or only how many there are.
enum Read {
    Events(Events),
    Count { events: u64, known: Known },
}

struct Events {
    messages: Vec<Message>,
    from: u64,
    next: u64,
    overcounted: u64,
    known: Known,
}

/// How much was due, and then how long the journal was: what was counted by then is in these records.
#[derive(Clone, Copy)]
struct Known {
    due: u64,
    head: u64,
}

impl Known {
    fn now(shared: &Shared, spec: &SinkSpec) -> Self {
        // In this order: an event is counted after its record is durable.
        let due = shared.source.due(spec);
        Self { due, head: shared.source.head() }
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Read, SourceError>> + Send>>;

struct Task {
    shared: Arc<Shared>,
    running: Arc<Running>,
    reading: Option<Reading>,
    /// When it was read last, and when it may be read again.
    read_last: Moment,
    read_after: Moment,
    /// When what is due may be counted again.
    count_after: Moment,
    random: fastrand::Rng,
}

pub(crate) async fn run(shared: Arc<Shared>, running: Arc<Running>) {
    let (read_last, random) = (Moment::now(), fastrand::Rng::new());
    let mut task =
        Task { shared, running, reading: None, read_last, read_after: read_last, count_after: read_last, random };
    count(&task.shared, &task.running).await;
    task.run().await;
    task.running.ended.store(true, Ordering::SeqCst);
    task.running.settled_news.notify_waiters();
}

/// Counts what is due to a sink. Until that is known, the lag is too small.
pub(crate) async fn count(shared: &Arc<Shared>, running: &Running) {
    let cursor = lock(&running.sink).cursor().sequence;
    match count_from(Arc::clone(shared), running.spec.clone(), cursor).await {
        Ok(Read::Count { events, known }) => counted(running, events, known),
        Ok(Read::Events(_)) => {}
        Err(error) => cannot_read(running, &error),
    }
}

/// A disabled sink delivers nothing; what is due to it is counted, and when the oldest of it happened is looked up.
pub(crate) async fn watch_disabled(shared: Arc<Shared>, running: Arc<Running>) {
    count(&shared, &running).await;
    let mut from = lock(&running.sink).cursor().sequence;
    loop {
        let due = shared.source.due(&running.spec);
        let head = shared.source.head();
        if lock(&running.sink).lag(due) > 0 && from < head {
            match read(Arc::clone(&shared), running.spec.clone(), from, 1).await {
                Ok(Read::Events(page)) => {
                    let is_open = |message: &&Message| !lock(&running.sink).is_done(message.place);
                    if let Some(message) = page.messages.iter().find(is_open) {
                        *lock(&running.oldest) = Some(message.time);
                        return;
                    }
                    from = page.next;
                    continue;
                }
                Ok(Read::Count { .. }) => {}
                Err(SourceError::Gone { until }) => {
                    from = until;
                    continue;
                }
                Err(error) => cannot_read(&running, &error),
            }
        }
        tokio::time::sleep(IDLE_EVERY).await;
    }
}

fn counted(running: &Running, events: u64, known: Known) {
    running.counted_from.store(known.head, Ordering::SeqCst);
    lock(&running.sink).counted(events, known.head, known.due);
}

/// Counts what is due from a record on, on a thread that may block.
async fn count_from(shared: Arc<Shared>, spec: SinkSpec, from: u64) -> Result<Read, SourceError> {
    let closed = |_| SourceError::Later("the service stops".to_owned());
    let _permit = shared.readers.acquire().await.map_err(closed)?;
    let counter = Arc::clone(&shared);
    let count = move || {
        let known = Known::now(&counter, &spec);
        Ok(Read::Count { events: counter.source.count(&spec, from.min(known.head), known.head)?, known })
    };
    tokio::task::spawn_blocking(count).await.unwrap_or_else(|error| Err(SourceError::Later(error.to_string())))
}

fn cannot_read(running: &Running, error: &SourceError) {
    if lock(&running.source_error).replace(error.to_string()).is_none() {
        tracing::warn!(sink = running.spec.id.0, %error, "deliveries of a sink wait");
    }
}

async fn send(shared: Arc<Shared>, running: Arc<Running>, message: Arc<Message>, now: Instant) -> (Place, Outcome) {
    let outcome = shared.transport.send(&running.spec, &message, now).await;
    (message.place, outcome)
}

/// Reads a page, on a thread that may block.
async fn read(shared: Arc<Shared>, spec: SinkSpec, from: u64, most: usize) -> Result<Read, SourceError> {
    let closed = |_| SourceError::Later("the service stops".to_owned());
    let _permit = shared.readers.acquire().await.map_err(closed)?;
    let reader = Arc::clone(&shared);
    let read = move || {
        let known = Known::now(&reader, &spec);
        let page = reader.source.read(&spec, from, most)?;
        if page.next <= from {
            return Err(SourceError::Later(format!("nothing was read at record {from}")));
        }
        let messages = page.events.into_iter().map(|event| Message::new(event, &reader.origin)).collect();
        Ok(Read::Events(Events { messages, from, next: page.next, overcounted: page.overcounted, known }))
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(SourceError::Later(error.to_string())))
}

impl Task {
    async fn run(&mut self) {
        let mut sending = FuturesUnordered::new();
        let (shared, running) = (Arc::clone(&self.shared), Arc::clone(&self.running));
        loop {
            let is_stopping = running.stopping.load(Ordering::SeqCst);
            if is_stopping && sending.is_empty() {
                return;
            }
            let mut wake_at = Moment::now() + SLEEP_MAX;
            if !is_stopping {
                let until = loop {
                    let now = shared.clock.now();
                    let next = lock(&running.sink).next(now);
                    match next {
                        Next::Send(message) => {
                            sending.push(send(Arc::clone(&shared), Arc::clone(&running), message, now));
                        }
                        Next::Wait(until) => break until.map(|until| until.since(now).into()),
                    }
                };
                let tick = (shared.limits.on_overflow == OnOverflow::Drop).then_some(LOOK_EVERY);
                if let Some(sleep) = [until, tick].into_iter().flatten().min() {
                    wake_at = wake_at.min(Moment::now() + sleep);
                }
                if let Some(at) = self.read_or_wait() {
                    wake_at = wake_at.min(at);
                }
            }
            tokio::select! {
                Some((place, outcome)) = sending.next() => self.finished(place, &outcome),
                page = async { self.reading.as_mut().expect("checked").await }, if self.reading.is_some() => {
                    self.reading = None;
                    self.take(page);
                }
                () = tokio::time::sleep_until(wake_at) => {}
                () = running.nudge.notified() => {}
            }
            self.drop_excess();
        }
    }

    /// Begins to read if the sink has room and it is time. Answers when it will be.
    fn read_or_wait(&mut self) -> Option<Moment> {
        if self.reading.is_some() {
            return None;
        }
        if self.shared.limits.on_overflow == OnOverflow::Drop
            && self.count_after <= Moment::now()
            && let due = self.shared.source.due(&self.running.spec)
            && let Some(from) = lock(&self.running.sink).wants_count(due)
        {
            self.count_after = Moment::now() + LOOK_EVERY;
            self.reading = Some(Box::pin(count_from(Arc::clone(&self.shared), self.running.spec.clone(), from)));
            return None;
        }
        let (from, room) = {
            let mut sink = lock(&self.running.sink);
            sink.share(self.shared.memory_share());
            sink.wants()?
        };
        // Records in which there is nothing for this sink are read now and then.
        let is_idle = self.running.due_read.load(Ordering::SeqCst) == self.shared.source.due(&self.running.spec);
        let at = if is_idle { self.read_last + IDLE_EVERY } else { self.read_after };
        let now = Moment::now();
        if at > now {
            return Some(at);
        }
        let known = Known::now(&self.shared, &self.running.spec);
        if from >= known.head {
            // Events may be counted after they were read: they are not due any more.
            self.read_to_head(known);
            self.read_last = now;
            return Some(now + IDLE_EVERY);
        }
        let spec = self.running.spec.clone();
        self.reading = Some(Box::pin(read(Arc::clone(&self.shared), spec, from, room.min(PAGE))));
        None
    }

    /// Takes what was read.
    fn take(&mut self, page: Result<Read, SourceError>) {
        self.read_last = Moment::now();
        self.read_after = self.read_last;
        match page {
            Ok(Read::Count { events, known }) => counted(&self.running, events, known),
            Ok(Read::Events(Events { messages, from, next, overcounted, known })) => {
                *lock(&self.running.source_error) = None;
                let is_small = messages.len() < SMALL_PAGE;
                {
                    let mut sink = lock(&self.running.sink);
                    sink.read(messages, next);
                    // What was there at the start was counted exactly.
                    if from >= self.running.counted_from.load(Ordering::SeqCst) {
                        sink.overcounted(overcounted);
                    }
                }
                if next >= known.head {
                    self.read_to_head(known);
                    if is_small {
                        self.read_after += PAUSE;
                    }
                } else {
                    self.running.due_read.store(NEVER, Ordering::SeqCst);
                }
            }
            Err(SourceError::Gone { until }) => {
                let from = lock(&self.running.sink).lost(until);
                let (sink, name) = (self.running.spec.id.0, &self.running.spec.name);
                tracing::warn!(
                    sink,
                    name,
                    from,
                    until,
                    "records were archived or deleted before a webhook had their events; it goes on after them"
                );
                self.running.due_read.store(NEVER, Ordering::SeqCst);
            }
            Err(error) => {
                cannot_read(&self.running, &error);
                self.running.due_read.store(NEVER, Ordering::SeqCst);
                self.read_after += LOOK_EVERY;
            }
        }
    }

    /// Everything that was due then has been read: the lag is exact again, whatever was counted.
    fn read_to_head(&self, known: Known) {
        lock(&self.running.sink).set_unread(0, known.due);
        self.running.due_read.store(known.due, Ordering::SeqCst);
    }

    fn drop_excess(&self) {
        if self.shared.limits.on_overflow == OnOverflow::Drop {
            let dropped = lock(&self.running.sink).drop_excess();
            if dropped > 0 {
                let (sink, name) = (self.running.spec.id.0, &self.running.spec.name);
                tracing::warn!(sink, name, dropped, "events were skipped; `reconcile` sends them");
            }
        }
    }

    fn finished(&mut self, place: Place, outcome: &Outcome) {
        let (now, random) = (self.shared.clock.now(), self.random.u64(..));
        let (verdict, settled) = {
            let mut sink = lock(&self.running.sink);
            (sink.finish(place, outcome, now, random), sink.take_settled())
        };
        if !settled.is_empty() {
            lock(&self.running.settled).extend(settled);
            self.running.settled_news.notify_waiters();
        }
        let (sink, name) = (self.running.spec.id.0, &self.running.spec.name);
        match verdict {
            Verdict::Delivered | Verdict::Again => {}
            Verdict::Dead => {
                tracing::warn!(sink, name, record = place.sequence, why = outcome.reason(), "an event was set aside");
            }
            Verdict::Disabled => {
                tracing::warn!(sink, name, "the endpoint answered 410 Gone; the sink is disabled");
                (self.shared.on_disabled)(self.running.spec.id);
                self.running.settled_news.notify_waiters();
            }
        }
    }
}
