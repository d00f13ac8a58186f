//! The leases that records name, and their details when a record is shown.

use crate::app::App;
use crate::scans::unreadable;
use leasehold_api::{Problem, codes, limits};
use leasehold_model::body::Body;
use leasehold_model::{Instant, LeaseNo, RawRecord, Record};
use leasehold_view::{Directory, KnownLease};
use serde_json::Value;
use std::ops::ControlFlow;

/// The first grant at or after `from` and before `to`.
fn next_grant(app: &App, from: u64, to: u64) -> Result<Option<Record>, Problem> {
    let mut found = None;
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if sequence >= to {
            return ControlFlow::Break(());
        }
        found = raw.decode().ok().filter(|record| matches!(record.body, Body::Granted(_)));
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    scanned.map_err(|error| unreadable(&error))?;
    Ok(found)
}

/// Finds the grant of a lease by binary search: lease numbers increase with the sequence. Works also while the books
/// are behind.
fn find_grant(app: &App, lease: LeaseNo) -> Result<Option<Record>, Problem> {
    let (mut low, mut high) = (0, app.journal.head().size);
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(record) = next_grant(app, middle, high)? else {
            high = middle;
            continue;
        };
        let Body::Granted(granted) = &record.body else { unreachable!("next_grant returns grants") };
        let first = granted.first_lease.0;
        if lease.0 < first {
            high = middle;
        } else if lease.0 < first + granted.members.len() as u64 {
            return Ok(Some(record));
        } else {
            low = record.sequence + 1;
        }
    }
    Ok(None)
}

/// Visits the leases that a record names.
pub(crate) fn touched(body: &Body, mut visit: impl FnMut(LeaseNo)) {
    match body {
        Body::Granted(granted) => {
            (0..granted.members.len() as u64).for_each(|n| visit(LeaseNo(granted.first_lease.0 + n)))
        }
        Body::Renewed(renewed) => renewed.renewals.iter().for_each(|one| visit(one.lease)),
        Body::Released(released) => released.leases.leases().for_each(visit),
        Body::ActivityReported(reported) => reported.leases.leases().for_each(visit),
        Body::Expired(expired) => expired.leases.0.iter().copied().for_each(visit),
        Body::Revoked(revoked) => revoked.leases.0.iter().copied().for_each(visit),
        Body::TeardownStarted(started) => started.leases.0.iter().copied().for_each(visit),
        Body::TornDown(torn) => torn.leases.0.iter().copied().for_each(visit),
        Body::Fenced(fenced) => fenced.leases.0.iter().copied().for_each(visit),
        Body::Unfenced(unfenced) => unfenced.leases.0.iter().copied().for_each(visit),
        Body::WindowAnnounced(told) => told.leases.0.iter().copied().for_each(visit),
        Body::EndsCorrected(corrected) => corrected.leases.0.iter().copied().for_each(visit),
        Body::Preempted(preempted) => preempted.victims.0.iter().copied().for_each(visit),
        leasehold_model::setup_kinds!()
        | Body::NodePut(_)
        | Body::NodeDeleted(_)
        | Body::NodeDrained(_)
        | Body::NodeResumed(_)
        | Body::WindowPut(_)
        | Body::WindowStarted(_)
        | Body::WindowEnded(_)
        | Body::ClaimEndCorrected(_)
        | Body::LossSettled(_)
        | leasehold_model::ledger_kinds!()
        | Body::NodeLost(_)
        | Body::NodeReturned(_)
        | Body::NodeCondition(_)
        | Body::AgentRegistered(_)
        | Body::AgentDetached(_)
        | Body::NodeEmpty(_)
        | Body::Denied(_)
        | Body::PreemptionDecided(_)
        | Body::ReservationDropped(_)
        | Body::ReservationTakenOver(_)
        | Body::HeadProtected(_)
        | Body::AllocationSubmitted(_)
        | Body::AllocationDenied(_)
        | Body::AllocationPlaced(_)
        | Body::AllocationStarted(_)
        | Body::AllocationCheckpointing(_)
        | Body::AllocationCheckpointed(_)
        | Body::AllocationSuspended(_)
        | Body::AllocationRequeued(_)
        | Body::AllocationCompleted(_)
        | Body::AllocationFailed(_)
        | Body::AllocationCancelled(_)
        | Body::AllocationHoldSet(_)
        | Body::AllocationHoldCleared(_)
        | Body::AllocationChanged(_)
        | Body::NodesClaimed(_)
        | Body::NodesReleased(_)
        | Body::NodeWiped(_)
        | Body::NodeQuarantined(_)
        | Body::QuarantineCleared(_)
        | Body::Unknown { .. } => {}
    }
}

