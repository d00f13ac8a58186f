//! Sharing the cost of control planes, and work that is charged on shared runtimes, up to the invoice. Prices are those
//! of `examples.rs`.

use crate::examples::{Site, lines};
use leasehold_api::Method;
use serde_json::{Value, json};

const HOUR: u64 = 3600;

async fn put(site: &Site, path: &str, body: Value) -> Value {
    let world = &site.ledger.world;
    world.send(Some(&world.operator), Method::Put, path, Some(body)).await.expect(200)
}

/// A runtime of `hpc` with a controller of 2 cores for two hours (28.80), and a GPU that `a` lends (72.00).
async fn shared_slurm() -> (Site, Value) {
    let site = Site::open(&["hpc", "a", "c"]).await;
    site.instance("hpc", "slurm", json!({ "control_plane_scope": "tenant" })).await;
    site.hold("hpc", "core", 2, json!({ "control_plane": true })).await;
    let lend = json!({ "app_instance": "rt", "source_project": "a", "tenant": "bio" });
    let lent = site.ledger.world.post("/api/v1/attachments", lend).await.expect(201)["attachment"]["id"].clone();
    let held = site.hold("hpc", "h100", 1, json!({ "attachment": lent })).await;
    site.ledger.pass(2 * HOUR).await;
    (site, json!({ "attachment_id": lent, "allocation_id": held["id"] }))
}

fn sharing(method: &str, more: Value) -> Value {
    let mut sharing = json!({ "method": method, "result": "entries" });
    let Value::Object(more) = more else { panic!("an object") };
    more.into_iter().for_each(|(key, value)| sharing[key] = value);
    json!({ "app": "app", "tenant": "bio", "app_instance": "rt", "sharing": sharing })
}

/// `c` used one GPU-hour and `a` two, so that they bear 9.60 and 19.20 of 28.80.
#[tokio::test(flavor = "multi_thread")]
async fn the_cost_of_a_control_plane_is_divided_by_usage() {
    let (site, lent) = shared_slurm().await;
    put(&site, "/api/v1/sharing", sharing("even", json!({}))).await;
    let set = put(&site, "/api/v1/sharing", sharing("by_usage", json!({ "usage_unit": "gpu_hours" }))).await;
    assert_eq!((&set["policy"]["version"], &set["policy"]["app_instance"]), (&json!(2), &json!("rt")));
    site.report("c", "gpu_hours", "1", lent.clone()).await;
    site.report("a", "gpu_hours", "2", lent).await;
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] = &[
        ("a", false, &["h100 72.000000"]),
        ("a", true, &["share 19.200000"]),
        ("c", true, &["share 9.600000"]),
        ("hpc", true, &["core 28.800000", "share -28.800000"]),
    ];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "100.800000");
    let all = site.ledger.get("/api/v1/shares?month=2026-01").await;
    assert_eq!(all["draft"], false);
    let told: Vec<[&Value; 5]> = all["shares"]
        .as_array()
        .expect("shares")
        .iter()
        .map(|one| [&one["project"], &one["weight"], &one["total_weight"], &one["share"], &one["booked"]])
        .collect();
    assert_eq!(
        json!(told),
        json!([
            ["hpc", "0", "3", "0.000000", "-28.800000"],
            ["a", "2", "3", "19.200000", "19.200000"],
            ["c", "1", "3", "9.600000", "9.600000"],
        ])
    );
    let entry = all["shares"][2]["entry"].as_str().expect("an entry");
    let why = site.ledger.get(&format!("/api/v1/ledger/entries/{entry}/explain")).await;
    assert_eq!((&why["entry"]["kind"], &why["entry"]["amount"]), (&json!("share"), &json!("9.600000")));
    assert_eq!((&why["share"]["policy_version"], &why["share"]["usage_unit"]), (&json!(2), &json!("gpu_hours")));
    let words = why["arithmetic"].to_string();
    assert!(words.contains("28.800000 EUR × 1 / 3"), "{words}");
    let accounts = site.ledger.get("/api/v1/ledger/balances?account=shared_runtime").await;
    assert_eq!(accounts["balances"][0]["balance"], "0.000000", "{accounts}");
    let versions = site.ledger.get("/api/v1/sharing/app/history?tenant=bio&app_instance=rt").await;
    assert_eq!(versions["versions"].as_array().expect("versions").len(), 2);
    assert_eq!(versions["versions"][0]["policy"]["sharing"]["method"], "even");
    site.ledger.world.stop().await;
}

