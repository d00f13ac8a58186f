//! Usage records over HTTP: the anchors, IDs, batches, CloudEvents, and the way up to the invoice.

use crate::ledger::Ledger;
use crate::world::{Answer, read};
use leasehold_api::{Method, Role};
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

const HOUR: u64 = 3600;
pub(crate) const PATH: &str = "/api/v1/usage-records";
const STORY: &str = "0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10";

/// A runtime `dev` of physics-main, and the token `adapter` of its operator. A request costs 0.005 EUR, a job-hour 0.25.
pub(crate) struct Reporting {
    pub(crate) ledger: Ledger,
    pub(crate) token: String,
}

impl Reporting {
    pub(crate) async fn open() -> Self {
        let ledger = Ledger::open().await;
        let world = &ledger.world;
        for (unit, price) in [("requests", "0.005"), ("job_hours", "0.25")] {
            world.post("/api/v1/unit-prices", json!({ "usage_unit": unit, "price": price })).await.expect(201);
        }
        let app = json!({ "slug": "slurm", "origin": "internal", "usage_units": ["requests", "job_hours"] });
        world.post("/api/v1/apps", app).await.expect(201);
        let instance = json!({ "name": "dev", "project": "physics-main", "tenant": "physics", "app": "slurm",
            "runtime_backend": "slurm" });
        world.post("/api/v1/app-instances", instance).await.expect(201);
        let token = json!({ "name": "adapter", "role": "app_operator", "tenant": "physics", "app_instances": ["dev"] });
        let issued = world.post("/api/v1/tokens", token).await.expect(201);
        let token = issued["secret"].as_str().expect("a secret").to_owned();
        ledger.pass(HOUR).await;
        Self { ledger, token }
    }

    pub(crate) async fn post(&self, body: &Value) -> Answer {
        self.ledger.world.send(Some(&self.token), Method::Post, PATH, Some(body.clone())).await
    }

