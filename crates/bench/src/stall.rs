//! What taking a snapshot costs the lease path: single durable requests at a steady rate, with a
//! snapshot being taken and without.

use crate::outcome::Outcome;
use crate::scratch;
use crate::work::{Workload, cluster, name};
use leasehold_cell::{Cell, CellOptions, Inbox, Sealed, StartOptions, Submission, SystemClock};
use leasehold_engine::Request;
use leasehold_model::{Body, Span};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

const LIVE: usize = 200_000;
/// Records between snapshots: more than are sealed while nothing is to disturb.
const SNAPSHOT_EVERY: u64 = 60_000;
/// One request after the other, this far apart.
const PACE: Duration = Duration::from_millis(2);
const QUIET: Duration = Duration::from_millis(1500);
/// A snapshot that takes longer than this is not waited for.
const SNAPSHOT_AT_MOST: Duration = Duration::from_secs(20);
const ROUNDS: usize = 3;

/// Sends requests in bulk and keeps the leases they were granted.
fn send_all(cell: &Cell, work: &mut Workload, mut make: impl FnMut(&mut Workload) -> Option<(Request, u32)>) {
    let inbox = Arc::new(Inbox::new());
    let mut replies = VecDeque::new();
    loop {
        let made: Vec<_> = std::iter::from_fn(|| make(work)).take(1000).collect();
        let mut outstanding = made.len();
        if outstanding == 0 {
            return;
        }
        let submission =
            |(request, tenant): (Request, u32)| Submission { request, to: inbox.clone(), tag: u64::from(tenant) };
        cell.submit(made.into_iter().map(submission));
        while outstanding > 0 {
            inbox.take(&mut replies);
            for (tag, reply) in replies.drain(..) {
                outstanding -= 1;
                let Ok(Sealed { records, repeated: false, .. }) = reply else { panic!("the work is valid: {reply:?}") };
                if let Body::Granted(granted) = &records[0].body {
                    work.live.push((granted.first_lease, tag as u32));
                }
            }
        }
    }
}

/// Renews one lease after the other at a steady pace as long as `going_on` says; the latencies, in order of size.
fn paced(cell: &Cell, work: &mut Workload, mut going_on: impl FnMut(Stopwatch) -> bool) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let began = Stopwatch::now();
    let mut next = began;
    while going_on(began) {
        std::thread::sleep(next.saturating_duration_since(Stopwatch::now()));
        work.step += 1;
        let request = work.renew();
        let asked = Stopwatch::now();
        let reply = cell.call(request);
        latencies.push(asked.elapsed());
        assert!(matches!(reply, Ok(Sealed { repeated: false, .. })), "the work is valid: {reply:?}");
        next = (next + PACE).max(Stopwatch::now());
    }
    latencies.sort_unstable();
    latencies
}

fn snapshots(cell: &Cell) -> u64 {
    cell.stats().snapshots.load(Ordering::Relaxed)
}

/// Waits until no snapshot is due.
fn settle(cell: &Cell) {
    let due = || {
        let last = cell.journal().snapshots().ok().and_then(|sizes| sizes.last().copied()).unwrap_or(0);
        cell.journal().head().size >= last + SNAPSHOT_EVERY
    };
    let began = Stopwatch::now();
    while due() && began.elapsed() < SNAPSHOT_AT_MOST {
        std::thread::sleep(Duration::from_millis(50));
    }
    // Old snapshots are removed after the new one is there.
    std::thread::sleep(Duration::from_millis(200));
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

pub(crate) fn snapshot_stall() -> Vec<Outcome> {
    let folder = scratch::folder();
    let journal = scratch::create(folder.path());
    let start = StartOptions::new(name("leasehold bench"), scratch::keys().public_keys()[0]);
    let options = CellOptions { snapshot_every: SNAPSHOT_EVERY, ..CellOptions::new(start) };
    let (cell, _) = Cell::start(journal, Arc::new(SystemClock::new()), options).expect("it starts");
    for command in cluster(1000, 1000) {
        assert!(matches!(cell.operate(command), Ok(Sealed { repeated: false, .. })));
    }
    let mut work = Workload::new(1, 1000);
    work.ttl = Span::from_secs(3600);
    let mut made = 0;
    send_all(&cell, &mut work, |work| {
        made += 1;
        work.step += 1;
        (made <= LIVE).then(|| work.request())
    });
    let mut rounds: Vec<(f64, String)> = Vec::new();
    for _ in 0..ROUNDS {
        settle(&cell);
        let quiet = paced(&cell, &mut work, |began| began.elapsed() < QUIET);
        let before = snapshots(&cell);
        let mut made = 0;
        send_all(&cell, &mut work, |work| {
            made += 1;
            work.step += 1;
            (made <= SNAPSHOT_EVERY).then(|| (work.renew(), 0))
        });
        let began = Stopwatch::now();
        let busy = paced(&cell, &mut work, |began| snapshots(&cell) == before && began.elapsed() < SNAPSHOT_AT_MOST);
        let took = began.elapsed();
        assert!(snapshots(&cell) > before, "a snapshot was taken");
        let worst = |latencies: &[Duration]| milliseconds(*latencies.last().expect("requests were made"));
        let extra = (worst(&busy) - worst(&quiet)).max(0.0);
        let half = |latencies: &[Duration]| milliseconds(latencies[latencies.len() / 2]);
        let note = format!(
            "200,000 live leases; worst {:.2} ms of {} while a snapshot is taken ({:.1} s), {:.2} ms of {} without; \
             half within {:.2} and {:.2} ms",
            worst(&busy),
            busy.len(),
            took.as_secs_f64(),
            worst(&quiet),
            quiet.len(),
            half(&busy),
            half(&quiet)
        );
        eprintln!("  {extra:.2} ms: {note}");
        rounds.push((extra, note));
    }
    cell.stop().expect("a clean stop");
    // The middle one: the best would flatter a figure that is about the worst.
    rounds.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let all: Vec<String> = rounds.iter().map(|(extra, _)| format!("{extra:.1}")).collect();
    let (extra, note) = rounds.swap_remove(ROUNDS / 2);
    let note = format!("the middle of {} ms; {note}", all.join(", "));
    vec![Outcome::at_most("cell.snapshot_stall", extra, "ms", "<= 5", 5.0).note(note)]
}
