//! Choosing a node: the time of one decision in a large and busy cluster, and its growth with the cluster.

use crate::outcome::Outcome;
use crate::work::{Dice, T0, name};
use leasehold_engine::command::{
    PutClass, PutNode, PutPool, PutProject, PutTenant, RegisterAgent, ReleaseOne, ReportCondition, RequestLease,
};
use leasehold_engine::{Command, Engine, Quoted, Request};
use leasehold_model::body::{Genesis, PerPriority};
use leasehold_model::{
    Batch, ClassNo, ClassSpec, FORMAT_VERSION, Identity, Instant, Level, NodeNo, PoolNo, Priority, ProjectNo, Quanta,
    ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings,
};
use rustix::time::{ClockId, clock_gettime};
use smallvec::smallvec;

const GPU: ClassNo = ClassNo(0);
const CPU: ClassNo = ClassNo(1);
const MEM: ClassNo = ClassNo(2);
const GIB: u64 = 1024;

const NODES_PER_RACK: u32 = 40;
const ZONES: u32 = 4;
/// Live leases for each node.
const LEASES_PER_NODE: usize = 10;
const DECISIONS: usize = 4000;
const GANG: usize = 8;

struct Cluster {
    engine: Engine,
    dice: Dice,
    live: Vec<leasehold_model::LeaseNo>,
    now: Instant,
}

fn who() -> Identity {
    Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() }
}

impl Cluster {
    fn new(nodes: u32, strategy: Strategy) -> Self {
        let mut engine = Engine::default();
        let genesis = Genesis {
            format_version: FORMAT_VERSION,
            origin: name("bench"),
            public_key: [0; 32],
            software: name("leasehold bench"),
        };
        engine.genesis(T0, genesis, &mut Batch::new(0));
        let mut cluster = Self { engine, dice: Dice(5), live: Vec::new(), now: T0 };
        cluster.furnish(nodes, strategy);
        while cluster.live.len() < nodes as usize * LEASES_PER_NODE {
            cluster.grant();
        }
        cluster
    }

    fn decide(&mut self, identity: Identity, command: Command) {
        let mut batch = Batch::new(self.engine.state().size());
        self.now = Instant(self.now.0 + 1000);
        self.engine.decide(self.now, &Request::new(identity, command), &mut batch).expect("the work is valid");
    }

    fn operate(&mut self, command: Command) {
        self.decide(Identity::default(), command);
    }

    fn furnish(&mut self, nodes: u32, strategy: Strategy) {
        for (class, kind, quanta_per_unit) in
            [("gpu", ResourceKind::Gpu, 7), ("cpu", ResourceKind::Cpu, 1000), ("mem", ResourceKind::Mem, 1024)]
        {
            let spec = ClassSpec { name: name(class), kind, tier: None, quanta_per_unit, premium: false };
            self.operate(Command::PutClass(PutClass { class: None, spec }));
        }
        let none = PerPriority::default();
        self.operate(Command::PutPool(PutPool {
            pool: None,
            name: name("main"),
            strategy,
            ttl_max: none,
            lifetime_max: none,
            grace: None,
            weights: None,
            queue: None,
        }));
        for number in 0..nodes {
            let capacity = match number % 3 {
                0 => vec![(GPU, Quanta(8 * 7)), (CPU, Quanta(128_000)), (MEM, Quanta(2048 * GIB))],
                1 => vec![(GPU, Quanta(4 * 7)), (CPU, Quanta(64_000)), (MEM, Quanta(1024 * GIB))],
                _ => vec![(CPU, Quanta(256_000)), (MEM, Quanta(1024 * GIB))],
            };
            let rack = number / NODES_PER_RACK;
            self.operate(Command::PutNode(PutNode {
                node: None,
                name: name(&format!("node-{number:05}")),
                pool: PoolNo(0),
                rack: Some(name(&format!("rack-{rack}"))),
                zone: Some(name(&format!("zone-{}", rack % ZONES))),
                labels: vec![],
                teardown: TeardownMode::Immediate,
                capacity,
            }));
            if self.dice.below(10) == 0 {
                self.heat(NodeNo(number));
            }
        }
        self.operate(Command::PutTenant(PutTenant {
            tenant: None,
            settings: TenantSettings { max_priority: Priority::Guaranteed, ..TenantSettings::named(name("tenant")) },
        }));
        self.operate(Command::PutProject(PutProject { project: None, tenant: TenantNo(0), name: name("main") }));
    }

    /// Its agent reports a bad condition.
    fn heat(&mut self, node: NodeNo) {
        self.operate(Command::RegisterAgent(RegisterAgent { node, instance: 1, takeover: false }));
        let mut level = || [Level::Normal, Level::High, Level::Critical][self.dice.below(3) as usize];
        let (load, errors) = (level(), level());
        let report = ReportCondition { node, generation: 1, load, errors, throttled: true };
        self.operate(Command::ReportCondition(report));
    }

