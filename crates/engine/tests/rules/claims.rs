//! What claims count in quotas, budgets and cost ceilings (SEMANTICS 11, "Claims").

use crate::support::{Story, check_on};
use expect_test::expect;
use leasehold_engine::Spending;
use leasehold_model::{Instant, TenantNo};

/// Three nodes with 10 cores each; users ada and bob of tenant a. A core costs 1 for a second, and 1.5 if guaranteed.
const STAGE: &str = "
    0 op class core kind=cpu per=1
    0 op pool main
    0 op node n1 core 10
    0 op node n2 core 10
    0 op node n3 immediate core 10
    0 op tenant a max=guaranteed
    0 op project a/a
    0 op user a/ada
    0 op user a/bob
    0 op card class.core=1
";

/// For `bad_input`: the codes of the refusals below.
pub(crate) const CODES: &[&str] =
    &["claim_until_past", "claim_needs_until", "claim_over_ceiling", "allocation_not_on_node"];

/// 10 of 25 are claimed, so that 15 are left for leases, whatever runs on the claimed node.
#[test]
fn a_claim_counts_the_whole_node_once() {
    check_on(
        STAGE,
        "
        0 op quota q a core hard=25
        1 a claim n1 user=a/ada
        2 a grant core 4 sensitive user=a/ada
        3 a grant core 10
        4 a grant core 6
        5 a grant core 5
        6 a claim n3 user=a/bob
        7 a giveback n1 user=a/ada
        8 a release #0
        9 op confirm n1 #0
        10 a giveback n1 user=a/ada
        11 a grant core 5 node=n3
        12 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 25
            1 a claimed n1
            2 a granted #0 core 4 on n1 to 3602
            3 a granted #1 core 10 on n2 to 3603
            4 a denied: q used 20, requested 6, limit 25
            5 a granted #2 core 5 on n3 to 3605
            6 refused: node_in_use
            7 refused: node_has_leases
            8 a released #0
            9 a torn down #0 on n1
            10 a gave back n1
            11 a granted #3 core 5 on n3 to 3611
              q used 20 of hard 25
        "#]],
    );
}

/// The fenced core of ada's own lease no longer counts, and counts again when the fence is cleared.
#[test]
fn fenced_capacity_of_a_claimed_node_does_not_count() {
    check_on(
        STAGE,
        "
        0 op quota q a core hard=12
        1 a claim n1 user=a/ada
        2 a grant core 1 sensitive user=a/ada
        3 a release #0
        4 a grant core 3
        125 op beat
        126 a grant core 3
        127 op unfence #0
        128 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 12
            1 a claimed n1
            2 a granted #0 core 1 on n1 to 3602
            3 a released #0
            4 a denied: q used 10, requested 3, limit 12
            125 a fenced #0 since 123
            125 - journal.heartbeat
            126 a granted #1 core 3 on n2 to 3726
            127 a unfenced #0
              q used 13 of hard 12
        "#]],
    );
}

