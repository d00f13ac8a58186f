#![allow(clippy::float_arithmetic)]
use leasehold_bench::work::*;
use leasehold_cell::*;
use leasehold_engine::Command;
use leasehold_journal::*;
use leasehold_model::*;
use std::collections::VecDeque;
use std::sync::Arc;
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let n: u64 = std::env::args().nth(2).map(|s| s.parse().unwrap()).unwrap_or(2_000_000);
    let clock = Arc::new(SystemClock::new());
    let keys = Arc::new(Keys::new("bench", &[7; 32]).unwrap());
    let pk = keys.public_keys()[0];
    let disk = Arc::new(RealDisk::new(&dir));
    let j = Arc::new(FileJournal::create(disk, Options::default(), keys, clock.wall()).unwrap());
    j.prepare().unwrap();
    let (cell, _) =
        Cell::start(j.clone(), clock.clone(), CellOptions::new(StartOptions::new(name("bench"), pk))).unwrap();
    for c in cluster(1000, 1000) {
        cell.operate(c);
    }
    let cell = Arc::new(cell);
    let t = std::time::Instant::now();
    let per = n / 64;
    let hs: Vec<_> = (0..64u64)
        .map(|s| {
            let cell = cell.clone();
            std::thread::spawn(move || {
                let mut w = Workload::new(s * 1000 + 1, 1000);
                w.step = s << 40;
                let inbox = Arc::new(Inbox::new());
                let mut out = 0u64;
                let mut sent = 0u64;
                let mut got = VecDeque::new();
                let mut lat: Vec<u64> = Vec::with_capacity(per as usize);
                let t0 = std::time::Instant::now();
                let mut done = 0;
                let mut phase = 0u64;
                while done < per {
                    let mut subs = Vec::new();
                    while out < 64 && sent < per {
                        w.step += 1;
                        phase += 1;
                        let (r, ten) = match phase % 3 {
                            1 => {
                                let (r, t) = w.request();
                                (r, t)
                            }
                            2 if !w.live.is_empty() => (w.renew(), 0),
                            0 if !w.live.is_empty() => (w.release(), 0),
                            _ => {
                                let (r, t) = w.request();
                                (r, t)
                            }
                        };
                        let at = t0.elapsed().as_micros() as u64;
                        subs.push(Submission { request: r, to: inbox.clone(), tag: at << 16 | u64::from(ten) });
                        out += 1;
                        sent += 1;
                    }
                    cell.submit(subs);
                    inbox.take(&mut got);
                    let nowt = t0.elapsed().as_micros() as u64;
                    for (tag, rep) in got.drain(..) {
                        out -= 1;
                        done += 1;
                        lat.push(nowt - (tag >> 16));
                        match rep {
                            Reply::Sealed { records, .. } => {
                                if let Body::Granted(g) = &records[0].body {
                                    w.live.push((g.first_lease, (tag & 0xffff) as u32));
                                }
                            }
                            Reply::Refused(r) => panic!("{r}"),
                            o => panic!("{o:?}"),
                        }
                    }
                }
                lat
            })
        })
        .collect();
    let mut lat: Vec<u64> = hs.into_iter().flat_map(|h| h.join().unwrap()).collect();
    let s = t.elapsed().as_secs_f64();
    lat.sort_unstable();
    let st = cell.stats();
    let b = st.batches.load(std::sync::atomic::Ordering::Relaxed);
    let r = st.records.load(std::sync::atomic::Ordering::Relaxed);
    println!(
        "{:.0}/s p50 {}us p99 {}us max {}us; {} records/batch; checkpointed {} of {}",
        lat.len() as f64 / s,
        lat[lat.len() / 2],
        lat[lat.len() * 99 / 100],
        lat[lat.len() - 1],
        r / b,
        j.checkpointed().size(),
        j.head().size
    );
    let t = std::time::Instant::now();
    let _ = Command::Heartbeat;
    Arc::try_unwrap(cell).ok().unwrap().stop().unwrap();
    println!("stop {:?}", t.elapsed());
}
