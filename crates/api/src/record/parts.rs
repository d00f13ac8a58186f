//! Objects within record bodies.

use super::fields::add;
use crate::time::When;
use schemars::{JsonSchema as _, SchemaGenerator};
use serde_json::{Map, Value, json};

/// An object that has all of these fields, except for those that end in `?`, which may be absent.
fn object(fields: &[&str]) -> Value {
    let (optional, always): (Vec<&str>, Vec<&str>) = fields.iter().copied().partition(|field| field.ends_with('?'));
    let mut properties = Map::new();
    add(&always, &mut properties);
    let required: Vec<String> = properties.keys().cloned().collect();
    let optional: Vec<&str> = optional.iter().map(|field| field.trim_end_matches('?')).collect();
    add(&optional, &mut properties);
    json!({ "type": "object", "required": required, "properties": properties })
}

/// An object of which only `type` is always present.
fn by_type(fields: &[&str]) -> Value {
    let mut object = object(fields);
    object["required"] = json!(["type"]);
    object
}

pub(super) fn or_null(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"], "null"]);
    schema
}

pub(super) fn when(or_null: bool) -> Value {
    let mut schema = When::json_schema(&mut SchemaGenerator::default()).to_value();
    if or_null {
        schema["type"] = json!(["string", "null"]);
    }
    schema
}

/// The body of a kind with these fields.
pub(super) fn body(fields: &[&str]) -> Value {
    object(fields)
}

pub(super) fn clock() -> Value {
    or_null(object(&["last_stamp", "wall_clock"]))
}
pub(super) fn per_priority() -> Value {
    object(&["scavenger", "standard", "guaranteed"])
}
pub(super) fn weights() -> Value {
    or_null(object(&["pressure", "fit", "locality", "fragmentation"]))
}
pub(super) fn weighing() -> Value {
    let mut schema = weights();
    schema["type"] = json!(["string", "object", "null"]);
    schema
}
pub(super) fn share_weights() -> Value {
    json!({ "type": ["array", "null"], "items": object(&["project", "percent"]) })
}
pub(super) fn service_tiers() -> Value {
    json!({ "type": ["array", "null"], "items": object(&["name=tier_name", "weight=tier_weight"]) })
}
pub(super) fn tier_projects() -> Value {
    json!({ "type": ["array", "null"], "items": object(&["project", "tier=tier_name"]) })
}
pub(super) fn profile() -> Value {
    or_null(object(&["gpu", "cpu", "mem", "block", "net"]))
}
pub(super) fn label() -> Value {
    object(&["key", "value"])
}
pub(super) fn amount() -> Value {
    object(&["class", "quanta", "units"])
}
pub(super) fn member() -> Value {
    object(&["class", "quanta", "units", "devices"])
}
pub(super) fn place() -> Value {
    object(&["node", "members"])
}
const LINE: [&str; 15] = [
    "hour",
    "project",
    "pool",
    "class",
    "usage_unit",
    "priority=line_priority",
    "priced_as",
    "tag",
    "app_instance",
    "attachment_id",
    "control_plane=control_plane_line",
    "card_id=maybe_card_id",
    "usage_quanta_ns",
    "usage_unit_parts",
    "exact_steps",
];
pub(super) fn posted_line() -> Value {
    object(&[&LINE[..], &["posted"]].concat())
}
pub(super) fn corrected_line() -> Value {
    or_null(object(&LINE))
}
pub(super) fn leg() -> Value {
    object(&["account", "project?", "tenant?", "class?", "usage_unit?", "amount=leg_amount"])
}
pub(super) fn replaced_usage() -> Value {
    let fields = [
        "sequence=replaced_sequence",
        "project",
        "quantity=unit_quantity",
        "from=usage_from",
        "to=usage_to",
        "charge=usage_charge",
    ];
    or_null(object(&fields))
}
pub(super) fn invoice_project() -> Value {
    object(&["project", "amount=posted"])
}
pub(super) fn record_set() -> Value {
    object(&["count=set_count", "root=set_root"])
}
pub(super) fn tax_line() -> Value {
    object(&["rate", "posted", "net=net_amount", "tax"])
}
pub(super) fn node() -> Value {
    object(&["node"])
}
pub(super) fn limit() -> Value {
    by_type(&["type", "limit=limit_value", "burst_limit", "burst_ttl"])
}
pub(super) fn quota_scope() -> Value {
    object(&[
        "tenant",
        "project",
        "class",
        "pool",
        "nodes=which_nodes",
        "node",
        "priority=maybe_priority",
        "and_above?",
        "kind=class_kind?",
        "users=which_holders?",
        "user?",
        "app_instances=which_holders?",
        "app_instance?",
    ])
}
pub(super) fn token_scope() -> Value {
    object(&["tenant", "project", "user", "node", "app_instance_ids"])
}
pub(super) fn charge() -> Value {
    let mut schema = object(&["minus_last"]);
    schema["type"] = json!(["string", "object"]);
    schema
}
pub(super) fn deny_cause() -> Value {
    by_type(&[
        "type",
        "quota_id",
        "used",
        "requested",
        "limit=limit_value",
        "ends_at",
        "class",
        "most_free",
        "app_instance",
        "spent",
        "reserved",
        "amount",
    ])
}
pub(super) fn activity() -> Value {
    or_null(object(&["covered", "busy_quantum_ns", "active", "waiting_ns"]))
}
pub(super) fn renewal() -> Value {
    object(&["lease", "expires_at", "activity"])
}
pub(super) fn reported() -> Value {
    object(&["lease", "activity"])
}
