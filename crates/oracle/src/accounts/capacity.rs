//! The capacity of each node by state (SEMANTICS 3), recomputed between any two neighbouring instants at which
//! something changed on the node.

use super::{Accounts, Tenure, overlap};
use ethnum::U256;
use leasehold_model::body::NodePut;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(super) enum NodeEvent {
    Put(NodePut),
    Deleted,
    Drained(bool),
    /// A maintenance window of the node began, or ended.
    InWindow(bool),
    /// When it was last seen, while it is lost.
    Lost(Option<Instant>),
    /// Being wiped, or quarantined.
    Unclean(bool),
}

/// Quanta × nanoseconds. The parts add up to the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    pub capacity: U256,
    pub held: U256,
    pub tearing_down: U256,
    pub reserved: U256,
    pub fenced: U256,
    pub offline: U256,
    pub idle: U256,
}

impl Shares {
    fn add(&mut self, other: &Self, times: U256) {
        self.capacity += other.capacity * times;
        self.held += other.held * times;
        self.tearing_down += other.tearing_down * times;
        self.reserved += other.reserved * times;
        self.fenced += other.fenced * times;
        self.offline += other.offline * times;
        self.idle += other.idle * times;
    }
}

/// An interval without changes, with the quanta of each state.
struct Still {
    pool: PoolNo,
    class: ClassNo,
    from: Instant,
    to: Instant,
    quanta: Shares,
}

#[derive(Default)]
struct Standing {
    put: Option<NodePut>,
    drained: bool,
    /// How many windows hold.
    windows: u32,
    unclean: bool,
    /// It turned out later that it was lost by then.
    lost: bool,
}

impl Accounts {
    /// By class, and by pool and node on request.
    ///
    /// # Panics
    /// If more than the capacity of a node is used at any instant.
    pub fn capacity(
        &self,
        window: (Instant, Instant),
        by_pool: bool,
        by_node: bool,
    ) -> BTreeMap<(Option<PoolNo>, Option<NodeNo>, ClassNo), Shares> {
        let mut sums: BTreeMap<_, Shares> = BTreeMap::new();
        let nodes: BTreeSet<NodeNo> = self.nodes.iter().map(|(_, node, _)| *node).collect();
        for node in nodes {
            for still in self.stills(node, window) {
                let length = overlap(window.0, window.1, still.from, still.to);
                let key = (by_pool.then_some(still.pool), by_node.then_some(node), still.class);
                if length > 0 && still.quanta.capacity > U256::ZERO {
                    sums.entry(key).or_default().add(&still.quanta, U256::from(length));
                }
            }
        }
        sums
    }

    fn stills(&self, node: NodeNo, window: (Instant, Instant)) -> Vec<Still> {
        let events: Vec<_> = self.nodes.iter().filter(|(_, of, _)| *of == node).collect();
        let tenures: Vec<&Tenure> = self.tenures.values().filter(|tenure| tenure.node == node).collect();
        let mut instants: Vec<Instant> = events.iter().map(|(at, ..)| *at).chain([window.0, window.1]).collect();
        for tenure in &tenures {
            instants.extend([tenure.from, tenure.to]);
            instants.extend(tenure.fence_due.into_iter().chain(tenure.closed_at));
        }
        let losses = self.losses(node);
        instants.extend(losses.iter().flat_map(|(from, to)| [*from, *to]));
        instants.extend(self.reserved.iter().filter(|(_, on, ..)| *on == node).map(|(at, ..)| *at));
        instants.retain(|at| *at >= window.0 && *at <= window.1);
        instants.sort_unstable();
        instants.dedup();
        let mut stills = Vec::new();
        for pair in instants.windows(2) {
            let mut standing = Standing::default();
            for (_, _, event) in events.iter().filter(|(at, ..)| *at <= pair[0]) {
                match event {
                    NodeEvent::Put(put) => standing.put = Some(put.clone()),
                    NodeEvent::Deleted => standing.put = None,
                    NodeEvent::Drained(drained) => standing.drained = *drained,
                    NodeEvent::InWindow(true) => standing.windows += 1,
                    NodeEvent::InWindow(false) => standing.windows -= 1,
                    NodeEvent::Lost(_) => {}
                    NodeEvent::Unclean(unclean) => standing.unclean = *unclean,
                }
            }
            standing.lost = losses.iter().any(|(from, to)| *from <= pair[0] && pair[0] < *to);
            let Some(put) = &standing.put else { continue };
            for (class, capacity) in &put.capacity {
                let of_class = tenures.iter().copied().filter(|tenure| tenure.class == *class);
                let reserved = U256::from(self.reserved_at(node, *class, pair[0]));
                let quanta = quanta_at(pair[0], of_class, U256::from(capacity.0), reserved, &standing);
                stills.push(Still { pool: put.pool, class: *class, from: pair[0], to: pair[1], quanta });
            }
        }
        stills
    }

    /// The intervals in which a node was lost, each from when it was last seen (SEMANTICS 11).
    fn losses(&self, number: NodeNo) -> Vec<(Instant, Instant)> {
        let (mut losses, mut lost) = (Vec::new(), None);
        for (at, _, event) in self.nodes.iter().filter(|(_, node, _)| *node == number) {
            match event {
                NodeEvent::Lost(Some(last_seen)) => lost = Some(*last_seen),
                NodeEvent::Lost(None) => losses.extend(lost.take().map(|from| (from, *at))),
                NodeEvent::Drained(_)
                | NodeEvent::InWindow(_)
                | NodeEvent::Unclean(_)
                | NodeEvent::Put(_)
                | NodeEvent::Deleted => {}
            }
        }
        losses.extend(lost.map(|from| (from, Instant::MAX)));
        losses
    }
}

fn quanta_at<'a>(
    at: Instant,
    tenures: impl Iterator<Item = &'a Tenure>,
    capacity: U256,
    reserved: U256,
    standing: &Standing,
) -> Shares {
    let mut shares = Shares { capacity, ..Shares::default() };
    if standing.lost {
        // All of it, whatever its leases do.
        shares.offline = capacity;
        return shares;
    }
    shares.reserved = reserved;
    let until = |instant: Option<Instant>| instant.unwrap_or(Instant::MAX);
    for tenure in tenures.filter(|tenure| tenure.from <= at && at < until(tenure.closed_at)) {
        let quanta = U256::from(tenure.quanta);
        if at < tenure.to {
            shares.held += quanta;
        } else if tenure.at_once {
            // There was no teardown: its capacity was free from its end on, even if that was noticed late.
        } else if at >= until(tenure.fence_due) {
            shares.fenced += quanta;
        } else {
            shares.tearing_down += quanta;
        }
    }
    let taken = shares.held + shares.tearing_down + shares.reserved + shares.fenced;
    let free = capacity.checked_sub(taken).expect("a node has what it holds");
    if standing.drained || standing.windows > 0 || standing.unclean {
        shares.offline = free;
    } else {
        shares.idle = free;
    }
    shares
}
