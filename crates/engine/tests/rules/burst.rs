//! Burst: over the base for one episode, and not for ever (SEMANTICS 4).

use crate::support::check;
use expect_test::expect;

#[test]
fn over_the_base_a_lease_ends_with_the_episode() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 10
        100 a grant core 3
        110 a grant core 2
        120 a grant core 1
        120 show quotas
        160
        ",
        expect![[""]],
    );
}

#[test]
fn a_short_lease_is_not_made_longer() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 12 ttl=20s
        ",
        expect![[""]],
    );
}

#[test]
fn burst_cannot_be_renewed_for_ever() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 10 node=n2 ttl=30s
        0 a grant core 5 node=n2 ttl=30s
        20 a renew #0 #1 ttl=30s
        40 a renew #0 #1 ttl=30s
        50 a renew #0 #1 ttl=30s
        60
        60 show quotas
        ",
        expect![[""]],
    );
}

#[test]
fn what_was_granted_long_before_is_not_cut_but_not_renewed_while_over() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 10 node=n2 ttl=1h
        10 a grant core 5 node=n2
        20 a renew #0 ttl=1h
        20 show leases
        70 a renew #0 ttl=1h
        ",
        expect![[""]],
    );
}

#[test]
fn burst_cannot_be_asked_for_again_before_it_was_away_for_as_long() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 10 node=n2
        0 a grant core 5 node=n2
        60 a grant core 5 node=n2
        60 show quotas
        119 a grant core 1 node=n2
        120 a grant core 5 node=n2
        120 show quotas
        ",
        expect![[""]],
    );
}

#[test]
fn burst_cannot_be_swapped_into() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 15 node=n2
        30 a release #0
        40 a grant core 10 node=n2
        40 show quotas
        50 a grant core 5 node=n2
        50 show quotas
        60
        61 a grant core 5 node=n2
        61 show quotas
        ",
        expect![[""]],
    );
}

#[test]
fn dipping_below_does_not_end_the_episode() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 10 node=n2
        0 a grant core 5 node=n2
        30 a release #1
        50 a grant core 5 node=n2
        60
        100 a grant core 1 node=n2
        119
        120
        ",
        expect![[""]],
    );
}

#[test]
fn within_the_base_nothing_is_shortened_even_in_an_episode() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 15 node=n2
        60 a grant core 10 node=n2
        61 a renew #1 ttl=2h
        ",
        expect![[""]],
    );
}

#[test]
fn teardown_keeps_use_over_the_base() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 10 node=n1
        0 a grant core 5 node=n1
        60 show quotas
        70 op confirm n1 #1
        70 show quotas
        130
        ",
        expect![[""]],
    );
}

#[test]
fn the_ceiling_is_absolute() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 16
        0 a grant core 15
        0 a grant core 1
        ",
        expect![[""]],
    );
}

#[test]
fn the_shortest_of_several_bursts_counts() {
    check(
        "
        0 op quota long a core burst=1..100/5m
        0 op quota short a count=leases burst=0..10/1m
        0 op quota middle a core burst=1..100/2m node=n2
        0 a grant core 2 node=n2
        0 a grant core 2 node=n1
        ",
        expect![[""]],
    );
}

#[test]
fn changing_the_limit_changes_the_episode() {
    check(
        "
        0 op quota q a core burst=10..20/60s
        0 a grant core 15 node=n2
        10 op quota q burst=15..20/60s
        10 show quotas
        20 op quota q burst=12..20/30s
        20 show quotas
        30 op quota q hard=20
        30 show quotas
        40 op quota q burst=12..20/60s
        40 show quotas
        60 op quota q burst=15..20/40s
        100
        100 show quotas
        ",
        expect![[""]],
    );
}

#[test]
fn a_restart_does_not_lengthen_an_episode() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 15 node=n2
        20 a release #0
        100 op started
        100
        ",
        expect![[""]],
    );
}
