//! `lease explain`, `alloc explain`, `node explain` and `audit replay`, against a real daemon and its files.

use super::{Daemon, refuses, tells};

const MINE: &str = "--tenant physics --project lattice";

#[test]
fn decisions_are_explained_and_decided_again() {
    let daemon = Daemon::with_cluster();
    daemon.run("pool set training --grace 0s").ok();
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    let granted = daemon.json(&format!("lease request --gpu 1 --ttl 10m --priority scavenger {MINE}"));
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    tells(
        &daemon.run(&format!("lease explain {lease}")).ok(),
        &["granted", "gpu-1", "decided again from the journal: the same"],
    );
    refuses(&daemon.run(&format!("lease request --gpu 5 --ttl 10m {MINE}")), 1, "no_capacity");
    let waits = daemon.json(&format!("alloc submit --gpu 4 --walltime 1h {MINE}"));
    let id = waits["id"].as_u64().expect("a number");
    tells(&daemon.run(&format!("alloc explain alloc-{id}")).ok(), &["alloc"]);
    tells(&daemon.run("node explain gpu-1").ok(), &["gpu-1", "gpu-h100"]);
    refuses(&daemon.run("lease explain 00000000000000000000000000000000"), 1, "lease_not_found");
    refuses(&daemon.run("alloc explain 99999"), 1, "allocation_not_found");

    // Whatever was decided is decided again, by the daemon and from the files alone.
    let kinds = ["lease.granted", "lease.denied", "allocation.submitted", "preemption.decided"];
    for kind in kinds {
        let records = daemon.run(&format!("audit export --kind {kind}")).ok().lines();
        let sequence = records.first().expect(kind)["sequence"].as_u64().expect("a sequence");
        for folder in ["", " --data {}/data"] {
            let told = daemon.run(&format!("audit replay --sequence {sequence}{folder}")).ok();
            tells(&told, &["same"]);
        }
    }
    refuses(&daemon.run("audit replay --sequence 0"), 1, "bad_query");
    refuses(&daemon.run("audit replay --sequence 99999"), 1, "not_found");
}
