//! `GET /api/v1/status`: what is going on now.

use crate::world::World;
use leasehold_api::Status;
use serde_json::json;

async fn status(world: &World) -> Status {
    serde_json::from_value(world.get("/api/v1/status").await.expect(200)).expect("a status")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_counts_what_the_lists_show() {
    let world = World::furnished().await;
    let before = status(&world).await;
    for class in &before.classes {
        let parts = class.held + class.tearing_down + class.reserved + class.fenced + class.offline + class.idle;
        assert_eq!(parts, class.quanta, "{class:?}");
    }
    let h100 = |status: &Status| status.classes.iter().find(|class| class.class == "h100").cloned().expect("a class");
    let asked = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h", "node": "n1",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    let granted = world.post("/api/v1/leases", asked).await.expect(201);
    let held = status(&world).await;
    assert_eq!(held.leases.active, before.leases.active + 1);
    let unit = h100(&held).quanta_per_unit;
    assert_eq!((h100(&held).held, h100(&held).idle), (h100(&before).held + unit, h100(&before).idle - unit));
    let physics = held.tenants.iter().find(|tenant| tenant.tenant == "physics").expect("it holds something");
    let of_class = physics.held.iter().find(|held| held.class == "h100").expect("a class");
    assert_eq!(of_class.share_permille, of_class.held * 1000 / h100(&held).quanta);
    assert!(held.tenant_count >= 1 && physics.leases >= 1);
    // Drained nodes are offline as far as nothing holds them.
    world.post("/api/v1/nodes/n1/drain", json!({})).await.expect(200);
    let drained = status(&world).await;
    assert_eq!((drained.nodes.drained, drained.nodes.available), (held.nodes.drained + 1, held.nodes.available - 1));
    assert!(h100(&drained).offline > h100(&held).offline);
    // A lease that is being torn down is no longer its tenant's.
    let id = granted["leases"][0]["id"].as_str().expect("an id");
    world.post(&format!("/api/v1/leases/{id}/release"), json!({})).await.expect(200);
    let ended = status(&world).await;
    assert_eq!(
        (ended.leases.active, ended.leases.tearing_down),
        (before.leases.active, before.leases.tearing_down + 1)
    );
    assert!(ended.audit.size > 0 && ended.disk.is_some_and(|disk| disk.size_bytes > disk.free_bytes));
    assert_eq!((ended.queue.waiting, ended.queue.oldest_allocation_id), (0, None));
    world.stop().await;
}
