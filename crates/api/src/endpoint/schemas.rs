//! Schemas of query parameters.

use crate::limits::{INTEGER_MAX, PAGE_MAX};
use crate::*;
use schemars::{Schema, SchemaGenerator, json_schema};

pub(super) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 128 })
}
pub(super) fn page_limit(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": crate::limits::PAGE_DEFAULT })
}
pub(super) fn sequence(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": INTEGER_MAX })
}
pub(super) fn lease_state(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<LeaseState>()
}
pub(super) fn allocation_state(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<AllocationState>()
}
pub(super) fn days(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": crate::limits::USAGE_DAYS_MAX, "default": 90 })
}
pub(super) fn priority(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Priority>()
}

pub(super) fn kind(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Kind>()
}
/// A time as people write it; see [`Moment`].
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "description": format!("A time: {TIME_FORMATS}. A word means its first instant. A length of time is counted back from now."),
        "examples": ["2026-11-10T14:03:00Z", "2026-11-10T14:03", "today", "last-week", "1w"],
    })
}
pub(super) fn span(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Ttl>()
}
pub(super) fn bucket(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["minute", "hour", "day", "month"] })
}
pub(super) fn grouping(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 256, "examples": ["tenant,class"] })
}
pub(super) fn waste_order(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<WasteOrder>()
}
pub(super) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX })
}
pub(super) fn capacity_grouping(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["pool", "node"] })
}
pub(super) fn waste_class(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<WasteClass>()
}
pub(super) fn currency(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$", "examples": ["EUR"] })
}
pub(super) fn month(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<MonthText>()
}
pub(super) fn entry_kind(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<EntryKind>()
}
pub(super) fn account_kind(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<AccountKind>()
}
pub(super) fn invoice_status(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<InvoiceStatus>()
}
pub(super) fn invoice_format(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["json", "csv", "html"], "default": "json" })
}
pub(super) fn flag(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["true", "false"] })
}
