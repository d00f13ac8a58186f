//! How much a snapshot delays requests: single durable requests at a steady rate, while a snapshot is taken and while
//! none is.

use crate::bulk::{operate_all, send_all};
use crate::outcome::Outcome;
use crate::scratch;
use crate::work::{Workload, cluster, name};
use leasehold_cell::{Cell, CellOptions, Sealed, StartOptions, SystemClock};
use leasehold_model::{Body, Span};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

const LIVE: usize = 200_000;
/// Records between snapshots: more than are sealed in the quiet phase.
const SNAPSHOT_EVERY: u64 = 60_000;
/// Time between two requests.
const PACE: Duration = Duration::from_millis(2);
const QUIET: Duration = Duration::from_millis(1500);
/// Maximum time to wait for a snapshot.
const SNAPSHOT_AT_MOST: Duration = Duration::from_secs(20);
const ROUNDS: usize = 3;

/// Renews one lease after the other at a steady pace while `going_on` returns true; returns the latencies, sorted.
pub(crate) fn paced(cell: &Cell, work: &mut Workload, mut going_on: impl FnMut(Stopwatch) -> bool) -> Vec<Duration> {
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
    // Old snapshots are removed after the new one is complete.
    std::thread::sleep(Duration::from_millis(200));
}

pub(crate) fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

pub(crate) fn snapshot_stall() -> Vec<Outcome> {
    let folder = scratch::folder();
    let journal = scratch::create(folder.path());
    let start = StartOptions::new(name("leasehold bench"), scratch::keys().public_keys()[0]);
    let options = CellOptions { snapshot_every: SNAPSHOT_EVERY, ..CellOptions::new(start) };
    let (cell, _) = Cell::start(journal, Arc::new(SystemClock::new()), options).expect("it starts");
    operate_all(&cell, cluster(1000, 1000));
    let mut work = Workload::new(1, 1000);
    work.ttl = Span::from_secs(3600);
    let mut live = Vec::with_capacity(LIVE);
    let requests = (0..LIVE).map(|_| {
        work.step += 1;
        let (request, tenant) = work.request();
        (request, u64::from(tenant))
    });
    send_all(&cell, requests, |tenant, sealed| {
        if let Body::Granted(granted) = &sealed.records[0].body {
            live.push((granted.first_lease, tenant as u32));
        }
    });
    work.live = live;
    let mut rounds: Vec<(f64, String)> = Vec::new();
    for _ in 0..ROUNDS {
        settle(&cell);
        let quiet = paced(&cell, &mut work, |began| began.elapsed() < QUIET);
        let before = snapshots(&cell);
        let renewals = (0..SNAPSHOT_EVERY).map(|_| {
            work.step += 1;
            (work.renew(), 0)
        });
        send_all(&cell, renewals, |_, _| {});
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
    // The median, not the best: the figure is about the worst case.
    rounds.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let all: Vec<String> = rounds.iter().map(|(extra, _)| format!("{extra:.1}")).collect();
    let (extra, note) = rounds.swap_remove(ROUNDS / 2);
    let note = format!("median of {} ms; {note}", all.join(", "));
    vec![Outcome::at_most("cell.snapshot_stall", extra, "ms", "<= 5", 5.0).note(note)]
}
