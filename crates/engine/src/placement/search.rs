//! Finds the best node without scoring all of them: branch and bound over the trees (ADR 12).
//!
//! Each summary has an upper bound for the scores of the nodes under it, and the search expands the
//! highest bound first. It ends when no bound reaches the best score found. A bound that equals the
//! best score is expanded if a lower node number may be under it, because the lowest number wins among
//! equal scores. The result is therefore the same as scoring every node would give.

use super::Wanted;
use super::bound::{Bounds, RowBounds};
use super::node_tree::{FAN, NodeTree};
use super::node_trees::Row;
use super::peers::Peers;
use super::score::{ClassAsk, Scale, class_weight};
use super::stock::Stock;
use crate::heat::step_at;
use crate::node::Node;
use crate::view::View;
use leasehold_model::{NodeNo, PoolNo};
use smallvec::SmallVec;
use std::collections::BinaryHeap;

pub(super) struct Search<'a> {
    view: View<'a>,
    wanted: &'a Wanted<'a>,
    pub(super) asks: SmallVec<[ClassAsk; 4]>,
    weight_sum: u64,
    peers: Peers,
    /// The step of the heat grid at which the request is decided.
    step: u64,
}

/// The best found so far.
#[derive(Clone, Copy)]
struct Best {
    score: u64,
    node: NodeNo,
}

/// A tree with the values that stay constant during a search.
struct OpenTree<'s> {
    tree: &'s NodeTree,
    scale: Scale,
    bounds: Bounds,
}

/// A summary that the search may expand, packed into one number. Branches are ordered by their bound, then by
/// their lowest node number (lower is greater); the remaining bits locate the summary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Branch(u128);

