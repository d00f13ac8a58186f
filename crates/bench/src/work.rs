//! The measured work: requests, renewals and releases, a third each, with a constant number of live leases. As in our
//! clients, requests have idempotency keys; renewals and releases need none (SEMANTICS 11).

use leasehold_engine::command::{
    PutClass, PutNode, PutPool, PutProject, PutQuota, PutTenant, ReleaseOne, RenewOne, RequestLease,
};
use leasehold_engine::{Command, Engine, Request};
use leasehold_model::body::{Genesis, PerPriority};
use leasehold_model::{
    Batch, ClassNo, ClassSpec, FORMAT_VERSION, Identity, Instant, LeaseNo, LimitKind, Measure, Name, PoolNo, Priority,
    ProjectNo, Quanta, QuotaScope, ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings,
};

/// A small deterministic generator (splitmix64): the same work in every run.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }
}

pub const T0: Instant = Instant(1_767_225_600_000_000_000);

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// The commands that create a cluster of `nodes` nodes and `tenants` tenants, with two quotas each.
pub fn cluster(nodes: u32, tenants: u32) -> Vec<Command> {
    let mut commands = vec![
        Command::PutClass(PutClass {
            class: None,
            spec: ClassSpec {
                name: name("cpu"),
                kind: ResourceKind::Cpu,
                tier: None,
                quanta_per_unit: 1000,
                premium: false,
            },
        }),
        Command::PutPool(PutPool {
            pool: None,
            name: name("main"),
            strategy: Strategy::Spread,
            ttl_max: PerPriority::default(),
            lifetime_max: PerPriority::default(),
            grace: None,
            weights: None,
            queue: None,
        }),
    ];
    for n in 0..nodes {
        commands.push(Command::PutNode(PutNode {
            node: None,
            name: name(&format!("node-{n:05}")),
            pool: PoolNo(0),
            rack: None,
            zone: None,
            labels: vec![],
            teardown: TeardownMode::Immediate,
            capacity: vec![(ClassNo(0), Quanta(4_000_000))],
        }));
    }
    for t in 0..tenants {
        let tenant = TenantNo(t);
        commands.push(Command::PutTenant(PutTenant {
            tenant: None,
            settings: TenantSettings {
                accounting_tag: Some(name("cc-1000")),
                max_priority: Priority::Guaranteed,
                ..TenantSettings::named(name(&format!("tenant-{t:04}")))
            },
        }));
        commands.push(Command::PutProject(PutProject { project: None, tenant, name: name("main") }));
        for (class, measure, limit) in
            [(Some(ClassNo(0)), Measure::Quanta, u64::MAX / 4), (None, Measure::Leases, 1_000_000)]
        {
            commands.push(Command::PutQuota(PutQuota::new(
                None,
                QuotaScope { class, ..QuotaScope::of_tenant(tenant) },
                measure,
                LimitKind::Hard { limit },
            )));
        }
    }
    commands
}

/// The classes of a large cluster.
pub const GPU: ClassNo = ClassNo(0);
pub const CPU: ClassNo = ClassNo(1);
pub const MEM: ClassNo = ClassNo(2);

/// The commands that create a cluster with three kinds of nodes: with eight GPUs, with four and more memory, and with
/// none; in racks of forty and in four zones. Its tenants have no quotas.
pub fn large_cluster(nodes: u32, tenants: u32) -> Vec<Command> {
    let mut commands = Vec::new();
    for (label, kind, quanta_per_unit) in
        [("gpu", ResourceKind::Gpu, 7), ("cpu", ResourceKind::Cpu, 1000), ("mem", ResourceKind::Mem, 1024)]
    {
        let spec = ClassSpec { name: name(label), kind, tier: None, quanta_per_unit, premium: false };
        commands.push(Command::PutClass(PutClass { class: None, spec }));
    }
    commands.push(Command::PutPool(PutPool {
        pool: None,
        name: name("main"),
        strategy: Strategy::Spread,
        weights: None,
        queue: None,
        ttl_max: PerPriority::default(),
        lifetime_max: PerPriority::default(),
        grace: Some(Span::from_secs(60)),
    }));
    for n in 0..nodes {
        let capacity = match n % 3 {
            0 => vec![(GPU, Quanta(8 * 7)), (CPU, Quanta(128_000)), (MEM, Quanta(1 << 20))],
            1 => vec![(GPU, Quanta(4 * 7)), (CPU, Quanta(64_000)), (MEM, Quanta(2 << 20))],
            _ => vec![(CPU, Quanta(256_000)), (MEM, Quanta(1 << 20))],
        };
        commands.push(Command::PutNode(PutNode {
            node: None,
            name: name(&format!("node-{n:05}")),
            pool: PoolNo(0),
            rack: Some(name(&format!("rack-{:03}", n / 40))),
            zone: Some(name(&format!("zone-{}", n / 2500))),
            labels: Vec::new(),
            teardown: TeardownMode::Immediate,
            capacity,
        }));
    }
    for t in 0..tenants {
        commands.push(Command::PutTenant(PutTenant {
            tenant: None,
            settings: TenantSettings {
                max_priority: Priority::Guaranteed,
                ..TenantSettings::named(name(&format!("tenant-{t:04}")))
            },
        }));
        commands.push(Command::PutProject(PutProject { project: None, tenant: TenantNo(t), name: name("main") }));
    }
    commands
}

