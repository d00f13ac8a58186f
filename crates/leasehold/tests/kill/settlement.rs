//! A daemon that ends in the middle of a settlement, on request or by SIGKILL: its successor posts what is missing, and
//! nothing twice.

use super::common::daemon::{Daemon, http};
use super::common::{copy, on};
use super::verify;
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use leasehold_server::config::Config;
use leasehold_server::{Start, UnprovedTail};
use leasehold_verify::Trust;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Many more lines in an hour than the daemon has on their way at the same time.
const PAYERS: usize = 1600;
const CLASSES: usize = 4;
/// Hours in which the payers hold something.
const HOURS: u64 = 12;
/// Operations in one batch of requests.
const BATCH: usize = 400;
const HOUR_NS: u64 = 3_600_000_000_000;

/// A data directory from fourteen hours ago, when every project began to hold one core of every class for twelve hours.
fn past(data: &Path) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    let hour = u64::try_from(now).expect("before 2554") / HOUR_NS * HOUR_NS;
    let start = Start {
        clock: Arc::new(ManualClock::at(Instant(hour - (HOURS + 2) * HOUR_NS))),
        accept_clock: false,
        unproved_tail: UnprovedTail::Refuse,
        new_operator_token: false,
        on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
    };
    let mut config = Config { data: data.to_owned(), listen: "127.0.0.1:0".into(), ..Config::default() };
    config.engine.ttl_max = Some(Span::from_secs(HOURS * 3_600));
    let daemon = leasehold_server::Daemon::open(config, start).unwrap_or_else(|error| panic!("{error}"));
    let token = std::fs::read_to_string(daemon.data_directory().operator_token()).expect("a token");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = runtime.spawn(daemon.serve(listener, async {
        let _ = stopped.await;
    }));
    let post = |path: &str, body: &Value| {
        let (status, answer) = http(&url, token.trim(), "POST", path, &body.to_string());
        assert!((200..300).contains(&status), "{path}: {answer}");
        answer
    };
    let classes: Vec<String> = (0..CLASSES).map(|class| format!("c{class}")).collect();
    classes.iter().for_each(|name| drop(post("/api/v1/classes", &json!({ "name": name, "kind": "cpu" }))));
    post("/api/v1/pools", &json!({ "name": "main" }));
    let capacity: serde_json::Map<String, Value> = classes.iter().map(|name| (name.clone(), json!(PAYERS))).collect();
    post("/api/v1/nodes", &json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": capacity }));
    post("/api/v1/tenants", &json!({ "name": "physics" }));
    let asks: Vec<Value> = classes.iter().map(|name| json!({ "class": name, "quantity": 1 })).collect();
    let mut operations = Vec::new();
    for project in (0..PAYERS).map(|number| format!("p{number:03}")) {
        post("/api/v1/projects", &json!({ "name": project, "tenant": "physics" }));
        let ttl = format!("{HOURS}h");
        operations.push(json!({ "request": { "tenant": "physics", "project": project, "ttl": ttl, "asks": asks } }));
    }
    for operations in operations.chunks(BATCH) {
        let granted: Value =
            serde_json::from_str(&post("/api/v1/leases/batch", &json!({ "operations": operations }))).expect("JSON");
        assert!(granted["results"].as_array().expect("results").iter().all(|one| one["status"] == 201), "{granted}");
    }
    stop.send(()).expect("it runs");
    runtime.block_on(served).expect("no panic").expect("the daemon stops");
}

fn copy_of(folder: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().expect("a folder");
    copy(folder, to.path());
    to
}

fn serve(folder: tempfile::TempDir) -> Daemon {
    Daemon::serving(folder, "--listen 127.0.0.1:0 --data {}/data")
}

/// The postings in a data directory, by payer and hour: each is there once.
fn posted(data: &Path) -> BTreeSet<(String, String)> {
    let records = on(data, "audit export --data {} --kind ledger.posted").ok().lines();
    let key = |record: &Value| {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        (text(&record["identity"]["project"]), text(&record["body"]["through"]))
    };
    let all: BTreeSet<(String, String)> = records.iter().map(key).collect();
    assert_eq!(all.len(), records.len(), "something is posted twice");
    all
}

/// Ends the daemon as soon as it says that it has posted more than before. Returns the folder.
fn end_while_settling(mut daemon: Daemon, before: usize, signal: Signal) -> tempfile::TempDir {
    let events = daemon.stream("/api/v1/events?kind=ledger.posted&after=0");
    let seen = events.filter(|line| line.starts_with("id:")).nth(before);
    assert!(seen.is_some(), "the stream ended");
    kill_process(Pid::from_child(&daemon.process), signal).expect("it runs");
    daemon.process.wait().expect("it ends");
    std::mem::replace(&mut daemon.folder, tempfile::tempdir().expect("a folder"))
}

#[test]
fn a_settlement_that_is_interrupted_is_continued_and_posts_nothing_twice() {
    let kept = tempfile::tempdir().expect("a folder");
    past(&kept.path().join("data"));
    let all = PAYERS * usize::try_from(HOURS).expect("few");
    let (mut folder, mut before, mut tries) = (copy_of(kept.path()), 0, 0);
    for signal in [Signal::TERM, Signal::KILL] {
        // An hour that happened to be complete when the daemon ended proves nothing.
        loop {
            folder = end_while_settling(serve(folder), before, signal);
            before = posted(&folder.path().join("data")).len();
            tries += 1;
            println!("{signal:?}: {before} postings of {all}");
            if !before.is_multiple_of(PAYERS) {
                break;
            }
            assert!(tries < 40, "the daemon never ended in the middle of an hour");
            if before + PAYERS >= all {
                (folder, before) = (copy_of(kept.path()), 0);
            }
        }
    }

    let daemon = serve(folder);
    daemon.run("ledger settle").ok();
    let status = daemon.json("ledger status");
    assert_eq!((&status["hours_unsettled"], &status["trouble"]), (&json!(0), &Value::Null), "{status}");
    // A core costs 0.002 EUR a second, so that an hour is 7.20.
    let (mut lines, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = daemon.get(&format!("/api/v1/ledger/entries?kind=usage&limit=1000{cursor}"));
        let page: Value = serde_json::from_str(&page).expect("JSON");
        for entry in page["entries"].as_array().expect("entries") {
            assert_eq!(entry["amount"], "7.200000", "{entry}");
            let line = &entry["line"];
            let is_new = lines.insert([&entry["project"], &line["hour"], &line["class"]].map(Value::to_string));
            assert!(is_new, "posted twice: {entry}");
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(lines.len(), all * CLASSES);
    let balances = daemon.json("ledger balances --account receivable");
    let owed: Vec<&Value> =
        balances["balances"].as_array().expect("a list").iter().map(|one| &one["balance"]).collect();
    // 4 classes, 12 hours.
    assert!(owed.len() == PAYERS && owed.iter().all(|owed| *owed == "345.600000"), "{owed:?}");
    let revenue = daemon.json("ledger balances --account revenue");
    let revenue = revenue["balances"].as_array().expect("a list").iter();
    // 1,600 projects, 12 hours.
    assert!(revenue.map(|one| &one["balance"]).all(|earned| earned == "-138240.000000"));

    let (folder, _) = daemon.stop();
    let data = folder.path().join("data");
    assert_eq!(posted(&data).len(), all);
    let trust = Trust::parse(&on(&data, "audit trust --data {}").ok().out).expect("a trust file");
    verify(&data, trust);
}
