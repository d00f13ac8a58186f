//! Gauges that are computed when the page is made.

use super::Sources;
use super::page::Page;
use crate::scrub::Figures;
use leasehold_cell::{Cell, Now};
use leasehold_engine::{CapacitySplit, Phase, Quota, State};
use leasehold_model::{
    AllocationNo, AllocationState, CeilingMode, ClassNo, LeaseNo, LimitKind, NodeNo, PoolNo, TenantNo,
};
use std::collections::BTreeMap;

/// Leases or nodes that are read before the view is released for a moment.
const AT_ONCE: usize = 4096;
/// Tenants whose quotas are read before the view is released.
const TENANTS_AT_ONCE: usize = 16;
/// Series of one metric. With more, capacity is shown by class only.
const SERIES_MAX: usize = 10_000;
/// Each quota has two or three series; with more quotas only their counts are shown.
const QUOTAS_MAX: u64 = 5000;

pub(super) fn journal(page: &mut Page, sources: &Sources<'_>) {
    let journal = sources.cell.journal();
    // The checkpoint first: records appended meanwhile must not make the lag negative.
    let (signed, size) = (journal.checkpointed().size(), journal.head().size);
    page.gauge("journal_records", "Durable records: the size of the chain.").set(size);
    page.gauge("journal_epoch", "How often the journal was opened for writing.").set(journal.epoch());
    page.gauge("journal_room_bytes", "Bytes that are allocated and can be appended.").set(journal.room());
    page.gauge("checkpoint_records", "Records that the newest signed checkpoint covers.").set(signed);
    page.gauge("checkpoint_lag_records", "Durable records that no checkpoint covers yet.")
        .set(size.saturating_sub(signed));
    page.gauge("books_records", "Records that the books have processed.").set(sources.books);
    page.gauge("books_lag_records", "Durable records that the books have not processed yet.")
        .set(size.saturating_sub(sources.books));
    if let Ok(disk) = rustix::fs::statvfs(sources.data) {
        page.gauge("disk_free_bytes", "Free bytes of the disk with the data directory.")
            .set(disk.f_bavail.saturating_mul(disk.f_frsize));
        page.gauge("disk_size_bytes", "Size of that disk in bytes.").set(disk.f_blocks.saturating_mul(disk.f_frsize));
    }
}

pub(super) fn scrub(page: &mut Page, scrub: &Figures) {
    page.gauge("scrub_enabled", "1 if passes of the scrub begin by themselves.").set(u64::from(scrub.enabled));
    page.gauge("scrub_running", "1 while a pass of the scrub runs.").set(u64::from(scrub.running));
    page.gauge("scrub_records", "Records that the present pass has read.").set(scrub.records);
    page.gauge("scrub_damage", "What the last pass, or the present one, found damaged or different.").set(scrub.damage);
    page.gauge(
        "scrub_completed_time_seconds",
        "When the last complete pass ended, in seconds since 1970; 0 if none has.",
    )
    .nanoseconds(scrub.completed_at.map_or(0, |at| at.0));
    page.counter("scrub_read_bytes_total", "Bytes that the scrub has read since the start.").set(scrub.bytes);
    page.counter("scrub_passes_total", "Passes of the scrub that were completed since the start.").set(scrub.passes);
}

/// What the page says about the ledger beyond the state of the engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LedgerFigures {
    /// The last settlement stopped before it was done.
    pub failing: bool,
    /// Entries that changed a line after it had been corrected by hand.
    pub changed_after_correction: u64,
}

pub(super) fn ledger(page: &mut Page, now: &Now, figures: LedgerFigures) {
    let (opened, settled, closing, invoices, disputes) = now.read(|state| {
        let ledger = state.ledger();
        let invoices = ledger.invoices + ledger.credit_notes;
        (ledger.opened, ledger.settled_through, ledger.closing.is_some(), invoices, ledger.disputed.len() as u64)
    });
    page.gauge("ledger_open", "1 if usage is posted.").set(u64::from(opened.is_some()));
    page.gauge("ledger_settled_time_seconds", "Usage before this instant is posted, in seconds since 1970.")
        .nanoseconds(settled.0);
    page.gauge("ledger_settlement_failing", "1 if the last settlement stopped before it was done.")
        .set(u64::from(figures.failing));
    page.gauge("ledger_period_closing", "1 while a month is being closed.").set(u64::from(closing));
    page.gauge("ledger_invoices", "Invoices and credit notes that were issued.").set(invoices);
    let in_state = |wanted| now.read(|state| state.prepaid_accounts().filter(|(_, of)| of.state == wanted).count());
    let prepaid = page.gauge("prepaid_accounts", "Accounts with prepaid credit, by state.");
    for state in leasehold_model::PrepaidState::ALL {
        prepaid.with([("state", state.word())], in_state(*state) as u64);
    }
    page.gauge("ledger_disputes", "Entries that are disputed.").set(disputes);
    page.gauge("ledger_corrected_lines_changed", "Entries that changed a line after it had been corrected by hand.")
        .set(figures.changed_after_correction);
}

