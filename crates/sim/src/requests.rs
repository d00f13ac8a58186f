//! Random requests from the seed: mostly valid, sometimes invalid.

use crate::{apps, ceilings, claims, gangs, headroom, losses, maintenance, wishes};
use leasehold_engine::command::{
    ConfirmTeardown, LoseNode, NoteEmptyNode, Percent, PutClass, PutNode, PutPool, PutProject, PutQuota, PutTenant,
    PutUser, ReleaseOne, RenewOne, RequestLease, Revoke, SetPoolAccess,
};
use leasehold_engine::{Command, Request, Settings, State};
use leasehold_model::body::{PerPriority, PoolQueue};
use leasehold_model::{
    Activity, AppInstanceNo, ClassNo, ClassSpec, FurtherScope, HolderScope, Identity, Instant, LeaseNo, LimitKind,
    Measure, Name, NodeNo, NodeScope, PoolAccess, PoolNo, Priority, Profile, ProjectNo, Quanta, QuotaNo, QuotaScope,
    Reason, ResourceKind, Sensitivity, Span, Strategy, TeardownMode, TenantNo, TenantSettings, UserNo, Weights,
};
use leasehold_oracle::Dice;
use leasehold_oracle::RequestFacts;
use smallvec::SmallVec;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("the simulator's names are valid")
}

/// The commands that create a small cluster.
pub(crate) fn world(dice: &mut Dice) -> Vec<Command> {
    let mut commands = vec![Command::ChangeSettings(settings(dice))];
    for (class, kind, per_unit) in
        [("gpu", ResourceKind::Gpu, 7), ("cpu", ResourceKind::Cpu, 1000), ("mem", ResourceKind::Mem, 4)]
    {
        let spec = ClassSpec { name: name(class), kind, tier: None, quanta_per_unit: per_unit, premium: false };
        commands.push(Command::PutClass(PutClass { class: None, spec }));
    }
    for pool in 0..2 {
        commands.push(Command::PutPool(pool_named(&format!("pool-{pool}"), None, dice)));
    }
    for node in 0..2 + dice.below(4) {
        commands.push(Command::PutNode(node_named(&format!("node-{node}"), None, dice)));
    }
    for tenant in 0..2 + dice.below(3) {
        commands.push(Command::PutTenant(tenant_named(&format!("tenant-{tenant}"), None, dice)));
    }
    for project in 0..4 + dice.below(4) {
        let tenant = TenantNo(small(dice, 3));
        commands.push(Command::PutProject(PutProject { project: None, tenant, name: name(&format!("p{project}")) }));
    }
    for (user, tenant) in [("ada", 0), ("bob", 0), ("cyd", 1)] {
        commands.push(Command::PutUser(PutUser { user: None, tenant: TenantNo(tenant), name: name(user) }));
    }
    for _ in 0..dice.below(6) {
        commands.push(quota(None, Instant(0), dice));
    }
    commands
}

pub(crate) fn small(dice: &mut Dice, n: u64) -> u32 {
    u32::try_from(dice.below(n)).expect("small")
}

fn settings(dice: &mut Dice) -> Settings {
    // Sometimes long enough to use up a budget.
    let longest = if dice.one_in(3) { 20_000 } else { 600 };
    Settings {
        ttl_max: Span::from_secs(60 + dice.below(longest)),
        grace_default: Span::from_secs(dice.below(40)),
        teardown_deadline: Span::from_secs(1 + dice.below(60)),
        node_timeout: Span::from_secs(1 + dice.below(60)),
        idempotency_window: Span::from_secs(600 + dice.below(1200)),
        heat_half_life: Span::from_millis(1000 + dice.below(600_000)),
        sensitive_pool_size: dice.one_in(3).then(|| dice.below(4)),
        // Mostly so short that heads are protected.
        head_wait_max: Span::from_secs(if dice.one_in(4) { 3600 } else { 1 + dice.below(120) }),
    }
}