/// By what projects may use: `a` may use 300 GPU-hours and `c` 100, so that they bear 21.60 and 7.20 of 28.80.
#[tokio::test(flavor = "multi_thread")]
async fn the_cost_is_divided_by_quota_or_by_percentages() {
    for (policy, a, c) in [
        (sharing("by_quota", json!({ "usage_unit": "gpu_hours" })), "21.600000", "7.200000"),
        (
            sharing(
                "fixed",
                json!({ "weights": [{ "project": "a", "percent": "12.5" }, { "project": "c", "percent": "87.5" }] }),
            ),
            "3.600000",
            "25.200000",
        ),
    ] {
        let (site, lent) = shared_slurm().await;
        for (project, hard) in [("a", 300), ("c", 100)] {
            let limit = json!({ "tenant": "bio", "project": project, "usage_unit": "gpu_hours", "hard": hard });
            put(&site, "/api/v1/entitlements", limit).await;
        }
        put(&site, "/api/v1/sharing", policy).await;
        site.report("c", "gpu_hours", "1", lent).await;
        let (total, found) = site.invoice().await;
        let (a, c) = (format!("share {a}"), format!("share {c}"));
        let expected: &[(&str, bool, &[&str])] = &[
            ("a", false, &["h100 72.000000"]),
            ("a", true, &[&a]),
            ("c", true, &[&c]),
            ("hpc", true, &["core 28.800000", "share -28.800000"]),
        ];
        assert_eq!(found, lines(expected));
        assert_eq!(total, "100.800000");
        site.ledger.world.stop().await;
    }
}

/// A draft tells what the shares of an open month would be; as a report they are recorded, and nobody pays for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_books_nothing() {
    let (site, lent) = shared_slurm().await;
    put(&site, "/api/v1/sharing", sharing("even", json!({ "result": "report" }))).await;
    site.report("c", "gpu_hours", "1", lent).await;
    site.ledger.pass(HOUR).await;
    let draft = site.ledger.get("/api/v1/shares").await;
    assert_eq!((&draft["draft"], &draft["month"]), (&json!(true), &json!("2026-01")));
    assert_eq!((&draft["shares"][1]["project"], &draft["shares"][1]["sequence"]), (&json!("c"), &Value::Null));
    let (total, found) = site.invoice().await;
    assert_eq!(found, lines(&[("a", false, &["h100 72.000000"]), ("hpc", true, &["core 28.800000"])]));
    assert_eq!(total, "100.800000");
    let all = site.ledger.get("/api/v1/shares?month=2026-01&app_instance=rt&tenant=bio").await;
    let one = &all["shares"][1];
    assert_eq!(
        [&one["project"], &one["share"], &one["booked"], &one["entry"]],
        [&json!("c"), &json!("28.800000"), &json!("0.000000"), &Value::Null]
    );
    site.ledger.world.stop().await;
}

/// The operator bears what is not billable: the owner pays nothing for the controller.
#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_is_not_billable_is_at_the_expense_of_the_operator() {
    let (site, _) = shared_slurm().await;
    put(&site, "/api/v1/sharing", json!({ "app": "app", "control_plane_billable": false })).await;
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] =
        &[("a", false, &["h100 72.000000"]), ("hpc", true, &["core 28.800000", "share -28.800000"])];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "72.000000");
    let loss = site.ledger.get("/api/v1/ledger/balances?account=operator_loss").await;
    assert_eq!(loss["balances"][0]["balance"], "28.800000");
    site.ledger.world.stop().await;
}

