//! What the frozen journals hold: every kind of record, and the cases that are easy to fold otherwise.

use crate::{Frozen, folded, root};
use leasehold_model::body::{Body, Correlation, QuotaPut};
use leasehold_model::rate::Period;
use leasehold_model::{AllocationNo, AttemptEnd, DenyCause, HolderScope, LimitKind, NodeNo, PoolAccess, Record};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_kind_of_record_is_there() {
    let mut all = folded();
    all.push(Frozen::open(&root().join("never-written/preempted")));
    let found: BTreeSet<&str> =
        all.iter().flat_map(|frozen| &frozen.records).map(|record| record.body.word()).collect();
    // Kinds of a later version: journals that hold them are frozen with the version that brings them.
    let later = [
        "sharing.put",
        "ledger.shared",
        "period.stated",
        "sink.put",
        "sink.deleted",
        "sink.disabled",
        "accounting.reconciled",
    ];
    for (_, kind) in Body::KINDS.iter().filter(|(_, kind)| !later.contains(kind)) {
        assert!(found.contains(kind), "no frozen journal holds {kind}");
    }
}

/// Whether a record has something that a rules version added to a kind that was there before.
pub(crate) type Has = fn(&Record) -> bool;

const ADDED: &[(&str, Has)] = &[
    ("tenant: contact", |r| matches!(&r.body, Body::TenantPut(b) if b.settings.contact.is_some())),
    ("tenant: when_over_quota", |r| matches!(&r.body, Body::TenantPut(b) if b.settings.when_over_quota.is_some())),
    ("quota: kind", |r| quota(r, |b| b.scope.further.kind.is_some())),
    ("quota: one user", |r| quota(r, |b| matches!(b.scope.further.user, Some(HolderScope::One(_))))),
    ("quota: each user", |r| quota(r, |b| b.scope.further.user == Some(HolderScope::Each))),
    ("quota: each app instance", |r| quota(r, |b| b.scope.further.app_instance == Some(HolderScope::Each))),
    ("quota: and_above", |r| quota(r, |b| b.scope.further.and_above)),
    ("quota: temporary", |r| quota(r, |b| b.temporary.is_some())),
    ("quota: evict_own_lower", |r| quota(r, |b| b.evict_own_lower)),
    (
        "denied: a quota on a kind",
        |r| matches!(&r.body, Body::Denied(b) if matches!(b.cause, DenyCause::KindQuota { .. })),
    ),
    (
        "allocation denied: a quota on a kind",
        |r| matches!(&r.body, Body::AllocationDenied(b) if matches!(b.cause, DenyCause::KindQuota { .. })),
    ),
    (
        "allocation denied: when_over_quota",
        |r| matches!(&r.body, Body::AllocationDenied(b) if b.when_over_quota.is_some()),
    ),
    ("submitted: when_over_quota", |r| matches!(&r.body, Body::AllocationSubmitted(b) if b.when_over_quota.is_some())),
    ("submitted: node", |r| matches!(&r.body, Body::AllocationSubmitted(b) if b.node.is_some())),
    ("submitted: references", |r| {
        matches!(r.body, Body::AllocationSubmitted(_)) && r.hcl_entry.is_some() && r.dra_claim_id.is_some()
    }),
    ("granted: capped_by_window", |r| matches!(&r.body, Body::Granted(b) if b.capped_by_window.is_some())),
    (
        "granted: references of an allocation",
        |r| matches!(&r.body, Body::Granted(b) if b.allocation.is_some() && r.hcl_entry.is_some()),
    ),
    ("decided: headroom", |r| matches!(&r.body, Body::PreemptionDecided(b) if b.headroom.is_some())),
    ("expired: belongs_to", |r| matches!(&r.body, Body::Expired(b) if b.belongs_to.is_some())),
    (
        "revoked: belongs_to an allocation",
        |r| matches!(&r.body, Body::Revoked(b) if b.belongs_to.is_some_and(|of| of.allocation.is_some())),
    ),
    ("revoked: a given correlation ID", |r| {
        matches!(&r.body, Body::Revoked(b)
            if matches!(b.belongs_to.map(|of| of.correlation), Some(Correlation::Given(_))))
    }),
    ("teardown started: belongs_to", |r| matches!(&r.body, Body::TeardownStarted(b) if b.belongs_to.is_some())),
    ("torn down: belongs_to", |r| matches!(&r.body, Body::TornDown(b) if b.belongs_to.is_some())),
    ("fenced: belongs_to", |r| matches!(&r.body, Body::Fenced(b) if b.belongs_to.is_some())),
    ("unfenced: belongs_to", |r| matches!(&r.body, Body::Unfenced(b) if b.belongs_to.is_some())),
    ("unfenced: reason", |r| matches!(&r.body, Body::Unfenced(b) if b.reason.is_some())),
    ("drained: reason", |r| matches!(&r.body, Body::NodeDrained(b) if b.reason.is_some())),
    ("resumed: reason", |r| matches!(&r.body, Body::NodeResumed(b) if b.reason.is_some())),
    ("hold: reason", |r| matches!(&r.body, Body::AllocationHoldSet(b) if b.reason.is_some())),
    ("hold: by an operator", |r| matches!(&r.body, Body::AllocationHoldSet(b) if b.by_operator)),
    ("window: reason", |r| matches!(&r.body, Body::WindowPut(b) if b.reason.is_some())),
    ("window: cancelled before it began", |r| matches!(&r.body, Body::WindowEnded(b) if b.cancelled && !b.begun)),
    ("window: cancelled after it began", |r| matches!(&r.body, Body::WindowEnded(b) if b.cancelled && b.begun)),
    ("window announced: reason", |r| matches!(&r.body, Body::WindowAnnounced(b) if b.reason.is_some())),
    ("window announced: cancelled", |r| matches!(&r.body, Body::WindowAnnounced(b) if b.cancelled.is_some())),
    ("claimed: until", |r| matches!(&r.body, Body::NodesClaimed(b) if b.until.is_some())),
    ("released: claim", |r| matches!(&r.body, Body::NodesReleased(b) if b.claim.is_some())),
    ("wiped: claim", |r| matches!(&r.body, Body::NodeWiped(b) if b.claim.is_some())),
    ("quarantined: claim", |r| matches!(&r.body, Body::NodeQuarantined(b) if b.claim.is_some())),
    ("failed: failed_start", |r| matches!(&r.body, Body::AllocationFailed(b) if b.end == AttemptEnd::FailedStart)),
    ("prices: per hour", |r| matches!(&r.body, Body::RateCardPut(b) if b.prices.periods.kinds.contains(&Period::Hour))),
    (
        "prices: a class per day",
        |r| matches!(&r.body, Body::RateCardPut(b) if b.prices.periods.classes.iter().any(|of| of.1 == Period::Day)),
    ),
    ("access: paused", |r| matches!(&r.body, Body::ProjectPoolPut(b) if b.access == PoolAccess::Paused)),
    ("access: deprioritised", |r| matches!(&r.body, Body::ProjectPoolPut(b) if b.access == PoolAccess::Deprioritised)),
    (
        "taken over: nothing new is evicted",
        |r| matches!(&r.body, Body::ReservationTakenOver(b) if b.victims.0.is_empty() && !b.awaited.0.is_empty()),
    ),
];

