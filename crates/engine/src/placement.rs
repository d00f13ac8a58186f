//! Chooses the node for a request: filter, then score (SEMANTICS 5). `docs/reference/placement.md` has the formulas.
//!
//! The result is the same as scoring every node would give; `search.rs` finds it without scoring all of them.

mod bound;
mod curve;
mod explain;
mod index;
mod node_tree;
mod node_trees;
mod peers;
mod ranking;
mod score;
mod search;
mod stock;
mod tentative;

pub use explain::{Candidate, Exclusion, Explained};
pub use index::Placement;
use node_trees::NodeTrees;
pub(crate) use tentative::{Counted, Tentative};

use crate::ask::{Allow, Ask};
use crate::node::Node;
use crate::quota::Verdict;
use crate::state::{Pool, State, entry};
use crate::tally::Count;
use crate::view::View;
use leasehold_model::body::Members;
use leasehold_model::{ClassNo, DenyCause, NodeNo, PoolNo, Quanta, QuotaNo, Weighing};
use search::Search;

/// The query: where to place one more replica.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) ask: &'a Ask<'a>,
    /// Quotas whose verdict depends on the node, with the amount that the replica adds to each.
    pub(crate) node_quotas: &'a [(QuotaNo, Count)],
    /// Nodes of the replicas that were placed before; locality is measured to them.
    pub(crate) peers: &'a [NodeNo],
    /// The capacity that those replicas take.
    pub(crate) tentative: &'a Tentative,
    /// A further filter, for affinity.
    pub(crate) within: Option<Allow<'a>>,
}

/// The chosen node, and the devices on it.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    pub(crate) members: Members,
    /// The verdicts of the quotas that depend on the node, without [`Verdict::Within`].
    pub(crate) verdicts: Vec<(QuotaNo, Verdict)>,
    /// The weights by which the node was chosen; `None` if the request named the node.
    pub(crate) weighing: Option<Weighing>,
}

impl Pool {
    /// The weights by which its nodes are scored.
    pub fn weighing(&self) -> Weighing {
        self.weights.map_or(Weighing::Strategy(self.strategy), Weighing::Custom)
    }
}

impl<'a> Wanted<'a> {
    /// A query for the first replica: it has no peers, and nothing is taken yet.
    pub(crate) fn one(ask: &'a Ask<'a>, node_quotas: &'a [(QuotaNo, Count)]) -> Self {
        Self { ask, node_quotas, peers: &[], tentative: Tentative::NOTHING, within: None }
    }

    fn labels_suit(&self, node: &Node) -> bool {
        self.ask.labels.iter().all(|label| node.labels.contains(label))
    }

    /// Whether every node with enough capacity is suitable.
    fn takes_any(&self) -> bool {
        self.ask.labels.is_empty()
            && self.ask.allow.is_none()
            && self.within.is_none()
            && self.ask.walltime.is_none()
            && self.ask.start == self.ask.now
    }

    /// Whether a node passes the labels and the further filters.
    fn suits(&self, node: &Node) -> bool {
        self.labels_suit(node)
            && node.is_free_of_windows(self.ask.start, self.ask.walltime)
            && self.ask.allow.is_none_or(|allow| allow(node))
            && self.within.is_none_or(|within| within(node))
    }
}

