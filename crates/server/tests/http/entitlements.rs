//! Entitlements and policies over HTTP: limits of a month, what they refuse, and what is kept of it.

use crate::usage_records::{Reporting, record};
use leasehold_api::Method;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/entitlements";

impl Reporting {
    async fn entitle(&self, limits: Value) -> crate::world::Answer {
        let mut body = json!({ "tenant": "physics", "project": "physics-main", "usage_unit": "requests" });
        limits.as_object().expect("an object").iter().for_each(|(key, value)| body[key] = value.clone());
        let world = &self.ledger.world;
        world.send(Some(&world.operator), Method::Put, PATH, Some(body)).await
    }
}

/// 15 requests are allowed: 10 are accepted, 6 more are not, 5 more are; the refusal is listed and shown at the close.
#[tokio::test(flavor = "multi_thread")]
async fn a_hard_limit_refuses_and_what_it_refused_is_listed() {
    let reporting = Reporting::open().await;
    let world = &reporting.ledger.world;
    let put = reporting.entitle(json!({ "soft": "9.5", "hard": 15 })).await.expect(200);
    assert_eq!(put["entitlement"]["hard"], "15");
    reporting.post(&record("1", json!({}))).await.expect(201);
    let refused = reporting.post(&record("2", json!({ "quantity": 6 }))).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "entitlement_exceeded"));
    let problem = refused.json();
    assert_eq!(
        (&problem["field"], &problem["used"], &problem["limit"]),
        (&json!("quantity"), &json!("10"), &json!("15"))
    );
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("physics-main")), "{problem}");
    // Sent again it is refused again, and listed once.
    assert_eq!(reporting.post(&record("2", json!({ "quantity": 6 }))).await.code(), "entitlement_exceeded");
    // A batch keeps the others.
    let several = json!({ "records": [record("3", json!({ "quantity": 4 })), record("4", json!({ "quantity": 2 }))] });
    let answer = reporting.post(&several).await.expect(200);
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(1), &json!(1)));
    assert_eq!(answer["results"][1]["problem"]["code"], "entitlement_exceeded");
    // All or none: nothing is recorded, and the caller is told which one it is.
    let together = json!({ "atomic": true, "records": [record("5", json!({ "quantity": 1 })), record("6", json!({ "quantity": 1 }))] });
    let answer = reporting.post(&together).await;
    assert_eq!(
        (answer.status, answer.code().as_str(), &answer.json()["place"]),
        (422, "usage_batch_refused", &json!(1))
    );
    assert_eq!(answer.json()["cause"], "entitlement_exceeded");

    let listed = world.get(&format!("{PATH}?tenant=physics")).await.expect(200);
    let one = &listed["entitlements"][0];
    let month = json!([{ "month": "2026-01", "used": "14", "warned": true }]);
    assert_eq!((&one["months"], &one["soft"], &one["project"]), (&month, &json!("9.5"), &json!("physics-main")));

    let of_month = "/api/v1/refused-usage?month=2026-01";
    let ids = |list: &Value| -> Vec<(String, Value)> {
        let all = list["refused"].as_array().expect("a list");
        all.iter().map(|one| (one["id"].as_str().expect("an id").to_owned(), one["accepted_later"].clone())).collect()
    };
    let list = world.get(of_month).await.expect(200);
    assert_eq!(ids(&list), [("2".to_owned(), Value::Null), ("4".to_owned(), Value::Null)]);
    let first = &list["refused"][0];
    assert_eq!((&first["used"], &first["hard"], &first["quantity"]), (&json!("10"), &json!("15"), &json!("6")));
    assert_eq!(
        (&first["tenant"], &first["project"], &first["app_instance"]),
        (&json!("physics"), &json!("physics-main"), &json!("dev"))
    );
    assert_eq!(world.get("/api/v1/periods/2026-01").await.expect(200)["refused_usage"], 2);
    assert_eq!(world.get("/api/v1/refused-usage?month=2026-02").await.expect(200)["refused"], json!([]));
    assert_eq!(world.get("/api/v1/refused-usage?month=soon").await.status, 400);

    // When the limit was raised, the same record is accepted.
    reporting.entitle(json!({ "hard": 20 })).await.expect(200);
    let accepted = reporting.post(&record("2", json!({ "quantity": 6 }))).await.expect(201);
    assert_eq!(ids(&world.get(of_month).await.expect(200))[0].1, accepted["sequence"]);
    let gone = format!("{PATH}?tenant=physics&project=physics-main&usage_unit=requests");
    world.send(Some(&world.operator), Method::Delete, &gone, None).await.expect(200);
    assert_eq!(world.send(Some(&world.operator), Method::Delete, &gone, None).await.code(), "unknown_entitlement");
    reporting.post(&record("7", json!({ "quantity": 1000 }))).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_entitlements_and_policies_name_the_field() {
    let reporting = Reporting::open().await;
    let world = &reporting.ledger.world;
    for (limits, status, code, field) in [
        (json!({}), 422, "bad_entitlement", Value::Null),
        (json!({ "soft": 2, "hard": 1 }), 422, "bad_entitlement", Value::Null),
        (json!({ "hard": "-1" }), 422, "bad_quantity", json!("hard")),
        (json!({ "soft": "many" }), 422, "bad_quantity", json!("soft")),
        (json!({ "hard": 1, "usage_unit": "wishes" }), 404, "unknown_usage_unit", json!("usage_unit")),
        (json!({ "hard": 1, "project": "nothing" }), 404, "unknown_project", json!("project")),
        (json!({ "hard": 1, "app_instance": "nothing" }), 404, "unknown_app_instance", json!("app_instance")),
    ] {
        let answer = reporting.entitle(limits.clone()).await;
        let found = (answer.status, answer.code(), answer.json()["field"].clone());
        assert_eq!(found, (status, code.to_owned(), field), "{limits}");
    }
    for (policy, status, code) in [
        (json!({ "app": "slurm", "usage_units": ["tokens"] }), 422, "unit_not_enabled"),
        (json!({ "app": "slurm", "usage_units": ["wishes"] }), 404, "unknown_usage_unit"),
        (json!({ "app": "nothing" }), 404, "unknown_app"),
        (json!({ "app": "slurm", "attribution": "nobody" }), 422, "bad_body"),
        (json!({ "app": "slurm", "weights": [1] }), 422, "bad_body"),
    ] {
        let answer = world.send(Some(&world.operator), Method::Put, "/api/v1/policies", Some(policy.clone())).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{policy}");
    }
}

