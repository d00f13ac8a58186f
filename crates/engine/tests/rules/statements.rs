//! Statements about the records of a month that is being closed (ADR 25).

use crate::support::{STAGE, check_on};
use expect_test::expect;

/// Codes of refusals that are reached here.
pub(crate) const CODES: &[&str] = &["statement_exists", "statement_mismatch"];

/// Two tenants owe something for the last hour of January 1970, and the month is cut.
const CUT: &str = "
    2674800 op ledger
    2678400 op posted a/a 10 through=2678400
    2678400 op posted b/b 2.5 through=2678400
    2678400 op settled 2678400
    2678400 op cut 1970-01
";

#[track_caller]
fn story(story: &str, expected: expect_test::Expect) {
    check_on(&format!("{STAGE}{CUT}"), story, expected);
}

#[test]
fn each_tenant_with_an_invoice_gets_one() {
    story(
        "
        2678401 op invoice a owed=a/a:10
        2678401 op state b 1970-01
        2678401 op state a 1970-01
        2678401 op state a 1970-01
        2678401 op state a 1970-01 from=-1
        2678401 op invoice b owed=b/b:2.5
        2678402 op state b 1970-01 from=0 border=0
        2678402 op finish 1970-01
        2678403 op state a 1970-01
        ",
        expect![[r#"
            2678401 a invoice.issued
            2678401 refused: invoice_missing
            2678401 a stated 1970-01 from 2 and 1 before the cut
            2678401 refused: statement_exists
            2678401 refused: statement_exists
            2678401 b invoice.issued
            2678402 b stated 1970-01 from 0 and 0 before the cut
            2678402 - 1970-01 closed, 2 invoices, Some(2) statements
            2678403 refused: no_period_closing
        "#]],
    );
}

/// The range is that of the month, and ends before its cut.
#[test]
fn a_statement_is_about_the_month_and_its_cut() {
    story(
        "
        2678401 op state a 1970-01
        2678401 op invoice a owed=a/a:10
        2678401 op state a 1970-02
        2678401 op state a 1970-03
        2678401 op state a 1970-01 cut=1
        2678401 op state a 1970-01 cut=-1 border=-1
        2678401 op state a 1970-01 from=0 border=-1
        2678401 op state a 1970-01 border=1
        2678401 op state a 1970-01 from=-5 border=-5
        ",
        expect![[r#"
            2678401 refused: invoice_missing
            2678401 a invoice.issued
            2678401 refused: no_period_closing
            2678401 refused: no_period_closing
            2678401 refused: statement_mismatch
            2678401 refused: statement_mismatch
            2678401 refused: statement_mismatch
            2678401 refused: statement_mismatch
            2678401 a stated 1970-01 from 5 and 5 before the cut
        "#]],
    );
}

/// A month is closed without statements, too: those of old journals cannot be made.
#[test]
fn a_month_is_closed_without_statements() {
    story(
        "
        2678401 op invoice a owed=a/a:10
        2678401 op finish 1970-01
        2678401 op invoice b owed=b/b:2.5
        2678401 op state b 1970-01
        2678401 op finish 1970-01
        ",
        expect![[r#"
            2678401 a invoice.issued
            2678401 refused: invoice_missing
            2678401 b invoice.issued
            2678401 b stated 1970-01 from 2 and 1 before the cut
            2678401 - 1970-01 closed, 2 invoices, Some(1) statements
        "#]],
    );
}
