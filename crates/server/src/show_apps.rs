//! The registry of app runtimes as the API shows it.

use leasehold_api as api;
use leasehold_api::{AllocationId, When};
use leasehold_engine::{AppInstance, AppType, Attachment, State, Unit, UnitPrice};
use leasehold_model::{AppInstanceNo, AppTypeNo, Instant, ProjectNo, TenantNo, UnitNo};

/// The name of a registered app instance, or its number.
pub(crate) fn app_name(state: &State, number: AppInstanceNo) -> String {
    state.app_instance(number).map_or_else(|| number.to_string(), |instance| instance.name.to_string())
}

pub(crate) fn slug(state: &State, number: AppTypeNo) -> String {
    state.app_type(number).map_or_else(|| number.to_string(), |app| app.slug.to_string())
}
pub(crate) fn unit_name(state: &State, number: UnitNo) -> String {
    state.unit(number).map_or_else(|| number.to_string(), |unit| unit.name.to_owned())
}
pub(crate) fn tenant(state: &State, number: TenantNo) -> String {
    state.tenant(number).map_or_else(|| number.to_string(), |tenant| tenant.settings.name.to_string())
}
pub(crate) fn project(state: &State, number: ProjectNo) -> String {
    state.project(number).map_or_else(|| number.to_string(), |project| project.name.to_string())
}

pub(crate) fn unit(unit: Unit<'_>) -> api::UsageUnit {
    api::UsageUnit { name: unit.name.to_owned(), measure: unit.measure }
}

pub(crate) fn price(state: &State, price: &UnitPrice, now: Instant) -> api::UnitPrice {
    let in_force = state.unit_price_at(price.unit, price.app_type, now);
    api::UnitPrice {
        id: price.number,
        usage_unit: unit_name(state, price.unit),
        app: price.app_type.map(|app| slug(state, app)),
        price: api::Decimal(price.price.to_string()),
        currency: price.currency.to_string(),
        from: When(price.from),
        in_force: in_force.is_some_and(|in_force| in_force.number == price.number),
    }
}

pub(crate) fn app(state: &State, app: &AppType) -> api::App {
    api::App {
        id: app.number.0,
        slug: app.slug.to_string(),
        origin: app.origin,
        usage_units: app.units.iter().map(|unit| unit_name(state, unit)).collect(),
    }
}

pub(crate) fn instance(state: &State, instance: &AppInstance) -> api::AppInstance {
    api::AppInstance {
        id: instance.number.0,
        name: instance.name.to_string(),
        tenant: tenant(state, instance.tenant),
        tenant_id: instance.tenant.0,
        project: project(state, instance.project),
        project_id: instance.project.0,
        app: slug(state, instance.app_type),
        operating_mode: instance.mode,
        control_plane_scope: instance.scope,
        runtime_backend: instance.backend,
    }
}

pub(crate) fn attachment(state: &State, attachment: &Attachment) -> api::Attachment {
    let owner = state.app_instance(attachment.app_instance).map(|instance| instance.project);
    api::Attachment {
        id: attachment.number.0,
        tenant: tenant(state, attachment.tenant),
        app_instance: app_name(state, attachment.app_instance),
        owner_project: owner.map_or_else(String::new, |owner| project(state, owner)),
        source_project: project(state, attachment.source_project),
        allocation_id: attachment.allocation.map(|allocation| AllocationId(allocation.0)),
        made_at: When(attachment.made_at),
    }
}
