//! Journal records as text, one line each.

use super::failure::Failed;
use super::session::Session;
use crate::output::print_on;
use crate::term::{self, Paint, Style};
use crate::time_format;
use leasehold_client::{Call, Json, Page};
use leasehold_model::Instant;
use serde_json::Value;
use std::ops::ControlFlow;

/// A record as one line, cut to the width of the terminal. Output to a pipe is not cut.
pub(super) fn line(record: &Value, paint: Paint, now: Instant) -> String {
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let at = Instant(text("timestamp_ns").parse().unwrap_or_default());
    let sequence = record.get("sequence").and_then(Value::as_u64).unwrap_or_default();
    let kind = text("kind");
    let who = |name: &str| record.pointer(&format!("/identity/{name}")).and_then(Value::as_str);
    let who = match (who("tenant"), who("project")) {
        (Some(tenant), Some(project)) => format!("{tenant}/{project}  "),
        (Some(tenant), None) => format!("{tenant}  "),
        _ => String::new(),
    };
    let head = paint.dim(&format!("{}  {sequence:>7}", time_format::clock(at, now)));
    let kind = paint.paint(style(kind), &format!("{kind:<22}"));
    let line = format!("{head}  {kind}  {who}{}", summary(record)).trim_end().to_owned();
    match term::screen() {
        Some((width, _)) => term::fit(&line, width),
        None => line,
    }
}

fn style(kind: &str) -> Style {
    match kind {
        "lease.granted" => Style::Green,
        "lease.denied" | "allocation.denied" | "lease.fenced" | "node.lost" | "node.quarantined" => Style::Red,
        "lease.revoked" | "lease.preempted" => Style::Yellow,
        _ if kind.starts_with("lease.") => Style::Cyan,
        _ => Style::Plain,
    }
}

fn summary(record: &Value) -> String {
    let body = &record["body"];
    let kind = record.get("kind").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "lease.granted" => {
            let each = record["lease_events"].as_array().into_iter().flatten().map(|event| {
                let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or("?");
                format!("{} {} {}", text("lease"), text("capacity_units"), text("class"))
            });
            let leases = each.collect::<Vec<_>>().join(", ");
            format!("{leases} on {} for {}", word(&body["node"]), word(&body["ttl"]))
        }
        "lease.denied" | "allocation.denied" => {
            let asks = body["asks"].as_array().into_iter().flatten();
            let asks = asks.map(|ask| format!("{} {}", word(&ask["units"]), word(&ask["class"]))).collect::<Vec<_>>();
            let times = match body["replicas"].as_u64() {
                Some(replicas) if replicas > 1 => format!("{replicas} x "),
                _ => String::new(),
            };
            format!("{times}{}: {}", asks.join(", "), cause(&body["cause"]))
        }
        "lease.renewed" => {
            let each = body["renewals"].as_array().into_iter().flatten();
            let each = each.map(|one| format!("{} until {}", word(&one["lease"]), clock(&one["expires_at"])));
            each.collect::<Vec<_>>().join(", ")
        }
        "lease.revoked" => {
            format!("{} by {}, grace {}", list(&body["leases"]), word(&record["reason"]), word(&body["grace"]))
        }
        "node.quarantined" => format!("{}: {}", word(&body["node"]), word(&body["cause"]).replace('_', " ")),
        "quota.updated" => {
            let scope = &body["scope"];
            let parts = ["tenant", "project", "class", "pool", "node", "priority"];
            let scope: Vec<String> = parts.iter().map(|part| word(&scope[*part])).filter(|word| word != "-").collect();
            let limit = &body["limit"];
            format!("quota {} of {}: {} {}", body["quota_id"], scope.join(" "), word(&limit["type"]), limit["limit"])
        }
        _ => plain(body),
    }
}

fn cause(cause: &Value) -> String {
    let numbers = ["used", "requested", "limit"].map(|name| cause.get(name).and_then(Value::as_u64));
    match (cause.get("type").and_then(Value::as_str), numbers) {
        (Some("quota"), [Some(used), Some(requested), Some(limit)]) => {
            format!("quota {}, used {used}, requested {requested}, limit {limit}", cause["quota_id"])
        }
        _ => plain(cause),
    }
}

/// The simple fields of a body, without those that repeat another one.
fn plain(body: &Value) -> String {
    let Some(fields) = body.as_object() else { return String::new() };
    let mut parts = Vec::new();
    for (name, value) in fields {
        let twice = ["_ns", "_hex"].iter().any(|end| name.ends_with(end))
            || (name.ends_with("_id") && fields.contains_key(name.trim_end_matches("_id")));
        // Instants and durations have their nanoseconds beside them.
        let is_time = fields.contains_key(&format!("{name}_ns"));
        let long = value.as_str().is_some_and(|text| text.len() > 40);
        match value {
            _ if twice || long => {}
            Value::Null | Value::Object(_) | Value::Bool(false) => {}
            Value::Array(_) => {
                let items = list(value);
                if !items.is_empty() {
                    parts.push(items);
                }
            }
            Value::Bool(true) => parts.push(name.clone()),
            Value::String(text) if is_time => parts.push(format!("{name} {}", instant(text))),
            // The first text names the object itself and needs no label.
            Value::String(text) if parts.is_empty() => parts.push(text.clone()),
            other => parts.push(format!("{name} {}", word(other))),
        }
    }
    parts.join(", ")
}

