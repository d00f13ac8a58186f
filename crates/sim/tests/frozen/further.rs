//! What rules version 4 added to the state, field by field, beside the fields of `state.rs`.

use crate::state::{at, limit, span, text};
use leasehold_engine::{Allocation, Ceiling, Claim, Custody, Lease, Node, Quota, RateCard, Scarce, State};
use leasehold_model::body::Correlation;
use leasehold_model::{HolderScope, Name, TenantNo};
use serde_json::{Value, json};

/// Adds the fields of rules version 4 to the view of a state.
pub(crate) fn extend(view: &mut Value, state: &State) {
    let head_wait_max = span(state.settings().head_wait_max);
    add(view, "settings", [json!({ "head_wait_max": head_wait_max })]);
    let queues = state.pools().map(|(_, pool)| {
        json!({
            "min_runtime_before_eviction": span(pool.queue.min_runtime_before_eviction),
            "requeue_limit": pool.queue.requeue_limit,
        })
    });
    add(view, "pools", queues);
    add(view, "nodes", state.nodes().map(node));
    add(view, "capacity", state.nodes().flat_map(capacity));
    add(view, "tenants", state.tenants().map(|found| tenant(state, found.number)));
    add(view, "quotas", state.quotas().map(|found| quota(state, found)));
    add(view, "rate_cards", state.rate_cards().map(periods));
    add(view, "ceilings", state.ceilings().map(|found| ceiling(state, found)));
    add(view, "leases", state.leases().into_iter().map(lease));
    add(view, "allocations", state.allocations_after(None).map(allocation));
    let pool_access = state.projects().flat_map(|(project, _)| {
        let access = state.pool_access_of(project);
        access.map(move |(pool, access)| json!({ "project": project.0, "pool": pool.0, "access": text(access) }))
    });
    view["pool_access"] = pool_access.collect();
    let windows = state.windows().map(|window| {
        json!({
            "window": window.number.0,
            "nodes": window.nodes.iter().map(|node| node.0).collect::<Vec<_>>(),
            "from": at(window.from),
            "until": at(window.until),
            "reason": window.reason.as_ref().map(Name::as_str),
            "is_open": window.is_open,
        })
    });
    view["windows"] = windows.collect();
    let losses = state
        .open_losses()
        .map(|(loss, open)| json!({ "loss": loss, "node": open.node.0, "last_seen": at(open.last_seen) }));
    view["open_losses"] = losses.collect();
}

/// Adds fields to the entries of a list, in their order. What has the name of an earlier field replaces it.
pub(crate) fn add(view: &mut Value, section: &str, further: impl IntoIterator<Item = Value>) {
    let entries = view[section].as_array_mut().expect("a list");
    let mut further = further.into_iter();
    for entry in entries {
        let Some(Value::Object(fields)) = further.next() else { panic!("{section}: an entry has no further fields") };
        entry.as_object_mut().expect("an entry of named fields").extend(fields);
    }
    assert!(further.next().is_none(), "{section}: more entries than in the list");
}

fn node(node: &Node) -> Value {
    let claim = |claim: &Claim| json!({ "sequence": claim.sequence, "until": claim.until.map(at) });
    let claim = match &node.custody {
        Custody::Claimed(found) | Custody::Wiping { claim: found, .. } => Some(claim(found)),
        Custody::Open | Custody::Quarantined { .. } => None,
    };
    json!({
        "claim": claim,
        "drain_reason": node.drain_reason.as_ref().map(Name::as_str),
        "windows_open": node.windows.open,
        "next_window": node.windows.next.map(|(from, window)| json!([at(from), window.0])),
        "in_service": node.is_in_service(),
        "last_sign": at(node.last_sign),
    })
}

/// All of a lost node is offline.
fn capacity(node: &Node) -> impl Iterator<Item = Value> + '_ {
    node.classes.iter().map(|class| {
        let split = node.split(class.class);
        json!({
            "held": split.held,
            "tearing_down": split.tearing_down,
            "reserved": split.reserved,
            "fenced": split.fenced,
            "offline": split.offline,
            "idle": split.idle,
        })
    })
}

fn tenant(state: &State, tenant: TenantNo) -> Value {
    let now = state.last_stamp();
    let tenant = state.tenant(tenant).expect("a tenant of the state");
    let spent = state.spending(tenant.number, now, tenant.budgets.period_days).expect("a tenant of the state");
    let standing = state.standing_by(tenant.number, Scarce::Cores, now);
    json!({
        "contact": tenant.settings.contact.as_ref().map(Name::as_str),
        "when_over_quota": tenant.settings.when_over_quota.map(text),
        "core_time": spent.core.to_string(),
        "core_time_of_all": spent.all_core.to_string(),
        "standing_by_cores": [standing.factor.to_string(), standing.deficit.to_string()],
    })
}

fn quota(state: &State, quota: &Quota) -> Value {
    fn holder<T>(scope: Option<HolderScope<T>>, number: impl Fn(T) -> u64) -> Value {
        match scope {
            None => Value::Null,
            Some(HolderScope::Each) => json!("each"),
            Some(HolderScope::One(one)) => json!(number(one)),
        }
    }
    let further = quota.scope.further;
    let used = quota.used_lines().map(|(user, app, node, used)| {
        json!([user.map(|user| user.0), app.map(|app| app.0), node.map(|node| node.0), used.to_string()])
    });
    json!({
        "kind": further.kind.map(text),
        "user": holder(further.user, |user| user.0.into()),
        "app_instance": holder(further.app_instance, |app| app.0),
        "and_above": further.and_above,
        "base": limit(quota.base()),
        "until": quota.temporary.map(|temporary| at(temporary.until)),
        "evict_own_lower": quota.evict_own_lower,
        "used": quota.used().to_string(),
        "used_lines": used.collect::<Vec<_>>(),
        "overage": quota.overage(state.last_stamp()).map(|(sum, per_unit)| format!("{sum}/{per_unit}")),
    })
}

fn periods(card: &RateCard) -> Value {
    let periods = &card.prices.periods;
    json!({
        "periods": periods.kinds.map(text),
        "class_periods": periods.classes.iter().map(|(class, period)| json!([class.0, text(period)])).collect::<Vec<_>>(),
    })
}

fn ceiling(state: &State, ceiling: &Ceiling) -> Value {
    let used = state.ceiling_use(ceiling, state.last_stamp());
    json!({ "spent_with_claims": used.spent.0.to_string(), "reserved_with_claims": used.reserved.0.to_string() })
}

fn lease(lease: &Lease) -> Value {
    json!({ "workload": lease.workload().map(Name::as_str), "correlation": correlation(lease.correlation()) })
}

pub(crate) fn correlation(correlation: Correlation) -> Value {
    match correlation {
        Correlation::Given(id) => json!(id.to_string()),
        Correlation::Derived(sequence) => json!({ "derived_from": sequence }),
    }
}

fn allocation(found: &Allocation) -> Value {
    let hold = found.on_hold.as_ref().map(|hold| {
        let reason = hold.reason.as_ref().map(Name::as_str);
        json!({ "by_operator": hold.by_operator, "reason": reason, "since": at(hold.since) })
    });
    json!({
        "hcl_entry": found.hcl_entry.as_ref().map(Name::as_str),
        "dra_claim_id": found.dra_claim_id.as_ref().map(Name::as_str),
        "node": found.node.map(|node| node.0),
        "queued_at": at(found.queued_at),
        "protected_on": found.protected_on.iter().map(|node| node.0).collect::<Vec<_>>(),
        "requeues": found.requeues,
        "on_hold": hold,
    })
}
