//! Quotas: use is recomputed from all leases each time (SEMANTICS 4).

use crate::allocation::Allocation;
use crate::custody::Claimer;
use crate::lease::Lease;
use crate::world::{Episode, Quota, World};
use leasehold_model::{
    AllocationSpec, ClassNo, DenyCause, Instant, LimitKind, Measure, NodeNo, NodeScope, PoolNo, Priority, ProjectNo,
    QuotaNo, QuotaScope, Span, TenantNo,
};
use std::collections::BTreeSet;

/// The ruling of one quota on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Passes,
    /// Allowed above a soft limit.
    OverSoft,
    /// Allowed above the base limit of a burst quota, until the burst is over.
    Until(Instant),
    Refused(DenyCause),
}

/// The burst part of a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) base: u64,
    pub(crate) ttl: Span,
}

pub(crate) fn burst_of(quota: &Quota) -> Option<Burst> {
    match quota.put.limit {
        LimitKind::Burst { limit, burst_ttl, .. } => Some(Burst { base: limit, ttl: burst_ttl }),
        LimitKind::Hard { .. } | LimitKind::Soft { .. } => None,
    }
}

impl Quota {
    /// Whether the ruling depends on the node; such quotas filter the candidates (SEMANTICS 4).
    pub(crate) fn depends_on_node(&self) -> bool {
        let scope = &self.put.scope;
        scope.pool.is_some() || scope.node != NodeScope::All || self.put.measure == Measure::Nodes
    }
}

/// Whether a lease is in a scope.
pub(crate) fn covers(scope: &QuotaScope, lease: &Lease) -> bool {
    scope.tenant == lease.tenant
        && scope.project.is_none_or(|project| project == lease.project)
        && scope.class.is_none_or(|class| class == lease.class)
        && scope.pool.is_none_or(|pool| pool == lease.pool)
        && scope.priority.is_none_or(|priority| priority == lease.priority)
        && match scope.node {
            NodeScope::All | NodeScope::Each => true,
            NodeScope::One(node) => node == lease.node,
        }
}

/// A request, as quotas see it: the asks once, or once for each replica of a gang.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) priority: Priority,
    pub(crate) asks: Vec<(ClassNo, u64)>,
    /// `None` for a lease request.
    pub(crate) replicas: Option<u32>,
    /// The claimer whose nodes it uses; `None` if it is not sensitive.
    pub(crate) claimer: Option<Claimer>,
    /// The only node that it may use.
    pub(crate) node: Option<NodeNo>,
    /// The specification of a gang; `None` for a lease request.
    pub(crate) spec: Option<AllocationSpec>,
}

/// The pool and node of a replica.
pub(crate) type NodeInPool = (PoolNo, NodeNo);

pub(crate) fn is_within(scope: &QuotaScope, (pool, node): NodeInPool) -> bool {
    scope.pool.is_none_or(|of| of == pool)
        && match scope.node {
            NodeScope::All | NodeScope::Each => true,
            NodeScope::One(of) => of == node,
        }
}

impl World {
    fn counted(&self, quota: &Quota, on: Option<NodeNo>) -> Vec<&Lease> {
        let counts = |l: &&Lease| l.phase.counts_for_quota() && on.is_none_or(|node| node == l.node);
        self.leases.iter().filter(counts).filter(|l| covers(&quota.put.scope, l)).collect()
    }

    /// The use of a quota, on one node if one is given. Fenced capacity does not count.
    pub(crate) fn used(&self, quota: &Quota, on: Option<NodeNo>) -> u64 {
        let leases = || self.counted(quota, on);
        match quota.put.measure {
            Measure::Quanta => leases().iter().map(|lease| lease.quanta).sum(),
            Measure::Leases => leases().len() as u64,
            Measure::Nodes => self.nodes_counted(quota).len() as u64,
            Measure::Allocations => self.allocations_counted(&quota.put.scope),
        }
    }

