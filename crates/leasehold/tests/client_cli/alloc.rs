//! `leasehold alloc …` and the budgets of tenants, against a real daemon.

use super::{AllocationNumber as _, Daemon, refuses, tells};
use serde_json::json;

const MINE: &str = "--tenant physics --project lattice";

#[test]
fn a_gang_is_submitted_followed_and_completed() {
    let daemon = Daemon::with_cluster();
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    let first =
        daemon.json(&format!("alloc submit --gpu 1 --mem 8GiB --replicas 2 --walltime 1h --together rack {MINE}"));
    assert_eq!((&first["state"], first["replicas"].as_array().map(Vec::len)), (&json!("running"), Some(2)));
    let id = first["id"].allocation();
    let listed = daemon.run("alloc list").ok();
    tells(&listed, &[&format!("alloc-{id}"), "running", "2 × 1 GPU + 8 GiB", "in 59m"]);
    let waits = daemon.run(&format!("alloc submit --gpu 4 --walltime 1h {MINE}")).ok();
    tells(&waits, &["waits in the queue; `leasehold alloc show alloc-"]);
    let waiting = daemon.json("alloc list --state pending")["allocations"][0]["id"].allocation();
    let shown = daemon.run(&format!("alloc show alloc-{waiting}")).ok();
    tells(&shown, &["1st, 2 GPU of gpu-h100 short", "starts by", "walltime"]);
    let bytes = daemon.run(&format!("alloc checkpoint {id} --bytes 4096 --took 0s")).ok();
    assert_eq!(bytes.out, format!("alloc-{id} is running\n"));
    let done = daemon.run(&format!("alloc complete alloc-{id} --exit-status 0 --storage-written 2048")).ok();
    assert_eq!(done.out, format!("alloc-{id} is completed\n"));
    let over = daemon.run(&format!("alloc show {id}")).ok();
    tells(&over, &["completed", "exit status", "2.0 KiB", "attempt 1: since", "checkpoint", "gpu-1"]);
    refuses(&daemon.run(&format!("alloc cancel {id}")), 1, "allocation_over");
    refuses(&daemon.run("alloc show 99999"), 1, "allocation_not_found");
    refuses(&daemon.run(&format!("alloc submit --gpu 4 --replicas 2 {MINE}")), 1, "gang_too_large");
    refuses(&daemon.run("alloc checkpoint 1"), 2, "usage");
    // The waiting allocation runs by now; a guaranteed one cannot evict its own priority class, and waits.
    daemon.run(&format!("alloc cancel alloc-{waiting}")).ok();
    let staged = daemon.json(&format!("alloc submit --gpu 4 --staged --walltime 1h {MINE} --wait"));
    assert_eq!(staged["state"], "staging", "{staged}");
    let id = staged["id"].allocation();
    assert_eq!(daemon.run(&format!("alloc start {id}")).ok().out, format!("alloc-{id} is running\n"));
}

#[test]
fn a_request_that_needs_evictions_waits_and_says_so() {
    let daemon = Daemon::with_cluster();
    daemon.run("pool set training --grace 0s").ok();
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    daemon.run(&format!("alloc submit --gpu 4 --walltime 1h --priority scavenger --requeue {MINE}")).ok();
    let granted = daemon.run(&format!("lease request --gpu 3 --mem 1GiB --ttl 10m --priority guaranteed {MINE}")).ok();
    assert!(granted.err.contains("until evicted leases have ended"), "{granted:?}");
    tells(&granted, &["gpu-1", "3 GPU", "until"]);
    let run =
        daemon.run(&format!("lease run --gpu 1 --ttl 10m --priority guaranteed {MINE} -- printenv LEASEHOLD_NODE"));
    assert_eq!((run.code, run.out.as_str()), (0, "gpu-1\n"), "{run:?}");
    let victim = daemon.json("alloc list --priority scavenger")["allocations"][0].clone();
    assert_eq!((&victim["state"], &victim["attempt"]), (&json!("pending"), &json!(1)));
}

