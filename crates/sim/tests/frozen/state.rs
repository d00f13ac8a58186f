//! The state in the fields of rules version 3, field by field: a field that is added later does not show here.
//! Journals of rules version 4 show more (`further.rs`), those of version 5 the ledger (`money.rs`), those of version 6 app
//! runtimes (`apps.rs`), and those of version 7 entitlements and policies (`limits.rs`).

use crate::{apps, further, limits, money};
use leasehold_engine::{Allocation, CapacitySplit, Ceiling, Custody, Lease, Node, Phase, Quota, State, Token};
use leasehold_model::rate::{Charge, Charges, Prices};
use leasehold_model::{
    AllocationSpec, Budgets, Instant, LimitKind, Name, NodeScope, Profile, QuotaScope, ResourceKind, Span, TokenScope,
    Weights,
};
use serde_json::{Value, json};
use std::fmt::Display;

/// Everything that a caller can find out about a state, and a few things that only deciding looks at, in the fields
/// that existed under these rules.
pub(crate) fn view(state: &State, rules: u32) -> Value {
    let mut view = first_fields(state);
    if rules >= 4 {
        further::extend(&mut view, state);
    }
    if rules >= 5 {
        money::extend(&mut view, state);
    }
    if rules >= 6 {
        apps::extend(&mut view, state);
    }
    if rules >= 7 {
        limits::extend(&mut view, state);
    }
    view
}

fn first_fields(state: &State) -> Value {
    let now = state.last_stamp();
    json!({
        "size": state.size(),
        "last_stamp": at(now),
        "origin": state.origin().map(Name::as_str),
        "public_key": hex(state.public_key()),
        "epoch": state.epoch(),
        "settings": [settings(state)],
        "classes": list(state.classes().map(|(number, class)| json!({
            "class": number.0,
            "name": class.name.as_str(),
            "kind": text(class.kind),
            "tier": class.tier.as_ref().map(Name::as_str),
            "quanta_per_unit": class.quanta_per_unit,
            "premium": class.premium,
        }))),
        "pools": list(state.pools().map(|(number, pool)| json!({
            "pool": number.0,
            "name": pool.name.as_str(),
            "strategy": text(pool.strategy),
            "ttl_max": pool.ttl_max.0.map(|each| each.map(span)),
            "lifetime_max": pool.lifetime_max.0.map(|each| each.map(span)),
            "grace": pool.grace.map(span),
            "nodes": pool.nodes,
            "weights": pool.weights.map(weights),
        }))),
        "nodes": list(state.nodes().map(|found| node(state, found))),
        "capacity": list(state.nodes().flat_map(capacity)),
        "tenants": list(state.tenants().map(|found| {
            let spent = state.spending(found.number, now, found.budgets.period_days).expect("a tenant of the state");
            let standing = state.standing(found.number, now);
            json!({
                "tenant": found.number.0,
                "name": found.settings.name.as_str(),
                "accounting_tag": found.tag.and_then(|tag| state.tag(tag)).map(Name::as_str),
                "max_priority": text(found.settings.max_priority),
                "max_evicted_quanta_per_hour": found.settings.max_evicted_quanta_per_hour,
                "evicted_within_the_hour": found.evicted(now),
                "leases": found.leases,
                "budgets": budgets(&found.budgets),
                "gpu_time": spent.gpu.to_string(),
                "node_time": spent.node.to_string(),
                "gpu_time_of_all": spent.all_gpu.to_string(),
                "standing": [standing.factor.to_string(), standing.deficit.to_string()],
            })
        })),
        "projects": list(state.projects().map(|(number, project)| json!({
            "project": number.0,
            "tenant": project.tenant.0,
            "name": project.name.as_str(),
            "leases": project.leases,
        }))),
        "users": list(state.users().map(|(number, user)| json!({
            "user": number.0,
            "tenant": user.tenant.0,
            "name": user.name.as_str(),
        }))),
        "quotas": list(state.quotas().map(quota)),
        "tokens": list(state.tokens().map(|found| token(state, found, now))),
        "rate_cards": list(state.rate_cards().map(|card| json!({
            "card": card.number,
            "pool": card.pool.map(|pool| pool.0),
            "from": at(card.from),
            "set_at": at(card.set_at),
            "prices": prices(&card.prices),
        }))),
        "charge_policies": list(state.charge_policies().map(|policy| json!({
            "policy": policy.number,
            "from": at(policy.from),
            "set_at": at(policy.set_at),
            "charges": charges(&policy.charges),
        }))),
        "ceilings": list(state.ceilings().map(ceiling)),
        "leases": list(state.leases().into_iter().map(|found| lease(state, found))),
        "allocations": list(state.allocations_after(None).map(allocation)),
    })
}

