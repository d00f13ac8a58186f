//! Exact usage over ten million leases, compared with DuckDB, polars and ClickHouse: the same queries, the same answers.

mod journal;
mod leases;
mod month;
mod ours;
mod peers;

pub(crate) use month::{forget_month, keep_month, take_month};
pub use ours::answer_if_asked;

use crate::{Outcome, scratch};
use leasehold_cell::{Clock, SystemClock};
use leasehold_journal::Journal;
use peers::Peers;
use serde_json::Value;
use std::path::Path;

const LEASES: u64 = 10_000_000;
const FEWER: u64 = 1_000_000;
const WINDOWS: u64 = 60;
const SEED: u64 = 1;

/// Writes a journal of `count` leases.
fn prepare(folder: &Path, count: u64) {
    let journal = scratch::create(folder);
    let leases = leases::leases(count);
    journal::write(&leases, &*journal);
    journal.checkpoint(SystemClock::new().wall()).expect("what was appended reads back");
    // Where a daemon expects it.
    scratch::keys().save(&folder.join("key")).expect("the directory can be written to");
}

fn number(said: &Value, path: &str) -> f64 {
    said.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {said}"))
}

/// The speed of ours divided by that of the fastest peer; fails if the answers differ.
fn against(
    name: &'static str,
    (goal, least): (&'static str, f64),
    ours: (f64, &str),
    peers: &[peers::Answer],
) -> Outcome {
    let fastest = peers.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("there are peers");
    let differ: Vec<&str> =
        peers.iter().filter(|peer| peer.sha256 != ours.1).map(|peer| peer.system.as_str()).collect();
    let outcome = Outcome::against(name, 1000.0 / ours.0, "1/ks", 1000.0 / fastest.seconds, goal, least);
    let note = format!("ours {:.3} ms, {} {:.3} ms", ours.0 * 1e3, fastest.system, fastest.seconds * 1e3);
    match differ[..] {
        [] => outcome.note(format!("{note}; all answers equal by hash")),
        _ => {
            Outcome { pass: Some(false), ..outcome }.note(format!("{note}; ANSWERS DIFFER from {}", differ.join(", ")))
        }
    }
}

pub(crate) fn usage() -> Vec<Outcome> {
    let folder = take_month();
    eprintln!("  following it into the books, and asking them");
    let said = ours::ask(folder.path(), WINDOWS, SEED);
    eprintln!("  ours: {said}");
    eprintln!("  the same with {FEWER} leases");
    let fewer = scratch::folder();
    prepare(fewer.path(), FEWER);
    let said_fewer = ours::ask(fewer.path(), WINDOWS, SEED);
    drop(fewer);

    eprintln!("  loading the leases into the peers, unless they are loaded from an earlier run");
    let peers = Peers::prepare(LEASES);
    let mut outcomes = Vec::new();
    let mut question = |name, goal, question: &str, figure: &str| {
        eprintln!("  asking the peers: {question}");
        let sha256 = said.pointer(&format!("/{question}/sha256")).and_then(Value::as_str).expect("a hash");
        let ours = (number(&said, &format!("/{question}/{figure}")), sha256);
        outcomes.push(against(name, goal, ours, &peers.ask(question, WINDOWS, SEED)));
    };
    question("usage.window", (">= 5", 5.0), "window", "median_s");
    question("usage.hourly", (">= 2", 2.0), "hourly", "best_s");
    question("usage.peak", (">= 10", 10.0), "peak", "best_s");
    question("usage.tenant", (">= 20", 20.0), "tenant0", "median_s");
    question("usage.tenant99", ("-", 0.0), "tenant99", "median_s");
    question("usage.node", ("-", 0.0), "node", "median_s");

    let growth = number(&said, "/tenant0/median_s") / number(&said_fewer, "/tenant0/median_s");
    outcomes.push(
        Outcome::at_most("usage.growth", growth, "x", "<= 1.3", 1.3).note("one tenant, 1,000,000 to 10,000,000 leases"),
    );
    let follow = number(&said, "/records") / number(&said, "/follow_s");
    outcomes.push(
        Outcome::at_least("books.follow", follow, "records/s", ">= 300,000", 300_000.0)
            .note(format!("commits included; opened again in {:.2} s", number(&said, "/open_s"))),
    );
    outcomes.push(
        Outcome::at_most("books.rss", number(&said, "/resident_mib"), "MiB", "< 1,024", 1023.9)
            .note("after all questions"),
    );
    let bytes = number(&said, "/disk_bytes") / number(&said, "/closed");
    outcomes.push(Outcome::at_most("books.disk", bytes, "B/lease", "<= 160", 160.0).note("closed leases"));
    outcomes.push(
        Outcome::at_most("books.lease_list", number(&said, "/lease_list_s") * 1e3, "ms", "<= 10", 10.0).note(format!(
            "one node at one instant, the slowest of {WINDOWS}; {:.0} leases in all",
            number(&said, "/listed")
        )),
    );
    outcomes.push(Outcome::at_most("timeline.one", number(&said, "/timeline_p99_s") * 1e3, "ms", "<= 10", 10.0).note(
        format!(
            "p99 of single correlation IDs, given and derived; the slowest {:.3} ms; {:.0} steps in all",
            number(&said, "/timeline_worst_s") * 1e3,
            number(&said, "/timeline_steps")
        ),
    ));
    #[cfg(feature = "ledger")]
    outcomes.push(over_http(folder.path()));
    keep_month(folder);
    outcomes
}

/// One tenant's usage over HTTP, compared with the cheapest answer there is.
#[cfg(feature = "ledger")]
fn over_http(folder: &Path) -> Outcome {
    use crate::http::{Served, p99_us, wait_for};
    use leasehold_api::When;
    use leasehold_model::Instant;
    let served = Served::on(folder);
    let of = (served.address(), served.token.as_str());
    let usage = |k: u64| {
        let (from, to) = leases::window(SEED, k);
        let when = |second: u64| When(Instant::from_secs(second)).to_string();
        format!("/api/v1/usage?tenant=t0&by=tenant,class&from={}&to={}", when(from), when(to))
    };
    wait_for(&served, &usage(0));
    let (mut health, mut ours) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        health = health.min(p99_us(of, |_| "/healthz".to_owned()));
        ours = ours.min(p99_us(of, usage));
    }
    let outcome = Outcome::at_most("usage.http_p99", ours, "us", "<= /healthz + 1 ms", health + 1000.0);
    Outcome { baseline: Some(health), ratio: None, ..outcome }.note("one tenant, random windows, one connection")
}