#[test]
fn budgets_are_set_and_their_use_is_shown() {
    let daemon = Daemon::with_cluster();
    let set = "tenant set physics --gpu-hours-budget 500 --fair-share-target 0.25 --max-concurrent-allocations 1 --max-pending 3";
    tells(&daemon.run(set).ok(), &["500 in 90 days", "0.25", "max running allocations", "max waiting allocations"]);
    daemon.run(&format!("alloc submit --gpu 1 {MINE}")).ok();
    refuses(&daemon.run(&format!("alloc submit --gpu 1 {MINE}")), 1, "quota_exceeded");
    tells(&daemon.run("tenant usage physics").ok(), &["GPU hours", "0.000", "500", "budget factor", "1.000000"]);
    let usage = daemon.json("tenant usage physics --days 30");
    assert_eq!((&usage["days"], &usage["node_hours"]["fraction"]), (&json!(30), &json!(null)));
    let cleared = daemon.json("tenant set physics --clear gpu-hours-budget --clear fair-share-target");
    assert_eq!(cleared["tenant"]["gpu_hours_budget"], json!(null));
    refuses(&daemon.run("tenant set physics --fair-share-target 1.5"), 1, "bad_budget");
    tells(
        &daemon.run("quota create --tenant physics --project lattice --measure allocations --soft 2").ok(),
        &["allocations"],
    );
}

#[test]
fn pools_limit_evictions_and_requeues() {
    let daemon = Daemon::with_cluster();
    let set = daemon.run("pool set training --grace 0s --min-runtime-before-eviction 1h --requeue-limit 0").ok();
    tells(&set, &["min runtime before eviction", "1h", "requeue limit"]);
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    let requeued = format!("alloc submit --gpu 4 --walltime 1h --priority scavenger --requeue {MINE}");
    let victim = daemon.json(&requeued)["id"].as_str().expect("an id").to_owned();
    let request = format!("lease request --gpu 1 --ttl 10m --node gpu-1 --priority guaranteed {MINE}");
    refuses(&daemon.run(&request), 1, "no_capacity");
    // Without the least runtime the request evicts on the node that it names.
    daemon.run("pool set training --clear min-runtime-before-eviction").ok();
    tells(&daemon.run(&request).ok(), &["gpu-1"]);
    assert_eq!(daemon.json(&format!("alloc show {victim}"))["state"], "failed");
    daemon.run("pool set training --clear requeue-limit").ok();
    assert_eq!(daemon.json("pool show training")["requeue_limit"], 10);
}

#[test]
fn a_project_is_deprioritised_and_paused_on_a_pool() {
    let daemon = Daemon::with_cluster();
    daemon.run(&format!("alloc submit --gpu 4 --walltime 1h {MINE}")).ok();
    let id =
        daemon.json(&format!("alloc submit --gpu 4 --walltime 1h {MINE}"))["id"].as_str().expect("an id").to_owned();
    let access = "project access lattice --tenant physics --pool training --access";
    tells(&daemon.run(&format!("{access} deprioritised")).ok(), &["access", "training deprioritised"]);
    tells(&daemon.run("project show lattice --tenant physics").ok(), &["training deprioritised"]);
    daemon.run(&format!("{access} paused")).ok();
    refuses(&daemon.run(&format!("lease request --gpu 1 --ttl 10m {MINE}")), 1, "pool_paused");
    tells(&daemon.run(&format!("alloc show {id}")).ok(), &["its project is paused on every pool that it may use"]);
    assert!(!daemon.run(&format!("{access} normal")).ok().out.contains("training"));
    refuses(&daemon.run(&format!("{access} sometimes")), 2, "usage");
    tells(&daemon.run("settings set --head-wait-max 30m").ok(), &["head_wait_max", "30m"]);
}

#[test]
fn waiting_allocations_are_held_released_and_changed() {
    let daemon = Daemon::with_cluster();
    daemon.run(&format!("alloc submit --gpu 4 --walltime 1h {MINE}")).ok();
    let waiting = daemon.json(&format!("alloc submit --gpu 4 --walltime 1h {MINE}"))["id"].allocation();
    let held = daemon.run(&format!("alloc hold {waiting} --reason data")).ok();
    assert_eq!(held.out, format!("alloc-{waiting} is on hold\n"));
    tells(&daemon.run(&format!("alloc show {waiting}")).ok(), &["Put on hold by an operator", "(data)"]);
    refuses(&daemon.by("ci.token", &format!("alloc release {waiting}")), 1, "held_by_operator");
    let released = daemon.run(&format!("alloc release {waiting}")).ok();
    assert_eq!(released.out, format!("alloc-{waiting} is no longer on hold\n"));
    daemon.run(&format!("alloc set {waiting} --walltime 2h --priority scavenger")).ok();
    let shown = daemon.json(&format!("alloc show {waiting}"));
    assert_eq!((&shown["walltime"], &shown["priority"]), (&"2h".into(), &"scavenger".into()));
    refuses(&daemon.run(&format!("alloc set {waiting}")), 2, "usage");
    assert_eq!(daemon.run("audit export --kind allocation.changed").ok().out.lines().count(), 1);
}
