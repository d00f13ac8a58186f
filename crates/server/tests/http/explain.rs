//! Why: grants, denials, waits and evictions explained over HTTP, and decided again.

use crate::world::{AllocationNumber as _, World};
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
    let id = submitted["id"].allocation();
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
    let no_decision = world.get("/api/v1/audit/decisions/0").await;
    assert_eq!((no_decision.status, no_decision.code().as_str()), (404, "not_a_decision"));
    let nothing = world.get("/api/v1/audit/decisions/99999").await;
    assert_eq!((nothing.status, nothing.code().as_str()), (404, "record_not_found"));
    let issued =
        world.post("/api/v1/tokens", json!({ "name": "c", "role": "tenant_admin", "tenant": "chemistry" })).await;
    let issued = issued.expect(201);
    let theirs = issued["secret"].as_str().expect("a secret");
    let foreign = format!("/api/v1/leases/{lease}/explain");
    world.send(Some(theirs), Method::Get, &foreign, None).await.expect(404);
    world.send(Some(theirs), Method::Get, &format!("/api/v1/audit/decisions/{sequence}"), None).await.expect(404);
}

/// Four nodes of eight in two racks, without agents, and two tenants that may ask for anything.
async fn racks() -> World {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "0s" })).await.expect(201);
    for (node, rack) in [("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")] {
        let new = json!({ "name": node, "pool": "main", "zone": "z", "rack": rack, "teardown": "immediate",
            "capacity": { "h100": 8 } });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
    for tenant in ["physics", "chemistry"] {
        world.post("/api/v1/tenants", json!({ "name": tenant, "max_priority": "guaranteed" })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
    }
    world
}

fn gang(tenant: &str, gpus: u64, replicas: u32, more: &Value) -> Value {
    let mut asked = asked(tenant, gpus, &json!({ "replicas": replicas, "walltime": "1h" }));
    asked.as_object_mut().expect("an object").remove("ttl");
    for (key, value) in more.as_object().expect("an object") {
        asked[key] = value.clone();
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn each_replica_is_explained_by_what_it_found() {
    let world = racks().await;
    let submitted = world.post("/api/v1/allocations", gang("physics", 8, 3, &json!({}))).await.expect(201);
    let replicas = submitted["replicas"].as_array().expect("replicas");
    for (number, replica) in (1..).zip(replicas) {
        let lease = replica["leases"][0]["id"].as_str().expect("an id");
        let why = world.get(&format!("/api/v1/leases/{lease}/explain")).await.expect(200);
        assert_eq!((&why["replica"], &why["replica_count"]), (&json!(number), &json!(3)), "{why}");
        assert_eq!(why["candidates"][0]["node"], replica["node"], "{why}");
        assert_eq!(why["candidate_count"], 5 - number, "{why}");
        assert_eq!(why["candidates"][0]["locality"] == "0.0000", number == 1, "{why}");
        let text = why["why"].as_str().expect("words");
        assert!(text.contains(replica["node"].as_str().expect("a name")), "{why}");
    }
    let id = submitted["id"].allocation();
    let why = world.get(&format!("/api/v1/allocations/{id}/explain")).await.expect(200);
    let told: Vec<&Value> = why["replicas"].as_array().expect("replicas").iter().map(|one| &one["node"]).collect();
    assert_eq!(told, replicas.iter().map(|one| &one["node"]).collect::<Vec<_>>(), "{why}");
    assert_eq!((&why["replicas"][1]["deciding"], &why["replayed"]), (&json!("locality"), &json!("same")), "{why}");

    // All replicas within a rack that holds them all, though a better first place lies elsewhere.
    let together = gang("physics", 4, 2, &json!({ "together": "rack" }));
    let submitted = world.post("/api/v1/allocations", together).await.expect(201);
    let last = submitted["replicas"][1]["leases"][0]["id"].as_str().expect("an id");
    let why = world.get(&format!("/api/v1/leases/{last}/explain")).await.expect(200);
    assert_eq!(why["candidates"][0]["node"], submitted["replicas"][1]["node"], "{why}");

    // The whole gang is what a quota judges.
    let quota =
        json!({ "tenant": "chemistry", "class": "h100", "measure": "quanta", "limit": { "type": "hard", "limit": 8 } });
    world.post("/api/v1/quotas", quota).await.expect(201);
    let denied = world.post("/api/v1/allocations", gang("chemistry", 4, 3, &json!({}))).await.expect(409);
    let sequence = denied["sequence"].as_u64().expect("a sequence");
    let why = world.get(&format!("/api/v1/audit/decisions/{sequence}")).await.expect(200);
    let check = &why["quotas"][0];
    assert_eq!((&check["requested"], &check["said"]), (&json!(12), &json!("refused")), "{why}");
    let exact = ["used_exact", "requested_exact", "limit_exact", "unit"].map(|name| check[name].clone());
    assert_eq!(exact, [json!("0"), json!("12"), json!("8"), json!("GPU")], "{why}");
    assert_eq!((&denied["requested"], &why["deciding"]), (&json!("12"), &Value::Null), "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_promised_to_the_first_is_no_candidate() {
    let world = racks().await;
    let guaranteed = json!({ "priority": "guaranteed" });
    world.post("/api/v1/allocations", gang("physics", 8, 3, &guaranteed)).await.expect(201);
    let head = world.post("/api/v1/allocations", gang("physics", 8, 4, &guaranteed)).await.expect(201);
    let denied = world.post("/api/v1/leases", asked("chemistry", 4, &json!({ "ttl": "5h" }))).await.expect(409);
    let path = format!("/api/v1/audit/decisions/{}", denied["sequence"]);
    let why = world.get(&path).await.expect(200);
    assert_eq!((&why["replayed"], &why["candidate_count"]), (&json!("same"), &json!(0)), "{why}");
    assert_eq!(why["unfit"], json!({ "capacity": 3, "promised": 1 }), "{why}");
    // So it is of one that waits behind it; the head itself lacks a place for its second replica.
    let behind = world.post("/api/v1/allocations", gang("chemistry", 4, 1, &json!({ "walltime": "5h" }))).await;
    let behind = behind.expect(201)["id"].allocation();
    let why = world.get(&format!("/api/v1/allocations/{behind}/explain")).await.expect(200);
    assert_eq!((&why["outcome"], &why["unfit"]["promised"]), (&json!("waits"), &json!(1)), "{why}");
    assert_eq!(why["deciding"], Value::Null, "{why}");
    let why = world.get(&format!("/api/v1/allocations/{}/explain", head["id"].allocation())).await.expect(200);
    assert_eq!((&why["replica"], &why["candidate_count"]), (&json!(2), &json!(0)), "{why}");
    assert!(why["queue"]["starts_by"].is_string(), "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_of_a_decision_leads_to_it() {
    let world = racks().await;
    let submitted = world.post("/api/v1/allocations", gang("physics", 8, 2, &json!({}))).await.expect(201);
    let first = submitted["sequence"].as_u64().expect("a sequence");
    for part in first + 1..=first + 3 {
        let why = world.get(&format!("/api/v1/audit/decisions/{part}")).await.expect(200);
        assert_eq!((&why["sequence"], &why["part"]), (&json!(first), &json!(part)), "{why}");
        assert_eq!(why["replayed"], "same", "{why}");
    }
    let why = world.get(&format!("/api/v1/audit/decisions/{first}")).await.expect(200);
    assert_eq!(why["part"], Value::Null, "{why}");
    // What follows from a command that decides nothing is told as that.
    let cancelled = world.post(&format!("/api/v1/allocations/{first}/cancel"), json!({})).await.expect(200);
    let cancelled = cancelled["sequence"].as_u64().expect("a sequence");
    for part in cancelled..=cancelled + 1 {
        let answer = world.get(&format!("/api/v1/audit/decisions/{part}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "not_a_decision"), "{}", answer.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_sees_its_own_nodes_and_by_which_weights_they_were_chosen() {
    let world = racks().await;
    let granted = world.post("/api/v1/leases", asked("physics", 3, &json!({}))).await.expect(201);
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    let new = json!({ "name": "p", "role": "tenant_admin", "tenant": "physics" });
    let token = world.post("/api/v1/tokens", new).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    let path = format!("/api/v1/leases/{lease}/explain");
    let why = world.send(Some(&token), Method::Get, &path, None).await.expect(200);
    let node = granted["node"].as_str().expect("a name");
    assert!(why["why"].as_str().expect("words").contains(node), "{why}");
    assert_eq!((&why["candidates"][0]["node"], &why["candidates"][1]["node"]), (&json!(node), &Value::Null), "{why}");
    assert_eq!(why["candidates"][0]["weighed"]["pressure"], "0.500", "{why}");
    let node = world.get(&format!("/api/v1/nodes/{node}/explain")).await.expect(200);
    assert_eq!(node["heat"], 0, "{node}");
    let lost = json!({ "last_seen": "2020-01-01T00:00:00Z" });
    world.post("/api/v1/nodes/n4/lose", lost).await.expect(200);
    let node = world.get("/api/v1/nodes/n4/explain").await.expect(200);
    assert!(node["why"].as_str().expect("words").contains("an operator declared it lost"), "{node}");
    assert_eq!(node["heat"], world.get("/api/v1/nodes/n4").await.expect(200)["heat"], "{node}");
    world.stop().await;
}