    /// Half of the requests want GPUs, cores and memory; the rest cores, or cores and memory.
    fn request(&mut self) -> RequestLease {
        let dice = &mut self.dice;
        let mut request = RequestLease::of(CPU, Quanta(500 + 500 * dice.below(16)), Span::from_secs(23 * 3600));
        request.pool = Some(PoolNo(0));
        let mem = (MEM, Quanta(512 + 512 * dice.below(64)));
        match dice.below(4) {
            0 | 1 => {
                let gpu = if dice.below(4) == 0 { 7 * (1 + dice.below(2)) } else { 1 + dice.below(6) };
                request.asks.insert(0, (GPU, Quanta(gpu)));
                request.asks.push(mem);
            }
            2 => request.asks.push(mem),
            _ => {}
        }
        request
    }

    fn grant(&mut self) {
        let request = self.request();
        let members = request.asks.len() as u64;
        let before = self.engine.state().live_leases();
        let mut batch = Batch::new(self.engine.state().size());
        self.now = Instant(self.now.0 + 1000);
        let asked = Request::new(who(), Command::Request(request));
        self.engine.decide(self.now, &asked, &mut batch).expect("the work is valid");
        // A request for which there is no capacity is denied; the next one differs.
        if self.engine.state().live_leases() > before {
            let record = batch.frames().next().expect("a record").expect("whole").decode().expect("a record");
            let leasehold_model::Body::Granted(granted) = record.body else { unreachable!("leases came of it") };
            self.live.extend((0..members).map(|n| leasehold_model::LeaseNo(granted.first_lease.0 + n)));
        }
    }

    /// Replaces some leases by others.
    fn churn(&mut self) {
        self.grant();
        while self.live.len() > self.engine.state().nodes().count() * LEASES_PER_NODE {
            let place = self.dice.below(self.live.len() as u64) as usize;
            let lease = self.live.swap_remove(place);
            self.decide(who(), Command::Release(smallvec![ReleaseOne { lease, activity: None }]));
        }
    }

    /// Microseconds of each decision: single requests, and members of gangs of eight.
    fn measure(&mut self) -> Times {
        let mut times = Times::default();
        for step in 0..DECISIONS {
            let request = self.request();
            let (identity, view) = (who(), self.engine.view());
            if step % 8 == 0 {
                let began = cpu_micros();
                let quoted = view.quote_gang(self.now, &identity, &request, GANG);
                let each = (cpu_micros() - began) / GANG as f64;
                std::hint::black_box(quoted.expect("the work is valid").is_ok());
                times.gangs.push(each);
            } else {
                let began = cpu_micros();
                let quoted = view.quote(self.now, &identity, &request);
                times.singles.push(cpu_micros() - began);
                std::hint::black_box(matches!(quoted.expect("the work is valid"), Quoted::Granted(_)));
            }
            self.churn();
        }
        times
    }
}

#[derive(Default)]
struct Times {
    singles: Vec<f64>,
    gangs: Vec<f64>,
}

fn percentile(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// Processor time of this thread, which does not depend on other load.
pub(crate) fn cpu_micros() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The worse of singles and gang members, at one percentile.
struct Figures {
    p50: f64,
    p99: f64,
    note: String,
}

fn figures(nodes: u32, strategy: Strategy) -> Figures {
    let mut times = Cluster::new(nodes, strategy).measure();
    let mut both = |percent| (percentile(&mut times.singles, percent), percentile(&mut times.gangs, percent));
    let (p50, p99) = (both(50), both(99));
    let note = format!("{strategy}: single {:.1} and {:.1}, gang member {:.1} and {:.1}", p50.0, p99.0, p50.1, p99.1);
    Figures { p50: p50.0.max(p50.1), p99: p99.0.max(p99.1), note }
}

pub(crate) fn place() -> Vec<Outcome> {
    let strategies = [Strategy::Spread, Strategy::BinPack];
    let large = strategies.map(|strategy| figures(10_000, strategy));
    let small = strategies.map(|strategy| figures(1_000, strategy));
    let worst = |of: fn(&Figures) -> f64| large.iter().map(of).fold(0.0, f64::max);
    let growth = large.iter().zip(&small).map(|(large, small)| large.p50 / small.p50).fold(0.0, f64::max);
    let notes = |figures: &[Figures]| figures.iter().map(|f| f.note.clone()).collect::<Vec<_>>().join("; ");
    vec![
        Outcome::at_most("place.p50", worst(|f| f.p50), "us", "<= 20", 20.0).note(format!(
            "10,000 nodes of three kinds, 100,000 live leases, a tenth of the nodes hot; us at p50 and p99: {}",
            notes(&large)
        )),
        Outcome::at_most("place.p99", worst(|f| f.p99), "us", "<= 100", 100.0)
            .note("the same; the worse of both strategies, of singles and of members of gangs of 8"),
        Outcome::at_most("place.growth", growth, "times", "<= 3", 3.0)
            .note(format!("p50 at 10,000 nodes against 1,000, the worse strategy; at 1,000: {}", notes(&small))),
    ]
}
