//! Objects of the state as the API shows them.

use crate::app::App;
use leasehold_api as api;
use leasehold_api::{When, codes};
use leasehold_engine::{Ceiling, Lease, Node, Phase, Quota, State, Token};
use leasehold_meter::Units;
use leasehold_model::body::PerPriority;
use leasehold_model::{
    Address, Amount, ClassNo, Fraction, HolderScope, Instant, LimitKind, Measure, Name, NodeScope, PoolNo, Priority,
    ProjectNo, QuotaScope, TenantNo, UserNo, WhenOverQuota, quantity,
};
use std::collections::BTreeMap;

pub(crate) fn text(name: Option<&Name>) -> Option<String> {
    name.map(|name| name.as_str().to_owned())
}

pub(crate) fn address(address: Option<&Address>) -> Vec<String> {
    address.map_or(&[][..], Address::lines).iter().map(ToString::to_string).collect()
}

pub(crate) fn lease_state(phase: Phase) -> api::LeaseState {
    match phase {
        Phase::Active => api::LeaseState::Active,
        Phase::Revoking => api::LeaseState::Revoking,
        Phase::Releasing => api::LeaseState::Releasing,
        Phase::Expired => api::LeaseState::Expired,
        Phase::TearingDown => api::LeaseState::TearingDown,
        Phase::Fenced => api::LeaseState::Fenced,
    }
}

/// The limit of the quota whose scope is the whole tenant.
fn own_limit(state: &State, tenant: TenantNo, measure: Measure) -> Option<u64> {
    let whole = QuotaScope::of_tenant(tenant);
    let quota = state.quotas_of(tenant).find(|quota| quota.scope == whole && quota.measure == measure);
    quota.map(|quota| quota.limit.limit())
}

pub(crate) fn tenant(state: &State, number: TenantNo) -> Option<api::Tenant> {
    let tenant = state.tenant(number)?;
    Some(api::Tenant {
        id: number.0,
        name: tenant.settings.name.as_str().to_owned(),
        accounting_tag: text(tenant.settings.accounting_tag.as_ref()),
        contact: text(tenant.settings.contact.as_ref()),
        billing_address: address(tenant.settings.billing_address.as_ref()),
        tax_id: text(tenant.settings.tax_id.as_ref()),
        when_over_quota: tenant.settings.when_over_quota.unwrap_or(WhenOverQuota::Refuse),
        max_priority: tenant.settings.max_priority,
        max_evicted_quanta_per_hour: tenant.settings.max_evicted_quanta_per_hour,
        max_nodes: own_limit(state, number, Measure::Nodes),
        max_leases: own_limit(state, number, Measure::Leases),
        max_concurrent_allocations: own_limit(state, number, Measure::Allocations),
        gpu_hours_budget: tenant.budgets.gpu_hours,
        node_hours_budget: tenant.budgets.node_hours,
        budget_period_days: tenant.budgets.period_days,
        fair_share_target: tenant.budgets.fair_share.map(fair_share),
        burst_allowance: tenant.budgets.burst_allowance,
        max_pending: tenant.budgets.max_pending,
        live_leases: tenant.leases,
    })
}

