//! Submitting, listing and showing allocations, and the reports of their holders.

use super::attachments;
use super::books_query::named;
use super::capacity::{given_reason, labels, optional_pool};
use super::leases::{Holder, app_instance, asks, control_plane, correlation, integer};
use super::listing::{ListQuery, Listed, Walk, page};
use super::submitted_again;
use crate::access::Caller;
use crate::context::{Answer, Context, cursor_after, json};
use crate::show_allocations::{allocation, running_replicas, submitted, waiting};
use crate::{books, names, past};
use leasehold_api::{
    AllocationChange, AllocationChanged, AllocationDetail, AllocationId, AllocationList, AllocationState,
    CheckpointReport, CompleteAllocation, FailedStart, Problem, SubmitAllocation, When, codes, limits,
};
use leasehold_books::AllocationQuestion;
use leasehold_engine::command::{self, ReportCheckpoint};
use leasehold_engine::{Allocation, Command, Readers, State};
use leasehold_model::{AllocationNo, AllocationSpec, AttachmentNo, Body, Identity};

pub(super) fn no_allocation(text: &str) -> Problem {
    let shown: String = text.chars().take(64).collect();
    Problem::new(404, "allocation_not_found", format!("There is no allocation \"{}\" here.", shown.escape_debug()))
}

/// The allocation in the path.
pub(super) fn subject(context: &Context) -> Result<AllocationNo, Problem> {
    number(context.subject())
}

/// Parses an allocation: its number, or `alloc-` and the number.
pub(super) fn number(text: &str) -> Result<AllocationNo, Problem> {
    text.parse().map(|AllocationId(number)| AllocationNo(number)).map_err(|_| no_allocation(text))
}

fn to_submission(
    state: &State,
    caller: &Caller,
    asked: &SubmitAllocation,
) -> Result<(Identity, command::SubmitAllocation), Problem> {
    let holder = Holder {
        tenant: asked.tenant.as_deref(),
        project: asked.project.as_deref(),
        user: asked.user.as_deref(),
        workload: asked.workload.as_deref(),
    };
    let identity = holder.identity(state, caller)?;
    let attachment = asked.attachment.map(|number| attachments::find(state, caller, AttachmentNo(number))).transpose();
    let attachment = named("attachment", attachment)?;
    let spec = AllocationSpec {
        pool: optional_pool(state, asked.pool.as_deref())?,
        replicas: asked.replicas.unwrap_or(1),
        priority: asked.priority.unwrap_or_default(),
        walltime: asked.walltime.map(|walltime| walltime.0),
        ttl: asked.ttl.map(|ttl| ttl.0),
        staged: asked.staged,
        requeue: asked.requeue,
        labels: labels(&asked.labels)?,
        together: asked.together,
        apart: asked.apart,
        sensitive: asked.sensitive,
        control_plane: control_plane(asked.control_plane, asked.app_instance.as_deref())?,
        app_instance: app_instance(state, caller, identity.tenant, asked.app_instance.as_deref())?,
        attachment: attachment.map(|lent| lent.number),
        source_project: attachment.map(|lent| lent.source_project),
        correlation: correlation(asked.correlation_id.as_deref())?,
        ..AllocationSpec::of(asks(state, &asked.asks)?)
    };
    let submit = command::SubmitAllocation {
        spec,
        hcl_entry: names::optional_text("hcl_entry", asked.hcl_entry.as_deref())?,
        dra_claim_id: names::optional_text("dra_claim_id", asked.dra_claim_id.as_deref())?,
        when_over_quota: asked.when_over_quota,
    };
    Ok((identity, submit))
}

pub(super) async fn submit_allocation(context: Context) -> Answer {
    let asked: SubmitAllocation = context.body()?;
    let (identity, mut submit) = context.app.now.read(|state| to_submission(state, context.caller(), &asked))?;
    if let (Some(tenant), Some(workload)) = (identity.tenant, &identity.workload) {
        submit.spec.profile = context.app.books.profiles.of(tenant, workload);
    }
    let sealed = context.seal_for(identity, Command::SubmitAllocation(submit)).await?;
    let ended = submitted_again::look_up(&context.app, context.caller(), std::iter::once(&sealed)).await?;
    json(201, &context.app.now.read(|state| submitted(&context.app, state, &sealed, &ended))?)
}