pub(super) fn cell(page: &mut Page, cell: &Cell) {
    let stats = cell.stats();
    page.gauge("queue_length", "Operations that wait for the engine.").set(cell.queued() as u64);
    page.counter("commits_total", "Batches that were made durable.").of(&stats.batches);
    page.histogram("commit_batch_records", "Records in a batch.").sizes(&stats.batch_records);
    page.histogram("commit_append_duration_seconds", "Hashing, writing and syncing a batch.")
        .times([], &stats.append_ns);
    page.histogram("commit_sync_duration_seconds", "The sync of a batch (fdatasync).").times([], &stats.sync_ns);
    page.histogram("commit_publish_duration_seconds", "Publishing a durable batch to readers and replying.")
        .times([], &stats.publish_ns);
    page.counter("checkpoints_total", "Checkpoints that were signed.").of(&stats.checkpoints);
    let covered = &stats.checkpoint_covered_at_ns;
    page.gauge(
        "checkpoint_covered_time_seconds",
        "When the newest checkpoint was last seen to cover every record, in seconds since 1970.",
    )
    .nanoseconds(covered.load(std::sync::atomic::Ordering::Relaxed));
    page.counter("snapshots_total", "Snapshots that were taken.").of(&stats.snapshots);
    page.counter("snapshot_failures_total", "Snapshots that failed; they are tried again later.")
        .of(&stats.snapshot_failures);
    page.counter("allocation_failures_total", "How often the disk had no space for the next segment.")
        .of(&stats.allocation_failures);
    let jumps = page.counter("clock_jumps_total", "Jumps of the wall clock by more than a second, by direction.");
    for (direction, count) in [("forward", &stats.clock_jumps_forward), ("back", &stats.clock_jumps_back)] {
        jumps.with([("direction", direction)], count.load(std::sync::atomic::Ordering::Relaxed));
    }
    let published = cell.now().published();
    let records = page.counter("records_total", "Records made durable since the start, by kind.");
    published.kinds().filter(|(_, count)| *count > 0).for_each(|(kind, count)| records.with([("kind", kind)], count));
    page.counter("leases_granted_total", "Leases granted since the start.").of(&published.leases_granted);
    let denied = page.counter("leases_denied_total", "Requests denied since the start, by cause.");
    for (cause, count) in [
        ("quota", &published.denied_by_quota),
        ("burst", &published.denied_by_burst),
        ("capacity", &published.denied_by_capacity),
        ("ceiling", &published.denied_by_ceiling),
        ("prepaid", &published.denied_by_prepaid),
    ] {
        denied.with([("cause", cause)], count.load(std::sync::atomic::Ordering::Relaxed));
    }
}

pub(super) fn leases(page: &mut Page, now: &Now) {
    let mut counts: BTreeMap<Phase, u64> = Phase::ALL.iter().map(|phase| (*phase, 0)).collect();
    let mut after: Option<LeaseNo> = None;
    loop {
        let seen = now.readers(|state| {
            let mut seen = 0;
            for lease in state.leases_after(after).take(AT_ONCE) {
                *counts.entry(lease.phase).or_default() += 1;
                after = Some(lease.number);
                seen += 1;
            }
            seen
        });
        if seen < AT_ONCE {
            break;
        }
    }
    let leases = page.gauge("leases", "Leases that are not closed, by state.");
    counts.iter().for_each(|(phase, count)| leases.with([("state", phase.word())], *count));
}

pub(super) fn allocations(page: &mut Page, now: &Now) {
    let live = AllocationState::ALL.iter().filter(|state| !state.is_over());
    let mut counts: BTreeMap<AllocationState, u64> = live.map(|state| (*state, 0)).collect();
    let mut after: Option<AllocationNo> = None;
    loop {
        let seen = now.read(|state| {
            let mut seen = 0;
            for found in state.allocations_after(after).take(AT_ONCE) {
                *counts.entry(found.state).or_default() += 1;
                after = Some(found.number);
                seen += 1;
            }
            seen
        });
        if seen < AT_ONCE {
            break;
        }
    }
    let allocations = page.gauge("allocations", "Allocations that have not ended, by state.");
    counts.iter().for_each(|(state, count)| allocations.with([("state", state.word())], *count));
    page.gauge("allocations_waiting", "The length of the queue.").set(now.read(State::waiting) as u64);
    let preemptions = now.published().kinds().find(|(kind, _)| *kind == "preemption.decided");
    page.counter("preemptions_total", "Evictions that were decided since the start.")
        .set(preemptions.map_or(0, |(_, count)| count));
}

