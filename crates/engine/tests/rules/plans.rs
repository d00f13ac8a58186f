//! A plan of eviction is the one that looking at every node and every lease gives: over random clusters with gangs on
//! one node and on several, whole devices and parts, leases that are sensitive or ending already.

use crate::support::name;
use leasehold_engine::command::{PutClass, PutNode, PutPool, PutProject, PutTenant, RequestLease};
use leasehold_engine::{Command, Engine, Lease, NodeClass, Phase, Request, State};
use leasehold_model::body::{Body, Genesis, PerPriority, PreemptionDecided};
use leasehold_model::{
    AllocationNo, AllocationSpec, Batch, ClassNo, ClassSpec, Identity, Instant, LeaseNo, NodeNo, PoolNo, Priority,
    ProjectNo, Quanta, ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings,
};
use leasehold_oracle::Dice;
use smallvec::smallvec;
use std::collections::{BTreeMap, BTreeSet};

const GPU: ClassNo = ClassNo(0);
const CPU: ClassNo = ClassNo(1);

fn gpus(dice: &mut Dice) -> (ClassNo, Quanta) {
    (GPU, Quanta(if dice.one_in(2) { 7 * (1 + dice.below(6)) } else { 1 + dice.below(7) }))
}
fn cores(dice: &mut Dice) -> (ClassNo, Quanta) {
    (CPU, Quanta(1 + dice.below(12)))
}

struct Cluster {
    engine: Engine,
    dice: Dice,
    now: Instant,
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut engine = Engine::default();
        let now = Instant::from_secs(1_000);
        let genesis = Genesis { format_version: 1, origin: name("o"), public_key: [0; 32], software: name("tests") };
        engine.genesis(now, genesis, &mut Batch::new(0));
        let mut cluster = Self { engine, dice: Dice::new(seed), now };
        for (kind, quanta_per_unit) in [(ResourceKind::Gpu, 7), (ResourceKind::Cpu, 1)] {
            let spec = ClassSpec { name: name(kind.word()), kind, tier: None, quanta_per_unit, premium: false };
            cluster.decide(Identity::default(), Command::PutClass(PutClass { class: None, spec }));
        }
        let none = PerPriority::default();
        cluster.decide(
            Identity::default(),
            Command::PutPool(PutPool {
                pool: None,
                name: name("main"),
                strategy: Strategy::Spread,
                ttl_max: none,
                lifetime_max: none,
                grace: Some(Span::from_secs(600)),
                weights: None,
                queue: None,
            }),
        );
        for number in 0..12 {
            let mut capacity =
                vec![(GPU, Quanta(7 * (1 + cluster.dice.below(8)))), (CPU, Quanta(8 + cluster.dice.below(24)))];
            if cluster.dice.below(6) == 0 {
                capacity.remove(0);
            }
            let node = PutNode {
                node: None,
                name: name(&format!("n{number}")),
                pool: PoolNo(0),
                rack: None,
                zone: None,
                labels: vec![],
                teardown: TeardownMode::Immediate,
                capacity,
            };
            cluster.decide(Identity::default(), Command::PutNode(node));
        }
        cluster.decide(
            Identity::default(),
            Command::PutTenant(PutTenant {
                tenant: None,
                settings: TenantSettings { max_priority: Priority::Guaranteed, ..TenantSettings::named(name("t")) },
            }),
        );
        let project = PutProject { project: None, tenant: TenantNo(0), name: name("p") };
        cluster.decide(Identity::default(), Command::PutProject(project));
        cluster
    }

    /// The records that come of it, of the engine's own accord included; none if it cannot stand.
    fn decide(&mut self, identity: Identity, command: Command) -> Vec<leasehold_model::Record> {
        self.now = Instant(self.now.0 + 1_000_000_000);
        let mut records = Vec::new();
        let mut batch = Batch::new(self.engine.state().size());
        assert!(self.engine.advance(self.now, &mut batch, 60_000));
        let _ = self.engine.decide(self.now, &Request::new(identity, command), &mut batch);
        assert!(self.engine.advance(self.now, &mut batch, 60_000));
        for frame in batch.frames() {
            records.push(frame.expect("whole").decode().expect("a record"));
        }
        records
    }

    /// Something is asked for that others can be evicted from, or not; nothing is left waiting.
    fn fill(&mut self) {
        let dice = &mut self.dice;
        let asks = match dice.below(3) {
            0 => smallvec![gpus(dice)],
            1 => smallvec![cores(dice)],
            _ => smallvec![gpus(dice), cores(dice)],
        };
        let priority = Priority::ALL[usize::try_from(dice.below(7)).expect("small").saturating_sub(1) / 3];
        let ttl = Span::from_secs(3600 + 60 * dice.below(600));
        let command = if dice.below(3) == 0 {
            let replicas = 1 + u32::try_from(dice.below(3)).expect("small");
            let spec = AllocationSpec { priority, replicas, ttl: Some(ttl), ..AllocationSpec::of(asks) };
            Command::SubmitAllocation(spec.into())
        } else {
            let (class, quanta) = asks[0];
            Command::Request(RequestLease { asks, priority, ..RequestLease::of(class, quanta, ttl) })
        };
        self.decide(who(), command);
        self.leave_none_waiting();
    }

    fn leave_none_waiting(&mut self) {
        let waiting: Vec<AllocationNo> =
            self.engine.state().allocations_after(None).filter(|a| a.state.is_queued()).map(|a| a.number).collect();
        for number in waiting {
            self.decide(who(), Command::CancelAllocation(number));
        }
    }
}

