//! `leasehold quota …`, with amounts in the units of the classes.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::figures;
use super::session::Session;
use super::units::{Classes, parse};
use super::watch::watch;
use crate::cli::quota::{BurstArgs, LimitArgs, QuotaCommand, QuotaCreateArgs, QuotaListArgs};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{
    AmountOrPercent, Class, Holders, Limit, LimitChange, Measure, NewQuota, Nodes, Quota, QuotaChange,
};

pub(super) async fn run(session: &Session, command: QuotaCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        QuotaCommand::List(args) => list(session, &args).await,
        QuotaCommand::Show(args) => {
            let classes = Classes::load(client).await?;
            session.show(client.show_quota(args.quota), |quota| one(session, quota, &classes)).await
        }
        QuotaCommand::Create(args) => {
            let classes = Classes::load(client).await?;
            let call = client.create_quota(&new(session, &args).await?);
            session.change(call, &args.change, |put| one(session, &put.quota, &classes)).await
        }
        QuotaCommand::Set(args) => {
            let classes = Classes::load(client).await?;
            let quota = client.show_quota(args.quota).await?;
            let class = quota.class.as_ref().and_then(|name| classes.named(name));
            let class = class.filter(|_| quota.measure == Measure::Quanta);
            let LimitArgs { hard, soft, burst } = &args.limit;
            let (evict_own_lower, names_limit) =
                (args.evict.evict_own_lower, [hard, soft, burst].iter().any(|limit| limit.is_some()));
            let keeps_limit = evict_own_lower.is_some() && !names_limit && args.until.is_none();
            let limit = (!keeps_limit).then(|| changed_limit(&args.limit, &args.burst, class)).transpose()?;
            let until = session.times.future("--until", args.until.as_ref())?;
            let call = client.change_quota(args.quota, &QuotaChange { limit, until, evict_own_lower });
            session.change(call, &args.change, |put| one(session, &put.quota, &classes)).await
        }
        QuotaCommand::Delete(args) => {
            let call = client.delete_quota(args.quota);
            session.change(call, &args.change, |_| format!("quota {} was deleted\n", args.quota)).await
        }
    }
}

async fn new(session: &Session, args: &QuotaCreateArgs) -> Result<NewQuota, Failed> {
    let measure = args.measure;
    let class = match (&args.class, measure) {
        (Some(name), Measure::Quanta) => Some(session.client.show_class(name).await?),
        (None, Measure::Quanta) if args.kind.is_none() => {
            return Err(Problem::usage("quanta_need_class", "a quota on capacity needs a class or a kind")
                .advice("give --class NAME or --kind KIND, or count with --measure leases or --measure nodes")
                .into());
        }
        _ => None,
    };
    let nodes = match (&args.node, args.each_node) {
        (Some(node), _) => Some(Nodes::One(node.clone())),
        (None, true) => Some(Nodes::Each),
        (None, false) => None,
    };
    Ok(NewQuota {
        tenant: args.tenant.clone(),
        project: args.project.clone(),
        class: args.class.clone(),
        pool: args.pool.clone(),
        nodes,
        priority: args.priority,
        and_above: args.and_above,
        kind: args.kind,
        user: holders(args.user.clone(), args.each_user),
        app_instance: holders(args.app_instance.clone(), args.each_app_instance),
        measure,
        limit: limit(&args.limit, &args.burst, class.as_ref())?,
        evict_own_lower: args.evict.evict_own_lower.unwrap_or(false),
    })
}

fn holders(one: Option<String>, each: bool) -> Option<Holders> {
    one.map(Holders::One).or(each.then_some(Holders::Each))
}

/// An amount in quanta if the quota is for a class, or a count.
fn count(text: &str, class: Option<&Class>) -> Result<u64, Problem> {
    match class {
        Some(class) => parse(text, class),
        None => text.parse().map_err(|_| Problem::usage("bad_quantity", format!("{text:?} is not a count"))),
    }
}

