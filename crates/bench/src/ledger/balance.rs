//! The balance of an account, asked for over HTTP.

use super::cluster::{CLASSES, PROJECTS};
use crate::http::{bind, p99_us, run_to_end};
use crate::outcome::Outcome;
use leasehold_server::Daemon;
use std::sync::mpsc;
use tokio::sync::oneshot;

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
    let token = daemon.operator_token.as_deref().expect("a new token").to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let (say, said) = mpsc::channel();
    let serving = std::thread::spawn(move || {
        run_to_end(async move {
            let listener = bind();
            say.send(listener.local_addr().expect("an address")).expect("somebody waits for it");
            let stopped = async {
                let _ = stopped.await;
            };
            daemon.serve(listener, stopped).await.expect("a clean stop");
        });
    });
    let of = (said.recv().expect("it listens"), token.as_str());
    let p99_ms = (0..3).map(|_| p99_us(of, account)).fold(f64::INFINITY, f64::min) / 1000.0;
    let _ = stop.send(());
    serving.join().expect("a clean stop");
    let note = format!("{entries} entries; over HTTP on one connection, the 99th percentile; the best of three");
    Outcome::at_most("ledger.balance", p99_ms, "ms", "<= 1", 1.0).note(note)
}
