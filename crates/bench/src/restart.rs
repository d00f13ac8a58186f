//! Restarting: from a snapshot and the records after it, and from all records.

use crate::outcome::Outcome;
use crate::scratch;
use crate::work::{T0, Workload, cluster, name};
use leasehold_cell::{Cell, CellOptions, Clock, ManualClock, Sealed, StartOptions, SystemClock, replay, take_snapshot};
use leasehold_engine::{Command, Engine, Request, Settings, State};
use leasehold_journal::{Head, Journal};
use leasehold_model::body::Genesis;
use leasehold_model::{Batch, Body, FORMAT_VERSION, Identity, Instant, LeaseNo, Span};
use std::sync::Arc;
use std::time::Instant as Stopwatch;

const RECORDS: u64 = 10_000_000;
const LIVE: usize = 1_000_000;
const TAIL: u64 = 100_000;
/// Time between commands: ten million of them take ten days, so that a million idempotency keys are live.
const STEP_NS: u64 = 86_400_000;

/// Writes a realistic history through engine and journal: `live` leases, then requests, renewals and releases until
/// there are `records` records. The result can continue it.
pub(crate) fn write_history(journal: &dyn Journal, records: u64, live: usize) -> History {
    let mut engine = Engine::default();
    let mut batch = Batch::new(0);
    let public_key = scratch::keys().public_keys()[0];
    let genesis = Genesis {
        format_version: FORMAT_VERSION,
        origin: name(scratch::ORIGIN),
        public_key,
        software: name("leasehold bench"),
    };
    engine.genesis(T0, genesis, &mut batch);
    let long = Settings { ttl_max: Span::from_secs(90 * 86_400), ..Settings::default() };
    for command in std::iter::once(Command::ChangeSettings(long)).chain(cluster(1000, 1000)) {
        engine.decide(T0, &Request::new(Identity::default(), command), &mut batch).expect("the cluster is valid");
    }
    journal.append(&mut batch).expect("there is room");
    let mut history = History { engine, work: Workload::new(1, 1000), next_lease: 0, now: T0, live };
    history.work.ttl = Span::from_secs(60 * 86_400);
    history.extend(journal, records);
    history
}

pub(crate) struct History {
    engine: Engine,
    work: Workload,
    next_lease: u64,
    now: Instant,
    live: usize,
}

impl History {
    /// Continues until there are `records` records.
    fn extend(&mut self, journal: &dyn Journal, records: u64) {
        let clock = SystemClock::new();
        let mut turn = 0u64;
        while self.engine.state().size() < records {
            let mut batch = Batch::new(self.engine.state().size());
            for _ in 0..2000.min(records - self.engine.state().size()) {
                self.now = Instant(self.now.0 + STEP_NS);
                self.engine.advance(self.now, &mut batch, 1000);
                turn += 1;
                let request = match turn % 3 {
                    _ if self.work.live.len() < self.live => self.request(),
                    0 => self.request(),
                    1 => self.work.renew(),
                    _ => self.work.release(),
                };
                self.engine.decide(self.now, &request, &mut batch).expect("the work is valid");
            }
            journal.prepare().expect("there is room");
            journal.append(&mut batch).expect("there is room");
            if self.engine.state().size() % 500_000 < 2000 {
                journal.checkpoint(clock.wall()).expect("what was appended reads back");
            }
        }
        journal.checkpoint(clock.wall()).expect("what was appended reads back");
    }

    fn request(&mut self) -> Request {
        let (request, tenant) = self.work.request();
        self.work.live.push((LeaseNo(self.next_lease), tenant));
        self.next_lease += 1;
        request
    }
}

pub(crate) fn restart() -> Vec<Outcome> {
    let folder = scratch::folder();
    eprintln!("  writing a journal of {RECORDS} records");
    let end = {
        let journal = scratch::create(folder.path());
        let mut history = write_history(&*journal, RECORDS - TAIL, LIVE);
        take_snapshot(&*journal).expect("a snapshot can be taken");
        history.extend(&*journal, RECORDS);
        history.now
        // Dropped without a clean shutdown, as by a crash.
    };
    eprintln!("  restarting three times");
    let mut best = f64::MAX;
    for round in 0..3 {
        best = best.min(first_grant(folder.path(), end, round));
    }
    eprintln!("  replaying all records");
    let journal = scratch::open(folder.path());
    let began = Stopwatch::now();
    let mut state = State::new();
    let head = replay(&*journal, &mut state, Head::EMPTY).expect("the journal replays");
    let replayed = head.size as f64 / began.elapsed().as_secs_f64();
    vec![
        Outcome::at_most("restart.snapshot", best, "s", "<= 2", 2.0)
            .note("10,000,000 records, 1,000,000 live leases, 100,000 records since the snapshot, to the first grant"),
        Outcome::at_least("restart.replay", replayed, "records/s", ">= 1,500,000", 1.5e6)
            .note("10,000,000 records, chain verified"),
    ]
}

/// Seconds from opening the directory to the answer to the first request.
fn first_grant(folder: &std::path::Path, end: Instant, round: u64) -> f64 {
    let began = Stopwatch::now();
    let journal = scratch::open(folder);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Instant(end.0 + 1_000_000_000)));
    let mut start = StartOptions::new(name("leasehold bench"), scratch::keys().public_keys()[0]);
    start.accept_clock = true;
    let (cell, opened) = Cell::start(journal, clock, CellOptions::new(start)).expect("it starts");
    let (request, _) = Workload::new(77 + round, 1000).request();
    let reply = cell.call(request);
    let spent = began.elapsed().as_secs_f64();
    let Ok(Sealed { records, repeated: false, .. }) = &reply else { panic!("the first request is granted: {reply:?}") };
    assert!(matches!(records[0].body, Body::Granted(_)));
    assert!(opened.replayed < 2 * TAIL, "the snapshot was used");
    drop(cell);
    spent
}