    /// With other headers than those of JSON.
    async fn post_as(&self, headers: &[(&'static str, &str)], body: &Value) -> Answer {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(*name, HeaderValue::from_str(value).expect("a header"));
        }
        let world = &self.ledger.world;
        let sent = world.client().post(format!("{}{PATH}", world.url)).bearer_auth(&self.token).headers(all);
        read(sent.body(body.to_string()).send().await.expect("an answer")).await
    }
}

/// A record that is complete: ten requests between 21:30 and 21:40.
pub(crate) fn record(id: &str, more: Value) -> Value {
    let mut record = json!({
        "id": id, "org_id": "physics", "project_id": "physics-main", "app_instance_id": "dev", "app_slug": "slurm",
        "operating_mode": "tenant_dedicated", "control_plane_scope": "project", "runtime_backend": "slurm",
        "correlation_id": STORY, "usage_source": "app_runtime", "usage_unit": "requests", "quantity": 10,
        "from": "2026-01-31T21:30:00Z", "to": "2026-01-31T21:40:00Z",
    });
    more.as_object().expect("an object").iter().for_each(|(key, value)| record[key] = value.clone());
    record
}

fn without(field: &str) -> Value {
    let mut all = record("x", json!({}));
    all.as_object_mut().expect("an object").remove(field);
    all
}

fn told(answer: &Answer) -> (u16, String, String) {
    let body = answer.json();
    (answer.status, answer.code(), body["field"].as_str().unwrap_or("").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_anchor_is_stated_and_agrees_with_the_registry() {
    let reporting = Reporting::open().await;
    for field in [
        "id",
        "org_id",
        "project_id",
        "app_instance_id",
        "app_slug",
        "operating_mode",
        "control_plane_scope",
        "runtime_backend",
        "correlation_id",
        "usage_unit",
        "quantity",
        "from",
        "to",
    ] {
        let answer = reporting.post(&without(field)).await;
        assert_eq!(told(&answer), (422, "missing_anchor".into(), field.into()));
    }
    for (field, value, code) in [
        ("org_id", json!("chemistry"), "unknown_anchor"),
        ("project_id", json!("chemistry-main"), "unknown_anchor"),
        ("app_instance_id", json!("other"), "unknown_anchor"),
        ("source", json!("somebody"), "unknown_anchor"),
        ("usage_source", json!("allocation"), "unknown_anchor"),
        ("usage_unit", json!("imagse"), "unknown_anchor"),
        ("requested_by_user_id", json!("nobody"), "unknown_anchor"),
        ("app_slug", json!("ray"), "anchor_mismatch"),
        ("operating_mode", json!("platform_managed"), "anchor_mismatch"),
        ("control_plane_scope", json!("tenant"), "anchor_mismatch"),
        ("runtime_backend", json!("ray"), "anchor_mismatch"),
        ("correlation_id", json!("xyz"), "bad_id"),
        ("usage_unit", json!("tokens"), "unit_not_enabled"),
        ("quantity", json!("-1"), "bad_quantity"),
        ("quantity", json!(-1), "bad_quantity"),
        ("quantity", json!("1.0000000001"), "bad_quantity"),
        ("quantity", json!(1_000_000_000_001u64), "bad_quantity"),
        ("from", json!("2026-01-31T21:50:00Z"), "usage_ends_first"),
        ("to", json!("2026-01-31T23:50:00Z"), "usage_in_future"),
        ("to", json!("2025-12-01T00:00:00Z"), "usage_ends_first"),
        ("attachment_id", json!(7), "lent_usage_needs_both"),
        ("supersedes", json!("nothing"), "unknown_usage_record"),
        ("id", json!("  "), "bad_name"),
    ] {
        let answer = reporting.post(&record("x", json!({ field: value }))).await;
        assert_eq!(answer.code(), code, "{field}: {value}");
        let status = if code == "unknown_usage_record" { 409 } else { 422 };
        assert_eq!(answer.status, status, "{field}: {value}");
        // A refusal names the field that is wrong.
        let named = answer.json()["field"].as_str().unwrap_or_default().to_owned();
        // Of two times, the later one is named.
        let expected = if code == "usage_ends_first" { "to" } else { field };
        assert_eq!(named, expected, "{value}");
    }
    // Only one source is accepted here, so it may be left out; what it is not is refused under its name.
    let other = reporting.post(&record("x", json!({ "usage_source": "sensor" }))).await;
    assert_eq!(told(&other), (422, "bad_body".into(), "usage_source".into()));
    let old = json!({ "from": "2025-12-01T00:00:00Z", "to": "2025-12-01T01:00:00Z" });
    assert_eq!(told(&reporting.post(&record("x", old)).await), (422, "too_late".into(), "to".into()));
    assert_eq!(reporting.post(&json!({ "color": "red" })).await.code(), "bad_body");
    // What is not exact is refused with what is expected instead.
    let float = reporting.post(&record("x", json!({ "quantity": 1.5 }))).await;
    assert_eq!(told(&float), (422, "bad_body".into(), "quantity".into()));
    let detail = float.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("expected an integer, or a decimal number as text such as \"1.5\""), "{detail}");
    // Nothing was kept of all this.
    let usage = reporting.ledger.get("/api/v1/usage?from=2026-01-31T00:00:00Z").await;
    assert_eq!(usage["reported"], json!([]));
    // The one who reports is the token: an admin does not, and an operator does as itself.
    let admin =
        reporting.ledger.as_role(leasehold_api::Role::TenantAdmin, Method::Post, PATH, Some(record("1", json!({}))));
    assert_eq!(admin.await.code(), "role_forbids");
    reporting.ledger.world.post(PATH, record("1", json!({}))).await.expect(201);
    assert_eq!(reporting.post(&record("1", json!({}))).await.status, 201, "another source");
    let shown = reporting.ledger.world.get(&format!("{PATH}/1")).await.expect(200);
    assert_eq!(shown["usage_source"], "app_runtime");
    // The one field that may be left out.
    reporting.post(&without("usage_source")).await.expect(201);
    reporting.ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_recorded_once_alone_and_in_batches() {
    let reporting = Reporting::open().await;
    let first = reporting.post(&record("1", json!({}))).await.expect(201);
    assert_eq!((&first["repeated"], &first["charge"]), (&json!(false), &json!("billed")));
    let again = reporting.post(&record("1", json!({}))).await.expect(200);
    assert_eq!((&again["repeated"], &again["sequence"]), (&json!(true), &first["sequence"]));
    let other = reporting.post(&record("1", json!({ "quantity": 11 }))).await;
    assert_eq!(told(&other), (409, "usage_id_taken".into(), "id".into()));

    let batch = json!({ "records": [record("1", json!({})), record("2", json!({})), record("2", json!({})),
        record("2", json!({ "quantity": 3 })), record("3", json!({ "usage_unit": "no" })), { "id": 7 },
        record("4", json!({ "supersedes": "2", "quantity": 20 }))] });
    let answer = reporting.post(&batch).await.expect(200);
    let statuses: Vec<&Value> =
        answer["results"].as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [200, 201, 200, 409, 422, 422, 201]);
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(4), &json!(3)));

