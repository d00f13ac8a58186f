//! A daemon in this process, whose time passes only when it is told to.

use crate::scratch;
use leasehold_cell::ManualClock;
use leasehold_model::Instant;
use leasehold_server::config::Config;
use leasehold_server::{Daemon, Start};
use std::path::Path;
use std::sync::Arc;

pub(super) fn open(data: &Path, from: Instant) -> (Daemon, Arc<ManualClock>) {
    let mut config = Config { data: data.to_owned(), origin: Some(scratch::ORIGIN.into()), ..Config::default() };
    // A pass would begin in the middle of a measurement, depending on how long the ones before it took.
    config.scrub.enabled = false;
    config.rate.operations_per_second = 0;
    let clock = Arc::new(ManualClock::at(from));
    let start = Start {
        clock: Arc::clone(&clock) as Arc<_>,
        // The journal may be of any time.
        accept_clock: true,
        unproved_tail: leasehold_server::UnprovedTail::Refuse,
        new_operator_token: true,
        on_failure: Arc::new(|why| panic!("{why}")),
    };
    let daemon = Daemon::open(config, start).unwrap_or_else(|error| panic!("{error}"));
    (daemon, clock)
}

/// Settles what is due.
pub(super) fn settle(daemon: &Daemon) {
    daemon.settle().unwrap_or_else(|why| panic!("not settled: {why}"));
}

/// All usage before this instant is posted.
pub(super) fn settled_through(daemon: &Daemon) -> Instant {
    daemon.cell().now().read(|state| state.ledger().settled_through)
}
