//! A million allocations through the daemon: submitted, placed at once and completed, each with a tenant's token, over
//! persistent connections, every request answered after its fsync. There are ten thousand nodes of three kinds with a
//! hundred thousand other leases.

use super::child::{LARGE_NODES, Served, TENANTS, processor_seconds};
use super::fetch::fetch;
use super::load::{self, Client, Until};
use super::request::{done, get, post};
use crate::Outcome;
use crate::work::Dice;
use std::fmt::Write;

const CONNECTIONS: u64 = 64;
/// Allocations of one connection in one stretch; the rates of the stretches show whether the daemon becomes slower.
const IN_A_STRETCH: u64 = 3125;
const STRETCHES: u64 = 5;
const ALLOCATIONS: u64 = CONNECTIONS * IN_A_STRETCH * STRETCHES;
/// Requests of two leases each that stay live.
const STANDING: u64 = 50_000;
const IN_A_BATCH: u64 = 1000;

/// Published figures, in allocations per second. Kueue's scheduling test in CI admits 15,000 workloads in 351 s; Slurm's
/// guide for high throughput mentions 500 jobs per second.
const KUEUE: f64 = 15_000.0 / 351.0;
const SLURM: f64 = 500.0;

/// Requests the leases that stay live, in batches.
struct Standing {
    token: String,
    dice: Dice,
}

impl Client for Standing {
    fn next(&mut self, out: &mut Vec<u8>) {
        let mut body = String::from(r#"{"operations":["#);
        for n in 0..IN_A_BATCH {
            let comma = if n > 0 { "," } else { "" };
            let tenant = self.dice.below(u64::from(TENANTS));
            let cores = 1 + self.dice.below(4);
            write!(
                body,
                r#"{comma}{{"request":{{"tenant":"tenant-{tenant:04}","project":"main","asks":[{{"class":"gpu","quantity":"1/7"}},{{"class":"cpu","quantity":{cores}}}],"ttl":"12h"}}}}"#
            )
            .expect("memory takes everything");
        }
        body.push_str("]}");
        out.extend_from_slice(&post("/api/v1/leases/batch", &self.token, None, &body));
    }

    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        assert_eq!(status, 200, "{}", text(body));
        assert_eq!(done(body), IN_A_BATCH, "of {}", text(body));
        IN_A_BATCH
    }
}

/// A tenant that submits and completes allocations.
struct Tenant {
    token: String,
    dice: Dice,
    running: Option<u64>,
    last: u64,
}

