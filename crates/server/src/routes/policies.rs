//! Policies about the usage of app runtimes.

use super::page::page;
use crate::access::Caller;
use crate::books::look_up;
use crate::context::{Answer, Context, json};
use crate::show_apps::{app_name, slug, tenant, unit_name};
use crate::{names, show};
use leasehold_api::{
    AppPolicy, AppPolicyChange, AppPolicyHistory, AppPolicyList, AppPolicyPut, AppPolicyVersion, Problem, When, codes,
};
use leasehold_engine::command::PutAppPolicy;
use leasehold_engine::{Command, State};
use leasehold_model::body::{AppPolicyPut as Put, Body, PolicyScope};
use leasehold_model::{AppTypeNo, TenantNo, UnitList};
use std::sync::Arc;

fn shown(state: &State, put: &Put) -> AppPolicy {
    let names = |units: &UnitList| units.iter().map(|unit| unit_name(state, unit)).collect();
    AppPolicy {
        app: slug(state, put.of.app_type),
        tenant: put.of.tenant.map(|of| tenant(state, of)),
        app_instance: put.of.app_instance.map(|app| app_name(state, app)),
        version: put.version,
        usage_units: put.units.as_ref().map(names),
        attribution: put.attribution,
        billed_work: put.billed_work.as_ref().map(names),
    }
}

/// Policies for all tenants are seen by all.
pub(super) fn sees(caller: &Caller, of: PolicyScope) -> bool {
    match (of.tenant, of.app_instance) {
        (Some(tenant), Some(app)) => caller.sees_app_instance(tenant, app),
        (Some(tenant), None) => caller.sees_tenant(tenant) || caller.tenant == Some(tenant),
        (None, _) => true,
    }
}

pub(super) async fn list_policies(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible =
            |put: &&Put| sees(caller, put.of) && (of.is_none() || put.of.tenant.is_none() || put.of.tenant == of);
        page(&context, (1..).zip(state.app_policies().filter(visible).map(|put| shown(state, put))))
    });
    let (policies, next_cursor) = listed?;
    json(200, &AppPolicyList { policies, next_cursor })
}

pub(super) fn scope(
    state: &State,
    caller: &Caller,
    app_type: AppTypeNo,
    (tenant, app_instance): (Option<TenantNo>, Option<&str>),
) -> Result<PolicyScope, Problem> {
    let named = app_instance.map(|text| names::app_instance(state, caller, tenant, text)).transpose();
    let app_instance = named.map_err(|problem| problem.with("field", "app_instance"))?;
    let of_instance = app_instance.and_then(|app| state.app_instance(app)).map(|found| found.tenant);
    Ok(PolicyScope { app_type, tenant: of_instance.or(tenant), app_instance })
}

pub(super) async fn put_policy(context: Context) -> Answer {
    let change: AppPolicyChange = context.body()?;
    let caller = context.caller();
    let put = context.app.now.read(|state| {
        let app_type = names::app_type(state, &change.app).map_err(|problem| problem.with("field", "app"))?;
        let of = change.tenant.as_deref().map(|text| names::tenant(state, caller, text)).transpose()?;
        let of = scope(state, caller, app_type, (of.or(caller.tenant), change.app_instance.as_deref()))?;
        let units = |field: &'static str, given: &Option<Vec<String>>| {
            let list = |given: &Vec<String>| {
                let units = given.iter().map(|text| names::unit(state, text)).collect::<Result<Vec<_>, _>>();
                let units = units.map_err(|problem| problem.with("field", field))?;
                let too_many = || codes::BAD_BODY.problem("There are too many usage units.").with("field", field);
                UnitList::new(units).ok_or_else(too_many)
            };
            given.as_ref().map(list).transpose()
        };
        Ok::<_, Problem>(PutAppPolicy {
            of,
            units: units("usage_units", &change.usage_units)?,
            attribution: change.attribution,
            billed_work: units("billed_work", &change.billed_work)?,
        })
    })?;
    let of = put.of;
    let sealed = context.seal(Command::PutAppPolicy(put)).await?;
    let shown = context.app.now.read(|state| state.app_policy(of).map(|put| shown(state, put)));
    let policy = shown.ok_or_else(|| show::gone_already("policy"))?;
    json(200, &AppPolicyPut { sequence: sealed.sequence(), policy })
}

/// The scope in a question about the versions of a policy.
pub(super) fn history_scope(context: &Context) -> Result<PolicyScope, Problem> {
    let caller = context.caller();
    let of = context.app.now.read(|state| {
        let app_type = names::app_type(state, context.subject())?;
        let of = match context.query("tenant") {
            Some("-") => None,
            Some(text) => Some(names::tenant(state, caller, text)?),
            None => caller.tenant,
        };
        scope(state, caller, app_type, (of, context.query("app_instance")))
    })?;
    if !sees(caller, of) {
        return Err(codes::NOT_FOUND.problem("There is no such policy."));
    }
    Ok(of)
}

pub(super) async fn policy_history(context: Context) -> Answer {
    let caller = context.caller();
    let of = history_scope(&context)?;
    let versions = look_up(&context.app, caller, move |_, books| Ok(books.policy_versions(of))).await?;
    let app = Arc::clone(&context.app);
    let read = tokio::task::spawn_blocking(move || {
        let mut all = Vec::with_capacity(versions.len());
        for (_, sequence) in versions {
            let record = crate::explain::decision::read(&app, sequence)?;
            let Body::AppPolicyPut(put) = &record.body else {
                return Err(codes::INTERNAL.problem("The books name a record that is no policy."));
            };
            let policy = app.now.read(|state| shown(state, put));
            all.push(AppPolicyVersion { sequence, from: When(record.stamp), policy });
        }
        Ok(all)
    });
    let versions = read.await.map_err(|_| codes::INTERNAL.problem("The records could not be read."))??;
    json(200, &AppPolicyHistory { versions })
}
