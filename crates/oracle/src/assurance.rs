//! A promise is kept: whoever was first and was told when it would start has started by then, or something stood
//! in the way that no promise covers.

use crate::oracle::Oracle;
use crate::queue::{Heads, Line, Rank};
use crate::violation::{Checked, Violation, demand};
use crate::world::World;
use leasehold_model::{AllocationNo, Body, Instant, NodeNo, Record, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What one that waits was told.
#[derive(Clone, Debug)]
pub(crate) struct Vow {
    start: Instant,
    nodes: BTreeSet<NodeNo>,
}

pub(crate) type Vows = BTreeMap<AllocationNo, Vow>;

impl World {
    /// The queue was looked at: its heads are told when they start. One that is no longer first wherever it would
    /// lie has nothing to count on.
    pub(crate) fn make_vows(&mut self, heads: &Heads, now: Instant) {
        let mut vows = std::mem::take(&mut self.vows);
        vows.retain(|number, vow| self.is_first(*number, vow, heads));
        for rank in heads.values() {
            let Some(promise) = self.allocations.get(&rank.3).and_then(|waits| self.promise(waits, now)) else {
                continue;
            };
            let vow = Vow { start: promise.start, nodes: promise.nodes };
            if self.is_first(rank.3, &vow, heads) && vows.get(&rank.3).is_none_or(|old| vow.start <= old.start) {
                vows.insert(rank.3, vow);
            }
        }
        self.vows = vows;
    }

    /// Whether it is the head of every line for the nodes that it would lie on.
    fn is_first(&self, number: AllocationNo, vow: &Vow, heads: &Heads) -> bool {
        let mut lines = vow.nodes.iter().filter_map(|node| self.nodes.get(node)).map(Line::at);
        lines.all(|line| heads.get(&line).is_some_and(|head| head.3 == number))
    }

    /// What a record does to what was promised before it.
    pub(crate) fn follow_vows(&mut self, record: &Record) {
        let late = record.stamp.since(record.effective_at);
        match &record.body {
            // The cluster, its limits or its keeper changed, or a node kept what it should have given back.
            Body::Started(_)
            | Body::SettingsChanged(_)
            | Body::PoolPut(_)
            | Body::NodePut(_)
            | Body::NodeDeleted(_)
            | Body::NodeDrained(_)
            | Body::NodeResumed(_)
            | Body::NodeLost(_)
            | Body::NodeReturned(_)
            | Body::NodesClaimed(_)
            | Body::NodesReleased(_)
            | Body::NodeWiped(_)
            | Body::QuarantineCleared(_)
            | Body::Fenced(_)
            | Body::QuotaPut(_)
            | Body::CeilingPut(_)
            | Body::CeilingDeleted(_)
            | Body::TenantPut(_)
            | Body::BudgetsPut(_) => self.vows.clear(),
            // Money was taken that it may lack, or became worth something else.
            Body::Renewed(_) | Body::RateCardPut(_) | Body::RateCardDeleted(_) if !self.ceilings.is_empty() => {
                self.vows.clear();
            }
            // One that goes before it took what it could; so may one that no longer waits behind it.
            Body::Granted(granted) => {
                let waits = granted.allocation.and_then(|of| self.allocations.get(&of));
                let tenant = record.identity.tenant.expect("a grant has a tenant");
                let (submitted, number) =
                    waits.map_or((record.stamp, AllocationNo(u64::MAX)), |of| (of.submitted_at, of.number));
                let standing = Reverse(self.standing(tenant, record.stamp));
                let rank: Rank = (Reverse(granted.priority), standing, submitted, number);
                self.outrank_vows(rank, record.stamp);
            }
            Body::PreemptionDecided(decided) => {
                let rank = self.rank(&self.allocations[&decided.allocation], record.stamp);
                self.outrank_vows(rank, record.stamp);
            }
            // What was noticed late ends late, and is cleared up later still.
            Body::Expired(_) | Body::TeardownStarted(_) if late > Span::ZERO => {
                for vow in self.vows.values_mut() {
                    vow.start = vow.start.saturating_add(late);
                }
            }
            // These take nothing from anyone who waits.
            #[rustfmt::skip]
            Body::Genesis(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::ClassPut(_)
            | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
            | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaDeleted(_) | Body::BurstEnded(_)
            | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_) | Body::PoolPlacementPut(_)
            | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::NodeCondition(_)
            | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::Denied(_) | Body::Renewed(_)
            | Body::Released(_) | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_) | Body::TornDown(_)
            | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_) | Body::ReservationDropped(_)
            | Body::TokenIssued(_) | Body::TokenRevoked(_) | Body::AllocationSubmitted(_) | Body::AllocationDenied(_)
            | Body::AllocationPlaced(_) | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_) | Body::AllocationSuspended(_) | Body::AllocationRequeued(_)
            | Body::AllocationCompleted(_) | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::NodeQuarantined(_) | Body::Unknown { .. } => {}
        }
        self.vows.retain(|number, _| self.allocations[number].is_in_line());
    }

    /// One of that rank took something: those that go after it, as the order is now, were promised nothing against it.
    fn outrank_vows(&mut self, rank: Rank, now: Instant) {
        let mut vows = std::mem::take(&mut self.vows);
        vows.retain(|number, _| rank > self.rank(&self.allocations[number], now));
        self.vows = vows;
    }

    fn check_vows(&self, now: Instant) -> Checked {
        let late: Vec<_> = self.vows.iter().filter(|(_, vow)| now > vow.start).collect();
        if late.is_empty() {
            return Ok(());
        }
        // One that came back into the queue may go before it now.
        let heads = self.heads_at(now);
        for (number, vow) in late.into_iter().filter(|(number, vow)| self.is_first(**number, vow, &heads)) {
            let waits = &self.allocations[number];
            // One that its quotas keep waiting was promised nothing.
            let demand = waits.demand();
            let mut taken = Vec::new();
            let refused = self.gang_terms(&demand, now).refusal.is_some()
                || vow.nodes.iter().any(|node| {
                    let at = (self.nodes[node].put.pool, *node);
                    let is_refused = self.judge_place(&demand, at, &taken, now).is_err();
                    taken.push(at);
                    is_refused
                });
            demand!(refused, "promise", "{number} was to start by {}: {vow:?}", vow.start);
        }
        Ok(())
    }
}

impl Oracle {
    /// At rest at `now`: nobody waits past what it was promised.
    pub fn check_promises(&self, now: Instant) -> Result<(), Violation> {
        self.world.check_vows(now).map_err(|broken| broken.at(self.size))
    }
}
