//! Explains the placement of a gang, replica by replica, in the same order in which the engine places them.

use super::{Deciding, deciding};
use crate::admission::NodeQuotas;
use crate::ask::Ask;
use crate::decide::guard::AssuredStarts;
use crate::gang::{DomainId, NoGang, domain_of};
use crate::node::Node;
use crate::placement::{Exclusion, Explained, Placed, Tentative, Wanted};
use crate::preempt::PossibleEviction;
use crate::view::View;
use leasehold_model::{DenyCause, NodeNo, PoolNo};
use std::collections::BTreeSet;

/// How many replicas are explained at most, because each of them means scoring every node.
const REPLICAS_EXPLAINED_MAX: usize = 16;

/// Where one replica is placed, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaPlace {
    pub node: NodeNo,
    pub pool: PoolNo,
    /// In units of 2^-20.
    pub score: u64,
    pub deciding: Option<Deciding>,
}

/// The request to explain, and the capacity that is reserved for higher-ranked allocations.
pub(super) struct Placing<'a> {
    view: View<'a>,
    ask: Ask<'a>,
    assured: AssuredStarts,
    of_nodes: NodeQuotas,
}

/// The replicas that can be placed, in order; all of them unless the gang is denied.
pub(super) struct Found {
    places: Vec<Placed>,
    pub(super) denied: Option<DenyCause>,
}

impl<'a> Placing<'a> {
    /// Recomputes the heads of the queue, because only the engine's scheduler remembers them.
    pub(super) fn new(view: View<'a>, ask: Ask<'a>) -> Self {
        let assured = AssuredStarts::new(view.heads_before(&ask));
        let of_nodes = view.admission(&ask).map_or_else(|_| NodeQuotas::new(), |(_, of_nodes)| of_nodes);
        Self { view, ask, assured, of_nodes }
    }

    fn may_use(&self, node: &Node) -> bool {
        self.assured.allow(self.view, node, self.ask.now, self.ask.stay())
    }

    /// Places all replicas; if that is impossible, as many as fit.
    pub(super) fn place(&self) -> Found {
        let allow = |node: &Node| self.may_use(node);
        let ask = Ask { allow: Some(&allow), ..self.ask };
        let denied = match self.view.place_gang(&ask, &mut Tentative::default()) {
            Ok(gang) => return Found { places: gang.places, denied: None },
            Err(NoGang::Quota(cause)) => cause,
            Err(NoGang::Room) => self.view.scarcest(&Wanted::one(&ask, &self.of_nodes)),
        };
        let mut places: Vec<Placed> = Vec::new();
        let mut tentative = Tentative::default();
        for _ in 0..ask.replicas {
            let peers: Vec<NodeNo> = places.iter().map(|placed| placed.node).collect();
            let affinity = AffinityRules::after(self, &peers, self.home(&peers));
            let within = |node: &Node| affinity.exclusion(node).is_none();
            match self.view.best_place(&ask, &self.of_nodes, &tentative, &peers, Some(&within)) {
                Ok(placed) => {
                    tentative.take(&self.view, &placed, &self.of_nodes);
                    places.push(placed);
                }
                Err(_) => break,
            }
        }
        Found { places, denied: Some(denied) }
    }

    /// The rack, zone or node that all replicas must share, once the first of them is placed.
    fn home(&self, peers: &[NodeNo]) -> Option<DomainId> {
        domain_of(self.view.node(*peers.first()?)?, self.ask.home()?)
    }

    /// The nodes as one replica finds them, and the number of that replica: the requested one, or the first. If the gang
    /// cannot start, it is the first replica that does not fit.
    pub(super) fn nodes_for(&self, found: &Found, replica: Option<u32>, top: usize) -> (Explained, u32) {
        let last = self.ask.replicas.max(1);
        let first_unplaced = || u32::try_from(found.places.len()).unwrap_or(u32::MAX).saturating_add(1).min(last);
        let number = match (&found.denied, replica) {
            (None, asked) => asked.unwrap_or(1).clamp(1, last),
            (Some(_), _) => first_unplaced(),
        };
        (self.nodes_after(found, number as usize - 1, top), number)
    }

