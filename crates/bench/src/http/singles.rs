//! One operation to a request: ask, renew, release, over and over, on many connections.

use super::child::{Served, processor_seconds};
use super::load::{self, Client, Until};
use super::request::{ask, ask_too_much, lease_ids, post};
use crate::work::Dice;
use std::time::Duration;

pub(super) struct Singles {
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// How much of the processor time used was the load's own.
    pub(super) load_share: f64,
    pub(super) denials_per_second: f64,
}

/// A client in its round of three.
struct Round {
    token: String,
    dice: Dice,
    step: u64,
    lease: Option<String>,
}

impl Client for Round {
    fn next(&mut self, out: &mut Vec<u8>) {
        let key = Some(self.dice.draw());
        let bytes = match (&self.lease, self.step % 3) {
            (Some(lease), 1) => post(&format!("/api/v1/leases/{lease}/renew"), &self.token, key, r#"{"ttl":"1h"}"#),
            (Some(lease), _) => post(&format!("/api/v1/leases/{lease}/release"), &self.token, key, "{}"),
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

pub(super) fn run(connections: u64) -> Singles {
    let served = Served::start();
    let token = &served.token;
    let round = |n| Round { token: token.clone(), dice: Dice(n), step: 0, lease: None };
    // What is cold is not what is measured.
    load::run(served.address, (0..connections).map(round).collect(), Until::Passed(Duration::from_secs(1)));
    let before = (served.processor_seconds(), processor_seconds("self"));
    let loaded =
        load::run(served.address, (100..100 + connections).map(round).collect(), Until::Passed(Duration::from_secs(6)));
    let daemon = served.processor_seconds() - before.0;
    let own = processor_seconds("self") - before.1;
    let denied = |n| Denied { token: token.clone(), dice: Dice(n) };
    let denials = load::run(
        served.address,
        (200..200 + connections).map(denied).collect(),
        Until::Passed(Duration::from_secs(2)),
    );
    Singles {
        per_second: loaded.per_second(),
        p50_us: loaded.percentile(500),
        p99_us: loaded.percentile(990),
        load_share: own / (own + daemon),
        denials_per_second: denials.per_second(),
    }
}
