//! Usage, cost, waste and quotes on the command line.

use super::{Daemon, refuses, tells};
use serde_json::json;

/// Physics held two GPUs and some memory, and released the GPUs; chemistry holds one GPU.
fn with_story() -> Daemon {
    let daemon = Daemon::with_cluster();
    let asked =
        daemon.by("ci.token", "lease request --gpu 2 --mem 16GiB --ttl 10m --user ada --workload train,me --json");
    let lease = super::granted(asked);
    daemon.by("ci.token", &format!("lease release {lease}")).ok();
    for line in [
        "tenant create chemistry",
        "project create dyes --tenant chemistry",
        "lease request --gpu 1 --ttl 10m --tenant chemistry --project dyes",
    ] {
        daemon.run(line).ok();
    }
    daemon
}

#[test]
fn usage_and_cost_are_shown_to_people_and_programs() {
    let daemon = with_story();
    let usage = daemon.run("usage --by tenant,class --peak --from today").ok();
    tells(
        &usage,
        &["tenant", "class", "held", "peak", "physics", "chemistry", "gpu-h100", "mem-dram", "GPU-s", "2 GPU"],
    );
    assert!(usage.err.contains("leasehold: as of 20") && !usage.out.contains('█'), "{usage:?}");
    let answer = daemon.json("usage --by tenant --from month");
    let size = answer["as_of_size"].as_u64().expect("a number");
    for report in ["usage", "usage capacity", "cost", "cost rate", "cost forecast", "waste", "cost --csv"] {
        let err = daemon.run(report).ok().err;
        let shown = err.split_once(", journal size ").unwrap_or_else(|| panic!("{report}: {err}")).1;
        let shown: String = shown.chars().take_while(char::is_ascii_digit).collect();
        assert!(shown.parse::<u64>().is_ok_and(|shown| shown >= size), "{report}: {err}");
    }
    assert!(
        answer["as_of"].is_string() && answer["lines"].as_array().is_some_and(|lines| lines.len() == 3),
        "{answer}"
    );
    let csv = daemon.run("usage --by workload,app-instance --class gpu-h100 --csv").ok().out;
    let heading = "from,to,workload,app_instance,class,kind,tier,unit,unit_seconds,exact,quanta_ns,peak,covered,busy,\
                   quantity,charge,class_id";
    assert_eq!(csv.lines().next(), Some(heading));
    assert!(csv.contains("Z,\"train,me\",,gpu-h100,gpu,h100,GPU,"), "{csv}");
    let none = daemon.run("usage --user ada --tenant physics --priority guaranteed").ok();
    assert!(none.out.is_empty() && none.err.contains("nothing found"), "{none:?}");
    assert_eq!(daemon.run("cost --to 2020-01-01 --csv").ok().out, "from,to,currency,amount,exact\n");

    let cost = daemon.run("cost --by tenant --bucket hour --zone Europe/Tallinn").ok();
    tells(&cost, &["tenant", "cost", "physics", "chemistry", "total", "EUR"]);
    // Words are resolved in the time zone, and times are shown in it.
    let tokyo = daemon.run("usage --window today --time-zone Asia/Tokyo").ok();
    tells(&tokyo, &["gpu-h100"]);
    assert!(tokyo.err.contains("T00:00:00+09:00 to "), "{tokyo:?}");
    for window in ["--window 1w", "--from 1w", "--from last-week", "--from yesterday --to tomorrow", "--from month"] {
        assert_eq!(daemon.json(&format!("usage {window}"))["lines"].as_array().map(Vec::len), Some(2), "{window}");
    }
    let csv = daemon.run("cost --by tenant,kind --csv").ok().out;
    assert!(csv.starts_with("from,to,tenant,kind,currency,amount,exact,tenant_id\n"), "{csv}");
    assert!(csv.lines().last().is_some_and(|line| line.starts_with("total,,,,EUR,")), "{csv}");
    assert_eq!(daemon.json("cost")["total"][0]["currency"], "EUR");
    tells(&daemon.run("cost rate --by tenant,class").ok(), &["chemistry", "36.00", "total", "EUR"]);
    tells(
        &daemon.run("cost forecast --tenant chemistry").ok(),
        &["so far", "if every lease ends at its deadline", "EUR"],
    );
    let csv = daemon.run("cost forecast --csv").ok().out;
    assert!(csv.starts_with("what,currency,amount,exact,of\naccrued,EUR,"), "{csv}");

    let capacity = daemon.run("usage capacity --by node").ok();
    tells(&capacity, &["node", "capacity", "fenced", "idle", "gpu-1", "gpu-h100", " %"]);
    assert_eq!(daemon.json("usage capacity --by pool")["lines"][0]["pool"], "training");
    tells(
        &daemon.run("waste --by tenant").ok(),
        &["Total", "unknown", "physics", "lease-", "Idle capacity", "training"],
    );
    let csv = daemon.run("waste --csv --by project").ok().out;
    assert!(csv.starts_with("from,to,project,class,kind,tier,headline,leases,unit,held,wasted,"), "{csv}");
    assert_eq!(daemon.json("waste --headline premium-waste --limit 3")["leases"], json!([]));
    tells(&daemon.run("waste --by user,project --sort cost --top 1").ok(), &["Total", "project", "wasted"]);
    tells(&daemon.run("usage --peak --utilisation --by kind,tenant").ok(), &["kind", "peak", "busy", "physics", "GPU"]);
    daemon.run("node list --empty-for 1000h").ok();
    daemon.run("sensitivity --from 7d --json").ok();
}