    /// The nodes after the first `before` replicas have been placed.
    fn nodes_after(&self, found: &Found, before: usize, top: usize) -> Explained {
        let (before, rest) = found.places.split_at(before.min(found.places.len()));
        let peers: Vec<NodeNo> = before.iter().map(|placed| placed.node).collect();
        let mut tentative = Tentative::default();
        before.iter().for_each(|placed| tentative.take(&self.view, placed, &self.of_nodes));
        let explain = |home| self.explain_nodes(&tentative, &peers, home, top);
        let explained = explain(self.home(&peers));
        let winner = rest.first().map(|placed| placed.node).filter(|_| found.denied.is_none());
        let is_first = |node| explained.best.first().is_some_and(|best| best.node == node);
        match winner {
            // The better nodes are in domains in which the whole gang does not fit.
            Some(node) if !is_first(node) => explain(self.home(&[node])),
            _ => explained,
        }
    }

    fn explain_nodes(&self, tentative: &Tentative, peers: &[NodeNo], home: Option<DomainId>, top: usize) -> Explained {
        let affinity = AffinityRules::after(self, peers, home);
        let allow = |node: &Node| self.may_use(node);
        let ask = Ask { allow: Some(&allow), ..self.ask };
        let wanted = Wanted { peers, tentative, ..Wanted::one(&ask, &self.of_nodes) };
        self.view.explain(&wanted, &|node| affinity.exclusion(node), top)
    }

    /// Where each replica is placed, and why.
    pub(super) fn replicas(&self, found: &Found) -> Vec<ReplicaPlace> {
        if found.denied.is_some() {
            return Vec::new();
        }
        let numbered = (0..).zip(found.places.iter().take(REPLICAS_EXPLAINED_MAX));
        let place = |(before, placed): (usize, &Placed)| {
            let nodes = self.nodes_after(found, before, 2);
            let score = nodes.best.first().map_or(0, |best| best.score);
            ReplicaPlace { node: placed.node, pool: placed.pool, score, deciding: deciding(&nodes.best) }
        };
        numbered.map(place).collect()
    }

    /// What would have to be evicted for one replica.
    pub(super) fn possible_evictions(&self, top: usize) -> Vec<PossibleEviction> {
        // Nothing is evicted on nodes that are reserved for a higher-ranked allocation.
        let spare = |node: &Node| self.assured.allow(self.view, node, self.ask.now, self.ask.stay_after_eviction());
        self.view.possible_evictions(&Ask { allow: Some(&spare), ..self.ask }, &self.of_nodes, top)
    }
}

/// The affinity rules for one more replica, which do not depend on free capacity.
struct AffinityRules<'a> {
    placing: &'a Placing<'a>,
    home: Option<DomainId>,
    taken: BTreeSet<DomainId>,
}

impl<'a> AffinityRules<'a> {
    fn after(placing: &'a Placing<'a>, peers: &[NodeNo], home: Option<DomainId>) -> Self {
        let apart = placing.ask.apart;
        let domains = peers.iter().filter_map(|peer| domain_of(placing.view.node(*peer)?, apart?));
        Self { placing, home, taken: domains.collect() }
    }

    fn exclusion(&self, node: &Node) -> Option<Exclusion> {
        let ask = &self.placing.ask;
        if let Some(domain) = ask.home() {
            let here = domain_of(node, domain);
            if here.is_none() || self.home.is_some() && here != self.home {
                return Some(Exclusion::Together);
            }
        }
        let is_apart = |domain| domain_of(node, domain).is_some_and(|id| !self.taken.contains(&id));
        (!ask.apart.is_none_or(is_apart)).then_some(Exclusion::Apart)
    }
}