fn quota(record: &Record, has: impl Fn(&QuotaPut) -> bool) -> bool {
    matches!(&record.body, Body::QuotaPut(put) if has(put))
}

/// All records of the journals of a rules version.
pub(crate) fn records_of(rules: u32) -> Vec<Record> {
    let folder = format!("rules-{rules}/");
    let all = folded().into_iter().filter(|frozen| frozen.name.starts_with(&folder));
    all.flat_map(|frozen| frozen.records).collect()
}

/// Something that a rules version added is in one of its journals.
pub(crate) fn demand(rules: u32, added: &[(&str, Has)]) {
    let records = records_of(rules);
    let missing: Vec<&str> = added.iter().filter(|(_, has)| !records.iter().any(has)).map(|(what, _)| *what).collect();
    assert!(missing.is_empty(), "no frozen journal of rules {rules} holds these: {missing:#?}");
}

#[test]
fn everything_that_rules_4_added_is_there() {
    demand(4, ADDED);
}

/// Journals that a process with later rules took over: with version 4 claimed nodes count whole, with version 5 there is
/// a ledger, with version 6 there are app runtimes, and with version 7 entitlements and policies.
#[test]
fn journals_are_taken_over_by_later_rules() {
    for (name, from, to) in [
        ("rules-4/upgraded", 3, 4),
        ("rules-4/upgraded-burst", 3, 4),
        ("rules-5/upgraded", 4, 5),
        ("rules-5/upgraded-claims", 4, 5),
        ("rules-6/upgraded", 5, 6),
        ("rules-6/upgraded-lent", 5, 6),
        ("rules-7/upgraded", 6, 7),
        ("rules-7/upgraded-lent", 5, 7),
    ] {
        let rules: Vec<u32> = named(name)
            .iter()
            .filter_map(|record| match &record.body {
                Body::Started(started) => Some(started.rules_version),
                _ => None,
            })
            .collect();
        assert!(rules.starts_with(&[from]) && rules.ends_with(&[to]), "{name}: {rules:?}");
    }
}

pub(crate) fn named(name: &str) -> Vec<Record> {
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
