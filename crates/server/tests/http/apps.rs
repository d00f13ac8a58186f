//! App runtimes over HTTP: the registry, who may do what, and lent capacity up to the invoice.

use crate::ledger::Ledger;
use crate::world::World;
use leasehold_api::{Method, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const HOUR: u64 = 3600;

/// Registers an app, unless it exists, and a runtime of it.
pub(crate) async fn register(world: &World, name: &str, project: &str, more: Value) -> Value {
    let app = json!({ "slug": "slurm", "origin": "internal", "usage_units": ["job_hours"] });
    let _ = world.post("/api/v1/apps", app).await;
    let mut new = json!({ "name": name, "project": project, "tenant": "physics", "app": "slurm",
        "runtime_backend": "slurm" });
    more.as_object().expect("an object").iter().for_each(|(key, value)| new[key] = value.clone());
    world.post("/api/v1/app-instances", new).await.expect(201)["app_instance"].clone()
}

async fn by(world: &World, role: Role, method: Method, path: &str, body: Option<Value>) -> crate::world::Answer {
    world.send(Some(&world.tokens[&role]), method, path, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn units_prices_and_apps_are_kept() {
    let world = World::furnished().await;
    let units = world.get("/api/v1/usage-units").await.expect(200);
    let names: Vec<&str> =
        units["usage_units"].as_array().expect("a list").iter().filter_map(|unit| unit["name"].as_str()).collect();
    assert_eq!(names, ["job_hours", "pod_hours", "gpu_hours", "uptime_hours", "requests", "tokens"]);
    world.post("/api/v1/usage-units", json!({ "name": "images", "measure": "count" })).await.expect(201);
    let twice = world.post("/api/v1/usage-units", json!({ "name": "requests", "measure": "count" })).await;
    assert_eq!(twice.code(), "name_taken");
    for (body, code) in [
        (json!({ "usage_unit": "imagse", "price": "1" }), "unknown_usage_unit"),
        (json!({ "usage_unit": "images", "price": "-1" }), "bad_body"),
        (json!({ "usage_unit": "images", "price": "1000001" }), "bad_unit_price"),
        (json!({ "usage_unit": "images", "price": "1", "app": "nothing" }), "unknown_app"),
        (json!({ "usage_unit": "images", "price": "1", "currency": "euro" }), "bad_body"),
        (json!({ "usage_unit": "images", "price": "1", "from": "2020-01-01T00:00:00Z" }), "start_in_past"),
    ] {
        assert_eq!(world.post("/api/v1/unit-prices", body.clone()).await.code(), code, "{body}");
    }
    world.post("/api/v1/unit-prices", json!({ "usage_unit": "images", "price": "0.5" })).await.expect(201);
    let later = json!({ "usage_unit": "images", "price": "0.75", "app": "slurm", "from": "2099-01-01T00:00:00Z" });
    world.post("/api/v1/unit-prices", later).await.expect(201);
    let prices = world.get("/api/v1/unit-prices").await.expect(200);
    let told: Vec<(&Value, &Value, &Value)> = prices["unit_prices"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|price| (&price["price"], &price["app"], &price["in_force"]))
        .collect();
    let (half, more) = (json!("0.5"), json!("0.75"));
    assert_eq!(told, [(&half, &json!(null), &json!(true)), (&more, &json!("slurm"), &json!(false))]);
    let changed = world.send(
        Some(&world.operator),
        Method::Patch,
        "/api/v1/apps/slurm",
        Some(json!({ "usage_units": ["images", "requests"] })),
    );
    assert_eq!(changed.await.expect(200)["app"]["usage_units"], json!(["requests", "images"]));
    assert_eq!(
        world.send(Some(&world.operator), Method::Delete, "/api/v1/apps/slurm", None).await.code(),
        "app_in_use"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runtimes_belong_to_their_tenant_and_those_of_the_platform_to_all() {
    let world = World::furnished().await;
    let admin = |method, path: &'static str, body| by(&world, Role::TenantAdmin, method, path, body);
    let mine = json!({ "name": "ray-dev", "project": "physics-main", "app": "slurm", "runtime_backend": "ray" });
    let put = admin(Method::Post, "/api/v1/app-instances", Some(mine.clone())).await.expect(201);
    assert_eq!(
        (&put["app_instance"]["operating_mode"], &put["app_instance"]["control_plane_scope"]),
        (&json!("tenant_dedicated"), &json!("project"))
    );
    assert_eq!(admin(Method::Post, "/api/v1/app-instances", Some(mine)).await.code(), "name_taken");
    for (more, code) in [
        (json!({ "control_plane_scope": "platform" }), "bad_mode_and_scope"),
        (json!({ "operating_mode": "platform_managed" }), "platform_by_operator"),
        (json!({ "app": "nothing" }), "unknown_app"),
        (json!({ "project": "chemistry-main" }), "unknown_project"),
        (json!({ "name": "42" }), "bad_name"),
    ] {
        let mut new = json!({ "name": "other", "project": "physics-main", "app": "slurm", "runtime_backend": "ray" });
        more.as_object().expect("an object").iter().for_each(|(key, value)| new[key] = value.clone());
        assert_eq!(admin(Method::Post, "/api/v1/app-instances", Some(new)).await.code(), code, "{more}");
    }
    let platform = json!({ "name": "inference", "project": "chemistry-main", "tenant": "chemistry", "app": "slurm",
        "runtime_backend": "serving", "operating_mode": "platform_managed" });
    world.post("/api/v1/app-instances", platform).await.expect(201);
    // Those of others do not exist, but what the platform offers is found by all, and changed by none but the operator.
    let theirs = json!({ "name": "theirs", "project": "chemistry-main", "tenant": "chemistry", "app": "slurm",
        "runtime_backend": "slurm" });
    world.post("/api/v1/app-instances", theirs).await.expect(201);
    let listed = admin(Method::Get, "/api/v1/app-instances", None).await.expect(200);
    let names: Vec<&str> =
        listed["app_instances"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["seven", "eight", "nine", "ray-dev", "inference"]);
    assert_eq!(admin(Method::Get, "/api/v1/app-instances/theirs", None).await.status, 404);
    admin(Method::Get, "/api/v1/app-instances/inference", None).await.expect(200);
    assert_eq!(admin(Method::Delete, "/api/v1/app-instances/inference", None).await.status, 404);
    let renamed = Some(json!({ "name": "ray-test" }));
    admin(Method::Patch, "/api/v1/app-instances/ray-dev", renamed).await.expect(200);
    // A token for some runtimes sees these.
    let own = by(&world, Role::AppOperator, Method::Get, "/api/v1/app-instances", None).await.expect(200);
    let names: Vec<&str> =
        own["app_instances"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["seven", "inference"]);
    admin(Method::Delete, "/api/v1/app-instances/ray-test", None).await.expect(200);
    assert_eq!(admin(Method::Get, "/api/v1/app-instances/ray-test", None).await.code(), "app_instance_deleted");
    world.stop().await;
}

/// A project lends two GPUs to the shared runtime of its tenant for two hours: it pays, the owner holds.
#[tokio::test(flavor = "multi_thread")]
async fn lent_capacity_is_paid_by_the_project_that_lends_up_to_the_invoice() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    world.post("/api/v1/projects", json!({ "name": "lab", "tenant": "physics" })).await.expect(201);
    register(world, "shared", "physics-main", json!({ "control_plane_scope": "tenant" })).await;
    register(world, "private", "physics-main", json!({})).await;
    let lend = |app: &str| json!({ "app_instance": app, "source_project": "lab", "tenant": "physics" });
    assert_eq!(world.post("/api/v1/attachments", lend("private")).await.code(), "app_not_shared");
    // A member of another project cannot lend for it.
    let member = |body| ledger.as_role(Role::ProjectMember, Method::Post, "/api/v1/attachments", Some(body));
    assert_eq!(member(json!({ "app_instance": "shared", "source_project": "lab" })).await.status, 404);
    assert_eq!(member(json!({ "app_instance": "shared" })).await.code(), "own_attachment");
    let made = ledger.as_role(Role::TenantAdmin, Method::Post, "/api/v1/attachments", Some(lend("shared"))).await;
    let made = made.expect(201)["attachment"].clone();
    assert_eq!(
        (&made["id"], &made["owner_project"], &made["source_project"]),
        (&json!(0), &json!("physics-main"), &json!("lab"))
    );
    let submit = json!({ "tenant": "physics", "project": "physics-main", "ttl": "2h", "app_instance": "shared",
        "attachment": 0, "asks": [{ "class": "h100", "quantity": 2 }] });
    let mut without = submit.clone();
    without.as_object_mut().expect("an object").remove("app_instance");
    assert_eq!(world.post("/api/v1/allocations", without).await.code(), "attachment_mismatch");
    let submitted = world.post("/api/v1/allocations", submit.clone()).await.expect(201);
    let path = format!("/api/v1/allocations/{}", submitted["id"].as_str().expect("an ID"));
    let found = world.get(&path).await.expect(200);
    assert_eq!((&found["attachment"], &found["source_project"]), (&json!(0), &json!("lab")), "{found}");
    ledger.pass(2 * HOUR).await;
    // 2 GPU × 2 h at 0.01 EUR a second, on lab; held by physics-main.
    let window = "from=2026-01-31T21:00:00Z&to=2026-02-01T00:00:00Z&tenant=physics";
    let costs = ledger.get(&format!("/api/v1/costs?{window}&by=project,app_instance")).await;
    let told: Vec<(&Value, &Value, &Value)> = costs["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (&line["project"], line.get("app_instance").unwrap_or(&Value::Null), &line["amount"]))
        .collect();
    let rows = [
        (json!("physics-main"), json!(null), json!("144.000000")),
        (json!("lab"), json!("shared"), json!("144.000000")),
    ];
    assert_eq!(told, rows.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>(), "{costs}");
    let ended = ledger.as_role(Role::ProjectMember, Method::Post, "/api/v1/attachments/0/end", None).await;
    assert_eq!(ended.code(), "role_forbids", "it is not the project that lends");
    world.post("/api/v1/attachments/0/end", json!({})).await.expect(200);
    assert_eq!(world.post("/api/v1/allocations", submit).await.code(), "unknown_attachment");
    ledger.close_january().await;
    let number = ledger.get("/api/v1/invoices?tenant=physics").await["invoices"][0]["number"].clone();
    let invoice = ledger.get(&format!("/api/v1/invoices/{}", number.as_str().expect("a number"))).await;
    let lines: Vec<(&Value, &Value, &Value, &Value)> = invoice["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (&line["project"], &line["held_by"], &line["app_instance"], &line["amount"]))
        .collect();
    let (main, lab, shared) = (json!("physics-main"), json!("lab"), json!("shared"));
    let (own, lent) = (json!("144.000000"), json!("144.000000"));
    assert_eq!(lines, [(&main, &main, &Value::Null, &own), (&lab, &main, &shared, &lent)], "{invoice}");
    assert_eq!(invoice["total"], "288.000000");
    ledger.world.stop().await;
}

/// A story from the registry to the invoice: controller and lent worker, reported usage of both, postings, shares.
/// Returns the records that it made.
async fn story_of(slug: &str, origin: &str) -> BTreeMap<String, Vec<Value>> {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    let first = world.get("/api/v1/about").await.expect(200)["size"].as_u64().expect("a number");
    let app = json!({ "slug": slug, "origin": origin, "usage_units": ["job_hours"] });
    world.post("/api/v1/apps", app).await.expect(201);
    let price = json!({ "usage_unit": "job_hours", "price": "0.25", "app": slug });
    world.post("/api/v1/unit-prices", price).await.expect(201);
    let new = json!({ "name": "story", "project": "physics-main", "tenant": "physics", "app": slug,
        "runtime_backend": "slurm", "control_plane_scope": "tenant" });
    world.post("/api/v1/app-instances", new).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lab", "tenant": "physics" })).await.expect(201);
    let lend = json!({ "app_instance": "story", "source_project": "lab", "tenant": "physics" });
    world.post("/api/v1/attachments", lend).await.expect(201);
    let sharing = json!({ "app": slug, "tenant": "physics", "sharing": { "method": "even", "result": "entries" } });
    world.put("/api/v1/sharing", sharing).await.expect(200);
    let limit = json!({ "tenant": "physics", "project": "physics-main", "usage_unit": "job_hours", "hard": 1 });
    world.put("/api/v1/entitlements", limit).await.expect(200);
    let hold = json!({ "tenant": "physics", "project": "physics-main", "app_instance": "story", "ttl": "10m",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let with = |mut body: Value, more: Value| {
        more.as_object().expect("an object").iter().for_each(|(key, value)| body[key] = value.clone());
        body
    };
    world.post("/api/v1/leases", with(hold.clone(), json!({ "control_plane": true }))).await.expect(201);
    let lent = with(hold, json!({ "attachment": 0, "walltime": "10m" }));
    let lent = world.post("/api/v1/allocations", lent).await.expect(201)["id"].clone();
    ledger.pass(HOUR).await;
    let report = |id: &str, more: Value| {
        let of = json!({ "app_instance_id": "story", "app_slug": slug, "control_plane_scope": "tenant",
            "usage_unit": "job_hours", "quantity": "0.75" });
        world.post("/api/v1/usage-records", crate::usage_records::record(id, with(of, more)))
    };
    report("plane", json!({ "control_plane_component": true })).await.expect(201);
    let work = json!({ "project_id": "lab", "attachment_id": 0, "allocation_id": lent });
    // It ended half an hour ago and more: the books know whose it was.
    report("work", work.clone()).await.expect(201);
    let other = report("other", with(work, json!({ "allocation_id": 1 }))).await;
    assert_eq!((other.code().as_str(), &other.json()["field"]), ("allocation_not_lent", &json!("allocation_id")));
    let over = report("over", json!({ "control_plane_component": true })).await;
    assert_eq!(over.code(), "entitlement_exceeded");
    ledger.close_january().await;
    let path = format!("/api/v1/audit/records?after={}&limit=1000", first - 1);
    let records = world.get(&path).await.expect(200);
    let told = Told::new(records["records"].as_array().expect("a list"), [(slug, "SLUG"), (origin, "ORIGIN")]);
    ledger.world.stop().await;
    told.by_kind
}

/// The same story for an app of the operator and for one of somebody else gives the same records, heads and bodies, but
/// for the origin and the slug.
#[tokio::test(flavor = "multi_thread")]
async fn internal_apps_and_others_use_the_same_calls() {
    let (ours, theirs) = (story_of("slurm-story", "internal").await, story_of("batch-story", "third_party").await);
    for kind in [
        "app_type.put",
        "app_instance.put",
        "lease.granted",
        "usage.recorded",
        "usage.refused",
        "ledger.posted",
        "ledger.shared",
        "invoice.issued",
        "period.stated",
        "period.closed",
    ] {
        assert!(ours.contains_key(kind), "no {kind} in {:?}", ours.keys());
    }
    for (kind, records) in &ours {
        assert_eq!(Some(records), theirs.get(kind), "{kind}");
    }
    assert_eq!(ours.len(), theirs.len());
    let granted = &ours["lease.granted"][0];
    assert_eq!(granted["identity"]["project"], "physics-main", "heads are compared: {granted}");
}

/// The records of a story by kind, in order, with the same names for what differs from journal to journal: IDs, hashes,
/// and the numbers of records, which depend on when the daemon settles by itself.
struct Told {
    by_kind: BTreeMap<String, Vec<Value>>,
    /// What the records are called: by kind, and their place among those.
    names: BTreeMap<u64, String>,
    /// IDs and hashes, in the order in which they appear.
    ids: BTreeMap<String, usize>,
    words: [(String, String); 2],
}

impl Told {
    fn new(records: &[Value], words: [(&str, &str); 2]) -> Self {
        let words = words.map(|(word, name)| (word.to_owned(), name.to_owned()));
        let mut told = Self { by_kind: BTreeMap::new(), names: BTreeMap::new(), ids: BTreeMap::new(), words };
        // Beats of an idle journal come at any time, and say nothing.
        let kind = |record: &Value| record["kind"].as_str().expect("a kind").to_owned();
        let records: Vec<&Value> = records.iter().filter(|record| kind(record) != "journal.heartbeat").collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for record in &records {
            let count = counts.entry(kind(record)).or_default();
            let name = format!("{} {count}", kind(record));
            told.names.insert(record["sequence"].as_u64().expect("a number"), name);
            *count += 1;
        }
        // Kind by kind: the settlement runs beside the story, so that only the order within a kind is certain.
        for wanted in counts.keys() {
            for record in records.iter().filter(|record| kind(record) == *wanted) {
                let shown = told.named("", record);
                told.by_kind.entry(wanted.clone()).or_default().push(shown);
            }
        }
        told
    }

    fn named(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), self.named(key, value))).collect(),
            Value::Array(items) => items.iter().map(|item| self.named(key, item)).collect(),
            Value::Number(number) if is_place(key) => {
                let name = number.as_u64().and_then(|number| self.names.get(&number));
                name.map_or("a place in the journal".to_owned(), String::clone).into()
            }
            // Of records that contain the slug, or that follow a beat.
            Value::String(text) if is_id(text) && (key.ends_with("hash") || key.ends_with("root")) => "a hash".into(),
            Value::String(text) if is_id(text) => {
                let next = self.ids.len();
                format!("id {}", self.ids.entry(text.clone()).or_insert(next)).into()
            }
            Value::String(text) => {
                self.words.iter().fold(text.clone(), |text, (word, name)| text.replace(word, name)).into()
            }
            other => other.clone(),
        }
    }
}

/// Whether a number is that of a record, or a number of records.
fn is_place(key: &str) -> bool {
    ["sequence", "as_of_size", "previous", "corrects", "cut", "claim", "by"].contains(&key)
        || key.ends_with("_sequence")
}

/// Whether a text is an ID or a hash: at least 32 hexadecimal digits, with or without hyphens.
fn is_id(text: &str) -> bool {
    let digits = text.bytes().filter(|byte| *byte != b'-').count();
    digits >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
