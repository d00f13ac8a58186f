//! Error messages and words, against a real daemon.

use super::{Daemon, refuses, tells};
use serde_json::{Value, json};

const MINE: &str = "--tenant physics --project lattice";

/// A duplicate key is refused, because it is unclear which value was meant.
#[test]
fn a_key_is_given_once() {
    let daemon = Daemon::with_cluster();
    for line in [
        "alloc submit --gpu 1 --label gen=b --label gen=a",
        "lease request --gpu 1 --ttl 10m --label gen=b --label gen=b",
        "lease request --class gpu-h100=1 --class gpu-h100=2 --ttl 10m",
        "node set gpu-1 --label gen=b --label gen=a",
        "node set gpu-1 --class gpu-h100=1 --class gpu-h100=2",
        "pool set training --ttl-max standard=1h --ttl-max standard=2h",
        "rate set --class gpu-h100=1 --class gpu-h100=2",
        "rate set --priority scavenger=0.3 --priority scavenger=0.4",
    ] {
        let whole =
            if line.contains("alloc") || line.contains("lease") { format!("{line} {MINE}") } else { line.into() };
        let said = daemon.run(&whole);
        refuses(&said, 2, "usage");
        assert!(said.err.contains("is given twice for "), "{said:?}");
    }
}

/// The holder of a claim is shown to those who may see it, as text and as JSON.
#[test]
fn a_claim_that_is_refused_names_the_holder() {
    let daemon = Daemon::with_cluster();
    for line in [
        "user create bob --tenant physics",
        "tenant create chemistry",
        "project create bonds --tenant chemistry",
        "user create cyd --tenant chemistry",
        "token issue them --role tenant_admin --tenant chemistry --out {}/chemistry.token",
        "claim make gpu-1 --tenant physics --project lattice --user ada",
    ] {
        daemon.run(line).ok();
    }
    let bob = "claim make gpu-1 --tenant physics --project lattice --user bob";
    for said in [daemon.run(bob), daemon.by("ci.token", "claim make gpu-1 --user bob")] {
        refuses(&said, 1, "node_claimed");
        assert!(
            said.err.contains("Node \"gpu-1\" is already claimed by user \"ada\" of tenant \"physics\""),
            "{said:?}"
        );
    }
    let said = daemon.run(&format!("{bob} --json"));
    let problem: Value = serde_json::from_str(&said.err).expect("the problem, and nothing else");
    assert_eq!((said.code, said.out.as_str(), &problem["holder"]["user"]), (1, "", &json!("ada")));
    let said = daemon.by("chemistry.token", "claim make gpu-1 --project bonds --user cyd");
    refuses(&said, 1, "node_claimed");
    assert!(!said.err.contains("ada") && !said.err.contains("physics"), "{said:?}");
    // With --json, local problems are objects as well.
    let said = daemon.run("tenant set physics --json");
    let problem: Value = serde_json::from_str(&said.err).expect("one object");
    assert_eq!((said.code, &problem["code"]), (2, &json!("usage")));

    tells(&daemon.run("events").ok(), &["node.claimed            physics/lattice  gpu-1"]);
}

#[test]
fn weights_of_its_own_make_a_pool_custom() {
    let daemon = Daemon::with_cluster();
    daemon.run("pool set training --weights 0.4,0.3,0.2,0.1").ok();
    tells(&daemon.run("pool list").ok(), &["custom"]);
    tells(&daemon.run("pool show training").ok(), &["custom", "pressure 0.4"]);
    refuses(&daemon.run(&format!("alloc submit --gpu 1 --walltime 367d {MINE}")), 1, "walltime_too_long");
}