pub(crate) fn names(body: &Body, lease: LeaseNo) -> bool {
    let mut named = false;
    touched(body, |one| named |= one == lease);
    named
}

/// A record as JSON, with the details of its leases.
pub(crate) fn show_record(app: &App, directory: &mut Directory, raw: &RawRecord<'_>) -> Result<Value, Problem> {
    let unreadable_record = |_| codes::INTERNAL.problem("Cannot decode a record of the journal.");
    let record = raw.decode().map_err(unreadable_record)?;
    learn_leases(app, directory, &record)?;
    directory.show_known(raw, &raw.hash()).map_err(unreadable_record)
}

/// Adds the leases that a record names to the directory: from the state if they are live, otherwise from their grants.
pub(crate) fn learn_leases(app: &App, directory: &mut Directory, record: &Record) -> Result<(), Problem> {
    if matches!(record.body, Body::Granted(_)) {
        directory.know_grant(record, None);
        return Ok(());
    }
    let mut unknown = Vec::new();
    touched(&record.body, |lease| {
        if !directory.knows_lease(lease) {
            unknown.push(lease);
        }
    });
    for lease in unknown {
        let live = app.now.read(|state| {
            state.lease(lease).map(|lease| KnownLease {
                tenant: lease.tenant,
                project: lease.project,
                user: lease.user,
                workload: lease.workload().cloned(),
                belongs_to: lease.holder().belongs_to,
                tag: lease.tag.and_then(|tag| state.tag(tag)).cloned(),
                class: lease.class,
                quanta: lease.quanta,
                node: lease.node,
                devices: lease.devices,
                granted_at: lease.granted_at,
                expires_at: lease.expires_at,
            })
        });
        match live {
            Some(facts) => directory.know_lease(lease, facts),
            None => {
                if let Some(grant) = find_grant(app, lease)? {
                    directory.know_grant(&grant, None);
                }
            }
        }
    }
    Ok(())
}

/// The records of one lease after a sequence, and the sequence to continue after. `granted` is the sequence of its
/// grant; it has no records after `closed_at`.
pub(crate) fn of_lease(
    app: &App,
    lease: LeaseNo,
    (granted, closed_at): (u64, Option<Instant>),
    after: Option<u64>,
    limit: usize,
) -> Result<(Vec<Value>, Option<u64>), Problem> {
    let from = after.map_or(granted, |after| (after + 1).max(granted));
    let mut directory = app.live.names();
    let (mut shown, mut failed, mut stopped_at) = (Vec::new(), None, None);
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        let Ok(record) = raw.decode() else { return ControlFlow::Continue(()) };
        if closed_at.is_some_and(|at| record.stamp > at) {
            return ControlFlow::Break(());
        }
        if shown.len() == limit || sequence - from >= limits::RECORDS_SCANNED_MAX {
            stopped_at = Some(sequence.saturating_sub(1));
            return ControlFlow::Break(());
        }
        if names(&record.body, lease) {
            match show_record(app, &mut directory, &raw) {
                Ok(value) => shown.push(value),
                Err(problem) => failed = Some(problem),
            }
        }
        ControlFlow::Continue(())
    });
    scanned.map_err(|error| unreadable(&error))?;
    failed.map_or(Ok((shown, stopped_at)), Err)
}
