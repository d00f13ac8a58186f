//! Timelines over HTTP: the whole story of an ID, and what each token sees of it.

use crate::ledger::Ledger;
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

const ID: &str = "5f0c1b3e-8a44-4d2e-9c55-0e6b7a1d2f33";

fn events(told: &Value) -> Vec<&str> {
    let steps = told["steps"].as_array().expect("a list");
    steps.iter().map(|step| step["event"].as_str().expect("a word")).collect()
}

async fn told(ledger: &Ledger, role: Role, id: &str) -> Value {
    let path = format!("/api/v1/timeline/{id}");
    ledger.as_role(role, Method::Get, &path, None).await.expect(200)
}

/// From 21:20 on, one GPU of each tenant for half an hour: 1800 s × 0.01 are 18.00. The line of physics contains its
/// other lease as well: two GPUs for 40 minutes, 48.00.
async fn one_id_of_two_tenants() -> Ledger {
    let ledger = Ledger::open().await;
    for tenant in ["physics", "chemistry"] {
        let request = json!({ "tenant": tenant, "project": format!("{tenant}-main"), "ttl": "30m", "correlation_id": ID,
            "asks": [{ "class": "h100", "quantity": 1 }] });
        ledger.world.post("/api/v1/leases", request).await.expect(201);
    }
    ledger.pass(3600).await;
    let entry = ledger.usage_of("physics").await;
    assert_eq!(entry["amount"], "66.000000");
    let correction = json!({ "entry": entry["id"], "amount": "60.00", "reason": "agreed" });
    ledger.world.post("/api/v1/ledger/corrections", correction).await.expect(201);
    ledger.close_january().await;
    ledger
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_leads_from_the_request_to_the_invoice() {
    let ledger = one_id_of_two_tenants().await;
    let physics = told(&ledger, Role::TenantAdmin, ID).await;
    let story = ["lease.granted", "usage", "lease.expired", "ledger.posted", "ledger.corrected", "invoice.issued"];
    assert_eq!(events(&physics), story, "{physics:#}");
    let steps = physics["steps"].as_array().expect("a list");
    assert_eq!(steps[0]["kind"], "decision");
    assert!(steps[0]["text"].as_str().is_some_and(|text| text.contains("1 h100 on n1")), "{}", steps[0]);
    assert_eq!(steps[0]["lease_ids"], json!(["lease-2"]));
    let usage = &steps[1]["usage"];
    assert_eq!(
        (&usage["cost"], &usage["currency"], &usage["payer"]),
        (&json!("18.000000"), &json!("EUR"), &json!("physics-main"))
    );
    assert_eq!((&usage["unit_hours"], &usage["hour"]), (&json!("0.500000000"), &json!("2026-01-31T21:00:00Z")));
    assert_eq!(steps[3]["entries"][0]["amount"], "66.000000");
    let amounts: Vec<&Value> =
        steps[4]["entries"].as_array().expect("a list").iter().map(|one| &one["amount"]).collect();
    assert_eq!(amounts, ["-66.000000", "60.000000"]);
    // Posted 66.00 for 21:00, 72.00 for 22:00 and 24.00 for 23:00; what was corrected is a line of its own.
    let invoice = &steps[5]["invoice"];
    let lines = invoice["lines"].as_array().expect("a list");
    let lines: Vec<(u64, &str)> = lines
        .iter()
        .map(|line| (line["line"].as_u64().expect("a number"), line["amount"].as_str().expect("text")))
        .collect();
    assert_eq!(lines, [(1, "162.000000"), (2, "-6.000000")], "{invoice:#}");
    let shown = ledger.world.get(&format!("/api/v1/invoices/{}", invoice["number"].as_str().expect("text"))).await;
    for (number, amount) in lines {
        assert_eq!(shown.json()["lines"][usize::try_from(number).expect("small") - 1]["amount"], amount);
    }
    // Page by page it is the same.
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/timeline/{}?limit=2{cursor}", ID.replace('-', ""));
        let page = ledger.as_role(Role::TenantAdmin, Method::Get, &path, None).await.expect(200);
        assert_eq!(page["correlation_id"], ID);
        paged.extend(page["steps"].as_array().expect("a list").clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, *steps);
    ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_sees_only_its_own_part_of_a_timeline() {
    let ledger = one_id_of_two_tenants().await;
    // Both tenants chose the same ID.
    let all = told(&ledger, Role::Operator, ID).await;
    assert_eq!(events(&all).iter().filter(|event| **event == "lease.granted").count(), 2);
    assert_eq!(events(&all).iter().filter(|event| **event == "invoice.issued").count(), 2);
    for role in [Role::TenantAdmin, Role::ProjectMember] {
        let own = told(&ledger, role, ID).await;
        let is_own = |step: &Value| {
            let entries = step["entries"].as_array().map_or(&[][..], Vec::as_slice);
            entries.iter().all(|entry| entry["tenant"] == "physics")
                && !step["lease_ids"].to_string().contains("lease-3")
        };
        assert!(own["steps"].as_array().is_some_and(|steps| steps.iter().all(is_own)), "{own:#}");
        // An invoice is about all projects of the tenant.
        assert_eq!(events(&own).contains(&"invoice.issued"), role == Role::TenantAdmin);
    }
    // IDs that the daemon derived: the first lease is of physics, the second of chemistry.
    for (lease, status) in [("lease-0", 200), ("lease-1", 404)] {
        let lease = ledger.world.get(&format!("/api/v1/leases/{lease}")).await.expect(200);
        let path = format!("/api/v1/timeline/{}", lease["correlation_id"].as_str().expect("an ID"));
        assert!(!events(&ledger.world.get(&path).await.expect(200)).is_empty());
        for role in [Role::TenantAdmin, Role::ProjectMember] {
            let answer = ledger.as_role(role, Method::Get, &path, None).await;
            assert_eq!(answer.status, status, "{answer:?}");
            assert_eq!(status == 404, answer.code() == "unknown_correlation_id", "{answer:?}");
        }
    }
    for (path, status, code) in [
        ("00000000000000000000000000000001", 404, "unknown_correlation_id"),
        ("lease-0", 422, "bad_id"),
        (&format!("{ID}?cursor=c1"), 400, "bad_cursor"),
        (&format!("{ID}?cursor=t0.0.0.0.00"), 400, "bad_cursor"),
        (&format!("{ID}?limit=0"), 400, "bad_query"),
    ] {
        let answer = ledger.world.get(&format!("/api/v1/timeline/{path}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    }
    ledger.world.stop().await;
}

/// A request that is denied at once is found by the ID that it gave.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_lease_is_found_by_its_id() {
    let ledger = Ledger::open().await;
    let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "30m", "correlation_id": ID,
        "asks": [{ "class": "h100", "quantity": 8 }] });
    ledger.world.post("/api/v1/leases", request).await.expect(409);
    let found = told(&ledger, Role::TenantAdmin, ID).await;
    assert_eq!(events(&found), ["lease.denied"], "{found:#}");
    let step = &found["steps"][0];
    assert_eq!(step["kind"], "decision");
    assert!(step["text"].as_str().is_some_and(|text| text.contains("audit replay --sequence")), "{step}");
    ledger.world.stop().await;
}
