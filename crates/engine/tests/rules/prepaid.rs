//! Prepaid credit (SEMANTICS 12): what is left of it, what it admits, and what happens at its end.

use crate::ceilings::PRICED;
use crate::support::check_on;
use expect_test::expect;

/// The codes of refusals that are reached here, and in `books/tests/ledger`.
pub(crate) const CODES: &[&str] = &[
    "top_up_exists",
    "bad_top_up",
    "credit_expired",
    "too_many_credits",
    "no_prepaid_account",
    "unknown_credit",
    "bad_prepaid_threshold",
    "prepaid_window_too_long",
    "prepaid_exhausted",
    "claim_needs_end",
    "claim_not_covered",
];

/// Runs a story in which the ledger is open.
#[track_caller]
fn check(story: &str, expected: expect_test::Expect) {
    check_on(&format!("{PRICED}\n    0 op ledger\n"), story, expected);
}

#[test]
fn admission_needs_what_is_available_and_a_renewal_what_it_adds() {
    check(
        "
        10 op topup a 100
        10 a grant core 1 ttl=60s
        10 show prepaid
        30 show prepaid
        30 a grant core 1 ttl=41s
        30 a grant core 1 ttl=40s
        30 a renew #0 ttl=41s
        40 a release #1
        40 show prepaid
        40 a renew #0 ttl=60s
        40 show prepaid
        ",
        expect![[r#"
            10 a credit 1 of 100.000000
            10 a granted #0 core 1 on n1 to 70
              a: enough, spent 0, reserved 60, balance 100, available 40; credit 1 has 100
              a: enough, spent 0, reserved 60, balance 100, available 40; credit 1 has 100
            30 a denied: prepaid enough, available 40, requested 41
            30 a granted #1 core 1 on n1 to 70
            30 refused: prepaid_exhausted
            40 a released #1, closed
              a: enough, spent 40, reserved 30, balance 60, available 30; credit 1 has 60
            40 a renewed #0 to 100
              a: enough, spent 40, reserved 60, balance 60, available 0; credit 1 has 60
        "#]],
    );
}

#[test]
fn states_change_with_commands_and_at_whole_minutes() {
    check(
        "
        0 op topup a 200
        0 op prepaid a low_below=50 window=30s
        0 a grant core 1 ttl=3600s
        0 a grant core 1 ttl=190s
        181 show prepaid
        190 op topup a 100 ref=more
        190 show prepaid
        400
        ",
        expect![[r#"
            0 a credit 1 of 200.000000
            0 a prepaid.policy_put
            0 a denied: prepaid enough, available 200, requested 3600
            0 a granted #0 core 1 on n1 to 190
            181 a prepaid enough -> pending at 20, alert since 180
              a: pending, spent 181, reserved 9, balance 19, available 10; credit 1 has 19
            190 a expired #0, closed
            190 a credit 2 of 100.000000
            190 a prepaid pending -> enough at 110, alert
              a: enough, spent 190, reserved 0, balance 110, available 110; credit 1 has 10; credit 2 has 100
        "#]],
    );
}

#[test]
fn draining_revokes_what_is_paid_and_blocks_what_is_new() {
    check(
        "
        0 op topup a 100
        0 op prepaid a depleted=drain grace=20s
        0 a grant core 1 ttl=50s
        0 b grant core 1 ttl=500s
        40 a renew #0 ttl=60s
        50 op adjusted a 60
        50 a grant core 1 ttl=1s
        50 show leases
        75 op topup a 500 ref=more
        75 a grant core 1 ttl=1s
        ",
        expect![[r#"
            0 a credit 1 of 100.000000
            0 a prepaid.policy_put
            0 a granted #0 core 1 on n1 to 50
            0 b granted #1 core 1 on n1 to 500
            40 a renewed #0 to 100
            50 a ledger.adjusted
            50 a prepaid enough -> depleted at -10, drain
            50 a revoked #0, grace 20s (budget)
            50 a denied: prepaid depleted, available -60, requested 1
              #0 revoking core 1 0..100 grace to 70
              #1 active core 1 0..500
            75 a teardown of #0, grace_ended, closed since 70
            75 a credit 2 of 500.000000
            75 a prepaid depleted -> enough at 470, alert
            75 a granted #2 core 1 on n1 to 76
        "#]],
    );
}

#[test]
fn downgrading_lowers_new_and_waiting_work() {
    check(
        "
        0 op topup a 150
        0 op prepaid a low_below=100 low=downgrade depleted=downgrade
        0 b grant core 100 ttl=3600s
        0 a submit core 1 ttl=60s
        0 op adjusted a 60
        0 b release #0
        0 show allocs
        1 a grant core 1 ttl=60s priority=guaranteed
        1 op adjusted a 500
        1 a grant core 1 ttl=60s priority=guaranteed
        ",
        expect![[r#"
            0 a credit 1 of 150.000000
            0 a prepaid.policy_put
            0 b granted #0 core 100 on n1 to 3600
            0 a @1 submitted
            0 a ledger.adjusted
            0 a prepaid enough -> low at 90, downgrade
            0 a @1 changed: scavenger
            0 b released #0, closed
            0 a @1 placed, attempt 1
            0 a granted #1 core 1 on n1 to 60 scavenger
              @1 running attempt 1, holds 1
            1 a granted #2 core 1 on n1 to 61 scavenger
            1 a ledger.adjusted
            1 a prepaid low -> depleted at -410.3, downgrade
            1 a granted #3 core 1 on n1 to 61 scavenger
        "#]],
    );
}

#[test]
fn credits_lapse_at_their_expiry_and_pay_in_order() {
    check(
        "
        0 op topup a 100 ref=paid
        0 op topup a 50 priority=0 expires=100 ref=gift
        0 a grant core 1 ttl=30s
        60 show prepaid
        99 show prepaid
        100 show prepaid
        120 op endcredit a 1
        120 show prepaid
        120 op endcredit a 1
        120 op delete project a/a
        ",
        expect![[r#"
            0 a credit 1 of 100.000000
            0 a credit 2 of 50.000000
            0 a granted #0 core 1 on n1 to 30
            60 a expired #0, closed since 30
              a: enough, spent 30, reserved 0, balance 120, available 120; credit 2 has 20; credit 1 has 100
              a: enough, spent 30, reserved 0, balance 120, available 120; credit 2 has 20; credit 1 has 100
            100 a credit 2 lapsed, 20.000000
              a: enough, spent 30, reserved 0, balance 100, available 100; credit 1 has 100
            120 a credit 1 lapsed, 100.000000
            120 a prepaid enough -> depleted at 0, block
              a: depleted, spent 30, reserved 0, balance 0, available 0
            120 refused: unknown_credit
            120 refused: project_has_balance
        "#]],
    );
}

#[test]
fn a_posting_takes_the_place_of_what_accrued() {
    check(
        "
        0 op topup a 10000
        0 a grant core 1 ttl=3500s
        3500
        3600 show prepaid
        3700 a grant core 1 ttl=100s
        3750 show prepaid
        3750 op posted a 3400 through=3600
        3750 show prepaid
        3760 op settled 3600
        3760 show prepaid
        ",
        expect![[r#"
            0 a credit 1 of 10000.000000
            0 a granted #0 core 1 on n1 to 3500
            3500 a expired #0, closed
              a: enough, spent 3500, reserved 0, balance 6500, available 6500; credit 1 has 6500
            3700 a granted #1 core 1 on n1 to 3800
              a: enough, spent 3500, reserved 100, balance 6500, available 6400; credit 1 has 6500
            3750 a ledger.posted
              a: enough, spent 3450, reserved 50, balance 6550, available 6500; credit 1 has 6550
            3760 - ledger.hour_settled since 3600
              a: enough, spent 3460, reserved 40, balance 6540, available 6500; credit 1 has 6540
        "#]],
    );
}

#[test]
fn the_tenants_account_is_for_projects_without_one() {
    check(
        "
        0 op topup a 100 tenant
        0 op topup a/other 10
        0 a/other grant core 1 ttl=11s
        0 a/other grant core 1 ttl=10s
        0 a grant core 1 ttl=100s
        5 show prepaid
        5 a grant core 1 ttl=1s
        ",
        expect![[r#"
            0 a credit 1 of 100.000000
            0 a credit 1 of 10.000000
            0 a denied: prepaid enough, available 10, requested 11
            0 a granted #0 core 1 on n1 to 10
            0 a granted #1 core 1 on n1 to 100
              tenant: enough, spent 0, reserved 100, balance 100, available 0; credit 1 has 100
              other: enough, spent 0, reserved 10, balance 10, available 0; credit 1 has 10
            5 a denied: prepaid of the tenant enough, available 0, requested 1
        "#]],
    );
}

#[test]
fn prices_that_change_change_what_is_reserved() {
    check(
        "
        0 op topup a 1000
        0 a grant core 1 ttl=100s
        0 show prepaid
        0 op card class.core=3 from=50
        0 show prepaid
        60 show prepaid
        100 show prepaid
        ",
        expect![[r#"
            0 a credit 1 of 1000.000000
            0 a granted #0 core 1 on n1 to 100
              a: enough, spent 0, reserved 100, balance 1000, available 900; credit 1 has 1000
            0 - card 1 from 50
              a: enough, spent 0, reserved 200, balance 1000, available 800; credit 1 has 1000
              a: enough, spent 0, reserved 200, balance 1000, available 800; credit 1 has 1000
            100 a expired #0, closed
              a: enough, spent 200, reserved 0, balance 800, available 800; credit 1 has 800
        "#]],
    );
}

#[test]
fn what_is_not_valid_is_refused() {
    check(
        "
        0 op prepaid a low_below=1
        0 op topup a 0
        0 op topup a -1
        0 op topup a 1 expires=0
        0 op topup a 1 ref=x
        0 op topup a 2 ref=x
        0 op endcredit a 7
        0 op prepaid a low_below=-1
        0 op prepaid a window=40000000s
        0 op prepaid a grace=40000000s
        ",
        expect![[r#"
            0 refused: no_prepaid_account
            0 refused: bad_top_up
            0 refused: bad_top_up
            0 refused: credit_expired
            0 a credit 1 of 1.000000
            0 refused: top_up_exists
            0 refused: unknown_credit
            0 refused: bad_prepaid_threshold
            0 refused: prepaid_window_too_long
            0 refused: grace_too_long
        "#]],
    );
}

/// Two cores of n2 as guaranteed are 3 a second. Credit of 200 has to cover a claim up to its end, and what runs on the
/// node costs nothing besides.
#[test]
fn a_claim_needs_an_end_that_credit_covers() {
    check(
        "
        0 op user a/ada
        0 op node n2 immediate core 2
        0 op topup a 200
        1 a claim n2 user=a/ada
        1 a claim n2 user=a/ada until=68
        1 a claim n2 user=a/ada until=31
        1 show prepaid
        2 a grant core 1 sensitive user=a/ada ttl=20s
        2 a grant core 1 ttl=111s node=n1
        2 a grant core 1 ttl=110s node=n1
        2 show prepaid
        60 show prepaid
        61 a giveback n2 user=a/ada
        62 show prepaid
        ",
        expect![[r#"
            0 a user.put
            0 - node.put
            0 a credit 1 of 200.000000
            1 refused: claim_needs_end
            1 refused: claim_not_covered
            1 a claimed n2
              a: enough, spent 0, reserved 90, balance 200, available 110; credit 1 has 200
            2 a granted #0 core 1 on n2 to 22
            2 a denied: prepaid enough, available 110, requested 111
            2 a granted #1 core 1 on n1 to 112
              a: enough, spent 3, reserved 197, balance 197, available 0; credit 1 has 197
            60 a expired #0, closed since 22
            60 a prepaid enough -> depleted at -35, block
              a: depleted, spent 235, reserved 52, balance -35, available -87
            61 a gave back n2
              a: depleted, spent 239, reserved 51, balance -39, available -90
        "#]],
    );
}

/// The account is depleted at 20: the lease on n1 is revoked, and nothing happens to the claim, or to what runs on the
/// claimed node. The claim may overrun its end, and no new one is made.
#[test]
fn draining_spares_claims_and_what_runs_on_them() {
    check(
        "
        0 op user a/ada
        0 op node n2 immediate core 2
        0 op node n3 immediate core 2
        0 op topup a 200
        0 op prepaid a depleted=drain grace=5s
        1 a claim n2 user=a/ada until=31
        2 a grant core 1 sensitive user=a/ada ttl=60s
        3 a grant core 1 ttl=100s node=n1
        20 op adjusted a 130
        20 show leases
        20 a claim n3 user=a/ada until=21
        20 a grant core 1 sensitive user=a/ada ttl=10s
        30
        40 show leases
        40 show prepaid
        41 a renew #0 ttl=60s
        50 a release #0
        50 a giveback n2 user=a/ada
        ",
        expect![[r#"
            0 a user.put
            0 - node.put
            0 - node.put
            0 a credit 1 of 200.000000
            0 a prepaid.policy_put
            1 a claimed n2
            2 a granted #0 core 1 on n2 to 62
            3 a granted #1 core 1 on n1 to 103
            20 a ledger.adjusted
            20 a prepaid enough -> depleted at -4, drain
            20 a revoked #1, grace 5s (budget)
              #0 active core 1 2..62
              #1 revoking core 1 3..103 grace to 25
            20 refused: claim_not_covered
            20 a granted #2 core 1 on n2 to 30
            30 a teardown of #1, grace_ended, closed since 25
            30 a expired #2, closed
              #0 active core 1 2..62
              a: depleted, spent 239, reserved 3, balance -39, available -42
            41 a renewed #0 to 101
            50 a released #0, closed
            50 a gave back n2
        "#]],
    );
}
