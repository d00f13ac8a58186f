//! Sending events again: dead letters, dropped events, and everything from some record on.
//!
//! The events go through the same lanes as all others, so an endpoint never gets two events of one key at the same time.
//! They keep their IDs. Dead and dropped events arrive after later events of their key: that is why they are listed.

use crate::event::{Event, Place, SinkId};
use crate::message::Message;
use crate::ranges::Ranges;
use crate::service::{DeliverError, Deliveries, Running, lock};
use crate::sink::Sink;
use crate::source::SourceError;
use leasehold_model::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many events are read and sent before progress is noted.
const PAGE: usize = 500;
/// Places that are this many records apart are read together.
const NEAR: u64 = 64;

static JOBS: AtomicU64 = AtomicU64::new(1);

/// Which dead letters are sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    /// The one with this event ID.
    One(String),
}

/// What was due to a sink in a time, and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub due: u64,
    pub acknowledged: u64,
    /// Delivered by themselves, sooner or later.
    pub pending: u64,
    pub dead: u64,
    pub dropped: u64,
}

impl Plan {
    /// What `reconcile` sends.
    pub fn to_send(&self) -> u64 {
        self.dead + self.dropped
    }
}

/// What a job has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub sent: u64,
    pub delivered: u64,
    /// Set aside, again or for the first time.
    pub dead: u64,
    /// Records that were archived or deleted, so that their events could not be sent: the first of each range, and the
    /// one after it.
    pub unreadable: Vec<(u64, u64)>,
}

/// What is sent again.
#[derive(Clone, Copy)]
enum Choice {
    /// Dead and dropped events.
    Missing,
    Dead,
    One(Place),
    Everything,
}

impl Choice {
    fn takes(self, sink: &Sink, place: Place) -> bool {
        match self {
            Self::Missing => sink.dead().contains(&place) || sink.dropped().contains(place),
            Self::Dead => sink.dead().contains(&place),
            Self::One(one) => one == place,
            Self::Everything => true,
        }
    }
}

/// Ranges that contain these places and not many others.
fn around(places: impl Iterator<Item = Place>) -> Ranges {
    let mut all = Ranges::default();
    let mut last: Option<Place> = None;
    for place in places {
        let from = last.filter(|last| place.sequence - last.sequence <= NEAR).unwrap_or(place);
        all.add(from, place.after());
        last = Some(place);
    }
    all
}

impl Deliveries {
    /// Sends dead letters again. `progress` is called whenever some of them came to an end.
    pub async fn retry(&self, id: SinkId, which: Which, progress: impl FnMut(&Report)) -> Result<Report, DeliverError> {
        let running = self.running(id)?;
        let (choice, ranges) = match which {
            Which::All => (Choice::Dead, around(lock(&running.sink).dead().iter().copied())),
            Which::One(event) => {
                let (deliveries, wanted) = (self.clone(), event.clone());
                let letters = move || deliveries.dead_letters(id, Place::default(), usize::MAX);
                let letters = tokio::task::spawn_blocking(letters).await.map_err(|_| DeliverError::Stopped)??;
                let found = letters.into_iter().find(|letter| letter.id == wanted);
                let place = found.ok_or(DeliverError::NoDeadLetter(event))?.place;
                (Choice::One(place), around([place].into_iter()))
            }
        };
        self.resend(&running, ranges, choice, progress).await
    }

    /// How many events a replay from a record on sends, as things are now.
    pub async fn replayable(&self, id: SinkId, from: u64) -> Result<u64, DeliverError> {
        let running = self.running(id)?;
        let to = lock(&running.sink).read_next();
        self.count(&running, from, to.max(from)).await
    }

    /// Sends every event again from a record on, up to those that are delivered by themselves. The cursor stays.
    pub async fn replay(&self, id: SinkId, from: u64, progress: impl FnMut(&Report)) -> Result<Report, DeliverError> {
        let running = self.running(id)?;
        let mut ranges = Ranges::default();
        ranges.add(Place::start_of(from), Place::start_of(lock(&running.sink).read_next()));
        self.resend(&running, ranges, Choice::Everything, progress).await
    }

