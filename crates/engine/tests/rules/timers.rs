//! What comes due by itself, by (due, kind, id), before any command of that instant (SEMANTICS 2).

use crate::support::{STAGE, Story, check};
use expect_test::expect;

#[test]
fn by_instant_then_kind_then_number() {
    check(
        "
        0 op quota q b core burst=1..5/100s
        0 b grant core 2 node=n2 ttl=1m
        0 b release #0
        0 a grant core 1 node=n1 ttl=1000s
        0 a grant core 1 node=n1 ttl=1000s
        0 a grant core 1 node=n1 ttl=100s
        0 a grant core 1 node=n2 ttl=99s
        0 a grant core 1 node=n1 ttl=100s
        0 a release #1
        20 op settings teardown=80s
        20 a release #2
        40 a grant core 1 node=n1
        40 op revoke #6 grace=60s
        1000
        ",
        expect![[r#"
            0 b quota q: burst 1
            0 b granted #0 core 2 on n2 to 60
            0 b released #0, closed
            0 a granted #1 core 1 on n1 to 1000
            0 a granted #2 core 1 on n1 to 1000
            0 a granted #3 core 1 on n1 to 100
            0 a granted #4 core 1 on n2 to 99
            0 a granted #5 core 1 on n1 to 100
            0 a released #1
            20 - settings.changed
            20 a released #2
            40 a granted #6 core 1 on n1 to 3640
            40 a revoked #6, grace 1m (operator)
            1000 a expired #4, closed since 99
            1000 a expired #3 since 100
            1000 a expired #5 since 100
            1000 a teardown of #6, grace_ended since 100
            1000 a fenced #2 since 100
            1000 b burst of q ended since 100
            1000 a fenced #1 since 120
        "#]],
    );
}

#[test]
fn the_same_kind_at_one_instant_goes_by_number_across_tenants() {
    check(
        "
        0 a grant core 1 node=n2 ttl=60s
        0 b grant core 1 node=n2 ttl=60s
        0 a grant core 1 node=n2 ttl=60s
        0 a grant core 1 node=n2 ttl=60s
        60
        ",
        expect![[r#"
            0 a granted #0 core 1 on n2 to 60
            0 b granted #1 core 1 on n2 to 60
            0 a granted #2 core 1 on n2 to 60
            0 a granted #3 core 1 on n2 to 60
            60 a expired #0, closed
            60 b expired #1, closed
            60 a expired #2, closed
            60 a expired #3, closed
        "#]],
    );
}

#[test]
fn what_is_due_at_the_instant_of_a_command_comes_before_it() {
    check(
        "
        0 a grant core 200 node=n2 ttl=60s
        60 b grant core 200 node=n2
        ",
        expect![[r#"
            0 a granted #0 core 200 on n2 to 60
            60 a expired #0, closed
            60 b granted #1 core 200 on n2 to 3660
        "#]],
    );
}

/// Regression: sealing one group of expiries may sweep the heap of timers, while the next expiry
/// had been taken out of it already. It came back in and was ended twice, which stopped the engine.
#[test]
fn a_sweep_of_old_timers_while_leases_expire() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 a grant core 1 node=n2 ttl=10s
        0 a grant core 1 node=n2 ttl=11s
        0 b grant core 1 node=n2 ttl=11s
        0 a grant core 1 node=n2 ttl=12s
        ",
    );
    // As many timers of ended leases as are kept before they are swept out.
    for i in 4..1024 + 8 {
        story.play(&format!("0 a grant core 1 node=n2 ttl=10h\n 0 a release #{i}"));
    }
    story.text.clear();
    story.play("20");
    expect![[r#"
        20 a expired #0, closed since 10
        20 a expired #1, closed since 11
        20 b expired #2, closed since 11
        20 a expired #3, closed since 12
    "#]]
    .assert_eq(&story.text);
}

/// A thousand and more leases with one deadline do not fit one record.
#[test]
fn a_record_names_at_most_1024_leases() {
    let mut story = Story::on(&format!("{STAGE}\n 0 op node n3 immediate core 5000"));
    (0..1500).for_each(|_| story.play("0 a grant core 1 node=n3 ttl=60s corr=7"));
    let records = story.world.advance(leasehold_model::Instant::from_secs(60), u32::MAX);
    let lengths: Vec<usize> = records
        .iter()
        .map(|record| match &record.body {
            leasehold_model::Body::Expired(expired) => expired.leases.0.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lengths, [1024, 476]);
}
