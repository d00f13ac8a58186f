//! Refusals and denials in the words of those who read them: names, units, and why a node that was named takes nothing.

use crate::world::World;
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

fn ask(more: &Value) -> Value {
    let mut asked = json!({ "tenant": "physics", "project": "physics-main", "ttl": "10m",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    for (key, value) in more.as_object().expect("an object") {
        asked[key] = value.clone();
    }
    asked
}

fn detail(told: &Value) -> &str {
    told["detail"].as_str().expect("words")
}

#[tokio::test(flavor = "multi_thread")]
async fn things_are_called_by_their_names() {
    let world = World::furnished().await;
    let delete = async |path: &str| world.send(Some(&world.operator), Method::Delete, path, None).await.expect(409);
    for (path, begins) in [
        ("/api/v1/pools/main", "Pool \"main\" still has nodes"),
        ("/api/v1/nodes/n1", "Node \"n1\" still has live leases"),
        ("/api/v1/projects/physics-main", "Project \"physics-main\" still has live leases"),
        ("/api/v1/tenants/physics", "Tenant \"physics\" still has live leases"),
    ] {
        let told = delete(path).await;
        assert!(detail(&told).starts_with(begins), "{told}");
    }
    world.post("/api/v1/pools", json!({ "name": "other" })).await.expect(201);
    let told = world.post("/api/v1/leases", ask(&json!({ "node": "n1", "pool": "other" }))).await.expect(422);
    assert!(detail(&told).starts_with("Node \"n1\" is not in pool \"other\""), "{told}");
    let twice = json!([{ "class": "h100", "quantity": 1 }, { "class": "h100", "quantity": 1 }]);
    let told = world.post("/api/v1/leases", ask(&json!({ "asks": twice }))).await.expect(422);
    assert!(detail(&told).starts_with("Class \"h100\" is requested twice"), "{told}");
    // The same in a batch, and to a node's agent.
    let batch = json!({ "operations": [{ "request": ask(&json!({ "asks": twice })) }] });
    let told = world.post("/api/v1/leases/batch", batch).await.expect(200);
    assert!(detail(&told["results"][0]["problem"]).starts_with("Class \"h100\""), "{told}");
    let beat = json!({ "generation": 9 });
    let agent = Some(world.tokens[&Role::NodeAgent].as_str());
    let told = world.send(agent, Method::Post, "/api/v1/nodes/n1/heartbeat", Some(beat)).await.expect(409);
    assert_eq!(
        detail(&told),
        "Generation 9 is no longer the agent of node \"n1\": no agent is registered; register again"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_one_class_speaks_in_its_units_and_others_in_numbers() {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "mig", "kind": "gpu", "quanta_per_unit": 7 })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
    world.post("/api/v1/nodes", json!({ "name": "n1", "pool": "main", "capacity": { "mig": 8 } })).await.expect(201);
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    let quota =
        json!({ "tenant": "physics", "class": "mig", "measure": "quanta", "limit": { "type": "hard", "limit": 21 } });
    world.post("/api/v1/quotas", quota).await.expect(201);
    let ask = |quantity: &str| {
        json!({ "tenant": "physics", "project": "lattice", "ttl": "10m",
            "asks": [{ "class": "mig", "quantity": quantity }] })
    };
    world.post("/api/v1/leases", ask("2")).await.expect(201);
    let told = world.post("/api/v1/leases", ask("4")).await.expect(409);
    assert_eq!(detail(&told), "Tenant \"physics\" would exceed its quota of mig (used 2, requested 4, limit 3 GPU).");
    assert_eq!((&told["used"], &told["requested"], &told["limit"]), (&json!("2"), &json!("4"), &json!("3")), "{told}");
    assert_eq!(told["unit"], "GPU");
    let told = world.post("/api/v1/leases", ask("8/7")).await;
    assert_eq!(told.status, 422, "not whole devices");
    world.post("/api/v1/leases", ask("6/7")).await.expect(201);
    let told = world.post("/api/v1/leases", ask("2/7")).await.expect(409);
    assert_eq!((&told["used"], &told["requested"], &told["unit"]), (&json!("20/7"), &json!("2/7"), &json!("GPU")));
    let quota = json!({ "tenant": "physics", "measure": "leases", "limit": { "type": "hard", "limit": 1 } });
    world.post("/api/v1/quotas", quota).await.expect(201);
    let told = world.post("/api/v1/leases", ask("1/7")).await.expect(409);
    assert_eq!(detail(&told), "Tenant \"physics\" would exceed max_leases (used 2, requested 1, limit 1).");
    assert_eq!((&told["used"], &told["unit"]), (&json!("2"), &json!("lease")));
    world.stop().await;
}

/// A machine that is shut has room, and yet takes nothing: the answer says what it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_one_node_is_told_what_state_that_node_is_in() {
    let world = World::furnished().await;
    let asked = ask(&json!({ "node": "n2" }));
    let denied = async || world.post("/api/v1/leases", asked.clone()).await.expect(409);
    world.post("/api/v1/nodes/n2/drain", json!({})).await.expect(200);
    let told = denied().await;
    assert_eq!((&told["code"], &told["node_state"]), (&json!("no_capacity"), &json!("drained")));
    assert_eq!(detail(&told), "Node \"n2\" is drained and accepts no new work; name another node, or none.");
    assert!(told["sequence"].is_u64(), "{told}");
    let quoted = world.post("/api/v1/leases/quote", asked.clone()).await.expect(200);
    assert!(quoted["detail"].as_str().is_some_and(|told| told.starts_with("Node \"n2\" is drained")), "{quoted}");
    world.post("/api/v1/nodes/n2/lose", json!({})).await.expect(200);
    assert_eq!(denied().await["node_state"], "lost");

    // Claimed by another user, then being wiped, then quarantined.
    let new = json!({ "name": "n3", "pool": "main", "teardown": "immediate", "capacity": { "h100": 4 } });
    world.post("/api/v1/nodes", new).await.expect(201);
    let claim = json!({ "nodes": ["n3"], "tenant": "chemistry", "project": "chemistry-main", "user": "chemistry-ada" });
    world.post("/api/v1/claims", claim).await.expect(201);
    let admin = world.tokens[&Role::TenantAdmin].clone();
    let asked = ask(&json!({ "node": "n3" }));
    let state = async || {
        let told = world.send(Some(&admin), Method::Post, "/api/v1/leases", Some(asked.clone())).await.expect(409);
        assert!(!told.to_string().contains("chemistry"), "{told}");
        told["node_state"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(state().await, "claimed");
    world.post("/api/v1/claims/release", json!({ "nodes": ["n3"] })).await.expect(200);
    assert_eq!(state().await, "wiping");
    world.post("/api/v1/nodes/n3/wipe", json!({ "clean": false })).await.expect(200);
    assert_eq!(state().await, "quarantined");
    world.stop().await;
}
