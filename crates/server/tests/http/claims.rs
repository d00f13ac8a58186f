//! Claims over HTTP: who may claim what, who is told whom a node belongs to, and the way from release to ready.

use crate::world::World;
use leasehold_api::{ClaimList, ClaimPut, CustodyState, Method};
use serde_json::{Value, json};

/// Two nodes, and two tenants with a project and a user each.
async fn hospital() -> World {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
    for node in ["n1", "n2"] {
        let new = json!({ "name": node, "pool": "main", "teardown": "immediate", "capacity": { "h100": 8 } });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
    for (tenant, user) in [("clinic", "ada"), ("lab", "cyd")] {
        world.post("/api/v1/tenants", json!({ "name": tenant })).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
        world.post("/api/v1/users", json!({ "name": user, "tenant": tenant })).await.expect(201);
    }
    world
}

async fn token(world: &World, new: Value) -> String {
    let issued = world.post("/api/v1/tokens", new).await.expect(201);
    issued["secret"].as_str().expect("a secret").to_owned()
}

fn claim(nodes: &[&str], tenant: &str, user: &str) -> Value {
    json!({ "nodes": nodes, "tenant": tenant, "project": tenant, "user": user })
}

fn sensitive(more: &Value) -> Value {
    let mut asked = json!({ "tenant": "clinic", "project": "clinic", "user": "ada", "sensitive": true, "ttl": "10m",
        "asks": [{ "class": "h100", "quantity": 2 }] });
    for (key, value) in more.as_object().expect("an object") {
        asked[key] = value.clone();
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_lives_from_the_users_word_to_the_wipe() {
    let world = hospital().await;
    let ada =
        json!({ "name": "ada", "role": "project_member", "tenant": "clinic", "project": "clinic", "user": "ada" });
    let ada = token(&world, ada).await;
    let refused = world.post("/api/v1/leases", sensitive(&json!({}))).await.expect(422);
    assert_eq!(refused["code"], "sensitive_needs_claim");

    let claimed = world.send(Some(&ada), Method::Post, "/api/v1/claims", Some(json!({ "nodes": ["n1"] }))).await;
    let claimed: ClaimPut = serde_json::from_value(claimed.expect(201)).expect("the type of the API");
    let custody = &claimed.nodes[0].custody;
    let holder = custody.holder.as_ref().expect("a holder");
    assert_eq!((custody.state, holder.user.as_str(), holder.tenant.as_str()), (CustodyState::Claimed, "ada", "clinic"));
    let granted = world.post("/api/v1/leases", sensitive(&json!({}))).await.expect(201);
    assert_eq!(granted["node"], "n1");
    // Nobody else's work, and no ordinary work of hers, goes there.
    let ordinary = json!({ "tenant": "clinic", "project": "clinic", "user": "ada", "node": "n1", "ttl": "10m",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let told = world.post("/api/v1/leases", ordinary.clone()).await.expect(409);
    assert_eq!((&told["code"], &told["node_state"]), (&json!("no_capacity"), &json!("claimed")));
    let told = told["detail"].as_str().expect("words");
    assert!(told.starts_with("Node \"n1\" is claimed for sensitive work, and this request is not sensitive"), "{told}");

    let release = json!({ "nodes": ["n1"] });
    let held = world.send(Some(&ada), Method::Post, "/api/v1/claims/release", Some(release.clone())).await.expect(409);
    assert_eq!(held["code"], "node_has_leases");
    let lease = granted["leases"][0]["id"].as_str().expect("an id");
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    let released = world.send(Some(&ada), Method::Post, "/api/v1/claims/release", Some(release)).await.expect(200);
    assert_eq!(released["nodes"][0]["custody"]["state"], "wiping");
    assert!(released["nodes"][0]["custody"]["wipe_by"].is_string(), "{released}");
    // What nobody leased meanwhile is told apart from what she did.
    let usage = world.get("/api/v1/usage?by=held_as&tenant=clinic").await.expect(200);
    let lines = usage["lines"].as_array().expect("lines").iter().map(|line| line["held_as"].clone());
    assert_eq!(lines.collect::<Vec<_>>(), [json!("lease"), json!("idle_claim")], "{usage}");
    let early = world.post("/api/v1/claims", claim(&["n1"], "lab", "cyd")).await.expect(409);
    assert_eq!(early["code"], "node_not_ready");

    let failed = world.post("/api/v1/nodes/n1/wipe", json!({ "clean": false })).await.expect(200);
    assert_eq!(failed["node"]["custody"]["cause"], "wipe_failed");
    let sealed = world.get("/api/v1/audit/records?kind=node.quarantined").await.expect(200);
    assert_eq!(sealed["records"][0]["body"]["severity"], "critical", "{sealed}");
    let again = world.post("/api/v1/nodes/n1/wipe", json!({ "clean": true })).await.expect(409);
    assert_eq!(again["code"], "node_not_wiping");
    let agent = token(&world, json!({ "name": "agent", "role": "node_agent", "node": "n1" })).await;
    let clear = "/api/v1/nodes/n1/clear-quarantine";
    world.send(Some(&agent), Method::Post, clear, None).await.expect(403);
    world.send(Some(&ada), Method::Post, clear, None).await.expect(403);
    let cleared = world.send(Some(&world.operator), Method::Post, clear, None).await.expect(200);
    assert_eq!(cleared["node"]["custody"]["state"], "open");
    world.post("/api/v1/claims", claim(&["n1"], "lab", "cyd")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_names_the_holder_to_operators_and_to_its_own_tenant_only() {
    let world = hospital().await;
    world.post("/api/v1/users", json!({ "name": "bob", "tenant": "clinic" })).await.expect(201);
    world.post("/api/v1/claims", claim(&["n1"], "clinic", "ada")).await.expect(201);
    let admin = |tenant: &str| json!({ "name": tenant, "role": "tenant_admin", "tenant": tenant });
    let (clinic, lab) = (token(&world, admin("clinic")).await, token(&world, admin("lab")).await);
    let told = world.post("/api/v1/claims", claim(&["n1"], "lab", "cyd")).await.expect(409);
    assert_eq!((&told["code"], &told["holder"]["user"]), (&json!("node_claimed"), &json!("ada")));
    let said = told["detail"].as_str().expect("words");
    assert!(
        said.starts_with("Node \"n1\" is already claimed by user \"ada\" of tenant \"clinic\" for project \"clinic\";"),
        "{said}"
    );
    let own = claim(&["n1"], "clinic", "bob");
    let told = world.send(Some(&clinic), Method::Post, "/api/v1/claims", Some(own)).await.expect(409);
    assert_eq!(told["holder"]["user"], "ada");
    let other = claim(&["n2", "n1"], "lab", "cyd");
    let mut told = world.send(Some(&lab), Method::Post, "/api/v1/claims", Some(other)).await.expect(409);
    assert_eq!(told["code"], "node_claimed");
    // Random digits and letters, which may happen to be a name.
    told.as_object_mut().expect("a problem").remove("instance");
    assert!(told.get("holder").is_none() && !told.to_string().contains("ada"), "{told}");
    assert_eq!(told["detail"], "Node \"n1\" is already claimed, and claims are not queued; claim another node");

    let list = async |token: &str| -> ClaimList {
        let listed = world.send(Some(token), Method::Get, "/api/v1/claims", None).await.expect(200);
        serde_json::from_value(listed).expect("the type of the API")
    };
    assert_eq!((list(&clinic).await.nodes.len(), list(&lab).await.nodes.len()), (1, 0));
    assert_eq!(list(&world.operator).await.nodes[0].node, "n1");
    // And nobody gives back what is another's.
    let release = json!({ "nodes": ["n1"] });
    let told = world.send(Some(&lab), Method::Post, "/api/v1/claims/release", Some(release)).await.expect(404);
    assert_eq!(told["code"], "node_not_claimed");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_on_claims_say_their_three_numbers() {
    let world = hospital().await;
    world
        .send(Some(&world.operator), Method::Put, "/api/v1/settings", Some(json!({ "sensitive_pool_size": 1 })))
        .await
        .expect(200);
    assert_eq!(world.get("/api/v1/settings").await.expect(200)["sensitive_pool_size"], 1);
    let told = world.post("/api/v1/claims", claim(&["n1", "n2"], "clinic", "ada")).await.expect(409);
    assert_eq!(told["code"], "sensitive_pool_full");
    assert!(told["detail"].as_str().is_some_and(|text| text.contains("(used 0, requested 2, limit 1)")), "{told}");
    assert_eq!(told["unit"], "node", "{told}");
    let numbers = |told: &Value| (told["used"].clone(), told["requested"].clone(), told["limit"].clone());
    assert_eq!(numbers(&told), (json!("0"), json!("2"), json!("1")), "{told}");
    world
        .send(Some(&world.operator), Method::Put, "/api/v1/settings", Some(json!({ "sensitive_pool_size": null })))
        .await
        .expect(200);
    world
        .send(Some(&world.operator), Method::Put, "/api/v1/tenants/clinic", Some(json!({ "max_nodes": 1 })))
        .await
        .expect(200);
    let told = world.post("/api/v1/claims", claim(&["n1", "n2"], "clinic", "ada")).await.expect(409);
    assert_eq!((&told["code"], &told["tenant"]), (&json!("claim_over_quota"), &json!("clinic")));
    assert_eq!(told["detail"], "Tenant \"clinic\" would exceed max_nodes (used 0, requested 2, limit 1)");
    assert_eq!(numbers(&told), (json!("0"), json!("2"), json!("1")), "{told}");
    for (wrong, code) in [
        (claim(&[], "clinic", "ada"), "no_nodes"),
        (claim(&["n1", "n1"], "clinic", "ada"), "duplicate_node"),
        (json!({ "nodes": ["n1"], "tenant": "clinic", "project": "clinic" }), "sensitive_needs_user"),
    ] {
        assert_eq!(world.post("/api/v1/claims", wrong).await.expect(422)["code"], code);
    }
    world.post("/api/v1/claims", claim(&["n9"], "clinic", "ada")).await.expect(404);
    world.post("/api/v1/claims", claim(&["n1"], "clinic", "ada")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_claims_a_drained_node_for_a_user() {
    let world = hospital().await;
    let ada =
        json!({ "name": "ada", "role": "project_member", "tenant": "clinic", "project": "clinic", "user": "ada" });
    let ada = token(&world, ada).await;
    world.post("/api/v1/nodes/n1/drain", json!({})).await.expect(200);
    let own = world.send(Some(&ada), Method::Post, "/api/v1/claims", Some(json!({ "nodes": ["n1"] }))).await;
    assert_eq!(own.expect(409)["code"], "node_not_ready");
    let claimed = world.post("/api/v1/claims", claim(&["n1"], "clinic", "ada")).await.expect(201);
    assert_eq!(claimed["nodes"][0]["custody"]["holder"]["user"], "ada");
    let node = world.get("/api/v1/nodes/n1").await.expect(200);
    assert_eq!(node["drained"], json!(false), "{node}");
    assert_eq!(world.post("/api/v1/leases", sensitive(&json!({}))).await.expect(201)["node"], "n1");
    world.stop().await;
}
