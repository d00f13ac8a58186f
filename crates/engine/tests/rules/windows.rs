//! Maintenance windows (SEMANTICS 11).

use crate::support::{Story, check_on};
use expect_test::expect;
use leasehold_engine::command::ReserveNodes;
use leasehold_engine::{Command, State};
use leasehold_model::{Instant, NodeNo};

/// Two nodes with 10 cores each, the second without an agent; the pool has a grace of 20 s.
const STAGE: &str = "
    0 op class core kind=cpu per=1
    0 op pool main grace=20s
    0 op node n1 core 10 rack=r1
    0 op node n2 immediate core 10 rack=r1
    0 op tenant a max=guaranteed
    0 op tenant b max=guaranteed
    0 op project a/a
    0 op project b/b
    0 op user a/ada
";

/// For `bad_input`: the codes of the refusals below.
pub(crate) const CODES: &[&str] = &[
    "unknown_window",
    "window_reached",
    "node_in_window",
    "window_on_claim",
    "window_in_past",
    "window_empty",
    "too_many_windows",
];

/// A random command about windows, for `laws`: mostly a window, sometimes the end of one. An open loss is settled first.
pub(crate) fn some_command(state: &State, node: NodeNo) -> Command {
    if let Some(settlement) = crate::losses::some_settlement(state) {
        return settlement;
    }
    let now = state.last_stamp().0;
    let second = 1_000_000_000;
    match state.windows().last() {
        Some(window) if (now / second).is_multiple_of(3) => Command::UnreserveNodes(window.number),
        _ => Command::ReserveNodes(ReserveNodes {
            nodes: vec![node],
            from: (!(now / second).is_multiple_of(4)).then_some(Instant(now + 40 * second)),
            until: Instant(now + (20 + now / second % 90) * second),
            reason: None,
        }),
    }
}

