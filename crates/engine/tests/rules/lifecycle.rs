//! The diagram of SEMANTICS 3: every way through it, and every way that is not in it.

use crate::support::{Story, check};
use expect_test::{Expect, expect};

#[test]
fn released_by_its_holder() {
    check(
        "
        10:00 a grant gpu 1 ttl=2h
        10:30 a release #0
        10:30 show leases
        10:31 op confirm n1 #0
        10:31 show leases
        ",
        expect![[""]],
    );
}

#[test]
fn expired_at_its_deadline() {
    check(
        "
        10:00 a grant gpu 1 ttl=1h
        11:00
        11:00 show leases
        11:01 op confirm n1 #0
        ",
        expect![[""]],
    );
}

#[test]
fn revoked_torn_down_and_closed() {
    check(
        "
        100 a grant gpu 1
        200 op revoke #0 grace=60s
        200 show leases
        260
        260 show leases
        270 op confirm n1 #0
        ",
        expect![[""]],
    );
}

#[test]
fn an_unconfirmed_teardown_is_fenced_and_only_an_operator_clears_it() {
    check(
        "
        100 a grant gpu 1
        200 a release #0
        320
        321 op confirm n1 #0
        322 show leases
        322 show capacity
        400 op unfence #0
        400 show capacity
        ",
        expect![[""]],
    );
}

#[test]
fn denied() {
    check(
        "
        100 a grant gpu 2
        101 a grant gpu 1
        101 show leases
        ",
        expect![[""]],
    );
}

/// What each command answers in each phase; `ok` where the diagram has an arrow.
#[test]
fn every_arrow_and_no_other() {
    let phases = [
        ("active", ""),
        ("revoking", "200 op revoke #0 grace=60s"),
        ("releasing", "200 a release #0"),
        ("expired", "3700"),
        ("tearing down", "200 op revoke #0 grace=0s\n 200"),
        ("fenced", "200 a release #0\n 320"),
        ("closed, released", "200 a release #0\n 201 op confirm n1 #0"),
        ("closed, expired", "3700\n 3701 op confirm n1 #0"),
        ("closed, revoked", "200 op revoke #0 grace=0s\n 200\n 201 op confirm n1 #0"),
        ("closed, fence cleared", "200 a release #0\n 320\n 321 op unfence #0"),
        ("closed long ago", "200 a release #0\n 201 op confirm n1 #0\n 202 op many"),
    ];
    let commands = [
        "a renew #0 ttl=10s",
        "a release #0",
        "op revoke #0 grace=5s",
        "a ready #0",
        "op confirm n1 #0",
        "op unfence #0",
        "a report #0(1s)",
    ];
    let mut table = String::new();
    for (phase, how) in phases {
        table.push_str(&format!("{phase}:\n"));
        for command in commands {
            let mut story = Story::on(crate::support::STAGE);
            story.play("100 a grant gpu 1");
            let mut now = 202;
            for line in how.lines().map(str::trim).filter(|line| !line.is_empty()) {
                if line.ends_with("many") {
                    // As many others come and go as ended leases are remembered.
                    (0..4096).for_each(|i| story.play(&format!("203 a grant core 1 node=n2\n 203 a release #{}", i + 1)));
                    now = 203;
                    continue;
                }
                let at: u64 = line.split(' ').next().and_then(|at| at.parse().ok()).expect("a time");
                now = now.max(at);
                story.play(line);
            }
            let answer = story.line(&format!("{now} {command}")).expect("a decision");
            let verb = command.split(' ').nth(1).expect("a verb");
            let answer = answer.map_or_else(|refusal| refusal.code(), |_| "ok");
            table.push_str(&format!("  {verb:8} {answer}\n"));
        }
    }
    let expected: Expect = expect![[""]];
    expected.assert_eq(&table);
}
