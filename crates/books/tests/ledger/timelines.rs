//! Timelines: every step of a story by hand.

use crate::world::{GPU, World};
use leasehold_books::{Books, EntryQuestion, Keeper, Opened, Request, TimelineQuestion, TimelineStep, TimelineWhat};
use leasehold_engine::Command;
use leasehold_engine::command::{CompleteAllocation, RenewOne, SubmitAllocation};
use leasehold_journal::Secret;
use leasehold_ledger::Amount;
use leasehold_model::body::Body;
use leasehold_model::id::CorrelationId;
use leasehold_model::rate::{Charge, Charges};
use leasehold_model::{AllocationNo, AllocationSpec, Domain, Priority, ProjectNo, Quanta, Record, Span, TenantNo};
use smallvec::smallvec;

const ID: u128 = 0x5f0c_1b3e_8a44_4d2e_9c55_0e6b_7a1d_2f33;

fn question(id: u128, derived: Option<u64>, limit: usize) -> TimelineQuestion {
    TimelineQuestion { id: CorrelationId(id), derived, tenant: None, after: None, limit }
}

/// A gang of whole GPUs, one on each node, that is requeued when it is interrupted.
fn gang(gpus: u64, id: Option<u128>) -> AllocationSpec {
    AllocationSpec {
        replicas: 2,
        requeue: true,
        correlation: id,
        walltime: Some(Span::from_secs(10 * 3600)),
        apart: Some(Domain::Node),
        priority: Priority::Scavenger,
        ..AllocationSpec::of(smallvec![(GPU, Quanta(7 * gpus))])
    }
}

fn submit(world: &mut World, tenant: u32, spec: AllocationSpec) -> AllocationNo {
    AllocationNo(world.as_holder(tenant, Command::SubmitAllocation(SubmitAllocation::from(spec))))
}

fn complete(world: &mut World, tenant: u32, allocation: AllocationNo) {
    let done = CompleteAllocation { allocation, exit_status: Some(0), storage_written: 0 };
    world.as_holder(tenant, Command::CompleteAllocation(done));
}

/// The time, what it is, and figures.
fn line(step: &TimelineStep) -> String {
    let clock = step.at.to_string()[5..16].replace('T', " ");
    let what = match &step.what {
        TimelineWhat::Record { kind, request, leases, count } => {
            let leases: Vec<String> = leases.iter().map(|lease| lease.0.to_string()).collect();
            let times = if *count > 1 { format!(" x{count}") } else { String::new() };
            let request = match request {
                Request::Allocation(_) => "alloc",
                Request::Grant(_) => "lease",
                Request::Denial(_) => "denial",
                Request::Usage(_) => "usage",
            };
            format!("{} {request} [{}]{times}", kind.word(), leases.join(","))
        }
        TimelineWhat::Usage { usage, .. } => {
            let hour = &usage.key.hour.to_string()[11..16];
            let cost = Amount::decoded(&usage.cost).expect("an amount").in_currency();
            format!("usage of {hour}: {} GPU-s, {cost} {}", usage.usage / 7_000_000_000, usage.currency)
        }
        TimelineWhat::Entries { kind, entries, .. } => {
            let all: Vec<String> = entries.iter().map(|entry| format!("{} {}", entry.kind, entry.amount())).collect();
            format!("{} {}", kind.word(), all.join(", "))
        }
        TimelineWhat::Invoice { number, lines, .. } => {
            let all: Vec<String> =
                lines.iter().map(|line| format!("line {} {}", line.number, line.line.posted)).collect();
            format!("{number} {}", all.join(", "))
        }
    };
    format!("{clock} {what}")
}

fn told(books: &Books, question: &TimelineQuestion) -> Vec<String> {
    let found = books.timeline(question, |_, _| true).expect("readable").expect("there is such an ID");
    assert_eq!(found.next, None);
    found.steps.iter().map(line).collect()
}

