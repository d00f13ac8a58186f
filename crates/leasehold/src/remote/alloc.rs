//! `leasehold alloc …`.

use super::details::{Details, or_dash, word};
use super::explain;
use super::failure::Failed;
use super::lease::{devices, revocation, short};
use super::lease_request;
use super::pairs::by_key;
use super::patch::{patch, something};
use super::session::{Session, keyed, whose};
use super::units::Classes;
use super::watch::watch;
use crate::cli::alloc::{AllocCommand, AllocField, AllocListArgs, AllocShowArgs, SubmitArgs};
use crate::numbers;
use crate::output::{print, print_json};
use crate::problem::{EXIT_OK, Problem};
use crate::table::{Align, Table};
use crate::term::{self, Style};
use crate::time_format;
use leasehold_api::{
    Allocation, AllocationChange, AllocationChanged, AllocationDetail, AllocationId, AllocationState, Attempt,
    AttemptEnd, CheckpointReport, CompleteAllocation, Replica, SubmitAllocation, Submitted, When, WithReason,
};

pub(super) async fn run(session: &Session, command: AllocCommand) -> Result<u8, Failed> {
    let client = &session.client;
    match command {
        AllocCommand::Submit(args) => submit(session, *args).await?,
        AllocCommand::List(args) => list(session, &args).await?,
        AllocCommand::Show(args) => show(session, &args).await?,
        AllocCommand::Explain(args) => {
            session
                .show(client.explain_allocation(&args.allocation), |explanation| explain::text(session, explanation))
                .await?;
        }
        AllocCommand::Cancel(args) => {
            session.change(client.cancel_allocation(&args.allocation), &args.change, now_is).await?;
        }
        AllocCommand::Hold(args) => {
            let call = client.hold_allocation(&args.allocation, &WithReason { reason: args.reason });
            let text = |done: &AllocationChanged| format!("{} is on hold\n", done.id);
            session.change(call, &args.change, text).await?;
        }
        AllocCommand::Release(args) => {
            let text = |done: &AllocationChanged| format!("{} is no longer on hold\n", done.id);
            session.change(client.release_hold(&args.allocation), &args.change, text).await?;
        }
        AllocCommand::Set(args) => {
            let change = something(AllocationChange {
                priority: args.priority,
                pool: patch(args.pool, &args.clear, AllocField::Pool)?,
                walltime: patch(args.walltime, &args.clear, AllocField::Walltime)?,
                ttl: patch(args.ttl, &args.clear, AllocField::Ttl)?,
                requeue: args.requeue,
            })?;
            let text = |done: &AllocationChanged| format!("{} was changed\n", done.id);
            session.change(client.change_allocation(&args.allocation, &change), &args.change, text).await?;
        }
        AllocCommand::Start(args) => {
            session.change(client.start_allocation(&args.allocation), &args.change, now_is).await?;
        }
        AllocCommand::Checkpoint(args) => {
            let call = match (args.bytes, args.took) {
                (Some(bytes), Some(took)) => {
                    client.report_checkpoint(&args.allocation, &CheckpointReport { bytes, took })
                }
                _ => client.begin_checkpoint(&args.allocation),
            };
            session.change(call, &args.change, now_is).await?;
        }
        AllocCommand::Complete(args) => {
            let done = CompleteAllocation { exit_status: args.exit_status, storage_written: args.storage_written };
            session.change(client.complete_allocation(&args.allocation, &done), &args.change, now_is).await?;
        }
    }
    Ok(EXIT_OK)
}

/// `alloc-42`, which is accepted wherever the number is.
fn now_is(changed: &AllocationChanged) -> String {
    format!("{} is {}\n", changed.id, word(changed.state))
}

