//! The demo cluster: forty nodes of three kinds, one for the user of the demo, six tenants, and their quotas.
//!
//! Everything here is created first, and numbers are assigned in order: an index into the tables below is the number
//! in the records.

use crate::problem::Problem;
use leasehold_cell::{Cell, Inbox, Sealed, Submission, Unsealed};
use leasehold_engine::command::{PutClass, PutNode, PutPool, PutProject, PutQuota, PutTenant, PutUser};
use leasehold_engine::{Command, Quota, Request, State};
use leasehold_model::body::PerPriority;
use leasehold_model::{
    ClassNo, ClassSpec, Identity, LimitKind, Measure, Name, NodeNo, PoolNo, Priority, ProjectNo, Quanta, QuotaNo,
    QuotaScope, ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings, UserNo,
};
use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) const H100: ClassNo = ClassNo(0);
pub(crate) const L40S: ClassNo = ClassNo(1);
pub(crate) const CPU: ClassNo = ClassNo(2);
pub(crate) const MEM: ClassNo = ClassNo(3);
pub(crate) const NET: ClassNo = ClassNo(4);

/// Quanta of a GPU that can be divided; the smaller GPUs have one.
pub(crate) const SLICES: u64 = 7;
pub(crate) const CORE: u64 = 1000;
pub(crate) const GIB: u64 = 1024;
/// Quanta of a Gb/s.
pub(crate) const GBPS: u64 = 10;

pub(crate) const TRAIN: PoolNo = PoolNo(0);
pub(crate) const SERVE: PoolNo = PoolNo(1);
pub(crate) const BATCH: PoolNo = PoolNo(2);
/// A pool for the user of the demo: no simulated holder names it, so that there is always room for the sandbox's quota.
const LAB: PoolNo = PoolNo(3);

/// A kind of node.
struct NodeKind {
    name: &'static str,
    count: u32,
    pool: PoolNo,
    per_rack: u32,
    teardown: TeardownMode,
    capacity: &'static [(ClassNo, u64)],
}

const NODE_KINDS: [NodeKind; 4] = [
    NodeKind {
        name: "h100",
        count: 12,
        pool: TRAIN,
        per_rack: 4,
        // Their agents confirm each teardown.
        teardown: TeardownMode::Confirmed,
        capacity: &[(H100, 8 * SLICES), (CPU, 96 * CORE), (MEM, 1024 * GIB), (NET, 400 * GBPS)],
    },
    NodeKind {
        name: "l40s",
        count: 12,
        pool: SERVE,
        per_rack: 6,
        teardown: TeardownMode::Immediate,
        capacity: &[(L40S, 8), (CPU, 64 * CORE), (MEM, 512 * GIB), (NET, 100 * GBPS)],
    },
    NodeKind {
        name: "cpu",
        count: 16,
        pool: BATCH,
        per_rack: 16,
        teardown: TeardownMode::Immediate,
        capacity: &[(CPU, 128 * CORE), (MEM, 512 * GIB), (NET, 100 * GBPS)],
    },
    NodeKind {
        name: "lab",
        count: 1,
        pool: LAB,
        per_rack: 1,
        teardown: TeardownMode::Immediate,
        capacity: &[(L40S, SANDBOX_GPUS), (CPU, 32 * CORE), (MEM, 256 * GIB), (NET, 100 * GBPS)],
    },
];

/// Nodes with an agent have the lowest numbers.
pub(crate) fn nodes_with_agent() -> impl Iterator<Item = NodeNo> {
    (0..NODE_KINDS[0].count).map(NodeNo)
}
pub(crate) fn has_agent(node: NodeNo) -> bool {
    node.0 < NODE_KINDS[0].count
}
pub(crate) const NODE_TO_DRAIN: NodeNo = NodeNo(12 + 2);

/// The limit of a tenant's main quota.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Hard(u64),
    Soft(u64),
    /// Base limit and burst limit.
    Burst(u64, u64),
}

