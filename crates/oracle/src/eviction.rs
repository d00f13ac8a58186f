//! Plans evictions for a gang that does not fit, by trying every node (SEMANTICS 5).

use crate::allocation::Allocation;
use crate::gang::{Allow, Occupancy, Within, within};
use crate::lease::{Lease, Phase};
use crate::queue::last_minute;
use crate::quota::Demand;
use crate::world::World;
use leasehold_model::body::ReplicaPlacement;
use leasehold_model::{
    AllocationNo, AllocationSpec, Body, Instant, LeaseNo, NodeNo, Priority, QuotaNo, Record, Span, TenantNo,
};
use std::collections::BTreeSet;

/// The victims, and the placement of the replicas after the eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) places: Vec<ReplicaPlacement>,
    pub(crate) victims: Vec<LeaseNo>,
    pub(crate) quanta: u64,
    /// Leases that end already and that are waited for, and the allocations that lose their reservations.
    pub(crate) awaited: Vec<LeaseNo>,
    pub(crate) dropped: Vec<AllocationNo>,
    /// The quota in which the victims make headroom, if that is what was missing.
    pub(crate) headroom: Option<QuotaNo>,
}

/// What is evicted together: the leases of an allocation, or those of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Allocation(AllocationNo),
    Request(LeaseNo),
}

pub(crate) fn unit_of(lease: &Lease) -> Unit {
    lease.of.map_or(Unit::Request(lease.gang), Unit::Allocation)
}

/// A possible victim, sorted by the order of eviction: lowest priority, shortest remaining TTL, lease number.
pub(crate) type Victim = (Priority, Instant, LeaseNo, Unit);

/// The cost of an eviction on a node, for comparison: the highest priority of a victim, then the number of gangs, the
/// quanta, and the number of the node.
type EvictionCost = (Priority, usize, u64, NodeNo);

struct Planned {
    occupancy: Occupancy,
    victims: BTreeSet<Unit>,
    places: Vec<ReplicaPlacement>,
}

impl World {
    /// The evictions that make room for the whole gang, on nodes that are used as `occupancy` says; `None` if none do.
    pub(crate) fn plan_eviction(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        occupancy: &Occupancy,
        now: Instant,
        allow: Allow<'_>,
    ) -> Option<Plan> {
        if self.gang_terms(demand, now).refusal.is_some() {
            return None;
        }
        let nothing = || Planned { occupancy: occupancy.clone(), victims: BTreeSet::new(), places: Vec::new() };
        let planned = match spec.together.filter(|_| spec.replicas > 1) {
            None => self.plan_replicas(demand, spec, now, allow, nothing())?,
            Some(domain) => {
                // The domain of the cheapest first placement, then the next that was not tried.
                let of = |node: NodeNo| within(&self.nodes[&node], domain);
                let mut tried: BTreeSet<Within> = BTreeSet::new();
                loop {
                    let open = |node: NodeNo| allow(node) && of(node).is_some_and(|here| !tried.contains(&here));
                    let first = self.plan_one(demand, spec, now, &open, &nothing())?;
                    let here = of(first.places[0].node);
                    let inside = |node: NodeNo| allow(node) && of(node) == here;
                    if let Some(planned) = self.plan_replicas(demand, spec, now, &inside, nothing()) {
                        break planned;
                    }
                    tried.extend(here);
                }
            }
        };
        let victims: Vec<&Lease> = self.leases.iter().filter(|l| self.is_in(l, &planned.victims)).collect();
        let quanta = victims.iter().map(|lease| lease.quanta).sum();
        let victims: Vec<LeaseNo> = victims.iter().map(|lease| lease.number).collect();
        let (awaited, dropped) = (Vec::new(), Vec::new());
        Some(Plan { places: planned.places, victims, quanta, awaited, dropped, headroom: None })
    }

    fn plan_replicas(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        now: Instant,
        allow: Allow<'_>,
        mut planned: Planned,
    ) -> Option<Planned> {
        for _ in 0..spec.replicas {
            planned = self.plan_one(demand, spec, now, allow, &planned)?;
        }
        Some(planned)
    }

    /// Places one more replica, on the node with the lowest eviction cost.
    fn plan_one(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        now: Instant,
        allow: Allow<'_>,
        so_far: &Planned,
    ) -> Option<Planned> {
        let mut best: Option<(EvictionCost, BTreeSet<Unit>)> = None;
        for (number, node) in &self.nodes {
            let lies_apart = spec.apart.is_none_or(|domain| {
                let here = within(node, domain);
                here.is_some() && so_far.places.iter().all(|p| within(&self.nodes[&p.node], domain) != here)
            });
            let at = (node.put.pool, *number);
            let passes = || self.judge_place(demand, at, &so_far.occupancy.taken, now).is_ok();
            let in_time = self.ends_before_window(*number, now, spec.walltime);
            if !self.suits(node, demand, spec) || !allow(*number) || !lies_apart || !in_time || !passes() {
                continue;
            }
            if let Some((cost, victims)) = self.victims_for(spec, *number, so_far, now)
                && best.as_ref().is_none_or(|(found, _)| cost < *found)
            {
                best = Some((cost, victims));
            }
        }
        let ((_, _, _, node), victims) = best?;
        let mut planned = Planned {
            occupancy: so_far.occupancy.clone(),
            victims: so_far.victims.clone(),
            places: so_far.places.clone(),
        };
        for lease in self.leases.iter().filter(|lease| self.is_in(lease, &victims)) {
            planned.occupancy.lift(lease, true);
        }
        planned.victims.extend(victims);
        let members = planned.occupancy.fit(node, spec).expect("the victims were chosen so that it fits");
        planned.occupancy.occupy((self.nodes[&node].put.pool, node), &members);
        planned.places.push(ReplicaPlacement { node, members });
        Some(planned)
    }

