//! Invoices that cannot be proved, or not yet: the records of the month are out of reach, or are too many.

use crate::audit::settled;
use crate::ledger::{HOUR, Ledger};
use crate::statements::{records, resealed_in};
use crate::world::World;
use leasehold_cell::ManualClock;
use leasehold_journal::Options;
use leasehold_model::{Body, Span};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// A daemon whose January is over, with a journal of small segments, and the path of the first one.
async fn with_small_segments() -> (World, Arc<ManualClock>, PathBuf) {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let folder = ledger.world.stop().await;
    let all = records(&folder.path().join("data"));
    let cut = all.iter().position(|record| matches!(record.body, Body::PeriodClosing(_))).expect("a cut");
    let small = Options { segment_bytes: 4096, ..Options::default() };
    let parts = resealed_in(&folder.path().join("data"), &all[..cut], small);
    let first = parts.path().join("data/journal/00000001.seg");
    let clock = Arc::new(ManualClock::at(all[cut - 1].stamp));
    let world = World::at(Arc::clone(&clock) as Arc<_>, parts, |_| {}).await;
    // The books have read the journal.
    world.get("/api/v1/periods/2026-01").await.expect(200);
    (world, clock, first)
}

/// The answer to a request for the proof of the first invoice.
async fn proof(world: &World) -> (u16, Value) {
    let answer = world.get("/api/v1/invoices/INV-000001/proof").await;
    let status = answer.status;
    (status, if status == 200 { Value::Null } else { answer.json() })
}

/// A segment that is moved away keeps the month open, and once it is back its invoices can be proved.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_waits_for_records_that_are_out_of_reach() {
    let (world, clock, first) = with_small_segments().await;
    let away = first.with_extension("away");
    std::fs::rename(&first, &away).expect("moved");
    world.post("/api/v1/periods/2026-01/close", json!({})).await.expect(202);
    let status = world.until("/api/v1/ledger", |status| status["trouble"].is_string()).await;
    let trouble = status["trouble"].as_str().expect("text");
    assert!(trouble.contains("cannot be made yet") && trouble.contains("00000001"), "{trouble}");
    let (code, problem) = proof(&world).await;
    assert_eq!((code, &problem["code"]), (409, &json!("proof_not_ready")), "{problem}");
    let settle = world.post("/api/v1/ledger/settle", json!({})).await.expect(500);
    assert!(settle["detail"].as_str().is_some_and(|detail| detail.contains("00000001")), "{settle}");

    std::fs::rename(&away, &first).expect("moved back");
    clock.advance(Span::from_secs(60));
    let period = world.until("/api/v1/periods/2026-01", |period| period["state"] == "closed").await;
    assert_eq!(period["statements"], 2);
    settled(&world).await;
    assert_eq!(proof(&world).await, (200, Value::Null));
    world.stop().await;
}

/// After a day the month is closed without statements, and its invoices say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_does_not_wait_for_ever() {
    let (world, clock, first) = with_small_segments().await;
    std::fs::remove_file(&first).expect("deleted");
    world.post("/api/v1/periods/2026-01/close", json!({})).await.expect(202);
    world.until("/api/v1/ledger", |status| status["trouble"].is_string()).await;
    clock.advance(Span::from_secs(23 * HOUR));
    world.post("/api/v1/ledger/settle", json!({})).await.expect(500);
    assert_eq!(world.get("/api/v1/periods/2026-01").await.expect(200)["state"], "closing");
    clock.advance(Span::from_secs(2 * HOUR));
    let period = world.until("/api/v1/periods/2026-01", |period| period["state"] == "closed").await;
    assert_eq!(period["statements"], 0);
    let (code, problem) = proof(&world).await;
    assert_eq!((code, &problem["code"]), (409, &json!("no_statement")), "{problem}");
    world.stop().await;
}

/// A file that would be larger than the daemon may make it.
#[tokio::test(flavor = "multi_thread")]
async fn a_proof_that_is_too_large_is_refused() {
    let ledger = Ledger::open().await;
    ledger.close_january().await;
    let Ledger { world, clock } = ledger;
    let world = World::at(clock, world.stop().await, |config| config.limits.proof_bytes = 1024).await;
    settled(&world).await;
    let (code, problem) = proof(&world).await;
    assert_eq!((code, &problem["code"]), (422, &json!("proof_too_large")), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("1024 bytes")), "{problem}");
    world.stop().await;
}
