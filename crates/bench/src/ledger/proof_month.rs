//! A month in which one tenant has half a million records and an invoice of ten thousand lines: a thousand projects with
//! ten lines each, and leases that are requested, renewed and released. Another tenant has a few leases.

use super::{cluster, daemon};
use crate::bulk::{operate_all, send_all};
use crate::work::{Dice, T0, Workload};
use leasehold_cell::{Cell, Clock, ManualClock, SystemClock};
use leasehold_engine::command::{ReleaseOne, RenewOne};
use leasehold_engine::{Command, Request};
use leasehold_model::{Body, Identity, LeaseNo, Month, ProjectNo, Span, TenantNo};
use leasehold_server::Daemon;
use smallvec::smallvec;
use std::path::Path;
use std::sync::Arc;

const PAYER: u32 = 0;
pub(super) const OTHER: u32 = 1;
/// Project 1 is that of the other tenant.
const PROJECTS: u32 = 1001;
const LINES_EACH: u32 = 10;
/// Hours in which something happens.
const HOURS: u64 = 20;
pub(super) const RECORDS: u64 = 500_000;
const HOUR: Span = Span::from_secs(3600);
const LONG: Span = Span::from_secs(40 * 86_400);
/// Leases of the other tenant, which are renewed while the proof is made.
const RENEWED: u32 = 100;

fn projects() -> impl Iterator<Item = u32> {
    (0..PROJECTS).filter(|project| *project != OTHER)
}

fn identity(project: u32) -> Identity {
    Identity { tenant: Some(TenantNo(PAYER)), project: Some(ProjectNo(project)), ..Identity::default() }
}

/// Requests leases, and returns them with their projects.
fn grant(cell: &Cell, requests: impl Iterator<Item = (Request, u64)>) -> Vec<(LeaseNo, u32)> {
    let mut granted = Vec::new();
    send_all(cell, requests, |project, sealed| {
        let Body::Granted(of) = &sealed.records[0].body else { panic!("there is room") };
        granted.push((of.first_lease, project as u32));
    });
    granted
}

fn release(project: u32, lease: LeaseNo) -> (Request, u64) {
    let one = ReleaseOne { lease, activity: None };
    (Request::new(identity(project), Command::Release(smallvec![one])), 0)
}

/// Requests, renewals and releases, a third each.
fn churn(cell: &Cell, dice: &mut Dice, records: u64) {
    let third = (records / 3) as u32;
    let requests = (0..third).map(|turn| {
        let project = 2 + dice.below(u64::from(PROJECTS) - 2) as u32;
        let ask = cluster::request(turn, HOUR);
        (Request::new(identity(project), Command::Request(ask)), u64::from(project))
    });
    let granted = grant(cell, requests);
    let renewals = granted.iter().map(|(lease, project)| {
        let one = RenewOne { lease: *lease, ttl: HOUR, activity: None };
        (Request::new(identity(*project), Command::Renew(smallvec![one])), 0)
    });
    send_all(cell, renewals, |_, _| {});
    send_all(cell, granted.iter().map(|(lease, project)| release(*project, *lease)), |_, _| {});
}

fn hour(daemon: &Daemon, clock: &ManualClock) {
    clock.advance(HOUR);
    daemon::settle(daemon);
}

/// Makes the month and closes it. Returns the work of the other tenant, too.
pub(super) fn closed(folder: &Path) -> (Daemon, Workload) {
    let (daemon, clock) = daemon::open(folder, T0);
    let cell: Arc<Cell> = Arc::clone(daemon.cell());
    let set_up = projects().filter(|project| *project > OTHER).map(|of| cluster::project(PAYER, &format!("p{of:04}")));
    let first = [cluster::tenant(PAYER), cluster::tenant(OTHER), cluster::project(PAYER, "p0000")];
    let commands = cluster::inventory().into_iter().chain(first).chain([cluster::project(OTHER, "main")]);
    operate_all(&cell, commands.chain(set_up).collect());
    let mut work = Workload::new(1, 1);
    work.ttl = LONG;
    let ask = |turn| Command::Request(cluster::request(turn, LONG));
    let others = (0..RENEWED).map(|turn| (Request::new(crate::work::identity(OTHER), ask(turn)), u64::from(OTHER)));
    work.live = grant(&cell, others);
    let standing = projects().flat_map(|project| (0..LINES_EACH).map(move |turn| (project, turn)));
    let standing = standing.map(|(project, turn)| (Request::new(identity(project), ask(turn)), u64::from(project)));
    let standing = grant(&cell, standing);
    let mut dice = Dice(3);
    let postings = HOURS * u64::from(PROJECTS - 1);
    let churned = RECORDS - postings - 2 * standing.len() as u64;
    for _ in 0..HOURS {
        churn(&cell, &mut dice, churned / HOURS);
        hour(&daemon, &clock);
    }
    send_all(&cell, standing.iter().map(|(lease, project)| release(*project, *lease)), |_, _| {});
    let month = Month::of(T0);
    while daemon::settled_through(&daemon) < month.end() {
        hour(&daemon, &clock);
    }
    cell.operate(Command::ClosePeriod(month)).expect("the month is over and settled");
    let first_open = || cell.now().read(|state| state.ledger().first_open);
    while first_open() <= month {
        daemon::settle(&daemon);
    }
    cell.journal().checkpoint(SystemClock::new().wall()).expect("what was appended reads back");
    (daemon, work)
}