/// Two allocations with one ID, at 0.003 a GPU-second. The first holds one GPU on each of two nodes from 10:00 on; the
/// other tenant needs all four GPUs and evicts it at 10:30; it runs again from 11:00 to 11:30. The second one runs from
/// 11:45 to 12:00.
/// By hand: 10:00 to 10:30 are 2 × 1800 s = 3600 GPU-s, 10.80; 11:00 to 11:30 the same; 11:45 to 12:00 are 2 × 900 s,
/// 5.40. All of 11:00 is one line of the ledger, with a lease that has no ID: one GPU from 11:00 to 11:10, 1.80; so that
/// 18.00 is posted. The posting of 10:00 is corrected to 9.00.
fn story() -> (World, u64) {
    let mut world = World::new();
    world.charge(Charges { preempted: Charge::Full, ..Charges::DEFAULT });
    world.wait("10:00");
    let first = submit(&mut world, 0, gang(1, Some(ID)));
    world.wait("10:29:59");
    let other = submit(&mut world, 1, AllocationSpec { priority: Priority::Guaranteed, ..gang(2, None) });
    world.wait("10:30").wait("11:00").settle();
    complete(&mut world, 1, other);
    let lease = world.lease(0, 0, 7, 600, |request| request.priority = Priority::Scavenger);
    let is_grant = |record: &&Record| matches!(&record.body, Body::Granted(granted) if granted.first_lease == lease);
    let derived = world.records.iter().find(is_grant).expect("a grant").sequence;
    world.wait("11:05");
    let renew = RenewOne { lease, ttl: Span::from_secs(200), activity: None };
    world.as_holder(0, Command::Renew(smallvec![renew]));
    world.wait("11:06");
    let renew = RenewOne { lease, ttl: Span::from_secs(240), activity: None };
    world.as_holder(0, Command::Renew(smallvec![renew]));
    world.wait("11:30");
    complete(&mut world, 0, first);
    world.wait("11:45");
    let second = submit(&mut world, 0, gang(1, Some(ID)));
    world.wait("12:00");
    complete(&mut world, 0, second);
    world.wait("12:10").settle();
    let entry = world.entries().into_iter().find(|entry| entry.tenant == TenantNo(0)).expect("an entry").id;
    world.ok(Command::CorrectEntry(world.correction(entry, Some("9.00"))));
    world.wait("12-01 00:05").close("2026-11");
    (world, derived)
}

const TOLD: &str = "\
    11-30 10:00 allocation.submitted alloc []\n\
    11-30 10:00 allocation.placed alloc []\n\
    11-30 10:00 lease.granted alloc [0]\n\
    11-30 10:00 lease.granted alloc [1]\n\
    11-30 10:30 lease.revoked alloc [0,1]\n\
    11-30 10:30 lease.teardown_started alloc [0,1]\n\
    11-30 10:30 allocation.requeued alloc []\n\
    11-30 11:00 usage of 10:00: 3600 GPU-s, 54/5 EUR\n\
    11-30 11:00 ledger.posted usage 10.800000\n\
    11-30 11:00 allocation.placed alloc []\n\
    11-30 11:00 lease.granted alloc [4]\n\
    11-30 11:00 lease.granted alloc [5]\n\
    11-30 11:30 usage of 11:00: 3600 GPU-s, 54/5 EUR\n\
    11-30 11:30 allocation.completed alloc []\n\
    11-30 11:30 lease.released alloc [4,5]\n\
    11-30 11:45 allocation.submitted alloc []\n\
    11-30 11:45 allocation.placed alloc []\n\
    11-30 11:45 lease.granted alloc [7]\n\
    11-30 11:45 lease.granted alloc [8]\n\
    11-30 12:00 usage of 11:00: 1800 GPU-s, 27/5 EUR\n\
    11-30 12:00 allocation.completed alloc []\n\
    11-30 12:00 lease.released alloc [7,8]\n\
    11-30 12:10 ledger.posted usage 18.000000\n\
    11-30 12:10 ledger.corrected reversal -10.800000, replacement 9.000000\n\
    12-01 00:05 INV-000001 line 1 28.800000, line 2 -1.800000";

#[test]
fn a_story_with_every_step_by_hand() {
    let (world, _) = story();
    assert_eq!(told(&world.books, &question(ID, None, 1000)).join("\n"), TOLD);
}

/// The lease that was given no ID: derived from its grant, and on the same lines of the ledger.
#[test]
fn a_derived_id_needs_no_index() {
    let (world, derived) = story();
    assert_eq!(
        told(&world.books, &question(u128::MAX, Some(derived), 1000)).join("\n"),
        "\
         11-30 11:00 lease.granted lease [6]\n\
         11-30 11:06 lease.renewed lease [6] x2\n\
         11-30 11:10 usage of 11:00: 600 GPU-s, 9/5 EUR\n\
         11-30 11:30 lease.expired lease [6]\n\
         11-30 12:10 ledger.posted usage 18.000000\n\
         12-01 00:05 INV-000001 line 1 28.800000"
    );
    // A record that began no request.
    let missing = world.books.timeline(&question(u128::MAX, Some(derived + 1), 10), |_, _| true);
    assert_eq!(missing.expect("readable"), None);
}

