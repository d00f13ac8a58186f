//! What waits, in which order, and what may go before it (SEMANTICS 4).

use crate::allocations::RACKS;
use crate::support::check_on;
use expect_test::expect;

#[test]
fn what_finds_no_room_waits_and_starts_when_there_is_some() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=4 wall=1h
        1 b submit gpu 4 wall=1h
        2 a submit gpu 4 wall=1h
        3 b submit gpu 4 wall=1h prio=guaranteed
        3 show allocs
        ",
        expect![[r#"
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 3600
            0 a granted #3 gpu 4[0,1,2,3] on n4 to 3600
            1 b @2 submitted
            2 a @3 submitted
            3 b @4 submitted
            3 - evicts #0 #1 #2 #3 for @4 on n1
            3 a revoked #0 #1 #2 #3, grace 1m (preempted)
              @1 running attempt 1, holds 4
              @2 pending
              @3 pending
              @4 pending, kept on n1
        "#]],
    );
}

#[test]
fn higher_priority_goes_first_then_the_older() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=4 wall=1h prio=guaranteed
        1 b submit gpu 4 wall=1h prio=scavenger
        2 b submit gpu 4 wall=1h
        3 b submit gpu 4 wall=1h
        4 b submit gpu 4 wall=1h prio=guaranteed
        5 a complete @1
        6 op confirm n3 #2
        7 op confirm n4 #3
        ",
        expect![[r#"
            0 a @1 submitted, 4 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600 guaranteed
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600 guaranteed
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 3600 guaranteed
            0 a granted #3 gpu 4[0,1,2,3] on n4 to 3600 guaranteed
            1 b @2 submitted
            2 b @3 submitted
            3 b @4 submitted
            4 b @5 submitted
            5 a @1 completed
            5 a released #0 #1 #2 #3
            5 a torn down #0 on n1
            5 a torn down #1 on n2
            6 b @5 placed, attempt 1
            6 b granted #4 gpu 4[0,1,2,3] on n1 to 3606 guaranteed
            6 b @3 placed, attempt 1
            6 b granted #5 gpu 4[0,1,2,3] on n2 to 3606
            6 a torn down #2 on n3
            7 b @4 placed, attempt 1
            7 b granted #6 gpu 4[0,1,2,3] on n3 to 3607
            7 a torn down #3 on n4
        "#]],
    );
}

