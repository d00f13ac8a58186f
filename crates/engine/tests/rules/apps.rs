//! App runtimes: the registry, who may hold what for them, and what other projects lend them (SEMANTICS 9 and 12).

use crate::ceilings::PRICED;
use crate::support::{STAGE, check, check_on};
use expect_test::expect;

/// For `bad_input`: the codes of refusals that these stories reach.
pub(crate) const CODES: &[&str] = &[
    "unknown_usage_unit",
    "unknown_app",
    "unknown_app_instance",
    "unknown_attachment",
    "registry_full",
    "bad_unit_price",
    "app_fixed",
    "app_in_use",
    "app_instance_in_use",
    "bad_mode_and_scope",
    "platform_by_operator",
    "app_of_other_project",
    "app_not_shared",
    "own_attachment",
    "allocation_lent",
    "source_needs_attachment",
    "attachment_needs_allocation",
    "attachment_mismatch",
    "attachment_ended",
    "project_has_app_instances",
    "project_has_attachments",
];

/// A shared runtime of a/a, number 0, to which a/lab lends by attachment 0; and a runtime of b.
const SHARED: &str = "
    0 op project a/lab
    0 op app slurm
    0 op instance shared a/a app=slurm scope=tenant
    0 op instance own b/b app=slurm
    0 op lend shared a/lab
";

#[track_caller]
fn shared(story: &str, expected: expect_test::Expect) {
    check_on(&format!("{STAGE}{SHARED}"), story, expected);
}

