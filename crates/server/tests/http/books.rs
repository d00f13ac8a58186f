//! Usage, cost, waste and quotes over HTTP: exact, adding up, each to its own, and the same after a restart.

use crate::world::{Answer, World};
use leasehold_api::{Method, Role, When};
use serde_json::{Value, json};
use std::time::SystemTime;

/// What one lease did, by the records of the export.
struct Story {
    from_ns: u128,
    to_ns: u128,
    /// An instant after all of it: windows that end here never change again.
    until: String,
}

impl Story {
    /// Nanoseconds of one GPU: it held two.
    fn gpu_ns(&self) -> u128 {
        2 * (self.to_ns - self.from_ns)
    }
}

fn wall_ns() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos()
}

fn lines(report: &Value) -> &[Value] {
    report["lines"].as_array().expect("lines")
}

fn number(value: &Value) -> u128 {
    value.as_str().expect("a text").parse().expect("digits")
}

/// Billionths of a decimal text.
fn billionths(value: &Value) -> u128 {
    let text = value.as_str().expect("a text");
    let (whole, decimals) = text.split_once('.').expect("a point");
    format!("{whole}{decimals:0<9}").parse().expect("digits")
}

impl World {
    async fn by(&self, role: Role, path: &str) -> Answer {
        self.send(Some(&self.tokens[&role]), Method::Get, path, None).await
    }

