//! Waiting over HTTP: heads that have waited too long, and projects that are deprioritised or paused on a pool.

use crate::world::World;
use leasehold_api::Method;
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use serde_json::{Value, json};
use std::sync::Arc;

const BEGAN: Instant = Instant::from_secs(1_767_225_600);

/// Two nodes of four GPUs without agents, and two tenants.
async fn cluster(clock: &Arc<ManualClock>) -> World {
    let world = World::of_two_nodes(clock, 4).await;
    for tenant in ["physics", "chemistry"] {
        world.post("/api/v1/tenants", json!({ "name": tenant })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
    }
    world
}

fn gang(tenant: &str, gpus: u64, replicas: u32, walltime: &str) -> Value {
    json!({ "tenant": tenant, "project": tenant, "pool": "main", "replicas": replicas, "walltime": walltime,
            "asks": [{ "class": "h100", "quantity": gpus }] })
}

async fn submit(world: &World, gang: Value) -> String {
    let submitted = world.post("/api/v1/allocations", gang).await;
    assert!(submitted.status == 201 || submitted.status == 202, "{}", submitted.text);
    submitted.json()["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_waits_too_long_is_protected_or_says_why_not() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let world = cluster(&clock).await;
    assert_eq!(world.get("/api/v1/settings").await.expect(200)["head_wait_max"], "1h");
    world.put("/api/v1/settings", json!({ "head_wait_max": "10m" })).await.expect(200);
    assert_eq!(world.get("/api/v1/settings").await.expect(200)["head_wait_max"], "10m");
    let refused = world.put("/api/v1/settings", json!({ "head_wait_max": "0s" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "setting_out_of_range"));

    submit(&world, gang("chemistry", 4, 1, "2h")).await;
    let endless = json!({ "tenant": "chemistry", "project": "chemistry", "ttl": "20h",
                          "asks": [{ "class": "h100", "quantity": 4 }] });
    let endless = world.post("/api/v1/leases", endless).await.expect(201)["leases"][0]["id"].clone();
    let id = submit(&world, gang("physics", 4, 2, "1h")).await;
    let path = format!("/api/v1/allocations/{id}");
    clock.advance(Span::from_secs(720));
    world.put("/api/v1/settings", json!({ "grace_default": "1m" })).await.expect(200);
    let shown = world.get(&path).await.expect(200);
    assert_eq!(shown["waiting"]["endless_lease_id"], endless, "{shown}");
    let why = world.get(&format!("{path}/explain")).await.expect(200);
    let words = why["why"].as_str().expect("words");
    assert!(words.contains("has neither a walltime nor a maximum lifetime"), "{words}");
    // A tenant does not see leases of others.
    let token = json!({ "name": "p", "role": "tenant_admin", "tenant": "physics" });
    let token = world.post("/api/v1/tokens", token).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    let shown = world.send(Some(&token), Method::Get, &path, None).await.expect(200);
    assert_eq!(shown["waiting"]["endless_lease_id"], Value::Null, "{shown}");
    assert!(shown["waiting"]["detail"].as_str().expect("words").contains("a lease of another tenant"), "{shown}");

    // With a longest lifetime every lease has a certain end.
    world.put("/api/v1/pools/main", json!({ "lifetime_max": { "standard": "24h" } })).await.expect(200);
    clock.advance(Span::from_secs(60));
    world.put("/api/v1/settings", json!({ "grace_default": "2m" })).await.expect(200);
    let shown = world.get(&path).await.expect(200);
    assert_eq!(shown["waiting"]["protected_on"], json!(["n1", "n2"]), "{shown}");
    let records = world.get("/api/v1/audit/records?kind=head.protected").await.expect(200);
    let record = &records["records"][0]["body"];
    assert_eq!((&record["allocation_id"], &record["nodes"][0]["node"]), (&json!(id), &json!("n1")), "{record}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_are_deprioritised_and_paused_on_pools() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let world = cluster(&clock).await;
    submit(&world, gang("physics", 4, 2, "1h")).await;
    let first = submit(&world, gang("chemistry", 4, 1, "1h")).await;
    let second = submit(&world, gang("physics", 4, 1, "1h")).await;
    let access = |access: &str| json!({ "pool": "main", "access": access });
    let path = "/api/v1/projects/chemistry/pool-access";
    let put = world.put(path, access("deprioritised")).await.expect(200);
    assert_eq!(put["project"]["pool_access"], json!([{ "pool": "main", "access": "deprioritised" }]), "{put}");
    let why = world.get(&format!("/api/v1/allocations/{first}/explain")).await.expect(200);
    assert_eq!((&why["queue"]["deprioritised"], &why["queue"]["position"]), (&json!(true), &json!(2)), "{why}");
    let why = world.get(&format!("/api/v1/allocations/{second}/explain")).await.expect(200);
    assert_eq!((&why["queue"]["deprioritised"], &why["queue"]["position"]), (&Value::Null, &json!(1)), "{why}");

    world.put(path, access("paused")).await.expect(200);
    let refused = world.post("/api/v1/allocations", gang("chemistry", 1, 1, "1h")).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "pool_paused"));
    let waits = world.get(&format!("/api/v1/allocations/{first}")).await.expect(200);
    assert_eq!(waits["waiting"]["reason"], "paused", "{waits}");
    let put = world.put(path, access("normal")).await.expect(200);
    assert_eq!(put["project"]["pool_access"], Value::Null, "{put}");
    let unknown = world.put(path, json!({ "pool": "nowhere", "access": "paused" })).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
    world.stop().await;
}
