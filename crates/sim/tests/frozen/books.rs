//! What the books answer about a whole journal, in the fields of rules version 3; for rules version 4 also about each
//! payer, lease and allocation, for rules version 5 about the ledger (`money.rs`), for rules version 6 about reported usage
//! (`apps.rs`), and for rules version 7 about refused usage and policies (`limits.rs`).

use crate::further::correlation;
use crate::state::{at, span, text};
use crate::{apps, limits, money};
use leasehold_books::{
    AllocationQuestion, Books, CapacityLine, CostLine, Dim, End, LeaseQuestion, NamedKind, Question, Row, Story,
};
use leasehold_meter::Window;
use leasehold_model::{Instant, LeaseState, Record};
use serde_json::{Value, json};

/// From the first record to the last, in the fields that existed under these rules.
pub(crate) fn view(books: &Books, records: &[Record], rules: u32) -> Value {
    let (first, last) = (records[0].stamp, records[records.len() - 1].stamp);
    let window = Window::new(first, Instant(last.0.max(first.0 + 1)));
    let mut view = sums(books, window);
    if rules >= 4 {
        extend(&mut view, books, window);
    }
    if rules >= 5 {
        money::extend_books(&mut view, books);
    }
    if rules >= 6 {
        apps::extend_books(&mut view, books, records);
    }
    if rules >= 7 {
        limits::extend_books(&mut view, books, records);
    }
    view
}

fn amount(line: &CostLine) -> String {
    let (numerator, denominator) = line.money.fraction().expect("far from overflow");
    format!("{numerator}/{denominator}")
}

/// Usage, peaks and cost by tenant and class, the same usage by node, and where the capacity was.
fn sums(books: &Books, window: Window) -> Value {
    let of_tenants = Question::over(window, &[Dim::Tenant]);
    let of_nodes = Question::over(window, &[Dim::Node, Dim::HeldAs]);
    let usage = books.usage(&of_tenants).expect("the usage of tenants");
    let on_nodes = books.usage(&of_nodes).expect("the usage of nodes");
    let (peaks, _) = books.peaks(&of_tenants).expect("peaks");
    let (costs, _) = books.cost(&of_tenants).expect("costs");
    let capacity = books.capacity(window, true, true, |_, _, _| true).expect("where the capacity was");
    let cost = |line: &CostLine| {
        let (currency, amount) = (line.currency.as_str(), amount(line));
        json!({ "tenant": line.key[0], "class": line.class.0, "currency": currency, "cost": amount })
    };
    json!({
        "from": window.from.0.to_string(),
        "to": window.to.0.to_string(),
        "usage": usage
            .lines()
            .map(|line| {
                json!({ "tenant": line.key[0], "class": line.class.0, "quanta_ns": line.amount.to_string() })
            })
            .collect::<Vec<_>>(),
        "usage_on_nodes": on_nodes
            .lines()
            .map(|line| {
                let [node, held_as, ..] = line.key;
                let amount = line.amount.to_string();
                json!({ "node": node, "held_as": held_as, "class": line.class.0, "quanta_ns": amount })
            })
            .collect::<Vec<_>>(),
        "peaks": peaks
            .iter()
            .map(|line| json!({ "tenant": line.key[0], "class": line.class.0, "quanta": line.peak }))
            .collect::<Vec<_>>(),
        "cost": costs.iter().map(cost).collect::<Vec<_>>(),
        "capacity": capacity
            .iter()
            .map(|(key, line)| {
                let CapacityLine { capacity, held, tearing_down, reserved, fenced, offline, idle } = line;
                json!({
                    "pool": key.pool.map(|pool| pool.0),
                    "node": key.node.map(|node| node.0),
                    "class": key.class.0,
                    "capacity": capacity.to_string(),
                    "held": held.to_string(),
                    "tearing_down": tearing_down.to_string(),
                    "reserved": reserved.to_string(),
                    "fenced": fenced.to_string(),
                    "offline": offline.to_string(),
                    "idle": idle.to_string(),
                })
            })
            .collect::<Vec<_>>(),
    })
}

