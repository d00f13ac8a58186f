//! Corrections, entries by hand and disputes.

use crate::world::{EUR, World, name, steps};
use leasehold_engine::Command;
use leasehold_engine::command::{AdjustLedger, DisputeEntry};
use leasehold_model::{Account, ClassNo, EntryId, Leg, ProjectNo, TenantNo};

fn posted() -> (World, EntryId) {
    let mut world = World::new();
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.wait("11:00").settle();
    let entry = world.entries()[0].id;
    (world, entry)
}

/// 36.00 should have been 30.00, then it turns out that 31.50 is right: each correction reverses the last entry.
#[test]
fn a_correction_of_a_correction() {
    let (mut world, entry) = posted();
    world.ok(Command::CorrectEntry(world.correction(entry, Some("30.00"))));
    assert_eq!(world.owes(0), "30.000000");
    let replacement = world.entries().into_iter().find(|entry| entry.kind.word() == "replacement").expect("one").id;
    world.ok(Command::CorrectEntry(world.correction(replacement, Some("31.5"))));
    assert_eq!(world.owes(0), "31.500000");
    assert_eq!(
        world.told(),
        "usage 11-30 10:00 2026-11 project-0 36.000000\n\
         reversal 11-30 10:00 2026-11 project-0 -36.000000\n\
         replacement 11-30 10:00 2026-11 project-0 30.000000\n\
         reversal 11-30 10:00 2026-11 project-0 -30.000000\n\
         replacement 11-30 10:00 2026-11 project-0 31.500000\n"
    );
    // An entry is corrected once; whoever has read the ledger before must read it again.
    let again = Command::CorrectEntry(world.correction(entry, None));
    let mut stale = world.correction(replacement, None);
    stale.previous = Some(entry.sequence);
    assert_eq!(world.refused(Command::CorrectEntry(stale)), "stale_posting");
    assert!(world.books.correction_of(entry).is_some());
    drop(again);
    world.check();
}

/// The usage keeps its month, the entries are booked in the open one.
#[test]
fn a_closed_month_is_corrected_in_the_open_one() {
    let (mut world, entry) = posted();
    world.wait("12-01 00:05").close("2026-11");
    world.ok(Command::CorrectEntry(world.correction(entry, None)));
    assert_eq!(
        world.told(),
        "usage 11-30 10:00 2026-11 project-0 36.000000\n\
         invoice - 2026-11 project-0 36.000000\n\
         reversal 11-30 10:00 2026-12 project-0 -36.000000\n"
    );
    let reversal = world.entries().pop().expect("some");
    assert_eq!(reversal.original_month.map(|month| month.to_string()).as_deref(), Some("2026-11"));
    world.check();
}

/// A line of 3,600/7 billionths was posted as one step: half a step too much, which was the residual. Reversed, both go
/// back; the residual is nothing again, or what rounding it to 10^-30 lost.
#[test]
fn a_reversal_gives_the_residual_back() {
    let mut world = World::new();
    world.price("0.000000001");
    world.wait("10:00");
    world.lease(0, 0, 1, 3600, |_| {});
    world.wait("11:00").settle();
    let residual = world.books.residual_of(ProjectNo(0), EUR);
    assert!(residual.units() < 0);
    let entry = world.entries()[0].id;
    world.ok(Command::CorrectEntry(world.correction(entry, None)));
    assert_eq!(world.owes(0), "0.000000");
    assert_eq!(world.books.residual_of(ProjectNo(0), EUR).units(), 0);
    world.check();
}

#[test]
fn entries_by_hand_sum_to_zero_and_stay_with_their_project() {
    let (mut world, entry) = posted();
    let leg = |account: Account, amount: &str| Leg { account, amount: steps(amount) };
    let adjust = |legs: Vec<Leg>| {
        Command::AdjustLedger(AdjustLedger {
            project: ProjectNo(0),
            currency: EUR,
            original_month: None,
            legs,
            reason: name("goodwill"),
        })
    };
    let own = Account::Receivable(ProjectNo(0));
    for (code, legs) in [
        ("unbalanced", vec![leg(own, "-5"), leg(Account::Adjustments(ProjectNo(0)), "4.999999")]),
        ("unbalanced", vec![]),
        ("other_projects_account", vec![leg(own, "-5"), leg(Account::Receivable(ProjectNo(1)), "5")]),
        ("account_not_by_hand", vec![leg(own, "-5"), leg(Account::CashClearing, "5")]),
        ("account_not_by_hand", vec![leg(own, "-5"), leg(Account::Invoiced(TenantNo(0)), "5")]),
        ("unknown_class", vec![leg(own, "-5"), leg(Account::Revenue(ClassNo(9)), "5")]),
        ("too_many_legs", vec![leg(own, "0"); 17]),
    ] {
        assert_eq!(world.refused(adjust(legs)), code);
    }
    world.ok(adjust(vec![leg(own, "-5"), leg(Account::Adjustments(ProjectNo(0)), "5")]));
    assert_eq!(world.owes(0), "31.000000");
    // What was booked by hand can be corrected, too.
    let by_hand = world.entries().pop().expect("some").id;
    world.ok(Command::CorrectEntry(world.correction(by_hand, None)));
    assert_eq!(world.check().owes(0), "36.000000");

    let dispute = |open| {
        let (tenant, project) = (TenantNo(0), ProjectNo(0));
        Command::DisputeEntry(DisputeEntry { tenant, project, entry, open, reason: name("we were not there") })
    };
    assert_eq!(world.refused(dispute(false)), "entry_not_disputed");
    world.ok(dispute(true));
    assert_eq!(world.refused(dispute(true)), "entry_disputed");
    assert!(world.books.is_disputed(entry));
    world.ok(dispute(false));
    assert!(!world.books.is_disputed(entry));
}
