//! The lease guard: renewal, revocation and release.

use crate::fake::{After, Asked, Fake, Reply};
use leasehold_api::{Activity, Ask, Problem, RequestLease, Ttl};
use leasehold_client::{Keep, Lease, Why, api};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Long enough for a busy machine, short enough for a test.
const TTL: Duration = Duration::from_secs(2);

fn request() -> RequestLease {
    let json = json!({ "asks": [{ "class": "gpu", "quantity": "2" }], "ttl": "2s" });
    let request: RequestLease = serde_json::from_value(json).expect("a request");
    assert_eq!(request.asks, [Ask { class: "gpu".into(), quantity: "2".into() }]);
    request
}

fn stamp(secs: u64) -> String {
    api::When(leasehold_model::Instant::from_secs(secs)).to_string()
}

/// Far from the clock of this machine, which must not matter.
const GRANTED_AT: u64 = 1_000_000;

fn granted() -> Reply {
    let lease = |id: &str| json!({ "id": id, "class": "gpu", "quantity": "1", "quanta": 1, "devices": [0] });
    Reply::Json(
        201,
        json!({
            "sequence": 9, "leases": [lease("aa"), lease("bb")], "node": "n1", "pool": "p", "priority": "standard",
            "granted_at": stamp(GRANTED_AT), "expires_at": stamp(GRANTED_AT + 2), "correlation_id": "c",
        }),
    )
}

/// Answers every operation of a batch with success.
fn well(asked: &Asked) -> Reply {
    let result = |operation: &Value| {
        let id = &operation["lease"];
        if operation.get("renew").is_some() {
            json!({ "status": 200, "renewed": { "sequence": 10, "id": id, "expires_at": stamp(GRANTED_AT + 4) } })
        } else if operation.get("ready").is_some() {
            json!({ "status": 200, "ready": { "sequence": 11, "id": id, "ended_at": stamp(GRANTED_AT + 3) } })
        } else {
            let released = json!({ "sequence": 11, "id": id, "state": "closed", "ended_at": stamp(GRANTED_AT + 3) });
            json!({ "status": 200, "released": released })
        }
    };
    let body = asked.json();
    let results: Vec<Value> = body["operations"].as_array().unwrap().iter().map(result).collect();
    Reply::Json(200, json!({ "results": results }))
}

fn refused(asked: &Asked, problem: &Problem) -> Reply {
    let count = asked.json()["operations"].as_array().unwrap().len();
    let result = json!({ "status": problem.status, "problem": problem });
    Reply::Json(200, json!({ "results": vec![result; count] }))
}

fn quiet() -> Reply {
    Reply::Stream(vec![], After::Stay)
}