fn settings(state: &State) -> Value {
    let settings = state.settings();
    json!({
        "ttl_max": span(settings.ttl_max),
        "grace_default": span(settings.grace_default),
        "teardown_deadline": span(settings.teardown_deadline),
        "node_timeout": span(settings.node_timeout),
        "idempotency_window": span(settings.idempotency_window),
        "heat_half_life": span(settings.heat_half_life),
        "sensitive_pool_size": settings.sensitive_pool_size,
    })
}

fn node(state: &State, node: &Node) -> Value {
    let custody = match node.custody {
        Custody::Open => json!("open"),
        Custody::Claimed(claim) => json!({
            "claimed_by": [claim.by.tenant.0, claim.by.user.0],
            "project": claim.project.0,
            "since": at(claim.since),
        }),
        Custody::Wiping { since, limit_at, .. } => json!({ "wiping_since": at(since), "limit_at": at(limit_at) }),
        Custody::Quarantined { cause, since } => json!({ "quarantined_since": at(since), "cause": text(cause) }),
    };
    json!({
        "node": node.number.0,
        "name": node.name.as_str(),
        "pool": node.pool.0,
        "rack": node.rack.as_ref().map(Name::as_str),
        "zone": node.zone.as_ref().map(Name::as_str),
        "labels": pairs(&node.labels),
        "teardown": text(node.teardown),
        "drained": node.drained,
        "lost": node.lost,
        "custody": custody,
        "agent": node.agent.map(|agent| [agent.generation.to_string(), agent.instance.to_string()]),
        "last_generation": node.last_generation,
        "load": text(node.condition.load),
        "errors": text(node.condition.errors),
        "throttled": node.condition.throttled,
        "heat": state.heat_now(node),
    })
}

fn capacity(node: &Node) -> impl Iterator<Item = Value> + '_ {
    node.classes.iter().map(|class| {
        let split = match node.lost {
            // As it was shown when the journals were frozen; since then all of a lost node is offline.
            true => CapacitySplit {
                held: class.held,
                tearing_down: class.tearing_down,
                reserved: class.reserved,
                fenced: class.fenced,
                offline: class.free(),
                idle: 0,
            },
            false => node.split(class.class),
        };
        json!({
            "node": node.number.0,
            "class": class.class.0,
            "capacity": class.capacity,
            "held": split.held,
            "tearing_down": split.tearing_down,
            "reserved": split.reserved,
            "fenced": split.fenced,
            "offline": split.offline,
            "idle": split.idle,
            "devices": class.devices,
        })
    })
}

fn quota(quota: &Quota) -> Value {
    let QuotaScope { tenant, project, class, pool, node, priority, further: _ } = quota.scope;
    let node = match node {
        NodeScope::All => json!("all"),
        NodeScope::One(node) => json!(node.0),
        NodeScope::Each => json!("each"),
    };
    json!({
        "quota": quota.number.0,
        "tenant": tenant.0,
        "project": project.map(|project| project.0),
        "class": class.map(|class| class.0),
        "pool": pool.map(|pool| pool.0),
        "node": node,
        "priority": priority.map(text),
        "measure": text(quota.measure),
        "limit": limit(quota.limit),
        "used": u64::try_from(quota.used().numerator()).expect("a small number"),
        "used_by_node": quota.used_by_node().map(|(node, used)| json!([node.0, u64::try_from(used).expect("a small number")])).collect::<Vec<_>>(),
        "episode": quota.episode.map(|episode| json!([at(episode.started_at), episode.below_since.map(at)])),
    })
}

