//! Records as JSON. The view makes them (`docs/reference/json-view.md`); these types describe them to other programs.

mod fields;
mod kinds;
mod parts;

use crate::time::When;
use kinds::{KINDS, Kind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// One record of the journal, of any kind.
pub struct Record;

impl JsonSchema for Record {
    fn schema_name() -> Cow<'static, str> {
        "Record".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let head = generator.subschema_for::<RecordHead>();
        let mut mapping = Map::new();
        for kind in KINDS {
            let name = type_name(kind);
            mapping.insert(kind.word.to_owned(), format!("#/components/schemas/{name}").into());
            let of_kind = json!({
                "description": kind.about,
                "allOf": [
                    head,
                    {
                        "type": "object",
                        "required": ["kind", "body"],
                        "properties": {
                            "kind": { "const": kind.word, "description": "What happened." },
                            "body": body(kind),
                        },
                    },
                ],
            });
            generator.definitions_mut().insert(name, of_kind);
        }
        let choices: Vec<Value> = mapping.values().map(|path| json!({ "$ref": path })).collect();
        json_schema!({
            "description": "One record of the journal. Its kind says which fields the body has.",
            "oneOf": choices,
            "discriminator": { "propertyName": "kind", "mapping": mapping },
        })
    }
}

fn body(kind: &Kind) -> Value {
    let mut body = parts::body(kind.fields);
    body["description"] = "The fields of the kind.".into();
    body
}

/// `lease.granted` is `LeaseGrantedRecord`.
fn type_name(kind: &Kind) -> String {
    let words = kind.word.split(['.', '_']).map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    });
    words.chain(["Record".to_owned()]).collect()
}

/// What every record has.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct RecordHead {
    /// ID of the record: 32 hexadecimal digits.
    event_id: Option<String>,
    /// Position in the journal, counted from 0.
    sequence: u64,
    /// When it was recorded.
    timestamp: When,
    /// When it was recorded, in nanoseconds since 1970 UTC, as a string of digits.
    timestamp_ns: String,
    /// When it took effect. Never later than `timestamp`.
    effective_at: When,
    /// When it took effect, in nanoseconds since 1970 UTC, as a string of digits.
    effective_at_ns: String,
    /// For whom it was made.
    identity: RecordIdentity,
    /// Why a lease was ended involuntarily; null for other records.
    reason: Option<String>,
    /// Sequence number of the eviction decision. Absent unless the reason is `preempted`.
    preempted_by: Option<u64>,
    /// Number of the quota. Absent unless the reason is `quota`.
    reason_quota_id: Option<u32>,
    /// The reference that the caller gave; null if there is none.
    affected_hcl_entry: Option<String>,
    /// ID of the DRA claim that the caller gave; null if there is none.
    dra_claim_id: Option<String>,
    /// Idempotency key of the command; null if it had none.
    idempotency: Option<RecordIdempotency>,
    /// Whether it belongs to the same command as the record before it.
    continues: bool,
    /// One event for each lease that the record concerns. Absent unless the record is about leases.
    lease_events: Option<Vec<LeaseEvent>>,
    /// Hash of the record before, in hexadecimal.
    prev_event_hash: String,
    /// Hash of this record, in hexadecimal.
    current_event_hash: String,
    /// The first signature, in hexadecimal; null if the record is not signed.
    signature: Option<String>,
    /// All signatures. Absent if the record is not signed.
    signatures: Option<Vec<RecordSignature>>,
}

/// For whom a record was made.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct RecordIdentity {
    /// Name of the tenant; null if there is none.
    tenant: Option<String>,
    /// Number of the tenant; null if there is none.
    tenant_id: Option<u64>,
    /// Name of the project; null if there is none.
    project: Option<String>,
    /// Number of the project; null if there is none.
    project_id: Option<u64>,
    /// Name of the user; null if there is none.
    user: Option<String>,
    /// Number of the user; null if there is none.
    user_id: Option<u64>,
    /// Name of the workload; null if there is none.
    workload: Option<String>,
    /// Number of the token; null if the daemon made the record by itself.
    token_id: Option<u64>,
}

/// The idempotency key of a command.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct RecordIdempotency {
    /// The key. Absent if it is not printable.
    key: Option<String>,
    /// The key in hexadecimal. Absent if it is printable.
    key_hex: Option<String>,
    /// Name of the tenant that the key belongs to; null if there is none.
    owner: Option<String>,
    /// Number of the tenant that the key belongs to; null if there is none.
    owner_id: Option<u64>,
    /// The first 16 bytes of the hash of the command, in hexadecimal.
    payload_hash: String,
}

