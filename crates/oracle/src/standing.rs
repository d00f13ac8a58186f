//! The standing of a tenant in the queue: its recent usage, by a pass over all leases (SEMANTICS 4).
//!
//! Computed at the last whole minute, over a window that starts on a whole hour, in 2^-20 GPUs or nodes times
//! nanoseconds. A node counts from the start of a tenant's first lease on it to the end of the last. Since rules version
//! 4 claims count instead of the sensitive leases on their nodes.

use crate::claim::Counted;
use crate::lease::Lease;
use crate::world::World;
use leasehold_model::{Budgets, ClassNo, Instant, NodeNo, PoolNo, ResourceKind, TenantNo};
use std::collections::BTreeSet;
use std::ops::Range;

const ONE: u128 = 1 << 20;
const MINUTE: u64 = 60_000_000_000;
const HOUR: u64 = 60 * MINUTE;

/// The budget factor, then the distance below the fair share. The greatest standing goes first.
pub(crate) type Standing = (u128, i128);

fn overlap(range: &Range<u64>, window: &Range<u64>) -> u128 {
    u128::from(range.end.min(window.end).saturating_sub(range.start.max(window.start)))
}

/// A lease as budgets count it: its interval, without an end if it is still held, and the sequence of the record that
/// ended it.
struct Held<'a> {
    lease: &'a Lease,
    range: Range<u64>,
    ended_by: u64,
}

/// 1 up to 80 % of the budget, falling linearly to a twentieth at 120 %.
fn factor(used: u128, hours: u64) -> u128 {
    let fraction = used * ONE / (ONE * u128::from(HOUR) * u128::from(hours.max(1)));
    let (begin, end) = (ONE * 80 / 100, ONE * 120 / 100);
    if fraction <= begin {
        ONE
    } else if fraction >= end {
        ONE * 5 / 100
    } else {
        ONE - (fraction - begin) * (ONE * 95 / 100) / (end - begin)
    }
}

