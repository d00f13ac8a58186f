//! The standing of a tenant in the queue: its recent usage, by a pass over all leases (SEMANTICS 4).
//!
//! Computed at the last whole minute, over a window that starts on a whole hour, in 2^-20 GPUs or nodes times
//! nanoseconds. A node counts from the start of a tenant's first lease on it to the end of the last.

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

/// The interval from its grant to its end, without an end if it is still held.
fn held(lease: &Lease) -> Range<u64> {
    lease.granted_at.0..lease.ended_at.map_or(u64::MAX, |at| at.0)
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
    /// Time of GPUs, or of cores on pools that had no GPUs when they were granted.
    fn time_of(&self, kind: ResourceKind, of: Option<TenantNo>, window: &Range<u64>) -> u128 {
        let leases = self.leases.iter().filter(|lease| of.is_none_or(|of| of == lease.tenant));
        let counts = |lease: &Lease| kind == ResourceKind::Gpu || lease.on_pool_without_gpus;
        let level = |lease: &Lease| match self.classes.get(&lease.class) {
            Some(spec) if spec.kind == kind && counts(lease) => {
                // A lease counts as a million cores at most.
                (u128::from(lease.quanta) * ONE / u128::from(spec.quanta_per_unit)).min(ONE << 20)
            }
            _ => 0,
        };
        leases.map(|lease| level(lease) * overlap(&held(lease), window)).sum()
    }

    fn node_time(&self, of: TenantNo, window: &Range<u64>) -> u128 {
        let own = || self.leases.iter().filter(|lease| lease.tenant == of);
        let nodes: BTreeSet<NodeNo> = own().map(|lease| lease.node).collect();
        nodes.iter().map(|node| Self::time_on(own().filter(|lease| lease.node == *node), window)).sum()
    }

    /// Merges leases into one interval if one was granted before the end of another was recorded.
    fn time_on<'a>(leases: impl Iterator<Item = &'a Lease>, window: &Range<u64>) -> u128 {
        let mut sum = 0;
        let mut stretch: Option<(Range<u64>, u64)> = None;
        for lease in leases {
            let (own, known) = (held(lease), lease.ended_by.unwrap_or(u64::MAX));
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

    fn has_gpus(&self, pool: PoolNo) -> bool {
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
