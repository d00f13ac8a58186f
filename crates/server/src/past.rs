//! Leases and allocations from the books, live or over, as the API shows them.

use crate::app::App;
use crate::show;
use crate::show_allocations::as_submitted;
use leasehold_api as api;
use leasehold_api::{LeaseState, Ttl, When};
use leasehold_books::{Attempt, Books, BooksError, End, NamedKind, Row, Story};
use leasehold_engine::State;
use leasehold_model::{
    AppInstanceNo, AppTypeNo, Identity, Instant, LeaseNo, Name, NodeNo, PoolNo, ProjectNo, Quanta, Reason, TenantNo,
    UserNo, quantity,
};

/// Whether the lease is still billed.
pub(crate) fn is_held(standing: LeaseState) -> bool {
    matches!(standing, LeaseState::Active | LeaseState::Revoking)
}

fn end(end: End) -> Option<api::LeaseEnd> {
    Some(match end {
        End::Released | End::ReleasedEvicted | End::ReleasedByOwn => api::LeaseEnd::Released,
        End::Expired => api::LeaseEnd::Expired,
        End::Revoked => api::LeaseEnd::Revoked,
        End::Preempted | End::EvictedByOwn => api::LeaseEnd::Preempted,
        End::FailedStart => api::LeaseEnd::FailedStart,
        End::NodeLost => api::LeaseEnd::NodeLost,
        End::Held | End::Idle => return None,
    })
}

/// When the grace of a revocation ends: at the latest at the deadline of the lease.
fn grace_ends_at(row: &Row) -> Option<Instant> {
    let (ending, revocation) = (row.life.ending?, row.revocation()?);
    Some(ending.at.saturating_add(revocation.grace).min(row.life.expires_at))
}

fn revocation(row: &Row) -> Option<api::Revocation> {
    let (ending, revoked) = (row.life.ending?, row.revocation()?);
    Some(api::Revocation {
        reason: revoked.reason.word().to_owned(),
        sequence: ending.sequence,
        at: When(ending.at),
        grace_ends_at: When(grace_ends_at(row)?),
        preempted_by: match revoked.reason {
            Reason::Preempted { by } => Some(by),
            _ => None,
        },
    })
}

/// The name of an object. A deleted one keeps the name that it had.
pub(crate) fn named(books: &Books, kind: NamedKind, number: impl Into<u64>, live: Option<&Name>) -> String {
    let number = number.into();
    let last = || books.named(kind, number).map(|object| object.name.to_string());
    live.map(ToString::to_string).or_else(last).unwrap_or_else(|| format!("{kind}-{number}"))
}

/// The names of the objects in leases, allocations and entries.
pub(crate) struct Known<'k> {
    pub(crate) state: &'k State,
    pub(crate) books: &'k Books,
}

impl Known<'_> {
    pub(crate) fn app_instance(&self, no: AppInstanceNo) -> String {
        let live = self.state.app_instance(no).map(|instance| &instance.name);
        let last = || self.books.named(NamedKind::AppInstance, no.0).map(|object| &object.name);
        live.or_else(last).map_or_else(|| no.to_string(), ToString::to_string)
    }
    /// The slug of an app, also of a deleted one.
    pub(crate) fn app(&self, app: AppTypeNo) -> Option<String> {
        let live = self.state.app_type(app).map(|app| app.slug.to_string());
        live.or_else(|| self.books.named(NamedKind::AppType, app.0).map(|object| object.name.to_string()))
    }
    pub(crate) fn tenant(&self, no: TenantNo) -> String {
        named(self.books, NamedKind::Tenant, no.0, self.state.tenant(no).map(|tenant| &tenant.settings.name))
    }
    pub(crate) fn project(&self, no: ProjectNo) -> String {
        named(self.books, NamedKind::Project, no.0, self.state.project(no).map(|project| &project.name))
    }
    pub(crate) fn user(&self, no: UserNo) -> String {
        named(self.books, NamedKind::User, no.0, self.state.user(no).map(|user| &user.name))
    }
    pub(crate) fn node(&self, no: NodeNo) -> String {
        named(self.books, NamedKind::Node, no.0, self.state.node(no).map(|node| &node.name))
    }
    pub(crate) fn pool(&self, no: PoolNo) -> String {
        named(self.books, NamedKind::Pool, no.0, self.state.pool(no).map(|pool| &pool.name))
    }
}