/// The simple items of a list, and the names of leases and nodes; other objects are omitted.
fn list(value: &Value) -> String {
    let words =
        value.as_array().into_iter().flatten().map(|item| item.get("lease").or(item.get("node")).unwrap_or(item));
    words.filter(|item| item.is_string() || item.is_number()).map(word).collect::<Vec<_>>().join(", ")
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An instant in the time zone of the output, to the second; other texts as they are.
fn instant(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), time_format::to_the_second)
}

/// `13:00:03` of an instant.
fn clock(value: &Value) -> String {
    let text = instant(value.as_str().unwrap_or("?"));
    text.split_once('T').and_then(|(_, time)| time.get(..8)).unwrap_or(&text).to_owned()
}

/// Prints a record; breaks when the reader has closed the pipe.
pub(super) fn print_record(session: &Session, record: &Value) -> Result<ControlFlow<()>, Failed> {
    let text = if session.json { record.to_string() } else { line(record, session.paint, time_format::now()) };
    Ok(print_on(&(text + "\n"))?)
}

/// Prints all records of a list, page by page.
pub(super) async fn print_all<P: Page<Item = Value>>(session: &Session, call: Call<Json<P>>) -> Result<(), Failed> {
    print_some(session, call, u64::MAX).await
}

/// Prints at most `most` records of a list.
pub(super) async fn print_some<P: Page<Item = Value>>(
    session: &Session,
    call: Call<Json<P>>,
    most: u64,
) -> Result<(), Failed> {
    let mut pages = call.query("limit", most.min(leasehold_api::limits::PAGE_MAX as u64)).pages();
    let mut left = most;
    while let Some(records) = pages.next().await? {
        for record in &records {
            if left == 0 || print_record(session, record)?.is_break() {
                return Ok(());
            }
            left -= 1;
        }
        if left == 0 {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn node_records_name_the_node() {
        let line = |kind: &str, body: Value| summary(&json!({ "kind": kind, "body": body }));
        let two = json!({ "nodes": [{ "node": "n3", "node_id": 2 }, { "node": "n4", "node_id": 3 }] });
        assert_eq!(line("node.claimed", two.clone()), "n3, n4");
        assert_eq!(line("node.released", two), "n3, n4");
        assert_eq!(line("node.wiped", json!({ "node": "n3", "node_id": 2 })), "n3");
        let quarantined = json!({ "node": "n3", "node_id": 2, "cause": "wipe_failed", "severity": "critical" });
        assert_eq!(line("node.quarantined", quarantined), "n3: wipe failed");
        // Instants are printed to the second, durations as they are, and neither in nanoseconds.
        let lost = json!({ "node": "n3", "node_id": 2, "last_seen": "2026-01-01T00:00:00.000000001Z",
            "last_seen_ns": "1767225600000000001" });
        assert_eq!(line("node.lost", lost), "n3, last_seen 2026-01-01T00:00:00Z");
        let changed = json!({ "pool": "p1", "grace": "1m", "grace_ns": "60000000000" });
        assert_eq!(line("pool.updated", changed), "p1, grace 1m");
        let asks = json!([{ "class": "h100", "units": "2 GPU" }]);
        let cause = json!({ "type": "quota", "quota_id": 1, "used": 0, "requested": 8, "limit": 4 });
        let denied = json!({ "asks": asks, "replicas": 4, "cause": cause });
        assert_eq!(line("allocation.denied", denied), "4 x 2 GPU h100: quota 1, used 0, requested 8, limit 4");
    }

    /// The records of the reference page, as one line each.
    #[test]
    fn the_records_of_the_reference_page_read_well() {
        let page = include_str!("../../../../docs/reference/json-view.md");
        let now = Instant::from_secs(1_767_225_600);
        let records = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        let lines: Vec<String> = records
            .filter_map(|text| serde_json::from_str::<Value>(text).ok())
            .map(|record| line(&record, Paint::PLAIN, now))
            .collect();
        for expected in [
            "00:00:10        9  lease.granted           physics/lattice  lease-42 2 GPU gpu-h100, lease-43 80 GiB mem-dram on gpu-300 for 1h",
            "00:00:20       10  lease.denied            physics/lattice  7 GPU gpu-h100: quota 5, used 14, requested 49, limit 56",
            "00:01:10       11  lease.renewed           physics/lattice  lease-42 until 02:01:10, lease-43 until 02:01:10",
            "00:01:40       12  lease.revoked           physics  lease-42, lease-43 by operator, grace 1m",
            "00:02:10       13  lease.teardown_started  physics/lattice  lease-42, lease-43, cause ready",
            "00:04:21       17  lease.expired           physics  lease-44, closed",
            "00:00:00        8  quota.updated           quota 5 of physics gpu-h100: burst 28",
            "00:06:02       43  allocation.denied       physics/lattice  2 GPU gpu-h100: ceiling, spent 20.3, reserved 0, requested 72, amount 50",
        ] {
            assert!(lines.iter().any(|line| line == expected), "no {expected:?} in {lines:#?}");
        }
    }
}
