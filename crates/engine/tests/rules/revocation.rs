//! Warning, grace, readiness, teardown (SEMANTICS 2 and 3).

use crate::support::check;
use expect_test::expect;

#[test]
fn ready_before_grace_ends_bills_to_the_moment_it_is_ready() {
    check(
        "
        0 a grant gpu 1
        100 op revoke #0 grace=60s
        130 a ready #0
        130 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn grace_ends_by_itself_however_late_it_is_noticed() {
    check(
        "
        0 a grant gpu 1
        100 op revoke #0 grace=60s
        500
        500 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn ready_at_the_instant_grace_ends_is_too_late() {
    check(
        "
        0 a grant gpu 1
        100 op revoke #0 grace=60s
        160 a ready #0
        ",
        expect![[""]],
    );
}

#[test]
fn grace_zero_is_legal() {
    check(
        "
        0 a grant gpu 1
        100 op revoke #0 grace=0s
        100
        100 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn grace_never_reaches_past_the_deadline() {
    check(
        "
        0 a grant gpu 1 ttl=120s
        100 op revoke #0 grace=60s
        100 show leases
        200
        200 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn the_holder_may_still_release_within_grace() {
    check(
        "
        0 a grant gpu 1
        100 op revoke #0 grace=60s
        110 a release #0
        110 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn grace_is_the_commands_then_the_pools_then_the_settings() {
    check(
        "
        0 op pool other grace=30s
        0 op node n3 pool=other core 10
        0 a grant core 1 node=n1
        0 a grant core 1 node=n3
        0 a grant core 1 node=n3
        100 op revoke #0 #1
        100 op revoke #2 grace=5s
        100 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn no_record_carries_two_tenants() {
    check(
        "
        0 a grant core 1
        0 b grant core 1
        0 a grant core 1
        100 op revoke #0 #1 #2 grace=0s
        100
        101 op confirm n1 #0 #1 #2
        ",
        expect![[""]],
    );
}

#[test]
fn a_restart_gives_grace_afresh_but_not_past_the_deadline() {
    check(
        "
        0 a grant gpu 1 ttl=1h
        0 a grant core 1 ttl=510s
        0 a grant core 1 ttl=300s
        100 op revoke #0 #1 #2 grace=60s
        500 op started
        500
        500 show leases
        520
        560
        ",
        expect![[""]],
    );
}