pub(crate) fn limit(limit: LimitKind) -> Value {
    match limit {
        LimitKind::Hard { limit } => json!({ "hard": limit }),
        LimitKind::Soft { limit } => json!({ "soft": limit }),
        LimitKind::Burst { limit, burst_limit, burst_ttl } => {
            json!({ "base": limit, "burst": burst_limit, "burst_ttl": span(burst_ttl) })
        }
    }
}

fn token(state: &State, token: &Token, now: Instant) -> Value {
    let TokenScope { tenant, project, user, node, app_instances } = &token.scope;
    json!({
        "token": token.number.0,
        "name": token.name.as_str(),
        "hash": hex(&token.hash),
        "role": text(token.role),
        "tenant": tenant.map(|tenant| tenant.0),
        "project": project.map(|project| project.0),
        "user": user.map(|user| user.0),
        "node": node.map(|node| node.0),
        "app_instances": app_instances.iter().map(|app| app.0).collect::<Vec<_>>(),
        "expires_at": token.expires_at.map(at),
        "live": token.is_live(state, now),
    })
}

fn ceiling(ceiling: &Ceiling) -> Value {
    json!({
        "project": ceiling.scope.project.0,
        "app_instance": ceiling.scope.app_instance.map(|app| app.0),
        "amount": ceiling.amount.0.to_string(),
        "currency": ceiling.currency.as_str(),
        "mode": text(ceiling.mode),
        "since": at(ceiling.since),
        "spent": ceiling.spent.0.to_string(),
        "reserved": ceiling.reserved.0.to_string(),
        "reserved_by_lease": ceiling.held().map(|(lease, kept)| json!([lease.0, kept.0.to_string()])).collect::<Vec<_>>(),
    })
}

fn lease(state: &State, lease: &Lease) -> Value {
    let limited = lease.phase == Phase::Revoking || lease.phase.is_tearing_down();
    json!({
        "lease": lease.number.0,
        "first_of_request": lease.gang.0,
        "leases_of_request": lease.gang_len,
        "allocation": lease.of.map(|allocation| allocation.0),
        "tenant": lease.tenant.0,
        "project": lease.project.0,
        "user": lease.user.map(|user| user.0),
        "app_instance": state.app_instance_of(lease.number).map(|app| app.0),
        "node": lease.node.0,
        "pool": lease.pool.0,
        "class": lease.class.0,
        "quanta": lease.quanta.0,
        "devices": lease.devices,
        "priority": text(lease.priority),
        "accounting_tag": lease.tag.and_then(|tag| state.tag(tag)).map(Name::as_str),
        "phase": text(lease.phase),
        "granted_at": at(lease.granted_at),
        "expires_at": at(lease.expires_at),
        "ended_at": (!lease.phase.is_held()).then(|| at(lease.ended_at)),
        "limit_at": limited.then(|| at(lease.limit_at)),
        "grace": (lease.phase == Phase::Revoking).then(|| span(lease.grace)),
        "reported_to": at(lease.reported_to),
        "sensitive": lease.sensitive,
        "over_soft": lease.over_soft,
    })
}