    /// Compares what was due in [since, until) with what was acknowledged. Sends nothing.
    pub async fn plan(&self, id: SinkId, since: Instant, until: Instant) -> Result<Plan, DeliverError> {
        let running = self.running(id)?;
        let (from, to) = self.window(&running, since, until).await?;
        let (start, end) = (Place::start_of(from), Place::start_of(to));
        // One look at the sink; the journal before `to` does not change.
        let (read_next, in_memory, dead, dropped, done) = {
            let sink = lock(&running.sink);
            let inside = |place: &Place| (start..end).contains(place);
            let read_next = sink.read_next();
            let done = sink.done().within(Place::start_of(read_next).max(start), end);
            let in_memory = sink.pending().filter(inside).count() as u64;
            let dead = if start < end { sink.dead().range(start..end).count() as u64 } else { 0 };
            (read_next, in_memory, dead, sink.dropped().within(start, end), done)
        };
        let due = self.count(&running, from, to).await?;
        let unread = self.count(&running, read_next.clamp(from, to), to).await?;
        let done = self.count_within(&running, &done).await?;
        let dropped = self.count_within(&running, &dropped).await?;
        let pending = in_memory + unread.saturating_sub(done);
        let acknowledged = due.saturating_sub(pending + dead + dropped);
        Ok(Plan { due, acknowledged, pending, dead, dropped })
    }

    /// Sends what was due in [since, until) and is dead or dropped. A second run sends nothing.
    pub async fn reconcile(
        &self,
        id: SinkId,
        since: Instant,
        until: Instant,
        progress: impl FnMut(&Report),
    ) -> Result<Report, DeliverError> {
        let running = self.running(id)?;
        let (from, to) = self.window(&running, since, until).await?;
        let (start, end) = (Place::start_of(from), Place::start_of(to));
        let ranges = {
            let sink = lock(&running.sink);
            let mut ranges = sink.dropped().within(start, end);
            let dead = sink.dead().iter().copied().filter(|place| (start..end).contains(place));
            around(dead).iter().for_each(|(from, to)| ranges.add(from, to));
            ranges
        };
        self.resend(&running, ranges, Choice::Missing, progress).await
    }

    /// The records of a time, from those on that are due to the sink at all.
    pub(crate) async fn window(
        &self,
        running: &Running,
        since: Instant,
        until: Instant,
    ) -> Result<(u64, u64), DeliverError> {
        let (shared, first) = (Arc::clone(&self.0), running.spec.created_at_sequence);
        let find = move || {
            let from = shared.source.sequence_at(since)?.max(first);
            Ok((from, shared.source.sequence_at(until)?.max(from)))
        };
        let found = tokio::task::spawn_blocking(find).await.map_err(|_| DeliverError::Stopped)?;
        found.map_err(|error: SourceError| error.into())
    }

    async fn count(&self, running: &Arc<Running>, from: u64, to: u64) -> Result<u64, DeliverError> {
        let (shared, running) = (Arc::clone(&self.0), Arc::clone(running));
        let count = move || shared.source.count(&running.spec, from, to);
        let counted = tokio::task::spawn_blocking(count).await.map_err(|_| DeliverError::Stopped)?;
        Ok(counted?)
    }

