//! What follows by itself from what ended: attempts that are over, victims that are gone, the queue that moves on.
//!
//! Runs before each command and whenever something became free. Doing it once more changes nothing: what is decided
//! here depends on the state and the minute alone.

use super::{Draft, Engine};
use crate::allocation::Allocation;
use crate::ask::{Allow, Ask};
use crate::gang::{Gang, NoGang};
use crate::lease::Phase;
use crate::node::Node;
use crate::placement::{Placed, Tentative, Wanted};
use crate::preempt::Plan;
use crate::promise::Promise;
use crate::queue::{Line, Rank, ShapeKey};
use crate::scheduler::{Blocked, Shape};
use crate::view::View;
use leasehold_model::body::{
    AllocationFailed, AllocationPlaced, AllocationRequeued, AllocationSuspended, Body, Granted, Leases, Members,
    PreemptionDecided, ReservationDropped, Revoked,
};
use leasehold_model::{AllocationNo, AttemptEnd, Batch, Identity, Instant, LeaseNo, RULES_VERSION, Reason, Span};
use std::cell::RefCell;
use std::collections::BTreeMap;

impl Draft<'_> {
    /// A record on behalf of an allocation's holder, by whoever asks.
    pub(super) fn emit_for(&mut self, of: &Identity, body: impl Into<Body>) {
        let of = of.clone();
        self.emit(of.tenant, body, |record| {
            let token = record.identity.token;
            record.identity = Identity { token, ..of };
        });
    }

    /// Gives a gang the capacity that was found for it.
    pub(super) fn start_gang(&mut self, number: AllocationNo, gang: Gang) {
        let waits = self.state().allocation(number).expect("it was just looked at").clone();
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
                .expect("only pools that allow it are looked at");
            let (ttl, capped_by) = gang.terms.ttl(ttl, self.now);
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
                attachment: spec.attachment,
                source_project: spec.source_project,
                over_soft: gang.terms.over_soft.clone(),
                capped_by,
                profile: spec.profile.filter(|_| weighing.is_some()),
                weighing,
                // They stand in what was submitted.
                labels: Vec::new(),
            };
            self.emit_for(&identity, granted);
        }
    }

    /// Says what becomes of an allocation whose attempt has ended, within the command that ended it.
    pub(super) fn settle_own(&mut self, number: AllocationNo) {
        if let Some(found) = self.state().allocation(number).filter(|found| found.is_unsettled() && found.held == 0) {
            let found = found.clone();
            self.settle_ended(&found);
        }
    }

    fn settle_ended(&mut self, found: &Allocation) {
        let (allocation, end) = (found.number, found.ends.expect("its attempt has ended"));
        let body: Body = match end {
            // It had the time it asked for.
            AttemptEnd::Walltime => failed(allocation, end),
            _ if found.checkpointed => AllocationSuspended { allocation, end }.into(),
            _ if found.spec.requeue => AllocationRequeued { allocation, end }.into(),
            _ => failed(allocation, end),
        };
        let (identity, at) = (found.identity(), found.ended_at);
        self.emit(identity.tenant, body, |record| {
            record.identity = Identity { token: record.identity.token, ..identity };
            record.effective_at = at.min(record.stamp);
        });
    }

    /// An involuntary end of one member of a gang revokes the others (SEMANTICS 3).
    fn settle_rest(&mut self, found: &Allocation, rest: &[LeaseNo]) {
        let reason = match found.ends {
            Some(AttemptEnd::NodeLost) => Reason::NodeLost,
            _ => Reason::Policy,
        };
        let mut by_grace: BTreeMap<Span, Vec<LeaseNo>> = BTreeMap::new();
        for lease in rest {
            by_grace.entry(self.pool_grace(*lease)).or_default().push(*lease);
        }
        let identity = found.identity();
        for (grace, leases) in by_grace {
            let leases: Leases = leases.into_iter().collect();
            let identity = identity.clone();
            self.emit(identity.tenant, Revoked { leases, grace }, |record| {
                record.reason = Some(reason);
                record.identity = identity;
            });
        }
    }

    /// Seals an eviction and begins it.
    fn evict(&mut self, requester: &Allocation, plan: Plan) {
        let sequence = self.state().size();
        let victims = plan.victims.clone();
        self.emit(
            None,
            PreemptionDecided {
                allocation: requester.number,
                priority: requester.spec.priority,
                rules_version: RULES_VERSION,
                places: plan.places,
                victims: plan.victims,
            },
            |_| {},
        );
        let reason = Reason::Preempted { by: sequence };
        let mut groups: BTreeMap<_, Vec<LeaseNo>> = BTreeMap::new();
        for lease in &victims.0 {
            let tenant = self.state().lease(*lease).expect("a victim is live").tenant;
            groups.entry((tenant, self.pool_grace(*lease))).or_default().push(*lease);
        }
        for ((tenant, grace), leases) in groups {
            let leases: Leases = leases.into_iter().collect();
            self.emit(Some(tenant), Revoked { leases, grace }, |record| {
                record.reason = Some(reason);
                record.identity = Identity { tenant: Some(tenant), ..Identity::default() };
            });
        }
    }
}

