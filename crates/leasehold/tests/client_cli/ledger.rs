//! `leasehold ledger …`, `period …`, `invoice …`, `payment …` and `tax …`, against a real daemon.

use super::{Daemon, refuses, tells};
use serde_json::{Value, json};
use std::fs;

const OF: &str = "lattice --tenant physics --currency EUR";

/// The month that the daemon is in, which is open: a new journal opens its ledger by itself.
fn month(daemon: &Daemon) -> String {
    daemon.json("ledger status")["first_open_month"].as_str().expect("a month").to_owned()
}

#[test]
fn the_ledger_is_read_booked_corrected_and_disputed() {
    let daemon = Daemon::with_cluster();
    tells(&daemon.run("ledger status").ok(), &["posts usage since", "first open month", "not settled yet"]);
    refuses(&daemon.run("ledger open"), 1, "ledger_already_open");
    tells(&daemon.run("ledger settle").ok(), &["0 hours settled"]);
    // The running hour is a draft.
    daemon.run("lease request --gpu 2 --ttl 10m --tenant physics --project lattice").ok();
    tells(&daemon.run("ledger draft --tenant physics").ok(), &["lattice", "gpu-h100 in training, standard", "EUR"]);

    let post = |legs: &str| daemon.run(&format!("ledger post {OF} --reason goodwill {legs}"));
    refuses(&post("--leg receivable=-25 --leg operator_loss=24"), 1, "unbalanced");
    refuses(&post("--leg cash=1"), 2, "usage");
    refuses(&post("--leg receivable=x --leg operator_loss=1"), 1, "bad_body");
    tells(
        &post("--leg receivable=-1025.5 --leg operator_loss=1025.5").ok(),
        &["adjustment", "-1,025.500000 EUR", "operator_loss"],
    );
    let entry = daemon.json("ledger entries --kind adjustment")["entries"][0]["id"].as_str().expect("an id").to_owned();
    tells(&daemon.run("ledger entries --tenant physics").ok(), &[&entry, "goodwill"]);
    tells(&daemon.run(&format!("ledger explain {entry}")).ok(), &["Booked by hand", "receivable"]);
    tells(&daemon.run("ledger balances --account receivable").ok(), &["physics", "lattice", "-1,025.500000"]);

    tells(&daemon.run(&format!("ledger dispute {entry} --reason wrong")).ok(), &["is disputed"]);
    tells(&daemon.run("ledger disputes").ok(), &[&entry, "disputed"]);
    refuses(&daemon.run(&format!("ledger dispute {entry} --reason again")), 1, "entry_disputed");
    daemon.run(&format!("ledger dispute {entry} --close --reason agreed")).ok();

    let corrected = daemon.run(&format!("ledger correct {entry} --amount -20.25 --reason less")).ok();
    tells(&corrected, &["was corrected; the change is 1,005.250000 EUR", "reversal", "replacement"]);
    let again = daemon.run(&format!("ledger correct {entry} --reason again"));
    refuses(&again, 1, "entry_corrected");
    assert!(again.err.contains("correct its replacement entry-"), "{again:?}");
    refuses(&daemon.run("ledger show entry-1-0"), 1, "unknown_entry");
    let shown = daemon.json(&format!("ledger show {entry}"));
    assert_eq!((&shown["disputed"], shown["corrected_by"].is_string()), (&json!(false), true));
    // Every command has a key; this one was chosen.
    let chosen =
        daemon.run(&format!("ledger post {OF} --reason one --leg receivable=1 --leg adjustments=-1 --key fee-1"));
    tells(&chosen.ok(), &["adjustment", "idempotency key", "fee-1"]);
    tells(&daemon.run(&format!("ledger show {entry}")).ok(), &["idempotency key"]);
}

#[test]
fn a_draft_is_printed_and_a_month_that_is_not_over_stays_open() {
    let daemon = Daemon::with_cluster();
    let month = month(&daemon);
    tells(&daemon.run("tax set physics 25.5%").ok(), &["rate now", "0.255"]);
    refuses(&daemon.run("tax set physics 150%"), 1, "bad_tax_rate");
    tells(&daemon.run("tax show physics").ok(), &["0.255", &month]);
    let address = daemon.json("tenant set physics --billing-address Physics_<b>;Street_1 --tax-id EE1");
    assert!(address["tenant"]["billing_address"].is_array(), "{address}");
    daemon.run(&format!("ledger post {OF} --reason fee --leg receivable=100.005 --leg adjustments=-100.005")).ok();

    // 100.005 is rounded to 100.00 (half to even), and taxed by 25.50.
    let draft = daemon.run("invoice draft --tenant physics").ok();
    tells(&draft, &["by hand", "100.005000", "-0.005000", "25.500000", "125.500000"]);
    let page = daemon.run("invoice draft --tenant physics --html").ok();
    tells(&page, &["Draft invoice", "125.50", "&lt;b&gt;", "must not be paid"]);
    let file = daemon.path("draft.csv");
    daemon.run(&format!("invoice draft --tenant physics --csv --out {}", file.display())).ok();
    let csv = fs::read_to_string(&file).expect("a file");
    assert!(csv.starts_with("invoice,row,section") && csv.contains("draft,total"), "{csv}");
    refuses(&daemon.run("invoice draft --tenant physics --out x"), 2, "usage");

    tells(&daemon.run("period list").ok(), &[&month, "open"]);
    tells(&daemon.run(&format!("period show {month}")).ok(), &["can be closed", "no", "missing", "125.500000"]);
    let preview = daemon.json(&format!("period close {month}"));
    assert_eq!((&preview["preview"], &preview["period"]["can_close"]), (&json!(true), &json!(false)));
    refuses(&daemon.run(&format!("period close {month} --yes")), 1, "period_not_over");
    refuses(&daemon.run("period show 2026-13"), 2, "usage");
}

