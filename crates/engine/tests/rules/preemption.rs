//! Who falls for whom (SEMANTICS 5).

use crate::support::check_on;
use expect_test::expect;

const ONE: &str = "
    0 op class gpu kind=gpu per=1
    0 op class core kind=cpu per=1
    0 op pool main grace=60s
    0 op node n1 gpu 4 core 32
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project b/b
";

const TWO: &str = "
    0 op class gpu kind=gpu per=1
    0 op pool main grace=0s
    0 op node n1 gpu 4 immediate
    0 op node n2 gpu 4 immediate
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project b/b
";

/// The example of SEMANTICS 5: 3 needed, a (1, 10 s left), b (1, 20 s), c (2, 30 s): a and c fall.
#[test]
fn victims_that_turn_out_unneeded_are_put_back() {
    check_on(
        ONE,
        "
        0 b grant gpu 1 ttl=10s
        0 b grant gpu 1 ttl=20s
        0 b grant gpu 2 ttl=30s
        1 a submit gpu 3 prio=guaranteed wall=1h
        1 show capacity
        2 b ready #0
        3 op confirm n1 #0
        3 show capacity
        4 b release #2
        5 op confirm n1 #2
        5 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 1[0] on n1 to 10
            0 b granted #1 gpu 1[1] on n1 to 20
            0 b granted #2 gpu 2[2,3] on n1 to 30
            1 a @1 submitted
            1 - evicts #0 #2 for @1 on n1
            1 b revoked #0, grace 1m (preempted)
            1 b revoked #2, grace 1m (preempted)
              n1 gpu: held 4 devices [1, 1, 1, 1]
              n1 core: idle 32
            2 b teardown of #0, ready
            3 b torn down #0 on n1
              n1 gpu: held 3, reserved 1 devices [1, 1, 1, 1]
              n1 core: idle 32
            4 b released #2
            5 b torn down #2 on n1
            5 a @1 placed, attempt 1
            5 a granted #3 gpu 3[0,2,3] on n1 to 3605 guaranteed
              @1 running attempt 1, holds 1
        "#]],
    );
}

