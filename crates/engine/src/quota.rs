//! Limits on what a tenant may hold (SEMANTICS 4 and 11).

use crate::allocation::Allocation;
use crate::claims::ClaimFacts;
use crate::custody::Claim;
use crate::lease::Lease;
use crate::overage::Overage;
use crate::placement::Counted;
use crate::queue::minute;
use crate::state::State;
use crate::tally::{Count, Holder, TOGETHER, Tallies, Tally};
use leasehold_model::body::QuotaPut;
use leasehold_model::{
    AppInstanceNo, ClassNo, DenyCause, Fraction, HolderScope, Instant, LimitKind, Measure, NodeNo, NodeScope, PoolNo,
    Priority, ProjectNo, QuotaNo, QuotaScope, ResourceKind, UserNo,
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

/// A user, an app instance and a node with their use.
pub(crate) type UsedLine = (Option<UserNo>, Option<AppInstanceNo>, Option<NodeNo>, Fraction);

/// A limit with the amount that counts against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    pub number: QuotaNo,
    pub scope: QuotaScope,
    pub measure: Measure,
    /// The limit that applies now.
    pub limit: LimitKind,
    /// Set while a temporary limit applies.
    pub temporary: Option<Temporary>,
    /// Whether a request that fails on it alone may evict leases of lower priority that it counts.
    pub evict_own_lower: bool,
    /// How many parts of a billing unit it counts in: the least common multiple of the `quanta_per_unit` of the classes
    /// of its kind, so that the sum over these classes is exact. One for quotas that are not on a kind.
    pub(crate) per_unit: u64,
    tallies: Tallies,
    /// The part of its use that is claims, which never start or prolong a burst.
    claimed: Count,
    pub episode: Option<Episode>,
    pub(crate) overage: Overage,
    pub(crate) marks: MinuteMarks,
}

/// What holders used at the beginning of a minute, for those whose use of a soft quota has changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MinuteMarks {
    pub(crate) minute: u64,
    pub(crate) used: BTreeMap<Holder, Count>,
}

/// What follows when a temporary limit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temporary {
    pub base: LimitKind,
    pub until: Instant,
}

/// The properties of a lease, held or requested, that quotas depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Who pays.
    pub(crate) project: ProjectNo,
    pub(crate) user: Option<UserNo>,
    pub(crate) app_instance: Option<AppInstanceNo>,
    pub(crate) class: ClassNo,
    pub(crate) kind: ResourceKind,
    pub(crate) quanta_per_unit: u64,
    pub(crate) priority: Priority,
    pub(crate) quanta: u64,
}

impl State {
    pub(crate) fn facts_of(&self, lease: &Lease) -> Facts {
        let spec = self.class(lease.class).expect("a lease's class exists");
        Facts {
            project: lease.payer,
            user: lease.user,
            app_instance: self.app_instance_of(lease.number),
            class: lease.class,
            kind: spec.kind,
            quanta_per_unit: spec.quanta_per_unit,
            priority: lease.priority,
            quanta: lease.quanta.0,
        }
    }

    /// The least common multiple of the `quanta_per_unit` of all classes of a kind; `None` if it is too large.
    pub(crate) fn parts_per_unit(&self, kind: ResourceKind) -> Option<u64> {
        let of_kind = self.classes().filter(|(_, spec)| spec.kind == kind);
        common_multiple(of_kind.map(|(_, spec)| spec.quanta_per_unit))
    }
}

/// The most parts of a billing unit in which a quota on a kind can count.
pub(crate) const PARTS_PER_UNIT_MAX: u64 = 1 << 32;

