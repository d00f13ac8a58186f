//! What waits, and in which order (SEMANTICS 4): priority, then budget factor, fair-share deficit and age.
//!
//! Those that wait for the same are kept together as a *shape*. All of this is derived from the allocations and is
//! rebuilt with them; what deciding remembers about the queue is the scheduler's (`scheduler.rs`).

mod positions;
mod waits;

pub use positions::{Positions, Standings};
pub use waits::{WaitReason, Waits};

use crate::allocation::Allocation;
use crate::custody::Claimer;
use crate::node::Node;
use leasehold_model::body::Asks;
use leasehold_model::{AllocationNo, Domain, Instant, Name, PoolNo, Priority, ProjectNo, Span, TenantNo};
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

    /// Whether one that goes to those claimed nodes, or to that pool, stands in it.
    pub(crate) fn has(self, claimer: Option<Claimer>, pool: Option<PoolNo>) -> bool {
        match (self, claimer) {
            (Self::Pool(number), None) => pool.is_none_or(|of| of == number),
            (Self::Claimed(by), Some(claimer)) => by == claimer,
            _ => false,
        }
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
    /// Whether it waits for nodes of that line.
    pub(crate) fn stands_in(&self, line: Line) -> bool {
        line.has(self.claimer, self.pool)
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

/// Those of one shape, by tenant and then by age.
pub(crate) type Waiting = BTreeMap<TenantNo, BTreeSet<(Instant, AllocationNo)>>;

pub(crate) fn line_up(waiting: &mut Waiting, allocation: &Allocation) {
    waiting.entry(allocation.tenant).or_default().insert((allocation.submitted_at, allocation.number));
}

/// Whether it stood there.
pub(crate) fn step_out(waiting: &mut Waiting, allocation: &Allocation) -> bool {
    let Some(line) = waiting.get_mut(&allocation.tenant) else { return false };
    let stood = line.remove(&(allocation.submitted_at, allocation.number));
    if line.is_empty() {
        waiting.remove(&allocation.tenant);
    }
    stood
}

/// The allocations that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Those that wait for capacity.
    pub(crate) shapes: BTreeMap<ShapeKey, Waiting>,
    /// Those whose victims are being torn down.
    pub(crate) reserved: BTreeSet<AllocationNo>,
    /// Tenants whose allocations are grouped by themselves.
    particular: BTreeSet<TenantNo>,
    /// All that wait, by tenant.
    pending: BTreeMap<TenantNo, u64>,
    total: usize,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.total
    }
    pub(crate) fn pending(&self, tenant: TenantNo) -> u64 {
        self.pending.get(&tenant).copied().unwrap_or(0)
    }

    /// With which others an allocation is grouped.
    pub(crate) fn key(&self, allocation: &Allocation) -> ShapeKey {
        ShapeKey::of(allocation, self.particular.contains(&allocation.tenant))
    }

    pub(crate) fn is_particular(&self, tenant: TenantNo) -> bool {
        self.particular.contains(&tenant)
    }

    pub(crate) fn set_particular(&mut self, tenant: TenantNo, particular: bool) {
        if particular {
            self.particular.insert(tenant);
        } else {
            self.particular.remove(&tenant);
        }
    }

    /// One more waits.
    pub(crate) fn add(&mut self, key: &ShapeKey, allocation: &Allocation) {
        *self.pending.entry(allocation.tenant).or_insert(0) += 1;
        self.total += 1;
        self.line_up(key, allocation);
    }

    /// It waits no longer.
    pub(crate) fn remove(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.step_out(key, allocation);
        self.reserved.remove(&allocation.number);
        self.total -= 1;
        let left = self.pending.get_mut(&allocation.tenant).expect("it was counted");
        *left -= 1;
        if *left == 0 {
            self.pending.remove(&allocation.tenant);
        }
    }

    /// It waits for its victims only.
    pub(crate) fn reserve(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.step_out(key, allocation);
        self.reserved.insert(allocation.number);
    }

    /// It waits for capacity.
    pub(crate) fn line_up(&mut self, key: &ShapeKey, allocation: &Allocation) {
        match self.shapes.get_mut(key) {
            Some(waiting) => line_up(waiting, allocation),
            None => line_up(self.shapes.entry(key.clone()).or_default(), allocation),
        }
    }

    pub(crate) fn step_out(&mut self, key: &ShapeKey, allocation: &Allocation) {
        let Some(waiting) = self.shapes.get_mut(key) else { return };
        step_out(waiting, allocation);
        if waiting.is_empty() {
            self.shapes.remove(key);
        }
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
