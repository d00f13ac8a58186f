//! The auditor's program, compared with hashing the same records in memory.

use crate::outcome::{Outcome, best_of_three};
use crate::scratch;
use leasehold_cell::{Clock, SystemClock};
use leasehold_journal::Journal;
use leasehold_model::frame::record_hash;
use leasehold_tlog::{Frontier, VerifierKey, leaf_hash};
use leasehold_verify::{Options, Trust, verify};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant as Stopwatch;

const RECORDS: u64 = 3_000_000;

fn verified(folder: &Path, threads: usize) -> f64 {
    let key = VerifierKey::new(scratch::ORIGIN, &scratch::keys().public_keys()[0]).expect("a valid key");
    let options =
        Options { data: folder.to_owned(), archives: vec![], trust: Trust::new(key), threads, progress: None };
    let began = Stopwatch::now();
    let report = verify(&options).unwrap_or_else(|failure| panic!("the journal is good: {failure}"));
    report.records as f64 / began.elapsed().as_secs_f64()
}

pub(crate) fn verify_vs_hash() -> Vec<Outcome> {
    let folder = scratch::folder();
    eprintln!("  writing a journal of {RECORDS} records");
    let journal = scratch::create(folder.path());
    crate::restart::write_history(&*journal, RECORDS, 100_000);
    let mut records: Vec<Vec<u8>> = Vec::new();
    journal
        .scan(0, &mut |_, raw| {
            records.push(raw.bytes.to_vec());
            ControlFlow::Continue(())
        })
        .expect("the journal can be read");
    journal.close(SystemClock::new().wall()).expect("a clean stop");
    eprintln!("  hashing and verifying it");
    let hashed = best_of_three(|| {
        let began = Stopwatch::now();
        let mut tree = Frontier::new();
        for bytes in &records {
            tree.push(leaf_hash(&record_hash(bytes)));
        }
        std::hint::black_box(tree.root());
        records.len() as f64 / began.elapsed().as_secs_f64()
    });
    drop(records);
    let one = best_of_three(|| verified(folder.path(), 1));
    let two = best_of_three(|| verified(folder.path(), 2));
    vec![
        Outcome::against("verify.vs_hash", one, "records/s", hashed, ">= 0.7", 0.7).note("one thread, from files"),
        Outcome::against("verify.vs_hash_two_threads", two, "records/s", one, ">= 1.6 x one thread", 1.6),
    ]
}