/// Inference that the platform runs: requests are those of the project that made them, and the overhead (4 cores for two
/// hours, 57.60) is divided by service tiers: three parts for `chat` (gold), one for `map` of another tenant.
#[tokio::test(flavor = "multi_thread")]
async fn platform_managed_inference() {
    let site = Site::open(&["ops", "chat"]).await;
    let world = &site.ledger.world;
    world.post("/api/v1/tenants", json!({ "name": "geo" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "map", "tenant": "geo" })).await.expect(201);
    let platform = json!({ "operating_mode": "platform_managed", "control_plane_scope": "platform" });
    site.instance("ops", "serving", platform).await;
    site.hold("ops", "core", 4, json!({ "control_plane": true })).await;
    let tiers = json!({ "tiers": [{ "name": "gold", "weight": 3 }, { "name": "bronze", "weight": "1" }],
        "projects": [{ "tenant": "bio", "project": "chat", "tier": "gold" }], "default_tier": "bronze" });
    put(&site, "/api/v1/sharing", sharing("by_tier", tiers)).await;
    site.ledger.pass(2 * HOUR).await;
    site.report("chat", "requests", "1000", json!({})).await;
    site.report("map", "requests", "200", json!({ "org_id": "geo" })).await;
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] = &[
        ("chat", false, &["requests 5.000000"]),
        ("chat", true, &["share 43.200000"]),
        ("ops", true, &["core 57.600000", "share -57.600000"]),
    ];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "48.200000");
    let (total, found) = site.invoice_of("geo").await;
    assert_eq!(found, lines(&[("map", false, &["requests 1.000000"]), ("map", true, &["share 14.400000"])]));
    assert_eq!(total, "15.400000");
    assert_eq!(site.story().await, ["usage.recorded", "ledger.posted", "invoice.issued"]);
    // A tenant sees its own share, with what it follows from, and no project of another tenant.
    let token = json!({ "name": "geo-admin", "role": "tenant_admin", "tenant": "geo" });
    let token = world.post("/api/v1/tokens", token).await.expect(201);
    let secret = token["secret"].as_str().expect("a secret");
    let own = world.send(Some(secret), Method::Get, "/api/v1/shares?month=2026-01", None).await.expect(200);
    assert_eq!(own["shares"].as_array().expect("shares").len(), 1);
    assert_eq!([&own["shares"][0]["tier"], &own["shares"][0]["total_weight"]], [&json!("bronze"), &json!("4")]);
    assert!(!own.to_string().contains("chat"), "{own}");
    let policies = world.send(Some(secret), Method::Get, "/api/v1/sharing", None).await.expect(200);
    assert_eq!(policies["policies"], json!([]));
    site.ledger.world.stop().await;
}

