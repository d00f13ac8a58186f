//! What is in the events that webhooks get: the same at any time, and nothing of other tenants.

use crate::webhooks::{HOOKS, Receiver, deliver, hook, lease, release, site};
use crate::world::World;
use leasehold_api::Method;
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The body of each of so many events, by ID.
async fn bodies(receiver: &Receiver, count: usize) -> BTreeMap<String, String> {
    let mut bodies = BTreeMap::new();
    for _ in 0..count {
        let delivery = receiver.next().await;
        let id = delivery.json()["id"].as_str().expect("an id").to_owned();
        bodies.insert(id, String::from_utf8(delivery.body.to_vec()).expect("text"));
    }
    bodies
}

/// An event that is sent again, by a later process perhaps, has the same body, although its lease was renewed and has
/// ended meanwhile, and its tenant has another accounting tag.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_record_makes_the_same_event_at_any_time() {
    let (world, receiver) = (site().await, Receiver::start().await);
    let made = hook(&world, &receiver, json!({})).await;
    let held = lease(&world, "physics").await;
    let mut first = bodies(&receiver, 2).await;
    let tag = |tag: &str| json!({ "accounting_tag": tag });
    world.send(Some(&world.operator), Method::Patch, "/api/v1/tenants/physics", Some(tag("cc-2"))).await.expect(200);
    for ttl in ["20m", "30m"] {
        world.post(&format!("/api/v1/leases/{held}/renew"), json!({ "ttl": ttl })).await.expect(200);
        first.extend(bodies(&receiver, 1).await);
    }
    release(&world, &held).await;
    first.extend(bodies(&receiver, 2).await);
    // The nodes have agents that confirm nothing, so these leases are not closed either.
    let gang = json!({ "tenant": "physics", "project": "physics-main", "replicas": 2, "walltime": "1h",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let submitted = world.post("/api/v1/allocations", gang).await.expect(201);
    let id = submitted["id"].as_str().expect("an id");
    // Submitted, placed, started, and two leases granted; then completed, and two leases released.
    first.extend(bodies(&receiver, 5).await);
    world.post(&format!("/api/v1/allocations/{id}/complete"), json!({ "exit_status": 0 })).await.expect(200);
    first.extend(bodies(&receiver, 3).await);

    let from = json!({ "from_sequence": made["sequence"] });
    let again = world.post(&format!("{HOOKS}/biller/replay"), from).await.expect(200);
    assert_eq!(again["delivered"], json!(first.len()), "{again} {first:#?}");
    let second = bodies(&receiver, first.len()).await;
    for (id, body) in &first {
        assert_eq!(second.get(id), Some(body));
    }
    world.stop().await;
}

/// A tenant whose leases are taken away for another learns that it happened, and not for whom.
#[tokio::test(flavor = "multi_thread")]
async fn victims_are_not_told_who_evicted_them() {
    let receiver = Receiver::start().await;
    let world = World::with(|config| {
        config.accounting.enabled = true;
        config.accounting.webhooks.allowed_networks = vec!["127.0.0.0/8".into()];
    })
    .await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "0s" })).await.expect(201);
    let new = json!({ "name": "n1", "pool": "main", "teardown": "immediate", "capacity": { "h100": 4 } });
    world.post("/api/v1/nodes", new).await.expect(201);
    let mut tokens = Vec::new();
    for tenant in ["physics", "chemistry"] {
        world.post("/api/v1/tenants", json!({ "name": tenant, "max_priority": "guaranteed" })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
        let new = json!({ "name": tenant, "role": "tenant_admin", "tenant": tenant });
        tokens.push(world.post("/api/v1/tokens", new).await.expect(201));
    }
    let token = |tenant: usize| tokens[tenant]["secret"].as_str().expect("a secret");
    let new = json!({ "name": "own", "url": receiver.url });
    world.send(Some(token(0)), Method::Post, HOOKS, Some(new)).await.expect(201);
    let gang = json!({ "project": "physics", "walltime": "1h", "requeue": true, "priority": "scavenger",
        "asks": [{ "class": "h100", "quantity": 4 }] });
    world.send(Some(token(0)), Method::Post, "/api/v1/allocations", Some(gang)).await.expect(201);
    let wants = json!({ "project": "chemistry", "ttl": "10m", "priority": "guaranteed",
        "asks": [{ "class": "h100", "quantity": 4 }] });
    let waits = world.send(Some(token(1)), Method::Post, "/api/v1/leases", Some(wants)).await;
    assert!(waits.status == 201 || waits.status == 202, "{}", waits.text);
    let theirs = tokens[1]["token"]["id"].clone();
    assert!(theirs.is_u64(), "{}", tokens[1]);
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "allocation.requeued") {
        let delivery = receiver.next().await;
        let event = delivery.json();
        let text = event.to_string();
        assert!(!text.contains("chemistry"), "{event:#}");
        let by = &event["data"]["identity"]["token_id"];
        assert!(*by == Value::Null || *by != theirs, "{event:#}");
        kinds.push(event["type"].as_str().expect("a type").to_owned());
    }
    assert!(kinds.iter().any(|kind| kind == "lease.revoked"), "{kinds:?}");
    world.stop().await;
}

