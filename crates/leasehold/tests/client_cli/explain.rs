//! `lease explain`, `alloc explain`, `node explain` and `audit replay`, against a real daemon and its files.

use super::{AllocationNumber as _, Daemon, refuses, tells};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const MINE: &str = "--tenant physics --project lattice";

/// Repeats a command until its output matches: the queue is scheduled some time after the command that allows it.
fn until(daemon: &Daemon, line: &str, is_so: impl Fn(&Value) -> bool) {
    let begun = Instant::now();
    while !is_so(&daemon.json(line)) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{line} never shows it: {:?}", daemon.run(line));
    }
}

#[test]
fn decisions_are_explained_and_replayed() {
    let daemon = Daemon::with_cluster();
    daemon.run("pool set training --grace 0s").ok();
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    let granted = daemon.json(&format!("lease request --gpu 1 --ttl 10m --priority scavenger {MINE}"));
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    tells(
        &daemon.run(&format!("lease explain {lease}")).ok(),
        &["granted", "gpu-1", "replayed from the journal: the same result"],
    );
    refuses(&daemon.run(&format!("lease request --gpu 5 --ttl 10m {MINE}")), 1, "no_capacity");
    let waits = daemon.json(&format!("alloc submit --gpu 4 --walltime 1h {MINE}"));
    let id = waits["id"].allocation();
    tells(&daemon.run(&format!("alloc explain alloc-{id}")).ok(), &["alloc"]);
    tells(&daemon.run("node explain gpu-1").ok(), &["gpu-1", "gpu-h100"]);
    refuses(&daemon.run("lease explain 00000000000000000000000000000000"), 1, "lease_not_found");
    refuses(&daemon.run("alloc explain 99999"), 1, "allocation_not_found");

    // The figures of quotas are in billing units, and exact in JSON.
    daemon.run("quota create --tenant physics --class mem-dram --hard 8GiB").ok();
    daemon.run(&format!("lease request --class mem-dram=7GiB --ttl 10m {MINE}")).ok();
    let over = daemon.json(&format!("alloc submit --class mem-dram=2GiB --when-over-quota wait {MINE}"));
    let waits = over["id"].allocation();
    tells(&daemon.run(&format!("alloc explain {waits}")).ok(), &["its quota of mem-dram  ", "  7  ", "8 GiB"]);
    let check = &daemon.json(&format!("alloc explain {waits}"))["quotas"][0];
    assert_eq!((&check["used"], &check["used_exact"], &check["unit"]), (&json!(7168), &json!("7"), &json!("GiB")));
    daemon.run(&format!("alloc cancel {waits}")).ok();

    // Every decision can be replayed, by the daemon and from the files alone.
    let kinds = ["lease.granted", "lease.denied", "allocation.submitted", "preemption.decided"];
    for kind in kinds {
        let records = daemon.run(&format!("audit export --kind {kind}")).ok().lines();
        let sequence = records.first().expect(kind)["sequence"].as_u64().expect("a sequence");
        for folder in ["", " --data {}/data"] {
            let told = daemon.run(&format!("audit replay --sequence {sequence}{folder}")).ok();
            tells(&told, &["same"]);
        }
    }
    for folder in ["", " --data {}/data"] {
        refuses(&daemon.run(&format!("audit replay --sequence 0{folder}")), 1, "not_a_decision");
        refuses(&daemon.run(&format!("audit replay --sequence 99999{folder}")), 1, "record_not_found");
    }
}

#[test]
fn every_record_of_a_decision_is_replayed_with_it() {
    let daemon = Daemon::with_cluster();
    let submitted = daemon.json(&format!("alloc submit --gpu 1 --replicas 2 --walltime 1h {MINE}"));
    let first = submitted["sequence"].as_u64().expect("a sequence");
    // Submitted, placed, granted twice: one decision.
    for sequence in first + 1..=first + 3 {
        for folder in ["", " --data {}/data"] {
            let told = daemon.run(&format!("audit replay --sequence {sequence}{folder}")).ok();
            tells(&told, &[&format!("record {sequence} is part of the decision in record {first}"), "the same"]);
            let told = daemon.run(&format!("audit replay --sequence {sequence}{folder} --json")).ok().json();
            assert_eq!((&told["sequence"], &told["part"]), (&first.into(), &sequence.into()), "{told}");
            assert_eq!(told["replayed"], "same", "{told}");
        }
    }
    // A command without a decision is reported as such, for each of its records.
    let done = daemon.json(&format!("alloc cancel alloc-{first}"));
    let cancelled = done["sequence"].as_u64().expect("a sequence");
    for sequence in cancelled..=cancelled + 1 {
        for folder in ["", " --data {}/data"] {
            refuses(&daemon.run(&format!("audit replay --sequence {sequence}{folder}")), 1, "not_a_decision");
        }
    }
}

