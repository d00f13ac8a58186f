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
