//! Random histories: a small cluster, a few tenants, and whatever anyone might ask of it.

use crate::drawn;
use crate::support::{World, quota_scope};
use leasehold_engine::command::{
    ClaimNodes, CompleteAllocation, ConfirmTeardown, DeleteCeiling, IssueToken, LoseNode, Nothing, PutCeiling,
    PutChargePolicy, PutClass, PutNode, PutPool, PutProject, PutQuota, PutRateCard, PutTenant, PutUser, RegisterAgent,
    ReleaseOne, RenewOne, ReportCheckpoint, ReportCondition, ReportWipe, RequestLease, Revoke, SubmitAllocation,
    UpdateTenant,
};
use leasehold_engine::{Command, Engine, Node, Request, Settings, State};
use leasehold_model::body::PerPriority;
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Prices};
use leasehold_model::{
    Activity, AllocationNo, AllocationSpec, Amount, CeilingMode, ClassNo, ClassSpec, Domain, Identity, Instant,
    LeaseNo, Level, LimitKind, Name, NodeNo, PoolNo, Priority, ProjectNo, Quanta, QuotaNo, Reason, ResourceKind, Role,
    Span, Strategy as Placement, TeardownMode, TenantNo, TenantSettings, TenantSettingsChange, TokenNo, TokenScope,
    UserNo,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// How time passes before a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Nanoseconds(u64),
    Seconds(u64),
    /// Until the next thing may come due, and this many nanoseconds.
    Due(u64),
}

/// One step of a history. Numbers are taken modulo what there is when the step comes.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Grant {
        class: u16,
        quanta: u64,
        second: Option<(u16, u64)>,
        ttl: u64,
        priority: u8,
        pool: Option<u32>,
        node: Option<u32>,
    },
    Renew {
        leases: Vec<u8>,
        ttl: u64,
        report: Option<u64>,
    },
    Release {
        leases: Vec<u8>,
        report: Option<u64>,
    },
    Report {
        leases: Vec<u8>,
        report: Option<u64>,
    },
    Revoke {
        leases: Vec<u8>,
        grace: Option<u64>,
    },
    Ready(Vec<u8>),
    Confirm {
        node: u32,
        leases: Vec<u8>,
        generation: Option<u64>,
    },
    Unfence(Vec<u8>),
    Node {
        node: u32,
        what: u8,
    },
    PutNode {
        node: u32,
        pool: u32,
        immediate: bool,
        gpus: u64,
        cores: u64,
    },
    PutPool {
        pool: u32,
        ttl: Option<u64>,
        lifetime: Option<u64>,
        grace: Option<u64>,
    },
    PutTenant {
        tenant: u32,
        max: u8,
        tag: u8,
    },
    PutClass {
        class: u16,
        per: u64,
    },
    PutProject(u32),
    PutUser(u32),
    Delete {
        what: u8,
        which: u32,
    },
    PutQuota {
        which: Option<u32>,
        tenant: u32,
        scope: u8,
        measure: u8,
        limit: u64,
        kind: u8,
    },
    Settings {
        teardown: u64,
        window: u64,
    },
    Issue {
        role: u8,
        scope: u8,
        hash: u8,
        expires: Option<u64>,
    },
    Withdraw(u32),
    Agent {
        node: u32,
        what: u8,
        generation: u64,
        bits: u8,
    },
    Update {
        tenant: u32,
        bits: u8,
        limit: u64,
    },
    Card {
        which: Option<u32>,
        pool: Option<u32>,
        from: Option<u64>,
        price: u64,
    },
    Policy {
        which: Option<u32>,
        from: Option<u64>,
        kind: u8,
    },
    Ceiling {
        project: u32,
        amount: u64,
        /// From 6 on: how the project is admitted to a pool.
        kind: u8,
    },
    Submit {
        class: u16,
        quanta: u64,
        replicas: u32,
        priority: u8,
        bits: u8,
        walltime: Option<u64>,
    },
    Allocation {
        which: u8,
        what: u8,
        figure: u64,
    },
    /// Of nodes that mostly are in that state.
    Custody {
        what: u8,
        nodes: Vec<u8>,
        bits: u8,
    },
    Heartbeat,
    Started,
}

