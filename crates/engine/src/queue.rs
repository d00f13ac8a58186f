//! What waits, and in which order (SEMANTICS 4): priority, then budget factor, fair-share deficit and age.
//!
//! Those that wait for the same are kept together as a *shape*: if one of a shape finds no room, none does, until
//! something changes that could let it. So a change costs what it touches, not what waits. All of this is derived
//! from the allocations and may be rebuilt; looking once too often changes nothing.

mod positions;
mod waits;

pub use positions::{Positions, Standings};
pub use waits::{WaitReason, Waits};

use crate::allocation::Allocation;
use crate::custody::Claimer;
use crate::node::Node;
use leasehold_model::body::Asks;
use leasehold_model::{
    AllocationNo, AllocationSpec, Domain, Instant, Name, NodeNo, PoolNo, Priority, ProjectNo, Span, TenantNo,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Those that wait for the same nodes: for a pool's that are open to all, or for those that one user has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Line {
    Pool(PoolNo),
    Claimed(Claimer),
}

impl Line {
    /// The line that waits for a node.
    pub(crate) fn at(node: &Node) -> Self {
        node.custody.claim().map_or(Self::Pool(node.pool), |claim| Self::Claimed(claim.by))
    }
}

/// What decides where and whether an allocation fits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeKey {
    pub(crate) priority: Priority,
    pub(crate) pool: Option<PoolNo>,
    pub(crate) asks: Asks,
    pub(crate) replicas: u32,
    pub(crate) labels: Vec<(Name, Name)>,
    pub(crate) together: Option<Domain>,
    pub(crate) apart: Option<Domain>,
    pub(crate) walltime: Option<Span>,
    pub(crate) ttl: Option<Span>,
    /// Whose claimed nodes it waits for, if it is sensitive.
    pub(crate) claimer: Option<Claimer>,
    /// Where the tenant's limits look at nodes or at whom it evicts, one's own finding no room says nothing of others.
    pub(crate) of: Option<ProjectNo>,
}

impl ShapeKey {
    /// One that waits for this.
    pub(crate) fn spec(&self) -> AllocationSpec {
        AllocationSpec {
            pool: self.pool,
            replicas: self.replicas,
            priority: self.priority,
            walltime: self.walltime,
            ttl: self.ttl,
            labels: self.labels.clone(),
            together: self.together,
            apart: self.apart,
            sensitive: self.claimer.is_some(),
            ..AllocationSpec::of(self.asks.clone())
        }
    }

    /// Whether it waits for nodes of that line.
    pub(crate) fn stands_in(&self, line: Line) -> bool {
        match (line, self.claimer) {
            (Line::Pool(pool), None) => self.pool.is_none_or(|of| of == pool),
            (Line::Claimed(by), Some(claimer)) => by == claimer,
            _ => false,
        }
    }

    fn of(allocation: &Allocation, particular: bool) -> Self {
        let spec = &allocation.spec;
        Self {
            priority: spec.priority,
            pool: spec.pool,
            asks: spec.asks.clone(),
            replicas: spec.replicas,
            labels: spec.labels.clone(),
            together: spec.together,
            apart: spec.apart,
            walltime: spec.walltime,
            ttl: spec.ttl,
            claimer: allocation.claimer(),
            of: particular.then_some(allocation.project),
        }
    }
}

/// How a tenant stands in the queue; the greater goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// Of 2^20: 1 up to 80 % of the budget, falling to a twentieth at 120 %.
    pub factor: u32,
    /// How far the tenant is below its fair share, of 2^20.
    pub deficit: i64,
}

impl Standing {
    /// Of a tenant without budget or share that has used nothing.
    pub const FRESH: Self = Self { factor: 1 << 20, deficit: 0 };
}

/// The place of an entry in the queue; the lesser goes first.
pub(crate) type Rank = (Reverse<Priority>, Reverse<Standing>, Instant, AllocationNo);

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