async fn daemon(batch: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Fake {
    watched_daemon(quiet, batch).await
}

async fn watched_daemon(
    events: impl Fn() -> Reply + Send + Sync + 'static,
    batch: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Fake {
    Fake::start(move |_, asked| match asked.path.split('?').next().unwrap() {
        "/api/v1/leases" => granted(),
        "/api/v1/leases/batch" => batch(asked),
        "/api/v1/events" => events(),
        other => panic!("{other}"),
    })
    .await
}

async fn until(what: impl Fn() -> bool) {
    let waited = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.expect("it never came to that");
}

#[tokio::test]
async fn a_lease_is_renewed_with_its_gang_and_reports() {
    let fake = daemon(well).await;
    let begun = Instant::now();
    let asked_times = std::sync::Arc::new(AtomicU64::new(0));
    let counter = std::sync::Arc::clone(&asked_times);
    let report = move |lease: &api::GrantedLease| {
        counter.fetch_add(1, Ordering::Relaxed);
        let covered = Ttl(leasehold_model::Span::from_secs(1));
        (lease.id == "aa").then(|| Activity { covered, busy_quantum_ns: "5".into(), ..Activity::default() })
    };
    let keep = Keep { report: Some(Box::new(report)), ..Keep::default() };
    let lease = Lease::request(&fake.client(), &request(), keep).await.unwrap();
    assert_eq!(lease.ids().collect::<Vec<_>>(), ["aa", "bb"]);
    until(|| !fake.asked_for("batch").is_empty()).await;
    assert!(begun.elapsed() >= TTL * 6 / 10, "renewed after {:?}", begun.elapsed());
    assert!(begun.elapsed() <= TTL * 95 / 100, "renewed after {:?}", begun.elapsed());
    until(|| lease.expires_at().to_string() == stamp(GRANTED_AT + 4)).await;
    let operations = fake.asked_for("batch")[0].json()["operations"].clone();
    assert_eq!((&operations[0]["lease"], &operations[1]["lease"]), (&json!("aa"), &json!("bb")));
    assert_eq!(operations[0]["renew"]["ttl"], "2s");
    assert_eq!(operations[0]["renew"]["activity"]["busy_quantum_ns"], "5");
    assert_eq!(operations[1]["renew"].get("activity"), None);
    // Renewed a second time, and then released with a last report.
    until(|| fake.asked_for("batch").len() == 2).await;
    lease.release().await.unwrap();
    let last = fake.asked_for("batch").last().unwrap().json();
    assert_eq!(last["operations"][0]["release"]["activity"]["busy_quantum_ns"], "5");
    assert_eq!(asked_times.load(Ordering::Relaxed), 6);
    let stream = &fake.asked_for("events")[0].path;
    assert_eq!(stream, "/api/v1/events?after=9&kind=lease&lease=aa");
}

#[tokio::test]
async fn a_revocation_is_noticed_immediately() {
    let revoked = || {
        let record = json!({
            "timestamp_ns": ((GRANTED_AT * 1000 + 100) * 1_000_000).to_string(), "reason": "operator",
            "body": { "leases": ["lease-1"], "grace": "1s", "grace_ns": "1000000000" },
        });
        let granted = json!({ "sequence": 9 });
        let text =
            format!("id: 9\nevent: lease.granted\ndata: {granted}\n\nid: 12\nevent: lease.revoked\ndata: {record}\n\n");
        Reply::Stream(vec![(Duration::from_millis(50), text)], After::Stay)
    };
    let fake = watched_daemon(revoked, well).await;
    let begun = Instant::now();
    let lease = Lease::request(&fake.client(), &request(), Keep::default()).await.unwrap();
    let lost = lease.lost().await;
    assert_eq!(lost.why, Why::Revoked { reason: Some("operator".into()) });
    assert_eq!(lost.to_string(), "the lease was revoked: operator");
    assert!(begun.elapsed() < TTL * 6 / 10, "before a renewal would have told");
    // 100 ms after the grant by the daemon's clock, and a second of grace.
    assert!(lost.until >= begun + Duration::from_millis(1100) && lost.until <= begun + Duration::from_millis(1900));
    assert_eq!(lease.lost().await, lost, "it may be asked again");
    lease.ready().await.unwrap();
    let operations = fake.asked_for("batch")[0].json()["operations"].clone();
    assert_eq!(operations[1]["ready"], json!({}));
    assert_eq!(fake.asked_for("batch").len(), 1, "ready is enough");
}

#[tokio::test]
async fn after_a_refused_renewal_the_lease_lasts_until_its_deadline() {
    let problem = Problem::new(409, "lifetime_reached", "it has lived long enough");
    let fake = daemon(move |asked| refused(asked, &problem)).await;
    let begun = Instant::now();
    let lease = Lease::request(&fake.client(), &request(), Keep::default()).await.unwrap();
    let lost = lease.lost().await;
    assert!(matches!(&lost.why, Why::Refused(problem) if problem.code == "lifetime_reached"), "{lost:?}");
    assert!(lost.until >= begun + TTL && lost.until > Instant::now());
    assert!(lease.release().await.is_err(), "the daemon refuses that too");
}

#[tokio::test]
async fn a_lease_that_has_ended_is_lost_immediately() {
    let problem = Problem::new(409, "lease_expired", "too late");
    let fake = daemon(move |asked| refused(asked, &problem)).await;
    let lease = Lease::request(&fake.client(), &request(), Keep::default()).await.unwrap();
    let lost = lease.lost().await;
    assert!(lost.until <= Instant::now());
    lease.release().await.expect("nothing is left to release");
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_is_lost_before_its_deadline() {
    let fake = daemon(|_| Reply::Silence).await;
    let begun = Instant::now();
    let lease = Lease::request(&fake.client(), &request(), Keep::default()).await.unwrap();
    let lost = lease.lost().await;
    assert_eq!(lost.why, Why::Unreachable);
    assert!(begun.elapsed() < TTL, "told after {:?}", begun.elapsed());
    assert!(lost.until <= begun + TTL + Duration::from_millis(50));
    drop(lease);
}

#[tokio::test]
async fn an_unanswered_renewal_is_sent_again_unchanged() {
    let times = AtomicU64::new(0);
    let fake = daemon(move |asked| match times.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Problem(Problem::new(500, "internal", "it failed"), None),
        1 => refused(asked, &Problem::new(503, "busy", "too much")),
        _ => well(asked),
    })
    .await;
    let report = |_: &api::GrantedLease| Some(Activity { busy_quantum_ns: "1".into(), ..Activity::default() });
    let keep = Keep { report: Some(Box::new(report)), unwatched: true };
    let lease = Lease::request(&fake.client(), &request(), keep).await.unwrap();
    until(|| lease.expires_at().to_string() == stamp(GRANTED_AT + 4)).await;
    let asked = fake.asked_for("batch");
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|one| one.body == asked[0].body), "the same operations under the same keys");
    assert!(fake.asked_for("events").is_empty());
    assert_eq!(lease.leave().leases.len(), 2);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(fake.asked_for("batch").len(), 3, "left as it is");
}