fn some_span(dice: &mut Dice, secs: u64) -> Option<Span> {
    dice.one_in(4).then(|| Span::from_secs(5 + dice.below(secs)))
}

fn pool_named(text: &str, pool: Option<PoolNo>, dice: &mut Dice) -> PutPool {
    let mut per = || PerPriority([some_span(dice, 300), some_span(dice, 300), some_span(dice, 300)]);
    let (ttl_max, lifetime_max) = (per(), per());
    let strategy = if dice.one_in(2) { Strategy::Spread } else { Strategy::BinPack };
    let grace = some_span(dice, 30);
    let weights = dice.one_in(2).then(|| dice.one_in(2).then(|| weights(dice)));
    let queue = dice.one_in(2).then(|| PoolQueue {
        min_runtime_before_eviction: if dice.one_in(2) { Span::ZERO } else { Span::from_secs(dice.below(60)) },
        requeue_limit: u32::try_from(dice.below(5)).expect("small"),
    });
    PutPool { pool, name: name(text), strategy, ttl_max, lifetime_max, grace, weights, queue }
}

/// Four weights that add up to one, sometimes not exactly.
fn weights(dice: &mut Dice) -> Weights {
    let mut cuts = [0; 3].map(|_| u16::try_from(dice.below(1001)).expect("small"));
    cuts.sort_unstable();
    let [a, b, c] = cuts;
    let off = u16::from(dice.one_in(12));
    Weights { pressure: a, fit: b - a, locality: c - b, fragmentation: 1000 - c + off }
}

/// One of a few labels, so that requests and nodes match.
fn labels(dice: &mut Dice, rarely: u64) -> Vec<(Name, Name)> {
    let mut labels = Vec::new();
    for key in ["disk", "os"] {
        if dice.one_in(rarely) {
            let value = if dice.one_in(2) { "a" } else { "b" };
            labels.push((name(key), name(value)));
        }
    }
    labels
}

fn profile(dice: &mut Dice) -> Profile {
    Profile([(); 5].map(|()| *dice.pick(Sensitivity::ALL)))
}

fn node_named(text: &str, node: Option<NodeNo>, dice: &mut Dice) -> PutNode {
    let mut capacity = vec![(ClassNo(0), Quanta(7 * (1 + dice.below(4)))), (ClassNo(1), Quanta(1 + dice.below(8000)))];
    if dice.one_in(2) {
        capacity.push((ClassNo(2), Quanta(1 + dice.below(64))));
    }
    PutNode {
        node,
        name: name(text),
        pool: PoolNo(small(dice, 2)),
        rack: (!dice.one_in(4)).then(|| name(if dice.one_in(2) { "r1" } else { "r2" })),
        zone: dice.one_in(2).then(|| name(&format!("z{}", dice.below(2)))),
        labels: labels(dice, 2),
        teardown: if dice.one_in(2) { TeardownMode::Immediate } else { TeardownMode::Confirmed },
        capacity,
    }
}

fn tenant_named(text: &str, tenant: Option<TenantNo>, dice: &mut Dice) -> PutTenant {
    PutTenant {
        tenant,
        settings: TenantSettings {
            accounting_tag: dice.one_in(2).then(|| name(&format!("cc-{}", dice.below(3)))),
            max_priority: *dice.pick(Priority::ALL),
            max_evicted_quanta_per_hour: dice.one_in(4).then(|| dice.below(30)),
            ..TenantSettings::named(name(text))
        },
    }
}

