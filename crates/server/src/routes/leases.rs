//! Single leases: requesting, renewing, releasing, revoking and showing them.

use super::books_query::named;
use super::capacity::{find_node, given_reason, labels, optional_pool, quanta};
use super::listing::{ListQuery, Listed, Walk, page};
use super::{release_again, submitted_again};
use crate::access::{Caller, visible_lease};
use crate::answer;
use crate::app::App;
use crate::context::{Answer, Context, cursor_after, json, json_bytes};
use crate::record_leases::of_lease;
use crate::scans::scan;
use crate::{books, names, past, show};
use leasehold_api::{
    Activity, Ask, ConfirmTeardowns, Fences, History, LeaseList, LeaseState, Problem, Release, Renew, RequestLease,
    Revoke, RevokeReason, TeardownsConfirmed, codes, limits,
};
use leasehold_books::{LeaseQuestion, Row};
use leasehold_cell::Sealed;
use leasehold_engine::command::{self, ReleaseOne, RenewOne};
use leasehold_engine::{Command, Lease, Readers, State};
use leasehold_model::body::Asks;
use leasehold_model::{
    AllocationNo, AppInstanceNo, ClassNo, CorrelationId, Identity, LeaseNo, NodeNo, Reason, ResourceKind, Span,
    TenantNo,
};
use smallvec::smallvec;

pub(super) fn no_lease(text: &str) -> Problem {
    let shown: String = text.chars().take(64).collect();
    Problem::new(404, "lease_not_found", format!("There is no lease \"{}\" here.", shown.escape_debug()))
}

/// The holder that a request names.
pub(super) struct Holder<'a> {
    pub(super) tenant: Option<&'a str>,
    pub(super) project: Option<&'a str>,
    pub(super) user: Option<&'a str>,
    pub(super) workload: Option<&'a str>,
}

impl Holder<'_> {
    pub(super) fn identity(&self, state: &State, caller: &Caller) -> Result<Identity, Problem> {
        let mut identity = caller.identity();
        let tenant = names::tenant_or_own(state, caller, self.tenant)?;
        identity.tenant = Some(tenant);
        if let Some(text) = self.project {
            identity.project = Some(names::project(state, caller, Some(tenant), text)?);
        }
        if let Some(text) = self.user {
            let user = names::user(state, caller, Some(tenant), text)?;
            // A token of a user may act only for that user.
            if caller.user.is_some_and(|own| own != user) {
                return Err(names::not_found("user", text, std::iter::empty()));
            }
            identity.user = Some(user);
        }
        identity.workload = names::optional_text("workload", self.workload)?;
        Ok(identity)
    }
}

pub(super) fn asks(state: &State, asked: &[Ask]) -> Result<Asks, Problem> {
    let mut asks = Asks::new();
    for ask in asked {
        let class = names::class(state, &ask.class)?;
        asks.push((class, quanta(state, class, &ask.quantity)?));
    }
    Ok(asks)
}

pub(super) fn correlation(text: Option<&str>) -> Result<Option<u128>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let bad = || {
        codes::BAD_ID
            .problem("`correlation_id` is neither a UUID nor 32 hexadecimal digits.")
            .with("field", "correlation_id")
    };
    CorrelationId::parse(text).map(|id| Some(id.0)).ok_or_else(bad)
}

/// Numbers that are shown again must be exact in every JSON reader.
pub(super) fn integer(field: &str, n: u64) -> Result<u64, Problem> {
    let bad = || codes::BAD_BODY.problem(format!("`{field}` must be an integer below 2^53.")).with("field", field);
    if n <= limits::INTEGER_MAX { Ok(n) } else { Err(bad()) }
}

/// The app instance that a request of a tenant names.
pub(super) fn app_instance(
    state: &State,
    caller: &Caller,
    of: Option<TenantNo>,
    text: Option<&str>,
) -> Result<Option<AppInstanceNo>, Problem> {
    text.map(|text| named("app_instance", names::app_instance(state, caller, of, text))).transpose()
}

