//! Classes, pools and nodes.

use super::page::page;
use super::tenancy::changed;
use crate::context::{Answer, Context, json};
use crate::{names, show};
use leasehold_api::{
    ClassChange, ClassList, ClassPut, Kind, LoseNode, NewClass, NewNode, NewPool, NodeChange, NodeList, NodePut,
    PoolChange, PoolList, PoolPut, Problem, Quantity, SpansByPriority, Strategy, Teardown, Weights, WithReason, codes,
};
use leasehold_engine::command::{self, NodeService, PutClass, PutNode, PutPool};
use leasehold_engine::{Command, State};
use leasehold_model::body::{PerPriority, PoolQueue};
use leasehold_model::{Body, ClassNo, ClassSpec, Name, NodeNo, PoolNo, Quanta, Span, quantity};
use std::collections::BTreeMap;

/// Default number of quanta per unit: whole GPUs, millicores, MiB, GiB, Mb/s.
fn quanta_per_unit(kind: Kind) -> u64 {
    match kind {
        Kind::Gpu | Kind::Block => 1,
        Kind::Cpu | Kind::Net => 1000,
        Kind::Mem => 1024,
    }
}

pub(super) async fn list_classes(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        page(
            &context,
            state.classes().filter_map(|(number, _)| Some((u64::from(number.0), show::class(state, number)?))),
        )
    });
    let (classes, next_cursor) = listed?;
    json(200, &ClassList { classes, next_cursor })
}

pub(super) async fn show_class(context: Context) -> Answer {
    let found = context.app.now.read(|state| {
        let number = names::class(state, context.subject())?;
        show::class(state, number).ok_or_else(|| show::gone_already("class"))
    });
    json(200, &found?)
}

async fn put_class(context: &Context, status: u16, class: Option<ClassNo>, spec: ClassSpec) -> Answer {
    let sealed = context.seal(Command::PutClass(PutClass { class, spec })).await?;
    let Body::ClassPut(put) = &sealed.first().body else { unreachable!("a class was put") };
    let class = context.app.now.read(|state| show::class(state, put.class));
    json(status, &ClassPut { sequence: sealed.sequence(), class: class.ok_or_else(|| show::gone_already("class"))? })
}

pub(super) async fn create_class(context: Context) -> Answer {
    let new: NewClass = context.body()?;
    let spec = ClassSpec {
        name: names::new_name(&new.name, None)?,
        kind: new.kind,
        tier: names::optional_text("tier", new.tier.as_deref())?,
        quanta_per_unit: new.quanta_per_unit.unwrap_or_else(|| quanta_per_unit(new.kind)),
        premium: new.premium,
    };
    put_class(&context, 201, None, spec).await
}

pub(super) async fn change_class(context: Context) -> Answer {
    let change: ClassChange = context.body()?;
    let (number, old) = context.app.now.read(|state| {
        let number = names::class(state, context.subject())?;
        Ok::<_, Problem>((number, state.class(number).cloned().ok_or_else(|| show::gone_already("class"))?))
    })?;
    let spec = ClassSpec {
        name: match &change.name {
            Some(name) => names::new_name(name, Some(&old.name))?,
            None => old.name,
        },
        kind: change.kind.unwrap_or(old.kind),
        tier: change.tier.try_map(|tier| names::new_text("tier", &tier, old.tier.as_ref()))?.over(old.tier),
        quanta_per_unit: change.quanta_per_unit.unwrap_or(old.quanta_per_unit),
        premium: change.premium.unwrap_or(old.premium),
    };
    put_class(&context, 200, Some(number), spec).await
}

fn sealed_weights(weights: Weights) -> leasehold_model::Weights {
    leasehold_model::Weights {
        pressure: weights.pressure.0,
        fit: weights.fit.0,
        locality: weights.locality.0,
        fragmentation: weights.fragmentation.0,
    }
}

fn sealed_spans(spans: SpansByPriority) -> PerPriority {
    PerPriority([spans.scavenger, spans.standard, spans.guaranteed].map(|span| span.map(|span| span.0)))
}

pub(super) async fn list_pools(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        page(&context, state.pools().filter_map(|(number, _)| Some((u64::from(number.0), show::pool(state, number)?))))
    });
    let (pools, next_cursor) = listed?;
    json(200, &PoolList { pools, next_cursor })
}

