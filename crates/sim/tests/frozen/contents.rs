//! What the frozen journals hold: every kind of record, and the cases that are easy to fold otherwise.

use crate::{Frozen, folded, root};
use leasehold_model::body::Body;
use leasehold_model::{AllocationNo, LimitKind, NodeNo, Record};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_kind_of_record_is_there() {
    let mut all = folded();
    all.push(Frozen::open(&root().join("never-written/preempted")));
    let found: BTreeSet<&str> =
        all.iter().flat_map(|frozen| &frozen.records).map(|record| record.body.word()).collect();
    // Kinds of later versions: journals that hold them are frozen with the version that brings them.
    let later = [
        "lease.end_corrected",
        "claim.end_corrected",
        "node.loss_settled",
        "pool.queue_put",
        "quota.until_reached",
        "reservation.taken_over",
        "allocation.hold_set",
        "allocation.hold_cleared",
        "allocation.changed",
        "node.empty",
        "window.put",
        "window.started",
        "window.ended",
        "lease.window_announced",
        "head.protected",
        "project.pool_put",
        "settings.queue_changed",
    ];
    for (_, kind) in Body::KINDS.iter().filter(|(_, kind)| !later.contains(kind)) {
        assert!(found.contains(kind), "no frozen journal holds {kind}");
    }
}

fn named(name: &str) -> Vec<Record> {
    Frozen::open(&root().join(name)).records
}

/// Two that wait for their victims on one node at the same time.
#[test]
fn reservations_overlap() {
    let mut waiting: BTreeMap<AllocationNo, Vec<NodeNo>> = BTreeMap::new();
    let mut overlaps = 0;
    for record in named("rules-3/reservations") {
        match &record.body {
            Body::PreemptionDecided(decided) => {
                let nodes: Vec<NodeNo> = decided.places.iter().map(|place| place.node).collect();
                overlaps += waiting.values().filter(|others| others.iter().any(|node| nodes.contains(node))).count();
                waiting.insert(decided.allocation, nodes);
            }
            Body::AllocationPlaced(placed) => drop(waiting.remove(&placed.allocation)),
            Body::ReservationDropped(dropped) => drop(waiting.remove(&dropped.allocation)),
            Body::AllocationCancelled(gone) => drop(waiting.remove(&gone.allocation)),
            _ => {}
        }
    }
    assert!(overlaps >= 2, "only {overlaps} reservations lie on a node on which another has one");
}

/// Claimed nodes count in quotas, also in one with a burst that begins and ends.
#[test]
fn a_burst_meets_claims() {
    let records = named("rules-3/burst");
    let bursts =
        |record: &&Record| matches!(&record.body, Body::QuotaPut(put) if matches!(put.limit, LimitKind::Burst { .. }));
    assert!(records.iter().filter(bursts).count() >= 2);
    let count = |word: &str| records.iter().filter(|record| record.body.word() == word).count();
    assert!(count("node.claimed") >= 3 && count("node.released") >= 2, "too few claims");
    assert!(count("quota.burst_ended") >= 1, "no burst ended");
}

#[test]
fn gangs_are_requeued_and_a_node_is_lost_under_them() {
    let records = named("rules-3/gangs");
    let replicas: BTreeMap<u64, u32> = records
        .iter()
        .filter_map(|record| match &record.body {
            Body::AllocationSubmitted(submitted) => Some((record.sequence, submitted.spec.replicas)),
            _ => None,
        })
        .collect();
    let requeued = records
        .iter()
        .filter(|record| matches!(&record.body, Body::AllocationRequeued(back) if replicas[&back.allocation.0] > 1));
    assert!(requeued.count() >= 2, "too few gangs go back into the queue");
    let lost = records.iter().position(|record| matches!(record.body, Body::NodeLost(_))).expect("a lost node");
    assert!(
        records[lost + 1..].iter().take(2).any(|record| matches!(record.body, Body::TeardownStarted(_))),
        "no lease ends with the lost node"
    );
}

/// A tenant, a project, a user, a pool, a node and a class whose names are digits, none of them its own number.
#[test]
fn names_of_digits() {
    let mut found = BTreeSet::new();
    for record in named("rules-3/names") {
        let (what, name, number) = match &record.body {
            Body::TenantPut(put) => ("tenant", &put.settings.name, u64::from(put.tenant.0)),
            Body::ProjectPut(put) => ("project", &put.name, u64::from(put.project.0)),
            Body::UserPut(put) => ("user", &put.name, u64::from(put.user.0)),
            Body::PoolPut(put) => ("pool", &put.name, u64::from(put.pool.0)),
            Body::NodePut(put) => ("node", &put.name, u64::from(put.node.0)),
            Body::ClassPut(put) => ("class", &put.spec.name, u64::from(put.class.0)),
            Body::TokenIssued(issued) => ("token", &issued.name, u64::from(issued.token.0)),
            _ => continue,
        };
        if name.as_str().parse::<u64>().is_ok_and(|digits| digits != number) {
            found.insert(what);
        }
    }
    let expected = ["class", "node", "pool", "project", "tenant", "token", "user"];
    assert!(found.iter().eq(expected.iter()), "{found:?}");
}