fn allocation(found: &Allocation) -> Value {
    let placed = found.attempt > 0;
    json!({
        "allocation": found.number.0,
        "tenant": found.tenant.0,
        "project": found.project.0,
        "user": found.user.map(|user| user.0),
        "workload": found.workload.as_ref().map(Name::as_str),
        "state": text(found.state),
        "submitted_at": at(found.submitted_at),
        "attempt": found.attempt,
        "placed_at": placed.then(|| at(found.placed_at)),
        "leases": if placed { found.lease_numbers().map(|lease| lease.0).collect() } else { Vec::new() },
        "held": if found.state.is_placed() { found.held } else { 0 },
        "checkpointed": found.checkpointed,
        "ends": found.ends.map(text),
        "bound": found.bound().map(at),
        "kept_by": found.kept_by(),
        "kept_on": found.reserved_on().map(|node| node.0).collect::<Vec<_>>(),
        "spec": spec(&found.spec),
    })
}

fn spec(spec: &AllocationSpec) -> Value {
    json!({
        "pool": spec.pool.map(|pool| pool.0),
        "asks": spec.asks.iter().map(|(class, quanta)| json!([class.0, quanta.0])).collect::<Vec<_>>(),
        "replicas": spec.replicas,
        "priority": text(spec.priority),
        "walltime": spec.walltime.map(span),
        "ttl": spec.ttl.map(span),
        "staged": spec.staged,
        "requeue": spec.requeue,
        "labels": pairs(&spec.labels),
        "together": spec.together.map(text),
        "apart": spec.apart.map(text),
        "profile": spec.profile.map(profile),
        "sensitive": spec.sensitive,
        "control_plane": spec.control_plane,
        "correlation": spec.correlation.map(|correlation| correlation.to_string()),
        "app_instance": spec.app_instance.map(|app| app.0),
        "attachment": spec.attachment.map(|attachment| attachment.0),
        "source_project": spec.source_project.map(|project| project.0),
    })
}

fn profile(profile: Profile) -> Value {
    json!(ResourceKind::ALL.iter().map(|kind| text(profile.of(*kind))).collect::<Vec<_>>())
}

fn weights(weights: Weights) -> [u16; 4] {
    [weights.pressure, weights.fit, weights.locality, weights.fragmentation]
}

fn budgets(budgets: &Budgets) -> Value {
    json!({
        "gpu_hours": budgets.gpu_hours,
        "node_hours": budgets.node_hours,
        "period_days": budgets.period_days,
        "fair_share": budgets.fair_share,
        "burst_allowance": budgets.burst_allowance,
        "max_pending": budgets.max_pending,
    })
}

fn prices(prices: &Prices) -> Value {
    json!({
        "currency": prices.currency.as_str(),
        "kinds": prices.kinds.0.map(|price| price.0),
        "classes": prices.classes.iter().map(|(class, price)| json!([class.0, price.0])).collect::<Vec<_>>(),
        "tiers": prices.tiers.iter().map(|(tier, factor)| json!([tier.as_str(), factor.0])).collect::<Vec<_>>(),
        "priorities": prices.priorities.0.map(|factor| factor.0),
    })
}

fn charges(charges: &Charges) -> Value {
    let charge = |charge: Charge| match charge {
        Charge::Full => json!("full"),
        Charge::None => json!("none"),
        Charge::MinusLast(last) => json!({ "minus_last": span(last) }),
    };
    json!({
        "preempted": charge(charges.preempted),
        "fenced": charge(charges.fenced),
        "node_lost": charge(charges.node_lost),
        "failed_start": charge(charges.failed_start),
    })
}

fn list(entries: impl Iterator<Item = Value>) -> Value {
    Value::Array(entries.collect())
}

fn pairs(labels: &[(Name, Name)]) -> Value {
    json!(labels.iter().map(|(key, value)| [key.as_str(), value.as_str()]).collect::<Vec<_>>())
}

/// A word of one of the model's closed lists. How its parts are joined has changed before; what it says has not.
pub(crate) fn text(word: impl Display) -> String {
    word.to_string().replace('-', "_")
}

/// Nanoseconds since 1970, as digits: a JSON number may lose the last of them.
pub(crate) fn at(instant: Instant) -> String {
    instant.0.to_string()
}

pub(crate) fn span(span: Span) -> String {
    span.0.to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