/// A signature on a record.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct RecordSignature {
    /// Key that signed, in hexadecimal.
    public_key: String,
    /// The signature, in hexadecimal; null if it is missing.
    signature: Option<String>,
}

/// What a record did to one lease.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct LeaseEvent {
    /// ID of the event, the same however often it is sent: 32 hexadecimal digits.
    event_id: Option<String>,
    /// When the record took effect.
    timestamp: When,
    /// When the record took effect, in nanoseconds since 1970 UTC, as a string of digits.
    timestamp_ns: String,
    /// What happened to the lease.
    event_type: LeaseEventType,
    /// ID of the lease: 32 hexadecimal digits.
    lease_id: Option<String>,
    /// The lease: `lease-` and its number.
    lease: String,
    /// Name of the tenant that pays; null if it is unknown.
    tenant: Option<String>,
    /// Number of the tenant; null if it is unknown.
    tenant_id: Option<u64>,
    /// Name of the project; null if it is unknown.
    project: Option<String>,
    /// Number of the project; null if it is unknown.
    project_id: Option<u64>,
    /// Name of the user; null if there is none.
    user: Option<String>,
    /// Number of the user; null if there is none.
    user_id: Option<u64>,
    /// Workload; null if none was named.
    workload: Option<String>,
    /// Accounting tag that the tenant had when the lease was granted; null if it had none.
    accounting_tag: Option<String>,
    /// Kind of resource: `Gpu`, `Cpu`, `Mem`, `Block` or `Net`; null if it is unknown.
    resource_type: Option<String>,
    /// Tier or model of the class; null if it has none.
    tier_kind: Option<String>,
    /// Name of the resource class; null if it is unknown.
    class: Option<String>,
    /// Number of the resource class; null if it is unknown.
    class_id: Option<u64>,
    /// Quanta held; null if that is unknown.
    capacity: Option<u64>,
    /// The same in billing units, such as `2 GPU`.
    capacity_units: Option<String>,
    /// Name of the node; null if it is unknown.
    node: Option<String>,
    /// Number of the node; null if it is unknown.
    node_id: Option<u64>,
    /// Indexes of the devices; null if they are unknown.
    devices: Option<Vec<u32>>,
    /// When the lease was granted.
    granted_at: Option<When>,
    /// When the lease was granted, in nanoseconds since 1970 UTC, as a string of digits.
    granted_at_ns: Option<String>,
    /// Its deadline after this event.
    expires_at: Option<When>,
    /// Its deadline after this event, in nanoseconds since 1970 UTC, as a string of digits.
    expires_at_ns: Option<String>,
    /// The allocation: `alloc-` and its number; null if the lease belongs to none.
    allocation_id: Option<String>,
    /// Correlation ID; null if it is not known.
    correlation_id: Option<String>,
}

/// What happened to a lease.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub enum LeaseEventType {
    /// It was granted.
    Allocated(LeaseAllocated),
    /// It was renewed.
    Renewed(LeaseRenewed),
    /// Its holder released it.
    Released,
    /// Its deadline passed.
    Expired,
    /// It was revoked; it is billed until its teardown starts.
    Revoked(LeaseRevoked),
    /// Its teardown started, and billing stopped.
    TeardownStarted,
    /// Its node confirmed the teardown.
    TornDown,
    /// Its teardown was not confirmed in time.
    Fenced,
    /// Its fence was cleared.
    Unfenced,
    /// Its activity was reported.
    ActivityReported,
    /// Its node was reserved for maintenance.
    MaintenanceAnnounced(LeaseMaintenance),
    /// It had ended after its node was last seen, and is billed to that instant only.
    EndCorrected,
}

/// How long a lease was granted for.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct LeaseAllocated {
    /// Length in whole seconds.
    duration_secs: u64,
}

/// How long a lease was renewed for.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct LeaseRenewed {
    /// The new deadline.
    new_expires_at: When,
    /// The new deadline, in nanoseconds since 1970 UTC, as a string of digits.
    new_expires_at_ns: String,
}

/// When the maintenance of a lease's node begins; the lease ends then.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct LeaseMaintenance {
    /// The start of the maintenance window.
    begins_at: When,
    /// The start of the maintenance window, in nanoseconds since 1970 UTC, as a string of digits.
    begins_at_ns: String,
}

/// Why a lease was revoked.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes JSON that the view writes")]
pub struct LeaseRevoked {
    /// Reason of the revocation.
    reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_described() {
        let described: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
        for (_, word) in leasehold_model::Body::KINDS {
            assert!(described.contains(word), "add a row for {word} to crates/api/src/record/kinds.rs");
        }
        assert_eq!(described.len(), leasehold_model::Body::KINDS.len() + 1, "each once, and the unknown kind");
    }
}
