//! Posting hours, and what changes them afterwards.

use crate::world::{World, at};
use leasehold_engine::Command;
use leasehold_engine::command::{ClaimNodes, OpenLedger, PostUsage, Revoke, SettleHour};
use leasehold_model::rate::{Charge, Charges};
use leasehold_model::{NodeNo, Priority, Reason, Span};
use smallvec::smallvec;

/// Issue 15: a lease 10:20-12:10 with a price change at 11:00, posted hourly, whose node is declared lost at 12:30 with
/// last_seen 11:50.
///
/// Two sevenths and five sevenths make one GPU, at one cent a second, later at two. By hand: 2,400 s at 0.01 are 24.00;
/// 3,600 s at 0.02 are 72.00. The node was last seen at 11:50, so of 11:00-12:00 ten minutes at 0.02 go back: 12.00; what
/// was held after 12:00 was never posted. In all 24.00 + 3,000 s at 0.02 = 84.00.
#[test]
fn a_node_that_is_lost_after_its_hours_were_posted() {
    let mut world = World::new();
    world.wait("10:20");
    let lease = world.lease(0, 0, 7, 2 * 3600, |_| {});
    world.wait("11:00");
    world.price("0.02");
    world.settle();
    assert_eq!(world.owes(0), "24.000000");
    world.wait("12:00").settle();
    assert_eq!(world.owes(0), "96.000000");
    world.wait("12:10");
    world.release(0, lease);
    world.wait("12:30");
    world.lose(0, "11:50");
    world.wait("13:00").settle();
    assert_eq!(
        world.told(),
        "usage 11-30 10:00 2026-11 project-0 24.000000\n\
         usage 11-30 11:00 2026-11 project-0 72.000000\n\
         usage 11-30 11:00 2026-11 project-0 -12.000000\n"
    );
    assert_eq!(world.check().owes(0), "84.000000");
}

/// Issue 15: the same across a closed month. What the loss changes of November is an adjustment in December.
#[test]
fn a_node_that_is_lost_after_its_month_was_closed() {
    let mut world = World::new();
    world.wait("22:20");
    let lease = world.lease(0, 0, 7, 2 * 3600, |_| {});
    world.wait("23:00");
    world.price("0.02");
    world.settle();
    world.wait("12-01 00:10");
    world.release(0, lease);
    world.wait("12-01 00:20").close("2026-11");
    assert_eq!(world.owes(0), "0.000000", "it is invoiced");
    world.wait("12-01 00:30");
    world.lose(0, "23:50");
    world.wait("12-01 01:00").settle();
    assert_eq!(
        world.told(),
        "usage 11-30 22:00 2026-11 project-0 24.000000\n\
         usage 11-30 23:00 2026-11 project-0 72.000000\n\
         invoice - 2026-11 project-0 96.000000\n\
         usage 11-30 23:00 2026-12 project-0 -12.000000\n"
    );
    assert_eq!(world.check().owes(0), "-12.000000");
    // The month has nothing but what is given back: a credit note, of a series of its own.
    world.wait("01-01 00:05").close("2026-12");
    let numbers: Vec<String> =
        world.books.invoices().iter().map(|head| format!("{} {}", head.number, head.total)).collect();
    assert_eq!(numbers, ["INV-000001 96.000000", "CN-000001 -12.000000"]);
    world.check();
}

/// Issue 15: a preempted lease is forgiven 600 s that reach into a posted hour. It is held 10:00-11:05; 10:55-11:05 is not
/// charged: of 36.00 for the hour 3.00 go back, and nothing is due for what was held after 11:00. As a scavenger it pays
/// six tenths: 21.60, of which 1.80 go back.
#[test]
fn what_is_forgiven_reaches_into_a_posted_hour() {
    let mut world = World::new();
    world.charge(Charges { preempted: Charge::MinusLast(Span::from_secs(600)), ..Charges::DEFAULT });
    world.wait("10:00");
    // Both GPUs of the node.
    let victim = world.lease(0, 0, 14, 2 * 3600, |request| request.priority = Priority::Scavenger);
    world.wait("11:00").settle();
    // Two GPUs at 0.01 × 0.3.
    assert_eq!(world.owes(0), "21.600000");
    world.wait("11:05");
    world.ok(Command::Revoke(Revoke {
        leases: smallvec![victim],
        reason: Reason::Preempted { by: 0 },
        grace: Some(Span::ZERO),
    }));
    world.wait("12:00").settle();
    assert_eq!(
        world.told(),
        "usage 11-30 10:00 2026-11 project-0 21.600000\nusage 11-30 10:00 2026-11 project-0 -1.800000\n"
    );
    assert_eq!(world.check().owes(0), "19.800000");
}

