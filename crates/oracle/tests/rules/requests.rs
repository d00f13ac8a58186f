//! The exact answer to a request: which node, which devices, which cause (SEMANTICS 4).

use crate::language::{play, record};
use expect_test::{Expect, expect};
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, Priority, ProjectNo, Span, TenantNo};
use leasehold_oracle::RequestFacts;

fn asking(asks: &[(u16, u64)]) -> RequestFacts {
    RequestFacts {
        tenant: TenantNo(1),
        project: ProjectNo(1),
        user: None,
        sensitive: false,
        pool: None,
        node: None,
        asks: asks.iter().map(|(class, quanta)| (ClassNo(*class), *quanta)).collect(),
        ttl: Span::from_secs(1000),
        priority: Priority::Standard,
        labels: vec![],
        profile: None,
        app_instance: None,
        attachment: None,
        source_project: None,
    }
}

#[track_caller]
fn check(history: &str, facts: &RequestFacts, expected: Expect) {
    let oracle = play(history).map_err(|(violation, _)| violation).expect("a legal history");
    expected.assert_eq(&format!("{:?}", oracle.expect_request(facts, Instant::from_secs(100))));
}

#[test]
fn the_best_node_is_the_one_with_the_highest_score() {
    check(
        "",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(2), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    check(
        "10 grant 1 1:21:111",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(1), devices: [8], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    // Equal: the lower number.
    check(
        "10 grant 1 1:14:11",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(1), devices: [4], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    check(
        "10 drain 2",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(1), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    // Devices come first in the order of asks, and in the order of the request in the answer.
    check(
        "10 grant 1 2:99999",
        &asking(&[(2, 5), (1, 7)]),
        expect![
            "Granted { node: NodeNo(1), devices: [0, 1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    check(
        "",
        &asking(&[(2, 5)]),
        expect![
            "Granted { node: NodeNo(1), devices: [0], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
}

#[test]
fn pools_and_nodes_asked_for_narrow_the_search() {
    let more = "5 pool 2\n5 node 3 pool=2 1:7\n";
    check(
        more,
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(3), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    let in_first = RequestFacts { pool: Some(PoolNo(1)), ..asking(&[(1, 7)]) };
    check(
        more,
        &in_first,
        expect![
            "Granted { node: NodeNo(2), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    let on_first = RequestFacts { node: Some(NodeNo(1)), ..asking(&[(1, 7)]) };
    check(
        more,
        &on_first,
        expect![
            "Granted { node: NodeNo(1), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    let elsewhere = RequestFacts { pool: Some(PoolNo(2)), ..on_first.clone() };
    check(more, &elsewhere, expect![[r#"Refused("node_not_in_pool")"#]]);
    check(
        "5 drain 1",
        &on_first,
        expect!["Denied(Capacity { class: ClassNo(1), requested: Quanta(7), most_free: Quanta(0) })"],
    );
    // A pool that does not allow the TTL is not looked into.
    check(
        "5 pool 2 ttl_max=999\n5 node 3 pool=2 1:7\n",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(2), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
}

#[test]
fn quotas_shape_the_answer() {
    check(
        "5 quota 1 class=1 node=2 hard=0",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(1), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
    // The first node with room that is refused names the cause: node 2 has less free than node 1.
    check(
        "5 quota 1 class=1 node=1 hard=0\n5 quota 2 class=1 node=2 hard=0",
        &asking(&[(1, 7)]),
        expect!["Denied(Quota { quota: QuotaNo(2), used: 0, requested: 7, limit: 0 })"],
    );
    // Node 2 has no room, so it is not asked.
    check(
        "5 quota 1 class=1 node=1 hard=0\n5 quota 2 class=1 node=2 hard=0",
        &asking(&[(1, 21)]),
        expect!["Denied(Quota { quota: QuotaNo(1), used: 0, requested: 21, limit: 0 })"],
    );
    // What does not depend on the node is tested first.
    check(
        "5 quota 1 class=1 pool=1 hard=0\n5 quota 2 class=1 hard=1",
        &asking(&[(1, 7)]),
        expect!["Denied(Quota { quota: QuotaNo(2), used: 0, requested: 7, limit: 1 })"],
    );
    check(
        "5 quota 1 class=1 node=2 soft=0\n5 quota 2 class=1 soft=1",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(2), devices: [1], ttl: Span(1000000000000), over_soft: [QuotaNo(1), QuotaNo(2)], capped_by: None, capped_by_window: None }"
        ],
    );
    check(
        "5 quota 1 class=1 burst=0:28:500\n5 quota 2 class=1 burst=0:28:400",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(2), devices: [1], ttl: Span(400000000000), over_soft: [], capped_by: Some(QuotaNo(2)), capped_by_window: None }"
        ],
    );
    check(
        "5 quota 1 class=1 burst=0:28:1000",
        &asking(&[(1, 7)]),
        expect![
            "Granted { node: NodeNo(2), devices: [1], ttl: Span(1000000000000), over_soft: [], capped_by: None, capped_by_window: None }"
        ],
    );
}

#[test]
fn what_is_not_valid_is_refused() {
    let plain = asking(&[(1, 7)]);
    check("", &RequestFacts { ttl: Span(0), ..plain.clone() }, expect![[r#"Refused("zero_ttl")"#]]);
    check("", &RequestFacts { project: ProjectNo(2), ..plain.clone() }, expect![[r#"Refused("unknown_project")"#]]);
    check("5 pool 1 ttl_max=999", &plain, expect![[r#"Refused("ttl_too_long")"#]]);
    check("", &asking(&[(2, u64::MAX)]), expect![[r#"Refused("quantity_too_large")"#]]);
    check("", &asking(&[(1, 10)]), expect![[r#"Refused("not_whole_devices")"#]]);
    check("", &asking(&[(1, 7), (1, 7)]), expect![[r#"Refused("duplicate_class")"#]]);
}

#[test]
fn an_answer_must_be_the_expected_one() {
    let facts = asking(&[(1, 7)]);
    for (line, rule) in [
        ("100 grant 1 node=2 1:7:1 chosen", None),
        // Legal, but not the best node.
        ("100 grant 1 node=1 1:7:1 chosen", Some("answer")),
        // Chosen by nothing, though the request names no node.
        ("100 grant 1 node=2 1:7:1", Some("answer")),
        ("100 grant 1 node=2 1:7:1 ttl=900 chosen", Some("answer")),
        ("100 grant 1 node=2 1:6:1 chosen", Some("answer")),
        ("100 grant 1 node=2 1:7:1 project=3 chosen", Some("answer")),
        ("100 grant 1 node=2 1:7:1 priority=scavenger chosen", Some("answer")),
        ("100 deny 1:7 because=capacity:1:7:0", Some("answer")),
        ("100 heartbeat", Some("answer")),
    ] {
        let mut oracle = play("").map_err(|(violation, _)| violation).expect("the stage");
        let answer = record(line, oracle.summary().size);
        let broken = oracle.observe_with_request(&answer, &facts).err().map(|violation| violation.rule);
        assert_eq!(broken, rule, "{line}");
    }
}
