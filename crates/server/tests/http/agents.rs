//! What a node's agent says counts only under its own generation.

use crate::world::World;
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

/// Registers an agent on the node, and answers its generation.
async fn register(world: &World, agent: &str, node: &str, instance: char) -> u64 {
    let new = json!({ "instance": instance.to_string().repeat(32) });
    let registered = world.send(Some(agent), Method::Post, &format!("/api/v1/nodes/{node}/agent"), Some(new)).await;
    registered.expect(200)["generation"].as_u64().expect("a generation")
}

fn assert_lacks_generation(problem: &Value) {
    assert_eq!((&problem["code"], &problem["field"]), (&json!("bad_body"), &json!("generation")), "{problem}");
}

/// A predecessor that was cut off cannot get past the check by leaving its generation out.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_always_names_its_generation_and_an_operator_need_not() {
    let world = World::furnished().await;
    let agent = world.tokens[&Role::NodeAgent].clone();
    register(&world, &agent, "n1", 'a').await;
    let generation = register(&world, &agent, "n1", 'a').await;
    assert_eq!(generation, 2);
    let leases = world.get("/api/v1/leases?node=n1").await.expect(200);
    let lease = leases["leases"][0]["id"].as_str().expect("a lease").to_owned();
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);

    let says = async |path: &str, body: Value| world.send(Some(&agent), Method::Post, path, Some(body)).await;
    let one = format!("/api/v1/leases/{lease}/teardown");
    assert_lacks_generation(&says(&one, json!({})).await.expect(422));
    assert_lacks_generation(&world.send(Some(&agent), Method::Post, &one, None).await.expect(422));
    let many = "/api/v1/nodes/n1/teardowns";
    assert_lacks_generation(&says(many, json!({ "leases": [lease] })).await.expect(422));
    let batch = json!({ "operations": [{ "lease": lease, "confirm_teardown": {} }] });
    let results = says("/api/v1/leases/batch", batch).await.expect(200);
    assert_eq!(results["results"][0]["status"], 422);
    assert_lacks_generation(&results["results"][0]["problem"]);
    assert_lacks_generation(&says("/api/v1/nodes/n1/wipe", json!({ "clean": true })).await.expect(422));

    for (path, body) in [
        (one.as_str(), json!({ "generation": 1 })),
        (many, json!({ "generation": 1, "leases": [lease] })),
        ("/api/v1/nodes/n1/wipe", json!({ "generation": 1, "clean": true })),
    ] {
        let stale = says(path, body).await.expect(409);
        assert_eq!(stale["code"], "stale_generation", "{path}: {stale}");
    }
    assert_eq!(world.get(&format!("/api/v1/leases/{lease}")).await.expect(200)["state"], "releasing");
    says(&one, json!({ "generation": generation })).await.expect(200);

    // An operator speaks for no generation.
    let leases = world.get("/api/v1/leases?node=n2").await.expect(200);
    let lease = leases["leases"][0]["id"].as_str().expect("a lease").to_owned();
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    world.post(&format!("/api/v1/leases/{lease}/teardown"), json!({})).await.expect(200);
    let wiped = world.post("/api/v1/nodes/n2/wipe", json!({ "clean": true })).await.expect(409);
    assert_eq!(wiped["code"], "node_not_wiping");
}

/// What an agent of an earlier version sent, word for word but for the IDs of the journal: 128-bit IDs, which it found in
/// the answers to its heartbeats. Agents are updated later than the daemon, so this must work for ever.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_of_an_earlier_agent_still_work() {
    let world = World::furnished().await;
    let agent = world.tokens[&Role::NodeAgent].clone();
    let says = async |path: &str, body: &str| {
        let body = serde_json::from_str(body).expect("as it was recorded");
        world.send(Some(&agent), Method::Post, path, Some(body)).await
    };
    let register = r#"{"instance":"6f1c2f9e97f24c0b9f0e6f8d4f1f7a11","capacity":{"h100":8},"labels":{"driver":"570"}}"#;
    let registered = says("/api/v1/nodes/n1/agent", register).await.expect(200);
    assert_eq!((&registered["node"], &registered["generation"]), (&json!("n1"), &json!(1)));

    let quiet = r#"{"generation":1,"condition":{"load":"normal","errors":"normal","throttled":false}}"#;
    let beat = says("/api/v1/nodes/n1/heartbeat", quiet).await.expect(200);
    let held = beat["held"][0]["lease"].as_str().expect("a lease").to_owned();
    assert!(held.len() == 32 && held.bytes().all(|b| b.is_ascii_hexdigit()), "agents name files after it: {held}");
    assert_eq!(beat["held"][0]["id"], "lease-0");

    world.post(&format!("/api/v1/leases/{held}/release"), json!({})).await.expect(200);
    let beat = says("/api/v1/nodes/n1/heartbeat", r#"{"generation":1}"#).await.expect(200);
    assert_eq!(beat["teardown"][0]["lease"], held.as_str());
    let confirm = format!(r#"{{"generation":1,"leases":["{held}"]}}"#);
    let confirmed = says("/api/v1/nodes/n1/teardowns", &confirm).await.expect(200);
    // It looks for the ID that it sent.
    assert_eq!((&confirmed["confirmed"], &confirmed["refused"]), (&json!([held]), &json!({})));
    // Sent again, because the first answer was lost.
    let again = says("/api/v1/nodes/n1/teardowns", &confirm).await;
    assert!(again.text.contains(&held) || again.status == 409, "{again:?}");

    // Holders may name leases and allocations in both ways as well.
    let shown = world.get("/api/v1/leases?node=n2").await.expect(200)["leases"][0].clone();
    let (id, uid) = (shown["id"].as_str().expect("an id"), shown["uid"].as_str().expect("a 128-bit id"));
    assert_eq!((id, uid.len()), ("lease-1", 32));
    for name in [id, uid] {
        let renewed = world.post(&format!("/api/v1/leases/{name}/renew"), json!({ "ttl": "1h" })).await.expect(200);
        assert_eq!((&renewed["id"], &renewed["uid"]), (&json!(id), &json!(uid)));
        let batch = json!({ "operations": [{ "lease": name, "renew": { "ttl": "1h" } }] });
        let results = world.post("/api/v1/leases/batch", batch).await.expect(200);
        assert_eq!(results["results"][0]["renewed"]["id"], id);
    }
}
