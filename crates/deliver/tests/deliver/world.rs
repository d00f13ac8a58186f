//! A world for the tests of one sink: a journal in memory, an endpoint that misbehaves on request, a store that a crash
//! leaves as it was last committed, and time that moves only when nothing else happens.

use leasehold_deliver::sink::{Next, Sink, Verdict};
use leasehold_deliver::{Changes, DeadLetter, Event, Limits, Message, Outcome, Place, Progress, Stored};
use leasehold_model::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) const SECOND: Span = Span::from_secs(1);

/// How the endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Up,
    /// Connections are refused.
    Down,
    /// Answers after two seconds.
    Slow,
    /// Answers with this status; 429 and 503 come with a Retry-After.
    Status(u16),
    /// Takes the event, then loses the answer.
    Forgetful,
}

/// What was stored when the process was killed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) progress: Option<Progress>,
    pub(crate) dead: BTreeMap<Place, DeadLetter>,
}

impl Disk {
    fn write(&mut self, changes: Changes) {
        for (place, letter) in changes.dead {
            match letter {
                Some(letter) => drop(self.dead.insert(place, letter)),
                None => drop(self.dead.remove(&place)),
            }
        }
        assert_eq!(changes.progress.dead, self.dead.len() as u64);
        self.progress = Some(changes.progress);
    }

    fn stored(&self) -> Stored {
        let progress = self.progress.clone().unwrap_or_else(|| Progress::new(0));
        Stored { progress, dead: self.dead.keys().copied().collect(), attempts: Vec::new() }
    }
}

struct Flight {
    ends: Instant,
    outcome: Outcome,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) limits: Limits,
    pub(crate) sink: Sink,
    pub(crate) disk: Disk,
    /// The journal: the events of each record.
    pub(crate) journal: Vec<Vec<(String, Instant)>>,
    pub(crate) due: u64,
    pub(crate) mood: Mood,
    /// Events that are always answered with this status, and keys likewise.
    pub(crate) poison: HashMap<Place, u16>,
    pub(crate) poison_keys: HashMap<String, u16>,
    flights: BTreeMap<Place, Flight>,
    committed_at: Instant,
    /// What the endpoint got, in order.
    pub(crate) received: Vec<Place>,
    seen: BTreeSet<Place>,
    by_key: HashMap<String, Vec<Place>>,
    pub(crate) jobs: BTreeSet<Place>,
    pub(crate) random: fastrand::Rng,
    pub(crate) requests: u64,
    pub(crate) most_in_memory: (usize, usize),
    pub(crate) disabled: bool,
    /// Nothing can be written.
    pub(crate) is_disk_full: bool,
    job: u64,
    pub(crate) latency: Span,
}

pub(crate) fn id(place: Place) -> String {
    format!("evt_{}_{}", place.sequence, place.position)
}

impl World {
    pub(crate) fn new(limits: Limits, seed: u64) -> Self {
        Self {
            now: Instant::from_secs(1_770_000_000),
            sink: Sink::new(limits.clone(), Stored::default()),
            limits,
            disk: Disk::default(),
            journal: Vec::new(),
            due: 0,
            mood: Mood::Up,
            poison: HashMap::new(),
            poison_keys: HashMap::new(),
            flights: BTreeMap::new(),
            committed_at: Instant::from_secs(0),
            received: Vec::new(),
            seen: BTreeSet::new(),
            by_key: HashMap::new(),
            jobs: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
            requests: 0,
            most_in_memory: (0, 0),
            disabled: false,
            is_disk_full: false,
            job: 0,
            latency: Span::from_millis(5),
        }
    }

    /// Seals a record with an event for each of these keys.
    pub(crate) fn seal(&mut self, keys: &[&str]) {
        for (position, key) in keys.iter().enumerate() {
            let place = Place { sequence: self.journal.len() as u64, position: u16::try_from(position).expect("few") };
            self.by_key.entry((*key).to_owned()).or_default().push(place);
        }
        self.journal.push(keys.iter().map(|key| ((*key).to_owned(), self.now)).collect());
        self.due += keys.len() as u64;
    }

    fn message(&self, place: Place) -> Message {
        let (key, time) = &self.journal[usize::try_from(place.sequence).expect("small")][usize::from(place.position)];
        let event = Event {
            sequence: place.sequence,
            position: place.position,
            id: id(place),
            kind: "lease.granted".to_owned(),
            order: key.clone(),
            subject: key.clone(),
            time: *time,
            data: serde_json::Value::Null,
        };
        Message::new(event, "leasehold://test")
    }

