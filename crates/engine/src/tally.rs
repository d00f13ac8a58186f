//! What counts against a quota: all use together, or the use of each holder by itself.

use leasehold_model::{AppInstanceNo, NodeNo, UserNo};
use std::collections::BTreeMap;

/// An amount that counts in a quota: quanta, leases, nodes or allocations. Quotas on a kind count in parts of a billing
/// unit, see [`crate::quota::Quota::per_unit`].
pub(crate) type Count = u128;

/// The user and the app instance whose use a quota counts separately; `None` where it counts all together.
pub(crate) type Holder = (Option<UserNo>, Option<AppInstanceNo>);

/// The holder of quotas that count all use together.
pub(crate) const TOGETHER: Holder = (None, None);

/// What counts against a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) used: Count,
    /// By node: quanta or leases for `NodeScope::Each`, leases and claims for `Measure::Nodes`.
    pub(crate) by_node: BTreeMap<NodeNo, Count>,
}

impl Tally {
    pub(crate) fn count_node(&mut self, node: NodeNo, amount: Count, added: bool) {
        let here = self.by_node.entry(node).or_insert(0);
        *here = if added { *here + amount } else { *here - amount };
        if *here == 0 {
            self.by_node.remove(&node);
        }
    }

    fn is_empty(&self) -> bool {
        self.used == 0 && self.by_node.is_empty()
    }
}

/// The tallies of a quota, by holder. Almost every quota counts all use together, and every grant and every end changes
/// that tally, so it is part of the quota itself and not behind a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tallies {
    together: Tally,
    /// Those of holders that are counted separately; none of them is empty.
    separate: BTreeMap<Holder, Tally>,
}

impl Tallies {
    #[inline]
    pub(crate) fn of(&self, holder: Holder) -> Option<&Tally> {
        if holder == TOGETHER { Some(&self.together) } else { self.separate.get(&holder) }
    }

    #[inline]
    pub(crate) fn change(&mut self, holder: Holder, change: impl FnOnce(&mut Tally)) {
        if holder == TOGETHER {
            return change(&mut self.together);
        }
        let tally = self.separate.entry(holder).or_default();
        change(tally);
        if tally.is_empty() {
            self.separate.remove(&holder);
        }
    }

    /// Those in which something is counted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Holder, &Tally)> {
        let together = (!self.together.is_empty()).then_some((TOGETHER, &self.together));
        together.into_iter().chain(self.separate.iter().map(|(holder, tally)| (*holder, tally)))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Tally> {
        self.iter().map(|(_, tally)| tally)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Tally> {
        std::iter::once(&mut self.together).chain(self.separate.values_mut())
    }
}