/// The least common multiple, if it is at most [`PARTS_PER_UNIT_MAX`].
pub(crate) fn common_multiple(mut numbers: impl Iterator<Item = u64>) -> Option<u64> {
    numbers.try_fold(1u64, |sum, number| {
        let divisor = Fraction::new(u128::from(sum), number).denominator();
        sum.checked_mul(divisor).filter(|parts| *parts <= PARTS_PER_UNIT_MAX)
    })
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

/// Whether a holder is in the scope; work without one is not.
fn is_of<T: Copy + PartialEq>(scope: Option<HolderScope<T>>, holder: Option<T>) -> bool {
    scope.is_none_or(|scope| holder.is_some_and(|holder| scope.covers(holder)))
}

impl Quota {
    pub(crate) fn new(put: &QuotaPut) -> Self {
        let (limit, temporary) = in_force(put);
        Self {
            number: put.quota,
            scope: put.scope.clone(),
            measure: put.measure,
            limit,
            temporary,
            evict_own_lower: put.evict_own_lower,
            per_unit: 1,
            tallies: Tallies::default(),
            claimed: 0,
            episode: None,
            overage: Overage::default(),
            marks: MinuteMarks::default(),
        }
    }

    /// Replaces the limits.
    pub(crate) fn put_limits(&mut self, put: &QuotaPut) {
        (self.limit, self.temporary) = in_force(put);
        self.evict_own_lower = put.evict_own_lower;
        self.marks = MinuteMarks::default();
    }

    /// Remembers what a holder used at the beginning of the minute, before that changes. Only soft quotas need it.
    pub(crate) fn mark(&mut self, holder: Holder, stamp: Instant) {
        if !matches!(self.limit, LimitKind::Soft { .. }) {
            return;
        }
        if self.marks.minute != minute(stamp) {
            self.marks = MinuteMarks { minute: minute(stamp), used: BTreeMap::new() };
        }
        let used = self.used_of(holder);
        self.marks.used.entry(holder).or_insert(used);
    }

    /// What a holder used at the beginning of the minute of `now`. A change of the limits begins anew.
    pub(crate) fn used_at_minute(&self, holder: Holder, now: Instant) -> Count {
        let marked = self.marks.used.get(&holder).filter(|_| self.marks.minute == minute(now));
        marked.copied().unwrap_or_else(|| self.used_of(holder))
    }

    /// Ends the temporary limit.
    pub(crate) fn end_temporary(&mut self) {
        if let Some(Temporary { base, .. }) = self.temporary.take() {
            self.limit = base;
            self.marks = MinuteMarks::default();
        }
    }

    /// The limit without a temporary one.
    pub fn base(&self) -> LimitKind {
        self.temporary.map_or(self.limit, |temporary| temporary.base)
    }

    /// Changes the size of the parts in which a quota on a kind counts. Both sizes divide what is counted.
    pub(crate) fn set_per_unit(&mut self, per_unit: u64) {
        let (from, to) = (u128::from(self.per_unit), u128::from(per_unit));
        for tally in self.tallies.values_mut() {
            let counts = tally.by_node.values_mut().filter(|_| self.measure == Measure::Quanta);
            for count in counts.chain(Some(&mut tally.used).filter(|_| self.measure == Measure::Quanta)) {
                *count = *count * to / from;
            }
        }
        if self.measure == Measure::Quanta {
            self.overage.sum = self.overage.sum * to / from;
            self.claimed = self.claimed * to / from;
            self.marks.used.values_mut().for_each(|used| *used = *used * to / from);
        }
        self.per_unit = per_unit;
    }

    pub(crate) fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.tallies.values()
    }

    /// The amount that counts against it now, over all holders; in billing units if the quota is on a kind.
    pub fn used(&self) -> Fraction {
        self.in_units(self.tallies.values().map(|tally| tally.used).sum())
    }

    /// The highest use of one that it counts separately, or else all use.
    pub fn most_used(&self) -> Fraction {
        let counts = self.tallies.values().map(|tally| match self.scope.node {
            NodeScope::Each => tally.by_node.values().copied().max().unwrap_or(0),
            NodeScope::All | NodeScope::One(_) => tally.used,
        });
        self.in_units(counts.max().unwrap_or(0))
    }

    /// The use on each node, for quotas that count nodes or each node separately.
    pub fn used_by_node(&self) -> impl Iterator<Item = (NodeNo, u128)> + '_ {
        let mut sums: BTreeMap<NodeNo, u128> = BTreeMap::new();
        for (node, used) in self.tallies.values().flat_map(|tally| &tally.by_node) {
            *sums.entry(*node).or_default() += used;
        }
        sums.into_iter()
    }

    /// The use of each user, app instance and node that it counts separately, without zeros.
    pub fn used_lines(&self) -> impl Iterator<Item = UsedLine> + '_ {
        self.tallies.iter().flat_map(move |((user, app), tally)| {
            let line = move |node, used| (user, app, node, self.in_units(used));
            let by_node = self.scope.node == NodeScope::Each;
            let each = tally.by_node.iter().filter(move |_| by_node).map(move |(node, used)| line(Some(*node), *used));
            each.chain((!by_node).then(|| line(None, tally.used)))
        })
    }

    pub(crate) fn in_units(&self, count: Count) -> Fraction {
        Fraction::new(count, self.per_unit)
    }

    /// A limit in the parts in which it counts.
    pub(crate) fn in_parts(&self, limit: u64) -> Count {
        u128::from(limit) * u128::from(self.per_unit)
    }

    /// The holder under whom the work of a user and an app instance is counted.
    pub(crate) fn holder(&self, user: Option<UserNo>, app_instance: Option<AppInstanceNo>) -> Holder {
        let further = &self.scope.further;
        (
            user.filter(|_| further.user == Some(HolderScope::Each)),
            app_instance.filter(|_| further.app_instance == Some(HolderScope::Each)),
        )
    }

    fn tally_of(&self, holder: Holder) -> Option<&Tally> {
        self.tallies.of(holder)
    }

    pub(crate) fn used_of(&self, holder: Holder) -> Count {
        self.tally_of(holder).map_or(0, |tally| tally.used)
    }

    pub(crate) fn used_on(&self, holder: Holder, node: NodeNo) -> Option<Count> {
        self.tally_of(holder)?.by_node.get(&node).copied()
    }

    /// Whether it would count a request if the request named a user and an app instance.
    pub(crate) fn concerns_anyone(&self, facts: &Facts) -> bool {
        self.scope.project.is_none_or(|p| p == facts.project)
            && self.scope.class.is_none_or(|c| c == facts.class)
            && self.scope.further.kind.is_none_or(|k| k == facts.kind)
            && self.scope.covers_priority(facts.priority)
    }

    fn concerns(&self, facts: &Facts) -> bool {
        self.concerns_anyone(facts)
            && is_of(self.scope.further.user, facts.user)
            && is_of(self.scope.further.app_instance, facts.app_instance)
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

    fn amount(&self, facts: &Facts) -> Count {
        match self.measure {
            Measure::Quanta if self.scope.further.kind.is_some() => {
                u128::from(facts.quanta) * u128::from(self.per_unit / facts.quanta_per_unit)
            }
            Measure::Quanta => u128::from(facts.quanta),
            Measure::Leases | Measure::Nodes => 1,
            // Allocations are counted whole, not by their leases.
            Measure::Allocations => 0,
        }
    }

    /// How much a request would add to this quota. For quotas on nodes it is at most one; whether the
    /// node is new is known only when it is chosen.
    pub(crate) fn asked(&self, asks: &[Facts]) -> Count {
        let sum = asks.iter().filter(|f| self.concerns(f)).map(|f| self.amount(f)).sum();
        if self.measure == Measure::Nodes { u128::min(sum, 1) } else { sum }
    }

    /// Under rules before version 4, quotas on nodes counted claims unless they were limited to a class, a kind, a
    /// priority or an app instance.
    fn counts_node_only(&self, claim: &Claim) -> bool {
        let further = &self.scope.further;
        self.measure == Measure::Nodes
            && self.scope.project.is_none_or(|of| of == claim.project)
            && self.scope.class.is_none()
            && self.scope.priority.is_none()
            && further.kind.is_none()
            && further.app_instance.is_none()
            && is_of(further.user, Some(claim.by.user))
    }

    /// What it counts of a claimed node.
    fn claimed_amount(&self, facts: &ClaimFacts) -> Count {
        let (pool, node) = facts.at;
        match (&facts.classes, self.measure) {
            _ if !self.covers(pool, node) => 0,
            (None, _) => u128::from(self.counts_node_only(&facts.claim)),
            (Some(_), Measure::Leases | Measure::Allocations) => 0,
            (Some(classes), Measure::Nodes) => u128::from(classes.iter().any(|facts| self.concerns(facts))),
            (Some(classes), Measure::Quanta) => {
                classes.iter().filter(|facts| self.concerns(facts)).map(|facts| self.amount(facts)).sum()
            }
        }
    }

    /// The verdict on claiming several nodes at once for one user. A claim has no deadline, so it may not use a burst.
    pub(crate) fn judge_claim(&self, claims: &[ClaimFacts]) -> Verdict {
        let limit = self.limit.limit();
        let Some(first) = claims.first().filter(|_| !matches!(self.limit, LimitKind::Soft { .. })) else {
            return Verdict::Within;
        };
        let holder = self.holder(Some(first.claim.by.user), None);
        let is_counted =
            |facts: &ClaimFacts| self.measure == Measure::Nodes && self.used_on(holder, facts.at.1).is_some();
        let amounts = claims.iter().filter(|facts| !is_counted(facts)).map(|facts| (facts, self.claimed_amount(facts)));
        let refuse_over = |used: Count, requested: Count| match requested {
            0 => None,
            _ if used.saturating_add(requested) <= self.in_parts(limit) => None,
            _ => Some(Verdict::Refused(self.denial(used, requested, limit))),
        };
        let refused = match (self.measure, self.scope.node) {
            (Measure::Quanta, NodeScope::Each) => amounts
                .map(|(facts, amount)| refuse_over(self.used_on(holder, facts.at.1).unwrap_or(0), amount))
                .find_map(|refused| refused),
            _ => refuse_over(self.used_of(holder), amounts.map(|(_, amount)| amount).sum()),
        };
        refused.unwrap_or(Verdict::Within)
    }

    /// The denial of a request that would exceed a limit.
    fn denial(&self, used: Count, requested: Count, limit: u64) -> DenyCause {
        let quota = self.number;
        if self.scope.further.kind.is_some() && self.measure == Measure::Quanta {
            let (used, requested) = (self.in_units(used), self.in_units(requested));
            return DenyCause::KindQuota { quota, used, requested, limit };
        }
        let whole = |count: Count| u64::try_from(count).unwrap_or(u64::MAX);
        DenyCause::Quota { quota, used: whole(used), requested: whole(requested), limit }
    }

    /// The same denial with at least this much requested.
    pub(crate) fn denial_of_all(&self, cause: DenyCause, all: Count) -> DenyCause {
        let parts = |units: Fraction| units.numerator() * u128::from(self.per_unit / units.denominator());
        match cause {
            DenyCause::Quota { used, requested, limit, .. } => {
                self.denial(u128::from(used), u128::from(requested).max(all), limit)
            }
            DenyCause::KindQuota { used, requested, limit, .. } => {
                self.denial(parts(used), parts(requested).max(all), limit)
            }
            DenyCause::BurstOver { .. }
            | DenyCause::Capacity { .. }
            | DenyCause::Ceiling { .. }
            | DenyCause::Prepaid { .. } => cause,
        }
    }

    /// Adds or subtracts what a claimed node uses. Returns whether the quota counts it.
    pub(crate) fn tally_claim(&mut self, facts: &ClaimFacts, added: bool) -> bool {
        let amount = self.claimed_amount(facts);
        if amount == 0 {
            return false;
        }
        let change = |sum: &mut Count| *sum = if added { *sum + amount } else { *sum - amount };
        let counts_nodes = self.measure == Measure::Nodes;
        let by_node = counts_nodes || self.scope.node == NodeScope::Each;
        self.tallies.change(self.holder(Some(facts.claim.by.user), None), |tally| {
            if by_node {
                tally.count_node(facts.at.1, amount, added);
            }
            if counts_nodes {
                tally.used = tally.by_node.len() as u128;
            } else {
                change(&mut tally.used);
            }
        });
        if facts.classes.is_some() {
            change(&mut self.claimed);
        }
        true
    }

    /// Counts an allocation that holds capacity in or out. Returns when a burst timer must be set.
    pub(crate) fn count_allocation(&mut self, allocation: &Allocation, added: bool, stamp: Instant) -> Option<Instant> {
        self.settle_overage_of_use(stamp);
        self.mark(self.holder(allocation.user, allocation.spec.app_instance), stamp);
        if self.tally_allocation(allocation, added) { self.settle_episode(stamp) } else { None }
    }

    pub(crate) fn tally_allocation(&mut self, allocation: &Allocation, added: bool) -> bool {
        let (user, app_instance) = (allocation.user, allocation.spec.app_instance);
        let counts = self.counts_allocation(allocation.payer, allocation.spec.priority, user, app_instance);
        if counts {
            self.tallies.change(self.holder(user, app_instance), |tally| {
                tally.used = if added { tally.used + 1 } else { tally.used - 1 };
            });
        }
        counts
    }

    /// Whether it counts the allocations of a project and its holder with a priority.
    pub(crate) fn counts_allocation(
        &self,
        project: ProjectNo,
        priority: Priority,
        user: Option<UserNo>,
        app_instance: Option<AppInstanceNo>,
    ) -> bool {
        self.measure == Measure::Allocations
            && self.scope.project.is_none_or(|p| p == project)
            && self.scope.covers_priority(priority)
            && is_of(self.scope.further.user, user)
            && is_of(self.scope.further.app_instance, app_instance)
    }

    /// What a held lease adds to the use of a holder; zero if the quota does not count it there.
    pub(crate) fn count_of(&self, lease: &Lease, facts: &Facts, holder: Holder) -> Count {
        let is_counted = self.concerns(facts)
            && self.covers(lease.pool, lease.node)
            && self.holder(facts.user, facts.app_instance) == holder;
        if is_counted { self.amount(facts) } else { 0 }
    }

    /// The verdict on adding `asked` for a holder, on the node `on` if the quota depends on the node. `taken` is what
    /// counts besides the use.
    pub(crate) fn judge(
        &self,
        asked: Count,
        holder: Holder,
        on: Option<(PoolNo, NodeNo)>,
        now: Instant,
        taken: Counted,
    ) -> Verdict {
        if asked == 0 {
            return Verdict::Within;
        }
        let all_used = self.used_of(holder).saturating_sub(taken.freed) + taken.held;
        // What earlier replicas have taken is part of the same request, so it counts as requested, not as used.
        let (used, asked) = match on {
            None => (all_used, asked + taken.amount),
            Some((pool, node)) if !self.covers(pool, node) => return Verdict::Within,
            Some((_, node)) => match (self.measure, self.scope.node) {
                // A node that is already in use adds nothing; but if the limit is below the use, new grants are denied.
                (Measure::Nodes, _) => {
                    let held = self.used_on(holder, node).is_some() || taken.here > 0;
                    (all_used, taken.new_nodes + u128::from(!held))
                }
                (_, NodeScope::Each) => (self.used_on(holder, node).unwrap_or(0), asked + taken.here),
                _ => (all_used, asked + taken.amount),
            },
        };
        let after = used.saturating_add(asked);
        let is_over = |limit| after > self.in_parts(limit);
        let refuse = |limit| Verdict::Refused(self.denial(used, asked, limit));
        match self.limit {
            LimitKind::Hard { limit } if is_over(limit) => refuse(limit),
            LimitKind::Soft { limit } if is_over(limit) => Verdict::OverSoft,
            LimitKind::Burst { limit, burst_limit, .. } if is_over(limit) => {
                if is_over(burst_limit) {
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

    /// Whether use is over the base limit of a burst quota, which counts all holders together.
    fn is_over_base(&self, limit: u64) -> bool {
        let used = self.used_of(TOGETHER);
        used > self.in_parts(limit) && used > self.claimed
    }

    /// The latest deadline of a renewal while use is over the base limit; `None` if the quota does not limit it.
    pub(crate) fn renewal_limit(&self, facts: &Facts, lease: &Lease, now: Instant) -> Option<Instant> {
        let LimitKind::Burst { limit, .. } = self.limit else { return None };
        let over = self.is_over_base(limit) && self.concerns(facts) && self.covers(lease.pool, lease.node);
        over.then(|| self.episode_end(now))
    }

    /// The end of the current episode, or of one that would begin now.
    fn episode_end(&self, now: Instant) -> Instant {
        let LimitKind::Burst { burst_ttl, .. } = self.limit else { return Instant::MAX };
        self.episode.map_or(now, |e| e.started_at).saturating_add(burst_ttl)
    }

    /// Counts a lease in or out, at a record's stamp. Returns when a burst timer must be set.
    pub(crate) fn count(&mut self, lease: &Lease, facts: &Facts, added: bool, stamp: Instant) -> Option<Instant> {
        if self.is_soft() {
            self.settle_overage(stamp);
            self.mark(self.holder(facts.user, facts.app_instance), stamp);
        }
        if self.tally(lease, facts, added) { self.settle_episode(stamp) } else { None }
    }

    /// Adds or subtracts what a lease uses. Returns whether the quota counts the lease.
    pub(crate) fn tally(&mut self, lease: &Lease, facts: &Facts, added: bool) -> bool {
        if !self.concerns(facts) || !self.covers(lease.pool, lease.node) {
            return false;
        }
        let amount = self.amount(facts);
        let counts_nodes = self.measure == Measure::Nodes;
        let by_node = counts_nodes || self.scope.node == NodeScope::Each;
        self.tallies.change(self.holder(facts.user, facts.app_instance), |tally| {
            if by_node {
                tally.count_node(lease.node, amount, added);
            }
            tally.used = match added {
                _ if counts_nodes => tally.by_node.len() as u128,
                true => tally.used + amount,
                false => tally.used - amount,
            };
        });
        true
    }

    /// Updates the burst episode after a change of use or limit. If use has just dropped to the base limit,
    /// returns the instant at which the episode ends if it stays there.
    pub(crate) fn settle_episode(&mut self, stamp: Instant) -> Option<Instant> {
        let LimitKind::Burst { limit, burst_ttl, .. } = self.limit else {
            self.episode = None;
            return None;
        };
        let over = self.is_over_base(limit);
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

/// The limit that applies while a record stands, and what follows it.
fn in_force(put: &QuotaPut) -> (LimitKind, Option<Temporary>) {
    match put.temporary {
        Some(temporary) => (temporary.limit, Some(Temporary { base: put.limit, until: temporary.until })),
        None => (put.limit, None),
    }
}
