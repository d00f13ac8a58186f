//! Where a gang goes: its replicas one by one, each at the best place that those before it leave.

use crate::allocation::Allocation;
use crate::custody::Claimer;
use crate::decide::admission::Terms;
use crate::node::Node;
use crate::placement::{Placed, Tentative, Wanted};
use crate::quota::Facts;
use crate::state::{Pool, State, entry};
use crate::view::View;
use leasehold_model::body::Members;
use leasehold_model::{
    AllocationSpec, ClassNo, DenyCause, Domain, Instant, Measure, Name, NodeNo, NodeScope, Priority, ProjectNo, Quanta,
    QuotaNo, Span, TenantNo,
};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// The question.
#[derive(Clone, Copy)]
pub(crate) struct GangAsk<'a> {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    /// Whose claimed nodes it goes to; none where it is not sensitive.
    pub(crate) claimer: Option<Claimer>,
    pub(crate) spec: &'a AllocationSpec,
    pub(crate) now: Instant,
    /// Nodes that it may not use, whatever is free there, are not allowed.
    pub(crate) allow: &'a dyn Fn(&Node) -> bool,
}

impl<'a> GangAsk<'a> {
    /// What one that waits asks.
    pub(crate) fn of(waits: &'a Allocation, now: Instant, allow: &'a dyn Fn(&Node) -> bool) -> Self {
        let (tenant, project, claimer) = (waits.tenant, waits.project, waits.claimer());
        Self { tenant, project, claimer, spec: &waits.spec, now, allow }
    }
}

/// The answer: a place for each replica.
pub(crate) struct Gang {
    pub(crate) places: Vec<Placed>,
    pub(crate) terms: Terms,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoGang {
    Quota(DenyCause),
    Room,
}

/// Replicas that have their place: their nodes, and the domains that others must keep away from.
#[derive(Default)]
struct Laid {
    peers: Vec<NodeNo>,
    spots: BTreeSet<Spot>,
}

/// Quotas whose answer depends on the node, with what one replica asks of each.
pub(crate) type NodeQuotas = SmallVec<[(QuotaNo, u64); 4]>;

/// In which rack or zone a node is; the node itself for `Domain::Node`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spot {
    Node(NodeNo),
    Named(Name),
}

pub(crate) fn spot(node: &Node, domain: Domain) -> Option<Spot> {
    match domain {
        Domain::Node => Some(Spot::Node(node.number)),
        Domain::Rack => node.rack.clone().map(Spot::Named),
        Domain::Zone => node.zone.clone().map(Spot::Named),
    }
}

impl State {
    /// What leases of a gang in this pool are granted for, before quotas; `None` if the pool does not allow it.
    pub(crate) fn gang_ttl(&self, pool: &Pool, spec: &AllocationSpec) -> Option<Span> {
        let longest = self.ttl_max(pool, spec.priority);
        if spec.ttl.is_some_and(|ttl| ttl > longest) {
            return None;
        }
        let lifetime = pool.lifetime_max.of(spec.priority);
        if let (Some(lifetime), Some(walltime)) = (lifetime, spec.walltime)
            && walltime > lifetime
        {
            return None;
        }
        let asked = spec.ttl.or(spec.walltime).unwrap_or(longest).min(longest);
        Some(spec.walltime.map_or(asked, |walltime| asked.min(walltime)))
    }

    pub(crate) fn facts(spec: &AllocationSpec, project: ProjectNo) -> SmallVec<[Facts; 2]> {
        let facts = |(class, quanta): &(ClassNo, Quanta)| Facts {
            project,
            class: *class,
            priority: spec.priority,
            quanta: quanta.0,
        };
        spec.asks.iter().map(facts).collect()
    }

    /// What the quotas say that do not look at nodes, and which ones do; then what ceilings say.
    pub(crate) fn gang_quotas(
        &self,
        tenant: TenantNo,
        project: ProjectNo,
        spec: &AllocationSpec,
        now: Instant,
    ) -> Result<(Terms, NodeQuotas), DenyCause> {
        let facts = Self::facts(spec, project);
        let mut terms = Terms::default();
        let mut of_nodes = NodeQuotas::new();
        let tenant = self.tenant(tenant).expect("an allocation's tenant exists");
        for number in &tenant.quotas {
            let quota = self.quota(*number).expect("a listed quota exists");
            if quota.counts_allocation(project, spec.priority) {
                terms.add(*number, quota.judge(1, None, now))?;
                continue;
            }
            let asked = quota.asked(&facts);
            if !quota.depends_on_node() {
                terms.add(*number, quota.judge(asked.saturating_mul(u64::from(spec.replicas)), None, now))?;
            } else if asked > 0 {
                of_nodes.push((*number, asked));
            }
        }
        self.judge_gang_cost(project, spec, now)?;
        Ok((terms, of_nodes))
    }
}