pub(crate) struct Tenant {
    pub(crate) name: &'static str,
    tag: &'static str,
    pub(crate) max_priority: Priority,
    pub(crate) projects: [&'static str; 2],
    users: [&'static str; 2],
    /// The class that it uses most, and its quota of that class.
    pub(crate) class: ClassNo,
    pub(crate) limit: Limit,
    max_nodes: u64,
}

pub(crate) const TENANTS: [Tenant; 6] = [
    Tenant {
        name: "physics",
        tag: "cc-4711",
        max_priority: Priority::Guaranteed,
        projects: ["lattice", "plasma"],
        users: ["amira", "joris"],
        class: H100,
        limit: Limit::Hard(32 * SLICES),
        max_nodes: 40,
    },
    Tenant {
        name: "genomics",
        tag: "cc-4720",
        max_priority: Priority::Standard,
        projects: ["assembly", "folding"],
        users: ["noor", "ben"],
        class: H100,
        limit: Limit::Burst(12 * SLICES, 22 * SLICES),
        max_nodes: 24,
    },
    Tenant {
        name: "climate",
        tag: "cc-4733",
        max_priority: Priority::Standard,
        projects: ["downscale", "ocean"],
        users: ["tuva", "rafael"],
        class: H100,
        limit: Limit::Soft(16 * SLICES),
        max_nodes: 24,
    },
    Tenant {
        name: "vision",
        tag: "cc-5010",
        max_priority: Priority::Guaranteed,
        projects: ["serving", "labelling"],
        users: ["mei", "olek"],
        class: L40S,
        limit: Limit::Hard(56),
        max_nodes: 24,
    },
    Tenant {
        name: "robotics",
        tag: "cc-5022",
        max_priority: Priority::Standard,
        projects: ["grasp", "sim"],
        users: ["sanna", "diego"],
        class: L40S,
        limit: Limit::Soft(12),
        max_nodes: 24,
    },
    Tenant {
        name: "students",
        tag: "cc-9000",
        max_priority: Priority::Scavenger,
        projects: ["course-ml", "course-hpc"],
        users: ["lee", "kofi"],
        class: H100,
        limit: Limit::Hard(3 * SLICES),
        max_nodes: 3,
    },
];

/// The quota that the status display shows: the first of each tenant.
pub(crate) fn main_quota(tenant: usize) -> QuotaNo {
    QuotaNo(u32::try_from(tenant * QUOTAS_EACH).expect("few tenants"))
}
const QUOTAS_EACH: usize = 2;
/// The students' GPU quota, which is always used up.
pub(crate) const STUDENTS_QUOTA: QuotaNo = QuotaNo(10);

/// A project for the user of the demo; no simulated holder uses it.
pub(crate) const SANDBOX: ProjectNo = ProjectNo(12);
pub(crate) const SANDBOX_TENANT: usize = 0;
pub(crate) const SANDBOX_NAME: &str = "sandbox";
/// GPUs of the smaller kind, whose nodes have no faults.
pub(crate) const SANDBOX_GPUS: u64 = 4;
const SANDBOX_QUOTA: QuotaNo = QuotaNo(12);
const _: () = assert!(TENANTS.len() * 2 == 12 && TENANTS.len() * QUOTAS_EACH == 12, "the sandbox has the last numbers");

pub(crate) fn tenant_no(tenant: usize) -> TenantNo {
    TenantNo(u32::try_from(tenant).expect("few tenants"))
}
pub(crate) fn project_no(tenant: usize, project: usize) -> ProjectNo {
    ProjectNo(u32::try_from(tenant * 2 + project).expect("few projects"))
}
pub(crate) fn user_no(tenant: usize, user: usize) -> UserNo {
    UserNo(u32::try_from(tenant * 2 + user).expect("few users"))
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("the demo's names are valid")
}

/// Creates what is missing: everything in a new journal, nothing after a clean shutdown, the rest after a crash.
/// Bursts last for `burst_ttl`.
pub(crate) fn ensure(cell: &Cell, burst_ttl: Span) -> Result<(), Problem> {
    let commands = cell.now().read(|state| missing(state, burst_ttl));
    let inbox = Arc::new(Inbox::new());
    let count = commands.len();
    cell.submit(commands.into_iter().map(|command| Submission {
        request: Request::new(Identity::default(), command),
        to: inbox.clone(),
        tag: 0,
    }));
    let mut replies = VecDeque::new();
    while replies.len() < count {
        inbox.take(&mut replies);
    }
    match replies.iter().find(|(_, reply)| !matches!(reply, Ok(Sealed { repeated: false, .. }))) {
        None => Ok(()),
        Some((_, Err(Unsealed::Refused(refusal)))) => Err(Problem::told(refusal.code(), refusal)),
        Some(_) => Err(Problem::refused("cell_stopped", "the daemon stopped while the cluster was created")),
    }
}

/// The commands that create what is missing, in order.
pub(crate) fn missing(state: &State, burst_ttl: Span) -> Vec<Command> {
    let classes = classes().into_iter().zip(0..).filter(|(_, n)| state.class(ClassNo(*n)).is_none());
    let mut commands: Vec<Command> =
        classes.map(|(spec, _)| Command::PutClass(PutClass { class: None, spec })).collect();
    let pools = [
        ("train", Strategy::BinPack),
        ("serve", Strategy::Spread),
        ("batch", Strategy::Spread),
        ("lab", Strategy::BinPack),
    ];
    for ((pool, strategy), _) in pools.into_iter().zip(0..).filter(|(_, n)| state.pool(PoolNo(*n)).is_none()) {
        commands.push(Command::PutPool(PutPool {
            pool: None,
            name: name(pool),
            strategy,
            ttl_max: PerPriority::default(),
            lifetime_max: PerPriority::default(),
            grace: None,
            weights: None,
            queue: None,
        }));
    }
    let nodes = nodes().into_iter().zip(0..).filter(|(_, n)| state.node(NodeNo(*n)).is_none());
    commands.extend(nodes.map(|(node, _)| Command::PutNode(node)));
    for (at, tenant) in TENANTS.iter().enumerate() {
        commands.extend(missing_of_tenant(state, at, tenant, burst_ttl));
    }
    commands.extend(missing_of_sandbox(state));
    commands
}

fn classes() -> Vec<ClassSpec> {
    let class = |text: &str, kind, tier: &str, quanta_per_unit, premium| ClassSpec {
        name: name(text),
        kind,
        tier: Some(name(tier)),
        quanta_per_unit,
        premium,
    };
    vec![
        class("gpu-h100", ResourceKind::Gpu, "h100", SLICES, true),
        class("gpu-l40s", ResourceKind::Gpu, "l40s", 1, false),
        class("cpu", ResourceKind::Cpu, "x86", CORE, false),
        class("mem", ResourceKind::Mem, "dram", GIB, false),
        class("net", ResourceKind::Net, "rdma", GBPS, false),
    ]
}

fn nodes() -> Vec<PutNode> {
    let mut nodes = Vec::new();
    for kind in &NODE_KINDS {
        for n in 0..kind.count {
            let rack = n / kind.per_rack;
            nodes.push(PutNode {
                node: None,
                name: name(&format!("{}-{:02}", kind.name, n + 1)),
                pool: kind.pool,
                rack: Some(name(&format!("{}-r{}", kind.name, rack + 1))),
                zone: Some(name(if rack.is_multiple_of(2) { "hall-a" } else { "hall-b" })),
                labels: vec![(name("sort"), name(kind.name))],
                teardown: kind.teardown,
                capacity: kind.capacity.iter().map(|(class, quanta)| (*class, Quanta(*quanta))).collect(),
            });
        }
    }
    nodes
}

fn missing_of_tenant(state: &State, at: usize, tenant: &Tenant, burst_ttl: Span) -> Vec<Command> {
    let number = tenant_no(at);
    let mut commands = Vec::new();
    if state.tenant(number).is_none() {
        commands.push(Command::PutTenant(PutTenant {
            tenant: None,
            settings: TenantSettings {
                accounting_tag: Some(name(tenant.tag)),
                max_priority: tenant.max_priority,
                ..TenantSettings::named(name(tenant.name))
            },
        }));
    }
    for (n, project) in tenant.projects.iter().enumerate() {
        if state.project(project_no(at, n)).is_none() {
            commands.push(Command::PutProject(PutProject { project: None, tenant: number, name: name(project) }));
        }
    }
    for (n, user) in tenant.users.iter().enumerate() {
        if state.user(user_no(at, n)).is_none() {
            commands.push(Command::PutUser(PutUser { user: None, tenant: number, name: name(user) }));
        }
    }
    let scope = |class| scope_of(number, None, class);
    let main = match tenant.limit {
        Limit::Hard(limit) => LimitKind::Hard { limit },
        Limit::Soft(limit) => LimitKind::Soft { limit },
        Limit::Burst(limit, burst_limit) => LimitKind::Burst { limit, burst_limit, burst_ttl },
    };
    let first = main_quota(at).0;
    let quotas = [
        (scope(Some(tenant.class)), Measure::Quanta, main),
        (scope(None), Measure::Nodes, LimitKind::Hard { limit: tenant.max_nodes }),
    ];
    for ((scope, measure, limit), n) in quotas.into_iter().zip(first..) {
        match state.quota(QuotaNo(n)) {
            None => commands.push(Command::PutQuota(PutQuota::new(None, scope, measure, limit))),
            Some(quota) => commands.extend(adapt_burst(quota, burst_ttl)),
        }
    }
    commands
}

/// Adapts the burst time of a quota: a burst of hours would never end in a demo of minutes.
fn adapt_burst(quota: &Quota, burst_ttl: Span) -> Option<Command> {
    let LimitKind::Burst { limit, burst_limit, burst_ttl: in_force } = quota.limit else { return None };
    let (scope, measure) = (quota.scope.clone(), quota.measure);
    let limit = LimitKind::Burst { limit, burst_limit, burst_ttl };
    (in_force != burst_ttl).then_some(Command::PutQuota(PutQuota::new(Some(quota.number), scope, measure, limit)))
}

fn missing_of_sandbox(state: &State) -> Vec<Command> {
    let tenant = tenant_no(SANDBOX_TENANT);
    let mut commands = Vec::new();
    if state.project(SANDBOX).is_none() {
        commands.push(Command::PutProject(PutProject { project: None, tenant, name: name(SANDBOX_NAME) }));
    }
    if state.quota(SANDBOX_QUOTA).is_none() {
        let scope = scope_of(tenant, Some(SANDBOX), Some(L40S));
        let limit = LimitKind::Hard { limit: SANDBOX_GPUS };
        commands.push(Command::PutQuota(PutQuota::new(None, scope, Measure::Quanta, limit)));
    }
    commands
}

fn scope_of(tenant: TenantNo, project: Option<ProjectNo>, class: Option<ClassNo>) -> QuotaScope {
    QuotaScope { project, class, ..QuotaScope::of_tenant(tenant) }
}
