//! Reservations made by an eviction, and who may take them over (SEMANTICS 11).

use crate::support::check_on;
use expect_test::expect;

const ONE: &str = "
    0 op class gpu kind=gpu per=1
    0 op class core kind=cpu per=1
    0 op pool main grace=60s
    0 op node n1 gpu 4 core 32
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op tenant c max=guaranteed
    0 op project a/a
    0 op project b/b
    0 op project c/c
";

const TWO: &str = "
    0 op class gpu kind=gpu per=1
    0 op pool main grace=60s
    0 op node n1 gpu 4 immediate
    0 op node n2 gpu 4 immediate
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op tenant c max=guaranteed
    0 op project a/a
    0 op project b/b
    0 op project c/c
";

/// The higher priority takes the capacity over while the victim is still there, and starts instead.
#[test]
fn a_higher_priority_takes_the_reservation_over() {
    check_on(
        ONE,
        "
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 wall=1h
        2
        3 c submit gpu 4 prio=guaranteed wall=1h
        4
        4 show allocs
        5 b ready #0
        6 op confirm n1 #0
        7
        7 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 c @2 submitted
            4 - @2 takes over from @1, waits for #0 on n1
              @1 pending
              @2 pending, kept on n1
            5 b teardown of #0, ready
            6 b torn down #0 on n1
            7 c @2 placed, attempt 1
            7 c granted #1 gpu 4[0,1,2,3] on n1 to 3607 guaranteed
              @1 pending
              @2 running attempt 1, holds 1
        "#]],
    );
}

