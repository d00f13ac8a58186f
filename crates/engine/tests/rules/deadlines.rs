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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
    );
}

#[test]
fn a_grant_is_no_longer_than_the_lifetime() {
    check(
        "
        0 op pool main lifetime=100s
        0 a grant core 1 ttl=10m
        ",
        expect![[""]],
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
        expect![[""]],
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
        expect![[""]],
    );
}

#[test]
fn a_pool_that_was_not_named_shortens_the_ttl() {
    check(
        "
        0 op pool main ttl=1h
        0 a grant core 1 ttl=2h
        ",
        expect![[""]],
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
        expect![[""]],
    );
}
