//! The commands that call a daemon, against a real one.

#[path = "client_cli/alloc.rs"]
mod alloc;
#[path = "client_cli/apps.rs"]
mod apps;
#[path = "client_cli/bill.rs"]
mod bill;
#[path = "client_cli/books.rs"]
mod books;
#[path = "client_cli/ceiling.rs"]
mod ceiling;
#[path = "client_cli/claims.rs"]
mod claims;
mod common;
#[path = "client_cli/entitlement.rs"]
mod entitlement;
#[path = "client_cli/example.rs"]
mod example;
#[path = "client_cli/explain.rs"]
mod explain;
#[path = "client_cli/ledger.rs"]
mod ledger;
#[path = "client_cli/past.rs"]
mod past;
#[path = "client_cli/quota.rs"]
mod quota;
#[path = "client_cli/scrub.rs"]
mod scrub;
#[path = "client_cli/select.rs"]
mod select;
#[path = "client_cli/usage_record.rs"]
mod usage_record;
#[path = "client_cli/webhooks.rs"]
mod webhooks;
#[path = "client_cli/windows.rs"]
mod windows;
#[path = "client_cli/words.rs"]
mod words;

use common::daemon::{AllocationNumber, Daemon, granted, refuses, tells};
use common::said;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_cluster_is_set_up_and_used() {
    let daemon = Daemon::with_cluster();
    // The new objects are shown, as text and as JSON.
    tells(&daemon.run("class list").ok(), &["gpu-h100", "mem-dram", "1/1,024 GiB"]);
    tells(&daemon.run("pool show training").ok(), &["bin_pack", "standard 8h", "2s"]);
    tells(&daemon.run("node list").ok(), &["gpu-1", "ready", "gpu-h100", "64"]);
    tells(&daemon.run("admin node show gpu-1").ok(), &["rack", "r7", "immediate"]);
    tells(&daemon.run("tenant show physics").ok(), &["cost-4711", "standard"]);
    assert_eq!(daemon.json("project list --tenant physics")["projects"][0]["name"], "lattice");
    assert_eq!(daemon.json("user show ada --tenant physics")["tenant"], "physics");
    tells(&daemon.by("ci.token", "token whoami").ok(), &["project_member", "physics/lattice"]);
    let mode = fs::metadata(daemon.path("ci.token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // A quota, a grant within it, and a denial with used, requested and limit.
    tells(&daemon.run("quota create --tenant physics --class gpu-h100 --hard 3").ok(), &["3 GPU, hard"]);
    let asked = daemon.by("ci.token", "lease request --gpu 2 --mem 16GiB --ttl 10m --workload train --json");
    let grant = asked.json();
    assert_eq!(grant["leases"].as_array().map(Vec::len), Some(2));
    assert_eq!(grant["node"], "gpu-1");
    let lease = granted(asked);
    let denied = daemon.by("ci.token", "lease request --gpu 2 --ttl 10m");
    refuses(&denied, 1, "quota_exceeded");
    assert!(denied.err.contains("used 2, requested 2, limit 3 GPU"), "{denied:?}");
    let sequence = daemon.by("ci.token", "lease request --gpu 2 --ttl 10m --json");
    let problem: Value = serde_json::from_str(&sequence.err).expect("the problem, and nothing else");
    assert_eq!((sequence.code, sequence.out.as_str(), &problem["code"]), (1, "", &json!("quota_exceeded")));
    let hint =
        format!("recorded as record {}; `leasehold audit replay --sequence", problem["sequence"].as_u64().unwrap() - 1);
    assert!(denied.err.contains(&hint), "{denied:?}");
    tells(&daemon.run("quota list").ok(), &["physics", "gpu-h100", "hard"]);
    assert_eq!(daemon.json("quota list --tenant physics")["quotas"][0]["used"], 2);

    // The current state of the lease.
    tells(&daemon.run("lease list --tenant physics").ok(), &[&lease, "active", "lattice", "in 9m"]);
    tells(&daemon.by("ci.token", &format!("lease show {lease}")).ok(), &["active", "cost-4711", "gpu-1"]);
    tells(&daemon.run("node list --pool training").ok(), &["gpu-1", "48"]);
    tells(&daemon.by("ci.token", &format!("lease renew {lease} --ttl 30m")).ok(), &[&lease, "in 29m"]);

    // A key makes a change once.
    let again = format!("lease renew {lease} --ttl 1h --key my-key --json");
    assert_eq!(daemon.by("ci.token", &again).ok().json(), daemon.by("ci.token", &again).ok().json());
    let other = daemon.by("ci.token", &format!("lease renew {lease} --ttl 2h --key my-key"));
    refuses(&other, 1, "idempotency_mismatch");

    // One lease of the gang is released, the other one revoked.
    tells(&daemon.by("ci.token", &format!("lease release {lease}")).ok(), &[&lease, "its capacity is free"]);
    tells(&daemon.by("ci.token", &format!("lease release {lease}")).ok(), &[&lease, "its capacity is free"]);
    refuses(&daemon.by("ci.token", &format!("lease renew {lease} --ttl 1h")), 1, "lease_released");
    let second = daemon.json("lease list")["leases"][0]["id"].as_str().unwrap().to_owned();
    tells(&daemon.run(&format!("lease revoke {second} --grace 0s --reason policy")).ok(), &["no grace period"]);
    let lines = daemon.run("lease list").ok();
    assert!(lines.out.is_empty() && lines.err.contains("nothing found"), "{lines:?}");
    tells(&daemon.run(&format!("lease show {lease}")).ok(), &["closed"]);
    let history = daemon.run(&format!("lease history {lease}")).ok();
    tells(&history, &["lease.granted", "lease.renewed", "lease.released", "2 GPU gpu-h100"]);
    let kinds: Vec<Value> =
        daemon.run(&format!("lease history {lease} --json")).ok().lines().iter().map(|r| r["kind"].clone()).collect();
    assert_eq!(kinds, ["lease.granted", "lease.renewed", "lease.renewed", "lease.released"].map(Value::from));
}

#[test]
fn changes_set_clear_and_keep() {
    let daemon = Daemon::with_cluster();
    let tenant = daemon.json("tenant set physics --max-nodes 5 --max-leases 7 --contact ops@physics.example");
    assert_eq!(tenant["tenant"]["contact"], "ops@physics.example");
    tells(&daemon.run("tenant show physics").ok(), &["contact", "ops@physics.example"]);
    assert_eq!(daemon.json("tenant set physics --clear contact")["tenant"]["contact"], Value::Null);
    assert_eq!(tenant["tenant"]["accounting_tag"], "cost-4711");
    let tenant = daemon.json("tenant set physics --clear accounting-tag --clear max-nodes --name physik");
    let fields = ["name", "accounting_tag", "max_nodes", "max_leases"].map(|field| tenant["tenant"][field].clone());
    assert_eq!(fields, [json!("physik"), Value::Null, Value::Null, json!(7)]);
    refuses(&daemon.run("tenant set physik"), 2, "usage");
    refuses(&daemon.run("settings set"), 2, "usage");
    refuses(&daemon.run("tenant set physik --max-nodes 1 --clear max-nodes"), 2, "usage");
    let pool = daemon.json("pool set training --clear ttl-max --lifetime-max scavenger=1d");
    assert_eq!(
        (&pool["pool"]["ttl_max"]["standard"], &pool["pool"]["lifetime_max"]["scavenger"]),
        (&Value::Null, &json!("1d"))
    );
    let node = daemon.json("node set gpu-1 --clear rack --label driver=570 --zone z1");
    assert_eq!(node["node"]["labels"], json!({ "driver": "570" }));
    assert_eq!((&node["node"]["rack"], &node["node"]["zone"]), (&Value::Null, &json!("z1")));
    assert_eq!(daemon.json("node set gpu-1 --clear labels")["node"]["labels"], json!({}));
    // An unused class can change completely; a used one keeps the fields that affect its price.
    daemon.json("class create spare --kind gpu --tier l4");
    assert_eq!(daemon.json("class set spare --clear tier")["class"]["tier"], Value::Null);
    assert!(daemon.run("class set gpu-h100 --clear tier").err.contains("class_in_use"));
    tells(&daemon.run("project set lattice --tenant physik --name qcd").ok(), &["qcd"]);
    tells(&daemon.run("user set ada --tenant physik --name ada.l").ok(), &["ada.l"]);
    tells(&daemon.run("settings set --grace-default 90s").ok(), &["1m30s"]);
    assert_eq!(daemon.json("settings show")["grace_default"], "1m30s");

    tells(
        &daemon
            .run("quota create --tenant physik --class mem-dram --burst 16GiB --burst-limit 32GiB --burst-ttl 2h")
            .ok(),
        &["16 GiB, burst", "32 GiB"],
    );
    let quota = daemon.json("quota create --tenant physik --measure nodes --soft 3")["quota"]["id"].clone();
    assert_eq!(
        daemon.json(&format!("quota set {quota} --hard 4"))["quota"]["limit"],
        json!({ "type": "hard", "limit": 4 })
    );
    tells(&daemon.run(&format!("quota delete {quota}")).ok(), &["deleted"]);
    refuses(&daemon.run(&format!("quota show {quota}")), 1, "unknown_quota");

    for (line, told) in
        [("drain", "drained"), ("resume", "no longer drained"), ("lose", "lost"), ("return", "no longer lost")]
    {
        tells(&daemon.run(&format!("node {line} gpu-1")).ok(), &[told]);
    }
    let token = daemon.json("token list")["tokens"].as_array().unwrap().last().unwrap()["id"].clone();
    tells(&daemon.run(&format!("token show {token}")).ok(), &["project_member", "never"]);
    tells(&daemon.run(&format!("token revoke {token}")).ok(), &["revoked"]);
    refuses(&daemon.by("ci.token", "token whoami"), 1, "unauthenticated");
    let shown = daemon.run("token issue aud --role auditor --expires-in 90d").ok();
    assert_eq!(shown.out.lines().count(), 1, "only the secret: {shown:?}");
    assert!(shown.err.contains("in 89d"), "{shown:?}");

    for line in [
        "user delete ada.l --tenant physik",
        "project delete qcd --tenant physik",
        "node delete gpu-1",
        "pool delete training",
    ] {
        tells(&daemon.run(line).ok(), &["deleted"]);
    }
}

#[test]
fn unknown_names_come_with_suggestions() {
    let daemon = Daemon::with_cluster();
    for (line, code, near) in [
        ("tenant show physcs", "unknown_tenant", "physics"),
        ("class show gpu-h10", "unknown_class", "gpu-h100"),
        ("pool show trainning", "unknown_pool", "training"),
        ("node show gpu-2", "unknown_node", "gpu-1"),
        ("lease request --class gpu-h1000=2 --ttl 1m --tenant physics --project lattice", "unknown_class", "gpu-h100"),
        ("quota create --tenant physics --class gpu-h10 --hard 3", "unknown_class", "gpu-h100"),
        ("tenant show zzz", "unknown_tenant", "physics"),
    ] {
        let said = daemon.run(line);
        refuses(&said, 1, code);
        assert!(said.err.contains(near), "no {near:?} in {said:?}");
    }
    daemon.run("class create gpu-l40s --kind gpu").ok();
    let which = daemon.by("ci.token", "lease request --gpu 2 --ttl 1m");
    refuses(&which, 2, "class_needed");
    assert!(which.err.contains("--class NAME=2: gpu-h100, gpu-l40s"), "{which:?}");
    refuses(&daemon.by("ci.token", "lease request --cpu 2 --ttl 1m"), 1, "unknown_class");
    refuses(&daemon.by("ci.token", "lease request --ttl 1m"), 2, "usage");
    refuses(&daemon.by("ci.token", "lease request --class gpu-h100 --ttl 1m"), 2, "usage");
    refuses(&daemon.by("ci.token", "lease request --class gpu-h100=1 --ttl soon"), 2, "usage");
    refuses(&daemon.by("ci.token", "lease request --class gpu-h100=9 --ttl 1m"), 1, "no_capacity");
    refuses(&daemon.by("ci.token", "tenant create chemistry"), 1, "role_forbids");
    refuses(&daemon.by("ci.token", "lease show lease-4711"), 1, "lease_not_found");
    refuses(&daemon.run("tenant delete .."), 1, "bad_name");
    refuses(&daemon.run("project create 1 --tenant physics"), 1, "bad_name");
    refuses(&daemon.run("lease list --watch"), 2, "usage");
    refuses(&daemon.run("lease lst"), 2, "usage");
    refuses(&daemon.run("token issue x --role operator --out {}/ci.token"), 1, "output_failed");

    // The daemon and the token.
    let mut nobody = daemon.command("nowhere.token", "lease list");
    nobody.env_remove("LEASEHOLD_TOKEN_FILE");
    let told = said(nobody);
    refuses(&told, 1, "unauthenticated");
    assert!(told.err.contains("--token-file"), "{told:?}");
    refuses(&daemon.by("nowhere.token", "lease list"), 1, "file_unreadable");
    let begun = Instant::now();
    refuses(&daemon.run("lease list --url http://127.0.0.1:1"), 1, "unreachable");
    assert!(begun.elapsed() < Duration::from_secs(30));
    refuses(&daemon.run("lease list --url localhost"), 1, "bad_url");
    fs::create_dir_all(daemon.path("home/.config/leasehold")).unwrap();
    fs::write(daemon.path("home/.config/leasehold/config.yaml"), "urll: http://h\n").unwrap();
    let typo = daemon.run("lease list");
    refuses(&typo, 1, "bad_settings_file");
    assert!(typo.err.contains("did you mean `url`"), "{typo:?}");
}

#[test]
fn events_after_the_end_are_refused() {
    let daemon = Daemon::with_cluster();
    for command in ["events --after 4711", "events --follow --after 4711", "audit records --after 4711"] {
        let refused = daemon.run(command);
        refuses(&refused, 1, "beyond_end");
        for words in ["none with the number 4711", "restored from an older copy", "without --after"] {
            assert!(refused.err.contains(words), "{command}: {refused:?}");
        }
    }
}

#[test]
fn events_are_followed() {
    let daemon = Daemon::with_cluster();
    tells(&daemon.run("events").ok(), &["journal.genesis", "tenant.put", "token.issued"]);
    let after = daemon.run("events --json").ok().lines().last().unwrap()["sequence"].clone();
    let mut following = daemon
        .command("ci.token", "events --follow --kind lease --json")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    // The stream starts at some point; request and release leases until it shows one.
    let done = std::sync::atomic::AtomicBool::new(false);
    let record: Value = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let lease = granted(daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --json"));
                daemon.by("ci.token", &format!("lease release {lease}")).ok();
            }
        });
        let line = lines.next().expect("an event").expect("UTF-8");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        serde_json::from_str(&line).expect("JSON")
    });
    assert!(record["kind"].as_str().unwrap().starts_with("lease."), "{record}");
    assert_eq!(record["identity"]["tenant"], "physics");
    kill_process(Pid::from_child(&following), Signal::INT).unwrap();
    assert_eq!(following.wait().unwrap().code(), Some(0));

    let since = daemon.run(&format!("events --after {after} --kind lease.granted --json")).ok().lines();
    assert!(!since.is_empty() && since.iter().all(|record| record["kind"] == "lease.granted"));
    let two = daemon.run("audit records --limit 2 --json").ok().lines();
    assert_eq!(two.iter().map(|record| record["sequence"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(1)]);
    // It ends when its reader closes the pipe.
    let mut unread =
        daemon.command("ci.token", "events --follow --after 0 --kind lease").stdout(Stdio::piped()).spawn().unwrap();
    drop(unread.stdout.take());
    assert_eq!(unread.wait().unwrap().code(), Some(0));
}

