//! Places a gang: its replicas one by one, each on the best node after the earlier ones have been placed.

use crate::admission::{NodeQuotas, Terms};
use crate::ask::{Allow, Ask};
use crate::node::Node;
use crate::placement::{Placed, Tentative, Wanted};
use crate::state::State;
use crate::view::View;
use leasehold_model::body::{Member, Members};
use leasehold_model::{ClassNo, DenyCause, Domain, Measure, Name, NodeNo, NodeScope, Quanta};
use std::collections::{BTreeMap, BTreeSet};

/// A placed gang: a node for each replica, and the quota terms of its leases.
pub(crate) struct Gang {
    pub(crate) places: Vec<Placed>,
    pub(crate) terms: Terms,
}

/// Why a gang cannot be placed: a quota denies it, or there is not enough free capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoGang {
    Quota(DenyCause),
    Room,
}

/// The replicas that are already placed: their nodes, and the domains that later replicas must avoid.
#[derive(Default)]
struct PlacedReplicas {
    peers: Vec<NodeNo>,
    domains: BTreeSet<DomainId>,
}

/// The identity of a domain: a particular rack or zone, or a node for `Domain::Node`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DomainId {
    Node(NodeNo),
    Named(Name),
}

/// The rack, zone or node that a node belongs to; `None` if it has no rack or zone.
pub(crate) fn domain_of(node: &Node, domain: Domain) -> Option<DomainId> {
    match domain {
        Domain::Node => Some(DomainId::Node(node.number)),
        Domain::Rack => node.rack.clone().map(DomainId::Named),
        Domain::Zone => node.zone.clone().map(DomainId::Named),
    }
}

