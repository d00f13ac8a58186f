//! Settlement by the daemon itself, and on a journal that is older than its ledger.

use crate::ledger::{HOUR, Ledger, text};
use crate::world::World;
use leasehold_model::Span;
use serde_json::{Value, json};
use std::sync::Arc;

/// Waits until everything before an instant is posted, without asking for it: the daemon does that by itself.
async fn settled_through(world: &World, instant: &str) -> Value {
    world.until("/api/v1/ledger", |status| status["settled_through"] == instant).await
}

/// Nobody asks for a settlement, and nothing is recorded after the hour: the daemon notices that it is over.
#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_posts_an_hour_when_it_is_over() {
    let ledger = Ledger::open().await;
    let world = &ledger.world;
    assert_eq!(ledger.get("/api/v1/ledger").await["entries"], 0);
    // One second before 22:00 the hour is a draft, and nothing can be settled.
    ledger.clock.advance(Span::from_secs(2399));
    let early = world.post("/api/v1/ledger/settle", json!({})).await.expect(200);
    assert_eq!((&early["hours"], &early["entries"]), (&json!(0), &json!(0)));
    ledger.clock.advance(Span::from_secs(1));
    let status = settled_through(world, "2026-01-31T22:00:00Z").await;
    assert_eq!(
        (&status["entries"], &status["hours_unsettled"], &status["lagging"]),
        (&json!(2), &json!(0), &json!(false))
    );
    let amounts =
        [ledger.usage_of("physics").await, ledger.usage_of("chemistry").await].map(|one| one["amount"].clone());
    assert_eq!(amounts, ["48.000000", "24.000000"]);
    // Several hours later it posts them one after the other; the last one is not over.
    ledger.clock.advance(Span::from_secs(2 * HOUR + 60));
    let status = settled_through(world, "2026-02-01T00:00:00Z").await;
    assert_eq!(status["entries"], 6);
    let settled = world.get("/api/v1/audit/records?kind=ledger.hour_settled").await.expect(200);
    let hours: Vec<&str> =
        settled["records"].as_array().expect("a list").iter().map(|one| text(&one["body"], "through")).collect();
    assert_eq!(hours, ["2026-01-31T22:00:00Z", "2026-01-31T23:00:00Z", "2026-02-01T00:00:00Z"]);
    // What is done is not done again, neither on demand nor by a daemon that starts.
    let again = world.post("/api/v1/ledger/settle", json!({})).await.expect(200);
    assert_eq!((&again["hours"], &again["entries"]), (&json!(0), &json!(6)));
    let Ledger { world, clock } = ledger;
    let restarted = World::at(Arc::clone(&clock) as Arc<_>, world.stop().await, |_| {}).await;
    clock.advance(Span::from_secs(HOUR));
    let status = settled_through(&restarted, "2026-02-01T01:00:00Z").await;
    assert_eq!(status["entries"], 6, "nothing was held in that hour");
    restarted.stop().await;
}

/// A daemon that was stopped for several hours posts them when it starts.
#[tokio::test(flavor = "multi_thread")]
async fn hours_that_passed_while_the_daemon_was_stopped_are_posted_at_its_start() {
    let Ledger { world, clock } = Ledger::open().await;
    let folder = world.stop().await;
    clock.advance(Span::from_secs(3 * HOUR));
    let world = World::at(clock, folder, |_| {}).await;
    let status = settled_through(&world, "2026-02-01T00:00:00Z").await;
    assert_eq!(status["entries"], 6);
    let balances = world.get("/api/v1/ledger/balances?account=receivable").await.expect(200);
    let owed: Vec<&str> =
        balances["balances"].as_array().expect("a list").iter().map(|one| text(one, "balance")).collect();
    assert_eq!(owed, ["144.000000", "72.000000"]);
    world.stop().await;
}

/// Leases began at 21:20 without a ledger. It is opened from 22:00 on: what was used before is never posted, and
/// everything after it is, also what was used before the ledger was opened.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_is_opened_on_an_older_journal() {
    let ledger = Ledger::with(|config| config.ledger.auto_open = false).await;
    let world = &ledger.world;
    ledger.clock.advance(Span::from_secs(3 * HOUR));
    let status = ledger.get("/api/v1/ledger").await;
    assert_eq!(
        (&status["open"], &status["opened_from"], &status["hours_unsettled"]),
        (&json!(false), &Value::Null, &json!(0))
    );
    for (path, body) in [
        ("/api/v1/ledger/settle", json!({})),
        ("/api/v1/payments", json!({ "tenant": "physics", "currency": "EUR", "amount": "1", "reference": "x" })),
        ("/api/v1/periods/2026-01/close", json!({})),
    ] {
        assert_eq!(world.post(path, body).await.expect(409)["code"], "ledger_not_open", "{path}");
    }
    assert_eq!(world.get("/api/v1/ledger/draft").await.expect(409)["code"], "ledger_not_open");
    let open = |from: &str| world.post("/api/v1/ledger/open", json!({ "from": from }));
    assert_eq!(open("2026-01-31T22:30:00Z").await.expect(422)["code"], "not_an_hour");
    assert_eq!(open("2026-02-01T01:00:00Z").await.expect(422)["code"], "ledger_in_future");
    let opened = open("2026-01-31T22:00:00Z").await.expect(201);
    assert_eq!(opened["from"], "2026-01-31T22:00:00Z");
    assert_eq!(open("2026-01-31T22:00:00Z").await.expect(409)["code"], "ledger_already_open");

    // 22:00 to 23:00 and 23:00 to 23:20: 72.00 and 24.00 for two GPUs.
    let status = settled_through(world, "2026-02-01T00:00:00Z").await;
    assert_eq!(
        (&status["opened_from"], &status["first_open_month"]),
        (&json!("2026-01-31T22:00:00Z"), &json!("2026-01"))
    );
    assert_eq!(status["entries"], 4);
    let entries = ledger.entries("tenant=physics&kind=usage").await;
    let posted: Vec<[&str; 2]> =
        entries.iter().map(|entry| [text(&entry["line"], "hour"), text(entry, "amount")]).collect();
    assert_eq!(posted, [["2026-01-31T22:00:00Z", "72.000000"], ["2026-01-31T23:00:00Z", "24.000000"]]);
    // The month is closed like any other, and its invoice has what was posted.
    ledger.close_january().await;
    let invoices = ledger.get("/api/v1/invoices?month=2026-01&tenant=physics").await;
    assert_eq!(invoices["invoices"][0]["total"], "96.000000");
    ledger.world.stop().await;
}
