//! How much was held beyond a soft limit, and for how long (SEMANTICS 11).

use crate::quota::Quota;
use crate::tally::{Count, Tally};
use leasehold_model::{Instant, LimitKind, NodeScope};

/// Use beyond a soft limit times nanoseconds, in the parts in which the quota counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overage {
    pub(crate) sum: u128,
    /// Up to when it is summed. `None` before the first start with rules version 4, from which on it is counted.
    pub(crate) since: Option<Instant>,
}

/// More than any cluster can hold for a century, in the smallest parts; larger sums in a snapshot are invalid.
pub(crate) const OVERAGE_MAX: u128 = 1 << 126;

impl Quota {
    /// Starts counting, unless it is counted already.
    pub(crate) fn begin_overage(&mut self, stamp: Instant) {
        self.overage.since.get_or_insert(stamp);
    }

    /// Sums the overage up to `to`. Called before the limit changes.
    pub(crate) fn settle_overage(&mut self, to: Instant) {
        if let Some(since) = self.overage.since {
            self.overage.sum = self.overage_at(to);
            self.overage.since = Some(since.max(to));
        }
    }

    /// The same before use changes. Without a soft limit nothing grows with use, and the next change of the limit sums
    /// up to its own instant; so most quotas pay nothing here.
    #[inline]
    pub(crate) fn settle_overage_of_use(&mut self, to: Instant) {
        if self.is_soft() {
            self.settle_overage(to);
        }
    }

    /// Whether its limit, or the limit that follows a temporary one, is soft.
    #[inline]
    pub(crate) fn is_soft(&self) -> bool {
        let is_soft = |limit| matches!(limit, LimitKind::Soft { .. });
        is_soft(self.limit) || self.temporary.is_some_and(|temporary| is_soft(temporary.base))
    }

    /// The sum up to an instant that is not before the last record.
    fn overage_at(&self, to: Instant) -> u128 {
        let Overage { sum, since: Some(since) } = self.overage else { return 0 };
        // A temporary limit counts up to its end, however late the record of that end is.
        let switch = self.temporary.map_or(to, |temporary| temporary.until.clamp(since, to.max(since)));
        let grown = |limit, from: Instant, to: Instant| self.beyond(limit) * u128::from(to.since(from).0);
        sum + grown(self.limit, since, switch) + grown(self.base(), switch, to)
    }

    /// What is held beyond a limit now: zero unless the limit is soft.
    fn beyond(&self, limit: LimitKind) -> Count {
        let LimitKind::Soft { limit } = limit else { return 0 };
        let limit = self.in_parts(limit);
        let beyond = |tally: &Tally| match self.scope.node {
            NodeScope::Each => tally.by_node.values().map(|used| used.saturating_sub(limit)).sum(),
            NodeScope::All | NodeScope::One(_) => tally.used.saturating_sub(limit),
        };
        self.tallies().map(beyond).sum()
    }

    /// What was held beyond the soft limit so far, times nanoseconds, and how many of its parts make one billing unit.
    /// `None` if neither its limit nor its base limit is soft.
    pub fn overage(&self, now: Instant) -> Option<(u128, u64)> {
        (self.is_soft() || self.overage.sum > 0).then(|| (self.overage_at(now), self.per_unit))
    }
}
