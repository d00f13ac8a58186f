//! What is charged where capacity was claimed, could not be used, or ended after its node was last seen.

use crate::world::World;
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use serde_json::{Value, json};
use std::sync::Arc;

/// 2026-01-01T10:20:00Z. A GPU costs 0.01 a second, and 0.015 if guaranteed.
const BEGAN: Instant = Instant::from_secs(1_767_225_600 + 10 * 3600 + 20 * 60);

async fn cluster(clock: &Arc<ManualClock>) -> World {
    let world = World::of_two_nodes(clock, 8).await;
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    world.post("/api/v1/users", json!({ "name": "ada", "tenant": "physics" })).await.expect(201);
    world
}

fn request(ttl: &str, node: &str) -> Value {
    json!({ "tenant": "physics", "project": "lattice", "ttl": ttl, "node": node,
        "asks": [{ "class": "h100", "quantity": 1 }] })
}

/// The total cost of everything on the first of January.
async fn cost(world: &World) -> String {
    let costs = world.get("/api/v1/costs?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z").await.expect(200);
    costs["total"][0]["amount"].as_str().unwrap_or("nothing").to_owned()
}

/// From 10:20 to 12:10 is 6,600 s, and to 11:50, when the node was last seen, 5,400 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ended_after_its_node_was_last_seen_is_billed_to_that_instant() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let world = cluster(&clock).await;
    let granted = world.post("/api/v1/leases", request("1h50m", "n1")).await.expect(201);
    let lease = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
    clock.advance(Span::from_secs(130 * 60));
    let closed = world.until(&format!("/api/v1/leases/{lease}"), |lease| lease["state"] == json!("closed")).await;
    assert_eq!((&closed["ended_at"], &closed["end"]), (&json!("2026-01-01T12:10:00Z"), &json!("expired")));
    assert_eq!(cost(&world).await, "66.000000");

    let lost = json!({ "last_seen": "2026-01-01T11:50:00Z" });
    world.post("/api/v1/nodes/n1/lose", lost).await.expect(200);
    let corrected =
        world.until(&format!("/api/v1/leases/{lease}"), |lease| lease["ended_at"] != closed["ended_at"]).await;
    assert_eq!(corrected["ended_at"], "2026-01-01T11:50:00Z", "{corrected}");
    assert_eq!(cost(&world).await, "54.000000");
    let records = world.get("/api/v1/audit/records?limit=1000").await.expect(200);
    let records = records["records"].as_array().expect("records");
    let of_kind = |kind: &str| records.iter().filter(|record| record["kind"] == kind).collect::<Vec<_>>();
    let [named] = of_kind("lease.end_corrected")[..] else { panic!("one record names the lease") };
    assert_eq!((&named["effective_at"], &named["body"]["leases"]), (&json!("2026-01-01T11:50:00Z"), &json!([lease])));
    assert_eq!(named["identity"]["project"], "lattice", "{named}");
    assert_eq!(of_kind("node.loss_settled").len(), 1);
    // All of the node is offline from then on, and nothing is counted twice.
    let capacity =
        world.get("/api/v1/usage/capacity?by=node&from=2026-01-01T11:00:00Z&to=2026-01-01T12:10:00Z").await.expect(200);
    let n1 = capacity["lines"].as_array().expect("lines").iter().find(|line| line["node"] == "n1").expect("n1").clone();
    assert_eq!((&n1["held"], &n1["offline"]), (&json!("3000.000000000"), &json!("9600.000000000")), "{n1}");
    // A node without an agent has given no sign of life, so any time in the past is believed.
    let later = world.post("/api/v1/nodes/n2/lose", json!({ "last_seen": "2027-01-01T00:00:00Z" })).await;
    assert_eq!(later.expect(422)["code"], "last_seen_in_future");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_counts_whole_and_its_leases_are_priced_as_guaranteed() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let world = cluster(&clock).await;
    world
        .post(
            "/api/v1/quotas",
            json!({ "tenant": "physics", "class": "h100", "measure": "quanta",
        "limit": { "type": "hard", "limit": 12 } }),
        )
        .await
        .expect(201);
    let ceiling = json!({ "amount": "500", "mode": "hard" });
    world.put("/api/v1/projects/lattice/ceiling", ceiling).await.expect(200);
    let claim = |until: Value| json!({ "nodes": ["n1"], "tenant": "physics", "project": "lattice", "user": "ada", "until": until });
    let refused = world.post("/api/v1/claims", claim(Value::Null)).await.expect(422);
    assert_eq!((&refused["code"], &refused["field"]), (&json!("claim_needs_until"), &json!("until")), "{refused}");
    let past = world.post("/api/v1/claims", claim(json!("2026-01-01T10:00:00Z"))).await.expect(422);
    assert_eq!(past["code"], "claim_until_past", "{past}");
    // 8 GPUs at 0.015 for two hours cost 864.
    let dear = world.post("/api/v1/claims", claim(json!("2026-01-01T12:20:00Z"))).await.expect(409);
    assert_eq!(
        (&dear["code"], &dear["requested"], &dear["amount"]),
        (&json!("claim_over_ceiling"), &json!("864"), &json!("500"))
    );
    let made = world.post("/api/v1/claims", claim(json!("2026-01-01T11:20:00Z"))).await.expect(201);
    assert_eq!(made["nodes"][0]["custody"]["until"], "2026-01-01T11:20:00Z", "{made}");
    let shown = world.get("/api/v1/projects/lattice/ceiling").await.expect(200);
    assert_eq!((&shown["spent"], &shown["reserved"], &shown["left"]), (&json!("0"), &json!("432"), &json!("68")));

    // Four of twelve GPUs are left for other work, and nothing of it for the second node.
    let over = world
        .post(
            "/api/v1/claims",
            json!({ "nodes": ["n2"], "tenant": "physics", "project": "lattice",
        "user": "ada", "until": "2026-01-01T10:30:00Z" }),
        )
        .await
        .expect(409);
    let figures = (&over["code"], &over["used"], &over["requested"], &over["limit"], &over["unit"]);
    assert_eq!(figures, (&json!("claim_over_quota"), &json!("8"), &json!("8"), &json!("12"), &json!("GPU")), "{over}");
    let mut sensitive = request("30m", "n1");
    for (key, value) in [("sensitive", json!(true)), ("user", json!("ada")), ("priority", json!("scavenger"))] {
        sensitive[key] = value;
    }
    let granted = world.post("/api/v1/leases", sensitive).await.expect(201);
    clock.advance(Span::from_secs(600));
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    world.post("/api/v1/claims/release", json!({ "nodes": ["n1"] })).await.expect(200);
    // All eight GPUs for ten minutes at the guaranteed price.
    assert_eq!(cost(&world).await, "72.000000");
    let shown = world.get("/api/v1/projects/lattice/ceiling").await.expect(200);
    assert_eq!((&shown["spent"], &shown["reserved"]), (&json!("72"), &json!("0")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_is_charged_by_its_own_rule_and_reported_by_agents_and_operators_only() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let world = cluster(&clock).await;
    world.post("/api/v1/charge-policies", json!({ "charges": { "failed_start": "none" } })).await.expect(201);
    let submit = json!({ "tenant": "physics", "project": "lattice", "staged": true,
        "asks": [{ "class": "h100", "quantity": 8 }] });
    let submitted = world.post("/api/v1/allocations", submit).await.expect(201);
    let allocation = submitted["id"].as_str().expect("an id").to_owned();
    let member = json!({ "name": "m", "role": "project_member", "tenant": "physics", "project": "lattice" });
    let member =
        world.post("/api/v1/tokens", member).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    clock.advance(Span::from_secs(60));
    let failed = json!({ "allocation": allocation });
    let path = "/api/v1/nodes/n1/failed-starts";
    world.send(Some(&member), leasehold_api::Method::Post, path, Some(failed.clone())).await.expect(403);
    let elsewhere = world.post("/api/v1/nodes/n2/failed-starts", failed.clone()).await.expect(409);
    assert_eq!(elsewhere["code"], "allocation_not_on_node", "{elsewhere}");
    assert_eq!(cost(&world).await, "4.800000");
    let answer = world.post(path, failed.clone()).await.expect(200);
    assert_eq!(answer["state"], "failed", "{answer}");
    assert_eq!(cost(&world).await, "nothing");
    let shown = world.get(&format!("/api/v1/allocations/{allocation}")).await.expect(200);
    assert_eq!(shown["attempts"][0]["end"], "failed_start", "{shown}");
    assert_eq!(world.post(path, failed).await.expect(409)["code"], "allocation_over");
}
