//! Reports over HTTP: names of what was deleted, totals, peaks by kind, users of several tenants, who wasted most.

use crate::world::World;
use leasehold_api::{Method, Role};
use serde_json::{Value, json};

fn lines(report: &Value) -> &[Value] {
    report["lines"].as_array().expect("lines")
}

/// Millionths of a decimal text.
fn millionths(value: &Value) -> u128 {
    let (whole, decimals) = value.as_str().expect("a text").split_once('.').expect("a point");
    format!("{whole}{decimals:0<6}").parse().expect("digits")
}

impl World {
    async fn remove(&self, path: &str) {
        self.send(Some(&self.tokens[&Role::Operator]), Method::Delete, path, None).await.expect(200);
    }

    /// A short lease of some GPUs that is over.
    async fn past_lease(&self, who: Value, class: &str, gpus: u32) {
        let mut request = json!({ "ttl": "1h", "asks": [{ "class": class, "quantity": gpus }] });
        let fields = who.as_object().expect("an object");
        fields.iter().for_each(|(key, value)| request[key] = value.clone());
        let granted = self.post("/api/v1/leases", request).await.expect(201);
        let id = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
        self.post(&format!("/api/v1/leases/{id}/release"), json!({})).await.expect(200);
    }

    /// One node without an agent that has GPUs of two models. Without a ledger, so that what has been used can be deleted.
    async fn two_models() -> Self {
        let world = Self::with(|config| config.ledger.auto_open = false).await;
        world.post("/api/v1/classes", json!({ "name": "h100", "kind": "gpu", "tier": "h100" })).await.expect(201);
        let slices = json!({ "name": "a100", "kind": "gpu", "tier": "a100", "quanta_per_unit": 4 });
        world.post("/api/v1/classes", slices).await.expect(201);
        world.post("/api/v1/pools", json!({ "name": "main" })).await.expect(201);
        let node = json!({ "name": "n1", "pool": "main", "teardown": "immediate",
            "capacity": { "h100": 8, "a100": 8 } });
        world.post("/api/v1/nodes", node).await.expect(201);
        for tenant in ["physics", "chemistry"] {
            world.post("/api/v1/tenants", json!({ "name": tenant })).await.expect(201);
            world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": tenant })).await.expect(201);
            world.post("/api/v1/users", json!({ "name": "alice", "tenant": tenant })).await.expect(201);
        }
        world
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_objects_keep_their_names() {
    let world = World::two_models().await;
    let node = json!({ "name": "n2", "pool": "main", "teardown": "immediate", "capacity": { "h100": 1 } });
    world.post("/api/v1/nodes", node).await.expect(201);
    let who = json!({ "tenant": "physics", "project": "lattice", "user": "alice", "node": "n2" });
    world.past_lease(who, "h100", 1).await;
    let old = world.get("/api/v1/projects/lattice?tenant=physics").await.expect(200)["id"].clone();
    world.remove("/api/v1/projects/lattice?tenant=physics").await;
    world.remove("/api/v1/users/alice?tenant=physics").await;
    world.remove("/api/v1/nodes/n2").await;
    let usage = async |query: &str| world.get(&format!("/api/v1/usage?{query}")).await.expect(200);
    let report = usage("by=tenant,project,user,node,pool").await;
    let [line] = lines(&report) else { panic!("{report}") };
    let names = ["tenant", "project", "user", "node", "pool", "class"].map(|name| line[name].clone());
    assert_eq!(names, ["physics", "lattice", "alice", "n2", "main", "h100"].map(Value::from));
    assert_eq!(line["project_id"], old);
    assert!(["tenant_id", "user_id", "node_id", "pool_id", "class_id"].iter().all(|id| line[id].is_u64()), "{line}");
    // They can be asked for: by name with or without a tenant, and by number.
    for query in ["tenant=physics&project=lattice", &format!("project={old}"), "node=n2", "tenant=physics&user=alice"] {
        assert_eq!(lines(&usage(&format!("{query}&by=project")).await).len(), 1, "{query}");
    }
    let capacity = world.get("/api/v1/usage/capacity?by=node&node=n2").await.expect(200);
    assert_eq!((lines(&capacity).len(), &capacity["lines"][0]["node"]), (1, &json!("n2")));
    // A new project of the same name is another one.
    let new = world.post("/api/v1/projects", json!({ "name": "lattice", "tenant": "physics" })).await.expect(201);
    assert_eq!(lines(&usage("tenant=physics&project=lattice").await).len(), 0);
    world.past_lease(json!({ "tenant": "physics", "project": "lattice" }), "h100", 1).await;
    let report = usage("tenant=physics&by=project").await;
    let ids: Vec<&Value> = lines(&report).iter().map(|line| &line["project_id"]).collect();
    assert_eq!(ids, [&old, &new["project"]["id"]], "{report}");
    assert!(lines(&report).iter().all(|line| line["project"] == "lattice"), "{report}");
    // The lease itself, too.
    let past = world.get("/api/v1/leases?state=closed").await.expect(200);
    assert_eq!(
        (&past["leases"][0]["project"], &past["leases"][0]["node"]),
        (&json!("lattice"), &json!("n2")),
        "{past}"
    );
    // Nobody sees the deleted objects of others.
    let token = json!({ "name": "t", "role": "tenant_admin", "tenant": "chemistry" });
    let secret = world.post("/api/v1/tokens", token).await.expect(201)["secret"].as_str().expect("a secret").to_owned();
    for query in [format!("project={old}"), "tenant=physics".to_owned()] {
        let answer = world.send(Some(&secret), Method::Get, &format!("/api/v1/usage?{query}"), None).await;
        assert_eq!(answer.status, 404, "{query}: {}", answer.text);
    }
    // A whole tenant.
    world.remove("/api/v1/tenants/physics").await;
    let report = usage("by=tenant,project").await;
    assert!(lines(&report).iter().all(|line| line["tenant"] == "physics" && line["project"] == "lattice"), "{report}");
    assert_eq!(lines(&usage("tenant=physics").await).len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_add_up_to_the_total() {
    let world = World::two_models().await;
    for (place, tenant) in ["physics", "chemistry", "physics", "physics"].into_iter().enumerate() {
        let class = if place % 2 == 0 { "h100" } else { "a100" };
        world.past_lease(json!({ "tenant": tenant, "project": "lattice", "user": "alice" }), class, 3).await;
    }
    for query in ["by=tenant", "by=tenant,class", "by=class,user&bucket=minute", "by=kind"] {
        let report = world.get(&format!("/api/v1/costs?{query}")).await.expect(200);
        let sum: u128 = lines(&report).iter().map(|line| millionths(&line["amount"])).sum();
        assert_eq!(sum, millionths(&report["total"][0]["amount"]), "{query}: {report}");
    }
    let capacity = world.get("/api/v1/usage/capacity?by=node").await.expect(200);
    for line in lines(&capacity) {
        let fraction = |text: &Value| -> (u128, u128) {
            let (a, b) = text.as_str().expect("a fraction").split_once('/').expect("a fraction");
            (a.parse().expect("digits"), b.parse().expect("digits"))
        };
        // Over one denominator: quanta per unit times a billion.
        let over = |text: &Value| {
            let (numerator, denominator) = fraction(text);
            numerator * (4_000_000_000 / denominator)
        };
        let parts = ["held", "tearing_down", "reserved", "fenced", "offline", "idle"];
        let sum: u128 = parts.into_iter().map(|part| over(&line["exact"][part])).sum();
        assert_eq!(sum, over(&line["exact"]["capacity"]), "{line}");
    }
    // A bucket has the name of its time zone.
    let days = world.get("/api/v1/usage?by=kind&bucket=day&zone=Pacific/Kiritimati").await.expect(200);
    let label = days["lines"][0]["bucket"].as_str().expect("a label").to_owned();
    let from = days["lines"][0]["from"].as_str().expect("an instant");
    // A day there begins at 10:00 UTC of the day before.
    assert!(label.len() == "2026-11-10".len() && !from.starts_with(&label), "{days}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peaks_of_a_kind_are_over_all_its_models() {
    let world = World::two_models().await;
    let asks = json!([{ "class": "h100", "quantity": 2 }, { "class": "a100", "quantity": "1/4" }]);
    let request = json!({ "tenant": "physics", "project": "lattice", "user": "alice", "ttl": "1h", "asks": asks });
    world.post("/api/v1/leases", request).await.expect(201);
    let peak = async |query: &str| {
        let report = world.get(&format!("/api/v1/usage?peak=true&{query}")).await.expect(200);
        lines(&report).iter().map(|line| line["peak"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    for query in ["by=kind", "by=kind,project", "by=kind,user", "by=kind,node", "by=kind,pool,tenant"] {
        assert_eq!(peak(query).await, ["2.25"], "{query}");
    }
    assert_eq!(peak("by=kind,tier").await, ["0.25", "2"]);
    assert_eq!(peak("by=class").await, ["2", "0.25"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_several_tenants_is_asked_for_without_one() {
    let world = World::two_models().await;
    for tenant in ["physics", "chemistry"] {
        world.past_lease(json!({ "tenant": tenant, "project": "lattice", "user": "alice" }), "h100", 1).await;
        world.past_lease(json!({ "tenant": tenant, "project": "lattice" }), "h100", 1).await;
    }
    for what in ["usage", "costs"] {
        let report = world.get(&format!("/api/v1/{what}?user=alice&by=tenant,user")).await.expect(200);
        let tenants: Vec<&Value> = lines(&report).iter().map(|line| &line["tenant"]).collect();
        assert_eq!(tenants, ["physics", "chemistry"], "{report}");
        assert!(lines(&report).iter().all(|line| line["user"] == "alice"), "{report}");
        let one = world.get(&format!("/api/v1/{what}?user=alice&tenant=physics&by=tenant")).await.expect(200);
        assert_eq!(lines(&one).len(), 1);
    }
    assert_eq!(world.get("/api/v1/usage?user=alise").await.json()["nearest"], "alice");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waste_by_groups_in_order_of_cost() {
    let world = World::two_models().await;
    for (tenant, gpus) in [("physics", 1), ("chemistry", 2), ("chemistry", 2)] {
        world.past_lease(json!({ "tenant": tenant, "project": "lattice", "user": "alice" }), "h100", gpus).await;
    }
    let sums = async |query: &str| {
        let report = world.get(&format!("/api/v1/waste?{query}")).await.expect(200);
        let sums = report["sums"].as_array().expect("sums").clone();
        (sums.iter().map(|sum| sum["tenant"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>(), report)
    };
    assert_eq!(sums("by=user,tenant").await.0, ["physics", "chemistry"]);
    assert_eq!(sums("by=user,tenant&sort=leases").await.0, ["chemistry", "physics"]);
    assert_eq!(sums("by=user,tenant&sort=leases&top=1").await.0, ["chemistry"]);
    assert_eq!(sums("by=tenant,project&sort=cost&top=10").await.0.len(), 2);
    // Only what is asked for is listed as idle capacity, too.
    let (_, report) = sums("class=a100").await;
    let stranded = report["stranded"].as_array().expect("idle capacity");
    assert!(!stranded.is_empty() && stranded.iter().all(|line| line["class"] == "a100"), "{report}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_nodes_and_what_they_could_have_earned() {
    let world = World::two_models().await;
    let node = json!({ "name": "n2", "pool": "main", "teardown": "immediate", "capacity": { "h100": 1 } });
    world.post("/api/v1/nodes", node).await.expect(201);
    let request = json!({ "tenant": "physics", "project": "lattice", "ttl": "1h", "node": "n1",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    world.post("/api/v1/leases", request).await.expect(201);
    let list = async |span: &str| {
        let all = world.get(&format!("/api/v1/nodes?empty_for={span}")).await.expect(200);
        all["nodes"].as_array().expect("nodes").clone()
    };
    let empty = list("1us").await;
    let [node] = empty.as_slice() else { panic!("{empty:?}") };
    assert_eq!((&node["name"], &node["empty"]["could_have_earned"][0]["currency"]), (&json!("n2"), &json!("EUR")));
    assert!(list("1h").await.is_empty());
    let answer = world.get("/api/v1/nodes?empty_for=soon").await;
    assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("empty_for")));
    assert!(world.get("/api/v1/nodes/n2").await.expect(200).get("empty").is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn utilisation_is_what_holders_report() {
    let world = World::two_models().await;
    let request = json!({ "tenant": "physics", "project": "lattice", "ttl": "1h", "node": "n1",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let granted = world.post("/api/v1/leases", request).await.expect(201);
    let id = granted["leases"][0]["id"].as_str().expect("an id").to_owned();
    let started = std::time::Instant::now();
    while started.elapsed().as_millis() < 200 {
        world.get(&format!("/api/v1/leases/{id}")).await.expect(200);
    }
    let covered = started.elapsed().as_millis();
    // Half of it.
    let busy = covered * 500_000;
    let activity = json!({ "covered": format!("{covered}ms"), "active": "1ms", "busy_quantum_ns": busy.to_string() });
    world.post(&format!("/api/v1/leases/{id}/release"), json!({ "activity": activity })).await.expect(200);
    for query in ["by=tenant", "by=project", "by=pool", "by=node", "by=class", "by=kind"] {
        let report = world.get(&format!("/api/v1/usage?utilisation=true&{query}")).await.expect(200);
        assert_eq!(report["lines"][0]["utilisation"]["permille"], 500, "{query}: {report}");
    }
    let waste = world.get("/api/v1/waste?by=pool").await.expect(200);
    assert_eq!(waste["sums"][0]["utilisation"]["permille"], 500, "{waste}");
    world.stop().await;
}
