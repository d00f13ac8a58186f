//! Waiting allocations on hold, and changes of what they ask for.

use crate::support::check;
use expect_test::expect;
use leasehold_engine::Command;
use leasehold_engine::command::{ChangeAllocation, HoldAllocation};
use leasehold_model::{AllocationNo, Priority, Span};

/// A random command about an allocation that waits, or its end.
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
        1 a submit core 20 walltime=50s
        2 a submit core 10 walltime=500s
        3 show waits
        4 a hold @1
        5 show waits
        101 show allocs
        102 a unhold @1
        103 show allocs
        ",
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}

/// Capacity that was reserved for an allocation is free when it is put on hold or changed.
#[test]
fn a_hold_drops_the_reservation() {
    check(
        "
        0 a grant core 200 ttl=9000s node=n2
        0 a grant core 200 ttl=1000s node=n1 priority=scavenger
        1 a submit core 200
        2 show allocs
        3 a hold @1
        4 show allocs
        5 a unhold @1
        ",
        expect![[r#""#]],
    );
}

/// It keeps its time of submission: among allocations of its new priority it goes first.
#[test]
fn a_waiting_allocation_is_changed() {
    check(
        "
        0 a grant core 200 ttl=9000s node=n1
        0 a grant core 200 ttl=100s node=n2
        1 a submit core 160 priority=scavenger
        2 a submit core 160
        3 a change @1 priority=standard
        4 a change @1 priority=standard
        5 a change @1 priority=guaranteed
        6 a change @1 walltime=0s
        7 a change @2 walltime=30s
        101 show allocs
        102 a change @1 walltime=10s
        ",
        expect![[r#""#]],
    );
}