/// The overhead of 57.60 divided by quota: `chat` may make 2000 requests in a month and `map` of another tenant 1000, so
/// that they bear 38.40 and 19.20, whatever they made. `idle` has no quota and bears nothing.
#[tokio::test(flavor = "multi_thread")]
async fn platform_overhead_is_divided_by_quota() {
    let site = Site::open(&["ops", "chat", "idle"]).await;
    let world = &site.ledger.world;
    world.post("/api/v1/tenants", json!({ "name": "geo" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "map", "tenant": "geo" })).await.expect(201);
    let platform = json!({ "operating_mode": "platform_managed", "control_plane_scope": "platform" });
    site.instance("ops", "serving", platform).await;
    site.hold("ops", "core", 4, json!({ "control_plane": true })).await;
    for (tenant, project, hard) in [("bio", "chat", 2000), ("geo", "map", 1000)] {
        let limit = json!({ "tenant": tenant, "project": project, "usage_unit": "requests", "hard": hard });
        put(&site, "/api/v1/entitlements", limit).await;
    }
    put(&site, "/api/v1/sharing", sharing("by_quota", json!({ "usage_unit": "requests" }))).await;
    site.ledger.pass(2 * HOUR).await;
    site.report("chat", "requests", "200", json!({})).await;
    site.report("map", "requests", "1000", json!({ "org_id": "geo" })).await;
    site.report("idle", "requests", "10", json!({})).await;
    let over = site.overdrawn("map", json!({ "org_id": "geo" })).await;
    assert_eq!(over["code"], "entitlement_exceeded", "the quota is a limit as well: {over}");
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] = &[
        ("chat", false, &["requests 1.000000"]),
        ("chat", true, &["share 38.400000"]),
        ("idle", false, &["requests 0.050000"]),
        ("ops", true, &["core 57.600000", "share -57.600000"]),
    ];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "39.450000");
    let (total, found) = site.invoice_of("geo").await;
    assert_eq!(found, lines(&[("map", false, &["requests 5.000000"]), ("map", true, &["share 19.200000"])]));
    assert_eq!(total, "24.200000");
    let all = site.ledger.get("/api/v1/shares?month=2026-01").await;
    let map = all["shares"].as_array().expect("shares").iter().find(|one| one["project"] == "map").expect("a share");
    assert_eq!(json!([map["method"], map["weight"], map["total_weight"]]), json!(["by_quota", "1000", "3000"]));
    let path = format!("/api/v1/ledger/entries/{}/explain", map["entry"].as_str().expect("an entry"));
    let words = site.ledger.get(&path).await["arithmetic"].to_string();
    assert!(words.contains("divided by the requests that each project may use in a month"), "{words}");
    assert!(words.contains("57.600000 EUR × 1000 / 3000"), "{words}");
    site.ledger.world.stop().await;
}

/// What a control plane cost is divided once, at the cut. Afterwards its node turns out to have been lost at 22:20, so
/// that one of its two hours is not charged (−14.40), and an hour of it is corrected by hand (9.60 to 1.00): both are
/// the owner's, although `c` goes on using the runtime.
#[tokio::test(flavor = "multi_thread")]
async fn later_changes_of_shared_cost_stay_with_the_owner() {
    let (site, lent) = shared_slurm().await;
    let world = &site.ledger.world;
    put(&site, "/api/v1/sharing", sharing("by_usage", json!({ "usage_unit": "gpu_hours" }))).await;
    site.report("c", "gpu_hours", "1", lent.clone()).await;
    site.report("a", "gpu_hours", "2", lent.clone()).await;
    let (_, found) = site.invoice().await;
    assert_eq!(found[&("c".into(), true)], ["share 9.600000"]);
    let shares = site.ledger.get("/api/v1/shares?month=2026-01").await;

    let lost = json!({ "last_seen": "2026-01-31T22:20:00Z" });
    world.post("/api/v1/nodes/n2/lose", lost).await.expect(200);
    let is_settled = |records: &Value| records["records"].as_array().is_some_and(|all| !all.is_empty());
    world.until("/api/v1/audit/records?kind=node.loss_settled", is_settled).await;
    let in_february = json!({ "from": "2026-02-01T02:00:00Z", "to": "2026-02-01T03:00:00Z" });
    let mut of_c = lent;
    in_february.as_object().expect("an object").iter().for_each(|(key, value)| of_c[key] = value.clone());
    site.report("c", "gpu_hours", "3", of_c).await;
    site.ledger.pass(2 * HOUR).await;
    let corrected = site.ledger.entries("tenant=bio&project=hpc&kind=usage&month=2026-01&limit=1000").await;
    // 40 minutes of two cores until 22:00.
    let first = corrected.iter().find(|entry| entry["amount"] == "9.600000").expect("the hour from 21:00");
    let correct = json!({ "entry": first["id"], "amount": "1", "reason": "agreed" });
    let put_right = world.post("/api/v1/ledger/corrections", correct).await.expect(201);
    assert_eq!(put_right["change"], "-8.600000");

    // 22:20 to 23:00 and 23:00 to 23:20, given back to the owner in the open month.
    let entries = site.ledger.entries("tenant=bio&month=2026-02&limit=1000").await;
    let mut booked: Vec<[&Value; 4]> = entries
        .iter()
        .map(|entry| [&entry["project"], &entry["kind"], &entry["original_month"], &entry["amount"]])
        .collect();
    booked.sort_by_key(|entry| entry[3].to_string());
    assert_eq!(
        json!(booked),
        json!([
            ["hpc", "usage", "2026-01", "-4.800000"],
            ["hpc", "usage", "2026-01", "-9.600000"],
            ["hpc", "reversal", "2026-01", "-9.600000"],
            ["hpc", "replacement", "2026-01", "1.000000"],
        ])
    );
    // The shares of January are what they were, and there are none of these changes in February.
    assert_eq!(site.ledger.get("/api/v1/shares?month=2026-01").await["shares"], shares["shares"]);
    let draft = site.ledger.get("/api/v1/shares").await;
    assert_eq!((&draft["month"], &draft["shares"]), (&json!("2026-02"), &json!([])), "{draft}");
    let balances = site.ledger.get("/api/v1/ledger/balances?account=shared_runtime").await;
    assert_eq!(balances["balances"][0]["balance"], "0.000000", "{balances}");
    let february = site.ledger.get("/api/v1/invoices/draft?tenant=bio").await;
    let of_others = |line: &&Value| line["project"] != "hpc";
    assert_eq!(february["drafts"][0]["lines"].as_array().expect("lines").iter().filter(of_others).count(), 0);
    assert_eq!(february["drafts"][0]["adjustments"], "-23.000000", "{february}");
    site.ledger.world.stop().await;
}

