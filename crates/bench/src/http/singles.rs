//! One operation per request: request, renew, release, repeatedly, on many connections.

use super::bare;
use super::child::{Served, Server, processor_seconds};
use super::load::{self, Client, Until};
use super::request::{ask, ask_too_much, lease_ids, post};
use crate::work::Dice;
use std::time::Duration;

const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
const DENIALS_MEASURED: Duration = Duration::from_secs(1);

pub(super) struct Singles {
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The load generator's share of the processor time used.
    pub(super) load_share: f64,
    pub(super) denials_per_second: f64,
}

impl Singles {
    pub(super) fn summary(&self) -> String {
        format!(
            "{:.0}/s, p50 {:.0} us, p99 {:.0} us, load generator {:.0} % of the processor time used",
            self.per_second,
            self.p50_us,
            self.p99_us,
            self.load_share * 100.0
        )
    }
}

/// A client that requests, renews and releases.
pub(super) struct Round {
    token: String,
    dice: Dice,
    step: u64,
    lease: Option<String>,
}

impl Round {
    pub(super) fn new(token: &str, seed: u64) -> Self {
        Self { token: token.to_owned(), dice: Dice(seed), step: 0, lease: None }
    }
}

impl Client for Round {
    fn next(&mut self, out: &mut Vec<u8>) {
        let key = Some(self.dice.draw());
        let bytes = match (&self.lease, self.step % 3) {
            (Some(lease), 1) => post(&format!("/api/v1/leases/{lease}/renew"), &self.token, None, r#"{"ttl":"1h"}"#),
            (Some(lease), _) => post(&format!("/api/v1/leases/{lease}/release"), &self.token, None, "{}"),
            (None, _) => post("/api/v1/leases", &self.token, key, &ask(&mut self.dice)),
        };
        out.extend_from_slice(&bytes);
    }

    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        match self.step % 3 {
            0 => {
                assert_eq!(status, 201, "{}", String::from_utf8_lossy(body));
                self.lease = lease_ids(body).next().map(str::to_owned);
            }
            1 => assert_eq!(status, 200, "{}", String::from_utf8_lossy(body)),
            _ => {
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
                self.lease = None;
            }
        }
        self.step += 1;
        1
    }
}

/// A client that is always denied.
struct Denied {
    token: String,
    dice: Dice,
}

impl Client for Denied {
    fn next(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&post(
            "/api/v1/leases",
            &self.token,
            Some(self.dice.draw()),
            &ask_too_much(&mut self.dice),
        ));
    }
    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        assert_eq!(status, 409, "{}", String::from_utf8_lossy(body));
        1
    }
}

/// Keeps the connections busy with rounds of three; returns the figures, without those of denials.
fn rounds(server: &Server, token: &str, connections: u64) -> Singles {
    let clients = |first: u64| (first..first + connections).map(|n| Round::new(token, n)).collect();
    load::run(server.address, clients(0), Until::Passed(WARM_UP));
    let before = (server.processor_seconds(), processor_seconds("self"));
    let loaded = load::run(server.address, clients(100), Until::Passed(MEASURED));
    let used = server.processor_seconds() - before.0;
    let own = processor_seconds("self") - before.1;
    Singles {
        per_second: loaded.per_second(),
        p50_us: loaded.percentile(500),
        p99_us: loaded.percentile(990),
        load_share: own / (own + used),
        denials_per_second: 0.0,
    }
}

/// The daemon, then the bare server under the same load.
pub(super) fn run(connections: u64) -> (Singles, Singles) {
    let served = Served::start();
    let token = served.token.clone();
    let answers = bare::Answers::record(&served);
    let ours = rounds(&served.server, &token, connections);
    let denied = |n| Denied { token: token.clone(), dice: Dice(n) };
    let denials =
        load::run(served.address(), (200..200 + connections).map(denied).collect(), Until::Passed(DENIALS_MEASURED));
    drop(served);
    let server = bare::start(&answers, &token);
    let bare = rounds(&server, &token, connections);
    (Singles { denials_per_second: denials.per_second(), ..ours }, bare)
}
