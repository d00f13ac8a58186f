//! The registry of app runtimes: usage units and their prices, kinds of apps, and app instances.

use super::ledger_scope::{bad, currency};
use super::page::page;
use super::rates::now;
use super::tenancy::{changed, find_owner_project};
use crate::books::look_up;
use crate::context::{Answer, Context, json};
use crate::{names, show, show_apps};
use leasehold_api::{
    AppChange, AppInstanceChange, AppInstanceList, AppInstancePut, AppList, AppPut, Decimal, NewApp, NewAppInstance,
    NewUnitPrice, NewUsageUnit, Problem, UnitPriceList, UnitPricePut, UsageUnitList, UsageUnitPut, When, codes,
};
use leasehold_books::{NamedKind, NamedObject};
use leasehold_engine::command::{PutAppInstance, PutAppType, PutUnitPrice, PutUsageUnit};
use leasehold_engine::{AppInstance, Command, State};
use leasehold_model::{
    AppInstanceNo, AppTypeNo, Body, ControlPlaneScope, OperatingMode, UnitNo, rate::Decimal as Exact,
};

pub(super) async fn list_usage_units(context: Context) -> Answer {
    let listed = context
        .app
        .now
        .read(|state| page(&context, state.units().map(|unit| (u64::from(unit.number.0), show_apps::unit(unit)))));
    let (usage_units, next_cursor) = listed?;
    json(200, &UsageUnitList { usage_units, next_cursor })
}

pub(super) async fn create_usage_unit(context: Context) -> Answer {
    let new: NewUsageUnit = context.body()?;
    let put = PutUsageUnit { name: names::new_name(&new.name, None)?, measure: new.measure };
    let sealed = context.seal(Command::PutUsageUnit(put)).await?;
    let Body::UsageUnitPut(put) = &sealed.first().body else { unreachable!("a usage unit was put") };
    let usage_unit = context.app.now.read(|state| state.unit(put.unit).map(show_apps::unit));
    let usage_unit = usage_unit.ok_or_else(|| show::gone_already("usage unit"))?;
    json(201, &UsageUnitPut { sequence: sealed.sequence(), usage_unit })
}

pub(super) async fn list_unit_prices(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        let now = now(&context, state);
        let shown = |price| show_apps::price(state, price, now);
        page(&context, state.unit_prices().iter().map(|price| (u64::from(price.number), shown(price))))
    });
    let (unit_prices, next_cursor) = listed?;
    json(200, &UnitPriceList { unit_prices, next_cursor })
}

fn price(text: &Decimal) -> Result<Exact, Problem> {
    text.0.parse().map_err(|why| bad("price", why))
}

pub(super) async fn create_unit_price(context: Context) -> Answer {
    let new: NewUnitPrice = context.body()?;
    let given = new.currency.as_deref().map(|text| currency("currency", text)).transpose()?;
    let price = price(&new.price)?;
    let put = context.app.now.read(|state| {
        Ok::<_, Problem>(PutUnitPrice {
            unit: names::unit(state, &new.usage_unit)?,
            app_type: new.app.as_deref().map(|text| names::app_type(state, text)).transpose()?,
            currency: given.unwrap_or_else(|| state.prices_at(None, now(&context, state)).currency),
            price,
            from: new.from.map(|from| from.0),
        })
    })?;
    let sealed = context.seal(Command::PutUnitPrice(put)).await?;
    let Body::UnitPricePut(put) = &sealed.first().body else { unreachable!("a price was put") };
    let shown = context.app.now.read(|state| {
        let price = state.unit_prices().iter().find(|price| price.number == put.price_no);
        price.map(|price| show_apps::price(state, price, now(&context, state)))
    });
    let unit_price = shown.ok_or_else(|| show::gone_already("price"))?;
    json(201, &UnitPricePut { sequence: sealed.sequence(), unit_price })
}

