//! Quotas on a kind, by user and app instance, on priorities from one up, and temporary limits (SEMANTICS 11).

use crate::support::{STAGE, Story, check, check_on, with_instances};
use expect_test::expect;

/// GPUs of two models: seven quanta to the unit, and three.
const MODELS: &str = "
    0 op class h100 kind=gpu per=7
    0 op class t4 kind=gpu per=3
    0 op pool main
    0 op node g1 h100 8 t4 8
    0 op tenant a
    0 op project a/a
";

#[test]
fn a_quota_on_a_kind_counts_all_models_exactly() {
    check_on(
        MODELS,
        "
        0 op quota q a - kind=gpu hard=2
        1 a grant h100 1
        1 a grant h100 3/7
        2 a grant t4 1/3
        3 a grant h100 2/7
        3 a grant h100 1/7
        3 a grant t4 1/3
        4 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 2
            1 a granted #0 h100 7[0] on g1 to 3601
            1 a granted #1 h100 3[1] on g1 to 3601
            2 a granted #2 t4 1[0] on g1 to 3602
            3 a denied: q used 37/21, requested 2/7, limit 2 units
            3 a granted #3 h100 1[1] on g1 to 3603
            3 a denied: q used 40/21, requested 1/3, limit 2 units
              q used 40/21 of hard 2
        "#]],
    );
}

#[test]
fn a_new_class_of_the_kind_keeps_what_is_counted() {
    check_on(
        MODELS,
        "
        0 op quota q a - kind=gpu hard=2
        1 a grant h100 3/7
        2 op class l4 kind=gpu per=5
        2 show quotas
        3 a release #0
        3 op confirm g1 #0
        3 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 2
            1 a granted #0 h100 3[0] on g1 to 3601
            2 - class.put
              q used 3/7 of hard 2
            3 a released #0
            3 a torn down #0 on g1
              q used 0 of hard 2
        "#]],
    );
}

