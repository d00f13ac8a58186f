//! What the journal's files say of the past: leases that are closed, and how each came to its end.
//!
//! Lease numbers are handed out in rising order, so the grant of any lease is found by halving the journal: no index
//! grows with history.

use crate::access::Caller;
use crate::app::App;
use crate::endings::Ended;
use crate::show;
use leasehold_api::{LeaseState, Problem, When, codes, limits};
use leasehold_journal::ReadError;
use leasehold_model::body::{Body, Granted};
use leasehold_model::{Instant, LeaseNo, RawRecord, Record, TenantNo, quantity};
use leasehold_view::{Directory, KnownLease};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Runs a reader of the journal's files off the request's thread, few at a time.
pub(crate) async fn scan<T: Send + 'static>(
    app: &Arc<App>,
    read: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let busy = |_| codes::BUSY.problem("Too many requests read the journal already; try again.");
    let permit = app.scans.clone().acquire_owned().await.map_err(busy)?;
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        read(&app)
    });
    done.await.map_err(|_| codes::INTERNAL.problem("Reading the journal failed; the log says more."))?
}

pub(crate) fn unreadable(error: &ReadError) -> Problem {
    match error {
        ReadError::Archived { .. } => {
            codes::ARCHIVED.problem(format!("The journal's beginning was moved away: {error}."))
        }
        error => {
            tracing::error!(%error, "the journal cannot be read");
            codes::INTERNAL.problem("The journal cannot be read; the log says more.")
        }
    }
}

/// The record that granted a lease.
pub(crate) struct Grant {
    pub(crate) record: Record,
}

impl Grant {
    pub(crate) fn granted(&self) -> &Granted {
        match &self.record.body {
            Body::Granted(granted) => granted,
            _ => unreachable!("a grant was looked for"),
        }
    }
    fn tenant(&self) -> TenantNo {
        self.record.identity.tenant.expect("a grant has a tenant")
    }
    pub(crate) fn is_visible_to(&self, caller: &Caller) -> bool {
        caller.sees_lease(self.tenant(), self.record.identity.project, self.granted().node)
    }
}

/// The first grant at or after `from` and before `to`.
fn next_grant(app: &App, from: u64, to: u64) -> Result<Option<Record>, Problem> {
    let mut found = None;
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if sequence >= to {
            return ControlFlow::Break(());
        }
        match raw.decode() {
            Ok(record) if matches!(record.body, Body::Granted(_)) => {
                found = Some(record);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    });
    scanned.map_err(|error| unreadable(&error))?;
    Ok(found)
}

/// Finds the grant of a lease by halving.
pub(crate) fn find_grant(app: &App, lease: LeaseNo) -> Result<Option<Grant>, Problem> {
    let (mut low, mut high) = (0, app.journal.head().size);
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(record) = next_grant(app, middle, high)? else {
            high = middle;
            continue;
        };
        let Body::Granted(granted) = &record.body else { unreachable!("a grant was looked for") };
        let first = granted.first_lease.0;
        if lease.0 < first {
            high = middle;
        } else if lease.0 < first + granted.members.len() as u64 {
            return Ok(Some(Grant { record }));
        } else {
            low = record.sequence + 1;
        }
    }
    Ok(None)
}

/// The leases a record names.
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
        Body::Preempted(preempted) => preempted.victims.0.iter().copied().for_each(visit),
        _ => {}
    }
}

pub(crate) fn names(body: &Body, lease: LeaseNo) -> bool {
    let mut named = false;
    touched(body, |one| named |= one == lease);
    named
}

/// Whether a record closes the leases it names.
pub(crate) fn closes(body: &Body) -> bool {
    match body {
        Body::Released(released) => released.closed,
        Body::Expired(expired) => expired.closed,
        Body::TeardownStarted(started) => started.closed,
        Body::TornDown(_) | Body::Unfenced(_) => true,
        _ => false,
    }
}

/// A record as JSON, with what is known of the leases it names.
pub(crate) fn show_record(app: &App, directory: &mut Directory, raw: &RawRecord<'_>) -> Result<Value, Problem> {
    let unreadable_record = |_| codes::INTERNAL.problem("A record of the journal cannot be read.");
    let record = raw.decode().map_err(unreadable_record)?;
    learn_leases(app, directory, &record)?;
    directory.show_known(raw, &raw.hash()).map_err(unreadable_record)
}

/// Sees to it that the directory knows the leases a record names: from what is live, else from their grants.
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
                    directory.know_grant(&grant.record, None);
                }
            }
        }
    }
    Ok(())
}

