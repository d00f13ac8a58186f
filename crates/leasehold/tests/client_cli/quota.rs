//! `leasehold quota …` on kinds, users and priorities, and temporary limits, against a real daemon.

use super::{Daemon, refuses, tells};
use serde_json::json;

const MINE: &str = "--tenant physics --project lattice";

#[test]
fn quotas_are_created_on_kinds_and_raised_for_a_time() {
    let daemon = Daemon::with_cluster();
    let made = daemon.run("quota create --tenant physics --kind gpu --priority standard --and-above --hard 3").ok();
    tells(&made, &["all gpu", "standard and above", "0 GPU", "3 GPU, hard"]);
    daemon.run(&format!("lease request --gpu 1 --ttl 1h {MINE}")).ok();
    let denied = daemon.run(&format!("lease request --gpu 4 --ttl 1h {MINE}"));
    refuses(&denied, 1, "quota_exceeded");
    assert!(denied.err.contains("used 1, requested 4, limit 3 GPU"), "{denied:?}");
    let id = daemon.json("quota list --tenant physics")["quotas"][0]["id"].clone();
    let raised = daemon.run(&format!("quota set {id} --hard +50% --until friday")).ok();
    tells(&raised, &["4 GPU, hard", "until", "base limit", "3 GPU, hard"]);
    let shown = daemon.json(&format!("quota show {id}"));
    assert_eq!((&shown["limit"]["limit"], &shown["base_limit"]["limit"]), (&json!(4), &json!(3)));
    assert!(shown["until"].as_str().expect("an instant").ends_with("T00:00:00Z"), "{shown}");
    daemon.run(&format!("quota set {id} --hard -34%")).ok();
    let shown = daemon.json(&format!("quota show {id}"));
    assert_eq!((&shown["limit"]["limit"], &shown["until"]), (&json!(1), &json!(null)));
    refuses(
        &daemon.run("quota create --tenant physics --kind gpu --priority standard --and-above --hard 3"),
        1,
        "quota_exists",
    );
    refuses(&daemon.run(&format!("quota set {id} --hard 20x%")), 2, "bad_quantity");
    refuses(&daemon.run(&format!("quota set {id} --hard 4 --until soon")), 2, "usage");

    daemon.run("quota create --tenant physics --class gpu-h100 --each-user --hard 2").ok();
    refuses(&daemon.run(&format!("lease request --gpu 1 --ttl 1h {MINE}")), 1, "quota_needs_user");
    tells(&daemon.run("quota list").ok(), &["each user", "all gpu"]);
}

#[test]
fn a_gang_waits_if_a_burst_would_cut_it_off() {
    let daemon = Daemon::with_cluster();
    daemon.run("quota create --tenant physics --class gpu-h100 --burst 2 --burst-limit 4 --burst-ttl 10m").ok();
    daemon.run(&format!("lease request --gpu 1 --ttl 1h {MINE}")).ok();
    tells(&daemon.run(&format!("alloc submit --gpu 2 --walltime 1h {MINE}")).ok(), &["waits in the queue"]);
    let id = daemon.json("alloc list --state pending")["allocations"][0]["id"].as_str().expect("an id").to_owned();
    let words = "its walltime of 1h is longer than what is left of the burst";
    tells(&daemon.run(&format!("alloc show {id}")).ok(), &[words]);
    tells(&daemon.run(&format!("alloc explain {id}")).ok(), &[words]);
    refuses(&daemon.run(&format!("alloc submit --gpu 3 --walltime 1h {MINE}")), 1, "walltime_beyond_burst");
    let capped = daemon.run(&format!("alloc submit --gpu 2 --ttl 1h {MINE}")).ok();
    tells(&capped, &["is running", "shortened by the burst limit of quota 0", "in 9m"]);
}

#[test]
fn a_quota_lets_requests_evict_leases_of_the_same_tenant() {
    let daemon = Daemon::with_cluster();
    tells(&daemon.run("quota create --tenant physics --class gpu-h100 --hard 2").ok(), &["2 GPU, hard"]);
    let id = daemon.json("quota list --tenant physics")["quotas"][0]["id"].clone();
    daemon.run(&format!("lease request --gpu 2 --ttl 1h --priority scavenger {MINE}")).ok();
    let ask = format!("lease request --gpu 1 --ttl 1h {MINE}");
    refuses(&daemon.run(&ask), 1, "quota_exceeded");
    refuses(&daemon.run(&format!("quota set {id}")), 2, "usage");
    refuses(&daemon.run(&format!("quota set {id} --soft 2 --evict-own-lower")), 1, "evict_own_lower_unsuitable");
    let on = daemon.run(&format!("quota set {id} --evict-own-lower")).ok();
    tells(&on, &["2 GPU, hard", "evicts", "leases of lower priority that it counts"]);
    let off = daemon.run(&format!("quota set {id} --evict-own-lower=false")).ok();
    assert!(!off.out.contains("lower priority"), "{}", off.out);
    daemon.run(&format!("quota set {id} --hard 2 --evict-own-lower")).ok();
    let asked = daemon.run(&ask).ok();
    assert!(asked.err.contains("waits as alloc-"), "{asked:?}");
    let waiting = daemon.json("alloc list --tenant physics")["allocations"][0]["id"].clone();
    let why = daemon.run(&format!("alloc explain {}", waiting.as_str().expect("an id"))).ok();
    tells(&why, &["evict"]);
}
