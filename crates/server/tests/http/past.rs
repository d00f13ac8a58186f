//! Leases and allocations of any time: everything a closed one shows, lists by window, pages while things close, and what
//! tenants see of each other's past.

use crate::world::{AllocationNumber as _, World};
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<&str> {
    let leases = list["leases"].as_array().expect("a list");
    leases.iter().map(|lease| lease["id"].as_str().expect("an id")).collect()
}

async fn lease(world: &World, tenant: &str, node: &str) -> String {
    let asked = json!({ "tenant": tenant, "project": format!("{tenant}-main"), "user": format!("{tenant}-ada"),
        "workload": "train", "correlation_id": "0123456789abcdef0123456789abcdef", "ttl": "1h", "node": node,
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let granted = world.post("/api/v1/leases", asked).await.expect(201);
    granted["leases"][0]["id"].as_str().expect("an id").to_owned()
}

/// Gives a lease back, and has its node confirm that.
async fn close(world: &World, lease: &str) {
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
    world.post(&format!("/api/v1/leases/{lease}/teardown"), json!({})).await.expect(200);
}

/// All pages of a list, so many on each.
async fn all(world: &World, token: &str, query: &str, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/leases?{query}&limit={limit}{cursor}");
        let page = world.send(Some(token), Method::Get, &path, None).await.expect(200);
        assert!(ids(&page).len() <= limit);
        found.extend(ids(&page).into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_lease_shows_what_a_live_one_shows() {
    let world = World::furnished().await;
    let physics = json!({ "accounting_tag": "cc-4711" });
    world.send(Some(&world.operator), Method::Put, "/api/v1/tenants/physics", Some(physics)).await.expect(200);
    let id = lease(&world, "physics", "n1").await;
    let path = format!("/api/v1/leases/{id}");
    let live = world.get(&path).await.expect(200);
    assert_eq!((&live["accounting_tag"], &live["workload"]), (&json!("cc-4711"), &json!("train")));
    assert_eq!(live["correlation_id"], "01234567-89ab-cdef-0123-456789abcdef");
    assert_eq!(live["user"], "physics-ada");
    // The tag is that of the grant, whatever becomes of the tenant.
    let other = json!({ "accounting_tag": "cc-1" });
    world.send(Some(&world.operator), Method::Put, "/api/v1/tenants/physics", Some(other)).await.expect(200);
    world.post(&format!("{path}/revoke"), json!({ "grace": "0s" })).await.expect(200);
    let ended = world.until(&path, |lease| lease["state"] == "tearing_down").await;
    assert_eq!((&ended["end"], &ended["revocation"]["reason"]), (&json!("revoked"), &json!("operator")));
    world.post(&format!("{path}/teardown"), json!({})).await.expect(200);
    let closed = world.get(&path).await.expect(200);
    assert_eq!((&closed["state"], &closed["end"]), (&json!("closed"), &json!("revoked")));
    assert_eq!(closed["revocation"], ended["revocation"]);
    assert_eq!(closed["ended_at"], ended["ended_at"]);
    assert!(closed["closed_at"].is_string());
    for (key, value) in live.as_object().expect("an object") {
        if !["state", "ended_at"].contains(&key.as_str()) {
            assert_eq!(&closed[key], value, "{key}");
        }
    }
    // The same from the file, after a restart.
    let folder = world.stop().await;
    let world = World::in_folder(folder, |_| {}).await;
    assert_eq!(world.get(&path).await.expect(200), closed);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_answer_for_any_time_and_any_state() {
    let world = World::furnished().await;
    let (first, second) = (lease(&world, "physics", "n1").await, lease(&world, "chemistry", "n2").await);
    let shown = world.get(&format!("/api/v1/leases/{second}")).await.expect(200);
    let at = shown["granted_at"].as_str().expect("an instant").to_owned();
    close(&world, &first).await;
    let third = lease(&world, "physics", "n1").await;
    let operator = world.operator.clone();
    // As before: what is not closed.
    let now = all(&world, &operator, "node=n1", 10).await;
    assert!(now.contains(&third) && !now.contains(&first));
    // Who was on the node then: the one that came later was not.
    let then = all(&world, &operator, &format!("node=n1&at={at}"), 10).await;
    assert!(then.contains(&first) && !then.contains(&third) && !then.contains(&second));
    assert_eq!(all(&world, &operator, &format!("node=n1&at={at}"), 1).await, then);
    assert_eq!(all(&world, &operator, "state=closed", 10).await, std::slice::from_ref(&first));
    assert_eq!(all(&world, &operator, &format!("from={at}&tenant=chemistry&user=chemistry-ada"), 10).await, [second]);
    assert!(all(&world, &operator, "to=2001-01-01T00:00:00Z", 10).await.is_empty());
    // Times as people write them. The clock of this world stands at the beginning of its day or later.
    for query in ["from=today", "from=1w&to=tomorrow", "window=7d", "window=today", "window=month&time_zone=Asia/Tokyo"]
    {
        assert!(all(&world, &operator, &format!("{query}&state=closed"), 10).await.contains(&first), "{query}");
    }
    assert!(all(&world, &operator, "window=last-month", 10).await.is_empty());
    let local = |offset: &str| format!("{}{offset}", at.split(['.', 'Z']).next().unwrap_or(""));
    let until = |text: String| {
        let (world, operator) = (&world, &operator);
        async move { all(world, operator, &format!("to={}", text.replace('+', "%2B")), 10).await.len() }
    };
    // Without an offset it is a time of the zone: two or three hours earlier than the same reading of a clock in UTC.
    assert_eq!(until(local("&time_zone=Europe/Tallinn")).await, 0);
    assert_eq!(until(local("+02:00")).await, 0);
    assert!(until(local("-01:00")).await > 0);
    let closed = world.get("/api/v1/leases?state=closed").await.expect(200);
    assert_eq!((&closed["leases"][0]["end"], &closed["leases"][0]["state"]), (&json!("released"), &json!("closed")));
    for (query, code) in [
        (format!("at={at}&from={at}"), "bad_window"),
        (format!("from={at}&to=2001-01-01T00:00:00Z"), "bad_window"),
        ("at=yestreday".to_owned(), "bad_window"),
        ("at=2026-03-29T03:30&time_zone=Europe/Tallinn".to_owned(), "bad_window"),
        ("at=today&time_zone=Mars/Olympus".to_owned(), "bad_window"),
        ("window=today&from=today".to_owned(), "bad_window"),
        ("window=now".to_owned(), "bad_window"),
        ("allocation=x".to_owned(), "allocation_not_found"),
    ] {
        assert_eq!(world.get(&format!("/api/v1/leases?{query}")).await.code(), code, "{query}");
    }
    // Others' past is not there.
    let whole = "from=2001-01-01T00:00:00Z";
    let everything = all(&world, &operator, whole, 2).await;
    let mut sorted = everything.clone();
    sorted.sort();
    assert_eq!((everything.len(), &everything), (5, &sorted));
    for role in [Role::TenantAdmin, Role::ProjectMember, Role::NodeAgent] {
        let token = world.tokens[&role].clone();
        let seen = all(&world, &token, whole, 2).await;
        assert_eq!(seen.len(), 3, "{role}");
        assert!(seen.contains(&first) && seen.contains(&third), "{role}");
    }
    let stranger = world.send(
        Some(&world.tokens[&Role::TenantAdmin]),
        Method::Get,
        "/api/v1/leases?tenant=chemistry&state=closed",
        None,
    );
    assert_eq!(stranger.await.status, 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_stays_valid_while_leases_close() {
    let world = World::furnished().await;
    let mut leases = Vec::new();
    for _ in 0..4 {
        leases.push(lease(&world, "physics", "n1").await);
    }
    close(&world, &leases[2]).await;
    let first = world.get("/api/v1/leases?from=2001-01-01T00:00:00Z&limit=4").await.expect(200);
    assert_eq!(ids(&first)[2..], [&leases[0], &leases[1]]);
    // Those on the page before and those that come all close.
    for lease in [&leases[0], &leases[3]] {
        close(&world, lease).await;
    }
    let next = first["next_cursor"].as_str().expect("there are more");
    let rest = world.get(&format!("/api/v1/leases?from=2001-01-01T00:00:00Z&limit=4&cursor={next}")).await.expect(200);
    assert_eq!(ids(&rest), [&leases[2], &leases[3]]);
    assert_eq!(rest["leases"][1]["state"], "closed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn allocations_that_are_over_are_listed_too() {
    let world = World::furnished().await;
    let asked = json!({ "tenant": "physics", "project": "physics-main", "walltime": "1h", "workload": "train",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let mut submitted = Vec::new();
    for end in ["complete", "cancel", ""] {
        let one = world.post("/api/v1/allocations", asked.clone()).await.expect(201)["id"].allocation();
        if !end.is_empty() {
            world.post(&format!("/api/v1/allocations/{one}/{end}"), json!({})).await.expect(200);
        }
        submitted.push(one);
    }
    let numbers = async |token: &str, query: &str| {
        let list = world.send(Some(token), Method::Get, &format!("/api/v1/allocations{query}"), None).await.expect(200);
        let all = list["allocations"].as_array().expect("a list").clone();
        all.iter().map(|one| one["id"].allocation()).collect::<Vec<_>>()
    };
    let operator = &world.operator;
    assert_eq!(numbers(operator, "").await, submitted[2..]);
    assert_eq!(numbers(operator, "?state=completed").await, submitted[..1]);
    assert_eq!(numbers(operator, "?state=cancelled&tenant=physics").await, submitted[1..2]);
    assert_eq!(numbers(operator, "?from=2001-01-01T00:00:00Z").await, submitted);
    assert_eq!(numbers(&world.tokens[&Role::ProjectMember], "?from=2001-01-01T00:00:00Z").await, submitted);
    let first = world.get("/api/v1/allocations?from=2001-01-01T00:00:00Z&limit=1").await.expect(200);
    assert_eq!(
        (&first["allocations"][0]["workload"], &first["allocations"][0]["state"]),
        (&json!("train"), &json!("completed"))
    );
    let next = first["next_cursor"].as_str().expect("there are more");
    assert_eq!(numbers(operator, &format!("?from=2001-01-01T00:00:00Z&limit=2&cursor={next}")).await, submitted[1..]);
    // The leases of one that is over.
    let leases = world.get(&format!("/api/v1/leases?allocation=alloc-{}", submitted[0])).await.expect(200);
    assert_eq!(leases["leases"][0]["allocation_id"], format!("alloc-{}", submitted[0]));
    world.stop().await;
}

/// An allocation and all of its leases have one correlation ID, also if nobody gave one; and the records of its grants
/// carry the references of its submission.
#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_shares_its_correlation_id_and_its_references_with_its_leases() {
    let world = World::furnished().await;
    let given = "01234567-89AB-cdef-0123-456789abcdef";
    for correlation in [None, Some(given)] {
        let mut asked = json!({ "tenant": "physics", "project": "physics-main", "replicas": 1, "walltime": "1h",
            "hcl_entry": "entry-7", "dra_claim_id": "claim-7", "asks": [{ "class": "h100", "quantity": 1 }] });
        if let Some(correlation) = correlation {
            asked["correlation_id"] = json!(correlation);
        }
        let submitted = world.post("/api/v1/allocations", asked).await.expect(201);
        let id = submitted["correlation_id"].as_str().expect("an id").to_owned();
        assert_eq!(id.len(), 36, "{id}");
        assert!(correlation.is_none_or(|given| given.eq_ignore_ascii_case(&id)), "{id}");
        let lease = submitted["replicas"][0]["leases"][0]["id"].as_str().expect("a lease").to_owned();
        let shown = world.get(&format!("/api/v1/leases/{lease}")).await.expect(200);
        assert_eq!(shown["correlation_id"], json!(id));
        let records = world.get(&format!("/api/v1/leases/{lease}/history")).await.expect(200);
        let granted = &records["records"][0];
        assert_eq!(granted["body"]["correlation_id"], json!(id));
        assert_eq!(granted["lease_events"][0]["correlation_id"], json!(id));
        assert_eq!((&granted["affected_hcl_entry"], &granted["dra_claim_id"]), (&json!("entry-7"), &json!("claim-7")));
    }
    world.stop().await;
}