impl World {
    /// The leases of a tenant, or of all. Sensitive ones count up to the instant from which on claims do.
    fn leases_held<'a>(&'a self, of: Option<TenantNo>) -> Vec<Held<'a>> {
        let claims_count = self.claims_count_since();
        let leases = self.leases.iter().filter(|lease| of.is_none_or(|of| of == lease.tenant));
        let held = |lease: &'a Lease| {
            let mut end = lease.ended_at.map_or(u64::MAX, |at| at.0);
            let mut ended_by = lease.ended_by.unwrap_or(u64::MAX);
            if let Some((since, sequence)) = claims_count.filter(|_| lease.sensitive) {
                if lease.granted_by > sequence {
                    return None;
                }
                (end, ended_by) = (end.min(since.0), ended_by.min(sequence));
            }
            Some(Held { lease, range: lease.granted_at.0..end, ended_by })
        };
        leases.filter_map(held).collect()
    }

    /// In 2^-20 units; zero for classes of other kinds. It counts as a million units at most.
    fn units(&self, kind: ResourceKind, class: ClassNo, quanta: u64) -> u128 {
        match self.classes.get(&class) {
            Some(spec) if spec.kind == kind => {
                (u128::from(quanta) * ONE / u128::from(spec.quanta_per_unit)).min(ONE << 20)
            }
            _ => 0,
        }
    }

    /// Time of GPUs, or of cores on pools that had no GPUs when they were granted or claimed.
    fn time_of(&self, kind: ResourceKind, of: Option<TenantNo>, window: &Range<u64>) -> u128 {
        let counts = |without_gpus: bool| kind == ResourceKind::Gpu || without_gpus;
        let leases = self.leases_held(of).into_iter().filter(|held| counts(held.lease.on_pool_without_gpus));
        let leased =
            leases.map(|held| self.units(kind, held.lease.class, held.lease.quanta) * overlap(&held.range, window));
        let level =
            |counted: &Counted| counted.iter().map(|(class, quanta)| self.units(kind, *class, *quanta)).sum::<u128>();
        let claims = self.claimed_time(of).into_iter().filter(|(_, without_gpus, _, _)| counts(*without_gpus));
        leased.sum::<u128>()
            + claims.map(|(_, _, range, counted)| level(&counted) * overlap(&range, window)).sum::<u128>()
    }

    fn node_time(&self, of: TenantNo, window: &Range<u64>) -> u128 {
        let own = self.leases_held(Some(of));
        let nodes: BTreeSet<NodeNo> = own.iter().map(|held| held.lease.node).collect();
        let on = |node: &NodeNo| Self::time_on(own.iter().filter(|held| held.lease.node == *node), window);
        let claims = self.claimed_time(Some(of)).into_iter();
        nodes.iter().map(on).sum::<u128>() + claims.map(|(_, _, range, _)| ONE * overlap(&range, window)).sum::<u128>()
    }

    /// Merges leases into one interval if one was granted before the end of another was recorded.
    fn time_on<'a>(leases: impl Iterator<Item = &'a Held<'a>>, window: &Range<u64>) -> u128 {
        let mut sum = 0;
        let mut stretch: Option<(Range<u64>, u64)> = None;
        for Held { lease, range: own, ended_by: known } in leases {
            let (own, known) = (own.clone(), *known);
            match &mut stretch {
                // Leases are in the order of their grants.
                Some((range, until)) if lease.granted_by < *until => {
                    range.end = range.end.max(own.end);
                    *until = (*until).max(known);
                }
                _ => {
                    sum += stretch.take().map_or(0, |(range, _)| overlap(&range, window));
                    stretch = Some((own, known));
                }
            }
        }
        sum += stretch.map_or(0, |(range, _)| overlap(&range, window));
        sum * ONE
    }

    /// The tenant's GPU time, its node time, and the GPU time of all tenants, in the tenant's window.
    pub(crate) fn spending(&self, tenant: TenantNo, now: Instant) -> (u128, u128, u128) {
        let days = self.budgets.get(&tenant).map_or(Budgets::NONE.period_days, |budgets| budgets.period_days);
        let start = (now.0 / HOUR).saturating_sub(u64::from(days) * 24) * HOUR;
        let window = start..now.0 / MINUTE * MINUTE;
        let gpu_time = |of| self.time_of(ResourceKind::Gpu, of, &window);
        (gpu_time(Some(tenant)), self.node_time(tenant, &window), gpu_time(None))
    }

    /// The same for core time on pools without GPUs: that of the tenant, and that of all.
    fn core_spending(&self, tenant: TenantNo, now: Instant) -> (u128, u128) {
        let days = self.budgets.get(&tenant).map_or(Budgets::NONE.period_days, |budgets| budgets.period_days);
        let start = (now.0 / HOUR).saturating_sub(u64::from(days) * 24) * HOUR;
        let window = start..now.0 / MINUTE * MINUTE;
        let core_time = |of| self.time_of(ResourceKind::Cpu, of, &window);
        (core_time(Some(tenant)), core_time(None))
    }

    /// Whether the core time of a lease that is granted now counts.
    pub(crate) fn counts_cores(&self, pool: PoolNo) -> bool {
        self.rules_version.is_none_or(|version| version >= 4) && !self.has_gpus(pool)
    }

    pub(crate) fn has_gpus(&self, pool: PoolNo) -> bool {
        let is_gpu = |class: &ClassNo| self.classes[class].kind == ResourceKind::Gpu;
        let mut nodes = self.nodes.values().filter(|node| node.put.pool == pool);
        nodes.any(|node| node.put.capacity.iter().any(|(class, quanta)| is_gpu(class) && quanta.0 > 0))
    }

    /// The standing for work that may use a node, a pool or, without either, any pool. Without GPUs there, the share is
    /// one of core time (SEMANTICS 11).
    pub(crate) fn standing_on(
        &self,
        tenant: TenantNo,
        node: Option<NodeNo>,
        pool: Option<PoolNo>,
        now: Instant,
    ) -> Standing {
        let pool = node.and_then(|node| self.nodes.get(&node)).map(|node| node.put.pool).or(pool);
        let mut pools = self.pools.keys().filter(|number| pool.is_none_or(|pool| pool == **number));
        let (factor, deficit) = self.standing(tenant, now);
        if pools.any(|pool| self.has_gpus(*pool)) {
            return (factor, deficit);
        }
        let (own, all) = self.core_spending(tenant, now);
        (factor, self.deficit(tenant, own, all))
    }

    /// The target share minus the share.
    fn deficit(&self, tenant: TenantNo, own: u128, all: u128) -> i128 {
        let share = (own * ONE).checked_div(all).unwrap_or(0).min(ONE);
        let target = self.budgets.get(&tenant).and_then(|budgets| budgets.fair_share).unwrap_or(0);
        let signed = |amount: u128| i128::try_from(amount).expect("at most one");
        signed(u128::from(target) * ONE / 1000) - signed(share)
    }

    pub(crate) fn standing(&self, tenant: TenantNo, now: Instant) -> Standing {
        let budgets = self.budgets.get(&tenant).cloned().unwrap_or_default();
        let (gpu, node, all) = self.spending(tenant, now);
        let of_gpus =
            budgets.gpu_hours.map(|hours| factor(gpu, hours.saturating_add(budgets.burst_allowance.unwrap_or(0))));
        let of_nodes = budgets.node_hours.map(|hours| factor(node, hours));
        (of_gpus.unwrap_or(ONE).min(of_nodes.unwrap_or(ONE)), self.deficit(tenant, gpu, all))
    }
}
