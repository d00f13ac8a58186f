//! What waits, in which order, and what comes next (SEMANTICS 4 and 5).
//!
//! In order of rank, each that waits starts if it fits where it may go. If it does not, it evicts if that makes room.
//! The first in rank of those that simply find no room is the head of each line it stands in: of each pool it may lie
//! in, or, if it is sensitive, of its user's own, for the nodes that user has claimed. Those after it may use
//! the nodes on which the head will start only if they are gone by then, and evict nobody there. One that its quotas
//! keep waiting, or that only stands behind a head, is no head itself.

use crate::allocation::Allocation;
use crate::assured_start::AssuredStart;
use crate::custody::Claimer;
use crate::eviction::Plan;
use crate::gang::{Gang, NoGang, Occupancy};
use crate::quota::Demand;
use crate::standing::Standing;
use crate::world::{Node, World};
use leasehold_model::{AllocationNo, AllocationSpec, Instant, NodeNo, PoolNo, Priority, Span, TenantNo};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The lesser goes first.
pub(crate) type Rank = (Reverse<Priority>, Reverse<Standing>, Instant, AllocationNo);

/// Those that wait for the same nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Line {
    /// For a pool's that are open to all.
    Pool(PoolNo),
    /// For those that a user has claimed.
    Claimed(Claimer),
}

impl Line {
    /// The line that waits for a node.
    pub(crate) fn at(node: &Node) -> Self {
        node.custody.claimer().map_or(Self::Pool(node.put.pool), Self::Claimed)
    }
}

/// The head of each line, as the queue was last looked at.
pub(crate) type Heads = BTreeMap<Line, Rank>;

/// What the queue does next.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Start(AllocationNo, Box<Gang>),
    Evict(AllocationNo, Plan),
}

/// Why one goes on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Also if it has had enough evicted for now.
    ForRoom,
    /// For quota, or behind a head.
    Otherwise,
}

/// What is kept for those that go first.
pub(crate) struct Guard<'a> {
    world: &'a World,
    assured: BTreeMap<Line, Option<AssuredStart>>,
    now: Instant,
}

impl Guard<'_> {
    /// Whether one that starts now and runs for `walltime` at most may use a node.
    pub(crate) fn allows(&self, node: NodeNo, walltime: Option<Span>) -> bool {
        match self.assured.get(&Line::at(&self.world.nodes[&node])) {
            Some(Some(assured)) if assured.nodes.contains(&node) => {
                self.world.gone_by(node, self.now, walltime).is_some_and(|gone| gone <= assured.start)
            }
            _ => true,
        }
    }

    fn is_empty(&self) -> bool {
        self.assured.values().all(Option::is_none)
    }
}

impl World {
    pub(crate) fn rank(&self, waits: &Allocation, now: Instant) -> Rank {
        let standing = self.standing(waits.tenant, now);
        (Reverse(waits.spec.priority), Reverse(standing), waits.submitted_at, waits.number)
    }

    pub(crate) fn guard(&self, heads: &Heads, before: Rank, now: Instant) -> Guard<'_> {
        let assured = |rank: &Rank| self.allocations.get(&rank.3).and_then(|waits| self.assured_start(waits, now));
        let heads = heads.iter().filter(|(_, head)| **head < before);
        Guard { world: self, assured: heads.map(|(line, head)| (*line, assured(head))).collect(), now }
    }

    /// The guard for one that asks now.
    pub(crate) fn guard_for(&self, tenant: TenantNo, priority: Priority, now: Instant) -> Guard<'_> {
        let heads = self.heads_at(now);
        if heads.is_empty() {
            return Guard { world: self, assured: BTreeMap::new(), now };
        }
        let rank = (Reverse(priority), Reverse(self.standing(tenant, now)), now, AllocationNo(u64::MAX));
        self.guard(&heads, rank, now)
    }

    /// The queue as it is at `now`: the first move that is due, or, where none is, the heads.
    pub(crate) fn look(&self, now: Instant) -> Result<Heads, Move> {
        let mut line: Vec<(Rank, &Allocation)> =
            self.allocations.values().filter(|found| found.is_in_line()).map(|w| (self.rank(w, now), w)).collect();
        line.sort_by_key(|(rank, _)| *rank);
        let mut heads = Heads::new();
        for (rank, waits) in line {
            let guard = self.guard(&heads, rank, now);
            if self.try_one(waits, &guard, now)? == Waits::ForRoom {
                for line in self.lines_of(waits) {
                    heads.entry(line).or_insert(rank);
                }
            }
        }
        Ok(heads)
    }

    /// The lines that one stands in.
    fn lines_of(&self, waits: &Allocation) -> Vec<Line> {
        match waits.claimer() {
            Some(claimer) => vec![Line::Claimed(claimer)],
            None => {
                let pools = self.pools.keys().filter(|pool| waits.spec.pool.is_none_or(|own| own == **pool));
                pools.copied().map(Line::Pool).collect()
            }
        }
    }

    fn try_one(&self, waits: &Allocation, guard: &Guard<'_>, now: Instant) -> Result<Waits, Move> {
        let (spec, demand) = (&waits.spec, waits.demand());
        let occupancy = Occupancy::of(self);
        match self.place_gang(&demand, spec, &occupancy, now, &|node| guard.allows(node, spec.walltime)) {
            Ok(gang) => return Err(Move::Start(waits.number, Box::new(gang))),
            Err(NoGang::Quota(_)) => return Ok(Waits::Otherwise),
            Err(NoGang::Room) => {}
        }
        let plan = self.plan_for(&demand, spec, guard, now);
        if let Some(Ok(plan)) = plan {
            return Err(Move::Evict(waits.number, plan));
        }
        if guard.is_empty() {
            return Ok(Waits::ForRoom);
        }
        let would_fit = self.place_gang(&demand, spec, &occupancy, now, &|_| true) != Err(NoGang::Room);
        let would_evict = || plan.is_none() && self.plan_eviction(&demand, spec, now, &|_| true).is_some();
        Ok(if would_fit || would_evict() { Waits::Otherwise } else { Waits::ForRoom })
    }

    /// What one that finds no room evicts; an error if its tenant has had enough evicted for now.
    pub(crate) fn plan_for(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        guard: &Guard<'_>,
        now: Instant,
    ) -> Option<Result<Plan, ()>> {
        let plan = self.plan_eviction(demand, spec, now, &|node| guard.allows(node, None))?;
        Some(if self.may_evict(demand.tenant, plan.quanta, now) { Ok(plan) } else { Err(()) })
    }

    /// The heads as the queue was last looked at: it is looked at when something may have changed for those that wait,
    /// and with each minute.
    pub(crate) fn heads_at(&self, now: Instant) -> Heads {
        if !self.allocations.values().any(|found| found.state.is_queued()) {
            return Heads::new();
        }
        match &self.looked {
            Some((minute, heads)) if *minute == minute_of(now) => heads.clone(),
            _ => self.look(now).unwrap_or_default(),
        }
    }
}

pub(crate) fn minute_of(now: Instant) -> u64 {
    now.0 / 60_000_000_000
}
