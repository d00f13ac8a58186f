//! End to end: requests from 64 submitters, each answered once it is durable and visible, compared with SQLite, which
//! does the same work with hash-linked events in transactions of a thousand.

use crate::bulk::operate_all;
use crate::outcome::Outcome;
use crate::scratch;
use crate::work::{Workload, cluster, name};
use leasehold_cell::{Cell, CellOptions, Inbox, Sealed, StartOptions, Submission, SystemClock};
use leasehold_model::Body;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant as Stopwatch;

const SUBMITTERS: u64 = 64;
const OUTSTANDING: u64 = 64;
const OPERATIONS: u64 = 1_500_000;

struct Measured {
    per_second: f64,
    p50_us: u64,
    p99_us: u64,
    batch: u64,
}

fn durable() -> Measured {
    let folder = scratch::folder();
    let journal = scratch::create(folder.path());
    let start = StartOptions::new(name("leasehold bench"), scratch::keys().public_keys()[0]);
    let (cell, _) = Cell::start(journal, Arc::new(SystemClock::new()), CellOptions::new(start)).expect("it starts");
    operate_all(&cell, cluster(1000, 1000));
    let (batches, records) = counted(&cell);
    let began = Stopwatch::now();
    let mut latencies: Vec<u64> = std::thread::scope(|scope| {
        let cell = &cell;
        let submitters: Vec<_> =
            (0..SUBMITTERS).map(|n| scope.spawn(move || submitter(cell, n, OPERATIONS / SUBMITTERS))).collect();
        submitters.into_iter().flat_map(|s| s.join().expect("a submitter ends well")).collect()
    });
    let spent = began.elapsed();
    let (batches_after, records_after) = counted(&cell);
    cell.stop().expect("a clean stop");
    latencies.sort_unstable();
    Measured {
        per_second: latencies.len() as f64 / spent.as_secs_f64(),
        p50_us: latencies[latencies.len() / 2],
        p99_us: latencies[latencies.len() * 99 / 100],
        batch: (records_after - records) / (batches_after - batches).max(1),
    }
}

fn counted(cell: &Cell) -> (u64, u64) {
    (cell.stats().batches.load(Ordering::Relaxed), cell.stats().records.load(Ordering::Relaxed))
}

/// Keeps up to 64 commands outstanding; returns the latency of each in microseconds.
fn submitter(cell: &Cell, number: u64, operations: u64) -> Vec<u64> {
    let mut work = Workload::new(1 + number * 1000, 1000);
    work.step = number << 40;
    let inbox = Arc::new(Inbox::new());
    let mut replies = VecDeque::new();
    let mut latencies = Vec::with_capacity(operations as usize);
    let began = Stopwatch::now();
    let (mut sent, mut turn) = (0, 0u64);
    while (latencies.len() as u64) < operations {
        let mut submissions = Vec::new();
        let outstanding = sent - latencies.len() as u64;
        for _ in outstanding..OUTSTANDING.min(operations - latencies.len() as u64) {
            work.step += 1;
            turn += 1;
            let (request, tenant) = match turn % 3 {
                2 if !work.live.is_empty() => (work.renew(), 0),
                0 if !work.live.is_empty() => (work.release(), 0),
                _ => work.request(),
            };
            let tag = (began.elapsed().as_micros() as u64) << 16 | u64::from(tenant);
            submissions.push(Submission { request, to: inbox.clone(), tag });
            sent += 1;
        }
        cell.submit(submissions);
        inbox.take(&mut replies);
        let now = began.elapsed().as_micros() as u64;
        for (tag, reply) in replies.drain(..) {
            latencies.push(now - (tag >> 16));
            let Ok(Sealed { records, repeated: false, .. }) = reply else { panic!("the work is valid: {reply:?}") };
            if let Body::Granted(granted) = &records[0].body {
                work.live.push((granted.first_lease, (tag & 0xffff) as u32));
            }
        }
    }
    latencies
}

pub(crate) fn durable_vs_sqlite() -> Vec<Outcome> {
    let runs: Vec<Measured> = (0..3).map(|_| durable()).collect();
    let best = runs.iter().max_by(|a, b| a.per_second.total_cmp(&b.per_second)).expect("three runs");
    let note = format!(
        "p50 {} us, p99 {} us; 64 submitters, 64 outstanding each; {} records a commit",
        best.p50_us, best.p99_us, best.batch
    );
    #[cfg(feature = "peers")]
    let outcome = {
        let peer = crate::outcome::best_of_three(crate::sqlite::hash_linked);
        Outcome::against("core.durable_vs_sqlite", best.per_second, "1/s", peer, ">= 2.5", 2.5)
    };
    #[cfg(not(feature = "peers"))]
    let outcome = {
        let mut alone = Outcome::at_least("core.durable_vs_sqlite", best.per_second, "1/s", ">= 2.5 x SQLite", 0.0);
        alone.pass = None;
        alone
    };
    vec![outcome.note(note)]
}