    /// The victims on this node so that one more replica fits.
    fn victims_for(
        &self,
        spec: &AllocationSpec,
        node: NodeNo,
        so_far: &Planned,
        now: Instant,
    ) -> Option<(EvictionCost, BTreeSet<Unit>)> {
        // Whether it fits without these.
        let fits = |gone: &[Victim]| {
            let units: BTreeSet<Unit> = gone.iter().map(|(.., unit)| *unit).collect();
            let mut occupancy = so_far.occupancy.clone();
            let away = self.leases.iter().filter(|lease| lease.node == node && self.is_in(lease, &units));
            away.for_each(|lease| occupancy.lift(lease, true));
            occupancy.fit(node, spec).is_some()
        };
        let in_order = self.possible_victims(spec.priority, node, &so_far.victims, now);
        let count = (0..=in_order.len()).find(|count| fits(&in_order[..*count]))?;
        let mut needed: Vec<Victim> = in_order[..count].to_vec();
        for victim in in_order[..count].iter().rev() {
            let without: Vec<Victim> = needed.iter().copied().filter(|other| other != victim).collect();
            if fits(&without) {
                needed = without;
            }
        }
        let units: BTreeSet<Unit> = needed.iter().map(|(.., unit)| *unit).collect();
        let quanta = self.leases.iter().filter(|lease| self.is_in(lease, &units)).map(|lease| lease.quanta).sum();
        let highest = needed.iter().map(|(priority, ..)| *priority).max().unwrap_or(Priority::Scavenger);
        Some(((highest, needed.len(), quanta, node), units))
    }

    /// Whether a lease is held and belongs to one of the units.
    pub(crate) fn is_in(&self, lease: &Lease, units: &BTreeSet<Unit>) -> bool {
        lease.phase.is_held() && units.contains(&unit_of(lease))
    }

    /// The gangs on a node that this priority may evict: all their leases are active, not sensitive, and were held long
    /// enough.
    fn possible_victims(&self, to: Priority, node: NodeNo, chosen: &BTreeSet<Unit>, now: Instant) -> Vec<Victim> {
        let here = self.leases.iter().filter(|l| l.node == node && l.phase.is_held() && l.priority < to);
        let units: BTreeSet<Unit> = here.map(unit_of).filter(|unit| !chosen.contains(unit)).collect();
        let mut victims: Vec<Victim> = units.into_iter().filter_map(|unit| self.as_victim(unit, now)).collect();
        victims.sort_unstable();
        victims
    }

    /// Whether the record changes deadlines on which it depends who would be evicted for an allocation whose tenant has
    /// an eviction limit.
    pub(crate) fn moves_victims(&self, record: &Record) -> bool {
        let Body::Renewed(renewed) = &record.body else { return false };
        let limited = |of: &&Allocation| {
            self.tenants.get(&of.tenant).is_some_and(|tenant| tenant.settings.max_evicted_quanta_per_hour.is_some())
        };
        let waiting = self.allocations.values().filter(|of| of.is_in_line()).filter(limited);
        let highest = waiting.map(|of| of.spec.priority).max();
        let mut leases = renewed.renewals.iter().filter_map(|renewal| self.lease(renewal.lease));
        leases.any(|lease| highest.is_some_and(|highest| lease.priority < highest))
    }

    /// A gang as a victim, if it may be evicted.
    pub(crate) fn as_victim(&self, unit: Unit, now: Instant) -> Option<Victim> {
        let members: Vec<&Lease> = self.leases.iter().filter(|l| l.phase.is_held() && unit_of(l) == unit).collect();
        let ran = |lease: &&Lease| {
            let least = self.pool_queue(lease.pool).min_runtime_before_eviction;
            least == Span::ZERO || lease.granted_at.saturating_add(least) <= last_minute(now)
        };
        let may = members.iter().all(|lease| lease.phase == Phase::Active && !lease.sensitive && ran(lease));
        let ends = members.iter().map(|lease| lease.expires_at).max()?;
        may.then_some((members[0].priority, ends, members[0].number, unit))
    }

    /// Whether a tenant may evict that much more; evictions of the hour before this minute count, and those in it.
    pub(crate) fn may_evict(&self, tenant: TenantNo, quanta: u64, now: Instant) -> bool {
        let hour = Span::from_secs(3600);
        let lately =
            self.evictions.iter().filter(|(of, at, _)| *of == tenant && at.saturating_add(hour) > last_minute(now));
        let sum: u64 = lately.map(|(_, _, quanta)| quanta).sum();
        let limit = self.tenants.get(&tenant).and_then(|tenant| tenant.settings.max_evicted_quanta_per_hour);
        limit.is_none_or(|limit| sum + quanta <= limit)
    }
}
