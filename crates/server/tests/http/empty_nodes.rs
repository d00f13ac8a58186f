//! `node.empty`: the record that a node has been empty for as long as `engine.idle_node_after` says.

use crate::world::World;
use leasehold_model::Span;
use serde_json::{Value, json};

const RECORDS: &str = "/api/v1/audit/records?kind=node.empty&limit=1000";

fn count(shown: &Value) -> usize {
    shown["records"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_node_is_recorded_once_each_time_it_became_empty() {
    let world = World::with(|config| config.engine.idle_node_after = Some(Span::from_millis(1))).await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
    let node = json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": { "h100": 8 } });
    world.post("/api/v1/nodes", node).await.expect(201);
    let first = world.until(RECORDS, |shown| count(shown) == 1).await;
    assert_eq!(first["records"][0]["body"]["node"], "n1");
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "physics", "tenant": "physics" })).await.expect(201);
    let asked = json!({ "tenant": "physics", "project": "physics", "ttl": "1h",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let granted = world.post("/api/v1/leases", asked).await.expect(201);
    let id = granted["leases"][0]["id"].as_str().expect("an id");
    world.post(&format!("/api/v1/leases/{id}/release"), json!({})).await.expect(200);
    // Since the release; the first time is not recorded again.
    let again = world.until(RECORDS, |shown| count(shown) >= 2).await;
    assert_eq!(count(&again), 2, "{again}");
    let since = |place: usize| again["records"][place]["body"]["since"].as_str().map(str::to_owned);
    assert!(since(0) < since(1), "{again}");
    world.stop().await;
}
