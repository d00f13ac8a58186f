//! The queue: its order, and its next move (SEMANTICS 4 and 5).
//!
//! In order of rank, each waiting allocation starts if it fits. If it does not, it evicts if that makes room. The
//! first allocation that finds no room is the head of its lines: of each pool that it may use, or, if it is sensitive,
//! of the nodes that its user has claimed. Lower-ranked allocations may use the nodes on which the head will start
//! only if they end before, and must not evict there. An allocation that waits for quota, or only behind a head, is
//! not a head.

use crate::allocation::Allocation;
use crate::assured_start::AssuredStart;
use crate::custody::Claimer;
use crate::eviction::Plan;
use crate::gang::{Gang, NoGang, Occupancy};
use crate::quota::Demand;
use crate::standing::Standing;
use crate::world::{Node, World};
use leasehold_model::{AllocationNo, AllocationSpec, Instant, NodeNo, PoolNo, Priority, Span};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sorted: the smallest rank goes first.
pub(crate) type Rank = (Reverse<Priority>, (bool, Reverse<Standing>), Instant, AllocationNo);

/// A line: the allocations that wait for the same nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Line {
    /// The open nodes of a pool.
    Pool(PoolNo),
    /// The nodes that a user has claimed.
    Claimed(Claimer),
}

impl Line {
    /// The line of a node.
    pub(crate) fn at(node: &Node) -> Self {
        node.custody.claimer().map_or(Self::Pool(node.put.pool), Self::Claimed)
    }
}

/// The head of each line at the last scheduling pass.
pub(crate) type Heads = BTreeMap<Line, Rank>;

/// The next move of the queue.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Start(AllocationNo, Box<Gang>),
    /// Evicts and takes over what is needed.
    MakeRoom(AllocationNo, Plan),
    /// Capacity that is reserved for it is complete.
    Fulfil(AllocationNo),
    /// A head that has waited too long is protected on these nodes.
    Protect(AllocationNo, Vec<NodeNo>),
}

/// Why an allocation continues to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// For capacity, or for its eviction limit.
    ForRoom,
    /// For quota, or because of a head.
    Otherwise,
}

/// Protects the assured starts of higher-ranked heads.
pub(crate) struct Guard<'a> {
    pub(crate) world: &'a World,
    assured: BTreeMap<Line, Option<AssuredStart>>,
    /// Who asks: their number, or the last of all, and their priority.
    pub(crate) who: (AllocationNo, Priority),
    pub(crate) now: Instant,
}

impl Guard<'_> {
    /// Whether work of that walltime and priority that starts now may use a node. `None`: only nodes of no head.
    pub(crate) fn allows(&self, node: NodeNo, stay: Option<(Option<Span>, Priority)>) -> bool {
        if self.is_kept_from(node, stay) {
            return false;
        }
        match self.assured.get(&Line::at(&self.world.nodes[&node])) {
            Some(Some(assured)) if assured.nodes.contains(&node) => {
                let gone = stay.and_then(|(walltime, priority)| self.world.gone_by(node, self.now, walltime, priority));
                gone.is_some_and(|gone| gone <= assured.start)
            }
            _ => true,
        }
    }

    fn is_empty(&self) -> bool {
        self.assured.values().all(Option::is_none)
            && self.world.allocations.values().all(|found| found.protected_on.is_empty())
    }
}

impl World {
    pub(crate) fn rank(&self, waits: &Allocation, now: Instant) -> Rank {
        let standing = self.standing_on(waits.tenant, waits.node, waits.spec.pool, now);
        let lowered = self.is_lowered(&waits.demand(), waits.spec.pool, now);
        (Reverse(waits.spec.priority), (lowered, Reverse(standing)), waits.submitted_at, waits.number)
    }