pub(super) fn control_plane(is: bool, app_instance: Option<&str>) -> Result<bool, Problem> {
    if is && app_instance.is_none() {
        let detail = "`control_plane` is about an app instance; give its name in `app_instance`.";
        return Err(codes::BAD_BODY.problem(detail).with("field", "control_plane"));
    }
    Ok(is)
}

/// The command for a request, and its identity.
pub(super) fn to_request(state: &State, caller: &Caller, asked: &RequestLease) -> Result<(Identity, Command), Problem> {
    let holder = Holder {
        tenant: asked.tenant.as_deref(),
        project: asked.project.as_deref(),
        user: asked.user.as_deref(),
        workload: asked.workload.as_deref(),
    };
    let identity = holder.identity(state, caller)?;
    let request = command::RequestLease {
        pool: optional_pool(state, asked.pool.as_deref())?,
        node: asked.node.as_deref().map(|text| names::node_for_request(state, text)).transpose()?,
        asks: asks(state, &asked.asks)?,
        ttl: asked.ttl.0,
        priority: asked.priority.unwrap_or_default(),
        sensitive: asked.sensitive,
        control_plane: control_plane(asked.control_plane, asked.app_instance.as_deref())?,
        correlation: correlation(asked.correlation_id.as_deref())?,
        allocation: None,
        app_instance: app_instance(state, caller, identity.tenant, asked.app_instance.as_deref())?,
        attachment: None,
        source_project: None,
        hcl_entry: names::optional_text("hcl_entry", asked.hcl_entry.as_deref())?,
        dra_claim_id: names::optional_text("dra_claim_id", asked.dra_claim_id.as_deref())?,
        labels: labels(&asked.labels)?,
        profile: None,
    };
    Ok((identity, Command::Request(request)))
}

/// The same, with the sensitivity profile of the workload.
pub(super) fn to_known_request(
    app: &App,
    state: &State,
    caller: &Caller,
    asked: &RequestLease,
) -> Result<(Identity, Command), Problem> {
    let (identity, mut command) = to_request(state, caller, asked)?;
    if let (Some(tenant), Some(workload), Command::Request(request)) =
        (identity.tenant, &identity.workload, &mut command)
    {
        request.profile = app.books.profiles.of(tenant, workload);
    }
    Ok((identity, command))
}

pub(super) async fn request_lease(context: Context) -> Answer {
    let asked: RequestLease = context.body()?;
    let (app, caller) = (&context.app, context.caller());
    let (identity, command) = app.now.read(|state| to_known_request(app, state, caller, &asked))?;
    let sealed = context.seal_for(identity, command).await?;
    let mut out = Vec::with_capacity(512);
    let ended = submitted_again::look_up(app, caller, std::iter::once(&sealed)).await?;
    match context.app.now.read(|state| answer::granted(&context.app, state, &sealed, &ended, &mut out)) {
        Ok(status) => Ok(json_bytes(status, out)),
        Err(problem) => Err(problem),
    }
}

/// The lease in the path.
pub(super) fn subject(context: &Context) -> Result<LeaseNo, Problem> {
    context.app.lease_number(context.subject()).ok_or_else(|| no_lease(context.subject()))
}

/// An activity report as the engine takes it.
pub(super) fn to_activity(report: &Activity) -> Result<leasehold_model::Activity, Problem> {
    let digits = !report.busy_quantum_ns.is_empty() && report.busy_quantum_ns.bytes().all(|b| b.is_ascii_digit());
    let busy = report.busy_quantum_ns.parse::<u128>().ok().filter(|_| digits);
    let bad = |what: &str| codes::BAD_BODY.problem(what).with("field", "activity");
    let busy = busy.ok_or_else(|| bad("`busy_quantum_ns` must be a string of digits."))?;
    let mut waiting = [Span::ZERO; 5];
    for (kind, span) in &report.waiting {
        let place = ResourceKind::ALL.iter().position(|known| known.word() == kind);
        let place = place.ok_or_else(|| bad("`waiting` may contain only gpu, cpu, mem, block and net."))?;
        waiting[place] = span.0;
    }
    Ok(leasehold_model::Activity { covered: report.covered.0, busy, active: report.active.0, waiting })
}

