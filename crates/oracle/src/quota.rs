//! Quotas: counted by looking at every lease, each time (SEMANTICS 4).

use crate::lease::Lease;
use crate::request::RequestFacts;
use crate::world::{Episode, Quota, World};
use leasehold_model::{DenyCause, Instant, LimitKind, Measure, NodeNo, NodeScope, PoolNo, QuotaNo, QuotaScope, Span};
use std::collections::BTreeSet;

/// What one quota says of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Passes,
    /// Admitted over a soft limit.
    OverSoft,
    /// Admitted over the base of a burst quota, until the episode is over.
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
    /// What depends on the node filters the candidates (SEMANTICS 4).
    pub(crate) fn depends_on_node(&self) -> bool {
        let scope = &self.put.scope;
        scope.pool.is_some() || scope.node != NodeScope::All || self.put.measure == Measure::Nodes
    }
}

/// Whether a lease is among those a scope speaks of.
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

impl World {
    fn counted(&self, quota: &Quota, on: Option<NodeNo>) -> Vec<&Lease> {
        let counts = |l: &&Lease| l.phase.counts_for_quota() && on.is_none_or(|node| node == l.node);
        self.leases.iter().filter(counts).filter(|l| covers(&quota.put.scope, l)).collect()
    }

    /// What is used of a quota, on one node if one is named. Fenced capacity no longer counts.
    pub(crate) fn used(&self, quota: &Quota, on: Option<NodeNo>) -> u64 {
        let leases = self.counted(quota, on);
        match quota.put.measure {
            Measure::Quanta => leases.iter().map(|lease| lease.quanta).sum(),
            Measure::Leases => leases.len() as u64,
            Measure::Nodes => leases.iter().map(|lease| lease.node).collect::<BTreeSet<_>>().len() as u64,
        }
    }

    /// What a request adds to a quota.
    fn requested(&self, quota: &Quota, facts: &RequestFacts, place: Option<(PoolNo, NodeNo)>) -> u64 {
        let scope = &quota.put.scope;
        let asked = facts.asks.iter().filter(|(class, _)| scope.class.is_none_or(|c| c == *class));
        match quota.put.measure {
            Measure::Quanta => asked.map(|(_, quanta)| quanta).sum(),
            Measure::Leases => asked.count() as u64,
            // A node on which something is held already is not one more.
            Measure::Nodes => {
                u64::from(place.is_none_or(|(_, node)| self.counted(quota, None).iter().all(|l| l.node != node)))
            }
        }
    }

    /// What a quota says of a request, at a place if it depends on one. None: it does not apply.
    pub(crate) fn rule(
        &self,
        number: QuotaNo,
        quota: &Quota,
        facts: &RequestFacts,
        place: Option<(PoolNo, NodeNo)>,
        now: Instant,
    ) -> Option<Ruling> {
        let scope = &quota.put.scope;
        let applies = scope.tenant == facts.tenant
            && scope.project.is_none_or(|project| project == facts.project)
            && scope.class.is_none_or(|class| facts.asks.iter().any(|(asked, _)| *asked == class))
            && scope.priority.is_none_or(|priority| priority == facts.priority)
            && scope.pool.is_none_or(|pool| place.is_some_and(|(at, _)| at == pool))
            && match scope.node {
                NodeScope::All | NodeScope::Each => true,
                NodeScope::One(node) => place.is_some_and(|(_, at)| at == node),
            };
        if !applies {
            return None;
        }
        let on = place.filter(|_| scope.node == NodeScope::Each).map(|(_, node)| node);
        let used = self.used(quota, on);
        let requested = self.requested(quota, facts, place);
        let over = |limit: u64| used + requested > limit;
        let refused = |limit| Ruling::Refused(DenyCause::Quota { quota: number, used, requested, limit });
        Some(match quota.put.limit {
            LimitKind::Hard { limit } if over(limit) => refused(limit),
            LimitKind::Soft { limit } if over(limit) => Ruling::OverSoft,
            LimitKind::Burst { burst_limit, .. } if over(burst_limit) => refused(burst_limit),
            LimitKind::Burst { limit, burst_ttl, .. } if over(limit) => {
                let started_at = quota.episode.map_or(now, |episode| episode.started_at);
                let ends_at = started_at.saturating_add(burst_ttl);
                if ends_at <= now {
                    Ruling::Refused(DenyCause::BurstOver { quota: number, ends_at })
                } else {
                    Ruling::Until(ends_at)
                }
            }
            _ => Ruling::Passes,
        })
    }

    /// The burst quota that a lease may not be renewed past, and until when: those over their base.
    pub(crate) fn renewal_ends(&self, lease: &Lease) -> Option<(QuotaNo, Instant)> {
        let ends = self.quotas.iter().filter(|(_, quota)| covers(&quota.put.scope, lease)).filter_map(|(no, quota)| {
            let burst = burst_of(quota)?;
            let over = self.used(quota, None) > burst.base;
            // Use above base without an episode cannot be: `follow_episodes` runs after each record.
            over.then(|| {
                (*no, quota.episode.expect("over base within an episode").started_at.saturating_add(burst.ttl))
            })
        });
        ends.min_by_key(|(number, at)| (*at, *number))
    }

    /// After each record: an episode starts when use passes base, and the time at or below base
    /// counts from the stamp after which it is there. Only `quota.burst_ended` ends an episode.
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