#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) waiting: BTreeMap<TenantNo, BTreeSet<(Instant, AllocationNo)>>,
    pub(crate) blocked: Option<Blocked>,
    /// The first of them, if it is known.
    first: Option<Rank>,
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) shapes: BTreeMap<ShapeKey, Shape>,
    /// Waiting for quota headroom: looked at again when the tenant's use or its limits change.
    for_quota: BTreeMap<TenantNo, BTreeSet<AllocationNo>>,
    /// Whose victims are being torn down.
    pub(crate) reserved: BTreeSet<AllocationNo>,
    /// Whose leases have ended, or begun to end, without a word on what becomes of them.
    pub(crate) unsettled: BTreeSet<AllocationNo>,
    /// Nodes on which something became free since the queue was last looked at.
    pub(crate) freed: BTreeSet<NodeNo>,
    /// More may have become possible than what was freed tells.
    pub(crate) anew: bool,
    /// The order has changed, or who stands in it: those that stand behind others may go.
    pub(crate) moved: bool,
    /// Some wait for what any change may bring: for a promise to move, above all.
    pub(crate) fickle: bool,
    /// Tenants whose allocations are lined up by themselves.
    pub(crate) particular: BTreeSet<TenantNo>,
    /// The first in each line that finds no room, as it was last looked at.
    pub(crate) heads: BTreeMap<Line, Rank>,
    /// Those that wait, by tenant.
    pending: BTreeMap<TenantNo, u64>,
    total: usize,
    minute: u64,
    standings: BTreeMap<TenantNo, Standing>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.total
    }
    pub(crate) fn pending(&self, tenant: TenantNo) -> u64 {
        self.pending.get(&tenant).copied().unwrap_or(0)
    }

    /// Whether looking at it could change anything, at the minute it was last looked at.
    pub(crate) fn is_due(&self) -> bool {
        !self.unsettled.is_empty() || self.total > 0 && (self.anew || self.moved || !self.freed.is_empty())
    }
    /// The same, at `now`: standings are taken afresh each minute.
    pub(crate) fn is_due_at(&self, now: Instant) -> bool {
        self.is_due() || self.total > 0 && minute(now) != self.minute
    }

    pub(crate) fn add(&mut self, allocation: &Allocation) {
        *self.pending.entry(allocation.tenant).or_insert(0) += 1;
        self.total += 1;
        self.line_up(allocation);
    }

    /// Something has changed that may matter to those that wait.
    pub(crate) fn stir(&mut self) {
        self.moved |= self.total > 0;
    }

    /// Capacity was taken, which moves promises; by the tenant of a head, whose quotas may keep it waiting now.
    pub(crate) fn take(&mut self, by_tenant_of_head: bool) {
        self.moved |= self.fickle || by_tenant_of_head;
    }

    pub(crate) fn set_particular(&mut self, tenant: TenantNo, particular: bool) {
        if particular {
            self.particular.insert(tenant);
        } else {
            self.particular.remove(&tenant);
        }
    }

    fn key(&self, allocation: &Allocation) -> ShapeKey {
        ShapeKey::of(allocation, self.particular.contains(&allocation.tenant))
    }

    /// Whether it is among those that are looked at.
    pub(crate) fn is_in_line(&self, allocation: &Allocation) -> bool {
        let line = self.shapes.get(&self.key(allocation)).and_then(|shape| shape.waiting.get(&allocation.tenant));
        line.is_some_and(|line| line.contains(&(allocation.submitted_at, allocation.number)))
    }

    /// Puts one that waits among those that are looked at.
    pub(crate) fn line_up(&mut self, allocation: &Allocation) {
        let key = self.key(allocation);
        let shape = self.shapes.entry(key).or_default();
        shape.waiting.entry(allocation.tenant).or_default().insert((allocation.submitted_at, allocation.number));
        shape.first = None;
        // Where there is no room for the others there is none for it.
        if shape.blocked != Some(Blocked::Room) {
            shape.blocked = None;
        }
        self.moved = true;
    }

    pub(crate) fn step_out(&mut self, allocation: &Allocation) {
        let key = self.key(allocation);
        if let Some(shape) = self.shapes.get_mut(&key) {
            shape.first = None;
            if let Some(line) = shape.waiting.get_mut(&allocation.tenant) {
                line.remove(&(allocation.submitted_at, allocation.number));
                if line.is_empty() {
                    shape.waiting.remove(&allocation.tenant);
                }
            }
            if shape.waiting.is_empty() {
                self.shapes.remove(&key);
            }
        }
        if let Some(some) = self.for_quota.get_mut(&allocation.tenant) {
            some.remove(&allocation.number);
            if some.is_empty() {
                self.for_quota.remove(&allocation.tenant);
            }
        }
        self.reserved.remove(&allocation.number);
    }

    /// It waits no longer. Those behind it may have more room now.
    pub(crate) fn remove(&mut self, allocation: &Allocation) {
        self.step_out(allocation);
        self.total -= 1;
        self.moved = true;
        let left = self.pending.get_mut(&allocation.tenant).expect("it was counted");
        *left -= 1;
        if *left == 0 {
            self.pending.remove(&allocation.tenant);
        }
    }

    /// It waits for its victims.
    pub(crate) fn reserve(&mut self, allocation: &Allocation) {
        self.step_out(allocation);
        self.reserved.insert(allocation.number);
        self.moved = true;
    }

    pub(crate) fn wait_for_quota(&mut self, allocation: &Allocation) {
        self.step_out(allocation);
        self.for_quota.entry(allocation.tenant).or_default().insert(allocation.number);
    }
    /// A tenant's limits or its use have changed: who waited for that must be looked at.
    pub(crate) fn take_for_quota(&mut self, tenant: TenantNo) -> BTreeSet<AllocationNo> {
        self.for_quota.remove(&tenant).unwrap_or_default()
    }
    pub(crate) fn none_wait_for_quota(&self) -> bool {
        self.for_quota.is_empty()
    }

    pub(crate) fn free(&mut self, node: NodeNo) {
        if self.total > 0 {
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

impl crate::state::State {
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        let pools = self.pools().map(|(number, _)| Line::Pool(number));
        pools.chain(self.claimed.claimers().map(Line::Claimed))
    }

    /// The place of one that waits.
    pub(crate) fn rank_of(&self, found: &Allocation, now: Instant) -> Rank {
        let standing = self.standing(found.tenant, now);
        (Reverse(found.spec.priority), Reverse(standing), found.submitted_at, found.number)
    }
}

/// The whole minute that an instant lies in.
pub(crate) fn minute(now: Instant) -> u64 {
    now.0 / 60_000_000_000
}