fn quota(quota: Option<QuotaNo>, now: Instant, dice: &mut Dice) -> Command {
    let measure = *dice.pick(Measure::ALL);
    let class =
        (measure == Measure::Quanta || dice.one_in(3)).then(|| ClassNo(u16::try_from(dice.below(3)).expect("small")));
    let limit = match (measure, class) {
        (Measure::Quanta, Some(ClassNo(1))) => dice.below(12_000),
        (Measure::Quanta, _) => dice.below(40),
        _ => dice.below(8),
    };
    let node = match dice.below(4) {
        0 => NodeScope::One(NodeNo(small(dice, 3))),
        1 if measure != Measure::Nodes => NodeScope::Each,
        _ => NodeScope::All,
    };
    let limit = match dice.below(3) {
        0 => LimitKind::Hard { limit },
        1 => LimitKind::Soft { limit },
        _ => {
            let burst_ttl = Span::from_secs(dice.below(120));
            LimitKind::Burst { limit, burst_limit: (limit + dice.below(20)).saturating_sub(1), burst_ttl }
        }
    };
    let scope = QuotaScope {
        tenant: TenantNo(small(dice, 4)),
        project: dice.one_in(4).then(|| ProjectNo(small(dice, 6))),
        class,
        pool: dice.one_in(4).then(|| PoolNo(small(dice, 2))),
        node,
        priority: dice.one_in(5).then(|| *dice.pick(Priority::ALL)),
        further: FurtherScope::NONE,
    };
    let mut put = PutQuota::new(quota, scope, measure, limit);
    // From a die of their own: another draw would change what every kept seed does.
    let mut own = Dice::new(put.limit.limit() ^ now.0 << 8);
    if own.one_in(3) {
        narrow(&mut put, &mut own);
    }
    if own.one_in(4) {
        temporary(&mut put, now, &mut own);
    }
    let suits = put.limit.word() != "soft" && put.measure != Measure::Nodes && put.scope.node != NodeScope::Each;
    if suits && own.one_in(2) || own.one_in(40) {
        put.evict_own_lower = Some(!own.one_in(8));
    }
    Command::PutQuota(put)
}

/// Lets a quota count by kind, user, app instance, or a priority and those above it.
fn narrow(put: &mut PutQuota, dice: &mut Dice) {
    let further = &mut put.scope.further;
    if dice.one_in(2) && put.measure == Measure::Quanta {
        further.kind = Some(*dice.pick(&[ResourceKind::Gpu, ResourceKind::Gpu, ResourceKind::Cpu, ResourceKind::Mem]));
        put.scope.class = put.scope.class.filter(|_| dice.one_in(12));
    }
    further.user = match dice.below(5) {
        0 => Some(HolderScope::One(UserNo(small(dice, 3)))),
        1 => Some(HolderScope::Each),
        _ => None,
    };
    further.app_instance = match dice.below(6) {
        0 => Some(HolderScope::One(AppInstanceNo(dice.below(3)))),
        1 => Some(HolderScope::Each),
        _ => None,
    };
    if dice.one_in(3) {
        put.scope.priority = (!dice.one_in(8)).then(|| *dice.pick(Priority::ALL));
        further.and_above = true;
    }
}

/// Makes a limit temporary, or a percentage of the base limit.
fn temporary(put: &mut PutQuota, now: Instant, dice: &mut Dice) {
    if dice.one_in(2) {
        put.until = Some(Instant((now.0 + dice.below(180_000_000_000)).saturating_sub(dice.below(2_000_000_000))));
    }
    if dice.one_in(2) {
        let share = |dice: &mut Dice| 50 + dice.below(120);
        put.limit = match put.limit {
            LimitKind::Hard { .. } => LimitKind::Hard { limit: share(dice) },
            LimitKind::Soft { .. } => LimitKind::Soft { limit: share(dice) },
            LimitKind::Burst { burst_ttl, .. } => {
                LimitKind::Burst { limit: share(dice), burst_limit: share(dice), burst_ttl }
            }
        };
        put.percent = Some(Percent { limit: true, burst_limit: true });
    }
}

