//! Allocations over HTTP: submitted, waiting with their reasons, preempting, over; and what tenants see of each other.

use crate::world::{AllocationNumber as _, Answer, World};
use leasehold_api::{AllocationDetail, BatchResults, Method, Outcome, Role, Submitted, TenantUsage};
use serde_json::{Value, json};

/// Four nodes of eight GPUs in two racks, without agents, and two tenants that may ask for anything.
async fn racks() -> World {
    let world = World::empty().await;
    world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu" })).await.expect(201);
    world.post("/api/v1/pools", json!({ "name": "main", "grace": "0s" })).await.expect(201);
    for (node, rack) in [("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")] {
        let new =
            json!({ "name": node, "pool": "main", "rack": rack, "teardown": "immediate", "capacity": { "h100": 8 } });
        world.post("/api/v1/nodes", new).await.expect(201);
    }
    for tenant in ["physics", "chemistry"] {
        let new = json!({ "name": tenant, "max_priority": "guaranteed" });
        world.post("/api/v1/tenants", new).await.expect(201);
        world.post("/api/v1/projects", json!({ "name": tenant, "tenant": tenant })).await.expect(201);
    }
    world
}

/// `gpus` on each of `replicas`, with what else is asked for.
fn gang(tenant: &str, gpus: u64, replicas: u32, more: &Value) -> Value {
    let mut asked = json!({ "tenant": tenant, "project": tenant, "replicas": replicas, "walltime": "1h",
        "asks": [{ "class": "h100", "quantity": gpus }] });
    for (key, value) in more.as_object().expect("an object") {
        asked[key] = value.clone();
    }
    asked
}

async fn submit(world: &World, asked: Value) -> Submitted {
    let answer = world.post("/api/v1/allocations", asked).await.expect(201);
    serde_json::from_value(answer).expect("the type of the API")
}

async fn show(world: &World, id: impl std::fmt::Display) -> AllocationDetail {
    let answer = world.get(&format!("/api/v1/allocations/{id}")).await.expect(200);
    serde_json::from_value(answer).expect("the type of the API")
}

async fn until(world: &World, id: impl std::fmt::Display, state: &str) -> AllocationDetail {
    let found = world.until(&format!("/api/v1/allocations/{id}"), |found| found["state"] == state).await;
    serde_json::from_value(found).expect("the type of the API")
}

async fn say(world: &World, id: impl std::fmt::Display, what: &str, body: Value) -> Answer {
    world.post(&format!("/api/v1/allocations/{id}/{what}"), body).await
}

async fn tenant_token(world: &World, tenant: &str) -> String {
    let new = json!({ "name": tenant, "role": "tenant_admin", "tenant": tenant });
    let issued = world.post("/api/v1/tokens", new).await.expect(201);
    issued["secret"].as_str().expect("a secret").to_owned()
}