fn failed(allocation: AllocationNo, end: AttemptEnd) -> Body {
    AllocationFailed { allocation, end, exit_status: None, storage_written: 0 }.into()
}

impl Engine {
    /// Says what follows from what ended, at most about `records_max` records of it. Answers whether all is said, or
    /// as much as can be before a timer that it made due.
    pub(super) fn dispatch(&mut self, now: Instant, out: &mut Batch, records_max: u32) -> bool {
        if !self.scheduler.is_due_at(&self.state, now) {
            return true;
        }
        let limit = self.state.size() + u64::from(records_max);
        let settled = self.settle(now, out, limit);
        settled
            && (self.a_timer_is_due(now)
                || self.follow_reservations(now, out, limit) && self.move_queue(now, out, limit))
    }

    /// An eviction without grace makes a timer due: it comes before the next act, however much is said at once.
    fn a_timer_is_due(&self, now: Instant) -> bool {
        self.timers.peek().is_some_and(|entry| entry.due() <= now)
    }

    /// One act of the engine's own: its first record begins a command, the others continue it.
    fn act(&mut self, now: Instant, out: &mut Batch, act: impl FnOnce(&mut Draft<'_>)) {
        let identity = Identity::default();
        let first = self.state.size();
        act(&mut Draft { engine: self, out, now, identity: &identity, claim: None, first, count: 0 });
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
            // Revoking the rest says nothing new of it: only their ends do.
            self.scheduler.unsettled.remove(&number);
            if self.a_timer_is_due(now) {
                return true;
            }
        }
        true
    }

    /// Those whose victims are gone start; those whose victims will not go look elsewhere.
    fn follow_reservations(&mut self, now: Instant, out: &mut Batch, limit: u64) -> bool {
        // One that gives up may leave another what it lacks: all are looked at again.
        loop {
            if self.state.size() >= limit {
                return self.state.queue.reserved.is_empty();
            }
            if !self.follow_one_reservation(now, out) {
                return true;
            }
        }
    }

    /// Whether there was one.
    fn follow_one_reservation(&mut self, now: Instant, out: &mut Batch) -> bool {
        let waiting: Vec<AllocationNo> = self.state.queue.reserved.iter().copied().collect();
        for number in waiting {
            let Some(waits) = self.state.allocation(number).cloned() else { continue };
            let Some(reservation) = waits.reservation.as_deref() else { continue };
            let lies = |node: leasehold_model::NodeNo| self.state.node(node).is_some_and(Node::is_available);
            let is_fenced = |lease: &LeaseNo| self.state.lease(*lease).is_some_and(|l| l.phase == Phase::Fenced);
            let is_gone = |lease: &LeaseNo| self.state.lease(*lease).is_none();
            let broken = !reservation.places.iter().all(|place| lies(place.node))
                || reservation.victims.0.iter().any(is_fenced)
                || !reservation.is_full() && reservation.victims.0.iter().all(is_gone);
            if !broken && !reservation.is_full() {
                continue;
            }
            let gang = if broken { None } else { self.kept_gang(&waits, now) };
            let identity = waits.identity();
            self.act(now, out, |draft| match gang {
                Some(gang) => draft.start_gang(number, gang),
                None => draft.emit_for(&identity, ReservationDropped { allocation: number }),
            });
            return true;
        }
        false
    }