/// A request, and for lease requests the facts for the oracle.
pub(crate) fn any(state: &State, now: Instant, dice: &mut Dice) -> (Identity, Command, Option<RequestFacts>) {
    let (mut identity, mut command, mut facts) = if dice.one_in(6) {
        let (identity, command) = wishes::any(state, now, dice);
        (identity, command, None)
    } else if dice.one_in(10) {
        let (identity, command) = claims::any(state, dice);
        (identity, command, None)
    } else if dice.one_in(3) {
        let (identity, command) = gangs::any(state, now, dice);
        (identity, command, None)
    } else {
        about_leases(state, now, dice)
    };
    let instead = maintenance::instead(state, now).or_else(|| losses::instead(state, now));
    if let Some(command) = instead.or_else(|| ceilings::instead(state, now)) {
        return (Identity::default(), command, None);
    }
    if let Some((identity, command)) = headroom::instead(state, now) {
        return (identity, command, None);
    }
    apps::adapt(state, now, &mut identity, &mut command, &mut facts);
    identity.token = wishes::some_token(state, dice);
    (identity, command, facts)
}

fn about_leases(state: &State, now: Instant, dice: &mut Dice) -> (Identity, Command, Option<RequestFacts>) {
    let leases: Vec<LeaseNo> = state.leases().iter().map(|lease| lease.number).collect();
    let some_lease = |dice: &mut Dice| {
        if leases.is_empty() || dice.one_in(20) { LeaseNo(dice.below(60)) } else { *dice.pick(&leases) }
    };
    let some_leases = |dice: &mut Dice| {
        let n = if dice.one_in(3) { 1 + dice.below(5) } else { 1 };
        (0..n).map(|_| some_lease(dice)).collect::<SmallVec<[LeaseNo; 2]>>()
    };
    let who = |lease: LeaseNo, dice: &mut Dice| match state.lease(lease) {
        Some(lease) if !dice.one_in(8) => Identity {
            tenant: Some(lease.tenant),
            project: dice.one_in(2).then_some(lease.project),
            ..Identity::default()
        },
        _ if dice.one_in(2) => Identity::default(),
        _ => Identity { tenant: Some(TenantNo(small(dice, 4))), ..Identity::default() },
    };
    let operator = Identity::default();
    match dice.below(100) {
        0..35 => lease_request(state, dice),
        35..50 => {
            let leases = some_leases(dice);
            let identity = who(leases[0], dice);
            let one = |lease: LeaseNo, dice: &mut Dice| RenewOne {
                lease,
                ttl: Span::from_secs(dice.below(200)),
                activity: activity(state, lease, now, dice),
            };
            let renewals = leases.iter().map(|lease| one(*lease, dice)).collect();
            (identity, Command::Renew(renewals), None)
        }
        50..62 => {
            let leases = some_leases(dice);
            let identity = who(leases[0], dice);
            let one =
                |lease: LeaseNo, dice: &mut Dice| ReleaseOne { lease, activity: activity(state, lease, now, dice) };
            let releases = leases.iter().map(|lease| one(*lease, dice)).collect();
            (identity, Command::Release(releases), None)
        }
        62..67 => {
            let grace = dice.one_in(2).then(|| Span::from_secs(dice.below(30)));
            let reason = *dice.pick(&[Reason::Operator, Reason::Budget, Reason::Policy, Reason::DuplicateHolder]);
            (operator, Command::Revoke(Revoke { leases: some_leases(dice), reason, grace }), None)
        }
        67..71 => {
            let leases = some_leases(dice);
            (who(leases[0], dice), Command::Ready(leases), None)
        }
        71..83 => {
            let leases = some_leases(dice);
            let own = state.lease(leases[0]).map(|lease| lease.node);
            let node = own.filter(|_| !dice.one_in(10)).unwrap_or(NodeNo(small(dice, 5)));
            let generation = wishes::some_generation(state, node, dice).filter(|_| dice.one_in(2));
            (operator, Command::ConfirmTeardown(ConfirmTeardown { node, leases, generation }), None)
        }
        83..86 => (operator, Command::Unfence(some_leases(dice).into()), None),
        86 => {
            let lease = some_lease(dice);
            let report = ReleaseOne { lease, activity: activity(state, lease, now, dice) };
            (who(lease, dice), Command::ReportActivity(SmallVec::from_buf([report])), None)
        }
        87..89 => (operator, quota(None, now, dice), None),
        89..92 => (operator, changed_quota(state, now, dice), None),
        _ => (operator, rare(state, now, dice), None),
    }
}