impl Action {
    fn is_an_operators(&self) -> bool {
        !matches!(
            self,
            Self::Grant { .. }
                | Self::Renew { .. }
                | Self::Release { .. }
                | Self::Report { .. }
                | Self::Revoke { .. }
                | Self::Ready(_)
                | Self::Submit { .. }
                | Self::Allocation { .. }
                | Self::Custody { what: 0..8, .. }
        )
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    wait: Wait,
    /// The tenant that asks; none is an operator.
    who: Option<u32>,
    key: Option<u8>,
    /// Asked by a user: sensitive, where it asks for capacity.
    as_user: bool,
    action: Action,
}

fn wait() -> impl Strategy<Value = Wait> {
    prop_oneof![
        3 => Just(Wait::Nanoseconds(0)),
        1 => (0..3u64).prop_map(Wait::Nanoseconds),
        4 => (1..40u64).prop_map(Wait::Seconds),
        1 => (1..2000u64).prop_map(Wait::Seconds),
        3 => (0..2u64).prop_map(Wait::Due),
    ]
}

fn leases() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 1..2), 1 => vec(any::<u8>(), 0..6)]
}

fn action() -> impl Strategy<Value = Action> {
    let maybe = |range: std::ops::Range<u64>| proptest::option::of(range);
    prop_oneof![
        30 => (0..4u16, 1..20u64, proptest::option::weighted(0.2, (0..3u16, 1..20u64)), 0..300u64, 0..12u8,
              proptest::option::weighted(0.3, 0..3u32), proptest::option::weighted(0.2, 0..6u32))
            .prop_map(|(class, quanta, second, ttl, priority, pool, node)| Action::Grant {
                class, quanta, second, ttl, priority, pool, node }),
        10 => (leases(), 0..300u64, maybe(0..60)).prop_map(|(leases, ttl, report)| Action::Renew { leases, ttl, report }),
        10 => (leases(), maybe(0..60)).prop_map(|(leases, report)| Action::Release { leases, report }),
        3 => (leases(), maybe(0..60)).prop_map(|(leases, report)| Action::Report { leases, report }),
        8 => (leases(), maybe(0..100)).prop_map(|(leases, grace)| Action::Revoke { leases, grace }),
        6 => leases().prop_map(Action::Ready),
        12 => (0..6u32, leases(), proptest::option::weighted(0.2, 1..4u64)).prop_map(|(node, leases, generation)|
            Action::Confirm { node, leases, generation }),
        6 => leases().prop_map(Action::Unfence),
        8 => (0..6u32, 0..5u8).prop_map(|(node, what)| Action::Node { node, what }),
        5 => (0..7u32, 0..3u32, any::<bool>(), 0..4u64, 0..60u64).prop_map(|(node, pool, immediate, gpus, cores)|
            Action::PutNode { node, pool, immediate, gpus, cores }),
        3 => (0..4u32, maybe(0..400), maybe(0..400), maybe(0..100)).prop_map(|(pool, ttl, lifetime, grace)|
            Action::PutPool { pool, ttl, lifetime, grace }),
        3 => (0..5u32, 0..3u8, 0..4u8).prop_map(|(tenant, max, tag)| Action::PutTenant { tenant, max, tag }),
        1 => (0..5u16, 1..9u64).prop_map(|(class, per)| Action::PutClass { class, per }),
        2 => (0..5u32).prop_map(Action::PutProject),
        2 => (0..3u32).prop_map(Action::PutUser),
        4 => (0..6u8, 0..6u32).prop_map(|(what, which)| Action::Delete { what, which }),
        10 => (proptest::option::of(0..8u32), 0..4u32, any::<u8>(), 0..3u8, 0..40u64, 0..3u8).prop_map(
            |(which, tenant, scope, measure, limit, kind)| Action::PutQuota { which, tenant, scope, measure, limit, kind }),
        1 => (0..100u64, 599..1200u64).prop_map(|(teardown, window)| Action::Settings { teardown, window }),
        5 => (0..7u8, any::<u8>(), 0..20u8, maybe(0..200)).prop_map(|(role, scope, hash, expires)|
            Action::Issue { role, scope, hash, expires }),
        1 => (0..8u32).prop_map(Action::Withdraw),
        5 => (0..6u32, 0..5u8, 1..4u64, any::<u8>()).prop_map(|(node, what, generation, bits)|
            Action::Agent { node, what, generation, bits }),
        4 => (0..4u32, any::<u8>(), 0..9u64).prop_map(|(tenant, bits, limit)| Action::Update { tenant, bits, limit }),
        3 => (proptest::option::weighted(0.3, 0..4u32), proptest::option::of(0..3u32), maybe(0..4000), 0..6u64).prop_map(
            |(which, pool, from, price)| Action::Card { which, pool, from, price }),
        2 => (proptest::option::weighted(0.3, 0..4u32), maybe(0..400), 0..4u8).prop_map(|(which, from, kind)|
            Action::Policy { which, from, kind }),
        7 => (0..5u32, 0..4000u64, 0..9u8).prop_map(|(project, amount, kind)| Action::Ceiling { project, amount, kind }),
        14 => (0..2u16, 1..30u64, 1..4u32, 0..4u8, any::<u8>(), proptest::option::weighted(0.8, 1..300u64)).prop_map(
            |(class, quanta, replicas, priority, bits, walltime)|
                Action::Submit { class, quanta, replicas, priority, bits, walltime }),
        14 => (any::<u8>(), 0..15u8, 0..300u64).prop_map(|(which, what, figure)| Action::Allocation { which, what, figure }),
        13 => (0..13u8, vec(any::<u8>(), 1..3), any::<u8>()).prop_map(|(what, nodes, bits)|
            Action::Custody { what, nodes, bits }),
        1 => Just(Action::Heartbeat),
        2 => Just(Action::Started),
    ]
}

