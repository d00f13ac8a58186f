//! Usage that runtimes report (SEMANTICS 9 and 12).

use crate::support::{STAGE, check_on};
use expect_test::expect;

/// Codes of refusals that are reached here.
pub(crate) const CODES: &[&str] = &[
    "unit_not_enabled",
    "usage_of_owner",
    "no_usage_time",
    "usage_ends_first",
    "usage_in_future",
    "usage_too_long",
    "too_late",
    "too_much_usage",
    "usage_quantity_too_large",
    "lent_usage_needs_both",
    "allocation_not_lent",
    "usage_id_taken",
    "unknown_usage_record",
    "usage_superseded",
    "supersedes_other_tenant",
    "usage_ids_behind",
    "too_many_usage_records",
    "usage_batch_refused",
    "usage_twice",
    "usage_known",
];

/// A runtime of a/a, one that the tenant shares, one of the platform; a/lab lends to the shared one.
const RUNTIMES: &str = "
    0 op project a/lab
    0 op app slurm units=requests,job_hours,uptime_hours
    0 op instance own a/a app=slurm
    0 op instance shared a/a app=slurm scope=tenant
    0 op instance all a/a app=slurm mode=platform_managed scope=platform
    0 op lend shared a/lab
";

#[track_caller]
fn story(story: &str, expected: expect_test::Expect) {
    check_on(&format!("{STAGE}{RUNTIMES}"), story, expected);
}