async fn submit(session: &Session, args: SubmitArgs) -> Result<(), Failed> {
    let client = &session.client;
    let (wanted, classes) = lease_request::wanted(client, &args.asks).await?;
    let who = args.who;
    let request = SubmitAllocation {
        tenant: who.tenant,
        project: who.project,
        user: who.user,
        workload: who.workload,
        asks: wanted,
        replicas: Some(args.replicas),
        walltime: args.walltime,
        ttl: args.ttl,
        priority: who.priority,
        pool: who.pool,
        staged: args.staged,
        requeue: args.requeue,
        labels: by_key("--label", &args.labels, String::clone)?,
        together: args.together,
        apart: args.apart,
        app_instance: who.app_instance,
        control_plane: who.control_plane,
        attachment: args.attachment,
        sensitive: who.sensitive,
        correlation_id: who.correlation_id,
        when_over_quota: args.when_over_quota,
        hcl_entry: args.hcl_entry,
        dra_claim_id: args.dra_claim_id,
    };
    let call = client.submit_allocation(&request);
    if !args.wait {
        return session.change(call, &args.change, |submitted| begun(session, submitted, &classes)).await;
    }
    let submitted = keyed(call, &args.change).await?;
    follow(session, submitted.id, &classes).await
}

/// Prints why the allocation waits whenever that changes, until it is placed or has ended; then shows it.
async fn follow(session: &Session, id: AllocationId, classes: &Classes) -> Result<(), Failed> {
    let mut printed = String::new();
    let mut last = None;
    let placed = session.client.until_placed(id, |detail| {
        if let Some(waiting) = &detail.waiting
            && waiting.detail != printed
        {
            printed.clone_from(&waiting.detail);
            term::say(&format!("leasehold: {} waits: {}\n", id, waiting.detail));
        }
        last = Some(detail.clone());
    });
    let placed = placed.await;
    if let Some(detail) = last.filter(|detail| placed.is_ok() || detail.allocation.state.is_over()) {
        if session.json {
            print_json(&serde_json::to_value(&detail).unwrap_or_default())?;
        } else {
            print(&one(session, &detail, classes))?;
        }
    }
    placed?;
    Ok(())
}

fn begun(session: &Session, submitted: &Submitted, classes: &Classes) -> String {
    let id = submitted.id.to_string();
    if submitted.replicas.is_empty() {
        return format!("{id} waits in the queue; `leasehold alloc show {id}` shows why\n");
    }
    let shown = places(session, &submitted.replicas, classes, false);
    let capped_by = submitted.replicas.iter().find_map(|replica| replica.capped_by_quota_id);
    let shortened = capped_by.map(|quota| format!("shortened by the burst limit of quota {quota}\n"));
    format!("{id} is {}\n\n{shown}{}", word(submitted.state), shortened.unwrap_or_default())
}