/// The state of an allocation after a record about it; `None` for other records.
fn state_after(body: &Body) -> Option<AllocationState> {
    match body {
        Body::AllocationStarted(_) | Body::AllocationCheckpointed(_) => Some(AllocationState::Running),
        Body::AllocationCheckpointing(_) => Some(AllocationState::Checkpointing),
        Body::AllocationSuspended(_) => Some(AllocationState::Suspended),
        Body::AllocationRequeued(_) => Some(AllocationState::Pending),
        Body::AllocationCompleted(_) => Some(AllocationState::Completed),
        Body::AllocationFailed(_) => Some(AllocationState::Failed),
        Body::AllocationCancelled(_) => Some(AllocationState::Cancelled),
        leasehold_model::setup_kinds!()
        | Body::Granted(_)
        | Body::Renewed(_)
        | Body::Released(_)
        | Body::ActivityReported(_)
        | Body::Expired(_)
        | Body::Revoked(_)
        | Body::TeardownStarted(_)
        | Body::TornDown(_)
        | Body::Fenced(_)
        | Body::Unfenced(_)
        | Body::WindowPut(_)
        | Body::WindowStarted(_)
        | Body::WindowEnded(_)
        | Body::WindowAnnounced(_)
        | Body::EndsCorrected(_)
        | Body::ClaimEndCorrected(_)
        | Body::LossSettled(_)
        | leasehold_model::ledger_kinds!()
        | Body::Preempted(_)
        | Body::NodePut(_)
        | Body::NodeDeleted(_)
        | Body::NodeDrained(_)
        | Body::NodeResumed(_)
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
        | Body::AllocationHoldSet(_)
        | Body::AllocationHoldCleared(_)
        | Body::AllocationChanged(_)
        | Body::AllocationDenied(_)
        | Body::AllocationPlaced(_)
        | Body::NodesClaimed(_)
        | Body::NodesReleased(_)
        | Body::NodeWiped(_)
        | Body::NodeQuarantined(_)
        | Body::QuarantineCleared(_)
        | Body::Unknown { .. } => None,
    }
}

/// Submits a command about the allocation in the path, and answers with its new state.
async fn seal_report(context: &Context, command: Command) -> Answer {
    answer_state(context, subject(context)?, command).await
}

/// Submits a command about an allocation, and answers with its new state.
async fn answer_state(context: &Context, number: AllocationNo, command: Command) -> Answer {
    let sealed = context.seal(command).await?;
    let state = sealed.records.iter().rev().find_map(|record| state_after(&record.body));
    let state = state.ok_or_else(|| codes::INTERNAL.problem("Nothing was sealed about the allocation."))?;
    json(200, &AllocationChanged { sequence: sealed.sequence(), id: number.into(), state })
}

pub(super) async fn start_allocation(context: Context) -> Answer {
    seal_report(&context, Command::StartAllocation(subject(&context)?)).await
}

pub(super) async fn begin_checkpoint(context: Context) -> Answer {
    seal_report(&context, Command::BeginCheckpoint(subject(&context)?)).await
}

pub(super) async fn report_checkpoint(context: Context) -> Answer {
    let report: CheckpointReport = context.body()?;
    let allocation = subject(&context)?;
    let report = ReportCheckpoint { allocation, bytes: integer("bytes", report.bytes)?, took: report.took.0 };
    seal_report(&context, Command::ReportCheckpoint(report)).await
}

pub(super) async fn complete_allocation(context: Context) -> Answer {
    let complete: CompleteAllocation = context.body()?;
    let complete = command::CompleteAllocation {
        allocation: subject(&context)?,
        exit_status: complete.exit_status,
        storage_written: integer("storage_written", complete.storage_written.unwrap_or(0))?,
    };
    seal_report(&context, Command::CompleteAllocation(complete)).await
}

pub(super) async fn report_failed_start(context: Context) -> Answer {
    let failed: FailedStart = context.body()?;
    let allocation = number(&failed.allocation)?;
    let node = super::capacity::find_node(&context)?;
    let generation = context.caller().checked_generation(failed.generation)?;
    let command = Command::FailStart(command::FailStart { allocation, node: Some(node), generation });
    answer_state(&context, allocation, command).await
}

pub(super) async fn cancel_allocation(context: Context) -> Answer {
    seal_report(&context, Command::CancelAllocation(subject(&context)?)).await
}

/// Submits a command about the waiting allocation in the path, and answers with its present state.
async fn seal_pending(context: &Context, command: Command) -> Answer {
    let number = subject(context)?;
    let sealed = context.seal(command).await?;
    let state = context.app.now.read(|state| state.allocation(number).map(|found| found.state));
    let state = state.unwrap_or(AllocationState::Pending);
    json(200, &AllocationChanged { sequence: sealed.sequence(), id: number.into(), state })
}

pub(super) async fn hold_allocation(context: Context) -> Answer {
    let (allocation, reason) = (subject(&context)?, given_reason(&context)?);
    seal_pending(&context, Command::HoldAllocation(command::HoldAllocation { allocation, reason })).await
}

pub(super) async fn release_hold(context: Context) -> Answer {
    seal_pending(&context, Command::ReleaseHold(subject(&context)?)).await
}

pub(super) async fn change_allocation(context: Context) -> Answer {
    let change: AllocationChange = context.body()?;
    let pool = context.app.now.read(|state| change.pool.try_map(|pool| names::pool(state, &pool)))?;
    let change = command::ChangeAllocation {
        allocation: subject(&context)?,
        priority: change.priority,
        pool: pool.nested(),
        walltime: change.walltime.nested().map(|walltime| walltime.map(|walltime| walltime.0)),
        ttl: change.ttl.nested().map(|ttl| ttl.map(|ttl| ttl.0)),
        requeue: change.requeue,
    };
    seal_pending(&context, Command::ChangeAllocation(change)).await
}

