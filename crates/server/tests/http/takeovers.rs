//! Reservations that a higher priority takes over, and what those concerned are told (SEMANTICS 11).

use crate::world::{AllocationNumber, World};
use leasehold_api::Method;
use serde_json::{Value, json};

/// One node of four GPUs without an agent, an hour of grace, and three tenants.
async fn cluster() -> World {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "1h" })).await.expect(201);
    let node = json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": { "h100": 4 } });
    world.post("/api/v1/nodes", node).await.expect(201);
    for tenant in ["physics", "chemistry", "biology"] {
        world.post("/api/v1/tenants", json!({ "name": tenant, "max_priority": "guaranteed" })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
    }
    world
}

fn lease(tenant: &str, gpus: u64, priority: &str) -> Value {
    json!({ "tenant": tenant, "project": tenant, "ttl": "2h", "priority": priority,
        "asks": [{ "class": "h100", "quantity": gpus }] })
}

async fn token(world: &World, tenant: &str) -> String {
    let new = json!({ "name": tenant, "role": "tenant_admin", "tenant": tenant });
    let issued = world.post("/api/v1/tokens", new).await.expect(201);
    issued["secret"].as_str().expect("a secret").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_taken_over_and_everybody_is_told_why() {
    let world = cluster().await;
    let held = world.post("/api/v1/leases", lease("biology", 4, "scavenger")).await.expect(201);
    let victim = held["leases"][0]["id"].as_str().expect("an id").to_owned();
    let first = world.post("/api/v1/leases", lease("physics", 4, "standard")).await.expect(202);
    let first = first["id"].allocation();
    let decided = world.until("/api/v1/audit/records?kind=preemption.decided", |found| !found["records"][0].is_null());
    let evicted = decided.await["records"][0]["sequence"].as_u64().expect("a sequence");
    // An operator sees who falls; the one that waits does not.
    let why = world.get(&format!("/api/v1/audit/decisions/{evicted}")).await.expect(200);
    let shown = &why["decided"]["victims"][0];
    assert_eq!((&shown["holder"], &shown["capacity"]), (&json!("biology/biology"), &json!("4 GPU")), "{why}");
    assert!(shown["remaining"].as_str().is_some_and(|left| left.starts_with("1h59m")), "{why}");
    let physics = token(&world, "physics").await;
    let path = format!("/api/v1/allocations/{first}/explain");
    let why = world.send(Some(&physics), Method::Get, &path, None).await.expect(200);
    let shown = &why["decided"]["victims"][0];
    assert_eq!((&shown["holder"], &shown["capacity"]), (&json!("another tenant"), &json!("4 GPU")), "{why}");

    // The same priority does not take it over, and is told that the capacity is reserved once it is there.
    world
        .post(
            "/api/v1/nodes",
            json!({ "name": "n2", "pool": "main", "teardown": "immediate",
        "capacity": { "h100": 1 } }),
        )
        .await
        .expect(201);
    world.post("/api/v1/leases", lease("chemistry", 2, "standard")).await.expect(409);

    // A higher one does. It waits for the lease that was ending already, and nothing more is evicted.
    let second = world.post("/api/v1/leases", lease("chemistry", 4, "guaranteed")).await.expect(202);
    let second = second["id"].allocation();
    let taken =
        world.until("/api/v1/audit/records?kind=reservation.taken_over", |found| !found["records"][0].is_null());
    let record = taken.await["records"][0].clone();
    assert_eq!(
        (&record["body"]["allocation_id"], &record["body"]["dropped"]),
        (&json!(format!("alloc-{second}")), &json!([format!("alloc-{first}")]))
    );
    assert_eq!(record["body"]["victims"], json!([]), "{record}");
    let decision = format!("/api/v1/audit/decisions/{}", record["sequence"]);
    let why = world.get(&decision).await.expect(200);
    assert_eq!((&why["outcome"], &why["replayed"]), (&json!("evicts"), &json!("same")), "{why}");
    assert!(why["why"].as_str().expect("words").starts_with("A reservation of lower priority is taken over"), "{why}");
    assert_eq!((&why["decided"]["taken_over"], &why["decided"]["victims"]), (&json!(1), &json!([])), "{why}");
    assert_eq!(why["decided"]["awaited"][0]["lease_id"], json!(victim), "{why}");
    let why = world.send(Some(&physics), Method::Get, &decision, None).await.expect(200);
    let words = why["why"].as_str().expect("words");
    assert!(words.contains("taken over for a guaranteed request of another tenant"), "{words}");
    assert!(!why.to_string().contains("chemistry") && !why.to_string().contains("biology"), "{why}");
    world.post("/api/v1/tenants", json!({ "name": "stranger" })).await.expect(201);
    let stranger = token(&world, "stranger").await;
    assert_eq!(world.send(Some(&stranger), Method::Get, &decision, None).await.status, 404);

    world.post(&format!("/api/v1/leases/{victim}/ready"), json!({})).await.expect(200);
    world.until(&format!("/api/v1/allocations/{second}"), |found| found["state"] == "running").await;
    let shown = world.get(&format!("/api/v1/allocations/{first}")).await.expect(200);
    assert_eq!(shown["state"], "pending", "{shown}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_says_that_capacity_is_reserved() {
    let world = cluster().await;
    world.post("/api/v1/leases", lease("biology", 3, "scavenger")).await.expect(201);
    // One GPU is free and reserved for this one, while three are being torn down.
    world.post("/api/v1/leases", lease("physics", 4, "standard")).await.expect(202);
    world.until("/api/v1/audit/records?kind=preemption.decided", |found| !found["records"][0].is_null()).await;
    let denied = world.post("/api/v1/leases", lease("chemistry", 1, "standard")).await.expect(409);
    assert_eq!(denied["code"], "no_capacity", "{denied}");
    let detail = denied["detail"].as_str().expect("words");
    assert!(detail.contains("1 GPU is reserved for a higher-ranked allocation"), "{detail}");
    world.stop().await;
}
