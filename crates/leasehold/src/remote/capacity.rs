//! `leasehold class …` and `pool …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::pairs::by_key;
use super::patch::{patch, something};
use super::session::Session;
use super::tenancy::{gone, made};
use crate::cli::capacity::{ClassCommand, ClassField, PoolCommand, PoolField};
use crate::numbers::thousands;
use crate::problem::Problem;
use crate::table::{Align, Table};
use leasehold_api::{Class, ClassChange, NewClass, NewPool, Pool, PoolChange, SpansByPriority, Ttl, Weights};

pub(super) async fn class(session: &Session, command: ClassCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        ClassCommand::List => session.list(client.list_classes(), classes).await,
        ClassCommand::Show(one) => session.show(client.show_class(&one.name), |class| one_class(session, class)).await,
        ClassCommand::Create(args) => {
            let new = NewClass {
                name: args.name,
                kind: args.kind,
                tier: args.tier,
                quanta_per_unit: args.quanta_per_unit,
                premium: args.premium,
            };
            let call = client.create_class(&new);
            session.change(call, &args.change, |put| made("class", &put.class.name, put.class.id)).await
        }
        ClassCommand::Set(args) => {
            let change = something(ClassChange {
                name: args.name,
                kind: args.kind,
                tier: patch(args.tier, &args.clear, ClassField::Tier)?,
                quanta_per_unit: args.quanta_per_unit,
                premium: args.premium,
            })?;
            let call = client.change_class(&args.class, &change);
            session.change(call, &args.change, |put| one_class(session, &put.class)).await
        }
    }
}

fn quantum(class: &Class) -> String {
    match class.quanta_per_unit {
        1 => format!("1 {}", class.unit),
        per_unit => format!("1/{} {}", thousands(per_unit), class.unit),
    }
}

fn classes(classes: &[Class]) -> Table {
    let headings = [
        ("class", Align::Left),
        ("number", Align::Right),
        ("kind", Align::Left),
        ("tier", Align::Left),
        ("quantum", Align::Right),
        ("premium", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["number", "premium", "tier"]);
    for class in classes {
        table.row([
            class.name.clone(),
            class.id.to_string(),
            word(class.kind),
            or_dash(class.tier.as_ref()),
            quantum(class),
            if class.premium { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn one_class(session: &Session, class: &Class) -> String {
    Details::new()
        .add("class", &class.name)
        .add("number", class.id)
        .add("kind", word(class.kind))
        .maybe("tier", class.tier.as_ref())
        .add("unit", &class.unit)
        .add("quantum", quantum(class))
        .add("premium", if class.premium { "yes" } else { "no" })
        .text(session.paint)
}

pub(super) async fn pool(session: &Session, command: PoolCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        PoolCommand::List => session.list(client.list_pools(), pools).await,
        PoolCommand::Show(one) => session.show(client.show_pool(&one.name), |pool| one_pool(session, pool)).await,
        PoolCommand::Create(args) => {
            let limits = args.limits;
            let new = NewPool {
                name: args.name,
                strategy: limits.strategy,
                ttl_max: spans("--ttl-max", &limits.ttl_max)?,
                lifetime_max: spans("--lifetime-max", &limits.lifetime_max)?,
                grace: limits.grace,
                weights: limits.weights,
                min_runtime_before_eviction: limits.min_runtime_before_eviction,
                requeue_limit: limits.requeue_limit,
            };
            let call = client.create_pool(&new);
            session.change(call, &args.change, |put| made("pool", &put.pool.name, put.pool.id)).await
        }
        PoolCommand::Set(args) => {
            let limits = args.limits;
            let change = something(PoolChange {
                name: args.name,
                strategy: limits.strategy,
                ttl_max: patch(spans("--ttl-max", &limits.ttl_max)?, &args.clear, PoolField::TtlMax)?,
                lifetime_max: patch(
                    spans("--lifetime-max", &limits.lifetime_max)?,
                    &args.clear,
                    PoolField::LifetimeMax,
                )?,
                grace: patch(limits.grace, &args.clear, PoolField::Grace)?,
                weights: patch(limits.weights, &args.clear, PoolField::Weights)?,
                min_runtime_before_eviction: patch(
                    limits.min_runtime_before_eviction,
                    &args.clear,
                    PoolField::MinRuntimeBeforeEviction,
                )?,
                requeue_limit: patch(limits.requeue_limit, &args.clear, PoolField::RequeueLimit)?,
            })?;
            let call = client.change_pool(&args.pool, &change);
            session.change(call, &args.change, |put| one_pool(session, &put.pool)).await
        }
        PoolCommand::Delete(args) => {
            let call = client.delete_pool(&args.name);
            session.change(call, &args.change, |_| gone("pool", &args.name)).await
        }
    }
}

/// `None` if none was given.
fn spans(option: &str, given: &[(String, Ttl)]) -> Result<Option<SpansByPriority>, Problem> {
    let given = by_key(option, given, |span| *span)?;
    let of = |priority: &str| given.get(priority).copied();
    Ok((!given.is_empty()).then(|| SpansByPriority {
        scavenger: of("scavenger"),
        standard: of("standard"),
        guaranteed: of("guaranteed"),
    }))
}

/// `scavenger 1h, standard 8h`, or a dash.
fn by_priority(spans: &SpansByPriority) -> String {
    let each = [("scavenger", spans.scavenger), ("standard", spans.standard), ("guaranteed", spans.guaranteed)];
    let set: Vec<String> = each.iter().filter_map(|(name, span)| Some(format!("{name} {}", (*span)?))).collect();
    if set.is_empty() { "-".into() } else { set.join(", ") }
}

fn weights(weights: &Weights) -> String {
    let Weights { pressure, fit, locality, fragmentation } = weights;
    format!("pressure {pressure}, fit {fit}, locality {locality}, fragmentation {fragmentation}")
}

/// The strategy, or `custom` if the pool has weights of its own.
fn strategy(pool: &Pool) -> String {
    if pool.weights.is_some() { "custom".to_owned() } else { word(pool.strategy) }
}

fn pools(pools: &[Pool]) -> Table {
    let headings = [
        ("pool", Align::Left),
        ("number", Align::Right),
        ("nodes", Align::Right),
        ("strategy", Align::Left),
        ("grace", Align::Right),
        ("max TTL", Align::Left),
        ("max lifetime", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["number", "max lifetime", "max TTL"]);
    for pool in pools {
        table.row([
            pool.name.clone(),
            pool.id.to_string(),
            thousands(pool.nodes.into()),
            strategy(pool),
            or_dash(pool.grace),
            by_priority(&pool.ttl_max),
            by_priority(&pool.lifetime_max),
        ]);
    }
    table
}

fn one_pool(session: &Session, pool: &Pool) -> String {
    Details::new()
        .add("pool", &pool.name)
        .add("number", pool.id)
        .add("nodes", thousands(pool.nodes.into()))
        .add("strategy", strategy(pool))
        .maybe("weights", pool.weights.as_ref().map(weights))
        .add("grace", or_dash(pool.grace))
        .add("max TTL", by_priority(&pool.ttl_max))
        .add("max lifetime", by_priority(&pool.lifetime_max))
        .add("min runtime before eviction", pool.min_runtime_before_eviction)
        .add("requeue limit", pool.requeue_limit)
        .text(session.paint)
}
