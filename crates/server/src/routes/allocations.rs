//! Allocations: submitted, looked at, and what their holders say of them.

use super::capacity::{labels, optional_pool};
use super::leases::{Holder, asks, correlation, priority};
use crate::access::Caller;
use crate::attempts;
use crate::context::{Answer, Context, cursor_after, json};
use crate::show_allocations::{allocation, state_word, submitted, waiting};
use crate::{names, show};
use leasehold_api::{
    AllocationChanged, AllocationDetail, AllocationList, AllocationState, CheckpointReport, CompleteAllocation, Domain,
    Priority, Problem, SubmitAllocation, When, codes, limits,
};
use leasehold_engine::command::{self, ReportCheckpoint};
use leasehold_engine::{Allocation, Command, State};
use leasehold_model::{AllocationNo, AllocationSpec, Body, Identity};

fn domain(domain: Domain) -> leasehold_model::Domain {
    match domain {
        Domain::Node => leasehold_model::Domain::Node,
        Domain::Rack => leasehold_model::Domain::Rack,
        Domain::Zone => leasehold_model::Domain::Zone,
    }
}

pub(super) fn no_allocation(text: &str) -> Problem {
    let shown: String = text.chars().take(64).collect();
    Problem::new(404, "allocation_not_found", format!("There is no allocation \"{}\" here.", shown.escape_debug()))
}

/// The allocation that the path names: its number, or `alloc-` and the number.
pub(super) fn subject(context: &Context) -> Result<AllocationNo, Problem> {
    let text = context.subject();
    let digits = text.strip_prefix("alloc-").unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| plain).map(AllocationNo).ok_or_else(|| no_allocation(text))
}

fn to_spec(state: &State, caller: &Caller, asked: &SubmitAllocation) -> Result<(Identity, AllocationSpec), Problem> {
    let holder = Holder {
        tenant: asked.tenant.as_deref(),
        project: asked.project.as_deref(),
        user: asked.user.as_deref(),
        workload: asked.workload.as_deref(),
    };
    let spec = AllocationSpec {
        pool: optional_pool(state, asked.pool.as_deref())?,
        replicas: asked.replicas.unwrap_or(1),
        priority: priority(asked.priority.unwrap_or_default()),
        walltime: asked.walltime.map(|walltime| walltime.0),
        ttl: asked.ttl.map(|ttl| ttl.0),
        staged: asked.staged,
        requeue: asked.requeue,
        labels: labels(&asked.labels)?,
        together: asked.together.map(domain),
        apart: asked.apart.map(domain),
        sensitive: asked.sensitive,
        correlation: correlation(asked.correlation_id.as_deref())?,
        ..AllocationSpec::of(asks(state, &asked.asks)?)
    };
    Ok((holder.identity(state, caller)?, spec))
}

pub(super) async fn submit_allocation(context: Context) -> Answer {
    let asked: SubmitAllocation = context.body()?;
    let (identity, mut spec) = context.app.now.read(|state| to_spec(state, context.caller(), &asked))?;
    if let (Some(tenant), Some(workload)) = (identity.tenant, &identity.workload) {
        spec.profile = context.app.books.profiles.of(tenant, workload);
    }
    let sealed = context.app.seal(identity, Command::SubmitAllocation(spec), context.key()?).await?;
    json(201, &context.app.now.read(|state| submitted(&context.app, state, &sealed))?)
}

/// Seals what is said of the path's allocation. Where that put it stands in the records.
async fn say(context: &Context, command: Command) -> Answer {
    let number = subject(context)?;
    let sealed = context.seal(command).await?;
    let state = sealed.records.iter().rev().find_map(|record| match &record.body {
        Body::AllocationStarted(_) | Body::AllocationCheckpointed(_) => Some(AllocationState::Running),
        Body::AllocationCheckpointing(_) => Some(AllocationState::Checkpointing),
        Body::AllocationSuspended(_) => Some(AllocationState::Suspended),
        Body::AllocationRequeued(_) => Some(AllocationState::Pending),
        Body::AllocationCompleted(_) => Some(AllocationState::Completed),
        Body::AllocationFailed(_) => Some(AllocationState::Failed),
        Body::AllocationCancelled(_) => Some(AllocationState::Cancelled),
        _ => None,
    });
    let state = state.ok_or_else(|| codes::INTERNAL.problem("Nothing was sealed about the allocation."))?;
    json(200, &AllocationChanged { sequence: sealed.sequence(), id: number.0, state })
}

