//! `leasehold ceiling …`, against a real daemon.

use super::{AllocationNumber as _, Daemon, refuses, tells};
use serde_json::json;

const MINE: &str = "--tenant physics --project lattice";

#[test]
fn a_ceiling_is_set_shown_and_holds() {
    let daemon = Daemon::with_cluster();
    daemon.run("rate set --gpu 1").ok();
    let set = daemon.run("ceiling set lattice --hard 5000 --tenant physics").ok();
    tells(&set, &["lattice", "5,000.00 EUR, hard", "0.00 EUR for 0 leases", "left"]);
    daemon.run(&format!("lease request --gpu 1 --ttl 1h {MINE}")).ok();
    let shown = daemon.json("ceiling show lattice");
    assert_eq!((&shown["reserved"], &shown["left"], &shown["leases"]), (&json!("3600"), &json!("1400"), &json!(1)));
    refuses(&daemon.run(&format!("lease request --gpu 1 --ttl 1h {MINE}")), 1, "ceiling_exceeded");
    let waits = daemon.run(&format!("alloc submit --gpu 1 --walltime 30m {MINE}")).ok();
    tells(&waits, &["waits"]);
    let id = daemon.json("alloc list --state pending")["allocations"][0]["id"].allocation();
    tells(&daemon.run(&format!("alloc show {id}")).ok(), &["waiting for cost headroom", "reserved 3600"]);
    tells(&daemon.run(&format!("alloc explain {id}")).ok(), &["cost ceilings", "5000", "refused"]);
    // A claim counts as a whole node, beside the leases.
    daemon.run("ceiling set lattice --hard 900000 --tenant physics").ok();
    daemon.run("node create gpu-2 --pool training --class gpu-h100=4 --teardown immediate").ok();
    daemon.run(&format!("claim make gpu-2 {MINE} --user ada --until 1h")).ok();
    tells(&daemon.run("ceiling show lattice").ok(), &["leases and 1 claimed node"]);
    assert_eq!(daemon.json("ceiling show lattice")["claimed_nodes"], json!(1));
    daemon.run("claim release gpu-2").ok();
    daemon.run("ceiling set lattice --hard 5000 --tenant physics").ok();
    daemon.run("app create slurm --origin internal").ok();
    daemon.run("app-instance create seven --project lattice --tenant physics --app slurm --backend slurm").ok();
    daemon.run("ceiling set lattice --soft 10 --app-instance seven").ok();
    let listed = daemon.run("ceiling list lattice").ok();
    tells(&listed, &["app instance", "spent", "reserved", "all", "seven", "hard", "soft", "EUR"]);
    tells(&daemon.run("ceiling show lattice --app-instance seven").ok(), &["app instance", "10.00 EUR, soft"]);
    let gone = daemon.run("ceiling delete lattice --app-instance seven").ok();
    assert_eq!(gone.out, "the ceiling of lattice, app instance seven, was deleted\n");
    refuses(&daemon.run("ceiling delete lattice --app-instance seven"), 1, "unknown_ceiling");
    refuses(&daemon.run("ceiling set lattice --hard -5"), 1, "bad_ceiling");
    refuses(&daemon.run("ceiling set lattice --hard 5 --currency CHF"), 1, "currency_fixed");
    refuses(&daemon.run("ceiling set lattice"), 2, "usage");
    let member = daemon.by("ci.token", "ceiling set lattice --hard 9");
    refuses(&member, 1, "role_forbids");
    tells(&daemon.by("ci.token", "ceiling show lattice").ok(), &["5,000.00 EUR, hard"]);
}