    // All or none.
    let bad = json!({ "records": [record("5", json!({})), record("6", json!({ "app_slug": "ray" }))], "atomic": true });
    let refused = reporting.post(&bad).await;
    assert_eq!(told(&refused), (422, "usage_batch_refused".into(), "app_slug".into()));
    assert_eq!((&refused.json()["place"], &refused.json()["cause"]), (&json!(1), &json!("anchor_mismatch")));
    let twice = json!({ "records": [record("5", json!({})), record("5", json!({}))], "atomic": true });
    assert_eq!(reporting.post(&twice).await.code(), "usage_twice");
    let good =
        json!({ "records": [record("1", json!({})), record("5", json!({})), record("6", json!({}))], "atomic": true });
    let done = reporting.post(&good).await.expect(200);
    let repeated: Vec<&Value> =
        done["results"].as_array().expect("a list").iter().map(|one| &one["accepted"]["repeated"]).collect();
    assert_eq!(repeated, [true, false, false]);
    let done = reporting.post(&good).await.expect(200);
    assert_eq!((&done["accepted"], &done["results"][2]["status"]), (&json!(3), &json!(200)));
    let many = json!({ "records": vec![json!({}); 1001], "atomic": true });
    assert_eq!(reporting.post(&many).await.code(), "too_many_operations");
    assert_eq!(reporting.post(&json!({ "records": [] })).await.expect(200)["results"], json!([]));

    let shown = reporting.ledger.world.get(&format!("{PATH}/2?source=adapter&tenant=physics")).await.expect(200);
    assert_eq!((&shown["usage_unit"], &shown["quantity"]), (&json!("requests"), &json!("10")));
    assert_eq!(shown["superseded_by"], answer["results"][6]["accepted"]["sequence"]);
    let own = reporting.ledger.world.send(Some(&reporting.token), Method::Get, &format!("{PATH}/4"), None).await;
    assert_eq!(own.expect(200)["supersedes"], "2");
    assert_eq!(reporting.ledger.world.get(&format!("{PATH}/2")).await.status, 404, "the operator reported nothing");
    reporting.ledger.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_events_are_taken_in_every_mode() {
    let reporting = Reporting::open().await;
    let mut data = record("ignored", json!({}));
    data.as_object_mut().expect("an object").remove("id");
    let event = |id: &str, kind: &str| {
        json!({ "specversion": "1.0", "type": kind, "source": "adapter", "id": id, "time": "2026-01-31T22:00:00Z",
            "data": data })
    };
    let ours = "leasehold.usage_record.v1";
    let structured = [("content-type", "application/cloudevents+json; charset=UTF-8")];
    reporting.post_as(&structured, &event("1", ours)).await.expect(201);
    let binary = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-type", ours),
        ("ce-source", "adapter"),
        ("ce-id", "2"),
    ];
    reporting.post_as(&binary, &data).await.expect(201);
    let batch = [("content-type", "application/cloudevents-batch+json")];
    let answer = reporting.post_as(&batch, &json!([event("1", ours), event("3", ours), event("4", "other")])).await;
    let results = answer.expect(200);
    let statuses: Vec<&Value> =
        results["results"].as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [200, 201, 422]);
    assert_eq!(results["results"][2]["problem"]["code"], "bad_cloud_event");
    let foreign = json!({ "specversion": "1.0", "type": ours, "source": "/elsewhere", "id": "5", "data": data });
    assert_eq!(told(&reporting.post_as(&structured, &foreign).await), (422, "unknown_anchor".into(), "source".into()));
    assert_eq!(reporting.post_as(&[("content-type", "text/plain")], &data).await.status, 415);
    reporting.ledger.world.stop().await;
}

