//! Scheduling on a large cluster: planning evictions, and a scheduling pass over a long queue.

use crate::outcome::Outcome;
use crate::place::cpu_micros;
use crate::work::{CPU, Dice, GPU, MEM, T0, large_cluster, name};
use leasehold_engine::command::RequestLease;
use leasehold_engine::{Command, Engine, Request};
use leasehold_model::body::Genesis;
use leasehold_model::{
    AllocationNo, AllocationSpec, Batch, FORMAT_VERSION, Identity, Instant, Priority, ProjectNo, Quanta, Span, TenantNo,
};
use smallvec::smallvec;

const NODES: u32 = 10_000;
const TENANTS: u32 = 1000;

/// An engine with the large cluster.
struct Rig {
    engine: Engine,
    batch: Batch,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        let mut engine = Engine::default();
        let mut batch = Batch::new(0);
        let genesis = Genesis {
            format_version: FORMAT_VERSION,
            origin: name("bench"),
            public_key: [0; 32],
            software: name("bench"),
        };
        engine.genesis(T0, genesis, &mut batch);
        let mut rig = Self { engine, batch, now: T0 };
        for command in large_cluster(NODES, TENANTS) {
            rig.decide(Identity::default(), command);
        }
        rig
    }

    fn decide(&mut self, identity: Identity, command: Command) -> u64 {
        // Every command has its own timestamp, so that not all leases end at the same instant.
        self.now = Instant(self.now.0 + 1000);
        self.batch.reset(self.engine.state().size());
        let decided = self.engine.decide(self.now, &Request::new(identity, command), &mut self.batch);
        decided.expect("the work is valid").records.first
    }

    /// Runs the scheduling passes that the last command made necessary; returns their time in microseconds.
    fn settle(&mut self) -> f64 {
        self.now = Instant(self.now.0 + 1000);
        self.batch.reset(self.engine.state().size());
        let began = cpu_micros();
        assert!(self.engine.advance(self.now, &mut self.batch, 60_000), "nothing is left");
        cpu_micros() - began
    }

    /// Fills the GPUs with requests, half of them for GPU, cores and memory; returns the number of live leases.
    fn fill(&mut self, dice: &mut Dice, priorities: &[Priority]) -> usize {
        for quanta in [7, 3, 2, 1] {
            let mut misses = 0;
            while misses < 50 {
                let tenant = u32::try_from(dice.below(u64::from(TENANTS))).expect("small");
                let ttl = Span::from_secs(3600 * (1 + dice.below(23)));
                let mut ask = RequestLease::of(GPU, Quanta(1 + dice.below(quanta)), ttl);
                if dice.below(2) == 0 {
                    ask.asks.extend([(CPU, Quanta(500 + 500 * dice.below(4))), (MEM, Quanta(4096 + dice.below(8192)))]);
                }
                ask.priority = priorities[usize::try_from(dice.below(priorities.len() as u64)).expect("small")];
                let before = self.engine.state().live_leases();
                self.decide(identity(tenant), Command::Request(ask));
                misses += usize::from(self.engine.state().live_leases() == before);
            }
        }
        self.engine.state().live_leases()
    }
}

fn identity(tenant: u32) -> Identity {
    Identity { tenant: Some(TenantNo(tenant)), project: Some(ProjectNo(tenant)), ..Identity::default() }
}

/// Milliseconds, at the median and the 99th percentile.
fn percentiles(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |thousandths: usize| times[(times.len() - 1) * thousandths / 1000] / 1000.0;
    (at(500), at(990))
}

/// A guaranteed gang arrives on a full cluster, repeatedly: the time until its victims are chosen and recorded.
pub(crate) fn preemption() -> Vec<Outcome> {
    let mut rig = Rig::new();
    let mut dice = Dice(3);
    let live = rig.fill(&mut dice, &[Priority::Standard, Priority::Scavenger]);
    // The last requests found no capacity and evict other leases themselves.
    rig.settle();
    let mut times = Vec::new();
    for round in 0..200u64 {
        let spec = AllocationSpec {
            priority: Priority::Guaranteed,
            walltime: Some(Span::from_secs(7200)),
            replicas: [1, 1, 2, 4][usize::try_from(round % 4).expect("small")],
            ..AllocationSpec::of(smallvec![(GPU, Quanta(7 * (1 + dice.below(4)))), (CPU, Quanta(8000))])
        };
        let tenant = u32::try_from(dice.below(u64::from(TENANTS))).expect("small");
        let number = rig.decide(identity(tenant), Command::SubmitAllocation(spec.into()));
        let before = rig.engine.state().size();
        times.push(rig.settle());
        assert!(rig.engine.state().size() > before, "something was evicted");
        rig.decide(identity(tenant), Command::CancelAllocation(AllocationNo(number)));
        rig.settle();
    }
    let (median, worst) = percentiles(&mut times);
    vec![Outcome::at_most("preempt.plan", median, "ms", "<= 2 ms", 2.0).note(format!(
        "10,000 nodes, {live} leases, gangs of 1 to 4; median with sealing, 99th percentile {worst:.2} ms"
    ))]
}

/// 100,000 allocations wait on a full cluster, and a running one completes, repeatedly.
pub(crate) fn queue() -> Vec<Outcome> {
    let mut rig = Rig::new();
    let mut dice = Dice(5);
    // Nodes are filled with allocations of one GPU each, until no GPU is free.
    let mut running: Vec<(AllocationNo, u32)> = Vec::new();
    loop {
        let tenant = u32::try_from(dice.below(u64::from(TENANTS))).expect("small");
        let spec = AllocationSpec {
            walltime: Some(Span::from_secs(3600 * (1 + dice.below(12)))),
            ..AllocationSpec::of(smallvec![(GPU, Quanta(7))])
        };
        let number = AllocationNo(rig.decide(identity(tenant), Command::SubmitAllocation(spec.into())));
        if rig.engine.state().waiting() > 0 {
            rig.decide(identity(tenant), Command::CancelAllocation(number));
            break;
        }
        running.push((number, tenant));
    }
    rig.settle();
    // A hundred shapes: sizes, walltimes and priorities.
    for n in 0..100_000u64 {
        let shape = dice.below(100);
        let spec = AllocationSpec {
            priority: if shape.is_multiple_of(2) { Priority::Standard } else { Priority::Scavenger },
            replicas: [1, 1, 1, 2, 4][usize::try_from(shape / 2 % 5).expect("small")],
            walltime: Some(Span::from_secs(600 * (1 + shape / 10))),
            ..AllocationSpec::of(smallvec![(GPU, Quanta(7))])
        };
        rig.decide(
            identity(u32::try_from(n % u64::from(TENANTS)).expect("small")),
            Command::SubmitAllocation(spec.into()),
        );
    }
    rig.settle();
    let waiting = rig.engine.state().waiting();
    let mut times = Vec::new();
    for _ in 0..1000 {
        let at = usize::try_from(dice.below(running.len() as u64)).expect("small");
        let (number, tenant) = running.swap_remove(at);
        let complete =
            leasehold_engine::command::CompleteAllocation { allocation: number, exit_status: None, storage_written: 0 };
        rig.decide(identity(tenant), Command::CompleteAllocation(complete));
        times.push(rig.settle());
    }
    assert!(rig.engine.state().waiting() < waiting - 500, "others start in their place");
    let (median, worst) = percentiles(&mut times);
    vec![Outcome::at_most("queue.wake", median, "ms", "<= 1 ms", 1.0).note(format!(
        "{waiting} wait, of 1,000 tenants and 100 shapes, on 10,000 nodes; median, 99th percentile {worst:.2} ms"
    ))]
}