/// Issue 15: a claim with a small lease inside. A node with two GPUs is claimed 10:00-11:30, a seventh of a GPU is leased
/// 10:30-11:00. Everything is priced as guaranteed, 0.015 a second: the two lines of the first hour are 7,200 GPU-seconds
/// less 1,800/7, and 1,800/7: together 108.00. Then 3,600 GPU-seconds: 54.00.
#[test]
fn a_claim_with_a_small_lease_inside() {
    let mut world = World::new();
    world.wait("10:00");
    world.as_holder(0, Command::ClaimNodes(ClaimNodes::from(vec![NodeNo(1)])));
    world.wait("10:30");
    let lease = world.lease(0, 1, 1, 3600, |request| request.sensitive = true);
    world.wait("11:00");
    world.release(0, lease);
    world.settle();
    assert_eq!(
        world.told(),
        "usage 11-30 10:00 2026-11 project-0 3.857143\nusage 11-30 10:00 2026-11 project-0 104.142857\n",
        "the lease of standard priority and the idle rest, both priced as guaranteed"
    );
    world.wait("11:30");
    world.as_holder(0, Command::ReleaseNodes(vec![NodeNo(1)]));
    world.wait("12:00").settle();
    assert_eq!(world.check().owes(0), "162.000000");
}

/// A third of a step a second is carried over: posted and exact never differ by more than half a step.
#[test]
fn residuals_are_carried_from_hour_to_hour() {
    let mut world = World::new();
    world.price("0.000000001");
    world.wait("10:00");
    // A seventh of a GPU for an hour costs 3,600/7 billionths: 0.514 steps.
    world.lease(0, 0, 1, 10 * 3600, |_| {});
    let mut posted = Vec::new();
    for hour in 11..18 {
        world.wait(&format!("{hour}:00")).settle();
        posted.push(world.owes(0));
    }
    assert_eq!(
        posted,
        ["0.000001", "0.000001", "0.000002", "0.000002", "0.000003", "0.000003", "0.000004"],
        "0.514, 1.029, 1.543, 2.057, 2.571, 3.086, 3.6 steps"
    );
    world.check();
}

/// Two tenants, two app instances, the control plane: lines of their own, and every posting sums to zero.
#[test]
fn lines_tell_app_instances_and_the_control_plane_apart() {
    let mut world = World::new();
    world.wait("10:00");
    let runtime = Some(world.runtime(0));
    world.lease(0, 0, 7, 1800, |request| {
        request.app_instance = runtime;
        request.control_plane = true;
    });
    world.lease(0, 0, 7, 1800, |request| request.app_instance = runtime);
    world.lease(1, 1, 7, 3600, |_| {});
    world.wait("11:00").settle();
    let lines: Vec<_> = world
        .entries()
        .iter()
        .filter_map(|entry| {
            entry
                .line
                .clone()
                .map(|line| (entry.project, line.key.app_instance, line.key.control_plane, entry.amount().to_string()))
        })
        .map(|(project, app, control, amount)| {
            format!("{} {:?} {control} {amount}", project.expect("a payer"), app.map(|app| app.0))
        })
        .collect();
    assert_eq!(
        lines,
        ["project-0 Some(0) false 18.000000", "project-0 Some(0) true 18.000000", "project-1 None false 36.000000"]
    );
    world.check();
}

/// A settlement that ends in the middle posts the rest afterwards, and nothing twice; what happens in between is a
/// difference of the next hour.
#[test]
fn an_interrupted_settlement_is_continued() {
    let mut world = World::new();
    world.wait("10:00").settle();
    for _ in 0..3 {
        for tenant in [0, 1] {
            let runtime = Some(world.runtime(tenant));
            world.lease(tenant, tenant, 1, 7200, |request| request.app_instance = runtime);
        }
    }
    world.wait("11:00");
    let settlement = world.books.next_settlement().expect("readable").expect("an hour is over");
    assert!(!world.post(settlement, 1), "only the first payer is posted");
    world.wait("11:10");
    world.lose(0, "10:50");
    world.lose(1, "10:50");
    world.settle();
    let before = (world.owes(0), world.owes(1));
    assert_eq!(before, ("15.428571".to_owned(), "15.428571".to_owned()), "as of the records before the loss");
    world.wait("12:00").settle();
    assert_eq!((world.owes(0), world.owes(1)), ("12.857143".to_owned(), "12.857143".to_owned()), "ten minutes less");
    world.check();
}