    pub(crate) fn guard(&self, heads: &Heads, before: Rank, now: Instant) -> Guard<'_> {
        let assured = |rank: &Rank| self.allocations.get(&rank.3).and_then(|waits| self.assured_start(waits, now));
        let heads = heads.iter().filter(|(_, head)| **head < before);
        let who = (before.3, before.0.0);
        Guard { world: self, assured: heads.map(|(line, head)| (*line, assured(head))).collect(), who, now }
    }

    /// The guard for a request that is made now.
    pub(crate) fn guard_for(&self, demand: &Demand, pool: Option<PoolNo>, now: Instant) -> Guard<'_> {
        let heads = self.heads_at(now);
        let standing = self.standing_on(demand.tenant, demand.node, pool, now);
        let lowered = self.is_lowered(demand, pool, now);
        let rank = (Reverse(demand.priority), (lowered, Reverse(standing)), now, AllocationNo(u64::MAX));
        self.guard(&heads, rank, now)
    }

    /// A scheduling pass at `now`: returns the first move as an error, or the heads if there is none.
    pub(crate) fn look(&self, now: Instant) -> Result<Heads, Move> {
        let mut line: Vec<(Rank, &Allocation)> =
            self.allocations.values().filter(|found| found.is_in_line()).map(|w| (self.rank(w, now), w)).collect();
        line.sort_by_key(|(rank, _)| *rank);
        let mut heads = Heads::new();
        for (rank, waits) in line {
            // Those of higher priority went before it, and may have taken it over.
            if let Some(number) = self.completed_reservation(Some(waits.spec.priority)) {
                return Err(Move::Fulfil(number));
            }
            let guard = self.guard(&heads, rank, now);
            if self.try_one(waits, &guard, now)? == Waits::ForRoom {
                for line in self.lines_of(waits) {
                    heads.entry(line).or_insert(rank);
                }
            }
        }
        match self.completed_reservation(None) {
            Some(number) => Err(Move::Fulfil(number)),
            None => match self.head_to_protect(&heads, now) {
                Some((number, nodes)) => Err(Move::Protect(number, nodes)),
                None => Ok(heads),
            },
        }
    }

    /// The allocation of at least this priority whose reserved capacity is complete: the highest priority goes first,
    /// then the lowest number.
    fn completed_reservation(&self, least: Option<Priority>) -> Option<AllocationNo> {
        let complete = |found: &&Allocation| self.is_fulfilled(found);
        let mut complete: Vec<&Allocation> = self.allocations.values().filter(complete).collect();
        complete.sort_by_key(|found| (Reverse(found.spec.priority), found.number));
        complete
            .into_iter()
            .find(|found| least.is_none_or(|least| found.spec.priority >= least))
            .map(|found| found.number)
    }

    /// The lines of an allocation.
    fn lines_of(&self, waits: &Allocation) -> Vec<Line> {
        match waits.claimer() {
            Some(claimer) => vec![Line::Claimed(claimer)],
            None => {
                // One that names a node waits for the pool of that node only.
                let of_node = waits.node.and_then(|node| self.nodes.get(&node)).map(|node| node.put.pool);
                let own = of_node.or(waits.spec.pool);
                let pools = self.pools.keys().filter(|pool| own.is_none_or(|own| own == **pool));
                pools.copied().map(Line::Pool).collect()
            }
        }
    }

    fn try_one(&self, waits: &Allocation, guard: &Guard<'_>, now: Instant) -> Result<Waits, Move> {
        let (spec, demand) = (&waits.spec, waits.demand());
        let occupancy = Occupancy::of(self);
        match self.place_gang(&demand, spec, &occupancy, now, &|node| {
            guard.allows(node, Some((spec.walltime, spec.priority)))
        }) {
            Ok(gang) => return Err(Move::Start(waits.number, Box::new(gang))),
            Err(NoGang::Quota(_)) => {
                return match self.plan_own(&demand, spec, guard, now) {
                    Some(Ok(plan)) => Err(Move::MakeRoom(waits.number, plan)),
                    _ => Ok(Waits::Otherwise),
                };
            }
            Err(NoGang::Room) => {}
        }
        let plan = self.plan_for(&demand, spec, guard, now);
        if let Some(Ok(plan)) = plan {
            return Err(Move::MakeRoom(waits.number, plan));
        }
        if guard.is_empty() {
            return Ok(Waits::ForRoom);
        }
        let would_fit = self.place_gang(&demand, spec, &occupancy, now, &|_| true) != Err(NoGang::Room);
        let would_evict = || plan.is_none() && self.plan_room(&demand, spec, now, &|_| true).is_some();
        Ok(if would_fit || would_evict() { Waits::Otherwise } else { Waits::ForRoom })
    }

    /// The eviction plan of an allocation without room; an error if its tenant has reached its eviction limit.
    pub(crate) fn plan_for(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        guard: &Guard<'_>,
        now: Instant,
    ) -> Option<Result<Plan, ()>> {
        let plan = self.plan_room(demand, spec, now, &|node| guard.allows(node, None))?;
        Some(if self.may_evict(demand.tenant, plan.quanta, now) { Ok(plan) } else { Err(()) })
    }

    /// The heads of the last scheduling pass. There is a pass when something may have changed for waiting allocations,
    /// and every minute.
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

/// The beginning of the minute.
pub(crate) fn last_minute(now: Instant) -> Instant {
    Instant(minute_of(now) * 60_000_000_000)
}

pub(crate) fn minute_of(now: Instant) -> u64 {
    now.0 / 60_000_000_000
}