#[test]
fn whose_usage_it_is_follows_from_the_scope() {
    story(
        "
        20 a use own a/a id=1 to=10
        20 a use own a/lab id=2 to=10
        20 a use shared a/lab id=3 to=10
        20 a use shared a/a id=4 to=10
        20 a use shared a/a cp id=5 to=10
        20 a use shared a/lab cp id=6 to=10
        20 a use shared b/b id=7 to=10
        20 a use all b/b id=8 to=10
        20 b use all b/b id=9 to=10 by=b
        20 op use all b/b id=9 to=10 by=op
        20 op use own a/a id=10 to=10 by=a
        20 a use own a/none id=11 to=10
        20 a use none a/a id=12 to=10
        20 a use own a/a id=13 to=10 user=b/nobody
        ",
        expect![[r#"
            20 a 1 of a billed
            20 refused: usage_of_owner
            20 a 1 of lab reported
            20 a 1 of a reported, no submitter
            20 a 1 of a billed
            20 refused: usage_of_owner
            20 refused: unknown_app_instance
            20 b 1 of b billed
            20 refused: unknown_app_instance
            20 b 1 of b billed
            20 refused: unknown_app_instance
            20 refused: unknown_app_instance
            20 refused: unknown_app_instance
            20 refused: unknown_user
        "#]],
    );
}

/// A worker that is up is no job that somebody submitted.
#[test]
fn uptime_has_no_submitter_to_miss() {
    story(
        "
        1 a apppolicy slurm of=a on=shared bill=uptime_hours
        19 a submit core 1 app=1 lent=0
        20 a use shared a/a id=1 to=10
        20 a use shared a/a id=2 from=1 to=10 unit=uptime_hours
        20 a use shared a/a id=3 from=1 to=10 unit=uptime_hours lent=0 alloc=@1
        20 a use shared a/a id=4 from=1 to=10 unit=job_hours lent=0 alloc=@1
        ",
        expect![[r#"
            1 a policy version 1
            19 a @1 submitted
            19 a @1 placed, attempt 1
            19 a granted #0 core 1 on n1 to 86419
            20 a 1 of a reported, no submitter
            20 a 1 of a reported
            20 a 1 of a reported
            20 a 1 of a reported, no submitter
        "#]],
    );
}

#[test]
fn times_quantities_and_units_are_checked() {
    story(
        "
        20 a use own a/a id=1 to=21
        20 a use own a/a id=1 from=11 to=10
        20 a use own a/a id=1 from=10 to=10 unit=job_hours
        20 a use own a/a id=1 from=10 to=10
        20 a use own a/a id=2 to=10 unit=tokens
        20 a use own a/a id=2 to=10 unit=nothing
        20 a use own a/a id=2 to=10 n=1000000000001
        3024010 a use own a/a id=3 to=10
        3024011 a use own a/a id=4 to=10
        40000000 a use own a/a id=5 from=100 to=39999999
        ",
        expect![[r#"
            20 refused: usage_in_future
            20 refused: usage_ends_first
            20 refused: no_usage_time
            20 a 1 of a billed
            20 refused: unit_not_enabled
            20 refused: unknown_usage_unit
            20 refused: usage_quantity_too_large
            3024010 a 1 of a billed
            3024011 refused: too_late
            40000000 refused: usage_too_long
        "#]],
    );
}

#[test]
fn an_id_is_recorded_once() {
    story(
        "
        20 a use own a/a id=1 to=10 n=5
        20 a use own a/a id=1 to=10 n=5
        20 a use own a/a id=1 to=10 n=6
        20 a use own a/a id=1 to=10 n=5 source=other
        20 op use own a/a id=1 to=10 n=5 by=op
        20 a use shared a/lab id=1 to=10 n=5
        ",
        expect![[r#"
            20 a 5 of a billed
            20 repeated: record 17
            20 refused: usage_id_taken
            20 a 5 of a billed
            20 a 5 of a billed
            20 refused: usage_id_taken
        "#]],
    );
}

#[test]
fn the_newest_of_a_chain_is_superseded() {
    story(
        "
        20 a use own a/a id=1 to=10 n=100
        21 a use own a/a id=2 to=10 n=150 old=1
        22 a use own a/a id=3 to=10 n=120 old=1
        22 a use own a/a id=3 to=10 n=120 old=2
        23 a use own a/a id=4 to=10 n=1 old=9
        23 a use own a/a id=4 to=10 n=1 old=3 known=5
        23 a use own a/a id=4 to=10 n=1 old=3
        24 a use all b/b id=5 to=10 n=1
        24 a use all a/a id=6 to=10 n=1 old=5
        24 a use all b/b id=6 to=10 n=0 old=5
        ",
        expect![[r#"
            20 a 100 of a billed
            21 a 150 of a billed in place of 100
            22 refused: usage_superseded
            22 a 120 of a billed in place of 150
            23 refused: unknown_usage_record
            23 refused: usage_ids_behind
            23 a 1 of a billed in place of 120
            24 b 1 of b billed
            24 refused: supersedes_other_tenant
            24 b 0 of b billed in place of 1
        "#]],
    );
}

#[test]
fn usage_of_lent_workers_names_the_attachment_and_the_allocation() {
    story(
        "
        19 a submit core 1 app=1 lent=0
        20 a use shared a/lab id=1 to=10 lent=0
        20 a use shared a/lab id=1 to=10 alloc=@1
        20 a use shared a/lab id=1 to=10 lent=0 alloc=@1
        20 a use shared a/lab id=2 to=10 lent=7 alloc=@1
        20 a use own a/a id=2 to=10 lent=0 alloc=@1
        21 op unlend 0
        22 a use shared a/lab id=3 to=10 lent=0 alloc=@1
        ",
        expect![[r#"
            19 a @1 submitted
            19 a @1 placed, attempt 1
            19 a granted #0 core 1 on n1 to 86419
            20 refused: lent_usage_needs_both
            20 refused: lent_usage_needs_both
            20 a 1 of lab reported
            20 refused: unknown_attachment
            20 refused: attachment_mismatch
            21 a attachment.ended
            22 a 1 of lab reported
        "#]],
    );
}

/// The allocation is one that the attachment lends: submitted on its account, or of the project that lends. It may be
/// over; then the books are asked for it.
#[test]
fn usage_of_lent_workers_names_an_allocation_that_is_lent() {
    story(
        "
        19 a submit core 1 app=1 lent=0
        19 a/lab submit core 1
        19 a submit core 1 app=1
        19 b submit core 1
        20 a use shared a/lab id=1 to=10 lent=0 alloc=@1
        20 a use shared a/lab id=2 to=10 lent=0 alloc=@2
        20 a use shared a/lab id=3 to=10 lent=0 alloc=@3
        20 a use shared a/lab id=3 to=10 lent=0 alloc=@4
        20 a use shared a/lab id=3 to=10 lent=0 alloc=1
        20 a use shared a/lab id=3 to=10 lent=0 alloc=999
        21 a complete @1
        22 a use shared a/lab id=4 to=10 lent=0 alloc=@1 known=5
        22 a use shared a/lab id=4 to=10 lent=0 alloc=@1
        23 a lend shared a/lab alloc=@2
        23 a/lab submit core 1
        24 a use shared a/lab id=5 to=10 lent=1 alloc=@2
        24 a use shared a/lab id=6 to=10 lent=1 alloc=@5
        24 a use shared a/lab id=6 to=10 lent=1 alloc=@1
        25 a/lab unlend 1
        26 a use shared a/lab id=6 to=10 lent=1 alloc=@5
        26 a use shared a/lab id=7 to=10 lent=1 alloc=@2
        ",
        expect![[r#"
            19 a @1 submitted
            19 a @1 placed, attempt 1
            19 a granted #0 core 1 on n1 to 86419
            19 a @2 submitted
            19 a @2 placed, attempt 1
            19 a granted #1 core 1 on n1 to 86419
            19 a @3 submitted
            19 a @3 placed, attempt 1
            19 a granted #2 core 1 on n1 to 86419
            19 b @4 submitted
            19 b @4 placed, attempt 1
            19 b granted #3 core 1 on n1 to 86419
            20 a 1 of lab reported
            20 a 1 of lab reported
            20 refused: allocation_not_lent
            20 refused: allocation_not_lent
            20 refused: allocation_not_lent
            20 refused: allocation_not_lent
            21 a @1 completed
            21 a released #0
            22 refused: usage_ids_behind
            22 a 1 of lab reported
            23 a attachment.made
            23 a @5 submitted
            23 a @5 placed, attempt 1
            23 a granted #4 core 1 on n1 to 86423
            24 a 1 of lab reported
            24 refused: allocation_not_lent
            24 refused: allocation_not_lent
            25 a attachment.ended
            26 refused: allocation_not_lent
            26 a 1 of lab reported
        "#]],
    );
}

#[test]
fn a_month_has_a_limit_and_less_always_passes() {
    let full: String = (0..1000).map(|n| format!("20 a use own a/a id=f{n} to=10 n=1000000000000\n")).collect();
    check_on(
        &format!("{STAGE}{RUNTIMES}{full}"),
        "
        20 a use own a/a id=1 to=10
        20 a use own a/a id=2 to=10 n=5 old=f0
        20 a use own a/a id=3 to=10
        20 a use shared a/lab id=4 to=10
        ",
        expect![[r#"
            20 refused: too_much_usage
            20 a 5 of a billed in place of 1000000000000
            20 a 1 of a billed
            20 a 1 of lab reported
        "#]],
    );
}

#[test]
fn several_are_recorded_together_or_not_at_all() {
    story(
        "
        20 a useall own a/a+1 a/a+2 to=10
        20 a useall own a/a+2 a/a+3 to=10
        20 a useall own a/a+4 a/lab+5 to=10
        20 a use own a/a id=4 to=10
        20 a useall own a/a+6 a/a+6 to=10
        20 a useall own a/a+1 a/a+2 to=10
        20 a useall own to=10
        ",
        expect![[r#"
            20 a 1 of a billed
            20 a 1 of a billed
            20 a 1 of a billed
            20 refused: usage_batch_refused
            20 a 1 of a billed
            20 refused: usage_twice
            20 refused: usage_known
            20 refused: too_many_usage_records
        "#]],
    );
}

#[test]
fn billed_usage_counts_against_ceilings() {
    story(
        "
        1 op unitprice requests 0.5
        2 op ceiling a hard=10
        2 op ceiling a/lab hard=10
        20 a use own a/a id=1 to=10 n=4
        20 a use shared a/lab id=2 to=10 n=4
        20 a use shared a/a cp id=3 to=10 n=2
        20 a use own a/a id=4 to=10 n=6 old=1
        20 a use own a/a id=5 from=0 to=1
        20 show ceilings
        ",
        expect![[r#"
            1 - unit_price.put
            2 a ceiling hard 10 EUR
            2 a ceiling hard 10 EUR
            20 a 4 of a billed
            20 a 4 of lab reported
            20 a 2 of a billed
            20 a 6 of a billed in place of 4
            20 a 1 of a billed
              a: hard 10, spent 4, reserved 0
              lab: hard 10, spent 0, reserved 0
        "#]],
    );
}
