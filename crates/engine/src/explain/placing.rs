//! Where a gang goes, replica by replica, and what each found: placed one after the other, as deciding does.

use super::{Deciding, deciding};
use crate::admission::NodeQuotas;
use crate::ask::Ask;
use crate::decide::dispatch::AssuredStarts;
use crate::gang::{NoGang, Spot, spot};
use crate::node::Node;
use crate::placement::{Explained, Placed, Tentative, Unfit, Wanted};
use crate::preempt::Sacrifice;
use crate::view::View;
use leasehold_model::{DenyCause, NodeNo, PoolNo};
use std::collections::BTreeSet;

/// Replicas that are told one by one: each means scoring every node.
const REPLICAS_TOLD: usize = 16;

/// Where one replica goes, and by what it goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaPlace {
    pub node: NodeNo,
    pub pool: PoolNo,
    /// In units of 2^-20.
    pub score: u64,
    pub deciding: Option<Deciding>,
}

/// The question: what is asked for, and what is promised to those that go before.
pub(super) struct Placing<'a> {
    view: View<'a>,
    ask: Ask<'a>,
    assured: AssuredStarts,
    of_nodes: NodeQuotas,
}

/// Those that have a place, in order; all of them unless something stands in the way.
pub(super) struct Found {
    places: Vec<Placed>,
    pub(super) denied: Option<DenyCause>,
}

impl<'a> Placing<'a> {
    /// Who stands first is found anew: only deciding remembers it.
    pub(super) fn new(view: View<'a>, ask: Ask<'a>) -> Self {
        let assured = AssuredStarts::new(view.heads_before(&ask));
        let of_nodes = view.admission(&ask).map_or_else(|_| NodeQuotas::new(), |(_, of_nodes)| of_nodes);
        Self { view, ask, assured, of_nodes }
    }

    fn may_use(&self, node: &Node) -> bool {
        self.assured.allow(self.view, node, self.ask.now, self.ask.walltime)
    }

    /// Places all replicas; where that cannot be, as many as find a place.
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
            let room = Room::after(self, &peers, self.home(&peers));
            let within = |node: &Node| room.elsewhere(node).is_none();
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

    /// In which rack, zone or node all lie, where they must lie together and one has its place.
    fn home(&self, peers: &[NodeNo]) -> Option<Spot> {
        spot(self.view.node(*peers.first()?)?, self.ask.home()?)
    }

    /// The nodes as one replica finds them, and which one that is: the one that is asked for, or the first; of a gang
    /// that cannot start, the first that finds no place.
    pub(super) fn nodes_for(&self, found: &Found, replica: Option<u32>, top: usize) -> (Explained, u32) {
        let last = self.ask.replicas.max(1);
        let stuck = || u32::try_from(found.places.len()).unwrap_or(u32::MAX).saturating_add(1).min(last);
        let number = match (&found.denied, replica) {
            (None, asked) => asked.unwrap_or(1).clamp(1, last),
            (Some(_), _) => stuck(),
        };
        (self.nodes_after(found, number as usize - 1, top), number)
    }

    /// The nodes as they are once so many have their place.
    fn nodes_after(&self, found: &Found, before: usize, top: usize) -> Explained {
        let (before, rest) = found.places.split_at(before.min(found.places.len()));
        let peers: Vec<NodeNo> = before.iter().map(|placed| placed.node).collect();
        let mut tentative = Tentative::default();
        before.iter().for_each(|placed| tentative.take(&self.view, placed, &self.of_nodes));
        let told = |home| self.tell(&tentative, &peers, home, top);
        let explained = told(self.home(&peers));
        let winner = rest.first().map(|placed| placed.node).filter(|_| found.denied.is_none());
        let is_first = |node| explained.best.first().is_some_and(|best| best.node == node);
        match winner {
            // Better places lie where not all of the gang has room together.
            Some(node) if !is_first(node) => told(self.home(&[node])),
            _ => explained,
        }
    }

    fn tell(&self, tentative: &Tentative, peers: &[NodeNo], home: Option<Spot>, top: usize) -> Explained {
        let room = Room::after(self, peers, home);
        let allow = |node: &Node| self.may_use(node);
        let ask = Ask { allow: Some(&allow), ..self.ask };
        let wanted = Wanted { peers, tentative, ..Wanted::one(&ask, &self.of_nodes) };
        self.view.explain(&wanted, &|node| room.elsewhere(node), top)
    }

    /// Where each goes, and by what.
    pub(super) fn replicas(&self, found: &Found) -> Vec<ReplicaPlace> {
        if found.denied.is_some() {
            return Vec::new();
        }
        let told = (0..).zip(found.places.iter().take(REPLICAS_TOLD));
        let place = |(before, placed): (usize, &Placed)| {
            let nodes = self.nodes_after(found, before, 2);
            let score = nodes.best.first().map_or(0, |best| best.score);
            ReplicaPlace { node: placed.node, pool: placed.pool, score, deciding: deciding(&nodes.best) }
        };
        told.map(place).collect()
    }

    /// What would have to fall for one replica. One that names its node is meant for that node or not at all.
    pub(super) fn sacrifices(&self, top: usize) -> Vec<Sacrifice> {
        if self.ask.node.is_some() {
            return Vec::new();
        }
        // Where another is to start, nothing is evicted for one that goes after it.
        let spare = |node: &Node| self.assured.allow(self.view, node, self.ask.now, None);
        self.view.sacrifices(&Ask { allow: Some(&spare), ..self.ask }, &self.of_nodes, top)
    }
}

/// Where one more replica may lie at all, whatever is free there.
struct Room<'a> {
    placing: &'a Placing<'a>,
    home: Option<Spot>,
    taken: BTreeSet<Spot>,
}

impl<'a> Room<'a> {
    fn after(placing: &'a Placing<'a>, peers: &[NodeNo], home: Option<Spot>) -> Self {
        let apart = placing.ask.apart;
        let spots = peers.iter().filter_map(|peer| spot(placing.view.node(*peer)?, apart?));
        Self { placing, home, taken: spots.collect() }
    }

    fn elsewhere(&self, node: &Node) -> Option<Unfit> {
        let ask = &self.placing.ask;
        if let Some(domain) = ask.home() {
            let here = spot(node, domain);
            if here.is_none() || self.home.is_some() && here != self.home {
                return Some(Unfit::Together);
            }
        }
        let stands_alone = |domain| spot(node, domain).is_some_and(|spot| !self.taken.contains(&spot));
        (!ask.apart.is_none_or(stands_alone)).then_some(Unfit::Apart)
    }
}