/// Adds usage and cost by everything that they can be grouped by, every lease and allocation, and the names of what was
/// deleted. A number that does not exist is the largest one there is.
fn extend(view: &mut Value, books: &Books, window: Window) {
    let payers = [Dim::Project, Dim::User, Dim::Pool, Dim::Priority, Dim::HeldAs];
    let works = [Dim::Node, Dim::Allocation, Dim::AppInstance, Dim::Tag, Dim::HeldAs];
    for (name, dims) in [("payers", payers), ("works", works)] {
        let question = Question::over(window, &dims);
        let usage = books.usage(&question).expect("usage");
        let usage = usage.lines().map(|line| json!([line.key, line.class.0, line.amount.to_string()]));
        view[format!("usage_by_{name}")] = usage.collect();
        let (costs, _) = books.cost(&question).expect("costs");
        let costs = costs.iter().map(|line| json!([line.key, line.class.0, line.currency.as_str(), amount(line)]));
        view[format!("cost_by_{name}")] = costs.collect();
    }
    let page = books.leases(&LeaseQuestion { limit: usize::MAX, ..LeaseQuestion::default() }, |_| true);
    let page = page.expect("a page of leases");
    assert_eq!(page.next, None, "all leases are on one page");
    view["leases"] = page.leases.iter().map(lease).collect();
    let page = books.allocations(&AllocationQuestion { limit: usize::MAX, ..AllocationQuestion::default() }, |_| true);
    let page = page.expect("a page of allocations");
    assert_eq!(page.next, None, "all allocations are on one page");
    view["allocations"] = page.allocations.iter().map(allocation).collect();
    let deleted = NamedKind::ALL.iter().flat_map(|kind| {
        books.deleted(*kind).map(move |(number, object)| json!([text(kind), number, object.name.as_str()]))
    });
    view["deleted"] = deleted.collect();
}

fn lease((row, state): &(Row, LeaseState)) -> Value {
    json!({
        "lease": row.lease.0,
        "tenant": row.tenant.0,
        "project": row.project.0,
        "user": row.user.map(|user| user.0),
        "node": row.node.0,
        "class": row.class.0,
        "quanta": row.quanta,
        "priority": text(row.priority),
        "priced": text(row.priced()),
        "allocation": row.allocation.map(|allocation| allocation.0),
        "correlation": correlation(row.correlation()),
        "from": at(row.held.from),
        "to": at(row.held.to),
        "end_before": row.end_before.map(at),
        // Told apart only later.
        "end": if row.end == End::ReleasedByOwn { text(End::Released) } else { text(row.end) },
        "fenced": row.fenced,
        "state": text(state),
        "expires_at": at(row.life.expires_at),
        "closed_at": row.life.closed_at.map(at),
        "revoked": row.revocation().map(|found| json!([found.reason.word(), span(found.grace)])),
        "covered": row.activity.as_ref().map(|activity| span(activity.covered)),
    })
}

fn allocation(story: &Story) -> Value {
    let attempts = story.attempts.iter().map(|attempt| {
        json!({
            "placed_at": at(attempt.placed_at),
            "leases": [attempt.first_lease.0, u64::from(attempt.leases)],
            "ended_at": attempt.ended_at.map(at),
            "end": attempt.end.map(text),
            "checkpoints": attempt.checkpoints.iter().map(|checkpoint| at(checkpoint.at)).collect::<Vec<_>>(),
        })
    });
    let over = story.over.map(|over| {
        json!({ "at": at(over.at), "end": over.end.map(text), "exit": over.exit_status, "wrote": over.storage_written })
    });
    json!({
        "allocation": story.outline.number.0,
        "state": text(story.outline.state),
        "priority": text(story.spec.priority),
        "attempts": attempts.collect::<Vec<_>>(),
        "over": over,
    })
}
