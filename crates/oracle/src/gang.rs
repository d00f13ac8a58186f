//! Places a gang by trying every node for every replica.

use crate::capacity::ClassOnNode;
use crate::lease::Lease;
use crate::placement::{ClassSeen, NodeSeen, Site, score};
use crate::quota::{Demand, NodeInPool, Ruling};
use crate::request::Terms;
use crate::world::{Node, World};
use leasehold_model::body::{Member, Members, ReplicaPlacement};
use leasehold_model::{
    AllocationSpec, ClassNo, DenyCause, Domain, Instant, Name, NodeNo, PoolNo, ProjectNo, Quanta, Span, TenantNo,
    UserNo,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What is used on every node, with placements that are only tried included.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    classes: BTreeMap<(NodeNo, ClassNo), ClassOnNode>,
    /// The nodes of replicas that are placed tentatively.
    pub(crate) taken: Vec<NodeInPool>,
}

impl Occupancy {
    pub(crate) fn of(world: &World) -> Self {
        let mut classes = BTreeMap::new();
        for (number, node) in &world.nodes {
            for (class, _) in &node.put.capacity {
                classes.extend(world.class_on_node(*number, node, *class).map(|found| ((*number, *class), found)));
            }
        }
        Self { classes, taken: Vec::new() }
    }

    pub(crate) fn free(&self, node: NodeNo, class: ClassNo) -> u64 {
        self.classes.get(&(node, class)).map_or(0, ClassOnNode::free)
    }

    /// The leases of one replica on a node, if it fits.
    pub(crate) fn fit(&self, node: NodeNo, spec: &AllocationSpec) -> Option<Members> {
        let one = |(class, quanta): &(ClassNo, Quanta)| {
            let devices = self.classes.get(&(node, *class))?.choose(quanta.0)?;
            Some(Member { class: *class, quanta: *quanta, devices })
        };
        spec.asks.iter().map(one).collect()
    }

    pub(crate) fn occupy(&mut self, at: NodeInPool, members: &Members) {
        for member in members {
            let class = self.classes.get_mut(&(at.1, member.class)).expect("the member fits on this node");
            class.change(member.devices, member.quanta.0, true);
        }
        self.taken.push(at);
    }

    /// Frees reserved quanta of a device, or of the class for kinds without devices.
    pub(crate) fn unreserve(&mut self, node: NodeNo, class: ClassNo, index: Option<usize>, kept: u64) {
        let class = self.classes.get_mut(&(node, class)).expect("a node has the class that is reserved on it");
        class.used -= kept;
        index.into_iter().for_each(|index| class.devices[index] -= kept);
    }

    /// Takes a lease away from its node, or puts it back.
    pub(crate) fn lift(&mut self, lease: &Lease, away: bool) {
        let class = self.classes.get_mut(&(lease.node, lease.class)).expect("a node has the class of its leases");
        class.change(lease.devices, lease.quanta, !away);
    }
}

/// The placement of each replica, and the terms of the quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gang {
    pub(crate) places: Vec<ReplicaPlacement>,
    pub(crate) terms: Terms,
}

/// Why a gang cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoGang {
    /// Quotas refused every node that had room. These are the refusals.
    Quota(Vec<DenyCause>),
    Room,
}

/// Whether a node may be used without delaying others.
pub(crate) type Allow<'a> = &'a dyn Fn(NodeNo) -> bool;

/// The node, rack or zone of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Within {
    Node(NodeNo),
    Named(Name),
}

pub(crate) fn within(node: &Node, domain: Domain) -> Option<Within> {
    match domain {
        Domain::Node => Some(Within::Node(node.put.node)),
        Domain::Rack => node.put.rack.clone().map(Within::Named),
        Domain::Zone => node.put.zone.clone().map(Within::Named),
    }
}

impl Demand {
    pub(crate) fn of_gang(tenant: TenantNo, project: ProjectNo, user: Option<UserNo>, spec: &AllocationSpec) -> Self {
        Self {
            tenant,
            project,
            payer: spec.source_project.unwrap_or(project),
            priority: spec.priority,
            asks: spec.asks.iter().map(|(class, quanta)| (*class, quanta.0)).collect(),
            replicas: Some(spec.replicas),
            claimer: user.filter(|_| spec.sensitive).map(|user| (tenant, user)),
            node: None,
            spec: Some(spec.clone()),
            who: (user, spec.app_instance),
            number: None,
            evicts: None,
        }
    }
}

