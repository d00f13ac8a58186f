//! The search finds the node that scoring every node finds: over random clusters, with several
//! pools, weights and profiles, labels, drained and lost and hot nodes, quotas per node and fenced
//! devices; alone and as gangs. The scores are the oracle's.

use crate::support::name;
use leasehold_engine::command::{
    LoseNode, PutClass, PutNode, PutPool, PutProject, PutQuota, PutTenant, RegisterAgent, ReleaseOne, ReportCondition,
    RequestLease,
};
use leasehold_engine::{Command, Engine, Node, NodeClass, Request, Settings, State};
use leasehold_model::body::{Body, Genesis, PerPriority};
use leasehold_model::{
    Batch, ClassNo, ClassSpec, Identity, Instant, Level, LimitKind, Measure, Name, NodeNo, NodeScope, PoolNo, Priority,
    Profile, ProjectNo, Quanta, QuotaScope, ResourceKind, Sensitivity, Span, Strategy, TeardownMode, TenantNo,
    TenantSettings, Weights,
};
use leasehold_oracle::Dice;
use leasehold_oracle::placement::{ClassSeen, NodeSeen, Site, score};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

const KINDS: [ResourceKind; 4] = [ResourceKind::Gpu, ResourceKind::Cpu, ResourceKind::Mem, ResourceKind::Net];

struct Cluster {
    engine: Engine,
    dice: Dice,
    now: Instant,
    nodes: u32,
}

impl Cluster {
    fn new(seed: u64, nodes: u32) -> Self {
        let mut engine = Engine::default();
        let genesis = Genesis { format_version: 1, origin: name("o"), public_key: [0; 32], software: name("tests") };
        engine.genesis(Instant::from_secs(1_000), genesis, &mut Batch::new(0));
        let mut cluster = Self { engine, dice: Dice::new(seed), now: Instant::from_secs(1_000), nodes };
        cluster.furnish();
        cluster
    }

    fn operate(&mut self, command: Command) {
        let mut batch = Batch::new(self.engine.state().size());
        // What cannot stand, such as draining a drained node, does not.
        let _ = self.engine.decide(self.now, &Request::new(Identity::default(), command), &mut batch);
    }

    fn furnish(&mut self) {
        let heat_half_life = Span::from_secs(1 + self.dice.below(1000));
        let teardown_deadline = Span::from_secs(20);
        self.operate(Command::ChangeSettings(Settings { heat_half_life, teardown_deadline, ..Settings::default() }));
        for kind in KINDS {
            let quanta_per_unit = if kind == ResourceKind::Gpu { 7 } else { 10 };
            let spec = ClassSpec { name: name(kind.word()), kind, tier: None, quanta_per_unit, premium: false };
            self.operate(Command::PutClass(PutClass { class: None, spec }));
        }
        for pool in 0..3 {
            let strategy = if self.dice.one_in(2) { Strategy::Spread } else { Strategy::BinPack };
            let weights = self.dice.one_in(2).then(|| Some(self.weights()));
            let none = PerPriority::default();
            let put = PutPool {
                pool: None,
                name: name(&format!("pool{pool}")),
                strategy,
                ttl_max: none,
                lifetime_max: none,
                grace: None,
                weights,
                queue: None,
            };
            self.operate(Command::PutPool(put));
        }
        let sizes: Vec<u64> = (0..3).map(|_| 1 + self.dice.below(4)).collect();
        let bits = self.dice.below(40);
        let much = 1 + self.dice.below(1 << bits);
        for node in 0..self.nodes {
            let put = self.node(node, &sizes, much);
            self.operate(Command::PutNode(put));
            if self.dice.one_in(3) {
                let node = NodeNo(node);
                self.operate(Command::RegisterAgent(RegisterAgent { node, instance: 1, takeover: false }));
            }
        }
        let tenant = TenantNo(0);
        self.operate(Command::PutTenant(PutTenant {
            tenant: None,
            settings: TenantSettings { max_priority: Priority::Guaranteed, ..TenantSettings::named(name("t")) },
        }));
        self.operate(Command::PutProject(PutProject { project: None, tenant, name: name("p") }));
        for _ in 0..self.dice.below(3) {
            let measure = if self.dice.one_in(2) { Measure::Leases } else { Measure::Nodes };
            let node = if measure == Measure::Leases { NodeScope::Each } else { NodeScope::All };
            let pool = self.dice.one_in(2).then(|| PoolNo(self.dice.small(3)));
            let scope = QuotaScope { node, pool, ..QuotaScope::of_tenant(tenant) };
            let limit = LimitKind::Hard { limit: 1 + self.dice.below(30) };
            self.operate(Command::PutQuota(PutQuota::new(None, scope, measure, limit)));
        }
    }