pub(super) fn nodes(page: &mut Page, now: &Now) {
    let mut states: BTreeMap<&'static str, u64> =
        ["available", "drained", "lost", "claimed", "wiping", "quarantined"].map(|state| (state, 0)).into();
    let (mut empty, mut without_agent, mut hot, mut hottest) = (0, 0, 0, 0);
    let mut capacity: BTreeMap<(ClassNo, PoolNo), CapacitySplit> = BTreeMap::new();
    let mut after: Option<NodeNo> = None;
    loop {
        let seen = now.read(|state| {
            let (mut seen, seen_before) = (0, after);
            for node in state.nodes().skip_while(|node| Some(node.number) <= seen_before).take(AT_ONCE) {
                let heat = state.heat_now(node);
                hot += u64::from(heat > 0);
                hottest = hottest.max(heat);
                // A state that needs an operator takes precedence.
                let state = match (node.custody.word(), node.lost, node.is_drained()) {
                    ("quarantined", ..) => "quarantined",
                    (_, true, _) => "lost",
                    (_, _, true) => "drained",
                    ("open", ..) => "available",
                    (custody, ..) => custody,
                };
                *states.entry(state).or_default() += 1;
                without_agent += u64::from(node.agent.is_none());
                let is_open = node.is_available();
                empty += u64::from(is_open && !node.has_leases() && !node.is_reserved());
                for class in &node.classes {
                    add(capacity.entry((class.class, node.pool)).or_default(), node.split(class.class));
                }
                after = Some(node.number);
                seen += 1;
            }
            seen
        });
        if seen < AT_ONCE {
            break;
        }
    }
    let nodes = page.gauge("nodes", "Nodes, by state.");
    states.iter().for_each(|(state, count)| nodes.with([("state", *state)], *count));
    page.gauge("nodes_empty", "Available nodes without leases and reservations.").set(empty);
    page.gauge("nodes_without_agent", "Nodes without a registered agent.").set(without_agent);
    page.gauge("nodes_hot", "Nodes with heat, which placement avoids.").set(hot);
    page.gauge("node_heat_max", "The heat of the hottest node, from 0 to 1000.").set(u64::from(hottest));
    show_capacity(page, now, capacity);
}

/// Adds up capacity of the same class.
pub(crate) fn add(sum: &mut CapacitySplit, part: CapacitySplit) {
    let CapacitySplit { held, tearing_down, reserved, fenced, offline, idle } = part;
    sum.held += held;
    sum.tearing_down += tearing_down;
    sum.reserved += reserved;
    sum.fenced += fenced;
    sum.offline += offline;
    sum.idle += idle;
}

fn show_capacity(page: &mut Page, now: &Now, capacity: BTreeMap<(ClassNo, PoolNo), CapacitySplit>) {
    const STATES: usize = 6;
    let by_pool = capacity.len() * STATES <= SERIES_MAX;
    let mut shown: BTreeMap<(ClassNo, Option<PoolNo>), CapacitySplit> = BTreeMap::new();
    for ((class, pool), split) in capacity {
        add(shown.entry((class, by_pool.then_some(pool))).or_default(), split);
    }
    let name_of = |class: ClassNo, pool: Option<PoolNo>| {
        now.read(|state| {
            let pool = pool.and_then(|pool| state.pool(pool)).map_or(String::new(), |pool| pool.name.to_string());
            state.class(class).map(|spec| (spec.name.to_string(), pool, spec.quanta_per_unit))
        })
    };
    let mut units: BTreeMap<String, u64> = BTreeMap::new();
    let family = page.gauge(
        "capacity_quanta",
        "Capacity in quanta, by class, pool and state; the six states add up to the whole capacity.",
    );
    for ((class, pool), split) in shown {
        let Some((class, pool, per_unit)) = name_of(class, pool) else { continue };
        for (state, quanta) in [
            ("held", split.held),
            ("tearing_down", split.tearing_down),
            ("reserved", split.reserved),
            ("fenced", split.fenced),
            ("offline", split.offline),
            ("idle", split.idle),
        ] {
            family.with([("class", &class), ("pool", &pool), ("state", state)], quanta);
        }
        units.insert(class, per_unit);
    }
    let family = page.gauge("class_quanta_per_unit", "Quanta per billing unit of a class.");
    units.iter().for_each(|(class, per_unit)| family.with([("class", class)], *per_unit));
}

