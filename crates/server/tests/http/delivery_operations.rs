//! What operators see of deliveries, and that nothing about them stops the daemon.

use crate::webhooks::{HOOKS, Receiver, deliver, eventually, hook, lease, site};
use crate::world::World;
use leasehold_api::Method;
use leasehold_server::config::Provider;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

async fn is_ready(world: &World) {
    for path in ["/readyz", "/healthz"] {
        let answer = world.send(None, Method::Get, path, None).await;
        assert_eq!((answer.status, answer.json()["status"].as_str()), (200, Some("ok")), "{path}");
    }
}

/// The values of a metric, one for each series, in order.
async fn metric(world: &World, name: &str) -> Vec<String> {
    let page = world.get("/metrics").await.text;
    let is_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let values = page.lines().filter(is_it).filter_map(|line| line.rsplit_once(' '));
    values.map(|(_, value)| value.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sinks_that_fail_stop_nothing_and_are_shown() {
    let (world, down, gone, picky) =
        (site().await, Receiver::start().await, Receiver::start().await, Receiver::start().await);
    is_ready(&world).await;
    let well = world.get("/api/v1/status").await.expect(200);
    assert_eq!(well["deliveries"]["running"], true);
    for (name, receiver, status) in [("down", &down, 503), ("gone", &gone, 410), ("picky", &picky, 400)] {
        receiver.answer(status);
        hook(&world, receiver, json!({ "name": name, "events": ["lease.granted"] })).await;
    }
    lease(&world, "physics").await;
    for receiver in [&down, &gone, &picky] {
        receiver.next().await;
    }
    let status = eventually(&world, Method::Get, "/api/v1/status", None, |status| {
        let deliveries = &status["deliveries"];
        [&deliveries["failing"], &deliveries["disabled"], &deliveries["dead_letters"]]
            == [1, 1, 1].map(|count| json!(count)).each_ref()
    })
    .await;
    assert_eq!(
        [&status["deliveries"]["webhooks"], &status["deliveries"]["dropped_open"]],
        [3, 0].map(|count| json!(count)).each_ref()
    );
    is_ready(&world).await;
    lease(&world, "physics").await;
    for (name, values) in [
        ("leasehold_accounting_webhooks", &["3"][..]),
        ("leasehold_accounting_unreachable", &["1", "0", "0"]),
        ("leasehold_accounting_disabled", &["0", "1", "0"]),
        ("leasehold_accounting_events_dropped_total", &["0", "0", "0"]),
        ("leasehold_accounting_not_running", &["0"]),
    ] {
        assert_eq!(metric(&world, name).await, values, "{name}");
    }
    assert_ne!(metric(&world, "leasehold_accounting_lag_events").await[0], "0");
    assert_ne!(metric(&world, "leasehold_accounting_dead_letters").await[2], "0");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_cannot_start_stop_nothing() {
    let (world, receiver) = (site().await, Receiver::start().await);
    hook(&world, &receiver, json!({})).await;
    let folder = world.stop().await;
    // Others may read the secrets.
    let secrets = folder.path().join("data/webhook-secrets.json");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o644)).expect("ours");
    let world = World::in_folder(folder, |config| config.accounting.enabled = true).await;
    is_ready(&world).await;
    lease(&world, "physics").await;
    let shown = world.get("/api/v1/deliveries").await.expect(200);
    assert!(shown["trouble"].as_str().is_some_and(|why| why.contains("chmod 600")), "{shown}");
    assert_eq!(world.get("/api/v1/status").await.expect(200)["deliveries"]["running"], false);
    assert_eq!(metric(&world, "leasehold_accounting_not_running").await, ["1"]);
    assert_eq!(metric(&world, "leasehold_accounting_events_dropped_total").await, ["0"]);
    world.stop().await;
}

/// Deliveries are off while a webhook is deleted: its secret is gone once they run again.
#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_a_webhook_that_was_deleted_while_deliveries_were_off_is_removed() {
    let (world, receiver) = (site().await, Receiver::start().await);
    hook(&world, &receiver, json!({})).await;
    hook(&world, &receiver, json!({ "name": "stays" })).await;
    let world = World::in_folder(world.stop().await, |_| {}).await;
    world.send(Some(&world.operator), Method::Delete, &format!("{HOOKS}/biller"), None).await.expect(200);
    let world = World::in_folder(world.stop().await, deliver).await;
    lease(&world, "physics").await;
    receiver.next().await;
    let path = world.folder.path().join("data/webhook-secrets.json");
    let kept: Value = serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON");
    assert_eq!(kept["sinks"].as_object().map(serde_json::Map::len), Some(1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_deliveries_nothing_is_said_about_them() {
    let world = World::empty().await;
    is_ready(&world).await;
    assert_eq!(world.get("/api/v1/status").await.expect(200)["deliveries"], Value::Null);
    let shown = world.get("/api/v1/deliveries").await.expect(200);
    assert_eq!((&shown["provider"], &shown["advice"]), (&Value::Null, &Value::Null));
    let page = world.get("/metrics").await.text;
    let about = page.lines().filter(|line| line.starts_with("leasehold_accounting")).collect::<Vec<_>>();
    assert_eq!(about, ["leasehold_accounting_enabled 0", "leasehold_accounting_events_dropped_total 0"]);
    world.stop().await;
}

fn write_private(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("ours");
}

async fn site_with_waldur(waldur: &Receiver, token: &str) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    write_private(&folder.path().join("waldur-token"), token);
    let (reference, url) = (format!("file://{}/waldur-token", folder.path().display()), waldur.url.clone());
    let mut world = World::in_folder(folder, |config| {
        config.accounting.enabled = true;
        config.accounting.provider = Some(Provider::Waldur);
        config.accounting.waldur.api_url = Some(url.replace("/hook", "/api/"));
        config.accounting.waldur.token_secret_ref = Some(reference.parse());
        config.accounting.waldur.buffer_size = Some(600);
    })
    .await;
    world.furnish().await;
    world
}

/// The token is read and shown as read. Nothing is sent, and the status says so.
#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_waldur_is_read_and_nothing_is_sent() {
    let waldur = Receiver::start().await;
    let world = site_with_waldur(&waldur, "planted-token-x81\n").await;
    let shown = eventually(&world, Method::Get, "/api/v1/deliveries", None, |shown| {
        shown["provider"]["token_readable"] == true
    })
    .await;
    let provider = &shown["provider"];
    assert_eq!((&provider["provider"], &provider["sends_usage"]), (&json!("waldur"), &json!(false)));
    assert!(provider["token_read_at"].is_string() && provider["token_trouble"].is_null(), "{provider}");
    assert!(provider["token_secret_ref"].as_str().is_some_and(|text| text.ends_with("/waldur-token")), "{provider}");
    assert_eq!(metric(&world, "leasehold_accounting_token_readable").await, ["1"]);
    for tenant in ["physics", "physics", "chemistry"] {
        lease(&world, tenant).await;
    }
    let shown = eventually(&world, Method::Get, "/api/v1/deliveries", None, |shown| {
        shown["advice"]["accounting_events_per_minute"].as_u64().is_some_and(|rate| rate >= 5)
    })
    .await;
    // Nothing but sums: in the first minute the rate is the count, of which the settings follow.
    let advice = &shown["advice"];
    let number = |name: &str| advice[name].as_u64().unwrap_or_else(|| panic!("no {name} in {advice}"));
    let (all, accounting) = (number("events_per_minute"), number("accounting_events_per_minute"));
    assert!(all > accounting, "{advice}");
    assert_eq!(number("buffer_size_for_two_hours"), all * 120);
    assert_eq!(number("minutes_in_memory"), 10_000 / all);
    assert_eq!((number("push_interval_seconds"), number("events_per_push")), (60, accounting));
    assert_eq!(number("push_interval_seconds_max"), 480 * 60 / accounting);
    // A tenant sees nothing of it.
    let admin = &world.tokens[&leasehold_api::Role::TenantAdmin];
    let theirs = world.send(Some(admin), Method::Get, "/api/v1/deliveries", None).await.expect(200);
    assert_eq!((&theirs["provider"], &theirs["advice"]), (&Value::Null, &Value::Null));
    assert!(waldur.is_idle().await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_cannot_be_read_stops_nothing() {
    let waldur = Receiver::start().await;
    let world = site_with_waldur(&waldur, "\n").await;
    is_ready(&world).await;
    let receiver = Receiver::start().await;
    let refused = world.post(HOOKS, json!({ "name": "x", "url": receiver.url })).await;
    assert_eq!(refused.status, 422, "loopback is not allowed here, and the webhooks are served");
    let shown = eventually(&world, Method::Get, "/api/v1/deliveries", None, |shown| {
        shown["provider"]["token_trouble"].is_string()
    })
    .await;
    let provider = &shown["provider"];
    assert_eq!((&provider["token_readable"], &provider["token_read_at"]), (&json!(false), &Value::Null));
    assert!(provider["token_trouble"].as_str().is_some_and(|why| why.ends_with("it is empty")), "{provider}");
    assert_eq!(metric(&world, "leasehold_accounting_token_readable").await, ["0"]);
    // The second attempt is a second later.
    write_private(&world.folder.path().join("waldur-token"), "planted");
    eventually(&world, Method::Get, "/api/v1/deliveries", None, |shown| shown["provider"]["token_readable"] == true)
        .await;
    world.stop().await;
}