#[test]
fn a_quota_for_each_user_counts_them_apart_and_needs_a_name() {
    check(
        "
        0 op user a/u
        0 op user a/w
        0 op quota q a core by-user=each hard=10
        1 a grant core 8 user=a/u
        1 a grant core 8 user=a/w
        2 a grant core 3 user=a/u
        3 a grant core 1
        3 a submit core 1
        4 b grant core 1
        ",
        expect![[r#"
            0 a user.put
            0 a user.put
            0 a quota q: hard 10
            1 a granted #0 core 8 on n1 to 3601
            1 a granted #1 core 8 on n1 to 3601
            2 a denied: q used 8, requested 3, limit 10
            3 refused: quota_needs_user
            3 refused: quota_needs_user
            4 b granted #2 core 1 on n1 to 3604
        "#]],
    );
}

#[test]
fn a_quota_for_one_user_counts_nobody_else() {
    check(
        "
        0 op user a/u
        0 op user a/w
        0 op quota q a core by-user=a/u hard=10
        1 a grant core 11 user=a/u
        1 a grant core 11 user=a/w
        2 a grant core 10 user=a/u
        3 show quotas
        ",
        expect![[r#"
            0 a user.put
            0 a user.put
            0 a quota q: hard 10
            1 a denied: q used 0, requested 11, limit 10
            1 a granted #0 core 11 on n1 to 3601
            2 a granted #1 core 10 on n1 to 3602
              q used 10 of hard 10
        "#]],
    );
}

#[test]
fn a_quota_for_each_app_instance_counts_them_apart() {
    check_on(
        &format!("{STAGE}{}", with_instances(3)),
        "
        0 op quota q a core by-app=each hard=10
        1 a grant core 8 app=1
        1 a grant core 8 app=2
        2 a grant core 3 app=1
        3 a grant core 1
        4 a release #0
        4 op confirm n1 #0
        5 a grant core 10 app=1
        ",
        expect![[r#"
            0 a quota q: hard 10
            1 a granted #0 core 8 on n1 to 3601
            1 a granted #1 core 8 on n1 to 3601
            2 a denied: q used 8, requested 3, limit 10
            3 refused: quota_needs_app_instance
            4 a released #0
            4 a torn down #0 on n1
            5 a granted #2 core 10 on n1 to 3605
        "#]],
    );
}

#[test]
fn a_priority_and_those_above_count_together() {
    check(
        "
        0 op tenant a max=guaranteed
        0 op quota q a core from=standard hard=10
        1 a grant core 20 prio=scavenger
        1 a grant core 6 prio=standard
        2 a grant core 6 prio=guaranteed
        2 a grant core 4 prio=guaranteed
        2 a grant core 1 prio=standard
        ",
        expect![[r#"
            0 a tenant.put
            0 a quota q: hard 10
            1 a granted #0 core 20 on n1 to 3601 scavenger
            1 a granted #1 core 6 on n1 to 3601
            2 a denied: q used 6, requested 6, limit 10
            2 a granted #2 core 4 on n1 to 3602 guaranteed
            2 a denied: q used 10, requested 1, limit 10
        "#]],
    );
}

#[test]
fn a_temporary_limit_ends_at_its_instant_however_late_that_is_noticed() {
    check(
        "
        0 op quota q a core hard=10
        1 op quota q hard=20 until=100
        2 a grant core 15 node=n1
        3 op quota q hard=30 until=200
        250 a grant core 1 node=n1
        250 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 10
            1 a quota q: hard 10, hard 20 until 100
            2 a granted #0 core 15 on n1 to 3602
            3 a quota q: hard 10, hard 30 until 200
            250 a temporary limit of q ended since 200
            250 a denied: q used 15, requested 1, limit 10
              q used 15 of hard 10
        "#]],
    );
}

#[test]
fn setting_without_an_end_changes_the_base_and_clears_the_temporary_limit() {
    check(
        "
        0 op quota q a core hard=10
        1 op quota q hard=20 until=100
        2 op quota q hard=12
        150 a grant core 13
        150 a grant core 12
        ",
        expect![[r#"
            0 a quota q: hard 10
            1 a quota q: hard 10, hard 20 until 100
            2 a quota q: hard 12
            150 a denied: q used 0, requested 13, limit 12
            150 a granted #0 core 12 on n1 to 3750
        "#]],
    );
}

#[test]
fn percentages_are_of_the_base_limit_and_rounded_down() {
    check(
        "
        0 op quota q a core hard=7
        1 op quota q hard=120 percent=yes until=100
        2 op quota q hard=150 percent=yes until=100
        3 op quota q hard=50 percent=yes
        3 op quota r b core burst=10..33/60s
        4 op quota r burst=125..110/60s percent=yes
        ",
        expect![[r#"
            0 a quota q: hard 7
            1 a quota q: hard 7, hard 8 until 100
            2 a quota q: hard 7, hard 10 until 100
            3 a quota q: hard 3
            3 b quota r: burst 10
            4 b quota r: burst 12
        "#]],
    );
}

#[test]
fn at_equal_instants_leases_expire_before_a_temporary_limit_ends() {
    check(
        "
        0 op quota q a core hard=10
        1 op quota q hard=20 until=100
        40 a grant core 15 ttl=60s
        100 show quotas
        ",
        expect![[r#"
            0 a quota q: hard 10
            1 a quota q: hard 10, hard 20 until 100
            40 a granted #0 core 15 on n1 to 100
            100 a expired #0
            100 a temporary limit of q ended
              q used 15 of hard 10
        "#]],
    );
}

/// The codes of refusals that are reached here.
pub(crate) const CODES: [&str; 12] = [
    "quota_exists",
    "kind_and_class",
    "kind_has_no_common_part",
    "above_needs_priority",
    "burst_per_holder",
    "until_past",
    "until_needs_base",
    "percent_needs_base",
    "percent_too_large",
    "quota_needs_user",
    "quota_needs_app_instance",
    "unknown_user",
];

#[test]
fn what_cannot_be_is_refused() {
    let cases = [
        ("1 op quota r a core hard=1", "10 op quota q a core hard=2"),
        ("", "10 op quota q a core kind=cpu hard=1"),
        (
            "1 op class odd kind=net per=4294967291\n 1 op class even kind=net per=4294967290",
            "10 op quota q a - kind=net hard=1",
        ),
        ("", "10 op quota q a core above=yes hard=1"),
        ("", "10 op quota q a core by-user=each burst=9..10/60s"),
        ("1 op quota q a core hard=1", "10 op quota q hard=2 until=10"),
        ("", "10 op quota q a core hard=1 until=20"),
        ("", "10 op quota q a core hard=1 percent=yes"),
        ("1 op quota q a core hard=18446744073709551615", "10 op quota q hard=101 percent=yes"),
        ("1 op quota q a core by-user=each hard=1", "10 a grant core 1"),
        ("1 op quota q a core by-app=each hard=1", "10 a grant core 1"),
        ("", "10 op quota q a core by-user=b/v hard=10"),
    ];
    let mut told = String::new();
    for ((before, line), code) in cases.into_iter().zip(CODES) {
        let mut story = Story::on(STAGE);
        story.play(before);
        let refusal = story.line(line).expect("a decision").expect_err(line);
        assert_eq!(refusal.code(), code, "{line}");
        told.push_str(&format!("{refusal}\n"));
    }
    expect![[r#"
        quota-0 already counts exactly this, with the same type of limit; change that limit instead
        a quota counts one class or all classes of a kind; name one of them
        the classes of kind net divide their units into too many different parts to be counted together; use a quota for each class
        name the lowest priority that the quota counts
        a burst quota counts all users and app instances together or one of them; it cannot count each one separately
        a temporary limit must end after the current time, 1970-01-01T00:00:10Z
        a new quota has no base limit to return to; create it without an end, then set the temporary limit
        a new quota has no base limit of which a percentage could be taken; give an amount
        the percentage of the base limit is too large
        quota-0 counts by user, so the request must name its user
        quota-0 counts by app instance, so the request must name its app instance
        there is no user-99 of this tenant
    "#]].assert_eq(&told);
}

/// A class whose quanta have no common part with the others is refused while a quota counts the kind.
#[test]
fn a_class_without_a_common_part_is_refused_while_the_kind_is_counted() {
    check(
        "
        0 op class odd kind=net per=4294967291
        1 op quota q a - kind=net hard=1
        2 op class even kind=net per=4294967290
        ",
        expect![[r#"
            0 - class.put
            1 a quota q: hard 1
            2 refused: kind_has_no_common_part
        "#]],
    );
}
