//! The diagram of SEMANTICS 3: every way through it, and every way that is not in it.

use crate::support::{STAGE, Story, check};
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
        expect![[r#"
            10:00 a granted #0 gpu 7[0] on n1 to 12:00
            10:30 a released #0
              #0 releasing gpu 7 10:00..12:00 ended 10:30, teardown to 10:32
            10:31 a torn down #0 on n1
        "#]],
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
        expect![[r#"
            10:00 a granted #0 gpu 7[0] on n1 to 11:00
            11:00 a expired #0
              #0 expired gpu 7 10:00..11:00 ended 11:00, teardown to 11:02
            11:01 a torn down #0 on n1
        "#]],
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
        expect![[r#"
            100 a granted #0 gpu 7[0] on n1 to 3700
            200 a revoked #0, grace 1m (operator)
              #0 revoking gpu 7 100..3700 grace to 260
            260 a teardown of #0, grace_ended
              #0 tearing_down gpu 7 100..3700 ended 260, teardown to 380
            270 a torn down #0 on n1
        "#]],
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
        expect![[r#"
            100 a granted #0 gpu 7[0] on n1 to 3700
            200 a released #0
            320 a fenced #0
            321 refused: lease_fenced
              #0 fenced gpu 7 100..3700 ended 200
              n1 gpu: fenced 7, idle 7 devices [7, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
            400 a unfenced #0
              n1 gpu: idle 14 devices [0, 0]
              n1 cpu: idle 8000
              n1 core: idle 200
              n2 core: idle 200
        "#]],
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
        expect![[r#"
            100 a granted #0 gpu 14[0,1] on n1 to 3700
            101 a denied: gpu requested 7, most free 0
              #0 active gpu 14 100..3700
        "#]],
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
            let mut story = Story::on(STAGE);
            story.play("100 a grant gpu 1");
            let mut now = 202;
            for line in how.lines().map(str::trim).filter(|line| !line.is_empty()) {
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
    let expected: Expect = expect![[r#"
        active:
          renew    ok
          release  ok
          revoke   ok
          ready    lease_not_revoking
          confirm  lease_not_tearing_down
          unfence  lease_not_fenced
          report   ok
        revoking:
          renew    lease_revoking
          release  ok
          revoke   lease_revoking
          ready    ok
          confirm  lease_not_tearing_down
          unfence  lease_not_fenced
          report   ok
        releasing:
          renew    lease_released
          release  lease_released
          revoke   lease_released
          ready    lease_released
          confirm  ok
          unfence  lease_not_fenced
          report   lease_released
        expired:
          renew    lease_expired
          release  lease_expired
          revoke   lease_expired
          ready    lease_expired
          confirm  ok
          unfence  lease_not_fenced
          report   lease_expired
        tearing down:
          renew    lease_revoked
          release  lease_revoked
          revoke   lease_revoked
          ready    lease_revoked
          confirm  ok
          unfence  lease_not_fenced
          report   lease_revoked
        fenced:
          renew    lease_fenced
          release  lease_fenced
          revoke   lease_fenced
          ready    lease_fenced
          confirm  lease_fenced
          unfence  ok
          report   lease_fenced
        closed, released:
          renew    lease_released
          release  lease_released
          revoke   lease_released
          ready    lease_released
          confirm  lease_released
          unfence  lease_released
          report   lease_released
        closed, expired:
          renew    lease_expired
          release  lease_expired
          revoke   lease_expired
          ready    lease_expired
          confirm  lease_expired
          unfence  lease_expired
          report   lease_expired
        closed, revoked:
          renew    lease_revoked
          release  lease_revoked
          revoke   lease_revoked
          ready    lease_revoked
          confirm  lease_revoked
          unfence  lease_revoked
          report   lease_revoked
        closed, fence cleared:
          renew    lease_closed
          release  lease_closed
          revoke   lease_closed
          ready    lease_closed
          confirm  lease_closed
          unfence  lease_closed
          report   lease_closed
    "#]];
    expected.assert_eq(&table);
}

/// The last 4,096 are remembered, by number; the story of older ones is in the journal.
#[test]
fn a_lease_that_ended_long_ago_is_not_found() {
    let mut story = Story::on(STAGE);
    for i in 0..4096 {
        story.play(&format!("0 a grant core 1 node=n2\n 0 a release #{i}"));
    }
    story.text.clear();
    story.play(
        "
        1 a release #0
        1 a grant core 1 node=n2
        1 a release #4096
        1 a release #4096
        1 a release #0
        1 a release #1
        ",
    );
    expect![[r#"
        1 refused: lease_released
        1 a granted #4096 core 1 on n2 to 3601
        1 a released #4096, closed
        1 refused: lease_released
        1 refused: lease_not_found
        1 refused: lease_released
    "#]]
    .assert_eq(&story.text);
}