pub(super) async fn list_apps(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        page(&context, state.app_types().map(|app| (u64::from(app.number.0), show_apps::app(state, app))))
    });
    let (apps, next_cursor) = listed?;
    json(200, &AppList { apps, next_cursor })
}

fn find_app(context: &Context) -> Result<AppTypeNo, Problem> {
    context.app.now.read(|state| names::app_type(state, context.subject()))
}

fn app_put(context: &Context, status: u16, sequence: u64, app: AppTypeNo) -> Answer {
    let app = context.app.now.read(|state| state.app_type(app).map(|app| show_apps::app(state, app)));
    json(status, &AppPut { sequence, app: app.ok_or_else(|| show::gone_already("app"))? })
}

fn units(state: &State, given: &[String]) -> Result<Vec<UnitNo>, Problem> {
    given.iter().map(|text| names::unit(state, text).map_err(|problem| problem.with("field", "usage_units"))).collect()
}

pub(super) async fn show_app(context: Context) -> Answer {
    let number = find_app(&context)?;
    let app = context.app.now.read(|state| state.app_type(number).map(|app| show_apps::app(state, app)));
    json(200, &app.ok_or_else(|| show::gone_already("app"))?)
}

pub(super) async fn create_app(context: Context) -> Answer {
    let new: NewApp = context.body()?;
    let slug = names::new_name(&new.slug, None).map_err(|problem| problem.with("field", "slug"))?;
    let units = context.app.now.read(|state| units(state, &new.usage_units))?;
    let put = PutAppType { app_type: None, slug, origin: new.origin, units };
    let sealed = context.seal(Command::PutAppType(put)).await?;
    let Body::AppTypePut(put) = &sealed.first().body else { unreachable!("an app was put") };
    app_put(&context, 201, sealed.sequence(), put.app_type)
}

pub(super) async fn change_app(context: Context) -> Answer {
    let change: AppChange = context.body()?;
    let number = find_app(&context)?;
    let put = context.app.now.read(|state| {
        let old = state.app_type(number).ok_or_else(|| show::gone_already("app"))?;
        Ok::<_, Problem>(PutAppType {
            app_type: Some(number),
            slug: old.slug.clone(),
            origin: change.origin.unwrap_or(old.origin),
            units: match &change.usage_units {
                Some(given) => units(state, given)?,
                None => old.units.iter().collect(),
            },
        })
    })?;
    let sealed = context.seal(Command::PutAppType(put)).await?;
    app_put(&context, 200, sealed.sequence(), number)
}

pub(super) async fn delete_app(context: Context) -> Answer {
    let app = find_app(&context)?;
    changed(&context, Ok(Command::DeleteAppType(app))).await
}

pub(super) async fn list_app_instances(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let project = context.query("project").map(|text| names::project(state, caller, of, text)).transpose()?;
        let visible = |instance: &&AppInstance| {
            of.is_none_or(|tenant| tenant == instance.tenant)
                && project.is_none_or(|project| project == instance.project)
                && (caller.sees_app_instance(instance.tenant, instance.number)
                    || instance.scope == ControlPlaneScope::Platform)
        };
        let all = state.app_instances_after(None).filter(visible);
        page(&context, all.map(|instance| (instance.number.0, show_apps::instance(state, instance))))
    });
    let (app_instances, next_cursor) = listed?;
    json(200, &AppInstanceList { app_instances, next_cursor })
}

fn find_instance(context: &Context) -> Result<AppInstanceNo, Problem> {
    let caller = context.caller();
    context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        names::app_instance(state, caller, of, context.subject())
    })
}