/// Quotas on standard work do not count claims, those on guaranteed work do; a user's own quota counts their claims.
#[test]
fn claims_count_as_guaranteed_and_for_their_user() {
    check_on(
        STAGE,
        "
        0 op quota standard a core hard=9 prio=standard
        0 op quota guaranteed a core hard=10 prio=guaranteed
        1 a claim n1 user=a/ada
        2 a claim n2 user=a/bob
        3 a grant core 9
        4 a grant core 1 prio=guaranteed
        5 op quota mine a core hard=5 by-user=a/ada
        6 show quotas
        ",
        expect![[r#"
            0 a quota standard: hard 9
            0 a quota guaranteed: hard 10
            1 a claimed n1
            2 refused: claim_over_quota
            3 a granted #0 core 9 on n2 to 3603
            4 a denied: guaranteed used 10, requested 1, limit 10
            5 a quota mine: hard 5
              standard used 9 of hard 9
              guaranteed used 10 of hard 10
              mine used 10 of hard 5
        "#]],
    );
}

/// The claim of 10 fits the base of 12. Leases of 4 beside it are a burst; the claim alone is not, even when the base
/// drops below it.
#[test]
fn claims_never_start_or_prolong_a_burst() {
    check_on(
        STAGE,
        "
        0 op quota q a core burst=12..20/60s
        1 a claim n1 user=a/ada
        2 a claim n2 user=a/bob
        3 a grant core 4 ttl=600s
        63 op confirm n2 #0
        64 op quota q a core burst=5..20/60s no=0
        130 op beat
        131 a grant core 1 ttl=600s
        ",
        expect![[r#"
            0 a quota q: burst 12
            1 a claimed n1
            2 refused: claim_over_quota
            3 a granted #0 core 4 on n2 to 63, capped by q
            63 a expired #0
            63 a torn down #0 on n2
            64 a quota q: burst 5
            130 a burst of q ended since 123
            130 - journal.heartbeat
            131 a granted #1 core 1 on n2 to 191, capped by q
        "#]],
    );
}

/// 10 cores at the guaranteed price cost 15 a second: 1,500 for the 100 s from 3 on.
#[test]
fn a_claim_reserves_its_cost_up_to_its_expected_end() {
    check_on(
        STAGE,
        "
        0 op ceiling a hard=2700
        1 a claim n1 user=a/ada
        2 a claim n1 user=a/ada until=2
        3 a claim n1 user=a/ada until=200
        3 a claim n1 user=a/ada until=103
        4 show ceilings
        5 a grant core 10 sensitive user=a/ada ttl=50s
        6 a grant core 10 ttl=100s
        7 a grant core 10 ttl=200s
        61 show ceilings
        121 show ceilings
        122 op confirm n1 #0
        125 a giveback n1 user=a/ada
        125 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 2700 EUR
            1 refused: claim_needs_until
            2 refused: claim_until_past
            3 refused: claim_over_ceiling
            3 a claimed n1
              a: hard 2700, spent 0, reserved 1500
            5 a granted #0 core 10 on n1 to 55
            6 a granted #1 core 10 on n2 to 106
            7 a denied: ceiling 2700, spent 0, reserved 2500, requested 2000
            61 a expired #0 since 55
              a: hard 2700, spent 855, reserved 1645
            121 a expired #1 since 106
              a: hard 2700, spent 2755, reserved 0, exceeded
            122 a torn down #0 on n1
            125 a gave back n1
              a: hard 2700, spent 2830, reserved 0, exceeded
        "#]],
    );
}

/// Without an expected end a claim costs what has passed. It may cost more than the ceiling, but nothing else starts.
#[test]
fn a_claim_may_cost_more_than_a_ceiling_but_nothing_else_starts() {
    check_on(
        STAGE,
        "
        0 op ceiling a soft=1000
        1 a claim n1 user=a/ada
        2 op ceiling a hard=1000
        3 a grant core 1 ttl=10s
        61 a grant core 1 ttl=10s
        62 show ceilings
        90 op drain n1
        91 a grant core 1 ttl=10s
        121 show ceilings
        150 op resume n1
        180 op beat
        180 show ceilings
        ",
        expect![[r#"
            0 a ceiling soft 1000 EUR
            1 a claimed n1
            2 a ceiling hard 1000 EUR
            3 a granted #0 core 1 on n2 to 13
            61 a expired #0 since 13
            61 a granted #1 core 1 on n2 to 71
              a: hard 1000, spent 895, reserved 10
            90 a expired #1 since 71
            90 - drained n1
            91 a denied: ceiling 1000, spent 1355, reserved 0, requested 10
              a: hard 1000, spent 1355, reserved 0, exceeded
            150 - resumed n1
            180 - journal.heartbeat
              a: hard 1000, spent 1805, reserved 0, exceeded
        "#]],
    );
}

/// A claimed node with ten GPUs uses ten GPU hours in an hour, whatever runs on it, and nothing while it is drained.
#[test]
fn claims_use_up_budgets() {
    let mut story = Story::on(
        "
        0 op class gpu kind=gpu per=1
        0 op pool main
        0 op node n1 immediate gpu 10
        0 op tenant a
        0 op project a/a
        0 op user a/ada
        0 a claim n1 user=a/ada
        60 a grant gpu 10 sensitive user=a/ada ttl=600s
        3600 op drain n1
        7200 op beat
        ",
    );
    let used = |story: &Story, at: u64| {
        let used = story.world.state().spending(TenantNo(0), Instant::from_secs(at), 90).expect("the tenant exists");
        (used.gpu / Spending::HOUR, used.node / Spending::HOUR, used.all_gpu / Spending::HOUR)
    };
    assert_eq!(used(&story, 7200), (10, 1, 10));
    story.play("7200 op resume n1\n 10800 op beat");
    assert_eq!(used(&story, 10800), (20, 2, 20));
    // It was last seen an hour ago, and is not charged since.
    story.play("10800 op lose n1 seen=7200\n 14400 op beat");
    assert_eq!(used(&story, 14400), (10, 1, 10));
}

#[test]
fn only_agents_and_operators_report_a_failed_start() {
    check_on(
        STAGE,
        "
        0 op agent n1 instance=1
        0 op agent n2 instance=1
        1 a submit core 10 staged node=n1
        1 a submit core 10 staged
        2 op fail-start @1 node=n2 generation=1
        3 op fail-start @1 node=n1 generation=2
        4 op fail-start @1 node=n1 generation=1
        5 op fail-start @1
        6 a start @2
        7 op fail-start @2
        ",
        expect![[r#"
            0 - agent 1 on n1 as generation 1
            0 - agent 1 on n2 as generation 1
            1 a @1 submitted
            1 a @1 placed, attempt 1
            1 a granted #0 core 10 on n1 to 86401
            1 a @2 submitted
            1 a @2 placed, attempt 1
            1 a granted #1 core 10 on n2 to 86401
            2 refused: allocation_not_on_node
            3 refused: stale_generation
            4 a @1 failed: failed_start
            4 a released #0
            5 refused: allocation_over
            6 a @2 runs
            7 refused: allocation_not_staging
        "#]],
    );
}
