//! One sink: a state machine without I/O. Time and randomness are parameters.
//!
//! The caller reads events when [`Sink::wants`] says so, sends what [`Sink::next`] returns, reports what came of it to
//! [`Sink::finish`], and writes what [`Sink::changes`] returns about once a second.

use crate::event::Place;
use crate::lanes::{JobNo, Lanes, Origin};
use crate::limits::{ATTEMPTS_KEPT, DEAD_LETTERS_MAX, Limits, RANGES_MAX};
use crate::message::Message;
use crate::outcome::{Meaning, Outcome, backoff};
use crate::progress::{Attempt, Changes, DeadLetter, Progress, Stored};
use crate::ranges::Ranges;
use leasehold_model::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

mod facts;
mod overflow;

/// What an event needs in memory; an estimate.
const EVENT_BYTES: usize = 1 << 10;

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Send(Arc<Message>),
    /// Nothing until this time, or until something else happens.
    Wait(Option<Instant>),
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// It is tried again.
    Again,
    /// It is set aside.
    Dead,
    /// The endpoint answered 410: the sink stops.
    Disabled,
}

/// The endpoint as a whole does not answer as it should.
#[derive(Debug)]
struct Outage {
    failures: u32,
    until: Instant,
    /// The one request that is sent to see whether it is over.
    probe: Option<Place>,
}

#[derive(Debug)]
struct Flight {
    at: Instant,
    /// Outages so far: an answer to what was sent before an outage says nothing about its end.
    outages: u64,
    /// Successes so far.
    successes: u64,
}

#[derive(Debug)]
pub struct Sink {
    limits: Limits,
    /// Bytes of the memory of all sinks that this one may use.
    share: usize,
    progress: Progress,
    /// What was done beyond the cursor before this process started.
    carried: Ranges,
    lanes: Lanes,
    flights: BTreeMap<Place, Flight>,
    read_next: u64,
    ordinal: u64,
    /// The last event that was dropped, by ordinal and place.
    last_dropped: Option<(u64, Place)>,
    outage: Option<Outage>,
    outages: u64,
    successes: u64,
    /// How many requests may be in flight now: one after an outage, then more with each success.
    window: usize,
    dead: BTreeSet<Place>,
    attempts: VecDeque<Attempt>,
    changed_dead: BTreeMap<Place, Option<DeadLetter>>,
    /// Events of jobs that came to an end, and whether they were delivered.
    settled: Vec<(JobNo, Place, bool)>,
    disabled: bool,
    changed: bool,
    has_new_attempts: bool,
    /// Events that had not been read when `due` was counted, the counter then, and how many were read since.
    unread: u64,
    due_then: u64,
    read_since: u64,
    /// Exactly so many events are due from the records that have not been read, before this one.
    counted: u64,
    counted_to: u64,
    last_error: Option<String>,
}

impl Sink {
    pub fn new(limits: Limits, stored: Stored) -> Self {
        let Stored { progress, dead, attempts } = stored;
        let last_error = attempts.last().and_then(Attempt::failure);
        Self {
            window: limits.in_flight,
            share: usize::MAX,
            limits,
            carried: progress.done.clone(),
            read_next: progress.cursor.sequence,
            progress,
            lanes: Lanes::default(),
            flights: BTreeMap::new(),
            ordinal: 0,
            last_dropped: None,
            outage: None,
            outages: 0,
            successes: 0,
            dead: dead.into_iter().collect(),
            attempts: attempts.into(),
            changed_dead: BTreeMap::new(),
            settled: Vec::new(),
            disabled: false,
            changed: false,
            has_new_attempts: false,
            unread: 0,
            due_then: 0,
            read_since: 0,
            counted: 0,
            counted_to: 0,
            last_error,
        }
    }

    /// The same sink from its cursor on: what was in flight is forgotten and repeated.
    pub fn restarted(&mut self, limits: Limits) -> Self {
        let changes = self.changes();
        let progress = Progress { cursor: self.cursor(), done: self.done(), ..self.progress.clone() };
        let dead = self.dead.iter().copied().collect();
        let attempts = self.attempts.iter().cloned().collect();
        let mut sink = Self::new(limits, Stored { progress, dead, attempts });
        if let Some(changes) = changes {
            sink.not_written(changes);
        }
        sink
    }