fn places(session: &Session, replicas: &[Replica], classes: &Classes, over: bool) -> String {
    let headings = [
        ("replica", Align::Right),
        ("node", Align::Left),
        ("lease", Align::Left),
        ("class", Align::Left),
        ("quantity", Align::Right),
        ("devices", Align::Left),
        ("ends", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["class", "devices"]);
    let now = time_format::now();
    for (number, replica) in (1..).zip(replicas) {
        for (place, lease) in replica.leases.iter().enumerate() {
            let first = |text: String| if place == 0 { text } else { String::new() };
            table.row([
                first(number.to_string()),
                first(replica.node.clone()),
                short(&lease.id),
                lease.class.clone(),
                classes.with_unit(&lease.class, &lease.quantity),
                devices(&lease.devices),
                first(match (over, replica.grace_ends_at) {
                    (true, _) => "-".to_owned(),
                    (false, Some(grace)) => format!("{} (grace)", time_format::distance(grace, now)),
                    (false, None) => time_format::distance(replica.expires_at, now),
                }),
            ]);
        }
    }
    session.lines(&table).join("\n") + "\n"
}

async fn list(session: &Session, args: &AllocListArgs) -> Result<(), Failed> {
    let call = session
        .past(whose(session.client.list_allocations(), &args.whose), &args.past)?
        .maybe("pool", args.pool.as_ref())
        .maybe("state", args.state);
    let classes = if session.json { Classes::none() } else { Classes::load(&session.client).await? };
    if args.watch.watch {
        let call = call.query("limit", leasehold_api::limits::PAGE_MAX);
        return watch(session, async || Ok(allocations(&call.clone().all().await?, &classes))).await;
    }
    session.list(call, |items| allocations(items, &classes)).await
}

fn style(state: AllocationState) -> Style {
    match state {
        AllocationState::Running => Style::Green,
        AllocationState::Staging | AllocationState::Checkpointing => Style::Cyan,
        AllocationState::Pending | AllocationState::Suspended => Style::Yellow,
        AllocationState::Failed => Style::Red,
        AllocationState::Completed | AllocationState::Cancelled => Style::Dim,
    }
}

/// `4 × 8 GPU + 64 core`.
fn gang(allocation: &Allocation, classes: &Classes) -> String {
    let asks: Vec<String> = allocation.asks.iter().map(|ask| classes.with_unit(&ask.class, &ask.quantity)).collect();
    match allocation.replicas {
        1 => asks.join(" + "),
        several => format!("{several} × {}", asks.join(" + ")),
    }
}

fn allocations(items: &[Allocation], classes: &Classes) -> Table {
    let headings = [
        ("alloc", Align::Left),
        ("state", Align::Left),
        ("position", Align::Right),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("user", Align::Left),
        ("workload", Align::Left),
        ("gang", Align::Left),
        ("pool", Align::Left),
        ("priority", Align::Left),
        ("submitted", Align::Right),
        ("ends by", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["workload", "user", "project", "pool", "submitted", "tenant"]);
    let now = time_format::now();
    for item in items {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            (item.id.to_string(), Style::Bold),
            (word(item.state), style(item.state)),
            plain(or_dash(item.position)),
            plain(item.tenant.clone()),
            plain(item.project.clone()),
            plain(or_dash(item.user.as_ref())),
            plain(or_dash(item.workload.as_ref())),
            plain(gang(item, classes)),
            plain(or_dash(item.pool.as_ref())),
            plain(word(item.priority)),
            plain(time_format::distance(item.submitted_at, now)),
            plain(or_dash(item.ends_by.map(|at| time_format::distance(at, now)))),
        ]);
    }
    table
}

async fn show(session: &Session, args: &AllocShowArgs) -> Result<(), Failed> {
    let call = session.client.show_allocation(&args.allocation);
    let classes = if session.json { Classes::none() } else { Classes::load(&session.client).await? };
    if args.watch.watch {
        return watch(session, async || Ok(details(session, &call.clone().await?, &classes).table())).await;
    }
    session.show(call, |detail| one(session, detail, &classes)).await
}

fn deadline(at: When) -> String {
    format!("{} ({})", time_format::to_the_second(at), time_format::distance(at, time_format::now()))
}