#[tokio::test]
async fn dropping_gives_back() {
    let fake = daemon(well).await;
    let lease = Lease::request(&fake.client(), &request(), Keep::default()).await.unwrap();
    drop(lease);
    until(|| !fake.asked_for("batch").is_empty()).await;
    let operations = fake.asked_for("batch")[0].json()["operations"].clone();
    assert_eq!(operations[0]["release"], json!({}));
}

/// The daemon's answer for an allocation in this state.
fn allocation(state: &str) -> Reply {
    let lease = |id: &str| json!({ "id": id, "class": "gpu", "quantity": "1", "quanta": 1, "devices": [0] });
    let attempt = json!({
        "number": 1, "placed_at": stamp(GRANTED_AT), "ended_at": null, "end": null, "checkpoints": [],
        "replicas": [{ "node": "n1", "pool": "p", "leases": [lease("aa"), lease("bb")], "expires_at": stamp(GRANTED_AT + 2) }],
    });
    let attempts = if state == "running" { vec![attempt] } else { Vec::new() };
    Reply::Json(
        200,
        json!({
            "id": 9, "state": state, "tenant": "t", "project": "p", "user": null, "workload": null, "asks": [],
            "replicas": 1, "priority": "guaranteed", "pool": null, "walltime": null, "ttl": "2s", "staged": false,
            "requeue": false, "labels": {}, "together": null, "apart": null, "sensitive": false, "correlation_id": "c",
            "submitted_at": stamp(GRANTED_AT - 9), "attempt": 0, "placed_at": null, "ends_by": null, "ended_at": null,
            "waiting": null, "exit_status": null, "storage_written": null, "attempts": attempts,
        }),
    )
}

/// A daemon where leases must be evicted first. It shows the allocation in these states, one after the other; the last
/// one is repeated.
async fn crowded(shown: &'static [&'static str]) -> Fake {
    let looked = AtomicU64::new(0);
    Fake::start(move |_, asked| match asked.path.split('?').next().unwrap() {
        "/api/v1/leases" => {
            let (submitted_at, state) = (stamp(GRANTED_AT - 9), "pending");
            let waits = json!({ "sequence": 9, "id": 9, "state": state, "submitted_at": submitted_at,
                "correlation_id": "c", "replicas": [] });
            Reply::Json(202, waits)
        }
        "/api/v1/allocations/alloc-9" => {
            let turn = usize::try_from(looked.fetch_add(1, Ordering::Relaxed)).unwrap();
            allocation(shown[turn.min(shown.len() - 1)])
        }
        "/api/v1/allocations/alloc-9/complete" | "/api/v1/allocations/alloc-9/cancel" => {
            Reply::Json(200, json!({ "sequence": 12, "id": 9, "state": "completed" }))
        }
        "/api/v1/leases/batch" => well(asked),
        "/api/v1/events" => quiet(),
        other => panic!("{other}"),
    })
    .await
}

#[tokio::test]
async fn a_request_that_needs_evictions_waits_and_is_released_as_a_whole() {
    let fake = crowded(&["pending", "pending", "running"]).await;
    let lease = Lease::request(&fake.client(), &request(), Keep::default()).await.unwrap();
    assert_eq!(lease.ids().collect::<Vec<_>>(), ["aa", "bb"]);
    assert_eq!((lease.granted().node.as_str(), fake.asked_for("allocations/alloc-9").len()), ("n1", 3));
    // The deadline counts from just before the placement, not from the request.
    until(|| !fake.asked_for("batch").is_empty()).await;
    lease.release().await.unwrap();
    assert_eq!(fake.asked_for("complete").len(), 1, "a gang is not released lease by lease");
}

#[tokio::test]
async fn a_dropped_request_is_cancelled() {
    let fake = crowded(&["pending"]).await;
    let (client, request) = (fake.client(), request());
    let waits = Lease::request(&client, &request, Keep::default());
    assert!(tokio::time::timeout(Duration::from_millis(300), waits).await.is_err());
    until(|| fake.asked_for("cancel").len() == 1).await;
    let fake = crowded(&["pending", "cancelled"]).await;
    let Err(over) = Lease::request(&fake.client(), &request, Keep::default()).await else { panic!("it is held") };
    assert_eq!(over.code(), "allocation_over");
}