pub(super) fn renewal(lease: LeaseNo, renew: &Renew) -> Result<Command, Problem> {
    let activity = renew.activity.as_ref().map(to_activity).transpose()?;
    Ok(Command::Renew(smallvec![RenewOne { lease, ttl: renew.ttl.0, activity }]))
}

pub(super) fn release(lease: LeaseNo, release: &Release) -> Result<Command, Problem> {
    let activity = release.activity.as_ref().map(to_activity).transpose()?;
    Ok(Command::Release(smallvec![ReleaseOne { lease, activity }]))
}

pub(super) fn revocation(lease: LeaseNo, revoke: &Revoke) -> Command {
    let reason = match revoke.reason.unwrap_or(RevokeReason::Operator) {
        RevokeReason::Operator => Reason::Operator,
        RevokeReason::Policy => Reason::Policy,
        RevokeReason::Budget => Reason::Budget,
        RevokeReason::DuplicateHolder => Reason::DuplicateHolder,
    };
    Command::Revoke(command::Revoke { leases: smallvec![lease], reason, grace: revoke.grace.map(|grace| grace.0) })
}

/// Submits a command about the lease in the path, and encodes the answer with `write`.
async fn on_lease(
    context: &Context,
    command: Command,
    write: impl FnOnce(&App, &Sealed, LeaseNo, &mut Vec<u8>),
) -> Answer {
    let lease = subject(context)?;
    let sealed = context.seal(command).await?;
    let mut out = Vec::with_capacity(192);
    write(&context.app, &sealed, lease, &mut out);
    Ok(json_bytes(200, out))
}

pub(super) async fn renew_lease(context: Context) -> Answer {
    let renew: Renew = context.body()?;
    let command = renewal(subject(&context)?, &renew)?;
    on_lease(&context, command, answer::renewed).await
}

pub(super) async fn release_lease(context: Context) -> Answer {
    let body: Release = context.body()?;
    let lease = subject(&context)?;
    let command = release(lease, &body)?;
    match on_lease(&context, command, answer::released).await {
        Err(problem) if release_again::may_be_repeated(&problem.code) => {
            let mut first = release_again::look_up(&context.app, context.caller(), vec![lease]).await?;
            json(200, &first.remove(&lease).ok_or(problem)?)
        }
        answer => answer,
    }
}

pub(super) async fn revoke_lease(context: Context) -> Answer {
    let revoke: Revoke = context.body()?;
    let command = revocation(subject(&context)?, &revoke);
    on_lease(&context, command, |app, sealed, _, out| answer::revoked(app, sealed, out)).await
}

pub(super) async fn lease_ready(context: Context) -> Answer {
    let command = Command::Ready(smallvec![subject(&context)?]);
    on_lease(&context, command, answer::ready).await
}

pub(super) async fn report_activity(context: Context) -> Answer {
    let report: Activity = context.body()?;
    let activity = Some(to_activity(&report)?);
    let command = Command::ReportActivity(smallvec![ReleaseOne { lease: subject(&context)?, activity }]);
    on_lease(&context, command, answer::plain).await
}

pub(super) async fn unfence_lease(context: Context) -> Answer {
    let reason = given_reason(&context)?;
    let command = Command::Unfence(command::Unfence { leases: smallvec![subject(&context)?], reason });
    on_lease(&context, command, answer::plain).await
}

