//! The accounting events on the page docs/how-to/webhooks.md have the members of real ones.

use crate::webhooks::{Receiver, deliver, hook};
use crate::world::{AllocationNumber, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/how-to/webhooks.md");

/// The example under the heading of a type: a whole event, or what is in `data`.
fn example(kind: &str) -> Value {
    let (_, after) = PAGE.split_once(&format!("### `{kind}`\n")).unwrap_or_else(|| panic!("no heading for {kind}"));
    let block = after.split_once("```json\n").and_then(|(_, rest)| rest.split_once("```")).expect("a block of JSON").0;
    serde_json::from_str(block).unwrap_or_else(|error| panic!("{kind}: {error}"))
}

/// The names of all members, also of inner objects; null stands for anything.
fn members(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            let path = format!("{path}.{name}");
            found.insert(path.clone());
            members(&path, value, found);
        }),
        Value::Array(items) => items.iter().take(1).for_each(|item| members(&format!("{path}[]"), item, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_have_the_members_of_real_events() {
    let mut world = World::with(deliver).await;
    world.furnish().await;
    let receiver = Receiver::start().await;
    hook(&world, &receiver, json!({ "events": ["accounting"] })).await;
    let work = json!({ "tenant": "physics", "project": "physics-main", "user": "physics-ada", "walltime": "12h",
        "asks": [{ "class": "h100", "quantity": 2 }], "workload": "train" });
    let submitted = world.post("/api/v1/allocations", work).await.expect(201);
    let path = format!("/api/v1/allocations/alloc-{}", submitted["id"].allocation());
    world.post(&format!("{path}/checkpoint"), json!({ "bytes": 80_000_000_000u64, "took": "1us" })).await.expect(200);
    let over = json!({ "exit_status": 0, "storage_written": 1_000_000u64 });
    world.post(&format!("{path}/complete"), over).await.expect(200);
    let quota = json!({ "tenant": "physics", "project": "physics-main", "class": "h100", "measure": "quanta",
        "limit": { "type": "hard", "limit": 5 } });
    world.post("/api/v1/quotas", quota).await.expect(201);
    let new = json!({ "name": "n3", "pool": "main", "teardown": "immediate", "capacity": { "h100": 2 } });
    world.post("/api/v1/nodes", new).await.expect(201);
    let claim = json!({ "nodes": ["n3"], "tenant": "physics", "project": "physics-main", "user": "physics-ada" });
    world.post("/api/v1/claims", claim).await.expect(201);
    world.post("/api/v1/claims/release", json!({ "nodes": ["n3"] })).await.expect(200);
    world.post("/api/v1/nodes/n3/wipe", json!({ "clean": true })).await.expect(200);

    let mut events: BTreeMap<String, Value> = BTreeMap::new();
    while events.len() < 6 {
        let event = receiver.next().await;
        events.insert(event.kind(), event.json());
    }
    for (kind, event) in &events {
        let shown = example(kind);
        let real = if shown.get("specversion").is_some() { event } else { &event["data"] };
        let (mut on_page, mut in_event) = (BTreeSet::new(), BTreeSet::new());
        members("", &shown, &mut on_page);
        members("", real, &mut in_event);
        assert_eq!(on_page, in_event, "{kind}: {}", serde_json::to_string_pretty(real).expect("JSON"));
    }
    world.stop().await;
}
