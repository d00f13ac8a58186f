//! Simulated allocations: scavengers that use idle capacity, standard work that waits in the queue, and a guaranteed
//! gang that evicts scavengers.
//!
//! One thread reads the state and acts for the holder of every allocation that the user of the demo did not submit.

use super::cluster::{L40S, SANDBOX, SERVE, TENANTS, name, project_no, tenant_no, user_no};
use super::scene::Scene;
use crate::dice::Dice;
use leasehold_cell::Sealed;
use leasehold_engine::command::{CompleteAllocation, ReportCheckpoint};
use leasehold_engine::{Allocation, Command, Request, State};
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, Domain, Identity, Priority, Quanta, Span,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A kind of gang. Times are in scripted milliseconds.
struct Sort {
    tenant: usize,
    workload: &'static str,
    replicas: u32,
    /// GPUs per replica.
    gpus: u64,
    priority: Priority,
    runs_ms: (u64, u64),
    walltime_ms: u64,
}

const PHYSICS: usize = 0;
const ROBOTICS: usize = 4;

const SWEEP: Sort = Sort {
    tenant: ROBOTICS,
    workload: "sweep",
    replicas: 6,
    gpus: 2,
    priority: Priority::Scavenger,
    runs_ms: (4000, 7000),
    walltime_ms: 8000,
};
const ROLLOUT: Sort = Sort {
    tenant: ROBOTICS,
    workload: "rollout",
    replicas: 6,
    gpus: 2,
    priority: Priority::Standard,
    runs_ms: (2500, 4500),
    walltime_ms: 5000,
};
const RECONSTRUCT: Sort = Sort {
    tenant: PHYSICS,
    workload: "reconstruct",
    replicas: 8,
    gpus: 2,
    priority: Priority::Guaranteed,
    runs_ms: (1500, 3000),
    walltime_ms: 3500,
};

/// The order of submissions, one per scripted second.
const ROUND: [&Sort; 8] = [&SWEEP, &ROLLOUT, &SWEEP, &ROLLOUT, &SWEEP, &ROLLOUT, &RECONSTRUCT, &ROLLOUT];
/// Nothing is submitted while this many allocations wait.
const WAITING_MAX: usize = 8;

pub(crate) fn run(scene: &Scene, seed: u64) {
    let mut gangs = Gangs { scene, dice: Dice::new(seed ^ 0x6a09), running: BTreeMap::new() };
    for turn in 0u32.. {
        if !scene.wait_until(scene.pace.ms(250) * turn) {
            return;
        }
        if turn % 4 == 0 {
            gangs.submit(ROUND[turn as usize / 4 % ROUND.len()]);
        }
        gangs.act();
    }
}

struct Gangs<'a> {
    scene: &'a Scene,
    dice: Dice,
    /// When each running allocation completes; `None` once it was completed or saved because of a revocation.
    running: BTreeMap<AllocationNo, Option<Instant>>,
}

impl Gangs<'_> {
    fn submit(&mut self, sort: &Sort) {
        if self.scene.cell.now().read(State::waiting) >= WAITING_MAX {
            return;
        }
        let one_of_two = usize::try_from(self.dice.below(2)).expect("0 or 1");
        let identity = Identity {
            tenant: Some(tenant_no(sort.tenant)),
            project: Some(project_no(sort.tenant, one_of_two)),
            user: Some(user_no(sort.tenant, one_of_two)),
            workload: Some(name(sort.workload)),
            token: None,
        };
        let spec = AllocationSpec {
            pool: Some(SERVE),
            replicas: sort.replicas,
            priority: sort.priority,
            walltime: Some(self.scene.pace.span(sort.walltime_ms)),
            requeue: true,
            together: Some(Domain::Zone),
            ..AllocationSpec::of([(L40S, Quanta(sort.gpus))].into_iter().collect())
        };
        // Denials are recorded and shown in the report.
        let _ = self.scene.cell.call(Request::new(identity, Command::SubmitAllocation(spec.into())));
    }

    /// Acts for the holder of each allocation.
    fn act(&mut self) {
        let found: Vec<Allocation> = self.scene.cell.now().read(|state| {
            let simulated = state.allocations_after(None).filter(|found| found.project != SANDBOX);
            simulated.cloned().collect()
        });
        self.running.retain(|number, _| found.iter().any(|one| one.number == *number && one.state.is_placed()));
        for one in found.into_iter().filter(|one| one.state.is_placed()) {
            match self.running.get(&one.number) {
                None => self.begin(&one),
                Some(None) => {}
                Some(Some(_)) if one.ends.is_some() => self.save(&one),
                Some(Some(done)) if *done <= Instant::now() => self.complete(&one),
                Some(Some(_)) => {}
            }
        }
    }

    fn begin(&mut self, one: &Allocation) {
        let known = [&SWEEP, &ROLLOUT, &RECONSTRUCT].into_iter().find(|sort| {
            one.workload.as_ref().is_some_and(|workload| workload.as_str() == sort.workload) && one.spec.replicas > 1
        });
        let (least, most) = known.map_or((1000, 2000), |sort| sort.runs_ms);
        let drawn = self.scene.pace.ms(self.dice.between(least, most));
        // Leases are not renewed, so the work must end well before their deadline.
        let held = one.spec.ttl.or(one.spec.walltime).unwrap_or(Span::from_secs(3600));
        let runs = drawn.min(Duration::from_nanos(held.0 / 10 * 7));
        self.running.insert(one.number, Some(Instant::now() + runs));
        if one.attempt > 1 {
            self.note(one, &format!("runs again (attempt {})", one.attempt));
        }
    }

    /// Its leases are being revoked: it writes a checkpoint within grace and is requeued.
    fn save(&mut self, one: &Allocation) {
        let bytes = self.dice.between(1, 80) << 30;
        let report = ReportCheckpoint { allocation: one.number, bytes, took: self.scene.pace.span(100) };
        self.running.insert(one.number, None);
        if let Ok(Sealed { repeated: false, .. }) = self.scene.cell.operate(Command::ReportCheckpoint(report)) {
            let why = match one.ends {
                Some(AttemptEnd::Preempted) => "is evicted by a gang of higher priority",
                _ => "is revoked",
            };
            self.note(one, &format!("{why}; it has written a checkpoint and is requeued"));
        }
    }

    fn complete(&mut self, one: &Allocation) {
        self.running.insert(one.number, None);
        let exit_status = Some(u32::from(self.dice.percent(5)));
        let storage_written = self.dice.between(1, 40) << 30;
        let done = CompleteAllocation { allocation: one.number, exit_status, storage_written };
        if one.state != AllocationState::Staging {
            // It may have ended in the meantime.
            let _ = self.scene.cell.operate(Command::CompleteAllocation(done));
        }
    }

    fn note(&self, one: &Allocation, what: &str) {
        let tenant = TENANTS.get(one.tenant.0 as usize).map_or("?", |tenant| tenant.name);
        let workload = one.workload.as_ref().map_or("work", leasehold_model::Name::as_str);
        self.scene.note("queue", format!("{} ({tenant}/{workload}) {what}", one.number));
    }
}