/// An instance that was deleted, for those who saw it while it existed.
async fn deleted_instance(context: &Context) -> Option<Problem> {
    let (caller, text) = (context.caller().clone(), context.subject().to_owned());
    let found = look_up(&context.app, context.caller(), move |_, books| {
        let is_meant = |number: u64, object: &NamedObject| match names::digits::<u64>(&text) {
            Some(given) => given == number,
            None => object.name.as_str() == text,
        };
        let sees = |number: u64, object: &NamedObject| {
            object.tenant.is_some_and(|tenant| caller.sees_app_instance(tenant, AppInstanceNo(number)))
        };
        let all = books.deleted(NamedKind::AppInstance);
        let meant = all.filter(|(number, object)| is_meant(*number, object) && sees(*number, object));
        Ok(meant.last().and_then(|(_, object)| object.deleted_at))
    });
    let deleted_at = When(found.await.ok()??);
    let detail = format!("The app instance \"{}\" was deleted at {deleted_at}.", context.subject().escape_debug());
    Some(codes::APP_INSTANCE_DELETED.problem(detail))
}

pub(super) async fn show_app_instance(context: Context) -> Answer {
    let number = match find_instance(&context) {
        Ok(number) => number,
        Err(unknown) => return Err(deleted_instance(&context).await.unwrap_or(unknown)),
    };
    let shown = context.app.now.read(|state| Some(show_apps::instance(state, state.app_instance(number)?)));
    json(200, &shown.ok_or_else(|| show::gone_already("app instance"))?)
}

fn instance_put(context: &Context, status: u16, sequence: u64, number: AppInstanceNo) -> Answer {
    let shown = context.app.now.read(|state| Some(show_apps::instance(state, state.app_instance(number)?)));
    let app_instance = shown.ok_or_else(|| show::gone_already("app instance"))?;
    json(status, &AppInstancePut { sequence, app_instance })
}

pub(super) async fn create_app_instance(context: Context) -> Answer {
    let new: NewAppInstance = context.body()?;
    let name = names::new_name(&new.name, None)?;
    let put = context.app.now.read(|state| {
        let project = find_owner_project(state, context.caller(), new.tenant.as_deref(), &new.project)?;
        let mode = new.operating_mode.unwrap_or(OperatingMode::TenantDedicated);
        let scope = new.control_plane_scope.unwrap_or(match mode {
            OperatingMode::TenantDedicated => ControlPlaneScope::Project,
            OperatingMode::PlatformManaged => ControlPlaneScope::Platform,
        });
        let app_type = names::app_type(state, &new.app)?;
        let backend = new.runtime_backend;
        Ok::<_, Problem>(PutAppInstance { app_instance: None, project, name, app_type, mode, scope, backend })
    })?;
    let sealed = context.seal(Command::PutAppInstance(put)).await?;
    let Body::AppInstancePut(put) = &sealed.first().body else { unreachable!("an app instance was put") };
    instance_put(&context, 201, sealed.sequence(), put.app_instance)
}

/// An instance that the caller may change. Those of the platform are found by all tenants, but are not theirs.
fn find_own_instance(context: &Context) -> Result<AppInstanceNo, Problem> {
    let number = find_instance(context)?;
    let caller = context.caller();
    let own = context.app.now.read(|state| state.app_instance(number).map(|instance| instance.tenant));
    own.filter(|tenant| caller.sees_tenant(*tenant))
        .map(|_| number)
        .ok_or_else(|| names::not_found("app_instance", context.subject(), std::iter::empty()))
}

pub(super) async fn change_app_instance(context: Context) -> Answer {
    let change: AppInstanceChange = context.body()?;
    let number = find_own_instance(&context)?;
    let put = context.app.now.read(|state| {
        let old = state.app_instance(number).ok_or_else(|| show::gone_already("app instance"))?;
        let AppInstance { project, app_type, mode, scope, backend, .. } = *old;
        let name = names::new_name(&change.name, Some(&old.name))?;
        Ok::<_, Problem>(PutAppInstance { app_instance: Some(number), project, name, app_type, mode, scope, backend })
    })?;
    let sealed = context.seal(Command::PutAppInstance(put)).await?;
    instance_put(&context, 200, sealed.sequence(), number)
}

pub(super) async fn delete_app_instance(context: Context) -> Answer {
    let number = find_own_instance(&context)?;
    changed(&context, Ok(Command::DeleteAppInstance(number))).await
}
