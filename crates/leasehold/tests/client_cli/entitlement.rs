//! `leasehold entitlement …` and `leasehold policy …`, against a real daemon.

use super::usage_record::{STORY, ago, daemon};
use super::{refuses, tells};

#[test]
fn entitlements_are_set_used_up_listed_and_deleted() {
    let daemon = daemon();
    refuses(&daemon.run("entitlement set requests --hard 10"), 2, "usage");
    refuses(&daemon.run("entitlement set requests --project lattice --tenant physics"), 2, "usage");
    refuses(&daemon.run("entitlement set requests --project lattice --tenant physics --hard none"), 1, "bad_quantity");
    let set = daemon.run("entitlement set requests --project lattice --tenant physics --soft 8 --hard 10").ok();
    tells(&set, &["requests", "physics", "lattice", "8", "10"]);
    let (from, to) = (ago(&daemon, 120), ago(&daemon, 60));
    let report = |id: &str, quantity: u32| {
        format!(
            "usage-record report chat --id {id} --unit requests --quantity {quantity} --from {from} --to {to} \
             --correlation {STORY}"
        )
    };
    daemon.run(&report("r1", 9)).ok();
    refuses(&daemon.run(&report("r2", 2)), 1, "entitlement_exceeded");
    tells(&daemon.run("entitlement list --tenant physics").ok(), &["requests", "lattice", "9", "10"]);
    let month = &to[..7];
    tells(
        &daemon.run(&format!("usage-record refused --month {month}")).ok(),
        &["r2", "lattice", "chat", "9", "10", "no"],
    );
    tells(&daemon.run("usage-record refused --month 2020-01").ok(), &["entitlements refused nothing in 2020-01"]);
    tells(&daemon.run("entitlement delete requests --project lattice --tenant physics").ok(), &["was deleted"]);
    refuses(&daemon.run("entitlement delete requests --project lattice --tenant physics"), 1, "unknown_entitlement");
    daemon.run(&report("r2", 2)).ok();
    tells(&daemon.run(&format!("usage-record refused --month {month}")).ok(), &["r2", "record"]);
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn policies_are_set_and_applied_from_a_file() {
    let (daemon, folder) = (daemon(), tempfile::tempdir().expect("a folder"));
    tells(&daemon.run("policy set serving --unit requests").ok(), &["the policy of serving has version 1"]);
    let set = daemon.run("policy set serving --tenant physics --attribution caller").ok();
    tells(&set, &["the policy of serving for physics has version 1"]);
    tells(&daemon.run("policy list").ok(), &["serving", "physics", "requests", "caller"]);
    let file = write(
        &folder,
        "policies.yaml",
        "policies:\n  - app: serving\n    usage_units: [requests]\n  - app: serving\n    tenant: physics\n    \
         app_instance: chat\n    attribution: owner\nentitlements:\n  - tenant: physics\n    project: lattice\n    \
         usage_unit: requests\n    hard: 1000000\n",
    );
    let dry = daemon.run(&format!("policy apply {file} --dry-run")).ok();
    tells(&dry, &["the policy of serving on chat would be set", "would be set", "1 unchanged"]);
    let applied = daemon.run(&format!("policy apply {file}")).ok();
    tells(&applied, &["the policy of serving on chat has version 1", "entitlement of lattice for requests was set"]);
    tells(&daemon.run(&format!("policy apply {file}")).ok(), &["3 unchanged"]);
    daemon.run("policy set serving --tenant physics --app-instance chat --attribution caller").ok();
    let history = daemon.run("policy history serving --tenant physics --app-instance chat").ok();
    tells(&history, &["owner", "caller", "2"]);
    let bad = write(&folder, "bad.yaml", "policies:\n  - app: serving\n    weight: 3\n");
    refuses(&daemon.run(&format!("policy apply {bad}")), 2, "config_wrong");
    refuses(&daemon.run("policy apply missing.yaml"), 2, "unreadable_file");
}

#[test]
fn sharing_policies_are_set_and_applied_from_a_file() {
    let (daemon, folder) = (daemon(), tempfile::tempdir().expect("a folder"));
    let set = "sharing set serving --tenant physics";
    refuses(&daemon.run(&format!("{set} --weight lattice=60")), 2, "usage");
    refuses(&daemon.run(&format!("{set} --method fixed --weight lattice")), 2, "usage");
    refuses(&daemon.run(&format!("{set} --method fixed --weight lattice=60")), 1, "bad_shares");
    refuses(&daemon.run(&format!("{set} --method by-usage")), 1, "bad_body");
    refuses(&daemon.run(&format!("{set} --method by-tier --tier gold=1 --project-tier lattice=tin")), 1, "bad_body");
    tells(
        &daemon.run(&format!("{set} --method fixed --weight lattice=100")).ok(),
        &["the sharing policy of serving for physics has version 1"],
    );
    let tiers = "--method by-tier --tier gold=3 --tier tin=1 --project-tier physics/lattice=gold --default-tier tin";
    daemon.run(&format!("{set} {tiers} --result report")).ok();
    daemon.run("sharing set serving --control-plane-billable false --distributable true").ok();
    tells(&daemon.run("sharing list").ok(), &["serving", "by_tier gold=3 tin=1", "report", "no", "yes", "all"]);
    let history = daemon.run("sharing history serving --tenant physics").ok();
    tells(&history, &["fixed lattice=100", "entries", "by_tier gold=3 tin=1", "report"]);
    tells(&daemon.run("sharing shares").ok(), &["shares of", "draft"]);
    refuses(&daemon.run("sharing shares --month never"), 1, "bad_month");
    let file = write(
        &folder,
        "sharing.yaml",
        "sharing:\n  - app: serving\n    control_plane_billable: false\n    distributable: true\n  - app: serving\n    \
         tenant: physics\n    app_instance: chat\n    sharing: {method: by_usage, result: entries, usage_unit: requests}\n  \
         - app: serving\n    tenant: physics\n    sharing:\n      method: by_tier\n      result: report\n      tiers:\n        \
         - {name: gold, weight: 3}\n        - {name: tin, weight: \"1.0\"}\n      projects:\n        \
         - {project: lattice, tier: gold}\n      default_tier: tin\n",
    );
    let dry = daemon.run(&format!("policy apply {file} --dry-run")).ok();
    tells(&dry, &["the sharing policy of serving on chat would be set", "2 unchanged"]);
    tells(
        &daemon.run(&format!("policy apply {file}")).ok(),
        &["the sharing policy of serving on chat has version 1", "2 unchanged"],
    );
    tells(&daemon.run(&format!("policy apply {file}")).ok(), &["3 unchanged"]);
    daemon.run("policy set serving --tenant physics --billed-work requests").ok();
    tells(&daemon.run("policy list").ok(), &["billed work", "requests"]);
}