fn who() -> Identity {
    Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() }
}

/// Leases that are evicted together.
type Unit = (Option<AllocationNo>, LeaseNo);

fn unit(lease: &Lease) -> Unit {
    (lease.of, if lease.of.is_some() { LeaseNo(0) } else { lease.gang })
}

type Rooms = BTreeMap<NodeNo, Vec<NodeClass>>;

/// Moves a lease in or out of what a node has.
fn put(classes: &mut [NodeClass], class: ClassNo, devices: u64, quanta: u64, taken: bool) {
    let class = classes.iter_mut().find(|c| c.class == class).expect("its class");
    let change = |of: &mut u64, by: u64| *of = if taken { *of + by } else { *of - by };
    change(&mut class.held, quanta);
    let each = quanta / u64::from(devices.count_ones().max(1));
    let set = (0..64).filter(|index| devices >> index & 1 == 1);
    set.for_each(|index| change(&mut class.devices[index], each));
}

/// The devices of each class, if all of it fits.
fn fit(classes: &[NodeClass], spec: &AllocationSpec) -> Option<Vec<u64>> {
    let chosen =
        spec.asks.iter().map(|(class, quanta)| classes.iter().find(|c| c.class == *class)?.choose_devices(*quanta));
    chosen.collect()
}

type EvictionCost = (Priority, usize, u64, NodeNo);

/// Which gangs are evicted on one node, and what that costs.
fn plan_on(
    state: &State,
    gangs: &BTreeMap<Unit, Vec<&Lease>>,
    node: NodeNo,
    rooms: &Rooms,
    spec: &AllocationSpec,
) -> Option<(EvictionCost, Vec<Unit>)> {
    let mut here = rooms[&node].clone();
    let change = |here: &mut Vec<NodeClass>, unit: &Unit, back: bool| {
        for lease in gangs[unit].iter().filter(|lease| lease.node == node) {
            put(here, lease.class, lease.devices, lease.quanta.0, back);
        }
    };
    let on_it: BTreeSet<Unit> = state.leases_on(node).into_iter().map(unit).filter(|u| gangs.contains_key(u)).collect();
    let mut order: Vec<(Priority, Instant, LeaseNo, Unit)> = (on_it.into_iter())
        .filter(|unit| gangs[unit][0].priority < spec.priority)
        .map(|unit| {
            let ends = gangs[&unit].iter().map(|lease| lease.expires_at).max().expect("members");
            let first = gangs[&unit].iter().map(|lease| lease.number).min().expect("members");
            (gangs[&unit][0].priority, ends, first, unit)
        })
        .collect();
    order.sort_unstable();
    let mut added = Vec::new();
    let mut left = order.iter();
    while fit(&here, spec).is_none() {
        let (.., unit) = left.next()?;
        change(&mut here, unit, false);
        added.push(*unit);
    }
    let mut needed = Vec::new();
    for unit in added.into_iter().rev() {
        change(&mut here, &unit, true);
        if fit(&here, spec).is_none() {
            change(&mut here, &unit, false);
            needed.push(unit);
        }
    }
    let highest = needed.iter().map(|unit| gangs[unit][0].priority).max().unwrap_or(Priority::Scavenger);
    let quanta = needed.iter().flat_map(|unit| &gangs[unit]).map(|lease| lease.quanta.0).sum();
    Some(((highest, needed.len(), quanta, node), needed))
}

