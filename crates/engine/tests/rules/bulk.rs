//! Commands on many leases: each stands or is refused on its own.

use crate::support::check;
use expect_test::expect;

#[test]
fn what_cannot_stand_is_left_out_and_named() {
    check(
        "
        0 a grant core 1 ttl=10s
        0 a grant core 1
        0 a grant core 1
        0 b grant core 1
        20 a release #0 #1 #2 #3 #9
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 10
            0 a granted #1 core 1 on n1 to 3600
            0 a granted #2 core 1 on n1 to 3600
            0 b granted #3 core 1 on n1 to 3600
            20 a expired #0 since 10
            20 a released #1 #2
            20   but #0: lease_expired
            20   but #3: lease_not_found
            20   but #9: lease_not_found
        "#]],
    );
}

#[test]
fn when_nothing_stands_the_first_refusal_is_the_answer() {
    check(
        "
        0 a grant core 1 ttl=10s
        0 b grant core 1
        20 a release #0 #1 #9
        20 a release #9 #1
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 10
            0 b granted #1 core 1 on n1 to 3600
            20 a expired #0 since 10
            20 refused: lease_expired
            20 refused: lease_not_found
        "#]],
    );
}

#[test]
fn leases_are_taken_in_order_whatever_the_order_they_are_named_in() {
    check(
        "
        0 a grant core 1
        0 a grant core 1
        0 a grant core 1
        1 a renew #2 #0 #1 ttl=60s
        2 a release #2 #0 #1
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 1 on n1 to 3600
            0 a granted #2 core 1 on n1 to 3600
            1 a renewed #0 to 61, #1 to 61, #2 to 61
            2 a released #0 #1 #2
        "#]],
    );
}

#[test]
fn a_bad_report_is_refused_alone_and_the_renewal_stands() {
    check(
        "
        0 a grant core 2
        0 a grant core 2
        60 a renew #0(60s,30s,100) #1(61s,0s,0) ttl=1h
        70 a renew #0(11s,0s,0) ttl=1h
        80 a renew #0(20s,20s,40) ttl=1h
        ",
        expect![[r#"
            0 a granted #0 core 2 on n1 to 3600
            0 a granted #1 core 2 on n1 to 3600
            60 a renewed #0 to 3660 with report, #1 to 3660
            60   but #1: bad_activity
            70 a renewed #0 to 3670
            70   but #0: bad_activity
            80 a renewed #0 to 3680 with report
        "#]],
    );
}

#[test]
fn a_bad_report_does_not_keep_a_release() {
    check(
        "
        0 a grant core 2
        60 a release #0(60s,61s,0)
        ",
        expect![[r#"
            0 a granted #0 core 2 on n1 to 3600
            60 a released #0
            60   but #0: bad_activity
        "#]],
    );
}

#[test]
fn reports_on_their_own() {
    check(
        "
        0 a grant core 2
        0 a grant core 2
        60 a report #0(60s,60s,120) #1(60s,60s,121)
        61 a report #0(1s,0s,0,2s)
        61 a report #0(0s)
        62 a report #0
        62 a report #0 #1(62s)
        ",
        expect![[r#"
            0 a granted #0 core 2 on n1 to 3600
            0 a granted #1 core 2 on n1 to 3600
            60 a report on #0
            60   but #1: bad_activity
            61 refused: bad_activity
            61 refused: bad_activity
            62 refused: bad_activity
            62 a report on #1
            62   but #0: bad_activity
        "#]],
    );
}

#[test]
fn reports_cover_only_what_was_held_and_not_yet_reported() {
    check(
        "
        100 a grant core 1
        160 a report #0(61s)
        160 a report #0(60s)
        160 a report #0(1ns)
        170 a report #0(10s)
        180 op revoke #0 grace=60s
        190 a report #0(20s)
        200 a release #0(10s)
        ",
        expect![[r#"
            100 a granted #0 core 1 on n1 to 3700
            160 refused: bad_activity
            160 a report on #0
            160 refused: bad_activity
            170 a report on #0
            180 a revoked #0, grace 1m (operator)
            190 a report on #0
            200 a released #0 with report
        "#]],
    );
}