/// The confirmation of one lease by the agent of its node or by an operator.
pub(super) fn confirmation(
    state: &State,
    caller: &Caller,
    lease: LeaseNo,
    fences: &Fences,
) -> Result<Command, Problem> {
    let generation = caller.checked_generation(fences.generation)?;
    let node = visible_lease(state, caller, lease).map(|lease| lease.node);
    let node = node.ok_or_else(|| no_lease(&lease.to_string()))?;
    let leases = smallvec![lease];
    Ok(Command::ConfirmTeardown(command::ConfirmTeardown { node, leases, generation }))
}

pub(super) async fn confirm_teardown(context: Context) -> Answer {
    let fences: Fences = context.body()?;
    let lease = subject(&context)?;
    let command = context.app.now.read(|state| confirmation(state, context.caller(), lease, &fences))?;
    on_lease(&context, command, answer::plain).await
}

pub(super) async fn confirm_teardowns(context: Context) -> Answer {
    let confirm: ConfirmTeardowns = context.body()?;
    let node = find_node(&context)?;
    let generation = context.caller().checked_generation(confirm.generation)?;
    let mut refused = std::collections::BTreeMap::new();
    let mut leases = command::LeaseList::new();
    // The answer names each lease as the caller did: agents look for what they sent.
    let mut named = std::collections::BTreeMap::new();
    for text in &confirm.leases {
        match context.app.lease_number(text) {
            Some(lease) => {
                leases.push(lease);
                named.insert(lease, text.clone());
            }
            None => {
                refused.insert(text.clone(), no_lease(text));
            }
        }
    }
    if leases.is_empty() && !refused.is_empty() {
        return Err(no_lease(&confirm.leases[0]));
    }
    let command = command::ConfirmTeardown { node, leases, generation };
    let sealed = context.seal(Command::ConfirmTeardown(command)).await?;
    let app = &context.app;
    let name = |lease: LeaseNo| named.get(&lease).cloned().unwrap_or_else(|| lease.to_string());
    app.now.read(|state| {
        let why = |why| crate::problem::refusal_for(state, context.caller(), why);
        refused.extend(sealed.refused.iter().map(|(lease, refusal)| (name(*lease), why(refusal))));
    });
    let confirmed = answer::torn_down(&sealed).map(name).collect();
    json(200, &TeardownsConfirmed { sequence: sealed.sequence(), confirmed, refused })
}

/// The filter of a list of leases.
struct Filter {
    asked: ListQuery<LeaseState>,
    node: Option<NodeNo>,
    class: Option<ClassNo>,
    allocation: Option<AllocationNo>,
}

impl Filter {
    fn read(context: &Context, state: &State) -> Result<Self, Problem> {
        Ok(Self {
            asked: ListQuery::read(context, state)?,
            node: context.query("node").map(|text| names::node_for_request(state, text)).transpose()?,
            class: context.query("class").map(|text| names::class(state, text)).transpose()?,
            allocation: context.query("allocation").map(super::allocations::number).transpose()?,
        })
    }

    /// Whether closed leases are included.
    fn wants_closed(&self) -> bool {
        self.asked.window.is_some() || self.allocation.is_some() || self.asked.state == Some(LeaseState::Closed)
    }

    /// The filter as a question for the books.
    fn question(&self, context: &Context) -> Result<LeaseQuestion, Problem> {
        let caller = context.caller();
        let (tenant, project) = self.asked.confined(caller);
        Ok(LeaseQuestion {
            filter: leasehold_books::Filter {
                tenant,
                project,
                users: self.asked.user.map(|user| [user].into()),
                pool: self.asked.pool,
                node: self.node.or(caller.node),
                priority: self.asked.priority,
                allocation: self.allocation,
                classes: self.class.map(|class| [class].into_iter().collect()),
                ..leasehold_books::Filter::default()
            },
            window: self.asked.window,
            standing: self.asked.state,
            after: context.cursor()?.map(LeaseNo),
            limit: context.limit()?,
        })
    }