/// The next event of a type.
async fn next_of(receiver: &Receiver, kind: &str) -> Value {
    loop {
        let event = receiver.next().await.json();
        if event["type"] == kind {
            return event["data"].clone();
        }
    }
}

/// A node turns out to have been lost before what ran there ended: the accounting system is told what it used after all,
/// of a lease by itself as of an allocation.
#[tokio::test(flavor = "multi_thread")]
async fn corrections_after_the_end_are_told() {
    let clock = Arc::new(ManualClock::at(Instant::from_secs(1_767_225_600)));
    let (world, receiver) = (World::of_two_nodes_with(&clock, 8, deliver).await, Receiver::start().await);
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    hook(&world, &receiver, json!({ "events": ["accounting"] })).await;
    let asked = |more: Value| {
        let mut asked = json!({ "tenant": "physics", "project": "lattice",
            "asks": [{ "class": "h100", "quantity": 2 }] });
        more.as_object().expect("an object").iter().for_each(|(key, value)| asked[key] = value.clone());
        asked
    };
    let granted = world.post("/api/v1/leases", asked(json!({ "ttl": "3h" }))).await.expect(201);
    let held = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
    let submitted = world.post("/api/v1/allocations", asked(json!({ "walltime": "3h" }))).await.expect(201);
    let work = submitted["id"].as_str().expect("an id").to_owned();
    clock.advance(Span::from_secs(2 * 3600));
    release(&world, &held).await;
    world.post(&format!("/api/v1/allocations/{work}/complete"), json!({ "exit_status": 0 })).await.expect(200);
    for _ in 0..2 {
        assert_eq!(next_of(&receiver, "allocation.completed").await["gpu_hours"], "4");
    }
    clock.advance(Span::from_secs(600));
    for node in ["n1", "n2"] {
        let lost = json!({ "last_seen": "2026-01-01T01:30:00Z" });
        world.post(&format!("/api/v1/nodes/{node}/lose"), lost).await.expect(200);
    }
    let mut corrected = BTreeMap::new();
    for _ in 0..2 {
        let data = next_of(&receiver, "allocation.corrected").await;
        corrected.insert(data["allocation_id"].as_str().expect("an id").to_owned(), data);
    }
    assert_eq!(corrected.keys().map(String::as_str).collect::<Vec<_>>(), [work.as_str(), held.as_str()]);
    for data in corrected.values() {
        assert_eq!((&data["gpu_hours"], &data["usage_final"]), (&json!("3"), &json!(true)), "{data}");
        assert_eq!((&data["ended_at"], &data["duration_seconds"]), (&json!("2026-01-01T01:30:00Z"), &json!("5400")));
        assert_eq!(data["node_last_seen_at"], "2026-01-01T01:30:00Z");
        assert_eq!((&data["state"], &data["tenant"]), (&json!("completed"), &json!("physics")));
    }
    world.stop().await;
}