pub(crate) fn history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let who = prop_oneof![5 => (0..3u32).prop_map(Some), 1 => Just(Some(9)), 3 => Just(None)];
    let step = (wait(), who, proptest::option::weighted(0.2, 0..12u8), proptest::bool::weighted(0.1), action())
        .prop_map(|(wait, who, key, as_user, action)| Step { wait, who, key, as_user, action });
    vec(step, 1..steps)
}

fn name(text: impl Into<String>) -> Name {
    Name::new(&text.into()).expect("a name")
}
fn span(secs: u64) -> Span {
    Span::from_secs(secs)
}
fn priority(roll: u8) -> Priority {
    // Mostly standard, which nobody is refused.
    Priority::ALL.get(usize::from(roll)).copied().unwrap_or(Priority::Standard)
}

/// The cluster that histories begin with.
pub(crate) fn small_cluster() -> World {
    let mut world = World::new();
    let mut put = |command| {
        let (answer, _) = world.step(Instant(0), &Request::new(Identity::default(), command));
        answer.expect("the stage stands");
    };
    for (label, kind, quanta_per_unit) in
        [("gpu", ResourceKind::Gpu, 7), ("core", ResourceKind::Cpu, 1), ("mem", ResourceKind::Mem, 4)]
    {
        let spec = ClassSpec { name: name(label), kind, tier: None, quanta_per_unit, premium: false };
        put(Command::PutClass(PutClass { class: None, spec }));
    }
    for pool in 0..2 {
        put(put_pool(pool, None, None, None, None));
    }
    for node in 0..4 {
        put(put_node(None, node, node % 2, node == 1, 2, 40));
    }
    for tenant in 0..3 {
        put(put_tenant(None, tenant, Priority::Guaranteed, 0));
        put(Command::PutProject(PutProject { project: None, tenant: TenantNo(tenant), name: name("main") }));
        put(Command::PutUser(PutUser { user: None, tenant: TenantNo(tenant), name: name("ada") }));
    }
    put(Command::ChangeSettings(Settings { idempotency_window: span(600), ..Settings::default() }));
    // Tenant 1 asks under the second of these.
    for hash in [250, 251] {
        let (role, scope) = (Role::Operator, TokenScope::default());
        put(Command::IssueToken(IssueToken { name: name("root"), hash: [hash; 32], role, scope, expires_at: None }));
    }
    world
}

