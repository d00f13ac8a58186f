//! The engine alone: transitions per second on one core.

use crate::outcome::{Outcome, best_of_three};
use crate::work::{T0, Workload, engine_with_cluster, fill};
use leasehold_engine::Engine;
use leasehold_model::{Batch, Instant, LeaseNo};
use std::time::{Duration, Instant as Stopwatch};

const CHUNK: usize = 3000;
const CHUNKS: usize = 400;

/// A standing load, and the transitions that keep it standing. Requests are made beside the clock:
/// in the cell they come from other threads.
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
        let mut spent = Duration::ZERO;
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
            let began = Stopwatch::now();
            for (i, request) in requests.iter().enumerate() {
                if i % 1000 == 0 {
                    batch.reset(self.engine.state().size());
                }
                if i % 32 == 0 {
                    self.engine.warm(requests[i..requests.len().min(i + 32)].iter());
                }
                self.now = Instant(self.now.0 + 1000);
                self.engine.advance(self.now, &mut batch, 1000);
                self.engine.decide(self.now, request, &mut batch).expect("the work is valid");
            }
            spent += began.elapsed();
        }
        (CHUNK * CHUNKS) as f64 / spent.as_secs_f64()
    }
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
        Outcome::at_least("engine.transitions", at_100k, "1/s", ">= 1,000,000", 1e6)
            .note("1,000 nodes, 1,000 tenants, 100,000 live leases, one core"),
        Outcome::against("engine.transitions_1m", at_1m, "1/s", at_100k, ">= 0.7 of engine.transitions", 0.7)
            .note("1,000,000 live leases"),
    ]
}
