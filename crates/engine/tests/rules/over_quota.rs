//! Allocations that wait for quota headroom, and how much a soft quota was exceeded for how long (SEMANTICS 11).

use crate::support::{STAGE, Story, check};
use expect_test::expect;
use leasehold_model::{Instant, QuotaNo};

#[test]
fn an_allocation_over_quota_waits_if_it_says_so() {
    check(
        "
        0 op quota q a core hard=10
        0 a grant core 8 ttl=100s node=n2
        1 a submit core 4
        2 a submit core 4 over=wait
        3 a submit core 4 over=refuse
        4 a submit core 11 over=wait
        5 a submit core 6 x=2 over=wait
        101 show allocs
        ",
        expect![[r#"
            0 a quota q: hard 10
            0 a granted #0 core 8 on n2 to 100
            1 a denied: q used 8, requested 4, limit 10
            2 a @1 submitted
            3 a denied: q used 8, requested 4, limit 10
            4 a denied: q used 8, requested 11, limit 10
            5 a denied: q used 8, requested 12, limit 10
            101 a expired #0, closed since 100
            101 a @1 placed, attempt 1
            101 a granted #1 core 4 on n1 to 86501
              @1 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn the_tenant_has_a_default() {
    check(
        "
        0 op quota q a core hard=10
        0 a grant core 8 ttl=100s node=n2
        0 op update a over=wait
        1 a submit core 4
        2 a submit core 4 over=refuse
        3 op update a over=-
        4 a submit core 4
        ",
        expect![[r#"
            0 a quota q: hard 10
            0 a granted #0 core 8 on n2 to 100
            0 a tenant.put
            1 a @1 submitted
            2 a denied: q used 8, requested 4, limit 10
            3 a tenant.put
            4 a denied: q used 8, requested 4, limit 10
        "#]],
    );
}

/// A temporary limit does not count: it ends.
#[test]
fn what_exceeds_the_base_limit_alone_is_refused_also_under_a_temporary_limit() {
    check(
        "
        0 op quota q a core hard=10
        0 op quota q hard=30 until=1000
        0 a grant core 25 node=n2
        1 a submit core 11 over=wait
        2 a submit core 10 over=wait
        ",
        expect![[r#"
            0 a quota q: hard 10
            0 a quota q: hard 10, hard 30 until 1000
            0 a granted #0 core 25 on n2 to 3600
            1 a denied: q used 25, requested 11, limit 30
            2 a @1 submitted
        "#]],
    );
}

fn overage(story: &str, at: u64) -> u128 {
    let mut told = Story::on(STAGE);
    told.play("0 op started");
    told.play(story);
    let quota = told.world.state().quota(QuotaNo(0)).expect("the quota");
    quota.overage(Instant::from_secs(at)).expect("a soft quota").0 / 1_000_000_000
}

#[test]
fn overage_is_what_was_beyond_the_limit_times_how_long() {
    let story = "
        0 op quota q a core soft=10
        10 a grant core 14 node=n2
        20 a grant core 1 node=n2
        30 a release #0
        ";
    assert_eq!(overage(story, 30), 4 * 10 + 5 * 10);
    assert_eq!(overage(story, 1000), 4 * 10 + 5 * 10);
    assert_eq!(overage("0 op quota q a core soft=10\n10 a grant core 14 node=n2", 1000), 4 * 990);
}

/// A temporary limit counts up to its end, also if the record of the end comes late.
#[test]
fn overage_follows_the_limit() {
    let story = "
        0 op quota q a core soft=10
        0 op quota q soft=20 until=100
        0 a grant core 25 node=n2 ttl=1000s
        ";
    assert_eq!(overage(story, 100), 5 * 100);
    assert_eq!(overage(story, 150), 5 * 100 + 15 * 50);
    assert_eq!(overage(&format!("{story}\n150 a grant core 1 node=n2"), 150), 5 * 100 + 15 * 50);
    assert_eq!(overage(&format!("{story}\n50 op quota q hard=30"), 150), 5 * 50);
}
