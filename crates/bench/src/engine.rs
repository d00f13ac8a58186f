//! The engine alone: transitions per second on one core.

use crate::outcome::{Outcome, best_of_three};
use crate::work::{T0, Workload, engine_with_cluster, fill};
use leasehold_engine::Engine;
use leasehold_model::{Batch, Instant, LeaseNo};
use rustix::time::{ClockId, clock_gettime};

/// The number of requests in a commit.
const CHUNK: usize = 999;
const CHUNKS: usize = 1200;

/// An engine with a constant number of live leases. Requests are created outside the measured time, as in the cell,
/// where other threads create them.
struct Bench {
    engine: Engine,
    work: Workload,
    next_lease: u64,
    now: Instant,
}

impl Bench {
    fn new(live: usize) -> Self {
        let mut engine = engine_with_cluster(1000, 1000);
        let mut work = Workload::new(1, 1000);
        fill(&mut engine, &mut work, live);
        Self { engine, work, next_lease: live as u64, now: T0 }
    }

    fn round(&mut self) -> f64 {
        let mut spent = 0.0;
        let mut batch = Batch::new(self.engine.state().size());
        for _ in 0..CHUNKS {
            let mut requests = Vec::with_capacity(CHUNK);
            for i in 0..CHUNK {
                requests.push(match i % 3 {
                    0 => {
                        let (request, tenant) = self.work.request();
                        self.work.live.push((LeaseNo(self.next_lease), tenant));
                        self.next_lease += 1;
                        request
                    }
                    1 => self.work.renew(),
                    _ => self.work.release(),
                });
            }
            let began = cpu_seconds();
            batch.reset(self.engine.state().size());
            for (i, request) in requests.iter().enumerate() {
                if i % 32 == 0 {
                    self.engine.warm(requests[i..requests.len().min(i + 32)].iter());
                }
                self.now = Instant(self.now.0 + 1000);
                self.engine.advance(self.now, &mut batch, 1000);
                self.engine.decide(self.now, request, &mut batch).expect("the work is valid");
            }
            spent += cpu_seconds() - began;
        }
        (CHUNK * CHUNKS) as f64 / spent
    }
}

/// Processor time of this thread, which does not depend on other load.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

pub(crate) fn transitions() -> Vec<Outcome> {
    let at_100k = {
        let mut bench = Bench::new(100_000);
        best_of_three(|| bench.round())
    };
    let at_1m = {
        let mut bench = Bench::new(1_000_000);
        best_of_three(|| bench.round())
    };
    vec![
        Outcome::at_least("engine.transitions", at_100k, "1/s", ">= 1,500,000", 1.5e6)
            .note("1,000 nodes, 1,000 tenants, 100,000 live leases; by processor time of one core"),
        Outcome::against("engine.transitions_1m", at_1m, "1/s", at_100k, ">= 0.7 of engine.transitions", 0.7)
            .note("1,000,000 live leases"),
    ]
}