/// A tenant that chooses the same ID has another story, and nobody sees what belongs to others.
#[test]
fn two_tenants_with_one_id_have_two_stories() {
    let mut world = World::new();
    world.wait("10:00");
    for tenant in [0, 1] {
        world.lease(tenant, tenant, 7, 3600, |request| request.correlation = Some(ID));
    }
    let of = |tenant: Option<u32>, sees: &dyn Fn(TenantNo, ProjectNo) -> bool| {
        let question = TimelineQuestion { tenant: tenant.map(TenantNo), ..question(ID, None, 100) };
        let found = world.books.timeline(&question, sees).expect("readable");
        found.map(|found| found.steps.iter().map(line).collect::<Vec<_>>())
    };
    let all = |_: TenantNo, _: ProjectNo| true;
    assert_eq!(of(Some(0), &all), Some(vec!["11-30 10:00 lease.granted lease [0]".to_owned()]));
    assert_eq!(of(Some(1), &all), Some(vec!["11-30 10:00 lease.granted lease [1]".to_owned()]));
    assert_eq!(of(None, &all).map(|steps| steps.len()), Some(2));
    assert_eq!(of(Some(0), &|_, project| project == ProjectNo(7)), None);
    assert_eq!(of(Some(2), &all), None);
}

/// What a node did after it was last seen is not charged: the entries stay, and their differences follow.
#[test]
fn the_loss_of_a_node_is_a_part_of_the_story() {
    let mut world = World::new();
    world.wait("10:00");
    let lease = world.lease(0, 0, 7, 7200, |request| request.correlation = Some(ID));
    world.wait("11:30");
    world.release(0, lease);
    world.wait("12:05").settle();
    world.lose(0, "10:45");
    world.wait("13:05").settle();
    assert_eq!(
        told(&world.books, &question(ID, None, 100)).join("\n"),
        "\
         11-30 10:00 lease.granted lease [0]\n\
         11-30 11:00 usage of 10:00: 2700 GPU-s, 27/1 EUR\n\
         11-30 11:30 lease.released lease [0]\n\
         11-30 12:05 ledger.posted usage 36.000000\n\
         11-30 12:05 ledger.posted usage 18.000000\n\
         11-30 12:05 lease.end_corrected lease [0]\n\
         11-30 13:05 ledger.posted usage -9.000000, usage -18.000000"
    );
}

/// From the file, in pages of any size, and from books that follow the journal once more.
#[test]
fn a_restart_and_a_rebuild_tell_the_same() {
    let (world, derived) = story();
    let journal = world.sealed();
    let (folder, key) = (tempfile::tempdir().expect("a folder"), Secret::new([7; 32]));
    let path = folder.path().join("books");
    let (mut keeper, _) = Keeper::open(&path, &journal, key.books()).expect("opened");
    while keeper.follow(&journal, 7).expect("followed") > 0 {
        keeper.commit(&journal).expect("committed");
    }
    drop(keeper);
    let (keeper, opened) = Keeper::open(&path, &journal, key.books()).expect("opened");
    assert_eq!(opened, Opened::Continued);
    for all in [question(ID, None, 1000), question(u128::MAX, Some(derived), 1000)] {
        let expected = told(&world.books, &all);
        assert_eq!(told(&keeper.books, &all), expected);
        for limit in 1..8 {
            let (mut paged, mut asked) = (Vec::new(), TimelineQuestion { limit, ..all.clone() });
            loop {
                let page = keeper.books.timeline(&asked, |_, _| true).expect("readable").expect("there is such an ID");
                paged.extend(page.steps.iter().map(line));
                match page.next {
                    Some(next) => asked.after = Some(next),
                    None => break,
                }
            }
            assert_eq!(paged, expected, "{limit}");
        }
    }
}

/// Pages of a payer's entries begin anywhere without walking its chain.
#[test]
fn pages_of_a_payer_read_little() {
    let mut world = World::new();
    world.wait("09:30");
    world.lease(0, 0, 7, 20 * 86_400, |_| {});
    world.wait("12-15 00:00").settle();
    let mut question = EntryQuestion { project: Some(ProjectNo(0)), limit: 50, ..EntryQuestion::default() };
    let (mut all, mut pages) = (Vec::new(), 0);
    loop {
        let page = world.books.entries(&question).expect("readable");
        all.extend(page.entries);
        pages += 1;
        match page.next {
            Some(next) => question.after = Some(next),
            None => break,
        }
    }
    assert!(pages >= 7, "{pages} pages");
    assert_eq!(all, world.entries());
}
