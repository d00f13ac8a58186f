#![allow(clippy::float_arithmetic)]
use leasehold_bench::work::*;
use leasehold_model::*;
fn main() {
    for live in [100_000usize, 1_000_000] {
        let mut e = engine_with_cluster(1000, 1000);
        let mut w = Workload::new(1, 1000);
        fill(&mut e, &mut w, live);
        let mut next = live as u64;
        let mut batch = Batch::new(e.state().size());
        let mut now = T0;
        for round in 0..4 {
            let mut spent = std::time::Duration::ZERO;
            let chunk = 3000;
            let chunks = 400;
            for _ in 0..chunks {
                let mut reqs = Vec::new();
                for i in 0..chunk {
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
                let t = std::time::Instant::now();
                for (i, r) in reqs.iter().enumerate() {
                    now = Instant(now.0 + 1000);
                    if i % 32 == 0 {
                        e.warm(reqs[i..(i + 32).min(reqs.len())].iter());
                    }
                    if i % 1000 == 0 {
                        batch.reset(e.state().size());
                    }
                    e.advance(now, &mut batch, 1000);
                    e.decide(now, r, &mut batch).unwrap();
                }
                spent += t.elapsed();
            }
            println!("live {live} round {round}: {:.0}/s", (chunk * chunks) as f64 / spent.as_secs_f64());
        }
    }
}