#[expect(clippy::cast_possible_truncation, reason = "each part is read as long as it was written")]
impl Branch {
    fn new(bound: u64, first: NodeNo, open: usize, level: usize, index: usize) -> Self {
        let parts = [(u64::from(!first.0), 32), (open as u64, 24), (level as u64, 8), (index as u64, 32)];
        Self(parts.iter().fold(u128::from(bound), |word, (part, bits)| word << bits | u128::from(*part)))
    }
    fn bound(self) -> u64 {
        (self.0 >> 96) as u64
    }
    fn first(self) -> NodeNo {
        NodeNo(!((self.0 >> 64) as u32))
    }
    fn open(self) -> usize {
        (self.0 >> 40) as usize & 0xff_ffff
    }
    fn level(self) -> usize {
        (self.0 >> 32) as usize & 0xff
    }
    fn index(self) -> usize {
        self.0 as u32 as usize
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(view: View<'a>, wanted: &'a Wanted<'a>) -> Self {
        let ask = |(class, quanta): &(_, leasehold_model::Quanta)| {
            let spec = view.class(*class).expect("an asked class exists");
            let per_device = if spec.has_devices() { spec.quanta_per_unit } else { u64::MAX };
            ClassAsk {
                class: *class,
                quanta: quanta.0,
                weight: if wanted.ask.asks.len() == 1 {
                    1
                } else {
                    class_weight(wanted.ask.profile.map(|profile| profile.of(spec.kind)))
                },
                devices: if quanta.0 > per_device {
                    u32::try_from(quanta.0 / per_device).unwrap_or(u32::MAX)
                } else {
                    0
                },
            }
        };
        let asks: SmallVec<[ClassAsk; 4]> = wanted.ask.asks.iter().map(ask).collect();
        let weight_sum = asks.iter().map(|ask| ask.weight).sum();
        let peers = Peers::of(view, wanted.peers);
        Self { view, wanted, asks, weight_sum, peers, step: step_at(wanted.ask.now, view.settings.heat_half_life) }
    }

    pub(super) fn scale(&self, pool: PoolNo) -> Scale {
        let pool = self.view.pool(pool).expect("a node's pool exists");
        let classes = self.asks.len() as u64;
        Scale { weights: pool.weighing().weights(), weight_sum: self.weight_sum, classes }
    }

    pub(super) fn heat(&self, node: &Node) -> u16 {
        node.heat.at_step(self.step)
    }

    pub(super) fn locality(&self, node: &Node) -> u64 {
        if self.peers.is_none() {
            return 0;
        }
        let (zone, rack) = self.view.placement.trees.site(node);
        self.peers.locality(node.number, zone, rack)
    }

    /// A node's stock of each requested class, with the tentative changes; `None` if it lacks a class.
    pub(super) fn stocks(&self, node: &Node) -> Option<SmallVec<[Stock; 4]>> {
        let classes = self.wanted.tentative.classes(node);
        let stock = |ask: &ClassAsk| classes.iter().find(|class| class.class == ask.class).map(Stock::of);
        self.asks.iter().map(stock).collect()
    }

    /// The node with the highest score, the lowest number among equals.
    pub(super) fn best(&self, check_quotas: bool) -> Option<NodeNo> {
        let mut best = None;
        // Claimed nodes are in no tree; a user has few of them.
        if let Some(claimer) = self.wanted.ask.claimer {
            for number in self.view.claimed.nodes_of(claimer) {
                self.score_one(number, check_quotas, &mut best);
            }
            return best.map(|best| best.node);
        }
        // The score of these nodes depends on more than their tree contains, so they are scored one by one.
        let untouched = |node: &NodeNo| !self.wanted.tentative.touches(*node);
        let close = self.peers.close(&self.view.placement.trees).filter(untouched);
        for number in self.wanted.tentative.nodes() {
            self.score_one(number, check_quotas, &mut best);
        }
        for number in close {
            match self.view.placement.trees.stocks(number).filter(|(tree, _)| !tree.is_hot) {
                Some((tree, stocks)) => self.score_indexed(number, tree, stocks, check_quotas, &mut best),
                None => self.score_one(number, check_quotas, &mut best),
            }
        }
        let mut opened: SmallVec<[OpenTree<'_>; 16]> = SmallVec::new();
        let mut branches = BinaryHeap::new();
        for pool in self.pools() {
            let scale = self.scale(pool);
            for tree in self.view.placement.trees.of_pool(pool) {
                let Some(bounds) = Bounds::new(scale, &self.asks, tree) else { continue };
                opened.push(OpenTree { tree, scale, bounds });
                if opened.len() == 1 {
                    branches.reserve(64);
                }
                self.branch(&opened, opened.len() - 1, tree.top(), 0, best, &mut branches);
            }
            for row in self.view.placement.trees.rows_of(pool) {
                self.search_row(row, scale, check_quotas, &mut best);
            }
        }
        while let Some(branch) = branches.pop() {
            if !can_win(best, branch.bound(), branch.first()) {
                break;
            }
            match branch.level().checked_sub(1) {
                None => self.score_leaf(&opened[branch.open()], branch.index(), check_quotas, &mut best),
                Some(below) => self.branch(&opened, branch.open(), below, branch.index() * FAN, best, &mut branches),
            }
        }
        best.map(|best| best.node)
    }

    /// The pools that the request may use.
    fn pools(&self) -> impl Iterator<Item = PoolNo> {
        let named = self.wanted.ask.pool.into_iter().filter(|pool| self.view.pool(*pool).is_some());
        let every = self.view.pools().map(|(pool, _)| pool).filter(|_| self.wanted.ask.pool.is_none());
        named.chain(every).filter(|pool| self.view.pool_suits(*pool, self.wanted.ask))
    }

    /// Adds the summaries that may contain a better node, of the `FAN` summaries of a level from `from` on.
    fn branch(
        &self,
        opened: &[OpenTree<'_>],
        number: usize,
        level: usize,
        from: usize,
        best: Option<Best>,
        branches: &mut BinaryHeap<Branch>,
    ) {
        let open = &opened[number];
        for (index, summary) in open.tree.summaries(level).iter().enumerate().skip(from).take(FAN) {
            let heat = if open.tree.is_hot { summary.heat.at_step(self.step) } else { 0 };
            let locality = if self.peers.is_none() { 0 } else { self.peers.locality_within(summary.zones) };
            let Some(bound) = open.bounds.bound(open.tree.ranges(level, index), locality, heat) else { continue };
            if can_win(best, bound, summary.first) {
                branches.push(Branch::new(bound, summary.first, number, level, index));
            }
        }
    }

    /// Searches a row from both ends, the better one first, until no node between them can win.
    fn search_row(&self, row: &Row, scale: Scale, check_quotas: bool, best: &mut Option<Best>) {
        let [ask] = self.asks.as_slice() else { return };
        if ask.class != row.class {
            return;
        }
        let locality = self.peers.locality_of_zone(row.zone);
        let bounds = RowBounds::new(scale, *ask, row.total, locality);
        let (Some(mut low), Some((mut high, _))) = (row.ranking.least_from(ask.quanta), row.ranking.last()) else {
            return;
        };
        loop {
            let (bound, at_high) = bounds.of(low, high);
            if best.is_some_and(|best| bound < best.score) {
                return;
            }
            let free = if at_high { high } else { low };
            let score = bounds.score(free);
            let (equals, below) = row.ranking.equal_to(free);
            for node in equals {
                if !can_win(*best, score, node) {
                    break;
                }
                if !self.is_scored_already(node) && self.admits(node, check_quotas) {
                    *best = Some(Best { score, node });
                }
            }
            if low == high {
                return;
            }
            if at_high {
                high = below.expect("the lower end is left");
            } else {
                low = row.ranking.least_from(low + 1).expect("the upper end is left");
            }
        }
    }

    /// Scores the nodes of a leaf.
    fn score_leaf(&self, open: &OpenTree<'_>, index: usize, check_quotas: bool, best: &mut Option<Best>) {
        let leaf = open.tree.leaf(index);
        for (index, slot) in leaf.slots.iter().enumerate() {
            let stocks = open.tree.stocks(leaf, index);
            let locality = if self.peers.is_none() { 0 } else { self.peers.locality_of_zone(slot.zone) };
            let stock = |ask: usize| &stocks[open.bounds.column(ask)];
            let Some(terms) = open.scale.terms_of(&self.asks, stock, locality) else { continue };
            let heat = if open.tree.is_hot { leaf.heat(index).at_step(self.step) } else { 0 };
            let (score, node) = (open.scale.total(&terms, heat), slot.key.node);
            if can_win(*best, score, node) && !self.is_scored_already(node) && self.admits(node, check_quotas) {
                *best = Some(Best { score, node });
            }
        }
    }

    /// As [`Self::score_one`], for a node of a tree that is not hot: its indexed stocks are all that is needed.
    fn score_indexed(
        &self,
        number: NodeNo,
        tree: &NodeTree,
        stocks: &[Stock],
        check_quotas: bool,
        best: &mut Option<Best>,
    ) {
        let stock = |ask: &ClassAsk| Some(&stocks[tree.classes.iter().position(|class| *class == ask.class)?]);
        let Some(stocks) = self.asks.iter().map(stock).collect::<Option<SmallVec<[&Stock; 4]>>>() else { return };
        if !self.asks.iter().zip(&stocks).all(|(ask, stock)| ask.fits(stock.room, stock.whole))
            || !self.view.pool_suits(tree.pool, self.wanted.ask)
        {
            return;
        }
        let listing = self.view.placement.trees.listing(number).expect("a indexed node has a spot");
        let locality = self.peers.locality(number, listing.zone, listing.rack);
        let scale = self.scale(tree.pool);
        let Some(terms) = scale.terms_of(&self.asks, |ask| stocks[ask], locality) else { return };
        let score = scale.total(&terms, 0);
        if can_win(*best, score, number) && self.admits(number, check_quotas) {
            *best = Some(Best { score, node: number });
        }
    }

    /// Whether a node is one of those that are scored one by one.
    fn is_scored_already(&self, node: NodeNo) -> bool {
        if self.wanted.tentative.touches(node) {
            return true;
        }
        let rack = || self.view.placement.trees.listing(node).expect("a indexed node has a spot").rack;
        !self.peers.is_none() && self.peers.is_close(node, rack())
    }

    fn score_one(&self, number: NodeNo, check_quotas: bool, best: &mut Option<Best>) {
        let node = self.view.node(number).expect("a listed node exists");
        if !node.is_open_to(self.wanted.ask.claimer) || !self.view.pool_suits(node.pool, self.wanted.ask) {
            return;
        }
        let Some(stocks) = self.stocks(node) else { return };
        let stock = |ask: usize| &stocks[ask];
        let scale = self.scale(node.pool);
        let Some(terms) = scale.terms_of(&self.asks, stock, self.locality(node)) else { return };
        let score = scale.total(&terms, self.heat(node));
        if can_win(*best, score, number) && self.admits(number, check_quotas) {
            *best = Some(Best { score, node: number });
        }
    }

    /// Whether a node passes the filters other than capacity.
    fn admits(&self, number: NodeNo, check_quotas: bool) -> bool {
        if self.wanted.takes_any() && (!check_quotas || self.wanted.node_quotas.is_empty()) {
            return true;
        }
        let node = self.view.node(number).expect("a listed node exists");
        self.wanted.suits(node) && (!check_quotas || self.view.judge(node, self.wanted).is_ok())
    }
}

/// Whether a node with this score and this number would be better. For a bound, `node` is the lowest number under it.
#[inline]
fn can_win(best: Option<Best>, score: u64, node: NodeNo) -> bool {
    best.is_none_or(|best| score > best.score || score == best.score && node < best.node)
}
