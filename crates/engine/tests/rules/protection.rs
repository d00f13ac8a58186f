//! A head that has waited for longer than `head_wait_max` is protected on a set of nodes (SEMANTICS 11 "Waiting").

use crate::support::check_on;
use expect_test::expect;

/// Three nodes; `c` is ranked before `a`, because it has a share.
const THREE: &str = "
    0 op class gpu kind=gpu per=1
    0 op pool main grace=60s
    0 op node n1 gpu 4 immediate
    0 op node n2 gpu 4 immediate
    0 op node n3 gpu 4 immediate
    0 op tenant a
    0 op tenant b max=guaranteed
    0 op tenant c max=guaranteed
    0 op project a/a
    0 op project b/b
    0 op project c/c
    0 op update c share=500
";

/// The lease on n3 has no certain end, so the set is n1 and n2. Work of a better rank does not start there, unless it is
/// certain to end before; work of higher priority does. It ends with the start.
#[test]
fn a_head_that_waited_too_long_keeps_its_nodes() {
    check_on(
        THREE,
        "
        0 b submit gpu 4 wall=2h
        0 b submit gpu 4 wall=3h
        0 b grant gpu 4 ttl=20h
        10 a submit gpu 4 x=2 wall=1h
        3600
        3600 show waits
        3660
        3661 show waits
        7200
        7210 c submit gpu 4 wall=2h
        7211 show waits
        7220 c submit gpu 4 wall=30m
        7230 show waits
        9020
        9030 c grant gpu 1 ttl=10m
        9040 c grant gpu 1 ttl=10m prio=guaranteed
        9100 c release #4
        10800
        10810 show waits
        ",
        expect![[r#"
            0 b @1 submitted
            0 b @1 placed, attempt 1
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 7200
            0 b @2 submitted
            0 b @2 placed, attempt 1
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 10800
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 72000
            10 a @3 submitted, 2 replicas
              @3 place 1: 8 gpu short, 0 would fit, starts by 10800
            3660 a @3 is protected on n1 n2
              @3 place 1: 8 gpu short, 0 would fit, starts by 10800, protected on n1 n2
            7200 b expired #0, closed
            7200 b @1 failed: walltime
            7210 c @4 submitted
              @3 place 2: 4 gpu short, 1 would fit, starts by 10800, protected on n1 n2
              @4 place 1: behind @3, which starts by 10800
            7220 c @5 submitted
            7220 c @5 placed, attempt 1
            7220 c granted #3 gpu 4[0,1,2,3] on n1 to 9020
              @3 place 2: 8 gpu short, 0 would fit, protected on n1 n2
              @4 place 1: 4 gpu short, 0 would fit
            9020 c expired #3, closed
            9020 c @5 failed: walltime
            9030 c denied: gpu requested 1, most free 0
            9040 c granted #4 gpu 1[0] on n1 to 9640 guaranteed
            9100 c released #4, closed
            10800 b expired #1, closed
            10800 b @2 failed: walltime
            10800 a @3 placed, attempt 1
            10800 a granted #5 gpu 4[0,1,2,3] on n1 to 14400
            10800 a granted #6 gpu 4[0,1,2,3] on n2 to 14400
              @4 place 1: 4 gpu short, 0 would fit, starts by 14400
        "#]],
    );
}

/// A set is made of nodes on which every lease has a certain end; otherwise one is named that has none.
#[test]
fn a_lease_without_a_certain_end_prevents_the_protection() {
    check_on(
        THREE,
        "
        0 b submit gpu 4 wall=2h
        0 b grant gpu 1 ttl=20h
        0 b grant gpu 4 ttl=20h
        10 a submit gpu 4 x=2 wall=1h
        3665 op beat
        3670 show waits
        3680 op pool main grace=60s lifetime=24h
        3690 show waits
        ",
        expect![[r#"
            0 b @1 submitted
            0 b @1 placed, attempt 1
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 7200
            0 b granted #1 gpu 1[0] on n2 to 72000
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 72000
            10 a @2 submitted, 2 replicas
            3665 - journal.heartbeat
              @2 place 1: 5 gpu short, 0 would fit, unprotected because of #1
            3680 - pool.put
            3690 a @2 is protected on n1 n2
              @2 place 1: 5 gpu short, 0 would fit, starts by 86400, protected on n1 n2
        "#]],
    );
}

/// The smallest set is preferred to the earliest ends, and of equal ones the earliest, then the lowest numbers: four small
/// nodes are free first, then n4, n6 and n7, then n2.
#[test]
fn the_smallest_set_with_the_earliest_ends_is_protected() {
    check_on(
        "
        0 op class gpu kind=gpu per=1
        0 op pool main grace=60s lifetime=10h
        0 op node n1 gpu 2 immediate
        0 op node n2 gpu 4 immediate
        0 op node n3 gpu 2 immediate
        0 op node n4 gpu 4 immediate
        0 op node n5 gpu 2 immediate
        0 op node n6 gpu 4 immediate
        0 op node n7 gpu 4 immediate
        0 op node n8 gpu 2 immediate
        0 op tenant a
        0 op tenant b
        0 op project a/a
        0 op project b/b
        ",
        "
        0 b grant gpu 2 ttl=2h node=n1
        0 b grant gpu 2 ttl=2h node=n3
        0 b grant gpu 2 ttl=2h node=n5
        0 b grant gpu 2 ttl=2h node=n8
        5 b grant gpu 4 ttl=2h node=n4
        5 b grant gpu 4 ttl=2h node=n6
        5 b grant gpu 4 ttl=2h node=n7
        10 b grant gpu 4 ttl=2h node=n2
        20 a submit gpu 2 x=4
        3660
        3660 show waits
        ",
        expect![[r#"
            0 b granted #0 gpu 2[0,1] on n1 to 7200
            0 b granted #1 gpu 2[0,1] on n3 to 7200
            0 b granted #2 gpu 2[0,1] on n5 to 7200
            0 b granted #3 gpu 2[0,1] on n8 to 7200
            5 b granted #4 gpu 4[0,1,2,3] on n4 to 7205
            5 b granted #5 gpu 4[0,1,2,3] on n6 to 7205
            5 b granted #6 gpu 4[0,1,2,3] on n7 to 7205
            10 b granted #7 gpu 4[0,1,2,3] on n2 to 7210
            20 a @1 submitted, 4 replicas
            3660 a @1 is protected on n4 n6
              @1 place 1: 8 gpu short, 0 would fit, starts by 36000, protected on n4 n6
        "#]],
    );
}

/// The protection ends when a node of the set leaves service; then another set is made.
#[test]
fn a_node_that_leaves_service_ends_the_protection() {
    check_on(
        THREE,
        "
        0 op pool main grace=60s lifetime=10h
        0 b grant gpu 4 ttl=2h
        0 b grant gpu 4 ttl=2h
        0 b grant gpu 4 ttl=2h
        10 a submit gpu 4 x=2 wall=1h
        3660
        3660 show waits
        3661 op drain n1
        3670 show waits
        3700
        3700 show waits
        3710 a cancel @1
        3720 show waits
        ",
        expect![[r#"
            0 - pool.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 7200
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 7200
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 7200
            10 a @1 submitted, 2 replicas
            3660 a @1 is protected on n1 n2
              @1 place 1: 8 gpu short, 0 would fit, starts by 36000, protected on n1 n2
            3661 - drained n1
            3670 a @1 is protected on n2 n3
              @1 place 1: 8 gpu short, 0 would fit, starts by 36000, protected on n2 n3
              @1 place 1: 8 gpu short, 0 would fit, starts by 36000, protected on n2 n3
            3710 a @1 cancelled
        "#]],
    );
}

/// A head that its quotas do not admit holds nobody up, and neither does its protection.
#[test]
fn a_protected_head_without_quota_headroom_holds_nobody_up() {
    check_on(
        THREE,
        "
        0 op pool main grace=60s lifetime=10h
        0 op quota q a gpu hard=8
        0 b grant gpu 4 ttl=3h
        0 b grant gpu 4 ttl=2h
        0 b grant gpu 3 ttl=3h
        10 a submit gpu 4 x=2 wall=1h
        3660
        3660 show waits
        3670 b release #0
        3680 b grant gpu 4 ttl=9h
        3690 a grant gpu 1 ttl=9h
        3700 b grant gpu 4 ttl=9h
        ",
        expect![[r#"
            0 - pool.put
            0 a quota q: hard 8
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 10800
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 7200
            0 b granted #2 gpu 3[0,1,2] on n3 to 10800
            10 a @1 submitted, 2 replicas
            3660 a @1 is protected on n1 n2
              @1 place 1: 7 gpu short, 0 would fit, starts by 36000, protected on n1 n2
            3670 b released #0, closed
            3680 b denied: gpu requested 4, most free 1
            3690 a granted #3 gpu 1[3] on n3 to 36090
            3700 b granted #4 gpu 4[0,1,2,3] on n1 to 36100
        "#]],
    );
}

/// A maintenance window that begins on a node of the set ends the protection; nodes on which the head would run into a
/// window are left out of a set.
#[test]
fn a_maintenance_window_takes_nodes_out_of_the_set() {
    check_on(
        THREE,
        "
        0 op pool main grace=60s lifetime=10h
        0 op node n4 gpu 4 immediate
        0 b grant gpu 4 ttl=2h
        0 b grant gpu 4 ttl=2h
        0 b grant gpu 4 ttl=2h
        0 b grant gpu 4 ttl=2h
        10 a submit gpu 4 x=2 wall=1h
        20 op reserve n2 from=4000 until=5000
        30 op reserve n3 from=39000 until=40000
        3660
        3660 show waits
        3700 op reserve n1 from=39600 until=40000
        3705
        3705 show waits
        3710 op reserve n4 from=39599 until=40000
        3720
        3720 show waits
        4100
        4100 show waits
        5100
        5100 show waits
        ",
        expect![[r#"
            0 - pool.put
            0 - node.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 7200
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 7200
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 7200
            0 b granted #3 gpu 4[0,1,2,3] on n4 to 7200
            10 a @1 submitted, 2 replicas
            20 - window-0 on n2 from 4000 until 5000
            20 b told of window-0: #1
            30 - window-1 on n3 from 39000 until 40000
            30 b told of window-1: #2
            3660 a @1 is protected on n1 n4
              @1 place 1: 8 gpu short, 0 would fit, starts by 36000, protected on n1 n4
            3700 - window-2 on n1 from 39600 until 40000
            3700 b told of window-2: #0
            3705 a @1 is protected on n1 n4
              @1 place 1: 8 gpu short, 0 would fit, starts by 36000, protected on n1 n4
            3710 - window-3 on n4 from 39599 until 40000
            3710 b told of window-3: #3
              @1 place 1: 8 gpu short, 0 would fit
            4100 - window-0 began since 4000
            4100 b revoked #1, grace 1m (operator)
              @1 place 1: 8 gpu short, 0 would fit
            5100 b teardown of #1, grace_ended, closed since 4160
            5100 - window-0 ended since 5000
            5100 a @1 is protected on n1 n2
              @1 place 1: 4 gpu short, 1 would fit, starts by 36000, protected on n1 n2
        "#]],
    );
}

/// Of sets of one size, the one on which everything has ended first is protected; of those, the lowest numbers.
#[test]
fn of_equal_sets_the_one_that_ends_first_is_protected() {
    check_on(
        "
        0 op class gpu kind=gpu per=1
        0 op pool main grace=60s
        0 op node n1 gpu 4 immediate
        0 op node n2 gpu 4 immediate
        0 op node n3 gpu 4 immediate
        0 op node n4 gpu 4 immediate
        0 op tenant a
        0 op tenant b
        0 op project a/a
        0 op project b/b
        ",
        "
        0 b submit gpu 4 wall=5h
        0 b submit gpu 4 wall=4h
        0 b submit gpu 4 wall=3h
        0 b submit gpu 4 wall=4h
        10 a submit gpu 4 x=2 wall=1h
        3660
        3660 show waits
        ",
        expect![[r#"
            0 b @1 submitted
            0 b @1 placed, attempt 1
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 18000
            0 b @2 submitted
            0 b @2 placed, attempt 1
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 14400
            0 b @3 submitted
            0 b @3 placed, attempt 1
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 10800
            0 b @4 submitted
            0 b @4 placed, attempt 1
            0 b granted #3 gpu 4[0,1,2,3] on n4 to 14400
            10 a @5 submitted, 2 replicas
            3660 a @5 is protected on n2 n3
              @5 place 1: 8 gpu short, 0 would fit, starts by 14400, protected on n2 n3
        "#]],
    );
}

/// The wait counts from the last entry into the queue, and one head of a line is protected at a time.
#[test]
fn the_wait_counts_from_the_last_entry_into_the_queue() {
    check_on(
        THREE,
        "
        0 op pool main grace=0s lifetime=10h
        0 op update b share=900
        0 a submit gpu 4 x=3 requeue wall=5h
        3000 b grant gpu 4 ttl=2h prio=guaranteed
        3010 a submit gpu 4 x=3 wall=1h
        6600
        6600 show waits
        6660
        6660 show waits
        10000 show waits
        ",
        expect![[r#"
            0 - pool.put
            0 b quota.budgets_updated
            0 a @1 submitted, 3 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 18000
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 18000
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 18000
            3000 b @2 submitted
            3010 - evicts #0 #1 #2 for @2 on n1
            3010 a revoked #0 #1 #2, grace 0s (preempted)
            3010 a teardown of #0 #1 #2, grace_ended, closed
            3010 a @1 requeued: preempted
            3010 b @2 placed, attempt 1
            3010 b granted #3 gpu 4[0,1,2,3] on n1 to 10210 guaranteed
            3010 a @3 submitted, 3 replicas
              @1 place 1: 4 gpu short, 2 would fit, starts by 39010
              @3 place 2: 4 gpu short, 2 would fit
            6660 a @1 is protected on n1 n2 n3
              @1 place 1: 4 gpu short, 2 would fit, starts by 39010, protected on n1 n2 n3
              @3 place 2: 4 gpu short, 2 would fit
              @1 place 1: 4 gpu short, 2 would fit, starts by 39010, protected on n1 n2 n3
              @3 place 2: 4 gpu short, 2 would fit
        "#]],
    );
}
