//! A thousand projects with a hundred live leases each: five classes at two priorities, so that each project has ten
//! lines in every hour.

use crate::bulk::{operate_all, send_all};
use crate::work::{identity, name};
use leasehold_cell::Cell;
use leasehold_engine::command::{PutClass, PutNode, PutPool, PutProject, PutRateCard, PutTenant, RequestLease};
use leasehold_engine::{Command, Request, Settings};
use leasehold_model::body::PerPriority;
use leasehold_model::rate::{Decimal, PerKind, Period, Periods, Prices};
use leasehold_model::{
    Body, ClassNo, ClassSpec, LeaseNo, PoolNo, Priority, Quanta, ResourceKind, Span, Strategy, TeardownMode, TenantNo,
    TenantSettings,
};

pub(super) const PROJECTS: u32 = 1000;
pub(super) const LIVE: usize = 100_000;
pub(super) const LINES: u64 = PROJECTS as u64 * CLASSES.len() as u64 * PRIORITIES.len() as u64;
pub(super) const CLASSES: [(ResourceKind, u64); 5] = [
    (ResourceKind::Cpu, 1000),
    (ResourceKind::Mem, 1024),
    (ResourceKind::Gpu, 7),
    (ResourceKind::Block, 1024),
    (ResourceKind::Net, 1000),
];
const PRIORITIES: [Priority; 2] = [Priority::Standard, Priority::Guaranteed];
const NODES: u32 = 1000;
/// Longer than all hours that are posted.
pub(super) const TTL: Span = Span::from_secs(80 * 86_400);

/// Prices per hour that divide into no whole number of steps, so that every line is rounded.
fn prices() -> Prices {
    let kinds = [0.043_21, 0.005_7, 2.191_3, 0.000_11, 0.017].map(|price: f64| Decimal((price * 1e9) as u64));
    let periods = Periods { kinds: [Period::Hour; 5], classes: Vec::new() };
    Prices { kinds: PerKind(kinds), periods, ..Prices::default_card() }
}

/// Classes, a pool, prices and nodes.
pub(super) fn inventory() -> Vec<Command> {
    let long = Settings { ttl_max: Span::from_secs(90 * 86_400), ..Settings::default() };
    let mut commands = vec![Command::ChangeSettings(long)];
    for (kind, quanta_per_unit) in CLASSES {
        let spec = ClassSpec { name: name(kind.word()), kind, tier: None, quanta_per_unit, premium: false };
        commands.push(Command::PutClass(PutClass { class: None, spec }));
    }
    commands.push(Command::PutPool(PutPool {
        pool: None,
        name: name("main"),
        strategy: Strategy::Spread,
        ttl_max: PerPriority::default(),
        lifetime_max: PerPriority::default(),
        grace: None,
        weights: None,
        queue: None,
    }));
    commands.push(Command::PutRateCard(PutRateCard { card: None, pool: None, from: None, prices: prices() }));
    for node in 0..NODES {
        let units = |(class, (_, quanta)): (u16, (ResourceKind, u64))| (ClassNo(class), Quanta(8 * quanta));
        commands.push(Command::PutNode(PutNode {
            node: None,
            name: name(&format!("node-{node:05}")),
            pool: PoolNo(0),
            rack: None,
            zone: None,
            labels: vec![],
            teardown: TeardownMode::Immediate,
            capacity: (0..).zip(CLASSES).map(units).collect(),
        }));
    }
    commands
}

pub(super) fn tenant(number: u32) -> Command {
    let named = TenantSettings::named(name(&format!("tenant-{number:04}")));
    let settings = TenantSettings { max_priority: Priority::Guaranteed, ..named };
    Command::PutTenant(PutTenant { tenant: None, settings })
}

pub(super) fn project(of: u32, label: &str) -> Command {
    Command::PutProject(PutProject { project: None, tenant: TenantNo(of), name: name(label) })
}

/// A lease of each class at each priority in turn.
pub(super) fn request(turn: u32, ttl: Span) -> RequestLease {
    let class = turn as usize % CLASSES.len();
    let mut ask = RequestLease::of(ClassNo(class as u16), Quanta(1 + u64::from(turn % 3)), ttl);
    ask.pool = Some(PoolNo(0));
    ask.priority = PRIORITIES[turn as usize / CLASSES.len() % PRIORITIES.len()];
    ask
}

/// Creates the cluster and grants the leases; returns them with their tenants.
pub(super) fn furnish(cell: &Cell) -> Vec<(LeaseNo, u32)> {
    let tenants = (0..PROJECTS).flat_map(|number| [tenant(number), project(number, "main")]);
    operate_all(cell, inventory().into_iter().chain(tenants).collect());
    let requests = (0..LIVE as u32).map(|lease| {
        let (tenant, turn) = (lease % PROJECTS, lease / PROJECTS);
        let ask = request(turn, TTL);
        (Request::new(identity(tenant), Command::Request(ask)), u64::from(tenant))
    });
    let mut live = Vec::with_capacity(LIVE);
    send_all(cell, requests, |tenant, sealed| {
        let record = &sealed.records[0];
        let Body::Granted(granted) = &record.body else { panic!("there is room: {record:?}") };
        live.push((granted.first_lease, tenant as u32));
    });
    live
}