#[test]
fn a_draft_is_compared_with_what_it_was() {
    let daemon = Daemon::with_cluster();
    daemon.run("tax set physics 20%").ok();
    let post = |amount: &str| {
        daemon
            .run(&format!("ledger post {OF} --reason fee --leg receivable={amount} --leg adjustments=-{amount}"))
            .ok();
    };
    post("100.005");
    let before = daemon.path("before.json");
    fs::write(&before, daemon.json("invoice draft --tenant physics").to_string()).expect("a file");
    let diff = format!("invoice diff {} draft --tenant physics", before.display());
    tells(&daemon.run(&diff).ok(), &["the totals are equal", "No line differs"]);
    // 100.005 + 50 = 150.005: rounded to 150.00 as before to 100.00 (half to even), and taxed by 10.00 more.
    post("50");
    tells(
        &daemon.run(&diff).ok(),
        &["60.000000 EUR more", "lattice: booked by hand", "100.005000", "+50.000000", "tax 0.2", "+10.000000"],
    );
    let found = daemon.json(&diff);
    assert_eq!((&found["difference"], found["parts"].as_array().map(Vec::len)), (&json!("60.000000"), Some(2)));
    assert_eq!(found["parts"][1]["causes"][0]["cause"], "other_net");
    refuses(&daemon.run("invoice diff INV-000001 draft --tenant physics"), 1, "unknown_invoice");
    refuses(&daemon.run("invoice diff nothing.json draft --tenant physics"), 2, "usage");
}

#[test]
fn a_proof_never_replaces_a_file_by_itself() {
    let daemon = Daemon::with_cluster();
    let file = daemon.path("INV-000001.proof");
    let prove = format!("invoice prove INV-1 --out {}", file.display());
    refuses(&daemon.run(&prove), 1, "unknown_invoice");
    assert!(!file.exists() && !daemon.path("INV-000001.proof.part").exists());
    fs::write(&file, "mine").expect("a file");
    refuses(&daemon.run(&prove), 1, "file_exists");
    refuses(&daemon.run(&format!("{prove} --force")), 1, "unknown_invoice");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine", "nothing was downloaded");
    refuses(&daemon.run("invoice prove ../INV-1"), 2, "usage");
}

#[test]
fn payments_are_recorded_once() {
    let daemon = Daemon::with_cluster();
    let paid = "payment record 500 --tenant physics --currency EUR --reference bank-1";
    let first = daemon.json(paid);
    assert_eq!((&first["owed"], &first["payment"]["invoice"]), (&json!("-500.000000"), &Value::Null));
    assert_eq!(daemon.json(paid), first);
    refuses(&daemon.run("payment record 501 --tenant physics --currency EUR --reference bank-1"), 1, "payment_exists");
    refuses(&daemon.run("payment record 1 --invoice INV-1 --reference bank-2"), 1, "unknown_invoice");
    refuses(&daemon.run("payment record 1 --tenant physics --reference bank-2"), 2, "usage");
    tells(&daemon.run("payment list").ok(), &["physics", "500.000000", "bank-1"]);
    let none = daemon.run("invoice list").ok();
    assert!(none.err.contains("nothing found"), "{none:?}");
    refuses(&daemon.run("invoice show INV-000001"), 1, "unknown_invoice");
    // A project that has a balance is kept.
    daemon.run(&format!("ledger post {OF} --reason fee --leg receivable=1 --leg adjustments=-1")).ok();
    refuses(&daemon.run("project delete lattice --tenant physics"), 1, "project_has_balance");
}