    /// The same sink from another record on. Events between the cursor and a later record are skipped.
    pub fn moved(&mut self, limits: Limits, sequence: u64, skipped: u64) -> Self {
        let mut sink = self.restarted(limits);
        let (before, after) = (sink.progress.cursor, Place::start_of(sequence));
        if before < after {
            sink.progress.dropped.add(before, after);
            // What is done, and only that, was not skipped.
            sink.progress.done.iter().for_each(|(from, to)| sink.progress.dropped.remove(from, to));
            sink.progress.counters.dropped += skipped;
            sink.progress.counters.dropped_open += skipped;
        } else {
            sink.progress.done = Ranges::default();
        }
        sink.carried = sink.progress.done.clone();
        sink.progress.cursor = after;
        sink.read_next = sequence;
        sink.changed = true;
        sink
    }

    /// Where to read on and about how many events, if there is room.
    pub fn wants(&self) -> Option<(u64, usize)> {
        let room = self.limits.buffer_size.saturating_sub(self.lanes.len());
        // So that a page is not much larger than what is left.
        let room = room.min(self.bytes_max().saturating_sub(self.lanes.bytes()) / EVENT_BYTES + 1);
        (!self.disabled && !self.is_full()).then_some((self.read_next, room))
    }

    /// Limits the memory of this sink further: there may be many.
    pub fn share(&mut self, bytes: usize) {
        self.share = bytes;
    }

    fn bytes_max(&self) -> usize {
        self.limits.buffer_bytes.min(self.share)
    }

    fn is_full(&self) -> bool {
        self.lanes.len() >= self.limits.buffer_size || self.lanes.bytes() >= self.bytes_max()
    }

    /// Takes the events of the records from where [`Sink::wants`] said, up to `next`.
    pub fn read(&mut self, messages: Vec<Message>, next: u64) {
        assert!(next >= self.read_next, "a page that goes backwards");
        self.changed |= next > self.read_next;
        self.count_read(messages.len() as u64, next);
        for message in messages {
            assert!((self.read_next..next).contains(&message.place.sequence), "an event outside of its page");
            let ordinal = self.ordinal;
            self.ordinal += 1;
            self.read_since += 1;
            let settled = message.place < self.progress.cursor || self.carried.contains(message.place);
            if !settled {
                self.lanes.add(message, Origin::Cursor { ordinal });
            }
        }
        self.read_next = next;
    }

    /// The next event to send.
    pub fn next(&mut self, now: Instant) -> Next {
        if self.disabled {
            return Next::Wait(None);
        }
        self.lanes.release(now);
        let place = match &self.outage {
            Some(Outage { probe: Some(_), .. }) => return Next::Wait(None),
            Some(outage) if now < outage.until => return Next::Wait(Some(outage.until)),
            Some(_) => self.lanes.least_failed(),
            None if self.lanes.flying() >= self.window => return Next::Wait(None),
            None => self.lanes.oldest_ready(),
        };
        let Some(place) = place else { return Next::Wait(self.lanes.next_release()) };
        if let Some(outage) = &mut self.outage {
            outage.probe = Some(place);
        }
        self.flights.insert(place, Flight { at: now, outages: self.outages, successes: self.successes });
        Next::Send(self.lanes.start(place))
    }

    /// Takes note of what came of sending an event.
    pub fn finish(&mut self, place: Place, outcome: &Outcome, now: Instant, random: u64) -> Verdict {
        let flight = self.flights.remove(&place).expect("an answer for something that was sent");
        let is_probe = self.outage.as_ref().is_some_and(|outage| outage.probe == Some(place));
        self.note(place, &flight, outcome, now);
        match outcome.meaning() {
            Meaning::Delivered => {
                self.successes += 1;
                self.progress.last_success_ns = Some(now.0);
                self.progress.counters.delivered += 1;
                self.recover(is_probe);
                let item = self.lanes.remove(place);
                if self.dead.remove(&place) {
                    self.changed_dead.insert(place, None);
                }
                if let Origin::Job(job) = item.origin {
                    self.settled.push((job, place, true));
                }
                Verdict::Delivered
            }
            Meaning::Gone => {
                self.progress.counters.failures += 1;
                self.lanes.land(place);
                // Said once, although there may be more in flight.
                if std::mem::replace(&mut self.disabled, true) { Verdict::Again } else { Verdict::Disabled }
            }
            Meaning::Poison => {
                self.progress.counters.failures += 1;
                self.recover(is_probe);
                self.bury(place, outcome, now);
                Verdict::Dead
            }
            Meaning::Retry => {
                self.progress.counters.failures += 1;
                self.retry(place, &flight, is_probe, outcome, now, random)
            }
        }
    }

