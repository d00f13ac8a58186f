//! The wall clock is set while the daemon runs: deadlines and tokens follow the engine's clock.

use crate::world::World;
use leasehold_api::Method;
use leasehold_cell::ManualClock;
use leasehold_model::{Instant, Span};
use serde_json::json;
use std::sync::Arc;

const BEGAN: Instant = Instant::from_secs(1_767_225_600);

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_stays_expired_when_the_wall_clock_is_set_back() {
    let clock = Arc::new(ManualClock::at(BEGAN));
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::at(Arc::clone(&clock) as Arc<_>, folder, |_| {}).await;
    let token = json!({ "name": "auditor", "role": "auditor", "expires_at": "2026-01-01T01:00:00Z" });
    let issued = world.post("/api/v1/tokens", token).await.expect(201);
    let secret = issued["secret"].as_str().expect("a secret").to_owned();
    let reads = || async { world.send(Some(&secret), Method::Get, "/api/v1/nodes", None).await.status };
    assert_eq!(reads().await, 200);
    // A wall clock that runs ahead does not expire it.
    clock.set_wall(BEGAN.saturating_add(Span::from_secs(7200)));
    assert_eq!(reads().await, 200);
    clock.set_wall(BEGAN);
    clock.advance(Span::from_secs(7200));
    assert_eq!(reads().await, 401);
    clock.set_wall(BEGAN.saturating_add(Span::from_secs(60)));
    assert_eq!(reads().await, 401, "the wall clock was set back");
    let about = world.get("/api/v1/about").await.expect(200);
    assert_eq!(about["now"], "2026-01-01T02:00:00Z");

    // Both directions are counted, once each jump is noticed.
    world.until("/api/v1/about", |_| true).await;
    let jumps = |page: &str, direction: &str| {
        let name = format!("leasehold_clock_jumps_total{{direction=\"{direction}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)).map(|count| count.parse::<u64>().expect("a number"))
    };
    let began = std::time::Instant::now();
    loop {
        let page = world.get("/metrics").await.text;
        let seen = (jumps(&page, "forward").expect("a series"), jumps(&page, "back").expect("a series"));
        if seen.1 >= 1 {
            break;
        }
        assert!(began.elapsed().as_secs() < 20, "{seen:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    world.stop().await;
}
