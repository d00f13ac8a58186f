//! The engine's state as the oracle's summary.

use leasehold_engine::{
    Allocation, AppInstance, AppType, Attachment, Custody, Entitlement, Lease, Phase, State, Unit, UnitPrice,
};
use leasehold_model::app::FIRST_SITE_UNIT;
use leasehold_model::body::{
    AppInstancePut, AppTypePut, AttachmentMade, CeilingPut, ChargePolicyPut, PoolPut, ProjectPut, RateCardPut,
    SettingsChanged, TenantPut, TokenIssued, UnitPricePut, UsageUnitPut, UserPut,
};
use leasehold_model::{Fraction, Instant, Name, QuotaNo, TenantNo, TenantSettings, UnitNo};
use leasehold_oracle::{
    AllocationLine, CapacityLine, CeilingLine, EntitlementLine, EpisodeLine, LeaseLine, NodeLine, QuotaLine,
    StandingLine, Summary,
};

pub(crate) fn summary(state: &State) -> Summary {
    let s = state.settings();
    let tag = |tag: Option<u32>| tag.and_then(|tag| state.tag(tag)).cloned();
    Summary {
        size: state.size(),
        last_stamp: (state.size() > 0).then(|| state.last_stamp()),
        settings: SettingsChanged {
            ttl_max: s.ttl_max,
            grace_default: s.grace_default,
            teardown_deadline: s.teardown_deadline,
            node_timeout: s.node_timeout,
            idempotency_window: s.idempotency_window,
        },
        sensitive_pool_size: s.sensitive_pool_size,
        tenants: state
            .tenants()
            .map(|t| {
                let put = TenantPut {
                    tenant: t.number,
                    // The tag by its number, which leases inherit.
                    settings: TenantSettings { accounting_tag: tag(t.tag), ..t.settings.clone() },
                };
                (t.number, put)
            })
            .collect(),
        projects: state
            .projects()
            .map(|(project, p)| (project, ProjectPut { project, tenant: p.tenant, name: p.name.clone() }))
            .collect(),
        users: state
            .users()
            .map(|(user, u)| (user, UserPut { user, tenant: u.tenant, name: u.name.clone() }))
            .collect(),
        pools: state
            .pools()
            .map(|(pool, p)| {
                let put = PoolPut {
                    pool,
                    name: p.name.clone(),
                    strategy: p.strategy,
                    ttl_max: p.ttl_max,
                    lifetime_max: p.lifetime_max,
                    grace: p.grace,
                };
                (pool, put)
            })
            .collect(),
        weights: state.pools().filter_map(|(pool, p)| Some((pool, p.weights?))).collect(),
        classes: state.classes().map(|(class, spec)| (class, spec.clone())).collect(),
        nodes: state
            .nodes()
            .map(|n| {
                let line = NodeLine {
                    name: n.name.clone(),
                    pool: n.pool,
                    teardown: n.teardown,
                    drained: n.drained,
                    windows: (n.windows.next, n.windows.open > 0),
                    lost: n.lost,
                    agent: n.agent.map(|agent| (agent.generation, agent.instance)),
                    last_generation: n.last_generation,
                    condition: (n.condition.load, n.condition.errors, n.condition.throttled),
                    custody: custody(n.custody),
                    heat: state.heat_now(n),
                };
                (n.number, line)
            })
            .collect(),
        capacity: state
            .nodes()
            .flat_map(|node| node.classes.iter().map(move |class| (node, class)))
            .map(|(node, class)| {
                let split = node.split(class.class);
                let line = CapacityLine {
                    held: split.held,
                    tearing_down: split.tearing_down,
                    reserved: split.reserved,
                    fenced: split.fenced,
                    offline: split.offline,
                    idle: split.idle,
                    capacity: class.capacity,
                    device_use: class.devices.clone(),
                };
                ((node.number, class.class), line)
            })
            .collect(),
        quotas: state.quotas().map(|q| (q.number, quota_line(state, q.number))).collect(),
        tokens: state
            .tokens()
            .map(|t| {
                let issued = TokenIssued {
                    token: t.number,
                    name: t.name.clone(),
                    hash: t.hash,
                    role: t.role,
                    scope: t.scope.clone(),
                    expires_at: t.expires_at,
                };
                (t.number, issued)
            })
            .collect(),
        rate_cards: state
            .rate_cards()
            .map(|c| {
                let put = RateCardPut { card: c.number, pool: c.pool, from: c.from, prices: c.prices.clone() };
                (c.number, (put, c.set_at))
            })
            .collect(),
        charge_policies: state
            .charge_policies()
            .map(|p| {
                let put = ChargePolicyPut { policy: p.number, from: p.from, charges: p.charges.clone() };
                (p.number, (put, p.set_at))
            })
            .collect(),
        ceilings: state
            .ceilings()
            .map(|c| {
                let (project, app_instance) = (c.scope.project, c.scope.app_instance);
                let put = CeilingPut { project, app_instance, amount: c.amount, currency: c.currency, mode: c.mode };
                let line = CeilingLine { put, since: c.since, spent: c.spent, reserved: c.held().collect() };
                ((project, app_instance), line)
            })
            .collect(),
        leases: state.leases().into_iter().map(|lease| (lease.number, lease_line(state, lease))).collect(),
        allocations: state.allocations_after(None).map(|found| (found.number, allocation_line(found))).collect(),
        standings: state.tenants().map(|tenant| (tenant.number, standing_line(state, tenant.number))).collect(),
        units: state.units().filter(|unit| unit.number >= FIRST_SITE_UNIT).map(unit_line).collect(),
        unit_prices: state.unit_prices().iter().map(|price| (price.number, price_line(price))).collect(),
        app_types: state.app_types().map(|found| (found.number, app_line(found))).collect(),
        app_instances: state.app_instances_after(None).map(|found| (found.number, instance_line(found))).collect(),
        attachments: state.attachments_after(None).map(|found| (found.number, attachment_line(found))).collect(),
        entitlements: state.entitlements().map(|found| (found.of, entitlement_line(found))).collect(),
        sinks: state.sinks().map(|sink| (sink.put.sink, (sink.put.clone(), sink.disabled))).collect(),
        policies: state.app_policies().map(|put| (put.of, put.clone())).collect(),
        sharing: state.sharing_policies().map(|put| (put.of, put.clone())).collect(),
        shares_due: state.shares_due().map(|due| (due, ())).collect(),
        budgets: state.tenants().map(|tenant| (tenant.number, tenant.budgets.clone())).collect(),
    }
}

