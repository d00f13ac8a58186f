//! Entitlements, and usage that they refused.

use super::page::page;
use super::tenancy::changed;
use super::usage_records::{quantity, read_refused};
use crate::access::Caller;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::past::Known;
use crate::show_apps::{app_name, project, tenant, unit_name};
use crate::{names, show};
use leasehold_api::{
    EntitledMonth, Entitlement, EntitlementChange, EntitlementList, EntitlementPut, MonthText, Problem, RefusedUsage,
    RefusedUsageList, UnitQuantityText, When, codes, limits,
};
use leasehold_books::KnownUsage;
use leasehold_engine::command::PutEntitlement;
use leasehold_engine::{Command, Entitlement as Entitled, State};
use leasehold_model::body::EntitlementScope;
use leasehold_model::{Month, UnitQuantity};

fn shown(state: &State, found: &Entitled) -> Entitlement {
    let of = found.of;
    Entitlement {
        tenant: tenant(state, found.tenant),
        tenant_id: found.tenant.0,
        project: of.project.map(|of| project(state, of)),
        project_id: of.project.map(|project| project.0),
        app_instance: of.app_instance.map(|app| app_name(state, app)),
        app_instance_id: of.app_instance.map(|app| app.0),
        usage_unit: unit_name(state, of.unit),
        soft: found.soft.map(|soft| soft.to_string()),
        hard: found.hard.map(|hard| hard.to_string()),
        months: found
            .months()
            .map(|(month, used)| EntitledMonth {
                month: MonthText(month.to_string()),
                used: used.used.to_string(),
                warned: used.warned,
            })
            .collect(),
    }
}

pub(super) async fn list_entitlements(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let project = context.query("project").map(|text| names::project(state, caller, of, text)).transpose()?;
        let visible = |found: &&Entitled| {
            of.is_none_or(|tenant| tenant == found.tenant)
                && project.is_none_or(|project| found.of.project == Some(project))
                && match found.of.project {
                    Some(project) => caller.sees_project(found.tenant, project),
                    None => caller.sees_tenant(found.tenant),
                }
        };
        let all = state.entitlements().filter(visible);
        page(&context, (1..).zip(all.map(|found| shown(state, found))))
    });
    let (entitlements, next_cursor) = listed?;
    json(200, &EntitlementList { entitlements, next_cursor })
}

/// What a caller means by a tenant, a project, an app instance and a unit.
fn scope(
    state: &State,
    caller: &Caller,
    (tenant, project, app_instance): (Option<&str>, Option<&str>, Option<&str>),
    unit: &str,
) -> Result<EntitlementScope, Problem> {
    let of = tenant.map(|text| names::tenant(state, caller, text)).transpose()?.or(caller.tenant);
    let field = |name: &'static str| move |problem: Problem| problem.with("field", name);
    let project = project.map(|text| names::project(state, caller, of, text)).transpose().map_err(field("project"))?;
    let of = of.or_else(|| state.project(project?).map(|found| found.tenant));
    let app_instance = app_instance.map(|text| names::app_instance(state, caller, of, text)).transpose();
    Ok(EntitlementScope {
        project,
        app_instance: app_instance.map_err(field("app_instance"))?,
        unit: names::unit(state, unit).map_err(field("usage_unit"))?,
    })
}

fn limit(field: &'static str, given: Option<&UnitQuantityText>) -> Result<Option<UnitQuantity>, Problem> {
    given.map(|given| quantity(field, given)).transpose()
}

pub(super) async fn put_entitlement(context: Context) -> Answer {
    let change: EntitlementChange = context.body()?;
    let (soft, hard) = (limit("soft", change.soft.as_ref())?, limit("hard", change.hard.as_ref())?);
    let of = context.app.now.read(|state| {
        let whose = (change.tenant.as_deref(), change.project.as_deref(), change.app_instance.as_deref());
        scope(state, context.caller(), whose, &change.usage_unit)
    })?;
    let sealed = context.seal(Command::PutEntitlement(PutEntitlement { of, soft, hard })).await?;
    let shown = context.app.now.read(|state| state.entitlement(of).map(|found| shown(state, found)));
    let entitlement = shown.ok_or_else(|| show::gone_already("entitlement"))?;
    json(200, &EntitlementPut { sequence: sealed.sequence(), entitlement })
}

pub(super) async fn delete_entitlement(context: Context) -> Answer {
    let of = context.app.now.read(|state| {
        let whose = (context.query("tenant"), context.query("project"), context.query("app_instance"));
        scope(state, context.caller(), whose, context.query("usage_unit").unwrap_or_default())
    })?;
    changed(&context, Ok(Command::DeleteEntitlement(of))).await
}

pub(super) async fn list_refused_usage(context: Context) -> Answer {
    let caller = context.caller().clone();
    let month = match context.query("month") {
        Some(text) => text.parse::<Month>().map_err(|why| codes::BAD_QUERY.problem(format!("`month`: {why}.")))?,
        None => Month::of(context.app.time()),
    };
    let of = context.app.now.read(|state| {
        let named = context.query("tenant").map(|text| names::tenant(state, &caller, text)).transpose()?;
        Ok::<_, Problem>(named.or(caller.tenant))
    })?;
    let listed = consult(&context.app, context.caller(), move |app, books| {
        let found = books.refused_usage(month, of, limits::PAGE_MAX).map_err(|error| problem(&error))?;
        let (sequences, has_more) = found;
        let mut refused = Vec::with_capacity(sequences.len());
        for sequence in sequences {
            let (record, one) = read_refused(app, sequence)?;
            let later = books.known_usage(one.report.key()).map_err(|error| problem(&error))?;
            let identity = &record.identity;
            let (Some(tenant), Some(project)) = (identity.tenant, identity.project) else { continue };
            if !caller.sees_project(tenant, project) {
                continue;
            }
            let payload = one.report.payload(identity);
            let is_same = |known: &KnownUsage| known.payload == payload;
            refused.push(app.now.read(|state| {
                let known = Known { state, books };
                RefusedUsage {
                    sequence,
                    refused_at: When(record.stamp),
                    source: one.report.source.to_string(),
                    id: one.report.id.to_string(),
                    tenant: known.tenant(tenant),
                    project: known.project(project),
                    app_instance: known.app_instance(one.report.app_instance),
                    usage_unit: unit_name(state, one.report.unit),
                    quantity: one.report.quantity.to_string(),
                    from: When(one.report.from),
                    to: When(one.report.to),
                    used: one.used.to_string(),
                    hard: one.hard.to_string(),
                    accepted_later: later.filter(is_same).map(|known| known.sequence),
                }
            }));
        }
        Ok(RefusedUsageList { month: MonthText(month.to_string()), refused, has_more })
    });
    json(200, &listed.await?)
}
