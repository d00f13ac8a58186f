//! What stays as it is until the cost of a month is shared: runtimes and limits (SEMANTICS 12, "Who pays").

use crate::sharing::{shared, story};
use expect_test::expect;

/// Codes of refusals that are reached here.
pub(crate) const CODES: &[&str] = &["unposted_app_usage", "unshared_cost", "limits_in_use"];

/// The limits of the cut divide the month: they stay as they are until its shares are made and invoices begin.
#[test]
fn limits_stay_from_the_cut_to_the_invoices() {
    shared(
        "
        2674800 op entitle a/lab hard=30
        2674800 op entitle a/a hard=10
        2674800 op project a/idle
        2674800 op entitle a/idle hard=10
        2674800 op sharing chat of=a on=shared method=by_quota
        ",
        "
        2678401 op delete project a/idle
        2678401 op entitle a/lab hard=1
        2678401 op entitle a/dev hard=1
        2678401 a unentitle a/lab
        2678401 op entitle a/lab unit=job_hours hard=1
        2678401 op sharecost shared
        2678401 op entitle a/lab hard=1
        2678401 op invoice a owed=a/a:2.000000,a/lab:6.000001,a/idle:2.000000
        2678402 op entitle a/lab hard=1
        2678402 a unentitle a/lab
        ",
        expect![[r#"
            2674800 a entitlement.put
            2674800 a entitlement.put
            2674800 a project.put
            2674800 a entitlement.put
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a 1 of dev reported
            2674801 a 7 of a billed
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 - period.closing
            2678401 refused: limits_in_use
            2678401 refused: limits_in_use
            2678401 refused: limits_in_use
            2678401 refused: limits_in_use
            2678401 a entitlement.put
            2678401 a a bears 2.000000 of 10.000001 (by_quota v1 10000000000/50000000000), booked -8.000001
            2678401 a lab bears 6.000001 of 10.000001 (by_quota v1 30000000000/50000000000), booked 6.000001
            2678401 a idle bears 2.000000 of 10.000001 (by_quota v1 10000000000/50000000000), booked 2.000000
            2678401 refused: limits_in_use
            2678401 a invoice.issued
            2678402 a entitlement.put
            2678402 a entitlement.deleted
        "#]],
    );
}

/// A runtime stays while deleting it would change who pays: until what it used is posted and what its control plane cost
/// is shared.
#[test]
fn a_runtime_that_owes_nothing_can_be_deleted() {
    story(
        "
        2674800 op sharing chat of=a on=shared method=even
        2674801 a use shared a/lab id=1 to=2674800 n=5
        2674801 a grant core 1 app=0 ttl=60s
        2674802 op uninstance own
        2674802 a release #0
        2674803 op confirm n1 #0
        2674803 op uninstance own
        2674803 op uninstance shared
        2674803 op uninstance all
        2678400 op posted a/a 10.000001 through=2678400 plane=shared
        2678400 op settled 2678400
        2678400 op uninstance own
        2678400 op uninstance shared
        2678400 op cut 1970-01
        2678401 op uninstance shared
        2678401 op sharecost shared
        2678401 op uninstance shared
        2678401 op invoice a owed=a/lab:10.000001
        2678401 op state a 1970-01
        2678401 op finish 1970-01
        2678402 op uninstance shared
        ",
        expect![[r#"
            2674800 a sharing version 1
            2674801 a 5 of lab reported
            2674801 a granted #0 core 1 on n1 to 2674861
            2674802 refused: app_instance_in_use
            2674802 a released #0
            2674803 a torn down #0 on n1
            2674803 refused: unposted_app_usage
            2674803 refused: unposted_app_usage
            2674803 a app_instance.deleted
            2678400 a ledger.posted
            2678400 - ledger.hour_settled
            2678400 a app_instance.deleted
            2678400 refused: unshared_cost
            2678400 - period.closing
            2678401 refused: unshared_cost
            2678401 a a bears 0.000000 of 10.000001 (even v1 0/1), booked -10.000001
            2678401 a lab bears 10.000001 of 10.000001 (even v1 1/1), booked 10.000001
            2678401 refused: unshared_cost
            2678401 a invoice.issued
            2678401 a stated 1970-01 from 2 and 1 before the cut
            2678401 - 1970-01 closed, 1 invoices, Some(1) statements
            2678402 a app_instance.deleted
        "#]],
    );
}