fn unit_line(unit: Unit<'_>) -> (UnitNo, UsageUnitPut) {
    let name = Name::new(unit.name).expect("a valid name");
    (unit.number, UsageUnitPut { unit: unit.number, name, measure: unit.measure })
}

fn price_line(price: &UnitPrice) -> UnitPricePut {
    UnitPricePut {
        price_no: price.number,
        unit: price.unit,
        app_type: price.app_type,
        currency: price.currency,
        price: price.price,
        from: price.from,
    }
}

fn app_line(found: &AppType) -> AppTypePut {
    let AppType { number, slug, origin, units } = found.clone();
    AppTypePut { app_type: number, slug, origin, units }
}

fn instance_line(found: &AppInstance) -> (TenantNo, AppInstancePut) {
    let put = AppInstancePut {
        app_instance: found.number,
        project: found.project,
        name: found.name.clone(),
        app_type: found.app_type,
        mode: found.mode,
        scope: found.scope,
        backend: found.backend,
    };
    (found.tenant, put)
}

fn attachment_line(found: &Attachment) -> (TenantNo, AttachmentMade, Instant) {
    let Attachment { number, tenant, app_instance, source_project, allocation, made_at } = *found;
    (tenant, AttachmentMade { attachment: number, app_instance, source_project, allocation }, made_at)
}

fn entitlement_line(found: &Entitlement) -> EntitlementLine {
    // A month whose usage was superseded by none may still be listed.
    let months = found.months().filter(|(_, of)| of.used.0 > 0 || of.warned);
    let months = months.map(|(month, of)| (month, (of.used, of.warned))).collect();
    EntitlementLine { tenant: found.tenant, soft: found.soft, hard: found.hard, months }
}

fn custody(custody: Custody) -> leasehold_oracle::Custody {
    use leasehold_oracle::Custody as Told;
    match custody {
        Custody::Open => Told::Open,
        Custody::Claimed(claim) => {
            let leasehold_engine::Claim { by, project, since, sequence, until, .. } = claim;
            Told::Claimed { tenant: by.tenant, project, user: by.user, since, sequence, until }
        }
        Custody::Wiping { since, limit_at, claim } => {
            let ended = (claim.by.tenant, claim.project, claim.by.user, claim.sequence);
            Told::Wiping { since, limit_at, ended }
        }
        Custody::Quarantined { cause, since } => Told::Quarantined { cause, since },
    }
}

fn quota_line(state: &State, number: QuotaNo) -> QuotaLine {
    let quota = state.quota(number).expect("a listed quota");
    let used = quota.used_lines().map(|(user, app, node, used)| ((user, app, node), used)).collect();
    let episode = quota.episode.map(|e| EpisodeLine { started_at: e.started_at, below_since: e.below_since });
    let until = quota.temporary.map(|temporary| temporary.until);
    let (sum, parts) = quota.overage(state.last_stamp()).unwrap_or((0, 1));
    let overage = Fraction::new(sum, parts);
    QuotaLine { limit: quota.limit, base: quota.base(), until, overage, used, episode }
}

fn standing_line(state: &State, tenant: TenantNo) -> StandingLine {
    let now = state.last_stamp();
    let days = state.tenant(tenant).map_or(1, |tenant| tenant.budgets.period_days);
    let used = state.spending(tenant, now, days).expect("a listed tenant");
    let standing = state.standing(tenant, now);
    StandingLine {
        factor: u128::from(standing.factor),
        deficit: i128::from(standing.deficit),
        gpu_time: used.gpu,
        node_time: used.node,
        all_gpu_time: used.all_gpu,
    }
}

fn allocation_line(found: &Allocation) -> AllocationLine {
    AllocationLine {
        tenant: found.tenant,
        project: found.project,
        state: found.state,
        submitted_at: found.submitted_at,
        attempts: found.attempt,
        held: if found.state.is_placed() { found.held as usize } else { 0 },
        bound: found.bound(),
        checkpointed: found.checkpointed,
        ends: found.ends,
        kept_on: found.reserved_on().collect(),
    }
}

fn lease_line(state: &State, lease: &Lease) -> LeaseLine {
    let limited = lease.phase == Phase::Revoking || lease.phase.is_tearing_down();
    LeaseLine {
        tenant: lease.tenant,
        project: lease.project,
        node: lease.node,
        class: lease.class,
        pool: lease.pool,
        quanta: lease.quanta.0,
        devices: lease.devices,
        priority: lease.priority,
        tag: lease.tag.and_then(|tag| state.tag(tag)).cloned(),
        granted_at: lease.granted_at,
        expires_at: lease.expires_at,
        phase: lease.phase.word(),
        ended_at: (!lease.phase.is_held()).then_some(lease.ended_at),
        limit_at: limited.then_some(lease.limit_at),
    }
}
