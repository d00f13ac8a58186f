//! Nobody can starve the others: limits per token and per tenant, and a part that is left for operators.

use crate::api::ask;
use crate::world::{Answer, World, read};
use leasehold_api::{Method, Role};
use serde_json::{Value, json};
use std::time::Duration;

async fn stream(world: &World, token: &str) -> Result<reqwest::Response, Answer> {
    let answer = world.client().get(format!("{}/api/v1/events", world.url)).bearer_auth(token).send().await;
    let answer = answer.expect("an answer");
    if answer.status() == 200 { Ok(answer) } else { Err(read(answer).await) }
}

fn refused(answer: &Answer, code: &str, scope: &str) {
    let problem = answer.json();
    assert_eq!((answer.status, answer.code().as_str(), &problem["scope"]), (429, code, &json!(scope)), "{problem}");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_cannot_hold_all_event_streams() {
    let mut world = World::with(|config| config.limits.streams = 12).await;
    world.furnish().await;
    let (member, admin) = (&world.tokens[&Role::ProjectMember], &world.tokens[&Role::TenantAdmin]);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(stream(&world, member).await.expect("a quarter of them"));
    }
    refused(&stream(&world, member).await.expect_err("a limit"), "too_many_streams", "token");
    for _ in 0..3 {
        held.push(stream(&world, admin).await.expect("half of them for the tenant"));
    }
    // Another token of the same tenant; its own part is not used up.
    let new = json!({ "name": "second", "role": "project_member", "tenant": "physics", "project": "physics-main" });
    let second = world.post("/api/v1/tokens", new).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    refused(&stream(&world, &second).await.expect_err("a limit"), "too_many_streams", "tenant");
    let auditor = &world.tokens[&Role::Auditor];
    for _ in 0..3 {
        held.push(stream(&world, auditor).await.expect("another caller has its own part"));
    }
    let new = json!({ "name": "other", "role": "tenant_admin", "tenant": "chemistry" });
    let other = world.post("/api/v1/tokens", new).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    for _ in 0..2 {
        held.push(stream(&world, &other).await.expect("so does another tenant"));
    }
    refused(&stream(&world, &other).await.expect_err("a limit"), "too_many_streams", "all");
    held.push(stream(&world, &world.operator).await.expect("the last one is for operators"));
    refused(&stream(&world, &world.operator).await.expect_err("a limit"), "too_many_streams", "all");
    // A stream that ends makes room.
    held.clear();
    let again = async {
        while stream(&world, member).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("there is room again");
    world.stop().await;
}

/// One member's calls of `explain` let an operator's `audit/records` time out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_members_questions_do_not_hold_up_an_operator() {
    let world = World::furnished().await;
    let member = world.tokens[&Role::ProjectMember].as_str();
    let calls = ["leases/lease-0/explain", "leases/lease-0/history", "usage?by=tenant"].map(|path| {
        let world = &world;
        let flood = (0..300).map(move |_| async move {
            let answer = world.send(Some(member), Method::Get, &format!("/api/v1/{path}"), None).await;
            if answer.status != 200 {
                refused(&answer, "too_many_waiting", "token");
            }
            answer.status
        });
        futures_util::future::join_all(flood.collect::<Vec<_>>())
    });
    let operator = async {
        for _ in 0..10 {
            for path in ["audit/records?limit=1000", "leases/lease-0/explain", "usage?by=tenant", "leases/lease-0"] {
                let path = format!("/api/v1/{path}");
                let answer = tokio::time::timeout(Duration::from_secs(10), world.get(&path)).await;
                answer.unwrap_or_else(|_| panic!("{path} was not answered in time")).expect(200);
            }
        }
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), operator);
    for statuses in answers {
        // Those that fit were answered, and what was too much was refused instead of left waiting.
        assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn operations_that_wait_have_limits_per_token() {
    let mut world = World::with(|config| config.limits.queued_requests = 40).await;
    world.furnish().await;
    let member = world.tokens[&Role::ProjectMember].as_str();
    let operations: Vec<Value> = (0..30).map(|_| json!({ "request": ask(1) })).collect();
    let batch = json!({ "operations": operations });
    let flood = (0..40).map(|_| world.send(Some(member), Method::Post, "/api/v1/leases/batch", Some(batch.clone())));
    let answers = futures_util::future::join_all(flood.collect::<Vec<_>>()).await;
    assert!(answers.iter().any(|answer| answer.status == 200), "a batch alone is accepted");
    let limited: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(!limited.is_empty(), "several at once are too much");
    limited.iter().for_each(|answer| refused(answer, "too_many_waiting", "token"));
    world.stop().await;
}
