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

/// A node whose agent keeps reporting a high load stays as hot as the report makes it. A report stands until the next
/// one; that of a detached agent, or of a lost node, stands no longer.
#[test]
fn a_node_does_not_cool_down_while_its_report_stands() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 op settings half_life=8s
        0 op pool p spread
        0 op node u core 8 pool=p
        0 op agent u instance=1
        100 op condition u generation=1 load=high throttled
        ",
    );
    let heat = |story: &mut Story, secs: u64| {
        story.play(&format!("{secs} op beat"));
        let state = story.world.state();
        state.heat_now(state.node(state.node_named("u").expect("a node")).expect("a node"))
    };
    assert_eq!([100, 108, 500].map(|secs| heat(&mut story, secs)), [250, 250, 250]);
    story.play("500 op condition u generation=1 load=high");
    assert_eq!([500, 504, 600].map(|secs| heat(&mut story, secs)), [250, 177, 100], "throttling is over");
    story.play("600 op detach u");
    assert_eq!([600, 608, 700].map(|secs| heat(&mut story, secs)), [100, 50, 0], "the agent is gone");
    story.play("700 op agent u instance=2\n 700 op condition u generation=2 load=high");
    assert_eq!([700, 800].map(|secs| heat(&mut story, secs)), [100, 100], "reported again, it stands again");
    story.play("800 op lose u seen=800\n 801 op return u");
    assert_eq!([900].map(|secs| heat(&mut story, secs)), [0], "what a lost agent said does not stand");
}

/// Nodes with many GPUs and few cores, and the other way round. Work that depends on GPUs goes where they are abundant;
/// work that depends on cores goes to the other node; without a profile both count alike, and the lower number wins.
#[test]
fn critical_work_goes_where_its_class_is_abundant() {
    use leasehold_engine::Request;
    use leasehold_engine::command::{Command, RequestLease};
    use leasehold_model::{Identity, Profile, Sensitivity};
    let stage =
        format!("{STAGE}\n 0 op pool p spread\n 0 op node c gpu 4 core 100 pool=p\n 0 op node g gpu 4 core 100 pool=p");
    let chosen = |profile: Option<Profile>| {
        let mut story = Story::on(&stage);
        // On c most GPUs are in use, on g most cores.
        story.play("1 a grant gpu 3 node=c ttl=1h\n 1 a grant core 75 node=g ttl=1h");
        let state = story.world.state();
        let (gpu, core) = (state.class_named("gpu").expect("gpu"), state.class_named("core").expect("core"));
        let request = RequestLease {
            asks: [(gpu, leasehold_model::Quanta(7)), (core, leasehold_model::Quanta(25))].into_iter().collect(),
            pool: state.pool_named("p"),
            profile,
            ..RequestLease::of(gpu, leasehold_model::Quanta(7), Span::from_secs(60))
        };
        let identity = Identity {
            tenant: state.tenant_named("a"),
            project: state.project_named(state.tenant_named("a").expect("a"), "a"),
            ..Identity::default()
        };
        let (answer, _) = story.world.step(Instant::from_secs(2), &Request::new(identity, Command::Request(request)));
        answer.expect("there is room");
        let state = story.world.state();
        let last = state.leases().last().map(|lease| lease.node).expect("a lease");
        state.node(last).expect("a node").name.to_string()
    };
    let unused = Sensitivity::Unused;
    let profile = |gpu, cpu| Some(Profile([gpu, cpu, unused, unused, unused]));
    assert_eq!(chosen(profile(Sensitivity::Critical, Sensitivity::Indifferent)), "g");
    assert_eq!(chosen(profile(Sensitivity::Indifferent, Sensitivity::Critical)), "c");
    assert_eq!(chosen(None), "c");
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