    async fn count_within(&self, running: &Arc<Running>, ranges: &Ranges) -> Result<u64, DeliverError> {
        let mut events = 0;
        for (from, to) in ranges.iter() {
            // Whole records are counted, the others read.
            if from.position == 0 && to.position == 0 {
                events += self.count(running, from.sequence, to.sequence).await?;
                continue;
            }
            let mut at = from.sequence;
            while Place::start_of(at) < to {
                match self.read(running, at, from, to).await {
                    Ok((page, next)) => (events, at) = (events + page.len() as u64, next),
                    Err(DeliverError::Gone(until)) => at = until.max(at + 1),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(events)
    }

    /// Events of the records from `at` on that are in [from, to), and where to read on.
    pub(crate) async fn read(
        &self,
        running: &Arc<Running>,
        at: u64,
        from: Place,
        to: Place,
    ) -> Result<(Vec<Event>, u64), DeliverError> {
        let (shared, running) = (Arc::clone(&self.0), Arc::clone(running));
        let read = move || shared.source.read(&running.spec, at, PAGE);
        let page = tokio::task::spawn_blocking(read).await.map_err(|_| DeliverError::Stopped)?;
        let mut page = page?;
        if page.next <= at {
            return Err(DeliverError::Unread(format!("nothing was read at record {at}")));
        }
        page.events.retain(|event| (from..to).contains(&event.place()));
        Ok((page.events, page.next))
    }

    async fn resend(
        &self,
        running: &Arc<Running>,
        ranges: Ranges,
        choice: Choice,
        mut progress: impl FnMut(&Report),
    ) -> Result<Report, DeliverError> {
        let _only = running.job.try_lock().map_err(|_| DeliverError::Busy)?;
        if !running.spec.enabled || lock(&running.sink).is_disabled() {
            return Err(DeliverError::Disabled);
        }
        let job = JOBS.fetch_add(1, Ordering::Relaxed);
        let mut report = Report::default();
        for (from, to) in ranges.iter() {
            let mut at = from.sequence;
            while Place::start_of(at) < to {
                let (events, next) = match self.read(running, at, from, to).await {
                    Ok(page) => page,
                    Err(DeliverError::Gone(until)) => {
                        let until = until.max(at + 1);
                        report.unreadable.push((at, until.min(to.after_record())));
                        at = until;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let (sent, dropped, healing) = {
                    let mut sink = lock(&running.sink);
                    let (start, end) = (Place::start_of(at).max(from), Place::start_of(next).min(to));
                    let healing = sink.dropped().within(start, end);
                    let chosen = events.into_iter().filter(|event| choice.takes(&sink, event.place()));
                    let messages: Vec<_> = chosen.map(|event| Message::new(event, &self.0.origin)).collect();
                    let of_dropped = |message: &&Message| sink.dropped().contains(message.place);
                    let dropped = messages.iter().filter(of_dropped).count() as u64;
                    (sink.inject(messages, job), dropped, healing)
                };
                running.nudge.notify_one();
                report.sent += sent as u64;
                self.settle(running, job, sent, &mut report, &mut progress).await?;
                // Everything was sent in this part, unless only some of it was asked for.
                if matches!(choice, Choice::Missing | Choice::Everything) {
                    lock(&running.sink).healed(&healing, dropped);
                }
                at = next;
            }
        }
        let deliveries = self.clone();
        let committed = tokio::task::spawn_blocking(move || deliveries.0.commit()).await;
        match committed {
            Ok(Ok(())) => Ok(report),
            Ok(Err(error)) => Err(DeliverError::Store(error.to_string())),
            Err(_) => Err(DeliverError::Stopped),
        }
    }

    /// Waits until that many events of the job came to an end.
    async fn settle(
        &self,
        running: &Running,
        job: u64,
        sent: usize,
        report: &mut Report,
        progress: &mut impl FnMut(&Report),
    ) -> Result<(), DeliverError> {
        let mut left = sent;
        loop {
            let mut news = std::pin::pin!(running.settled_news.notified());
            news.as_mut().enable();
            let before = report.clone();
            for (of, _, is_delivered) in std::mem::take(&mut *lock(&running.settled)) {
                if of == job {
                    left -= 1;
                    report.delivered += u64::from(is_delivered);
                    report.dead += u64::from(!is_delivered);
                }
            }
            if *report != before {
                progress(report);
            }
            if left == 0 {
                return Ok(());
            }
            if running.ended.load(Ordering::SeqCst) || running.stopping.load(Ordering::SeqCst) {
                return Err(DeliverError::Stopped);
            }
            if lock(&running.sink).is_disabled() || !running.spec.enabled {
                return Err(DeliverError::Disabled);
            }
            news.await;
        }
    }
}
