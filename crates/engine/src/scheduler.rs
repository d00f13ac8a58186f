//! What the engine remembers about the queue between two scheduling passes: which allocations find no capacity, which
//! wait for quota headroom, and what has changed since the last pass. It is no part of the state and not in snapshots;
//! an additional pass changes nothing.
//!
//! Allocations with equal requirements form a shape. If one of a shape finds no capacity, none of that shape does until
//! something relevant changes. So the cost of a change depends on what it affects, not on the length of the queue.

use crate::allocation::Allocation;
use crate::budget::Scarce;
use crate::preempt::Plan;
use crate::queue::{Line, Rank, ShapeKey, Standing, Waiting, line_up, minute, step_out};
use crate::state::State;
use leasehold_model::{AllocationNo, Instant, NodeNo, Priority, TenantNo};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Why a scheduling pass skips a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// No node has the free capacity.
    Room,
    /// The free capacity is reserved for a higher-ranked allocation.
    Behind,
    /// An eviction would make room, but the tenant has reached its limit on evictions.
    Evictions,
    /// No node has the free capacity, but leases that are too young to be evicted may be evicted later.
    Young,
    /// The only free capacity is where the tenant's quotas do not allow it.
    Quota,
}

impl Blocked {
    /// Whether any change of the queue can lift it. `Room` is lifted only by freed capacity.
    pub(crate) fn is_provisional(self) -> bool {
        self != Self::Room
    }
    /// Whether an allocation blocked like this can be the head of its line. An allocation that waits for its tenant's
    /// eviction limit keeps its assured start.
    pub(crate) fn finds_no_room(self) -> bool {
        matches!(self, Self::Room | Self::Young | Self::Evictions)
    }
}

/// The allocations of one shape that a scheduling pass considers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    waiting: Waiting,
    pub(crate) blocked: Option<Blocked>,
    /// The highest rank among them; `None` if it must be recomputed.
    first: Option<Rank>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scheduler {
    pub(crate) shapes: BTreeMap<ShapeKey, Shape>,
    /// Queued since the last pass and not yet in a shape: an allocation that starts at once never enters one.
    arrived: Vec<AllocationNo>,
    /// Waiting for quota headroom: considered again when the tenant's usage or limits change.
    for_quota: BTreeMap<TenantNo, BTreeSet<AllocationNo>>,
    /// Leases of these have ended or begun to end, and no record has settled the attempt yet.
    pub(crate) unsettled: BTreeSet<AllocationNo>,
    /// Nodes on which capacity became free since the last pass.
    pub(crate) freed: BTreeSet<NodeNo>,
    /// Whether the next pass considers every shape, because a change may have affected any of them.
    pub(crate) recheck_all: bool,
    /// Whether the queue or its order has changed, so that shapes with a provisional block are considered again.
    pub(crate) queue_changed: bool,
    /// Whether some shape has a provisional block ([`Blocked::is_provisional`]).
    pub(crate) provisional: bool,
    /// The highest priority of the shapes that wait for an eviction limit. Which leases they would evict depends on the
    /// deadlines of leases with lower priority, and so does whether the limit allows it.
    pub(crate) limited: Option<Priority>,
    /// The head of each line as of the last pass: the first allocation that finds no capacity.
    pub(crate) heads: BTreeMap<Line, Rank>,
    minute: u64,
    standings: BTreeMap<(TenantNo, Scarce), Standing>,
    /// The eviction plan of a lease request that became an allocation, with the size of the state it was planned for.
    planned: Option<(AllocationNo, u64, Plan)>,
}

impl Scheduler {
    /// A scheduler for a state that was folded without one. Its first pass considers every shape.
    pub(crate) fn of(state: &State) -> Self {
        let mut scheduler = Self { recheck_all: true, ..Self::default() };
        for found in state.allocations_after(None) {
            if found.is_unsettled() {
                scheduler.unsettled.insert(found.number);
            }
            if found.is_in_line() {
                scheduler.line_up(&state.queue.key(found), found);
            }
        }
        scheduler
    }

