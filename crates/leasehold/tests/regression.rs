//! One test per report of a fault that a user could see, named after the report: `r12_03` is the third fault of issue 12.
//! A fix begins with a test here that fails.
//!
//! Faults that cannot be seen from the command line are tested where they were:
//!
//! | report | test |
//! |---|---|
//! | `audit replay` said `differs` for decisions of earlier rules | `sim/tests/frozen` |
//! | no snapshots were taken after an upgrade that changed their version | `cell/tests/cell.rs` |
//! | slow explanations of one caller blocked the questions of all others | `server/tests/http/explain.rs` |
//! | a timeout was answered 503, not 408 as documented | `server/src/listen/tests.rs` |

mod common;

use common::daemon::{Daemon, granted, refuses, tells};
use serde_json::{Value, json};

const MINE: &str = "--tenant physics --project lattice";

/// The command line printed `tearing-down`, the API `tearing_down`, and each refused the other's word.
#[test]
fn r12_01_words_are_accepted_with_underscores_and_hyphens() {
    let daemon = Daemon::with_cluster();
    for words in [
        ["lease list --state tearing_down", "lease list --state tearing-down"],
        ["waste --headline premium_waste", "waste --headline premium-waste"],
        ["usage --by held_as,app_instance", "usage --by held-as,app-instance"],
        ["pool set training --strategy bin_pack", "pool set training --strategy bin-pack"],
    ] {
        let [underscores, hyphens] = words.map(|line| daemon.run(&format!("{line} --json")).ok());
        assert!(!underscores.out.is_empty() && !hyphens.out.is_empty(), "{words:?}");
    }
    tells(&daemon.run("pool show training").ok(), &["bin_pack"]);
    let wrong = daemon.run("lease list --state torn-down");
    refuses(&wrong, 2, "usage");
    assert!(wrong.err.contains("tearing_down") && !wrong.err.contains("tearing-down"), "{wrong:?}");
}

/// `--gpu -1` was reported as an unknown option instead of an invalid quantity.
#[test]
fn r12_02_a_negative_number_is_an_invalid_quantity() {
    let daemon = Daemon::with_cluster();
    for (line, code) in [
        ("lease request --gpu -0 --ttl 10m", "bad_quantity"),
        ("lease request --gpu -1 --ttl 10m", "bad_quantity"),
        ("alloc submit --mem -8GiB --walltime 1h", "bad_quantity"),
    ] {
        let said = daemon.run(&format!("{line} {MINE}"));
        refuses(&said, 1, code);
        assert!(said.err.contains("is not a quantity"), "{said:?}");
    }
    for line in
        ["lease request --gpu 1 --ttl -5m", "alloc submit --gpu 1 --replicas -1", "tenant set physics --max-nodes -2"]
    {
        let said = daemon.run(line);
        refuses(&said, 2, "usage");
        assert!(said.err.contains("invalid value '-") && !said.err.contains("unexpected argument"), "{said:?}");
    }
}

/// A closed lease showed `accounting_tag: null`.
#[test]
fn r12_03_a_closed_lease_keeps_its_accounting_tag() {
    let daemon = Daemon::with_cluster();
    let lease = granted(daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --json"));
    daemon.by("ci.token", &format!("lease release {lease}")).ok();
    let closed = daemon.json(&format!("lease show {lease}"));
    assert_eq!((&closed["state"], &closed["accounting_tag"]), (&json!("closed"), &json!("cost-4711")));
}

/// Changes of ceilings were counted as `other` in the metrics.
#[test]
fn r12_04_metrics_count_each_command_under_its_name() {
    let daemon = Daemon::with_cluster();
    daemon.run("ceiling set lattice --hard 10").ok();
    let metrics = daemon.get("/metrics");
    let counted = |name: &str| metrics.lines().any(|line| line.contains("commands_total") && line.contains(name));
    assert!(counted("kind=\"put_ceiling\""), "{metrics}");
    assert!(!counted("kind=\"other\""), "{metrics}");
}

/// Names in wide characters shifted the columns of tables.
#[test]
fn r12_05_tables_align_wide_characters() {
    let daemon = Daemon::with_cluster();
    daemon.run("tenant create 物理学科 --accounting-tag tag-a").ok();
    daemon.run("tenant create chemistry --accounting-tag tag-b").ok();
    let listed = daemon.run("tenant list").ok().out;
    let column = |tag: &str| {
        let line = listed.lines().find(|line| line.contains(tag)).unwrap_or_else(|| panic!("no {tag} in {listed}"));
        unicode_width::UnicodeWidthStr::width(&line[..line.find(tag).expect("the tag")])
    };
    assert_eq!(column("tag-a"), column("tag-b"), "{listed}");
}

/// Capacity that was reserved for an allocation was reported as idle.
#[test]
fn r12_06_reserved_capacity_is_reported_as_reserved() {
    let daemon = Daemon::with_cluster();
    daemon.run("node create gpu-2 --pool training --class gpu-h100=4").ok();
    daemon.run("node drain gpu-1").ok();
    daemon.run("tenant set physics --max-priority guaranteed").ok();
    daemon.run(&format!("lease request --gpu 2 --ttl 1h --priority scavenger {MINE}")).ok();
    daemon.run(&format!("alloc submit --gpu 4 --walltime 1h --priority guaranteed {MINE}")).ok();
    // Two GPUs are being torn down; the two that were free are reserved for the allocation.
    let capacity = daemon.json("usage capacity --from 1h --by node");
    let line = capacity["lines"].as_array().expect("lines").iter().find(|line| line["node"] == "gpu-2").expect("gpu-2");
    assert_ne!(line["reserved"], Value::from("0"), "{capacity}");
}
