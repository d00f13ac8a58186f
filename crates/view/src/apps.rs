//! Records of the registry of app runtimes.

use super::Directory;
use super::object::Object;
use leasehold_model::body::{AppInstancePut, AppTypePut, AttachmentMade, UnitPricePut, UsageUnitPut};
use leasehold_model::id::UnitNo;
use serde_json::Value;

/// The name of a usage unit, or null.
pub(super) fn unit_name(directory: &Directory, unit: UnitNo) -> Value {
    directory.unit(unit).map_or(Value::Null, Value::from)
}

pub(super) fn unit<'d>(object: Object<'d>, put: &UsageUnitPut) -> Object<'d> {
    object.field("usage_unit", put.name.as_str()).field("measure", put.measure.word())
}

pub(super) fn price<'d>(object: Object<'d>, directory: &Directory, put: &UnitPricePut) -> Object<'d> {
    object
        .field("price_number", put.price_no)
        .field("usage_unit", unit_name(directory, put.unit))
        .named("app", put.app_type)
        .field("currency", put.currency.as_str())
        .field("price", put.price.to_string())
        .instant("from", put.from)
}

pub(super) fn app_type<'d>(object: Object<'d>, directory: &Directory, put: &AppTypePut) -> Object<'d> {
    let units: Value = put.units.iter().map(|unit| unit_name(directory, unit)).collect();
    object.named("app", put.app_type).field("origin", put.origin.word()).field("usage_units", units)
}

pub(super) fn instance<'d>(object: Object<'d>, put: &AppInstancePut) -> Object<'d> {
    object
        .named("app_instance", put.app_instance)
        .named("project", put.project)
        .named("app", put.app_type)
        .field("operating_mode", put.mode.word())
        .field("control_plane_scope", put.scope.word())
        .field("runtime_backend", put.backend.word())
}

pub(super) fn attachment<'d>(object: Object<'d>, made: &AttachmentMade) -> Object<'d> {
    object
        .count("attachment_id", made.attachment.0)
        .named("app_instance", made.app_instance)
        .named("source_project", made.source_project)
        .field("allocation_id", made.allocation.map(|allocation| allocation.to_string()))
}
