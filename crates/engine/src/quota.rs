//! Limits on what a tenant may hold (SEMANTICS 4).

use crate::allocation::Allocation;
use crate::lease::Lease;
use crate::node::Node;
use crate::placement::Counted;
use leasehold_model::{
    ClassNo, DenyCause, Instant, LimitKind, Measure, NodeNo, NodeScope, PoolNo, Priority, ProjectNo, QuotaNo,
    QuotaScope,
};
use std::collections::BTreeMap;

/// A burst episode: the time over the base limit of a burst quota, and the time below it that must
/// pass before another episode may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    pub started_at: Instant,
    /// Since when use has been at or below the base.
    pub below_since: Option<Instant>,
}

/// A limit with the amount that counts against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    pub number: QuotaNo,
    pub scope: QuotaScope,
    pub measure: Measure,
    pub limit: LimitKind,
    /// Quanta, leases or distinct nodes, by measure.
    pub used: u64,
    /// By node: quanta or leases for `NodeScope::Each`, leases and claims for `Measure::Nodes`.
    pub(crate) by_node: BTreeMap<NodeNo, u64>,
    pub episode: Option<Episode>,
}

/// The properties of a lease, held or requested, that quotas depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) project: ProjectNo,
    pub(crate) class: ClassNo,
    pub(crate) priority: Priority,
    pub(crate) quanta: u64,
}

impl Facts {
    pub(crate) fn of(lease: &Lease) -> Self {
        Self { project: lease.project, class: lease.class, priority: lease.priority, quanta: lease.quanta.0 }
    }
}

/// The verdict of one quota on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Within,
    OverSoft,
    /// Allowed until this instant.
    Until(Instant),
    Refused(DenyCause),
}

impl Quota {
    pub(crate) fn new(number: QuotaNo, scope: QuotaScope, measure: Measure, limit: LimitKind) -> Self {
        Self { number, scope, measure, limit, used: 0, by_node: BTreeMap::new(), episode: None }
    }

