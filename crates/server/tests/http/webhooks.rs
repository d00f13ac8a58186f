//! Webhooks over HTTP: what is delivered to whom, signed how, and what becomes of what is not delivered.

use crate::world::World;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use leasehold_api::Method;
use leasehold_deliver::{Secret, Signer, signatures};
use leasehold_server::config::Config;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, watch};

pub(crate) const HOOKS: &str = "/api/v1/deliveries/webhooks";
/// Far longer than a delivery takes: a test that fails says so.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One delivery.
#[derive(Debug)]
pub(crate) struct Delivery {
    headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Delivery {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("text")
    }
    pub(crate) fn kind(&self) -> String {
        self.json()["type"].as_str().expect("a type").to_owned()
    }
}

#[derive(Clone)]
struct Receiving {
    status: Arc<AtomicU16>,
    held: watch::Receiver<bool>,
    arrived: mpsc::UnboundedSender<Delivery>,
}

/// A receiver on loopback that answers with one status, or not at all while it is held.
pub(crate) struct Receiver {
    pub(crate) url: String,
    status: Arc<AtomicU16>,
    held: watch::Sender<bool>,
    arrived: Mutex<mpsc::UnboundedReceiver<Delivery>>,
}

async fn take(State(mut receiving): State<Receiving>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let _ = receiving.arrived.send(Delivery { headers, body });
    let _ = receiving.held.wait_for(|held| !held).await;
    StatusCode::from_u16(receiving.status.load(Ordering::SeqCst)).expect("a status")
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let (send, arrived) = mpsc::unbounded_channel();
        let status = Arc::new(AtomicU16::new(200));
        let held = watch::Sender::new(false);
        let receiving = Receiving { status: Arc::clone(&status), held: held.subscribe(), arrived: send };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let router = Router::new().route("/hook", post(take)).with_state(receiving);
        tokio::spawn(async move {
            let service = hyper_util::service::TowerToHyperService::new(router);
            while let Ok((stream, _)) = listener.accept().await {
                let (io, service) = (hyper_util::rt::TokioIo::new(stream), service.clone());
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
            }
        });
        Self { url, status, held, arrived: Mutex::new(arrived) }
    }

    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Whether answers wait until this is called with `false`.
    pub(crate) fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    pub(crate) async fn next(&self) -> Delivery {
        let mut arrived = self.arrived.lock().await;
        tokio::time::timeout(PATIENCE, arrived.recv()).await.expect("in time").expect("a delivery")
    }

    pub(crate) async fn kinds(&self, count: usize) -> Vec<String> {
        let mut kinds = Vec::new();
        for _ in 0..count {
            kinds.push(self.next().await.kind());
        }
        kinds
    }

    pub(crate) async fn is_idle(&self) -> bool {
        self.arrived.lock().await.is_empty()
    }
}

/// Deliveries are on, also to this machine.
pub(crate) fn deliver(config: &mut Config) {
    config.accounting.enabled = true;
    config.accounting.webhooks.allowed_networks = vec!["127.0.0.0/8".into()];
}

pub(crate) async fn site() -> World {
    let mut world = World::with(deliver).await;
    world.furnish().await;
    world
}

pub(crate) async fn hook(world: &World, receiver: &Receiver, more: Value) -> Value {
    let mut new = json!({ "name": "biller", "url": receiver.url });
    more.as_object().expect("an object").iter().for_each(|(key, value)| new[key] = value.clone());
    world.post(HOOKS, new).await.expect(201)
}