/// An attempt that was put back holds nothing beside the one that follows it; its hours still count.
#[tokio::test(flavor = "multi_thread")]
async fn the_resources_of_two_attempts_are_not_added_up() {
    let clock = Arc::new(ManualClock::at(Instant::from_secs(1_767_225_600)));
    let (world, receiver) = (World::of_two_nodes_with(&clock, 8, deliver).await, Receiver::start().await);
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    hook(&world, &receiver, json!({ "events": ["accounting"] })).await;
    let asked = json!({ "tenant": "physics", "project": "lattice", "walltime": "5h", "requeue": true,
        "asks": [{ "class": "h100", "quantity": 2 }] });
    let submitted = world.post("/api/v1/allocations", asked).await.expect(201);
    let work = submitted["id"].as_str().expect("an id").to_owned();
    let started = next_of(&receiver, "allocation.started").await;
    let node = started["resources"]["nodes"][0].as_str().expect("a node").to_owned();
    clock.advance(Span::from_secs(3600));
    world.post(&format!("/api/v1/nodes/{node}/lose"), json!({ "last_seen": "2026-01-01T01:00:00Z" })).await.expect(200);
    let again = next_of(&receiver, "allocation.started").await;
    assert_eq!((&again["attempt"], &again["resources"]["gpus"]), (&json!(2), &json!("2")), "{again}");
    clock.advance(Span::from_secs(3600));
    world.post(&format!("/api/v1/allocations/{work}/complete"), json!({ "exit_status": 0 })).await.expect(200);
    let done = next_of(&receiver, "allocation.completed").await;
    assert_eq!((&done["attempts"], &done["resources"]), (&json!(2), &again["resources"]), "{done}");
    assert_eq!((&done["gpu_hours"], &done["duration_seconds"]), (&json!("4"), &json!("7200")));
    // Nobody said what it wrote: nothing is made up, here or elsewhere.
    assert_eq!(done["storage_bytes_written"], Value::Null, "{done}");
    let detail = world.get(&format!("/api/v1/allocations/{work}")).await.expect(200);
    assert_eq!((&detail["exit_status"], &detail["storage_written"]), (&json!(0), &Value::Null), "{detail}");
    let records = world.get("/api/v1/audit/records?kind=allocation.completed").await.expect(200);
    assert_eq!(records["records"][0]["body"]["storage_written"], Value::Null, "{records}");
    world.stop().await;
}

/// A claim of several nodes is told for each of them, under the key of the node, so that its release cannot overtake it.
#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_each_claimed_node_are_in_order() {
    let clock = Arc::new(ManualClock::at(Instant::from_secs(1_767_225_600)));
    let (world, receiver) = (World::of_two_nodes_with(&clock, 8, deliver).await, Receiver::start().await);
    world.post("/api/v1/tenants", json!({ "name": "physics" })).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    world.post("/api/v1/users", json!({ "name": "claimer", "tenant": "physics" })).await.expect(201);
    hook(&world, &receiver, json!({ "events": ["accounting"] })).await;
    let nodes = json!({ "nodes": ["n1", "n2"] });
    let mut claim = json!({ "tenant": "physics", "project": "lattice", "user": "claimer" });
    claim["nodes"] = nodes["nodes"].clone();
    world.post("/api/v1/claims", claim).await.expect(201);
    world.post("/api/v1/claims/release", nodes).await.expect(200);
    let mut subjects: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for node in ["n1", "n2"] {
        world.post(&format!("/api/v1/nodes/{node}/wipe"), json!({ "clean": true })).await.expect(200);
    }
    for _ in 0..4 {
        let event = receiver.next().await.json();
        let (kind, subject) = (event["type"].as_str().expect("a type"), event["subject"].as_str().expect("a subject"));
        subjects.entry(subject.to_owned()).or_default().push((kind.to_owned(), event["data"]["nodes"].clone()));
    }
    assert_eq!(subjects.len(), 2, "{subjects:?}");
    for (told, node) in subjects.values().zip(["n1", "n2"]) {
        let expected = ["node.claimed", "node.released"].map(|kind| (kind.to_owned(), json!([node])));
        assert_eq!(told, &expected, "{subjects:?}");
    }
    world.stop().await;
}
