#![allow(clippy::float_arithmetic)]
use leasehold_bench::work::*;
use leasehold_model::*;
#[inline(never)]
fn timed(e: &mut leasehold_engine::Engine, reqs: &[leasehold_engine::Request], now: &mut Instant, batch: &mut Batch) {
    batch.reset(e.state().size());
    for (i, r) in reqs.iter().enumerate() {
        if i % 32 == 0 {
            e.warm(reqs[i..(i + 32).min(reqs.len())].iter());
        }
        now.0 += 1000;
        e.advance(*now, batch, 1000);
        e.decide(*now, r, batch).unwrap();
    }
}
fn main() {
    let mut e = engine_with_cluster(1000, 1000);
    let mut w = Workload::new(1, 1000);
    fill(&mut e, &mut w, 20000);
    let mut next = 20000u64;
    let mut batch = Batch::new(e.state().size());
    let mut now = T0;
    for _ in 0..30 {
        let mut reqs = Vec::new();
        for i in 0..999 {
            reqs.push(match i % 3 {
                0 => {
                    let (r, t) = w.request();
                    w.live.push((LeaseNo(next), t));
                    next += 1;
                    r
                }
                1 => w.renew(),
                _ => w.release(),
            });
        }
        timed(&mut e, &reqs, &mut now, &mut batch);
    }
}
