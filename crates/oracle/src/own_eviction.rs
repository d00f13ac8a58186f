//! Requests that fail on one quota alone and evict leases of their own tenant (SEMANTICS 11, `evict_own_lower`).

use crate::eviction::{Plan, Unit, Victim, unit_of};
use crate::gang::Occupancy;
use crate::lease::{Lease, Phase};
use crate::queue::Guard;
use crate::quota::{Demand, NodeInPool, Who, is_within};
use crate::world::{Quota, World};
use leasehold_model::{AllocationNo, AllocationSpec, Instant, LeaseNo, Measure, NodeNo, NodeScope, PoolNo, Priority};
use std::collections::BTreeSet;

impl World {
    /// What some leases use of a quota, in the use of these.
    pub(crate) fn use_of_leases(&self, quota: &Quota, leases: &[LeaseNo], who: Who) -> u128 {
        let found = || leases.iter().filter_map(|number| self.lease(*number));
        if quota.put.measure == Measure::Allocations {
            let allocations: BTreeSet<AllocationNo> = found().filter_map(|lease| lease.of).collect();
            return allocations.iter().filter(|number| quota.counts_placed(&self.allocations[number], who)).count()
                as u128;
        }
        let counts = |lease: &&Lease| {
            lease.phase.counts_for_quota()
                && quota.is_shared_by(who, (lease.user, lease.app_instance))
                && self.covers(&quota.put.scope, lease)
        };
        let counted = found().filter(counts);
        match quota.put.measure {
            Measure::Quanta => counted.map(|lease| self.in_parts(quota, lease.class, lease.quanta)).sum(),
            Measure::Leases | Measure::Nodes | Measure::Allocations => counted.count() as u128,
        }
    }

    /// What would be evicted for a request, of the use of a quota.
    pub(crate) fn evicted_use(&self, quota: &Quota, demand: &Demand) -> u128 {
        match &demand.evicts {
            Some((number, leases)) if *number == quota.put.quota => self.use_of_leases(quota, leases, demand.who),
            _ => 0,
        }
    }

    /// Headroom that is held for others: what they will need beyond what their victims still use.
    pub(crate) fn held_for_others(&self, quota: &Quota, demand: &Demand) -> u128 {
        let mut sum = 0;
        for other in self.allocations.values().filter(|other| Some(other.number) != demand.number) {
            let Some(reservation) = &other.reservation else { continue };
            let who = (other.user, other.spec.app_instance);
            if reservation.headroom != Some(quota.put.quota) || !quota.is_shared_by(demand.who, who) {
                continue;
            }
            let at = |node: NodeNo| (self.nodes[&node].put.pool, node);
            let places: Vec<NodeInPool> = reservation.nodes().into_iter().map(at).collect();
            let inside: Vec<NodeInPool> =
                places.into_iter().filter(|place| is_within(&quota.put.scope, *place)).collect();
            let needs = match (quota.put.measure, inside.split_first()) {
                (Measure::Allocations, _) => 1,
                (_, None) => 0,
                (_, Some((first, rest))) => self.plain_use_and_request(quota, &other.demand(), Some(*first), rest).1,
            };
            sum += needs.saturating_sub(self.use_of_leases(quota, &reservation.victims, who));
        }
        sum
    }

    /// What a request that quotas deny evicts of its own tenant; an error if its tenant has reached its eviction limit.
    pub(crate) fn plan_own(
        &self,
        demand: &Demand,
        spec: &AllocationSpec,
        guard: &Guard<'_>,
        now: Instant,
    ) -> Option<Result<Plan, ()>> {
        if spec.priority == Priority::Scavenger || demand.claimer.is_some() {
            return None;
        }
        let plan = self.quotas.values().find_map(|quota| self.plan_headroom(quota, demand, spec, guard, now))?;
        Some(if self.may_evict(demand.tenant, plan.quanta, now) { Ok(plan) } else { Err(()) })
    }

    fn plan_headroom(
        &self,
        quota: &Quota,
        demand: &Demand,
        spec: &AllocationSpec,
        guard: &Guard<'_>,
        now: Instant,
    ) -> Option<Plan> {
        let (number, scope) = (quota.put.quota, &quota.put.scope);
        let node = if let NodeScope::One(node) = scope.node { node } else { NodeNo(u32::MAX) };
        let somewhere = (scope.pool.unwrap_or(PoolNo(u32::MAX)), node);
        if !quota.put.evict_own_lower || !self.counts(quota, demand, Some(somewhere)) {
            return None;
        }
        let members = |unit: Unit| {
            let held = self.leases.iter().filter(move |lease| lease.phase.is_held() && unit_of(lease) == unit);
            held.map(|lease| lease.number).collect::<Vec<LeaseNo>>()
        };
        let lower = self.leases.iter().filter(|lease| {
            lease.tenant == demand.tenant && lease.priority < spec.priority && lease.phase == Phase::Active
        });
        let units: BTreeSet<Unit> = lower.map(unit_of).collect();
        let counted = units.into_iter().filter(|unit| self.use_of_leases(quota, &members(*unit), demand.who) > 0);
        let mut order: Vec<Victim> = counted.filter_map(|unit| self.as_victim(unit, now)).collect();
        order.sort_unstable();

        // Where it is placed if these are gone: nothing but this quota kept it from there.
        let place = |gone: &[Victim]| {
            let gone: BTreeSet<LeaseNo> = gone.iter().flat_map(|(.., unit)| members(*unit)).collect();
            let mut occupancy = Occupancy::of(self);
            self.leases.iter().filter(|l| gone.contains(&l.number)).for_each(|lease| occupancy.lift(lease, true));
            let demand = Demand { evicts: Some((number, gone.into_iter().collect())), ..demand.clone() };
            let allow = |node: NodeNo| guard.allows(node, None);
            self.place_gang(&demand, spec, &occupancy, now, &allow).ok().map(|gang| gang.places)
        };
        let count = (1..=order.len()).find(|count| place(&order[..*count]).is_some())?;
        let mut needed = order[..count].to_vec();
        for victim in order[..count].iter().rev() {
            let rest: Vec<Victim> = needed.iter().copied().filter(|other| other != victim).collect();
            if !rest.is_empty() && place(&rest).is_some() {
                needed = rest;
            }
        }
        let places = place(&needed).expect("it was seen to fit");
        let units: BTreeSet<Unit> = needed.iter().map(|(.., unit)| *unit).collect();
        let evicted = || self.leases.iter().filter(|lease| self.is_in(lease, &units));
        let (victims, quanta) = (evicted().map(|l| l.number).collect(), evicted().map(|l| l.quanta).sum());
        Some(Plan { places, victims, quanta, awaited: Vec::new(), dropped: Vec::new(), headroom: Some(number) })
    }
}