impl Client for Tenant {
    fn next(&mut self, out: &mut Vec<u8>) {
        let key = Some(self.dice.draw());
        let bytes = match self.running {
            Some(id) => post(&format!("/api/v1/allocations/{id}/complete"), &self.token, key, r#"{"exit_status":0}"#),
            None => {
                let (gpus, cores) = (1 + self.dice.below(2), 1 + self.dice.below(8));
                let body = format!(
                    r#"{{"project":"main","walltime":"1h","asks":[{{"class":"gpu","quantity":{gpus}}},{{"class":"cpu","quantity":{cores}}}]}}"#
                );
                post("/api/v1/allocations", &self.token, key, &body)
            }
        };
        out.extend_from_slice(&bytes);
    }

    /// An allocation counts once it is completed.
    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        if let Some(id) = self.running.take() {
            assert_eq!(status, 200, "{}", text(body));
            assert_eq!(allocation(body), Some(id));
            assert!(text(body).contains(r#""state":"completed""#), "{}", text(body));
            self.last = id;
            return 1;
        }
        assert_eq!(status, 201, "{}", text(body));
        let placed = text(body).contains(r#""state":"running""#) && text(body).contains(r#""leases":[{"id""#);
        assert!(placed, "{}", text(body));
        self.running = allocation(body);
        assert!(self.running.is_some(), "{}", text(body));
        0
    }
}

fn text(body: &[u8]) -> &str {
    std::str::from_utf8(body).expect("JSON is text")
}

/// The number of the allocation that an answer is about.
fn allocation(body: &[u8]) -> Option<u64> {
    let rest = text(body).split_once(r#""id":"alloc-"#)?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn token_of(served: &Served, tenant: u64) -> String {
    let body = format!(r#"{{"name":"bench-{tenant}","role":"tenant_admin","tenant":"tenant-{tenant:04}"}}"#);
    let (status, answer) = fetch(served, &post("/api/v1/tokens", &served.token, None, &body));
    assert_eq!(status, 201, "{}", text(&answer));
    let secret = text(&answer).split_once(r#""secret":""#).expect("a secret").1;
    secret.split('"').next().expect("a secret").to_owned()
}

/// A counter of the metrics page.
fn counted(served: &Served, series: &str) -> f64 {
    let (status, page) = fetch(served, &get("/metrics", &served.token));
    assert_eq!(status, 200, "{}", text(&page));
    let line = text(&page).lines().find_map(|line| line.strip_prefix(series));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{series} is not on the page"))
}

/// Checks the daemon's own counts, that no allocation is live, and the last allocation of each tenant.
fn check(served: &Served, tenants: &[Tenant]) {
    for kind in ["submit_allocation", "complete_allocation"] {
        let sealed = counted(served, &format!(r#"leasehold_commands_total{{kind="{kind}",result="sealed"}}"#));
        assert_eq!(sealed as u64, ALLOCATIONS, "{kind}");
    }
    let (status, list) = fetch(served, &get("/api/v1/allocations", &served.token));
    assert!(status == 200 && text(&list).contains(r#""allocations":[]"#), "{}", text(&list));
    for tenant in tenants {
        let path = format!("/api/v1/allocations/{}", tenant.last);
        let (status, shown) = fetch(served, &get(&path, &tenant.token));
        let shown = text(&shown);
        assert!(status == 200 && shown.contains(r#""state":"completed""#), "{shown}");
        assert_eq!(shown.matches(r#""number":1"#).count(), 1, "one attempt: {shown}");
    }
}

pub(crate) fn rate() -> Vec<Outcome> {
    let served = Served::start_large();
    let standing = |n| Standing { token: served.token.clone(), dice: Dice(n) };
    load::run(served.address(), (0..2).map(standing).collect(), Until::Answered(STANDING / IN_A_BATCH / 2));
    let tokens: Vec<String> = (0..CONNECTIONS).map(|tenant| token_of(&served, tenant)).collect();
    let tenant = |(n, token): (u64, &String)| Tenant { token: token.clone(), dice: Dice(n), running: None, last: 0 };
    let mut tenants: Vec<Tenant> = (1000..).zip(&tokens).map(tenant).collect();

    served.wait_for_books();
    let began_with = served.resident_bytes();
    let before = (served.processor_seconds(), processor_seconds("self"));
    let (mut seconds, mut stretches, mut worst_us) = (0.0, Vec::new(), 0.0f64);
    for _ in 0..STRETCHES {
        let loaded = load::run(served.address(), tenants.iter_mut().collect(), Until::Answered(2 * IN_A_STRETCH));
        assert_eq!(loaded.operations, CONNECTIONS * IN_A_STRETCH, "every allocation was completed");
        seconds += loaded.seconds;
        stretches.push(loaded.per_second());
        worst_us = worst_us.max(loaded.percentile(990));
        eprintln!(
            "  allocations: {:.0}/s, p99 of a request {:.1} ms, the daemon takes {:.0} MiB",
            loaded.per_second(),
            loaded.percentile(990) / 1000.0,
            served.resident_bytes() / f64::from(1 << 20)
        );
    }
    let daemon = served.processor_seconds() - before.0;
    let own = processor_seconds("self") - before.1;
    check(&served, &tenants);

    let rate = ALLOCATIONS as f64 / seconds;
    let grown = (served.resident_bytes() - began_with) / ALLOCATIONS as f64;
    let decay = stretches.last().expect("stretches") / stretches.first().expect("stretches");
    vec![
        Outcome::at_least("alloc.rate", rate, "1/s", ">= 20,000", 20_000.0).note(format!(
            "{ALLOCATIONS} submitted, placed and completed over {CONNECTIONS} connections, {LARGE_NODES} nodes, 100,000 \
             other leases; {:.0} us of processor time each; {:.0} times Kueue's published {KUEUE:.1}/s, {:.0} times Slurm's {SLURM:.0}/s; 99 of 100 \
             requests within {:.1} ms; the load generator took {:.0} % of the processor time used",
            (daemon + own) * 1e6 / ALLOCATIONS as f64,
            rate / KUEUE,
            rate / SLURM,
            worst_us / 1000.0,
            100.0 * own / (own + daemon)
        )),
        Outcome::at_least("alloc.rate_kept", decay, "times", ">= 0.8", 0.8)
            .note("the last 200,000 against the first 200,000"),
        Outcome::at_most("alloc.rate_memory", grown, "bytes", "<= 200", 200.0)
            .note("growth of the daemon's resident memory per finished allocation"),
    ]
}
