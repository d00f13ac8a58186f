//! What deciding remembers about the queue: who finds no room, who waits for headroom, what has changed since the last
//! pass. Part of the engine, never of a state: it is not in snapshots, and looking once too often changes nothing.
//!
//! If one of a shape finds no room, none does, until something changes that could let it. So a change costs what it
//! touches, not what waits.

use crate::allocation::Allocation;
use crate::preempt::Plan;
use crate::queue::{Line, Rank, ShapeKey, Standing, Waiting, line_up, minute, step_out};
use crate::state::State;
use leasehold_model::{AllocationNo, Instant, NodeNo, TenantNo};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Why a shape is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// There is no room.
    Room,
    /// There is room that must be left to one that goes first.
    Behind,
    /// There would be room, but its tenant has had enough evicted for now.
    Evictions,
    /// There is room where its quotas do not allow it.
    Quota,
}

impl Blocked {
    /// Whether any change in the queue, or to what it waits for, may let it go.
    pub(crate) fn is_fickle(self) -> bool {
        self != Self::Room
    }
    /// Whether it can be the first of its pool. What one may not evict now does not take its promise from it.
    pub(crate) fn finds_no_room(self) -> bool {
        matches!(self, Self::Room | Self::Evictions)
    }
}

/// Those of a shape that a pass looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    waiting: Waiting,
    pub(crate) blocked: Option<Blocked>,
    /// The first of them, if it is known.
    first: Option<Rank>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scheduler {
    pub(crate) shapes: BTreeMap<ShapeKey, Shape>,
    /// Waiting since the last pass, and in no shape yet: what starts at once is never in one.
    arrived: Vec<AllocationNo>,
    /// Waiting for quota headroom: looked at again when the tenant's use or its limits change.
    for_quota: BTreeMap<TenantNo, BTreeSet<AllocationNo>>,
    /// Whose leases have ended, or begun to end, without a word on what becomes of them.
    pub(crate) unsettled: BTreeSet<AllocationNo>,
    /// Nodes on which something became free since the last pass.
    pub(crate) freed: BTreeSet<NodeNo>,
    /// More may have become possible than what was freed tells.
    pub(crate) anew: bool,
    /// The order has changed, or who stands in it: those that stand behind others may go.
    pub(crate) moved: bool,
    /// Some wait for what any change may bring: for a promise to move, above all.
    pub(crate) fickle: bool,
    /// The first in each line that finds no room, as of the last pass.
    pub(crate) heads: BTreeMap<Line, Rank>,
    minute: u64,
    standings: BTreeMap<TenantNo, Standing>,
    /// Whom a request evicts that became an allocation, and the size of the state that this was planned on.
    planned: Option<(AllocationNo, u64, Plan)>,
}

impl Scheduler {
    /// For a state that was folded without it: everything is looked at anew.
    pub(crate) fn of(state: &State) -> Self {
        let mut scheduler = Self { anew: true, ..Self::default() };
        for found in state.allocations_after(None) {
            if found.is_unsettled() {
                scheduler.unsettled.insert(found.number);
            }
            if found.state.is_queued() && found.reservation.is_none() {
                scheduler.line_up(&state.queue.key(found), found);
            }
        }
        scheduler
    }

    /// Whether a pass could change anything, in the minute of the last one.
    pub(crate) fn is_due(&self, state: &State) -> bool {
        let waits = state.waiting() > 0;
        !self.unsettled.is_empty() || waits && (self.anew || self.moved || !self.freed.is_empty())
    }
    /// The same, at `now`: standings are taken afresh each minute.
    pub(crate) fn is_due_at(&self, state: &State, now: Instant) -> bool {
        self.is_due(state) || state.waiting() > 0 && minute(now) != self.minute
    }

    /// Keeps the plan by which a request became the newest allocation: it is carried out on the next pass.
    pub(crate) fn keep_plan(&mut self, state: &State, allocation: AllocationNo, plan: Plan) {
        self.planned = Some((allocation, state.size(), plan));
    }

    /// The plan that was kept for an allocation, if nothing has changed since.
    pub(crate) fn planned_for(&mut self, state: &State, allocation: AllocationNo) -> Option<Plan> {
        let (_, size, plan) = self.planned.take_if(|(number, ..)| *number == allocation)?;
        (size == state.size()).then_some(plan)
    }

    /// Something has changed that may matter to those that wait.
    pub(crate) fn stir(&mut self, state: &State) {
        self.moved |= state.waiting() > 0;
    }

    /// Capacity was taken, which moves promises; by the tenant of a head, whose quotas may keep it waiting now.
    pub(crate) fn take(&mut self, state: &State, by: TenantNo) {
        let is_theirs = |number| state.allocation(number).is_some_and(|head| head.tenant == by);
        self.moved |= self.fickle || self.heads.values().any(|(.., number)| is_theirs(*number));
    }