    /// Nodes with leases, and claimed nodes.
    pub(crate) fn nodes_counted(&self, quota: &Quota) -> BTreeSet<NodeNo> {
        let leased = self.counted(quota, None).into_iter().map(|lease| lease.node);
        leased.chain(self.nodes_claimed_under(quota)).collect()
    }

    /// Allocations that hold capacity are counted whole.
    fn allocations_counted(&self, scope: &QuotaScope) -> u64 {
        let counts = |a: &&Allocation| {
            a.state.is_placed()
                && a.tenant == scope.tenant
                && scope.project.is_none_or(|project| project == a.project)
                && scope.priority.is_none_or(|priority| priority == a.spec.priority)
        };
        self.allocations.values().filter(counts).count() as u64
    }

    /// The ruling on one more replica on a node when others are on `taken`; or on the whole request, if the quota does
    /// not depend on nodes. `None` if the quota does not apply.
    pub(crate) fn rule(
        &self,
        number: QuotaNo,
        quota: &Quota,
        demand: &Demand,
        place: Option<NodeInPool>,
        taken: &[NodeInPool],
        now: Instant,
    ) -> Option<Ruling> {
        let scope = &quota.put.scope;
        let applies = scope.tenant == demand.tenant
            && scope.project.is_none_or(|project| project == demand.project)
            && scope.class.is_none_or(|class| demand.asks.iter().any(|(asked, _)| *asked == class))
            && scope.priority.is_none_or(|priority| priority == demand.priority)
            && (quota.put.measure != Measure::Allocations || demand.replicas.is_some())
            && place.map_or(scope.pool.is_none() && scope.node == NodeScope::All, |at| is_within(scope, at));
        if !applies {
            return None;
        }
        let (used, requested) = self.use_and_request(quota, demand, place, taken);
        let over = |limit: u64| used + requested > limit;
        let refused = |limit| Ruling::Refused(DenyCause::Quota { quota: number, used, requested, limit });
        Some(match quota.put.limit {
            LimitKind::Hard { limit } if over(limit) => refused(limit),
            LimitKind::Soft { limit } if over(limit) => Ruling::OverSoft,
            LimitKind::Burst { burst_limit, .. } if over(burst_limit) => refused(burst_limit),
            LimitKind::Burst { limit, burst_ttl, .. } if over(limit) => {
                let started_at = quota.episode.map_or(now, |episode| episode.started_at);
                let ends_at = started_at.saturating_add(burst_ttl);
                // A gang waits if it would run for longer than what is left of the burst (SEMANTICS 11).
                let walltime = demand.spec.as_ref().and_then(|spec| spec.walltime);
                let outlasts = walltime.is_some_and(|walltime| now.saturating_add(walltime) > ends_at);
                if ends_at <= now || outlasts {
                    Ruling::Refused(DenyCause::BurstOver { quota: number, ends_at })
                } else {
                    Ruling::Until(ends_at)
                }
            }
            _ => Ruling::Passes,
        })
    }

    /// What a gang counts in a quota by itself: all of it, or one replica if the quota depends on nodes. `None` if the
    /// quota does not count it.
    pub(crate) fn counts_alone(&self, quota: &Quota, demand: &Demand) -> Option<u64> {
        let scope = &quota.put.scope;
        let applies = scope.tenant == demand.tenant
            && scope.project.is_none_or(|project| project == demand.project)
            && scope.class.is_none_or(|class| demand.asks.iter().any(|(asked, _)| *asked == class))
            && scope.priority.is_none_or(|priority| priority == demand.priority);
        let of_class = demand.asks.iter().filter(|(class, _)| scope.class.is_none_or(|c| c == *class));
        let each = match quota.put.measure {
            Measure::Quanta => of_class.map(|(_, quanta)| quanta).sum(),
            Measure::Leases => of_class.count() as u64,
            Measure::Nodes | Measure::Allocations => 1,
        };
        let times = if quota.depends_on_node() || quota.put.measure == Measure::Allocations {
            1
        } else {
            u64::from(demand.replicas.unwrap_or(1))
        };
        applies.then_some(each * times)
    }