pub(super) async fn show_pool(context: Context) -> Answer {
    let found = context.app.now.read(|state| {
        let number = names::pool(state, context.subject())?;
        show::pool(state, number).ok_or_else(|| show::gone_already("pool"))
    });
    json(200, &found?)
}

async fn put_pool(context: &Context, status: u16, put: PutPool) -> Answer {
    let sealed = context.seal(Command::PutPool(put)).await?;
    let Body::PoolPut(put) = &sealed.first().body else { unreachable!("a pool was put") };
    let pool = context.app.now.read(|state| show::pool(state, put.pool));
    json(status, &PoolPut { sequence: sealed.sequence(), pool: pool.ok_or_else(|| show::gone_already("pool"))? })
}

pub(super) async fn create_pool(context: Context) -> Answer {
    let new: NewPool = context.body()?;
    let put = PutPool {
        pool: None,
        name: names::new_name(&new.name, None)?,
        strategy: new.strategy.unwrap_or(Strategy::Spread),
        ttl_max: sealed_spans(new.ttl_max.unwrap_or_default()),
        lifetime_max: sealed_spans(new.lifetime_max.unwrap_or_default()),
        grace: new.grace.map(|grace| grace.0),
        weights: new.weights.map(|weights| Some(sealed_weights(weights))),
        queue: Some(PoolQueue {
            min_runtime_before_eviction: new.min_runtime_before_eviction.unwrap_or_default().0,
            requeue_limit: new.requeue_limit.unwrap_or(PoolQueue::default().requeue_limit),
        }),
    };
    put_pool(&context, 201, put).await
}

pub(super) async fn change_pool(context: Context) -> Answer {
    let change: PoolChange = context.body()?;
    let put = context.app.now.read(|state| {
        let number = names::pool(state, context.subject())?;
        let old = state.pool(number).ok_or_else(|| show::gone_already("pool"))?;
        let name = change.name.as_deref().map(|name| names::new_name(name, Some(&old.name))).transpose()?;
        Ok::<_, Problem>(PutPool {
            pool: Some(number),
            name: name.unwrap_or_else(|| old.name.clone()),
            strategy: change.strategy.unwrap_or(old.strategy),
            ttl_max: per_priority(&change.ttl_max, old.ttl_max),
            lifetime_max: per_priority(&change.lifetime_max, old.lifetime_max),
            grace: change.grace.clone().over(old.grace.map(leasehold_api::Ttl)).map(|grace| grace.0),
            weights: change.weights.clone().nested().map(|weights| weights.map(sealed_weights)),
            queue: Some(changed_queue(&change, old.queue)),
        })
    })?;
    put_pool(&context, 200, put).await
}

fn changed_queue(change: &PoolChange, old: PoolQueue) -> PoolQueue {
    let least =
        change.min_runtime_before_eviction.clone().over(Some(leasehold_api::Ttl(old.min_runtime_before_eviction)));
    let limit = change.requeue_limit.clone().over(Some(old.requeue_limit));
    PoolQueue {
        min_runtime_before_eviction: least.unwrap_or_default().0,
        requeue_limit: limit.unwrap_or(PoolQueue::default().requeue_limit),
    }
}

fn per_priority(change: &leasehold_api::Patch<SpansByPriority>, old: PerPriority) -> PerPriority {
    match change {
        leasehold_api::Patch::Keep => old,
        leasehold_api::Patch::Clear => PerPriority::default(),
        leasehold_api::Patch::Set(spans) => sealed_spans(*spans),
    }
}

pub(super) async fn delete_pool(context: Context) -> Answer {
    let pool = context.app.now.read(|state| names::pool(state, context.subject()));
    changed(&context, pool.map(Command::DeletePool)).await
}

pub(super) async fn list_nodes(context: Context) -> Answer {
    let caller = context.caller();
    let mut empty = empty_nodes(&context).await?;
    let listed = context.app.now.read(|state| {
        let pool = context.query("pool").map(|text| names::pool(state, text)).transpose()?;
        let is_asked = |node: &&leasehold_engine::Node| {
            pool.is_none_or(|pool| pool == node.pool)
                && empty.as_ref().is_none_or(|empty| empty.contains_key(&node.number))
                && caller.sees_node(node.number)
        };
        let visible: Vec<&leasehold_engine::Node> = state.nodes().filter(is_asked).collect();
        let mut shown = |node: &leasehold_engine::Node| leasehold_api::Node {
            empty: empty.as_mut().and_then(|empty| empty.remove(&node.number)),
            ..show::node(state, node)
        };
        page(&context, visible.into_iter().map(|node| (u64::from(node.number.0), shown(node))))
    });
    let (nodes, next_cursor) = listed?;
    json(200, &NodeList { nodes, next_cursor })
}

