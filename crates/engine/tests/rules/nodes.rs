//! Draining, losing and changing nodes (SEMANTICS 3).

use crate::support::check;
use expect_test::expect;

#[test]
fn a_drained_node_keeps_what_runs_and_takes_nothing_new() {
    check(
        "
        0 a grant core 10 node=n2
        10 op drain n2
        10 show capacity
        11 a grant core 1 node=n2
        11 a grant core 1
        12 a renew #0 ttl=2h
        13 a release #0
        13 show capacity
        14 op drain n2
        15 op resume n2
        15 a grant core 1 node=n2
        16 op resume n2
        ",
        expect![[r#"
            0 a granted #0 core 10 on n2 to 3600
            10 - drained n2
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: held 10, offline 190
            11 a denied: core requested 1, most free 0
            11 a granted #1 core 1 on n1 to 3611
            12 a renewed #0 to 7212
            13 a released #0, closed
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: held 1, idle 199
              n2 core: offline 200
            14 refused: node_already
            15 - resumed n2
            15 a granted #2 core 1 on n2 to 3615
            16 refused: node_already
        "#]],
    );
}

#[test]
fn a_lost_node_bills_up_to_when_it_was_last_seen() {
    check(
        "
        0 a grant core 10 node=n1
        5 b grant core 10 node=n1
        100 op lose n1 seen=40
        100 show leases
        100 show capacity
        101 op lose n1 seen=40
        220
        220 show capacity
        230 op return n1
        230 op unfence #0 #1
        230 show capacity
        231 op return n1
        ",
        expect![[r#"
            0 a granted #0 core 10 on n1 to 3600
            5 b granted #1 core 10 on n1 to 3605
            100 - lost n1, last seen 40
            100 a revoked #0, grace 0s (node_lost)
            100 a teardown of #0, grace_ended (node_lost) since 40
            100 b revoked #1, grace 0s (node_lost)
            100 b teardown of #1, grace_ended (node_lost) since 40
              #0 tearing_down core 10 0..3600 ended 40, teardown to 220
              #1 tearing_down core 10 5..3605 ended 40, teardown to 220
              n1 gpu: offline 14 devices [0, 0]
              n1 cpu: offline 8000
              n1 core: offline 200
              n2 core: idle 200
            101 refused: node_already
            220 a fenced #0
            220 b fenced #1
              n1 gpu: offline 14 devices [0, 0]
              n1 cpu: offline 8000
              n1 core: offline 200
              n2 core: idle 200
            230 - returned n1
            230 a unfenced #0
            230 b unfenced #1
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
            231 refused: node_already
        "#]],
    );
}

#[test]
fn what_was_granted_after_it_was_last_seen_bills_nothing() {
    check(
        "
        0 a grant core 10 node=n1
        50 a grant core 10 node=n1
        100 op lose n1 seen=40
        100 show leases
        ",
        expect![[r#"
            0 a granted #0 core 10 on n1 to 3600
            50 a granted #1 core 10 on n1 to 3650
            100 - lost n1, last seen 40
            100 a revoked #0, grace 0s (node_lost)
            100 a teardown of #0, grace_ended (node_lost) since 40
            100 a revoked #1, grace 0s (node_lost)
            100 a teardown of #1, grace_ended (node_lost) since 40
              #0 tearing_down core 10 0..3600 ended 40, teardown to 220
              #1 tearing_down core 10 50..3650 ended 50, teardown to 220
        "#]],
    );
}

#[test]
fn a_lost_node_ends_revoking_leases_too_and_leaves_those_that_had_ended() {
    check(
        "
        0 a grant core 1 node=n1
        0 a grant core 1 node=n1
        0 a grant core 1 node=n1
        10 op revoke #0 grace=10m
        20 a release #1
        100 op lose n1 seen=15
        100 show leases
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 1 on n1 to 3600
            0 a granted #2 core 1 on n1 to 3600
            10 a revoked #0, grace 10m (operator)
            20 a released #1
            100 - lost n1, last seen 15
            100 a teardown of #0, grace_ended (node_lost) since 15
            100 a revoked #2, grace 0s (node_lost)
            100 a teardown of #2, grace_ended (node_lost) since 15
              #0 tearing_down core 1 0..3600 ended 15, teardown to 220
              #1 releasing core 1 0..3600 ended 20, teardown to 140
              #2 tearing_down core 1 0..3600 ended 15, teardown to 220
        "#]],
    );
}

#[test]
fn a_lost_node_without_an_agent_has_nothing_left_to_confirm() {
    check(
        "
        0 a grant core 10 node=n2
        100 op lose n2 seen=40
        100 show leases
        100 show capacity
        110 a grant core 1 node=n2
        120 op return n2
        120 a grant core 1 node=n2
        ",
        expect![[r#"
            0 a granted #0 core 10 on n2 to 3600
            100 - lost n2, last seen 40
            100 a revoked #0, grace 0s (node_lost)
            100 a teardown of #0, grace_ended, closed (node_lost) since 40
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: offline 200
            110 a denied: core requested 1, most free 0
            120 - returned n2
            120 a granted #1 core 1 on n2 to 3720
        "#]],
    );
}

#[test]
fn losing_an_empty_node() {
    check(
        "10 op lose n1 seen=10",
        expect![[r#"
        10 - lost n1, last seen 10
    "#]],
    );
}

#[test]
fn drained_and_lost_are_two_things() {
    check(
        "
        0 op drain n2
        1 op lose n2 seen=1
        2 op return n2
        2 a grant core 1 node=n2
        3 op resume n2
        3 a grant core 1 node=n2
        ",
        expect![[r#"
            0 - drained n2
            1 - lost n2, last seen 1
            2 - returned n2
            2 a denied: core requested 1, most free 0
            3 - resumed n2
            3 a granted #0 core 1 on n2 to 3603
        "#]],
    );
}

#[test]
fn a_node_may_grow_and_shrink_but_not_below_what_is_leased() {
    check(
        "
        0 a grant core 150 node=n2
        1 op node n2 immediate core 149
        2 op node n2 immediate core 150
        2 show capacity
        3 op node n2 immediate core 300
        3 a grant core 150 node=n2
        4 op node n2 immediate
        5 a release #0 #1
        5 op node n2 immediate
        5 show capacity
        ",
        expect![[r#"
            0 a granted #0 core 150 on n2 to 3600
            1 refused: node_smaller_than_leased
            2 - node.put
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: held 150
            3 - node.put
            3 a granted #1 core 150 on n2 to 3603
            4 refused: node_smaller_than_leased
            5 a released #0 #1, closed
            5 - node.put
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
        "#]],
    );
}

#[test]
fn a_device_in_use_cannot_be_taken_away() {
    check(
        "
        0 op node n3 immediate gpu 3
        0 a grant gpu 1 node=n3
        0 a grant gpu 1 node=n3
        0 a release #0
        1 op node n3 immediate gpu 1
        2 op node n3 immediate gpu 2
        2 a grant gpu 1 node=n3
        2 show capacity
        ",
        expect![[r#"
            0 - node.put
            0 a granted #0 gpu 7[0] on n3 to 3600
            0 a granted #1 gpu 7[1] on n3 to 3600
            0 a released #0, closed
            1 refused: node_smaller_than_leased
            2 - node.put
            2 a granted #2 gpu 7[0] on n3 to 3602
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
              n3 gpu: held 14 devices [7, 7]
        "#]],
    );
}

#[test]
fn a_node_with_leases_is_neither_deleted_nor_moved() {
    check(
        "
        0 op pool other
        0 a grant core 1 node=n1
        1 op delete node n1
        1 op node n1 pool=other core 200 gpu 2 cpu 8
        2 a release #0
        3 op delete node n1
        4 op confirm n1 #0
        5 op node n1 pool=other core 200
        6 op delete pool other
        7 op delete node n1
        8 op delete pool other
        ",
        expect![[r#"
            0 - pool.put
            0 a granted #0 core 1 on n1 to 3600
            1 refused: node_has_leases
            1 refused: node_has_leases
            2 a released #0
            3 refused: node_has_leases
            4 a torn down #0 on n1
            5 - node.put
            6 refused: pool_has_nodes
            7 - node.deleted
            8 - pool.deleted
        "#]],
    );
}

#[test]
fn a_fenced_lease_keeps_its_node_from_being_deleted() {
    check(
        "
        0 a grant core 1 node=n1
        0 a release #0
        120 op delete node n1
        121 op unfence #0
        121 op delete node n1
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 a released #0
            120 a fenced #0
            120 refused: node_has_leases
            121 a unfenced #0
            121 - node.deleted
        "#]],
    );
}

/// A record says that a node has been empty; the engine makes it once for each time, and never for a node in use.
#[test]
fn an_empty_node_is_recorded_once() {
    check(
        "
        0 a grant core 1 ttl=10s node=n2
        5 op empty n2 since=0
        20 op empty n2 since=10
        21 op empty n2 since=10
        22 op empty n2 since=30
        23 op empty n9 since=10
        ",
        expect![[r#"
            0 a granted #0 core 1 on n2 to 10
            5 refused: node_has_leases
            20 a expired #0, closed since 10
            20 - n2 empty since 10
            21 refused: node_already
            22 refused: last_seen_in_future
            23 refused: unknown_node
        "#]],
    );
}