/// Thousandths as a decimal fraction.
pub(crate) fn fair_share(thousandths: u32) -> api::Decimal {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    api::Decimal(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

pub(crate) fn tenant_name(state: &State, tenant: TenantNo) -> String {
    state.tenant(tenant).map_or_else(String::new, |tenant| tenant.settings.name.as_str().to_owned())
}

pub(crate) fn project(state: &State, number: ProjectNo) -> Option<api::Project> {
    let project = state.project(number)?;
    Some(api::Project {
        id: number.0,
        name: project.name.as_str().to_owned(),
        tenant: tenant_name(state, project.tenant),
        tenant_id: project.tenant.0,
        live_leases: project.leases,
        pool_access: state
            .pool_access_of(number)
            .filter_map(|(pool, access)| {
                Some(api::ProjectPoolAccess { pool: state.pool(pool)?.name.to_string(), access })
            })
            .collect(),
    })
}

pub(crate) fn user(state: &State, number: UserNo) -> Option<api::User> {
    let user = state.user(number)?;
    Some(api::User {
        id: number.0,
        name: user.name.as_str().to_owned(),
        tenant: tenant_name(state, user.tenant),
        tenant_id: user.tenant.0,
    })
}

pub(crate) fn class(state: &State, number: ClassNo) -> Option<api::Class> {
    let class = state.class(number)?;
    Some(api::Class {
        id: u32::from(number.0),
        name: class.name.as_str().to_owned(),
        kind: class.kind,
        tier: text(class.tier.as_ref()),
        quanta_per_unit: class.quanta_per_unit,
        unit: class.kind.unit().to_owned(),
        premium: class.premium,
    })
}

fn spans(spans: &PerPriority) -> api::SpansByPriority {
    let of = |priority| spans.of(priority).map(api::Ttl);
    api::SpansByPriority {
        scavenger: of(Priority::Scavenger),
        standard: of(Priority::Standard),
        guaranteed: of(Priority::Guaranteed),
    }
}

pub(crate) fn weights(weights: leasehold_model::Weights) -> api::Weights {
    api::Weights {
        pressure: api::Weight(weights.pressure),
        fit: api::Weight(weights.fit),
        locality: api::Weight(weights.locality),
        fragmentation: api::Weight(weights.fragmentation),
    }
}

pub(crate) fn pool(state: &State, number: PoolNo) -> Option<api::Pool> {
    let pool = state.pool(number)?;
    Some(api::Pool {
        id: number.0,
        name: pool.name.as_str().to_owned(),
        strategy: pool.strategy,
        ttl_max: spans(&pool.ttl_max),
        lifetime_max: spans(&pool.lifetime_max),
        grace: pool.grace.map(api::Ttl),
        weights: pool.weights.map(weights),
        min_runtime_before_eviction: api::Ttl(pool.queue.min_runtime_before_eviction),
        requeue_limit: pool.queue.requeue_limit,
        nodes: pool.nodes,
    })
}

pub(crate) fn node(state: &State, node: &Node) -> api::Node {
    let capacity = node.classes.iter().filter_map(|on_node| {
        let class = state.class(on_node.class)?;
        let split = node.split(on_node.class);
        Some(api::NodeCapacity {
            class: class.name.as_str().to_owned(),
            quantity: quantity::display(leasehold_model::Quanta(on_node.capacity), class),
            quanta: on_node.capacity,
            held: split.held,
            tearing_down: split.tearing_down,
            reserved: split.reserved,
            fenced: split.fenced,
            offline: split.offline,
            idle: split.idle,
        })
    });
    api::Node {
        id: node.number.0,
        name: node.name.as_str().to_owned(),
        pool: state.pool(node.pool).map_or_else(String::new, |pool| pool.name.as_str().to_owned()),
        rack: text(node.rack.as_ref()),
        zone: text(node.zone.as_ref()),
        labels: node.labels.iter().map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned())).collect(),
        teardown: node.teardown,
        drained: node.is_drained(),
        window: window_of(state, node),
        drain_reason: text(node.drain_reason.as_ref()),
        lost: node.lost,
        custody: crate::show_custody::custody(state, node.custody),
        agent_generation: node.agent.as_ref().map(|agent| agent.generation),
        condition: api::Condition {
            load: node.condition.load,
            errors: node.condition.errors,
            throttled: node.condition.throttled,
        },
        heat: state.heat_now(node),
        capacity: capacity.collect(),
        empty: None,
    }
}

/// The window of a node that begins first.
fn window_of(state: &State, node: &Node) -> Option<api::NodeWindow> {
    let of_node = state.windows().filter(|window| window.nodes.contains(&node.number));
    let window = of_node.min_by_key(|window| (window.from, window.number))?;
    let reason = text(window.reason.as_ref());
    Some(api::NodeWindow { id: window.number.0, from: When(window.from), until: When(window.until), reason })
}

fn holders<T>(scope: HolderScope<T>, name: impl Fn(T) -> Option<String>) -> api::Holders {
    match scope {
        HolderScope::Each => api::Holders::Each,
        HolderScope::One(one) => api::Holders::One(name(one).unwrap_or_default()),
    }
}

fn limit(limit: LimitKind) -> api::Limit {
    match limit {
        LimitKind::Hard { limit } => api::Limit::Hard { limit },
        LimitKind::Soft { limit } => api::Limit::Soft { limit },
        LimitKind::Burst { limit, burst_limit, burst_ttl } => {
            api::Limit::Burst { limit, burst_limit, burst_ttl: api::Ttl(burst_ttl) }
        }
    }
}

/// What was held beyond a soft limit times how long, in seconds of its unit or count.
fn overage(state: &State, quota: &Quota, now: Instant) -> Option<String> {
    let (sum, parts) = quota.overage(now.max(state.last_stamp()))?;
    let class = quota.scope.class.filter(|_| quota.measure == Measure::Quanta).and_then(|class| state.class(class));
    Units::of(sum, class.map_or(parts, |class| class.quanta_per_unit)).decimal(3).ok()
}

/// An amount rounded down to a whole number.
pub(crate) fn whole(amount: Fraction) -> u64 {
    u64::try_from(amount.numerator() / u128::from(amount.denominator())).unwrap_or(u64::MAX)
}