    /// Whether a pass within the same minute as the last one could change anything.
    pub(crate) fn is_due(&self, state: &State) -> bool {
        let waits = state.waiting() > 0;
        !self.unsettled.is_empty() || waits && (self.recheck_all || self.queue_changed || !self.freed.is_empty())
    }
    /// Whether a pass at `now` could change anything: standings are recomputed every minute.
    pub(crate) fn is_due_at(&self, state: &State, now: Instant) -> bool {
        self.is_due(state) || state.waiting() > 0 && minute(now) != self.minute
    }

    /// Keeps the eviction plan of a lease request that just became an allocation, for the next pass.
    pub(crate) fn keep_plan(&mut self, state: &State, allocation: AllocationNo, plan: Plan) {
        self.planned = Some((allocation, state.size(), plan));
    }

    /// The plan that was kept for an allocation, if the state has not changed since.
    pub(crate) fn planned_for(&mut self, state: &State, allocation: AllocationNo) -> Option<Plan> {
        let (_, size, plan) = self.planned.take_if(|(number, ..)| *number == allocation)?;
        (size == state.size()).then_some(plan)
    }

    /// Something has changed that may affect waiting allocations.
    pub(crate) fn queue_affected(&mut self, state: &State) {
        self.queue_changed |= state.waiting() > 0;
    }

    /// Capacity was taken. That can move assured starts, and a head of the same tenant may now exceed its quotas.
    pub(crate) fn take(&mut self, state: &State, by: TenantNo) {
        let is_theirs = |number| state.allocation(number).is_some_and(|head| head.tenant == by);
        self.queue_changed |= self.provisional
            || self.heads.values().any(|(.., number)| is_theirs(*number))
            || state.waiting() > 0 && state.evicts_own(by);
    }

    /// The deadline of a lease has changed.
    pub(crate) fn deadline_moved(&mut self, of: Priority) {
        self.queue_changed |= self.limited.is_some_and(|limited| of < limited);
    }

    /// Sets what follows from the blocks of the shapes, at the end of a pass.
    pub(crate) fn sum_up_blocks(&mut self) {
        let blocked = || self.shapes.iter().filter_map(|(key, shape)| Some((key.priority, shape.blocked?)));
        self.provisional = blocked().any(|(_, block)| block.is_provisional());
        self.limited = blocked().filter(|(_, block)| *block == Blocked::Evictions).map(|(priority, _)| priority).max();
    }

    pub(crate) fn arrive(&mut self, allocation: AllocationNo) {
        self.arrived.push(allocation);
        self.queue_changed = true;
    }

    /// Adds the allocations that arrived since the last pass to their shapes.
    pub(crate) fn take_in(&mut self, state: &State) {
        for number in std::mem::take(&mut self.arrived) {
            let waits = state.allocation(number).expect("a waiting allocation exists");
            self.line_up(&state.queue.key(waits), waits);
        }
    }

    /// Adds a waiting allocation to its shape.
    fn line_up(&mut self, key: &ShapeKey, allocation: &Allocation) {
        let shape = match self.shapes.get_mut(key) {
            Some(shape) => shape,
            None => self.shapes.entry(key.clone()).or_default(),
        };
        line_up(&mut shape.waiting, allocation);
        shape.first = None;
        // If the others of its shape find no capacity, it finds none either.
        if shape.blocked != Some(Blocked::Room) {
            shape.blocked = None;
        }
        self.queue_changed = true;
    }

    /// Removes an allocation from its shape. Returns whether it was there.
    fn leave_line(&mut self, key: &ShapeKey, allocation: &Allocation) -> bool {
        let Some(shape) = self.shapes.get_mut(key) else { return false };
        shape.first = None;
        let was_there = step_out(&mut shape.waiting, allocation);
        if shape.waiting.is_empty() {
            self.shapes.remove(key);
        }
        was_there
    }

