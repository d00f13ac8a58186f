//! Closing a month of ten million leases: the journal of the queries about usage, with a ledger that is opened from its
//! first hour on.

use super::daemon;
use crate::outcome::Outcome;
use crate::usage::{forget_month, take_month};
use crate::work::T0;
use leasehold_engine::Command;
use leasehold_engine::command::OpenLedger;
use leasehold_model::{Month, Span};
use std::time::Instant as Stopwatch;

pub(crate) fn close_month() -> Vec<Outcome> {
    let folder = take_month();
    // Some leases end after the month.
    let (daemon, _) = daemon::open(folder.path(), T0.saturating_add(Span::from_secs(40 * 86_400)));
    let month = Month::of(T0);
    eprintln!("  the books follow the journal");
    let began = Stopwatch::now();
    while daemon.settle().is_err() {
        assert!(began.elapsed().as_secs() < 600, "the books follow");
    }
    eprintln!("  followed in {:.0} s; posting the hours of the month", began.elapsed().as_secs_f64());
    let open = Command::OpenLedger(OpenLedger { from: Some(T0) });
    daemon.cell().operate(open).expect("the ledger can be opened");
    let began = Stopwatch::now();
    while daemon::settled_through(&daemon) < month.end() {
        daemon::settle(&daemon);
    }
    let posting = began.elapsed().as_secs_f64();
    let began = Stopwatch::now();
    daemon.cell().operate(Command::ClosePeriod(month)).expect("the month is over and settled");
    let first_open = || daemon.cell().now().read(|state| state.ledger().first_open);
    while first_open() <= month {
        daemon::settle(&daemon);
    }
    let closing = began.elapsed().as_secs_f64();
    let invoices = daemon.cell().now().read(|state| state.ledger().invoices);
    daemon.close().expect("a clean stop");
    drop(folder);
    forget_month();
    let note = format!(
        "10,000,000 leases of 1,000 projects, {invoices} invoices; all hours of the month were posted before in \
         {posting:.1} s"
    );
    vec![Outcome::at_most("ledger.close_month", closing, "s", "<= 60", 60.0).note(note)]
}