impl World {
    /// Chooses the node for a replica: the highest score (SEMANTICS 5), which prefers nodes near the placed replicas;
    /// then the lower number.
    fn preferred(
        &self,
        occupancy: &Occupancy,
        spec: &AllocationSpec,
        candidates: &[NodeNo],
        now: Instant,
    ) -> Option<NodeNo> {
        let site = |node: NodeNo| {
            let put = &self.nodes[&node].put;
            Site { node, rack: put.rack.clone(), zone: put.zone.clone() }
        };
        let peers: Vec<Site> = occupancy.taken.iter().map(|(_, node)| site(*node)).collect();
        let worth = |node: NodeNo| {
            let known = &self.nodes[&node];
            let classes = spec.asks.iter().map(|(class, asked)| ClassSeen {
                asked: asked.0,
                free: occupancy.free(node, *class),
                total: known.capacity(*class),
                sensitivity: spec.profile.map(|profile| profile.of(self.classes[class].kind)),
            });
            let seen = NodeSeen { site: site(node), heat: self.heat(node, now), classes: classes.collect() };
            score(&seen, &peers, self.weighing(known.put.pool).weights())
        };
        candidates.iter().copied().max_by_key(|node| (worth(*node), Reverse(*node)))
    }

    /// The TTL of a gang's leases in this pool, before quotas; none if the pool does not allow it.
    pub(crate) fn gang_ttl(&self, pool: PoolNo, spec: &AllocationSpec) -> Option<Span> {
        let longest = self.grant_ttl_max(pool, spec.priority);
        let too_long = spec.ttl.is_some_and(|ttl| ttl > longest);
        let life = self.lifetime_max(pool, spec.priority);
        let outlives = spec.walltime.zip(life).is_some_and(|(walltime, life)| walltime > life);
        if too_long || outlives || !self.pools.contains_key(&pool) {
            return None;
        }
        let asked = spec.ttl.or(spec.walltime).unwrap_or(longest);
        Some(asked.min(longest).min(spec.walltime.unwrap_or(longest)))
    }

    /// Whether the spec may use this node, regardless of free capacity.
    pub(crate) fn suits(&self, node: &Node, demand: &Demand, spec: &AllocationSpec) -> bool {
        node.is_open_to(demand.claimer)
            && demand.node.is_none_or(|named| named == node.put.node)
            && spec.pool.is_none_or(|pool| pool == node.put.pool)
            && !self.is_paused(demand, node.put.pool)
            && spec.labels.iter().all(|label| node.put.labels.contains(label))
            && self.gang_ttl(node.put.pool, spec).is_some()
    }

    /// The terms of the quotas that do not depend on nodes; if they allow the gang, also of the ceilings.
    pub(crate) fn gang_terms(&self, demand: &Demand, now: Instant) -> Terms {
        let mut terms = Terms::default();
        for (number, quota) in self.quotas.iter().filter(|(_, quota)| !quota.depends_on_node()) {
            if let Some(ruling) = self.rule(*number, quota, demand, None, &[], now) {
                terms.hear(*number, ruling);
            }
        }
        terms.refusal = terms.refusal.or_else(|| self.gang_cost_refusal(demand, now));
        terms.refusal = terms.refusal.or_else(|| self.gang_prepaid_refusal(demand, now));
        terms
    }

    /// The rulings of the other quotas on one more replica on a node, or the first refusal.
    pub(crate) fn judge_place(
        &self,
        demand: &Demand,
        at: NodeInPool,
        taken: &[NodeInPool],
        now: Instant,
    ) -> Result<Vec<(leasehold_model::QuotaNo, Ruling)>, DenyCause> {
        let mut rulings = Vec::new();
        for (number, quota) in self.quotas.iter().filter(|(_, quota)| quota.depends_on_node()) {
            match self.rule(*number, quota, demand, Some(at), taken, now) {
                Some(Ruling::Refused(cause)) => return Err(cause),
                Some(ruling) => rulings.push((*number, ruling)),
                None => {}
            }
        }
        Ok(rulings)
    }