#[test]
fn control_planes_are_told_apart() {
    let daemon = Daemon::with_cluster();
    let request = "lease request --gpu 1 --ttl 10m --tenant physics --project lattice";
    refuses(&daemon.run(&format!("{request} --control-plane")), 2, "usage");
    daemon.run("app create slurm --origin internal").ok();
    daemon.run("app-instance create seven --project lattice --tenant physics --app slurm --backend slurm").ok();
    daemon.run(&format!("{request} --control-plane --app-instance seven")).ok();
    daemon.run(request).ok();
    let usage = daemon.json("usage --by control_plane,class");
    let flags: Vec<&Value> =
        usage["lines"].as_array().expect("lines").iter().map(|line| &line["control_plane"]).collect();
    assert_eq!(flags, [&json!(false), &json!(true)], "{usage}");
    tells(&daemon.run("usage --by control_plane").ok(), &["control_plane", "true", "false"]);
    assert_eq!(daemon.json("usage --control-plane true")["lines"].as_array().map(Vec::len), Some(1));
}

#[test]
fn credit_is_paid_in_advance_shown_and_ended() {
    let daemon = Daemon::with_cluster();
    let order = "prepaid top-up 5000 --tenant physics --reference order-1";
    tells(&daemon.run(order).ok(), &["physics", "enough", "5000.00 EUR", "never"]);
    tells(&daemon.run(order).ok(), &["5000.00 EUR"]);
    refuses(&daemon.run("prepaid top-up 4000 --tenant physics --reference order-1"), 1, "top_up_exists");
    refuses(&daemon.run("prepaid top-up -1 --tenant physics --reference order-2"), 1, "bad_top_up");
    refuses(&daemon.run("prepaid top-up 1 --reference order-2"), 2, "usage");
    refuses(&daemon.run("prepaid policy --project lattice --low-below 1"), 1, "no_prepaid_account");
    let gift = "prepaid top-up 10 --project lattice --tenant physics --reference welcome --source granted --expires 1h";
    tells(&daemon.run(gift).ok(), &["lattice", "10.00 EUR"]);
    let policy = "prepaid policy --project lattice --low-below 20 --window 1h --low alert --depleted drain --grace 5m";
    tells(&daemon.run(policy).ok(), &["low: alert", "below 20.00 EUR", "within 1h", "drain, grace 5m"]);
    tells(
        &daemon.run("prepaid list").ok(),
        &["physics", "all without their own", "lattice", "low", "5000.00", "10.00"],
    );
    tells(&daemon.run("prepaid show --tenant physics").ok(), &["5000.00 EUR"]);
    // A GPU costs 0.01 EUR a second: ten minutes of two cost 12.
    let request = daemon.run("lease request --gpu 2 --ttl 10m --tenant physics --project lattice");
    refuses(&request, 1, "prepaid_not_covered");
    tells(&daemon.run("prepaid end 1 --project lattice").ok(), &["depleted: drain", "lapsed"]);
    refuses(&daemon.run("prepaid end 1 --project lattice"), 1, "unknown_credit");
    tells(
        &daemon.run("ledger entries --tenant physics --kind top_up").ok(),
        &["top_up", "order-1, credit of 5,000.000000"],
    );
    tells(&daemon.run("ledger entries --kind lapse").ok(), &["lapse", "credit of -10.000000"]);
}

#[test]
fn a_timeline_is_told_by_the_id_of_a_request() {
    const ID: &str = "5f0c1b3e-8a44-4d2e-9c55-0e6b7a1d2f33";
    let daemon = Daemon::with_cluster();
    let of = "--tenant physics --project lattice";
    daemon.run(&format!("lease request --gpu 2 --ttl 10m {of} --correlation-id {ID}")).ok();
    let lease = daemon.json("lease list")["leases"][0].clone();
    let id = lease["id"].as_str().expect("an id");
    daemon.run(&format!("lease renew {id} --ttl 20m")).ok();
    daemon.run(&format!("lease release {id}")).ok();
    let told = daemon.run(&format!("timeline {}", ID.replace('-', ""))).ok();
    tells(
        &told,
        &["lease.granted", id, "2 gpu-h100 on", "lease.renewed", "lease.released", "usage", "GPU-hours", "EUR"],
    );
    assert!(told.out.lines().all(|line| line.chars().count() <= 120), "{told:?}");
    let json = daemon.json(&format!("timeline {ID}"));
    assert_eq!((&json["correlation_id"], &json["steps"][0]["event"]), (&json!(ID), &json!("lease.granted")));
    // A request without an ID has one that the daemon derived.
    daemon.run(&format!("lease request --gpu 1 --ttl 10m {of}")).ok();
    let derived = daemon.json("lease list")["leases"][0]["correlation_id"].as_str().expect("an ID").to_owned();
    assert_ne!(derived, ID);
    tells(&daemon.run(&format!("timeline {derived}")).ok(), &["lease.granted", "1 gpu-h100 on"]);
    refuses(&daemon.run("timeline 00000000000000000000000000000001"), 1, "unknown_correlation_id");
    refuses(&daemon.run("timeline nonsense"), 1, "bad_id");
    refuses(&daemon.run("timeline"), 2, "usage");
}