/// Job time on a lent worker that the policy bills: `c` pays 10 × 0.50, and `a`, which lends the GPU, gets it back.
#[tokio::test(flavor = "multi_thread")]
async fn billed_work_is_credited_to_who_pays_for_the_capacity() {
    let (site, lent) = shared_slurm().await;
    let policy = json!({ "app": "app", "tenant": "bio", "app_instance": "rt", "billed_work": ["gpu_hours"] });
    assert_eq!(put(&site, "/api/v1/policies", policy).await["policy"]["billed_work"], json!(["gpu_hours"]));
    assert_eq!(site.report("c", "gpu_hours", "10", lent.clone()).await["charge"], "billed");
    assert_eq!(site.report("a", "gpu_hours", "3", lent).await["charge"], "reported");
    let costs = site.ledger.get("/api/v1/costs?by=project&tenant=bio&from=2026-01-31T21:00:00Z").await;
    assert_eq!(costs["total"][0]["amount"], "105.800000", "{costs}");
    assert_eq!(costs["total_credited"][0]["amount"], "5.000000", "{costs}");
    assert_eq!([&costs["credits"][0]["project"], &costs["credits"][0]["amount"]], [&json!("a"), &json!("5.000000")]);
    let usage = site.ledger.get("/api/v1/usage?by=project&tenant=bio&from=2026-01-31T21:00:00Z").await;
    let used: Vec<[&Value; 3]> = usage["reported"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| [&line["project"], &line["quantity"], &line["charge"]])
        .collect();
    assert_eq!(json!(used), json!([["a", "3", "reported"], ["c", "10", "billed"]]));
    let (total, found) = site.invoice().await;
    let expected: &[(&str, bool, &[&str])] = &[
        ("a", false, &["gpu_hours -5.000000", "h100 72.000000"]),
        ("c", false, &["gpu_hours 5.000000"]),
        ("hpc", true, &["core 28.800000"]),
    ];
    assert_eq!(found, lines(expected));
    assert_eq!(total, "100.800000");
    let revenue = site.ledger.get("/api/v1/ledger/balances?account=revenue").await;
    let of_unit = revenue["balances"].as_array().expect("balances").iter().find(|one| one["usage_unit"] == "gpu_hours");
    assert_eq!(of_unit.expect("a balance")["balance"], "0.000000");
    // The credit says which usage it is for.
    let entries = site.ledger.get("/api/v1/ledger/entries?tenant=bio&project=a&kind=usage&limit=1000").await;
    let credit = entries["entries"].as_array().expect("entries").iter().find(|one| one["amount"] == "-5.000000");
    let id = credit.expect("a credit")["id"].as_str().expect("an id");
    let why = site.ledger.get(&format!("/api/v1/ledger/entries/{id}/explain")).await;
    assert_eq!(why["usage_records"][0]["id"], "c-gpu_hours-10");
    site.ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_sharing_policies_are_refused() {
    let site = Site::open(&["hpc", "a"]).await;
    site.instance("hpc", "slurm", json!({ "control_plane_scope": "tenant" })).await;
    let world = &site.ledger.world;
    let weights =
        |b: &str| json!({ "weights": [{ "project": "hpc", "percent": 60 }, { "project": "a", "percent": b }] });
    let cases = [
        (sharing("fixed", weights("39.9")), 422, "bad_shares", None),
        (sharing("fixed", weights("-40")), 422, "bad_quantity", Some("percent")),
        (sharing("by_usage", json!({})), 422, "bad_body", Some("usage_unit")),
        (sharing("by_usage", json!({ "usage_unit": "nothing" })), 404, "unknown_usage_unit", Some("usage_unit")),
        (sharing("even", json!({ "usage_unit": "gpu_hours" })), 422, "bad_body", Some("usage_unit")),
        (
            sharing("by_tier", json!({ "tiers": [{ "name": "gold", "weight": 1 }], "default_tier": "tin" })),
            422,
            "bad_body",
            Some("tier"),
        ),
        (sharing("by_tier", json!({})), 422, "bad_tiers", None),
        (sharing("not_billable", json!({})), 422, "bad_body", Some("method")),
        (
            sharing("fixed", json!({ "weights": [{ "project": "none", "percent": 100 }] })),
            404,
            "unknown_project",
            Some("weights"),
        ),
    ];
    for (body, status, code, field) in cases {
        let refused = world.send(Some(&world.operator), Method::Put, "/api/v1/sharing", Some(body.clone())).await;
        let problem = refused.expect(status);
        assert_eq!(problem["code"], code, "{body}: {problem}");
        if let Some(field) = field {
            assert_eq!(problem["field"], field, "{body}: {problem}");
        }
    }
    // Nothing is booked on the account of a runtime by hand.
    let by_hand = json!({ "tenant": "bio", "project": "a", "currency": "EUR", "reason": "share", "legs": [
        { "account": "receivable", "amount": "1" }, { "account": "shared_runtime", "amount": "-1" }] });
    assert_eq!(world.post("/api/v1/ledger/entries", by_hand).await.expect(422)["code"], "account_not_by_hand");
    let token = json!({ "name": "bio-admin", "role": "tenant_admin", "tenant": "bio" });
    let token = world.post("/api/v1/tokens", token).await.expect(201);
    let secret = token["secret"].as_str().expect("a secret");
    let by_tenant = json!({ "app": "app", "control_plane_billable": false });
    let refused = world.send(Some(secret), Method::Put, "/api/v1/sharing", Some(by_tenant)).await.expect(422);
    assert_eq!(refused["code"], "sharing_by_operator");
    put(&site, "/api/v1/sharing", json!({ "app": "app", "distributable": false })).await;
    let refused = world.send(Some(secret), Method::Put, "/api/v1/sharing", Some(sharing("even", json!({})))).await;
    assert_eq!(refused.expect(409)["code"], "not_distributable");
    assert_eq!(site.ledger.get("/api/v1/sharing?tenant=bio").await["policies"].as_array().expect("a list").len(), 1);
    site.ledger.world.stop().await;
}
