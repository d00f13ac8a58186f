//! Predicts automatic records exactly.
//!
//! First the ends of attempts, in order of number; then allocations whose reservation failed drop it; then the moves of
//! the queue, with the starts of those whose victims are gone. No command may be decided before all of them.

use crate::allocation::{Allocation, References};
use crate::eviction::Plan;
use crate::gang::Gang;
use crate::holder::Holder;
use crate::lease::Phase;
use crate::queue::Move;
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::body::{
    AllocationFailed, AllocationPlaced, AllocationRequeued, AllocationSuspended, Granted, HeadProtected,
    PreemptionDecided, ReservationDropped, ReservationTakenOver, Revoked, TeardownStarted, TornDown,
};
use leasehold_model::policy::TeardownCause;
use leasehold_model::{
    AllocationNo, AttemptEnd, Body, Identity, Instant, LeaseNo, NodeNo, PoolNo, Reason, Record, Span,
};
use std::collections::BTreeMap;

/// A predicted record, without its sequence and stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) body: Body,
    reason: Option<Reason>,
    effective_at: Instant,
    /// The identity; `None` if it is that of the caller.
    identity: Option<Identity>,
    references: References,
}

impl Line {
    pub(crate) fn new(body: impl Into<Body>, identity: Identity, now: Instant) -> Self {
        Self { body: body.into(), reason: None, effective_at: now, identity: Some(identity), references: (None, None) }
    }

    /// A record with the identity of the caller.
    pub(crate) fn of_caller(body: impl Into<Body>, now: Instant) -> Self {
        Self { identity: None, ..Self::new(body, Identity::default(), now) }
    }

    /// Checks that a record matches. The token depends on the caller and is not compared.
    pub(crate) fn check(&self, record: &Record) -> Checked {
        let identity = Identity { token: None, ..record.identity.clone() };
        let said = Self {
            body: record.body.clone(),
            reason: record.reason,
            effective_at: record.effective_at,
            identity: self.identity.is_some().then_some(identity),
            references: (record.hcl_entry.clone(), record.dra_claim_id.clone()),
        };
        demand!(said == *self, "follows", "expected {self:?}");
        Ok(())
    }
}

/// The records of one act.
pub(crate) type Script = Vec<Line>;

/// Context that predicted decisions contain.
#[derive(Clone, Copy)]
pub(crate) struct Sealing {
    pub(crate) now: Instant,
    pub(crate) rules_version: u32,
    /// The sequence of the act's first record.
    pub(crate) sequence: u64,
}

impl World {
    /// The next automatic records that are due, if any.
    pub(crate) fn next_act(&self, s: Sealing) -> Option<Script> {
        if let Some(script) = self.allocations.values().find_map(|found| self.settle(found, s)) {
            return Some(script);
        }
        let is_broken = |found: &&Allocation| found.reservation.as_ref().is_some_and(|kept| self.is_broken(kept));
        if let Some(found) = self.allocations.values().find(is_broken) {
            return Some(Self::drop_reservation(found, s));
        }
        match self.look(s.now) {
            Ok(_) => None,
            Err(Move::Start(number, gang)) => Some(self.start(&self.allocations[&number], &gang, s)),
            Err(Move::MakeRoom(number, plan)) => Some(self.make_room(&self.allocations[&number], plan, s)),
            Err(Move::Fulfil(number)) => Some(self.fulfil(&self.allocations[&number], s)),
            Err(Move::Protect(allocation, nodes)) => {
                let identity = self.allocations[&allocation].identity();
                let nodes = nodes.into_iter().collect();
                let body = HeadProtected { allocation, rules_version: s.rules_version, nodes };
                Some(vec![Line::new(body, identity, s.now)])
            }
        }
    }

    fn settle(&self, found: &Allocation, s: Sealing) -> Option<Script> {
        let end = found.ends.filter(|_| found.state.is_placed())?;
        if self.held_of(found).is_empty() {
            return Some(vec![self.ended(found, end, s.now)]);
        }
        // An involuntary end of one member of a gang revokes the others (SEMANTICS 3).
        let rest = self.active_of(found);
        let reason = if end == AttemptEnd::NodeLost { Reason::NodeLost } else { Reason::Policy };
        let script = self.revocations(&rest, reason, s.now);
        (!script.is_empty()).then_some(script)
    }