    fn use_and_request(
        &self,
        quota: &Quota,
        demand: &Demand,
        place: Option<NodeInPool>,
        taken: &[NodeInPool],
    ) -> (u64, u64) {
        let scope = &quota.put.scope;
        let asked = demand.asks.iter().filter(|(class, _)| scope.class.is_none_or(|c| c == *class));
        let each = match quota.put.measure {
            Measure::Quanta => asked.map(|(_, quanta)| quanta).sum(),
            Measure::Leases => asked.count() as u64,
            Measure::Nodes | Measure::Allocations => 1,
        };
        let Some((_, node)) = place else {
            let times = if quota.put.measure == Measure::Allocations { 1 } else { demand.replicas.unwrap_or(1) };
            return (self.used(quota, None), each * u64::from(times));
        };
        let before: Vec<NodeNo> = taken.iter().filter(|at| is_within(scope, **at)).map(|(_, node)| *node).collect();
        if quota.put.measure == Measure::Nodes {
            // A node that is used already does not count again.
            let counted = self.nodes_counted(quota);
            let new: BTreeSet<NodeNo> = before.into_iter().chain([node]).filter(|at| !counted.contains(at)).collect();
            return (counted.len() as u64, new.len() as u64);
        }
        if scope.node == NodeScope::Each {
            let here = before.iter().filter(|other| **other == node).count() as u64;
            return (self.used(quota, Some(node)), each * (here + 1));
        }
        (self.used(quota, None), each * (before.len() as u64 + 1))
    }

    /// Converts the refusal of one replica to the figures of the whole gang, placed on `places`.
    pub(crate) fn for_all(&self, cause: DenyCause, demand: &Demand, places: &[NodeInPool]) -> DenyCause {
        let DenyCause::Quota { quota: number, used, requested, limit } = cause else { return cause };
        let quota = &self.quotas[&number];
        let per_node = quota.put.scope.node == NodeScope::Each && quota.put.measure != Measure::Nodes;
        let Some((last, others)) = places.split_last().filter(|_| !per_node) else { return cause };
        let all = self.use_and_request(quota, demand, Some(*last), others).1;
        DenyCause::Quota { quota: number, used, requested: requested.max(all), limit }
    }

    /// The burst quota that limits the renewal of a lease, and until when; only quotas above their base limit apply.
    pub(crate) fn renewal_ends(&self, lease: &Lease) -> Option<(QuotaNo, Instant)> {
        let ends = self.quotas.iter().filter(|(_, quota)| covers(&quota.put.scope, lease)).filter_map(|(no, quota)| {
            let burst = burst_of(quota)?;
            let over = self.used(quota, None) > burst.base;
            // Use above the base limit implies a burst, because `follow_episodes` runs after each record.
            over.then(|| {
                (*no, quota.episode.expect("over base within an episode").started_at.saturating_add(burst.ttl))
            })
        });
        ends.min_by_key(|(number, at)| (*at, *number))
    }

    /// After each record: a burst starts when use exceeds the base limit. The time at or below the base limit counts
    /// from the stamp of the record that got it there. Only `quota.burst_ended` ends a burst.
    pub(crate) fn follow_episodes(&mut self, stamp: Instant) {
        let numbers: Vec<QuotaNo> = self.quotas.keys().copied().collect();
        for number in numbers {
            let quota = &self.quotas[&number];
            let episode = burst_of(quota).and_then(|burst| {
                let over = self.used(quota, None) > burst.base;
                match quota.episode {
                    None => over.then_some(Episode { started_at: stamp, below_since: None }),
                    Some(episode) if over => Some(Episode { below_since: None, ..episode }),
                    Some(episode) => Some(Episode { below_since: episode.below_since.or(Some(stamp)), ..episode }),
                }
            });
            self.quotas.get_mut(&number).expect("just listed").episode = episode;
        }
    }
}
