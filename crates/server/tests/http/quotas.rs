//! Quotas over HTTP: on a kind, by user, from a priority up, for a time, and in percent.

use crate::world::{Answer, World};
use leasehold_api::Method;
use serde_json::{Value, json};

async fn create(world: &World, more: Value) -> Answer {
    let mut quota = json!({ "tenant": "physics", "measure": "quanta", "limit": { "type": "hard", "limit": 3 } });
    let (all, more) = (quota.as_object_mut().expect("an object"), more.as_object().expect("an object").clone());
    all.extend(more);
    world.post("/api/v1/quotas", quota).await
}

async fn change(world: &World, id: &Value, body: Value) -> Answer {
    world.send(Some(&world.operator), Method::Put, &format!("/api/v1/quotas/{id}"), Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_on_a_kind_denies_with_fractions_and_their_unit() {
    let world = World::furnished().await;
    let quota = create(&world, json!({ "kind": "gpu", "priority": "standard", "and_above": true })).await.expect(201);
    let quota = &quota["quota"];
    assert_eq!((&quota["kind"], &quota["and_above"], &quota["class"]), (&json!("gpu"), &json!(true), &Value::Null));
    // One GPU is held already.
    assert_eq!((&quota["used"], &quota["used_exact"]), (&json!(1), &json!("1")));
    let asked = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
                        "asks": [{ "class": "h100", "quantity": 4 }] });
    let denied = world.post("/api/v1/leases", asked).await.expect(409);
    assert_eq!(
        (&denied["code"], &denied["used"], &denied["requested"], &denied["limit"], &denied["unit"]),
        (&json!("quota_exceeded"), &json!("1"), &json!("4"), &json!("3"), &json!("GPU")),
    );
    let detail = denied["detail"].as_str().expect("a sentence");
    assert!(detail.contains("its quota of all gpu classes at standard or higher priority"), "{detail}");
    let again = create(&world, json!({ "kind": "gpu", "priority": "standard", "and_above": true })).await;
    assert_eq!((again.status, again.code().as_str()), (409, "quota_exists"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_for_each_user_needs_the_name_of_the_user() {
    let world = World::furnished().await;
    let quota = create(&world, json!({ "class": "h100", "user": "each" })).await.expect(201);
    assert_eq!(quota["quota"]["user"], json!("each"));
    let asked = |quantity: u64| {
        json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
                "asks": [{ "class": "h100", "quantity": quantity }] })
    };
    let refused = world.post("/api/v1/leases", asked(1)).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "quota_needs_user"));
    let one = create(&world, json!({ "class": "h100", "app_instance": { "one": "seven" } })).await.expect(201);
    assert_eq!(one["quota"]["app_instance"], json!({ "one": "seven" }));
    let bad = create(&world, json!({ "class": "h100", "app_instance": { "one": "x" } })).await;
    assert_eq!(bad.code(), "unknown_app_instance");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_limit_in_percent_is_recorded_as_a_number() {
    let world = World::furnished().await;
    let id = create(&world, json!({ "measure": "nodes", "limit": { "type": "hard", "limit": 7 } })).await.expect(201)
        ["quota"]["id"]
        .clone();
    let until = "2100-01-01T00:00:00Z";
    let body = json!({ "limit": { "type": "hard", "limit": "+20%" }, "until": until });
    let put = change(&world, &id, body).await.expect(200);
    let quota = &put["quota"];
    assert_eq!(quota["limit"], json!({ "type": "hard", "limit": 8 }));
    assert_eq!((&quota["until"], &quota["base_limit"]["limit"]), (&json!(until), &json!(7)));
    let back = change(&world, &id, json!({ "limit": { "type": "hard", "limit": 9 } })).await.expect(200);
    assert_eq!((&back["quota"]["limit"]["limit"], &back["quota"]["until"]), (&json!(9), &Value::Null));
    let bad = change(&world, &id, json!({ "limit": { "type": "hard", "limit": "20" } })).await;
    assert_eq!((bad.status, bad.code().as_str()), (422, "bad_quantity"));
    let past = json!({ "limit": { "type": "hard", "limit": 9 }, "until": "2000-01-01T00:00:00Z" });
    assert_eq!(change(&world, &id, past).await.code(), "until_past");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_waits_if_a_burst_would_cut_it_off() {
    let world = World::furnished().await;
    let burst = json!({ "type": "burst", "limit": 2, "burst_limit": 5, "burst_ttl": "10m" });
    create(&world, json!({ "kind": "gpu", "limit": burst })).await.expect(201);
    let gang = |quantity: u64, more: Value| {
        let mut gang = json!({ "tenant": "physics", "project": "physics-main",
                               "asks": [{ "class": "h100", "quantity": quantity }] });
        gang.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        gang
    };
    // One GPU is held already. Longer than a burst lasts:
    let waits = world.post("/api/v1/allocations", gang(2, json!({ "walltime": "1h" }))).await.expect(201);
    assert_eq!(waits["state"], "pending", "{waits}");
    let id = waits["id"].as_str().expect("an id");
    let shown = world.get(&format!("/api/v1/allocations/{id}")).await.expect(200);
    assert_eq!(shown["waiting"]["reason"], "burst", "{shown}");
    let why = world.get(&format!("/api/v1/allocations/{id}/explain")).await.expect(200);
    let words = why["why"].as_str().expect("words");
    assert!(words.contains("its walltime of 1h is longer than what is left of the burst"), "{why}");
    // It could never start.
    let refused = world.post("/api/v1/allocations", gang(3, json!({ "walltime": "1h" }))).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "walltime_beyond_burst"));
    // Without a walltime it starts, and its leases end with the burst.
    let capped = world.post("/api/v1/allocations", gang(2, json!({ "ttl": "1h" }))).await.expect(201);
    assert_eq!(capped["replicas"][0]["capped_by_quota_id"], json!(2), "{capped}");
    world.stop().await;
}