    /// Places all replicas, one after the other; `occupancy` is what is used before.
    pub(crate) fn place_gang(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        occupancy: &Occupancy,
        now: Instant,
        allow: Allow<'_>,
    ) -> Result<Gang, NoGang> {
        let allow = &|node: NodeNo| allow(node) && self.ends_before_window(node, now, spec.walltime);
        let terms = self.gang_terms(demand, now);
        if let Some(cause) = terms.refusal {
            return Err(NoGang::Quota(vec![cause]));
        }
        let Some(domain) = spec.together.filter(|_| spec.replicas > 1) else {
            return self.place_replicas(demand, spec, (occupancy.clone(), terms), now, allow);
        };
        // The domain of the best first node, then the next that was not tried.
        let (mut tried, mut causes): (BTreeSet<Within>, Vec<DenyCause>) = (BTreeSet::new(), Vec::new());
        let of = |node: NodeNo| within(&self.nodes[&node], domain);
        loop {
            let open = |node: NodeNo| allow(node) && of(node).is_some_and(|here| !tried.contains(&here));
            let (candidates, refusals) = self.candidates(demand, spec, occupancy, now, &open, &BTreeSet::new());
            let Some(first) = self.preferred(occupancy, spec, &candidates, now) else {
                causes.extend(refusals);
                break;
            };
            let here = of(first);
            let inside = |node: NodeNo| allow(node) && of(node) == here;
            match self.place_replicas(demand, spec, (occupancy.clone(), terms.clone()), now, &inside) {
                Ok(gang) => return Ok(gang),
                Err(NoGang::Quota(refusals)) => causes.extend(refusals),
                Err(NoGang::Room) => {}
            }
            tried.extend(here);
        }
        Err(if causes.is_empty() { NoGang::Room } else { NoGang::Quota(causes) })
    }

    fn place_replicas(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        (mut occupancy, mut terms): (Occupancy, Terms),
        now: Instant,
        allow: Allow<'_>,
    ) -> Result<Gang, NoGang> {
        let mut places = Vec::new();
        let mut apart_from: BTreeSet<Within> = BTreeSet::new();
        for _ in 0..spec.replicas {
            let (candidates, refusals) = self.candidates(demand, spec, &occupancy, now, allow, &apart_from);
            let Some(node) = self.preferred(&occupancy, spec, &candidates, now) else {
                if refusals.is_empty() {
                    return Err(NoGang::Room);
                }
                let places = self.places_without_quotas(demand, spec, occupancy, now, allow, apart_from);
                let for_all = |cause| self.for_all(cause, demand, &places);
                return Err(NoGang::Quota(refusals.into_iter().map(for_all).collect()));
            };
            let at = (self.nodes[&node].put.pool, node);
            let rulings = self.judge_place(demand, at, &occupancy.taken, now).expect("it was seen to pass");
            rulings.into_iter().for_each(|(number, ruling)| terms.hear(number, ruling));
            let members = occupancy.fit(node, spec).expect("it was seen to fit");
            occupancy.occupy(at, &members);
            apart_from.extend(spec.apart.and_then(|domain| within(&self.nodes[&node], domain)));
            places.push(ReplicaPlacement { node, members });
        }
        Ok(Gang { places, terms })
    }

    /// The nodes of all replicas, as far as there is room, if no quota that depends on nodes applied to the rest.
    fn places_without_quotas(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        mut occupancy: Occupancy,
        now: Instant,
        allow: Allow<'_>,
        mut apart_from: BTreeSet<Within>,
    ) -> Vec<NodeInPool> {
        while occupancy.taken.len() < spec.replicas as usize {
            let open: Vec<NodeNo> = self.with_room(demand, spec, &occupancy, allow, &apart_from).collect();
            let Some(node) = self.preferred(&occupancy, spec, &open, now) else { break };
            let members = occupancy.fit(node, spec).expect("it was seen to fit");
            occupancy.occupy((self.nodes[&node].put.pool, node), &members);
            apart_from.extend(spec.apart.and_then(|domain| within(&self.nodes[&node], domain)));
        }
        occupancy.taken
    }

    /// Nodes with room for one more replica, regardless of quotas.
    fn with_room<'a>(
        &'a self,
        demand: &'a Demand,
        spec: &'a AllocationSpec,
        occupancy: &'a Occupancy,
        allow: Allow<'a>,
        apart_from: &'a BTreeSet<Within>,
    ) -> impl Iterator<Item = NodeNo> + 'a {
        let is_open = move |(number, node): &(&NodeNo, &Node)| {
            let apart =
                spec.apart.is_none_or(|domain| within(node, domain).is_some_and(|at| !apart_from.contains(&at)));
            self.suits(node, demand, spec) && allow(**number) && apart && occupancy.fit(**number, spec).is_some()
        };
        self.nodes.iter().filter(is_open).map(|(number, _)| *number)
    }

    /// Nodes for one more replica, and the refusals of quotas on the other nodes with room.
    fn candidates(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        occupancy: &Occupancy,
        now: Instant,
        allow: Allow<'_>,
        apart_from: &BTreeSet<Within>,
    ) -> (Vec<NodeNo>, Vec<DenyCause>) {
        let (mut candidates, mut refusals) = (Vec::new(), Vec::new());
        for number in self.with_room(demand, spec, occupancy, allow, apart_from) {
            match self.judge_place(demand, (self.nodes[&number].put.pool, number), &occupancy.taken, now) {
                Ok(_) => candidates.push(number),
                Err(cause) => refusals.push(cause),
            }
        }
        (candidates, refusals)
    }
}