#[test]
fn a_victim_sees_why_it_is_evicted_and_its_grace_period() {
    let daemon = Daemon::with_cluster();
    daemon.run("pool set training --grace 1h").ok();
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    daemon.run("tenant create chemistry --max-priority guaranteed").ok();
    daemon.run("project create bonds --tenant chemistry").ok();
    let victim = daemon.json(&format!("alloc submit --gpu 4 --walltime 2h --priority scavenger {MINE}"));
    let victim = victim["id"].allocation();
    let guaranteed = "--priority guaranteed --walltime 1h --tenant chemistry --project bonds";
    let waits = daemon.json(&format!("alloc submit --gpu 4 {guaranteed}"));
    let waits = waits["id"].allocation();
    until(&daemon, &format!("alloc show alloc-{waits}"), |shown| shown["waiting"]["reason"] == "victims");
    let records = daemon.run("audit export --kind preemption.decided").ok().lines();
    let by = records.first().expect("an eviction")["sequence"].as_u64().expect("a sequence");
    let decided = format!("decided in record {by}");

    tells(
        &daemon.by("ci.token", &format!("alloc explain alloc-{victim}")).ok(),
        &[
            "preempted",
            "a guaranteed request of another tenant",
            &decided,
            "it had priority scavenger",
            "grace",
            "gpu-1",
        ],
    );
    tells(
        &daemon.by("ci.token", &format!("alloc show alloc-{victim}")).ok(),
        &[&format!("preempted ({decided})"), "grace ends", "(grace)"],
    );
    let lease = daemon.json(&format!("alloc show alloc-{victim}"));
    let lease = lease["attempts"][0]["replicas"][0]["leases"][0]["id"].as_str().expect("an id").to_owned();
    tells(&daemon.by("ci.token", &format!("lease show {lease}")).ok(), &["revoking", &decided, "grace ends", "in 59m"]);
    tells(&daemon.by("ci.token", &format!("lease explain {lease}")).ok(), &["another tenant", &decided, "grace"]);
    let told = daemon.by("ci.token", &format!("audit replay --sequence {by}")).ok();
    tells(&told, &["evicted", "One of your leases is evicted", "the same"]);
    assert!(!told.out.contains("chemistry") && !told.out.contains("bonds"), "{told:?}");

    // The waiting allocation shows its victims, and later that it was placed where they were.
    tells(&daemon.run(&format!("alloc explain alloc-{waits}")).ok(), &["waits", &decided, "physics", "scavenger"]);
    daemon.run(&format!("lease ready {lease}")).ok();
    until(&daemon, &format!("alloc show alloc-{waits}"), |shown| shown["state"] == "running");
    let told = daemon.run(&format!("alloc explain alloc-{waits}")).ok();
    tells(&told, &["granted", "on capacity freed by the eviction", &decided, "gpu-1", "the same"]);
}

#[test]
fn a_placement_is_explained_with_weights_and_units() {
    let daemon = Daemon::with_cluster();
    let granted = daemon.json(&format!("lease request --gpu 1 --ttl 10m {MINE}"));
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    tells(
        &daemon.by("ci.token", &format!("lease explain {lease}")).ok(),
        &["granted on gpu-1", "weights of training, bin_pack: pressure 0.100, fit 0.200", "it was the only one"],
    );
    tells(&daemon.run("node explain gpu-1").ok(), &["4 GPU", "64 GiB"]);
    refuses(&daemon.run(&format!("lease request --gpu 5 --ttl 10m {MINE}")), 1, "no_capacity");
    let records = daemon.run("audit export --kind lease.denied").ok().lines();
    let sequence = records.first().expect("a denial")["sequence"].as_u64().expect("a sequence");
    tells(
        &daemon.run(&format!("audit replay --sequence {sequence}")).ok(),
        &["not considered: 1 without enough capacity"],
    );
    // A gang shows the node of each replica.
    let gang = daemon.json(&format!("alloc submit --gpu 1 --replicas 3 --walltime 1h {MINE}"));
    let gang = gang["id"].allocation();
    let told = daemon.run(&format!("alloc explain alloc-{gang}")).ok();
    tells(&told, &["replicas", "candidates for replica 1", "gpu-1"]);
}