    fn weights(&mut self) -> Weights {
        let mut cuts = [0; 3].map(|_| u16::try_from(self.dice.below(1001)).expect("small"));
        cuts.sort_unstable();
        let [a, b, c] = cuts;
        Weights { pressure: a, fit: b - a, locality: c - b, fragmentation: 1000 - c }
    }

    /// Mostly of a few kinds; now and then like no other.
    fn node(&mut self, number: u32, sizes: &[u64], much: u64) -> PutNode {
        let dice = &mut self.dice;
        let size = sizes[usize::try_from(dice.below(3)).expect("small")];
        let odd = if dice.one_in(6) { dice.below(much) } else { 0 };
        let mut capacity = vec![
            (ClassNo(0), Quanta(7 * size)),
            (ClassNo(1), Quanta(size * 40 + odd)),
            (ClassNo(2), Quanta(size * much + odd)),
            (ClassNo(3), Quanta(100)),
        ];
        capacity.truncate(4 - usize::from(dice.one_in(5)));
        if dice.one_in(10) {
            capacity.remove(0);
        }
        // Those with one class and no devices are found another way.
        if dice.one_in(3) {
            capacity = vec![(ClassNo(1), Quanta(size * 40 + odd % 3))];
        }
        PutNode {
            node: None,
            name: name(&format!("n{number}")),
            pool: PoolNo(dice.small(3)),
            rack: (!dice.one_in(5)).then(|| name(&format!("r{}", dice.below(4)))),
            zone: (!dice.one_in(5)).then(|| name(&format!("z{}", dice.below(2)))),
            labels: labels(dice, 2),
            teardown: if dice.one_in(3) { TeardownMode::Confirmed } else { TeardownMode::Immediate },
            capacity,
        }
    }

    fn request(&mut self) -> RequestLease {
        let state = self.engine.state();
        let most = state.nodes().filter_map(|node| node.class(ClassNo(2))).map(|class| class.capacity).max();
        let dice = &mut self.dice;
        let mut asks: SmallVec<[(ClassNo, Quanta); 2]> = smallvec![];
        let plain = dice.one_in(4);
        if !plain && !dice.one_in(3) {
            let quanta = if dice.one_in(3) { 7 * (1 + dice.below(2)) } else { 1 + dice.below(7) };
            asks.push((ClassNo(0), Quanta(quanta)));
        }
        if asks.is_empty() || dice.one_in(2) {
            asks.push((ClassNo(1), Quanta(1 + dice.below(20))));
        }
        if !plain && dice.one_in(2) {
            asks.push((ClassNo(2), Quanta(1 + dice.below(most.unwrap_or(1) / 4 + 1))));
        }
        if !plain && dice.one_in(8) {
            asks.push((ClassNo(3), Quanta(1 + dice.below(50))));
        }
        let mut request = RequestLease::of(ClassNo(0), Quanta(1), Span::from_secs(60 + dice.below(4000)));
        request.asks = asks;
        request.pool = dice.one_in(2).then(|| PoolNo(dice.small(3)));
        request.labels = labels(dice, 6);
        let level = |dice: &mut Dice| Sensitivity::ALL[usize::try_from(dice.below(5)).expect("small")];
        request.profile = dice.one_in(2).then(|| Profile([(); 5].map(|()| level(dice))));
        request
    }

