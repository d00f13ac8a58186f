//! `leasehold usage-record …`, against a real daemon.

use super::{Daemon, refuses, tells};
use serde_json::{Value, json};

pub(super) const STORY: &str = "0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10";

/// A runtime of lattice, with a price for requests.
pub(super) fn daemon() -> Daemon {
    let daemon = Daemon::with_cluster();
    daemon.run("unit price requests 0.5").ok();
    daemon.run("app create serving --origin internal --unit requests --unit uptime_hours").ok();
    daemon.run("app-instance create chat --project lattice --tenant physics --app serving --backend serving").ok();
    daemon
}

/// A minute of the past as the daemon sees it, in seconds before now.
pub(super) fn ago(daemon: &Daemon, seconds: i64) -> String {
    let now = daemon.json("usage --from 1m")["as_of"].as_str().expect("a time").to_owned();
    let now: leasehold_api::When = now.parse().expect("a time");
    let at = leasehold_model::Instant(now.0.0 - u64::try_from(seconds).expect("small") * 1_000_000_000);
    at.to_string()
}

#[test]
fn usage_is_reported_once_superseded_and_shown() {
    let daemon = daemon();
    let (from, to) = (ago(&daemon, 120), ago(&daemon, 60));
    let report = |id: &str, more: &str| {
        format!(
            "usage-record report chat --id {id} --unit requests --from {from} --to {to} --correlation {STORY} {more}"
        )
    };
    tells(&daemon.run(&report("r1", "--quantity 10")).ok(), &["r1 was recorded as record", "it is billed"]);
    tells(&daemon.run(&report("r1", "--quantity 10")).ok(), &["recorded before", "nothing was done"]);
    refuses(&daemon.run(&report("r1", "--quantity 11")), 1, "usage_id_taken");
    refuses(&daemon.run(&report("r2", "--quantity -1")), 1, "bad_quantity");
    refuses(&daemon.run(&report("r2", "--quantity 1 --attachment 0")), 2, "usage");
    refuses(&daemon.run(&report("r2", "--quantity 1 --user nobody")), 1, "unknown_anchor");
    refuses(&daemon.run(&report("r2", "--quantity 1").replace("chat", "chart")), 1, "unknown_app_instance");
    daemon.run(&report("r2", "--quantity 12 --supersedes r1")).ok();
    refuses(&daemon.run(&report("r3", "--quantity 12 --supersedes r1")), 1, "usage_superseded");
    tells(&daemon.run("usage-record show r2").ok(), &["12 requests", "supersedes", "r1", "billed", STORY]);
    refuses(&daemon.run("usage-record show r9"), 1, "not_found");
    // Reported usage is shown in the hour in which it is booked, which may have begun more than an hour ago.
    tells(&daemon.run("usage --by app_instance --from 2h").ok(), &["Reported by apps", "chat", "12", "requests"]);
    tells(
        &daemon.run(&format!("timeline {STORY}")).ok(),
        &["usage.recorded", "r2: 12 requests of chat", "in place of r1"],
    );
}

#[test]
fn a_file_is_sent_again_without_harm() {
    let daemon = daemon();
    let (from, to) = (ago(&daemon, 120), ago(&daemon, 60));
    let record = |id: usize, unit: &str| -> Value {
        json!({ "id": format!("f{id}"), "org_id": "physics", "project_id": "lattice", "app_instance_id": "chat",
            "app_slug": "serving", "operating_mode": "tenant_dedicated", "control_plane_scope": "project",
            "runtime_backend": "serving", "correlation_id": STORY, "usage_unit": unit, "quantity": 1,
            "from": from, "to": to })
    };
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let all: Vec<Value> = (0..2500).map(|id| record(id, "requests")).collect();
    let list = write("list.json", Value::from(all.clone()).to_string());
    tells(&daemon.run(&format!("usage-record send {list}")).ok(), &["2,500 recorded, 0 recorded before, 0 refused"]);
    let lines = write("lines.jsonl", all.iter().map(|one| format!("{one}\n")).collect());
    tells(&daemon.run(&format!("usage-record send {lines}")).ok(), &["0 recorded, 2,500 recorded before, 0 refused"]);
    let one_bad =
        write("bad.json", json!({ "records": [record(9000, "tokens"), record(9001, "requests")] }).to_string());
    let sent = daemon.run(&format!("usage-record send {one_bad}"));
    assert!(sent.err.contains("1 recorded, 0 recorded before, 1 refused"), "{}", sent.err);
    refuses(&sent, 1, "usage_refused");
    let sent = daemon.run(&format!("usage-record send {one_bad} --atomic"));
    refuses(&sent, 1, "usage_batch_refused");
    refuses(&daemon.run("usage-record send /no/such/file"), 2, "unreadable_file");
    let nonsense = write("nonsense.json", "{\n".into());
    refuses(&daemon.run(&format!("usage-record send {nonsense}")), 2, "bad_json");
    let other = write("other.json", json!([{ "color": "red" }]).to_string());
    refuses(&daemon.run(&format!("usage-record send {other}")), 2, "bad_body");
    assert_eq!(daemon.json("usage --from 2h")["reported"][0]["quantity"], "2501");
}