#[test]
fn a_formula_in_a_name_is_text_for_a_spreadsheet() {
    let daemon = Daemon::with_cluster();
    daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --user ada --workload =SUM(A1)").ok();
    let asked = "usage --by workload --class gpu-h100";
    let csv = daemon.run(&format!("{asked} --csv")).ok().out;
    assert!(csv.contains(",'=SUM(A1),gpu-h100,"), "{csv}");
    let raw = daemon.run(&format!("{asked} --csv-raw")).ok().out;
    assert!(raw.contains(",=SUM(A1),gpu-h100,"), "{raw}");
    assert_eq!(daemon.run(&format!("{asked} --csv-raw --json")).code, 2);
    refuses(&daemon.run(&format!("{asked} --csv-raw --csv")), 2, "usage");
}

#[test]
fn a_quote_shows_the_price_and_why_it_would_be_denied() {
    let daemon = with_story();
    let quote = daemon.by("ci.token", "lease quote --gpu 2 --ttl 1h").ok();
    tells(&quote, &["would be granted", "gpu-h100", "2 GPU", "72.00 EUR", "training"]);
    daemon.run("quota create --tenant physics --class gpu-h100 --hard 3").ok();
    let denied = daemon.by("ci.token", "lease quote --class gpu-h100=4 --ttl 1h").ok();
    tells(&denied, &["would be denied", "used 0, requested 4, limit 3", "(quota_exceeded)"]);
    assert_eq!(daemon.by("ci.token", "lease quote --gpu 4 --ttl 1h --json").ok().json()["admitted"], false);
    assert_eq!(daemon.run("audit export --kind lease.denied").ok().out, "", "a question was sealed");
    refuses(&daemon.by("ci.token", "lease quote --class gpu-h1000=1 --ttl 1h"), 1, "unknown_class");
}

#[test]
fn errors_in_queries_come_with_suggestions() {
    let daemon = with_story();
    for (line, code, near) in [
        ("usage --tenant physcs", "unknown_tenant", "physics"),
        ("cost --class gpu-h10", "unknown_class", "gpu-h100"),
        ("waste --pool trainning", "unknown_pool", "training"),
        ("usage --from 2100-01-01", "bad_window", "future"),
        ("usage --from 7d --to 8d", "bad_window", "ends before it begins"),
        ("cost --from tomorrow", "bad_window", "future"),
        ("usage --from 2020-01-01 --bucket minute", "bad_window", "100"),
    ] {
        let said = daemon.run(line);
        refuses(&said, 1, code);
        assert!(said.err.contains(near), "no {near:?} in {said:?}");
    }
    for (line, near) in [
        ("usage --by tennant", "tenant"),
        ("usage --by tenant,clas", "class"),
        ("waste --headline lazy", "overprovisioned"),
        ("cost --from tomorow", "last-month"),
        ("cost --bucket day --zone Europe/Talinn", "Europe/Talinn"),
        ("cost --zone UTC --time-zone UTC", "--zone"),
        ("cost --window now", "not a period"),
        ("cost --window today --to today", "--window"),
        ("cost --from 2026-03-29T03:30 --time-zone Europe/Tallinn", "does not exist in Europe/Tallinn"),
        ("usage --csv --json", "choose one"),
        ("usage --by tenant capacity", "after `capacity`"),
        ("cost --from 7d forecast", "after `forecast`"),
        ("usage --watch", "terminal"),
    ] {
        let said = daemon.run(line);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(near) && said.out.is_empty(), "no {near:?} in {said:?}");
    }
}

#[test]
fn a_tenant_sees_its_own() {
    let daemon = with_story();
    for line in ["usage --by tenant", "cost --by tenant,project", "cost rate --by tenant", "waste --by project"] {
        let own = daemon.by("ci.token", line).ok();
        assert!(!own.out.contains("chemistry") && !own.out.contains("dyes"), "{line}: {own:?}");
        tells(&daemon.run(line).ok(), &[if line.contains("project") { "dyes" } else { "chemistry" }]);
        refuses(&daemon.by("ci.token", &format!("{line} --tenant chemistry")), 1, "unknown_tenant");
    }
    refuses(&daemon.by("ci.token", "usage capacity"), 1, "role_forbids");
    refuses(&daemon.by("ci.token", "waste --by node"), 1, "role_forbids");
}