    /// Something happens that moves nodes about, cools them or heats them.
    fn stir(&mut self) {
        let node = NodeNo(self.dice.small(self.nodes));
        match self.dice.below(12) {
            0 => self.operate(Command::DrainNode(node.into())),
            1 => self.operate(Command::ResumeNode(node.into())),
            2 => self.operate(Command::LoseNode(LoseNode { node, last_seen: self.now })),
            3 => self.operate(Command::ReturnNode(node)),
            4 | 5 => {
                let levels = [self.dice.below(3), self.dice.below(3)];
                let [load, errors] = levels.map(|level| Level::ALL[usize::try_from(level).expect("small")]);
                let throttled = self.dice.one_in(2);
                let report = ReportCondition { node, generation: 1, load, errors, throttled };
                self.operate(Command::ReportCondition(report));
            }
            6 => {
                let settings = self.engine.state().settings().clone();
                let heat_half_life = Span::from_secs(1 + self.dice.below(1000));
                self.operate(Command::ChangeSettings(Settings { heat_half_life, ..settings }));
            }
            7..10 => {
                let leases = self.engine.state().leases();
                if !leases.is_empty() {
                    let lease = leases[usize::try_from(self.dice.below(leases.len() as u64)).expect("few")].number;
                    self.operate(Command::Release(smallvec![ReleaseOne { lease, activity: None }]));
                }
            }
            _ => {
                self.now = self.now.saturating_add(Span::from_millis(self.dice.below(60_000)));
                let mut batch = Batch::new(self.engine.state().size());
                self.engine.advance(self.now, &mut batch, u32::MAX);
            }
        }
    }
}

fn labels(dice: &mut Dice, rarely: u64) -> Vec<(Name, Name)> {
    let keys = ["a", "b"].iter().filter(|_| dice.one_in(rarely)).collect::<Vec<_>>();
    keys.into_iter().map(|key| (name(key), name("x"))).collect()
}

fn who() -> Identity {
    Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() }
}

/// Which devices, by the rule of SEMANTICS 1: the fullest that has room, or whole ones.
fn devices(class: &NodeClass, quanta: u64) -> Option<Vec<usize>> {
    if class.capacity - class.used() < quanta {
        return None;
    }
    if class.per_device == 0 {
        return Some(Vec::new());
    }
    let all = || class.devices.iter().copied().enumerate();
    if quanta <= class.per_device {
        let fitting = all().filter(|(_, used)| used + quanta <= class.per_device);
        return fitting.max_by_key(|(place, used)| (*used, usize::MAX - place)).map(|(place, _)| vec![place]);
    }
    let count = usize::try_from(quanta / class.per_device).expect("few");
    let whole: Vec<usize> = all().filter(|(_, used)| *used == 0).map(|(place, _)| place).take(count).collect();
    (whole.len() == count).then_some(whole)
}

/// What a gang has taken so far: nodes as they would be, and how many leases on each.
#[derive(Default)]
struct Taken {
    classes: BTreeMap<NodeNo, Vec<NodeClass>>,
    places: Vec<NodeNo>,
}

impl Taken {
    fn of<'a>(&'a self, node: &'a Node) -> &'a [NodeClass] {
        self.classes.get(&node.number).map_or(&node.classes, Vec::as_slice)
    }

    fn take(&mut self, state: &State, number: NodeNo, request: &RequestLease) {
        let node = state.node(number).expect("it was found");
        let classes = self.classes.entry(number).or_insert_with(|| node.classes.clone());
        for (class, quanta) in &request.asks {
            let class = classes.iter_mut().find(|c| c.class == *class).expect("it fits");
            let devices = devices(class, quanta.0).expect("it fits");
            class.held += quanta.0;
            let each = quanta.0 / devices.len().max(1) as u64;
            devices.into_iter().for_each(|place| class.devices[place] += each);
        }
        self.places.push(number);
    }

    /// Hard limits on leases per node and on nodes in all, with what was taken.
    fn quotas_allow(&self, state: &State, node: &Node, request: &RequestLease) -> bool {
        state.quotas_of(TenantNo(0)).all(|quota| {
            if quota.scope.pool.is_some_and(|pool| pool != node.pool) {
                return true;
            }
            let in_scope = |number: &NodeNo| {
                let pool = state.node(*number).expect("it was found").pool;
                quota.scope.pool.is_none_or(|own| own == pool)
            };
            let leases = request.asks.len() as u128;
            let held: BTreeMap<NodeNo, u128> = quota.used_by_node().collect();
            let taken = self.places.iter().filter(|number| in_scope(number));
            if quota.measure == Measure::Nodes {
                let mut all: Vec<NodeNo> = held.keys().chain(taken).copied().chain([node.number]).collect();
                all.sort_unstable();
                all.dedup();
                return all.len() as u64 <= quota.limit.limit();
            }
            let here = taken.filter(|number| **number == node.number).count() as u128 * leases;
            held.get(&node.number).copied().unwrap_or(0) + here + leases <= u128::from(quota.limit.limit())
        })
    }
}