    /// One more waits.
    pub(crate) fn arrive(&mut self, allocation: AllocationNo) {
        self.arrived.push(allocation);
        self.moved = true;
    }

    /// Puts those that have arrived among those that are looked at.
    pub(crate) fn take_in(&mut self, state: &State) {
        for number in std::mem::take(&mut self.arrived) {
            let waits = state.allocation(number).expect("what waits exists");
            self.line_up(&state.queue.key(waits), waits);
        }
    }

    /// Puts one that waits among those that are looked at.
    fn line_up(&mut self, key: &ShapeKey, allocation: &Allocation) {
        let shape = match self.shapes.get_mut(key) {
            Some(shape) => shape,
            None => self.shapes.entry(key.clone()).or_default(),
        };
        line_up(&mut shape.waiting, allocation);
        shape.first = None;
        // Where there is no room for the others there is none for it.
        if shape.blocked != Some(Blocked::Room) {
            shape.blocked = None;
        }
        self.moved = true;
    }

    /// Whether it was among them.
    fn leave_line(&mut self, key: &ShapeKey, allocation: &Allocation) -> bool {
        let Some(shape) = self.shapes.get_mut(key) else { return false };
        shape.first = None;
        let stood = step_out(&mut shape.waiting, allocation);
        if shape.waiting.is_empty() {
            self.shapes.remove(key);
        }
        stood
    }

    /// It is looked at no more. Those behind it may have more room now.
    pub(crate) fn step_out(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.moved = true;
        if let Some(place) = self.arrived.iter().rposition(|number| *number == allocation.number) {
            self.arrived.remove(place);
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

    /// It is looked at with others from now on, unless it waits for headroom.
    pub(crate) fn regroup(&mut self, from: &ShapeKey, to: &ShapeKey, allocation: &Allocation) {
        if self.leave_line(from, allocation) {
            self.line_up(to, allocation);
        }
    }

    /// It is looked at again when its tenant may have headroom.
    pub(crate) fn wait_for_quota(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.leave_line(key, allocation);
        self.for_quota.entry(allocation.tenant).or_default().insert(allocation.number);
    }

    /// A tenant's limits or its use have changed: who waited for that is looked at again.
    pub(crate) fn headroom(&mut self, state: &State, tenant: TenantNo) {
        self.stir(state);
        if self.for_quota.is_empty() {
            return;
        }
        for number in self.for_quota.remove(&tenant).unwrap_or_default() {
            if let Some(waits) = state.allocation(number) {
                self.line_up(&state.queue.key(waits), waits);
            }
        }
    }

    /// Prices have changed, or a minute has passed: whoever waits because of what things cost is looked at again.
    pub(crate) fn line_up_for_cost(&mut self, state: &State) {
        if state.ceilings.is_empty() || self.for_quota.is_empty() {
            return;
        }
        state.tenants().for_each(|tenant| self.headroom(state, tenant.number));
    }

    pub(crate) fn free(&mut self, state: &State, node: NodeNo) {
        if state.waiting() > 0 {
            self.freed.insert(node);
            self.moved = true;
        }
    }

    /// Takes standings as they are in the minute of `now`; they are asked for as they are needed. Answers whether the
    /// minute is another than before.
    pub(crate) fn begin_minute(&mut self, now: Instant) -> bool {
        let begins = self.minute != minute(now);
        if begins {
            self.minute = minute(now);
            self.standings.clear();
            for shape in self.shapes.values_mut() {
                shape.first = None;
            }
            self.moved = true;
        }
        begins
    }

    /// Something that standings are made of has changed.
    pub(crate) fn forget_standings(&mut self) {
        self.standings.clear();
        self.shapes.values_mut().for_each(|shape| shape.first = None);
        self.moved = true;
    }

    /// The first of all in shapes that `which` picks, by its shape.
    pub(crate) fn first(
        &mut self,
        which: impl Fn(&ShapeKey, &Shape) -> bool,
        standing: &dyn Fn(TenantNo) -> Standing,
    ) -> Option<(Rank, ShapeKey)> {
        let standings = &mut self.standings;
        let mut first: Option<(Rank, &ShapeKey)> = None;
        for (key, shape) in &mut self.shapes {
            if !which(key, shape) {
                continue;
            }
            if shape.first.is_none() {
                let heads = shape.waiting.iter().filter_map(|(tenant, line)| {
                    let (submitted, number) = *line.first()?;
                    let standing = *standings.entry(*tenant).or_insert_with(|| standing(*tenant));
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