pub(super) async fn start_allocation(context: Context) -> Answer {
    say(&context, Command::StartAllocation(subject(&context)?)).await
}

pub(super) async fn begin_checkpoint(context: Context) -> Answer {
    say(&context, Command::BeginCheckpoint(subject(&context)?)).await
}

pub(super) async fn report_checkpoint(context: Context) -> Answer {
    let report: CheckpointReport = context.body()?;
    let allocation = subject(&context)?;
    let report = ReportCheckpoint { allocation, bytes: integer("bytes", report.bytes)?, took: report.took.0 };
    say(&context, Command::ReportCheckpoint(report)).await
}

pub(super) async fn complete_allocation(context: Context) -> Answer {
    let complete: CompleteAllocation = context.body()?;
    let complete = command::CompleteAllocation {
        allocation: subject(&context)?,
        exit_status: complete.exit_status,
        storage_written: integer("storage_written", complete.storage_written.unwrap_or(0))?,
    };
    say(&context, Command::CompleteAllocation(complete)).await
}

pub(super) async fn cancel_allocation(context: Context) -> Answer {
    say(&context, Command::CancelAllocation(subject(&context)?)).await
}

/// What is shown again as a number must survive every reader of JSON.
fn integer(field: &str, n: u64) -> Result<u64, Problem> {
    let bad = || codes::BAD_BODY.problem(format!("`{field}` is not a number below 2^53.")).with("field", field);
    if n <= limits::INTEGER_MAX { Ok(n) } else { Err(bad()) }
}

/// Which allocations a list shows.
struct Filter {
    tenant: Option<leasehold_model::TenantNo>,
    project: Option<leasehold_model::ProjectNo>,
    user: Option<leasehold_model::UserNo>,
    pool: Option<leasehold_model::PoolNo>,
    state: Option<AllocationState>,
    priority: Option<Priority>,
}

impl Filter {
    fn read(context: &Context, state: &State) -> Result<Self, Problem> {
        let caller = context.caller();
        let tenant = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let word = |name: &str| context.query(name).map(serde_json::Value::from);
        let bad =
            |name: &str| codes::BAD_QUERY.problem(format!("`{name}` is not one of the words that are known here."));
        Ok(Self {
            tenant,
            project: context.query("project").map(|text| names::project(state, caller, tenant, text)).transpose()?,
            user: context.query("user").map(|text| names::user(state, caller, tenant, text)).transpose()?,
            pool: optional_pool(state, context.query("pool"))?,
            state: word("state").map(serde_json::from_value).transpose().map_err(|_| bad("state"))?,
            priority: word("priority").map(serde_json::from_value).transpose().map_err(|_| bad("priority"))?,
        })
    }

    fn takes(&self, caller: &Caller, found: &Allocation) -> bool {
        caller.sees_project(found.tenant, found.project)
            && self.tenant.is_none_or(|tenant| tenant == found.tenant)
            && self.project.is_none_or(|project| project == found.project)
            && self.user.is_none_or(|user| Some(user) == found.user)
            && self.pool.is_none_or(|pool| Some(pool) == found.spec.pool)
            && self.state.is_none_or(|state| state == state_word(found.state))
            && self.priority.is_none_or(|wanted| priority(wanted) == found.spec.priority)
    }
}

/// Allocations looked through in one hold of the view: publishing waits that long at most.
const LOOKED_AT_ONCE: usize = 5_000;