#[test]
fn what_cannot_be_reserved_or_cancelled_is_refused() {
    let before: String = (0..1023).map(|n| format!("2 op reserve n2 from={} until=9000\n", 100 + n)).collect();
    let mut story = Story::on(STAGE);
    story.play("0 a grant core 5 node=n1 ttl=100s\n 1 op node n3 core 1\n 1 a claim n3 user=a/ada");
    story.play("1 op reserve n1 from=50 until=60");
    let mut told = String::new();
    let mut refused = |story: &mut Story, line: &str| {
        let refusal = story.line(line).expect("a decision").expect_err(line);
        told.push_str(&format!("{line}\n    {}: {refusal}\n", refusal.code()));
    };
    for line in [
        "2 op reserve n9 until=20",
        "2 op reserve until=20",
        "2 op reserve n3 until=20",
        "2 op reserve n2 from=1 until=20",
        "2 op reserve n2 from=20 until=20",
        "2 op unreserve 1",
        "2 a renew #0 ttl=100s",
    ] {
        refused(&mut story, line);
    }
    story.play(&before);
    refused(&mut story, "3 op reserve n2 until=20");
    story.play("4 op unreserve 1");
    story.play("4 op reserve n2 until=60");
    refused(&mut story, "5 op resume n2");
    refused(&mut story, "5 a claim n2 user=a/ada");
    expect![[r#"
        2 op reserve n9 until=20
            unknown_node: there is no node-99
        2 op reserve until=20
            no_nodes: the command names no node
        2 op reserve n3 until=20
            window_on_claim: node-2 is claimed for sensitive work; it can be reserved for maintenance after it was released
        2 op reserve n2 from=1 until=20
            window_in_past: a maintenance window cannot begin in the past; leave out `from` to begin now
        2 op reserve n2 from=20 until=20
            window_empty: a maintenance window must end after it begins
        2 op unreserve 1
            unknown_window: there is no window-1; it may have ended
        2 a renew #0 ttl=100s
            window_reached: lease-0 cannot be renewed past 1970-01-01T00:00:50Z: its node is reserved for maintenance by window-0
        3 op reserve n2 until=20
            too_many_windows: there are at most 1024 maintenance windows that have not ended; cancel some
        5 op resume n2
            node_in_window: node-1 is reserved for maintenance by window-1024; cancel that window, or wait until it has ended
        5 a claim n2 user=a/ada
            node_in_window: node-1 is reserved for maintenance by window-2; cancel that window, or wait until it has ended
    "#]].assert_eq(&told);
}

#[test]
fn nothing_is_granted_or_renewed_past_the_start_of_a_window() {
    check_on(
        STAGE,
        "
        0 op drain n2
        1 a grant core 1 ttl=50s
        2 op reserve n1 from=100 until=200
        3 a grant core 1 ttl=300s
        4 a grant core 1 ttl=96s
        5 a renew #0 ttl=300s
        6 a renew #0 ttl=10s
        7 a renew #0 ttl=300s
        8 a renew #0 ttl=300s
        9 op unreserve 0
        9 a renew #0 ttl=300s
        ",
        expect![[r#"
            0 - drained n2
            1 a granted #0 core 1 on n1 to 51
            2 - window-0 on n1 from 100 until 200
            2 a told of window-0: #0
            3 a granted #1 core 1 on n1 to 100, capped by window-0
            4 a granted #2 core 1 on n1 to 100
            5 a renewed #0 to 100
            6 a renewed #0 to 16
            7 a renewed #0 to 100
            8 refused: window_reached
            9 - window-0 cancelled
            9 a told that window-0 is cancelled: #0
            9 a told that window-0 is cancelled: #1
            9 a told that window-0 is cancelled: #2
            9 a renewed #0 to 309
        "#]],
    );
}

#[test]
fn a_window_drains_its_nodes_and_revokes_what_runs_there_with_the_grace_of_the_pool() {
    check_on(
        STAGE,
        "
        0 a grant core 4 node=n1
        0 b grant core 10 node=n2
        1 op reserve n1 n2 from=100 until=200
        100
        101 show capacity
        110 a ready #0
        111 op confirm n1 #0
        119 a grant core 1
        120
        200
        200 show capacity
        201 a grant core 1
        ",
        expect![[r#"
            0 a granted #0 core 4 on n1 to 3600
            0 b granted #1 core 10 on n2 to 3600
            1 - window-0 on n1 n2 from 100 until 200
            1 a told of window-0: #0
            1 b told of window-0: #1
            100 - window-0 began
            100 a revoked #0, grace 20s (operator)
            100 b revoked #1, grace 20s (operator)
              n1 core: held 4, offline 6
              n2 core: held 10
            110 a teardown of #0, ready
            111 a torn down #0 on n1
            119 a denied: core requested 1, most free 0
            120 b teardown of #1, grace_ended, closed
            200 - window-0 ended
              n1 core: idle 10
              n2 core: idle 10
            201 a granted #2 core 1 on n1 to 3801
        "#]],
    );
}

#[test]
fn a_window_that_begins_at_once_and_is_cancelled() {
    check_on(
        STAGE,
        "
        10 op reserve n1 n2 until=200
        10 a grant core 1
        20 op unreserve 0
        20 a grant core 1
        ",
        expect![[r#"
            10 - window-0 on n1 n2 from 10 until 200
            10 - window-0 began
            10 a denied: core requested 1, most free 0
            20 - window-0 cancelled
            20 a granted #0 core 1 on n1 to 3620
        "#]],
    );
}

#[test]
fn a_node_is_drained_while_an_operator_or_any_window_holds_it() {
    check_on(
        STAGE,
        "
        0 op drain n2
        10 op reserve n1 from=20 until=40
        10 op reserve n1 from=30 until=50
        35 op drain n1
        40
        45 op resume n1
        46 a grant core 1
        50
        51 a grant core 1
        ",
        expect![[r#"
            0 - drained n2
            10 - window-0 on n1 from 20 until 40
            10 - window-1 on n1 from 30 until 50
            35 - window-0 began since 20
            35 - window-1 began since 30
            35 - drained n1
            40 - window-0 ended
            45 - resumed n1
            46 a denied: core requested 1, most free 0
            50 - window-1 ended
            51 a granted #0 core 1 on n1 to 3651
        "#]],
    );
}

#[test]
fn an_end_comes_before_a_start_at_the_same_instant() {
    check_on(
        STAGE,
        "
        10 op reserve n1 from=50 until=60
        10 op reserve n1 from=20 until=50
        50
        ",
        expect![[r#"
            10 - window-0 on n1 from 50 until 60
            10 - window-1 on n1 from 20 until 50
            50 - window-1 began since 20
            50 - window-1 ended
            50 - window-0 began
        "#]],
    );
}

#[test]
fn work_with_a_walltime_starts_only_if_it_ends_before_the_window() {
    check_on(
        STAGE,
        "
        0 op reserve n1 n2 from=100 until=200
        1 a submit core 10 wall=99s
        2 a submit core 10 wall=99s
        3 b submit core 5 wall=97s
        110
        201
        ",
        expect![[r#"
            0 - window-0 on n1 n2 from 100 until 200
            1 a @1 submitted
            1 a @1 placed, attempt 1
            1 a granted #0 core 10 on n1 to 100
            2 a @2 submitted
            3 b @3 submitted
            3 b @3 placed, attempt 1
            3 b granted #1 core 5 on n2 to 100
            110 a expired #0 since 100
            110 b expired #1, closed since 100
            110 - window-0 began since 100
            110 a @1 failed: walltime since 100
            110 b @3 failed: walltime since 100
            201 - window-0 ended since 200
            201 a @2 placed, attempt 1
            201 a granted #2 core 10 on n2 to 300
        "#]],
    );
}

#[test]
fn a_gang_falls_whole_when_a_window_begins_on_one_of_its_nodes() {
    check_on(
        STAGE,
        "
        0 a submit core 8 x=2 requeue
        1 op reserve n1 from=50 until=100
        50
        71 op confirm n1 #0
        ",
        expect![[r#"
            0 a @1 submitted, 2 replicas
            0 a @1 placed, attempt 1
            0 a granted #0 core 8 on n1 to 86400
            0 a granted #1 core 8 on n2 to 86400
            1 - window-0 on n1 from 50 until 100
            1 a told of window-0: #0
            50 - window-0 began
            50 a revoked #0 #1, grace 20s (operator)
            71 a teardown of #0, grace_ended since 70
            71 a teardown of #1, grace_ended, closed since 70
            71 a @1 requeued: revoked since 70
            71 a torn down #0 on n1
        "#]],
    );
}

#[test]
fn a_restart_after_the_window_catches_up_in_order() {
    check_on(
        STAGE,
        "
        0 a grant core 4 node=n1 ttl=300s
        1 op reserve n1 from=100 until=150
        220
        221 a grant core 10 node=n1
        ",
        expect![[r#"
            0 a granted #0 core 4 on n1 to 300
            1 - window-0 on n1 from 100 until 150
            1 a told of window-0: #0
            220 - window-0 began since 100
            220 a revoked #0, grace 20s (operator)
            220 - window-0 ended since 150
            221 a denied: core requested 10, most free 6
        "#]],
    );
}
