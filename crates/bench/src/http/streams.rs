//! Ten thousand listeners that hear nothing: what they cost in memory, and what they cost the lease path.

use super::batches::load_for;
use super::child::Served;
use crate::Outcome;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const STREAMS: usize = 10_000;
const ROUNDS: u64 = 3;

/// Opens a stream for a tenant that does nothing, and reads its greeting.
fn listen(served: &Served, tenant: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.address).expect("the daemon listens");
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

pub(super) fn run() -> Vec<Outcome> {
    leasehold_server::listen::raise_file_limit();
    let served = Served::start();
    // Tenants of their own: those of the load are never silent.
    let silent: Vec<String> = (0..100).map(|n| format!("silent-{n}")).collect();
    for tenant in &silent {
        let mut stream = TcpStream::connect(served.address).expect("the daemon listens");
        let body = format!(r#"{{"name":"{tenant}"}}"#);
        stream
            .write_all(&super::request::post("/api/v1/tenants", &served.token, None, &body))
            .expect("the daemon listens");
        let mut answer = [0u8; 512];
        let read = stream.read(&mut answer).expect("the daemon answers");
        assert!(answer[..read].starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer[..read]));
    }
    let mut seed = 1000;
    let mut measure = |label: &str| {
        let rate = super::best((0..ROUNDS).map(|_| {
            seed += 10;
            load_for(&served, seed, Duration::from_secs(3)).per_second()
        }));
        eprintln!("  {label}: {rate:.0} operations/s");
        rate
    };
    measure("warming up");
    let alone = measure("nobody listens");
    let before = served.resident_bytes();
    let streams: Vec<TcpStream> = (0..STREAMS).map(|n| listen(&served, &silent[n % silent.len()])).collect();
    let after = served.resident_bytes();
    let listened = measure("ten thousand listen");
    drop(streams);
    let mib = (after - before) / 1024.0 / 1024.0;
    let slowed = Outcome::against("http.sse_10k", listened, "1/s", alone, ">= 0.8", 0.8);
    let slowed = slowed.note("commits with 10,000 silent listeners, beside none");
    vec![slowed, Outcome::at_most("http.sse_10k_memory", mib, "MiB", "< 500", 500.0)]
}
