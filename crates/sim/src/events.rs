//! Counts notable events of claims that cost something, lost nodes and failed starts in a history.

use leasehold_model::{AllocationNo, AttemptEnd, Body, Instant, LeaseNo, NodeNo, ProjectNo, Reason, Record};
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of the records so far.
#[derive(Default)]
struct Seen {
    /// When each claimed node was claimed, and until when it was to be kept.
    claimed: BTreeMap<NodeNo, (Instant, Option<Instant>)>,
    ceilings: BTreeSet<ProjectNo>,
    lies_on: BTreeMap<LeaseNo, NodeNo>,
    /// The number of commands that named something, by loss.
    parts: BTreeMap<u64, u64>,
    last_part: Option<u64>,
    preempted: BTreeSet<AllocationNo>,
}

pub(crate) fn count(records: &[Record], notable: &mut BTreeMap<&'static str, u64>) {
    let mut seen = Seen::default();
    for record in records {
        for what in seen.see(record) {
            *notable.entry(what).or_insert(0) += 1;
        }
    }
}

impl Seen {
    fn see(&mut self, record: &Record) -> Vec<&'static str> {
        let mut events = self.see_claims(record);
        events.extend(self.see_losses(record));
        events.extend(self.see_starts(record));
        events
    }

    fn see_claims(&mut self, record: &Record) -> Vec<&'static str> {
        let mut events = Vec::new();
        if let Body::NodesClaimed(taken) = &record.body {
            self.claimed.extend(taken.nodes.0.iter().map(|node| (*node, (record.stamp, taken.until))));
            events.extend(taken.until.map(|_| "claimed with an expected end"));
            let under = record.identity.project.is_some_and(|project| self.ceilings.contains(&project));
            events.extend(under.then_some("claimed under a ceiling"));
        }
        if let Body::NodesReleased(given) = &record.body {
            let ended = given.nodes.0.iter().filter_map(|node| self.claimed.remove(node)).collect::<Vec<_>>();
            let late = ended.iter().any(|(_, until)| until.is_some_and(|until| until < record.stamp));
            events.extend(late.then_some("kept beyond its expected end"));
        }
        if let Body::CeilingPut(put) = &record.body
            && put.app_instance.is_none()
        {
            self.ceilings.insert(put.project);
        }
        if let Body::CeilingDeleted(gone) = &record.body
            && gone.app_instance.is_none()
        {
            self.ceilings.remove(&gone.project);
        }
        if let Body::Granted(granted) = &record.body {
            let numbers = (granted.first_lease.0..).map(LeaseNo).take(granted.members.len());
            self.lies_on.extend(numbers.map(|number| (number, granted.node)));
        }
        if let Body::Fenced(fenced) = &record.body {
            let on_claimed = |lease: &LeaseNo| self.claimed.contains_key(&self.lies_on[lease]);
            events.extend(fenced.leases.0.iter().any(on_claimed).then_some("fenced on a claimed node"));
        }
        events
    }

    fn see_losses(&mut self, record: &Record) -> Vec<&'static str> {
        let mut events = Vec::new();
        if let Body::NodeLost(lost) = &record.body {
            let before = self.claimed.get(&lost.node).is_some_and(|(since, _)| lost.last_seen < *since);
            events.extend(before.then_some("claimed node lost before it was claimed"));
        }
        let named = if let Body::EndsCorrected(corrected) = &record.body {
            Some(corrected.loss)
        } else if let Body::ClaimEndCorrected(corrected) = &record.body {
            events.push("end of a claim corrected");
            Some(corrected.loss)
        } else {
            None
        };
        if let Some(loss) = named {
            let continues = record.continues && self.last_part == Some(loss);
            *self.parts.entry(loss).or_insert(0) += u64::from(!continues);
        }
        if let Body::LossSettled(settled) = &record.body {
            let continues = record.continues && self.last_part == Some(settled.loss);
            match self.parts.get(&settled.loss).copied().unwrap_or(0) + u64::from(!continues) {
                1 if !continues => events.push("loss settled without names"),
                2.. => events.push("loss settled in parts"),
                _ => {}
            }
        }
        self.last_part = named;
        events
    }

    fn see_starts(&mut self, record: &Record) -> Vec<&'static str> {
        let mut events = Vec::new();
        if let Body::Revoked(revoked) = &record.body
            && matches!(record.reason, Some(Reason::Preempted { .. }))
        {
            self.preempted.extend(revoked.belongs_to.and_then(|of| of.allocation));
        }
        if let Body::AllocationPlaced(placed) = &record.body {
            self.preempted.remove(&placed.allocation);
        }
        if let Body::AllocationFailed(failed) = &record.body
            && failed.end == AttemptEnd::FailedStart
        {
            events.push("start failed");
            events.extend(self.preempted.contains(&failed.allocation).then_some("start failed on a preempted gang"));
        }
        events
    }
}
