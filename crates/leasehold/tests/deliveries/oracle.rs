//! What was due to a webhook, computed from the records of the journal alone: nothing of the daemon's deliveries is
//! asked. The rules are those of SEMANTICS 11 ("Accounting events") and 13.

use leasehold_model::PublicId;
use leasehold_model::hex;
use leasehold_model::id::IdKind;
use serde_json::Value;

/// One event that was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// The allocation, the lease or whatever it is in order with.
    pub(crate) order: String,
}

/// Kinds of records of which webhooks are told, once for the record.
const OF_RECORDS: &[&str] = &[
    "lease.denied",
    "allocation.submitted",
    "allocation.denied",
    "allocation.placed",
    "allocation.checkpointing",
    "allocation.suspended",
    "allocation.requeued",
    "allocation.failed",
    "allocation.cancelled",
    "allocation.hold_set",
    "allocation.hold_cleared",
    "allocation.changed",
    "node.lost",
    "node.returned",
    "node.drained",
    "node.resumed",
    "node.quarantined",
    "prepaid.changed",
    "entitlement.warned",
    "invoice.issued",
    "period.closed",
];
/// And once for each lease.
const OF_LEASES: &[&str] = &[
    "lease.granted",
    "lease.renewed",
    "lease.released",
    "lease.expired",
    "lease.revoked",
    "lease.teardown_started",
    "lease.torn_down",
    "lease.fenced",
    "lease.unfenced",
    "lease.window_announced",
    "lease.end_corrected",
];

fn word<'v>(value: &'v Value, what: &str) -> &'v str {
    value.as_str().unwrap_or_else(|| panic!("no {what}"))
}

/// The hash that IDs are made from: that of the first record.
fn genesis(records: &[Value]) -> [u8; 32] {
    assert_eq!(records[0]["sequence"], 0);
    let text = word(&records[0]["current_event_hash"], "hash");
    hex::decode(text).and_then(|bytes| bytes.try_into().ok()).expect("a hash")
}

/// Everything that is due to a webhook of the operator for all events, from the records after the one that made it. All
/// allocations are in one pool.
pub(crate) fn due(records: &[Value], made_by: u64) -> Vec<Due> {
    let genesis = genesis(records);
    let accounting =
        |position: u16, sequence: u64| PublicId::new(&genesis, IdKind::AccountingEvent, position, sequence).to_string();
    let mut all = Vec::new();
    for record in records.iter().filter(|record| record["sequence"].as_u64() > Some(made_by)) {
        let (kind, sequence) = (word(&record["kind"], "kind"), record["sequence"].as_u64().expect("a sequence"));
        let allocation = match kind {
            // The number of an allocation is the sequence of the record that submitted it.
            "allocation.submitted" | "allocation.denied" => Some(format!("alloc-{sequence}")),
            _ => record["body"]["allocation_id"].as_str().map(str::to_owned),
        };
        let mut tell = |id: String, kind: &str, order: String| all.push(Due { id, kind: kind.to_owned(), order });
        let leases = record["lease_events"].as_array().map(Vec::as_slice).unwrap_or_default();
        if OF_LEASES.contains(&kind) {
            for lease in leases {
                let of = lease["allocation_id"].as_str().or(lease["lease"].as_str()).expect("a lease");
                tell(word(&lease["event_id"], "event").to_owned(), kind, of.to_owned());
            }
        }
        if OF_RECORDS.contains(&kind) {
            let order = allocation.clone().unwrap_or_else(|| format!("record-{sequence}"));
            tell(word(&record["event_id"], "event").to_owned(), kind, order);
        }
        // Leases without an allocation are allocations of their own.
        let alone = leases.iter().filter(|lease| lease["allocation_id"].is_null());
        match kind {
            "lease.granted" | "lease.released" | "lease.expired" | "lease.teardown_started" => {
                let told = if kind == "lease.granted" { "allocation.started" } else { "allocation.completed" };
                for (position, lease) in (0..).zip(alone) {
                    tell(accounting(position, sequence), told, word(&lease["lease"], "lease").to_owned());
                }
            }
            "allocation.placed" | "allocation.completed" | "allocation.failed" | "allocation.cancelled" => {
                let order = allocation.expect("an allocation");
                let told = if kind == "allocation.placed" { "allocation.started" } else { "allocation.completed" };
                tell(accounting(0, sequence), told, order);
            }
            "quota.updated" | "quota.deleted" | "quota.until_reached" | "quota.budgets_updated" => {
                tell(accounting(0, sequence), "quota.updated", format!("quota-{sequence}"));
            }
            _ => {}
        }
    }
    all
}
