//! Leases and allocations of the past on the command line.

use super::{AllocationNumber as _, Daemon, granted, refuses, tells};

#[test]
fn lease_list_shows_who_was_on_a_node_at_a_time() {
    let daemon = Daemon::with_cluster();
    let first = granted(daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --user ada --workload train --json"));
    let shown = daemon.json(&format!("lease show {first}"));
    let then = shown["granted_at"].as_str().expect("an instant").to_owned();
    daemon.by("ci.token", &format!("lease release {first}")).ok();
    let second = granted(daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --json"));

    let now = daemon.run("lease list --node gpu-1").ok();
    assert!(now.out.contains(&second) && !now.out.contains(&format!("{first} ")), "{now:?}");
    let at = daemon.run(&format!("lease list --node gpu-1 --at {then}")).ok();
    tells(&at, &[&first, "closed", "physics", "gpu-1"]);
    assert!(!at.out.contains(&second), "{at:?}");
    // Whole days, with --until and its alias --to.
    for query in [
        "--from today",
        "--window today",
        "--from yesterday --until now",
        "--from yesterday --to now --user ada --tenant physics",
    ] {
        tells(&daemon.run(&format!("lease list {query}")).ok(), &[&first]);
    }
    let closed = daemon.json("lease list --state closed")["leases"].clone();
    assert_eq!((closed.as_array().map(Vec::len), &closed[0]["end"]), (Some(1), &"released".into()), "{closed}");
    let clash = daemon.run("lease list --at today --from yesterday");
    assert_eq!(clash.code, 2, "{clash:?}");
    // A closed lease shows what a live one shows.
    let shown = daemon.run(&format!("lease show {first}")).ok();
    tells(&shown, &["accounting tag", "cost-4711", "workload", "train", "correlation ID", "ada", "released", "closed"]);
}

#[test]
fn status_shows_everything_at_once() {
    let daemon = Daemon::with_cluster();
    granted(daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --json"));
    let said = daemon.run("status").ok();
    tells(&said, &["gpu-h100", "nodes", "available", "1 active", "physics: ", "empty, 0 running", "free", "signed"]);
    assert_eq!(daemon.json("status")["leases"]["active"], 1);
    refuses(&daemon.by("ci.token", "status"), 1, "role_forbids");
    let watch = daemon.run("status --watch");
    assert!(watch.code == 2 && watch.err.contains("terminal"), "{watch:?}");
}

#[test]
fn ended_allocations_can_be_listed() {
    let daemon = Daemon::with_cluster();
    let submitted = daemon.by("ci.token", "alloc submit --gpu 1 --walltime 10m --workload train --json").ok().json();
    let id = submitted["id"].allocation();
    daemon.by("ci.token", &format!("alloc complete alloc-{id} --exit-status 0")).ok();
    assert!(!daemon.run("alloc list").ok().out.contains(&format!("alloc-{id}")));
    for query in ["--state completed", "--from today", "--from 1h --tenant physics --project lattice"] {
        tells(&daemon.run(&format!("alloc list {query}")).ok(), &[&format!("alloc-{id}"), "completed"]);
    }
    tells(&daemon.run(&format!("lease list --alloc alloc-{id}")).ok(), &["closed", "gpu-1"]);
    tells(&daemon.run(&format!("alloc show alloc-{id}")).ok(), &["attempt 1", "gpu-1"]);
}
