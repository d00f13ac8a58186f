//! `leasehold claim …`, wipes and quarantine, against a real daemon.

use super::{Daemon, refuses, tells};
use serde_json::json;

const MINE: &str = "--tenant physics --project lattice --user ada";

#[test]
fn nodes_are_claimed_used_released_and_wiped() {
    let daemon = Daemon::with_cluster();
    let node = "gpu-1";
    refuses(&daemon.run(&format!("lease request --gpu 1 --ttl 10m --sensitive {MINE}")), 1, "sensitive_needs_claim");
    refuses(&daemon.run("claim make"), 2, "usage");
    refuses(&daemon.run(&format!("claim make nowhere {MINE}")), 1, "unknown_node");
    let made = daemon.run(&format!("claim make {node} {MINE}")).ok();
    assert_eq!(made.out, format!("node {node} is claimed by ada of physics for lattice\n"));
    refuses(&daemon.run(&format!("claim make {node} {MINE}")), 1, "node_already");
    tells(&daemon.run("claim list").ok(), &[node, "claimed", "physics", "lattice", "ada"]);
    tells(&daemon.run(&format!("node show {node}")).ok(), &["claimed by ada of physics for lattice"]);
    tells(&daemon.run(&format!("node explain {node}")).ok(), &["claimed"]);
    let granted = daemon.json(&format!("lease request --gpu 1 --ttl 10m --sensitive {MINE}"));
    assert_eq!(granted["node"], node);
    refuses(&daemon.run(&format!("claim release {node}")), 1, "node_has_leases");
    let lease = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
    daemon.run(&format!("lease release {lease}")).ok();
    let released = daemon.run(&format!("claim release {node}")).ok();
    tells(&released, &["being wiped"]);
    let failed = daemon.run(&format!("node wipe-failed {node}")).ok();
    assert_eq!(failed.out, format!("node {node} is quarantined: wipe failed\n"));
    refuses(&daemon.run(&format!("node wiped {node}")), 1, "node_not_wiping");
    tells(&daemon.run("node list").ok(), &["quarantined"]);
    let cleared = daemon.run(&format!("node clear-quarantine {node}")).ok();
    assert_eq!(cleared.out, format!("node {node} is available to everyone\n"));
    // Idle capacity of the claimed nodes is billed to the holder of the claim.
    let cost = daemon.json("cost --by user,priority");
    let users: Vec<_> =
        cost["lines"].as_array().expect("lines").iter().map(|line| (&line["user"], &line["priority"])).collect();
    assert!(users.contains(&(&json!("ada"), &json!("guaranteed"))), "{cost}");
}

/// The node costs (4 × 0.01 + 64 × 0.001) × 1.5 = 0.156 EUR a second: ten minutes are 93.60.
#[test]
fn credit_covers_a_claim_up_to_its_end_and_never_ends_it() {
    let daemon = Daemon::with_cluster();
    daemon.run("node create gpu-2 --pool training --class gpu-h100=4 --teardown immediate").ok();
    daemon.run("prepaid top-up 120 --project lattice --tenant physics --reference order-1").ok();
    refuses(&daemon.run(&format!("claim make gpu-1 {MINE}")), 1, "claim_needs_end");
    refuses(&daemon.run(&format!("claim make gpu-1 {MINE} --until 1h")), 1, "claim_not_covered");
    daemon.run(&format!("claim make gpu-1 {MINE} --until 10m")).ok();
    daemon.run("prepaid policy --project lattice --tenant physics --depleted drain --grace 1h").ok();
    let sensitive = daemon.json(&format!("lease request --gpu 1 --ttl 10m --sensitive {MINE}"));
    let ordinary = daemon.json("lease request --gpu 1 --ttl 10m --tenant physics --project lattice");
    let id = |granted: &serde_json::Value| granted["leases"][0]["id"].as_str().expect("an id").to_owned();
    let (sensitive, ordinary) = (id(&sensitive), id(&ordinary));
    let post = "ledger post lattice --tenant physics --currency EUR --reason licence";
    daemon.run(&format!("{post} --leg receivable=200 --leg adjustments=-200")).ok();
    tells(&daemon.run("prepaid show --project lattice --tenant physics").ok(), &["depleted: drain"]);
    tells(&daemon.run(&format!("lease show {ordinary}")).ok(), &["revoking", "budget"]);
    tells(&daemon.run(&format!("lease show {sensitive}")).ok(), &["active"]);
    tells(&daemon.run("claim list").ok(), &["gpu-1", "claimed", "ada"]);
}
