//! Where a request goes. Filter, then choose: today by best fit; the scores of SEMANTICS 5 will
//! take the place of `best_fit`, with the same question and the same answer.

use crate::node::Node;
use crate::quota::{Facts, Verdict};
use crate::state::{State, entry};
use leasehold_model::body::{Asks, Member, Members};
use leasehold_model::{ClassNo, DenyCause, Instant, NodeNo, PoolNo, Priority, Quanta, QuotaNo, Span};

/// The question.
pub(crate) struct Wanted<'a> {
    pub(crate) pool: Option<PoolNo>,
    pub(crate) node: Option<NodeNo>,
    pub(crate) asks: &'a Asks,
    /// The same, as quotas see it.
    pub(crate) facts: &'a [Facts],
    /// Quotas whose answer depends on the node, with what is asked of each.
    pub(crate) node_quotas: &'a [(QuotaNo, u64)],
    pub(crate) ttl: Span,
    pub(crate) priority: Priority,
    pub(crate) now: Instant,
}

/// The answer.
pub(crate) struct Placed {
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    pub(crate) members: Members,
    /// What the node's quotas said, apart from "within".
    pub(crate) verdicts: Vec<(QuotaNo, Verdict)>,
}

/// Why one node is not a candidate.
enum Unfit {
    Room,
    Quota(DenyCause),
}

impl State {
    pub(crate) fn place(&self, wanted: &Wanted<'_>) -> Result<Placed, DenyCause> {
        let mut refused = None;
        let mut try_node = |number: NodeNo| -> Option<Placed> {
            let node = entry(&self.nodes, number.0).expect("a listed node exists");
            match self.try_node(node, wanted) {
                Ok(placed) => Some(placed),
                Err(Unfit::Room) => None,
                Err(Unfit::Quota(cause)) => {
                    refused.get_or_insert(cause);
                    None
                }
            }
        };
        let placed = match wanted.node {
            Some(number) => {
                let node = entry(&self.nodes, number.0).filter(|n| n.is_available());
                node.filter(|n| self.pool_suits(n.pool, wanted)).and_then(|n| try_node(n.number))
            }
            None => self.best_fit(wanted, &mut try_node),
        };
        placed.ok_or_else(|| refused.unwrap_or_else(|| self.scarcest(wanted)))
    }

    /// Whether the request may go into this pool and the pool allows its TTL.
    fn pool_suits(&self, number: PoolNo, wanted: &Wanted<'_>) -> bool {
        let pool = entry(&self.pools, number.0).expect("a node's pool exists");
        wanted.pool.is_none_or(|asked| asked == number) && wanted.ttl <= self.ttl_max(pool, wanted.priority)
    }

    /// The candidate with the least free of the first class, then the lowest number. Exact: nodes
    /// are tried in that order, and the first that fits wins.
    fn best_fit(&self, wanted: &Wanted<'_>, try_node: &mut dyn FnMut(NodeNo) -> Option<Placed>) -> Option<Placed> {
        let (class, Quanta(quanta)) = wanted.asks[0];
        let mut best: Option<((u64, NodeNo), Placed)> = None;
        let pools = match wanted.pool {
            Some(pool) => pool.0 as usize..pool.0 as usize + 1,
            None => 0..self.pools.len(),
        };
        for pool in self.pools[pools].iter().flatten() {
            if wanted.ttl > self.ttl_max(pool, wanted.priority) {
                continue;
            }
            let Some(list) = pool.by_free.get(class.0 as usize) else { continue };
            for candidate in list.from(quanta) {
                if best.as_ref().is_some_and(|(found, _)| *found < candidate) {
                    break;
                }
                if let Some(placed) = try_node(candidate.1) {
                    best = Some((candidate, placed));
                    break;
                }
            }
        }
        best.map(|(_, placed)| placed)
    }

    fn try_node(&self, node: &Node, wanted: &Wanted<'_>) -> Result<Placed, Unfit> {
        let mut members = Members::new();
        for (class, quanta) in wanted.asks {
            let devices = node.class(*class).and_then(|c| c.choose_devices(*quanta)).ok_or(Unfit::Room)?;
            members.push(Member { class: *class, quanta: *quanta, devices });
        }
        let mut verdicts = Vec::new();
        for (number, asked) in wanted.node_quotas {
            let quota = entry(&self.quotas, number.0).expect("a listed quota exists");
            match quota.judge(*asked, Some((node.pool, node.number)), wanted.now) {
                Verdict::Within => {}
                Verdict::Refused(cause) => return Err(Unfit::Quota(cause)),
                verdict => verdicts.push((*number, verdict)),
            }
        }
        debug_assert_eq!(wanted.facts.len(), members.len());
        Ok(Placed { node: node.number, pool: node.pool, members, verdicts })
    }

    /// The class that stands in the way most, for the refusal: the first of which no node has
    /// enough, or else the first that was asked for.
    fn scarcest(&self, wanted: &Wanted<'_>) -> DenyCause {
        let most_free = |class: ClassNo| -> u64 {
            if let Some(number) = wanted.node {
                let node = entry(&self.nodes, number.0).filter(|n| n.is_available());
                let node = node.filter(|n| self.pool_suits(n.pool, wanted));
                return node.and_then(|n| n.class(class)).map_or(0, |c| c.free());
            }
            let pools = self.pools.iter().enumerate().filter_map(|(n, pool)| Some((n, pool.as_ref()?)));
            let asked = pools.filter(|(n, _)| wanted.pool.is_none_or(|p| p.0 as usize == *n));
            let suited = asked.filter(|(_, pool)| wanted.ttl <= self.ttl_max(pool, wanted.priority));
            let lists = suited.filter_map(|(_, pool)| pool.by_free.get(class.0 as usize)?.last());
            lists.map(|(free, _)| free).max().unwrap_or(0)
        };
        let all = wanted.asks.iter().map(|(class, quanta)| (*class, *quanta, most_free(*class)));
        let short = all.clone().find(|(_, quanta, free)| quanta.0 > *free);
        let (class, requested, free) = short.or_else(|| all.clone().next()).expect("a request asks for something");
        DenyCause::Capacity { class, requested, most_free: Quanta(free) }
    }
}