fn takes(asked: &ListQuery<AllocationState>, caller: &Caller, found: &Allocation) -> bool {
    let listed = Listed {
        tenant: found.tenant,
        project: found.project,
        user: found.user,
        pool: found.spec.pool,
        state: found.state,
        priority: found.spec.priority,
    };
    caller.sees_project(found.tenant, found.project) && asked.takes(&listed)
}

/// Whether allocations that have ended are included.
fn wants_over(asked: &ListQuery<AllocationState>) -> bool {
    asked.window.is_some() || asked.state.is_some_and(AllocationState::is_over)
}

/// The query as a question for the books.
fn question(context: &Context, asked: &ListQuery<AllocationState>) -> Result<AllocationQuestion, Problem> {
    let (tenant, project) = asked.confined(context.caller());
    Ok(AllocationQuestion {
        tenant,
        project,
        user: asked.user,
        pool: asked.pool,
        priority: asked.priority,
        state: asked.state,
        window: asked.window,
        after: context.cursor()?.map(AllocationNo),
        limit: context.limit()?,
    })
}

pub(super) async fn list_allocations(context: Context) -> Answer {
    let (caller, app) = (context.caller(), &context.app);
    let asked = app.now.read(|state| ListQuery::read(&context, state))?;
    let (mut allocations, next_cursor) = if wants_over(&asked) {
        let (question, caller) = (question(&context, &asked)?, caller.clone());
        let listed = books::look_up(app, context.caller(), move |app, books| {
            let page = books.allocations(&question, |one| caller.sees_project(one.tenant, one.project))?;
            let shown = app
                .now
                .read(|state| page.allocations.iter().map(|one| past::allocation(app, state, books, one)).collect());
            Ok((shown, page.next.map(|number| cursor_after(number.0))))
        });
        listed.await?
    } else {
        let stretch = |state: &Readers, walk: &mut Walk<leasehold_api::Allocation>| {
            for found in state.allocations_after(walk.after.map(AllocationNo)) {
                if !walk.goes_on() {
                    return true;
                }
                walk.pass(found.number.0, takes(&asked, caller, found).then(|| allocation(app, state, found)));
            }
            false
        };
        page(&context, limits::ALLOCATIONS_SCANNED_MAX, stretch).await?
    };
    if allocations.iter().any(|found| found.state.is_queued()) {
        let standings = app.now.read(|state| state.standings(app.time().max(state.last_stamp())));
        let positions = standings.in_order();
        for found in allocations.iter_mut().filter(|found| found.state.is_queued()) {
            found.position = positions.of(AllocationNo(found.id.0));
        }
    }
    json(200, &AllocationList { allocations, next_cursor })
}

pub(super) async fn show_allocation(context: Context) -> Answer {
    let (app, number) = (context.app.clone(), subject(&context)?);
    let caller = context.caller().clone();
    let live = app.now.readers(|state| {
        let found = state.allocation(number).filter(|found| caller.sees_project(found.tenant, found.project))?;
        let now = app.time().max(state.last_stamp());
        let waiting = waiting(state, &caller, found, now);
        let position = waiting.as_ref().map(|waiting| waiting.position);
        let detail = AllocationDetail {
            allocation: leasehold_api::Allocation { position, ..allocation(&app, state, found) },
            waiting,
            exit_status: None,
            storage_written: None,
            attempts: show_running(&app, state, found).into_iter().collect(),
        };
        Some((detail, is_incomplete_in_state(found)))
    });
    if let Some((detail, false)) = live {
        return json(200, &detail);
    }
    let shown = books::look_up(&app, context.caller(), move |app, books| {
        let story = books.allocation(number)?;
        let story = story.filter(|story| caller.sees_project(story.outline.tenant, story.outline.project));
        story.map(|story| app.now.read(|state| past::detail(app, state, books, &story))).transpose()
    });
    let shown = shown.await?.ok_or_else(|| no_allocation(context.subject()))?;
    match live {
        // While it waits or runs, the state is more recent than the books.
        Some((detail, _)) if !shown.allocation.state.is_over() => {
            json(200, &AllocationDetail { attempts: shown.attempts, ..detail })
        }
        _ => json(200, &shown),
    }
}

/// Whether the books know more than the state: earlier attempts, checkpoints, the reason of a revocation.
fn is_incomplete_in_state(found: &Allocation) -> bool {
    found.attempt > 1 || found.attempt == 1 && (found.checkpointed || found.ends.is_some() || !found.state.is_placed())
}

/// The current attempt, from its leases.
fn show_running(app: &crate::app::App, state: &State, found: &Allocation) -> Option<leasehold_api::Attempt> {
    if !found.state.is_placed() {
        return None;
    }
    Some(leasehold_api::Attempt {
        number: found.attempt,
        placed_at: When(found.placed_at),
        ended_at: None,
        end: None,
        revocation: None,
        replicas: running_replicas(app, state, found),
        checkpoints: Vec::new(),
    })
}
