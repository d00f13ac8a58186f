//! Explains a placement: the score of every candidate with its terms, and why the other nodes are excluded.

use super::Wanted;
use super::score::Terms;
use super::search::Search;
use crate::custody::Custody;
use crate::node::Node;
use crate::view::View;
use leasehold_model::{DenyCause, NodeNo, PoolNo, Weighing};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Why a node is not a candidate. The first reason that applies, in this order, is the one that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    Lost,
    Drained,
    /// Claimed for sensitive work by another user, or by any user if the request is not sensitive.
    Claimed,
    Wiping,
    Quarantined,
    /// Sensitive work runs only on nodes that its user has claimed.
    Unclaimed,
    /// The request names another node or another pool.
    Elsewhere,
    /// Its pool does not allow the TTL.
    Ttl,
    Labels,
    /// A maintenance window begins before the walltime would be over.
    Window,
    /// It is outside the rack, zone or node that all replicas must share.
    Together,
    /// It shares a rack, zone or node with another replica, or belongs to none.
    Apart,
    /// It lacks a requested class.
    Class,
    /// It has too little free, in all or in one piece.
    Capacity,
    /// It has the capacity, but that is reserved for a higher-ranked allocation.
    Reserved,
    /// A quota that depends on the node denies it.
    Quota,
}

impl Exclusion {
    /// The reason for a node whose custody does not admit the request.
    const fn of(custody: Custody) -> Self {
        match custody {
            Custody::Open => Self::Unclaimed,
            Custody::Claimed(_) => Self::Claimed,
            Custody::Wiping { .. } => Self::Wiping,
            Custody::Quarantined { .. } => Self::Quarantined,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Drained => "drained",
            Self::Claimed => "claimed",
            Self::Wiping => "wiping",
            Self::Quarantined => "quarantined",
            Self::Unclaimed => "unclaimed",
            Self::Elsewhere => "elsewhere",
            Self::Ttl => "ttl",
            Self::Labels => "labels",
            Self::Window => "window",
            Self::Together => "together",
            Self::Apart => "apart",
            Self::Class => "class",
            Self::Capacity => "capacity",
            Self::Reserved => "promised",
            Self::Quota => "quota",
        }
    }
}

/// The score of one node and its terms, in units of 2^-20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub node: NodeNo,
    pub pool: PoolNo,
    pub weighing: Weighing,
    pub pressure: u64,
    pub fit: u64,
    pub locality: u64,
    pub fragmentation: u64,
    /// Thousandths.
    pub heat: u16,
    pub score: u64,
}

/// The best candidates, best first, and how many nodes are excluded for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    pub best: Vec<Candidate>,
    pub candidates: u64,
    pub excluded: BTreeMap<Exclusion, u64>,
    /// The denial for the node with the highest score among those that only quotas exclude.
    pub quota: Option<DenyCause>,
}

impl View<'_> {
    /// Scores every node one by one, which is too slow for deciding. `affinity` returns why the affinity of the request
    /// excludes a node; a node that fails the filter `allow` of the ask is reserved for another allocation.
    pub(crate) fn explain(
        &self,
        wanted: &Wanted<'_>,
        affinity: &dyn Fn(&Node) -> Option<Exclusion>,
        top: usize,
    ) -> Explained {
        let search = Search::new(*self, wanted);
        let mut explained = Explained::default();
        let mut best_excluded: Option<(u64, Reverse<NodeNo>, DenyCause)> = None;
        for node in self.nodes() {
            let exclusion = match self.candidate(&search, node, wanted, affinity) {
                Ok(candidate) => match self.judge(node, wanted) {
                    Ok(_) => {
                        explained.best.push(candidate);
                        continue;
                    }
                    Err(cause) => {
                        let rank = (candidate.score, Reverse(node.number));
                        if best_excluded.is_none_or(|(score, number, _)| rank > (score, number)) {
                            best_excluded = Some((rank.0, rank.1, cause));
                        }
                        Exclusion::Quota
                    }
                },
                Err(exclusion) => exclusion,
            };
            *explained.excluded.entry(exclusion).or_insert(0) += 1;
        }
        explained.candidates = explained.best.len() as u64;
        explained.best.sort_by_key(|candidate| (Reverse(candidate.score), candidate.node));
        explained.best.truncate(top);
        explained.quota = best_excluded.map(|(_, _, cause)| cause);
        explained
    }

    fn candidate(
        &self,
        search: &Search<'_>,
        node: &Node,
        wanted: &Wanted<'_>,
        affinity: &dyn Fn(&Node) -> Option<Exclusion>,
    ) -> Result<Candidate, Exclusion> {
        let is_named = wanted.ask.node.is_none_or(|named| named == node.number);
        let in_pool = wanted.ask.pool.is_none_or(|named| named == node.pool);
        let reasons = [
            (node.lost, Exclusion::Lost),
            (node.is_drained(), Exclusion::Drained),
            (!node.custody.is_open_to(wanted.ask.claimer), Exclusion::of(node.custody)),
            (!is_named || !in_pool, Exclusion::Elsewhere),
            (!self.pool_suits(node.pool, wanted.ask), Exclusion::Ttl),
            (!wanted.labels_suit(node), Exclusion::Labels),
            (!node.is_free_of_windows(wanted.ask.start, wanted.ask.walltime), Exclusion::Window),
        ];
        let reasons = reasons.into_iter().find(|(exclusion, _)| *exclusion).map(|(_, exclusion)| exclusion);
        if let Some(exclusion) = reasons.or_else(|| affinity(node)) {
            return Err(exclusion);
        }
        let stocks = search.stocks(node).ok_or(Exclusion::Class)?;
        let scale = search.scale(node.pool);
        let terms =
            scale.terms_of(&search.asks, |ask| &stocks[ask], search.locality(node)).ok_or(Exclusion::Capacity)?;
        if !wanted.suits(node) {
            return Err(Exclusion::Reserved);
        }
        let heat = search.heat(node);
        let Terms { pressure, fit, locality, fragmentation } = terms;
        let score = scale.total(&terms, heat);
        let weighing = self.pool(node.pool).expect("a node's pool exists").weighing();
        let (node, pool) = (node.number, node.pool);
        Ok(Candidate { node, pool, weighing, pressure, fit, locality, fragmentation, heat, score })
    }
}