impl View<'_> {
    /// Places all replicas, or says why not. What they take is added to `tentative`.
    pub(crate) fn place_gang(&self, ask: &GangAsk<'_>, tentative: &mut Tentative) -> Result<Gang, NoGang> {
        let quotas = self.gang_quotas(ask.tenant, ask.project, ask.spec, ask.now);
        let (terms, of_nodes) = quotas.map_err(NoGang::Quota)?;
        let Some(domain) = ask.spec.together.filter(|_| ask.spec.replicas > 1) else {
            return self.place_replicas(ask, terms, &of_nodes, tentative, &|_| true);
        };
        // The domain of the best first place, then the next that was not tried.
        let mut tried: BTreeSet<Spot> = BTreeSet::new();
        let mut refused = None;
        loop {
            let lies_somewhere = |node: &Node| ask.spec.apart.is_none_or(|domain| spot(node, domain).is_some());
            let untried =
                |node: &Node| lies_somewhere(node) && spot(node, domain).is_some_and(|spot| !tried.contains(&spot));
            let first = match self.best_place(ask, &of_nodes, tentative, &[], &untried) {
                Ok(first) => first,
                // Where one domain has the room and only a quota stands against it, that is what it waits for.
                Err(none) => return Err(refused.map_or(none, NoGang::Quota)),
            };
            let node = self.node(first.node).expect("it was just found");
            let here = spot(node, domain).expect("only nodes with one are looked at");
            let mut trial = tentative.clone();
            let within = |node: &Node| spot(node, domain).as_ref() == Some(&here);
            match self.place_replicas(ask, terms.clone(), &of_nodes, &mut trial, &within) {
                Ok(gang) => {
                    *tentative = trial;
                    return Ok(gang);
                }
                Err(none) => {
                    if let NoGang::Quota(cause) = none {
                        refused.get_or_insert(cause);
                    }
                    tried.insert(here);
                }
            }
        }
    }

    fn place_replicas(
        &self,
        ask: &GangAsk<'_>,
        mut terms: Terms,
        of_nodes: &NodeQuotas,
        tentative: &mut Tentative,
        within: &dyn Fn(&Node) -> bool,
    ) -> Result<Gang, NoGang> {
        let mut places: Vec<Placed> = Vec::new();
        let mut laid = Laid::default();
        for _ in 0..ask.spec.replicas {
            let placed = match self.lay(ask, of_nodes, tentative, &mut laid, within) {
                Ok(placed) => placed,
                Err(NoGang::Quota(cause)) => {
                    let cause = self.asked_by_all(cause, ask, of_nodes, (tentative.clone(), laid), within);
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

    /// The best place for one more replica beside those that have theirs.
    fn lay(
        &self,
        ask: &GangAsk<'_>,
        of_nodes: &NodeQuotas,
        tentative: &Tentative,
        laid: &mut Laid,
        within: &dyn Fn(&Node) -> bool,
    ) -> Result<Placed, NoGang> {
        let apart = |node: &Node| match ask.spec.apart {
            None => true,
            Some(domain) => spot(node, domain).is_some_and(|spot| !laid.spots.contains(&spot)),
        };
        let placed = self.best_place(ask, of_nodes, tentative, &laid.peers, &|node| within(node) && apart(node))?;
        laid.peers.push(placed.node);
        if let Some(domain) = ask.spec.apart {
            laid.spots.extend(spot(self.node(placed.node).expect("it was just found"), domain));
        }
        Ok(placed)
    }

    /// What a quota over several nodes says of the whole gang, where it was found at one of the replicas: the others
    /// are laid as if it were not there, as far as there is room.
    fn asked_by_all(
        &self,
        cause: DenyCause,
        ask: &GangAsk<'_>,
        of_nodes: &NodeQuotas,
        (mut tentative, mut laid): (Tentative, Laid),
        within: &dyn Fn(&Node) -> bool,
    ) -> DenyCause {
        let DenyCause::Quota { quota, used, requested, limit } = cause else { return cause };
        let found = self.quota(quota).expect("a quota that stands in the way exists");
        if found.scope.node == NodeScope::Each && found.measure != Measure::Nodes {
            return cause;
        }
        while laid.peers.len() < ask.spec.replicas as usize {
            match self.lay(ask, &NodeQuotas::new(), &tentative, &mut laid, within) {
                Ok(placed) => tentative.take(self, &placed, of_nodes),
                Err(_) => break,
            }
        }
        let counted = tentative.counted(found, NodeNo(u32::MAX));
        let all = if found.measure == Measure::Nodes { counted.new_nodes } else { counted.amount };
        DenyCause::Quota { quota, used, requested: requested.max(all), limit }
    }

    /// The best place for one more replica.
    pub(crate) fn best_place(
        &self,
        ask: &GangAsk<'_>,
        of_nodes: &NodeQuotas,
        tentative: &Tentative,
        peers: &[NodeNo],
        within: &dyn Fn(&Node) -> bool,
    ) -> Result<Placed, NoGang> {
        let allow = |node: &Node| within(node) && self.suits(node, ask);
        let wanted = State::wanted(ask, of_nodes, tentative, peers, &allow);
        match self.find(&wanted) {
            Some(placed) => Ok(placed),
            None if of_nodes.is_empty() => Err(NoGang::Room),
            None => Err(self.denial_by_quota(&wanted).map_or(NoGang::Room, NoGang::Quota)),
        }
    }
}

impl State {
    /// Whether the spec allows this node at all.
    pub(crate) fn suits(&self, node: &Node, ask: &GangAsk<'_>) -> bool {
        node.is_open_to(ask.claimer)
            && ask.spec.pool.is_none_or(|pool| pool == node.pool)
            && ask.spec.labels.iter().all(|label| node.labels.contains(label))
            && (ask.allow)(node)
            && entry(&self.pools, node.pool.0).is_some_and(|pool| self.gang_ttl(pool, ask.spec).is_some())
    }

    /// The question that one more replica asks.
    pub(crate) fn wanted<'w>(
        ask: &'w GangAsk<'_>,
        of_nodes: &'w NodeQuotas,
        tentative: &'w Tentative,
        peers: &'w [NodeNo],
        allow: &'w dyn Fn(&Node) -> bool,
    ) -> Wanted<'w> {
        Wanted {
            pool: ask.spec.pool,
            node: None,
            asks: &ask.spec.asks,
            node_quotas: of_nodes,
            // Leases of a gang are granted for as long as their pool allows.
            ttl: Span::ZERO,
            priority: ask.spec.priority,
            now: ask.now,
            labels: &ask.spec.labels,
            profile: ask.spec.profile,
            peers,
            tentative,
            claimer: ask.claimer,
            allow: Some(allow),
        }
    }

    /// One replica on one node, as it is with what was taken.
    pub(crate) fn fit(&self, node: &Node, ask: &GangAsk<'_>, tentative: &Tentative) -> Option<Members> {
        self.members(node, &Self::wanted(ask, &NodeQuotas::new(), tentative, &[], &|_| true))
    }

    /// How many replicas an empty cluster could hold, counting no further than asked; and whether any node carries
    /// the labels.
    pub(crate) fn could_hold(&self, ask: &GangAsk<'_>) -> (u64, bool) {
        let wanted = u64::from(ask.spec.replicas);
        let (mut most, mut labelled) = (0u64, false);
        // What one domain holds, where all must lie in one; the whole cluster is one otherwise.
        let mut domains: BTreeMap<Option<Spot>, (u64, BTreeSet<Spot>)> = BTreeMap::new();
        for node in self.nodes() {
            let in_pool = ask.spec.pool.is_none_or(|pool| pool == node.pool);
            // What others have claimed comes back some day; what is open is not for sensitive work.
            let in_reach = ask.claimer.is_none_or(|claimer| node.custody.is_open_to(Some(claimer)));
            if !in_pool || !in_reach || !ask.spec.labels.iter().all(|label| node.labels.contains(label)) {
                continue;
            }
            labelled = true;
            let per_class = |(class, quanta): &(ClassNo, Quanta)| node.class(*class).map_or(0, |c| c.holds(*quanta));
            let here = ask.spec.asks.iter().map(per_class).min().unwrap_or(0);
            let together = match ask.spec.together.filter(|_| wanted > 1) {
                None => None,
                Some(domain) => match spot(node, domain) {
                    None => continue,
                    spot => spot,
                },
            };
            let (fits, spots) = domains.entry(together).or_default();
            *fits = match ask.spec.apart {
                None => fits.saturating_add(here),
                Some(domain) => {
                    spots.extend(spot(node, domain).filter(|_| here > 0));
                    spots.len() as u64
                }
            };
            most = most.max(*fits);
            if most >= wanted {
                break;
            }
        }
        (most, labelled)
    }

    /// The most that a priority may be granted for in any pool that the spec allows.
    pub(crate) fn longest_ttl(&self, spec: &AllocationSpec, priority: Priority) -> Span {
        let pools = self.pools().filter(|(number, _)| spec.pool.is_none_or(|pool| pool == *number));
        pools.map(|(_, pool)| self.ttl_max(pool, priority)).max().unwrap_or(self.settings.ttl_max)
    }
}
