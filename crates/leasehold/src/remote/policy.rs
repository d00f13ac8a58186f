//! `leasehold policy …`.

use super::details::{or_dash, word};
use super::failure::Failed;
use super::session::Session;
use super::usage_record::read_file;
use crate::cli::policy::{PolicyApplyArgs, PolicyCommand, PolicySetArgs};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::time_format::to_the_second;
use leasehold_api::{
    AppPolicy, AppPolicyChange, AppPolicyHistory, Entitlement, EntitlementChange, Sharing, SharingChange,
    SharingPolicy, UnitQuantityText,
};
use leasehold_model::UnitQuantity;
use serde::Deserialize;
use serde_json::json;

pub(super) async fn run(session: &Session, command: PolicyCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        PolicyCommand::List(args) => session.list(client.list_policies().maybe("tenant", args.tenant), policies).await,
        PolicyCommand::History(args) => {
            let call = client.policy_history(&args.app).maybe("tenant", args.tenant);
            let call = call.maybe("app_instance", args.app_instance);
            session.show(call, |history| session.lines(&versions(history)).join("\n") + "\n").await
        }
        PolicyCommand::Set(args) => set(session, args).await,
        PolicyCommand::Apply(args) => apply(session, args).await,
    }
}

async fn set(session: &Session, args: PolicySetArgs) -> Result<(), Failed> {
    let change = AppPolicyChange {
        app: args.of.app,
        tenant: args.of.tenant,
        app_instance: args.of.app_instance,
        usage_units: Some(args.units).filter(|units| !units.is_empty()),
        attribution: args.attribution,
        billed_work: Some(args.billed_work).filter(|units| !units.is_empty()),
    };
    let told = |put: &leasehold_api::AppPolicyPut| told(&put.policy);
    session.change(session.client.put_policy(&change), &args.change, told).await
}

pub(super) fn scope(app: &str, tenant: Option<&str>, app_instance: Option<&str>) -> String {
    match (tenant, app_instance) {
        (_, Some(instance)) => format!("{app} on {instance}"),
        (Some(tenant), None) => format!("{app} for {tenant}"),
        (None, None) => app.to_owned(),
    }
}

fn told(policy: &AppPolicy) -> String {
    let of = scope(&policy.app, policy.tenant.as_deref(), policy.app_instance.as_deref());
    format!("the policy of {of} has version {}\n", policy.version)
}

fn units(units: Option<&Vec<String>>) -> String {
    or_dash(units.map(|units| units.join(", ")))
}

