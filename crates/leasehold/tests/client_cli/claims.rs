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