/// A policy of the tenant attributes usage to whoever asked for it; one of the app takes a unit away. Versions stay.
#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_whose_usage_it_is_and_which_units_are_accepted() {
    let reporting = Reporting::open().await;
    let world = &reporting.ledger.world;
    world.post("/api/v1/projects", json!({ "name": "lab", "tenant": "physics" })).await.expect(201);
    let of_lab = |id: &str| record(id, json!({ "project_id": "lab" }));
    assert_eq!(reporting.post(&of_lab("1")).await.code(), "usage_of_owner");
    let put = |policy: Value| world.send(Some(&world.operator), Method::Put, "/api/v1/policies", Some(policy));
    let answer = put(json!({ "app": "slurm", "tenant": "physics", "attribution": "caller" })).await.expect(200);
    assert_eq!((&answer["policy"]["version"], &answer["policy"]["tenant"]), (&json!(1), &json!("physics")));
    reporting.post(&of_lab("1")).await.expect(201);
    put(json!({ "app": "slurm", "usage_units": ["job_hours"] })).await.expect(200);
    let answer = reporting.post(&of_lab("2")).await;
    assert_eq!((answer.code().as_str(), &answer.json()["field"]), ("unit_not_accepted", &json!("usage_unit")));
    put(json!({ "app": "slurm", "tenant": "physics" })).await.expect(200);
    assert_eq!(
        reporting.post(&record("2", json!({ "project_id": "lab", "usage_unit": "job_hours" }))).await.code(),
        "usage_of_owner"
    );

    let listed = world.get("/api/v1/policies").await.expect(200);
    assert_eq!(listed["policies"].as_array().map(Vec::len), Some(2));
    let history = world.get("/api/v1/policies/slurm/history?tenant=physics").await.expect(200);
    let versions: Vec<(&Value, &Value)> = history["versions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (&one["policy"]["version"], &one["policy"]["attribution"]))
        .collect();
    assert_eq!(versions, [(&json!(1), &json!("caller")), (&json!(2), &Value::Null)]);
    let of_all = world.get("/api/v1/policies/slurm/history?tenant=-").await.expect(200);
    assert_eq!(of_all["versions"][0]["policy"]["usage_units"], json!(["job_hours"]));
}