fn activity(state: &State, lease: LeaseNo, now: Instant, dice: &mut Dice) -> Option<Activity> {
    if !dice.one_in(3) {
        return None;
    }
    let lease = state.lease(lease)?;
    let unreported = now.since(lease.reported_to);
    let covered = Span(if unreported.0 == 0 { 0 } else { dice.below(unreported.0 + unreported.0 / 8 + 1) });
    let part = |of: u64, dice: &mut Dice| if of == 0 { 0 } else { dice.below(of + of / 8 + 1) };
    Some(Activity {
        covered,
        busy: u128::from(lease.quanta.0) * u128::from(part(covered.0, dice)),
        active: Span(part(covered.0, dice)),
        waiting: [Span::ZERO, Span(part(covered.0, dice)), Span::ZERO, Span::ZERO, Span::ZERO],
    })
}

pub(crate) fn lease_request(state: &State, dice: &mut Dice) -> (Identity, Command, Option<RequestFacts>) {
    let projects: Vec<(ProjectNo, TenantNo)> = state.projects().map(|(no, p)| (no, p.tenant)).collect();
    let (project, tenant) = match projects.len() {
        0 => (ProjectNo(0), TenantNo(0)),
        _ if dice.one_in(30) => (ProjectNo(small(dice, 8)), TenantNo(small(dice, 5))),
        n => projects[dice.index(n)],
    };
    let sensitive = if dice.one_in(4) { claims::claimer(state, dice) } else { None };
    let (tenant, project, user) = match sensitive {
        Some((tenant, project, user)) => (tenant, project, (!dice.one_in(20)).then_some(user)),
        None => (tenant, project, dice.one_in(10).then(|| UserNo(small(dice, 3)))),
    };
    let mut asks: Vec<(ClassNo, u64)> = Vec::new();
    for class in 0..3u16 {
        if dice.one_in(if asks.is_empty() { 2 } else { 4 }) {
            let quanta = match class {
                0 if dice.one_in(3) => 7 * (1 + dice.below(3)),
                0 => dice.below(9),
                1 => dice.below(3000),
                _ => dice.below(20),
            };
            asks.push((ClassNo(class), quanta));
        }
    }
    if asks.is_empty() {
        asks.push((ClassNo(u16::try_from(dice.below(4)).expect("small")), 1 + dice.below(7)));
    }
    if dice.one_in(3) {
        asks.reverse();
    }
    let priority = if dice.one_in(2) { Priority::Scavenger } else { *dice.pick(Priority::ALL) };
    let facts = RequestFacts {
        tenant,
        project,
        user,
        sensitive: if dice.one_in(50) { sensitive.is_none() } else { sensitive.is_some() },
        pool: dice.one_in(2).then(|| PoolNo(small(dice, 2))),
        node: dice.one_in(8).then(|| NodeNo(small(dice, 5))),
        asks,
        ttl: Span(if dice.one_in(8) {
            Span::from_secs(dice.below(15_000)).0
        } else if dice.one_in(4) {
            dice.below(90_000_000_000)
        } else {
            Span::from_secs(dice.below(120)).0
        }),
        priority,
        labels: labels(dice, 8),
        profile: dice.one_in(3).then(|| profile(dice)),
        app_instance: ceilings::some_app(dice),
        attachment: None,
        source_project: None,
    };
    let mut request = RequestLease::of(ClassNo(0), Quanta(1), facts.ttl);
    request.asks = facts.asks.iter().map(|(class, quanta)| (*class, Quanta(*quanta))).collect();
    request.pool = facts.pool;
    request.node = facts.node;
    request.priority = priority;
    request.labels = facts.labels.clone();
    request.sensitive = facts.sensitive;
    request.profile = facts.profile;
    request.app_instance = facts.app_instance;
    request.correlation = dice.one_in(4).then(|| u128::from(dice.draw()));
    let identity = Identity {
        tenant: Some(tenant),
        project: Some(project),
        user,
        workload: dice.one_in(6).then(|| name("train")),
        ..Identity::default()
    };
    (identity, Command::Request(request), Some(facts))
}

