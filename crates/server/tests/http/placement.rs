//! What placement is told and shows over HTTP: weights, labels, heat, and what a workload depends on.

use crate::world::World;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const POOL: &str = "/api/v1/pools/main";

#[tokio::test(flavor = "multi_thread")]
async fn weights_are_set_shown_and_cleared() {
    let world = World::furnished().await;
    assert_eq!(world.get(POOL).await.expect(200)["weights"], Value::Null);
    let weights = json!({ "pressure": "0.25", "fit": 0.25, "locality": 0, "fragmentation": "0.500" });
    let put = world.put(POOL, json!({ "weights": weights })).await.expect(200);
    let shown = json!({ "pressure": "0.250", "fit": "0.250", "locality": "0.000", "fragmentation": "0.500" });
    assert_eq!(put["pool"]["weights"], shown);
    // What is not named is kept, null clears.
    assert_eq!(world.put(POOL, json!({ "grace": "1m" })).await.expect(200)["pool"]["weights"], shown);
    assert_eq!(world.put(POOL, json!({ "weights": null })).await.expect(200)["pool"]["weights"], Value::Null);
    let made = json!({ "name": "other", "weights": weights });
    assert_eq!(world.post("/api/v1/pools", made).await.expect(201)["pool"]["weights"], shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_on_evictions_and_requeues_are_set_shown_and_cleared() {
    let world = World::furnished().await;
    let shown = |pool: &Value| (pool["min_runtime_before_eviction"].clone(), pool["requeue_limit"].clone());
    assert_eq!(shown(&world.get(POOL).await.expect(200)), (json!("0s"), json!(10)));
    let limits = json!({ "min_runtime_before_eviction": "10m", "requeue_limit": 3 });
    assert_eq!(shown(&world.put(POOL, limits.clone()).await.expect(200)["pool"]), (json!("10m"), json!(3)));
    // What is not named is kept, null clears.
    let kept = world.put(POOL, json!({ "min_runtime_before_eviction": null })).await.expect(200);
    assert_eq!(shown(&kept["pool"]), (json!("0s"), json!(3)));
    let cleared = world.put(POOL, json!({ "requeue_limit": null })).await.expect(200);
    assert_eq!(shown(&cleared["pool"]), (json!("0s"), json!(10)));
    let too_long = world.put(POOL, json!({ "min_runtime_before_eviction": "9000d" })).await;
    assert_eq!((too_long.status, too_long.code()), (422, "setting_out_of_range".to_owned()));
    let made = json!({ "name": "other", "min_runtime_before_eviction": "10m", "requeue_limit": 3 });
    assert_eq!(shown(&world.post("/api/v1/pools", made).await.expect(201)["pool"]), (json!("10m"), json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_that_cannot_be_are_refused() {
    let world = World::furnished().await;
    let refused = async |weights: Value| {
        let answer = world.put(POOL, json!({ "weights": weights })).await;
        (answer.status, answer.code())
    };
    let weights = |pressure: Value| json!({ "pressure": pressure, "fit": 0.2, "locality": 0.2, "fragmentation": 0.1 });
    assert_eq!(refused(weights(json!(0.4))).await, (422, "bad_weights".to_owned()));
    assert_eq!(refused(weights(json!("0.501"))).await, (422, "bad_weights".to_owned()));
    for wrong in [json!(-0.5), json!("-0.5"), json!(0.5001), json!(1.5), json!("half"), json!(null)] {
        let (status, code) = refused(weights(wrong.clone())).await;
        assert_eq!((status, code.as_str()), (422, "bad_body"), "{wrong}");
    }
    assert_eq!(refused(json!({ "pressure": 1 })).await.1, "bad_body");
    assert_eq!(world.get(POOL).await.expect(200)["weights"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_to_a_node_with_its_labels() {
    let world = World::furnished().await;
    let labelled = json!({ "name": "gold", "pool": "main", "capacity": { "h100": 1 }, "labels": { "tier": "gold" } });
    world.post("/api/v1/nodes", labelled).await.expect(201);
    let request = |value: &str| {
        json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "labels": { "tier": value },
            "asks": [{ "class": "h100", "quantity": 1 }] })
    };
    assert_eq!(world.post("/api/v1/leases", request("gold")).await.expect(201)["node"], "gold");
    let nowhere = world.post("/api/v1/leases", request("silver")).await;
    assert_eq!((nowhere.status, nowhere.code()), (422, "impossible_labels".to_owned()));
    // The one that has it is full: valid, and denied.
    let full = world.post("/api/v1/leases", request("gold")).await;
    assert_eq!(full.code(), "no_capacity");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_lost_is_hot_for_a_while() {
    let world = World::furnished().await;
    assert_eq!(world.get("/api/v1/settings").await.expect(200)["heat_half_life"], "10m");
    world.put("/api/v1/settings", json!({ "heat_half_life": "1h" })).await.expect(200);
    assert_eq!(world.get("/api/v1/settings").await.expect(200)["heat_half_life"], "1h");
    let out_of_range = world.put("/api/v1/settings", json!({ "heat_half_life": "10ms" })).await;
    assert_eq!(out_of_range.code(), "setting_out_of_range");
    assert_eq!(world.get("/api/v1/nodes/n1").await.expect(200)["heat"], 0);
    world.post("/api/v1/nodes/n1/lose", json!({})).await.expect(200);
    let heat = world.get("/api/v1/nodes/n1").await.expect(200)["heat"].as_u64().expect("a number");
    assert!((450..=500).contains(&heat), "{heat}");
}

/// A workload that was seen is known after a while, and what was known is sealed with the grant.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_seals_what_the_workload_depends_on() {
    let world = World::furnished().await;
    let node = json!({ "name": "quick", "pool": "main", "capacity": { "h100": 1 }, "teardown": "immediate",
        "labels": { "quick": "yes" } });
    world.post("/api/v1/nodes", node).await.expect(201);
    let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "workload": "train",
        "labels": { "quick": "yes" }, "asks": [{ "class": "h100", "quantity": 1 }] });
    let began = Instant::now();
    loop {
        let granted = world.post("/api/v1/leases", request.clone()).await.expect(201);
        let lease = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
        let record = world.get(&format!("/api/v1/leases/{lease}/history")).await.expect(200)["records"][0].clone();
        let body = &record["body"];
        assert_eq!(body["weights"], "spread", "{record}");
        if !body["profile"].is_null() {
            assert_eq!(body["profile"]["gpu"], "critical", "all of its cost is GPUs");
            assert_eq!(body["profile"]["mem"], "unused");
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "nothing was learned: {record}");
        world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    }
}

/// An agent reports levels; heat follows from them, upwards only.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_report_heat() {
    let world = World::furnished().await;
    world.put("/api/v1/settings", json!({ "heat_half_life": "1d" })).await.expect(200);
    let heat = async || world.get("/api/v1/nodes/n1").await.expect(200)["heat"].as_u64().expect("a number");
    let agent = json!({ "instance": "0123456789abcdef0123456789abcdef" });
    let registered = world.post("/api/v1/nodes/n1/agent", agent).await;
    let generation = registered.json()["generation"].as_u64().expect("a generation");
    let beat = async |condition: Value| {
        let beat = json!({ "generation": generation, "condition": condition });
        world.post("/api/v1/nodes/n1/heartbeat", beat).await
    };
    for wrong in
        [json!({ "heat": -100 }), json!({ "load": -1 }), json!({ "errors": "cool" }), json!({ "throttled": -1 })]
    {
        let told = beat(wrong.clone()).await.expect(422);
        assert_eq!(told["code"], "bad_body", "{wrong}: {told}");
        let field = wrong.as_object().and_then(|said| said.keys().next()).expect("one field");
        assert_eq!(told["field"], format!("condition.{field}"), "{told}");
    }
    assert_eq!(heat().await, 0);
    beat(json!({ "load": "high", "errors": "high" })).await.expect(200);
    assert_eq!(heat().await, 300);
    beat(json!({})).await.expect(200);
    assert_eq!(heat().await, 300, "levels that fall take nothing");
}