    /// The endpoint answered: an outage is over if this was sent to find out.
    fn recover(&mut self, is_probe: bool) {
        if is_probe {
            self.outage = None;
            self.window = 1;
        } else if self.outage.is_none() {
            self.window = (self.window + 1).min(self.limits.in_flight);
        }
    }

    fn retry(
        &mut self,
        place: Place,
        flight: &Flight,
        is_probe: bool,
        outcome: &Outcome,
        now: Instant,
        random: u64,
    ) -> Verdict {
        let order = self.lanes.land(place);
        let is_full = self.is_full();
        let (successes, limits) = (self.successes, self.limits.clone());
        let asked = outcome.retry_after().map(|wait| wait.min(limits.retry_after_max)).unwrap_or(Span::ZERO);
        let wait = |failures| backoff(limits.backoff_base, limits.backoff_max, failures, random).max(asked);
        let lane = self.lanes.lane(&order);
        lane.failures = lane.failures.saturating_add(1);
        // Others succeeded since this was sent, or since this key failed before: then it is the key that fails.
        let others_succeed = successes > lane.successes_then.unwrap_or(flight.successes).min(flight.successes);
        lane.successes_then = Some(successes);
        // Once the memory is full of such keys there is no other left to succeed.
        let is_crowded = lane.alone > 0 && is_full && outcome.status().is_some();
        let is_alone = (others_succeed && self.outage.is_none()) || (is_crowded && (is_probe || self.outage.is_none()));
        if is_alone && !outcome.is_throttled() {
            self.outage = None;
            lane.alone = lane.alone.saturating_add(1);
            let since = *lane.alone_since.get_or_insert(now);
            if lane.alone >= limits.key_attempts && now.since(since) >= limits.key_time {
                let (alone, since) = (lane.alone, lane.alone_since);
                self.bury(place, outcome, now);
                // The next event of the key has one attempt: it may be the key and not the event.
                self.lanes.suspect(&order, alone, since);
                return Verdict::Dead;
            }
            let until = now.saturating_add(wait(lane.alone));
            self.lanes.wait(&order, Some(until));
            return Verdict::Again;
        }
        match &mut self.outage {
            // Sent before the outage was noticed; only what the endpoint asks for is new.
            Some(outage) if !is_probe => outage.until = outage.until.max(now.saturating_add(asked)),
            None if flight.outages != self.outages => {
                // It was sent before an outage that is over.
                let until = now.saturating_add(wait(1));
                self.lanes.wait(&order, Some(until));
            }
            outage => {
                let failures = outage.as_ref().map_or(0, |outage| outage.failures).saturating_add(1);
                let until = now.saturating_add(wait(failures));
                *outage = Some(Outage { failures, until, probe: None });
                self.outages += u64::from(failures == 1);
            }
        }
        Verdict::Again
    }

    /// Sets an event aside.
    fn bury(&mut self, place: Place, outcome: &Outcome, now: Instant) {
        let order = match self.lanes.get(place) {
            Some(item) => Arc::clone(&item.message.order),
            None => unreachable!("an event that is in memory"),
        };
        let attempts = self.lanes.lane(&order).failures.max(1);
        let item = self.lanes.remove(place);
        let letter = DeadLetter {
            place,
            id: item.message.id.clone(),
            kind: item.message.kind.clone(),
            order: order.to_string(),
            time_ns: item.message.time.0,
            dead_at_ns: now.0,
            attempts,
            status: outcome.status(),
            reason: outcome.reason(),
        };
        self.progress.counters.dead += u64::from(self.dead.insert(place));
        self.changed_dead.insert(place, Some(letter));
        if self.dead.len() > DEAD_LETTERS_MAX
            && let Some(oldest) = self.dead.pop_first()
        {
            self.changed_dead.insert(oldest, None);
            self.skipped(oldest, oldest.after());
        }
        if let Origin::Job(job) = item.origin {
            self.settled.push((job, place, false));
        }
    }

    /// Remembers one more event as skipped. There is no other event between `from` and it that is not.
    fn skipped(&mut self, from: Place, to: Place) {
        self.progress.dropped.add(from, to);
        self.progress.dropped.coarsen(RANGES_MAX);
        self.progress.counters.dropped += 1;
        self.progress.counters.dropped_open += 1;
        self.changed = true;
    }