#[test]
fn backfill_never_delays_the_first() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=3 wall=100s
        1 a submit gpu 4 x=4 wall=1h
        2 b submit gpu 4 wall=1h
        3 b submit gpu 4 wall=300s
        4 b submit gpu 4 wall=80s
        4 show allocs
        5 b grant gpu 1
        6 b grant gpu 1 prio=guaranteed
        200
        200 show allocs
        ",
        expect![[r#"
            0 a @1 submitted, 3 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 100
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 100
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 100
            1 a @2 submitted, 4 replicas
            2 b @3 submitted
            3 b @4 submitted
            4 b @5 submitted
            4 b @5 placed, attempt 1
            4 b granted #3 gpu 4[0,1,2,3] on n4 to 84
              @1 running attempt 1, holds 3
              @2 pending
              @3 pending
              @4 pending
              @5 running attempt 1, holds 1
            5 b denied: gpu requested 1, most free 0
            6 b @6 submitted
            200 b expired #3 since 84
            200 a expired #0 #1, closed since 100
            200 a expired #2 since 100
            200 a @1 failed: walltime since 100
            200 b @5 failed: walltime since 84
            200 b @6 placed, attempt 1
            200 b granted #4 gpu 1[0] on n1 to 3800 guaranteed
            200 b @3 placed, attempt 1
            200 b granted #5 gpu 4[0,1,2,3] on n2 to 3800
              @2 pending
              @3 running attempt 1, holds 1
              @4 pending
              @6 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn who_waits_for_quota_does_not_hold_up_others() {
    check_on(
        RACKS,
        "
        0 op quota q a gpu hard=8
        0 b submit gpu 4 x=4 wall=1h
        1 a submit gpu 4 wall=1h
        2 a submit gpu 4 wall=1h
        3 a submit gpu 4 wall=1h
        4 b submit gpu 4 wall=1h
        5 b complete @1
        5 show allocs
        6 op confirm n3 #2
        7 op confirm n4 #3
        7 show allocs
        8 op quota q hard=16
        9 b complete @5
        9 show allocs
        ",
        expect![[r#"
            0 a quota q: hard 8
            0 b @1 submitted, 4 replicas
            0 b @1 placed, attempt 1
            0 b granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 b granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 3600
            0 b granted #3 gpu 4[0,1,2,3] on n4 to 3600
            1 a @2 submitted
            2 a @3 submitted
            3 a @4 submitted
            4 b @5 submitted
            5 b @1 completed
            5 b released #0 #1 #2 #3
            5 b torn down #0 on n1
            5 b torn down #1 on n2
            5 a @2 placed, attempt 1
            5 a granted #4 gpu 4[0,1,2,3] on n1 to 3605
            5 a @3 placed, attempt 1
            5 a granted #5 gpu 4[0,1,2,3] on n2 to 3605
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
              @4 pending
              @5 pending
            6 b torn down #2 on n3
            7 b @5 placed, attempt 1
            7 b granted #6 gpu 4[0,1,2,3] on n3 to 3607
            7 b torn down #3 on n4
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
              @4 pending
              @5 running attempt 1, holds 1
            8 a quota q: hard 16
            9 a @4 placed, attempt 1
            9 a granted #7 gpu 4[0,1,2,3] on n4 to 3609
            9 b @5 completed
            9 b released #6
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
              @4 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn new_nodes_and_returning_ones_wake_the_queue() {
    check_on(
        RACKS,
        "
        0 op drain n4
        0 a submit gpu 4 x=3 wall=1h
        1 a submit gpu 4 wall=1h
        2 op resume n4
        3 a submit gpu 4 wall=1h
        4 op node n5 gpu 4 core 32 immediate
        4 show allocs
        ",
        expect![[r#"
            0 - drained n4
            0 a @1 submitted, 3 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 a granted #2 gpu 4[0,1,2,3] on n3 to 3600
            1 a @2 submitted
            2 - resumed n4
            3 a @2 placed, attempt 1
            3 a granted #3 gpu 4[0,1,2,3] on n4 to 3603
            3 a @3 submitted
            4 - node.put
            4 a @3 placed, attempt 1
            4 a granted #4 gpu 4[0,1,2,3] on n5 to 3604
              @1 running attempt 1, holds 3
              @2 running attempt 1, holds 1
              @3 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn who_waits_is_told_what_for() {
    check_on(
        RACKS,
        "
        0 a submit gpu 4 x=2 wall=1h
        0 b submit gpu 4 wall=2h
        0 op quota q b gpu hard=6
        1 a submit gpu 4 x=3 wall=1h
        2 b submit gpu 2 wall=3h
        2 b submit gpu 2 wall=20m
        3 a submit gpu 2 wall=3h
        3 show waits
        4 op update a evicted=1
        5 a submit gpu 4 wall=1h prio=guaranteed pool=main
        5 show waits
        6 op update a evicted=-
        60 show waits
        ",
        expect![[r#"
            0 a @1 submitted, 2 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 gpu 4[0,1,2,3] on n1 to 3600
            0 a granted #1 gpu 4[0,1,2,3] on n2 to 3600
            0 b @2 submitted
            0 b @2 placed, attempt 1
            0 b granted #2 gpu 4[0,1,2,3] on n3 to 7200
            0 b quota q: hard 6
            1 a @3 submitted, 3 replicas
            2 b @4 submitted
            2 b @5 submitted
            2 b @5 placed, attempt 1
            2 b granted #3 gpu 2[0,1] on n4 to 1202
            3 a @6 submitted
              @3 place 1: 10 gpu short, 0 would fit, starts by 3600
              @4 place 2: quota used 6, requested 2, limit 6
              @6 place 3: behind @3, which starts by 3600
            4 a tenant.put
            5 a @7 submitted
              @3 place 2: 10 gpu short, 0 would fit
              @4 place 3: quota used 6, requested 2, limit 6
              @6 place 4: behind @7, which starts by 1322
              @7 place 1: evicted 0 of 1, starts by 1322
            6 a tenant.put
            60 - evicts #3 for @7 on n4
            60 b revoked #3, grace 1m (preempted)
              @3 place 3: 12 gpu short, 0 would fit, starts by 7320
              @4 place 2: quota used 6, requested 2, limit 6
              @6 place 4: 2 gpu short, 0 would fit
              @7 place 1: victims on n4
        "#]],
    );
}
