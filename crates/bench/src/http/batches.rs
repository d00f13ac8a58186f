//! A thousand operations per request: a batch of requests, then one of renewals, then one of releases.

use super::child::Served;
use super::load::{self, Client, Loaded, Until};
use super::request::{ask, done, lease_ids, post};
use crate::work::Dice;
use std::fmt::Write;

pub(super) const OPERATIONS: u64 = 1000;
pub(super) const CONNECTIONS: u64 = 4;

pub(super) struct Batches {
    token: String,
    dice: Dice,
    step: u64,
    leases: Vec<String>,
}

impl Batches {
    pub(super) fn new(token: &str, seed: u64) -> Self {
        Self { token: token.to_owned(), dice: Dice(seed), step: 0, leases: Vec::new() }
    }
}

impl Client for Batches {
    fn next(&mut self, out: &mut Vec<u8>) {
        let mut body = String::with_capacity(200 * OPERATIONS as usize);
        body.push_str(r#"{"operations":["#);
        for n in 0..OPERATIONS {
            let comma = if n > 0 { "," } else { "" };
            let key = self.dice.draw();
            let written = match self.step % 3 {
                0 => {
                    let ask = ask(&mut self.dice);
                    write!(body, r#"{comma}{{"key":"{key:016x}","request":{ask}}}"#)
                }
                1 => write!(body, r#"{comma}{{"lease":"{}","renew":{{"ttl":"1h"}}}}"#, self.leases[n as usize]),
                _ => write!(body, r#"{comma}{{"lease":"{}","release":{{}}}}"#, self.leases[n as usize]),
            };
            written.expect("memory takes everything");
        }
        body.push_str("]}");
        out.extend_from_slice(&post("/api/v1/leases/batch", &self.token, None, &body));
    }

    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body[..body.len().min(500)]));
        // A refused operation costs little, and must not count.
        assert_eq!(done(body), OPERATIONS, "of {}", String::from_utf8_lossy(&body[..body.len().min(500)]));
        if self.step.is_multiple_of(3) {
            self.leases = lease_ids(body).map(str::to_owned).collect();
        }
        self.step += 1;
        OPERATIONS
    }
}

/// Complete rounds of three batches on every connection: everything that was granted is released.
pub(super) fn load(served: &Served, seed: u64, rounds: u64) -> Loaded {
    load_over(CONNECTIONS, served, seed, rounds)
}

/// The same on so many connections.
pub(super) fn load_over(connections: u64, served: &Served, seed: u64, rounds: u64) -> Loaded {
    let clients = (seed..seed + connections).map(|n| Batches::new(&served.token, n)).collect();
    load::run(served.address(), clients, Until::Answered(3 * rounds))
}

/// Rounds on one daemon: a million leases are requested.
pub(super) const ROUNDS_MAX: u64 = 1_000_000 / (2 * OPERATIONS * CONNECTIONS);

pub(super) fn run() -> f64 {
    let served = Served::start();
    let warming_up = ROUNDS_MAX / 6;
    load(&served, 1, warming_up);
    let loaded = load(&served, 100, ROUNDS_MAX - warming_up);
    eprintln!(
        "  batches: {:.0}/s, {:.1} ms a batch in the median",
        loaded.per_second(),
        loaded.percentile(500) / 1000.0
    );
    loaded.per_second()
}