fn details(session: &Session, detail: &AllocationDetail, classes: &Classes) -> Details {
    let allocation = &detail.allocation;
    let labels: Vec<String> = allocation.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let waiting = detail.waiting.as_ref();
    let within = |domain| format!("one {}", word(domain));
    let running = detail.attempts.last().filter(|attempt| attempt.ended_at.is_none());
    let revoked = running.and_then(|attempt| attempt.revocation.as_ref());
    Details::new()
        .add("alloc", allocation.id.to_string())
        .add("state", session.paint.paint(style(allocation.state), &word(allocation.state)))
        .maybe("waits", waiting.map(|waiting| &waiting.detail))
        .maybe("starts by", waiting.and_then(|waiting| waiting.starts_by).map(deadline))
        .add("tenant", &allocation.tenant)
        .add("project", &allocation.project)
        .maybe("user", allocation.user.as_ref())
        .maybe("workload", allocation.workload.as_ref())
        .add("gang", gang(allocation, classes))
        .add("priority", word(allocation.priority))
        .maybe("pool", allocation.pool.as_ref())
        .maybe("labels", (!labels.is_empty()).then(|| labels.join(", ")))
        .maybe("all replicas in", allocation.together.map(within))
        .maybe("no two replicas in", allocation.apart.map(within))
        .maybe("walltime", allocation.walltime.map(|walltime| time_format::span(walltime.0)))
        .maybe("initial TTL", allocation.ttl.map(|ttl| time_format::span(ttl.0)))
        .maybe("staged", allocation.staged.then_some("yes"))
        .maybe("requeue", allocation.requeue.then_some("when interrupted without a checkpoint"))
        .add("correlation ID", &allocation.correlation_id)
        .maybe("sensitive", allocation.sensitive.then_some("yes"))
        .maybe("app instance", allocation.app_instance.as_ref())
        .maybe("attachment", allocation.attachment)
        .maybe("paid by", allocation.source_project.as_ref())
        .add("submitted", deadline(allocation.submitted_at))
        .maybe("running since", allocation.placed_at.map(deadline))
        .maybe("ends by", allocation.ends_by.map(deadline))
        .maybe("revoked", revoked.map(revocation))
        .maybe("grace ends", revoked.map(|revoked| deadline(revoked.grace_ends_at)))
        .maybe("ended", allocation.ended_at.map(deadline))
        .maybe("exit status", detail.exit_status)
        .maybe("storage written", detail.storage_written.map(numbers::bytes))
}

fn one(session: &Session, detail: &AllocationDetail, classes: &Classes) -> String {
    let mut text = details(session, detail, classes).text(session.paint);
    for attempt in &detail.attempts {
        let heading = format!("  attempt {}: {}", attempt.number, attempt_line(attempt));
        let over = attempt.ended_at.is_some();
        text.push_str(&format!("\n{heading}\n{}", places(session, &attempt.replicas, classes, over)));
    }
    text
}

/// An attempt in one line.
fn attempt_line(attempt: &Attempt) -> String {
    let mut parts = vec![format!("since {}", time_format::to_the_second(attempt.placed_at))];
    if let Some(ended) = attempt.ended_at {
        let length = time_format::span(ended.0.since(attempt.placed_at.0));
        let why = match (&attempt.revocation, attempt.end) {
            // The reason is more specific than the state "revoked".
            (Some(revoked), Some(AttemptEnd::Preempted | AttemptEnd::Revoked)) => format!(", {}", revocation(revoked)),
            (_, end) => end.map_or_else(String::new, |end| format!(", {}", word(end).replace('_', " "))),
        };
        parts.push(format!("for {length}{why}"));
    }
    if let Some(last) = attempt.checkpoints.last() {
        let count = attempt.checkpoints.len();
        let many = if count == 1 { "checkpoint".to_owned() } else { format!("{count} checkpoints, the last one") };
        let (size, took) = (numbers::bytes(last.bytes), time_format::span(last.took.0));
        parts.push(format!("{many} {} of {size} in {took}", time_format::distance(last.at, time_format::now())));
    }
    parts.join("; ")
}

/// Waits for a request whose capacity is being freed by evictions, and says so.
pub(super) async fn wait_for_lease(session: &Session, submitted: &Submitted) -> Result<leasehold_api::Granted, Failed> {
    let id = submitted.id.to_string();
    say_waits_for_evictions(&id);
    let placed = session.client.until_placed(submitted.id, |_| {}).await?;
    let granted = placed.granted();
    Ok(granted.ok_or_else(|| Problem::refused("bad_answer", format!("{id} has no leases although it was placed")))?)
}

pub(super) fn say_waits_for_evictions(id: &str) {
    term::say(&format!(
        "leasehold: the request waits as {id} until evicted leases have ended (`leasehold alloc cancel {id}` cancels it)\n"
    ));
}
