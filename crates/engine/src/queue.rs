//! The queue of waiting allocations and its order (SEMANTICS 4): priority, then budget factor, fair-share deficit, age.
//!
//! Allocations with equal requirements are grouped into a *shape*. The queue is derived from the allocations and
//! rebuilt with them. What the engine remembers between scheduling passes is in `scheduler.rs`.

mod positions;
mod waits;

pub use positions::{Positions, Standings};
pub use waits::{Protection, WaitReason, Waits};

use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::custody::Claimer;
use crate::lease::Lease;
use crate::node::Node;
use leasehold_model::body::{Asks, PoolQueue};
use leasehold_model::{
    AllocationNo, AppInstanceNo, Domain, Instant, Name, NodeNo, PoolNo, Priority, ProjectNo, QuotaNo, Span, TenantNo,
    UserNo,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A part of the queue: the allocations that wait for the open nodes of a pool, or for the nodes that a user has
/// claimed.
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

    /// Whether an allocation for the nodes of this claimer, or for this pool, waits in the line.
    pub(crate) fn has(self, claimer: Option<Claimer>, pool: Option<PoolNo>) -> bool {
        match (self, claimer) {
            (Self::Pool(number), None) => pool.is_none_or(|of| of == number),
            (Self::Claimed(by), Some(claimer)) => by == claimer,
            _ => false,
        }
    }
}

/// The pools of the nodes that waiting allocations name.
pub(crate) type NamedNodes = BTreeMap<NodeNo, PoolNo>;

/// Everything that determines where an allocation fits. Allocations with equal keys form a shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeKey {
    pub(crate) priority: Priority,
    pub(crate) pool: Option<PoolNo>,
    /// The only node that it may use.
    pub(crate) node: Option<NodeNo>,
    pub(crate) asks: Asks,
    pub(crate) replicas: u32,
    pub(crate) labels: Vec<(Name, Name)>,
    pub(crate) together: Option<Domain>,
    pub(crate) apart: Option<Domain>,
    pub(crate) walltime: Option<Span>,
    pub(crate) ttl: Option<Span>,
    /// The user for whose claimed nodes it waits, if it is sensitive.
    pub(crate) claimer: Option<Claimer>,
    /// The project, for tenants whose limits depend on the node or on evictions: whether their allocations fit tells
    /// nothing about those of others. `None` for all other tenants.
    pub(crate) project: Option<ProjectNo>,
    /// Who pays, for the same tenants.
    pub(crate) payer: Option<ProjectNo>,
    /// The allocation itself if it is protected: it may use nodes that others of its shape may not.
    pub(crate) protected: Option<AllocationNo>,
    /// The user and the app instance, for the same tenants: quotas may count by them.
    pub(crate) holder: (Option<UserNo>, Option<AppInstanceNo>),
}

impl ShapeKey {
    /// Whether allocations of this shape wait in the line. One that names a node waits in the line of that node's pool.
    pub(crate) fn stands_in(&self, line: Line, named: &NamedNodes) -> bool {
        let of_node = self.node.and_then(|node| named.get(&node).copied());
        line.has(self.claimer, of_node.or(self.pool))
    }

    fn of(allocation: &Allocation, own_shapes: bool) -> Self {
        let spec = &allocation.spec;
        Self {
            priority: spec.priority,
            pool: spec.pool,
            node: allocation.node,
            asks: spec.asks.clone(),
            replicas: spec.replicas,
            labels: spec.labels.clone(),
            together: spec.together,
            apart: spec.apart,
            walltime: spec.walltime,
            ttl: spec.ttl,
            claimer: allocation.claimer(),
            protected: (!allocation.protected_on.is_empty()).then_some(allocation.number),
            project: own_shapes.then_some(allocation.project),
            payer: own_shapes.then_some(allocation.payer),
            holder: if own_shapes { (allocation.user, spec.app_instance) } else { (None, None) },
        }
    }
}

/// The rank of a tenant in the queue; the greater one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// Whether it does not wait behind others of its priority because of a soft quota or the access to its pool.
    pub is_preferred: bool,
    /// In units of 2^-20: 1 up to 80 % of the budget, decreasing to 1/20 at 120 %.
    pub factor: u32,
    /// How far the tenant is below its fair share, in units of 2^-20.
    pub deficit: i64,
}

impl Standing {
    /// The standing of a tenant that has neither budget nor share and has used nothing.
    pub const FRESH: Self = Self { is_preferred: true, factor: 1 << 20, deficit: 0 };
}

/// The rank of an allocation in the queue; the lesser one goes first.
pub(crate) type Rank = (Reverse<Priority>, Reverse<Standing>, Instant, AllocationNo);

/// The allocations of one shape, by tenant and then by age.
pub(crate) type Waiting = BTreeMap<TenantNo, BTreeSet<(Instant, AllocationNo)>>;

pub(crate) fn line_up(waiting: &mut Waiting, allocation: &Allocation) {
    waiting.entry(allocation.tenant).or_default().insert((allocation.submitted_at, allocation.number));
}