    /// Physics holds two GPUs for a while, does next to nothing with them, and gives them back.
    async fn story(&self) -> Story {
        let request = json!({ "tenant": "physics", "project": "physics-main", "user": "physics-ada", "ttl": "1h",
            "workload": "story", "node": "n1", "asks": [{ "class": "h100", "quantity": 2 }] });
        let granted = self.post("/api/v1/leases", request).await.expect(201);
        let id = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
        let shown = self.get(&format!("/api/v1/leases/{id}")).await.expect(200);
        let granted_at: When = shown["granted_at"].as_str().expect("an instant").parse().expect("an instant");
        let held_ns = || wall_ns().saturating_sub(granted_at.0.0.into());
        // Held for long enough that the report covers most of it, however slow the release is.
        while held_ns() < 300_000_000 {
            self.get(&format!("/api/v1/leases/{id}")).await.expect(200);
        }
        let covered = format!("{}ms", held_ns() / 1_000_000);
        let activity =
            json!({ "covered": covered, "active": "1ms", "busy_quantum_ns": "1000", "waiting": { "gpu": "100ms" } });
        let released = self.post(&format!("/api/v1/leases/{id}/release"), json!({ "activity": activity })).await;
        assert_eq!(released.expect(200)["activity_problem"], Value::Null);
        let until = self.get("/api/v1/usage").await.expect(200)["as_of"].as_str().expect("an instant").to_owned();
        let export = self.get("/api/v1/audit/export").await;
        let stamp = |kind: &str| {
            let records = export.text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
            let mut events = records.filter(|record| record["kind"] == kind);
            let of_lease = |record: Value| record["lease_events"].as_array().cloned().unwrap_or_default();
            let found = events.find_map(|record| of_lease(record).into_iter().find(|event| event["lease"] == id));
            number(&found.unwrap_or_else(|| panic!("no {kind}"))["timestamp_ns"])
        };
        Story { from_ns: stamp("lease.granted"), to_ns: stamp("lease.released"), until }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_cost_are_those_of_the_records() {
    let world = World::furnished().await;
    let story = world.story().await;
    let class = world.get("/api/v1/classes/h100").await.expect(200);
    let per_unit = u128::from(class["quanta_per_unit"].as_u64().expect("a number"));
    let usage = world.get("/api/v1/usage?workload=story&by=user&peak=true").await.expect(200);
    let [line] = lines(&usage) else { panic!("{usage}") };
    assert_eq!((&line["user"], &line["class"], &line["unit"]), (&json!("physics-ada"), &json!("h100"), &json!("GPU")));
    assert_eq!(number(&line["quanta_ns"]), story.gpu_ns() * per_unit);
    assert_eq!(billionths(&line["unit_seconds"]), story.gpu_ns());
    assert_eq!(line["peak"], "2");
    // A cent for a GPU-second, rounded once, to millionths, half to even.
    let cost = world.get("/api/v1/costs?workload=story").await.expect(200);
    let [line] = lines(&cost) else { panic!("{cost}") };
    let (micros, rest) = (story.gpu_ns() / 100_000, story.gpu_ns() % 100_000);
    let micros = micros + u128::from(rest > 50_000 || (rest == 50_000 && micros % 2 == 1));
    assert_eq!(line["amount"], format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
    let (numerator, denominator) = line["exact"].as_str().expect("a fraction").split_once('/').expect("a fraction");
    let [numerator, denominator] = [numerator, denominator].map(|text| text.parse::<u128>().expect("digits"));
    assert_eq!(numerator * 100_000_000_000, story.gpu_ns() * denominator);
    assert_eq!((&line["currency"], &cost["total"][0]["exact"]), (&json!("EUR"), &line["exact"]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_add_up_to_the_whole() {
    let world = World::furnished().await;
    let until = world.story().await.until;
    let sum = async |query: &str| -> u128 {
        let usage = world.get(&format!("/api/v1/usage?to={until}&{query}")).await.expect(200);
        lines(&usage).iter().map(|line| number(&line["quanta_ns"])).sum()
    };
    let whole = sum("by=class").await;
    assert!(whole > 0);
    for query in ["by=tenant", "by=tenant,project,user,node,workload", "by=pool,priority,tier", "bucket=minute"] {
        assert_eq!(sum(query).await, whole, "{query}");
    }
    assert_eq!(sum("tenant=physics").await + sum("tenant=chemistry").await, whole);
    assert_eq!(sum("kind=gpu").await, whole);
    assert_eq!(sum("kind=cpu").await, 0);
    // By kind, fractions are added.
    let by_kind = world.get(&format!("/api/v1/usage?to={until}&by=kind")).await.expect(200);
    assert_eq!((lines(&by_kind).len(), &by_kind["lines"][0]["quanta_ns"]), (1, &Value::Null));
    // Where capacity was: six parts, by class, pool and node.
    for query in ["", "by=pool&", "by=node&", "node=n1&", "class=h100&pool=main&"] {
        let capacity = world.get(&format!("/api/v1/usage/capacity?{query}to={until}")).await.expect(200);
        assert_eq!(lines(&capacity).len(), if query == "by=node&" { 2 } else { 1 }, "{query}");
        for line in lines(&capacity) {
            let parts = ["held", "tearing_down", "reserved", "fenced", "offline", "idle"];
            let parts: u128 = parts.into_iter().map(|part| billionths(&line[part])).sum();
            assert_eq!(parts, billionths(&line["capacity"]), "{line}");
            assert!(billionths(&line["held"]) > 0 && billionths(&line["idle"]) > 0, "{line}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_tenants_are_not_there() {
    let world = World::furnished().await;
    let until = world.story().await.until;
    for role in [Role::TenantAdmin, Role::ProjectMember] {
        for what in ["usage", "costs"] {
            let own = world.by(role, &format!("/api/v1/{what}?to={until}&by=tenant")).await.expect(200);
            let theirs = world.get(&format!("/api/v1/{what}?to={until}&by=tenant&tenant=physics")).await.expect(200);
            assert_eq!((lines(&own).len(), lines(&own)), (1, lines(&theirs)), "{role:?} {what}");
        }
        for what in ["usage", "costs", "costs/rate", "costs/forecast", "waste", "sensitivity"] {
            for foreign in ["tenant=chemistry", "tenant=1", "tenant=chemistry&project=chemistry-main"] {
                let answer = world.by(role, &format!("/api/v1/{what}?{foreign}")).await;
                assert_eq!((answer.status, answer.code().as_str()), (404, "unknown_tenant"), "{role:?} {what}");
            }
            let project = world.by(role, &format!("/api/v1/{what}?project=chemistry-main")).await;
            assert_eq!((project.status, project.code().as_str()), (404, "unknown_project"), "{role:?} {what}");
            let own = world.by(role, &format!("/api/v1/{what}")).await;
            assert_eq!(own.status, 200, "{}", own.text);
            assert!(!own.text.contains("chemistry"), "{role:?} {what}: {}", own.text);
        }
        let waste = world.by(role, "/api/v1/waste").await.expect(200);
        assert_eq!((&waste["stranded"], &waste["fragmented"]), (&Value::Null, &Value::Null));
        assert_eq!(world.by(role, "/api/v1/waste?by=node").await.status, 403);
        assert_eq!(world.by(role, "/api/v1/usage/capacity").await.status, 403);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_answered_is_told_by_its_field() {
    let world = World::furnished().await;
    for (query, status, code, field) in [
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", 422, "bad_window", "to"),
        ("from=2100-01-01T00:00:00Z", 422, "bad_window", "from"),
        ("from=yestreday", 422, "bad_window", "from"),
        ("from=today&window=today", 422, "bad_window", "window"),
        ("zone=UTC&time_zone=UTC", 422, "bad_window", "zone"),
        ("bucket=day&time_zone=Mars/Olympus", 422, "bad_window", "time_zone"),
        ("from=2020-01-01T00:00:00Z&bucket=minute", 422, "bad_window", "bucket"),
        ("bucket=day&zone=Mars/Olympus", 422, "bad_window", "zone"),
        ("from=2026-01-01T00:00:00Z&zone=Mars/Olympus", 422, "bad_window", "zone"),
        ("bucket=week", 400, "bad_query", "bucket"),
        ("by=colour", 422, "bad_grouping", "by"),
        ("by=tenant,", 422, "bad_grouping", "by"),
        ("by=tenant,project,user,pool,node,workload", 422, "bad_grouping", "by"),
        ("tenant=physcs", 404, "unknown_tenant", "tenant"),
        ("class=h10", 404, "unknown_class", "class"),
        ("node=n9", 404, "unknown_node", "node"),
        ("priority=urgent", 400, "bad_query", "priority"),
    ] {
        for what in ["usage", "costs"] {
            let answer = world.get(&format!("/api/v1/{what}?{query}")).await;
            let told = answer.json();
            assert_eq!(
                (answer.status, &told["code"], &told["field"]),
                (status, &json!(code), &json!(field)),
                "{query}"
            );
        }
    }
    assert_eq!(world.get("/api/v1/usage?tenant=physcs").await.json()["nearest"], "physics");
    for (path, field) in [
        ("usage/capacity?by=tenant", "by"),
        ("waste?by=colour", "by"),
        ("waste?sort=size", "sort"),
        ("waste?top=0", "top"),
        ("usage?utilisation=true&bucket=day", "utilisation"),
        ("waste?headline=lazy", "headline"),
        ("costs/rate?from=2026-01-01T00:00:00Z", "from"),
        ("costs/forecast?to=2026-01-01T00:00:00Z", "to"),
        ("costs/forecast?zone=Mars/Olympus", "zone"),
    ] {
        let answer = world.get(&format!("/api/v1/{path}")).await;
        assert_eq!((answer.status / 100, &answer.json()["field"]), (4, &json!(field)), "{path}: {}", answer.text);
    }
    // A word means the same as the instants that it stands for, in the zone of the request.
    let words = world.get("/api/v1/usage?window=yesterday&time_zone=Asia/Tokyo").await.expect(200);
    let (from, to) = (words["from"].as_str().expect("an instant"), words["to"].as_str().expect("an instant"));
    assert!(from.ends_with("T15:00:00Z") && to.ends_with("T15:00:00Z"), "{words}");
    let ends = world.get("/api/v1/usage?from=yesterday&to=today&zone=Asia/Tokyo").await.expect(200);
    assert_eq!((&ends["from"], &ends["to"]), (&words["from"], &words["to"]));
    // A window without anything in it is not wrong.
    let before = world.get("/api/v1/costs?from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z").await.expect(200);
    assert_eq!((&before["lines"], &before["total"]), (&json!([]), &json!([])));
    assert_eq!(world.get("/api/v1/usage?tag=nobody").await.expect(200)["lines"], json!([]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_says_what_a_request_would_come_to() {
    let world = World::furnished().await;
    let quote = async |quantity: u32, priority: &str| {
        let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "priority": priority,
            "asks": [{ "class": "h100", "quantity": quantity }] });
        world.post("/api/v1/leases/quote", request).await.expect(200)
    };
    let records =
        async || world.get("/api/v1/audit/records?kind=lease&limit=1000").await.expect(200)["records"].clone();
    let before = records().await;
    let admitted = quote(2, "standard").await;
    assert_eq!(
        (&admitted["admitted"], &admitted["pool"], &admitted["ttl"]),
        (&json!(true), &json!("main"), &json!("1h"))
    );
    assert_eq!(admitted["total"][0]["amount"], "72.000000");
    assert_eq!((&admitted["lines"][0]["quantity"], &admitted["lines"][0]["unit"]), (&json!("2"), &json!("GPU")));
    assert_eq!(quote(2, "scavenger").await["total"][0]["amount"], "21.600000");
    let denied = quote(6, "standard").await;
    assert_eq!((&denied["admitted"], &denied["code"]), (&json!(false), &json!("quota_exceeded")));
    assert!(denied["detail"].as_str().is_some_and(|why| why.contains("used 1, requested 6, limit 6")), "{denied}");
    assert_eq!(records().await, before, "a question was sealed");
    // What the quote said is what happens.
    let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
        "asks": [{ "class": "h100", "quantity": 6 }] });
    let refused = world.post("/api/v1/leases", request).await;
    assert_eq!((refused.status, refused.json()["detail"].clone()), (409, denied["detail"].clone()));
    // A request that makes no sense is refused, as it would be.
    let nonsense = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "asks": [] });
    assert_eq!(world.post("/api/v1/leases/quote", nonsense).await.code(), "nothing_asked");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_says_who_would_have_to_make_room() {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "1h" })).await.expect(201);
    let node = json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": { "h100": 8 } });
    world.post("/api/v1/nodes", node).await.expect(201);
    world.post("/api/v1/tenants", json!({ "name": "physics", "max_priority": "guaranteed" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "main", "tenant": "physics" })).await.expect(201);
    let asked = |gpus: u32, priority: &str| {
        json!({ "tenant": "physics", "project": "main", "ttl": "1h", "priority": priority,
            "asks": [{ "class": "h100", "quantity": gpus }] })
    };
    for _ in 0..4 {
        world.post("/api/v1/leases", asked(2, "scavenger")).await.expect(201);
    }
    let quote = async |gpus, priority| world.post("/api/v1/leases/quote", asked(gpus, priority)).await.expect(200);
    let evicts = quote(3, "guaranteed").await;
    assert_eq!((&evicts["admitted"], &evicts["evicts"]), (&json!(true), &json!(2)), "{evicts}");
    assert_eq!((&evicts["pool"], &evicts["node"]), (&json!("main"), &json!("n1")));
    // Three GPUs for an hour, half as much again for the priority.
    assert_eq!(evicts["total"][0]["amount"], "162.000000");
    let denied = quote(3, "scavenger").await;
    assert_eq!((&denied["admitted"], &denied["code"]), (&json!(false), &json!("no_capacity")), "{denied}");
    assert!(denied.get("evicts").is_none(), "{denied}");
    // What the quote said is what happens: it waits for its victims. Who comes later finds what is promised taken.
    assert_eq!(world.post("/api/v1/leases", asked(3, "guaranteed")).await.expect(202)["state"], "pending");
    assert_eq!(quote(8, "standard").await["code"], "no_capacity");
    world.stop().await;
}

/// With the size, a figure can be tied to a signed checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn every_report_names_the_size_of_the_journal_it_is_based_on() {
    let world = World::furnished().await;
    for path in ["usage", "usage/capacity", "costs", "costs/rate", "costs/forecast", "waste", "sensitivity"] {
        let size = world.get("/api/v1/about").await.expect(200)["size"].as_u64().expect("a number");
        let report = world.get(&format!("/api/v1/{path}")).await.expect(200);
        assert!(report["as_of_size"].as_u64() >= Some(size), "{path}: {report}");
        // One more record, and the next report is based on it.
        world.post("/api/v1/tenants", json!({ "name": path })).await.expect(201);
    }
    world.stop().await;
}

/// A quote leaves no record, so it must not be a way to measure what others hold on each node.
#[tokio::test(flavor = "multi_thread")]
async fn a_quote_for_a_node_of_others_shows_no_figures() {
    let world = World::furnished().await;
    let ask = |tenant: &str, gpus: u32, priority: &str| {
        json!({ "tenant": tenant, "project": format!("{tenant}-main"), "ttl": "1h", "priority": priority,
            "node": "n2", "asks": [{ "class": "h100", "quantity": gpus }] })
    };
    // Two of the eight GPUs of n2 are left.
    world.post("/api/v1/leases", ask("chemistry", 5, "scavenger")).await.expect(201);
    let admin = world.tokens[&Role::TenantAdmin].clone();
    let by_tenant = async |gpus, priority| {
        let asked = Some(ask("physics", gpus, priority));
        world.send(Some(&admin), Method::Post, "/api/v1/leases/quote", asked).await.expect(200)
    };
    let by_operator =
        async |gpus, priority| world.post("/api/v1/leases/quote", ask("physics", gpus, priority)).await.expect(200);
    let nothing = "The requested node cannot take this request now; name another node, or none.";
    let most = "No node has 3 of h100 available; the most on one node is 2.";
    let quote = by_tenant(3, "scavenger").await;
    assert_eq!((&quote["code"], &quote["detail"]), (&json!("no_capacity"), &json!(nothing)));
    assert_eq!(by_operator(3, "scavenger").await["detail"], most);
    // That it would evict there is not shown either.
    let quote = by_tenant(3, "standard").await;
    assert_eq!(
        (&quote["detail"], &quote["admitted"], &quote["evicts"]),
        (&json!(nothing), &json!(false), &Value::Null)
    );
    assert_eq!(by_operator(3, "standard").await["evicts"], 1);
    // The tenant sees its own leases, and so what is left beside them.
    world.post("/api/v1/leases", ask("physics", 1, "standard")).await.expect(201);
    assert_eq!(by_tenant(3, "scavenger").await["detail"], most.replace("is 2", "is 1"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waste_sensitivity_rate_and_forecast() {
    let world = World::furnished().await;
    world.story().await;
    let waste = world.get("/api/v1/waste?headline=idle&by=tenant").await.expect(200);
    let [lease] = waste["leases"].as_array().expect("leases").as_slice() else { panic!("{waste}") };
    assert_eq!(
        (&lease["headline"], &lease["workload"], &lease["live"]),
        (&json!("idle"), &json!("story"), &json!(false))
    );
    assert_eq!(lease["classes"], json!(["idle", "overprovisioned"]));
    assert!(billionths(&lease["wasted"]) > 0 && billionths(&lease["covered"]) <= billionths(&lease["held"]), "{lease}");
    let [sum] = waste["sums"].as_array().expect("sums").as_slice() else { panic!("{waste}") };
    assert_eq!((&sum["tenant"], &sum["leases"], &sum["wasted"]), (&json!("physics"), &json!(1), &lease["wasted"]));
    // Of leases without reports nothing is known.
    let all = world.get("/api/v1/waste").await.expect(200);
    let unknown = all["leases"].as_array().expect("leases").iter().filter(|lease| lease["headline"] == "unknown");
    assert_eq!(unknown.count(), 2);
    assert_eq!((&all["stranded"][0]["pool"], all["leases"].as_array().map(Vec::len)), (&json!("main"), Some(3)));
    let sensitivity = world.get("/api/v1/sensitivity").await.expect(200);
    let [workload] = sensitivity["workloads"].as_array().expect("workloads").as_slice() else {
        panic!("{sensitivity}")
    };
    let gpu = workload["kinds"].as_array().expect("kinds").iter().find(|kind| kind["kind"] == "gpu").expect("gpu");
    assert_eq!((&workload["workload"], &gpu["cost_permille"]), (&json!("story"), &json!(1000)));
    assert!(gpu["waiting_permille"].as_u64().is_some_and(|waiting| waiting > 0 && waiting < 1000), "{gpu}");
    // Two GPUs are held: 36 an hour each.
    let rate = world.get("/api/v1/costs/rate?by=tenant").await.expect(200);
    assert_eq!((lines(&rate).len(), &rate["total"][0]["amount"]), (2, &json!("72.000000")));
    let forecast = world.get("/api/v1/costs/forecast").await.expect(200);
    let [accrued, deadlines, end] =
        ["accrued", "to_deadlines", "to_month_end"].map(|part| billionths(&forecast[part][0]["amount"]));
    assert!(accrued < deadlines && deadlines <= end, "{forecast}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_are_the_same_after_a_restart_and_made_anew() {
    let world = World::furnished().await;
    let until = world.story().await.until;
    let paths = [
        format!("usage?to={until}&by=tenant,user,node,workload&peak=true"),
        format!("usage?to={until}&by=class&bucket=minute&zone=Europe/Tallinn"),
        format!("usage/capacity?to={until}&by=node"),
        format!("costs?to={until}&by=tenant,class"),
        format!("waste?to={until}&by=project"),
        format!("sensitivity?to={until}"),
    ];
    let ask = async |world: &World| {
        let mut answers = Vec::new();
        for path in &paths {
            let mut answer = world.get(&format!("/api/v1/{path}")).await.expect(200);
            answer.as_object_mut().expect("an object").retain(|field, _| field != "as_of" && field != "as_of_size");
            answers.push(answer);
        }
        answers
    };
    let before = ask(&world).await;
    let folder = world.stop().await;
    let books = folder.path().join("data/books.redb");
    let world = World::in_folder(folder, |_| {}).await;
    assert_eq!(ask(&world).await, before, "after a restart");
    let folder = world.stop().await;
    std::fs::remove_file(&books).expect("books");
    let world = World::in_folder(folder, |_| {}).await;
    assert_eq!(ask(&world).await, before, "without the file");
    let mut folder = world.stop().await;
    let whole = std::fs::read(&books).expect("books");
    let mut flipped = whole.clone();
    flipped.iter_mut().skip(4096).step_by(97).for_each(|byte| *byte ^= 0x55);
    for damaged in [b"not the books".to_vec(), whole[..whole.len() / 2].to_vec(), flipped] {
        std::fs::write(&books, damaged).expect("it can be written");
        let world = World::in_folder(folder, |_| {}).await;
        assert_eq!(ask(&world).await, before, "from a damaged file");
        folder = world.stop().await;
    }
}
