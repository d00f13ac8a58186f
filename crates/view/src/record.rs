//! The JSON object of one record, with all fields of the audit record.

use super::object::{Object, text};
use super::{Directory, body, lease_event};
use leasehold_model::frame::RawRecord;
use leasehold_model::hex;
use leasehold_model::id::{IdKind, PublicId};
use leasehold_model::name::is_invisible;
use leasehold_model::policy::Reason;
use leasehold_model::record::{Hash, Idempotency, Identity, Record};
use serde_json::Value;

pub(super) fn show(directory: &Directory, record: &Record, raw: &RawRecord<'_>, hash: &Hash) -> Value {
    let mut shown = Object::new(directory)
        .field("event_id", public_id(directory, IdKind::Record, 0, record.sequence))
        .field("kind", record.body.word())
        .count("sequence", record.sequence)
        .instant("timestamp", record.stamp)
        .instant("effective_at", record.effective_at)
        .field("identity", identity(directory, &record.identity))
        .field("reason", record.reason.map(Reason::word));
    // Only some reasons refer to another record.
    match record.reason {
        Some(Reason::Preempted { by }) => shown = shown.count("preempted_by", by),
        Some(Reason::Quota { quota }) => shown = shown.field("reason_quota_id", quota.0),
        _ => {}
    }
    shown = shown
        .field("affected_hcl_entry", text(record.hcl_entry.as_ref()))
        .field("dra_claim_id", text(record.dra_claim_id.as_ref()))
        .field("idempotency", record.idempotency.as_ref().map(|claim| idempotency(directory, claim)))
        .field("continues", record.continues)
        .field("body", body::show(directory, record));
    if let Some(events) = lease_event::show_all(directory, record) {
        shown = shown.field("lease_events", events);
    }
    shown = shown
        .field("prev_event_hash", hex::encode(&raw.prev_hash()))
        .field("current_event_hash", hex::encode(hash))
        .field("signature", raw.signature(0).map(|signature| hex::encode(&signature)));
    if !record.signers.is_empty() {
        shown = shown.field("signatures", signatures(directory, record, raw));
    }
    shown.done()
}

/// A public ID; null if the journal's genesis is not known.
pub(super) fn public_id(directory: &Directory, kind: IdKind, position: u16, number: u64) -> Value {
    directory.genesis().map_or(Value::Null, |genesis| PublicId::new(genesis, kind, position, number).to_string().into())
}

fn identity(directory: &Directory, identity: &Identity) -> Value {
    Object::new(directory)
        .named("tenant", identity.tenant)
        .named("project", identity.project)
        .named("user", identity.user)
        .field("workload", text(identity.workload.as_ref()))
        .field("token_id", identity.token.map(|token| token.0))
        .done()
}

/// A printable key is shown as text, any other as hex, under different field names to avoid confusion.
fn idempotency(directory: &Directory, claim: &Idempotency) -> Value {
    let readable = std::str::from_utf8(&claim.key).ok().filter(|key| !key.chars().any(is_invisible));
    let shown = match readable {
        Some(key) => Object::new(directory).field("key", key),
        None => Object::new(directory).field("key_hex", hex::encode(&claim.key)),
    };
    shown.named("owner", claim.owner).field("payload_hash", hex::encode(&claim.payload)).done()
}

fn signatures(directory: &Directory, record: &Record, raw: &RawRecord<'_>) -> Value {
    let signed_by = |(i, key): (usize, &[u8; 32])| {
        let signature = raw.signature(i).map(|signature| hex::encode(&signature));
        Object::new(directory).field("public_key", hex::encode(key)).field("signature", signature).done()
    };
    record.signers.iter().enumerate().map(signed_by).collect()
}