impl View<'_> {
    /// The best node for a replica, or `None` if there is no candidate.
    pub(crate) fn find(&self, wanted: &Wanted<'_>) -> Option<Placed> {
        let found = match wanted.ask.node {
            Some(number) => self.named(number, wanted).filter(|node| self.judge(node, wanted).is_ok()),
            None => Search::new(*self, wanted).best(true).and_then(|number| self.node(number)),
        };
        let node = found?;
        let weighing = match wanted.ask.node {
            Some(_) => None,
            None => Some(self.pool(node.pool).expect("a node's pool exists").weighing()),
        };
        let members = self.fit(node, wanted.ask, wanted.tentative).expect("the search returns nodes that fit");
        let verdicts = self.judge(node, wanted).expect("the search returns nodes that quotas allow");
        Some(Placed { node: node.number, pool: node.pool, members, verdicts, weighing })
    }

    /// The quota denial for the node that would be chosen without quotas; `None` if no node has the capacity.
    pub(crate) fn denial_by_quota(&self, wanted: &Wanted<'_>) -> Option<DenyCause> {
        let without_quotas = match wanted.ask.node {
            Some(number) => self.named(number, wanted),
            None if wanted.node_quotas.is_empty() => None,
            None => Search::new(*self, wanted).best(false).and_then(|number| self.node(number)),
        };
        without_quotas.and_then(|node| self.judge(node, wanted).err())
    }

    /// The denial for lack of capacity. It names the first class of which no node has enough, or else the first class
    /// of the request.
    pub(crate) fn scarcest(&self, wanted: &Wanted<'_>) -> DenyCause {
        let all =
            wanted.ask.asks.iter().map(|(class, quanta)| (*class, *quanta, self.most_free(*class, *quanta, wanted)));
        let short = all.clone().find(|(_, quanta, free)| quanta.0 > *free);
        let (class, requested, free) = short.or_else(|| all.clone().next()).expect("a request asks for something");
        DenyCause::Capacity { class, requested, most_free: Quanta(free) }
    }

    /// The most of a class that such a request could get on one of the nodes that it may use.
    fn most_free(&self, class: ClassNo, quanta: Quanta, wanted: &Wanted<'_>) -> u64 {
        let on = |node: &Node| wanted.tentative.class(node, class).map_or(0, |class| class.room_for(quanta));
        let suits = |node: &&Node| {
            node.is_open_to(wanted.ask.claimer) && self.pool_suits(node.pool, wanted.ask) && wanted.suits(node)
        };
        if let Some(number) = wanted.ask.node {
            return self.node(number).filter(suits).map_or(0, on);
        }
        if !wanted.takes_any() || wanted.ask.claimer.is_some() || !wanted.tentative.is_empty() {
            return self.nodes().filter(suits).map(on).max().unwrap_or(0);
        }
        let pools = self.pools().filter(|(number, _)| self.pool_suits(*number, wanted.ask));
        let trees = pools.flat_map(|(number, _)| self.placement.trees.of_pool(number));
        let rows = self.pools().filter(|(number, _)| self.pool_suits(*number, wanted.ask));
        let rows = rows.flat_map(|(number, _)| self.placement.trees.rows_of(number)).filter(|row| row.class == class);
        let in_rows = rows.filter_map(|row| row.ranking.last()).map(|(free, _)| free);
        let spec = self.class(class).filter(|spec| spec.has_devices());
        let per_device = spec.map_or(0, |spec| spec.quanta_per_unit);
        trees.filter_map(|tree| tree.most_room(class, quanta, per_device)).chain(in_rows).max().unwrap_or(0)
    }
}

impl State {
    /// The node that the request names, if it is suitable and has the capacity.
    fn named(&self, number: NodeNo, wanted: &Wanted<'_>) -> Option<&Node> {
        let node = self
            .node(number)
            .filter(|node| node.is_open_to(wanted.ask.claimer) && self.pool_suits(node.pool, wanted.ask))?;
        (wanted.suits(node) && self.fit(node, wanted.ask, wanted.tentative).is_some()).then_some(node)
    }

    /// The verdicts of the quotas that depend on the node, without [`Verdict::Within`].
    pub(crate) fn judge(&self, node: &Node, wanted: &Wanted<'_>) -> Result<Vec<(QuotaNo, Verdict)>, DenyCause> {
        let mut verdicts = Vec::new();
        for (number, asked) in wanted.node_quotas {
            let quota = entry(&self.quotas, number.0).expect("a listed quota exists");
            let holder = quota.holder_of(wanted.ask);
            let (held, freed) = self.headroom_beside(quota, wanted.ask);
            let taken = Counted { held, freed, ..wanted.tentative.counted(quota, holder, node.number) };
            let at = Some((node.pool, node.number));
            let verdict = quota.judge(*asked, holder, at, wanted.ask.now, taken);
            match wanted.ask.heed(*number, verdict) {
                Verdict::Within => {}
                Verdict::Refused(cause) => return Err(cause),
                verdict => verdicts.push((*number, verdict)),
            }
        }
        Ok(verdicts)
    }
}
