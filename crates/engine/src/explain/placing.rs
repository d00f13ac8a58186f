//! Where a gang goes, replica by replica, and what each found: placed one after the other, as deciding does.

use super::{Deciding, deciding};
use crate::allocation::Allocation;
use crate::decide::dispatch::Promises;
use crate::gang::{GangAsk, NoGang, NodeQuotas, Spot, spot};
use crate::node::Node;
use crate::placement::{Explained, Placed, Tentative, Unfit};
use crate::preempt::Sacrifice;
use crate::state::State;
use crate::view::View;
use leasehold_model::{DenyCause, Instant, NodeNo, PoolNo};
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
    pub(super) waits: &'a Allocation,
    /// The one node that it is meant for.
    named: Option<NodeNo>,
    pub(super) now: Instant,
    promises: Promises,
    of_nodes: NodeQuotas,
}

/// Those that have a place, in order; all of them unless something stands in the way.
pub(super) struct Found {
    places: Vec<Placed>,
    pub(super) denied: Option<DenyCause>,
}

impl<'a> Placing<'a> {
    /// Who stands first is found anew: only deciding remembers it.
    pub(super) fn new(view: View<'a>, waits: &'a Allocation, named: Option<NodeNo>, now: Instant) -> Self {
        let promises = Promises::new(view.heads_before(waits, now));
        let quotas = view.gang_quotas(waits.tenant, waits.project, &waits.spec, now);
        let of_nodes = quotas.map_or_else(|_| NodeQuotas::new(), |(_, of_nodes)| of_nodes);
        Self { view, waits, named, now, promises, of_nodes }
    }

    fn may_use(&self, node: &Node) -> bool {
        self.promises.allow(self.view, node, self.now, self.waits.spec.walltime)
    }

    /// Places all replicas; where that cannot be, as many as find a place.
    pub(super) fn place(&self) -> Found {
        let allow = |node: &Node| self.named.is_none_or(|named| named == node.number) && self.may_use(node);
        let ask = GangAsk::of(self.waits, self.now, &allow);
        let denied = match self.view.place_gang(&ask, &mut Tentative::default()) {
            Ok(gang) => return Found { places: gang.places, denied: None },
            Err(NoGang::Quota(cause)) => cause,
            Err(NoGang::Room) => {
                let suits = |node: &Node| self.view.suits(node, &ask);
                self.view.scarcest(&State::wanted(&ask, &self.of_nodes, Tentative::NOTHING, &[], &suits))
            }
        };
        let mut places: Vec<Placed> = Vec::new();
        let mut tentative = Tentative::default();
        for _ in 0..self.waits.spec.replicas {
            let peers: Vec<NodeNo> = places.iter().map(|placed| placed.node).collect();
            let room = Room::after(self, &peers, self.home(&peers));
            let within = |node: &Node| room.elsewhere(node).is_none();
            match self.view.best_place(&ask, &self.of_nodes, &tentative, &peers, &within) {
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
        let domain = self.waits.spec.together.filter(|_| self.waits.spec.replicas > 1)?;
        spot(self.view.node(*peers.first()?)?, domain)
    }

    /// The nodes as one replica finds them, and which one that is: the one that is asked for, or the first; of a gang
    /// that cannot start, the first that finds no place.
    pub(super) fn nodes_for(&self, found: &Found, replica: Option<u32>, top: usize) -> (Explained, u32) {
        let last = self.waits.spec.replicas.max(1);
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
        let ask = GangAsk::of(self.waits, self.now, &|_| true);
        let allow = |node: &Node| self.may_use(node);
        let wanted = State::wanted(&ask, &self.of_nodes, tentative, peers, &allow);
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
        if self.named.is_some() {
            return Vec::new();
        }
        // Where another is to start, nothing is evicted for one that goes after it.
        let spare = |node: &Node| self.promises.allow(self.view, node, self.now, None);
        self.view.sacrifices(&GangAsk::of(self.waits, self.now, &spare), &self.of_nodes, top)
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
        let apart = placing.waits.spec.apart;
        let spots = peers.iter().filter_map(|peer| spot(placing.view.node(*peer)?, apart?));
        Self { placing, home, taken: spots.collect() }
    }

    fn elsewhere(&self, node: &Node) -> Option<Unfit> {
        let Placing { view, waits, named, .. } = self.placing;
        let spec = &waits.spec;
        let pool_allows = || view.pool(node.pool).is_some_and(|pool| view.gang_ttl(pool, spec).is_some());
        if named.is_some_and(|named| named != node.number) {
            return Some(Unfit::Elsewhere);
        }
        if !pool_allows() {
            return Some(Unfit::Ttl);
        }
        if let Some(domain) = spec.together.filter(|_| spec.replicas > 1) {
            let here = spot(node, domain);
            if here.is_none() || self.home.is_some() && here != self.home {
                return Some(Unfit::Together);
            }
        }
        let stands_alone = |domain| spot(node, domain).is_some_and(|spot| !self.taken.contains(&spot));
        (!spec.apart.is_none_or(stands_alone)).then_some(Unfit::Apart)
    }
}