/// The records of one lease after a sequence, and where to go on.
pub(crate) fn of_lease(
    app: &App,
    grant: &Grant,
    lease: LeaseNo,
    after: Option<u64>,
    limit: usize,
) -> Result<(Vec<Value>, Option<u64>), Problem> {
    let from = after.map_or(grant.record.sequence, |after| (after + 1).max(grant.record.sequence));
    let mut directory = app.live.names();
    directory.know_grant(&grant.record, None);
    let (mut shown, mut failed, mut stopped_at, mut closed) = (Vec::new(), None, None, false);
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if closed || shown.len() == limit || sequence - from >= limits::RECORDS_SCANNED_MAX {
            stopped_at = (!closed).then(|| sequence.saturating_sub(1));
            return ControlFlow::Break(());
        }
        let Ok(record) = raw.decode() else { return ControlFlow::Continue(()) };
        if names(&record.body, lease) {
            closed = closes(&record.body);
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

/// A lease that is closed, as its records tell it.
pub(crate) struct Closed;

impl Closed {
    pub(crate) fn find(app: &App, caller: &Caller, number: LeaseNo) -> Result<Option<leasehold_api::Lease>, Problem> {
        let Some(grant) = find_grant(app, number)? else { return Ok(None) };
        if !grant.is_visible_to(caller) {
            return Ok(None);
        }
        let (record, granted) = (&grant.record, grant.granted());
        let mut expires_at = record.stamp.saturating_add(granted.ttl);
        let mut ended_at: Option<Instant> = None;
        let mut ended: Option<Ended> = None;
        let mut unreadable_record = false;
        let scanned = app.journal.scan(record.sequence + 1, &mut |_, raw| {
            let Ok(later) = raw.decode() else {
                unreadable_record = true;
                return ControlFlow::Break(());
            };
            if !names(&later.body, number) {
                return ControlFlow::Continue(());
            }
            ended = ended.take().or_else(|| Ended::begin(&later));
            match &later.body {
                Body::Renewed(renewed) => {
                    let own = renewed.renewals.iter().find(|one| one.lease == number);
                    expires_at = own.map_or(expires_at, |one| one.expires_at);
                }
                Body::Released(_) | Body::Expired(_) | Body::TeardownStarted(_) => ended_at = Some(later.effective_at),
                Body::Fenced(_) | Body::TornDown(_) => ended_at = ended_at.or(Some(later.effective_at)),
                _ => {}
            }
            if closes(&later.body) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        scanned.map_err(|error| unreadable(&error))?;
        if unreadable_record {
            return Err(codes::INTERNAL.problem("A record of the journal cannot be read."));
        }
        let place = usize::try_from(number.0 - granted.first_lease.0).expect("a gang is small");
        let member = granted.members[place];
        Ok(Some(app.now.read(|state| {
            let identity = &record.identity;
            let class = state.class(member.class);
            let text =
                |name: Option<&leasehold_model::Name>| name.map_or_else(String::new, |name| name.as_str().to_owned());
            let tenant = identity.tenant.and_then(|tenant| state.tenant(tenant));
            leasehold_api::Lease {
                id: app.lease_id(number),
                gang_id: app.lease_id(granted.first_lease),
                allocation_id: granted.allocation.map(|allocation| allocation.0),
                app_instance: granted.app_instance.map(|app| app.0),
                state: LeaseState::Closed,
                tenant: text(tenant.map(|tenant| &tenant.name)),
                project: text(identity.project.and_then(|project| state.project(project)).map(|project| &project.name)),
                user: identity.user.and_then(|user| state.user(user)).map(|user| user.name.as_str().to_owned()),
                // The tag is that of the grant; the tenant may have another one by now.
                accounting_tag: None,
                class: text(class.map(|class| &class.name)),
                quantity: class.map_or_else(String::new, |class| quantity::display(member.quanta, class)),
                quanta: member.quanta.0,
                devices: show::devices(member.devices),
                node: text(state.node(granted.node).map(|node| &node.name)),
                pool: text(state.pool(granted.pool).map(|pool| &pool.name)),
                priority: granted.priority,
                sensitive: granted.sensitive,
                over_soft: !granted.over_soft.is_empty(),
                granted_at: When(record.stamp),
                expires_at: When(expires_at),
                grace_ends_at: None,
                ended_at: ended_at.map(When),
                revocation: ended.as_ref().and_then(|ended| ended.revocation(expires_at)),
            }
        })))
    }
}