/// The new limit, in which amounts may be percentages of the base limit.
fn changed_limit(limit: &LimitArgs, burst: &BurstArgs, class: Option<&Class>) -> Result<LimitChange, Problem> {
    let amount = |text: &String| {
        if !text.ends_with('%') {
            return count(text, class).map(AmountOrPercent::Amount);
        }
        let percent = AmountOrPercent::Percent(text.clone());
        percent.parse().map_err(|bad| Problem::usage("bad_quantity", bad.to_string()))?;
        Ok(percent)
    };
    match (&limit.hard, &limit.soft, &limit.burst, &burst.burst_limit, burst.burst_ttl) {
        (Some(hard), ..) => Ok(LimitChange::Hard { limit: amount(hard)? }),
        (_, Some(soft), ..) => Ok(LimitChange::Soft { limit: amount(soft)? }),
        (_, _, Some(base), Some(most), Some(burst_ttl)) => {
            Ok(LimitChange::Burst { limit: amount(base)?, burst_limit: amount(most)?, burst_ttl })
        }
        _ => Err(no_limit()),
    }
}

fn no_limit() -> Problem {
    Problem::usage("usage", "no limit is given").advice("give --hard, --soft or --burst")
}

/// The limit of a new quota.
fn limit(limit: &LimitArgs, burst: &BurstArgs, class: Option<&Class>) -> Result<Limit, Problem> {
    let count = |text: &String| count(text, class);
    match (&limit.hard, &limit.soft, &limit.burst, &burst.burst_limit, burst.burst_ttl) {
        (Some(amount), ..) => Ok(Limit::Hard { limit: count(amount)? }),
        (_, Some(amount), ..) => Ok(Limit::Soft { limit: count(amount)? }),
        (_, _, Some(base), Some(most), Some(burst_ttl)) => {
            Ok(Limit::Burst { limit: count(base)?, burst_limit: count(most)?, burst_ttl })
        }
        _ => Err(no_limit()),
    }
}

async fn list(session: &Session, args: &QuotaListArgs) -> Result<(), Failed> {
    let call = session.client.list_quotas().maybe("tenant", args.tenant.as_ref());
    if session.json && !args.watch.watch {
        return session.list(call, |_| unreachable!("JSON is asked for")).await;
    }
    let classes = Classes::load(&session.client).await?;
    if args.watch.watch {
        let call = call.query("limit", leasehold_api::limits::PAGE_MAX);
        return watch(session, async || Ok(quotas(&call.clone().all().await?, &classes))).await;
    }
    session.list(call, |items| quotas(items, &classes)).await
}

fn amount(quota: &Quota, number: u64, classes: &Classes) -> String {
    match (&quota.class, quota.measure) {
        (Some(class), Measure::Quanta) => classes.display(class, number),
        _ => crate::numbers::thousands(number),
    }
}

/// What counts against it.
fn used(quota: &Quota, classes: &Classes) -> String {
    quota.used_exact.as_deref().map_or_else(|| amount(quota, quota.used, classes), figures::quantity)
}

fn unit(quota: &Quota, classes: &Classes) -> String {
    if let Some(kind) = quota.kind.filter(|_| quota.measure == Measure::Quanta) {
        return kind.unit().to_owned();
    }
    match (&quota.class, quota.measure) {
        (Some(class), Measure::Quanta) => {
            classes.named(class).map_or_else(|| "quanta".into(), |class| class.unit.clone())
        }
        (_, measure) => word(measure),
    }
}

/// The base limit, the type of the limit, and the limit of a burst.
fn parts(limit: &Limit) -> (u64, &'static str, Option<u64>) {
    match limit {
        Limit::Hard { limit } => (*limit, "hard", None),
        Limit::Soft { limit } => (*limit, "soft", None),
        Limit::Burst { limit, burst_limit, .. } => (*limit, "burst", Some(*burst_limit)),
    }
}

