//! A daemon under load to which everything happens: kills, full disks, no files left, bad clients, clock steps, moved
//! segments, forged records. Nothing acknowledged is lost, nothing is carried out twice, and nothing is believed that
//! the daemon did not write.
//!
//! `LEASEHOLD_CHAOS_ROUNDS` and `LEASEHOLD_CHAOS_SEED` make it a soak; each round is a new daemon with 10,000
//! acknowledged operations. With `LEASEHOLD_CHAOS_LATENCY` the latency of the good clients is checked as well, which
//! needs a machine that does nothing else.

mod bad_clients;
mod faults;
mod load;
mod records;
mod site;

use fastrand::Rng;
use faults::Fault;
use load::Load;
use site::Site;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_leasehold");
const OPERATIONS: u64 = 10_000;
const CLIENTS: u64 = 8;
/// Bad times may make a good client's 99th percentile this much worse than quiet times.
const WORSE_MAX: u32 = 10;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_forged_is_believed() {
    let rounds = setting("LEASEHOLD_CHAOS_ROUNDS").unwrap_or(1);
    let seed = setting("LEASEHOLD_CHAOS_SEED").unwrap_or(20_261_116);
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        println!("LEASEHOLD_CHAOS_SEED={seed}");
        survive(seed);
    }
}

fn survive(seed: u64) {
    let mut dice = Rng::with_seed(seed);
    let mut site = Site::new();
    site.restart();
    for line in [
        "class create cpu --kind cpu",
        "pool create main",
        "node create node-1 --pool main --class cpu=1000000 --teardown immediate",
        "tenant create physics",
        "project create lattice --tenant physics",
        "token issue ci --role project-member --tenant physics --project lattice --out {}/ci.token",
    ] {
        site.run(line);
    }
    let trust = site.run("audit trust --data {}/disk/data");
    let token = std::fs::read_to_string(site.path("ci.token")).expect("a token").trim().to_owned();
    let load = Load::new(site.address(), token);
    load.others_sent(records::keyed(&site.data(), &site.archive()).into_keys());
    // A journal of several segments, so that there is something to archive.
    (0..12).for_each(|number| load.bulk(number, 1000));
    let ready = load.acknowledged();

    let mut latencies = Latencies::default();
    std::thread::scope(|scope| {
        // Stopped in any case: a client that goes on would keep the scope from ending when the test fails.
        let _stopped = StopOnDrop(&load);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn({
                    let load = &load;
                    move || load.client(number, seed)
                })
            })
            .collect();
        load.wait_for(1000);
        latencies.quiet(&load);
        let mut deck = Vec::new();
        while load.acknowledged() < ready + OPERATIONS || !deck.is_empty() {
            if deck.is_empty() {
                deck = Fault::ALL.to_vec();
                dice.shuffle(&mut deck);
            }
            let fault = deck.pop().expect("just filled");
            println!("  after {} operations: {fault:?}", load.acknowledged());
            let before = load.book().latencies.len();
            fault.happen(&mut site, &load, &mut dice);
            if fault.leaves_it_running() {
                latencies.disturbed(&load, before);
            }
            assert!(clients.iter().all(|client| !client.is_finished()), "a client has failed");
            load.wait_for(dice.u64(1..400));
        }
        load.stop();
    });
    site.stop();
    check(&site, &load, &trust);
    latencies.check();
}

/// The journal after a clean stop, against what the clients know.
fn check(site: &Site, load: &Load, trust: &str) {
    let found = records::keyed(&site.data(), &site.archive());
    let book = load.book();
    for (key, sequence) in &book.acknowledged {
        assert_eq!(found.get(key), Some(sequence), "{key} was acknowledged by record {sequence}");
    }
    for (key, sequence) in &found {
        assert!(book.sent.contains(key), "record {sequence} answers {key}, which nobody sent");
    }
    let trust = leasehold_verify::Trust::parse(trust).expect("a trust file");
    let options = leasehold_verify::Options {
        data: site.data(),
        archives: vec![site.archive()],
        trust,
        threads: 1,
        progress: None,
    };
    leasehold_verify::verify(&options).unwrap_or_else(|failure| panic!("the journal does not verify: {failure}"));
    let archived = std::fs::read_dir(site.archive()).expect("a folder").count();
    assert!(archived > 0, "nothing was archived");
    println!("  {} acknowledged operations, all of them in the journal once", book.acknowledged.len());
}

struct StopOnDrop<'a>(&'a Load);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// How long good clients waited, in quiet times and while others did harm.
#[derive(Default)]
struct Latencies {
    quiet: Vec<Duration>,
    disturbed: Vec<Duration>,
}

impl Latencies {
    fn quiet(&mut self, load: &Load) {
        self.quiet.extend_from_slice(&load.book().latencies);
    }

    fn disturbed(&mut self, load: &Load, from: usize) {
        self.disturbed.extend_from_slice(&load.book().latencies[from..]);
    }

    fn check(&mut self) {
        let [quiet, disturbed] = [&mut self.quiet, &mut self.disturbed].map(|list| {
            list.sort_unstable();
            list[list.len() * 99 / 100]
        });
        println!("  p99 of a good client: {quiet:?} in quiet times, {disturbed:?} beside bad ones");
        if setting("LEASEHOLD_CHAOS_LATENCY").is_some() {
            assert!(disturbed <= quiet * WORSE_MAX, "more than {WORSE_MAX} times the quiet value");
        }
    }
}
