//! Why: grants, denials, waits and evictions explained over HTTP, and decided again.

use crate::world::World;
use leasehold_api::Method;
use serde_json::{Value, json};

async fn cluster() -> World {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "0s" })).await.expect(201);
    for node in ["n1", "n2"] {
        let new = json!({ "name": node, "pool": "main", "capacity": { "h100": 4 } });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
    for tenant in ["physics", "chemistry"] {
        world.post("/api/v1/tenants", json!({ "name": tenant, "max_priority": "guaranteed" })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
    }
    world
}

fn asked(tenant: &str, gpus: u64, more: &Value) -> Value {
    let mut asked =
        json!({ "tenant": tenant, "project": tenant, "asks": [{ "class": "h100", "quantity": gpus }], "ttl": "10m" });
    for (key, value) in more.as_object().expect("an object") {
        asked[key] = value.clone();
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn each_decision_is_explained_and_decided_again() {
    let world = cluster().await;
    let granted =
        world.post("/api/v1/leases", asked("physics", 3, &json!({ "priority": "scavenger" }))).await.expect(201);
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    let why = world.get(&format!("/api/v1/leases/{lease}/explain")).await.expect(200);
    assert_eq!(
        (&why["outcome"], &why["replayed"], &why["candidate_count"]),
        (&json!("granted"), &json!("same"), &json!(2))
    );
    assert_eq!(why["candidates"][0]["node"], granted["node"], "{why}");

    let denied = world.post("/api/v1/leases", asked("physics", 5, &json!({}))).await.expect(409);
    let sequence = denied["sequence"].as_u64().expect("a sequence");
    let why = world.get(&format!("/api/v1/audit/decisions/{sequence}")).await.expect(200);
    assert_eq!((&why["outcome"], &why["replayed"]), (&json!("denied"), &json!("same")), "{why}");
    assert!(why["why"].as_str().is_some_and(|text| text.contains("h100")), "{why}");
    assert_eq!(why["unfit"]["capacity"], 2, "{why}");

    // Another tenant's guaranteed gang evicts: who falls is nobody's business but the victim's own and the operator's.
    let gang = json!({ "tenant": "chemistry", "project": "chemistry", "replicas": 2, "walltime": "1h",
        "priority": "guaranteed", "asks": [{ "class": "h100", "quantity": 4 }] });
    let submitted = world.post("/api/v1/allocations", gang).await.expect(201);
    let id = submitted["id"].as_u64().expect("a number");
    let decided = "/api/v1/audit/records?kind=preemption.decided";
    let decided = world.until(decided, |found| !found["records"][0].is_null()).await;
    let evicts = &decided["records"][0]["sequence"];
    let why = world.get(&format!("/api/v1/audit/decisions/{evicts}")).await.expect(200);
    assert_eq!((&why["outcome"], &why["replayed"]), (&json!("evicts"), &json!("same")), "{why}");
    assert!(why["evictions"].as_array().is_some_and(|all| !all.is_empty()), "{why}");
    let why = world.get(&format!("/api/v1/allocations/{id}/explain")).await.expect(200);
    assert_eq!(why["outcome"], "waits", "{why}");
    assert_eq!(why["queue"]["position"], 1, "{why}");

    let node = world.get("/api/v1/nodes/n1/explain").await.expect(200);
    assert_eq!(node["classes"][0]["capacity"], 4, "{node}");
    world.get("/api/v1/audit/decisions/0").await.expect(400);
    world.get("/api/v1/audit/decisions/99999").await.expect(404);
    let issued =
        world.post("/api/v1/tokens", json!({ "name": "c", "role": "tenant-admin", "tenant": "chemistry" })).await;
    let issued = issued.expect(201);
    let theirs = issued["secret"].as_str().expect("a secret");
    let foreign = format!("/api/v1/leases/{lease}/explain");
    world.send(Some(theirs), Method::Get, &foreign, None).await.expect(404);
    world.send(Some(theirs), Method::Get, &format!("/api/v1/audit/decisions/{sequence}"), None).await.expect(404);
}