    pub(crate) fn places(&self, from: u64, to: u64) -> Vec<Place> {
        let records = (from..to).zip(&self.journal[usize::try_from(from).expect("small")..]);
        records
            .flat_map(|(sequence, events)| (0u16..).zip(events).map(move |(position, _)| Place { sequence, position }))
            .collect()
    }

    fn read(&mut self) {
        let head = self.journal.len() as u64;
        while let Some((from, most)) = self.sink.wants()
            && from < head
        {
            let (mut next, mut events) = (from, 0);
            while next < head && events < most.min(500) {
                events += self.journal[usize::try_from(next).expect("small")].len();
                next += 1;
            }
            let messages = self.places(from, next).into_iter().map(|place| self.message(place)).collect();
            self.sink.read(messages, next);
            let (events, bytes) = self.sink.in_memory();
            self.most_in_memory = (self.most_in_memory.0.max(events), self.most_in_memory.1.max(bytes));
        }
        if let Some(from) = self.sink.wants_count(self.due) {
            let events = self.places(from, head).len() as u64;
            self.sink.counted(events, head, self.due);
        }
        if self.sink.drop_excess() > 0 {
            self.read();
        }
    }

    /// What the endpoint does with a request: the answer, and how long it takes.
    fn serve(&mut self, place: Place) -> (Outcome, Span) {
        self.requests += 1;
        let key = self.journal[usize::try_from(place.sequence).expect("small")][usize::from(place.position)].0.clone();
        let answered = |status, retry_after| Outcome::Answered { status, retry_after };
        let mut latency = Span(self.random.u64(1..=self.latency.0));
        let outcome = match self.mood {
            Mood::Down => Outcome::Failed("connection refused".to_owned()),
            Mood::Status(status @ (429 | 503)) => answered(status, Some(Span::from_secs(30))),
            Mood::Status(status) => answered(status, None),
            Mood::Up | Mood::Slow | Mood::Forgetful => {
                if self.mood == Mood::Slow {
                    latency = Span::from_secs(2);
                }
                let poison = self.poison.get(&place).or_else(|| self.poison_keys.get(&key));
                match poison {
                    Some(status) => answered(*status, None),
                    None => {
                        self.receive(place, &key);
                        match self.mood {
                            Mood::Forgetful => Outcome::Failed("the connection was closed".to_owned()),
                            _ => answered(204, None),
                        }
                    }
                }
            }
        };
        (outcome, latency)
    }

    /// In order for each key: everything before it was received, or is set aside or skipped.
    fn receive(&mut self, place: Place, key: &str) {
        self.received.push(place);
        let is_new = self.seen.insert(place);
        if is_new && !self.jobs.contains(&place) {
            for earlier in self.by_key[key].iter().rev().skip_while(|earlier| **earlier >= place) {
                // The one before it was checked when it was received.
                if self.seen.contains(earlier) {
                    break;
                }
                let known = self.sink.dead().contains(earlier) || self.sink.dropped().contains(*earlier);
                assert!(known, "{place:?} of {key} arrived before {earlier:?}");
            }
        }
    }

    /// Sends and receives until nothing happens at this instant.
    fn act(&mut self) -> Option<Instant> {
        loop {
            let ended: Vec<_> =
                self.flights.iter().filter(|(_, flight)| flight.ends <= self.now).map(|(place, _)| *place).collect();
            for place in ended {
                let flight = self.flights.remove(&place).expect("just seen");
                let random = self.random.u64(..);
                let verdict = self.sink.finish(place, &flight.outcome, self.now, random);
                self.disabled |= verdict == Verdict::Disabled;
            }
            self.read();
            match self.sink.next(self.now) {
                Next::Send(message) => {
                    let place = message.place;
                    assert_eq!(message.id, id(place), "the same ID every time");
                    let key = &message.order;
                    let same = |other: &Place| {
                        self.journal[usize::try_from(other.sequence).expect("small")][usize::from(other.position)].0
                            == **key
                    };
                    assert!(!self.flights.keys().any(same), "two requests of one key");
                    assert!(self.flights.len() < self.limits.in_flight, "too many requests");
                    let (outcome, latency) = self.serve(place);
                    let ends = self.now.saturating_add(latency);
                    self.flights.insert(place, Flight { ends, outcome });
                }
                Next::Wait(until) => return until,
            }
        }
    }

