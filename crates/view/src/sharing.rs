//! Records about the sharing of the cost of control planes.

use super::Directory;
use super::apps::unit_name;
use super::object::{Object, count, text};
use leasehold_model::body::{LedgerShared, SharedAs, Sharing, SharingPut};
use serde_json::Value;

pub(super) fn policy<'d>(object: Object<'d>, directory: &'d Directory, put: &SharingPut) -> Object<'d> {
    let object = object
        .named("app", put.of.app_type)
        .named("tenant", put.of.tenant)
        .named("app_instance", put.of.app_instance)
        .field("version", put.version)
        .field("control_plane_billable", put.control_plane_billable)
        .field("distributable", put.distributable);
    basis(object, directory, put.sharing.as_ref())
}

fn basis<'d>(object: Object<'d>, directory: &'d Directory, sharing: Option<&Sharing>) -> Object<'d> {
    let new = || Object::new(directory);
    let weights = sharing.map(|sharing| sharing.basis.percentages()).filter(|weights| !weights.is_empty());
    let tiers = sharing.and_then(|sharing| sharing.basis.tiers());
    let named = |place: u32| tiers.and_then(|tiers| Some(tiers.tiers.get(place as usize)?.name.to_string()));
    let result = |sharing: &Sharing| if sharing.entries { SharedAs::Entries } else { SharedAs::Report };
    let percent = |weights: &[_]| -> Value {
        let one = |(project, percent): &(leasehold_model::ProjectNo, leasehold_model::rate::Decimal)| {
            new().named("project", *project).field("percent", percent.to_string()).done()
        };
        weights.iter().map(one).collect()
    };
    object
        .field("method", sharing.map(|sharing| sharing.basis.method().word()))
        .field("result", sharing.map(|sharing| result(sharing).word()))
        .field("usage_unit", sharing.and_then(|sharing| Some(unit_name(directory, sharing.basis.unit()?))))
        .field("weights", weights.map(percent))
        .field(
            "tiers",
            tiers.map(|tiers| -> Value {
                let one = |tier: &leasehold_model::body::ServiceTier| {
                    new().field("name", tier.name.as_str()).field("weight", tier.weight.to_string()).done()
                };
                tiers.tiers.iter().map(one).collect()
            }),
        )
        .field(
            "tier_projects",
            tiers.map(|tiers| -> Value {
                let one = |(project, place): &(leasehold_model::ProjectNo, u32)| {
                    new().named("project", *project).field("tier", named(*place)).done()
                };
                tiers.projects.iter().map(one).collect()
            }),
        )
        .field("default_tier", tiers.and_then(|tiers| named(tiers.default_tier?)))
}

pub(super) fn shared<'d>(object: Object<'d>, directory: &Directory, shared: &LedgerShared) -> Object<'d> {
    object
        .named("app_instance", shared.app_instance)
        .named("owner", shared.owner)
        .field("month", shared.month.to_string())
        .field("currency", shared.currency.as_str())
        .field("previous_sequence", shared.previous.map(count))
        .named("policy_app", shared.policy.app_type)
        .named("policy_tenant", shared.policy.tenant)
        .named("policy_app_instance", shared.policy.app_instance)
        .field("policy_version", shared.version)
        .field("method", shared.method.word())
        .field("usage_unit", shared.unit.map(|unit| unit_name(directory, unit)))
        .field("tier", text(shared.tier.as_ref()))
        .field("weight", shared.weight.0.to_string())
        .field("total_weight", shared.total_weight.0.to_string())
        .field("pool", shared.pool.to_string())
        .field("share", shared.share.to_string())
        .field("booked", shared.booked.to_string())
}