pub(crate) fn lease(app: &App, state: &State, books: &Books, row: &Row, standing: LeaseState) -> api::Lease {
    let class = books.class(row.class);
    let (rare, known) = (row.rare.as_deref(), Known { state, books });
    let labels = rare.into_iter().flat_map(|rare| &rare.labels);
    api::Lease {
        id: row.lease.to_string(),
        uid: app.lease_uid(row.lease),
        gang_id: row.gang().to_string(),
        allocation_id: row.allocation.map(api::AllocationId::from),
        app_instance: row.app_instance.map(|app| known.app_instance(app)),
        state: standing,
        tenant: known.tenant(row.tenant),
        project: known.project(row.project),
        user: row.user.map(|user| known.user(user)),
        workload: show::text(row.workload.as_ref()),
        accounting_tag: show::text(row.tag.and_then(|tag| books.tag(tag))),
        class: class.map_or_else(|| row.class.to_string(), |class| class.name.to_string()),
        quantity: class.map_or_else(String::new, |class| quantity::display(Quanta(row.quanta), class)),
        quanta: row.quanta,
        devices: show::devices(row.life.devices),
        node: known.node(row.node),
        pool: known.pool(row.pool),
        priority: row.priority,
        labels: labels.map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        sensitive: row.life.sensitive,
        over_soft: row.life.over_soft,
        correlation_id: Some(row.correlation().id(&app.genesis).to_string()),
        sequence: Some(row.life.sequence),
        granted_at: When(row.held.from),
        expires_at: When(row.life.expires_at),
        grace_ends_at: grace_ends_at(row).filter(|_| standing == LeaseState::Revoking).map(When),
        ended_at: (!is_held(standing)).then_some(When(row.held.to)),
        end: end(row.end).filter(|_| !is_held(standing)),
        revocation: revocation(row),
        fenced_at: rare.and_then(|rare| rare.fenced_at).map(When),
        closed_at: row.life.closed_at.map(When),
    }
}

/// An allocation without its attempts.
pub(crate) fn allocation(app: &App, state: &State, books: &Books, story: &Story) -> api::Allocation {
    let outline = &story.outline;
    let identity = Identity {
        tenant: Some(outline.tenant),
        project: Some(outline.project),
        user: outline.user,
        workload: story.workload.clone(),
        token: None,
    };
    let known = Known { state, books };
    let running = story.attempts.last().filter(|attempt| attempt.ended_at.is_none());
    let placed_at = running.map(|attempt| attempt.placed_at);
    let shown = as_submitted(app, state, outline.number, &identity, &story.spec, outline.submitted_at);
    api::Allocation {
        state: outline.state,
        tenant: known.tenant(outline.tenant),
        project: known.project(outline.project),
        user: outline.user.map(|user| known.user(user)),
        attempt: story.attempts.last().map_or(0, |attempt| attempt.number),
        placed_at: placed_at.map(When),
        ends_by: placed_at.and_then(|at| Some(When(at.saturating_add(story.spec.walltime?)))),
        ended_at: outline.ended_at.map(When),
        ..shown
    }
}

/// An allocation with its attempts and its final report.
pub(crate) fn detail(
    app: &App,
    state: &State,
    books: &Books,
    story: &Story,
) -> Result<api::AllocationDetail, BooksError> {
    let attempts = story.attempts.iter().map(|one| attempt(app, state, books, one));
    Ok(api::AllocationDetail {
        allocation: allocation(app, state, books, story),
        waiting: None,
        exit_status: story.over.and_then(|over| over.exit_status),
        storage_written: story.over.and_then(|over| over.known_written()),
        attempts: attempts.collect::<Result<_, _>>()?,
    })
}

fn attempt(app: &App, state: &State, books: &Books, one: &Attempt) -> Result<api::Attempt, BooksError> {
    let leases = books.leases_of(one.numbers().map(LeaseNo))?;
    // The first revocation of one of its leases.
    let revoked = leases.iter().filter(|(row, _)| row.revocation().is_some());
    let revoked = revoked.min_by_key(|(row, _)| row.life.ending.map(|ending| ending.sequence));
    let replicas = leases.chunk_by(|(a, _), (b, _)| a.gang() == b.gang()).map(|members| {
        let shown = members.iter().map(|(row, standing)| lease(app, state, books, row, *standing));
        let shown: Vec<api::Lease> = shown.collect();
        let first = &shown[0];
        api::Replica {
            node: first.node.clone(),
            pool: first.pool.clone(),
            expires_at: first.expires_at,
            grace_ends_at: first.grace_ends_at,
            capped_by_quota_id: None,
            leases: shown.into_iter().map(granted).collect(),
        }
    });
    let checkpoint = |written: &leasehold_books::Checkpoint| api::WrittenCheckpoint {
        at: When(written.at),
        bytes: written.bytes,
        took: Ttl(written.took),
    };
    Ok(api::Attempt {
        number: one.number,
        placed_at: When(one.placed_at),
        ended_at: one.ended_at.map(When),
        end: one.end,
        revocation: revoked.and_then(|(row, _)| revocation(row)),
        replicas: replicas.collect(),
        checkpoints: one.checkpoints.iter().map(checkpoint).collect(),
    })
}

fn granted(lease: api::Lease) -> api::GrantedLease {
    let api::Lease { id, uid, class, quantity, quanta, devices, .. } = lease;
    api::GrantedLease { id, uid, class, quantity, quanta, devices }
}
