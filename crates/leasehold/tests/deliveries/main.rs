//! Deliveries of the real daemon survive: the daemon is killed at the worst moments of a push, the receiver is slow,
//! answers with failures, loses answers, or is down for a while, and the memory and the threshold are too small. After
//! each, every event that is due according to the journal was received at least once, in order for each allocation, with
//! the same ID and the same body every time.
//!
//! `LEASEHOLD_DELIVERY_ROUNDS` and `LEASEHOLD_DELIVERY_SEED` make it a soak.

#[path = "../common/mod.rs"]
mod common;
mod oracle;
mod receiver;

use common::daemon::Daemon;
use fastrand::Rng;
use oracle::Due;
use receiver::{Answer, Moment, Mood, PATIENCE, Receipt, Receiver};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const HOOKS: &str = "/api/v1/deliveries/webhooks";
const SERVE: &str = "--listen 127.0.0.1:0 --data {}/data --config {}/leasehold.yaml";

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn seed() -> u64 {
    let seed = setting("LEASEHOLD_DELIVERY_SEED").unwrap_or(20_261_118);
    println!("LEASEHOLD_DELIVERY_SEED={seed}");
    seed
}

/// A daemon with a webhook.
struct Site {
    daemon: Daemon,
    receiver: Receiver,
    /// The record that made the webhook.
    made_by: u64,
}

impl Site {
    fn start(accounting: &str, seed: u64) -> Self {
        let config = format!(
            "accounting:\n  enabled: true\n  webhooks:\n    allowed_networks: [\"127.0.0.0/8\"]\n{accounting}\
             rate:\n  operations_per_second: 0\n"
        );
        let (daemon, receiver) = (Daemon::configured(&config, None), Receiver::start(seed));
        for line in [
            "class create cpu --kind cpu",
            "pool create main",
            "node create node-1 --pool main --class cpu=100000 --teardown immediate",
            "tenant create physics",
            "project create lattice --tenant physics",
        ] {
            daemon.run(line).ok();
        }
        let new = json!({ "name": "all", "url": receiver.url });
        let (status, made) = daemon.http("POST", HOOKS, &new.to_string());
        assert_eq!(status, 201, "{made}");
        let made: Value = serde_json::from_str(&made).expect("JSON");
        Self { daemon, receiver, made_by: made["sequence"].as_u64().expect("a sequence") }
    }

    /// Kills the daemon with SIGKILL, and starts it again.
    fn kill(&mut self, between: impl FnOnce(&Receiver)) {
        self.daemon.process.kill().expect("it runs");
        self.daemon.process.wait().expect("it ends");
        between(&self.receiver);
        let empty = tempfile::tempdir().expect("a folder");
        let folder = std::mem::replace(&mut self.daemon.folder, empty);
        self.daemon = Daemon::serving(folder, SERVE);
    }

    /// What was due, in order, from the journal.
    fn due(&self) -> Vec<Due> {
        let (mut records, mut path) = (Vec::new(), "/api/v1/audit/records?limit=1000".to_owned());
        loop {
            let page: Value = serde_json::from_str(&self.daemon.get(&path)).expect("JSON");
            records.extend(page["records"].as_array().expect("records").iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => path = format!("/api/v1/audit/records?limit=1000&cursor={next}"),
                None => return oracle::due(&records, self.made_by),
            }
        }
    }

    /// What the daemon says about the webhook, as soon as it is as wanted.
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let status: Value = serde_json::from_str(&self.daemon.get("/api/v1/deliveries")).expect("JSON");
            let status = status["deliveries"][0].clone();
            if is_so(&status) {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {status}");
            // Deliveries leave no records: there is nothing else to wait for.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn caller(&self) -> Caller {
        let token = std::fs::read_to_string(self.daemon.path("data/operator.token")).expect("a token");
        let address = self.daemon.url.strip_prefix("http://").expect("plain HTTP").to_owned();
        Caller { address, token: token.trim().to_owned() }
    }

    /// Some work, all of which the daemon answers.
    fn work(&self, steps: u64, seed: u64) {
        let (caller, mut held, mut dice) = (self.caller(), Held::default(), Rng::with_seed(seed));
        (0..steps).for_each(|_| held.step(&caller, &mut dice).expect("it is answered"));
    }

    /// Everything that is due was taken, and what was received is right.
    fn check(&self) -> Vec<Due> {
        let due = self.due();
        self.receiver.until_taken(&due.iter().map(|event| event.id.clone()).collect());
        check(&due, &self.receiver);
        due
    }
}

/// Every event came with its own kind, nothing came that was not due, and the first receipts of each key are in order.
fn check(due: &[Due], receiver: &Receiver) {
    let bodies = receiver.bodies();
    let by_id: BTreeMap<&str, &Due> = due.iter().map(|event| (event.id.as_str(), event)).collect();
    assert_eq!(by_id.len(), due.len(), "IDs are unique");
    for (id, body) in &bodies {
        let event = by_id.get(id.as_str()).unwrap_or_else(|| panic!("{id} was not due: {body}"));
        assert_eq!((&body["id"], &body["type"]), (&json!(id), &json!(event.kind)), "{body}");
    }
    in_order(due, &receiver.receipts());
}

