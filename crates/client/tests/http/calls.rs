//! Single calls: retries, idempotency keys and errors.

use crate::fake::{Fake, Reply};
use leasehold_api::{NewTenant, Problem, Release, codes};
use leasehold_client::{Client, Config, Error, Secret};
use serde_json::json;
use std::time::Duration;

fn physics() -> NewTenant {
    NewTenant { name: "physics".into(), ..NewTenant::default() }
}

fn tenant_put() -> serde_json::Value {
    json!({ "sequence": 4, "tenant": {
        "id": 1, "name": "physics", "accounting_tag": null, "max_priority": "standard",
        "max_evicted_quanta_per_hour": null, "max_nodes": null, "max_leases": null, "live_leases": 0, "budget_period_days": 90,
        "of_another_version": true,
    } })
}

#[tokio::test]
async fn a_change_is_retried_with_the_same_key_until_it_is_answered() {
    let fake = Fake::start(|before, _| match before {
        0 => Reply::Hangup,
        1 => Reply::Problem(codes::BUSY.problem("too much"), Some(0)),
        2 => Reply::Problem(codes::RATE_LIMITED.problem("too fast"), None),
        3 => Reply::Raw(502, "text/html", "<h1>bad gateway</h1>".into()),
        _ => Reply::Json(201, tenant_put()),
    })
    .await;
    let put = fake.client().create_tenant(&physics()).await.expect("in the end");
    assert_eq!((put.sequence, put.tenant.name.as_str()), (4, "physics"));
    let asked = fake.asked();
    assert_eq!(asked.len(), 5);
    for one in &asked {
        assert_eq!((one.method.as_str(), one.path.as_str()), ("POST", "/api/v1/tenants"));
        assert_eq!((one.key(), &one.body), (asked[0].key(), &asked[0].body));
        assert_eq!(one.headers["authorization"], "Bearer t0ken");
        assert_eq!(one.headers["content-type"], "application/json");
    }
    assert_eq!(asked[0].key().len(), 32);
    assert_eq!(asked[0].json(), json!({ "name": "physics" }));
}

#[tokio::test]
async fn each_change_has_its_own_key_unless_one_is_given() {
    let fake = Fake::start(|_, _| Reply::Json(201, tenant_put())).await;
    let client = fake.client();
    client.create_tenant(&physics()).await.unwrap();
    client.create_tenant(&physics()).await.unwrap();
    client.create_tenant(&physics()).key("mine").await.unwrap();
    let asked = fake.asked();
    assert_ne!(asked[0].key(), asked[1].key());
    assert_eq!(asked[2].key(), "mine");
    // A read has no key, even if one is given.
    client.show_tenant("physics").key("mine").json().await.unwrap();
    assert_eq!(fake.asked()[3].headers.get("idempotency-key"), None);
}

#[tokio::test]
async fn a_refusal_is_final_and_keeps_its_numbers() {
    let fake = Fake::start(|_, _| {
        let problem = codes::QUOTA_EXCEEDED.problem("too much").with("used", 8).with("requested", 2).with("limit", 8);
        Reply::Problem(problem, None)
    })
    .await;
    let error = fake.client().create_tenant(&physics()).await.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("quota_exceeded", "too much (quota_exceeded)"));
    assert!(error.is_final());
    let problem = error.problem().unwrap();
    assert_eq!((&problem.members["used"], &problem.members["limit"]), (&json!(8), &json!(8)));
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn unknown_fields_of_an_answer_are_kept() {
    let fake = Fake::start(|_, _| Reply::Json(200, tenant_put())).await;
    let json = fake.client().create_tenant(&physics()).json().await.unwrap();
    assert_eq!(json, tenant_put());
}

#[tokio::test]
async fn an_unreachable_daemon_is_reported_with_advice() {
    let mut config = Config::new("http://127.0.0.1:1");
    config.timeouts.listener = Duration::from_millis(300);
    let client = Client::new(&config).unwrap();
    let error = client.create_tenant(&physics()).await.unwrap_err();
    assert_eq!(error.code(), "unreachable");
    let text = error.to_string();
    assert!(text.starts_with("http://127.0.0.1:1 cannot be reached: connection refused; check"), "{text}");
    // The change never arrived, so its outcome is known.
    assert!(matches!(error, Error::Transport { unanswered: None, .. }), "{error:?}");
}

#[tokio::test]
async fn a_change_without_an_answer_names_its_key() {
    let fake = Fake::start(|_, _| Reply::Hangup).await;
    let error = fake.client().create_tenant(&physics()).within(Duration::from_millis(300)).await.unwrap_err();
    let asked = fake.asked();
    assert!(asked.len() > 1, "it was tried again");
    assert!(error.to_string().ends_with(&format!("with the idempotency key {}", asked[0].key())), "{error}");
    // A read changes nothing, so its outcome does not matter.
    let error = fake.client().show_tenant("x").within(Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, Error::Transport { unanswered: None, .. }), "{error:?}");
}

