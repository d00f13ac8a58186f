//! Records of the registry of app runtimes.

use super::Directory;
use super::correlation::correlation_id;
use super::object::{Object, count, text};
use leasehold_model::Correlation;
use leasehold_model::body::{
    AppInstancePut, AppTypePut, AttachmentMade, UnitPricePut, UsageRecorded, UsageReport, UsageUnitPut,
};
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

pub(super) fn usage<'d>(object: Object<'d>, directory: &'d Directory, recorded: &UsageRecorded) -> Object<'d> {
    let report = &recorded.report;
    let replaced = recorded.replaces.map(|old| {
        Object::new(directory)
            .count("sequence", old.sequence)
            .named("project", old.project)
            .field("quantity", old.quantity.to_string())
            .instant("from", old.from)
            .instant("to", old.to)
            .field("charge", old.charge.word())
            .done()
    });
    self::report(object, directory, report)
        .field("charge", recorded.charge.word())
        .field("no_submitter", recorded.no_submitter)
        .field("replaces", replaced)
        .named("creditor", recorded.creditor)
        .named("replaced_creditor", recorded.replaced_creditor)
}

/// What was reported.
pub(super) fn report<'d>(object: Object<'d>, directory: &'d Directory, report: &UsageReport) -> Object<'d> {
    object
        .field("source", report.source.as_str())
        .field("id", report.id.as_str())
        .named("app_instance", report.app_instance)
        .field("usage_unit", unit_name(directory, report.unit))
        .field("quantity", report.quantity.to_string())
        .instant("from", report.from)
        .instant("to", report.to)
        .field("correlation_id", correlation_id(directory, Correlation::Given(report.correlation)))
        .field("control_plane", report.control_plane)
        .field("attachment_id", report.attachment.map(|attachment| count(attachment.0)))
        .field("allocation_id", report.allocation.map(|allocation| allocation.to_string()))
        .field("supersedes", text(report.supersedes.as_ref()))
}