/// Ten requests at 0.005 are 0.05; two job-hours at 0.25 are 0.50. The ten become twelve after the hour was posted: 0.01
/// more. The leases of physics cost 0.02 a second from 21:20 to 23:20: 48.00 and 72.00 and 24.00.
#[tokio::test(flavor = "multi_thread")]
async fn reported_usage_is_posted_explained_told_and_invoiced() {
    let reporting = Reporting::open().await;
    let ledger = &reporting.ledger;
    let job = json!({ "usage_unit": "job_hours", "quantity": "2", "from": "2026-01-31T21:30:00Z" });
    reporting.post(&record("jobs", job)).await.expect(201);
    reporting.post(&record("1", json!({}))).await.expect(201);
    let draft = ledger.get("/api/v1/ledger/draft").await;
    let payer =
        &draft["payers"].as_array().expect("a list").iter().find(|one| one["tenant"] == "physics").expect("one");
    let units: Vec<(&Value, &Value, &Value)> = payer["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|line| !line["usage_unit"].is_null())
        .map(|line| (&line["usage_unit"], &line["quantity"], &line["amount"]))
        .collect();
    let expected = [("job_hours", "2", "0.500000"), ("requests", "10", "0.050000")]
        .map(|(a, b, c)| (json!(a), json!(b), json!(c)));
    assert_eq!(units, expected.each_ref().map(|(a, b, c)| (a, b, c)));
    ledger.pass(HOUR).await;
    reporting.post(&record("2", json!({ "supersedes": "1", "quantity": 12 }))).await.expect(201);
    ledger.pass(4 * HOUR).await;
    let entries = ledger.entries("tenant=physics&limit=100").await;
    let units: Vec<(&Value, &Value)> = entries
        .iter()
        .filter(|entry| !entry["line"]["usage_unit"].is_null())
        .map(|entry| (&entry["line"]["usage_unit"], &entry["amount"]))
        .collect();
    let expected = [("job_hours", "0.500000"), ("requests", "0.050000"), ("requests", "0.010000")];
    let expected = expected.map(|(unit, amount)| (json!(unit), json!(amount)));
    let mut found = units.clone();
    found.sort_by_key(|(unit, amount)| (unit.to_string(), std::cmp::Reverse(amount.to_string())));
    assert_eq!(found, expected.each_ref().map(|(unit, amount)| (unit, amount)));
    let of_ten = entries.iter().find(|entry| entry["amount"] == "0.050000").expect("an entry");
    let explained =
        ledger.get(&format!("/api/v1/ledger/entries/{}/explain", of_ten["id"].as_str().expect("an ID"))).await;
    let ids: Vec<&Value> =
        explained["usage_records"].as_array().expect("a list").iter().map(|record| &record["id"]).collect();
    assert_eq!(ids, ["1", "2"]);
    assert_eq!(explained["unit_price"]["price"], "0.005");
    assert!(explained["arithmetic"][1].as_str().expect("a step").starts_with("10 requests × 0.005 EUR = 1/20 EUR"));

    let usage = ledger.get("/api/v1/usage?by=app_instance&from=2026-01-31T21:00:00Z").await;
    let reported: Vec<(&Value, &Value, &Value)> = usage["reported"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| (&line["app_instance"], &line["usage_unit"], &line["quantity"]))
        .collect();
    let expected =
        [("dev", "job_hours", "2"), ("dev", "requests", "12")].map(|(a, b, c)| (json!(a), json!(b), json!(c)));
    assert_eq!(reported, expected.each_ref().map(|(a, b, c)| (a, b, c)));
    let cost = ledger.get("/api/v1/costs?by=class&tenant=physics&from=2026-01-31T21:00:00Z").await;
    assert_eq!(cost["total"][0]["amount"], "144.560000");
    let lines: Vec<(&Value, &Value)> = cost["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|line| !line["usage_unit"].is_null())
        .map(|line| (&line["usage_unit"], &line["amount"]))
        .collect();
    assert_eq!(lines, [(&json!("job_hours"), &json!("0.500000")), (&json!("requests"), &json!("0.060000"))]);

    ledger.close_january().await;
    let invoice = ledger.get("/api/v1/invoices?tenant=physics").await["invoices"][0].clone();
    assert_eq!(invoice["total"], "144.560000");
    let shown = ledger.get(&format!("/api/v1/invoices/{}", invoice["number"].as_str().expect("a number"))).await;
    let lines: Vec<(&Value, &Value, &Value)> = shown["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|line| !line["usage_unit"].is_null())
        .map(|line| (&line["usage_unit"], &line["quantity"], &line["amount"]))
        .collect();
    let expected = [("job_hours", "2", "0.500000"), ("requests", "12", "0.060000")]
        .map(|(a, b, c)| (json!(a), json!(b), json!(c)));
    assert_eq!(lines, expected.each_ref().map(|(a, b, c)| (a, b, c)));

    let timeline = ledger.get(&format!("/api/v1/timeline/{STORY}")).await;
    let steps: Vec<String> = timeline["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|step| format!("{} {}", step["event"].as_str().unwrap_or(""), step["text"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(steps[0], "usage.recorded jobs: 2 job_hours of dev, billed");
    assert_eq!(steps[1], "usage.recorded 1: 10 requests of dev, billed");
    assert!(steps.contains(&"usage.recorded 2: 12 requests of dev, billed, in place of 1".to_owned()), "{steps:?}");
    assert!(steps.iter().any(|step| step.starts_with("ledger.posted") && step.contains("0.010000 EUR")), "{steps:?}");
    assert!(steps.iter().any(|step| step.starts_with("invoice.issued")), "{steps:?}");
    ledger.world.get("/api/v1/audit/records?limit=1000").await.expect(200);
    reporting.ledger.world.stop().await;
}

/// The platform's own token reports usage of any tenant, which pays for it; work on a shared runtime is only shown.
#[tokio::test(flavor = "multi_thread")]
async fn services_of_the_platform_and_shared_runtimes_know_whose_usage_it_is() {
    let reporting = Reporting::open().await;
    let world = &reporting.ledger.world;
    let platform = json!({ "name": "inference", "project": "physics-main", "tenant": "physics", "app": "slurm",
        "runtime_backend": "serving", "operating_mode": "platform_managed" });
    world.post("/api/v1/app-instances", platform).await.expect(201);
    let shared = json!({ "name": "shared", "project": "physics-main", "tenant": "physics", "app": "slurm",
        "runtime_backend": "slurm", "control_plane_scope": "tenant" });
    world.post("/api/v1/app-instances", shared).await.expect(201);
    world.post("/api/v1/projects", json!({ "name": "lab", "tenant": "physics" })).await.expect(201);
    let token = json!({ "name": "services", "role": "app_operator", "tenant": "physics",
        "app_instances": ["inference", "shared"] });
    let issued = world.post("/api/v1/tokens", token).await.expect(201);
    let reporting = Reporting { token: issued["secret"].as_str().expect("a secret").to_owned(), ..reporting };
    let of_platform = json!({ "app_instance_id": "inference", "operating_mode": "platform_managed",
        "control_plane_scope": "platform", "runtime_backend": "serving" });
    let mut theirs = record("1", of_platform);
    theirs["org_id"] = json!("chemistry");
    theirs["project_id"] = json!("chemistry-main");
    assert_eq!(reporting.post(&theirs).await.expect(201)["charge"], "billed");
    let of_shared = |id: &str, project: &str, control_plane: bool| {
        record(
            id,
            json!({ "app_instance_id": "shared", "control_plane_scope": "tenant", "project_id": project,
            "control_plane_component": control_plane }),
        )
    };
    let job = reporting.post(&of_shared("2", "lab", false)).await.expect(201);
    assert_eq!((&job["charge"], &job["no_submitter"]), (&json!("reported"), &json!(false)));
    let orphan = reporting.post(&of_shared("3", "physics-main", false)).await.expect(201);
    assert_eq!((&orphan["charge"], &orphan["no_submitter"]), (&json!("reported"), &json!(true)));
    assert_eq!(reporting.post(&of_shared("4", "physics-main", true)).await.expect(201)["charge"], "billed");
    assert_eq!(told(&reporting.post(&of_shared("5", "lab", true)).await).1, "usage_of_owner");
    // An instance that the token is not for.
    assert_eq!(told(&reporting.post(&record("6", json!({}))).await).1, "unknown_anchor");
    let ledger = &reporting.ledger;
    ledger.pass(HOUR).await;
    let units = |entries: Vec<Value>| -> Vec<String> {
        let of_units = entries.into_iter().filter(|entry| !entry["line"]["usage_unit"].is_null());
        of_units
            .map(|entry| {
                format!("{} {}", entry["project"].as_str().unwrap_or(""), entry["amount"].as_str().unwrap_or(""))
            })
            .collect()
    };
    assert_eq!(units(ledger.entries("tenant=chemistry&limit=100").await), ["chemistry-main 0.050000"]);
    assert_eq!(units(ledger.entries("tenant=physics&limit=100").await), ["physics-main 0.050000"]);
    let usage = ledger.get("/api/v1/usage?by=project&tenant=physics&from=2026-01-31T21:00:00Z").await;
    let told: Vec<String> = usage["reported"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| format!("{} {} {}", line["project"], line["quantity"], line["charge"]).replace('"', ""))
        .collect();
    assert_eq!(told, ["physics-main 10 billed", "physics-main 10 reported", "lab 10 reported"]);
    reporting.ledger.world.stop().await;
}

/// A runtime is deleted when nothing of it is outstanding. Its usage records keep what it was, and later ones are refused.
#[tokio::test(flavor = "multi_thread")]
async fn usage_records_keep_what_a_deleted_runtime_was() {
    let reporting = Reporting::open().await;
    let ledger = &reporting.ledger;
    reporting.post(&record("1", json!({}))).await.expect(201);
    let delete = || ledger.as_role(Role::Operator, Method::Delete, "/api/v1/app-instances/dev?tenant=physics", None);
    assert_eq!(delete().await.code(), "unposted_app_usage");
    ledger.pass(4 * HOUR).await;
    delete().await.expect(200);
    let shown = ledger.get(&format!("{PATH}/1?source=adapter&tenant=physics")).await;
    let fields = ["app_instance_id", "app_slug", "operating_mode", "control_plane_scope", "runtime_backend"];
    let anchors = fields.map(|field| shown[field].as_str().unwrap_or("").to_owned());
    assert_eq!(anchors, ["dev", "slurm", "tenant_dedicated", "project", "slurm"]);
    let late = told(&reporting.post(&record("2", json!({}))).await);
    assert_eq!(late, (422, "unknown_anchor".to_owned(), "app_instance_id".to_owned()));
    let path = "/api/v1/app-instances/dev";
    let by_adapter = ledger.world.send(Some(&reporting.token), Method::Get, path, None).await;
    assert_eq!((by_adapter.status, by_adapter.code().as_str()), (410, "app_instance_deleted"));
    let by_operator = ledger.as_role(Role::Operator, Method::Get, "/api/v1/app-instances/none", None).await;
    assert_eq!(by_operator.code(), "unknown_app_instance");
}