#[tokio::test]
async fn a_daemon_that_does_not_answer_times_out() {
    let fake = Fake::start(|_, _| Reply::Silence).await;
    let error = fake.client().whoami().within(Duration::from_millis(200)).await.unwrap_err();
    assert!(error.to_string().contains("it did not answer in time"), "{error}");
    assert!(!error.is_final());
}

#[tokio::test]
async fn a_pause_beyond_the_deadline_is_not_waited_for() {
    let fake = Fake::start(|_, _| Reply::Problem(codes::RATE_LIMITED.problem("slow down"), Some(3600))).await;
    let error = fake.client().whoami().await.unwrap_err();
    assert_eq!((error.code(), error.is_final(), fake.asked().len()), ("rate_limited", false, 1));
}

#[tokio::test]
async fn answers_of_other_servers_are_recognised() {
    let fake = Fake::start(|before, _| match before {
        0 => Reply::Raw(404, "text/html", "<h1>nginx</h1>".into()),
        1 => Reply::Raw(200, "text/html", "<h1>welcome</h1>".into()),
        2 => Reply::Raw(302, "text/html", String::new()),
        // JSON with a code, but not a problem.
        _ => Reply::Json(404, serde_json::to_value(Problem::new(404, "not_found", "x")).unwrap()),
    })
    .await;
    for told in ["it answered 404 Not Found <h1>nginx</h1>", "its answer is invalid", "it answered 302", "404"] {
        let error = fake.client().whoami().await.unwrap_err();
        assert_eq!(error.code(), "bad_answer");
        assert!(error.to_string().contains(told), "{error}");
    }
    assert_eq!(fake.asked().len(), 4, "no redirect is followed");
}

#[tokio::test]
async fn names_are_escaped_in_paths() {
    let fake = Fake::start(|_, _| Reply::Problem(codes::NOT_FOUND.problem("no"), None)).await;
    let client = fake.client();
    let _ = client.show_project("a b/ö").query("tenant", "x&y=z").await;
    let _ = client.release_lease("lease-42", &Release::default()).await;
    assert_eq!(fake.asked()[0].path, "/api/v1/projects/a%20b%2F%C3%B6?tenant=x%26y%3Dz");
    assert_eq!(fake.asked()[1].json(), json!({}));
    let error = client.delete_tenant("..").await.unwrap_err();
    assert_eq!((error.code(), fake.asked().len()), ("bad_name", 2), "refused before it is sent");
}

#[tokio::test]
async fn a_batch_gives_operations_a_key_that_need_one() {
    let fake = Fake::start(|before, _| match before {
        0 => Reply::Hangup,
        _ => Reply::Json(200, json!({ "results": [] })),
    })
    .await;
    let operation = |key: Option<&str>| {
        let json = json!({ "key": key, "lease": "lease-1", "revoke": {} });
        serde_json::from_value(json).expect("an operation")
    };
    let idempotent = |what: &str| {
        let mut json = json!({ "lease": "lease-1" });
        json[what] = if what == "renew" { json!({ "ttl": "1h" }) } else { json!({}) };
        serde_json::from_value(json).expect("an operation")
    };
    let [renew, release, ready] = ["renew", "release", "ready"].map(idempotent);
    let operations = vec![operation(None), operation(Some("mine")), renew, release, ready];
    fake.client().batch_of(operations).await.unwrap();
    let asked = fake.asked();
    assert_eq!(asked[0].json(), asked[1].json());
    let operations = &asked[0].json()["operations"];
    assert_eq!(operations[0]["key"].as_str().map(str::len), Some(32));
    assert_eq!(operations[1]["key"], "mine");
    assert!((2..5).all(|place| operations[place]["key"].is_null()), "repeating these changes nothing");
}

#[tokio::test]
async fn a_download_comes_in_pieces() {
    let fake = Fake::start(|_, _| Reply::Raw(200, "application/x-ndjson", "{}\n".repeat(100_000))).await;
    let mut download = fake.client().export().query("from", 7).download().await.unwrap();
    let (mut bytes, mut pieces) = (0, 0);
    while let Some(chunk) = download.chunk().await.unwrap() {
        bytes += chunk.len();
        pieces += 1;
    }
    assert_eq!(bytes, 300_000);
    assert!(pieces > 1);
}

#[test]
fn nothing_prints_the_token() {
    let config = Config::new("http://127.0.0.1:1").token(Secret::new("hunter2"));
    let client = Client::new(&config).unwrap();
    let printed = format!("{config:?} {client:?}");
    assert!(!printed.contains("hunter2"), "{printed}");
    let bad = Client::new(&Config::new("http://h").token(Secret::new("two\nlines"))).unwrap_err();
    assert_eq!(bad.code, "bad_token");
}
