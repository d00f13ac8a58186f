//! Cost ceilings (SEMANTICS 4): money is kept back at the grant, spent at the end, and what was not used returns.

use crate::support::{Story, check_on, with_instances};
use expect_test::expect;
use leasehold_model::limits::CEILINGS_PER_TENANT_MAX;

/// A core costs one a second: figures read as seconds.
pub(crate) const PRICED: &str = "
    0 op class core kind=cpu per=1
    0 op pool main
    0 op node n1 immediate core 100
    0 op tenant a max=guaranteed
    0 op tenant b
    0 op project a/a
    0 op project a/other
    0 op project b/b
    0 op card class.core=1
";

#[test]
fn a_grant_keeps_back_what_it_may_cost_and_the_end_settles_it() {
    check_on(
        PRICED,
        "
        10 op ceiling a hard=1000
        10 a grant core 2 ttl=300s
        10 a grant core 1 ttl=500s
        10 a grant core 1 ttl=400s
        10 show ceilings
        110 a release #0
        110 show ceilings
        110 a grant core 1 ttl=401s
        110 a grant core 1 ttl=400s
        600 show ceilings
        ",
        expect![[r#"
            10 a ceiling hard 1000 EUR
            10 a granted #0 core 2 on n1 to 310
            10 a denied: ceiling 1000, spent 0, reserved 600, requested 500
            10 a granted #1 core 1 on n1 to 410
              a: hard 1000, spent 0, reserved 1000
            110 a released #0, closed
              a: hard 1000, spent 200, reserved 400
            110 a denied: ceiling 1000, spent 200, reserved 400, requested 401
            110 a granted #2 core 1 on n1 to 510
            600 a expired #1, closed since 410
            600 a expired #2, closed since 510
              a: hard 1000, spent 1000, reserved 0
        "#]],
    );
}

#[test]
fn a_renewal_keeps_back_the_extension_or_is_refused() {
    check_on(
        PRICED,
        "
        0 op ceiling a hard=100
        0 a grant core 1 ttl=60s
        30 a renew #0 ttl=71s
        30 a renew #0 ttl=70s
        30 show ceilings
        40 a renew #0 ttl=5s
        40 show ceilings
        41 a grant core 1 ttl=50s
        41 show ceilings
        42 a renew #0 ttl=9s
        ",
        expect![[r#"
            0 a ceiling hard 100 EUR
            0 a granted #0 core 1 on n1 to 60
            30 refused: ceiling_exceeded
            30 a renewed #0 to 100
              a: hard 100, spent 0, reserved 100
            40 a renewed #0 to 45
              a: hard 100, spent 0, reserved 45
            41 a granted #1 core 1 on n1 to 91
              a: hard 100, spent 0, reserved 95
            42 refused: ceiling_exceeded
        "#]],
    );
}

/// Each finds what those before it leave.
#[test]
fn renewals_of_one_command_share_what_is_left() {
    check_on(
        PRICED,
        "
        0 op ceiling a hard=100
        0 a grant core 1 ttl=30s
        0 a grant core 1 ttl=30s
        0 a grant core 1 ttl=30s
        0 a renew #0 #1 #2 ttl=35s
        0 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 100 EUR
            0 a granted #0 core 1 on n1 to 30
            0 a granted #1 core 1 on n1 to 30
            0 a granted #2 core 1 on n1 to 30
            0 a renewed #0 to 35, #1 to 35
            0   but #2: ceiling_exceeded
              a: hard 100, spent 0, reserved 100
        "#]],
    );
}

#[test]
fn an_app_instance_has_its_own_beneath_the_projects() {
    check_on(
        &format!("{PRICED}{}", with_instances(2)),
        "
        0 op ceiling a hard=100
        0 op ceiling a hard=50 app=0
        0 a grant core 1 ttl=60s app=0
        0 a grant core 1 ttl=40s app=0
        0 a grant core 1 ttl=40s app=1
        0 a grant core 1 ttl=30s
        0 a grant core 1 ttl=20s app=0
        0 a/other grant core 1 ttl=90s app=0
        0 b grant core 1 ttl=90s app=0
        0 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 100 EUR
            0 a ceiling of app-0 hard 50 EUR
            0 a denied: ceiling of app-0 50, spent 0, reserved 0, requested 60
            0 a granted #0 core 1 on n1 to 40
            0 a granted #1 core 1 on n1 to 40
            0 a denied: ceiling 100, spent 0, reserved 80, requested 30
            0 a denied: ceiling of app-0 50, spent 0, reserved 40, requested 20
            0 refused: app_of_other_project
            0 refused: unknown_app_instance
              a: hard 100, spent 0, reserved 80
              a of app-0: hard 50, spent 0, reserved 40
        "#]],
    );
}

#[test]
fn a_soft_one_watches_and_refuses_nothing() {
    check_on(
        PRICED,
        "
        0 op ceiling a soft=100
        0 a grant core 2 ttl=100s
        0 show ceilings
        50 a release #0
        50 show ceilings
        60 op ceiling a hard=100
        60 a grant core 1 ttl=1s
        ",
        expect![[r#"
            0 a ceiling soft 100 EUR
            0 a granted #0 core 2 on n1 to 100
              a: soft 100, spent 0, reserved 200, exceeded
            50 a released #0, closed
              a: soft 100, spent 100, reserved 0
            60 a ceiling hard 100 EUR
            60 a denied: ceiling 100, spent 100, reserved 0, requested 1
        "#]],
    );
}

/// It counts from the moment it is set: what is held already counts from there on.
#[test]
fn put_again_it_keeps_what_was_spent_and_deleted_it_forgets() {
    check_on(
        PRICED,
        "
        0 a grant core 1 ttl=100s
        40 op ceiling a hard=30
        40 show ceilings
        40 a grant core 1 ttl=1s
        50 a release #0
        50 show ceilings
        50 op ceiling a hard=12
        50 a grant core 1 ttl=3s
        50 a grant core 1 ttl=2s
        60 op uncap a
        60 op uncap a
        60 op ceiling a hard=12
        60 show ceilings
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 100
            40 a ceiling hard 30 EUR
              a: hard 30, spent 0, reserved 60, exceeded
            40 a denied: ceiling 30, spent 0, reserved 60, requested 1
            50 a released #0, closed
              a: hard 30, spent 10, reserved 0
            50 a ceiling hard 12 EUR
            50 a denied: ceiling 12, spent 10, reserved 0, requested 3
            50 a granted #1 core 1 on n1 to 52
            60 a expired #1, closed since 52
            60 a ceiling gone
            60 refused: unknown_ceiling
            60 a ceiling hard 12 EUR
              a: hard 12, spent 0, reserved 0
        "#]],
    );
}

/// However a lease ends, it is charged up to its end and the rest returns.
#[test]
fn every_way_to_end_gives_the_rest_back() {
    check_on(
        "
        0 op class core kind=cpu per=1
        0 op pool main grace=10s
        0 op node n1 core 100
        0 op node n2 immediate core 100
        0 op tenant a
        0 op project a/a
        0 op card class.core=1
        0 op settings teardown=60s
        ",
        "
        0 op ceiling a hard=1000
        0 a grant core 1 ttl=100s node=n1
        0 a grant core 1 ttl=100s node=n1
        0 a grant core 1 ttl=100s node=n2
        0 a grant core 1 ttl=100s node=n1
        20 op revoke #0
        25 a ready #0
        30 op revoke #2
        50 op lose n1 seen=45
        50 show ceilings
        200 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 1000 EUR
            0 a granted #0 core 1 on n1 to 100
            0 a granted #1 core 1 on n1 to 100
            0 a granted #2 core 1 on n2 to 100
            0 a granted #3 core 1 on n1 to 100
            20 a revoked #0, grace 10s (operator)
            25 a teardown of #0, ready
            30 a revoked #2, grace 10s (operator)
            50 a teardown of #2, grace_ended, closed since 40
            50 - lost n1, last seen 45
            50 a revoked #1, grace 0s (node_lost)
            50 a teardown of #1, grace_ended (node_lost) since 45
            50 a revoked #3, grace 0s (node_lost)
            50 a teardown of #3, grace_ended (node_lost) since 45
              a: hard 1000, spent 155, reserved 0
            200 a fenced #0 since 85
            200 a fenced #1 since 110
            200 a fenced #3 since 110
              a: hard 1000, spent 155, reserved 0
        "#]],
    );
}

/// The cards known for that time are what counts: a dearer one that waits is kept back for, and one that comes
/// meanwhile is paid for.
#[test]
fn the_cards_that_are_known_price_the_time_to_come() {
    check_on(
        PRICED,
        "
        0 op card class.core=3 from=100
        0 op ceiling a hard=250
        50 a grant core 1 ttl=100s
        50 show ceilings
        60 op card class.core=10 from=120
        60 show ceilings
        130 a renew #0 ttl=21s
        130 a renew #0 ttl=10s
        130 show ceilings
        140 show ceilings
        ",
        expect![[r#"
            0 - card 1 from 100
            0 a ceiling hard 250 EUR
            50 a granted #0 core 1 on n1 to 150
              a: hard 250, spent 0, reserved 200
            60 - card 2 from 120
              a: hard 250, spent 0, reserved 200
            130 refused: ceiling_exceeded
            130 a renewed #0 to 140
              a: hard 250, spent 0, reserved 310, exceeded
            140 a expired #0, closed
              a: hard 250, spent 310, reserved 0, exceeded
        "#]],
    );
}

/// Where several pools may be meant, the dearest must be paid for; a pool that is named is priced by itself.
#[test]
fn who_may_go_anywhere_must_be_able_to_pay_anywhere() {
    check_on(
        PRICED,
        "
        0 op pool gold
        0 op pool empty
        0 op card class.core=5 pool=gold
        0 op card class.core=50 pool=empty
        0 op node g1 immediate core 10 pool=gold
        0 op ceiling a hard=100
        0 a grant core 1 ttl=30s
        0 a grant core 1 ttl=30s pool=main
        0 a grant core 1 ttl=14s pool=gold
        0 show ceilings
        ",
        expect![[r#"
            0 - pool.put
            0 - pool.put
            0 - card 1 of gold from 0
            0 - card 2 of empty from 0
            0 - node.put
            0 a ceiling hard 100 EUR
            0 a denied: ceiling 100, spent 0, reserved 0, requested 150
            0 a granted #0 core 1 on n1 to 30
            0 a granted #1 core 1 on g1 to 14
              a: hard 100, spent 0, reserved 100
        "#]],
    );
}

/// What is priced in another currency is not counted.
#[test]
fn a_ceiling_is_in_one_currency() {
    check_on(
        PRICED,
        "
        0 op pool alps
        0 op card class.core=1 pool=alps currency=CHF
        0 op node g1 immediate core 10 pool=alps
        0 op ceiling a hard=10
        0 a grant core 1 ttl=60s pool=alps
        0 a grant core 1 ttl=60s pool=main
        0 op ceiling a hard=10 currency=CHF
        0 show ceilings
        ",
        expect![[r#"
            0 - pool.put
            0 - card 1 of alps from 0
            0 - node.put
            0 a ceiling hard 10 EUR
            0 a granted #0 core 1 on g1 to 60
            0 a denied: ceiling 10, spent 0, reserved 0, requested 60
            0 refused: currency_fixed
              a: hard 10, spent 0, reserved 0
        "#]],
    );
}

#[test]
fn a_gang_waits_for_money_that_will_return_and_is_denied_where_none_can() {
    check_on(
        PRICED,
        "
        0 op ceiling a hard=1000
        0 a submit core 5 wall=100s
        0 a submit core 3 x=2 wall=100s
        0 a submit core 11 wall=100s
        0 show waits
        10 a complete @1
        10 show ceilings
        10 show waits
        20 a submit core 5 wall=100s
        20 show waits
        21 op ceiling a hard=2000
        21
        21 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 1000 EUR
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 core 5 on n1 to 100
            0 a @2 submitted, 2 replicas
            0 a denied: ceiling 1000, spent 0, reserved 500, requested 1100
              @2 place 1: money: spent 0, reserved 500, requested 600 of 1000
            10 a @1 completed
            10 a released #0, closed
            10 a @2 placed, attempt 1
            10 a granted #1 core 3 on n1 to 110
            10 a granted #2 core 3 on n1 to 110
              a: hard 1000, spent 50, reserved 600
            20 a @3 submitted
              @3 place 1: money: spent 50, reserved 600, requested 500 of 1000
            21 a ceiling hard 2000 EUR
            21 a @3 placed, attempt 1
            21 a granted #3 core 5 on n1 to 121
              a: hard 2000, spent 50, reserved 1100
        "#]],
    );
}

/// One that waits for money holds up nobody.
#[test]
fn who_lacks_money_is_no_head_of_the_queue() {
    check_on(
        PRICED,
        "
        0 op ceiling a hard=10000
        0 a submit core 90 wall=100s
        1 a submit core 60 wall=100s
        2 b submit core 20 wall=500s
        3 b submit core 10 wall=500s
        3 show waits
        ",
        expect![[r#"
            0 a ceiling hard 10000 EUR
            0 a @1 submitted
            0 a @1 placed, attempt 1
            0 a granted #0 core 90 on n1 to 100
            1 a @2 submitted
            2 b @3 submitted
            3 b @4 submitted
              @2 place 1: money: spent 0, reserved 9000, requested 6000 of 10000
              @3 place 2: 10 core short, 0 would fit, starts by 100
              @4 place 3: behind @3, which starts by 100
        "#]],
    );
}

/// Victims fall only for one that could pay.
#[test]
fn nobody_is_evicted_for_one_that_cannot_pay() {
    check_on(
        PRICED,
        "
        0 op pool main grace=0s
        0 op ceiling a hard=1000
        0 b grant core 100 ttl=1000s prio=scavenger
        1 a grant core 50 ttl=100s prio=guaranteed
        1 a grant core 5 ttl=100s prio=guaranteed
        2 show ceilings
        ",
        expect![[r#"
            0 - pool.put
            0 a ceiling hard 1000 EUR
            0 b granted #0 core 100 on n1 to 1000 scavenger
            1 a denied: ceiling 1000, spent 0, reserved 0, requested 7500
            1 a @1 submitted
            2 - evicts #0 for @1 on n1
            2 b revoked #0, grace 0s (preempted)
            2 b teardown of #0, grace_ended, closed
            2 a @1 placed, attempt 1
            2 a granted #1 core 5 on n1 to 102 guaranteed
              a: hard 1000, spent 0, reserved 750
        "#]],
    );
}

/// Prices fall at 600: from the minute on in which that makes it cheap enough, it runs.
#[test]
fn time_alone_may_make_it_cheap_enough() {
    check_on(
        PRICED,
        "
        0 op card class.core=0.1 from=600
        0 op ceiling a hard=130
        0 a grant core 1 ttl=100s
        0 a submit core 1 wall=100s
        0 show waits
        100 show waits
        510 show waits
        590
        605
        ",
        expect![[r#"
            0 - card 1 from 600
            0 a ceiling hard 130 EUR
            0 a granted #0 core 1 on n1 to 100
            0 a @1 submitted
              @1 place 1: money: spent 0, reserved 100, requested 100 of 130
            100 a expired #0, closed
              @1 place 1: money: spent 100, reserved 0, requested 100 of 130
              @1 place 1: money: spent 100, reserved 0, requested 100 of 130
            605 a @1 placed, attempt 1
            605 a granted #1 core 1 on n1 to 705
        "#]],
    );
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    check_on(
        PRICED,
        "
        0 op ceiling a hard=0
        0 op ceiling a hard=1000000000000000.000000001
        0 op ceiling a hard=1000000000000000
        0 op ceiling nowhere hard=1
        0 b ceiling a hard=1
        0 b uncap a
        0 a ceiling a hard=5
        0 op uncap a app=3
        0 op uncap b
        0 op delete project a/other
        0 op ceiling a/other hard=1
        0 show ceilings
        0 op delete project a/a
        0 show ceilings
        0 op ceiling b hard=1
        0 op delete tenant b
        0 show ceilings
        ",
        expect![[r#"
            0 refused: bad_ceiling
            0 refused: bad_ceiling
            0 a ceiling hard 1000000000000000 EUR
            0 refused: unknown_project
            0 refused: unknown_project
            0 refused: unknown_project
            0 a ceiling hard 5 EUR
            0 refused: unknown_ceiling
            0 refused: unknown_ceiling
            0 a project.deleted
            0 refused: unknown_project
              a: hard 5, spent 0, reserved 0
            0 a project.deleted
            0 b ceiling hard 1 EUR
            0 tenant-1 tenant.deleted
        "#]],
    );
}

#[test]
fn a_tenant_has_so_many_and_no_more() {
    let mut story = Story::on(&format!("{PRICED}{}", with_instances(1000)));
    for app in 0..CEILINGS_PER_TENANT_MAX {
        story.line(&format!("0 op ceiling a hard=1 app={app}"));
    }
    story.text.clear();
    story.play(
        "
        0 op ceiling a hard=1
        0 op ceiling a/other hard=1 app=1
        0 op ceiling a soft=2 app=0
        0 op ceiling b hard=1
        0 op uncap a app=1
        0 op ceiling a hard=1
        ",
    );
    expect![[r#"
        0 refused: too_many_ceilings
        0 refused: too_many_ceilings
        0 a ceiling of app-0 soft 2 EUR
        0 b ceiling hard 1 EUR
        0 a ceiling of app-1 gone
        0 a ceiling hard 1 EUR
    "#]]
    .assert_eq(&story.text);
}

/// A day at the highest prices is above every ceiling, and nothing overflows.
#[test]
fn prices_beyond_measure_are_refused_not_wrapped() {
    check_on(
        PRICED,
        "
        0 op node n9 immediate core 281474976710656
        1 op card class.core=1000000
        1 op ceiling a soft=1000000000000000
        1 a grant core 281474976710000 ttl=24h
        1 show ceilings
        2 op ceiling a hard=1000000000000000
        2 a grant core 1 ttl=1s
        3 a release #0
        3 show ceilings
        ",
        expect![[r#"
            0 - node.put
            1 - card 1 from 1
            1 a ceiling soft 1000000000000000 EUR
            1 a granted #0 core 281474976710000 on n9 to 86401
              a: soft 1000000000000000, spent 0, reserved 309485009821345068.724781056, exceeded
            2 a ceiling hard 1000000000000000 EUR
            2 a denied: ceiling 1000000000000000, spent 0, reserved 309485009821345068.724781056, requested 1000000
            3 a released #0, closed
              a: hard 1000000000000000, spent 309485009821345068.724781056, reserved 0, exceeded
        "#]],
    );
}