fn site(node: &Node) -> Site {
    Site { node: node.number, rack: node.rack.clone(), zone: node.zone.clone() }
}

/// The node with the highest score: every node is scored.
fn best(state: &State, now: Instant, request: &RequestLease, taken: &Taken) -> Option<NodeNo> {
    let peers: Vec<Site> = taken.places.iter().map(|peer| site(state.node(*peer).expect("it was found"))).collect();
    let mut found: Option<(u64, NodeNo)> = None;
    for node in state.nodes() {
        let suits = !node.drained
            && !node.lost
            && request.pool.is_none_or(|pool| pool == node.pool)
            && request.labels.iter().all(|label| node.labels.contains(label));
        if !suits || !taken.quotas_allow(state, node, request) {
            continue;
        }
        let class = |(class, quanta): &(ClassNo, Quanta)| {
            let of_node = taken.of(node).iter().find(|c| c.class == *class)?;
            devices(of_node, quanta.0)?;
            let kind = state.class(*class).expect("a class").kind;
            Some(ClassSeen {
                asked: quanta.0,
                free: of_node.capacity - of_node.used(),
                total: of_node.capacity,
                sensitivity: request.profile.map(|profile| profile.of(kind)),
            })
        };
        let Some(classes) = request.asks.iter().map(class).collect() else { continue };
        let heat = node.heat.at(now, state.settings().heat_half_life);
        let weights = state.pool(node.pool).expect("a pool").weighing().weights();
        let score = score(&NodeSeen { site: site(node), heat, classes }, &peers, weights);
        if found.is_none_or(|(best, _)| score > best) {
            found = Some((score, node.number));
        }
    }
    found.map(|(_, node)| node)
}

fn check(seed: u64, nodes: u32, steps: u32) {
    let mut cluster = Cluster::new(seed, nodes);
    for step in 0..steps {
        let request = cluster.request();
        let (now, state) = (cluster.now, cluster.engine.view());
        let members = 1 + usize::try_from(cluster.dice.below(9)).expect("few");
        if let Ok(gang) = state.quote_gang(now, &who(), &request, members) {
            let mut taken = Taken::default();
            for member in 0..members {
                let Some(expected) = best(&state, now, &request, &taken) else { break };
                if let Ok(places) = &gang {
                    assert_eq!(places[member], expected, "seed {seed}, step {step}, member {member} of {request:?}");
                }
                taken.take(&state, expected, &request);
            }
            assert_eq!(gang.is_ok(), taken.places.len() == members, "seed {seed}, step {step}: {request:?}, {gang:?}");
            let explained = state.explain_request(now, &who(), &request, 3).expect("a request that was quoted");
            let first = explained.best.first().map(|candidate| candidate.node);
            assert_eq!(first, taken.places.first().copied(), "seed {seed}, step {step}: {request:?}");
        }
        let expected = best(&state, now, &request, &Taken::default());
        let mut batch = Batch::new(state.size());
        let command = Command::Request(request);
        if cluster.engine.decide(now, &Request::new(who(), command), &mut batch).is_ok() {
            let record = batch.frames().next().expect("one record").expect("whole").decode().expect("a record");
            let granted = if let Body::Granted(granted) = &record.body { Some(granted.node) } else { None };
            assert_eq!(granted, expected, "seed {seed}, step {step}: {record:?}");
        }
        (0..cluster.dice.below(3)).for_each(|_| cluster.stir());
        if cluster.dice.one_in(40) {
            let bytes = cluster.engine.state().to_snapshot();
            cluster.engine = Engine::new(State::from_snapshot(&bytes).expect("what was written"));
        }
    }
}

#[test]
fn in_small_clusters() {
    (0..120).for_each(|seed| check(seed, 1 + u32::try_from(seed % 40).expect("small"), 40));
}

#[test]
fn in_larger_ones() {
    (0..12).for_each(|seed| check(1000 + seed, 150, 60));
}

/// Enough for several levels of summaries in one tree.
#[test]
fn in_a_large_one() {
    (0..2).for_each(|seed| check(2000 + seed, 4000, 12));
}