fn in_order(due: &[Due], receipts: &[Receipt]) {
    let mut first = BTreeMap::new();
    for (at, receipt) in receipts.iter().enumerate() {
        first.entry(receipt.id.as_str()).or_insert(at);
    }
    let mut last: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for event in due {
        let Some(at) = first.get(event.id.as_str()) else { continue };
        if let Some((before, id)) = last.insert(&event.order, (*at, &event.id)) {
            assert!(before < *at, "{id} of {} came after {event:?}", event.order);
        }
    }
}

/// Who sends requests to a daemon that may be killed meanwhile.
struct Caller {
    address: String,
    token: String,
}

impl Caller {
    /// The answer, unless the daemon ends first.
    fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        assert!(head.starts_with("HTTP/1.1 2"), "{path}: {answer}");
        serde_json::from_str(body).ok()
    }
}

/// What a client holds.
#[derive(Default)]
struct Held {
    leases: Vec<String>,
    allocations: Vec<String>,
}

impl Held {
    /// One operation with a lease or an allocation. `None` if the daemon did not answer.
    fn step(&mut self, caller: &Caller, dice: &mut Rng) -> Option<()> {
        let asked = json!({ "tenant": "physics", "project": "lattice", "ttl": "10m",
            "asks": [{ "class": "cpu", "quantity": 1 }] });
        let chosen = |list: &[String], dice: &mut Rng| dice.usize(..list.len());
        match dice.u8(..8) {
            0 | 1 if !self.leases.is_empty() => {
                let lease = &self.leases[chosen(&self.leases, dice)];
                caller.post(&format!("/api/v1/leases/{lease}/renew"), &json!({ "ttl": "20m" }))?;
            }
            2 | 3 if !self.leases.is_empty() => {
                let lease = self.leases.swap_remove(chosen(&self.leases, dice));
                caller.post(&format!("/api/v1/leases/{lease}/release"), &json!({}))?;
            }
            4 if !self.allocations.is_empty() => {
                let allocation = self.allocations.swap_remove(chosen(&self.allocations, dice));
                caller.post(&format!("/api/v1/allocations/{allocation}/cancel"), &json!({}))?;
            }
            5 if !self.allocations.is_empty() => {
                let allocation = self.allocations.swap_remove(chosen(&self.allocations, dice));
                let done = json!({ "exit_status": dice.u8(..2), "storage_written": 7 });
                caller.post(&format!("/api/v1/allocations/{allocation}/complete"), &done)?;
            }
            6 => {
                let submitted = caller.post("/api/v1/allocations", &asked)?;
                // One that waits cannot be completed yet.
                if submitted["state"] == "running" {
                    self.allocations.push(submitted["id"].as_str().expect("an ID").to_owned());
                }
            }
            _ => {
                let granted = caller.post("/api/v1/leases", &asked)?;
                self.leases.push(granted["leases"][0]["id"].as_str().expect("an ID").to_owned());
            }
        }
        Some(())
    }
}

/// Kills the daemon while a request is on its way: before the receiver has taken it, before it has answered, and after.
#[test]
fn kills_at_any_moment_of_a_push_lose_nothing() {
    let (seed, rounds) = (seed(), setting("LEASEHOLD_DELIVERY_ROUNDS").unwrap_or(9));
    let mut dice = Rng::with_seed(seed);
    let mut site = Site::start("", seed);
    let slow = Answer::Slow(Duration::from_millis(30));
    let moods = [
        Mood::Well,
        Mood::Moody(vec![Answer::Status(200), Answer::Status(200), slow]),
        Mood::Moody(vec![Answer::Status(200), Answer::Status(429), Answer::Status(500), Answer::Status(204)]),
        Mood::Moody(vec![Answer::Status(202), Answer::Lost, Answer::Status(202)]),
        Mood::Moody(vec![Answer::Status(200), Answer::Status(503), Answer::Lost, slow]),
    ];
    for round in 0..rounds {
        let moment = [Moment::Arrived, Moment::Taken, Moment::Answered][usize::try_from(round % 3).expect("small")];
        let (after, mood) = (dice.u64(1..25), &moods[dice.usize(..moods.len())]);
        println!("round {round}: killed after {after} requests, {moment:?}, {mood:?}");
        site.receiver.be(mood.clone());
        site.receiver.hold(after, moment);
        let (caller, is_over) = (site.caller(), AtomicBool::new(false));
        let seed = dice.u64(..);
        std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                let (mut held, mut dice) = (Held::default(), Rng::with_seed(seed));
                while !is_over.load(Ordering::SeqCst) {
                    if held.step(&caller, &mut dice).is_none() {
                        break;
                    }
                }
            });
            site.receiver.until_held();
            is_over.store(round % 2 == 0, Ordering::SeqCst);
            site.kill(Receiver::let_go);
            working.join().expect("no panic");
        });
    }
    site.receiver.be(Mood::Well);
    let due = site.check();
    let receipts = site.receiver.receipts();
    println!("{} events were due; {} requests came in {rounds} rounds", due.len(), receipts.len());
    assert!(due.len() > 30 && receipts.len() > due.len(), "something happened");
    site.until("a lag of nothing", |status| status["lag_events"] == 0);
}