/// The nodes that have been empty for as long as asked for, if that is asked for.
async fn empty_nodes(context: &Context) -> Result<Option<BTreeMap<NodeNo, leasehold_api::EmptyNode>>, Problem> {
    let Some(text) = context.query("empty_for") else { return Ok(None) };
    let span: leasehold_api::Ttl = text
        .parse()
        .map_err(|why| codes::BAD_QUERY.problem(format!("`empty_for`: {why}.")).with("field", "empty_for"))?;
    let found = crate::books::ask(&context.app, context.caller(), move |books, known| {
        let since = leasehold_model::Instant(known.as_of.0.saturating_sub(span.0.0));
        let empty = books.empty_nodes(since, known.as_of).map_err(|error| crate::books::problem(&error))?;
        let one = |one: leasehold_books::EmptyNode| {
            let earned = one.could_have_earned.iter().map(|(currency, money)| (*currency, money));
            let could_have_earned = super::books::amounts(earned)?;
            let since = leasehold_api::When(one.since);
            Ok((one.node, leasehold_api::EmptyNode { since, could_have_earned }))
        };
        empty.into_iter().map(one).collect::<Result<BTreeMap<_, _>, Problem>>()
    });
    found.await.map(Some)
}

pub(super) fn find_node(context: &Context) -> Result<NodeNo, Problem> {
    context.app.now.read(|state| names::node(state, context.caller(), context.subject()))
}

pub(super) async fn show_node(context: Context) -> Answer {
    let number = find_node(&context)?;
    let node = context.app.now.read(|state| state.node(number).map(|node| show::node(state, node)));
    json(200, &node.ok_or_else(|| show::gone_already("node"))?)
}

/// Parses the capacity of a node, by class.
pub(super) fn node_capacity(
    state: &State,
    written: &BTreeMap<String, Quantity>,
) -> Result<Vec<(ClassNo, Quanta)>, Problem> {
    let mut capacity = Vec::with_capacity(written.len());
    for (class, text) in written {
        let number = names::class(state, class)?;
        capacity.push((number, quanta(state, number, text)?));
    }
    capacity.sort_by_key(|(class, _)| *class);
    Ok(capacity)
}

pub(super) fn quanta(state: &State, class: ClassNo, text: &Quantity) -> Result<Quanta, Problem> {
    let spec = state.class(class).expect("the class was found in this state");
    quantity::parse(&text.0, spec).map_err(|why| {
        codes::BAD_QUANTITY.problem(format!("The quantity of {}: {why}.", spec.name)).with("class", spec.name.as_str())
    })
}

/// The labels that a request requires of a node.
pub(super) fn labels(written: &BTreeMap<String, String>) -> Result<Vec<(Name, Name)>, Problem> {
    written.iter().map(|(key, value)| Ok((names::name("label", key)?, names::name("label", value)?))).collect()
}

/// The labels of a node that has the labels `old`.
fn new_labels(written: &BTreeMap<String, String>, old: &[(Name, Name)]) -> Result<Vec<(Name, Name)>, Problem> {
    let labels = labels(written)?;
    for (key, value) in labels.iter().filter(|label| !old.contains(label)) {
        names::new_text("label", key.as_str(), None)?;
        names::new_text("label", value.as_str(), None)?;
    }
    Ok(labels)
}

pub(super) fn node_put(context: &Context, status: u16, sequence: u64, node: NodeNo) -> Answer {
    let node = context.app.now.read(|state| state.node(node).map(|node| show::node(state, node)));
    json(status, &NodePut { sequence, node: node.ok_or_else(|| show::gone_already("node"))? })
}