fn of_holder(what: &str, holders: &Holders) -> String {
    match holders {
        Holders::Each => format!("each {what}"),
        Holders::One(one) => format!("{what} {one}"),
    }
}

/// The class, or all classes of a kind.
fn class(quota: &Quota) -> Option<String> {
    quota.class.clone().or_else(|| quota.kind.map(|kind| format!("all {}", word(kind))))
}

fn scope(quota: &Quota) -> String {
    let mut parts: Vec<String> = quota.pool.iter().map(|pool| format!("pool {pool}")).collect();
    match &quota.nodes {
        Nodes::All => {}
        Nodes::Each => parts.push("each node".into()),
        Nodes::One(node) => parts.push(format!("node {node}")),
    }
    let above = if quota.and_above { " and above" } else { " only" };
    parts.extend(quota.priority.map(|priority| word(priority) + above));
    parts.extend(quota.user.as_ref().map(|user| of_holder("user", user)));
    parts.extend(quota.app_instance.as_ref().map(|app| of_holder("app instance", app)));
    if parts.is_empty() { "-".into() } else { parts.join(", ") }
}

fn quotas(quotas: &[Quota], classes: &Classes) -> Table {
    let headings = [
        ("quota", Align::Right),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("class", Align::Left),
        ("scope", Align::Left),
        ("used", Align::Right),
        ("limit", Align::Right),
        ("burst limit", Align::Right),
        ("unit", Align::Left),
        ("type", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["scope", "burst limit", "project", "type", "class"]);
    for quota in quotas {
        let (base, how, burst) = parts(&quota.limit);
        let style = match quota.used {
            used if used >= base && base > 0 => Style::Red,
            used if used >= base / 5 * 4 && base >= 5 => Style::Yellow,
            _ => Style::Plain,
        };
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            plain(quota.id.to_string()),
            plain(quota.tenant.clone()),
            plain(or_dash(quota.project.as_ref())),
            plain(or_dash(class(quota))),
            plain(scope(quota)),
            (used(quota, classes), style),
            plain(amount(quota, base, classes)),
            plain(or_dash(burst.map(|most| amount(quota, most, classes)))),
            plain(unit(quota, classes)),
            plain(how.to_owned()),
        ]);
    }
    table
}

fn one(session: &Session, quota: &Quota, classes: &Classes) -> String {
    let (base, how, burst) = parts(&quota.limit);
    let unit = unit(quota, classes);
    let details = Details::new()
        .add("quota", quota.id)
        .add("tenant", &quota.tenant)
        .maybe("project", quota.project.as_ref())
        .maybe("class", class(quota))
        .maybe("scope", Some(scope(quota)).filter(|scope| scope != "-"))
        .add("used", format!("{} {unit}", used(quota, classes)))
        .add("limit", format!("{} {unit}, {how}", amount(quota, base, classes)))
        .maybe("burst limit", burst.map(|most| format!("{} {unit}", amount(quota, most, classes))));
    let details = match &quota.limit {
        Limit::Burst { burst_ttl, .. } => details.add("burst duration", time_format::span(burst_ttl.0)),
        _ => details,
    };
    let details =
        details.maybe("over the limit", quota.overage.as_ref().map(|sum| format!("{sum} {unit}-seconds so far")));
    let details = details.maybe("until", quota.until.map(time_format::to_the_second));
    let base = quota.base_limit.as_ref().map(|limit| {
        let (base, how, burst) = parts(limit);
        let burst = burst.map_or_else(String::new, |most| format!(", burst limit {}", amount(quota, most, classes)));
        format!("{} {unit}, {how}{burst}", amount(quota, base, classes))
    });
    let details = details.maybe("base limit", base);
    let evicts = quota.evict_own_lower.then_some("leases of lower priority that it counts");
    let details = details.maybe("evicts", evicts);
    details.maybe("bursting since", quota.burst_since.map(time_format::to_the_second)).text(session.paint)
}
