//! `leasehold status`: what is going on now, on one screen.

use super::details::{Details, word};
use super::failure::Failed;
use super::session::Session;
use super::watch::watch_lines;
use crate::cli::status::StatusArgs;
use crate::numbers::{bytes, counted, decimal, thousands};
use crate::output::{print, print_json};
use crate::problem::{EXIT_NOT_VERIFIED, EXIT_OK};
use crate::table::{Align, Table};
use crate::term::{Paint, Style, screen};
use crate::time_format::{distance, to_the_second};
use leasehold_api::{AuditStatus, ClassStatus, DeliverySummary, LeaseCounts, NodeCounts, QueueStatus, Status, When};

/// What is listed of each; with the other lines and the heading of `--watch` this makes at most 24 lines.
const CLASSES: usize = 5;
const TENANTS: usize = 4;
const TROUBLES: usize = 2;
/// Classes that are named for one tenant.
const CLASSES_OF_TENANT: usize = 2;

const SHRINK_FIRST: &[&str] = &["reserved", "teardown", "offline", "class", "fenced"];

pub(super) async fn run(session: &Session, args: &StatusArgs) -> Result<u8, Failed> {
    let call = session.client.status();
    if args.watch.watch {
        watch_lines(session, async || Ok(lines(session, &call.clone().await?))).await?;
        return Ok(EXIT_OK);
    }
    let status = call.await?;
    if session.json {
        print_json(&serde_json::to_value(&status).unwrap_or_default())?;
    } else {
        print(&(lines(session, &status).join("\n") + "\n"))?;
        crate::term::say(&format!("leasehold: as of {}\n", to_the_second(status.as_of)));
    }
    Ok(if status.audit.damaged { EXIT_NOT_VERIFIED } else { EXIT_OK })
}

fn lines(session: &Session, status: &Status) -> Vec<String> {
    let width = screen().map(|(width, _)| width);
    text(status, session.paint, width)
}

/// The whole answer as lines.
fn text(status: &Status, paint: Paint, width: Option<usize>) -> Vec<String> {
    let mut lines = capacity(&status.classes).lines_within(paint, width);
    lines.extend(more(status.classes.len(), CLASSES).map(|more| paint.dim(&format!("  and {more} more classes"))));
    let now = status.as_of;
    let mut details = Details::new()
        .add("nodes", nodes(&status.nodes))
        .add("leases", leases(&status.leases))
        .add("queue", queue(&status.queue, now));
    for (place, tenant) in status.tenants.iter().take(TENANTS).enumerate() {
        let mut held: Vec<_> = tenant.held.iter().collect();
        held.sort_by_key(|held| std::cmp::Reverse(held.share_permille));
        let share = |permille: u64| format!("{}.{} %", permille / 10, permille % 10);
        let mut parts: Vec<String> = held
            .iter()
            .take(CLASSES_OF_TENANT)
            .map(|held| format!("{} of {}", share(held.share_permille), held.class))
            .collect();
        parts.push(counted(tenant.leases, "lease"));
        parts.extend((tenant.waiting > 0).then(|| format!("{} waiting", thousands(tenant.waiting))));
        let left = rest(place, TENANTS, status.tenant_count);
        let what = format!("{}: {}{left}", tenant.tenant, parts.join(", "));
        details = details.add(if place == 0 { "tenants" } else { "" }, what);
    }
    for (place, fence) in status.fences.iter().take(TROUBLES).enumerate() {
        let left = rest(place, TROUBLES, status.leases.fenced);
        let what = format!(
            "{} on {} ({}), ended {}{left}",
            fence.lease,
            fence.node,
            fence.class,
            distance(fence.ended_at, now.0)
        );
        details = details.add(if place == 0 { "fences" } else { "" }, what);
    }
    for (place, one) in status.quarantines.iter().take(TROUBLES).enumerate() {
        let cause = one.custody.cause.map_or_else(String::new, |cause| format!(", {}", word(cause).replace('_', " ")));
        let since = one.custody.since.map_or_else(String::new, |since| format!(", {}", distance(since, now.0)));
        let left = rest(place, TROUBLES, status.nodes.quarantined);
        details = details.add(if place == 0 { "quarantine" } else { "" }, format!("{}{cause}{since}{left}", one.node));
    }
    if let Some(disk) = &status.disk {
        let percent = u128::from(disk.free_bytes) * 100 / u128::from(disk.size_bytes.max(1));
        let (free, size) = (bytes(disk.free_bytes), bytes(disk.size_bytes));
        let room = bytes(disk.journal_room_bytes);
        details = details.add("disk", format!("{free} of {size} free ({percent} %), {room} ready for the journal"));
    }
    if let Some(trouble) = status.deliveries.as_ref().and_then(deliveries) {
        details = details.add("deliveries", trouble);
    }
    details = details.add("signed", signed(&status.audit)).add("scrub", scrub(&status.audit, now));
    lines.extend(details.table().lines_within(paint, width));
    lines
}