    /// The records after the end of an attempt.
    fn ended(&self, found: &Allocation, end: AttemptEnd, now: Instant) -> Line {
        let allocation = found.number;
        let body: Body = match end {
            // Its walltime is over.
            AttemptEnd::Walltime => AllocationFailed { allocation, end, exit_status: None, storage_written: 0 }.into(),
            // Nobody pays for another attempt.
            _ if self.has_ended(found.spec.attachment) => {
                AllocationFailed { allocation, end, exit_status: None, storage_written: 0 }.into()
            }
            _ if found.checkpointed => AllocationSuspended { allocation, end }.into(),
            _ if found.spec.requeue && found.requeues < self.requeue_limit(found) => {
                AllocationRequeued { allocation, end }.into()
            }
            _ => AllocationFailed { allocation, end, exit_status: None, storage_written: 0 }.into(),
        };
        let ended_at = self.gang_of(found).filter_map(|lease| lease.ended_at).max();
        Line { effective_at: ended_at.unwrap_or(now).min(now), ..Line::new(body, found.identity(), now) }
    }

    /// The lowest limit on requeues of the pools that an allocation may use.
    fn requeue_limit(&self, found: &Allocation) -> u32 {
        let pools = self.pools.keys().filter(|pool| found.spec.pool.is_none_or(|own| own == **pool));
        pools.map(|pool| self.pool_queue(*pool).requeue_limit).min().unwrap_or(10)
    }

    /// One record for each holder and each grace period of their pools. They are in the order of tenant, project,
    /// user, workload, allocation, correlation ID and grace.
    pub(crate) fn revocations(&self, leases: &[LeaseNo], reason: Reason, now: Instant) -> Script {
        self.revocations_within(leases, reason, None, now)
    }

    /// The same with one grace period for all, if one is given.
    pub(crate) fn revocations_within(
        &self,
        leases: &[LeaseNo],
        reason: Reason,
        given: Option<Span>,
        now: Instant,
    ) -> Script {
        let mut groups: Vec<((Holder, Span), Vec<LeaseNo>)> = Vec::new();
        for number in leases {
            let lease = self.lease(*number).expect("one that was just listed");
            let grace = self.pools.get(&lease.pool).and_then(|pool| pool.grace);
            let grace = given.or(grace).unwrap_or(self.settings.grace_default);
            let of = (lease.holder(), grace);
            match groups.iter_mut().find(|(other, _)| *other == of) {
                Some((_, together)) => together.push(*number),
                None => groups.push((of, vec![*number])),
            }
        }
        groups.sort_by_key(|(((who, belongs_to), grace), _)| {
            (who.tenant, who.project, who.user, who.workload.clone(), *belongs_to, *grace)
        });
        let line = |(((identity, belongs_to), grace), leases): ((Holder, Span), Vec<LeaseNo>)| {
            let body = Revoked { leases: leases.into_iter().collect(), grace, belongs_to: Some(belongs_to) };
            Line { reason: Some(reason), ..Line::new(body, identity, now) }
        };
        groups.into_iter().map(line).collect()
    }

    fn drop_reservation(found: &Allocation, s: Sealing) -> Script {
        vec![Line::new(ReservationDropped { allocation: found.number }, found.identity(), s.now)]
    }

    /// An allocation whose reserved capacity is complete starts, if its quotas still allow it.
    fn fulfil(&self, found: &Allocation, s: Sealing) -> Script {
        let reservation = found.reservation.as_ref().expect("it is complete");
        let dropped = || Self::drop_reservation(found, s);
        // Quotas are checked again before it starts (SEMANTICS 4).
        let demand = found.demand();
        let mut terms = self.gang_terms(&demand, s.now);
        let mut taken = Vec::new();
        for place in &reservation.places {
            let at = (self.nodes[&place.node].put.pool, place.node);
            let Ok(rulings) = self.judge_place(&demand, at, &taken, s.now) else { return dropped() };
            rulings.into_iter().for_each(|(number, ruling)| terms.hear(number, ruling));
            taken.push(at);
        }
        let suits = reservation.places.iter().all(|place| {
            let pool = self.nodes[&place.node].put.pool;
            self.gang_ttl(pool, &found.spec).is_some()
                && !self.is_paused(&demand, pool)
                && self.ends_before_window(place.node, s.now, found.spec.walltime)
        });
        if terms.refusal.is_some() || !suits {
            return dropped();
        }
        self.start(found, &Gang { places: reservation.places.clone(), terms }, s)
    }