pub(super) async fn create_node(context: Context) -> Answer {
    let new: NewNode = context.body()?;
    let put = context.app.now.read(|state| {
        Ok::<_, Problem>(PutNode {
            node: None,
            name: names::new_name(&new.name, None)?,
            pool: names::pool(state, &new.pool)?,
            rack: names::optional_text("rack", new.rack.as_deref())?,
            zone: names::optional_text("zone", new.zone.as_deref())?,
            labels: new_labels(&new.labels, &[])?,
            teardown: new.teardown.unwrap_or(Teardown::Confirmed),
            capacity: node_capacity(state, &new.capacity)?,
        })
    })?;
    let sealed = context.seal(Command::PutNode(put)).await?;
    let Body::NodePut(put) = &sealed.first().body else { unreachable!("a node was put") };
    node_put(&context, 201, sealed.sequence(), put.node)
}

/// The command that would set a node to its present values.
pub(super) fn as_put(state: &State, number: NodeNo) -> Result<PutNode, Problem> {
    let old = state.node(number).ok_or_else(|| show::gone_already("node"))?;
    Ok(PutNode {
        node: Some(number),
        name: old.name.clone(),
        pool: old.pool,
        rack: old.rack.clone(),
        zone: old.zone.clone(),
        labels: old.labels.clone(),
        teardown: old.teardown,
        capacity: old.classes.iter().map(|class| (class.class, Quanta(class.capacity))).collect(),
    })
}

pub(super) async fn change_node(context: Context) -> Answer {
    let change: NodeChange = context.body()?;
    let number = find_node(&context)?;
    let put = context.app.now.read(|state| {
        let mut put = as_put(state, number)?;
        if let Some(name) = &change.name {
            put.name = names::new_name(name, Some(&put.name))?;
        }
        if let Some(pool) = &change.pool {
            put.pool = names::pool(state, pool)?;
        }
        put.rack =
            change.rack.clone().try_map(|rack| names::new_text("rack", &rack, put.rack.as_ref()))?.over(put.rack);
        put.zone =
            change.zone.clone().try_map(|zone| names::new_text("zone", &zone, put.zone.as_ref()))?.over(put.zone);
        if let Some(written) = &change.labels {
            put.labels = new_labels(written, &put.labels)?;
        }
        put.teardown = change.teardown.unwrap_or(put.teardown);
        if let Some(written) = &change.capacity {
            put.capacity = node_capacity(state, written)?;
        }
        Ok::<_, Problem>(put)
    })?;
    let sealed = context.seal(Command::PutNode(put)).await?;
    node_put(&context, 200, sealed.sequence(), number)
}

pub(super) async fn delete_node(context: Context) -> Answer {
    let node = find_node(&context);
    changed(&context, node.map(Command::DeleteNode)).await
}

async fn node_command(context: Context, command: impl FnOnce(NodeNo) -> Command) -> Answer {
    let node = find_node(&context)?;
    let sealed = context.seal(command(node)).await?;
    node_put(&context, 200, sealed.sequence(), node)
}

/// The reason in the body, which the record keeps.
pub(super) fn given_reason(context: &Context) -> Result<Option<Name>, Problem> {
    let given: WithReason = context.body()?;
    given.reason.map(|reason| names::new_text("reason", &reason, None)).transpose()
}

pub(super) async fn drain_node(context: Context) -> Answer {
    let reason = given_reason(&context)?;
    node_command(context, |node| Command::DrainNode(NodeService { node, reason })).await
}

pub(super) async fn resume_node(context: Context) -> Answer {
    let reason = given_reason(&context)?;
    node_command(context, |node| Command::ResumeNode(NodeService { node, reason })).await
}

pub(super) async fn return_node(context: Context) -> Answer {
    node_command(context, Command::ReturnNode).await
}

pub(super) async fn lose_node(context: Context) -> Answer {
    let lose: LoseNode = context.body()?;
    // The clock may be slightly behind the last stamp, so the default is the last stamp.
    let now = context.app.now.read(State::last_stamp);
    let last_seen = lose.last_seen.map_or(now, |when| when.0);
    node_command(context, |node| Command::LoseNode(command::LoseNode { node, last_seen })).await
}

/// A setting after a change.
pub(super) fn span(ttl: Option<leasehold_api::Ttl>, old: Span) -> Span {
    ttl.map_or(old, |ttl| ttl.0)
}

/// The pool with this name or number.
pub(super) fn optional_pool(state: &State, text: Option<&str>) -> Result<Option<PoolNo>, Problem> {
    text.map(|text| names::pool(state, text)).transpose()
}