/// An existing quota with another limit.
fn changed_quota(state: &State, now: Instant, dice: &mut Dice) -> Command {
    let quotas: Vec<_> = state.quotas().collect();
    if quotas.is_empty() {
        return quota(None, now, dice);
    }
    let known = quotas[dice.index(quotas.len())];
    let Command::PutQuota(mut put) = quota(Some(known.number), now, dice) else { unreachable!("it makes quotas") };
    put.scope = known.scope.clone();
    put.measure = known.measure;
    Command::PutQuota(put)
}

fn rare(state: &State, now: Instant, dice: &mut Dice) -> Command {
    let node = NodeNo(small(dice, 5));
    match dice.below(19) {
        18 => {
            let since = Instant(now.0.saturating_sub(dice.below(3) * 1_000_000_000));
            Command::NoteEmptyNode(NoteEmptyNode { node, since })
        }
        0 => Command::DrainNode(node.into()),
        1 | 2 => Command::ResumeNode(node.into()),
        3 => Command::LoseNode(LoseNode { node, last_seen: Instant(now.0.saturating_sub(dice.below(20_000_000_000))) }),
        4 | 5 => Command::ReturnNode(node),
        6 => {
            let old = state.node(node).map(|n| n.name.to_string()).unwrap_or_else(|| "node-x".to_owned());
            Command::PutNode(node_named(&old, Some(node), dice))
        }
        7 => Command::DeleteNode(node),
        8 => Command::PutNode(node_named(&format!("n{}", dice.below(9)), None, dice)),
        9 => {
            let tenant = TenantNo(small(dice, 4));
            let old = state.tenant(tenant).map(|t| t.settings.name.to_string()).unwrap_or_else(|| "t".to_owned());
            Command::PutTenant(tenant_named(&old, Some(tenant), dice))
        }
        10 => Command::DeleteTenant(TenantNo(small(dice, 5))),
        11 => Command::DeleteProject(ProjectNo(small(dice, 8))),
        12 => Command::DeleteQuota(QuotaNo(small(dice, 8))),
        13 => Command::ChangeSettings(settings(dice)),
        14 => {
            let project = format!("q{}", dice.below(6));
            Command::PutProject(PutProject { project: None, tenant: TenantNo(small(dice, 4)), name: name(&project) })
        }
        15 => Command::DeleteUser(UserNo(small(dice, 5))),
        17 => {
            let access = *dice.pick(PoolAccess::ALL);
            let (project, pool) = (ProjectNo(small(dice, 6)), PoolNo(small(dice, 2)));
            Command::SetPoolAccess(SetPoolAccess { project, pool, access })
        }
        16 => Command::PutUser(PutUser { user: None, tenant: TenantNo(small(dice, 3)), name: name("dan") }),
        _ => {
            let pool = PoolNo(small(dice, 2));
            let old = state.pool(pool).map(|p| p.name.to_string()).unwrap_or_else(|| "pool-x".to_owned());
            Command::PutPool(pool_named(&old, Some(pool), dice))
        }
    }
}

/// Adds an idempotency key to a request; `None` if the command is too long for one.
pub(crate) fn keyed(identity: Identity, command: Command, key: &[u8]) -> Option<Request> {
    Request::once(identity, command, key).ok()
}