/// What a path answers once it is as wanted. Deliveries leave no records, so there is nothing to wait for but the answer.
pub(crate) async fn eventually(
    world: &World,
    method: Method,
    path: &str,
    body: Option<&Value>,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let asking = async {
        loop {
            let shown = world.send(Some(&world.operator), method, path, body.cloned()).await.expect(200);
            if is_so(&shown) {
                return shown;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("{path} does not come to be as wanted"))
}

pub(crate) async fn lease(world: &World, tenant: &str) -> String {
    let asked = json!({ "tenant": tenant, "project": format!("{tenant}-main"), "ttl": "10m",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let granted = world.post("/api/v1/leases", asked).await.expect(201);
    granted["leases"][0]["lease"].as_str().or(granted["leases"][0]["id"].as_str()).expect("a lease").to_owned()
}

pub(crate) async fn release(world: &World, lease: &str) {
    world.post(&format!("/api/v1/leases/{lease}/release"), json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_told_signed_and_in_order() {
    let (world, receiver) = (site().await, Receiver::start().await);
    let made = hook(&world, &receiver, json!({})).await;
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    // It is shown once.
    let shown = world.get(&format!("{HOOKS}/biller")).await.expect(200);
    assert_eq!((&shown["enabled"], &shown["events"]), (&json!(true), &json!(["*"])));
    assert!(!shown.to_string().contains("whsec_"));

    let held = lease(&world, "physics").await;
    let granted = receiver.next().await;
    let event = granted.json();
    assert_eq!((&event["type"], &event["specversion"]), (&json!("lease.granted"), &json!("1.0")));
    assert!(event["source"].as_str().expect("a source").starts_with("leasehold://"));
    assert_eq!(granted.header("webhook-id"), event["id"].as_str().expect("an id"));
    assert_eq!(granted.header("content-type"), "application/cloudevents+json; charset=utf-8");
    let seconds: u64 = granted.header("webhook-timestamp").parse().expect("seconds");
    let signer = Signer::parse(&Secret::new(secret)).expect("a secret");
    let expected = signatures(&[signer], granted.header("webhook-id"), seconds, &granted.body);
    assert_eq!(granted.header("webhook-signature"), expected);

    let started = receiver.next().await.json();
    assert_eq!((&started["type"], &started["data"]["tenant"]), (&json!("allocation.started"), &json!("physics")));
    assert_eq!(started["data"]["resources"]["gpus"], "1");
    assert_eq!(started["data"]["estimated_duration_seconds"], Value::Null);
    release(&world, &held).await;
    let ended = [receiver.next().await.json(), receiver.next().await.json()];
    assert_eq!([&ended[0]["type"], &ended[1]["type"]], [&json!("lease.released"), &json!("allocation.completed")]);
    let data = &ended[1]["data"];
    assert_eq!(
        (&data["state"], &data["end"], &data["usage_final"]),
        (&json!("completed"), &json!("released"), &json!(true))
    );
    assert_eq!(data["allocation_id"], started["data"]["allocation_id"]);
    // The exact fraction of an hour is what was held.
    let exact: [u128; 2] = ["numerator", "denominator"]
        .map(|part| data["gpu_hours_exact"][part].as_str().expect("digits").parse().expect("a number"));
    let held_ns = {
        let shown = world.get(&format!("/api/v1/leases/{held}")).await.expect(200);
        let at =
            |field: &str| shown[field].as_str().expect("an instant").parse::<leasehold_api::When>().expect("one").0.0;
        u128::from(at("ended_at") - at("granted_at"))
    };
    assert_eq!(exact[0] * 3_600_000_000_000, held_ns * exact[1]);
    world.stop().await;
}

/// Nothing of other tenants, nothing that it did not ask for, and nothing from before it was made.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_gets_its_own_events_only() {
    let (world, receiver) = (site().await, Receiver::start().await);
    let before = lease(&world, "physics").await;
    let admin = &world.tokens[&leasehold_api::Role::TenantAdmin];
    let new = json!({ "name": "own", "url": receiver.url, "events": ["lease.granted", "accounting"] });
    let made = world.send(Some(admin), Method::Post, HOOKS, Some(new)).await.expect(201);
    assert_eq!(made["webhook"]["tenant"], "physics");
    let theirs = lease(&world, "chemistry").await;
    release(&world, &theirs).await;
    release(&world, &before).await;
    let own = lease(&world, "physics").await;
    // Two leases: the events of each are in order.
    let mut told = receiver.kinds(3).await;
    told.sort_unstable();
    assert_eq!(told, ["allocation.completed", "allocation.started", "lease.granted"]);
    release(&world, &own).await;
    let last = receiver.next().await;
    assert!(!String::from_utf8_lossy(&last.body).contains("chemistry"));
    // The operator sees it, the other tenant does not.
    let listed = world.get(HOOKS).await.expect(200);
    assert_eq!(listed["webhooks"].as_array().map(Vec::len), Some(1));
    let status = world.get("/api/v1/deliveries").await.expect(200);
    assert_eq!((&status["enabled"], &status["deliveries"][0]["state"]), (&json!(true), &json!("delivering")));
    assert!(receiver.is_idle().await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_set_aside_and_can_be_sent_again() {
    let (world, receiver) = (site().await, Receiver::start().await);
    let made = hook(&world, &receiver, json!({ "events": ["lease.granted", "lease.released"] })).await;
    receiver.answer(400);
    let held = lease(&world, "physics").await;
    let refused = receiver.next().await;
    eventually(&world, Method::Get, "/api/v1/deliveries", None, |status| {
        let of = &status["deliveries"][0];
        of["dead_letters"] == 1 && of["lag_events"] == 0
    })
    .await;
    let letters = world.get(&format!("{HOOKS}/biller/dead-letters")).await.expect(200);
    let letter = &letters["dead_letters"][0];
    assert_eq!((&letter["event_type"], &letter["status"]), (&json!("lease.granted"), &json!(400)));
    assert_eq!(letter["event_id"], refused.header("webhook-id"));

    // It does not block the rest.
    receiver.answer(200);
    release(&world, &held).await;
    assert_eq!(receiver.kinds(1).await, ["lease.released"]);
    let window = json!({ "since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z", "dry_run": true });
    let reconcile = format!("{HOOKS}/biller/reconcile");
    let plan = eventually(&world, Method::Post, &reconcile, Some(&window), |plan| plan["pending"] == 0).await;
    assert_eq!(
        [&plan["due"], &plan["acknowledged"], &plan["dead"], &plan["sent"]],
        [2, 1, 1, 0].map(|n| json!(n)).each_ref()
    );
    let missing = &plan["differences"][0];
    assert_eq!([&missing["event_id"], &missing["reason"]], [&letter["event_id"], &letter["reason"]], "{plan}");
    assert_eq!((&missing["cause"], &plan["sequence"]), (&json!("set_aside"), &Value::Null));
    let mut wanted = window.clone();
    wanted["dry_run"] = json!(false);
    let done = world.post(&reconcile, wanted.clone()).await.expect(200);
    assert_eq!([&done["sent"], &done["failed"]], [&json!(1), &json!(0)]);
    assert_eq!(receiver.next().await.header("webhook-id"), refused.header("webhook-id"));
    let sealed = done["sequence"].as_u64().expect("it is sealed");
    let records = world.get("/api/v1/audit/records?kind=accounting").await.expect(200);
    let record = &records["records"][0];
    assert_eq!((&record["sequence"], &record["body"]["sent"]), (&json!(sealed), &json!(1)));
    // The second time nothing is missing, which is recorded as well.
    let again = world.post(&reconcile, wanted).await.expect(200);
    assert_eq!([&again["sent"], &again["dead"], &again["differences"]], [&json!(0), &json!(0), &json!([])]);
    assert!(again["sequence"].as_u64() > Some(sealed), "{again}");
    let attempts = world.get(&format!("{HOOKS}/biller/attempts")).await.expect(200);
    assert_eq!(attempts["attempts"].as_array().map(Vec::len), Some(3));
    let replayed =
        world.post(&format!("{HOOKS}/biller/replay"), json!({ "from_sequence": made["sequence"] })).await.expect(200);
    assert_eq!((&replayed["sent"], &replayed["delivered"]), (&json!(2), &json!(2)));
    assert_eq!(receiver.kinds(2).await, ["lease.granted", "lease.released"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gone_disables_and_setting_it_enables_again() {
    let (world, receiver) = (site().await, Receiver::start().await);
    hook(&world, &receiver, json!({ "events": ["lease.granted"] })).await;
    receiver.answer(410);
    lease(&world, "physics").await;
    receiver.next().await;
    let gone = world.until(&format!("{HOOKS}/biller"), |hook| hook["enabled"] == false).await;
    assert_eq!(gone["disabled_cause"], "gone");
    receiver.answer(200);
    let test = format!("{HOOKS}/biller/test");
    assert_eq!(world.post(&test, json!({})).await.expect(200)["status"], 200);
    assert_eq!(receiver.next().await.kind(), "leasehold.test");
    let change = json!({ "events": ["lease.granted", "node.claimed"] });
    let set = world.send(Some(&world.operator), Method::Patch, &format!("{HOOKS}/biller"), Some(change)).await;
    assert_eq!(set.expect(200)["webhook"]["enabled"], true);
    // What happened meanwhile is not lost.
    assert_eq!(receiver.kinds(1).await, ["lease.granted"]);
    world.stop().await;
}

/// What was not delivered when the daemon stopped is delivered by the next one, with the same ID.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on() {
    let (world, receiver) = (site().await, Receiver::start().await);
    hook(&world, &receiver, json!({ "events": ["lease.*"] })).await;
    receiver.answer(503);
    let held = lease(&world, "physics").await;
    let first = receiver.next().await;
    release(&world, &held).await;
    let folder = world.stop().await;
    receiver.answer(200);
    let world = World::in_folder(folder, deliver).await;
    let status = world.get("/api/v1/deliveries").await.expect(200);
    assert_eq!(status["trouble"], Value::Null, "{status}");
    let mut told = Vec::new();
    while told.last().is_none_or(|kind| kind != "lease.released") {
        let delivery = receiver.next().await;
        if delivery.kind() == "lease.granted" {
            assert_eq!(delivery.header("webhook-id"), first.header("webhook-id"));
        }
        told.push(delivery.kind());
    }
    told.dedup();
    assert_eq!(told, ["lease.granted", "lease.released"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused() {
    let (world, receiver) = (site().await, Receiver::start().await);
    for (url, code) in [
        ("http://10.0.0.7/hook", "bad_webhook_url"),
        ("https://169.254.169.254/latest", "bad_webhook_url"),
        ("https://[::ffff:10.0.0.1]/", "bad_webhook_url"),
        ("ftp://example.com/", "bad_webhook_url"),
        ("https://user:secret@example.com/", "bad_webhook_url"),
    ] {
        let refused = world.post(HOOKS, json!({ "name": "x", "url": url })).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, code), "{url}");
    }
    let unknown = world.post(HOOKS, json!({ "name": "x", "url": receiver.url, "events": ["lease.bought"] })).await;
    assert_eq!(unknown.code(), "unknown_event_type");
    let near = world.post(HOOKS, json!({ "name": "x", "url": receiver.url, "events": ["lease.grant"] })).await;
    assert_eq!((near.code().as_str(), &near.json()["nearest"]), ("unknown_event_type", &json!("lease.granted")));
    let none = world.post(HOOKS, json!({ "name": "x", "url": receiver.url, "events": [] })).await;
    assert_eq!(none.code(), "bad_webhook_events");
    assert_eq!(world.get(&format!("{HOOKS}/nobody")).await.code(), "unknown_webhook");
    hook(&world, &receiver, json!({})).await;
    assert_eq!(world.get(&format!("{HOOKS}/bilker")).await.json()["nearest"], "biller");
    assert_eq!(world.get(&format!("{HOOKS}/biller/job")).await.code(), "no_delivery_job");
    let twin = world.post(HOOKS, json!({ "name": "biller", "url": receiver.url })).await;
    assert_eq!(twin.code(), "name_taken");
    let wrong = world.post(&format!("{HOOKS}/biller/replay"), json!({ "from_sequence": 1_000_000 })).await;
    assert_eq!(wrong.code(), "no_such_record");
    let wrong = json!({ "since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z" });
    assert_eq!(world.post(&format!("{HOOKS}/biller/reconcile"), wrong).await.code(), "bad_reconciliation");
    let wrong = json!({ "event_id": "nothing" });
    assert_eq!(world.post(&format!("{HOOKS}/biller/retry"), wrong).await.code(), "no_dead_letter");
    world.send(Some(&world.operator), Method::Delete, &format!("{HOOKS}/biller"), None).await.expect(200);
    assert_eq!(world.get(&format!("{HOOKS}/biller")).await.status, 404);
    world.stop().await;
    let world = World::empty().await;
    let off = world.post(HOOKS, json!({ "name": "x", "url": "https://example.com/" })).await;
    assert_eq!((off.status, off.code().as_str()), (409, "accounting_disabled"));
    assert_eq!(world.get("/api/v1/deliveries").await.expect(200)["enabled"], false);
    world.stop().await;
}

/// Nodes for sensitive work: who claimed them, and what became of the wipe.
#[tokio::test(flavor = "multi_thread")]
async fn claims_and_quotas_are_told() {
    let (world, receiver) = (site().await, Receiver::start().await);
    hook(&world, &receiver, json!({ "events": ["accounting"] })).await;
    let quota = json!({ "tenant": "physics", "project": "physics-main", "class": "h100", "measure": "quanta",
        "limit": { "type": "hard", "limit": 5 } });
    world.post("/api/v1/quotas", quota).await.expect(201);
    let updated = receiver.next().await.json();
    assert_eq!(
        (&updated["type"], &updated["data"]["body"]["scope"]["tenant"]),
        (&json!("quota.updated"), &json!("physics"))
    );
    let node = "n3";
    let new = json!({ "name": node, "pool": "main", "teardown": "immediate", "capacity": { "h100": 2 } });
    world.post("/api/v1/nodes", new).await.expect(201);
    world.post("/api/v1/users", json!({ "name": "claimer", "tenant": "physics" })).await.expect(201);
    let claim = json!({ "nodes": [node], "tenant": "physics", "project": "physics-main", "user": "claimer" });
    world.post("/api/v1/claims", claim).await.expect(201);
    let claimed = receiver.next().await.json();
    assert_eq!((&claimed["type"], &claimed["data"]["user"]), (&json!("node.claimed"), &json!("claimer")));
    assert_eq!(claimed["data"]["nodes"], json!([node]));
    world.post("/api/v1/claims/release", json!({ "nodes": [node] })).await.expect(200);
    world.post(&format!("/api/v1/nodes/{node}/wipe"), json!({ "clean": true })).await.expect(200);
    let released = receiver.next().await.json();
    let data = &released["data"];
    assert_eq!(
        (&released["type"], &data["wipe"], &data["user"]),
        (&json!("node.released"), &json!("confirmed"), &json!("claimer"))
    );
    assert!(data["released_at"].is_string(), "{data}");
    world.stop().await;
}

/// Every event about sensitive work names its user, whoever or whatever caused it.
#[tokio::test(flavor = "multi_thread")]
async fn every_event_about_sensitive_work_names_the_claimer() {
    let (world, receiver) = (site().await, Receiver::start().await);
    let new = json!({ "name": "n3", "pool": "main", "teardown": "immediate", "capacity": { "h100": 4 } });
    world.post("/api/v1/nodes", new).await.expect(201);
    world.post("/api/v1/users", json!({ "name": "claimer", "tenant": "physics" })).await.expect(201);
    hook(&world, &receiver, json!({ "events": ["lease.*", "allocation.*", "node.*"] })).await;
    let who = |more: Value| {
        let mut asked = json!({ "tenant": "physics", "project": "physics-main", "user": "claimer", "sensitive": true,
            "asks": [{ "class": "h100", "quantity": 2 }] });
        more.as_object().expect("an object").iter().for_each(|(key, value)| asked[key] = value.clone());
        asked
    };
    let claim = json!({ "nodes": ["n3"], "tenant": "physics", "project": "physics-main", "user": "claimer" });
    let claimed = world.post("/api/v1/claims", claim).await.expect(201);
    let sealed = claimed["sequence"].as_u64().expect("a sequence");

    // A lease that is renewed and released, one that an operator revokes, and one that is denied.
    let lease = async || {
        let granted = world.post("/api/v1/leases", who(json!({ "ttl": "10m" }))).await.expect(201);
        granted["leases"][0]["id"].as_str().expect("an id").to_owned()
    };
    let act = async |lease: &str, what: &str, body: Value| {
        world.post(&format!("/api/v1/leases/{lease}/{what}"), body).await.expect(200);
    };
    let first = lease().await;
    let more = json!({ "ttl": "10m", "asks": [{ "class": "h100", "quantity": 3 }] });
    assert_eq!(world.post("/api/v1/leases", who(more)).await.status, 409);
    act(&first, "renew", json!({ "ttl": "20m" })).await;
    act(&first, "release", json!({})).await;
    act(&lease().await, "revoke", json!({ "grace": "0s" })).await;

    // Allocations: one that completes, one that fails, one that is put back, and one that waits and is cancelled.
    let submit = async |more: Value| {
        let submitted = world.post("/api/v1/allocations", who(more)).await.expect(201);
        submitted["id"].as_str().expect("an id").to_owned()
    };
    let say = async |allocation: &str, what: &str, body: Value| {
        world.post(&format!("/api/v1/allocations/{allocation}/{what}"), body).await.expect(200);
    };
    let completes = submit(json!({ "walltime": "1h", "staged": true })).await;
    let fails = submit(json!({ "walltime": "1h" })).await;
    let waits = submit(json!({ "walltime": "1h", "requeue": true })).await;
    say(&waits, "hold", json!({})).await;
    say(&waits, "release", json!({})).await;
    say(&completes, "start", json!({})).await;
    say(&completes, "checkpointing", json!({})).await;
    say(&completes, "checkpoint", json!({ "bytes": 4096, "took": "1us" })).await;
    say(&completes, "complete", json!({ "exit_status": 0 })).await;
    say(&fails, "complete", json!({ "exit_status": 3 })).await;
    say(&waits, "cancel", json!({})).await;
    world.post("/api/v1/claims/release", json!({ "nodes": ["n3"] })).await.expect(200);
    world.post("/api/v1/nodes/n3/wipe", json!({ "clean": false })).await.expect(200);

    let mut expected = BTreeSet::from([
        "node.claimed",
        "lease.granted",
        "lease.denied",
        "lease.renewed",
        "lease.released",
        "lease.revoked",
        "lease.teardown_started",
        "allocation.submitted",
        "allocation.placed",
        "allocation.started",
        "allocation.checkpointing",
        "allocation.checkpointed",
        "allocation.completed",
        "allocation.failed",
        "allocation.hold_set",
        "allocation.hold_cleared",
        "allocation.cancelled",
        "node.quarantined",
        "node.released",
    ]);
    while !expected.is_empty() {
        let event = receiver.next().await.json();
        let (kind, data) = (event["type"].as_str().expect("a type"), &event["data"]);
        let user = data.get("user").or_else(|| data["identity"].get("user"));
        assert_eq!(user, Some(&json!("claimer")), "{event}");
        expected.remove(kind);
        // The claim is in the journal before anything starts on its node.
        let sequence = data["sequence"].as_str().and_then(|sequence| sequence.parse().ok());
        assert!(sequence.is_none_or(|sequence: u64| sequence >= sealed), "{event}");
    }
    world.stop().await;
}
