//! Sharing the cost of control planes, and work that is charged on shared runtimes (SEMANTICS 9 and 12).

use crate::support::{STAGE, check_on};
use expect_test::expect;

/// Codes of refusals that are reached here.
pub(crate) const CODES: &[&str] = &[
    "sharing_by_operator",
    "not_distributable",
    "bad_shares",
    "bad_tiers",
    "nothing_to_share",
    "shares_pending",
    "work_is_billed",
];

/// A runtime of a/a, one that the tenant shares, and one of the platform; the ledger is opened for the last hour of
/// January 1970.
const RUNTIMES: &str = "
    0 op project a/lab
    0 op project a/dev
    0 op app chat units=requests,job_hours
    0 op instance own a/a app=chat
    0 op instance shared a/a app=chat scope=tenant
    0 op instance all a/a app=chat mode=platform_managed scope=platform
    2674800 op ledger
";

/// The control plane of the shared runtime costs 10 in the last hour, and the month is cut.
const CUT: &str = "
    2678400 op posted a/a 10.000001 through=2678400 plane=shared
    2678400 op settled 2678400
    2678400 op cut 1970-01
";

#[track_caller]
pub(crate) fn story(story: &str, expected: expect_test::Expect) {
    check_on(&format!("{STAGE}{RUNTIMES}"), story, expected);
}

/// Work of two projects on the shared runtime, then the cut.
#[track_caller]
pub(crate) fn shared(policy: &str, rest: &str, expected: expect_test::Expect) {
    let work = "
        2674801 a use shared a/lab id=1 to=2674800 n=5
        2674801 a use shared a/dev id=2 to=2674800 n=1
        2674801 a use shared a/a id=3 to=2674800 n=7 cp
    ";
    story(&format!("{policy}{work}{CUT}{rest}"), expected);
}