pub(super) async fn list_allocations(context: Context) -> Answer {
    let (caller, app) = (context.caller(), &context.app);
    let filter = app.now.read(|state| Filter::read(&context, state))?;
    let limit = context.limit()?;
    let mut after = context.cursor()?.map(AllocationNo);
    let (mut allocations, mut looked) = (Vec::new(), 0);
    let finished = loop {
        let more = app.now.read(|state| {
            for (held, found) in state.allocations_after(after).enumerate() {
                if allocations.len() == limit || held == LOOKED_AT_ONCE {
                    return true;
                }
                after = Some(found.number);
                if filter.takes(caller, found) {
                    allocations.push(allocation(app, state, found));
                }
            }
            false
        });
        looked += LOOKED_AT_ONCE;
        if !more {
            break true;
        }
        if allocations.len() == limit || looked >= limits::ALLOCATIONS_SCANNED_MAX {
            break false;
        }
        tokio::task::yield_now().await;
    };
    let next_cursor = after.filter(|_| !finished).map(|last| cursor_after(last.0));
    json(200, &AllocationList { allocations, next_cursor })
}

pub(super) async fn show_allocation(context: Context) -> Answer {
    let (app, number) = (context.app.clone(), subject(&context)?);
    let caller = context.caller().clone();
    let live = app.now.read(|state| {
        let found = state.allocation(number).filter(|found| caller.sees_project(found.tenant, found.project))?;
        let now = app.clock.wall().max(state.last_stamp());
        let detail = AllocationDetail {
            allocation: allocation(&app, state, found),
            waiting: waiting(state, &caller, found, now),
            exit_status: None,
            storage_written: None,
            attempts: show_running(&app, state, found).into_iter().collect(),
        };
        Some((detail, has_more_to_tell(found)))
    });
    match live {
        Some((detail, false)) => json(200, &detail),
        Some((detail, true)) => {
            let told = crate::history::scan(&app, move |app| attempts::find(app, &caller, number)).await?;
            let mut attempts = told.map_or_else(Vec::new, |told| told.attempts);
            // What runs is shown as it stands, not as it was granted.
            for running in detail.attempts {
                if let Some(told) = attempts.iter_mut().find(|told| told.number == running.number) {
                    told.replicas = running.replicas;
                }
            }
            json(200, &AllocationDetail { attempts, ..detail })
        }
        None => {
            let told = crate::history::scan(&app, move |app| attempts::find(app, &caller, number)).await?;
            json(200, &told.ok_or_else(|| no_allocation(context.subject()))?)
        }
    }
}

/// Whether the journal knows more of it than the state: attempts before this one, or checkpoints.
fn has_more_to_tell(found: &Allocation) -> bool {
    found.attempt > 1 || found.attempt == 1 && (found.checkpointed || !found.state.is_placed())
}

/// The attempt that runs, from what it holds.
fn show_running(app: &crate::app::App, state: &State, found: &Allocation) -> Option<leasehold_api::Attempt> {
    if !found.state.is_placed() {
        return None;
    }
    let mut replicas: Vec<leasehold_api::Replica> = Vec::new();
    let mut gang = None;
    for lease in found.lease_numbers().filter_map(|lease| state.lease(lease)) {
        let shown = show::lease(app, state, lease);
        if gang != Some(lease.gang) {
            gang = Some(lease.gang);
            let (node, pool, expires_at) = (shown.node, shown.pool, shown.expires_at);
            replicas.push(leasehold_api::Replica { node, pool, leases: Vec::new(), expires_at });
        }
        let last = replicas.last_mut().expect("one was just made");
        last.leases.push(leasehold_api::GrantedLease {
            id: shown.id,
            class: shown.class,
            quantity: shown.quantity,
            quanta: shown.quanta,
            devices: shown.devices,
        });
    }
    Some(leasehold_api::Attempt {
        number: found.attempt,
        placed_at: When(found.placed_at),
        ended_at: None,
        end: None,
        replicas,
        checkpoints: Vec::new(),
    })
}