/// A new engine with the cluster of [`cluster`].
pub fn engine_with_cluster(nodes: u32, tenants: u32) -> Engine {
    let mut engine = Engine::default();
    let mut batch = Batch::new(0);
    let genesis = Genesis {
        format_version: FORMAT_VERSION,
        origin: name("bench"),
        public_key: [0; 32],
        software: name("leasehold bench"),
    };
    engine.genesis(T0, genesis, &mut batch);
    for command in cluster(nodes, tenants) {
        batch.reset(engine.state().size());
        engine.decide(T0, &Request::new(Identity::default(), command), &mut batch).expect("the cluster is valid");
    }
    engine
}

/// Generates transitions and keeps track of the live leases.
#[derive(Clone, Debug)]
pub struct Workload {
    pub dice: Dice,
    pub tenants: u32,
    pub live: Vec<(LeaseNo, u32)>,
    pub step: u64,
    pub ttl: Span,
}

pub(crate) fn identity(tenant: u32) -> Identity {
    Identity { tenant: Some(TenantNo(tenant)), project: Some(ProjectNo(tenant)), ..Identity::default() }
}

impl Workload {
    pub fn new(seed: u64, tenants: u32) -> Self {
        Self { dice: Dice(seed), tenants, live: Vec::new(), step: 0, ttl: Span::from_secs(3600) }
    }

    fn key(&mut self) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.step.to_le_bytes());
        key[8..].copy_from_slice(&self.dice.draw().to_le_bytes());
        key
    }

    pub fn request(&mut self) -> (Request, u32) {
        let tenant = self.dice.below(u64::from(self.tenants)) as u32;
        let mut ask = RequestLease::of(ClassNo(0), Quanta(1000 + 1000 * self.dice.below(2)), self.ttl);
        ask.pool = Some(PoolNo(0));
        let key = self.key();
        (Request::once(identity(tenant), Command::Request(ask), &key).expect("a valid key"), tenant)
    }

    pub fn renew(&mut self) -> Request {
        let at = self.dice.below(self.live.len() as u64) as usize;
        let (lease, tenant) = self.live[at];
        let one = RenewOne { lease, ttl: self.ttl, activity: None };
        Request::new(identity(tenant), Command::Renew(smallvec::smallvec![one]))
    }

    pub fn release(&mut self) -> Request {
        let at = self.dice.below(self.live.len() as u64) as usize;
        let (lease, tenant) = self.live.swap_remove(at);
        let one = ReleaseOne { lease, activity: None };
        Request::new(identity(tenant), Command::Release(smallvec::smallvec![one]))
    }
}

/// Grants leases without idempotency keys until there are `live`.
pub fn fill(engine: &mut Engine, work: &mut Workload, live: usize) {
    let mut batch = Batch::new(engine.state().size());
    while work.live.len() < live {
        let tenant = work.dice.below(u64::from(work.tenants)) as u32;
        let mut ask = RequestLease::of(ClassNo(0), Quanta(1000), Span::from_secs(23 * 3600));
        ask.pool = Some(PoolNo(0));
        batch.reset(engine.state().size());
        let next = LeaseNo(work.live.len() as u64);
        let decided = engine.decide(T0, &Request::new(identity(tenant), Command::Request(ask)), &mut batch);
        assert!(decided.is_ok_and(|sealed| !sealed.repeated));
        work.live.push((next, tenant));
    }
}
