//! Where requests go, told as stories; the sums are those of `docs/reference/placement.md`.

use crate::support::{STAGE, Story, check};
use expect_test::expect;
use leasehold_engine::Exclusion;
use leasehold_engine::command::RequestLease;
use leasehold_model::{ClassNo, Identity, Instant, NodeNo, ProjectNo, Quanta, Span, TenantNo};
use smallvec::smallvec;

fn who() -> Identity {
    Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() }
}

/// The example that the page works out by hand.
#[test]
fn the_page_adds_up() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 op class slice kind=gpu per=7
        0 op class milli kind=cpu per=1000
        0 op pool by-hand spread
        0 op node by-hand immediate slice 8 milli 128 pool=by-hand
        1 a grant slice 3 milli 32 pool=by-hand
        ",
    );
    let state = story.world.engine.view();
    let (gpu, cpu) = (state.class_named("slice").expect("a class"), state.class_named("milli").expect("a class"));
    let mut request = RequestLease::of(gpu, Quanta(14), Span::from_secs(60));
    request.asks = smallvec![(gpu, Quanta(14)), (cpu, Quanta(8000))];
    request.pool = state.pool_named("by-hand");
    let explained = state.explain_request(Instant::from_secs(2), &who(), &request, 1).expect("valid");
    let best = explained.best[0];
    assert_eq!((best.pressure, best.fit, best.locality, best.fragmentation), (557_056, 253_405, 0, 491_520));
    assert_eq!((best.score, best.heat), (378_361, 0));
}

#[test]
fn spread_and_packed() {
    let story = |strategy: &str| {
        let mut story = Story::on(STAGE);
        story.play(&format!(
            "
            0 op pool p {strategy}
            0 op node u immediate core 8 pool=p
            0 op node y immediate core 8 pool=p
            0 op node z immediate core 4 pool=p
            1 a grant core 1 pool=p
            2 a grant core 1 pool=p
            3 a grant core 1 pool=p
            "
        ));
        let state = story.world.state();
        state.leases().iter().map(|lease| state.node(lease.node).expect("a node").name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(story("spread"), ["u", "y", "z"]);
    assert_eq!(story(""), ["z", "z", "z"]);
}

/// A node that was lost is avoided when it is back, less and less.
#[test]
fn hot_nodes_are_avoided_until_they_have_cooled() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 op settings half_life=8s
        0 op pool p spread
        0 op node u immediate core 8 pool=p
        0 op node y immediate core 8 pool=p
        100 op lose u seen=100
        101 op return u
        102 a grant core 4 pool=p ttl=10s
        103 a grant core 1 pool=p ttl=10s
        ",
    );
    let state = story.world.state();
    let named = |name: &str| state.node_named(name).expect("a node");
    let on = |node: NodeNo| state.leases_on(node).len();
    assert_eq!((on(named("u")), on(named("y"))), (0, 2), "an emptier node at half its score is worse");
    let heat =
        |secs: u64| state.node(named("u")).expect("a node").heat.at(Instant::from_secs(secs), Span::from_secs(8));
    assert_eq!([100, 101, 108, 116, 200].map(heat), [500, 459, 250, 126, 0]);
    story.play("200 a grant core 1 pool=p");
    let state = story.world.state();
    assert_eq!(state.leases_on(state.node_named("u").expect("a node")).len(), 1, "equal again, and the lower number");
}

/// What a tenant does leaves nodes as cold as they were.
#[test]
fn no_tenant_heats_a_node() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 op pool p spread
        0 op node u immediate core 8 pool=p
        1 a grant core 8 pool=p ttl=5s
        2 a renew #0 ttl=5s
        3 a release #0
        4 a grant core 8 pool=p ttl=5s
        9 op beat
        10 a grant core 8 pool=p ttl=50s
        11 op revoke #2 grace=1s
        20 op beat
        ",
    );
    let state = story.world.state();
    assert!(state.nodes().all(|node| state.heat_now(node) == 0));
}

#[test]
fn weights_of_the_pool_itself() {
    check(
        "
        0 op pool p spread weights=0,0,0,1000
        0 op node u immediate core 8 pool=p
        0 op node y immediate core 4 pool=p
        1 a grant core 1 pool=p
        2 op pool p spread weights=-
        3 a grant core 1 pool=p
        ",
        expect![[r#"
            0 - pool.put
            0 - pool.placement_put
            0 - node.put
            0 - node.put
            1 a granted #0 core 1 on y to 3601
            2 - pool.put
            2 - pool.placement_put
            3 a granted #1 core 1 on u to 3603
        "#]],
    );
}

#[test]
fn what_is_no_candidate_is_counted_by_why() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 op pool p
        0 op node u immediate core 8 pool=p labels=ssd
        0 op node y immediate core 2 pool=p labels=ssd
        0 op node z immediate core 8 pool=p
        0 op node d immediate core 8 pool=p labels=ssd
        0 op node l immediate core 8 pool=p labels=ssd
        0 op node g immediate gpu 1 pool=p labels=ssd
        1 op drain d
        1 op lose l seen=1
        ",
    );
    let state = story.world.engine.view();
    let core = state.class_named("core").expect("a class");
    let mut request = RequestLease::of(ClassNo(0), Quanta(1), Span::from_secs(60));
    request.asks = smallvec![(core, Quanta(4 * state.class(core).expect("a class").quanta_per_unit))];
    request.pool = state.pool_named("p");
    request.labels = vec![(crate::support::name("ssd"), crate::support::name("yes"))];
    let explained = state.explain_request(Instant::from_secs(2), &who(), &request, 5).expect("valid");
    assert_eq!(explained.best.len(), 1);
    assert_eq!(state.node(explained.best[0].node).expect("a node").name.as_str(), "u");
    let count = |unfit: Exclusion| explained.excluded.get(&unfit).copied().unwrap_or(0);
    let each =
        [Exclusion::Lost, Exclusion::Drained, Exclusion::Labels, Exclusion::Class, Exclusion::Capacity].map(count);
    assert_eq!(each, [1, 1, 1, 1, 1], "{explained:?}");
    assert_eq!(count(Exclusion::Elsewhere), state.nodes().count() as u64 - 6);
}
