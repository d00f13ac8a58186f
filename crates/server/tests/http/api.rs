//! The API as its callers meet it: answers that can be read back as their types, keys, pages, changes.

use crate::world::World;
use leasehold_api::{
    BatchResults, Granted, History, LeaseList, LeaseState, Method, Outcome, Problem, Released, Renewed, Revoked,
    TenantPut,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads an answer as its type, and holds it to have no field that the type does not know.
#[track_caller]
fn typed<T: DeserializeOwned + serde::Serialize>(answer: Value) -> T {
    let value: T = serde_json::from_value(answer.clone()).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let again = serde_json::to_value(&value).expect("a type can be written");
    for (key, shown) in answer.as_object().expect("an object") {
        assert_eq!(again.get(key), Some(shown), "the type lost {key}");
    }
    value
}

pub(crate) fn ask(quantity: u32) -> Value {
    json!({ "tenant": "physics", "project": "physics-main", "ttl": "10m", "asks": [{ "class": "h100", "quantity": quantity }] })
}

/// A token may be typed into the page, so it must not run or show anything of others.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_api_is_locked_down() {
    let world = World::empty().await;
    let page = world.get("/api/docs").await;
    assert_eq!(page.status, 200);
    for (header, value) in
        [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("referrer-policy", "no-referrer")]
    {
        assert_eq!(page.headers[header], value);
    }
    let policy = page.headers["content-security-policy"].to_str().expect("ASCII");
    for part in [
        "default-src 'none'",
        "script-src 'sha256-",
        "style-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{part} is not in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_of_the_lease_path_are_of_their_types() {
    let world = World::furnished().await;
    let granted: Granted = typed(world.post("/api/v1/leases", ask(2)).await.expect(201));
    assert_eq!(
        (granted.leases.len(), granted.leases[0].quantity.as_str(), granted.leases[0].devices.len()),
        (1, "2", 2)
    );
    let id = &granted.leases[0].id;
    let renewed: Renewed =
        typed(world.post(&format!("/api/v1/leases/{id}/renew"), json!({ "ttl": "20m" })).await.expect(200));
    assert!(renewed.expires_at > granted.expires_at && renewed.id == *id);
    // A report that cannot be true is refused alone: the renewal it came with stands.
    let report = json!({ "ttl": "30m", "activity": { "covered": "5h", "active": "1s", "busy_quantum_ns": "1" } });
    let renewed: Renewed = typed(world.post(&format!("/api/v1/leases/{id}/renew"), report).await.expect(200));
    assert_eq!(renewed.activity_problem.map(|problem| problem.code), Some("bad_activity".into()));
    let revoked: Revoked =
        typed(world.post(&format!("/api/v1/leases/{id}/revoke"), json!({ "grace": "1m" })).await.expect(200));
    assert_eq!((revoked.ids.len(), revoked.grace.to_string().as_str()), (1, "1m"));
    let shown = world.get(&format!("/api/v1/leases/{id}")).await.expect(200);
    assert_eq!(shown["state"], "revoking");
    world.post(&format!("/api/v1/leases/{id}/ready"), json!({})).await.expect(200);
    world.post(&format!("/api/v1/leases/{id}/teardown"), json!({})).await.expect(200);
    let closed = world.get(&format!("/api/v1/leases/{id}")).await.expect(200);
    assert_eq!((&closed["state"], closed["ended_at"].is_string()), (&json!("closed"), true));
    let granted: Granted = typed(world.post("/api/v1/leases", ask(1)).await.expect(201));
    let id = &granted.leases[0].id;
    let released: Released = typed(world.post(&format!("/api/v1/leases/{id}/release"), json!({})).await.expect(200));
    assert_eq!(released.state, LeaseState::Releasing);
    // A release needs no idempotency key: repeated, it gets the same answer, alone and in a batch.
    let again: Released = typed(world.post(&format!("/api/v1/leases/{id}/release"), json!({})).await.expect(200));
    assert_eq!(again, released);
    let batch = json!({ "operations": [{ "lease": id, "release": {} }, { "lease": id, "renew": { "ttl": "1h" } }] });
    let results = world.post("/api/v1/leases/batch", batch).await.expect(200)["results"].clone();
    assert_eq!(typed::<Released>(results[0]["released"].clone()), released);
    assert_eq!(results[1]["problem"]["code"], "lease_released");
    world.post("/api/v1/tenants", json!({ "name": "rivals" })).await.expect(201);
    let new = json!({ "name": "rival", "role": "tenant_admin", "tenant": "rivals" });
    let other = world.post("/api/v1/tokens", new).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    let foreign = world.send(Some(&other), Method::Post, &format!("/api/v1/leases/{id}/release"), None).await;
    assert_eq!((foreign.status, foreign.code().as_str()), (404, "lease_not_found"));
    let history: History = typed(world.get(&format!("/api/v1/leases/{id}/history")).await.expect(200));
    let kinds: Vec<&str> = history.records.iter().filter_map(|record| record["kind"].as_str()).collect();
    assert_eq!(kinds, ["lease.granted", "lease.released"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_says_who_what_and_the_three_numbers_and_says_it_again() {
    let world = World::furnished().await;
    let send = |key: &str, body: Value| {
        let request =
            world.client().post(format!("{}/api/v1/leases", world.url)).header("idempotency-key", key.to_owned());
        let request = request.header("authorization", format!("Bearer {}", world.operator));
        request.header("content-type", "application/json").body(body.to_string()).send()
    };
    let first = crate::world::read(send("k", ask(8)).await.expect("an answer")).await;
    let problem: Problem = serde_json::from_value(first.json()).expect("a problem");
    assert_eq!((first.status, problem.code.as_str()), (409, "quota_exceeded"));
    assert_eq!(problem.detail, "Tenant \"physics\" would exceed its quota of h100 (used 1, requested 8, limit 6 GPU).");
    assert_eq!(
        (&problem.members["used"], &problem.members["requested"], &problem.members["limit"]),
        (&json!("1"), &json!("8"), &json!("6"))
    );
    assert_eq!(problem.members["unit"], "GPU");
    assert_eq!(first.headers["content-type"], "application/problem+json");
    let again = crate::world::read(send("k", ask(8)).await.expect("an answer")).await;
    let until = |answer: &crate::world::Answer| answer.headers["idempotency-key-remembered-until"].clone();
    assert_eq!(until(&again), until(&first), "from the first use of the key");
    let again = again.json();
    assert_eq!(again["sequence"], problem.members["sequence"]);
    let other = crate::world::read(send("k", ask(7)).await.expect("an answer")).await;
    assert_eq!((other.status, other.code().as_str()), (409, "idempotency_mismatch"));
    for key in [&"x".repeat(65), ""] {
        let bad = crate::world::read(send(key, ask(1)).await.expect("an answer")).await;
        assert_eq!((bad.status, bad.code().as_str()), (400, "bad_idempotency_key"), "{key:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_tenant_keeps_what_is_absent_and_clears_what_is_null() {
    let world = World::furnished().await;
    let put = async |body: Value| {
        let answer = world.send(Some(&world.operator), Method::Put, "/api/v1/tenants/physics", Some(body)).await;
        typed::<TenantPut>(answer.expect(200)).tenant
    };
    let contact = "ops@physics.example";
    let tenant = put(json!({ "contact": contact })).await;
    assert_eq!((tenant.contact.as_deref(), tenant.max_nodes), (Some(contact), None));
    let tenant =
        put(json!({ "accounting_tag": "cc-7", "max_nodes": 4, "max_leases": 9, "max_priority": "guaranteed" })).await;
    assert_eq!(tenant.contact.as_deref(), Some(contact));
    assert_eq!(
        (tenant.accounting_tag.as_deref(), tenant.max_nodes, tenant.max_leases),
        (Some("cc-7"), Some(4), Some(9))
    );
    let tenant = put(json!({ "max_nodes": null })).await;
    assert_eq!((tenant.accounting_tag.as_deref(), tenant.max_nodes, tenant.max_leases), (Some("cc-7"), None, Some(9)));
    let tenant = put(json!({ "accounting_tag": null, "max_priority": null, "max_nodes": 1 })).await;
    assert_eq!(
        (tenant.accounting_tag, tenant.max_nodes, tenant.max_priority),
        (None, Some(1), leasehold_api::Priority::Standard)
    );
    assert_eq!(put(json!({ "contact": null })).await.contact, None);
    let invisible = json!({ "contact": "ops\u{200b}" });
    let refused = world.send(Some(&world.operator), Method::Put, "/api/v1/tenants/physics", Some(invisible)).await;
    assert_eq!((refused.status, &refused.json()["field"]), (422, &json!("contact")));
    // Sealed as what it is, with who did it.
    let records = world.get("/api/v1/audit/records?kind=quota&tenant=physics").await.expect(200);
    let last = records["records"].as_array().expect("records").last().expect("one").clone();
    assert_eq!((&last["kind"], &last["identity"]["token_id"]), (&json!("quota.updated"), &json!(0)));
    let wrong = world.send(Some(&world.operator), Method::Put, "/api/v1/tenants/phsyics", Some(json!({}))).await;
    assert_eq!((wrong.status, &wrong.json()["nearest"]), (404, &json!("physics")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_and_miss_nothing() {
    let world = World::furnished().await;
    for _ in 0..4 {
        world.post("/api/v1/leases", ask(1)).await.expect(201);
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/leases?limit=2&tenant=physics".to_owned();
    loop {
        let page: LeaseList = typed(world.get(&path).await.expect(200));
        assert!(page.leases.len() <= 2);
        seen.extend(page.leases.into_iter().map(|lease| lease.id));
        let Some(cursor) = page.next_cursor else { break };
        path = format!("/api/v1/leases?limit=2&tenant=physics&cursor={cursor}");
    }
    let all: LeaseList = typed(world.get("/api/v1/leases?tenant=physics").await.expect(200));
    assert_eq!(seen, all.leases.iter().map(|lease| lease.id.clone()).collect::<Vec<_>>());
    assert_eq!(seen.len(), 5);
    for (path, code) in [
        ("/api/v1/leases?cursor=x", "bad_cursor"),
        ("/api/v1/leases?limit=0", "bad_query"),
        ("/api/v1/leases?limit=1001", "bad_query"),
        ("/api/v1/leases?limit=1&limit=2", "bad_query"),
        ("/api/v1/leases?colour=red", "bad_query"),
        ("/api/v1/leases?state=sleeping", "bad_query"),
    ] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{path}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_of_a_batch_stands_on_its_own() {
    let world = World::furnished().await;
    let operations = json!({ "operations": [
        { "key": "a", "request": ask(1) },
        { "key": "b", "request": ask(8) },
        { "key": "a", "request": ask(1) },
        { "key": "a", "request": ask(2) },
        { "lease": "lease-0", "renew": { "ttl": "2h" } },
        { "lease": "lease-99", "release": {} },
        { "lease": "lease-0", "release": {}, "renew": { "ttl": "1m" } },
        { "lease": "lease-0" },
        { "release": {} },
        { "lease": "lease-0", "revoke": { "grace": "10s" } },
        { "lease": "lease-0", "ready": {} },
        { "lease": "lease-0", "confirm_teardown": {} },
        { "lease": "lease-0", "unfence": {} },
    ] });
    let answer = world.post("/api/v1/leases/batch", operations).await.expect(200);
    let results: BatchResults = typed(answer);
    let statuses: Vec<u16> = results.results.iter().map(|result| result.status).collect();
    assert_eq!(statuses, [201, 409, 201, 409, 200, 404, 422, 422, 422, 200, 200, 200, 409]);
    let (Outcome::Granted(first), Outcome::Granted(again)) = (&results.results[0].outcome, &results.results[2].outcome)
    else {
        panic!("both are grants");
    };
    assert_eq!(first, again, "the same key, the same answer");
    let many: Vec<Value> = (0..10_001).map(|_| json!({ "lease": "lease-0", "ready": {} })).collect();
    let answer = world.post("/api/v1/leases/batch", json!({ "operations": many })).await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "too_many_operations"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_as_it_was_after_a_restart() {
    let world = World::furnished().await;
    let mut before = Vec::new();
    let paths = ["tenants", "projects", "users", "classes", "pools", "nodes", "quotas", "leases", "tokens", "settings"];
    for path in paths {
        before.push(world.get(&format!("/api/v1/{path}")).await.expect(200));
    }
    let operator = world.operator.clone();
    let folder = world.stop().await;
    let world = World::in_folder(folder, |_| {}).await;
    assert_eq!(world.operator, operator, "the first start issues the token, and no other");
    for (path, before) in paths.iter().zip(before) {
        assert_eq!(world.get(&format!("/api/v1/{path}")).await.expect(200), before, "{path}");
    }
    world.stop().await;
}
