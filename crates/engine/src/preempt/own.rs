//! Which leases of its own tenant a request evicts if it fails on one quota alone, and that quota allows it (SEMANTICS 11,
//! `evict_own_lower`).
//!
//! Victims are leases of lower priority that the quota counts, as whole gangs, wherever they are. They are added in the
//! order of eviction until the request fits, with the headroom and the capacity that they leave; then, in reverse order,
//! victims that are not needed are dropped.

use super::{EvictionUnit, Plan};
use crate::ask::Ask;
use crate::lease::Lease;
use crate::placement::Tentative;
use crate::quota::Quota;
use crate::scheduler::Blocked;
use crate::state::State;
use crate::tally::Count;
use crate::view::View;
use leasehold_model::body::ReplicaPlacement;
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{Instant, LeaseNo, Measure, Priority};
use std::collections::BTreeSet;

/// A gang that could be evicted, sorted by the order of eviction.
struct Victim<'a> {
    order: (Priority, Instant, LeaseNo),
    members: Vec<&'a Lease>,
    /// What it uses of the quota.
    uses: Count,
}

impl<'a> View<'a> {
    /// The plan for an ask that quotas deny, if it may evict leases of its own tenant. An error if the tenant has reached
    /// its limit on evictions.
    pub(crate) fn plan_own(&self, ask: &Ask<'_>) -> Option<Result<Plan, Blocked>> {
        if ask.priority == Priority::Scavenger || ask.claimer.is_some() {
            return None;
        }
        let facts = self.facts_of_ask(ask);
        let counts = |quota: &&Quota| match quota.measure {
            Measure::Allocations => quota.counts_allocation(ask.payer, ask.priority, ask.user, ask.app_instance),
            Measure::Quanta | Measure::Leases | Measure::Nodes => quota.asked(&facts) > 0,
        };
        let mut quotas = self.state.quotas_of(ask.tenant).filter(|quota| quota.evict_own_lower).filter(counts);
        let plan = quotas.find_map(|quota| self.plan_headroom(ask, quota))?;
        let tenant = self.tenant(ask.tenant)?;
        let after = tenant.evicted(ask.now).saturating_add(plan.quanta);
        let is_too_much = tenant.settings.max_evicted_quanta_per_hour.is_some_and(|limit| after > limit);
        Some(if is_too_much { Err(Blocked::Evictions) } else { Ok(plan) })
    }

    /// The evictions that make headroom in one quota, if the ask fits then.
    fn plan_headroom(&self, ask: &Ask<'_>, quota: &Quota) -> Option<Plan> {
        let victims = self.own_victims(ask, quota);
        let all = victims.iter().map(|victim| victim.uses).sum();
        // If everything were evicted, only other limits could deny it.
        self.admission(&Ask { frees: Some((quota.number, all)), ..*ask }).ok()?;
        let place = |gone: &[&Victim<'_>]| {
            let mut overlay = Tentative::default();
            for lease in gone.iter().flat_map(|victim| &victim.members) {
                overlay.vacate(self.node(lease.node).expect("a lease's node exists"), lease);
            }
            let freed = gone.iter().map(|victim| victim.uses).sum();
            let gang = self.place_gang(&Ask { frees: Some((quota.number, freed)), ..*ask }, &mut overlay).ok()?;
            let places = gang.places.into_iter();
            Some(places.map(|one| ReplicaPlacement { node: one.node, members: one.members }).collect::<Vec<_>>())
        };
        let in_order: Vec<&Victim<'_>> = victims.iter().collect();
        let count = (1..=in_order.len()).find(|count| place(&in_order[..*count]).is_some())?;
        let mut needed = in_order[..count].to_vec();
        for victim in in_order[..count].iter().rev() {
            let rest: Vec<&Victim<'_>> = needed.iter().copied().filter(|other| other.order != victim.order).collect();
            if !rest.is_empty() && place(&rest).is_some() {
                needed = rest;
            }
        }
        let places = place(&needed)?;
        let evicted = || needed.iter().flat_map(|victim| &victim.members);
        let victims: BTreeSet<LeaseNo> = evicted().map(|lease| lease.number).collect();
        let quanta = evicted().map(|lease| lease.quanta.0).sum();
        let (awaited, headroom) = (std::iter::empty().collect(), Some(quota.number));
        let victims_fit = victims.len() <= LEASES_PER_RECORD_MAX;
        let victims = victims.into_iter().collect();
        victims_fit.then_some(Plan { places, victims, quanta, awaited, dropped: Vec::new(), headroom })
    }

    /// The gangs that an ask could evict to make headroom in a quota, in the order of eviction.
    fn own_victims(&self, ask: &Ask<'_>, quota: &Quota) -> Vec<Victim<'a>> {
        let state = self.state;
        let holder = quota.holder_of(ask);
        let own = state
            .leases
            .in_any_order()
            .filter(|lease| lease.tenant == ask.tenant && lease.priority < ask.priority && lease.is_evictable());
        let units: BTreeSet<EvictionUnit> = own.map(State::unit_of).collect();
        let victim = |unit: EvictionUnit| {
            let members = state.members_of(unit)?;
            if !members.iter().all(|lease| state.ran_long_enough(lease, ask.now)) {
                return None;
            }
            let uses = match (quota.measure, unit) {
                (Measure::Allocations, EvictionUnit::Allocation(number)) => {
                    Count::from(state.counts_allocation_of(quota, number, holder))
                }
                _ => members.iter().map(|lease| quota.count_of(lease, &state.facts_of(lease), holder)).sum(),
            };
            let first = members.first()?;
            let ends = members.iter().map(|lease| lease.expires_at).max()?;
            let number = members.iter().map(|lease| lease.number).min()?;
            (uses > 0).then_some(Victim { order: (first.priority, ends, number), members, uses })
        };
        let mut victims: Vec<Victim<'a>> = units.into_iter().filter_map(victim).collect();
        victims.sort_unstable_by_key(|victim| victim.order);
        victims
    }
}