/// The receiver is down, the memory holds ten events, and far more are due than the threshold says: nothing is lost.
#[test]
fn an_outage_beyond_memory_and_threshold_loses_nothing() {
    let seed = seed();
    let mut site = Site::start("  buffer_size: 10\n  disk_buffer_max_events: 50\n  on_overflow: alert\n", seed);
    site.receiver.be(Mood::Down);
    site.work(150, seed);
    let behind = site.until("an alert", |status| {
        let is_alert = status["over_threshold"] == true && status["memory_high"] == true;
        is_alert && status["last_error"].is_string() && status["on_disk"].as_u64() > Some(100)
    });
    assert_eq!((&behind["dropped"], &behind["delivered"]), (&json!(0), &json!(0)), "{behind}");
    site.kill(|_| {});
    site.work(50, seed + 1);
    let behind = site.until("the same after a kill", |status| status["on_disk"].as_u64() > Some(150));
    site.receiver.be(Mood::Well);
    let due = site.check();
    // It may be too large by the ends of leases that belong to allocations.
    let most = due.len() as u64 + 50;
    assert!(behind["lag_events"].as_u64() <= Some(most), "{behind}, but {} were due", due.len());
    let after = site.until("a lag of nothing", |status| status["lag_events"] == 0);
    assert_eq!(
        (&after["dropped"], &after["dead_letters"], &after["over_threshold"]),
        (&json!(0), &json!(0), &json!(false))
    );
}

/// With `on_overflow: drop` the oldest events are skipped and counted, and a reconciliation sends them. The second sends
/// nothing.
#[test]
fn what_was_dropped_is_counted_and_reconciled() {
    let seed = seed();
    let mut site = Site::start("  buffer_size: 10\n  disk_buffer_max_events: 50\n  on_overflow: drop\n", seed);
    site.receiver.be(Mood::Down);
    site.work(150, seed);
    let due = site.due();
    let most = due.len() as u64 - 50;
    site.until("drops", |status| status["dropped"].as_u64() >= Some(most));
    // What was dropped in the last second before a kill may be read again, and is dropped again.
    site.kill(|_| {});
    site.until("drops after a kill", |status| status["dropped"].as_u64() >= Some(most - 10));
    site.receiver.be(Mood::Well);
    let status = site.until("a lag of nothing", |status| status["lag_events"] == 0);
    let dropped = status["dropped"].as_u64().expect("a number");
    let taken = |site: &Site| -> BTreeSet<String> {
        site.receiver.receipts().into_iter().filter(|receipt| receipt.is_taken).map(|receipt| receipt.id).collect()
    };
    let before = taken(&site);
    let missing = due.len() - before.len();
    println!("{} were due, {dropped} were dropped, {missing} were not received", due.len());
    assert!(missing > 0 && missing as u64 <= dropped && status["dropped_open"].as_u64() >= Some(missing as u64));
    check(&due, &site.receiver);

    let reconcile = |dry_run: bool| -> Value {
        let window = json!({ "since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z", "dry_run": dry_run });
        let (status, said) = site.daemon.http("POST", &format!("{HOOKS}/all/reconcile"), &window.to_string());
        assert_eq!(status, 200, "{said}");
        serde_json::from_str(&said).expect("JSON")
    };
    let plan = reconcile(true);
    assert_eq!([&plan["due"], &plan["sent"]], [&json!(due.len()), &json!(0)], "{plan}");
    assert_eq!(taken(&site), before, "a dry run sends nothing");
    let named = plan["differences"].as_array().expect("a list").iter().filter(|one| one["cause"] == "dropped").count();
    assert_eq!(json!(named), plan["dropped"], "{plan}");
    let done = reconcile(false);
    assert_eq!([&done["sent"], &done["failed"]], [&plan["dropped"], &json!(0)], "{done} {plan}");
    assert!(done["sent"].as_u64() >= Some(missing as u64) && done["sequence"].is_u64(), "{done}");
    let all: BTreeSet<String> = due.iter().map(|event| event.id.clone()).collect();
    assert_eq!(taken(&site), all, "now everything was received");
    assert_eq!(site.receiver.bodies().len(), due.len());
    let requests = site.receiver.receipts().len();
    let again = reconcile(false);
    assert_eq!([&again["sent"], &again["dropped"]], [&json!(0), &json!(0)], "{again}");
    assert!(again["sequence"].is_u64(), "{again}");
    assert_eq!(site.receiver.receipts().len(), requests, "the second one sends nothing");
}
