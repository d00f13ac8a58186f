//! The invariants of DESIGN over random histories. `World` checks 1 and 5 after every step: the
//! fold of the emitted bytes is the deciding state, and every figure stands up to a recount.

use crate::commands::{Step, history, small_cluster};
use crate::full_cluster::full_cluster;
use crate::support::World;
use leasehold_engine::{Command, Request};
use leasehold_model::{AllocationNo, Body, Identity, Instant, LeaseNo, Priority, Record, TenantNo};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};

/// Takes one step and answers what was decided and sealed.
fn take(world: &mut World, now: Instant, step: &Step, at_once: u32) -> (String, Vec<Record>) {
    match step.request(world.state()) {
        None => {
            let mut records = world.started(now);
            records.extend(world.advance(now, at_once));
            ("started".to_owned(), records)
        }
        Some(request) => {
            let mut records = world.advance(now, at_once);
            let (answer, decided) = world.decide(now, &request);
            records.extend(decided);
            (format!("{answer:?}"), records)
        }
    }
}

fn cluster(full: bool) -> World {
    if full { full_cluster() } else { small_cluster() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Invariants 1 and 5, after every record of every command.
    #[test]
    fn state_is_the_fold_of_records_and_every_figure_recounts(steps in history(100)) {
        let mut world = small_cluster();
        let mut now = Instant(0);
        for step in &steps {
            now = step.at(now, &world.engine);
            take(&mut world, now, step, u32::MAX);
        }
    }

    /// Invariant 3: same records, same command, same instant, same bytes. The second world is torn
    /// down to its snapshot and built up again at random points, so whatever a snapshot does not
    /// hold (the heap of timers, free slots, lists of placement) cannot take part in a decision.
    #[test]
    fn a_restored_engine_decides_the_same(steps in history(100), restore in 1usize..20) {
        let (mut one, mut two) = (small_cluster(), small_cluster());
        let mut now = Instant(0);
        for (i, step) in steps.iter().enumerate() {
            if i % restore == 0 {
                two = two.restored();
            }
            now = step.at(now, &one.engine);
            let (first, second) = (take(&mut one, now, step, u32::MAX), take(&mut two, now, step, u32::MAX));
            prop_assert_eq!(first, second);
            prop_assert_eq!(one.state().digest(), two.state().digest());
        }
    }

    /// How much is applied at once does not show in the records.
    #[test]
    fn little_by_little_is_the_same_as_all_at_once(steps in history(100), at_once in 1u32..4, full in any::<bool>()) {
        let (mut one, mut two) = (cluster(full), cluster(full));
        let mut now = Instant(0);
        for step in &steps {
            now = step.at(now, &one.engine);
            prop_assert_eq!(take(&mut one, now, step, u32::MAX), take(&mut two, now, step, at_once));
            prop_assert_eq!(one.state().digest(), two.state().digest());
        }
    }

    /// Evictions do not chase each other: while nobody asks for anything and no time passes, nobody is placed twice, and
    /// who falls or loses its reservation is of lower priority than the one it falls for. Nobody makes room twice unless
    /// what it had reserved was taken over in between, so the highest priority does it once, and a lower one once more
    /// for each time that a higher one takes something over. Who makes headroom in a quota evicts only its own tenant.
    #[test]
    fn evictions_come_to_an_end(steps in history(100), full in any::<bool>()) {
        let mut world = cluster(full);
        let mut now = Instant(0);
        for step in &steps {
            now = step.at(now, &world.engine);
            take(&mut world, now, step, u32::MAX);
            let mut priorities: BTreeMap<LeaseNo, Priority> =
                world.state().leases().iter().map(|lease| (lease.number, lease.priority)).collect();
            let mut tenants: BTreeMap<LeaseNo, TenantNo> =
                world.state().leases().iter().map(|lease| (lease.number, lease.tenant)).collect();
            let mut requesters: BTreeMap<AllocationNo, TenantNo> =
                world.state().allocations_after(None).map(|found| (found.number, found.tenant)).collect();
            let mut waiting: BTreeMap<AllocationNo, Priority> =
                world.state().allocations_after(None).map(|found| (found.number, found.spec.priority)).collect();
            let (mut placed, mut evictors) = (BTreeSet::new(), BTreeSet::new());
            for record in world.advance(now, u32::MAX) {
                match &record.body {
                    Body::AllocationPlaced(one) => prop_assert!(placed.insert(one.allocation), "{record:?}"),
                    Body::Granted(granted) => {
                        let numbers = (granted.first_lease.0..).take(granted.members.len());
                        for number in numbers.map(LeaseNo) {
                            priorities.insert(number, granted.priority);
                            tenants.extend(record.identity.tenant.map(|tenant| (number, tenant)));
                        }
                    }
                    Body::PreemptionDecided(decided) => {
                        prop_assert!(evictors.insert(decided.allocation), "{record:?}");
                        prop_assert!(decided.victims.0.iter().all(|lease| priorities[lease] < decided.priority));
                        let own = |lease: &LeaseNo| tenants[lease] == requesters[&decided.allocation];
                        prop_assert!(decided.headroom.is_none() || decided.victims.0.iter().all(own), "{record:?}");
                    }
                    Body::ReservationTakenOver(taken) => {
                        prop_assert!(evictors.insert(taken.allocation), "{record:?}");
                        prop_assert!(taken.victims.0.iter().all(|lease| priorities[lease] < taken.priority));
                        for loser in &taken.dropped {
                            prop_assert!(waiting[loser] < taken.priority, "{record:?}");
                            evictors.remove(loser);
                        }
                    }
                    Body::AllocationSubmitted(submitted) => {
                        waiting.insert(AllocationNo(record.sequence), submitted.spec.priority);
                        requesters.extend(record.identity.tenant.map(|of| (AllocationNo(record.sequence), of)));
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(world.advance(now, u32::MAX), vec![], "it has come to rest");
        }
    }

    /// Everything ends: with nobody asking for more, all that is held is let go or fenced.
    #[test]
    fn in_the_end_nothing_is_held(steps in history(60)) {
        let mut world = small_cluster();
        let mut now = Instant(0);
        for step in &steps {
            now = step.at(now, &world.engine);
            take(&mut world, now, step, u32::MAX);
        }
        // One that is requeued whenever it ends asks for ever.
        let waiting: Vec<_> = world.state().allocations_after(None).map(|found| found.number).collect();
        for number in waiting {
            let cancel = Request::new(Identity::default(), Command::CancelAllocation(number));
            let _ = world.step(now, &cancel);
        }
        let claimed: Vec<_> = world.state().nodes().filter(|node| node.custody.claim().is_some()).map(|node| node.number).collect();
        for _ in 0..3 {
            now = now.saturating_add(leasehold_model::Span::from_secs(30 * 86_400));
            world.advance(now, u32::MAX);
            // A claim has no end but its release.
            for node in &claimed {
                let _ = world.step(now, &Request::new(Identity::default(), Command::ReleaseNodes(vec![*node])));
            }
        }
        now = now.saturating_add(leasehold_model::Span::from_secs(86_400));
        world.advance(now, u32::MAX);
        prop_assert!(world.state().leases().iter().all(|lease| lease.phase == leasehold_engine::Phase::Fenced));
        prop_assert!(world.state().quotas().all(|quota| quota.used().numerator() == 0 && quota.episode.is_none()));
        prop_assert!(world.engine.next_due().is_none());
    }
}

/// A law that is never put to the test holds easily: the histories reach every kind of record that
/// leases, quotas and nodes have, and most refusals.
#[test]
fn histories_go_everywhere() {
    // Genesis stands before every history, and these have no command here or no producer yet.
    let elsewhere = [
        "journal.genesis",
        "journal.key_rotated",
        "journal.clock_jumped",
        "journal.converted",
        "journal.tail_resolved",
        "journal.restored",
        "lease.preempted",
        "unknown",
        // What is posted is computed from the books: `books/tests/ledger`, and the histories beside it.
        "ledger.opened",
        "ledger.posted",
        "ledger.hour_settled",
        "ledger.corrected",
        "ledger.adjusted",
        "ledger.disputed",
        "period.closing",
        "invoice.issued",
        "period.closed",
        "payment.recorded",
        "tax_rate.put",
        "prepaid.topped_up",
        "prepaid.policy_put",
        "prepaid.lapsed",
        "prepaid.changed",
        "prepaid.applied",
        // Reached in `apps.rs` and by the simulator.
        "usage_unit.put",
        "unit_price.put",
        "app_type.put",
        "app_type.deleted",
        "app_instance.put",
        "app_instance.deleted",
        "attachment.made",
        "attachment.ended",
        "usage.recorded",
        "usage.refused",
        "entitlement.put",
        "entitlement.deleted",
        "entitlement.warned",
        "app_policy.put",
        // Reached in `sharing.rs`.
        "sharing.put",
        "ledger.shared",
        // Reached in `statements.rs`.
        "period.stated",
        // Reached in `sinks.rs`.
        "sink.put",
        "sink.deleted",
        "sink.disabled",
        "accounting.reconciled",
    ];
    let mut missed: BTreeSet<&str> = Body::KINDS.iter().map(|(_, word)| *word).collect();
    missed.retain(|word| !elsewhere.contains(word));
    let mut runner = TestRunner::deterministic();
    let mut answers = BTreeSet::new();
    let (mut repeated, mut made_headroom) = (false, false);
    for run in 0..2000 {
        let steps = history(100).new_tree(&mut runner).expect("a history").current();
        let mut world = cluster(run % 2 == 1);
        let mut now = Instant(0);
        for step in &steps {
            now = step.at(now, &world.engine);
            let (answer, records) = take(&mut world, now, step, u32::MAX);
            for record in &records {
                missed.remove(record.body.word());
                made_headroom |= matches!(&record.body, Body::PreemptionDecided(of) if of.headroom.is_some());
            }
            repeated |= answer.contains("repeated: true");
            answers.insert(answer.split([' ', '{']).next().unwrap_or_default().to_owned());
        }
        let refusals = answers.iter().filter(|answer| answer.starts_with("Err(")).count();
        if missed.is_empty() && repeated && made_headroom && refusals >= 25 {
            return;
        }
    }
    panic!("no history has a record of {missed:?}, or headroom ({made_headroom}), or answers are few: {answers:?}");
}