    /// The gang on what is kept for it, if its quotas still allow it.
    fn kept_gang(&self, waits: &Allocation, now: Instant) -> Option<Gang> {
        let reservation = waits.reservation.as_deref()?;
        let ask = Ask::of(waits, now);
        let (mut terms, of_nodes) = self.state.admission(&ask).ok()?;
        let mut tentative = Tentative::default();
        let mut places = Vec::new();
        for place in &reservation.places {
            let node = self.state.node(place.node)?;
            // What its pool allows may have changed since the eviction.
            self.state.ttl_in(self.state.pool(node.pool)?, &ask)?;
            let wanted = Wanted { tentative: &tentative, ..Wanted::one(&ask, &of_nodes) };
            let verdicts = self.state.judge(node, &wanted).ok()?;
            for (quota, verdict) in &verdicts {
                terms.add(*quota, *verdict).ok()?;
            }
            // Where it lies was decided when its victims were.
            let members: Members = place.members.iter().map(crate::reservation::ReservedMember::member).collect();
            let placed = Placed { node: node.number, pool: node.pool, members, verdicts, weighing: None };
            tentative.count(&self.state, &placed, &of_nodes);
            places.push(placed);
        }
        terms.settle();
        Some(Gang { places, terms })
    }

    /// Starts what may start, in order; evicts for what may evict.
    fn move_queue(&mut self, now: Instant, out: &mut Batch, limit: u64) -> bool {
        self.scheduler.take_in(&self.state);
        // What things cost may have changed.
        if self.scheduler.begin_minute(now) || self.scheduler.anew {
            self.scheduler.line_up_for_cost(&self.state);
        }
        self.unblock(now);
        // What is promised to those that go first holds until something is taken or given back.
        let mut promised = Promised::new();
        while let Some((rank, key)) = self.first_in(now, |_, shape| shape.blocked.is_none()) {
            if self.state.size() >= limit {
                return false;
            }
            if self.try_start(rank, &key, now, out, &mut promised) {
                promised.clear();
                if self.a_timer_is_due(now) {
                    return true;
                }
                // Those that held back for it, or for what it took, go before those that come after it.
                let shapes = self.scheduler.shapes.values_mut();
                let fickle = shapes.filter(|shape| shape.blocked.is_some_and(Blocked::is_fickle));
                fickle.for_each(|shape| shape.blocked = None);
            }
        }
        self.scheduler.heads = self.heads(now, None);
        let scheduler = &mut self.scheduler;
        (scheduler.anew, scheduler.moved) = (false, false);
        scheduler.fickle = scheduler.shapes.values().any(|shape| shape.blocked.is_some_and(Blocked::is_fickle));
        scheduler.freed.clear();
        true
    }

    /// The first that waits in shapes that `which` picks.
    fn first_in(&mut self, now: Instant, which: impl Fn(&ShapeKey, &Shape) -> bool) -> Option<(Rank, ShapeKey)> {
        self.scheduler.first(which, &|tenant| self.state.standing(tenant, now))
    }