    /// An allocation no longer waits for capacity. Those behind it may start now.
    pub(crate) fn step_out(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.queue_changed = true;
        if let Some(index) = self.arrived.iter().rposition(|number| *number == allocation.number) {
            self.arrived.remove(index);
            return;
        }
        self.leave_line(key, allocation);
        if let Some(some) = self.for_quota.get_mut(&allocation.tenant) {
            some.remove(&allocation.number);
            if some.is_empty() {
                self.for_quota.remove(&allocation.tenant);
            }
        }
    }

    /// Moves an allocation to another shape, unless it waits for quota headroom.
    pub(crate) fn regroup(&mut self, from: &ShapeKey, to: &ShapeKey, allocation: &Allocation) {
        if self.leave_line(from, allocation) {
            self.line_up(to, allocation);
        }
    }

    /// Leaves an allocation out of the passes until its tenant may have quota headroom.
    pub(crate) fn wait_for_quota(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.leave_line(key, allocation);
        self.for_quota.entry(allocation.tenant).or_default().insert(allocation.number);
    }

    /// The limits or the usage of a tenant have changed: allocations that waited for that are considered again.
    pub(crate) fn headroom(&mut self, state: &State, tenant: TenantNo) {
        self.queue_affected(state);
        if self.for_quota.is_empty() {
            return;
        }
        for number in self.for_quota.remove(&tenant).unwrap_or_default() {
            if let Some(waits) = state.allocation(number) {
                self.line_up(&state.queue.key(waits), waits);
            }
        }
    }

    /// Prices have changed or a minute has passed: allocations that wait because of a cost ceiling are considered
    /// again.
    pub(crate) fn line_up_for_cost(&mut self, state: &State) {
        if state.ceilings.is_empty() && state.prepaids.is_empty() || self.for_quota.is_empty() {
            return;
        }
        state.tenants().for_each(|tenant| self.headroom(state, tenant.number));
    }

    pub(crate) fn free(&mut self, state: &State, node: NodeNo) {
        if state.waiting() > 0 {
            self.freed.insert(node);
            self.queue_changed = true;
        }
    }

    /// Discards the standings if `now` is in another minute than the last pass, and returns whether it is. New ones are
    /// computed on demand.
    pub(crate) fn begin_minute(&mut self, now: Instant) -> bool {
        let begins = self.minute != minute(now);
        if begins {
            self.minute = minute(now);
            self.standings.clear();
            for shape in self.shapes.values_mut() {
                shape.first = None;
            }
            self.queue_changed = true;
        }
        begins
    }

    /// Discards the standings, because something they are computed from has changed.
    pub(crate) fn forget_standings(&mut self) {
        self.standings.clear();
        self.shapes.values_mut().for_each(|shape| shape.first = None);
        self.queue_changed = true;
    }

    /// The highest-ranked waiting allocation in the shapes that satisfy `which`, with the key of its shape.
    pub(crate) fn first(
        &mut self,
        which: impl Fn(&ShapeKey, &Shape) -> bool,
        state: &State,
        now: Instant,
    ) -> Option<(Rank, ShapeKey)> {
        let standings = &mut self.standings;
        let mut first: Option<(Rank, &ShapeKey)> = None;
        for (key, shape) in &mut self.shapes {
            if !which(key, shape) {
                continue;
            }
            if shape.first.is_none() {
                let scarce = state.scarce(key.node, key.pool);
                let heads = shape.waiting.iter().filter_map(|(tenant, line)| {
                    let (submitted, number) = *line.first()?;
                    let standing = standings.entry((*tenant, scarce));
                    let standing = *standing.or_insert_with(|| state.standing_by(*tenant, scarce, now));
                    let is_preferred = !state.is_shape_lowered(key, *tenant, now);
                    let standing = Standing { is_preferred, ..standing };
                    Some((Reverse(key.priority), Reverse(standing), submitted, number))
                });
                shape.first = heads.min();
            }
            if let Some(rank) = shape.first
                && first.is_none_or(|(found, _)| rank < found)
            {
                first = Some((rank, key));
            }
        }
        first.map(|(rank, key)| (rank, key.clone()))
    }
}