    /// The grants of a gang follow directly after the record of its placement.
    pub(crate) fn start(&self, found: &Allocation, gang: &Gang, s: Sealing) -> Script {
        let (spec, number, identity) = (&found.spec, found.number, found.identity());
        let first = LeaseNo(self.highest.get("lease").map_or(0, |highest| highest + 1));
        let leases = u32::try_from(spec.leases()).expect("at most 1024");
        let rules_version = s.rules_version;
        let attempt = found.attempts + 1;
        let placed = AllocationPlaced { allocation: number, attempt, first_lease: first, leases, rules_version };
        let mut script = vec![Line::new(placed, identity.clone(), s.now)];
        let mut next = first.0;
        // A node that was named was not chosen by weights.
        let is_weighed = found.reservation.is_none() && found.node.is_none();
        for place in &gang.places {
            let pool: PoolNo = self.nodes[&place.node].put.pool;
            let ttl = self.gang_ttl(pool, spec).expect("only pools that allow it are looked at");
            let (ttl, capped_by) = gang.terms.ttl(ttl, s.now);
            let (ttl, capped_by_window) = self.ttl_to_window(place.node, ttl, s.now);
            let capped_by = capped_by.filter(|_| capped_by_window.is_none());
            let granted = Granted {
                first_lease: LeaseNo(next),
                node: place.node,
                pool,
                ttl,
                priority: spec.priority,
                rules_version,
                members: place.members.clone(),
                sensitive: spec.sensitive,
                control_plane: spec.control_plane,
                correlation: spec.correlation,
                allocation: Some(number),
                app_instance: spec.app_instance,
                attachment: spec.attachment,
                source_project: spec.source_project,
                over_soft: gang.terms.over_soft().into_iter().collect(),
                capped_by,
                // With victims, the placement was decided together with the eviction.
                profile: spec.profile.filter(|_| is_weighed),
                weighing: is_weighed.then(|| self.weighing(pool)),
                labels: Vec::new(),
                capped_by_window,
            };
            next += place.members.len() as u64;
            let references = found.references.clone();
            script.push(Line { references, ..Line::new(granted, identity.clone(), s.now) });
        }
        script
    }

    /// The preemption decision, then the revocations of the victims, which refer to it and contain only their own
    /// tenant.
    fn make_room(&self, found: &Allocation, plan: Plan, s: Sealing) -> Script {
        let (allocation, priority, rules_version) = (found.number, found.spec.priority, s.rules_version);
        let Plan { places, victims, awaited, dropped, headroom, .. } = plan.clone();
        let victims = victims.into_iter().collect();
        let decided: Body = if dropped.is_empty() {
            PreemptionDecided { allocation, priority, rules_version, places, victims, headroom }.into()
        } else {
            let awaited = awaited.into_iter().collect();
            ReservationTakenOver { allocation, priority, rules_version, places, victims, awaited, dropped }.into()
        };
        let mut script = vec![Line::new(decided, Identity::default(), s.now)];
        let reason = Reason::Preempted { by: s.sequence };
        script.extend(self.revocations(&plan.victims, reason, s.now));
        script
    }

    /// After the report of a checkpoint, a gang that is being revoked is ready.
    pub(crate) fn after_checkpoint(&self, number: AllocationNo, now: Instant) -> Script {
        let found = &self.allocations[&number];
        let gang = || self.gang_of(found).filter(|lease| lease.phase.is_held());
        let revoking: Vec<_> = gang().filter(|lease| lease.phase == Phase::Revoking).collect();
        if revoking.is_empty() {
            return Script::new();
        }
        let mut immediate: BTreeMap<NodeNo, Vec<LeaseNo>> = BTreeMap::new();
        for lease in revoking.iter().filter(|lease| self.nodes[&lease.node].is_immediate()) {
            immediate.entry(lease.node).or_default().push(lease.number);
        }
        let closed = immediate.values().map(Vec::len).sum::<usize>() == revoking.len();
        let leases = revoking.iter().map(|lease| lease.number).collect();
        let ready = TeardownStarted { leases, cause: TeardownCause::Ready, closed, belongs_to: None };
        let mut script = vec![Line::new(ready, found.identity(), now)];
        for (node, leases) in immediate.into_iter().filter(|_| !closed) {
            let torn = TornDown { node, leases: leases.into_iter().collect(), belongs_to: None };
            script.push(Line { identity: None, ..Line::new(torn, found.identity(), now) });
        }
        if gang().count() == revoking.len() {
            let end = found.ends.expect("its leases were revoked");
            let allocation = found.number;
            let body: Body = match end {
                _ if end == AttemptEnd::Walltime || self.has_ended(found.spec.attachment) => {
                    AllocationFailed { allocation, end, exit_status: None, storage_written: 0 }.into()
                }
                _ => AllocationSuspended { allocation, end }.into(),
            };
            script.push(Line::new(body, found.identity(), now));
        }
        script
    }
}
