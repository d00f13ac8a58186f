//! Ten thousand listeners that hear nothing: what they cost in memory, and what they cost the lease path.

use super::batches;
use super::child::Served;
use super::request::post;
use crate::Outcome;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant as Stopwatch};

const STREAMS: usize = 10_000;
const ROUNDS: u64 = 3;
/// Time between two keep-alive messages on a stream without events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Opens a stream for a tenant without activity, and reads its first message.
fn listen(served: &Served, tenant: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.address()).expect("the daemon listens");
    let request = format!(
        "GET /api/v1/events?tenant={tenant} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\r\n",
        served.token
    );
    stream.write_all(request.as_bytes()).expect("the daemon listens");
    let mut greeting = Vec::new();
    let mut piece = [0u8; 1024];
    while !greeting.windows(11).any(|window| window == b": leasehold") {
        let read = stream.read(&mut piece).expect("the daemon answers");
        assert!(read > 0, "the stream was refused: {}", String::from_utf8_lossy(&greeting));
        greeting.extend_from_slice(&piece[..read]);
    }
    stream
}

/// Creates tenants without activity: those of the load always have some.
fn make_silent(served: &Served) -> Vec<String> {
    let silent: Vec<String> = (0..100).map(|n| format!("silent-{n}")).collect();
    for tenant in &silent {
        let mut stream = TcpStream::connect(served.address()).expect("the daemon listens");
        let body = format!(r#"{{"name":"{tenant}"}}"#);
        stream.write_all(&post("/api/v1/tenants", &served.token, None, &body)).expect("the daemon listens");
        let mut answer = [0u8; 512];
        let read = stream.read(&mut answer).expect("the daemon answers");
        assert!(answer[..read].starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer[..read]));
    }
    silent
}

/// Opens all streams, spread over the time between two keep-alive messages, so that these are spread evenly over the
/// load.
fn open_all(served: &Served, silent: &[String]) -> Vec<TcpStream> {
    let began = Stopwatch::now();
    let mut streams = Vec::with_capacity(STREAMS);
    for n in 0..STREAMS {
        let due = KEEP_ALIVE.mul_f64(n as f64 / STREAMS as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        streams.push(listen(served, &silent[n % silent.len()]));
    }
    streams
}

/// Rounds of batches in each phase: those that warm up, and those that are measured. All phases together stay below the
/// million records after which the daemon takes a snapshot, which would always happen in the same phase.
const WARMING_UP: u64 = 6;
const WORK: u64 = 20;
const _: () = assert!(3 * (WARMING_UP + WORK) <= batches::ROUNDS_MAX, "nothing is refused");

/// The figures of one daemon: without listeners, with them, and without them again, with the same work each time.
struct Round {
    alone: [Phase; 2],
    listened: Phase,
    bytes: f64,
}

struct Phase {
    per_second: f64,
    /// Processor time of the daemon per operation, which depends less on other load than the rate.
    processor_us: f64,
}

fn phase(served: &Served, seed: u64) -> Phase {
    batches::load(served, seed, WARMING_UP);
    let before = served.processor_seconds();
    let loaded = batches::load(served, seed + batches::CONNECTIONS, WORK);
    let processor_us = (served.processor_seconds() - before) * 1e6 / loaded.operations as f64;
    Phase { per_second: loaded.per_second(), processor_us }
}

fn round(seed: u64) -> Round {
    let served = Served::start();
    let silent = make_silent(&served);
    let before = phase(&served, seed);
    let (files, bytes) = (served.open_files(), served.resident_bytes());
    let streams = open_all(&served, &silent);
    let bytes = served.resident_bytes() - bytes;
    let listened = phase(&served, seed + 10);
    drop(streams);
    while served.open_files() > files {
        std::thread::sleep(Duration::from_millis(10));
    }
    let after = phase(&served, seed + 20);
    let show = |phase: &Phase| format!("{:.0}/s at {:.2} us", phase.per_second, phase.processor_us);
    let [before_shown, listened_shown, after_shown] = [&before, &listened, &after].map(show);
    eprintln!("  no listeners: {before_shown}; 10,000: {listened_shown}; none again: {after_shown}");
    Round { alone: [before, after], listened, bytes }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    if rates.len() % 2 == 1 { rates[middle] } else { f64::midpoint(rates[middle - 1], rates[middle]) }
}

pub(crate) fn run() -> Vec<Outcome> {
    leasehold_server::listen::raise_file_limit();
    let rounds: Vec<Round> = (0..ROUNDS).map(|n| round(1000 * (n + 1))).collect();
    let alone = || rounds.iter().flat_map(|round| &round.alone);
    let listened = || rounds.iter().map(|round| &round.listened);
    let mib = rounds.iter().map(|round| round.bytes).fold(0.0, f64::max) / 1024.0 / 1024.0;
    let rates = [median(listened().map(|p| p.per_second).collect()), median(alone().map(|p| p.per_second).collect())];
    let costs =
        [median(listened().map(|p| p.processor_us).collect()), median(alone().map(|p| p.processor_us).collect())];
    let slowed = Outcome::against("http.sse_10k", rates[0], "1/s", rates[1], ">= 0.8", 0.8).note(format!(
        "10,000 listeners without events, compared with none; medians; processor time of the daemon per operation {:.2} us, compared with {:.2} us",
        costs[0], costs[1]
    ));
    vec![slowed, Outcome::at_most("http.sse_10k_memory", mib, "MiB", "< 500", 500.0)]
}
