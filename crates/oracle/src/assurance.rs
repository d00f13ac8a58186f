//! Checks that assured starts are kept: the head of a line starts by the instant that it was assured of, unless an
//! event that the assurance does not cover came in between.

use crate::oracle::Oracle;
use crate::queue::{Heads, Line, Rank};
use crate::violation::{Checked, Violation, demand};
use crate::world::World;
use leasehold_model::body::{PreemptionDecided, ReservationTakenOver};
use leasehold_model::{AllocationNo, Body, Instant, NodeNo, Record, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The start that a waiting allocation was assured of.
#[derive(Clone, Debug)]
pub(crate) struct Assurance {
    start: Instant,
    nodes: BTreeSet<NodeNo>,
}

pub(crate) type Assurances = BTreeMap<AllocationNo, Assurance>;

impl World {
    /// After a scheduling pass: its heads are assured of a start. An allocation that is no longer the head of the
    /// lines of all its nodes loses its assurance.
    pub(crate) fn give_assurances(&mut self, heads: &Heads, now: Instant) {
        let mut assurances = std::mem::take(&mut self.assurances);
        assurances.retain(|number, assurance| self.is_first(*number, assurance, heads));
        for rank in heads.values() {
            let Some(assured) = self.allocations.get(&rank.3).and_then(|waits| self.assured_start(waits, now)) else {
                continue;
            };
            let assurance = Assurance { start: assured.start, nodes: assured.nodes };
            if self.is_first(rank.3, &assurance, heads)
                && assurances.get(&rank.3).is_none_or(|old| assurance.start <= old.start)
            {
                assurances.insert(rank.3, assurance);
            }
        }
        self.assurances = assurances;
    }

    /// Whether the allocation is the head of the line of each node that it would be placed on.
    fn is_first(&self, number: AllocationNo, assurance: &Assurance, heads: &Heads) -> bool {
        let mut lines = assurance.nodes.iter().filter_map(|node| self.nodes.get(node)).map(Line::at);
        lines.all(|line| heads.get(&line).is_some_and(|head| head.3 == number))
    }

    /// Drops or moves the assurances that a record affects.
    pub(crate) fn follow_assurances(&mut self, record: &Record) {
        let late = record.stamp.since(record.effective_at);
        match &record.body {
            // The cluster, its limits or the process changed, or a node did not confirm a teardown in time.
            Body::Started(_)
            | Body::SettingsChanged(_)
            | Body::PoolPut(_)
            | Body::NodePut(_)
            | Body::NodeDeleted(_)
            | Body::NodeDrained(_)
            | Body::NodeResumed(_)
            | Body::WindowPut(_)
            | Body::WindowStarted(_)
            | Body::WindowEnded(_)
            | Body::NodeLost(_)
            | Body::NodeReturned(_)
            | Body::NodesClaimed(_)
            | Body::NodesReleased(_)
            | Body::NodeWiped(_)
            | Body::QuarantineCleared(_)
            | Body::Fenced(_)
            | Body::QuotaPut(_)
            | leasehold_model::registry_kinds!()
            | leasehold_model::sink_kinds!()
            | Body::CeilingPut(_)
            | Body::CeilingDeleted(_)
            | Body::TenantPut(_)
            | Body::BudgetsPut(_) => self.assurances.clear(),
            // Money was reserved that the allocation may need, or prices changed.
            Body::Renewed(_) | Body::RateCardPut(_) | Body::RateCardDeleted(_) if !self.ceilings.is_empty() => {
                self.assurances.clear();
            }
            // A higher-ranked request took capacity.
            Body::Granted(granted) => {
                let waits = granted.allocation.and_then(|of| self.allocations.get(&of));
                let tenant = record.identity.tenant.expect("a grant has a tenant");
                // Which pools a request named is not recorded with its grant: it had at most the better standing.
                let by_cores = self.standing_on(tenant, Some(granted.node), None, record.stamp);
                let standing = self.standing_on(tenant, None, None, record.stamp).max(by_cores);
                let plain =
                    (Reverse(granted.priority), (false, Reverse(standing)), record.stamp, AllocationNo(u64::MAX));
                let rank: Rank = waits.map_or(plain, |of| self.rank(of, record.stamp));
                self.drop_outranked_assurances(rank, record.stamp);
            }
            Body::PreemptionDecided(PreemptionDecided { allocation, .. })
            | Body::ReservationTakenOver(ReservationTakenOver { allocation, .. }) => {
                let rank = self.rank(&self.allocations[allocation], record.stamp);
                self.drop_outranked_assurances(rank, record.stamp);
            }
            // An end that was noticed late frees its capacity later by the same time.
            Body::Expired(_) | Body::TeardownStarted(_) if late > Span::ZERO => {
                for assurance in self.assurances.values_mut() {
                    assurance.start = assurance.start.saturating_add(late);
                }
            }
            // It may need something else now, or have another rank.
            Body::AllocationChanged(changed) => drop(self.assurances.remove(&changed.allocation)),
            // These take nothing from a waiting allocation.
            #[rustfmt::skip]
            Body::Genesis(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::ClassPut(_)
            | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
            | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!()
            | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::NodeCondition(_)
            | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Denied(_) | Body::Renewed(_)
            | Body::Released(_) | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_) | Body::TornDown(_)
            | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_) | Body::ReservationDropped(_) | Body::HeadProtected(_)
            | Body::TokenIssued(_) | Body::TokenRevoked(_) | Body::AllocationSubmitted(_) | Body::AllocationDenied(_)
            | Body::AllocationPlaced(_) | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_) | Body::AllocationSuspended(_) | Body::AllocationRequeued(_)
            | Body::AllocationCompleted(_) | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_)
            | Body::NodeQuarantined(_) | Body::Unknown { .. } => {}
        }
        self.assurances.retain(|number, _| self.allocations[number].is_in_line());
    }

    /// A request of that rank took capacity: assurances of lower-ranked allocations do not cover that.
    fn drop_outranked_assurances(&mut self, rank: Rank, now: Instant) {
        let mut assurances = std::mem::take(&mut self.assurances);
        assurances.retain(|number, _| rank > self.rank(&self.allocations[number], now));
        self.assurances = assurances;
    }

    fn check_assurances(&self, now: Instant) -> Checked {
        let late: Vec<_> = self.assurances.iter().filter(|(_, assurance)| now > assurance.start).collect();
        if late.is_empty() {
            return Ok(());
        }
        // A requeued allocation may be ranked higher now.
        let heads = self.heads_at(now);
        for (number, assurance) in
            late.into_iter().filter(|(number, assurance)| self.is_first(**number, assurance, &heads))
        {
            let waits = &self.allocations[number];
            // An assurance does not cover quotas.
            let demand = waits.demand();
            let mut taken = Vec::new();
            let refused = self.gang_terms(&demand, now).refusal.is_some()
                || assurance.nodes.iter().any(|node| {
                    let at = (self.nodes[node].put.pool, *node);
                    let is_refused = self.judge_place(&demand, at, &taken, now).is_err();
                    taken.push(at);
                    is_refused
                });
            demand!(
                refused,
                "assured-start",
                "{number} did not start by {} as assured: {assurance:?}",
                assurance.start
            );
        }
        Ok(())
    }
}

impl Oracle {
    /// Checks, between commands, that no allocation waits past its assured start.
    pub fn check_assured_starts(&self, now: Instant) -> Result<(), Violation> {
        self.world.check_assurances(now).map_err(|broken| broken.at(self.size))
    }
}