/// Without a grace period an eviction and the start that it makes room for are in one append, and so in the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_evicts_without_grace_is_answered_as_started() {
    let world = racks().await;
    let scavenger = submit(&world, gang("chemistry", 8, 4, &json!({ "priority": "scavenger" }))).await;
    assert_eq!(scavenger.replicas.len(), 4);
    let asked = gang("physics", 8, 2, &json!({ "priority": "guaranteed" }));
    let send = async || {
        let request = world.client().post(format!("{}/api/v1/allocations", world.url));
        let request = request.bearer_auth(&world.operator).header("idempotency-key", "once");
        let request = request.header("content-type", "application/json").body(asked.to_string());
        crate::world::read(request.send().await.expect("an answer")).await
    };
    let answer = send().await.expect(201);
    let submitted: Submitted = serde_json::from_value(answer.clone()).expect("the type of the API");
    assert_eq!((submitted.state.word(), submitted.replicas.len()), ("running", 2), "{submitted:?}");
    let shown = show(&world, submitted.id).await;
    assert_eq!(shown.attempts[0].replicas, submitted.replicas);
    assert_eq!(send().await.expect(201), answer, "a repeated request gets the same answer");
    // One that waits is pending, as before.
    let waits = submit(&world, gang("chemistry", 8, 4, &json!({}))).await;
    assert_eq!((waits.state.word(), waits.replicas.len()), ("pending", 0));
    // It did not start by its own records, so a repeated request shows what has become of it.
    say(&world, submitted.id, "complete", json!({ "exit_status": 0 })).await.expect(200);
    let again = send().await.expect(201);
    assert_eq!((&again["state"], &again["replicas"]), (&json!("completed"), &json!([])), "{again}");
    assert_eq!((&again["id"], &again["submitted_at"]), (&answer["id"], &answer["submitted_at"]), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_lives_from_submission_to_its_end() {
    let world = racks().await;
    let more = json!({ "together": "rack", "staged": true, "workload": "train", "labels": {} });
    let submitted = submit(&world, gang("physics", 8, 2, &more)).await;
    assert_eq!(submitted.id.0, submitted.sequence);
    let nodes: Vec<&str> = submitted.replicas.iter().map(|replica| replica.node.as_str()).collect();
    assert_eq!(nodes, ["n1", "n2"]);
    assert_eq!(say(&world, submitted.id, "checkpointing", json!({})).await.code(), "allocation_not_running");
    assert_eq!(say(&world, submitted.id, "start", json!({})).await.expect(200)["state"], "running");
    assert_eq!(say(&world, submitted.id, "checkpointing", json!({})).await.expect(200)["state"], "checkpointing");
    let report = json!({ "bytes": 4096, "took": "1us" });
    assert_eq!(say(&world, submitted.id, "checkpoint", report).await.expect(200)["state"], "running");
    let shown = show(&world, submitted.id).await;
    assert_eq!((shown.attempts.len(), shown.attempts[0].checkpoints[0].bytes), (1, 4096));
    assert_eq!(shown.attempts[0].replicas.len(), 2);
    let lease = &shown.attempts[0].replicas[0].leases[0].id;
    let lease = world.get(&format!("/api/v1/leases/{lease}")).await.expect(200);
    assert_eq!(lease["allocation_id"], submitted.id.to_string());
    // One lease of a gang cannot be torn out of it.
    let path = format!("/api/v1/leases/{}/release", lease["id"].as_str().expect("an id"));
    assert_eq!(world.post(&path, json!({})).await.code(), "lease_of_allocation");
    let done = json!({ "exit_status": 3, "storage_written": 77 });
    assert_eq!(say(&world, submitted.id, "complete", done).await.expect(200)["state"], "failed");
    // It is over; the journal still knows all of it.
    let over = show(&world, submitted.id).await;
    assert_eq!((over.exit_status, over.storage_written), (Some(3), Some(77)));
    assert!(over.allocation.ended_at.is_some() && over.waiting.is_none());
    assert_eq!((over.attempts[0].replicas.len(), over.attempts[0].checkpoints.len()), (2, 1));
    assert_eq!(say(&world, submitted.id, "cancel", json!({})).await.code(), "allocation_over");
    assert!(world.get("/api/v1/allocations").await.expect(200)["allocations"].as_array().expect("a list").is_empty());
    for nothing in ["alloc-0", "alloc-999999", "01", "x"] {
        let answer = world.get(&format!("/api/v1/allocations/{nothing}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "allocation_not_found"), "{nothing}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_told_what_for() {
    let world = racks().await;
    // Of higher priority, so that the order does not hang on who used more by the last whole minute.
    let guaranteed = json!({ "pool": "main", "priority": "guaranteed" });
    let first = submit(&world, gang("physics", 8, 3, &guaranteed)).await;
    let quota =
        json!({ "tenant": "chemistry", "class": "h100", "measure": "quanta", "limit": { "type": "hard", "limit": 8 } });
    world.post("/api/v1/quotas", quota).await.expect(201);
    let head = submit(&world, gang("physics", 8, 4, &guaranteed)).await;
    let held = submit(&world, gang("chemistry", 4, 1, &json!({ "walltime": "10m" }))).await;
    assert_eq!(held.replicas.len(), 1, "it is gone before the head starts");
    let behind = submit(&world, gang("chemistry", 4, 1, &json!({ "walltime": "3h" }))).await;
    let waiting = show(&world, head.id).await.waiting.expect("it waits");
    assert_eq!(waiting.detail, "1st, 28 GPU of h100 short on pool main; 0 of 4 replicas would fit");
    assert_eq!((waiting.class.as_deref(), waiting.short.as_deref()), (Some("h100"), Some("28")));
    assert!(waiting.starts_by.is_some(), "{waiting:?}");
    let waiting = show(&world, behind.id).await.waiting.expect("it waits");
    assert!(waiting.detail.starts_with(&format!("2nd, would delay {}, which starts by ", head.id)), "{waiting:?}");
    // To another tenant it has no name.
    let token = tenant_token(&world, "chemistry").await;
    let path = format!("/api/v1/allocations/{}", behind.id);
    let told = world.send(Some(&token), Method::Get, &path, None).await.expect(200);
    let detail = told["waiting"]["detail"].as_str().expect("words");
    assert!(detail.starts_with("2nd, would delay a higher-ranked allocation"), "{detail}");
    assert!(told["waiting"].get("ahead").is_none());
    assert_eq!(
        world.send(Some(&token), Method::Get, &format!("/api/v1/allocations/{}", head.id), None).await.status,
        404
    );
    // More than the quota leaves now is refused at once; what waits finds it taken when it could start.
    let denied = world.post("/api/v1/allocations", gang("chemistry", 8, 1, &json!({}))).await;
    assert_eq!((denied.status, denied.code().as_str()), (409, "quota_exceeded"));
    let denied = denied.json();
    assert_eq!((&denied["used"], &denied["requested"], &denied["limit"]), (&json!("4"), &json!("8"), &json!("8")));
    let change = json!({ "limit": { "type": "hard", "limit": 6 } });
    world.send(Some(&world.operator), Method::Put, "/api/v1/quotas/0", Some(change)).await.expect(200);
    let waiting = show(&world, behind.id).await.waiting.expect("it waits");
    assert_eq!(
        waiting.detail,
        "2nd, waiting for quota headroom: tenant \"chemistry\" would exceed its quota of h100 (used 4, requested 4, limit 6 GPU)"
    );
    assert_eq!((waiting.used, waiting.requested, waiting.limit), (Some(4), Some(4), Some(6)));
    // Both pages of the list, and its filters.
    let page = world.get("/api/v1/allocations?limit=3").await.expect(200);
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let rest = world.get(&format!("/api/v1/allocations?limit=3&cursor={cursor}")).await.expect(200);
    let ids = |page: &Value| -> Vec<u64> {
        page["allocations"].as_array().expect("a list").iter().map(|one| one["id"].allocation()).collect()
    };
    assert_eq!([ids(&page), ids(&rest)].concat(), [first.id, head.id, held.id, behind.id].map(|id| id.0));
    let places = |page: &Value| -> Vec<Option<u64>> {
        page["allocations"].as_array().expect("a list").iter().map(|one| one["position"].as_u64()).collect()
    };
    assert_eq!([places(&page), places(&rest)].concat(), [None, Some(1), None, Some(2)]);
    let pending = world.get("/api/v1/allocations?state=pending&tenant=physics&pool=main").await.expect(200);
    assert_eq!(ids(&pending), [head.id.0]);
    // Room is made: the head starts, whole, on what is free and on what a lower priority must give up.
    say(&world, first.id, "cancel", json!({})).await.expect(200);
    assert_eq!(until(&world, head.id, "running").await.attempts[0].replicas.len(), 4);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_must_wait_for_victims_is_answered_202_and_victims_learn_no_name() {
    let world = racks().await;
    let victim = submit(&world, gang("chemistry", 8, 4, &json!({ "priority": "scavenger", "requeue": true }))).await;
    let token = tenant_token(&world, "chemistry").await;
    let live = world.client().get(format!("{}/api/v1/events", world.url)).bearer_auth(&token);
    let mut live = live.send().await.expect("a stream");
    let request = json!({ "tenant": "physics", "project": "physics", "ttl": "10m", "priority": "guaranteed",
        "asks": [{ "class": "h100", "quantity": 2 }] });
    let answer = world.post("/api/v1/leases", request.clone()).await.expect(202);
    let waits: Submitted = serde_json::from_value(answer).expect("the type of the API");
    // Without a grace period it starts in the same append.
    assert_eq!((waits.state.word(), waits.replicas.len()), ("running", 1));
    let placed = until(&world, waits.id, "running").await;
    assert_eq!(placed.attempts[0].replicas[0].leases.len(), 1);
    // The victim waits again; its record cites the decision by number only.
    let shown = until(&world, victim.id, "pending").await;
    assert_eq!(shown.attempts.len(), 1);
    assert_eq!(serde_json::to_value(shown.attempts[0].end).expect("a word"), "preempted");
    // Its tenant hears of it as it happens, and of nothing that is not its own.
    let mut heard = String::new();
    while !heard.contains("event: allocation.requeued\n") {
        let piece = live.chunk().await.expect("the stream goes on").expect("the stream goes on");
        heard.push_str(std::str::from_utf8(&piece).expect("events are text"));
    }
    assert!(heard.contains("event: lease.revoked\n"), "{heard}");
    assert!(!heard.contains("physics") && !heard.contains("preemption."), "{heard}");
    let own = world.send(Some(&token), Method::Get, "/api/v1/audit/records?limit=1000", None).await.expect(200);
    let own = own["records"].as_array().expect("records");
    assert!(own.iter().any(|record| record["kind"] == "allocation.requeued"));
    assert!(own.iter().any(|record| record["kind"] == "lease.revoked" && record["reason"]["reason"] != "operator"));
    assert!(!own.iter().any(|record| record["kind"] == "preemption.decided"));
    assert!(!serde_json::to_string(own).expect("text").contains("physics"), "{own:#?}");
    let all = world.get("/api/v1/audit/records?kind=preemption").await.expect(200);
    assert_eq!(all["records"].as_array().expect("records").len(), 1);
    // The same in a batch. There is room beside the first, so it is granted at once.
    let batch = json!({ "operations": [{ "request": request }, { "request": gang_request("physics", 8, 5) }] });
    let results = world.post("/api/v1/leases/batch", batch).await.expect(200);
    let results: BatchResults = serde_json::from_value(results).expect("the type of the API");
    assert!(matches!(results.results[0].outcome, Outcome::Granted(_)), "{results:?}");
    assert!(matches!(results.results[1].outcome, Outcome::Granted(_) | Outcome::Problem(_)), "{results:?}");
    // A gang of one lease may be given back like any other.
    let lease = &placed.attempts[0].replicas[0].leases[0].id;
    let released = world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    assert_eq!(released["state"], "closed");
    assert_eq!(serde_json::to_value(show(&world, waits.id).await.allocation.state).expect("a word"), "completed");
    world.stop().await;
}

fn gang_request(tenant: &str, gpus: u64, minutes: u64) -> Value {
    json!({ "tenant": tenant, "project": tenant, "ttl": format!("{minutes}m"), "asks": [{ "class": "h100", "quantity": gpus }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_answered_again_under_its_key() {
    let world = racks().await;
    let send = async |body: Value| {
        let request = world.client().post(format!("{}/api/v1/allocations", world.url));
        let request = request.bearer_auth(&world.operator).header("idempotency-key", "once");
        let request = request.header("content-type", "application/json").body(body.to_string());
        crate::world::read(request.send().await.expect("an answer")).await
    };
    let first = send(gang("physics", 8, 2, &json!({}))).await;
    let id = first.json()["id"].allocation();
    say(&world, id, "cancel", json!({})).await.expect(200);
    let again = send(gang("physics", 8, 2, &json!({}))).await;
    assert_eq!((first.status, first.text.as_str()), (201, again.text.as_str()));
    assert_eq!(send(gang("physics", 8, 3, &json!({}))).await.code(), "idempotency_mismatch");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_are_set_shown_and_used() {
    let world = racks().await;
    let token = {
        let new = json!({ "name": "billing", "role": "billing_authority" });
        world.post("/api/v1/tokens", new).await.expect(201)["secret"].as_str().expect("a secret").to_owned()
    };
    let put =
        async |change: Value| world.send(Some(&token), Method::Put, "/api/v1/tenants/physics", Some(change)).await;
    let change = json!({ "gpu_hours_budget": 1000, "fair_share_target": "0.25", "budget_period_days": 30,
        "max_concurrent_allocations": 1, "max_pending": 5, "burst_allowance": 10 });
    let tenant = put(change).await.expect(200)["tenant"].clone();
    assert_eq!((&tenant["gpu_hours_budget"], &tenant["fair_share_target"]), (&json!(1000), &json!("0.25")));
    let tenant = put(json!({ "fair_share_target": null })).await.expect(200)["tenant"].clone();
    assert_eq!((&tenant["fair_share_target"], &tenant["budget_period_days"]), (&Value::Null, &json!(30)));
    for bad in ["0.2501", "2", "0", ".5", "-1", "1e-3", ""] {
        let answer = put(json!({ "fair_share_target": bad })).await;
        assert_eq!((answer.status, answer.code().as_str()), (422, "bad_budget"), "{bad}");
    }
    assert_eq!(put(json!({ "gpu_hours_budget": 0 })).await.code(), "bad_budget");
    assert_eq!(put(json!({ "name": "chemistry" })).await.code(), "role_forbids");
    submit(&world, gang("physics", 8, 1, &json!({}))).await;
    let denied = world.post("/api/v1/allocations", gang("physics", 1, 1, &json!({}))).await;
    assert!(denied.expect(409)["detail"].as_str().expect("words").contains("max_concurrent_allocations"));
    let usage = world.get("/api/v1/tenants/physics/usage").await.expect(200);
    let usage: TenantUsage = serde_json::from_value(usage).expect("the type of the API");
    assert_eq!((usage.days, usage.gpu_hours.budget, usage.factor.as_str()), (30, Some(1000), "1.000000"));
    assert!(usage.gpu_hours.fraction.is_some() && usage.node_hours.fraction.is_none());
    for bad in ["0", "367", "x"] {
        assert_eq!(world.get(&format!("/api/v1/tenants/physics/usage?days={bad}")).await.code(), "bad_query", "{bad}");
    }
    let own = tenant_token(&world, "chemistry").await;
    let other = world.send(Some(&own), Method::Get, "/api/v1/tenants/physics/usage", None).await;
    assert_eq!(other.status, 404);
    let metrics = world.get("/metrics").await.text;
    for line in ["leasehold_allocations{state=\"running\"} 1", "leasehold_allocations_waiting 0"] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_see_their_own_allocations_only() {
    let world = racks().await;
    world.post("/api/v1/projects", json!({ "name": "other", "tenant": "physics" })).await.expect(201);
    let own = submit(&world, gang("physics", 1, 1, &json!({}))).await;
    let other = submit(&world, gang("physics", 1, 1, &json!({ "project": "other" }))).await;
    let new = json!({ "name": "m", "role": Role::ProjectMember.word(), "tenant": "physics", "project": "physics" });
    let token = world.post("/api/v1/tokens", new).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    let listed = world.send(Some(&token), Method::Get, "/api/v1/allocations", None).await.expect(200);
    assert_eq!(listed["allocations"].as_array().expect("a list").len(), 1);
    for (id, status) in [(own.id, 200), (other.id, 404)] {
        let path = format!("/api/v1/allocations/{id}");
        assert_eq!(world.send(Some(&token), Method::Get, &path, None).await.status, status);
        let path = format!("{path}/cancel");
        assert_eq!(world.send(Some(&token), Method::Post, &path, None).await.status, status);
    }
    let records =
        world.send(Some(&token), Method::Get, "/api/v1/audit/records?kind=allocation", None).await.expect(200);
    let kinds: Vec<&str> =
        records["records"].as_array().expect("records").iter().filter_map(|r| r["kind"].as_str()).collect();
    assert_eq!(kinds, ["allocation.submitted", "allocation.placed", "allocation.cancelled"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_allocations_are_held_released_and_changed() {
    let world = racks().await;
    submit(&world, gang("physics", 8, 4, &json!({}))).await;
    let first = submit(&world, gang("physics", 8, 1, &json!({}))).await;
    let at = |what: &str| format!("/api/v1/allocations/{}{what}", first.id);
    let held = world.post(&at("/hold"), json!({ "reason": "data is missing" })).await.expect(200);
    assert_eq!((&held["id"], &held["state"]), (&json!(first.id.to_string()), &json!("pending")));
    let shown = show(&world, first.id).await;
    let hold = shown.allocation.on_hold.expect("it is on hold");
    assert_eq!((hold.by_operator, hold.reason.as_deref()), (true, Some("data is missing")));
    let waiting = shown.waiting.expect("it waits");
    assert_eq!(waiting.reason, leasehold_api::WaitReason::Hold);
    assert!(waiting.detail.contains("Put on hold by an operator") && waiting.detail.contains("data is missing"));
    let explained = world.get(&at("/explain")).await.expect(200);
    assert!(explained.to_string().contains("Put on hold by an operator"), "{explained}");
    assert_eq!(world.post(&at("/hold"), json!({})).await.expect(409)["code"], "allocation_on_hold");
    world.post(&at("/release"), json!({})).await.expect(200);
    assert_eq!(world.post(&at("/release"), json!({})).await.expect(409)["code"], "allocation_not_on_hold");
    // What is absent stays, null clears.
    let change = json!({ "priority": "scavenger", "walltime": null, "pool": "main" });
    world.send(Some(&world.operator), Method::Patch, &at(""), Some(change)).await.expect(200);
    let shown = show(&world, first.id).await.allocation;
    assert_eq!((shown.priority, shown.walltime), (leasehold_api::Priority::Scavenger, None));
    assert_eq!((shown.pool.as_deref(), shown.on_hold), (Some("main"), None));
    assert_eq!(
        world.send(Some(&world.operator), Method::Patch, &at(""), Some(json!({ "pool": "main" }))).await.expect(422)["code"],
        "allocation_unchanged"
    );
    assert_eq!(
        world.send(Some(&world.operator), Method::Patch, &at(""), Some(json!({ "walltime": "0s" }))).await.expect(422)
            ["code"],
        "zero_ttl"
    );
    world.stop().await;
}
