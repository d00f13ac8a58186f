//! Closing a month of ten million leases: the journal of the queries about usage, with a ledger that is opened from its
//! first hour on.

use super::daemon;
use crate::outcome::Outcome;
use crate::usage::take_month;
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
    let posted = began.elapsed().as_secs_f64();
    daemon.cell().operate(Command::ClosePeriod(month)).expect("the month is over and settled");
    let first_open = || daemon.cell().now().read(|state| state.ledger().first_open);
    while first_open() <= month {
        daemon::settle(&daemon);
    }
    let closed = began.elapsed().as_secs_f64();
    let invoices = daemon.cell().now().read(|state| state.ledger().invoices);
    daemon.close().expect("a clean stop");
    drop(folder);
    let note = format!(
        "10,000,000 leases of 1,000 projects, {invoices} invoices; from the first hour to the closed month, of which \
         {:.2} s from the cut on: the hours of a month are posted as they pass",
        closed - posted
    );
    vec![Outcome::at_most("ledger.close_month", closed, "s", "<= 60", 60.0).note(note)]
}