impl View<'_> {
    /// Places all replicas, or returns why that is impossible. Their capacity is added to `tentative`.
    pub(crate) fn place_gang(&self, ask: &Ask<'_>, tentative: &mut Tentative) -> Result<Gang, NoGang> {
        let (terms, of_nodes) = self.admission(ask).map_err(NoGang::Quota)?;
        let Some(domain) = ask.home() else {
            return self.place_replicas(ask, terms, &of_nodes, tentative, None);
        };
        // Try the domain of the best node for a first replica, then the next untried one.
        let mut tried: BTreeSet<DomainId> = BTreeSet::new();
        let mut quota_denial = None;
        loop {
            let has_domain = |node: &Node| ask.apart.is_none_or(|domain| domain_of(node, domain).is_some());
            let untried =
                |node: &Node| has_domain(node) && domain_of(node, domain).is_some_and(|id| !tried.contains(&id));
            let first = match self.best_place(ask, &of_nodes, tentative, &[], Some(&untried)) {
                Ok(first) => first,
                // If a domain has the capacity and only a quota denies it, the quota is the reason.
                Err(none) => return Err(quota_denial.map_or(none, NoGang::Quota)),
            };
            let node = self.node(first.node).expect("the chosen node exists");
            let here = domain_of(node, domain).expect("only nodes with a domain are searched");
            let mut trial = tentative.clone();
            let within = |node: &Node| domain_of(node, domain).as_ref() == Some(&here);
            match self.place_replicas(ask, terms.clone(), &of_nodes, &mut trial, Some(&within)) {
                Ok(gang) => {
                    *tentative = trial;
                    return Ok(gang);
                }
                Err(none) => {
                    if let NoGang::Quota(cause) = none {
                        quota_denial.get_or_insert(cause);
                    }
                    tried.insert(here);
                }
            }
        }
    }

    fn place_replicas(
        &self,
        ask: &Ask<'_>,
        mut terms: Terms,
        of_nodes: &NodeQuotas,
        tentative: &mut Tentative,
        within: Option<Allow<'_>>,
    ) -> Result<Gang, NoGang> {
        let mut places: Vec<Placed> = Vec::new();
        let mut earlier = PlacedReplicas::default();
        for _ in 0..ask.replicas {
            let placed = match self.place_next(ask, of_nodes, tentative, &mut earlier, within) {
                Ok(placed) => placed,
                Err(NoGang::Quota(cause)) => {
                    let cause = self.denial_of_whole_gang(cause, ask, of_nodes, (tentative.clone(), earlier), within);
                    return Err(NoGang::Quota(cause));
                }
                Err(NoGang::Room) => return Err(NoGang::Room),
            };
            tentative.take(self, &placed, of_nodes);
            for (quota, verdict) in &placed.verdicts {
                terms.add(*quota, *verdict).map_err(NoGang::Quota)?;
            }
            places.push(placed);
        }
        terms.settle();
        Ok(Gang { places, terms })
    }

    /// The best node for one more replica, given the earlier ones.
    fn place_next(
        &self,
        ask: &Ask<'_>,
        of_nodes: &NodeQuotas,
        tentative: &Tentative,
        earlier: &mut PlacedReplicas,
        within: Option<Allow<'_>>,
    ) -> Result<Placed, NoGang> {
        let apart = |node: &Node| match ask.apart {
            None => true,
            Some(domain) => domain_of(node, domain).is_some_and(|id| !earlier.domains.contains(&id)),
        };
        let is_allowed = |node: &Node| within.is_none_or(|within| within(node)) && apart(node);
        let within = if ask.apart.is_some() { Some(&is_allowed as Allow<'_>) } else { within };
        let placed = self.best_place(ask, of_nodes, tentative, &earlier.peers, within)?;
        earlier.peers.push(placed.node);
        if let Some(domain) = ask.apart {
            earlier.domains.extend(domain_of(self.node(placed.node).expect("the chosen node exists"), domain));
        }
        Ok(placed)
    }

    /// Extends the denial of a quota over several nodes, found at one of the replicas, to the whole gang: the remaining
    /// replicas are placed without quotas, as far as there is capacity, and counted.
    fn denial_of_whole_gang(
        &self,
        cause: DenyCause,
        ask: &Ask<'_>,
        of_nodes: &NodeQuotas,
        (mut tentative, mut earlier): (Tentative, PlacedReplicas),
        within: Option<Allow<'_>>,
    ) -> DenyCause {
        let (DenyCause::Quota { quota, .. } | DenyCause::KindQuota { quota, .. }) = cause else { return cause };
        let found = self.quota(quota).expect("a quota that denies exists");
        if found.scope.node == NodeScope::Each && found.measure != Measure::Nodes {
            return cause;
        }
        while earlier.peers.len() < ask.replicas as usize {
            match self.place_next(ask, &NodeQuotas::new(), &tentative, &mut earlier, within) {
                Ok(placed) => tentative.take(self, &placed, of_nodes),
                Err(_) => break,
            }
        }
        let counted = tentative.counted(found, found.holder_of(ask), NodeNo(u32::MAX));
        let all = if found.measure == Measure::Nodes { counted.new_nodes } else { counted.amount };
        found.denial_of_all(cause, all)
    }

    /// The best node for one more replica among those that `within` allows.
    pub(crate) fn best_place(
        &self,
        ask: &Ask<'_>,
        of_nodes: &NodeQuotas,
        tentative: &Tentative,
        peers: &[NodeNo],
        within: Option<Allow<'_>>,
    ) -> Result<Placed, NoGang> {
        let wanted = Wanted { ask, node_quotas: of_nodes, peers, tentative, within };
        match self.find(&wanted) {
            Some(placed) => Ok(placed),
            None if of_nodes.is_empty() => Err(NoGang::Room),
            None => Err(self.denial_by_quota(&wanted).map_or(NoGang::Room, NoGang::Quota)),
        }
    }

    /// Places the one replica of a lease request, with its quota terms, or returns why that is impossible.
    pub(crate) fn place_lease(&self, ask: &Ask<'_>) -> Result<(Placed, Terms), DenyCause> {
        let (mut terms, of_nodes) = self.admission(ask)?;
        let wanted = Wanted::one(ask, &of_nodes);
        let Some(placed) = self.find(&wanted) else {
            return Err(self.denial_by_quota(&wanted).unwrap_or_else(|| self.scarcest(&wanted)));
        };
        for (quota, verdict) in &placed.verdicts {
            terms.add(*quota, *verdict)?;
        }
        terms.settle();
        Ok((placed, terms))
    }
}

impl State {
    /// The devices that one replica would get on a node, with the tentative changes; `None` if it does not fit.
    pub(crate) fn fit(&self, node: &Node, ask: &Ask<'_>, tentative: &Tentative) -> Option<Members> {
        let classes = tentative.classes(node);
        let mut members = Members::new();
        for (class, quanta) in ask.asks {
            let devices = classes.iter().find(|c| c.class == *class)?.choose_devices(*quanta)?;
            members.push(Member { class: *class, quanta: *quanta, devices });
        }
        Some(members)
    }

    /// How many replicas an empty cluster could hold, counting up to the requested number; and whether any node has the
    /// labels.
    pub(crate) fn could_hold(&self, ask: &Ask<'_>) -> (u64, bool) {
        let wanted = u64::from(ask.replicas);
        let (mut most, mut labelled) = (0u64, false);
        // By the domain that all replicas must share, or `None` for the whole cluster: how many replicas fit, and the
        // domains in which at least one fits if they must be apart.
        let mut domains: BTreeMap<Option<DomainId>, (u64, BTreeSet<DomainId>)> = BTreeMap::new();
        for node in self.nodes() {
            let in_pool = ask.pool.is_none_or(|pool| pool == node.pool);
            // Ordinary work counts all nodes, because claimed ones will be released. Sensitive work counts the nodes that
            // its user has claimed.
            let in_reach = ask.claimer.is_none_or(|claimer| node.custody.is_open_to(Some(claimer)));
            if !in_pool || !in_reach || !ask.labels.iter().all(|label| node.labels.contains(label)) {
                continue;
            }
            labelled = true;
            let per_class = |(class, quanta): &(ClassNo, Quanta)| node.class(*class).map_or(0, |c| c.holds(*quanta));
            let here = ask.asks.iter().map(per_class).min().unwrap_or(0);
            let together = match ask.home() {
                None => None,
                Some(domain) => match domain_of(node, domain) {
                    None => continue,
                    id => id,
                },
            };
            let (fits, apart) = domains.entry(together).or_default();
            *fits = match ask.apart {
                None => fits.saturating_add(here),
                Some(domain) => {
                    apart.extend(domain_of(node, domain).filter(|_| here > 0));
                    apart.len() as u64
                }
            };
            most = most.max(*fits);
            if most >= wanted {
                break;
            }
        }
        (most, labelled)
    }
}
