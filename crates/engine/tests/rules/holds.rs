//! Waiting allocations on hold, and changes of what they ask for.

use crate::support::check;
use expect_test::expect;
use leasehold_engine::Command;
use leasehold_engine::command::{ChangeAllocation, HoldAllocation, NoteEmptyNode};
use leasehold_model::{AllocationNo, Instant, NodeNo, Priority, Span};

/// The refusals that the stories here reach.
pub(crate) const CODES: &[&str] = &[
    "allocation_not_waiting",
    "allocation_on_hold",
    "allocation_not_on_hold",
    "held_by_operator",
    "allocation_unchanged",
];

/// A random command about an allocation that waits, about a node that is empty, or the end of an allocation.
pub(crate) fn command(what: u8, allocation: AllocationNo, figure: u64) -> Command {
    match what {
        9 => Command::HoldAllocation(HoldAllocation { allocation, reason: None }),
        10 => Command::ReleaseHold(allocation),
        11 => Command::ChangeAllocation(ChangeAllocation {
            allocation,
            priority: Priority::ALL.get(usize::try_from(figure % 4).expect("small")).copied(),
            pool: None,
            walltime: Some((figure % 3 > 0).then(|| Span::from_secs(1 + figure % 300))),
            ttl: None,
            requeue: Some(figure % 2 == 0),
        }),
        12 => Command::NoteEmptyNode(NoteEmptyNode {
            node: NodeNo(u32::try_from(figure % 4).expect("small")),
            since: Instant(figure % 3),
        }),
        _ => Command::CancelAllocation(allocation),
    }
}

/// While the head of the line is on hold, others start on the capacity that it would have got.
#[test]
fn a_held_head_does_not_block_the_line() {
    check(
        "
        0 a grant core 200 ttl=9000s node=n1
        0 a grant core 190 ttl=100s node=n2
        1 a submit core 20 wall=50s
        2 a submit core 10 wall=500s
        3 show waits
        4 a hold @1
        5 show waits
        101 show allocs
        102 a unhold @1
        103 show allocs
        ",
        expect![[r#"
            0 a granted #0 core 200 on n1 to 9000
            0 a granted #1 core 190 on n2 to 100
            1 a @1 submitted
            2 a @2 submitted
            2 a @2 placed, attempt 1
            2 a granted #2 core 10 on n2 to 502
              @1 place 1: 20 core short, 0 would fit
            4 a @1 on hold
              @1 place 1: on hold
            101 a expired #1, closed since 100
              @1 pending
              @2 running attempt 1, holds 1
            102 a @1 no longer on hold
            103 a @1 placed, attempt 1
            103 a granted #3 core 20 on n2 to 153
              @1 running attempt 1, holds 1
              @2 running attempt 1, holds 1
        "#]],
    );
}

#[test]
fn what_an_operator_holds_only_an_operator_releases() {
    check(
        "
        0 a grant core 200 ttl=9000s node=n1
        0 a grant core 200 ttl=100s node=n2
        1 a submit core 8
        2 op hold @1
        3 a hold @1
        4 a unhold @1
        5 show waits
        6 op unhold @1
        7 op unhold @1
        8 b hold @1
        101 show allocs
        102 a hold @1
        ",
        expect![[r#"
            0 a granted #0 core 200 on n1 to 9000
            0 a granted #1 core 200 on n2 to 100
            1 a @1 submitted
            2 a @1 on hold
            3 refused: allocation_on_hold
            4 refused: held_by_operator
              @1 place 1: held by an operator
            6 a @1 no longer on hold
            7 refused: allocation_not_on_hold
            8 refused: allocation_not_found
            101 a expired #1, closed since 100
            101 a @1 placed, attempt 1
            101 a granted #2 core 8 on n2 to 86501
              @1 running attempt 1, holds 1
            102 refused: allocation_not_waiting
        "#]],
    );
}

/// Capacity that was reserved for an allocation is free when it is put on hold or changed.
#[test]
fn a_hold_drops_the_reservation() {
    check(
        "
        0 a grant core 200 ttl=9000s node=n2
        0 a grant core 200 ttl=1000s node=n1 prio=scavenger
        1 a submit core 200
        2 show allocs
        3 a hold @1
        4 show allocs
        5 a unhold @1
        6 show allocs
        7 a change @1 prio=scavenger
        8 show allocs
        ",
        expect![[r#"
            0 a granted #0 core 200 on n2 to 9000
            0 a granted #1 core 200 on n1 to 1000 scavenger
            1 a @1 submitted
            2 - evicts #1 for @1 on n1
            2 a revoked #1, grace 1m (preempted)
              @1 pending, kept on n1
            3 a @1 on hold
              @1 pending
            5 a @1 no longer on hold
              @1 pending
            7 a @1 changed: scavenger
              @1 pending
        "#]],
    );
}

/// It keeps its time of submission: among allocations of its new priority it goes first.
#[test]
fn a_waiting_allocation_is_changed() {
    check(
        "
        0 a grant core 200 ttl=9000s node=n1
        0 a grant core 200 ttl=100s node=n2
        1 a submit core 160 prio=scavenger
        2 a submit core 160
        3 a change @1 prio=standard
        4 a change @1 prio=standard
        5 a change @1 prio=guaranteed
        6 a change @1 wall=0s
        7 a change @2 wall=30s
        101 show allocs
        102 a change @1 wall=10s
        ",
        expect![[r#"
            0 a granted #0 core 200 on n1 to 9000
            0 a granted #1 core 200 on n2 to 100
            1 a @1 submitted
            2 a @2 submitted
            3 a @1 changed: standard
            4 refused: allocation_unchanged
            5 refused: priority_above_max
            6 refused: zero_ttl
            7 a @2 changed: standard
            101 a expired #1, closed since 100
            101 a @1 placed, attempt 1
            101 a granted #2 core 160 on n2 to 86501
              @1 running attempt 1, holds 1
              @2 pending
            102 refused: allocation_not_waiting
        "#]],
    );
}