#[test]
fn evenly_among_those_who_used_it() {
    shared(
        "2674800 op sharing chat of=a on=shared method=even",
        "
        2678401 op invoice a
        2678401 op finish 1970-01
        2678401 op sharecost own
        2678401 op sharecost shared
        2678401 op sharecost shared
        2678401 op posted a/a 1 through=2678400 plane=shared
        2678401 op invoice a
        ",
        expect![[r#"
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 refused: shares_pending
            2678401 refused: shares_pending
            2678401 refused: nothing_to_share
            2678401 a a bears 0.000000 of 10.000001 (even v1 0/2), booked -10.000001
            2678401 a lab bears 5.000001 of 10.000001 (even v1 1/2), booked 5.000001
            2678401 a dev bears 5.000000 of 10.000001 (even v1 1/2), booked 5.000000
            2678401 refused: nothing_to_share
            2678401 refused: period_is_closing
            2678401 refused: invoice_mismatch
        "#]],
    );
}

/// 10.00 shared by three: each third is rounded down, and the step that is missing goes to the first.
#[test]
fn ten_shared_by_three() {
    story(
        "
        2674800 op sharing chat of=a on=shared method=even
        2674801 a use shared a/lab id=1 to=2674800 n=5
        2674801 a use shared a/dev id=2 to=2674800 n=1
        2674801 op user a/u
        2674801 a use shared a/a id=3 to=2674800 n=9 user=a/u
        2678400 op posted a/a 10 through=2678400 plane=shared
        2678400 op settled 2678400
        2678400 op cut 1970-01
        2678401 op sharecost shared
        ",
        expect![[r#"
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a user.put
            2674801 a 9 of a reported
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 3.333334 of 10.000000 (even v1 1/3), booked -6.666666
            2678401 a lab bears 3.333333 of 10.000000 (even v1 1/3), booked 3.333333
            2678401 a dev bears 3.333333 of 10.000000 (even v1 1/3), booked 3.333333
        "#]],
    );
}

#[test]
fn by_usage_of_a_unit() {
    shared(
        "2674800 op sharing chat of=a method=by_usage",
        "2678401 op sharecost shared",
        expect![[r#"
        2674800 a sharing version 1
        2674801 a 5 of lab reported
        2674801 a 1 of dev reported
        2674801 a 7 of a billed
        2678400 a ledger.posted
        2678400 - ledger.hour_settled
        2678400 - period.closing
        2678401 a a bears 0.000000 of 10.000001 (by_usage v1 0/6000000000000000000), booked -10.000001
        2678401 a lab bears 8.333334 of 10.000001 (by_usage v1 5000000000000000000/6000000000000000000), booked 8.333334
        2678401 a dev bears 1.666667 of 10.000001 (by_usage v1 1000000000000000000/6000000000000000000), booked 1.666667
    "#]],
    );
}

#[test]
fn as_a_report() {
    shared(
        "2674800 op sharing chat of=a on=shared method=by_usage report",
        "2678401 op sharecost shared",
        expect![[r#"
        2674800 a sharing version 1
        2674801 a 5 of lab reported
        2674801 a 1 of dev reported
        2674801 a 7 of a billed
        2678400 a ledger.posted
        2678400 - ledger.hour_settled
        2678400 - period.closing
        2678401 a a bears 0.000000 of 10.000001 (by_usage v1 0/6000000000000000000), booked 0.000000
        2678401 a lab bears 8.333334 of 10.000001 (by_usage v1 5000000000000000000/6000000000000000000), booked 0.000000
        2678401 a dev bears 1.666667 of 10.000001 (by_usage v1 1000000000000000000/6000000000000000000), booked 0.000000
    "#]],
    );
}

/// Nobody used the unit, though the runtime was used.
#[test]
fn the_owner_keeps_what_nobody_used() {
    shared(
        "2674800 op sharing chat method=by_usage unit=job_hours",
        "2678401 op sharecost shared",
        expect![[r#"
        2674800 - sharing version 1
        2674801 a 5 of lab reported
        2674801 a 1 of dev reported
        2674801 a 7 of a billed
        2678400 a ledger.posted
        2678400 - ledger.hour_settled
        2678400 - period.closing
        2678401 a a bears 10.000001 of 10.000001 (by_usage v1 0/0), booked 0.000000
    "#]],
    );
}

#[test]
fn by_limits_of_projects() {
    shared(
        "
        2674800 op entitle a/lab hard=100
        2674800 op entitle a/lab on=shared hard=30
        2674800 op entitle a/dev on=own hard=50
        2674800 op entitle a/a hard=10
        2674800 op entitle b/b hard=10
        2674800 op sharing chat of=a on=shared method=by_quota
        ",
        "2678401 op sharecost shared",
        expect![[r#"
            2674800 a entitlement.put
            2674800 a entitlement.put
            2674800 a entitlement.put
            2674800 a entitlement.put
            2674800 b entitlement.put
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 2.500000 of 10.000001 (by_quota v1 10000000000/40000000000), booked -7.500001
            2678401 a lab bears 7.500001 of 10.000001 (by_quota v1 30000000000/40000000000), booked 7.500001
        "#]],
    );
}

/// The share of a project that is gone stays with the owner.
#[test]
fn by_percentages() {
    shared(
        "
        2674800 op project a/gone
        2674800 op sharing chat of=a on=shared method=fixed weights=a/lab:33.3,a/gone:16.7,a/dev:50
        2674800 op delete project a/gone
        ",
        "2678401 op sharecost shared",
        expect![[r#"
            2674800 a project.put
            2674800 a sharing version 1
            2674800 a project.deleted
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 1.670000 of 10.000001 (fixed v1 0/100000000000), booked -8.330001
            2678401 a lab bears 3.330000 of 10.000001 (fixed v1 33300000000/100000000000), booked 3.330000
            2678401 a dev bears 5.000001 of 10.000001 (fixed v1 50000000000/100000000000), booked 5.000001
        "#]],
    );
}

#[test]
fn by_service_tiers() {
    shared(
        "
        2674800 op sharing chat of=a on=shared method=by_tier tiers=gold:3,bronze:1 members=a/lab:0 other=1
        ",
        "2678401 op sharecost shared",
        expect![[r#"
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 0.000000 of 10.000001 (by_tier v1 0/4000000000), booked -10.000001
            2678401 a lab bears 7.500001 of 10.000001 (by_tier v1 gold 3000000000/4000000000), booked 7.500001
            2678401 a dev bears 2.500000 of 10.000001 (by_tier v1 bronze 1000000000/4000000000), booked 2.500000
        "#]],
    );
    shared(
        "
        2674800 op sharing chat of=a on=shared method=by_tier tiers=gold:3,bronze:1 members=a/lab:0
        ",
        "2678401 op sharecost shared",
        expect![[r#"
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 0.000000 of 10.000001 (by_tier v1 0/3000000000), booked -10.000001
            2678401 a lab bears 10.000001 of 10.000001 (by_tier v1 gold 3000000000/3000000000), booked 10.000001
        "#]],
    );
}

#[test]
fn the_operator_bears_what_is_not_billable() {
    shared(
        "
        2674800 op sharing chat billable=no
        2674800 op sharing chat of=a on=shared method=even
        ",
        "2678401 op sharecost shared",
        expect![[r#"
            2674800 - sharing version 1
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 0.000000 of 10.000001 (not_billable v1 0/0), booked -10.000001
        "#]],
    );
}

/// The narrowest policy that says something decides, as it was at the cut.
#[test]
fn policies_of_the_cut_decide() {
    shared(
        "
        2674800 op sharing chat method=even
        2674800 op sharing chat of=a distributable=no
        2674800 op sharing chat of=a on=shared method=owner
        ",
        "
        2678401 op sharing chat of=a on=shared method=even distributable=yes
        2678401 op sharecost shared
        ",
        expect![[r#"
            2674800 - sharing version 1
            2674800 a sharing version 1
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a sharing version 2
            2678401 a a bears 10.000001 of 10.000001 (owner v1 1/1), booked 0.000000
        "#]],
    );
    shared(
        "
        2674800 op sharing chat method=even
        2674800 op sharing chat of=a distributable=no
        ",
        "2678401 op sharecost shared",
        expect![[r#"
            2674800 - sharing version 1
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 refused: nothing_to_share
        "#]],
    );
}

/// What all tenants share is divided among all of them.
#[test]
fn services_of_the_platform_are_shared_between_tenants() {
    story(
        "
        2674800 op sharing chat of=a method=even
        2674800 op sharing chat of=a on=all method=by_tier tiers=gold:3,bronze:1 members=b/b:0 other=1
        2674801 a use all a/lab id=1 to=2674800 n=5 by=a
        2674801 a use all b/b id=2 to=2674800 n=1 by=a
        2678400 op posted a/a 8 through=2678400 plane=all
        2678400 op settled 2678400
        2678400 op cut 1970-01
        2678401 op sharecost all
        ",
        expect![[r#"
            2674800 a sharing version 1
            2674800 a sharing version 1
            2674801 a 5 of lab billed
            2674801 b 1 of b billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 a a bears 0.000000 of 8.000000 (by_tier v1 0/4000000000), booked -8.000000
            2678401 b b bears 6.000000 of 8.000000 (by_tier v1 gold 3000000000/4000000000), booked 6.000000
            2678401 a lab bears 2.000000 of 8.000000 (by_tier v1 bronze 1000000000/4000000000), booked 2.000000
        "#]],
    );
}

/// Superseded work does not count, nor what is recorded after the cut, nor adjustments of the owner without a line.
#[test]
fn what_counts_is_known_at_the_cut() {
    story(
        "
        2674800 op sharing chat of=a on=shared method=by_usage
        2674801 a use shared a/lab id=1 to=2674800 n=6
        2674801 a use shared a/dev id=2 to=2674800 n=4
        2674802 a use shared a/dev id=3 old=2 to=2674800 n=2
        2678400 op posted a/a 10 through=2678400 plane=shared
        2678400 op posted a/lab 3 through=2678400 plane=shared
        2678400 op posted a/dev 3 through=2678400
        2678400 op settled 2678400
        2678400 op adjusted a/a 5
        2678400 op cut 1970-01
        2678401 a use shared a/lab id=4 to=2678300 n=100
        2678401 a use shared a/lab id=5 old=1 to=2674800 n=0
        2678401 op sharecost shared
        ",
        expect![[r#"
            2674800 a sharing version 1
            2674801 a 6 of lab reported
            2674801 a 4 of dev reported
            2674802 a 2 of dev reported in place of 4
            2678400 a ledger.posted
            2678400 a ledger.posted
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 a ledger.adjusted
            2678400 - period.closing
            2678401 a 100 of lab reported
            2678401 a 0 of lab reported in place of 6
            2678401 a a bears 0.000000 of 10.000000 (by_usage v1 0/8000000000000000000), booked -10.000000
            2678401 a lab bears 7.500000 of 10.000000 (by_usage v1 6000000000000000000/8000000000000000000), booked 7.500000
            2678401 a dev bears 2.500000 of 10.000000 (by_usage v1 2000000000000000000/8000000000000000000), booked 2.500000
        "#]],
    );
}

/// A record of time counts in each month with its part.
#[test]
fn time_is_divided_at_the_border_of_the_month() {
    story(
        "
        2674800 op sharing chat of=a on=shared method=by_usage unit=job_hours
        2678410 a use shared a/lab id=1 unit=job_hours from=2678390 to=2678400 n=1
        2678420 a use shared a/dev id=2 unit=job_hours from=2678390 to=2678410 n=2
        2678420 op posted a/a 10 through=2678400 plane=shared
        2678420 op settled 2678400
        2678420 op cut 1970-01
        2678421 op sharecost shared
        ",
        expect![[r#"
            2674800 a sharing version 1
            2678410 a 1 of lab reported
            2678420 a 2 of dev reported
            2678420 a ledger.posted
            2678420 - ledger.hour_settled since 2678400
            2678420 - period.closing
            2678421 a a bears 0.000000 of 10.000000 (by_usage v1 0/2000000000000000000), booked -10.000000
            2678421 a lab bears 5.000000 of 10.000000 (by_usage v1 1000000000000000000/2000000000000000000), booked 5.000000
            2678421 a dev bears 5.000000 of 10.000000 (by_usage v1 1000000000000000000/2000000000000000000), booked 5.000000
        "#]],
    );
}

#[test]
fn policies_are_checked() {
    story(
        "
        2674800 op sharing chat of=a on=own method=fixed
        2674800 op sharing chat of=a on=own method=fixed weights=a/a:60,a/lab:39.9
        2674800 op sharing chat of=a on=own method=fixed weights=a/a:60,a/a:40
        2674800 op sharing chat of=a on=own method=fixed weights=a/a:60,b/b:40
        2674800 op sharing chat of=a on=all method=fixed weights=a/a:60,b/b:40
        2674800 op sharing chat of=a on=own method=fixed weights=a/none:100
        2674800 op sharing chat of=a on=own method=by_tier
        2674800 op sharing chat of=a on=own method=by_tier tiers=gold:1,gold:2
        2674800 op sharing chat of=a on=own method=by_tier tiers=gold:0
        2674800 op sharing chat of=a on=own method=by_tier tiers=gold:1 members=a/lab:1
        2674800 op sharing chat of=a on=own method=by_tier tiers=gold:1 other=1
        2674800 op sharing chat of=a method=by_usage unit=tokens
        2674800 op sharing chat of=b on=own method=even
        2674800 op sharing none method=even
        2674800 a sharing chat method=even
        2674800 a sharing chat of=b method=even
        2674800 a sharing chat of=a billable=no
        2674800 a sharing chat of=a distributable=yes
        2674800 a sharing chat of=a on=all method=even
        2674800 a sharing chat of=a method=even
        2674800 op sharing chat distributable=no
        2674800 a sharing chat of=a method=even
        2674800 a sharing chat of=a on=shared method=by_usage
        2674800 a sharing chat of=a method=owner
        2674800 op sharing chat of=a on=shared distributable=yes billable=no
        2674800 a sharing chat of=a on=shared method=even
        ",
        expect![[r#"
            2674800 refused: bad_shares
            2674800 refused: bad_shares
            2674800 refused: bad_shares
            2674800 refused: unknown_project
            2674800 a sharing version 1
            2674800 refused: unknown_project
            2674800 refused: bad_tiers
            2674800 refused: bad_tiers
            2674800 refused: bad_tiers
            2674800 refused: bad_tiers
            2674800 refused: bad_tiers
            2674800 refused: unit_not_enabled
            2674800 refused: unknown_app_instance
            2674800 refused: unknown_app
            2674800 refused: sharing_by_operator
            2674800 refused: unknown_tenant
            2674800 refused: sharing_by_operator
            2674800 refused: sharing_by_operator
            2674800 refused: sharing_by_operator
            2674800 a sharing version 1
            2674800 - sharing version 1
            2674800 refused: not_distributable
            2674800 refused: not_distributable
            2674800 a sharing version 2
            2674800 a sharing version 1
            2674800 a sharing version 2
        "#]],
    );
}

/// Work in a unit that a policy bills is charged to who submits it, and credited to who pays for the capacity.
#[test]
fn work_is_charged_and_credited() {
    story(
        "
        2674800 op unitprice requests 2
        2674800 a apppolicy chat of=a on=own bill=requests
        2674800 a apppolicy chat of=a on=shared bill=tokens
        2674800 a apppolicy chat of=a on=shared bill=requests
        2674800 op topup a/a 100
        2674800 op topup a/lab 100
        2674800 op lend shared a/dev
        2674801 a use shared a/lab id=1 to=2674800 n=5
        2674801 a use shared a/lab id=2 to=2674800 n=5 unit=job_hours from=1
        2674801 op user a/u
        2674801 a use shared a/a id=3 to=2674800 n=5 user=a/u
        2674801 a use shared a/a id=4 to=2674800 n=5
        2674801 a submit core 1 app=1 lent=0
        2674801 a use shared a/lab id=7 to=2674800 n=1 lent=0 alloc=@1
        2674801 a use shared a/dev id=8 to=2674800 n=1 lent=0 alloc=@1
        2674801 a use shared a/a id=9 to=2674800 n=1 lent=0 alloc=@1 user=a/u
        2674801 a use shared a/a id=10 to=2674800 n=1 lent=0 alloc=@1
        2674801 a use shared a/lab id=5 to=2674800 n=5 cp
        2674802 a use shared a/lab id=6 old=1 to=2674800 n=3
        2674803 show prepaid
        ",
        expect![[r#"
            2674800 - unit_price.put
            2674800 refused: work_is_billed
            2674800 refused: unit_not_enabled
            2674800 a policy version 1
            2674800 a credit 1 of 100.000000
            2674800 a credit 1 of 100.000000
            2674800 a attachment.made
            2674801 a 5 of lab billed, credited to a
            2674801 a 5 of lab reported
            2674801 a user.put
            2674801 a 5 of a reported
            2674801 a 5 of a reported, no submitter
            2674801 a @1 submitted
            2674801 a @1 placed, attempt 1
            2674801 a granted #0 core 1 on n1 to 2761201
            2674801 a 1 of lab billed, credited to dev
            2674801 a 1 of dev reported
            2674801 a 1 of a billed, credited to dev
            2674801 a 1 of a reported, no submitter
            2674801 refused: usage_of_owner
            2674802 a 3 of lab billed in place of 5, credited to a
              a: enough, spent -4, reserved 0, balance 104, available 104; credit 1 has 100
              lab: enough, spent 8, reserved 0, balance 92, available 92; credit 1 has 92
        "#]],
    );
}
