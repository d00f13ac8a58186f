//! The benchmarks: what the budgets of DESIGN and the issues promise, measured beside a peer in one run.
//!
//! In: which benchmarks to run. Out: a table for people and `bench.json` for programs.
//!
//! Ratios count, not absolute figures: machines are noisy. Each figure is the best of three, and the
//! peer does the same work in the same run. Floats appear here and nowhere near a bill.
#![allow(clippy::float_arithmetic, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod durable;
mod engine;
#[cfg(feature = "http")]
pub mod http;
mod memory;
mod outcome;
mod place;
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

type Bench = (&'static str, fn() -> Vec<Outcome>);

/// Every benchmark by the prefix of the names it reports.
const BENCHES: &[Bench] = &[
    ("engine.transitions", engine::transitions),
    ("engine.bytes_per_lease", memory::bytes_per_lease),
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
    #[cfg(feature = "usage")]
    ("usage books", usage::usage),
];

/// Runs the benchmarks whose names begin with `only`, prints a table and writes the file. Answers
/// whether every goal was met.
pub fn run(only: &str, json: &Path) -> std::io::Result<bool> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (name, bench) in BENCHES {
        // One that measures for several names has them all.
        if name.split(' ').any(|name| name.starts_with(only) || only.starts_with(name)) {
            eprintln!("running {name} …");
            outcomes.extend(bench());
        }
    }
    outcomes.retain(|outcome| outcome.name.starts_with(only));
    print!("{}", outcome::table(&outcomes));
    if let Some(folder) = json.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(json, outcome::json(&outcomes))?;
    eprintln!("written to {}", json.display());
    Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.pass != Some(false)))
}