/// A lease request that evicts waits as an allocation does, so it counts against the same limit; one that finds room
/// does not wait.
#[test]
fn a_request_that_evicts_must_be_allowed_to_wait() {
    check_on(
        ONE,
        "
        0 op update a pending=0
        0 b grant gpu 3 ttl=1h
        1 a grant gpu 1 ttl=60s prio=guaranteed
        2 a grant gpu 1 ttl=60s prio=guaranteed
        3 op update a pending=1
        3 a grant gpu 1 ttl=60s prio=guaranteed
        ",
        expect![[r#"
            0 a quota.budgets_updated
            0 b granted #0 gpu 3[0,1,2] on n1 to 3600
            1 a granted #1 gpu 1[3] on n1 to 61 guaranteed
            2 refused: too_many_pending
            3 a quota.budgets_updated
            3 a @1 submitted
        "#]],
    );
}

#[test]
fn only_lower_priorities_fall_and_scavengers_first() {
    check_on(
        TWO,
        "
        0 b grant gpu 4 prio=scavenger
        0 b grant gpu 4
        1 a submit gpu 4 prio=scavenger
        2 a submit gpu 4
        3 a submit gpu 4
        4 a submit gpu 4 prio=guaranteed
        5 a submit gpu 4 prio=guaranteed
        6 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600
            1 a @1 submitted
            2 a @2 submitted
            3 - evicts #0 for @2 on n1
            3 b revoked #0, grace 0s (preempted)
            3 b teardown of #0, grace_ended, closed
            3 a @2 placed, attempt 1
            3 a granted #2 gpu 4[0,1,2,3] on n1 to 86403
            3 a @3 submitted
            4 a @4 submitted
            5 - evicts #2 for @4 on n1
            5 a revoked #2, grace 0s (preempted)
            5 a teardown of #2, grace_ended, closed
            5 a @2 failed: preempted
            5 a @4 placed, attempt 1
            5 a granted #3 gpu 4[0,1,2,3] on n1 to 86405 guaranteed
            5 a @5 submitted
            6 - evicts #1 for @5 on n2
            6 b revoked #1, grace 0s (preempted)
            6 b teardown of #1, grace_ended, closed
            6 a @5 placed, attempt 1
            6 a granted #4 gpu 4[0,1,2,3] on n2 to 86406 guaranteed
              @1 pending
              @3 pending
              @4 running attempt 1, holds 1
              @5 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn a_request_for_a_lease_waits_for_its_victims_as_an_allocation() {
    check_on(
        ONE,
        "
        0 b grant gpu 4 prio=scavenger
        1 a grant gpu 2 ttl=10m
        1 show capacity
        2 b ready #0
        3 op confirm n1 #0
        3 show capacity
        4 a release #1
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            1 a @1 submitted
            1 - evicts #0 for @1 on n1
            1 b revoked #0, grace 1m (preempted)
              n1 gpu: held 4 devices [1, 1, 1, 1]
              n1 core: idle 32
            2 b teardown of #0, ready
            3 b torn down #0 on n1
            3 a @1 placed, attempt 1
            3 a granted #1 gpu 2[0,1] on n1 to 603
              n1 gpu: held 2, idle 2 devices [1, 1, 0, 0]
              n1 core: idle 32
            4 a @1 completed
            4 a released #1
        "#]],
    );
}

#[test]
fn gangs_fall_whole_and_wait_again() {
    check_on(
        TWO,
        "
        0 b submit gpu 2 x=2 prio=scavenger requeue wall=1h apart=node
        0 b submit gpu 2 prio=scavenger wall=1h
        1 a submit gpu 4 prio=standard wall=1h
        1 show allocs
        2
        2 show allocs
        ",
        expect![[r#"
            0 b @1 submitted, 2 replicas
            0 b @1 placed, attempt 1
            0 b granted #0 gpu 2[0,1] on n1 to 3600 scavenger
            0 b granted #1 gpu 2[0,1] on n2 to 3600 scavenger
            0 b @2 submitted
            0 b @2 placed, attempt 1
            0 b granted #2 gpu 2[2,3] on n1 to 3600 scavenger
            1 a @3 submitted
            1 - evicts #0 #1 for @3 on n2
            1 b revoked #0 #1, grace 0s (preempted)
            1 b teardown of #0 #1, grace_ended, closed
            1 b @1 requeued: preempted
            1 a @3 placed, attempt 1
            1 a granted #3 gpu 4[0,1,2,3] on n2 to 3601
              @1 pending
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
              @1 pending
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn nothing_falls_unless_the_whole_gang_then_fits() {
    check_on(
        TWO,
        "
        0 b grant gpu 1 prio=guaranteed
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 x=2 prio=guaranteed wall=1h
        1 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 1[0] on n1 to 3600 guaranteed
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600 scavenger
            1 a @1 submitted, 2 replicas
              @1 pending
        "#]],
    );
}

#[test]
fn a_victim_that_is_fenced_makes_its_evictor_look_elsewhere() {
    check_on(
        ONE,
        "
        0 op settings teardown=30s
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 prio=guaranteed wall=1h
        10 b ready #0
        100
        100 show allocs
        100 show capacity
        ",
        expect![[r#"
            0 - settings.changed
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            1 a @1 submitted
            10 - evicts #0 for @1 on n1
            10 b revoked #0, grace 1m (preempted)
            10 b teardown of #0, ready
            100 b fenced #0 since 40
            100 a nothing is kept for @1 any more
              @1 pending
              n1 gpu: fenced 4 devices [1, 1, 1, 1]
              n1 core: idle 32
        "#]],
    );
}

/// What a node gains is kept too, and nobody else is placed there.
#[test]
fn a_node_that_grows_gives_to_the_one_that_waits_first() {
    check_on(
        ONE,
        "
        0 b grant core 32 prio=scavenger
        1 a submit core 20 prio=guaranteed wall=1h
        2 op node n1 gpu 4 core 40
        2 show capacity
        3 b grant core 5
        4 op node n1 gpu 4 core 55
        5 b grant core 5
        5 show allocs
        ",
        expect![[r#"
            0 b granted #0 core 32 on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            2 - node.put
              n1 gpu: idle 4 devices [0, 0, 0, 0]
              n1 core: held 32, reserved 8
            3 b denied: core requested 5, most free 0
            4 - node.put
            5 a @1 placed, attempt 1
            5 a granted #1 core 20 on n1 to 3605 guaranteed
            5 b denied: core requested 5, most free 3
              @1 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn a_requester_that_gives_up_gives_back_what_is_kept() {
    check_on(
        ONE,
        "
        0 b grant gpu 2 prio=scavenger
        1 a submit gpu 4 prio=guaranteed wall=1h
        1 show capacity
        2 b grant gpu 1
        3 a cancel @1
        3 show capacity
        ",
        expect![[r#"
            0 b granted #0 gpu 2[0,1] on n1 to 3600 scavenger
            1 a @1 submitted
            1 - evicts #0 for @1 on n1
            1 b revoked #0, grace 1m (preempted)
              n1 gpu: held 2, reserved 2 devices [1, 1, 1, 1]
              n1 core: idle 32
            2 b denied: gpu requested 1, most free 0
            3 a @1 cancelled
              n1 gpu: held 2, idle 2 devices [1, 1, 0, 0]
              n1 core: idle 32
        "#]],
    );
}

#[test]
fn a_limit_on_evictions_that_is_raised_wakes_who_waited_for_it() {
    check_on(
        TWO,
        "
        0 op update a evicted=5
        0 b grant gpu 4 prio=scavenger ttl=23h
        0 b grant gpu 4 prio=scavenger ttl=23h
        1 a submit gpu 4 wall=10h
        2 a submit gpu 4 wall=10h
        3 show allocs
        3 op update a evicted=9
        4
        4 show allocs
        ",
        expect![[r#"
            0 a tenant.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 82800 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 82800 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 0s (preempted)
            2 b teardown of #0, grace_ended, closed
            2 a @1 placed, attempt 1
            2 a granted #2 gpu 4[0,1,2,3] on n1 to 36002
            2 a @2 submitted
              @1 running attempt 1, holds 1
              @2 pending
            3 a tenant.put
            4 - evicts #1 for @2 on n2
            4 b revoked #1, grace 0s (preempted)
            4 b teardown of #1, grace_ended, closed
            4 a @2 placed, attempt 1
            4 a granted #3 gpu 4[0,1,2,3] on n2 to 36004
              @1 running attempt 1, holds 1
              @2 running attempt 1, holds 1
        "#]],
    );
}

/// Which lease is evicted depends on deadlines, so a renewal can bring an eviction within the limit.
#[test]
fn a_renewal_wakes_who_waited_for_a_limit_on_evictions() {
    check_on(
        ONE,
        "
        0 op update a evicted=2
        0 b grant gpu 3 prio=scavenger ttl=1h
        0 b grant gpu 1 prio=scavenger ttl=2h
        1 a submit gpu 1 wall=10h
        2 show allocs
        3 b renew #1 ttl=30m
        4
        4 show allocs
        ",
        expect![[r#"
            0 a tenant.put
            0 b granted #0 gpu 3[0,1,2] on n1 to 3600 scavenger
            0 b granted #1 gpu 1[3] on n1 to 7200 scavenger
            1 a @1 submitted
              @1 pending
            3 b renewed #1 to 1803
            4 - evicts #1 for @1 on n1
            4 b revoked #1, grace 1m (preempted)
              @1 pending, kept on n1
        "#]],
    );
}

#[test]
fn a_tenant_can_evict_only_so_much_in_an_hour() {
    check_on(
        TWO,
        "
        0 op update a evicted=5
        0 b grant gpu 4 prio=scavenger ttl=23h
        0 b grant gpu 4 prio=scavenger ttl=23h
        1 a submit gpu 4 wall=10h
        2 a submit gpu 4 wall=10h
        2 show allocs
        3601
        3661
        3661 show allocs
        ",
        expect![[r#"
            0 a tenant.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 82800 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 82800 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 0s (preempted)
            2 b teardown of #0, grace_ended, closed
            2 a @1 placed, attempt 1
            2 a granted #2 gpu 4[0,1,2,3] on n1 to 36002
            2 a @2 submitted
              @1 running attempt 1, holds 1
              @2 pending
            3661 - evicts #1 for @2 on n2
            3661 b revoked #1, grace 0s (preempted)
            3661 b teardown of #1, grace_ended, closed
            3661 a @2 placed, attempt 1
            3661 a granted #3 gpu 4[0,1,2,3] on n2 to 39661
              @1 running attempt 1, holds 1
              @2 running attempt 1, holds 1
        "#]],
    );
}

/// What one gives up that waits for its victims is kept for the next that waits there: nobody else finds it.
#[test]
fn what_is_kept_for_the_next_is_not_free() {
    check_on(
        ONE,
        "
        0 b grant core 20 prio=scavenger
        0 b grant core 8 prio=scavenger
        1 a submit core 16 prio=guaranteed wall=1h
        2 a submit core 8 prio=guaranteed wall=1h
        3 show capacity
        3 a cancel @1
        4 b grant core 4 prio=scavenger
        4 show capacity
        ",
        expect![[r#"
            0 b granted #0 core 20 on n1 to 3600 scavenger
            0 b granted #1 core 8 on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            2 a @2 submitted
            3 - evicts #1 for @2 on n1
            3 b revoked #1, grace 1m (preempted)
              n1 gpu: idle 4 devices [0, 0, 0, 0]
              n1 core: held 28, reserved 4
            3 a @1 cancelled
            4 b denied: core requested 4, most free 0
              n1 gpu: idle 4 devices [0, 0, 0, 0]
              n1 core: held 28, reserved 4
        "#]],
    );
}