    /// In each line the first that finds no room, if it goes before `rank`.
    fn heads(&mut self, now: Instant, before: Option<Rank>) -> BTreeMap<Line, Rank> {
        let mut heads = BTreeMap::new();
        let finds_none = |shape: &Shape| shape.blocked.is_some_and(Blocked::finds_no_room);
        if !self.scheduler.shapes.values().any(finds_none) {
            return heads;
        }
        let lines: Vec<Line> = self.state.lines().collect();
        for line in lines {
            let stands = |key: &ShapeKey, shape: &Shape| finds_none(shape) && key.stands_in(line);
            while let Some((head, key)) = self.first_in(now, stands) {
                if before.is_some_and(|before| head >= before) {
                    break;
                }
                // One that its quotas keep waiting holds up nobody.
                let waits = self.state.allocation(head.3).expect("what waits exists");
                if self.state.admission(&Ask::of(waits, now)).is_ok() {
                    heads.insert(line, head);
                    break;
                }
                self.scheduler.wait_for_quota(&key, waits);
            }
        }
        heads
    }

    /// Shapes that may fit now are looked at again.
    fn unblock(&mut self, now: Instant) {
        let scheduler = &mut self.scheduler;
        let freed: Vec<&Node> = scheduler.freed.iter().filter_map(|node| self.state.node(*node)).collect();
        let (anew, moved) = (scheduler.anew, scheduler.moved);
        for (key, shape) in &mut scheduler.shapes {
            let Some(blocked) = shape.blocked else { continue };
            if anew || moved && (blocked.is_fickle() || key.of.is_some()) {
                shape.blocked = None;
                continue;
            }
            if freed.is_empty() {
                continue;
            }
            let ask = Ask::of_shape(key, now);
            let fits =
                |node: &&Node| self.state.suits(node, &ask) && self.state.fit(node, &ask, Tentative::NOTHING).is_some();
            let could_evict = |node: &&Node| self.state.suits(node, &ask) && self.placement.could_make_room(node, &ask);
            if freed.iter().any(fits) || freed.iter().any(could_evict) {
                shape.blocked = None;
            }
        }
    }

