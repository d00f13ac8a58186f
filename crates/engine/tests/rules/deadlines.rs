//! Deadlines, renewals and how long anything may live (SEMANTICS 2).

use crate::support::check;
use expect_test::expect;

#[test]
fn an_expiry_takes_effect_at_the_deadline_however_late_it_is_noticed() {
    check(
        "
        0 a grant gpu 1 ttl=60s
        500
        500 show leases
        ",
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 60
            500 a expired #0 since 60
              #0 expired gpu 7 0..60 ended 60, teardown to 620
        "#]],
    );
}

#[test]
fn also_after_a_restart() {
    check(
        "
        0 a grant gpu 1 ttl=60s
        0 a grant core 5 node=n2 ttl=90s
        500 op started
        500
        500 show leases
        ",
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 60
            0 a granted #1 core 5 on n2 to 90
            500 - journal.started
            500 a expired #0 since 60
            500 a expired #1, closed since 90
              #0 expired gpu 7 0..60 ended 60, teardown to 620
        "#]],
    );
}

#[test]
fn a_lease_released_after_its_deadline_ended_at_its_deadline() {
    check(
        "
        0 a grant gpu 1 ttl=60s
        61 a release #0
        61 show leases
        ",
        expect![[r#"
            0 a granted #0 gpu 7[0] on n1 to 60
            61 a expired #0 since 60
            61 refused: lease_expired
              #0 expired gpu 7 0..60 ended 60, teardown to 181
        "#]],
    );
}

#[test]
fn renewing_at_or_after_the_deadline_is_refused() {
    check(
        "
        0 a grant core 1 ttl=60s
        0 a grant core 1 ttl=60s
        59.999999999 a renew #0 ttl=60s
        60 a renew #1 ttl=60s
        119.999999999 a renew #0 ttl=60s
        300 a renew #0 ttl=60s
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 60
            0 a granted #1 core 1 on n1 to 60
            59.999999999 a renewed #0 to 119.999999999
            60 a expired #1
            60 refused: lease_expired
            119.999999999 a expired #0
            119.999999999 refused: lease_expired
            300 a fenced #1 since 180
            300 a fenced #0 since 239.999999999
            300 refused: lease_fenced
        "#]],
    );
}

#[test]
fn a_renewal_replaces_the_deadline_and_may_shorten_it() {
    check(
        "
        0 a grant core 1 ttl=1h
        10 a renew #0 ttl=30s
        20 a renew #0 ttl=30s
        21 a renew #0 ttl=1ns
        21 show leases
        22
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            10 a renewed #0 to 40
            20 a renewed #0 to 50
            21 a renewed #0 to 21.000000001
              #0 active core 1 0..21.000000001
            22 a expired #0 since 21.000000001
        "#]],
    );
}

#[test]
fn a_deadline_moved_back_and_forth_comes_due_once() {
    check(
        "
        0 a grant core 1 ttl=100s
        10 a renew #0 ttl=20s
        20 a renew #0 ttl=80s
        30
        99
        200
        200 show leases
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 100
            10 a renewed #0 to 30
            20 a renewed #0 to 100
            200 a expired #0 since 100
              #0 expired core 1 0..100 ended 100, teardown to 320
        "#]],
    );
}

#[test]
fn a_renewal_does_not_test_capacity_quotas_again() {
    check(
        "
        0 op quota q a core hard=10
        0 a grant core 10
        10 op quota q hard=5
        20 a renew #0 ttl=2h
        20 a grant core 1
        ",
        expect![[r#"
            0 a quota q: hard 10
            0 a granted #0 core 10 on n1 to 3600
            10 a quota q: hard 5
            20 a renewed #0 to 7220
            20 a denied: q used 10, requested 1, limit 5
        "#]],
    );
}

#[test]
fn renewals_stop_at_the_pools_lifetime() {
    check(
        "
        0 op pool main lifetime=100s lifetime.guaranteed=200s
        0 op tenant a max=guaranteed
        0 a grant core 1 ttl=60s
        0 a grant core 1 ttl=60s prio=guaranteed
        50 a renew #0 #1 ttl=80s
        60 a renew #0 #1 ttl=80s
        70 a renew #0 ttl=20s
        100
        ",
        expect![[r#"
            0 - pool.put
            0 a tenant.put
            0 a granted #0 core 1 on n1 to 60
            0 a granted #1 core 1 on n1 to 60 guaranteed
            50 a renewed #0 to 100, #1 to 130
            60 a renewed #1 to 140
            60   but #0: lifetime_reached
            70 a renewed #0 to 90
            100 a expired #0 since 90
        "#]],
    );
}

#[test]
fn a_grant_cannot_be_longer_than_the_lifetime() {
    check(
        "
        0 op pool main lifetime=100s
        0 a grant core 1 ttl=10m
        ",
        expect![[r#"
            0 - pool.put
            0 refused: ttl_too_long
        "#]],
    );
}

#[test]
fn a_lifetime_cut_below_age_stops_renewals_and_ends_nothing() {
    check(
        "
        0 a grant core 1 ttl=1h
        100 op pool main lifetime=50s
        110 a renew #0 ttl=2h
        110 show leases
        ",
        expect![[r#"
            0 a granted #0 core 1 on n1 to 3600
            100 - pool.put
            110 refused: lifetime_reached
              #0 active core 1 0..3600
        "#]],
    );
}

#[test]
fn pools_cap_the_ttl_per_priority() {
    check(
        "
        0 op pool main ttl=1h ttl.scavenger=10m
        0 a grant core 1 pool=main ttl=61m
        0 a grant core 1 pool=main ttl=60m
        0 a grant core 1 pool=main ttl=11m prio=scavenger
        0 a grant core 1 pool=main ttl=10m prio=scavenger
        1 a renew #0 ttl=61m
        1 a renew #1 ttl=11m
        1 a renew #1 ttl=10m
        ",
        expect![[r#"
            0 - pool.put
            0 refused: ttl_too_long
            0 a granted #0 core 1 on n1 to 3600
            0 refused: ttl_too_long
            0 a granted #1 core 1 on n1 to 600 scavenger
            1 refused: ttl_too_long
            1 refused: ttl_too_long
            1 a renewed #1 to 601
        "#]],
    );
}

#[test]
fn a_pool_that_does_not_allow_the_ttl_is_not_looked_into() {
    check(
        "
        0 op pool main ttl=1h
        0 a grant core 1 ttl=2h
        0 a grant core 1 ttl=2h node=n1
        1 op pool other ttl=3h
        1 op node n3 pool=other core 300
        1 a grant core 1 ttl=2h
        1 a grant core 1 ttl=2h node=n1
        1 a grant core 299 ttl=2h
        1 a grant core 1 ttl=2h
        1 a grant core 1 ttl=1h
        ",
        expect![[r#"
            0 - pool.put
            0 refused: ttl_too_long
            0 refused: ttl_too_long
            1 - pool.put
            1 - node.put
            1 a granted #0 core 1 on n3 to 7201
            1 refused: ttl_too_long
            1 a granted #1 core 299 on n3 to 7201
            1 a denied: core requested 1, most free 0
            1 a granted #2 core 1 on n1 to 3601
        "#]],
    );
}

#[test]
fn where_a_pool_sets_none_the_settings_cap_the_ttl() {
    check(
        "
        0 op settings ttl=1h
        0 a grant core 1 ttl=61m
        0 a grant core 1 ttl=60m
        1 op pool main ttl=2h
        1 a grant core 1 ttl=61m
        1 a grant core 1 ttl=2h pool=main
        ",
        expect![[r#"
            0 - settings.changed
            0 refused: ttl_too_long
            0 a granted #0 core 1 on n1 to 3600
            1 - pool.put
            1 a granted #1 core 1 on n1 to 3661
            1 a granted #2 core 1 on n1 to 7201
        "#]],
    );
}
