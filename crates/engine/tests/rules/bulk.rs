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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
    );
}

#[test]
fn a_bad_report_does_not_keep_a_release() {
    check(
        "
        0 a grant core 2
        60 a release #0(60s,61s,0)
        ",
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
    );
}
