//! Maintenance windows over HTTP: what they keep away, who is told, and how they begin and end.

use crate::world::World;
use leasehold_api::{Method, WindowPut};
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use serde_json::{Value, json};
use std::sync::Arc;

/// 2026-01-01T00:00:00Z.
const BEGAN: Instant = Instant::from_secs(1_767_225_600);

fn request(ttl: &str) -> Value {
    json!({ "tenant": "physics", "project": "lattice", "ttl": ttl, "asks": [{ "class": "h100", "quantity": 1 }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_shortens_leases_tells_their_holders_and_drains_its_nodes() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::at(Arc::clone(&clock) as Arc<_>, folder, |_| {}).await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "1m" })).await.expect(201);
    let node = json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": { "h100": 8 } });
    world.post("/api/v1/nodes", node).await.expect(201);
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    let member = json!({ "name": "m", "role": "project_member", "tenant": "physics", "project": "lattice" });
    let member = world.post("/api/v1/tokens", member).await.expect(201);
    let member = member["secret"].as_str().expect("a secret").to_owned();

    let before = world.post("/api/v1/leases", request("10h")).await.expect(201);
    let window = json!({ "nodes": ["n1"], "from": "2026-01-01T01:00:00Z", "until": "2026-01-01T02:00:00Z",
        "reason": "firmware" });
    let made = world.post("/api/v1/windows", window).await.expect(201);
    let made: WindowPut = serde_json::from_value(made).expect("the type of the API");
    let made = made.window.expect("it has not ended");
    assert_eq!((made.id, made.begun, made.leases, made.nodes), (0, false, 1, vec!["n1".to_owned()]));

    // The holder is told, and may not see the operator's record.
    let own = world.send(Some(&member), Method::Get, "/api/v1/audit/records?limit=1000", None).await.expect(200);
    let kinds: Vec<&str> =
        own["records"].as_array().expect("records").iter().filter_map(|record| record["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "lease.window_announced").count(), 1, "{kinds:?}");
    assert!(!kinds.contains(&"window.put"), "{kinds:?}");

    // Nothing is granted or renewed past its start.
    let capped = world.post("/api/v1/leases", request("10h")).await.expect(201);
    assert_eq!((&capped["expires_at"], &capped["capped_by_window_id"]), (&json!("2026-01-01T01:00:00Z"), &json!(0)));
    let lease = before["leases"][0]["id"].as_str().expect("an id");
    let renewal = world.post(&format!("/api/v1/leases/{lease}/renew"), json!({ "ttl": "12h" })).await.expect(409);
    assert_eq!(renewal["code"], "window_reached");
    let claim = json!({ "nodes": ["n1"], "tenant": "physics", "project": "lattice", "user": "ada" });
    world.post("/api/v1/users", json!({ "name": "ada", "tenant": "physics" })).await.expect(201);
    assert_eq!(world.post("/api/v1/claims", claim).await.expect(409)["code"], "node_in_window");

    // At its start the node is drained, and what runs there is revoked with the grace of the pool.
    clock.advance(Span::from_secs(3600));
    let shown = world.until("/api/v1/nodes/n1", |node| node["drained"] == json!(true)).await;
    assert_eq!((&shown["window"]["id"], &shown["window"]["reason"]), (&json!(0), &json!("firmware")));
    let lease = world.get(&format!("/api/v1/leases/{lease}")).await.expect(200);
    assert_eq!(lease["state"], "revoking", "{lease}");
    let denied = world.post("/api/v1/leases", request("10m")).await.expect(409);
    assert_eq!(denied["code"], "no_capacity");
    let resumed = world.post("/api/v1/nodes/n1/resume", json!({})).await.expect(409);
    assert_eq!(resumed["code"], "node_in_window");
    let listed = world.get("/api/v1/windows").await.expect(200);
    assert_eq!((&listed["windows"][0]["begun"], &listed["windows"][0]["nodes"]), (&json!(true), &json!(["n1"])));

    // It can be cancelled, and the node works again.
    world.send(Some(&world.operator), Method::Delete, "/api/v1/windows/window-0", None).await.expect(200);
    let again = world.send(Some(&world.operator), Method::Delete, "/api/v1/windows/0", None).await.expect(404);
    assert_eq!(again["code"], "unknown_window");
    let granted = world.post("/api/v1/leases", request("10m")).await.expect(201);
    assert!(granted.get("capped_by_window_id").is_none(), "{granted}");
    world.stop().await;
}
