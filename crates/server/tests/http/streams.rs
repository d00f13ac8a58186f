//! Events as they happen: nothing missed, nothing twice, and nobody held up.

use crate::api::ask;
use crate::world::World;
use leasehold_api::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Reads events until one of this kind; answers their ids.
pub(crate) async fn until(answer: &mut reqwest::Response, kind: &str) -> Vec<u64> {
    let mut text = String::new();
    while !text.split("\n\n").any(|event| event.contains(&format!("event: {kind}\n"))) {
        let piece = answer.chunk().await.expect("the stream goes on").expect("the stream goes on");
        text.push_str(std::str::from_utf8(&piece).expect("events are text"));
    }
    text.lines().filter_map(|line| line.strip_prefix("data: ")).for_each(crate::conform::check_record);
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_resume_where_they_were_left_and_end_with_their_token() {
    let world = World::furnished().await;
    let listen = |path: &str, token: &str, last: Option<u64>| {
        let request =
            world.client().get(format!("{}{path}", world.url)).header("authorization", format!("Bearer {token}"));
        match last {
            Some(last) => request.header("last-event-id", last.to_string()).send(),
            None => request.send(),
        }
    };
    let mut live = listen("/api/v1/events?kind=lease", &world.operator, None).await.expect("a stream");
    assert_eq!(live.headers()["content-type"], "text/event-stream");
    world.post("/api/v1/leases", ask(1)).await.expect(201);
    let heard = until(&mut live, "lease.granted").await;
    assert_eq!(heard.len(), 1);
    drop(live);
    // What happened while nobody listened is told first, then what happens.
    world.post("/api/v1/leases", ask(1)).await.expect(201);
    world.post("/api/v1/leases/lease-2/renew", json!({ "ttl": "1h" })).await.expect(200);
    let mut resumed = listen("/api/v1/events?kind=lease", &world.operator, Some(heard[0])).await.expect("a stream");
    let caught_up = until(&mut resumed, "lease.renewed").await;
    assert_eq!(caught_up, [heard[0] + 1, heard[0] + 2]);
    world.post("/api/v1/leases/lease-2/release", json!({})).await.expect(200);
    assert_eq!(until(&mut resumed, "lease.released").await, [heard[0] + 3]);
    // One lease, one tenant.
    let admin = world.tokens[&leasehold_api::Role::TenantAdmin].clone();
    let mut own = listen("/api/v1/events?after=0&lease=lease-2", &admin, None).await.expect("a stream");
    assert_eq!(until(&mut own, "lease.released").await.len(), 3);
    // A token that is revoked takes its stream with it.
    let tokens = world.get("/api/v1/tokens").await.expect(200);
    let admin_id =
        tokens["tokens"].as_array().expect("tokens").iter().find(|t| t["role"] == "tenant_admin").expect("one")["id"]
            .clone();
    world.send(Some(&world.operator), Method::Delete, &format!("/api/v1/tokens/{admin_id}"), None).await.expect(200);
    world.post("/api/v1/leases/lease-3/release", json!({})).await.expect(200);
    while own.chunk().await.expect("it ends cleanly").is_some() {}
    // A daemon that stops ends its streams.
    let mut last = listen("/api/v1/events", &world.operator, None).await.expect("a stream");
    world.stop().await;
    while last.chunk().await.expect("it ends cleanly").is_some() {}
}

/// A reader that has seen more records than there are must not wait for them: they were lost by a restore.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_seen_more_than_there_is_is_refused() {
    let world = World::furnished().await;
    let size = world.get("/api/v1/about").await.expect(200)["size"].as_u64().expect("a size");
    for path in ["/api/v1/events", "/api/v1/audit/records"] {
        assert_eq!(world.get(&format!("{path}?after={}", size - 1)).await.status, 200, "{path}");
        for after in [size, u64::MAX >> 11] {
            let refused = world.get(&format!("{path}?after={after}")).await.expect(410);
            assert_eq!((&refused["code"], &refused["size"]), (&json!("beyond_end"), &json!(size)), "{path}");
        }
    }
    let request = world.client().get(format!("{}/api/v1/events", world.url)).bearer_auth(&world.operator);
    let answer = request.header("last-event-id", size.to_string()).send().await.expect("an answer");
    assert_eq!(crate::world::read(answer).await.expect(410)["size"], size);
}

/// The publishing thread and the one that hands out events want the same things; with streams that come and go they once
/// waited for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_that_come_and_go_hold_up_nobody() {
    let world = World::furnished().await;
    world.post("/api/v1/classes", json!({ "name": "core", "kind": "cpu" })).await.expect(201);
    world
        .post("/api/v1/nodes", json!({ "name": "big", "pool": "main", "capacity": { "core": 10_000 } }))
        .await
        .expect(201);
    let mut request = ask(1);
    request["asks"][0]["class"] = "core".into();
    let operations: Vec<Value> = (0..8000).map(|_| json!({ "request": request })).collect();
    world.post("/api/v1/leases/batch", json!({ "operations": operations })).await.expect(200);
    let coming_and_going = || async {
        for _ in 0..150 {
            let path = format!("{}/api/v1/events?kind=lease", world.url);
            let request = world.client().get(path).header("authorization", format!("Bearer {}", world.operator));
            drop(request.send().await.expect("a stream"));
        }
    };
    // Each is news to the streams, so that it has to be looked up.
    let traffic = async |first: u32| {
        for block in (first..first + 2000).step_by(20) {
            let release = |lease| json!({ "lease": format!("lease-{lease}"), "release": {} });
            let operations: Vec<Value> = (block..block + 20).map(release).collect();
            world.post("/api/v1/leases/batch", json!({ "operations": operations })).await.expect(200);
        }
    };
    let traffic = async { tokio::join!(traffic(2), traffic(2002), traffic(4002), traffic(6002)) };
    let all = async { tokio::join!(coming_and_going(), traffic, coming_and_going()) };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("everybody is answered");
    world.stop().await;
}