/// One quota with its labels.
struct Shown {
    labels: [(&'static str, String); 9],
    used: u64,
    limit: u64,
    burst_limit: Option<u64>,
}

pub(super) fn quotas(page: &mut Page, now: &Now) {
    let (mut all, mut within, mut at_limit, mut over_soft, mut bursting) = (0, 0, 0, 0, 0);
    let mut shown: Vec<Shown> = Vec::new();
    let mut after: Option<TenantNo> = None;
    loop {
        let seen = now.read(|state| {
            let (mut seen, seen_before) = (0, after);
            for tenant in state.tenants().skip_while(|tenant| Some(tenant.number) <= seen_before).take(TENANTS_AT_ONCE)
            {
                for quota in state.quotas_of(tenant.number) {
                    let condition = match quota.limit {
                        LimitKind::Soft { limit } if quota.most_used().exceeds(limit) => &mut over_soft,
                        LimitKind::Hard { limit } if limit == 0 || quota.most_used().exceeds(limit - 1) => {
                            &mut at_limit
                        }
                        LimitKind::Burst { limit, .. } if quota.most_used().exceeds(limit) => &mut bursting,
                        _ => &mut within,
                    };
                    *condition += 1;
                    all += 1;
                    if all <= QUOTAS_MAX {
                        shown.push(show_quota(state, quota));
                    }
                }
                after = Some(tenant.number);
                seen += 1;
            }
            seen
        });
        if seen < TENANTS_AT_ONCE {
            break;
        }
    }
    let each = all <= QUOTAS_MAX;
    if !each {
        shown.clear();
    }
    let conditions =
        page.gauge("quotas", "Quotas, by condition: over_soft, at_limit (hard, nothing left), bursting, within.");
    for (condition, count) in
        [("within", within), ("at_limit", at_limit), ("over_soft", over_soft), ("bursting", bursting)]
    {
        conditions.with([("condition", condition)], count);
    }
    let left_out = if each { 0 } else { all };
    page.gauge("quotas_left_out", "Quotas without their own series, because there are too many.").set(left_out);
    fn labels(quota: &Shown) -> [(&'static str, &str); 9] {
        quota.labels.each_ref().map(|(key, value)| (*key, value.as_str()))
    }
    let used = page.gauge("quota_used", "Amount that counts against a quota, in its measure: quanta, leases or nodes.");
    shown.iter().for_each(|quota| used.with(labels(quota), quota.used));
    let limit = page.gauge("quota_limit", "Limit of a quota; for a burst quota, the base.");
    shown.iter().for_each(|quota| limit.with(labels(quota), quota.limit));
    let burst = page.gauge("quota_burst_limit", "Limit of a burst quota during a burst.");
    shown
        .iter()
        .filter_map(|quota| Some((quota, quota.burst_limit?)))
        .for_each(|(quota, limit)| burst.with(labels(quota), limit));
}

/// Ceilings are counted by mode and by whether they are exceeded. Their amounts are available to their projects only.
pub(super) fn ceilings(page: &mut Page, now: &Now) {
    let mut counts: BTreeMap<(CeilingMode, bool), u64> = BTreeMap::new();
    for mode in CeilingMode::ALL {
        counts.extend([((*mode, false), 0), ((*mode, true), 0)]);
    }
    now.read(|state| {
        for ceiling in state.ceilings() {
            *counts.entry((ceiling.mode, state.is_exceeded(ceiling, state.last_stamp()))).or_default() += 1;
        }
    });
    let family =
        page.gauge("ceilings", "Cost ceilings, by mode and by whether more is spent and reserved than they allow.");
    for ((mode, exceeded), count) in counts {
        let condition = if exceeded { "exceeded" } else { "within" };
        family.with([("mode", mode.word()), ("condition", condition)], count);
    }
}

fn show_quota(state: &State, quota: &Quota) -> Shown {
    let scope = &quota.scope;
    let text = |name: Option<String>| name.unwrap_or_default();
    let labels = [
        ("quota", quota.number.to_string()),
        ("tenant", text(state.tenant(scope.tenant).map(|tenant| tenant.settings.name.to_string()))),
        ("project", text(scope.project.and_then(|project| Some(state.project(project)?.name.to_string())))),
        ("class", text(scope.class.and_then(|class| Some(state.class(class)?.name.to_string())))),
        ("pool", text(scope.pool.and_then(|pool| Some(state.pool(pool)?.name.to_string())))),
        (
            "node",
            match scope.node {
                leasehold_model::NodeScope::All => String::new(),
                leasehold_model::NodeScope::Each => "each".into(),
                leasehold_model::NodeScope::One(node) => text(state.node(node).map(|node| node.name.to_string())),
            },
        ),
        ("priority", text(scope.priority.map(|priority| priority.to_string()))),
        ("measure", quota.measure.to_string()),
        ("kind", quota.limit.word().to_owned()),
    ];
    let burst_limit = match quota.limit {
        LimitKind::Burst { burst_limit, .. } => Some(burst_limit),
        _ => None,
    };
    Shown { labels, used: crate::show::whole(quota.used()), limit: quota.limit.limit(), burst_limit }
}