pub(crate) fn quota(state: &State, quota: &Quota, now: Instant) -> api::Quota {
    let scope = &quota.scope;
    let name = |name: Option<&Name>| text(name);
    api::Quota {
        id: quota.number.0,
        tenant: tenant_name(state, scope.tenant),
        project: name(scope.project.and_then(|project| state.project(project)).map(|project| &project.name)),
        class: name(scope.class.and_then(|class| state.class(class)).map(|class| &class.name)),
        pool: name(scope.pool.and_then(|pool| state.pool(pool)).map(|pool| &pool.name)),
        nodes: match scope.node {
            NodeScope::All => api::Nodes::All,
            NodeScope::Each => api::Nodes::Each,
            NodeScope::One(node) => {
                api::Nodes::One(state.node(node).map_or_else(String::new, |node| node.name.as_str().to_owned()))
            }
        },
        priority: scope.priority,
        and_above: scope.further.and_above,
        kind: scope.further.kind,
        user: scope.further.user.map(|user| holders(user, |user| text(state.user(user).map(|user| &user.name)))),
        app_instance: scope
            .further
            .app_instance
            .map(|app| holders(app, |app| Some(crate::show_apps::app_name(state, app)))),
        measure: quota.measure,
        limit: limit(quota.limit),
        until: quota.temporary.map(|temporary| When(temporary.until)),
        base_limit: quota.temporary.map(|temporary| limit(temporary.base)),
        used: whole(quota.used()),
        used_exact: scope.further.kind.is_some().then(|| quota.used().to_string()),
        overage: overage(state, quota, now),
        burst_since: quota.episode.map(|episode| When(episode.started_at)),
        evict_own_lower: quota.evict_own_lower,
    }
}

pub(crate) fn ceiling(state: &State, ceiling: &Ceiling, now: Instant) -> Option<api::Ceiling> {
    let used = state.ceiling_use(ceiling, now);
    let project = state.project(ceiling.scope.project)?;
    let money = |amount: Amount| api::Money(amount.to_string());
    Some(api::Ceiling {
        tenant: tenant_name(state, project.tenant),
        project: project.name.to_string(),
        project_id: ceiling.scope.project.0,
        app_instance: ceiling.scope.app_instance.map(|app| crate::show_apps::app_name(state, app)),
        amount: money(ceiling.amount),
        currency: ceiling.currency.to_string(),
        mode: ceiling.mode,
        since: When(ceiling.since),
        spent: money(used.spent),
        reserved: money(used.reserved),
        left: money(ceiling.amount.saturating_sub(used.total())),
        leases: ceiling.held().count() as u64,
        claimed_nodes: ceiling.claimed_nodes().count() as u64,
        exceeded: used.total() > ceiling.amount,
    })
}

pub(crate) fn token(state: &State, token: &Token) -> api::Token {
    let scope = &token.scope;
    api::Token {
        id: token.number.0,
        name: token.name.as_str().to_owned(),
        role: token.role,
        tenant: text(scope.tenant.and_then(|tenant| state.tenant(tenant)).map(|tenant| &tenant.settings.name)),
        project: text(scope.project.and_then(|project| state.project(project)).map(|project| &project.name)),
        user: text(scope.user.and_then(|user| state.user(user)).map(|user| &user.name)),
        node: text(scope.node.and_then(|node| state.node(node)).map(|node| &node.name)),
        app_instances: scope.app_instances.iter().map(|app| crate::show_apps::app_name(state, *app)).collect(),
        expires_at: token.expires_at.map(When),
        fingerprint: token.hash[..4].iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// The indexes of the devices in a set.
pub(crate) fn devices(set: u64) -> Vec<u32> {
    (0..64).filter(|device| set >> device & 1 == 1).collect()
}

/// A lease that is not closed, with what the state has; the books have the rest.
pub(crate) fn lease(app: &App, state: &State, lease: &Lease) -> api::Lease {
    let class = state.class(lease.class);
    api::Lease {
        id: lease.number.to_string(),
        uid: app.lease_uid(lease.number),
        gang_id: lease.gang.to_string(),
        allocation_id: lease.of.map(api::AllocationId::from),
        app_instance: state.app_instance_of(lease.number).map(|app| crate::show_apps::app_name(state, app)),
        state: lease_state(lease.phase),
        tenant: tenant_name(state, lease.tenant),
        project: state.project(lease.project).map_or_else(String::new, |project| project.name.as_str().to_owned()),
        user: text(lease.user.and_then(|user| state.user(user)).map(|user| &user.name)),
        workload: text(lease.workload()),
        accounting_tag: text(lease.tag.and_then(|tag| state.tag(tag))),
        class: class.map_or_else(String::new, |class| class.name.as_str().to_owned()),
        quantity: class.map_or_else(String::new, |class| quantity::display(lease.quanta, class)),
        quanta: lease.quanta.0,
        devices: devices(lease.devices),
        node: state.node(lease.node).map_or_else(String::new, |node| node.name.as_str().to_owned()),
        pool: state.pool(lease.pool).map_or_else(String::new, |pool| pool.name.as_str().to_owned()),
        priority: lease.priority,
        labels: BTreeMap::new(),
        sensitive: lease.sensitive,
        over_soft: lease.over_soft,
        correlation_id: Some(lease.correlation().id(&app.genesis).to_string()),
        sequence: None,
        granted_at: When(lease.granted_at),
        expires_at: When(lease.expires_at),
        grace_ends_at: (lease.phase == Phase::Revoking).then_some(When(lease.limit_at)),
        ended_at: (!lease.phase.is_held()).then_some(When(lease.ended_at)),
        end: None,
        revocation: None,
        fenced_at: None,
        closed_at: None,
    }
}

/// The problem if an object was deleted by another request right after it was changed.
pub(crate) fn gone_already(what: &str) -> leasehold_api::Problem {
    codes::NOT_FOUND.problem(format!("The {what} was changed, but another request deleted it immediately afterwards."))
}