    fn takes(&self, caller: &Caller, lease: &Lease) -> bool {
        let listed = Listed {
            tenant: lease.tenant,
            project: lease.project,
            user: lease.user,
            pool: Some(lease.pool),
            state: show::lease_state(lease.phase),
            priority: lease.priority,
        };
        caller.sees_lease(lease.tenant, Some(lease.project), lease.node)
            && self.node.is_none_or(|node| node == lease.node)
            && self.class.is_none_or(|class| class == lease.class)
            && self.asked.takes(&listed)
    }
}

pub(super) async fn list_leases(context: Context) -> Answer {
    let (caller, app) = (context.caller(), &context.app);
    let filter = app.now.read(|state| Filter::read(&context, state))?;
    if filter.wants_closed() {
        let (question, caller) = (filter.question(&context)?, caller.clone());
        let list = books::look_up(app, context.caller(), move |app, books| {
            let page = books.leases(&question, |row| caller.sees_lease(row.tenant, Some(row.project), row.node))?;
            let shown = app.now.read(|state| {
                page.leases.iter().map(|(row, standing)| past::lease(app, state, books, row, *standing)).collect()
            });
            Ok(LeaseList { leases: shown, next_cursor: page.next.map(|lease| cursor_after(lease.0)) })
        });
        return json(200, &list.await?);
    }
    let stretch = |state: &Readers, walk: &mut Walk<leasehold_api::Lease>| {
        for lease in state.leases_after(walk.after.map(LeaseNo)) {
            if !walk.goes_on() {
                return true;
            }
            walk.pass(lease.number.0, filter.takes(caller, lease).then(|| show::lease(app, state, lease)));
        }
        false
    };
    let (leases, next_cursor) = page(&context, limits::LEASES_SCANNED_MAX, stretch).await?;
    json(200, &LeaseList { leases, next_cursor })
}

/// A lease in the books that the caller may see.
pub(super) async fn find(context: &Context, number: LeaseNo) -> Result<Option<(Row, LeaseState)>, Problem> {
    let caller = context.caller().clone();
    let found = books::look_up(&context.app, context.caller(), move |_, books| books.lease(number)).await?;
    Ok(found.filter(|(row, _)| caller.sees_lease(row.tenant, Some(row.project), row.node)))
}

pub(super) async fn show_lease(context: Context) -> Answer {
    let (app, number, caller) = (&context.app, subject(&context)?, context.caller().clone());
    let found = books::look_up(app, context.caller(), move |app, books| {
        let found = books.lease(number)?;
        let found = found.filter(|(row, _)| caller.sees_lease(row.tenant, Some(row.project), row.node));
        Ok(found.map(|(row, standing)| app.now.read(|state| past::lease(app, state, books, &row, standing))))
    });
    match found.await {
        Ok(found) => json(200, &found.ok_or_else(|| no_lease(context.subject()))?),
        // The state knows live leases, except for a few fields that only the books have.
        Err(problem) if problem.code == codes::BOOKS_BEHIND.code => {
            let live = app.now.read(|state| {
                visible_lease(state, context.caller(), number).map(|lease| show::lease(app, state, lease))
            });
            json(200, &live.ok_or(problem)?)
        }
        Err(problem) => Err(problem),
    }
}

pub(super) async fn lease_history(context: Context) -> Answer {
    let (app, number) = (context.app.clone(), subject(&context)?);
    let (after, limit) = (context.cursor()?, context.limit()?);
    let (row, _) = find(&context, number).await?.ok_or_else(|| no_lease(context.subject()))?;
    let life = (row.life.sequence, row.life.closed_at);
    let (records, next) = scan(&app, context.caller(), move |app| of_lease(app, number, life, after, limit)).await?;
    let (id, uid) = (number.to_string(), app.lease_uid(number));
    json(200, &History { id, uid, records, next_cursor: next.map(cursor_after) })
}
