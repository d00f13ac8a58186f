//! What the books answer about a whole journal, in the fields of rules version 3.

use leasehold_books::{Books, CapacityLine, Dim, Question};
use leasehold_meter::Window;
use leasehold_model::{Instant, Record};
use serde_json::{Value, json};

/// Usage, peaks and cost by tenant and class, the same usage by node, and where the capacity was, from the first record
/// to the last.
pub(crate) fn view(books: &Books, records: &[Record]) -> Value {
    let (first, last) = (records[0].stamp, records[records.len() - 1].stamp);
    let window = Window::new(first, Instant(last.0.max(first.0 + 1)));
    let of_tenants = Question::over(window, &[Dim::Tenant]);
    let of_nodes = Question::over(window, &[Dim::Node, Dim::HeldAs]);
    let usage = books.usage(&of_tenants).expect("the usage of tenants");
    let on_nodes = books.usage(&of_nodes).expect("the usage of nodes");
    let (peaks, _) = books.peaks(&of_tenants).expect("peaks");
    let (costs, _) = books.cost(&of_tenants).expect("costs");
    let capacity = books.capacity(window, true, true, |_, _, _| true).expect("where the capacity was");
    let cost = |line: &leasehold_books::CostLine| {
        let (numerator, denominator) = line.money.fraction().expect("far from overflow");
        let (currency, amount) = (line.currency.as_str(), format!("{numerator}/{denominator}"));
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