/// What is stale, repeated, for a closed month or out of order is refused.
#[test]
fn postings_that_do_not_fit_are_refused() {
    let mut world = World::new();
    world.wait("10:00");
    world.lease(0, 0, 7, 7200, |_| {});
    world.wait("11:00").settle();
    world.wait("12:00");
    let settlement = world.books.next_settlement().expect("readable").expect("an hour is over");
    let good = settlement.postings[0].parts[0].clone();
    let changed = |change: &dyn Fn(&mut PostUsage)| {
        let mut post = good.clone();
        change(&mut post);
        Command::PostUsage(post)
    };
    for (code, command) in [
        ("stale_posting", changed(&|post| post.previous = None)),
        ("stale_posting", changed(&|post| post.as_of_size += 1_000_000)),
        ("hour_out_of_order", changed(&|post| post.through = at("13:00"))),
        ("hour_out_of_order", changed(&|post| post.through = at("14:00"))),
        ("period_closed", changed(&|post| post.month = post.month.previous())),
        ("bad_posting_lines", changed(&|post| post.month = post.month.next())),
        ("bad_posting_lines", changed(&|post| post.lines[0].key.hour = at("12:00"))),
        ("bad_posting_lines", changed(&|post| post.lines.push(post.lines[0].clone()))),
        ("unknown_project", changed(&|post| post.project.0 = 77)),
        ("too_many_posting_lines", changed(&|post| post.lines = vec![post.lines[0].clone(); 257])),
        ("bad_posting_lines", changed(&|post| (post.lines, post.complete) = (Vec::new(), false))),
        (
            "amount_too_large",
            changed(&|post| {
                let huge = leasehold_model::ledger::Magnitude::from_digits(&[1; 100]).expect("short enough");
                (post.lines[0].exact.numerator, post.lines[0].exact.denominator) =
                    (huge, leasehold_model::ledger::Magnitude::from_digits(&[1]).expect("short"));
            }),
        ),
        (
            "bad_exact_amount",
            changed(&|post| {
                post.lines[0].exact.denominator = leasehold_model::ledger::Magnitude::from_digits(&[2]).expect("short")
            }),
        ),
        ("hour_out_of_order", Command::SettleHour(SettleHour { through: at("13:00"), as_of_size: 1 })),
    ] {
        assert_eq!(world.refused(command), code);
    }
    let posted = Command::PostUsage(good);
    world.ok(posted.clone());
    assert_eq!(world.refused(posted), "stale_posting", "nothing is posted twice");
    world.settle();
    assert_eq!(world.check().owes(0), "72.000000");
}

/// A daemon that was away settles all hours that passed, in order.
#[test]
fn hours_that_passed_are_settled_in_order() {
    let mut world = World::new();
    assert_eq!(
        world.refused(Command::OpenLedger(leasehold_engine::command::OpenLedger { from: None })),
        "ledger_already_open"
    );
    world.wait("10:00");
    world.lease(0, 0, 7, 7200, |_| {});
    // Every hour without usage is settled, too.
    world.wait("15:00").settle();
    assert_eq!(world.books.settled_through(), at("15:00"));
    assert_eq!(world.check().owes(0), "72.000000");
}

/// A ledger that is opened on an older journal posts from the given hour on: of a lease since 10:00, what was held after
/// 11:00.
#[test]
fn an_older_journal_is_posted_from_an_hour_on() {
    let mut world = World::unopened(at("09:00"));
    world.wait("10:00");
    world.lease(0, 0, 7, 7200, |_| {});
    world.wait("13:30");
    let open = |from: &str| Command::OpenLedger(OpenLedger { from: Some(at(from)) });
    assert_eq!(
        world.refused(Command::SettleHour(SettleHour { through: at("11:00"), as_of_size: 1 })),
        "ledger_not_open"
    );
    assert_eq!(world.refused(open("11:30")), "not_an_hour");
    assert_eq!(world.refused(open("14:00")), "ledger_in_future");
    world.ok(open("11:00"));
    world.settle();
    assert_eq!(world.told(), "usage 11-30 11:00 2026-11 project-0 36.000000\n");
    // A loss that reaches back before that changes nothing there.
    world.lose(0, "10:30");
    world.wait("14:00").settle();
    assert_eq!(world.check().owes(0), "0.000000");
}

/// A charge policy counts for a lease that ended at the very instant at which the policy begins.
#[test]
fn a_policy_of_the_same_instant_counts() {
    let mut world = World::new();
    world.wait("10:00");
    let lease = world.lease(0, 0, 7, 3600, |_| {});
    world.wait("10:30");
    world.ok(Command::Revoke(Revoke {
        leases: smallvec![lease],
        reason: Reason::Preempted { by: 0 },
        grace: Some(Span::ZERO),
    }));
    world.charge(Charges { preempted: Charge::None, ..Charges::DEFAULT });
    world.wait("11:00").settle();
    assert_eq!(world.check().owes(0), "0.000000");
    assert_eq!(world.told(), "");
}