/// How many are not listed.
fn more(all: usize, listed: usize) -> Option<usize> {
    all.checked_sub(listed).filter(|more| *more > 0)
}

/// At the end of the last line of a list that was cut.
fn rest(place: usize, listed: usize, all: u64) -> String {
    match all.checked_sub(listed as u64) {
        Some(more) if more > 0 && place + 1 == listed => format!("; and {} more", thousands(more)),
        _ => String::new(),
    }
}

fn capacity(classes: &[ClassStatus]) -> Table {
    let figures = ["capacity", "held", "teardown", "reserved", "fenced", "offline", "idle"];
    let mut headings = vec![("class", Align::Left), ("", Align::Left)];
    headings.extend(figures.map(|name| (name, Align::Right)));
    let mut table = Table::new(&headings).shrink_first(SHRINK_FIRST);
    for class in classes.iter().take(CLASSES) {
        let parts = [
            (class.quanta, Style::Plain),
            (class.held, Style::Green),
            (class.tearing_down, Style::Plain),
            (class.reserved, Style::Plain),
            (class.fenced, Style::Red),
            (class.offline, Style::Yellow),
            (class.idle, Style::Plain),
        ];
        let figures = parts.map(|(quanta, style)| match quanta {
            0 => ("-".to_owned(), Style::Dim),
            quanta => (units(quanta, class.quanta_per_unit), style),
        });
        let names = [(class.class.clone(), Style::Plain), (class.unit.clone(), Style::Dim)];
        table.styled(names.into_iter().chain(figures));
    }
    table
}

/// `90.57`: billing units, with two decimals unless they are whole; rounded down.
fn units(quanta: u64, per_unit: u64) -> String {
    let places = if quanta.is_multiple_of(per_unit) { 0 } else { 2 };
    decimal(quanta.into(), per_unit.into(), places)
}

/// `38 available, 1 drained`: the parts that are not zero.
fn parts<const N: usize>(all: [(u64, &str); N]) -> String {
    let parts = all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", thousands(*count)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    if parts.is_empty() { "none".into() } else { parts }
}

fn nodes(nodes: &NodeCounts) -> String {
    parts([
        (nodes.available, "available"),
        (nodes.quarantined, "quarantined"),
        (nodes.lost, "lost"),
        (nodes.drained, "drained"),
        (nodes.wiping, "being wiped"),
        (nodes.claimed, "claimed"),
        (nodes.without_agent, "without agent"),
    ])
}

fn leases(leases: &LeaseCounts) -> String {
    parts([
        (leases.active, "active"),
        (leases.revoking, "revoking"),
        (leases.tearing_down, "tearing down"),
        (leases.fenced, "fenced"),
    ])
}

fn queue(queue: &QueueStatus, now: When) -> String {
    let running = format!("{} running", thousands(queue.running));
    if queue.waiting == 0 {
        return format!("empty, {running}");
    }
    let each = queue.priorities.iter().map(|one| format!("{} {}", thousands(one.waiting), one.priority));
    let each = each.collect::<Vec<_>>().join(", ");
    let oldest = queue.oldest_allocation_id.zip(queue.oldest_submitted_at);
    let oldest = oldest.map_or_else(String::new, |(id, at)| format!(", oldest {id} {}", distance(at, now.0)));
    format!("{} waiting{oldest} ({each}); {running}", thousands(queue.waiting))
}

/// What is wrong with deliveries of events, if anything is.
fn deliveries(summary: &DeliverySummary) -> Option<String> {
    let DeliverySummary { running, webhooks: _, disabled, failing, dead_letters, dropped_open } = summary;
    let mut wrong = Vec::new();
    if !running {
        wrong.push("not running".to_owned());
    }
    for (count, what) in [
        (failing, "failing webhook"),
        (disabled, "disabled webhook"),
        (dead_letters, "dead letter"),
        (dropped_open, "dropped event"),
    ] {
        wrong.extend((*count > 0).then(|| counted(*count, what)));
    }
    (!wrong.is_empty()).then(|| format!("{}; see `leasehold admin accounting status`", wrong.join(", ")))
}

fn signed(audit: &AuditStatus) -> String {
    match audit.unsigned_records {
        0 => format!("all {}", counted(audit.size, "record")),
        unsigned => format!("{} of {} records", thousands(audit.size - unsigned), thousands(audit.size)),
    }
}

