//! Capacity comes back only when the node confirms (SEMANTICS 3).

use crate::support::check;
use expect_test::expect;

#[test]
fn capacity_stays_away_until_the_node_confirms() {
    check(
        "
        0 a grant gpu 2
        10 a release #0
        11 b grant gpu 1
        11 show capacity
        12 op confirm n1 #0
        12 b grant gpu 1
        ",
        expect![[r#"
            0 a granted #0 gpu 14[0,1] on n1 to 3600
            10 a released #0
            11 b denied: gpu requested 7, most free 0
              n1 gpu: tearing down 14 devices [7, 7]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
            12 a torn down #0 on n1
            12 b granted #1 gpu 7[0] on n1 to 3612
        "#]],
    );
}

#[test]
fn a_node_without_an_agent_gives_back_at_once() {
    check(
        "
        0 a grant core 200 node=n2
        10 a release #0
        10 b grant core 200 node=n2 ttl=60s
        70 a grant core 200 node=n2
        80 op revoke #2 grace=10s
        85 a ready #2
        86 b grant core 200 node=n2
        ",
        expect![[r#"
            0 a granted #0 core 200 on n2 to 3600
            10 a released #0, closed
            10 b granted #1 core 200 on n2 to 70
            70 b expired #1, closed
            70 a granted #2 core 200 on n2 to 3670
            80 a revoked #2, grace 10s (operator)
            85 a teardown of #2, ready, closed
            86 b granted #3 core 200 on n2 to 3686
        "#]],
    );
}

#[test]
fn both_sorts_of_nodes_in_one_command() {
    check(
        "
        0 a grant core 1 node=n1
        0 a grant core 1 node=n2
        0 a grant core 1 node=n1
        0 a grant core 1 node=n2
        10 a release #0 #1
        20 op revoke #2 #3 grace=10s
        25 a ready #2 #3
        25 show leases
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 1 on n2 to 3600
            0 a granted #2 core 1 on n1 to 3600
            0 a granted #3 core 1 on n2 to 3600
            10 a released #0 #1
            10 a torn down #1 on n2
            20 a revoked #2, grace 10s (operator)
            20 a revoked #3, grace 10s (operator)
            25 a teardown of #2 #3, ready
            25 a torn down #3 on n2
              #0 releasing core 1 0..3600 ended 10, teardown to 130
              #2 tearing_down core 1 0..3600 ended 25, teardown to 145
        "#]],
    );
}

#[test]
fn both_sorts_of_nodes_at_one_deadline() {
    check(
        "
        0 a grant core 1 node=n1 ttl=60s
        0 a grant core 1 node=n2 ttl=60s
        0 a grant core 1 node=n2 ttl=60s
        0 b grant core 1 node=n2 ttl=60s
        60
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 60
            0 a granted #1 core 1 on n2 to 60
            0 a granted #2 core 1 on n2 to 60
            0 b granted #3 core 1 on n2 to 60
            60 a expired #0
            60 a expired #1, closed
            60 a expired #2, closed
            60 b expired #3, closed
        "#]],
    );
}

#[test]
fn the_teardown_deadline_runs_from_the_stamp_not_from_the_end() {
    check(
        "
        0 a grant core 1 node=n1 ttl=60s
        500
        619.999999999
        620
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 60
            500 a expired #0 since 60
            620 a fenced #0
        "#]],
    );
}

#[test]
fn confirming_at_the_deadline_itself_is_too_late() {
    check(
        "
        0 a grant core 1 node=n1
        10 a release #0
        130 op confirm n1 #0
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            10 a released #0
            130 a fenced #0
            130 refused: lease_fenced
        "#]],
    );
}

#[test]
fn a_fence_leaves_the_tenants_quota_but_not_the_capacity() {
    check(
        "
        0 op quota q a core hard=150
        0 a grant core 150 node=n1
        10 a release #0
        11 a grant core 1 node=n2
        11 show quotas
        130
        130 show quotas
        130 a grant core 100 node=n1
        130 a grant core 50 node=n1
        130 show capacity
        200 op unfence #0
        200 show quotas
        200 show capacity
        ",
        expect![[r#"
            0 a quota q: hard 150
            0 a granted #0 core 150 on n1 to 3600
            10 a released #0
            11 a denied: q used 150, requested 1, limit 150
              q used 150 of hard 150
            130 a fenced #0
              q used 0 of hard 150
            130 a denied: core requested 100, most free 50
            130 a granted #1 core 50 on n1 to 3730
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: held 50, fenced 150
              n2 core: idle 200
            200 a unfenced #0
              q used 50 of hard 150
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: held 50, idle 150
              n2 core: idle 200
        "#]],
    );
}

#[test]
fn our_outage_does_not_fence_the_cluster() {
    check(
        "
        0 a grant core 1 node=n1
        10 a release #0
        500 op started
        500
        500 show leases
        600 op confirm n1 #0
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            10 a released #0
            500 - journal.started
              #0 releasing core 1 0..3600 ended 10, teardown to 620
            600 a torn down #0 on n1
        "#]],
    );
}

#[test]
fn a_shorter_teardown_deadline_holds_for_what_ends_after_it() {
    check(
        "
        0 a grant core 1 node=n1
        0 a grant core 1 node=n1
        10 a release #0
        20 op settings teardown=30s
        30 a release #1
        30 show leases
        60
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 1 on n1 to 3600
            10 a released #0
            20 - settings.changed
            30 a released #1
              #0 releasing core 1 0..3600 ended 10, teardown to 130
              #1 releasing core 1 0..3600 ended 30, teardown to 60
            60 a fenced #1
        "#]],
    );
}
