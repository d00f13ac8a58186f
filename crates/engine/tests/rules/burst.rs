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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 10 on n1 to 3600
            100 a granted #1 core 3 on n1 to 160, capped by q
            110 a granted #2 core 2 on n1 to 160, capped by q
            120 a denied: q used 15, requested 1, limit 15
              q used 15 of burst 10..15 for 1m, episode since 100
            160 a expired #1
            160 a expired #2
        "#]],
    );
}

#[test]
fn a_short_lease_is_not_made_longer() {
    check(
        "
        0 op quota q a core burst=10..15/60s
        0 a grant core 12 ttl=20s
        ",
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 12 on n1 to 20
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 10 on n2 to 30
            0 a granted #1 core 5 on n2 to 30
            20 a renewed #0 to 50, #1 to 50
            40 a renewed #0 to 60, #1 to 60
            50 refused: burst_over
            60 a expired #0, closed
            60 a expired #1, closed
              q used 0 of burst 10..15 for 1m, episode since 0, below since 60
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 10 on n2 to 3600
            10 a granted #1 core 5 on n2 to 70, capped by q
            20 refused: burst_over
              #0 active core 10 0..3600
              #1 active core 5 10..70
            70 a expired #1, closed
            70 a renewed #0 to 3670
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 10 on n2 to 3600
            0 a granted #1 core 5 on n2 to 60, capped by q
            60 a expired #1, closed
            60 a denied: burst of q over at 60
              q used 10 of burst 10..15 for 1m, episode since 0, below since 60
            119 a denied: burst of q over at 60
            120 a burst of q ended
            120 a granted #2 core 5 on n2 to 180, capped by q
              q used 15 of burst 10..15 for 1m, episode since 120
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 15 on n2 to 60, capped by q
            30 a released #0, closed
            40 a granted #1 core 10 on n2 to 3640
              q used 10 of burst 10..15 for 1m, episode since 0, below since 30
            50 a granted #2 core 5 on n2 to 60, capped by q
              q used 15 of burst 10..15 for 1m, episode since 0
            60 a expired #2, closed
            61 a denied: burst of q over at 60
              q used 10 of burst 10..15 for 1m, episode since 0, below since 60
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 10 on n2 to 3600
            0 a granted #1 core 5 on n2 to 60, capped by q
            30 a released #1, closed
            50 a granted #2 core 5 on n2 to 60, capped by q
            60 a expired #2, closed
            100 a denied: burst of q over at 60
            120 a burst of q ended
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 15 on n2 to 60, capped by q
            60 a expired #0, closed
            60 a granted #1 core 10 on n2 to 3660
            61 a renewed #1 to 7261
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 10 on n1 to 3600
            0 a granted #1 core 5 on n1 to 60, capped by q
            60 a expired #1
              q used 15 of burst 10..15 for 1m, episode since 0
            70 a torn down #1 on n1
              q used 10 of burst 10..15 for 1m, episode since 0, below since 70
            130 a burst of q ended
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a denied: q used 0, requested 16, limit 15
            0 a granted #0 core 15 on n1 to 60, capped by q
            0 a denied: q used 15, requested 1, limit 15
        "#]],
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
        expect![[r#"
            0 a quota long: burst 1
            0 a quota short: burst 0
            0 a quota middle: burst 1
            0 a granted #0 core 2 on n2 to 60, capped by short
            0 a granted #1 core 2 on n1 to 60, capped by short
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 15 on n2 to 60, capped by q
            10 a quota q: burst 15
              q used 15 of burst 15..20 for 1m, episode since 0, below since 10
            20 a quota q: burst 12
              q used 15 of burst 12..20 for 30s, episode since 0
            30 a quota q: hard 20
              q used 15 of hard 20
            40 a quota q: burst 12
              q used 15 of burst 12..20 for 1m, episode since 40
            60 a expired #0, closed
            60 a quota q: burst 15
            100 a burst of q ended
              q used 0 of burst 15..20 for 40s
        "#]],
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
        expect![[r#"
            0 a quota q: burst 10
            0 a granted #0 core 15 on n2 to 60, capped by q
            20 a released #0, closed
            100 - journal.started
            100 a burst of q ended since 80
        "#]],
    );
}