    fn note(&mut self, place: Place, flight: &Flight, outcome: &Outcome, now: Instant) {
        let message = &self.lanes.get(place).expect("an event that is in memory").message;
        let error = match outcome {
            Outcome::Answered { .. } => None,
            Outcome::Failed(_) => Some(outcome.reason()),
        };
        let attempt = Attempt {
            at_ns: flight.at.0,
            event_id: message.id.clone(),
            kind: message.kind.clone(),
            status: outcome.status(),
            error,
            took_ns: now.since(flight.at).0,
        };
        self.remember(attempt);
        self.progress.counters.attempts += 1;
        // Of the last attempt only: what failed before it is in the list of attempts.
        self.last_error = (outcome.meaning() != Meaning::Delivered).then(|| outcome.reason());
    }

    /// Adds to the list of attempts.
    pub(crate) fn remember(&mut self, attempt: Attempt) {
        if self.attempts.len() >= ATTEMPTS_KEPT {
            self.attempts.pop_front();
        }
        self.attempts.push_back(attempt);
        self.has_new_attempts = true;
        self.changed = true;
    }

    /// Sends these events again for a job. Those that wait to be sent anyway, or have not been read, are left out: they
    /// are delivered by themselves. Those that a job left behind when it was cancelled are taken over. Returns how many
    /// are sent.
    pub fn inject(&mut self, messages: Vec<Message>, job: JobNo) -> usize {
        let end = Place::start_of(self.read_next);
        let mut sent = 0;
        for message in messages.into_iter().filter(|message| message.place < end) {
            let is_sent = match self.lanes.get(message.place).map(|item| item.origin) {
                None => {
                    self.lanes.add(message, Origin::Job(job));
                    true
                }
                Some(Origin::Job(_)) => {
                    self.lanes.adopt(message.place, job);
                    true
                }
                Some(Origin::Cursor { .. }) => false,
            };
            sent += usize::from(is_sent);
        }
        sent
    }

    /// Events of jobs that came to an end since the last call.
    pub fn take_settled(&mut self) -> Vec<(JobNo, Place, bool)> {
        std::mem::take(&mut self.settled)
    }

    /// A job has sent everything in these ranges, which were dropped when it began; others may be dropped by now.
    pub fn healed(&mut self, sent: &Ranges, events: u64) {
        for (from, to) in sent.iter() {
            self.progress.dropped.remove(from, to);
            self.progress.lost.remove(from, to);
        }
        let open = &mut self.progress.counters.dropped_open;
        // Where ranges were joined the count is not exact, but it is zero only when nothing is left.
        *open = if self.progress.dropped.is_empty() { 0 } else { open.saturating_sub(events).max(1) };
        self.changed = true;
    }

    /// Everything before this place is acknowledged, dead or dropped.
    pub fn cursor(&self) -> Place {
        let first = self.lanes.outstanding().next().map(|(place, ..)| place);
        first.unwrap_or(Place::start_of(self.read_next)).max(self.progress.cursor)
    }

    /// What is acknowledged, dead or dropped beyond the cursor. The ends of the ranges are those of events, which are
    /// told apart by their ordinals: where one is missing, events between two others are done.
    pub fn done(&self) -> Ranges {
        let mut done = Ranges::default();
        let end = (Place::start_of(self.read_next), self.ordinal);
        let outstanding = self.lanes.outstanding().map(|(place, ordinal, _)| (place, ordinal));
        let mut before: Option<(Place, u64)> = None;
        for (place, ordinal) in outstanding.chain([end]) {
            if let Some((earlier, count)) = before
                && count + 1 != ordinal
            {
                done.add(earlier.after(), place);
            }
            before = Some((place, ordinal));
        }
        self.carried.within(end.0, Place::start_of(u64::MAX)).iter().for_each(|(from, to)| done.add(from, to));
        done
    }

    /// What has to be written, if anything changed.
    pub fn changes(&mut self) -> Option<Changes> {
        if !self.changed && self.changed_dead.is_empty() {
            return None;
        }
        self.changed = false;
        self.progress.cursor = self.cursor();
        self.progress.dead = self.dead.len() as u64;
        let mut done = self.done();
        // What is not stored is repeated after a crash.
        done.truncate(RANGES_MAX);
        let progress = Progress { done, ..self.progress.clone() };
        let dead = std::mem::take(&mut self.changed_dead);
        let has_new_attempts = std::mem::take(&mut self.has_new_attempts);
        let attempts = has_new_attempts.then(|| self.attempts.iter().cloned().collect());
        Some(Changes { progress, dead, attempts })
    }

    /// The changes could not be written: they are part of the next ones.
    pub fn not_written(&mut self, changes: Changes) {
        self.changed = true;
        self.has_new_attempts |= changes.attempts.is_some();
        for (place, letter) in changes.dead {
            self.changed_dead.entry(place).or_insert(letter);
        }
    }
}
