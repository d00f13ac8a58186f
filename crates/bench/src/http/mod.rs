//! End to end over HTTP: a million allocations; single operations and batches, compared with PostgreSQL; usage records;
//! ten thousand listeners; and deliveries to webhooks.
//!
//! The daemon is a separate process (this program started again), the load comes from this one, and PostgreSQL is that
//! of Debian, started in a temporary directory. All share the machine's processors.

mod allocations;
#[cfg(feature = "ledger")]
mod asking;
mod bare;
mod batches;
mod child;
mod deliveries;
mod fetch;
mod load;
mod peer;
mod request;
mod singles;
mod streams;
mod usage_records;

pub(crate) use allocations::rate as allocations;
#[cfg(feature = "ledger")]
pub(crate) use asking::{p99_us, wait_for};
#[cfg(feature = "ledger")]
pub(crate) use child::{Served, bind, run_to_end};
pub(crate) use deliveries::{drain as deliver_drain, leases as deliver_leases, memory as deliver_memory};
pub(crate) use streams::run as streams;
pub(crate) use usage_records::run as usage_records;

use crate::Outcome;
use peer::LeasePeer;

/// In a child process: serves until it is killed. Returns false in any other process.
pub fn serve_if_asked() -> bool {
    child::serve_if_asked() || bare::serve_if_asked()
}

/// How often each figure is measured; the best is reported.
const ROUNDS: usize = 3;

fn best(rounds: impl Iterator<Item = f64>) -> f64 {
    rounds.fold(0.0, f64::max)
}

/// One operation per request.
pub(crate) fn singles() -> Vec<Outcome> {
    let postgres = LeasePeer::start();
    let linked = best((0..2).flat_map(|_| [8, 32]).map(|clients| postgres.singles(true, clients).per_second));
    let plain: Vec<peer::Figures> =
        (0..2).flat_map(|_| [32, 64, 64]).map(|clients| postgres.singles(false, clients)).collect();
    drop(postgres);
    let plain_best = best(plain.iter().map(|figures| figures.per_second));
    // The best run of the peer with 64 clients.
    let plain_p99 = plain.iter().filter(|f| f.clients == 64).map(|f| f.p99_us).fold(f64::INFINITY, f64::min);

    let (runs, bare): (Vec<singles::Singles>, Vec<singles::Singles>) = (0..ROUNDS).map(|_| singles::run(64)).unzip();
    let ours = best(runs.iter().map(|run| run.per_second));
    let p99 = runs.iter().map(|run| run.p99_us).fold(f64::INFINITY, f64::min);
    for (run, bare) in runs.iter().zip(&bare) {
        eprintln!("  singles: {}, denials {:.0}/s", run.summary(), run.denials_per_second);
        eprintln!("  bare server: {}", bare.summary());
    }
    let bare_best = best(bare.iter().map(|run| run.per_second));
    let slower = Outcome::at_most("http.single_p99", p99, "us", "<= 1", plain_p99);
    vec![
        Outcome::against("http.single_vs_postgres", ours, "1/s", linked, ">= 10", 10.0).note("hash-linked events"),
        Outcome::against("http.single_vs_bare", ours, "1/s", bare_best, ">= 0.5", 0.5).note(
            "the same requests to a server with the same HTTP stack that answers with constants of the same size",
        ),
        Outcome::against("http.single_vs_postgres_plain", ours, "1/s", plain_best, ">= 2", 2.0).note("plain events"),
        Outcome { baseline: Some(plain_p99), ratio: Some(p99 / plain_p99), ..slower },
    ]
}

/// A thousand operations per request.
pub(crate) fn batches() -> Vec<Outcome> {
    let postgres = LeasePeer::start();
    let in_transactions = best((0..ROUNDS).flat_map(|_| [1, 2]).map(|clients| postgres.batches(clients)));
    drop(postgres);
    let batched = best((0..ROUNDS).map(|_| batches::run()));
    vec![Outcome::against("http.batch_vs_postgres", batched, "1/s", in_transactions, ">= 6", 6.0)]
}
