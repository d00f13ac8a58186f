//! Keys: what was sealed under one is answered again (SEMANTICS 4).

use crate::support::{STAGE, Story, check};
use expect_test::expect;

#[test]
fn the_same_request_is_answered_with_the_first_record() {
    check(
        "
        0 a grant core 1 key=k
        1 a grant core 1 key=k
        2 a release #0 key=r
        3 a release #0 key=r
        3 show leases
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            1 repeated: record 11
            2 a released #0
            3 repeated: record 12
              #0 releasing core 1 0..3600 ended 2, teardown to 122
        "#]],
    );
}

#[test]
fn denials_are_answered_again() {
    check(
        "
        0 a grant core 500 key=k
        1 op node n3 core 500
        1 a grant core 500 key=k
        1 a grant core 500 key=l
        ",
        expect![[r#"
            0 a denied: core requested 500, most free 200
            1 - node.put
            1 repeated: record 11
            1 a granted #0 core 500 on n3 to 3601
        "#]],
    );
}

#[test]
fn another_payload_under_the_same_key_is_a_mismatch() {
    check(
        "
        0 op project a/p
        0 op user a/u
        0 a grant core 1 key=k
        1 a grant core 2 key=k
        1 a grant core 1 key=k ttl=2h
        1 a/p grant core 1 key=k
        1 a grant core 1 key=k user=a/u
        1 a release #0 key=k
        ",
        expect![[r#"
            0 a project.put
            0 a user.put
            0 a granted #0 core 1 on n1 to 3600
            1 refused: idempotency_mismatch
            1 refused: idempotency_mismatch
            1 refused: idempotency_mismatch
            1 refused: idempotency_mismatch
            1 refused: idempotency_mismatch
        "#]],
    );
}

#[test]
fn an_invalid_request_claims_nothing() {
    check(
        "
        0 a grant core 1 ttl=0s key=k
        0 a grant x 1 key=k
        0 a release #0 key=k
        1 a grant core 1 key=k
        2 a grant core 1 key=k
        ",
        expect![[r#"
            0 refused: zero_ttl
            0 refused: unknown_class
            0 refused: lease_not_found
            1 a granted #0 core 1 on n1 to 3601
            2 repeated: record 11
        "#]],
    );
}

#[test]
fn keys_live_for_a_window_by_stamp() {
    check(
        "
        0 op settings window=1000s
        0 a grant core 1 key=k
        999.999999999 a grant core 1 key=k
        1000 a grant core 1 key=k
        1500 a grant core 1 key=k
        2000 a grant core 1 key=k
        ",
        expect![[r#"
            0 - settings.changed
            0 a granted #0 core 1 on n1 to 3600
            999.999999999 repeated: record 12
            1000 a granted #1 core 1 on n1 to 4600
            1500 repeated: record 13
            2000 a granted #2 core 1 on n1 to 5600
        "#]],
    );
}

#[test]
fn a_key_that_is_over_may_be_used_for_something_else() {
    check(
        "
        0 op settings window=1000s
        0 a grant core 1 key=k
        1000 a grant core 2 key=k
        1001 a grant core 1 key=k
        ",
        expect![[r#"
            0 - settings.changed
            0 a granted #0 core 1 on n1 to 3600
            1000 a granted #1 core 2 on n1 to 4600
            1001 refused: idempotency_mismatch
        "#]],
    );
}

/// The first key was over when it was used again, and not yet removed. A longer window brought it back, beside the
/// second one, and no snapshot could be restored.
#[test]
fn a_longer_window_does_not_bring_back_a_key_that_was_over() {
    // A record removes keys of one tenant; which one depends on how many records there were.
    for records in 0..3 {
        let mut story = Story::on(STAGE);
        let renewals = "1 b renew #1 ttl=1h\n".repeat(records);
        story.play(&format!(
            "
            0 op settings window=1000s
            0 a grant core 1 key=k
            0 b grant core 1 key=k
            {renewals}
            1000 a grant core 2 key=k
            1000 op settings window=5000s
            1001 a grant core 2 key=k
            1001 a grant core 1 key=k
            1002 b grant core 1
            "
        ));
        let told = story.text;
        assert!(told.contains("1001 repeated") && told.contains("1001 refused: idempotency_mismatch"), "{told}");
    }
}

/// Renewals, releases, readiness and activity are idempotent by nature (SEMANTICS 11).
#[test]
fn keys_of_idempotent_commands_are_checked_for_ten_minutes() {
    check(
        "
        0 op started
        0 a grant core 1 key=g
        1 a renew #0 ttl=2h key=r
        600.999999999 a renew #0 ttl=2h key=r
        601 a renew #0 ttl=2h key=r
        602 a release #0 key=e
        1201.999999999 a grant core 1 key=e
        1202 a grant core 1 key=e
        1203 a grant core 1 key=g
        ",
        expect![[r#"
            0 - journal.started
            0 a granted #0 core 1 on n1 to 3600
            1 a renewed #0 to 7201
            600.999999999 repeated: record 13
            601 a renewed #0 to 7801
            602 a released #0
            1201.999999999 a fenced #0 since 722
            1201.999999999 refused: idempotency_mismatch
            1202 a granted #1 core 1 on n2 to 4802
            1203 repeated: record 12
        "#]],
    );
}

#[test]
fn a_window_is_not_shorter_than_ten_minutes() {
    check(
        "
        0 op settings window=599s
        0 op settings window=600s
        ",
        expect![[r#"
            0 refused: setting_out_of_range
            0 - settings.changed
        "#]],
    );
}

#[test]
fn keys_belong_to_a_tenant_and_a_principal() {
    check(
        "
        0 op issue one role=operator
        0 op issue two role=operator
        0 a grant core 1 key=k token=0
        1 b grant core 1 key=k token=0
        2 a grant core 1 key=k token=1
        3 a grant core 1 key=k
        4 op beat key=k
        5 a grant core 1 key=k token=0
        6 b grant core 1 key=k token=0
        7 op beat key=k
        ",
        expect![[r#"
            0 - token-0 one issued to operator
            0 - token-1 two issued to operator
            0 a granted #0 core 1 on n1 to 3600
            1 b granted #1 core 1 on n1 to 3601
            2 a granted #2 core 1 on n1 to 3602
            3 a granted #3 core 1 on n1 to 3603
            4 - journal.heartbeat
            5 repeated: record 13
            6 repeated: record 14
            7 repeated: record 17
        "#]],
    );
}

#[test]
fn an_operators_key_stays_the_operators_on_a_tenants_lease() {
    check(
        "
        0 a grant core 1
        0 b grant core 1
        1 op revoke #0 #1 grace=1h key=k
        2 op revoke #0 #1 grace=1h key=k
        3 a release #0 key=k
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            0 b granted #1 core 1 on n1 to 3600
            1 a revoked #0, grace 1h (operator)
            1 b revoked #1, grace 1h (operator)
            2 repeated: record 13
            3 a released #0
        "#]],
    );
}

#[test]
fn a_partial_refusal_is_sealed_and_repeated() {
    check(
        "
        0 a grant core 1
        1 a release #0 #7 key=k
        2 a release #0 #7 key=k
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            1 a released #0
            1   but #7: lease_not_found
            2 repeated: record 12
        "#]],
    );
}

#[test]
fn keys_survive_a_restart() {
    check(
        "
        0 a grant core 1 key=k
        10 op started
        11 a grant core 1 key=k
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            10 - journal.started
            11 repeated: record 11
        "#]],
    );
}
