//! Cost ceilings over HTTP: who sets them, what they stand against, and what is told of them.

use crate::world::{AllocationNumber as _, Answer, World};
use leasehold_api::{Ceiling, CeilingMode, Method, Role};
use serde_json::{Value, json};

const OWN: &str = "/api/v1/projects/physics-main/ceiling";

/// A GPU costs one a second: money reads as seconds.
async fn priced() -> World {
    let world = World::furnished().await;
    world.post("/api/v1/rate-cards", json!({ "prices": { "kinds": { "gpu": "1" } } })).await.expect(201);
    world
}

fn asked(gpus: u64, ttl: &str) -> Value {
    json!({ "tenant": "physics", "project": "physics-main", "ttl": ttl, "asks": [{ "class": "h100", "quantity": gpus }] })
}

async fn set(world: &World, body: Value) -> Answer {
    world.send(Some(&world.operator), Method::Put, OWN, Some(body)).await
}

async fn shown(world: &World) -> Ceiling {
    serde_json::from_value(world.get(OWN).await.expect(200)).expect("the type of the API")
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_kept_back_and_a_hard_ceiling_denies() {
    let world = priced().await;
    assert_eq!(world.get(OWN).await.code(), "unknown_ceiling");
    // The lease that is held already costs at most an hour from here on.
    let put = set(&world, json!({ "amount": "10000.5" })).await.expect(200);
    assert_eq!(
        (&put["ceiling"]["mode"], &put["ceiling"]["currency"], &put["ceiling"]["leases"]),
        (&json!("hard"), &json!("EUR"), &json!(1))
    );
    let before = shown(&world).await;
    assert!(before.reserved.0.parse::<f64>().expect("a number") <= 3600.0, "{before:?}");
    assert_eq!((before.spent.0.as_str(), before.exceeded), ("0", false));
    let granted = world.post("/api/v1/leases", asked(1, "50m")).await.expect(201);
    let quote = world.post("/api/v1/leases/quote", asked(2, "1h")).await.expect(200);
    assert_eq!((&quote["admitted"], &quote["code"]), (&json!(false), &json!("ceiling_exceeded")));
    let denied = world.post("/api/v1/leases", asked(2, "1h")).await.expect(409);
    assert_eq!(
        (&denied["code"], &denied["requested"], &denied["amount"], &denied["spent"], &denied["tenant"]),
        (&json!("ceiling_exceeded"), &json!("7200"), &json!("10000.5"), &json!("0"), &json!("physics"))
    );
    let sequence = denied["sequence"].as_u64().expect("it is sealed");
    let told = world.get(&format!("/api/v1/audit/decisions/{sequence}")).await.expect(200);
    assert_eq!((&told["outcome"], &told["replayed"]), (&json!("denied"), &json!("same")), "{told}");
    assert_eq!((&told["ceilings"][0]["said"], &told["ceilings"][0]["mode"]), (&json!("refused"), &json!("hard")));
    // A renewal is held to it, too.
    let lease = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
    set(&world, json!({ "amount": "6601" })).await.expect(200);
    let refused = world.post(&format!("/api/v1/leases/{lease}/renew"), json!({ "ttl": "2h" })).await.expect(409);
    assert_eq!((&refused["code"], &refused["currency"]), (&json!("ceiling_exceeded"), &json!("EUR")));
    // What was not used returns.
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    let after = shown(&world).await;
    assert_eq!(after.reserved, before.reserved);
    let spent: f64 = after.spent.0.parse().expect("a number");
    assert!(spent > 0.0 && spent < 600.0, "{after:?}");
    let metrics = world.get("/metrics").await.text;
    assert!(metrics.contains("leasehold_leases_denied_total{cause=\"ceiling\"} 1"), "{metrics}");
    assert!(metrics.contains("leasehold_ceilings{mode=\"hard\",condition=\"within\"} 1"), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soft_ceiling_shows_that_it_is_exceeded() {
    let world = priced().await;
    set(&world, json!({ "amount": "1", "mode": "soft" })).await.expect(200);
    world.post("/api/v1/leases", asked(1, "1h")).await.expect(201);
    let found = shown(&world).await;
    assert!(found.exceeded && found.mode == CeilingMode::Soft && found.left.0 == "0", "{found:?}");
    let metrics = world.get("/metrics").await.text;
    assert!(metrics.contains("leasehold_ceilings{mode=\"soft\",condition=\"exceeded\"} 1"), "{metrics}");
    // What is absent stays.
    let put = set(&world, json!({ "amount": "2" })).await.expect(200);
    assert_eq!(put["ceiling"]["mode"], "soft");
    world.send(Some(&world.operator), Method::Delete, OWN, None).await.expect(200);
    assert_eq!(world.send(Some(&world.operator), Method::Delete, OWN, None).await.code(), "unknown_ceiling");
    let records = world.get("/api/v1/audit/records?kind=ceiling&limit=10").await.expect(200);
    let kinds: Vec<&Value> = records["records"].as_array().expect("records").iter().map(|r| &r["kind"]).collect();
    assert_eq!(kinds, ["ceiling.put", "ceiling.put", "ceiling.deleted"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_waits_for_cost_headroom() {
    let world = priced().await;
    set(&world, json!({ "amount": "7500" })).await.expect(200);
    let gang = |walltime: &str| {
        let mut gang = asked(1, "1h");
        gang.as_object_mut().expect("an object").remove("ttl");
        gang["walltime"] = walltime.into();
        gang
    };
    let first = world.post("/api/v1/allocations", gang("1h")).await.expect(201);
    assert_eq!(first["state"], "running", "{first}");
    let waits = world.post("/api/v1/allocations", gang("1h")).await.expect(201);
    let id = waits["id"].allocation();
    let found = world.get(&format!("/api/v1/allocations/{id}")).await.expect(200);
    assert_eq!(found["waiting"]["reason"], "cost", "{found}");
    let detail = found["waiting"]["detail"].as_str().expect("words");
    assert!(
        detail.contains("waiting for cost headroom: tenant \"physics\" would exceed the cost ceiling of project"),
        "{detail}"
    );
    let told = world.get(&format!("/api/v1/allocations/{id}/explain")).await.expect(200);
    assert_eq!((&told["outcome"], &told["ceilings"][0]["said"]), (&json!("waits"), &json!("refused")), "{told}");
    // What could never be paid for does not wait.
    let denied = world.post("/api/v1/allocations", gang("3h")).await.expect(409);
    assert_eq!(denied["code"], "ceiling_exceeded");
    let first = first["id"].allocation();
    world.post(&format!("/api/v1/allocations/{first}/complete"), json!({})).await.expect(200);
    world.until(&format!("/api/v1/allocations/{id}"), |found| found["state"] == "running").await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_instance_is_held_to_its_own_ceiling() {
    let world = priced().await;
    set(&world, json!({ "amount": "100000" })).await.expect(200);
    let of_seven = format!("{OWN}?app_instance=seven");
    let put = json!({ "amount": "4000" });
    world.send(Some(&world.operator), Method::Put, &of_seven, Some(put)).await.expect(200);
    let of = |app: Option<&str>, ttl: &str| {
        let mut asked = asked(1, ttl);
        asked["app_instance"] = json!(app);
        asked
    };
    let granted = world.post("/api/v1/leases", of(Some("seven"), "1h")).await.expect(201);
    let lease = format!("/api/v1/leases/{}", granted["leases"][0]["id"].as_str().expect("an id"));
    assert_eq!(world.get(&lease).await.expect(200)["app_instance"], "seven");
    let found: Ceiling = serde_json::from_value(world.get(&of_seven).await.expect(200)).expect("the type of the API");
    assert_eq!((found.reserved.0.as_str(), found.leases), ("3600", 1));
    let denied = world.post("/api/v1/leases", of(Some("seven"), "10m")).await.expect(409);
    assert_eq!((&denied["code"], &denied["app_instance"]), (&json!("ceiling_exceeded"), &json!("seven")), "{denied}");
    let quote = world.post("/api/v1/leases/quote", of(Some("seven"), "10m")).await.expect(200);
    assert_eq!((&quote["admitted"], &quote["code"]), (&json!(false), &json!("ceiling_exceeded")));
    // Others of the project are not held to it.
    world.post("/api/v1/leases", of(Some("eight"), "10m")).await.expect(201);
    world.post("/api/v1/leases", of(None, "10m")).await.expect(201);
    // A gang waits for what returns; it says whose it is, and so do the leases of both once they are closed.
    let mut gang = of(Some("seven"), "10m");
    gang.as_object_mut().expect("an object").remove("ttl");
    gang["walltime"] = "10m".into();
    let waits = world.post("/api/v1/allocations", gang).await.expect(201);
    let path = format!("/api/v1/allocations/{}", waits["id"].allocation());
    let found = world.get(&path).await.expect(200);
    assert_eq!((&found["app_instance"], &found["waiting"]["reason"]), (&json!("seven"), &json!("cost")), "{found}");
    assert!(
        found["waiting"]["detail"].as_str().is_some_and(|why| why.contains("of app instance \"seven\"")),
        "{found}"
    );
    world.post(&format!("{lease}/release"), json!({})).await.expect(200);
    world.until(&path, |found| found["state"] == "running").await;
    assert_eq!(world.get(&lease).await.expect(200)["app_instance"], "seven");
    let usage = world.get("/api/v1/usage?by=app_instance,class&app_instance=seven").await.expect(200);
    assert_eq!(usage["lines"][0]["app_instance"], "seven", "{usage}");
    let bad = world.post("/api/v1/leases", of(Some("sevn"), "10m")).await.expect(404);
    assert_eq!((&bad["code"], &bad["field"]), (&json!("unknown_app_instance"), &json!("app_instance")));
    assert_eq!(bad["nearest"], "seven");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_set_and_who_may_see() {
    let world = priced().await;
    let by = |role: Role, method, path: &'static str, body: Option<Value>| {
        world.send(Some(&world.tokens[&role]), method, path, body)
    };
    let body = || Some(json!({ "amount": "100000" }));
    by(Role::BillingAuthority, Method::Put, OWN, body()).await.expect(200);
    for role in [Role::TenantAdmin, Role::ProjectMember, Role::Auditor] {
        assert_eq!(by(role, Method::Put, OWN, body()).await.status, 403, "{role}");
        assert_eq!(by(role, Method::Delete, OWN, None).await.status, 403, "{role}");
        assert_eq!(by(role, Method::Get, OWN, None).await.status, 200, "{role}");
    }
    let others = "/api/v1/projects/chemistry-main/ceiling";
    world.send(Some(&world.operator), Method::Put, others, body()).await.expect(200);
    for path in [others, "/api/v1/projects/1/ceiling", "/api/v1/projects/chemistry-main/ceilings"] {
        assert_eq!(by(Role::TenantAdmin, Method::Get, path, None).await.status, 404, "{path}");
    }
    for app in ["nine", "seven", "eight"] {
        let path = format!("{OWN}?app_instance={app}");
        world.send(Some(&world.operator), Method::Put, &path, body()).await.expect(200);
    }
    let list = "/api/v1/projects/physics-main/ceilings";
    let page = world.send(Some(&world.tokens[&Role::TenantAdmin]), Method::Get, &format!("{list}?limit=2"), None).await;
    let page = page.expect(200);
    let next = page["next_cursor"].as_str().expect("more").to_owned();
    let rest = world.get(&format!("{list}?cursor={next}")).await.expect(200);
    let apps = |page: &Value| -> Vec<Value> {
        let all = page["ceilings"].as_array().expect("a list");
        all.iter().map(|ceiling| ceiling.get("app_instance").cloned().unwrap_or_default()).collect()
    };
    assert_eq!((apps(&page), apps(&rest)), (vec![json!(null), json!("seven")], vec![json!("eight"), json!("nine")]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_told_by_its_field() {
    let world = priced().await;
    for (body, code, field) in [
        (json!({ "amount": "0" }), "bad_ceiling", "amount"),
        (json!({ "amount": "-5" }), "bad_ceiling", "amount"),
        (json!({ "amount": "1e3" }), "bad_ceiling", "amount"),
        (json!({ "amount": "" }), "bad_ceiling", "amount"),
        (json!({ "amount": "0.0000000001" }), "bad_ceiling", "amount"),
        (json!({ "amount": "1000000000000000.000000001" }), "bad_ceiling", "amount"),
        (json!({ "amount": "99999999999999999999999999999999999999999999" }), "bad_ceiling", "amount"),
        (json!({ "amount": "5", "currency": "euro" }), "bad_ceiling", "currency"),
    ] {
        let answer = set(&world, body.clone()).await.expect(422);
        assert_eq!((&answer["code"], &answer["field"]), (&json!(code), &json!(field)), "{body}");
    }
    for body in
        [json!({ "amount": 5 }), json!({}), json!({ "amount": "5", "mode": "burst" }), json!({ "amount": "5", "x": 1 })]
    {
        assert_eq!(set(&world, body.clone()).await.expect(422)["code"], "bad_body", "{body}");
    }
    assert_eq!(world.get(OWN).await.code(), "unknown_ceiling", "nothing was set");
    set(&world, json!({ "amount": "5", "currency": "CHF" })).await.expect(200);
    let fixed = set(&world, json!({ "amount": "5", "currency": "EUR" })).await.expect(409);
    assert_eq!((&fixed["code"], &fixed["field"]), (&json!("currency_fixed"), &json!("currency")));
    let nowhere = world.send(
        Some(&world.operator),
        Method::Put,
        "/api/v1/projects/nowhere/ceiling",
        Some(json!({ "amount": "5" })),
    );
    assert_eq!(nowhere.await.status, 404);
    assert_eq!(world.get(&format!("{OWN}?app_instance=-1")).await.code(), "unknown_app_instance");
    assert_eq!(world.get(&format!("{OWN}?app_instance=seven")).await.code(), "unknown_ceiling");
    world.stop().await;
}