fn put_pool(label: u32, pool: Option<u32>, ttl: Option<u64>, lifetime: Option<u64>, grace: Option<u64>) -> Command {
    let all = |secs: Option<u64>| PerPriority([secs.map(span), None, secs.map(|secs| span(secs * 2))]);
    Command::PutPool(PutPool {
        pool: pool.map(PoolNo),
        name: name(format!("pool{label}")),
        strategy: Placement::Spread,
        ttl_max: all(ttl),
        lifetime_max: all(lifetime),
        grace: grace.map(span),
        weights: drawn::weights(grace),
        queue: drawn::queue(lifetime),
    })
}
fn put_node(node: Option<u32>, label: u32, pool: u32, immediate: bool, gpus: u64, cores: u64) -> Command {
    let capacity = [(ClassNo(0), Quanta(gpus * 7)), (ClassNo(1), Quanta(cores)), (ClassNo(2), Quanta(40))];
    Command::PutNode(PutNode {
        node: node.map(NodeNo),
        name: name(format!("node{label}")),
        pool: PoolNo(pool),
        rack: None,
        zone: None,
        labels: Vec::new(),
        teardown: if immediate { TeardownMode::Immediate } else { TeardownMode::Confirmed },
        capacity: capacity.into_iter().filter(|(_, quanta)| quanta.0 > 0).collect(),
    })
}
fn put_tenant(tenant: Option<u32>, label: u32, max_priority: Priority, tag: u8) -> Command {
    let accounting_tag = (tag > 0).then(|| name(format!("tag{tag}")));
    let named = TenantSettings::named(name(format!("tenant{label}")));
    let settings = TenantSettings { accounting_tag, max_priority, ..named };
    Command::PutTenant(PutTenant { tenant: tenant.map(TenantNo), settings })
}

impl Step {
    /// When the step is taken, given what the state says comes due.
    pub(crate) fn at(&self, now: Instant, engine: &Engine) -> Instant {
        let due = engine.next_due().unwrap_or(now).max(now);
        match self.wait {
            Wait::Nanoseconds(ns) => Instant(now.0 + ns),
            Wait::Seconds(secs) => now.saturating_add(span(secs)),
            Wait::Due(ns) => Instant(due.0 + ns),
        }
    }

    /// The request, or none where the step is a restart.
    pub(crate) fn request(&self, state: &State) -> Option<Request> {
        let mut command = self.command(state)?;
        // What operators do is mostly done by one; tenant 0 tries its luck.
        let who = self.who.filter(|who| *who == 0 || !self.action.is_an_operators());
        let tenant = who.map(TenantNo);
        let own = |tenant: TenantNo| state.projects().find(|(_, p)| p.tenant == tenant).map(|(number, _)| number);
        let identity = Identity {
            tenant,
            project: tenant.and_then(own),
            token: who.filter(|who| *who == 1).map(TokenNo),
            ..Identity::default()
        };
        let identity = self.as_its_user(identity, &mut command, state);
        Some(match self.key {
            // Some keys always come with the same request, so that it is sent again.
            Some(key) if key < 6 => {
                let ask = RequestLease::of(ClassNo(1), Quanta(u64::from(key) * 9 + 1), span(60));
                Request::once(identity, Command::Request(ask), &[key]).expect("a short key")
            }
            Some(key) => Request::once(identity, command, &[key]).expect("a short key"),
            None => Request::new(identity, command),
        })
    }

    /// Claims are made by users, and so is sensitive work.
    fn as_its_user(&self, identity: Identity, command: &mut Command, state: &State) -> Identity {
        let claims = matches!(command, Command::ClaimNodes(_));
        if !self.as_user && !claims {
            return identity;
        }
        match command {
            Command::Request(request) => request.sensitive = true,
            Command::SubmitAllocation(submit) => submit.spec.sensitive = true,
            _ => {}
        }
        let mut own = state.users().filter(|(_, user)| Some(user.tenant) == identity.tenant).map(|(number, _)| number);
        Identity { user: own.next(), ..identity }
    }

