//! A thousand operations to a request: a batch of requests, then one of renewals, then one of releases.

use super::child::Served;
use super::load::{self, Client, Loaded};
use super::request::{ask, lease_ids, post};
use crate::work::Dice;
use std::fmt::Write;
use std::time::Duration;

const OPERATIONS: u64 = 1000;
const CONNECTIONS: u64 = 4;

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
                1 => write!(
                    body,
                    r#"{comma}{{"key":"{key:016x}","lease":"{}","renew":{{"ttl":"1h"}}}}"#,
                    self.leases[n as usize]
                ),
                _ => write!(
                    body,
                    r#"{comma}{{"key":"{key:016x}","lease":"{}","release":{{}}}}"#,
                    self.leases[n as usize]
                ),
            };
            written.expect("memory takes everything");
        }
        body.push_str("]}");
        out.extend_from_slice(&post("/api/v1/leases/batch", &self.token, None, &body));
    }

    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body[..body.len().min(500)]));
        if self.step % 3 == 0 {
            self.leases = lease_ids(body).map(str::to_owned).collect();
            assert_eq!(self.leases.len() as u64, OPERATIONS, "every request was granted");
        }
        self.step += 1;
        OPERATIONS
    }
}

pub(super) fn load_for(served: &Served, seed: u64, length: Duration) -> Loaded {
    let clients = (seed..seed + CONNECTIONS).map(|n| Batches::new(&served.token, n)).collect();
    load::run(served.address, clients, length)
}

pub(super) fn run() -> f64 {
    let served = Served::start();
    load_for(&served, 1, Duration::from_secs(1));
    let loaded = load_for(&served, 100, Duration::from_secs(5));
    eprintln!(
        "  batches: {:.0}/s, {:.1} ms a batch in the median",
        loaded.per_second(),
        loaded.percentile(500) / 1000.0
    );
    loaded.per_second()
}