    /// The use on each node, for quotas that count nodes or each node separately.
    pub fn used_by_node(&self) -> impl Iterator<Item = (NodeNo, u64)> + '_ {
        self.by_node.iter().map(|(node, used)| (*node, *used))
    }

    fn concerns(&self, facts: &Facts) -> bool {
        self.scope.project.is_none_or(|p| p == facts.project)
            && self.scope.class.is_none_or(|c| c == facts.class)
            && self.scope.priority.is_none_or(|p| p == facts.priority)
    }

    pub(crate) fn covers(&self, pool: PoolNo, node: NodeNo) -> bool {
        self.scope.pool.is_none_or(|p| p == pool)
            && match self.scope.node {
                NodeScope::One(n) => n == node,
                NodeScope::All | NodeScope::Each => true,
            }
    }

    /// Whether its verdict depends on the node that is chosen.
    pub(crate) fn depends_on_node(&self) -> bool {
        self.scope.pool.is_some() || self.scope.node != NodeScope::All || self.measure == Measure::Nodes
    }

    fn amount(&self, facts: &Facts) -> u64 {
        match self.measure {
            Measure::Quanta => facts.quanta,
            Measure::Leases | Measure::Nodes => 1,
            // Allocations are counted whole, not by their leases.
            Measure::Allocations => 0,
        }
    }

    /// How much a request would add to this quota. For quotas on nodes it is at most one; whether the
    /// node is new is known only when it is chosen.
    pub(crate) fn asked(&self, asks: &[Facts]) -> u64 {
        let sum = asks.iter().filter(|f| self.concerns(f)).map(|f| self.amount(f)).sum();
        if self.measure == Measure::Nodes { u64::min(sum, 1) } else { sum }
    }

    /// Whether it counts the claims of a project: quotas on nodes do, unless they are limited to a class or a priority.
    fn counts_claim(&self, project: ProjectNo) -> bool {
        self.measure == Measure::Nodes
            && self.scope.project.is_none_or(|of| of == project)
            && self.scope.class.is_none()
            && self.scope.priority.is_none()
    }

    /// The verdict on claiming several nodes at once. A claim has no deadline, so it may not use a burst.
    pub(crate) fn judge_claim(&self, project: ProjectNo, nodes: &[&Node]) -> Verdict {
        if !self.counts_claim(project) {
            return Verdict::Within;
        }
        let is_new = |node: &&&Node| self.covers(node.pool, node.number) && !self.by_node.contains_key(&node.number);
        let requested = nodes.iter().filter(is_new).count() as u64;
        let (quota, used, limit) = (self.number, self.used, self.limit.limit());
        match self.limit {
            LimitKind::Soft { .. } => Verdict::Within,
            _ if requested == 0 || used.saturating_add(requested) <= limit => Verdict::Within,
            _ => Verdict::Refused(DenyCause::Quota { quota, used, requested, limit }),
        }
    }

    /// Counts a claimed node in or out. Returns when a burst timer must be set.
    pub(crate) fn count_claim(
        &mut self,
        project: ProjectNo,
        at: (PoolNo, NodeNo),
        added: bool,
        stamp: Instant,
    ) -> Option<Instant> {
        if self.tally_claim(project, at, added) { self.settle_episode(stamp) } else { None }
    }

    pub(crate) fn tally_claim(&mut self, project: ProjectNo, (pool, node): (PoolNo, NodeNo), added: bool) -> bool {
        if !self.counts_claim(project) || !self.covers(pool, node) {
            return false;
        }
        self.tally_node(node, 1, added);
        self.used = self.by_node.len() as u64;
        true
    }

    fn tally_node(&mut self, node: NodeNo, amount: u64, added: bool) {
        let here = self.by_node.entry(node).or_insert(0);
        *here = if added { *here + amount } else { *here - amount };
        if *here == 0 {
            self.by_node.remove(&node);
        }
    }

    /// Counts an allocation that holds capacity in or out. Returns when a burst timer must be set.
    pub(crate) fn count_allocation(&mut self, allocation: &Allocation, added: bool, stamp: Instant) -> Option<Instant> {
        if self.tally_allocation(allocation, added) { self.settle_episode(stamp) } else { None }
    }

    pub(crate) fn tally_allocation(&mut self, allocation: &Allocation, added: bool) -> bool {
        let counts = self.counts_allocation(allocation.project, allocation.spec.priority);
        if counts {
            self.used = if added { self.used + 1 } else { self.used - 1 };
        }
        counts
    }

    /// Whether it counts the allocations of a project with a priority.
    pub(crate) fn counts_allocation(&self, project: ProjectNo, priority: Priority) -> bool {
        self.measure == Measure::Allocations
            && self.scope.project.is_none_or(|p| p == project)
            && self.scope.priority.is_none_or(|p| p == priority)
    }

    /// The verdict on adding `asked`, on the node `on` if the quota depends on the node.
    pub(crate) fn judge(&self, asked: u64, on: Option<(PoolNo, NodeNo)>, now: Instant) -> Verdict {
        self.judge_with(asked, on, now, Counted::default())
    }

    /// As [`Self::judge`], with what earlier replicas of the same decision have `taken`.
    pub(crate) fn judge_with(&self, asked: u64, on: Option<(PoolNo, NodeNo)>, now: Instant, taken: Counted) -> Verdict {
        if asked == 0 {
            return Verdict::Within;
        }
        // What earlier replicas have taken is part of the same request, so it counts as requested, not as used.
        let (used, asked) = match on {
            None => (self.used, asked + taken.amount),
            Some((pool, node)) if !self.covers(pool, node) => return Verdict::Within,
            Some((_, node)) => match (self.measure, self.scope.node) {
                // A node that is already in use adds nothing; but if the limit is below the use, new grants are denied.
                (Measure::Nodes, _) => {
                    let held = self.by_node.contains_key(&node) || taken.here > 0;
                    (self.used, taken.new_nodes + u64::from(!held))
                }
                (_, NodeScope::Each) => (self.by_node.get(&node).copied().unwrap_or(0), asked + taken.here),
                _ => (self.used, asked + taken.amount),
            },
        };
        let after = used.saturating_add(asked);
        let refuse = |limit| Verdict::Refused(DenyCause::Quota { quota: self.number, used, requested: asked, limit });
        match self.limit {
            LimitKind::Hard { limit } if after > limit => refuse(limit),
            LimitKind::Soft { limit } if after > limit => Verdict::OverSoft,
            LimitKind::Burst { limit, burst_limit, .. } if after > limit => {
                if after > burst_limit {
                    return refuse(burst_limit);
                }
                let ends_at = self.episode_end(now);
                if ends_at <= now {
                    return Verdict::Refused(DenyCause::BurstOver { quota: self.number, ends_at });
                }
                Verdict::Until(ends_at)
            }
            _ => Verdict::Within,
        }
    }

    /// The latest deadline of a renewal while use is over the base limit; `None` if the quota does not limit it.
    pub(crate) fn renewal_limit(&self, lease: &Lease, now: Instant) -> Option<Instant> {
        let LimitKind::Burst { limit, .. } = self.limit else { return None };
        let over = self.used > limit && self.concerns(&Facts::of(lease)) && self.covers(lease.pool, lease.node);
        over.then(|| self.episode_end(now))
    }

    /// The end of the current episode, or of one that would begin now.
    fn episode_end(&self, now: Instant) -> Instant {
        let LimitKind::Burst { burst_ttl, .. } = self.limit else { return Instant::MAX };
        self.episode.map_or(now, |e| e.started_at).saturating_add(burst_ttl)
    }

    /// Counts a lease in or out, at a record's stamp. Returns when a burst timer must be set.
    pub(crate) fn count(&mut self, lease: &Lease, added: bool, stamp: Instant) -> Option<Instant> {
        if self.tally(lease, added) { self.settle_episode(stamp) } else { None }
    }

    /// Adds or subtracts what a lease uses. Returns whether the quota counts the lease.
    pub(crate) fn tally(&mut self, lease: &Lease, added: bool) -> bool {
        let facts = Facts::of(lease);
        if !self.concerns(&facts) || !self.covers(lease.pool, lease.node) {
            return false;
        }
        let amount = self.amount(&facts);
        let by_node = self.measure == Measure::Nodes || self.scope.node == NodeScope::Each;
        if by_node {
            self.tally_node(lease.node, amount, added);
        }
        self.used = match self.measure {
            Measure::Nodes => self.by_node.len() as u64,
            _ if added => self.used + amount,
            _ => self.used - amount,
        };
        true
    }

    /// Updates the burst episode after a change of use or limit. If use has just dropped to the base limit,
    /// returns the instant at which the episode ends if it stays there.
    pub(crate) fn settle_episode(&mut self, stamp: Instant) -> Option<Instant> {
        let LimitKind::Burst { limit, burst_ttl, .. } = self.limit else {
            self.episode = None;
            return None;
        };
        let over = self.used > limit;
        match &mut self.episode {
            None if over => self.episode = Some(Episode { started_at: stamp, below_since: None }),
            Some(episode) if over => episode.below_since = None,
            Some(episode) if episode.below_since.is_none() => {
                episode.below_since = Some(stamp);
                return Some(stamp.saturating_add(burst_ttl));
            }
            _ => {}
        }
        None
    }

    /// When the episode ends if use stays at or below the base limit.
    pub(crate) fn episode_due(&self) -> Option<Instant> {
        let LimitKind::Burst { burst_ttl, .. } = self.limit else { return None };
        self.episode?.below_since.map(|since| since.saturating_add(burst_ttl))
    }
}
