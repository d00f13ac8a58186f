//! `leasehold sharing …`.

use super::details::{or_dash, word};
use super::failure::Failed;
use super::policy::scope;
use super::session::Session;
use crate::cli::sharing::{SharingCommand, SharingSetArgs};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::time_format::to_the_second;
use leasehold_api::{
    CostShare, CostShareList, ServiceTier, ShareWeight, Sharing, SharingChange, SharingHistory, SharingPolicy,
    SharingPut, TierOfProject, UnitQuantityText,
};

pub(super) async fn run(session: &Session, command: SharingCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        SharingCommand::List(args) => session.list(client.list_sharing().maybe("tenant", args.tenant), policies).await,
        SharingCommand::History(args) => {
            let call = client.sharing_history(&args.app).maybe("tenant", args.tenant);
            let call = call.maybe("app_instance", args.app_instance);
            session.show(call, |history| session.lines(&versions(history)).join("\n") + "\n").await
        }
        SharingCommand::Set(args) => {
            let change = change(&args)?;
            session.change(client.put_sharing(&change), &args.change, |put: &SharingPut| told(&put.policy)).await
        }
        SharingCommand::Shares(args) => {
            let call = client.list_shares().maybe("month", args.month).maybe("tenant", args.tenant);
            session.show(call.maybe("app_instance", args.app_instance), |all| shares(session, all)).await
        }
    }
}

pub(super) fn told(policy: &SharingPolicy) -> String {
    let of = scope(&policy.app, policy.tenant.as_deref(), policy.app_instance.as_deref());
    format!("the sharing policy of {of} has version {}\n", policy.version)
}

/// The two sides of `NAME=VALUE`.
fn pair<'t>(text: &'t str, form: &str) -> Result<(&'t str, &'t str), Problem> {
    let sides = text.rsplit_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    sides.ok_or_else(|| Problem::usage("usage", format!("\"{text}\" is not of the form {form}")))
}

/// A project, after its tenant if that is named: `TENANT/PROJECT`.
fn named(text: &str) -> (Option<String>, String) {
    match text.split_once('/') {
        Some((tenant, project)) => (Some(tenant.to_owned()), project.to_owned()),
        None => (None, text.to_owned()),
    }
}

fn change(args: &SharingSetArgs) -> Result<SharingChange, Problem> {
    let number = |text: &str| UnitQuantityText::Text(text.to_owned());
    let mut weights = Vec::new();
    for text in &args.weights {
        let (name, percent) = pair(text, "PROJECT=PERCENT")?;
        let (tenant, project) = named(name);
        weights.push(ShareWeight { tenant, project, percent: number(percent) });
    }
    let mut tiers = Vec::new();
    for text in &args.tiers {
        let (name, weight) = pair(text, "NAME=WEIGHT")?;
        tiers.push(ServiceTier { name: name.to_owned(), weight: number(weight) });
    }
    let mut projects = Vec::new();
    for text in &args.project_tiers {
        let (name, tier) = pair(text, "PROJECT=TIER")?;
        let (tenant, project) = named(name);
        projects.push(TierOfProject { tenant, project, tier: tier.to_owned() });
    }
    let of = args.of.clone();
    Ok(SharingChange {
        app: of.app,
        tenant: of.tenant,
        app_instance: of.app_instance,
        control_plane_billable: args.control_plane_billable,
        distributable: args.distributable,
        sharing: args.method.map(|method| Sharing {
            method,
            result: args.result,
            usage_unit: args.unit.clone(),
            weights,
            tiers,
            projects,
            default_tier: args.default_tier.clone(),
        }),
    })
}

fn text(number: &UnitQuantityText) -> String {
    match number {
        UnitQuantityText::Text(text) => text.clone(),
        UnitQuantityText::Integer(number) => number.to_string(),
    }
}

/// A method with what it needs, in a few words.
fn method(sharing: &Sharing) -> String {
    let project = |tenant: &Option<String>, project: &str| match tenant {
        Some(tenant) => format!("{tenant}/{project}"),
        None => project.to_owned(),
    };
    let mut words = vec![word(sharing.method)];
    words.extend(sharing.usage_unit.clone());
    words.extend(
        sharing.weights.iter().map(|one| format!("{}={}", project(&one.tenant, &one.project), text(&one.percent))),
    );
    words.extend(sharing.tiers.iter().map(|tier| format!("{}={}", tier.name, text(&tier.weight))));
    words.join(" ")
}

fn yes_or_no(said: Option<bool>) -> String {
    or_dash(said.map(|yes| if yes { "yes" } else { "no" }))
}

/// What a policy says.
fn cells(policy: &SharingPolicy) -> [String; 4] {
    [
        or_dash(policy.sharing.as_ref().map(method)),
        or_dash(policy.sharing.as_ref().map(|sharing| word(sharing.result))),
        yes_or_no(policy.control_plane_billable),
        yes_or_no(policy.distributable),
    ]
}

const SAID: [(&str, Align); 4] =
    [("method", Align::Left), ("result", Align::Left), ("billable", Align::Left), ("distributable", Align::Left)];

fn policies(all: &[SharingPolicy]) -> Table {
    let mut headings =
        vec![("app", Align::Left), ("tenant", Align::Left), ("app instance", Align::Left), ("version", Align::Right)];
    headings.extend(SAID);
    let mut table = Table::new(&headings).shrink_first(&["method"]);
    for one in all {
        let all = || "all".to_owned();
        let of = [
            one.app.clone(),
            one.tenant.clone().unwrap_or_else(all),
            one.app_instance.clone().unwrap_or_else(all),
            one.version.to_string(),
        ];
        table.row(of.into_iter().chain(cells(one)));
    }
    table
}

fn versions(history: &SharingHistory) -> Table {
    let mut headings = vec![("version", Align::Right), ("from", Align::Left), ("record", Align::Right)];
    headings.extend(SAID);
    let mut table = Table::new(&headings).shrink_first(&["method"]);
    for one in &history.versions {
        let of = [one.policy.version.to_string(), to_the_second(one.from), one.sequence.to_string()];
        table.row(of.into_iter().chain(cells(&one.policy)));
    }
    table
}

fn shares(session: &Session, all: &CostShareList) -> String {
    let headings = [
        ("app instance", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("method", Align::Left),
        ("weight", Align::Right),
        ("of", Align::Right),
        ("cost", Align::Right),
        ("share", Align::Right),
        ("booked", Align::Right),
        ("", Align::Left),
        ("entry", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["tenant", "method"]);
    for one in &all.shares {
        let CostShare { app_instance, tenant, project, weight, total_weight, pool, share, booked, currency, .. } = one;
        let weight = match &one.tier {
            Some(tier) => format!("{weight} ({tier})"),
            None => weight.clone(),
        };
        let owner = if one.owner { " (owner)" } else { "" };
        let method = match &one.usage_unit {
            Some(unit) => format!("{} {unit}", word(one.method)),
            None => word(one.method),
        };
        table.row([
            app_instance.clone(),
            tenant.clone(),
            format!("{project}{owner}"),
            method,
            weight,
            total_weight.clone(),
            pool.clone(),
            share.clone(),
            booked.clone(),
            currency.clone(),
            or_dash(one.entry.as_ref()),
        ]);
    }
    let note = if all.draft { " (draft: what the shares would be if the month were closed now)" } else { "" };
    let lines = session.lines(&table).join("\n");
    format!("shares of {}{note}\n\n{lines}\n", all.month)
}
