//! Bounds on waiting and on evictions (SEMANTICS 11): named nodes, the least runtime, the limit on requeues, bursts and
//! longest lifetimes.

use crate::support::check_on;
use expect_test::expect;

const TWO: &str = "
    0 op class gpu kind=gpu per=1
    0 op pool main grace=60s
    0 op node n1 gpu 4 immediate
    0 op node n2 gpu 4 immediate
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project b/b
";

/// It evicts on that node only, although the other has a victim that ends sooner, and waits for it.
#[test]
fn a_request_that_names_a_node_evicts_there() {
    check_on(
        TWO,
        "
        0 b grant gpu 4 prio=scavenger ttl=10m node=n1
        0 b grant gpu 4 prio=scavenger ttl=20m node=n2
        1 a grant gpu 2 node=n2
        2
        2 show allocs
        3 b ready #1
        4
        4 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 600 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 1200 scavenger
            1 a @1 submitted
            2 - evicts #1 for @1 on n2
            2 b revoked #1, grace 1m (preempted)
              @1 pending, kept on n2
            3 b teardown of #1, ready, closed
            4 a @1 placed, attempt 1
            4 a granted #2 gpu 2[0,1] on n2 to 3604
              @1 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn a_young_lease_is_not_evicted() {
    check_on(
        TWO,
        "
        0 op pool main grace=60s minrun=10m
        0 b grant gpu 4 prio=scavenger ttl=1h
        0 b grant gpu 4 prio=scavenger ttl=1h
        1 a submit gpu 4 wall=1h
        2
        2 show allocs
        599
        661
        661 show allocs
        ",
        expect![[r#"
            0 - pool.put
            0 - pool.queue_put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600 scavenger
            1 a @1 submitted
              @1 pending
            661 - evicts #0 for @1 on n1
            661 b revoked #0, grace 1m (preempted)
              @1 pending, kept on n1
        "#]],
    );
}

/// Whether a lease was held long enough is taken at the last whole minute: all decisions of a minute see the same, also
/// those of an engine that was restored in between.
#[test]
fn a_lease_becomes_old_enough_with_a_new_minute() {
    check_on(
        TWO,
        "
        0 op pool main grace=0s minrun=20s
        0 b grant gpu 4 prio=scavenger ttl=5h
        0 b grant gpu 4 prio=scavenger ttl=5h
        1 a submit gpu 4 wall=3h
        2
        25 b submit gpu 1 prio=scavenger wall=1h
        26 show allocs
        60
        ",
        expect![[r#"
            0 - pool.put
            0 - pool.queue_put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 18000 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 18000 scavenger
            1 a @1 submitted
            25 b @2 submitted
              @1 pending
              @2 pending
            60 - evicts #0 for @1 on n1
            60 b revoked #0, grace 0s (preempted)
            60 b teardown of #0, grace_ended, closed
            60 a @1 placed, attempt 1
            60 a granted #2 gpu 4[0,1,2,3] on n1 to 10860
        "#]],
    );
}

/// So are the evictions of the last hour that count against the limit of a tenant.
#[test]
fn an_eviction_leaves_the_hour_with_a_new_minute() {
    check_on(
        TWO,
        "
        0 op pool main grace=0s
        0 op update a evicted=4
        0 b grant gpu 4 prio=scavenger ttl=5h
        0 b grant gpu 4 prio=scavenger ttl=5h
        1 a submit gpu 4 wall=3h
        2
        3 a submit gpu 4 wall=3h
        4
        3600
        3605 b submit gpu 1 prio=scavenger wall=1h
        3606 show allocs
        3660
        ",
        expect![[r#"
            0 - pool.put
            0 a tenant.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 18000 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 18000 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 0s (preempted)
            2 b teardown of #0, grace_ended, closed
            2 a @1 placed, attempt 1
            2 a granted #2 gpu 4[0,1,2,3] on n1 to 10802
            3 a @2 submitted
            3605 b @3 submitted
              @1 running attempt 1, holds 1
              @2 pending
              @3 pending
            3660 - evicts #1 for @2 on n2
            3660 b revoked #1, grace 0s (preempted)
            3660 b teardown of #1, grace_ended, closed
            3660 a @2 placed, attempt 1
            3660 a granted #3 gpu 4[0,1,2,3] on n2 to 14460
        "#]],
    );
}

#[test]
fn an_allocation_is_requeued_only_so_often() {
    check_on(
        TWO,
        "
        0 op pool main grace=0s requeues=1
        0 b submit gpu 4 x=2 prio=scavenger wall=10h requeue
        1 a grant gpu 4 ttl=10m
        2
        3 a release #2
        4
        5 a grant gpu 4 ttl=10m
        6
        6 show allocs
        ",
        expect![[r#"
            0 - pool.put
            0 - pool.queue_put
            0 b @1 submitted, 2 replicas
            0 b @1 placed, attempt 1
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 36000 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 36000 scavenger
            1 a @2 submitted
            2 - evicts #0 #1 for @2 on n1
            2 b revoked #0 #1, grace 0s (preempted)
            2 b teardown of #0 #1, grace_ended, closed
            2 b @1 requeued: preempted
            2 a @2 placed, attempt 1
            2 a granted #2 gpu 4[0,1,2,3] on n1 to 602
            3 a @2 completed
            3 a released #2, closed
            4 b @1 placed, attempt 2
            4 b granted #3 gpu 4[0,1,2,3] on n1 to 36004 scavenger
            4 b granted #4 gpu 4[0,1,2,3] on n2 to 36004 scavenger
            5 a @3 submitted
            6 - evicts #3 #4 for @3 on n1
            6 b revoked #3 #4, grace 0s (preempted)
            6 b teardown of #3 #4, grace_ended, closed
            6 b @1 failed: preempted
            6 a @3 placed, attempt 1
            6 a granted #5 gpu 4[0,1,2,3] on n1 to 606
              @3 running attempt 1, holds 1
        "#]],
    );
}

/// A gang that would outlast the burst waits; one that could never start is refused.
#[test]
fn a_gang_waits_rather_than_being_cut_off_by_a_burst() {
    check_on(
        TWO,
        "
        0 op quota q a gpu burst=4..8/60s
        0 a submit gpu 4 wall=1h
        1 a submit gpu 2 wall=30s
        2 a submit gpu 2 wall=1h
        3 a submit gpu 6 wall=1h
        3 show allocs
        ",
        expect![[r#"
            0 a quota q: burst 4
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            1 a @2 submitted
            1 a @2 placed, attempt 1
            1 a granted #1 gpu 2[0,1] on n2 to 31
            2 a @3 submitted
            3 refused: walltime_beyond_burst
              @1 running attempt 1, holds 1
              @2 running attempt 1, holds 1
              @3 pending
        "#]],
    );
}

/// A lease in a pool with a longest lifetime is certain to end: the head is assured of a start.
#[test]
fn a_longest_lifetime_bounds_the_end_of_a_lease() {
    check_on(
        TWO,
        "
        0 op pool main grace=60s lifetime=1h
        0 b grant gpu 4 node=n1 ttl=10m
        0 b grant gpu 4 node=n2 ttl=10m
        10 b release #0
        20 a submit gpu 4 x=2 wall=1h
        30
        30 b grant gpu 4 ttl=10m
        40 show allocs
        ",
        expect![[r#"
            0 - pool.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 600
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 600
            10 b released #0, closed
            20 a @1 submitted, 2 replicas
            30 b denied: gpu requested 4, most free 0
              @1 pending
        "#]],
    );
}
