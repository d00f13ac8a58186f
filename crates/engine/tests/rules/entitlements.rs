//! Entitlements and policies about the usage of app runtimes (SEMANTICS 9 and 12).

use crate::support::{STAGE, check_on};
use expect_test::expect;

/// Codes of refusals that are reached here.
pub(crate) const CODES: &[&str] = &[
    "bad_entitlement",
    "entitlement_of_nobody",
    "unknown_entitlement",
    "entitlement_exceeded",
    "unit_not_accepted",
    "policy_by_operator",
    "attribution_fixed",
];

/// A runtime of a/a, one that the tenant shares, and one of the platform.
const RUNTIMES: &str = "
    0 op project a/lab
    0 op app chat units=requests,job_hours
    0 op instance own a/a app=chat
    0 op instance shared a/a app=chat scope=tenant
    0 op instance all a/a app=chat mode=platform_managed scope=platform
";

#[track_caller]
fn story(story: &str, expected: expect_test::Expect) {
    check_on(&format!("{STAGE}{RUNTIMES}"), story, expected);
}

#[test]
fn a_hard_limit_refuses_and_a_soft_one_warns_once_a_month() {
    story(
        "
        1 op entitle a/a soft=5 hard=8
        20 a use own a/a id=1 to=10 n=5
        20 a use own a/a id=2 to=10 n=1
        20 a use own a/a id=3 to=10 n=1
        20 a use own a/a id=4 to=10 n=2
        20 a use own a/a id=4 to=10 n=2
        20 a use own a/a id=5 to=10 n=1
        20 a use own a/a id=6 to=10 n=100 unit=job_hours
        2678500 a use own a/a id=7 to=2678450 n=8
        2678500 a use own a/a id=8 to=10 n=1
        ",
        expect![[r#"
            1 a entitlement.put
            20 a 5 of a billed
            20 a 1 of a billed
            20 a 6 used in 1970-01, more than 5
            20 a 1 of a billed
            20 a 2 not entitled: 7 of 8 used
            20 refused: entitlement_exceeded
            20 a 1 of a billed
            20 a 100 of a billed
            2678500 a 8 of a billed
            2678500 a 8 used in 1970-02, more than 5
            2678500 a 1 not entitled: 8 of 8 used
        "#]],
    );
}

#[test]
fn a_superseding_record_is_tested_by_what_it_adds() {
    story(
        "
        1 op entitle a/a hard=10
        20 a use own a/a id=1 to=10 n=10
        20 a use own a/a id=2 old=1 to=10 n=11
        20 a use own a/a id=2 old=1 to=10 n=9
        20 a use own a/a id=3 old=2 to=11 n=10
        21 op entitle a/a hard=4
        22 a use own a/a id=4 old=3 to=11 n=6
        22 a use own a/a id=5 to=11 n=0
        22 a use own a/a id=6 to=11 n=1
        22 a use own a/a id=7 old=4 to=11 n=7
        23 op entitle a/a hard=7
        23 a use own a/a id=7 old=4 to=11 n=7
        ",
        expect![[r#"
            1 a entitlement.put
            20 a 10 of a billed
            20 a 11 not entitled: 10 of 10 used
            20 a 9 of a billed in place of 10
            20 a 10 of a billed in place of 9
            21 a entitlement.put
            22 a 6 of a billed in place of 10
            22 a 0 of a billed
            22 a 1 not entitled: 6 of 4 used
            22 a 7 not entitled: 6 of 4 used
            23 a entitlement.put
            23 a 7 of a billed in place of 6
        "#]],
    );
}

/// What was used before counts, and each of the three scopes by itself; what is only shown does not count.
#[test]
fn scopes_count_by_themselves() {
    story(
        "
        20 a use all a/a id=1 to=10 n=3 by=a
        20 a use all b/b id=2 to=10 n=3 by=a
        20 a use own a/a id=3 to=10 n=3
        20 a use shared a/lab id=4 to=10 n=50
        21 op entitle - on=all hard=7
        21 op entitle a/a hard=8
        21 op entitle b/b on=all hard=4
        21 op entitle a/lab hard=1
        22 a use all b/b id=5 to=10 n=1
        22 a use all b/b id=6 to=10 n=1
        22 a use all a/a id=7 to=10 n=1
        22 a use own a/a id=8 to=10 n=2
        22 a use own a/a id=9 to=10 n=1
        22 a use shared a/lab id=10 to=10 n=50
        23 op unentitle - on=all
        23 a use all a/lab id=11 to=10 n=1
        23 a use all a/lab id=12 to=10 n=1
        ",
        expect![[r#"
            20 a 3 of a billed
            20 b 3 of b billed
            20 a 3 of a billed
            20 a 50 of lab reported
            21 a entitlement.put
            21 a entitlement.put
            21 b entitlement.put
            21 a entitlement.put
            22 b 1 of b billed
            22 b 1 not entitled: 4 of 4 used
            22 a 1 not entitled: 7 of 7 used
            22 a 2 of a billed
            22 a 1 not entitled: 8 of 8 used
            22 a 50 of lab reported
            23 a entitlement.deleted
            23 a 1 of lab billed
            23 a 1 not entitled: 1 of 1 used
        "#]],
    );
}

#[test]
fn all_or_none_are_not_entitled_together() {
    story(
        "
        1 op entitle a/a hard=10 soft=9
        20 a useall own a/a+1 a/a+2 a/a+3 to=10 n=4
        20 a useall own a/a+1 a/a+2 to=10 n=5
        20 a useall own a/a+3 a/a+4 to=10 n=0
        ",
        expect![[r#"
            1 a entitlement.put
            20 refused: usage_batch_refused
            20 a 5 of a billed
            20 a 5 of a billed
            20 a 10 used in 1970-01, more than 9
            20 a 0 of a billed
            20 a 0 of a billed
        "#]],
    );
}

#[test]
fn bad_entitlements_are_refused() {
    story(
        "
        1 op entitle a/a
        1 op entitle a/a soft=9 hard=8
        1 op entitle - hard=8
        1 op entitle a/none hard=8
        1 op entitle b/b on=own hard=8
        1 op entitle b/b on=all hard=8
        1 op entitle a/a hard=1000000000001
        1 op entitle a/a unit=nothing hard=1
        1 a entitle b/b hard=1
        1 a entitle a/a hard=1
        1 b unentitle a/a
        1 a unentitle a/lab
        1 a unentitle a/a
        2 op entitle a/lab hard=1
        2 op entitle - on=own hard=1
        3 op uninstance own
        3 op delete project a/lab
        4 op unentitle a/lab
        4 op unentitle - on=own
        ",
        expect![[r#"
            1 refused: bad_entitlement
            1 refused: bad_entitlement
            1 refused: entitlement_of_nobody
            1 refused: unknown_project
            1 refused: unknown_app_instance
            1 b entitlement.put
            1 refused: bad_entitlement
            1 refused: unknown_usage_unit
            1 refused: unknown_project
            1 a entitlement.put
            1 refused: unknown_entitlement
            1 refused: unknown_entitlement
            1 a entitlement.deleted
            2 a entitlement.put
            2 a entitlement.put
            3 a app_instance.deleted
            3 a project.deleted
            4 refused: unknown_entitlement
            4 refused: unknown_entitlement
        "#]],
    );
}

/// The same content is recorded as refused once, also if the ID had other content in between.
#[test]
fn refusals_are_recorded_once() {
    story(
        "
        1 op entitle a/a hard=0
        20 a use own a/a id=1 to=10 n=2
        20 a use own a/a id=1 to=10 n=3
        20 a use own a/a id=1 to=10 n=2
        20 a use own a/a id=1 to=10 n=3
        ",
        expect![[r#"
            1 a entitlement.put
            20 a 2 not entitled: 0 of 0 used
            20 a 3 not entitled: 0 of 0 used
            20 refused: entitlement_exceeded
            20 refused: entitlement_exceeded
        "#]],
    );
}

#[test]
fn limits_and_policies_go_with_their_tenant() {
    story(
        "
        1 op entitle a/a hard=1
        1 op entitle - on=own hard=1
        1 op entitle b/b on=all hard=1
        1 op entitle b/b hard=1
        1 op apppolicy chat of=a units=requests
        1 op apppolicy chat of=a on=own units=requests
        2 op delete tenant a
        3 op unentitle b/b on=all
        3 op unentitle b/b
        ",
        expect![[r#"
            1 a entitlement.put
            1 a entitlement.put
            1 b entitlement.put
            1 b entitlement.put
            1 a policy version 1
            1 a policy version 1
            2 tenant-0 tenant.deleted
            3 refused: unknown_entitlement
            3 b entitlement.deleted
        "#]],
    );
}

#[test]
fn policies_take_units_away_and_attribute_usage() {
    story(
        "
        20 a use own a/lab id=1 to=10
        20 a apppolicy chat of=a to=caller
        20 a use own a/lab id=1 to=10
        20 a use own a/lab id=2 to=10 cp
        20 a apppolicy chat of=a on=own to=owner
        20 a use own a/lab id=3 to=10
        21 op apppolicy chat units=requests
        21 a use own a/a id=4 from=5 to=10 unit=job_hours
        21 a apppolicy chat of=a on=own units=job_hours,requests
        21 a use own a/a id=4 from=5 to=10 unit=job_hours
        21 op apppolicy chat units=requests,job_hours
        21 a use own a/a id=4 from=5 to=10 unit=job_hours
        22 op apppolicy chat of=b units=job_hours
        22 a use all b/b id=5 to=10
        22 a use all a/a id=5 to=10
        23 a apppolicy chat units=requests
        23 a apppolicy chat of=b units=requests
        23 a apppolicy chat of=a units=tokens
        23 a apppolicy chat of=a on=shared to=caller
        23 a apppolicy nothing of=a
        23 op apppolicy chat of=b on=own
        ",
        expect![[r#"
            20 refused: usage_of_owner
            20 a policy version 1
            20 a 1 of lab billed
            20 refused: usage_of_owner
            20 a policy version 1
            20 refused: usage_of_owner
            21 - policy version 1
            21 refused: unit_not_accepted
            21 a policy version 2
            21 refused: unit_not_accepted
            21 - policy version 2
            21 a 1 of a billed
            22 b policy version 1
            22 refused: unit_not_accepted
            22 a 1 of a billed
            23 refused: policy_by_operator
            23 refused: unknown_tenant
            23 refused: unit_not_enabled
            23 refused: attribution_fixed
            23 refused: unknown_app
            23 refused: unknown_app_instance
        "#]],
    );
}