/// Where the replicas are placed and which gangs are evicted, by examining every node.
fn brute(state: &State, spec: &AllocationSpec) -> Option<(Vec<NodeNo>, BTreeSet<LeaseNo>)> {
    let mut gangs: BTreeMap<Unit, Vec<&Lease>> = BTreeMap::new();
    for lease in state.leases().into_iter().filter(|lease| lease.phase.is_held()) {
        gangs.entry(unit(lease)).or_default().push(lease);
    }
    gangs.retain(|_, members| members.iter().all(|lease| lease.phase == Phase::Active && !lease.sensitive));
    let mut rooms: Rooms = state.nodes().map(|node| (node.number, node.classes.clone())).collect();
    let (mut places, mut victims) = (Vec::new(), BTreeSet::new());
    for _ in 0..spec.replicas {
        let plans = rooms.keys().filter_map(|node| plan_on(state, &gangs, *node, &rooms, spec));
        let ((.., node), fallen) = plans.min()?;
        for unit in fallen {
            for lease in gangs.remove(&unit).expect("it was there") {
                put(rooms.get_mut(&lease.node).expect("a node"), lease.class, lease.devices, lease.quanta.0, false);
                victims.insert(lease.number);
            }
        }
        let here = rooms.get_mut(&node).expect("a node");
        let devices = fit(here, spec).expect("it was planned");
        for ((class, quanta), devices) in spec.asks.iter().zip(devices) {
            put(here, *class, devices, quanta.0, true);
        }
        places.push(node);
    }
    Some((places, victims)).filter(|(_, victims)| !victims.is_empty())
}

fn decided(records: &[leasehold_model::Record]) -> Option<&PreemptionDecided> {
    records.iter().find_map(|record| match &record.body {
        Body::PreemptionDecided(decided) => Some(decided),
        _ => None,
    })
}

fn check(seed: u64) -> usize {
    let mut cluster = Cluster::new(seed);
    let mut plans = 0;
    for step in 0..30 {
        for _ in 0..8 {
            cluster.fill();
        }
        let dice = &mut cluster.dice;
        let spec = AllocationSpec {
            priority: [Priority::Standard, Priority::Guaranteed][usize::try_from(dice.below(2)).expect("small")],
            replicas: 1 + u32::try_from(dice.below(4)).expect("small"),
            walltime: Some(Span::from_secs(3600)),
            ..AllocationSpec::of(if dice.below(3) == 0 {
                smallvec![gpus(dice)]
            } else {
                smallvec![gpus(dice), cores(dice)]
            })
        };
        let expected = brute(cluster.engine.state(), &spec);
        let records = cluster.decide(who(), Command::SubmitAllocation(spec.clone().into()));
        let started = records.iter().any(|record| matches!(record.body, Body::AllocationPlaced(_)));
        if !started && !records.is_empty() {
            let found = decided(&records).map(|decided| {
                let places: Vec<NodeNo> = decided.places.iter().map(|place| place.node).collect();
                (places, decided.victims.0.iter().copied().collect::<BTreeSet<LeaseNo>>())
            });
            assert_eq!(found, expected, "seed {seed}, step {step}: {spec:?}");
            plans += usize::from(found.is_some());
        }
        cluster.leave_none_waiting();
    }
    plans
}

#[test]
fn a_plan_is_the_one_that_looking_at_everything_gives() {
    let seeds = std::env::var("LEASEHOLD_PLAN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let plans: usize = (0..seeds).map(check).sum();
    assert!(plans > 100, "hardly anything was evicted: {plans}");
}