    fn command(&self, state: &State) -> Option<Command> {
        let live: Vec<LeaseNo> = state.leases().iter().map(|lease| lease.number).collect();
        // Mostly one that lives; sometimes one that was, or never was.
        let pick = |roll: &u8| match (usize::from(*roll), live.len()) {
            (roll, n) if n > 0 && roll < 240 => live[roll % n],
            (roll, _) => LeaseNo(roll as u64 - roll as u64 % 7),
        };
        let picks = |rolls: &[u8]| rolls.iter().map(pick).collect::<Vec<_>>();
        let report = |secs: Option<u64>| {
            secs.map(|secs| Activity {
                covered: span(secs),
                active: span(secs / 2),
                busy: u128::from(secs),
                ..Activity::default()
            })
        };
        Some(match &self.action {
            Action::Grant { class, quanta, second, ttl, priority: roll, pool, node } => {
                let amount =
                    |class: u16, quanta: u64| if class == 0 && quanta > 7 { 7 * (quanta % 3 + 1) } else { quanta };
                let first = (ClassNo(*class), Quanta(amount(*class, *quanta)));
                let more = second.map(|(class, quanta)| (ClassNo(class), Quanta(amount(class, quanta))));
                Command::Request(RequestLease {
                    asks: [first].into_iter().chain(more).collect(),
                    priority: priority(*roll),
                    pool: pool.map(PoolNo),
                    node: node.map(NodeNo),
                    ..RequestLease::of(ClassNo(0), Quanta(0), span(*ttl))
                })
            }
            Action::Renew { leases, ttl, report: secs } => {
                let one = |lease| RenewOne { lease, ttl: span(*ttl), activity: report(*secs) };
                Command::Renew(picks(leases).into_iter().map(one).collect())
            }
            Action::Release { leases, report: secs } => {
                let one = |lease| ReleaseOne { lease, activity: report(*secs) };
                Command::Release(picks(leases).into_iter().map(one).collect())
            }
            Action::Report { leases, report: secs } => {
                let one = |lease| ReleaseOne { lease, activity: report(*secs) };
                Command::ReportActivity(picks(leases).into_iter().map(one).collect())
            }
            Action::Revoke { leases, grace } => Command::Revoke(Revoke {
                leases: picks(leases).into(),
                reason: Reason::Operator,
                grace: grace.map(span),
            }),
            Action::Ready(leases) => Command::Ready(picks(leases).into()),
            Action::Confirm { node, leases, generation } => {
                let leases = picks(leases);
                // Mostly the node that the first lease is on.
                let of_lease = leases.first().and_then(|lease| Some(state.lease(*lease)?.node));
                let node = of_lease.filter(|_| *node < 5).unwrap_or(NodeNo(*node));
                Command::ConfirmTeardown(ConfirmTeardown { node, leases: leases.into(), generation: *generation })
            }
            Action::Unfence(leases) => Command::Unfence(picks(leases).into()),
            Action::Node { node, what } => match what {
                0 => Command::DrainNode(NodeNo(*node).into()),
                1 => Command::ResumeNode(NodeNo(*node).into()),
                2 => Command::LoseNode(LoseNode {
                    node: NodeNo(*node),
                    last_seen: Instant(state.last_stamp().0.saturating_sub(span(20).0)),
                }),
                3 => Command::ReturnNode(NodeNo(*node)),
                _ => crate::windows::some_command(state, NodeNo(*node)),
            },
            Action::PutNode { node, pool, immediate, gpus, cores } => {
                let known = state.node(NodeNo(*node)).map(|_| *node);
                put_node(known, *node, *pool, *immediate, *gpus, *cores)
            }
            Action::PutPool { pool, ttl, lifetime, grace } => {
                let known = state.pool(PoolNo(*pool)).map(|_| *pool);
                put_pool(*pool, known, *ttl, *lifetime, *grace)
            }
            Action::PutTenant { tenant, max, tag } => {
                let known = state.tenant(TenantNo(*tenant)).map(|_| *tenant);
                put_tenant(known, *tenant, priority(*max), *tag)
            }
            Action::PutClass { class, per } => {
                let class = ClassNo(*class);
                let spec = ClassSpec {
                    name: name(format!("class{}", class.0)),
                    kind: ResourceKind::Gpu,
                    tier: None,
                    quanta_per_unit: *per,
                    premium: *per > 4,
                };
                Command::PutClass(PutClass { class: state.class(class).map(|_| class), spec })
            }
            Action::PutProject(tenant) => {
                let put = PutProject { project: None, tenant: TenantNo(*tenant), name: name("another") };
                Command::PutProject(put)
            }
            Action::PutUser(tenant) => {
                Command::PutUser(PutUser { user: None, tenant: TenantNo(*tenant), name: name("someone") })
            }
            Action::Delete { what, which } => match what {
                0 => Command::DeleteTenant(TenantNo(*which)),
                1 => Command::DeleteProject(ProjectNo(*which)),
                2 => Command::DeleteUser(UserNo(*which % 2)),
                3 => Command::DeletePool(PoolNo(*which)),
                4 => Command::DeleteNode(NodeNo(*which)),
                _ => Command::DeleteQuota(QuotaNo(*which)),
            },
            Action::PutQuota { which, tenant, scope, measure, limit, kind } => {
                let limit = match kind {
                    0 => LimitKind::Hard { limit: *limit },
                    1 => LimitKind::Soft { limit: *limit },
                    _ => LimitKind::Burst { limit: *limit, burst_limit: limit + 10, burst_ttl: span(30 + limit * 3) },
                };
                let quota = which.and_then(|no| state.quota(QuotaNo(no)));
                Command::PutQuota(match quota {
                    Some(old) => {
                        let until = state.last_stamp().saturating_add(span(1 + limit.limit()));
                        PutQuota {
                            until: Some(until).filter(|_| *tenant == 0),
                            evict_own_lower: Some(*scope % 2 == 0),
                            ..PutQuota::new(Some(old.number), old.scope.clone(), old.measure, limit)
                        }
                    }
                    None => {
                        let scope = quota_scope(TenantNo(*tenant), *scope, state);
                        drawn::new_quota(scope, *measure, limit)
                    }
                })
            }
            Action::Settings { teardown, window } => Command::ChangeSettings(drawn::settings(*teardown, *window)),
            Action::Issue { role, scope, hash, expires } => Command::IssueToken(IssueToken {
                name: name(format!("token{hash}")),
                hash: [*hash; 32],
                role: Role::ALL[usize::from(*role)],
                scope: crate::tokens::some_scope(Role::ALL[usize::from(*role)], *scope, state),
                expires_at: expires.map(|secs| state.last_stamp().saturating_add(span(secs))),
            }),
            Action::Withdraw(token) => Command::RevokeToken(TokenNo(*token)),
            Action::Agent { node, what, generation, bits } => {
                let node = NodeNo(*node);
                match what {
                    0 | 1 => Command::RegisterAgent(RegisterAgent {
                        node,
                        instance: u128::from(bits & 1),
                        takeover: bits & 2 != 0,
                    }),
                    2 | 3 => Command::ReportCondition(ReportCondition {
                        node,
                        generation: *generation,
                        load: Level::ALL[usize::from(bits % 3)],
                        errors: Level::Normal,
                        throttled: bits & 4 != 0,
                    }),
                    _ => Command::DetachAgent(node),
                }
            }
            Action::Update { tenant, bits, limit } => {
                let bit = |n: u8| bits >> n & 1 == 1;
                let some = |n: u8| bit(n).then(|| Some(*limit).filter(|_| bit(n + 1)));
                Command::UpdateTenant(UpdateTenant {
                    max_nodes: some(0),
                    max_leases: some(2),
                    max_concurrent_allocations: some(3),
                    gpu_hours_budget: some(1),
                    fair_share_target: some(5),
                    max_pending: some(2),
                    settings: TenantSettingsChange {
                        name: bit(6).then(|| name(format!("tenant{limit}"))),
                        accounting_tag: bit(7).then(|| Some(name("tag1")).filter(|_| bit(0))),
                        max_evicted_quanta_per_hour: some(4),
                        ..TenantSettingsChange::default()
                    },
                    ..UpdateTenant::of(TenantNo(*tenant))
                })
            }
            Action::Card { which, price: 4.., .. } => {
                let last = state.rate_cards().last().map_or(0, |card| card.number);
                Command::DeleteRateCard(which.unwrap_or(last))
            }
            Action::Card { which, pool, from, price } => {
                let mut prices = Prices::default_card();
                prices.classes.push((ClassNo(u16::try_from(*price).expect("small")), Decimal(*price)));
                Command::PutRateCard(PutRateCard {
                    card: *which,
                    pool: pool.map(PoolNo),
                    from: from.map(|secs| later(state, secs)),
                    prices,
                })
            }
            Action::Policy { which, from, kind } => {
                let charge = [Charge::Full, Charge::None, Charge::MinusLast(span(60)), Charge::MinusLast(Span::ZERO)];
                let charges = Charges { fenced: charge[usize::from(*kind)], ..Charges::DEFAULT };
                let from = from.map(|secs| later(state, secs));
                Command::PutChargePolicy(PutChargePolicy { policy: *which, from, charges })
            }
            Action::Ceiling { project, kind: 0, .. } => {
                Command::DeleteCeiling(DeleteCeiling { project: ProjectNo(*project), app_instance: None })
            }
            Action::Ceiling { project, amount, kind: 6.. } => drawn::access(*project, *amount),
            Action::Ceiling { project, amount, kind } => Command::PutCeiling(PutCeiling {
                project: ProjectNo(*project),
                app_instance: None,
                amount: Amount(u128::from(*amount) * 10_000_000),
                currency: Currency::DEFAULT,
                mode: if *kind == 1 { CeilingMode::Soft } else { CeilingMode::Hard },
            }),
            Action::Submit { class, quanta, replicas, priority: roll, bits, walltime } => {
                let quanta = if *class == 0 && *quanta > 7 { 7 * (quanta % 2 + 1) } else { *quanta };
                let bit = |n: u8| bits >> n & 1 == 1;
                Command::SubmitAllocation(SubmitAllocation::from(AllocationSpec {
                    replicas: *replicas,
                    priority: priority(*roll),
                    pool: (bit(0) && bit(1)).then_some(PoolNo(0)),
                    walltime: walltime.map(span),
                    ttl: (bit(2) && bit(3)).then_some(span(30)),
                    staged: bit(4) && bit(0),
                    requeue: bit(5),
                    apart: (bit(6) && bit(7)).then_some(Domain::Node),
                    ..AllocationSpec::of([(ClassNo(*class), Quanta(quanta))].into_iter().collect())
                }))
            }
            Action::Allocation { which, what, figure } => {
                let live: Vec<AllocationNo> = state.allocations_after(None).map(|found| found.number).collect();
                let number = match (usize::from(*which), live.len()) {
                    (roll, n) if n > 0 && roll < 240 => live[roll % n],
                    (roll, _) => AllocationNo(roll as u64),
                };
                let figure = *figure;
                match what {
                    0 => Command::StartAllocation(number),
                    1 | 2 => Command::BeginCheckpoint(number),
                    3..=6 => {
                        let (bytes, took) = (figure, span(figure / 60));
                        Command::ReportCheckpoint(ReportCheckpoint { allocation: number, bytes, took })
                    }
                    7 | 8 => Command::CompleteAllocation(CompleteAllocation {
                        allocation: number,
                        exit_status: u32::try_from(figure).ok().filter(|figure| figure % 3 > 0),
                        storage_written: figure,
                    }),
                    what => crate::holds::command(*what, number, figure),
                }
            }
            Action::Custody { what, nodes, bits } => {
                let wanted = match what {
                    0..=4 => "open",
                    5..=7 => "claimed",
                    8..=11 => "wiping",
                    _ => "quarantined",
                };
                let suits = |node: &&Node| wanted != "open" || !node.has_leases() || bits % 8 == 0;
                let nodes_so = state.nodes().filter(|node| node.custody.word() == wanted).filter(suits);
                let fitting: Vec<NodeNo> = nodes_so.map(|node| node.number).collect();
                let pick = |roll: &u8| match (usize::from(*roll), fitting.len()) {
                    (roll, n) if n > 0 && roll < 240 => fitting[roll % n],
                    (roll, _) => NodeNo(u32::try_from(roll).expect("small") % 7),
                };
                let nodes: Vec<NodeNo> = nodes.iter().map(pick).collect();
                let node = nodes[0];
                match wanted {
                    "open" => {
                        let until = (bits % 2 == 0).then(|| later(state, u64::from(*bits) * 100));
                        Command::ClaimNodes(ClaimNodes { nodes, until })
                    }
                    "claimed" => Command::ReleaseNodes(nodes),
                    "wiping" => Command::ReportWipe(ReportWipe {
                        node,
                        generation: (bits % 5 == 0).then_some(1),
                        clean: bits % 3 > 0,
                    }),
                    _ => Command::ClearQuarantine(node),
                }
            }
            Action::Heartbeat => Command::Heartbeat(Nothing {}),
            Action::Started => return None,
        })
    }
}

/// Some time after the last record, and now and then before the next.
fn later(state: &State, secs: u64) -> Instant {
    state.last_stamp().saturating_add(span(secs))
}
