//! The balance of an account, asked for over HTTP.

use super::cluster::{CLASSES, PROJECTS};
use super::served::served;
use crate::http::p99_us;
use crate::outcome::Outcome;
use leasehold_server::Daemon;

/// The accounts in turn: what each project owes, and the revenue of a class.
fn account(asked: u64) -> String {
    match asked % 4 {
        0 => format!("/api/v1/ledger/balances?account=revenue&currency=EUR&limit={}", CLASSES.len()),
        _ => {
            let tenant = asked * 7919 % u64::from(PROJECTS);
            format!("/api/v1/ledger/balances?account=receivable&tenant=tenant-{tenant:04}&currency=EUR")
        }
    }
}

/// Serves, asks, and stops.
pub(super) fn over_http(daemon: Daemon, entries: u64) -> Outcome {
    let p99_ms = served(daemon, |address, token| {
        (0..3).map(|_| p99_us((address, token), account)).fold(f64::INFINITY, f64::min) / 1000.0
    });
    let note = format!("{entries} entries; over HTTP on one connection, the 99th percentile; the best of three");
    Outcome::at_most("ledger.balance", p99_ms, "ms", "<= 1", 1.0).note(note)
}
