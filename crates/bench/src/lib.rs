//! The benchmarks: figures with goals, most of them compared with a peer in the same run.
//!
//! In: which benchmarks to run. Out: a table for people and `bench.json` for programs.
//!
//! Ratios are compared rather than absolute figures, because the speed of machines varies. Unless stated otherwise, a
//! figure is the best of three. Floating point is used here, but never for billing.
#![allow(clippy::float_arithmetic, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod bulk;
mod durable;
mod engine;
#[cfg(feature = "http")]
pub mod http;
mod keys;
#[cfg(feature = "ledger")]
mod ledger;
mod memory;
mod outcome;
mod place;
#[cfg(feature = "http")]
mod postgres;
mod restart;
mod scheduling;
mod scratch;
mod sealed;
#[cfg(feature = "peers")]
mod sqlite;
mod stall;
#[cfg(feature = "usage")]
pub mod usage;
mod verification;
pub mod work;

pub use memory::Counting;
pub use outcome::Outcome;
use std::path::Path;
use std::time::Instant as Stopwatch;

type Bench = (&'static str, fn() -> Vec<Outcome>);

/// Every benchmark with the prefixes of the figures it reports.
const BENCHES: &[Bench] = &[
    ("engine.transitions", engine::transitions),
    ("engine.bytes_per_lease", memory::bytes_per_lease),
    ("keys", keys::keys),
    ("place", place::place),
    ("journal.sealed_vs_bare", sealed::sealed_vs_bare),
    ("core.durable_vs_sqlite", durable::durable_vs_sqlite),
    ("cell.snapshot_stall", stall::snapshot_stall),
    ("verify.vs_hash", verification::verify_vs_hash),
    ("restart", restart::restart),
    ("preempt.plan", scheduling::preemption),
    ("queue.wake", scheduling::queue),
    #[cfg(feature = "http")]
    ("alloc.rate", http::allocations),
    #[cfg(feature = "http")]
    ("http.single", http::singles),
    #[cfg(feature = "http")]
    ("http.batch", http::batches),
    #[cfg(feature = "http")]
    ("http.sse_10k", http::streams),
    #[cfg(feature = "http")]
    ("usage_records", http::usage_records),
    #[cfg(feature = "http")]
    ("deliver.lease_throughput deliver.lease_p99", http::deliver_leases),
    #[cfg(feature = "http")]
    ("deliver.drain", http::deliver_drain),
    #[cfg(feature = "http")]
    ("deliver.memory", http::deliver_memory),
    #[cfg(feature = "usage")]
    ("usage. books timeline", usage::usage),
    // After the queries about usage, whose journal it continues.
    #[cfg(feature = "ledger")]
    ("ledger.close_month", ledger::close_month),
    #[cfg(feature = "ledger")]
    ("ledger.post ledger.balance", ledger::post_hours),
    #[cfg(feature = "ledger")]
    ("proof", ledger::invoice_proof),
];

/// Runs the benchmarks whose figures begin with `only`, prints a table and writes the file. Returns whether every goal
/// was met.
pub fn run(only: &str, json: &Path) -> std::io::Result<bool> {
    let began = Stopwatch::now();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (name, bench) in BENCHES {
        if name.split(' ').any(|name| name.starts_with(only) || only.starts_with(name)) {
            eprintln!("running {name} …");
            let start = Stopwatch::now();
            outcomes.extend(bench());
            eprintln!("  took {:.0} s", start.elapsed().as_secs_f64());
        }
    }
    #[cfg(feature = "usage")]
    usage::forget_month();
    outcomes.retain(|outcome| outcome.name.starts_with(only));
    print!("{}", outcome::table(&outcomes));
    if let Some(folder) = json.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(json, outcome::json(&outcomes))?;
    let seconds = began.elapsed().as_secs();
    eprintln!("written to {}; {} min {} s in total", json.display(), seconds / 60, seconds % 60);
    Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.pass != Some(false)))
}
