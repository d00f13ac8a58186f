//! Retries, replays and reconciliations of webhooks that take longer than an answer may.

use crate::webhooks::{HOOKS, PATIENCE, Receiver, deliver, eventually, hook, lease, release};
use crate::world::World;
use leasehold_api::Method;
use leasehold_model::Span;
use leasehold_server::config::Config;
use serde_json::{Value, json};

const JOB: &str = "/api/v1/deliveries/webhooks/biller/job";

/// Requests are cut off after two seconds, so that an answer waits one second for a result.
fn hurried(config: &mut Config) {
    deliver(config);
    config.limits.request_timeout = Span::from_secs(2);
}

fn all_of_time() -> Value {
    json!({ "since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z" })
}

/// A webhook with one event that was set aside, whose receiver takes events again but does not answer.
async fn with_dead_letter() -> (World, Receiver) {
    let mut world = World::with(hurried).await;
    world.furnish().await;
    let receiver = Receiver::start().await;
    hook(&world, &receiver, json!({ "events": ["lease.granted"] })).await;
    receiver.answer(400);
    lease(&world, "physics").await;
    receiver.next().await;
    is_set_aside(&world).await;
    receiver.answer(200);
    receiver.hold(true);
    (world, receiver)
}

async fn is_set_aside(world: &World) {
    let is_so = |status: &Value| status["deliveries"][0]["dead_letters"] == 1;
    eventually(world, Method::Get, "/api/v1/deliveries", None, is_so).await;
}

async fn ended(world: &World) -> Value {
    eventually(world, Method::Get, JOB, None, |job| job["state"] != "running").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_reconciliation_goes_on_and_can_be_followed() {
    let (world, receiver) = with_dead_letter().await;
    let reconcile = format!("{HOOKS}/biller/reconcile");
    let begun = world.post(&reconcile, all_of_time()).await.expect(202);
    assert_eq!((&begun["kind"], &begun["state"]), (&json!("reconcile"), &json!("running")));
    assert_eq!([&begun["due"], &begun["done"]], [&json!(1), &json!(0)]);
    assert_eq!(begun["since"], "2020-01-01T00:00:00Z");
    // One at a time.
    for (what, body) in [("reconcile", all_of_time()), ("retry", json!({})), ("replay", json!({ "from_sequence": 0 }))]
    {
        let busy = world.post(&format!("{HOOKS}/biller/{what}"), body).await;
        assert_eq!((busy.status, busy.code().as_str()), (409, "delivery_busy"), "{what}");
    }
    let status = world.get("/api/v1/deliveries").await.expect(200);
    assert_eq!(status["deliveries"][0]["job"], world.get(JOB).await.expect(200));

    receiver.hold(false);
    let done = ended(&world).await;
    assert_eq!((&done["state"], &done["done"], &done["problem"]), (&json!("finished"), &json!(1), &Value::Null));
    let result = &done["reconciled"];
    assert_eq!([&result["dead"], &result["sent"], &result["failed"]], [1, 1, 0].map(|n| json!(n)).each_ref());
    let records = world.get("/api/v1/audit/records?kind=accounting").await.expect(200);
    assert_eq!(records["records"][0]["sequence"], result["sequence"]);
    assert_eq!(records["records"].as_array().map(Vec::len), Some(1));
    let again = world.post(&reconcile, all_of_time()).await.expect(200);
    assert_eq!([&again["sent"], &again["dead"]], [&json!(0), &json!(0)]);
    assert!(again["sequence"].as_u64() > result["sequence"].as_u64(), "it is recorded as well: {again}");
    world.stop().await;
}

/// The work goes on without its caller, and the same request, sent again with its key, finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_disappears_ends_nothing() {
    let (world, receiver) = with_dead_letter().await;
    let ask = |key: &'static str| {
        let request = world.client().post(format!("{}{HOOKS}/biller/reconcile", world.url));
        let request = request.bearer_auth(&world.operator).header("idempotency-key", key);
        request.header("content-type", "application/json").body(all_of_time().to_string())
    };
    let asking = tokio::spawn(ask("one").send());
    receiver.next().await;
    asking.abort();
    assert!(asking.await.expect_err("it was given up").is_cancelled());
    let running = world.get(JOB).await.expect(200);
    assert_eq!(running["state"], "running");
    assert_eq!(ask("two").send().await.expect("an answer").status(), 409);
    receiver.hold(false);
    let again = ask("one").send().await.expect("an answer");
    let again: Value = serde_json::from_str(&again.text().await.expect("text")).expect("JSON");
    assert_eq!([&again["sent"], &again["dead"]], [&json!(1), &json!(1)]);
    let done = ended(&world).await;
    assert_eq!((&done["job"], &done["reconciled"]), (&running["job"], &again));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_says_how_far_it_is() {
    let mut world = World::with(hurried).await;
    world.furnish().await;
    let receiver = Receiver::start().await;
    let made = hook(&world, &receiver, json!({ "events": ["lease.granted", "lease.released"] })).await;
    let held = lease(&world, "physics").await;
    release(&world, &held).await;
    assert_eq!(receiver.kinds(2).await, ["lease.granted", "lease.released"]);
    let is_idle = |status: &Value| status["deliveries"][0]["lag_events"] == 0;
    eventually(&world, Method::Get, "/api/v1/deliveries", None, is_idle).await;
    receiver.hold(true);
    let replay = json!({ "from_sequence": made["sequence"] });
    let begun = world.post(&format!("{HOOKS}/biller/replay"), replay).await.expect(202);
    assert_eq!([&begun["due"], &begun["done"], &begun["from_sequence"]], [&json!(2), &json!(0), &made["sequence"]]);
    receiver.hold(false);
    let done = ended(&world).await;
    assert_eq!(done["resent"], json!({ "sent": 2, "delivered": 2, "failed": 0, "unreadable": [] }), "{done}");
    assert!(done["ended_at"].is_string(), "{done}");
    world.stop().await;
}

