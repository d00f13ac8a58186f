//! Hours of 100,000 live leases, one after the other, until there are ten million entries: how long an hour takes, what
//! it delays, and how many entries a second are posted.

use super::{balance, cluster, daemon, transfers};
use crate::outcome::Outcome;
use crate::scratch;
use crate::stall::{milliseconds, paced};
use crate::work::{T0, Workload};
use leasehold_cell::ManualClock;
use leasehold_model::Span;
use leasehold_server::Daemon;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

const HOUR: Span = Span::from_secs(3600);
/// Hours that are posted while leases are renewed at a steady pace.
const WITH_RENEWALS: u64 = 40;
const QUIET: Duration = Duration::from_millis(1500);
/// As many hours as make so many entries.
const ENTRIES: u64 = 10_000_000;
const HOURS: u64 = ENTRIES / cluster::LINES;

/// Lets an hour pass and posts it; returns how long that took.
fn post(daemon: &Daemon, clock: &ManualClock) -> Duration {
    clock.advance(HOUR);
    let before = daemon::settled_through(daemon);
    let began = Stopwatch::now();
    daemon::settle(daemon);
    let took = began.elapsed();
    assert_eq!(daemon::settled_through(daemon), before.saturating_add(HOUR), "one hour was settled");
    took
}

pub(super) fn percentile(sorted: &[Duration], per_mille: usize) -> f64 {
    milliseconds(sorted[(sorted.len() * per_mille / 1000).min(sorted.len() - 1)])
}

/// Posts hours while leases are renewed, one every two milliseconds.
fn post_beside_renewals(daemon: &Daemon, clock: &ManualClock, work: &mut Workload) -> [Outcome; 2] {
    let quiet = paced(daemon.cell(), work, |began| began.elapsed() < QUIET);
    let done = AtomicBool::new(false);
    let mut hours: Vec<Duration> = Vec::new();
    let busy = std::thread::scope(|scope| {
        let renewals = scope.spawn(|| paced(daemon.cell(), work, |_| !done.load(Ordering::Relaxed)));
        hours.extend((0..WITH_RENEWALS).map(|_| post(daemon, clock)));
        done.store(true, Ordering::Relaxed);
        renewals.join().expect("the renewals are valid")
    });
    hours.sort_unstable();
    let (median, worst) = (hours[hours.len() / 2].as_secs_f64(), hours[hours.len() - 1].as_secs_f64());
    let extra = (percentile(&busy, 990) - percentile(&quiet, 990)).max(0.0);
    let delay = format!(
        "99th percentile of {} renewals, one every 2 ms: {:.2} ms while hours are posted one after the other, {:.2} ms \
         without; half within {:.2} and {:.2} ms; the slowest {:.2} and {:.2} ms",
        busy.len(),
        percentile(&busy, 990),
        percentile(&quiet, 990),
        percentile(&busy, 500),
        percentile(&quiet, 500),
        percentile(&busy, 1000),
        percentile(&quiet, 1000),
    );
    let hour = format!(
        "{} live leases, {} lines of {} payers; the median of {WITH_RENEWALS} hours beside the renewals, the slowest \
         took {worst:.2} s",
        cluster::LIVE,
        cluster::LINES,
        cluster::PROJECTS,
    );
    [
        Outcome::at_most("ledger.post_hour", median, "s", "<= 2", 2.0).note(hour),
        Outcome::at_most("ledger.post_delay", extra, "ms", "<= 5", 5.0).note(delay),
    ]
}

pub(crate) fn post_hours() -> Vec<Outcome> {
    let folder = scratch::folder();
    let (daemon, clock) = daemon::open(&folder.path().join("data"), T0);
    let mut work = Workload::new(1, cluster::PROJECTS);
    work.ttl = cluster::TTL;
    work.live = cluster::furnish(daemon.cell());
    // The first hour has the books follow the grants.
    post(&daemon, &clock);
    let mut outcomes = post_beside_renewals(&daemon, &clock, &mut work).to_vec();
    let rest = HOURS - WITH_RENEWALS - 1;
    let took: Duration = (0..rest).map(|_| post(&daemon, &clock)).sum();
    let per_second = (rest * cluster::LINES) as f64 / took.as_secs_f64();
    eprintln!("  ours: {per_second:.0} entries/s in {rest} hours");
    outcomes.push(balance::over_http(daemon, ENTRIES));
    drop(folder);
    outcomes.extend(transfers::against(per_second));
    outcomes
}
