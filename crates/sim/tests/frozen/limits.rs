//! What rules version 7 added, field by field: entitlements and policies in the state, refused usage and the history of
//! policies in the books.

use crate::state::text;
use leasehold_books::Books;
use leasehold_engine::{Entitlement, State};
use leasehold_model::body::{AppPolicyPut, Body, EntitlementScope, PolicyScope};
use leasehold_model::{Month, Record, TenantNo, UnitList};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Adds the fields of rules version 7 to the view of a state.
pub(crate) fn extend(view: &mut Value, state: &State) {
    view["entitlements"] = state.entitlements().map(entitlement).collect();
    view["app_policies"] = state.app_policies().map(policy).collect();
    // What each tenant may report, and whose usage it is.
    let in_force = state.app_instances_after(None).flat_map(|instance| {
        state.tenants().map(move |tenant| {
            let versions = state.policies_for(instance, tenant.number).map(|policy| policy.version);
            let versions: Vec<u32> = versions.collect();
            json!([instance.number.0, tenant.number.0, versions, text(state.attribution_for(instance))])
        })
    });
    view["app_policies_in_force"] = in_force.collect();
}

fn entitlement(found: &Entitlement) -> Value {
    let months = found
        .months()
        .map(|(month, entitled)| json!([month.to_string(), entitled.used.to_string(), entitled.warned]))
        .collect::<Vec<_>>();
    json!({
        "of": entitlement_scope(found.of),
        "tenant": found.tenant.0,
        "soft": found.soft.map(|limit| limit.to_string()),
        "hard": found.hard.map(|limit| limit.to_string()),
        "months": months,
    })
}

fn entitlement_scope(of: EntitlementScope) -> Value {
    json!({
        "project": of.project.map(|project| project.0),
        "app_instance": of.app_instance.map(|app| app.0),
        "unit": of.unit.0,
    })
}

fn policy(put: &AppPolicyPut) -> Value {
    json!({
        "of": policy_scope(put.of),
        "version": put.version,
        "units": put.units.as_ref().map(units),
        "attribution": put.attribution.map(text),
        "billed_work": put.billed_work.as_ref().map(units),
    })
}

fn policy_scope(of: PolicyScope) -> Value {
    json!([of.app_type.0, of.tenant.map(|tenant| tenant.0), of.app_instance.map(|app| app.0)])
}

fn units(list: &UnitList) -> Vec<u32> {
    list.iter().map(|unit| unit.0).collect()
}

/// Adds what the books say of refused usage and of policies to their view.
pub(crate) fn extend_books(view: &mut Value, books: &Books, records: &[Record]) {
    let (mut asked, mut scopes) = (BTreeSet::new(), BTreeSet::new());
    for record in records {
        if let Body::UsageRefused(refused) = &record.body {
            asked.extend([(refused.month, None), (refused.month, record.identity.tenant)]);
        } else if let Body::AppPolicyPut(put) = &record.body {
            scopes.insert(put.of);
        }
    }
    view["refused_usage"] = asked.iter().map(|(month, tenant)| refused_usage(books, *month, *tenant)).collect();
    view["refused_ids"] = records.iter().filter_map(|record| refused_id(books, record)).collect();
    view["policy_versions"] = scopes.iter().map(|of| json!([policy_scope(*of), books.policy_versions(*of)])).collect();
}

fn refused_usage(books: &Books, month: Month, tenant: Option<TenantNo>) -> Value {
    let (sequences, has_more) = books.refused_usage(month, tenant, 100).expect("the books can be read");
    json!([month.to_string(), tenant.map(|tenant| tenant.0), sequences, has_more])
}

/// A record of refused usage, and the one that was accepted later under its ID.
fn refused_id(books: &Books, record: &Record) -> Option<Value> {
    let Body::UsageRefused(refused) = &record.body else { return None };
    let report = &refused.report;
    let later = books.known_usage(report.key()).expect("the books can be read").map(|known| known.sequence);
    let reporter = report.reporter.map(|tenant| tenant.0);
    Some(json!([record.sequence, reporter, report.source.as_str(), report.id.as_str(), later]))
}
