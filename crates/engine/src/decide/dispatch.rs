//! The scheduling pass: settles attempts that have ended, starts allocations whose victims are gone, and starts or
//! evicts for waiting allocations.
//!
//! It runs before each command and after capacity became free. An additional pass changes nothing, because its
//! decisions depend only on the state and the current minute.

use super::guard::{AssuredStarts, ComputedStarts};
use super::{Draft, Engine};
use crate::allocation::Allocation;
use crate::ask::{Allow, Ask};
use crate::gang::{Gang, NoGang};
use crate::holder::by_holder;
use crate::lease::Phase;
use crate::node::Node;
use crate::placement::{Placed, Tentative, Wanted};
use crate::preempt::Plan;
use crate::protection::own_lines;
use crate::queue::{Line, Rank, ShapeKey};
use crate::scheduler::{Blocked, Shape};
use leasehold_model::body::{
    AllocationFailed, AllocationPlaced, AllocationRequeued, AllocationSuspended, Body, Granted, HeadProtected, Members,
    PreemptionDecided, ReservationDropped, ReservationTakenOver, Revoked,
};
use leasehold_model::{
    AllocationNo, AttemptEnd, Batch, Identity, Instant, LeaseNo, NodeNo, PoolAccess, Priority, RULES_VERSION, Reason,
    Record,
};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Draft<'_> {
    /// Adds a record on behalf of a holder, with the token of the caller.
    pub(super) fn emit_for(&mut self, of: &Identity, body: impl Into<Body>) {
        self.emit_shaped(of, body, |_| {});
    }

    /// The same, with other parts of the record's head.
    pub(super) fn emit_shaped(&mut self, of: &Identity, body: impl Into<Body>, shape: impl FnOnce(&mut Record)) {
        let of = of.clone();
        self.emit(of.tenant, body, |record| {
            let token = record.identity.token;
            record.identity = Identity { token, ..of };
            shape(record);
        });
    }

    /// Revokes leases, with one record for each holder and each grace of their pools.
    fn revoke_all(&mut self, leases: &[LeaseNo], reason: Reason) {
        let found = leases.iter().map(|lease| self.state().lease(*lease).expect("a revoked lease is live"));
        let groups = by_holder(found.map(|lease| (lease, self.pool_grace(lease.number))));
        for ((holder, grace), leases) in groups {
            let leases = leases.into_iter().collect();
            let body = Revoked { leases, grace, belongs_to: Some(holder.belongs_to) };
            self.emit_shaped(&holder.identity(), body, |record| record.reason = Some(reason));
        }
    }

    /// Starts an attempt of an allocation on the capacity that was found for it.
    pub(super) fn start_gang(&mut self, number: AllocationNo, gang: Gang) {
        let waits = self.state().allocation(number).expect("the caller has found it").clone();
        let identity = waits.identity();
        let spec = &waits.spec;
        let first_lease = LeaseNo(self.state().next_lease);
        let leases = u32::try_from(spec.leases()).expect("at most 1024");
        let attempt = waits.attempt + 1;
        self.emit_for(
            &identity,
            AllocationPlaced { allocation: number, attempt, first_lease, leases, rules_version: RULES_VERSION },
        );
        for Placed { node, pool, members, weighing, .. } in gang.places {
            let in_pool = self.state().pool(pool).expect("a node's pool exists");
            let ttl = self
                .state()
                .ttl_in(in_pool, &Ask::of(&waits, self.now))
                .expect("only pools that allow the gang were considered");
            let capped = gang.terms.ttl(ttl, self.now);
            let (ttl, capped_by, capped_by_window) = self.state().capped_on(node, capped, self.now);
            let granted = Granted {
                first_lease: LeaseNo(self.state().next_lease),
                node,
                pool,
                ttl,
                priority: spec.priority,
                rules_version: RULES_VERSION,
                members,
                sensitive: spec.sensitive,
                control_plane: spec.control_plane,
                correlation: spec.correlation,
                allocation: Some(number),
                app_instance: spec.app_instance,
                attachment: waits.lent().map(|lent| lent.0),
                source_project: waits.lent().map(|lent| lent.1),
                over_soft: gang.terms.over_soft.clone(),
                capped_by,
                profile: spec.profile.filter(|_| weighing.is_some()),
                weighing,
                // The record of the submission has them.
                labels: Vec::new(),
                capped_by_window,
            };
            self.emit_shaped(&identity, granted, |record| {
                record.hcl_entry = waits.hcl_entry.clone();
                record.dra_claim_id = waits.dra_claim_id.clone();
            });
        }
    }

    /// Settles an allocation whose attempt has ended, within the command that ended it.
    pub(super) fn settle_own(&mut self, number: AllocationNo) {
        if let Some(found) = self.state().allocation(number).filter(|found| found.is_unsettled() && found.held == 0) {
            let found = found.clone();
            self.settle_ended(&found);
        }
    }

    fn settle_ended(&mut self, found: &Allocation) {
        let (allocation, end) = (found.number, found.ends.expect("an unsettled attempt has an end"));
        let body: Body = match end {
            // It had all the time that it requested.
            AttemptEnd::Walltime => failed(allocation, end),
            // Nobody pays for another attempt.
            _ if found.lent().is_some_and(|lent| self.state().attachment(lent.0).is_none()) => failed(allocation, end),
            _ if found.checkpointed => AllocationSuspended { allocation, end }.into(),
            _ if found.spec.requeue && found.requeues < self.state().requeue_limit(found) => {
                AllocationRequeued { allocation, end }.into()
            }
            _ => failed(allocation, end),
        };
        let (identity, at) = (found.identity(), found.ended_at);
        self.emit_shaped(&identity, body, |record| record.effective_at = at.min(record.stamp));
    }

    /// Revokes the other members of a gang after the involuntary end of one (SEMANTICS 3).
    fn settle_rest(&mut self, found: &Allocation, rest: &[LeaseNo]) {
        let reason = match found.ends {
            Some(AttemptEnd::NodeLost) => Reason::NodeLost,
            _ => Reason::Policy,
        };
        self.revoke_all(rest, reason);
    }

    /// Records what an allocation evicts and takes over, and revokes the victims.
    fn make_room(&mut self, requester: &Allocation, plan: Plan) {
        let sequence = self.state().size();
        let Plan { places, victims, awaited, dropped, headroom, .. } = plan;
        let (allocation, priority, rules_version) = (requester.number, requester.spec.priority, RULES_VERSION);
        let evicted = victims.clone();
        let body: Body = if dropped.is_empty() {
            PreemptionDecided { allocation, priority, rules_version, places, victims, headroom }.into()
        } else {
            ReservationTakenOver { allocation, priority, rules_version, places, victims, awaited, dropped }.into()
        };
        self.emit(None, body, |_| {});
        let reason = Reason::Preempted { by: sequence };
        self.revoke_all(&evicted.0, reason);
    }
}