    /// Lets time pass until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            let wait = self.act();
            if self.now.since(self.committed_at) >= SECOND {
                self.commit();
            }
            let landing = self.flights.values().map(|flight| flight.ends).min();
            let next = [wait, landing].into_iter().flatten().min().unwrap_or(end);
            if next >= end || self.now >= end {
                self.now = self.now.max(end);
                self.act();
                self.commit();
                return;
            }
            self.now = next.max(Instant(self.now.0 + 1));
        }
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.run_until(self.now.saturating_add(span));
    }

    /// Lets time pass until nothing waits to be delivered, for at most this long.
    pub(crate) fn drain(&mut self, most: Span) {
        let end = self.now.saturating_add(most);
        while self.sink.lag(self.due) > 0 || self.sink.in_memory().0 > 0 {
            assert!(self.now < end, "still {} behind: {:?}", self.sink.lag(self.due), self.sink.last_error());
            self.pass(Span::from_secs(10));
        }
    }

    /// Writes what has changed. What the disk says is done has been received, set aside or skipped.
    pub(crate) fn commit(&mut self) {
        self.committed_at = self.now;
        if let Some(changes) = self.sink.changes() {
            if self.is_disk_full {
                return self.sink.not_written(changes);
            }
            self.disk.write(changes);
            let progress = self.disk.progress.as_ref().expect("just written");
            // Only the neighbourhood of the cursor is new each time; all is checked at the end.
            let from = progress.cursor.sequence.saturating_sub(50);
            self.check_disk(from);
        }
    }

    pub(crate) fn check_disk(&self, from: u64) {
        let Some(progress) = &self.disk.progress else { return };
        assert!(progress.done.is_sound() && progress.dropped.is_sound());
        let reached =
            progress.done.iter().map(|(_, to)| to.sequence + 1).max().unwrap_or(0).max(progress.cursor.sequence);
        for place in self.places(from, reached.min(self.journal.len() as u64)) {
            let done = place < progress.cursor || progress.done.contains(place);
            let known =
                self.seen.contains(&place) || self.disk.dead.contains_key(&place) || progress.dropped.contains(place);
            assert!(!done || known, "{place:?} is lost: {progress:?}");
        }
    }

    /// Kills the process: everything is gone but what was committed. Requests on their way may still have arrived.
    pub(crate) fn crash(&mut self) {
        self.flights.clear();
        self.jobs.clear();
        self.sink = Sink::new(self.limits.clone(), self.disk.stored());
        let progress = self.disk.progress.clone().unwrap_or_default();
        let unread = self.places(progress.cursor.sequence, self.journal.len() as u64).into_iter();
        let unread = unread.filter(|place| *place >= progress.cursor).count() as u64;
        self.sink.counted(unread, self.journal.len() as u64, self.due);
    }

    /// Dead and dropped events.
    fn set_aside(&self) -> Vec<Place> {
        let (dead, dropped) = (self.sink.dead(), self.sink.dropped());
        let all = self.places(0, self.journal.len() as u64).into_iter();
        all.filter(|place| dead.contains(place) || dropped.contains(*place)).collect()
    }

    /// Gives events to the sink to send again, as a new job.
    fn inject(&mut self, page: &[Place]) -> usize {
        self.job += 1;
        self.jobs.extend(page);
        let messages: Vec<_> = page.iter().map(|place| self.message(*place)).collect();
        self.sink.inject(messages, self.job)
    }

    /// A reconciliation that is cancelled as soon as it has begun.
    pub(crate) fn heal_and_cancel(&mut self) {
        let missing = self.set_aside();
        self.inject(&missing[..missing.len().min(50)]);
    }

    /// Sends dead and dropped events again, as the jobs of the service do.
    pub(crate) fn heal(&mut self) -> usize {
        let (mut sent, mut from) = (0, Place::default());
        let missing = self.set_aside();
        let end = Place::start_of(self.journal.len() as u64);
        let pages = missing.chunks(500);
        let last = pages.len().saturating_sub(1);
        for (number, page) in pages.enumerate() {
            let to = if number == last { end } else { page[page.len() - 1].after() };
            let dropped = self.sink.dropped().within(from, to);
            let expected = self.inject(page);
            sent += expected;
            let mut settled = 0;
            while settled < expected {
                self.pass(SECOND);
                settled += self.sink.take_settled().iter().filter(|(job, ..)| *job == self.job).count();
            }
            let of_dropped = page.iter().filter(|place| dropped.contains(**place)).count();
            self.sink.healed(&dropped, of_dropped as u64);
            from = to;
        }
        self.commit();
        sent
    }

    /// Events that the endpoint never got.
    pub(crate) fn missing(&self) -> Vec<Place> {
        let all = self.places(0, self.journal.len() as u64);
        all.into_iter().filter(|place| !self.seen.contains(place)).collect()
    }
}
