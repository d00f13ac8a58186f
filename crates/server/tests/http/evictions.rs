//! Evictions explained over HTTP: to those who asked, to those who fell, and to nobody else; and how leases end otherwise.

use crate::world::{AllocationNumber as _, World};
use leasehold_api::Method;
use serde_json::{Value, json};

/// Two nodes of four without agents, an hour of grace, and three tenants.
async fn cluster() -> World {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "1h" })).await.expect(201);
    for node in ["n1", "n2"] {
        let new = json!({ "name": node, "pool": "main", "teardown": "immediate", "capacity": { "h100": 4 } });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
    for tenant in ["physics", "chemistry", "biology"] {
        world.post("/api/v1/tenants", json!({ "name": tenant, "max_priority": "guaranteed" })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
    }
    world
}

async fn token(world: &World, tenant: &str) -> String {
    let new = json!({ "name": tenant, "role": "tenant_admin", "tenant": tenant });
    let issued = world.post("/api/v1/tokens", new).await.expect(201);
    issued["secret"].as_str().expect("a secret").to_owned()
}

/// The id of a lease that is granted.
async fn hold(world: &World, tenant: &str, gpus: u64, node: &str) -> String {
    let request = json!({ "tenant": tenant, "project": tenant, "ttl": "2h", "priority": "scavenger", "node": node,
        "asks": [{ "class": "h100", "quantity": gpus }] });
    let granted = world.post("/api/v1/leases", request).await.expect(201);
    granted["leases"][0]["id"].as_str().expect("an id").to_owned()
}

async fn see(world: &World, token: &str, path: &str) -> Value {
    world.send(Some(token), Method::Get, path, None).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_is_told_to_its_parties_from_what_was_sealed() {
    let world = cluster().await;
    let [first, second] = [hold(&world, "physics", 2, "n1").await, hold(&world, "biology", 2, "n1").await];
    let other = hold(&world, "physics", 4, "n2").await;
    let request = json!({ "tenant": "chemistry", "project": "chemistry", "ttl": "10m", "priority": "guaranteed",
        "asks": [{ "class": "h100", "quantity": 4 }] });
    // Elsewhere a single lease would do, so that is what falls; it is a gang of fewer.
    world.post(&format!("/api/v1/leases/{other}/renew"), json!({ "ttl": "3h" })).await.expect(200);
    world.post("/api/v1/nodes/n2/drain", json!({})).await.expect(200);
    let waits = world.post("/api/v1/leases", request).await.expect(202);
    let id = waits["id"].allocation();
    let decided = world.until("/api/v1/audit/records?kind=preemption.decided", |found| !found["records"][0].is_null());
    let by = decided.await["records"][0]["sequence"].as_u64().expect("a sequence");
    let [physics, chemistry, biology] =
        [token(&world, "physics").await, token(&world, "chemistry").await, token(&world, "biology").await];
    let decision = format!("/api/v1/audit/decisions/{by}");

    // Its victims, told while they have time to get ready.
    let path = format!("/api/v1/leases/{first}/explain");
    let why = see(&world, &physics, &path).await;
    let ending = &why["ending"];
    assert_eq!((&ending["how"], &ending["preempted_by"]), (&json!("preempted"), &json!(by)), "{why}");
    assert_eq!((&ending["priority"], &ending["grace"]), (&json!("scavenger"), &json!("1h")), "{why}");
    assert!(ending["grace_ends_at"].is_string() && ending["remaining"].is_string(), "{why}");
    let words = ending["why"].as_str().expect("words");
    assert!(words.contains("guaranteed request of another tenant") && words.contains("scavenger"), "{words}");
    assert!(!why.to_string().contains("chemistry") && !why.to_string().contains("biology"), "{why}");
    let shown = see(&world, &physics, &format!("/api/v1/leases/{first}")).await;
    assert_eq!((&shown["state"], &shown["revocation"]["reason"]), (&json!("revoking"), &json!("preempted")), "{shown}");
    assert_eq!(shown["grace_ends_at"], shown["revocation"]["grace_ends_at"], "{shown}");
    let told = see(&world, &physics, &decision).await;
    assert_eq!((&told["outcome"], &told["replayed"]), (&json!("evicted"), &json!("same")), "{told}");
    let victims = told["decided"]["victims"].as_array().expect("victims");
    assert_eq!((victims.len(), &victims[0]["lease_id"], &victims[0]["node"]), (1, &json!(first), &json!("n1")));
    assert_eq!(told["decided"]["requester"], "another tenant");
    assert_eq!((&told["decided"]["allocation_id"], &told["quotas"]), (&Value::Null, &json!([])), "{told}");
    assert!(!told.to_string().contains("chemistry") && !told.to_string().contains("biology"), "{told}");
    // An operator knows who it was, and so does whoever asked; strangers learn that there is nothing.
    let why = world.get(&path).await.expect(200);
    assert!(why["ending"]["why"].as_str().expect("words").contains("chemistry"), "{why}");
    world.post("/api/v1/tenants", json!({ "name": "stranger" })).await.expect(201);
    let stranger = token(&world, "stranger").await;
    assert_eq!(world.send(Some(&stranger), Method::Get, &decision, None).await.status, 404);

    // The one that waits sees its victims, all of them, whoever is gone already.
    world.post(&format!("/api/v1/leases/{second}/ready"), json!({})).await.expect(200);
    let path = format!("/api/v1/allocations/{id}/explain");
    let why = see(&world, &chemistry, &path).await;
    assert_eq!((&why["outcome"], &why["decided"]["sequence"]), (&json!("waits"), &json!(by)), "{why}");
    let victims = why["decided"]["victims"].as_array().expect("victims");
    let told: Vec<(&Value, &Value)> = victims.iter().map(|one| (&one["tenant"], &one["gone"])).collect();
    assert_eq!(told, [(&json!("another tenant"), &Value::Null), (&json!("another tenant"), &json!(true))], "{why}");
    assert!(victims.iter().all(|one| one["lease_id"].is_null()), "{why}");
    assert_eq!((&why["evictions"], &why["candidates"]), (&json!([]), &json!([])), "{why}");
    assert_eq!((&why["decided"]["nodes"], &why["queue"]["position"]), (&json!(["n1"]), &json!(1)), "{why}");
    assert!(!why.to_string().contains("physics") && !why.to_string().contains("biology"), "{why}");

    // It starts where they were, though by then there is a better place.
    world.post("/api/v1/nodes/n2/resume", json!({})).await.expect(200);
    world.post(&format!("/api/v1/leases/{other}/release"), json!({})).await.expect(200);
    world.post(&format!("/api/v1/leases/{first}/ready"), json!({})).await.expect(200);
    let placed = world.until(&format!("/api/v1/allocations/{id}"), |found| found["state"] == "running").await;
    let own = placed["attempts"][0]["replicas"][0]["leases"][0]["id"].as_str().expect("an id").to_owned();
    let records = world.get("/api/v1/audit/records?kind=allocation.placed").await.expect(200);
    let sequence = &records["records"][0]["sequence"];
    for path in [path, format!("/api/v1/leases/{own}/explain"), format!("/api/v1/audit/decisions/{sequence}")] {
        let why = see(&world, &chemistry, &path).await;
        assert_eq!((&why["outcome"], &why["replayed"]), (&json!("granted"), &json!("same")), "{path} {why}");
        let words = why["why"].as_str().expect("words");
        assert!(words.contains("on n1") && words.contains(&format!("record {by}")), "{words}");
        assert_eq!((&why["candidates"], &why["evictions"], &why["deciding"]), (&json!([]), &json!([]), &Value::Null));
        assert_eq!(why["decided"]["victims"].as_array().expect("victims").len(), 2, "{why}");
    }
    let told = see(&world, &chemistry, &decision).await;
    assert_eq!(
        (&told["outcome"], &told["decided"]["allocation_id"]),
        (&json!("evicts"), &json!(format!("alloc-{id}"))),
        "{told}"
    );

    // Long after, its victims can still be told.
    let why = see(&world, &biology, &format!("/api/v1/leases/{second}/explain")).await;
    assert_eq!((&why["ending"]["how"], &why["ending"]["preempted_by"]), (&json!("preempted"), &json!(by)), "{why}");
    assert!(why["ending"]["ended_at"].is_string(), "{why}");
    let shown = see(&world, &biology, &format!("/api/v1/leases/{second}")).await;
    assert_eq!((&shown["state"], &shown["revocation"]["preempted_by"]), (&json!("closed"), &json!(by)), "{shown}");
    let why = see(&world, &physics, &format!("/api/v1/leases/{other}/explain")).await;
    assert_eq!(why["ending"]["how"], "released", "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_is_told_how_its_attempts_ended() {
    let world = cluster().await;
    let gang = json!({ "tenant": "physics", "project": "physics", "replicas": 2, "walltime": "1h", "requeue": true,
        "priority": "scavenger", "asks": [{ "class": "h100", "quantity": 4 }] });
    let victim = world.post("/api/v1/allocations", gang).await.expect(201)["id"].allocation();
    let request = json!({ "tenant": "physics", "project": "physics", "ttl": "10m", "priority": "guaranteed",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let waits = world.post("/api/v1/leases", request).await.expect(202)["id"].allocation();
    let path = format!("/api/v1/allocations/{victim}/explain");
    let shown = format!("/api/v1/allocations/{victim}");
    let revoked = world.until(&shown, |found| !found["attempts"][0]["revocation"].is_null()).await;
    let attempt = &revoked["attempts"][0];
    assert_eq!(attempt["revocation"]["reason"], "preempted", "{revoked}");
    assert_eq!(attempt["replicas"][0]["grace_ends_at"], attempt["revocation"]["grace_ends_at"], "{revoked}");
    let why = world.get(&path).await.expect(200);
    assert_eq!((&why["outcome"], &why["ending"]["how"]), (&json!("granted"), &json!("preempted")), "{why}");
    // Within one tenant nothing is hidden.
    let own = token(&world, "physics").await;
    let told = see(&world, &own, &path).await;
    assert!(told["ending"]["why"].as_str().expect("words").contains("request of physics"), "{told}");
    // It gives its leases back to the one that evicts it, waits, and is told why it waits and why it fell.
    for replica in attempt["replicas"].as_array().expect("replicas") {
        let lease = replica["leases"][0]["id"].as_str().expect("an id");
        world.post(&format!("/api/v1/leases/{lease}/ready"), json!({})).await.expect(200);
    }
    world.until(&shown, |found| found["state"] == "pending").await;
    let why = world.get(&path).await.expect(200);
    assert_eq!((&why["outcome"], &why["ending"]["how"]), (&json!("waits"), &json!("preempted")), "{why}");
    world.until(&format!("/api/v1/allocations/{waits}"), |found| found["state"] == "running").await;
    world.post(&format!("/api/v1/allocations/{waits}/complete"), json!({})).await.expect(200);
    world.until(&shown, |found| found["state"] == "running").await;
    world.post(&format!("/api/v1/allocations/{victim}/complete"), json!({ "exit_status": 3 })).await.expect(200);
    // Over, it is explained by its last attempt.
    let why = world.get(&path).await.expect(200);
    assert!(why["why"].as_str().expect("words").starts_with("Attempt 2"), "{why}");
    assert_eq!(why["ending"]["how"], "failed", "{why}");
    assert!(why["ending"]["why"].as_str().expect("words").contains("exit status 3"), "{why}");
    world.stop().await;
}

/// Gangs fall whole: the one that waits learns where it will lie itself, not where the rest of its victims lie.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_gang_to_fall_learns_its_own_place_only() {
    let world = cluster().await;
    let gang = json!({ "tenant": "physics", "project": "physics", "replicas": 2, "walltime": "1h",
        "priority": "scavenger", "asks": [{ "class": "h100", "quantity": 4 }] });
    world.post("/api/v1/allocations", gang).await.expect(201);
    let request = json!({ "tenant": "chemistry", "project": "chemistry", "ttl": "10m", "priority": "guaranteed",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let waits = world.post("/api/v1/leases", request).await.expect(202)["id"].allocation();
    let path = format!("/api/v1/allocations/{waits}");
    let shown = world.until(&path, |found| found["waiting"]["reason"] == "victims").await;
    assert_eq!(shown["waiting"]["nodes"], json!(["n1", "n2"]), "{shown}");
    let own = token(&world, "chemistry").await;
    for path in [path.clone(), format!("{path}/explain")] {
        let shown = see(&world, &own, &path).await.to_string();
        assert!(shown.contains("n1") && !shown.contains("n2"), "{shown}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_end_has_its_reason() {
    let world = cluster().await;
    let [revoked, lost] = [hold(&world, "physics", 1, "n1").await, hold(&world, "physics", 1, "n2").await];
    world.post(&format!("/api/v1/leases/{revoked}/revoke"), json!({ "reason": "budget" })).await.expect(200);
    world.post("/api/v1/nodes/n2/lose", json!({ "last_seen": "2100-01-01T00:00:00Z" })).await.expect(422);
    world.post("/api/v1/nodes/n2/lose", json!({})).await.expect(200);
    for (lease, how) in [(revoked, "budget"), (lost, "node_lost")] {
        let why = world.get(&format!("/api/v1/leases/{lease}/explain")).await.expect(200);
        assert_eq!(why["ending"]["how"], how, "{why}");
        let shown = world.get(&format!("/api/v1/leases/{lease}")).await.expect(200);
        assert_eq!(shown["revocation"]["reason"], how, "{shown}");
    }
    let gang = json!({ "tenant": "physics", "project": "physics", "walltime": "1ms",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let id = world.post("/api/v1/allocations", gang).await.expect(201)["id"].allocation();
    let over = world.until(&format!("/api/v1/allocations/{id}"), |found| found["state"] == "failed").await;
    let why = world.get(&format!("/api/v1/allocations/{id}/explain")).await.expect(200);
    assert_eq!(why["ending"]["how"], "walltime", "{why}");
    let lease = over["attempts"][0]["replicas"][0]["leases"][0]["id"].as_str().expect("an id");
    let why = world.get(&format!("/api/v1/leases/{lease}/explain")).await.expect(200);
    assert_eq!(why["ending"]["how"], "walltime", "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_had_enough_evicted_is_told_when_it_starts() {
    let world = cluster().await;
    let change = json!({ "max_evicted_quanta_per_hour": 0 });
    world.send(Some(&world.operator), Method::Put, "/api/v1/tenants/chemistry", Some(change)).await.expect(200);
    let gang = |tenant: &str, priority: &str| {
        json!({ "tenant": tenant, "project": tenant, "replicas": 2, "walltime": "30m", "priority": priority,
            "asks": [{ "class": "h100", "quantity": 4 }] })
    };
    world.post("/api/v1/allocations", gang("physics", "standard")).await.expect(201);
    let waits = world.post("/api/v1/allocations", gang("chemistry", "guaranteed")).await.expect(201);
    let shown = world.get(&format!("/api/v1/allocations/{}", waits["id"].allocation())).await.expect(200);
    assert_eq!(shown["waiting"]["reason"], "evictions", "{shown}");
    assert!(shown["waiting"]["starts_by"].is_string(), "{shown}");
    world.stop().await;
}

/// The other node has as much to evict; only the named one is used.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_a_node_evicts_there() {
    let world = cluster().await;
    let [other, own] = [hold(&world, "physics", 4, "n1").await, hold(&world, "physics", 4, "n2").await];
    let request = json!({ "tenant": "chemistry", "project": "chemistry", "ttl": "10m", "priority": "guaranteed",
        "node": "n2", "asks": [{ "class": "h100", "quantity": 2 }] });
    let waits = world.post("/api/v1/leases", request).await.expect(202);
    let path = format!("/api/v1/allocations/{}", waits["id"].allocation());
    let shown = world.until(&path, |found| found["waiting"]["reason"] == "victims").await;
    assert_eq!(shown["waiting"]["nodes"], json!(["n2"]), "{shown}");
    world.post(&format!("/api/v1/leases/{own}/ready"), json!({})).await.expect(200);
    let placed = world.until(&path, |found| found["state"] == "running").await;
    assert_eq!(placed["attempts"][0]["replicas"][0]["node"], "n2", "{placed}");
    assert_eq!(world.get(&format!("/api/v1/leases/{other}")).await.expect(200)["state"], "active");
    let records = world.get("/api/v1/audit/records?kind=allocation.submitted").await.expect(200);
    let sequence = &records["records"][0]["sequence"];
    let told = world.get(&format!("/api/v1/audit/decisions/{sequence}")).await.expect(200);
    assert_eq!(told["replayed"], "same", "{told}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_lets_a_tenant_evict_its_own_leases() {
    let world = cluster().await;
    let quota = json!({ "tenant": "physics", "class": "h100", "measure": "quanta",
        "limit": { "type": "hard", "limit": 4 } });
    let made = world.post("/api/v1/quotas", quota).await.expect(201)["quota"].clone();
    assert_eq!(made["evict_own_lower"], json!(false), "{made}");
    let quota = format!("/api/v1/quotas/{}", made["id"]);
    let lower = hold(&world, "physics", 4, "n1").await;
    let request = json!({ "tenant": "physics", "project": "physics", "ttl": "10m",
        "asks": [{ "class": "h100", "quantity": 2 }] });
    let denied = world.post("/api/v1/leases", request.clone()).await;
    assert_eq!((denied.status, denied.code().as_str()), (409, "quota_exceeded"));

    let nothing = world.send(Some(&world.operator), Method::Patch, &quota, Some(json!({}))).await;
    assert_eq!((nothing.status, nothing.code().as_str()), (422, "bad_body"));
    let soft = json!({ "limit": { "type": "soft", "limit": 4 }, "evict_own_lower": true });
    let soft = world.send(Some(&world.operator), Method::Patch, &quota, Some(soft)).await;
    assert_eq!((soft.status, soft.code().as_str()), (422, "evict_own_lower_unsuitable"));
    let on = json!({ "evict_own_lower": true });
    let put = world.send(Some(&world.operator), Method::Patch, &quota, Some(on)).await.expect(200);
    assert_eq!((&put["quota"]["evict_own_lower"], &put["quota"]["limit"]["limit"]), (&json!(true), &json!(4)), "{put}");

    let quoted = world.post("/api/v1/leases/quote", request.clone()).await.expect(200);
    assert_eq!((&quoted["admitted"], &quoted["evicts"]), (&json!(true), &json!(1)), "{quoted}");
    let id = world.post("/api/v1/leases", request).await.expect(202)["id"].allocation();
    let decided = world.until("/api/v1/audit/records?kind=preemption.decided", |found| !found["records"][0].is_null());
    let decided = decided.await["records"][0].clone();
    assert_eq!((&decided["body"]["headroom_quota_id"], &decided["body"]["victims"][0]), (&made["id"], &json!(lower)));
    let physics = token(&world, "physics").await;
    let told = see(&world, &physics, &format!("/api/v1/audit/decisions/{}", decided["sequence"])).await;
    assert_eq!((&told["outcome"], &told["replayed"]), (&json!("evicts"), &json!("same")), "{told}");
    assert_eq!(told["decided"]["headroom_quota_id"], made["id"], "{told}");
    let words = told["why"].as_str().expect("words");
    assert!(words.contains("its quota of h100") && words.contains("full of leases of lower priority"), "{words}");
    world.post(&format!("/api/v1/leases/{lower}/ready"), json!({})).await.expect(200);
    world.until(&format!("/api/v1/allocations/{id}"), |found| found["state"] == "running").await;
    world.stop().await;
}