    /// Whether the queue has moved by it.
    fn try_start(
        &mut self,
        rank: Rank,
        key: &ShapeKey,
        now: Instant,
        out: &mut Batch,
        promised: &mut Promised,
    ) -> bool {
        let waits = self.state.allocation(rank.3).expect("what waits exists").clone();
        let heads = self.heads(now, Some(rank));
        let is_first = heads.is_empty();
        let known = self.scheduler.planned_for(&self.state, waits.number).filter(|_| is_first);
        let promises = Promises { heads, made: RefCell::new(std::mem::take(promised)) };
        let allow = |node: &Node| promises.allow(self.view(), node, now, waits.spec.walltime);
        let anywhere = Ask::of(&waits, now);
        let ask = Ask { allow: Some(&allow as Allow<'_>).filter(|_| !is_first), ..anywhere };
        match self.view().place_gang(&ask, &mut Tentative::default()) {
            Ok(gang) => {
                self.act(now, out, |draft| draft.start_gang(waits.number, gang));
                return true;
            }
            Err(NoGang::Quota(_)) => {
                if self.state.admission(&ask).is_err() {
                    self.scheduler.wait_for_quota(key, &waits);
                    return true;
                }
                // Elsewhere there may be room that its quotas allow.
                self.block(key, Blocked::Quota);
                return false;
            }
            Err(NoGang::Room) => {}
        }
        // Where another is to start, nothing is evicted for one that goes after it.
        let spare = |node: &Node| promises.allow(self.view(), node, now, None);
        let spared = Ask { allow: Some(&spare as Allow<'_>).filter(|_| !is_first), ..anywhere };
        let blocked = match self.view().plan_for(&spared, known) {
            Some(Ok(plan)) => {
                self.act(now, out, |draft| draft.evict(&waits, plan));
                return true;
            }
            Some(Err(too_many)) => too_many,
            None => Blocked::Room,
        };
        let held_back = !is_first && {
            let placed = self.view().place_gang(&anywhere, &mut Tentative::default());
            let evicts = || blocked == Blocked::Room && self.view().plan_for(&anywhere, None).is_some();
            !matches!(placed, Err(NoGang::Room)) || evicts()
        };
        let blocked = if held_back { Blocked::Behind } else { blocked };
        *promised = promises.made.into_inner();
        self.block(key, blocked);
        false
    }

    fn block(&mut self, key: &ShapeKey, blocked: Blocked) {
        if let Some(shape) = self.scheduler.shapes.get_mut(key) {
            shape.blocked = Some(blocked);
        }
    }
}

/// What is kept for those that go first, by line.
pub(crate) struct Promises {
    pub(crate) heads: BTreeMap<Line, Rank>,
    made: RefCell<Promised>,
}

/// What was promised to whom; nothing to those who need what nobody must give back.
type Promised = BTreeMap<AllocationNo, Option<Promise>>;

impl Promises {
    pub(crate) fn new(heads: BTreeMap<Line, Rank>) -> Self {
        Self { heads, made: RefCell::default() }
    }

    /// When one of those that go first starts at the latest.
    pub(crate) fn start_of(&self, view: View<'_>, head: AllocationNo, now: Instant) -> Option<Instant> {
        self.made_for(view, head, now).map(|promise| promise.start)
    }

    fn made_for(&self, view: View<'_>, head: AllocationNo, now: Instant) -> Option<Promise> {
        let make = || view.allocation(head).and_then(|waits| view.promise(waits, now));
        self.made.borrow_mut().entry(head).or_insert_with(make).clone()
    }

    pub(crate) fn allow(&self, view: View<'_>, node: &Node, now: Instant, walltime: Option<Span>) -> bool {
        let Some((_, _, _, number)) = self.heads.get(&Line::at(node)) else { return true };
        let mut made = self.made.borrow_mut();
        let promise = made.entry(*number).or_insert_with(|| {
            let waits = view.allocation(*number)?;
            view.promise(waits, now)
        });
        let Some(promise) = promise else { return true };
        !promise.nodes.contains(&node.number)
            || view.gone_by(node, now, walltime).is_some_and(|gone| gone <= promise.start)
    }
}

/// Says which nodes may be used.
pub(crate) type Guard<'s> = Box<dyn Fn(&Node) -> bool + 's>;

impl<'a> View<'a> {
    /// What one that finds no room evicts, if it may; `known` if that was planned on the same state for the same nodes.
    pub(crate) fn plan_for(&self, ask: &Ask<'_>, known: Option<Plan>) -> Option<Result<Plan, Blocked>> {
        if !self.could_evict(ask) {
            return None;
        }
        let (_, of_nodes) = self.admission(ask).ok()?;
        let plan = || self.plan_preemption(ask, &of_nodes);
        // What quotas say of a node may change with time alone.
        let known = known.filter(|_| of_nodes.is_empty());
        debug_assert!(known.is_none() || known == plan(), "a plan for another state");
        let plan = known.or_else(plan)?;
        let tenant = self.tenant(ask.tenant).expect("an allocation's tenant exists");
        let limit = tenant.settings.max_evicted_quanta_per_hour;
        let after = tenant.evicted(ask.now).saturating_add(plan.quanta);
        Some(if limit.is_none_or(|limit| after <= limit) { Ok(plan) } else { Err(Blocked::Evictions) })
    }

    /// Which nodes one that asks now may use, by what is promised to those of `heads` that go before it. `None`: all.
    pub(crate) fn guard(&self, heads: &BTreeMap<Line, Rank>, ask: &Ask<'_>) -> Option<Guard<'a>> {
        if heads.is_empty() {
            return None;
        }
        let rank = self.rank(ask);
        let before = heads.iter().filter(|(_, head)| **head < rank);
        let promises = Promises::new(before.map(|(line, head)| (*line, *head)).collect());
        let (view, now, walltime) = (*self, ask.now, ask.walltime);
        Some(Box::new(move |node| promises.allow(view, node, now, walltime)))
    }
}