fn scrub(audit: &AuditStatus, now: When) -> String {
    let state = match (&audit.present, &audit.last) {
        (Some(present), _) => format!("running, {} %", present.percent),
        (None, Some(last)) => {
            format!("{} {}", word(last.state), distance(last.ended_at.unwrap_or(last.began_at), now.0))
        }
        (None, None) => "none has ended yet".into(),
    };
    match (audit.damaged, audit.present.is_some() || audit.last.is_some()) {
        (true, _) => format!("{state}, DAMAGE FOUND; see `leasehold audit status`"),
        (false, true) => format!("{state}, no damage"),
        (false, false) => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// More of everything than fits.
    fn crowded() -> Status {
        let many = |count: u64, one: &dyn Fn(u64) -> serde_json::Value| (1..=count).map(one).collect::<Vec<_>>();
        let class = |n: u64| {
            json!({ "class": format!("gpu-of-a-long-name-{n}"), "class_id": n, "kind": "gpu", "unit": "GPU",
                "quanta_per_unit": 7, "quanta": 700_000, "held": 634, "tearing_down": 7, "reserved": 0, "fenced": 1,
                "offline": 0, "idle": 699_358 })
        };
        let held = json!([{ "class": "gpu-of-a-long-name-1", "held": 1, "share_permille": 7 },
            { "class": "cpu", "held": 1, "share_permille": 452 }, { "class": "mem", "held": 1, "share_permille": 1 }]);
        let tenant = |n: u64| json!({ "tenant": format!("tenant-{n}"), "tenant_id": n, "leases": 1200, "waiting": 3, "held": held });
        let fence = |n: u64| {
            json!({ "lease": format!("lease-{n}"), "lease_uid": format!("{n:032x}"), "node": "n1", "class": "gpu",
                "quanta": 7, "ended_at": "2026-01-01T00:00:00Z" })
        };
        let quarantine = |n: u64| {
            json!({ "node": format!("n{n}"), "custody": { "state": "quarantined", "since": "2026-01-01T00:00:00Z",
                "holder": null, "wipe_by": null, "cause": "wipe_failed" } })
        };
        serde_json::from_value(json!({
            "as_of": "2026-01-01T02:00:00Z",
            "classes": many(8, &class),
            "nodes": { "all": 40, "available": 30, "drained": 1, "lost": 2, "claimed": 3, "wiping": 1,
                "quarantined": 3, "without_agent": 5 },
            "leases": { "active": 5000, "revoking": 1, "tearing_down": 2, "fenced": 10 },
            "tenants": many(10, &tenant),
            "tenant_count": 12,
            "queue": { "waiting": 12, "priorities": [{ "priority": "guaranteed", "waiting": 2 },
                { "priority": "standard", "waiting": 10 }], "oldest_allocation_id": "alloc-42",
                "oldest_submitted_at": "2026-01-01T00:57:00Z", "running": 30 },
            "fences": many(10, &fence),
            "quarantines": many(3, &quarantine),
            "disk": { "free_bytes": 1_610_612_736_u64, "size_bytes": 16_106_127_360_u64, "journal_room_bytes": 67_108_864 },
            "deliveries": { "running": true, "webhooks": 9, "disabled": 1, "failing": 2, "dead_letters": 1400,
                "dropped_open": 3 },
            "audit": { "damaged": false, "size": 1000, "checkpoint": { "origin": "o", "size": 990, "root": "r",
                "note": "n" }, "unsigned_records": 10, "scrub_enabled": true, "scrub_every": "1d" },
        }))
        .expect("a status")
    }

    #[test]
    fn a_crowded_cluster_fits_on_one_screen() {
        let lines = text(&crowded(), Paint::PLAIN, Some(80));
        // The heading of --watch has two lines.
        assert!(lines.len() + 2 <= 24, "{} lines: {lines:#?}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let all = lines.join("\n");
        for part in [
            "90.57",
            "100,000",
            "and 3 more classes",
            "30 available, 3 quarantined, 2 lost, 1 drained",
            "5,000 active",
            "12 waiting, oldest alloc-42 1h 3m ago (2 guaranteed, 10 standard)",
            "; and 8 more",
            "tenant-1: 45.2 % of cpu, 0.7 % of gpu-of-a-long-name-1",
            "lease-2 on n1 (gpu), ended 2h ago; and 8 more",
            "n2, wipe failed, 2h ago; and 1 more",
            "1.5 GiB of 15.0 GiB free (10 %), 64.0 MiB ready for the journal",
            "2 failing webhooks, 1 disabled webhook, 1,400 dead letters, 3",
            "990 of 1,000 records",
            "none has ended yet",
        ] {
            assert!(all.contains(part), "no {part:?} in\n{all}");
        }
    }

    #[test]
    fn deliveries_are_mentioned_when_something_is_wrong_with_them() {
        let said = |change: fn(&mut DeliverySummary)| {
            let mut summary = DeliverySummary { running: true, webhooks: 3, ..DeliverySummary::default() };
            change(&mut summary);
            deliveries(&summary).unwrap_or_default()
        };
        let see = "; see `leasehold admin accounting status`";
        assert_eq!(said(|_| {}), "");
        assert_eq!(said(|summary| summary.running = false), format!("not running{see}"));
        assert_eq!(said(|summary| summary.failing = 1), format!("1 failing webhook{see}"));
        assert_eq!(said(|summary| summary.disabled = 2), format!("2 disabled webhooks{see}"));
        assert_eq!(said(|summary| summary.dead_letters = 1), format!("1 dead letter{see}"));
        assert_eq!(said(|summary| summary.dropped_open = 5), format!("5 dropped events{see}"));
    }
}