#[test]
fn a_command_runs_under_a_lease() {
    let daemon = Daemon::with_cluster();
    let run = |line: &str, script: &str| {
        let mut command = daemon.command("ci.token", line);
        command.args(["--", "sh", "-c", script]);
        command
    };
    let script = "echo $LEASEHOLD_NODE $LEASEHOLD_DEVICES $CUDA_VISIBLE_DEVICES; echo $LEASEHOLD_LEASE_ID; exit 7";
    let ended = said(run("lease run --gpu 2 --mem 1GiB", script));
    assert_eq!(ended.code, 7, "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines[0], "gpu-1 gpu-h100=0,1 0,1");
    assert_eq!(daemon.json(&format!("lease show {}", lines[1]))["state"], "closed", "given back");
    assert_eq!(daemon.json("lease list")["leases"], json!([]));
    assert_eq!(said(run("lease run --gpu 1", "kill -KILL $$")).code, 128 + 9);
    let missing = said({
        let mut command = daemon.command("ci.token", "lease run --gpu 1");
        command.args(["--", "/nowhere/to/be/found"]);
        command
    });
    refuses(&missing, 1, "command_failed");
    assert_eq!(daemon.json("lease list")["leases"], json!([]), "given back though nothing ran");
    refuses(&said(run("lease run --gpu 9", "true")), 1, "no_capacity");

    // The lease is renewed beyond its TTL, and signals are forwarded to the command.
    let mut long = run("lease run --gpu 1 --ttl 1s", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done");
    let mut long = long.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut up = [0; 3];
    long.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    let first = daemon.json("lease list")["leases"][0].clone();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let lease = daemon.json("lease list")["leases"][0].clone();
        assert_eq!(lease["id"], first["id"], "it was lost");
        if lease["expires_at"].as_str() > first["expires_at"].as_str() {
            break;
        }
        assert!(Instant::now() < deadline, "it is not renewed");
    }
    kill_process(Pid::from_child(&long), Signal::TERM).unwrap();
    assert_eq!(long.wait().unwrap().code(), Some(5));
}

#[test]
fn a_command_under_a_lease_does_not_get_the_token() {
    let daemon = Daemon::with_cluster();
    let secret = std::fs::read_to_string(daemon.path("ci.token")).unwrap();
    let mut command = daemon.command("ci.token", "lease run --gpu 1 -- printenv LEASEHOLD_NODE LEASEHOLD_TOKEN");
    command.env("LEASEHOLD_TOKEN", secret.trim()).env_remove("LEASEHOLD_TOKEN_FILE");
    let ended = said(command);
    // `printenv` exits with 1 if a variable is not set.
    assert_eq!((ended.out.as_str(), ended.code), ("gpu-1\n", 1), "{ended:?}");
}

#[test]
fn a_user_signal_does_not_stop_the_daemon() {
    let daemon = Daemon::start();
    for signal in [Signal::USR1, Signal::USR2] {
        kill_process(Pid::from_child(&daemon.process), signal).unwrap();
        assert_eq!(daemon.json("token whoami")["token"]["role"], "operator");
    }
}

#[test]
fn an_address_that_others_can_reach_without_tls_is_warned_about() {
    let warned = |logged: &[String]| logged.iter().any(|line| line.contains("without TLS"));
    let (_open, logged) = Daemon::listening_on("0.0.0.0:0");
    assert!(warned(&logged), "{logged:?}");
    let (_local, logged) = Daemon::listening_on("127.0.0.1:0");
    assert!(!warned(&logged), "{logged:?}");
}

#[test]
fn a_revoked_lease_stops_its_command() {
    let daemon = Daemon::with_cluster();
    let start = |script: &str| {
        let mut command = daemon.command("ci.token", "lease run --gpu 1");
        command.args(["--", "sh", "-c", script]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        let lease = daemon.json("lease list --state active")["leases"][0]["id"].as_str().unwrap().to_owned();
        (child, lease)
    };
    let finish = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    // A command that ends within the grace period; billing ends then, before the grace period does.
    let (child, lease) = start("trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    let revoked = daemon.json(&format!("lease revoke {lease} --grace 60s"));
    let (code, out, err) = finish(child);
    assert_eq!((code, out.as_str()), (Some(1), "saved\n"), "{err}");
    assert!(err.contains("the lease was revoked: operator") && err.contains("(lease_revoked)"), "{err}");
    let history = daemon.run(&format!("lease history {lease} --json")).ok().lines();
    let started = history.iter().find(|record| record["kind"] == "lease.teardown_started").expect("ready was said");
    assert_eq!(started["body"]["cause"], "ready");
    assert!(started["sequence"].as_u64() > revoked["sequence"].as_u64());

    // A command that ignores SIGTERM is killed, with its children, before the grace period ends.
    let (child, lease) = start(
        "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo up; wait; while :; do sleep 0.05; done",
    );
    daemon.run(&format!("lease revoke {lease} --grace 2s")).ok();
    let (code, _, err) = finish(child);
    assert_eq!(code, Some(1));
    assert!(err.contains("it had to be killed"), "{err}");
    assert_eq!(daemon.json("lease list")["leases"], json!([]));
}

#[test]
fn the_journal_is_audited_over_the_daemon() {
    let daemon = Daemon::with_cluster();
    daemon.until_signed_beyond(5);
    let note = daemon.run("audit checkpoint").ok().out;
    assert!(note.contains("\n\u{2014} "), "a signed note: {note}");
    fs::write(daemon.path("trust"), daemon.run("audit trust").ok().out).unwrap();
    let proved = daemon.run("audit prove --sequence 3 --out {}/3.proof").ok();
    tells(&proved, &["Record 3", "The proof is in"]);
    tells(&daemon.run("audit prove --check {}/3.proof --trust {}/trust").ok(), &["Proved: record 3"]);
    let seen = daemon.json("audit checkpoint")["size"].as_u64().expect("a size");
    fs::write(daemon.path("trust"), daemon.run("audit trust").ok().out).unwrap();
    daemon.run("tenant create chemistry").ok();
    daemon.until_signed_beyond(seen);
    let trusted = fs::read_to_string(daemon.path("trust")).unwrap();
    let size = trusted.lines().find_map(|line| line.trim().parse::<u64>().ok()).expect("the size of the checkpoint");
    daemon.run(&format!("audit prove --consistency-from {size} --out {{}}/grown.proof")).ok();
    tells(&daemon.run("audit prove --check {}/grown.proof --trust {}/trust").ok(), &["Proved: the"]);
    // The files give the same results as the daemon.
    let files = daemon.run("audit export --data {}/data --to 5").ok();
    let over = daemon.run("audit export --to 5").ok();
    assert_eq!(files.lines(), over.lines());
    let kinds = daemon.run("audit export --kind tenant").ok().lines();
    assert_eq!(kinds.len(), 2);
    daemon.run("audit verify {}/data --trust {}/trust").ok();
    refuses(&daemon.run("audit prove --sequence 99999"), 1, "no_such_record");
}

#[test]
fn shells_can_complete() {
    for shell in ["bash", "zsh", "fish"] {
        let script = common::leasehold(["completions", shell]).ok().out;
        assert!(script.contains("unfence") && script.contains("detach-agent"), "{shell}");
    }
    let help = common::leasehold(["lease", "run", "--help"]).ok().out;
    assert!(help.contains("CUDA_VISIBLE_DEVICES") && help.contains("--url"), "{help}");
}

#[test]
fn prices_are_set_shown_and_withdrawn() {
    let daemon = Daemon::with_cluster();
    tells(&daemon.run("rate current").ok(), &["built-in", "0.01 EUR per GPU-second", "× 0.3"]);
    let set =
        "rate set --gpu 0.012 --cpu 0.001 --class gpu-h100=0.02 --tier h100=2 --priority scavenger=0.25 --currency CHF";
    tells(&daemon.run(set).ok(), &["in_force", "0.012 CHF", "class gpu-h100", "× 2", "× 0.25"]);
    // Prices that are not given are taken from the card in force.
    let set = "rate set --pool training --from 2100-12-01T00:00Z --gpu 0.013 --no-class gpu-h100 --json";
    let card = daemon.run(set).ok().json()["rate_card"].clone();
    assert_eq!((&card["state"], &card["from"]), (&json!("waiting"), &json!("2100-12-01T00:00:00Z")));
    assert_eq!((&card["prices"]["currency"], &card["prices"]["classes"]), (&json!("CHF"), &json!({})));
    assert_eq!(card["prices"]["kinds"]["cpu"], "0.001");
    tells(&daemon.run("rate list").ok(), &["built-in", "past", "in_force", "waiting", "training", "0.013"]);
    assert_eq!(daemon.json("rate list --pool training")["rate_cards"].as_array().map(Vec::len), Some(1));
    tells(
        &daemon.run("rate set --card 1 --mem 0.5 --all-pools").ok(),
        &["all pools without a card", "0.50 CHF", "0.013 CHF"],
    );
    tells(&daemon.by("ci.token", "rate show 1").ok(), &["waiting", "0.50 CHF"]);
    tells(&daemon.run("rate delete 1").ok(), &["rate card 1 was withdrawn"]);
    refuses(&daemon.run("rate show 1"), 1, "unknown_rate_card");
    refuses(&daemon.run("rate delete 0"), 1, "rate_card_in_force");
    refuses(&daemon.run("rate set --card 0 --gpu 1"), 1, "rate_card_in_force");

    tells(
        &daemon.run("rate set --gpu 2.00/h --class gpu-h100=48/d").ok(),
        &["2.00 CHF per GPU-hour", "48.00 CHF per unit-day"],
    );
    let month = daemon.run("rate set --gpu 1500/month");
    refuses(&month, 1, "bad_prices");
    assert!(month.err.contains("differ in length"), "{month:?}");

    let negative = daemon.run("rate set --gpu -1");
    refuses(&negative, 1, "bad_prices");
    assert!(negative.err.contains("prices.kinds.gpu") && negative.err.contains("negative"), "{negative:?}");
    let unknown = daemon.run("rate set --class gpu-h1000=1");
    refuses(&unknown, 1, "unknown_class");
    assert!(unknown.err.contains("gpu-h100"), "{unknown:?}");
    refuses(&daemon.run("rate set --gpu 1 --from 2020-01-01"), 1, "start_in_past");
    refuses(&daemon.run("rate set"), 2, "usage");
    refuses(&daemon.run("rate set --class a=1 --no-class a"), 2, "usage");
    assert_eq!(daemon.run("rate set --priority urgent=1").code, 2);
    refuses(&daemon.by("ci.token", "rate set --gpu 1"), 1, "role_forbids");

    tells(&daemon.run("rate policy list").ok(), &["built-in", "in_force", "full"]);
    let policy = "rate policy set --preempted 10m --failed-start none --from 2100-12-01";
    tells(&daemon.run(policy).ok(), &["waiting", "all but the last 10m", "none"]);
    tells(&daemon.run("rate policy set --policy 0 --fenced none").ok(), &["all but the last 10m", "none"]);
    assert_eq!(daemon.json("rate policy list")["charge_policies"][1]["charges"]["fenced"], "none");
    refuses(&daemon.run("rate policy set --policy 0"), 2, "usage");
}