fn failed(allocation: AllocationNo, end: AttemptEnd) -> Body {
    AllocationFailed { allocation, end, exit_status: None, storage_written: 0 }.into()
}

impl Engine {
    /// Runs a scheduling pass with at most about `records_max` records. Returns whether it is complete, or as complete
    /// as possible before a timer that it made due.
    pub(super) fn dispatch(&mut self, now: Instant, out: &mut Batch, records_max: u32) -> bool {
        if !self.scheduler.is_due_at(&self.state, now) {
            return true;
        }
        let limit = self.state.size() + u64::from(records_max);
        self.placement.refresh_eviction_bounds(&self.state);
        let settled = self.settle(now, out, limit);
        settled && (self.a_timer_is_due(now) || self.move_queue(now, out, limit))
    }

    /// An eviction without grace makes a timer due at once. The timer goes before the next decision, whatever
    /// `records_max` is.
    fn a_timer_is_due(&self, now: Instant) -> bool {
        self.timers.peek().is_some_and(|entry| entry.due() <= now)
    }

    /// One decision without a request: its first record begins a command, the others continue it.
    pub(super) fn act(&mut self, now: Instant, out: &mut Batch, act: impl FnOnce(&mut Draft<'_>)) {
        let identity = Identity::default();
        let first = self.state.size();
        act(&mut Draft { engine: self, out, now, identity: &identity, key: None, first, count: 0 });
    }

    fn settle(&mut self, now: Instant, out: &mut Batch, limit: u64) -> bool {
        while let Some(number) = self.scheduler.unsettled.first().copied() {
            if self.state.size() >= limit {
                return false;
            }
            self.scheduler.unsettled.remove(&number);
            let Some(found) = self.state.allocation(number).filter(|found| found.is_unsettled()).cloned() else {
                continue;
            };
            self.act(now, out, |draft| {
                if found.held == 0 {
                    draft.settle_ended(&found);
                    return;
                }
                let rest = draft.leases_of(number, |phase| phase == Phase::Active);
                if !rest.is_empty() {
                    draft.settle_rest(&found, &rest);
                }
            });
            // Revoking the other members marks the allocation as unsettled again, but only their ends have
            // consequences.
            self.scheduler.unsettled.remove(&number);
            if self.a_timer_is_due(now) {
                return true;
            }
        }
        true
    }

    /// The first allocation whose reservation can no longer be filled.
    fn broken_reservation(&self) -> Option<(AllocationNo, Identity)> {
        let mut reserved = self.state.queue.reserved.iter().filter_map(|number| self.state.allocation(*number));
        let is_broken = |found: &&Allocation| found.reservation.as_deref().is_some_and(|of| self.state.is_broken(of));
        reserved.find(is_broken).map(|found| (found.number, found.identity()))
    }

    /// Drops reservations that can no longer be filled. Returns how many, or `None` if some are left at the limit.
    fn drop_broken_reservations(&mut self, now: Instant, out: &mut Batch, limit: u64) -> Option<usize> {
        let mut dropped = 0;
        while let Some((allocation, identity)) = self.broken_reservation() {
            if self.state.size() >= limit {
                return None;
            }
            self.act(now, out, |draft| draft.emit_for(&identity, ReservationDropped { allocation }));
            dropped += 1;
        }
        Some(dropped)
    }

    /// The allocation of the highest priority whose reserved capacity is complete, if it has at least this priority:
    /// nobody who waits may take it over any more. At equal priority the lowest number goes first.
    ///
    /// The order does not depend on how far the pass has come, so that a replay of one start, which begins with a new
    /// pass, starts the same allocation.
    fn complete_reservation(&self, at_least: Option<Priority>) -> Option<AllocationNo> {
        let reserved = self.state.queue.reserved.iter().filter_map(|number| self.state.allocation(*number));
        let is_due = |found: &&Allocation| {
            at_least.is_none_or(|priority| found.spec.priority >= priority)
                && found.reservation.as_deref().is_some_and(|of| self.state.is_complete(found, of))
        };
        reserved
            .filter(is_due)
            .max_by_key(|found| (found.spec.priority, Reverse(found.number)))
            .map(|found| found.number)
    }

    /// Starts an allocation on its reserved capacity, or drops the reservation if quotas or its pool prevent the start.
    fn start_reserved(&mut self, number: AllocationNo, now: Instant, out: &mut Batch) -> Acted {
        let waits = self.state.allocation(number).expect("a waiting allocation exists").clone();
        let Some(gang) = self.reserved_gang(&waits, now) else {
            let identity = waits.identity();
            self.act(now, out, |draft| draft.emit_for(&identity, ReservationDropped { allocation: number }));
            return Acted::Freed;
        };
        self.act(now, out, |draft| draft.start_gang(number, gang));
        Acted::Took
    }

    /// The gang on its reserved capacity, if its quotas still allow it.
    fn reserved_gang(&self, waits: &Allocation, now: Instant) -> Option<Gang> {
        let reservation = waits.reservation.as_deref()?;
        let ask = Ask::of(waits, now);
        let (mut terms, of_nodes) = self.state.admission(&ask).ok()?;
        let mut tentative = Tentative::default();
        let mut places = Vec::new();
        for place in &reservation.places {
            let node = self.state.node(place.node)?;
            // The limits of the pool may have changed since the eviction.
            self.state.ttl_in(self.state.pool(node.pool)?, &ask)?;
            let is_paused = self.state.pool_access.of(ask.project, node.pool) == PoolAccess::Paused;
            if is_paused || !node.is_free_of_windows(now, ask.walltime) {
                return None;
            }
            let wanted = Wanted { tentative: &tentative, ..Wanted::one(&ask, &of_nodes) };
            let verdicts = self.state.judge(node, &wanted).ok()?;
            for (quota, verdict) in &verdicts {
                terms.add(*quota, *verdict).ok()?;
            }
            // Devices were chosen together with the victims.
            let members: Members = place.members.iter().map(crate::reservation::ReservedMember::member).collect();
            let placed = Placed { node: node.number, pool: node.pool, members, verdicts, weighing: None };
            tentative.count(&self.state, &placed, &of_nodes);
            places.push(placed);
        }
        terms.settle();
        Some(Gang { places, terms })
    }

    /// Drops reservations that can no longer be filled, and goes through the queue in order: starts allocations that
    /// fit, and takes over or evicts for those that may. Capacity that was reserved is given out after the allocations
    /// of higher priority, which may take it over.
    fn move_queue(&mut self, now: Instant, out: &mut Batch, limit: u64) -> bool {
        if self.drop_broken_reservations(now, out, limit).is_none() {
            return false;
        }
        self.scheduler.take_in(&self.state);
        // Costs may have changed.
        if self.scheduler.begin_minute(now) || self.scheduler.recheck_all {
            self.scheduler.line_up_for_cost(&self.state);
        }
        self.unblock(now);
        // Assured starts remain valid until capacity is taken or freed.
        let mut computed = ComputedStarts::default();
        loop {
            let next = self.first_in(now, |_, shape| shape.blocked.is_none());
            let complete = self.complete_reservation(next.as_ref().map(|((Reverse(priority), ..), _)| *priority));
            if next.is_none() && complete.is_none() {
                let Some((head, nodes)) = self.head_to_protect(now) else { break };
                if self.state.size() >= limit {
                    return false;
                }
                self.protect(head, nodes, now, out);
                computed = ComputedStarts::default();
                self.unblock(now);
                continue;
            }
            if self.state.size() >= limit {
                return false;
            }
            let acted = match (complete, next) {
                (Some(number), _) => self.start_reserved(number, now, out),
                (None, Some((rank, key))) => self.try_start(rank, &key, now, out, &mut computed),
                (None, None) => unreachable!("the loop has ended"),
            };
            if acted == Acted::Nothing {
                continue;
            }
            computed = ComputedStarts::default();
            if self.a_timer_is_due(now) {
                return true;
            }
            // Shapes that were blocked because of it, or because of what it took, go before those after it.
            let shapes = self.scheduler.shapes.values_mut();
            let provisional = shapes.filter(|shape| shape.blocked.is_some_and(Blocked::is_provisional));
            provisional.for_each(|shape| shape.blocked = None);
            // What is left at the limit is dropped when the pass goes on.
            let Some(dropped) = self.drop_broken_reservations(now, out, limit) else { return false };
            if acted == Acted::Freed || dropped > 0 {
                self.scheduler.take_in(&self.state);
                self.unblock(now);
            }
        }
        let scheduler = &mut self.scheduler;
        (scheduler.recheck_all, scheduler.queue_changed) = (false, false);
        scheduler.sum_up_blocks();
        scheduler.freed.clear();
        true
    }

    /// Finds the heads of the lines. Returns the first of them that has waited too long, and the nodes on which it is
    /// to be protected (SEMANTICS 11).
    fn head_to_protect(&mut self, now: Instant) -> Option<(AllocationNo, Vec<NodeNo>)> {
        self.scheduler.heads = self.heads(now, None);
        let heads = &self.scheduler.heads;
        heads.values().find_map(|head| {
            let waits = self.state.allocation(head.3)?;
            if !waits.protected_on.is_empty() || !self.state.waited_too_long(waits, now) {
                return None;
            }
            let lines = own_lines(&self.state, heads, waits.number);
            Some((waits.number, self.view().set_to_protect(waits, &lines, now)?))
        })
    }

    fn protect(&mut self, allocation: AllocationNo, nodes: Vec<NodeNo>, now: Instant, out: &mut Batch) {
        let identity = self.state.allocation(allocation).expect("a head exists").identity();
        let nodes = nodes.into_iter().collect();
        self.act(now, out, |draft| {
            draft.emit_for(&identity, HeadProtected { allocation, rules_version: RULES_VERSION, nodes });
        });
    }

    /// The highest-ranked waiting allocation in the shapes that satisfy `which`.
    fn first_in(&mut self, now: Instant, which: impl Fn(&ShapeKey, &Shape) -> bool) -> Option<(Rank, ShapeKey)> {
        self.scheduler.first(which, &self.state, now)
    }

    /// The head of each line, the first allocation that finds no capacity, if it goes before the given rank.
    fn heads(&mut self, now: Instant, before: Option<Rank>) -> BTreeMap<Line, Rank> {
        let mut heads = BTreeMap::new();
        let finds_no_room = |shape: &Shape| shape.blocked.is_some_and(Blocked::finds_no_room);
        if !self.scheduler.shapes.values().any(finds_no_room) {
            return heads;
        }
        let lines: Vec<Line> = self.state.lines().collect();
        let named = self.state.named_nodes();
        for line in lines {
            let in_line = |key: &ShapeKey, shape: &Shape| finds_no_room(shape) && key.stands_in(line, &named);
            while let Some((head, key)) = self.first_in(now, in_line) {
                if before.is_some_and(|before| head >= before) {
                    break;
                }
                // An allocation that waits for its quotas does not hold up others.
                let waits = self.state.allocation(head.3).expect("a waiting allocation exists");
                let ask = Ask::of(waits, now);
                let (is_admitted, is_refused) = match self.state.admission(&ask) {
                    Err(_) => (false, true),
                    // Since it was found to have no room, others may have used up a quota on nodes.
                    Ok((_, of_nodes)) => (true, !of_nodes.is_empty() && self.is_refused_on_nodes(&ask)),
                };
                if !is_refused {
                    heads.insert(line, head);
                    break;
                }
                if is_admitted || self.state.evicts_own(waits.tenant) {
                    self.block(&key, Blocked::Quota);
                } else {
                    self.scheduler.wait_for_quota(&key, waits);
                }
            }
        }
        heads
    }

    /// Whether quotas on nodes refuse every node with room for an ask.
    fn is_refused_on_nodes(&self, ask: &Ask<'_>) -> bool {
        matches!(self.view().place_gang(ask, &mut Tentative::default()), Err(NoGang::Quota(_)))
    }

    /// Lifts the block of shapes that may fit now.
    fn unblock(&mut self, now: Instant) {
        let scheduler = &mut self.scheduler;
        let freed: Vec<&Node> = scheduler.freed.iter().filter_map(|node| self.state.node(*node)).collect();
        let (recheck_all, queue_changed) = (scheduler.recheck_all, scheduler.queue_changed);
        for (key, shape) in &mut scheduler.shapes {
            let Some(blocked) = shape.blocked else { continue };
            if recheck_all || queue_changed && (blocked.is_provisional() || key.project.is_some()) {
                shape.blocked = None;
                continue;
            }
            if freed.is_empty() {
                continue;
            }
            let ask = Ask::of_shape(key, now);
            let fits =
                |node: &&Node| self.state.suits(node, &ask) && self.state.fit(node, &ask, Tentative::NOTHING).is_some();
            let could_evict = |node: &&Node| {
                self.state.suits(node, &ask)
                    && (self.placement.could_make_room(node, &ask)
                        || self.state.could_take_over_on(node.number, ask.priority))
            };
            if freed.iter().any(fits) || freed.iter().any(could_evict) {
                shape.blocked = None;
            }
        }
    }

    /// Tries to start an allocation, or to make room for it.
    fn try_start(
        &mut self,
        rank: Rank,
        key: &ShapeKey,
        now: Instant,
        out: &mut Batch,
        computed: &mut ComputedStarts,
    ) -> Acted {
        let waits = self.state.allocation(rank.3).expect("a waiting allocation exists").clone();
        let heads = self.heads(now, Some(rank));
        let is_first = heads.is_empty() && self.state.queue.protected_nodes.is_empty();
        // Leases that are too young to be evicted become evictable with time alone.
        let stands = is_first && !self.state.protects_young_leases();
        let known = self.scheduler.planned_for(&self.state, waits.number).filter(|_| stands);
        let assured = AssuredStarts { heads, computed: RefCell::new(std::mem::take(computed)) };
        let anywhere = Ask::of(&waits, now);
        let allow = |node: &Node| assured.allow(self.view(), node, now, anywhere.stay());
        let ask = Ask { allow: Some(&allow as Allow<'_>).filter(|_| !is_first), ..anywhere };
        match self.view().place_gang(&ask, &mut Tentative::default()) {
            Ok(gang) => {
                self.act(now, out, |draft| draft.start_gang(waits.number, gang));
                return Acted::Took;
            }
            Err(NoGang::Quota(_)) => {
                let spare = |node: &Node| assured.allow(self.view(), node, now, anywhere.stay_after_eviction());
                let spared = Ask { allow: Some(&spare as Allow<'_>).filter(|_| !is_first), ..anywhere };
                if let Some(Ok(plan)) = self.view().plan_own(&spared) {
                    self.act(now, out, |draft| draft.make_room(&waits, plan));
                    return Acted::Took;
                }
                if self.state.admission(&ask).is_err() && !self.state.evicts_own(waits.tenant) {
                    self.scheduler.wait_for_quota(key, &waits);
                    return Acted::Took;
                }
                // Its quotas may allow capacity on other nodes, or it may evict later.
                self.block(key, Blocked::Quota);
                return Acted::Nothing;
            }
            Err(NoGang::Room) => {}
        }
        // Nothing is evicted on nodes where a higher-ranked allocation has an assured start.
        let spare = |node: &Node| assured.allow(self.view(), node, now, anywhere.stay_after_eviction());
        let spared = Ask { allow: Some(&spare as Allow<'_>).filter(|_| !is_first), ..anywhere };
        let blocked = match self.view().plan_for(&spared, known) {
            Some(Ok(plan)) => {
                let acted = if plan.dropped.is_empty() { Acted::Took } else { Acted::Freed };
                self.act(now, out, |draft| draft.make_room(&waits, plan));
                return acted;
            }
            Some(Err(too_many)) => too_many,
            None if self.state.protects_young_leases() && self.view().could_evict(&anywhere) => Blocked::Young,
            None => Blocked::Room,
        };
        let held_back = !is_first && {
            let placed = self.view().place_gang(&anywhere, &mut Tentative::default());
            let evicts = || blocked != Blocked::Evictions && self.view().plan_for(&anywhere, None).is_some();
            !matches!(placed, Err(NoGang::Room)) || evicts()
        };
        let blocked = if held_back { Blocked::Behind } else { blocked };
        *computed = assured.computed.into_inner();
        self.block(key, blocked);
        Acted::Nothing
    }

    fn block(&mut self, key: &ShapeKey, blocked: Blocked) {
        if let Some(shape) = self.scheduler.shapes.get_mut(key) {
            shape.blocked = Some(blocked);
        }
    }
}

/// What a step of the scheduling pass has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acted {
    Nothing,
    /// Capacity was taken, or the queue has changed.
    Took,
    /// Capacity that was reserved is free.
    Freed,
}
