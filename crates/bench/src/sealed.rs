//! Sealed, durable records per second through the file journal, compared with a bare loop that only hashes (chain and
//! tree), writes and syncs the same bytes in the same batches.

use crate::outcome::{Outcome, best_of_three};
use crate::scratch;
use crate::work::{T0, Workload};
use leasehold_cell::{Clock, SystemClock};
use leasehold_journal::Journal;
use leasehold_model::{Batch, Instant, LeaseNo, RawBatch};
use leasehold_tlog::{Frontier, leaf_hash};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

const BATCHES: usize = 1500;
const RECORDS: usize = 1000;

/// Batches as the engine creates them: requests, renewals and releases, a third each.
fn batches() -> Vec<Batch> {
    let mut engine = leasehold_engine::Engine::default();
    let mut all = Vec::new();
    let mut setup = Batch::new(0);
    let genesis = leasehold_model::body::Genesis {
        format_version: leasehold_model::FORMAT_VERSION,
        origin: crate::work::name(scratch::ORIGIN),
        public_key: scratch::keys().public_keys()[0],
        software: crate::work::name("leasehold bench"),
    };
    engine.genesis(T0, genesis, &mut setup);
    for command in crate::work::cluster(1000, 1000) {
        let request = leasehold_engine::Request::new(leasehold_model::Identity::default(), command);
        engine.decide(T0, &request, &mut setup).expect("the cluster is valid");
    }
    all.push(setup);
    let mut work = Workload::new(1, 1000);
    let mut next_lease = 0;
    let mut now = T0;
    for _ in 0..BATCHES {
        let mut batch = Batch::new(engine.state().size());
        for i in 0..RECORDS {
            now = Instant(now.0 + 1000);
            let request = match i % 3 {
                0 => {
                    let (request, tenant) = work.request();
                    work.live.push((LeaseNo(next_lease), tenant));
                    next_lease += 1;
                    request
                }
                1 => work.renew(),
                _ => work.release(),
            };
            engine.decide(now, &request, &mut batch).expect("the work is valid");
        }
        all.push(batch);
    }
    all
}

/// The journal as the cell uses it: one thread appends, one writes checkpoints, one allocates space.
fn sealed(batches: &[Batch]) -> f64 {
    let folder = scratch::folder();
    let journal = scratch::create(folder.path());
    let mut batches = batches.to_vec();
    let done = AtomicBool::new(false);
    let clock = SystemClock::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                journal.prepare().expect("there is room");
                std::thread::park_timeout(Duration::from_millis(5));
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                journal.checkpoint(clock.wall()).expect("what was appended reads back");
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        let began = Stopwatch::now();
        for batch in &mut batches {
            while journal.room() < batch.bytes().len() as u64 {
                std::thread::yield_now();
            }
            journal.append(batch).expect("the journal takes it");
        }
        // All records are durable; the work is done when a checkpoint covers them.
        while journal.checkpointed().size() < journal.head().size {
            journal.checkpoint(clock.wall()).expect("what was appended reads back");
        }
        let spent = began.elapsed();
        done.store(true, Ordering::Relaxed);
        (BATCHES * RECORDS) as f64 / spent.as_secs_f64()
    })
}

/// The least work that is needed for the same guarantees.
fn bare(batches: &[Batch]) -> f64 {
    let folder = scratch::folder();
    let file = std::fs::File::create_new(folder.path().join("bare")).expect("a file can be created");
    let mut batches = batches.to_vec();
    let total: usize = batches.iter().map(|b| b.bytes().len()).sum();
    let zeroes = vec![0u8; 1 << 20];
    for at in (0..total + zeroes.len()).step_by(zeroes.len()) {
        file.write_all_at(&zeroes, at as u64).expect("there is room");
    }
    file.sync_all().expect("the disk works");
    let mut head = [0; 32];
    let mut tree = Frontier::new();
    let mut at = 0u64;
    let began = Stopwatch::now();
    for batch in &mut batches {
        head = batch.seal(&head, &*scratch::keys()).expect("nothing asks for a signature");
        for frame in batch.frames() {
            // Each record contains the hash of the record before it.
            let raw = frame.expect("just sealed");
            tree.push(leaf_hash(&raw.prev_hash()));
        }
        file.write_all_at(batch.bytes(), at).expect("there is room");
        at += batch.bytes().len() as u64;
        file.sync_data().expect("the disk works");
    }
    let spent = began.elapsed();
    assert!(tree.size() > 0 && RawBatch::read(batches[0].bytes()).is_ok());
    (BATCHES * RECORDS) as f64 / spent.as_secs_f64()
}

pub(crate) fn sealed_vs_bare() -> Vec<Outcome> {
    let batches = batches();
    let bytes: usize = batches.iter().map(|b| b.bytes().len()).sum();
    let bare = best_of_three(|| bare(&batches));
    let sealed = best_of_three(|| sealed(&batches));
    let note = format!(
        "batches of 1,000, {} bytes a record on disk, until a checkpoint covers them",
        bytes / (BATCHES * RECORDS)
    );
    vec![Outcome::against("journal.sealed_vs_bare", sealed, "records/s", bare, ">= 0.5", 0.5).note(note)]
}
