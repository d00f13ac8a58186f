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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 3600
            100 a revoked #0, grace 1m (operator)
            130 a teardown of #0, ready
              #0 tearing_down gpu 7 0..3600 ended 130, teardown to 250
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 3600
            100 a revoked #0, grace 1m (operator)
            500 a teardown of #0, grace_ended since 160
              #0 tearing_down gpu 7 0..3600 ended 160, teardown to 620
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 3600
            100 a revoked #0, grace 1m (operator)
            160 a teardown of #0, grace_ended
            160 refused: lease_revoked
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 3600
            100 a revoked #0, grace 0s (operator)
            100 a teardown of #0, grace_ended
              #0 tearing_down gpu 7 0..3600 ended 100, teardown to 220
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 120
            100 a revoked #0, grace 1m (operator)
              #0 revoking gpu 7 0..120 grace to 120
            200 a teardown of #0, grace_ended since 120
              #0 tearing_down gpu 7 0..120 ended 120, teardown to 320
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 3600
            100 a revoked #0, grace 1m (operator)
            110 a released #0
              #0 releasing gpu 7 0..3600 ended 110, teardown to 230
        "#]],
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
        expect![[r#"
            0 - pool.put
            0 - node.put
            0 a granted #0 core 1 on n1 to 3600
            0 a granted #1 core 1 on n3 to 3600
            0 a granted #2 core 1 on n3 to 3600
            100 a revoked #0, grace 1m (operator)
            100 a revoked #1, grace 30s (operator)
            100 a revoked #2, grace 5s (operator)
              #0 revoking core 1 0..3600 grace to 160
              #1 revoking core 1 0..3600 grace to 130
              #2 revoking core 1 0..3600 grace to 105
        "#]],
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
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 b granted #1 core 1 on n1 to 3600
            0 a granted #2 core 1 on n1 to 3600
            100 a revoked #0, grace 0s (operator)
            100 a revoked #2, grace 0s (operator)
            100 b revoked #1, grace 0s (operator)
            100 a teardown of #0, grace_ended
            100 b teardown of #1, grace_ended
            100 a teardown of #2, grace_ended
            101 a torn down #0 on n1
            101 a torn down #2 on n1
            101 b torn down #1 on n1
        "#]],
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
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 3600
            0 a granted #1 core 1 on n1 to 510
            0 a granted #2 core 1 on n1 to 300
            100 a revoked #0, grace 1m (operator)
            100 a revoked #1, grace 1m (operator)
            100 a revoked #2, grace 1m (operator)
            500 - journal.started
            500 a teardown of #2, grace_ended since 300
              #0 revoking gpu 7 0..3600 grace to 560
              #1 revoking core 1 0..510 grace to 510
              #2 tearing_down core 1 0..300 ended 300, teardown to 620
            520 a teardown of #1, grace_ended since 510
            560 a teardown of #0, grace_ended
        "#]],
    );
}
