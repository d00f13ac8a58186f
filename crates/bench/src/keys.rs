//! Remembered idempotency keys: what they cost, and whether a busy tenant is ever refused because of them.

use crate::memory::{begin_counting, end_counting, live_bytes};
use crate::outcome::Outcome;
use crate::work::{T0, engine_with_cluster, identity};
use leasehold_engine::command::{Nothing, ReleaseOne, RenewOne, RequestLease};
use leasehold_engine::{Command, Engine, Request};
use leasehold_model::{Batch, ClassNo, Instant, LeaseNo, PoolNo, Quanta, Span};

pub(crate) fn keys() -> Vec<Outcome> {
    let mut outcomes = memory();
    outcomes.push(day());
    outcomes
}

fn started(tenants: u32) -> Engine {
    let mut engine = engine_with_cluster(100, tenants);
    let mut batch = Batch::new(engine.state().size());
    let started = leasehold_model::body::Started {
        epoch: 1,
        software: crate::work::name("leasehold bench"),
        rules_version: leasehold_model::RULES_VERSION,
        clock_accepted: None,
    };
    engine.started(T0, started, &mut batch);
    engine
}

/// Ten million keys of twenty tenants, within their window.
fn memory() -> Vec<Outcome> {
    const KEYS: u64 = 10_000_000;
    const TENANTS: u32 = 20;
    if !begin_counting() {
        return Vec::new();
    }
    let mut engine = started(TENANTS);
    let mut batch = Batch::new(engine.state().size());
    let before = live_bytes();
    for n in 0..KEYS {
        batch.reset(engine.state().size());
        let tenant = (n % u64::from(TENANTS)) as u32;
        let request = Request::once(identity(tenant), Command::Heartbeat(Nothing {}), &n.to_le_bytes());
        engine.decide(T0, &request.expect("a valid key"), &mut batch).expect("a heartbeat is never refused");
    }
    let mib = (live_bytes() - before) as f64 / (1u64 << 20) as f64;
    end_counting();
    vec![
        Outcome::at_most("keys.memory", mib, "MiB", "<= 480", 480.0)
            .note("10,000,000 remembered idempotency keys of 20 tenants, with their index"),
    ]
}

/// A day of one tenant with a manual clock: each second 100 leases are requested, renewed and released, all with keys.
fn day() -> Outcome {
    const PER_SECOND: u64 = 100;
    let mut engine = started(1);
    let mut batch = Batch::new(engine.state().size());
    let (mut refused, mut used, mut next) = (0u64, 0u64, 0u64);
    for second in 0..86_400u64 {
        let now = Instant(T0.0 + second * 1_000_000_000);
        batch.reset(engine.state().size());
        while !engine.advance(now, &mut batch, 1000) {}
        let leases = next..next + PER_SECOND;
        next += PER_SECOND;
        let mut ask = RequestLease::of(ClassNo(0), Quanta(1000), Span::from_secs(60));
        ask.pool = Some(PoolNo(0));
        let requests = leases.clone().map(|_| Command::Request(ask.clone()));
        let renew = |lease| RenewOne { lease: LeaseNo(lease), ttl: Span::from_secs(60), activity: None };
        let renewals = leases.clone().map(|lease| Command::Renew(smallvec::smallvec![renew(lease)]));
        let release = |lease| ReleaseOne { lease: LeaseNo(lease), activity: None };
        let releases = leases.clone().map(|lease| Command::Release(smallvec::smallvec![release(lease)]));
        for command in requests.chain(renewals).chain(releases) {
            used += 1;
            let request = Request::once(identity(0), command, &used.to_le_bytes()).expect("a valid key");
            refused += u64::from(engine.decide(now, &request, &mut batch).is_err());
        }
    }
    Outcome::at_most("keys.day_refused", refused as f64, "operations", "<= 0", 0.0)
        .note(format!("{used} operations of one tenant in a simulated day, each with a key"))
}