#[test]
fn units_and_prices_are_dated_and_never_change() {
    check(
        "
        1 op unit images count
        1 op unit images time
        1 op unit requests count
        2 op app slurm units=images,requests
        2 op app ray units=nothing
        3 op unitprice images 0.5
        3 op unitprice images 0.6 app=slurm from=100
        3 op unitprice images 0.7 from=2
        3 op unitprice nothing 1
        3 op unitprice images 1 app=nothing
        3 op unitprice images 1000001
        ",
        expect![[r#"
            1 - usage_unit.put
            1 refused: name_taken
            1 refused: name_taken
            2 - app_type.put
            2 refused: unknown_usage_unit
            3 - unit_price.put
            3 - unit_price.put
            3 refused: start_in_past
            3 refused: unknown_usage_unit
            3 refused: unknown_app
            3 refused: bad_unit_price
        "#]],
    );
}

#[test]
fn apps_keep_their_slug_and_go_when_nothing_runs() {
    check(
        "
        1 op app slurm
        1 op app slurm
        2 op app slurm no=0 origin=third_party units=job_hours
        2 op app other no=0
        2 op app other no=7
        3 op instance dev a/a app=slurm
        4 op unapp slurm
        5 op uninstance dev
        5 op unapp slurm
        5 op unapp slurm
        ",
        expect![[r#"
            1 - app_type.put
            1 refused: name_taken
            2 - app_type.put
            2 refused: app_fixed
            2 refused: unknown_app
            3 a app_instance.put
            4 refused: app_in_use
            5 a app_instance.deleted
            5 - app_type.deleted
            5 refused: unknown_app
        "#]],
    );
}

#[test]
fn instances_have_a_legal_mode_and_only_their_name_changes() {
    check(
        "
        1 op app slurm
        1 op instance one a/a app=slurm mode=tenant_dedicated scope=platform
        1 op instance one a/a app=slurm mode=platform_managed scope=project
        1 op instance one a/a app=slurm mode=platform_managed scope=tenant
        2 a instance one a/a app=slurm mode=platform_managed scope=platform
        2 op instance one a/a app=slurm mode=platform_managed scope=platform
        3 op instance one b/b app=slurm
        3 op instance one b/b app=slurm mode=platform_managed scope=platform
        3 op instance one a/a app=slurm
        3 a instance two b/b app=slurm
        3 op instance two a/a app=nothing
        4 op instance uno a/a no=0
        4 op instance uno a/a no=0 backend=ray
        4 op instance uno b/b no=0
        4 b instance mine a/a no=0
        4 op instance x a/a no=9
        ",
        expect![[r#"
            1 - app_type.put
            1 refused: bad_mode_and_scope
            1 refused: bad_mode_and_scope
            1 refused: bad_mode_and_scope
            2 refused: platform_by_operator
            2 a app_instance.put
            3 b app_instance.put
            3 refused: name_taken
            3 refused: name_taken
            3 refused: unknown_project
            3 refused: unknown_app
            4 a app_instance.put
            4 refused: app_fixed
            4 refused: unknown_app_instance
            4 refused: unknown_project
            4 refused: unknown_app
        "#]],
    );
}

#[test]
fn numbers_start_above_those_of_earlier_records() {
    // Before there was a registry, any number was taken.
    check_on(
        &format!("{STAGE}0 op app slurm\n 0 op instance first a/a app=slurm"),
        "
        1 a grant core 1 app=0
        2 a grant core 1 app=1
        3 op instance second a/a app=slurm
        4 a grant core 1 app=1
        5 op uninstance second
        6 a release #1
        6 op confirm n1 #1
        7 op uninstance second
        8 op instance third a/a app=slurm
        9 a grant core 1 app=1
        ",
        expect![[r#"
            1 a granted #0 core 1 on n1 to 3601
            2 refused: unknown_app_instance
            3 a app_instance.put
            4 a granted #1 core 1 on n1 to 3604
            5 refused: app_instance_in_use
            6 a released #1
            6 a torn down #1 on n1
            7 a app_instance.deleted
            8 a app_instance.put
            9 refused: unknown_app_instance
        "#]],
    );
}

#[test]
fn the_owner_of_a_runtime_holds_its_capacity() {
    shared(
        "
        1 a grant core 1 app=0
        1 a/lab grant core 1 app=0
        1 b grant core 1 app=0
        1 b submit core 1 app=0
        1 a/lab submit core 1 app=0
        1 a submit core 1 app=0
        2 op quota q a core by-app=1 hard=1
        2 op ceiling a hard=1 app=1
        2 op issue t role=app_operator tenant=a apps=1
        ",
        expect![[r#"
            1 a granted #0 core 1 on n1 to 3601
            1 refused: app_of_other_project
            1 refused: unknown_app_instance
            1 refused: unknown_app_instance
            1 refused: app_of_other_project
            1 a @1 submitted
            1 a @1 placed, attempt 1
            1 a granted #1 core 1 on n1 to 86401
            2 refused: unknown_app_instance
            2 refused: unknown_app_instance
            2 refused: unknown_app_instance
        "#]],
    );
}

#[test]
fn lending_needs_a_shared_runtime_and_another_project() {
    shared(
        "
        1 a/lab lend nothing a/lab
        1 a lend shared a/a
        1 b lend own b/b
        1 b lend shared b/b
        1 a lend shared a/nothing
        2 a/lab submit core 1
        2 a lend shared a/lab alloc=@1
        2 a lend shared a/lab alloc=@1
        2 a lend shared a/lab alloc=@9
        3 a submit core 1
        3 a lend shared a/lab alloc=@2
        4 a unlend 1
        4 a lend shared a/lab alloc=@1
        5 b unlend 0
        5 a unlend 9
        ",
        expect![[r#"
            1 refused: unknown_app_instance
            1 refused: own_attachment
            1 refused: app_not_shared
            1 refused: unknown_app_instance
            1 refused: unknown_project
            2 a @1 submitted
            2 a @1 placed, attempt 1
            2 a granted #0 core 1 on n1 to 86402
            2 a attachment.made
            2 refused: allocation_lent
            2 refused: allocation_not_found
            3 a @2 submitted
            3 a @2 placed, attempt 1
            3 a granted #1 core 1 on n1 to 86403
            3 refused: allocation_not_found
            4 a attachment.ended
            4 a attachment.made
            5 refused: unknown_attachment
            5 refused: unknown_attachment
        "#]],
    );
}

#[test]
fn lent_capacity_is_named_in_full() {
    shared(
        "
        1 a grant core 1 app=0 lent=0
        1 a grant core 1 source=a/lab
        1 a submit core 1 app=0 source=a/lab
        1 a submit core 1 lent=0
        1 a submit core 1 app=0 lent=0 source=a/a
        1 a submit core 1 app=0 lent=0 source=b/b
        1 a submit core 1 app=0 lent=7
        1 b submit core 1 app=1 lent=0
        2 a submit core 1 app=0 lent=0
        ",
        expect![[r#"
            1 refused: attachment_needs_allocation
            1 refused: source_needs_attachment
            1 refused: source_needs_attachment
            1 refused: attachment_mismatch
            1 refused: attachment_mismatch
            1 refused: unknown_project
            1 refused: unknown_attachment
            1 refused: unknown_project
            2 a @1 submitted
            2 a @1 placed, attempt 1
            2 a granted #0 core 1 on n1 to 86402
        "#]],
    );
}

/// Quotas of the lending project count what the owner holds by the attachment, and those of the owner do not.
#[test]
fn quotas_count_on_the_payer() {
    shared(
        "
        0 op quota lab a/lab core hard=5
        0 op quota own a/a core hard=3
        0 op quota jobs a/lab count=allocations hard=2
        1 a submit core 4 app=0 lent=0
        2 a grant core 3
        3 a grant core 1
        4 a/lab grant core 2
        5 a/lab grant core 1
        6 a submit core 1 app=0 lent=0
        7 show quotas
        8 a release #0
        9 show quotas
        ",
        expect![[r#"
            0 a quota lab: hard 5
            0 a quota own: hard 3
            0 a quota jobs: hard 2
            1 a @1 submitted
            1 a @1 placed, attempt 1
            1 a granted #0 core 4 on n1 to 86401
            2 a granted #1 core 3 on n1 to 3602
            3 a denied: own used 3, requested 1, limit 3
            4 a denied: lab used 4, requested 2, limit 5
            5 a granted #2 core 1 on n1 to 3605
            6 a denied: lab used 5, requested 1, limit 5
              lab used 5 of hard 5
              own used 3 of hard 3
              jobs used 1 of hard 2
            8 a @1 completed
            8 a released #0
              lab used 5 of hard 5
              own used 3 of hard 3
              jobs used 0 of hard 2
        "#]],
    );
}

#[test]
fn ceilings_and_credit_count_on_the_payer() {
    check_on(
        &format!("{PRICED}{SHARED}0 op ledger"),
        "
        0 op ceiling a/lab hard=150
        0 op ceiling a hard=10
        0 op topup a/lab 100
        1 a submit core 1 app=0 lent=0 ttl=60s
        2 show ceilings
        3 a renew #0 ttl=120s
        4 a renew #0 ttl=90s
        5 a submit core 1 app=0 lent=0 ttl=60s
        5 show waits
        6 a/lab grant core 1 ttl=20s
        7 a grant core 1 ttl=10s
        31 a complete @1
        32 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 150 EUR
            0 a ceiling hard 10 EUR
            0 a credit 1 of 100.000000
            1 a @1 submitted
            1 a @1 placed, attempt 1
            1 a granted #0 core 1 on n1 to 61
              a: hard 10, spent 0, reserved 0
              lab: hard 150, spent 0, reserved 60
            3 refused: prepaid_exhausted
            4 a renewed #0 to 94
            5 a @2 submitted
              @2 place 1: money: spent 0, reserved 93, requested 60 of 150
            6 a denied: prepaid enough, available 7, requested 20
            7 a granted #1 core 1 on n1 to 17
            31 a expired #1, closed since 17
            31 a @1 completed
            31 a released #0, closed
            32 a @2 placed, attempt 1
            32 a granted #2 core 1 on n1 to 92
              a: hard 10, spent 10, reserved 0
              lab: hard 150, spent 30, reserved 60
        "#]],
    );
}

/// What waits is cancelled; what runs ends at its deadline, and is not tried again.
#[test]
fn the_end_of_an_attachment() {
    shared(
        "
        1 a submit core 200 app=0 lent=0 ttl=60s
        1 a submit core 200 app=0 lent=0 ttl=60s requeue
        1 a submit core 200 app=0 lent=0
        1 a submit core 200
        2 a/lab unlend 0
        3 a renew #0 ttl=60s
        3 a submit core 1 app=0 lent=0
        4 op revoke #1 grace=0s
        5 show allocs
        6 op uninstance shared
        62
        63 op confirm n1 #0
        64 a cancel @4
        64 op confirm n1 #2
        65 op uninstance shared
        ",
        expect![[r#"
            1 a @1 submitted
            1 a @1 placed, attempt 1
            1 a granted #0 core 200 on n1 to 61
            1 a @2 submitted
            1 a @2 placed, attempt 1
            1 a granted #1 core 200 on n2 to 61
            1 a @3 submitted
            1 a @4 submitted
            2 a attachment.ended
            2 a @3 cancelled
            3 refused: attachment_ended
            3 refused: unknown_attachment
            4 a revoked #1, grace 0s (operator)
            5 a teardown of #1, grace_ended, closed since 4
            5 a @2 failed: revoked since 4
            5 a @4 placed, attempt 1
            5 a granted #2 core 200 on n2 to 86405
              @1 running attempt 1, holds 1
              @4 running attempt 1, holds 1
            6 refused: app_instance_in_use
            62 a expired #0 since 61
            62 a @1 failed: expired since 61
            63 a torn down #0 on n1
            64 a @4 cancelled
            64 a released #2, closed
            64 refused: lease_released
            65 a app_instance.deleted
        "#]],
    );
}

/// What a tenant owns goes with it: the app can be deleted afterwards.
#[test]
fn instances_go_with_their_tenant() {
    shared(
        "
        1 op unapp slurm
        2 op delete tenant a
        3 op unapp slurm
        4 op delete tenant b
        5 op unapp slurm
        ",
        expect![[r#"
            1 refused: app_in_use
            2 tenant-0 tenant.deleted
            3 refused: app_in_use
            4 tenant-1 tenant.deleted
            5 - app_type.deleted
        "#]],
    );
}

#[test]
fn projects_stay_while_they_own_or_lend() {
    shared(
        "
        1 op delete project a/lab
        1 op delete project a/a
        2 a submit core 1 app=0 lent=0 ttl=60s
        2 a submit core 400 app=0 lent=0
        3 a/lab unlend 0
        4 op delete project a/lab
        5 a release #0
        6 op delete project a/lab
        7 op uninstance shared
        8 op delete project a/a
        ",
        expect![[r#"
            1 refused: project_has_attachments
            1 refused: project_has_app_instances
            2 a @1 submitted
            2 a @1 placed, attempt 1
            2 a granted #0 core 1 on n1 to 62
            2 refused: gang_too_large
            3 a attachment.ended
            4 refused: project_has_leases
            5 a @1 completed
            5 a released #0
            6 refused: project_has_leases
            7 refused: app_instance_in_use
            8 refused: project_has_leases
        "#]],
    );
}