/// Removes an allocation. Returns whether it was there.
pub(crate) fn step_out(waiting: &mut Waiting, allocation: &Allocation) -> bool {
    let Some(line) = waiting.get_mut(&allocation.tenant) else { return false };
    let was_there = line.remove(&(allocation.submitted_at, allocation.number));
    if line.is_empty() {
        waiting.remove(&allocation.tenant);
    }
    was_there
}

/// The waiting allocations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Allocations that wait for capacity.
    pub(crate) shapes: BTreeMap<ShapeKey, Waiting>,
    /// Allocations with a reservation, which wait for the teardown of their victims.
    pub(crate) reserved: BTreeSet<AllocationNo>,
    /// The allocations for which headroom in a quota is held, with these quotas.
    pub(crate) headroom: BTreeMap<AllocationNo, QuotaNo>,
    /// The nodes on which heads are protected, with these heads.
    pub(crate) protected_nodes: BTreeMap<NodeNo, AllocationNo>,
    /// Allocations on hold.
    pub(crate) on_hold: BTreeSet<AllocationNo>,
    /// Tenants whose allocations share no shape with those of other tenants.
    with_own_shapes: BTreeSet<TenantNo>,
    /// The number of waiting allocations of each tenant.
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

    /// The shape to which an allocation belongs.
    pub(crate) fn key(&self, allocation: &Allocation) -> ShapeKey {
        ShapeKey::of(allocation, self.with_own_shapes.contains(&allocation.tenant))
    }

    pub(crate) fn has_own_shapes(&self, tenant: TenantNo) -> bool {
        self.with_own_shapes.contains(&tenant)
    }

    pub(crate) fn set_own_shapes(&mut self, tenant: TenantNo, own_shapes: bool) {
        if own_shapes {
            self.with_own_shapes.insert(tenant);
        } else {
            self.with_own_shapes.remove(&tenant);
        }
    }

    /// Adds an allocation that waits for capacity.
    pub(crate) fn add(&mut self, key: &ShapeKey, allocation: &Allocation) {
        *self.pending.entry(allocation.tenant).or_insert(0) += 1;
        self.total += 1;
        self.line_up(key, allocation);
    }

    /// Removes an allocation that no longer waits.
    pub(crate) fn remove(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.step_out(key, allocation);
        self.reserved.remove(&allocation.number);
        self.on_hold.remove(&allocation.number);
        self.total -= 1;
        let left = self.pending.get_mut(&allocation.tenant).expect("it was counted");
        *left -= 1;
        if *left == 0 {
            self.pending.remove(&allocation.tenant);
        }
    }

    /// Moves an allocation from those that wait for capacity to those that wait for their victims.
    pub(crate) fn reserve(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.step_out(key, allocation);
        self.reserved.insert(allocation.number);
        let headroom = allocation.reservation.as_deref().and_then(|reservation| reservation.headroom);
        self.headroom.extend(headroom.map(|quota| (allocation.number, quota)));
    }

    /// Adds an allocation to its shape, without counting it.
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

    pub(crate) fn named_nodes(&self) -> NamedNodes {
        let named = self.queue.shapes.keys().filter_map(|key| self.node(key.node?));
        named.map(|node| (node.number, node.pool)).collect()
    }

    /// How often an allocation may be requeued: the lowest limit of the pools that it may use.
    pub(crate) fn requeue_limit(&self, found: &Allocation) -> u32 {
        let pools = self.pools().filter(|(number, _)| found.spec.pool.is_none_or(|own| own == *number));
        pools.map(|(_, pool)| pool.queue.requeue_limit).min().unwrap_or(PoolQueue::default().requeue_limit)
    }

    /// Whether a lease was held long enough to be evicted (SEMANTICS 11), as of the last whole minute: the same pass
    /// made again in that minute decides the same.
    pub(crate) fn ran_long_enough(&self, lease: &Lease, now: Instant) -> bool {
        let least = self.pool(lease.pool).map_or(Span::ZERO, |pool| pool.queue.min_runtime_before_eviction);
        least == Span::ZERO || lease.granted_at.saturating_add(least) <= minute_begin(now)
    }

    /// Whether some pool protects young leases, so that an eviction can become possible by the passing of time.
    pub(crate) fn protects_young_leases(&self) -> bool {
        self.pools().any(|(_, pool)| pool.queue.min_runtime_before_eviction > Span::ZERO)
    }

    /// The rank of a waiting allocation.
    pub(crate) fn rank_of(&self, found: &Allocation, now: Instant) -> Rank {
        let standing = self.standing_of(&Ask::of(found, now));
        (Reverse(found.spec.priority), Reverse(standing), found.submitted_at, found.number)
    }
}

/// The beginning of the minute that an instant lies in.
pub(crate) fn minute_begin(now: Instant) -> Instant {
    Instant(minute(now) * 60_000_000_000)
}

/// The whole minute that an instant lies in.
pub(crate) fn minute(now: Instant) -> u64 {
    now.0 / 60_000_000_000
}