/// Nobody starts for an instant only to be revoked, even where the pass comes after the end of the victim.
#[test]
fn complete_capacity_goes_to_the_higher_priority_at_once() {
    check_on(
        TWO,
        "
        0 b grant gpu 4 prio=scavenger
        0 b grant gpu 4 prio=guaranteed
        1 a submit gpu 4 wall=1h
        2
        3 c submit gpu 4 prio=guaranteed wall=1h
        100
        100 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600 guaranteed
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 c @2 submitted
            100 b teardown of #0, grace_ended, closed since 62
            100 - @2 takes over from @1 on n1
            100 c @2 placed, attempt 1
            100 c granted #2 gpu 4[0,1,2,3] on n1 to 3700 guaranteed
              @1 pending
              @2 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn a_lease_request_takes_over_as_an_allocation() {
    check_on(
        ONE,
        "
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 wall=1h
        2
        3 c grant gpu 2 prio=guaranteed
        4
        4 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 c @2 submitted
            4 - @2 takes over from @1, waits for #0 on n1
              @1 pending
              @2 pending, kept on n1
        "#]],
    );
}

#[test]
fn within_a_priority_a_reservation_stands() {
    check_on(
        ONE,
        "
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 wall=1h
        2
        3 c submit gpu 4 wall=1h
        4 c grant gpu 4
        5 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 c @2 submitted
            4 c denied: gpu requested 4, most free 0
              @1 pending, kept on n1
              @2 pending
        "#]],
    );
}

/// Lowest priority first, then the latest submission: nothing more is taken than is needed.
#[test]
fn the_latest_submission_loses_first() {
    check_on(
        TWO,
        "
        0 b grant gpu 4 prio=scavenger
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 wall=1h
        2 a submit gpu 4 wall=1h
        3
        4 c submit gpu 4 prio=guaranteed wall=1h
        5
        5 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            2 a @2 submitted
            3 - evicts #1 for @2 on n2
            3 b revoked #1, grace 1m (preempted)
            4 c @3 submitted
            5 - @3 takes over from @2, waits for #1 on n2
              @1 pending, kept on n1
              @2 pending
              @3 pending, kept on n2
        "#]],
    );
}

/// What is reserved is taken first; only what is still missing is evicted.
#[test]
fn reservations_are_taken_before_anything_is_evicted() {
    check_on(
        TWO,
        "
        0 b grant gpu 4 prio=scavenger
        0 b grant gpu 4
        1 a submit gpu 4 wall=1h
        2
        3 c submit gpu 4 x=2 prio=guaranteed wall=1h
        4
        4 show allocs
        64
        64 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 c @2 submitted, 2 replicas
            4 - @2 takes over from @1, evicts #1, waits for #0 on n1 n2
            4 b revoked #1, grace 1m (preempted)
              @1 pending
              @2 pending, kept on n1, kept on n2
            64 b teardown of #0, grace_ended, closed since 62
            64 b teardown of #1, grace_ended, closed
            64 c @2 placed, attempt 1
            64 c granted #2 gpu 4[0,1,2,3] on n1 to 3664 guaranteed
            64 c granted #3 gpu 4[0,1,2,3] on n2 to 3664 guaranteed
              @1 pending
              @2 running attempt 1, holds 2
        "#]],
    );
}

/// An eviction elsewhere that needs nothing of a reservation leaves it alone.
#[test]
fn a_reservation_that_does_not_help_is_kept() {
    check_on(
        "
        0 op class gpu kind=gpu per=1
        0 op pool main grace=60s
        0 op node n1 gpu 2 immediate
        0 op node n2 gpu 4 immediate
        0 op tenant a max=guaranteed
        0 op tenant b max=guaranteed
        0 op project a/a
        0 op project b/b
        ",
        "
        0 b grant gpu 2 prio=scavenger ttl=30m
        0 b grant gpu 4
        1 a submit gpu 2 wall=1h
        2
        3 a submit gpu 4 prio=guaranteed wall=1h
        4
        4 show allocs
        ",
        expect![[r#"
            0 b granted #0 gpu 2[0,1] on n1 to 1800 scavenger
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 a @2 submitted
            4 - evicts #1 for @2 on n2
            4 b revoked #1, grace 1m (preempted)
              @1 pending, kept on n1
              @2 pending, kept on n2
        "#]],
    );
}

/// Only new victims count against the tenant's limit on evictions.
#[test]
fn taking_over_is_no_eviction() {
    check_on(
        ONE,
        "
        0 op update c evicted=1
        0 b grant gpu 4 prio=scavenger
        1 a submit gpu 4 wall=1h
        2
        3 c submit gpu 4 prio=guaranteed wall=1h
        4
        4 show allocs
        ",
        expect![[r#"
            0 c tenant.put
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            3 c @2 submitted
            4 - @2 takes over from @1, waits for #0 on n1
              @1 pending
              @2 pending, kept on n1
        "#]],
    );
}

/// Another reservation may be filled with the capacity of a victim: the one that lacks it waits for the other victim.
#[test]
fn a_reservation_waits_while_something_on_its_node_is_ending() {
    check_on(
        ONE,
        "
        0 b grant core 20 prio=scavenger
        0 b grant core 12 prio=scavenger
        1 a submit core 16 wall=1h
        2 a submit core 12 wall=1h
        3 b ready #1
        4 op confirm n1 #1
        5 show capacity
        6 b ready #0
        7 op confirm n1 #0
        8 show allocs
        ",
        expect![[r#"
            0 b granted #0 core 20 on n1 to 3600 scavenger
            0 b granted #1 core 12 on n1 to 3600 scavenger
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 1m (preempted)
            2 a @2 submitted
            3 - evicts #1 for @2 on n1
            3 b revoked #1, grace 1m (preempted)
            3 b teardown of #1, ready
            4 b torn down #1 on n1
              n1 gpu: idle 4 devices [0, 0, 0, 0]
              n1 core: held 20, reserved 12
            6 b teardown of #0, ready
            7 b torn down #0 on n1
            8 a @1 placed, attempt 1
            8 a granted #2 core 16 on n1 to 3608
            8 a @2 placed, attempt 1
            8 a granted #3 core 12 on n1 to 3608
              @1 running attempt 1, holds 1
              @2 running attempt 1, holds 1
        "#]],
    );
}