/// What was changed or disabled meanwhile ends with a problem; what was set aside stays so.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_webhook_ends_it() {
    let (world, receiver) = with_dead_letter().await;
    world.post(&format!("{HOOKS}/biller/reconcile"), all_of_time()).await.expect(202);
    world.post(&format!("{HOOKS}/biller/disable"), json!({})).await.expect(200);
    let failed = ended(&world).await;
    assert_eq!((&failed["state"], &failed["problem"]["code"]), (&json!("failed"), &json!("delivery_interrupted")));
    let disabled = world.post(&format!("{HOOKS}/biller/retry"), json!({})).await;
    assert_eq!((disabled.status, disabled.code().as_str()), (409, "webhook_disabled"));
    receiver.hold(false);
    world.send(Some(&world.operator), Method::Patch, &format!("{HOOKS}/biller"), Some(json!({}))).await.expect(200);
    let done = world.post(&format!("{HOOKS}/biller/retry"), json!({})).await.expect(200);
    assert_eq!(done, json!({ "sent": 1, "delivered": 1, "failed": 0, "unreadable": [] }));
    world.stop().await;
}

/// A stop ends it, and the next daemon still knows what was set aside.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_the_daemon_loses_nothing() {
    let (world, receiver) = with_dead_letter().await;
    world.post(&format!("{HOOKS}/biller/reconcile"), all_of_time()).await.expect(202);
    let stopping = tokio::time::timeout(PATIENCE, world.stop());
    let folder = stopping.await.expect("a job does not keep the daemon from stopping");
    receiver.hold(false);
    let world = World::in_folder(folder, hurried).await;
    assert_eq!(world.get(JOB).await.code(), "no_delivery_job");
    is_set_aside(&world).await;
    let done = world.post(&format!("{HOOKS}/biller/reconcile"), all_of_time()).await.expect(200);
    assert_eq!([&done["dead"], &done["sent"], &done["failed"]], [1, 1, 0].map(|n| json!(n)).each_ref());
    assert!(done["sequence"].is_u64(), "{done}");
    world.stop().await;
}
