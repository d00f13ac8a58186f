//! Records of entitlements, of usage that they refused, and of policies.

use super::Directory;
use super::apps::{report, unit_name};
use super::object::Object;
use leasehold_model::UnitList;
use leasehold_model::body::{AppPolicyPut, EntitlementPut, EntitlementScope, EntitlementWarned, UsageRefused};
use serde_json::Value;

pub(super) fn scope<'d>(object: Object<'d>, directory: &Directory, of: EntitlementScope) -> Object<'d> {
    object
        .named("project", of.project)
        .named("app_instance", of.app_instance)
        .field("usage_unit", unit_name(directory, of.unit))
}

pub(super) fn put<'d>(object: Object<'d>, directory: &Directory, put: &EntitlementPut) -> Object<'d> {
    scope(object, directory, put.of)
        .field("soft", put.soft.map(|soft| soft.to_string()))
        .field("hard", put.hard.map(|hard| hard.to_string()))
}

pub(super) fn warned<'d>(object: Object<'d>, directory: &Directory, warned: &EntitlementWarned) -> Object<'d> {
    scope(object, directory, warned.of)
        .field("month", warned.month.to_string())
        .field("used", warned.used.to_string())
        .field("soft", warned.soft.to_string())
}

pub(super) fn refused<'d>(object: Object<'d>, directory: &'d Directory, refused: &UsageRefused) -> Object<'d> {
    report(object, directory, &refused.report)
        .named("entitled_project", refused.of.project)
        .named("entitled_app_instance", refused.of.app_instance)
        .field("month", refused.month.to_string())
        .field("used", refused.used.to_string())
        .field("hard", refused.hard.to_string())
}

pub(super) fn policy<'d>(object: Object<'d>, directory: &Directory, put: &AppPolicyPut) -> Object<'d> {
    let names = |units: &UnitList| -> Value { units.iter().map(|unit| unit_name(directory, unit)).collect() };
    object
        .named("app", put.of.app_type)
        .named("tenant", put.of.tenant)
        .named("app_instance", put.of.app_instance)
        .field("version", put.version)
        .field("usage_units", put.units.as_ref().map(names))
        .field("attribution", put.attribution.map(|attribution| attribution.word()))
        .field("billed_work", put.billed_work.as_ref().map(names))
}