fn policies(all: &[AppPolicy]) -> Table {
    let headings = [
        ("app", Align::Left),
        ("tenant", Align::Left),
        ("app instance", Align::Left),
        ("version", Align::Right),
        ("units", Align::Left),
        ("attribution", Align::Left),
        ("billed work", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["units"]);
    for one in all {
        table.row([
            one.app.clone(),
            one.tenant.clone().unwrap_or_else(|| "all".into()),
            one.app_instance.clone().unwrap_or_else(|| "all".into()),
            one.version.to_string(),
            units(one.usage_units.as_ref()),
            or_dash(one.attribution.map(word)),
            units(one.billed_work.as_ref()),
        ]);
    }
    table
}

fn versions(history: &AppPolicyHistory) -> Table {
    let headings = [
        ("version", Align::Right),
        ("from", Align::Left),
        ("record", Align::Right),
        ("units", Align::Left),
        ("attribution", Align::Left),
        ("billed work", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["units"]);
    for one in &history.versions {
        table.row([
            one.policy.version.to_string(),
            to_the_second(one.from),
            one.sequence.to_string(),
            units(one.policy.usage_units.as_ref()),
            or_dash(one.policy.attribution.map(word)),
            units(one.policy.billed_work.as_ref()),
        ]);
    }
    table
}

/// Policies and entitlements as a file has them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyFile {
    policies: Vec<AppPolicyChange>,
    sharing: Vec<SharingChange>,
    entitlements: Vec<EntitlementChange>,
}

const YAML: leasehold_yaml::Reader =
    leasehold_yaml::Reader { see: "`leasehold policy apply --help` shows an example", section_of: |_| None };

fn read(args: &PolicyApplyArgs) -> Result<PolicyFile, Problem> {
    let text = read_file(&args.file)?;
    YAML.parse(&text, &args.file).map_err(|error| Problem::usage(error.code(), error.to_string()))
}

/// Whether a policy is in force already, as the file has it.
fn is_so(change: &AppPolicyChange, current: &AppPolicy) -> bool {
    let sorted = |units: &Vec<String>| {
        let mut units = units.clone();
        units.sort();
        units.dedup();
        units
    };
    change.app == current.app
        && change.tenant == current.tenant
        && change.app_instance == current.app_instance
        && change.attribution == current.attribution
        && change.billed_work.as_ref().map(sorted) == current.billed_work.as_ref().map(sorted)
        && change.usage_units.as_ref().map(sorted) == current.usage_units.as_ref().map(sorted)
}

/// Whether a sharing policy is in force already, as the file has it.
fn is_shared_so(change: &SharingChange, current: &SharingPolicy) -> bool {
    change.app == current.app
        && change.tenant == current.tenant
        && change.app_instance == current.app_instance
        && change.control_plane_billable == current.control_plane_billable
        && change.distributable == current.distributable
        && change.sharing.as_ref().map(in_order) == current.sharing.as_ref().map(in_order)
}

/// The same policy however its numbers and lists are written.
fn in_order(sharing: &Sharing) -> Sharing {
    let number = |text: &UnitQuantityText| match text {
        UnitQuantityText::Text(text) => match text.parse::<UnitQuantity>() {
            Ok(number) => UnitQuantityText::Text(number.to_string()),
            Err(_) => UnitQuantityText::Text(text.clone()),
        },
        UnitQuantityText::Integer(number) => UnitQuantityText::Text(number.to_string()),
    };
    let mut sharing = sharing.clone();
    sharing.weights.iter_mut().for_each(|one| one.percent = number(&one.percent));
    sharing.tiers.iter_mut().for_each(|one| one.weight = number(&one.weight));
    sharing.weights.sort_by(|a, b| (&a.tenant, &a.project).cmp(&(&b.tenant, &b.project)));
    sharing.projects.sort_by(|a, b| (&a.tenant, &a.project).cmp(&(&b.tenant, &b.project)));
    sharing
}

fn is_entitled_so(change: &EntitlementChange, current: &Entitlement) -> bool {
    let quantity = |text: &UnitQuantityText| match text {
        UnitQuantityText::Text(text) => text.parse::<UnitQuantity>().ok(),
        UnitQuantityText::Integer(number) => number.to_string().parse().ok(),
    };
    let same = |given: Option<&UnitQuantityText>, has: Option<&String>| {
        given.and_then(quantity) == has.and_then(|text| text.parse().ok())
    };
    change.tenant.as_ref().is_none_or(|tenant| *tenant == current.tenant)
        && change.project == current.project
        && change.app_instance == current.app_instance
        && change.usage_unit == current.usage_unit
        && same(change.soft.as_ref(), current.soft.as_ref())
        && same(change.hard.as_ref(), current.hard.as_ref())
}

async fn apply(session: &Session, args: PolicyApplyArgs) -> Result<(), Failed> {
    let file = read(&args)?;
    let client = &session.client;
    let current = client.list_policies().query("limit", leasehold_api::limits::PAGE_MAX).all().await?;
    let entitled = client.list_entitlements().query("limit", leasehold_api::limits::PAGE_MAX).all().await?;
    let policies: Vec<_> = file.policies.iter().filter(|one| !current.iter().any(|so| is_so(one, so))).collect();
    let entitlements: Vec<_> =
        file.entitlements.iter().filter(|one| !entitled.iter().any(|so| is_entitled_so(one, so))).collect();
    let shared = client.list_sharing().query("limit", leasehold_api::limits::PAGE_MAX).all().await?;
    let sharing: Vec<_> = file.sharing.iter().filter(|one| !shared.iter().any(|so| is_shared_so(one, so))).collect();
    let all = file.policies.len() + file.sharing.len() + file.entitlements.len();
    let so_already = all - policies.len() - sharing.len() - entitlements.len();
    let mut text = String::new();
    for one in &policies {
        if args.dry_run {
            let of = scope(&one.app, one.tenant.as_deref(), one.app_instance.as_deref());
            text += &format!("the policy of {of} would be set\n");
        } else {
            text += &told(&client.put_policy(one).await?.policy);
        }
    }
    for one in &sharing {
        if args.dry_run {
            let of = scope(&one.app, one.tenant.as_deref(), one.app_instance.as_deref());
            text += &format!("the sharing policy of {of} would be set\n");
        } else {
            text += &super::sharing::told(&client.put_sharing(one).await?.policy);
        }
    }
    for one in &entitlements {
        if !args.dry_run {
            client.put_entitlement(one).await?;
        }
        let whose = [one.project.as_deref(), one.app_instance.as_deref()];
        let whose = whose.into_iter().flatten().collect::<Vec<_>>().join(" on ");
        let was = if args.dry_run { "would be" } else { "was" };
        text += &format!("the entitlement of {whose} for {} {was} set\n", one.usage_unit);
    }
    if session.json {
        let set = json!({
            "policies": policies.len(),
            "sharing": sharing.len(),
            "entitlements": entitlements.len(),
            "unchanged": so_already,
        });
        return Ok(print_json(&set)?);
    }
    Ok(print(&format!("{text}{so_already} unchanged\n"))?)
}
