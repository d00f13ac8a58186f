//! How the work of projects is admitted to pools, and which waiting work goes behind that of others (SEMANTICS 11).

use crate::ask::Ask;
use crate::queue::{ShapeKey, Standing};
use crate::state::State;
use leasehold_model::{Instant, LimitKind, NodeScope, PoolAccess, PoolNo, ProjectNo, TenantNo};
use std::collections::BTreeMap;

/// The pools to which the work of projects is not admitted as that of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolAccesses(pub(crate) BTreeMap<(ProjectNo, PoolNo), PoolAccess>);

impl PoolAccesses {
    pub(crate) fn of(&self, project: ProjectNo, pool: PoolNo) -> PoolAccess {
        self.0.get(&(project, pool)).copied().unwrap_or(PoolAccess::Normal)
    }

    #[inline]
    pub(crate) fn is_paused(&self, project: ProjectNo, pool: PoolNo) -> bool {
        !self.0.is_empty() && self.of(project, pool) == PoolAccess::Paused
    }

    pub(crate) fn set(&mut self, project: ProjectNo, pool: PoolNo, access: PoolAccess) {
        match access {
            PoolAccess::Normal => self.0.remove(&(project, pool)),
            PoolAccess::Deprioritised | PoolAccess::Paused => self.0.insert((project, pool), access),
        };
    }

    pub(crate) fn has(&self, project: impl Fn(ProjectNo) -> bool) -> bool {
        self.0.keys().any(|(of, _)| project(*of))
    }
}

impl State {
    /// The pools on which a project is not treated as others are.
    pub fn pool_access_of(&self, project: ProjectNo) -> impl Iterator<Item = (PoolNo, PoolAccess)> + '_ {
        let all = self.pool_access.0.range((project, PoolNo(0))..=(project, PoolNo(u32::MAX)));
        all.map(|((_, pool), access)| (*pool, *access))
    }

    /// The pools that an ask may use, whatever they allow.
    fn pools_of<'a>(&'a self, ask: &Ask<'a>) -> impl Iterator<Item = PoolNo> + 'a {
        let named = ask.node.and_then(|node| self.node(node)).map(|node| node.pool).or(ask.pool);
        self.pools().map(|(number, _)| number).filter(move |number| named.is_none_or(|named| named == *number))
    }

    /// Whether every pool that an ask may use has this access for its project.
    fn has_everywhere(&self, ask: &Ask<'_>, access: PoolAccess) -> bool {
        let mut pools = self.pools_of(ask).peekable();
        !self.pool_access.0.is_empty()
            && pools.peek().is_some()
            && pools.all(|pool| self.pool_access.of(ask.project, pool) == access)
    }

    pub(crate) fn is_paused_everywhere(&self, ask: &Ask<'_>) -> bool {
        self.has_everywhere(ask, PoolAccess::Paused)
    }

    /// Whether an ask waits behind others of its priority: its project is deprioritised on every pool that it may use,
    /// or a soft quota that would count it was exceeded at the last whole minute.
    fn is_lowered(&self, ask: &Ask<'_>) -> bool {
        // Only tenants with such quotas or projects have shapes of their own.
        self.queue.has_own_shapes(ask.tenant)
            && (self.has_everywhere(ask, PoolAccess::Deprioritised) || self.is_over_soft(ask))
    }

    /// Whether the allocations of a tenant in a shape wait behind others of their priority.
    pub(crate) fn is_shape_lowered(&self, key: &ShapeKey, tenant: TenantNo, now: Instant) -> bool {
        self.queue.has_own_shapes(tenant) && self.is_lowered(&Ask { tenant, ..Ask::of_shape(key, now) })
    }

    /// Whether a soft quota was exceeded that would count the ask wherever it is placed.
    fn is_over_soft(&self, ask: &Ask<'_>) -> bool {
        let named = ask.node.and_then(|node| self.node(node)).map(|node| node.pool).or(ask.pool);
        let facts = self.facts_of_ask(ask);
        self.quotas_of(ask.tenant).any(|quota| {
            let LimitKind::Soft { limit } = quota.limit else { return false };
            let counts_gang =
                ask.is_allocation && quota.counts_allocation(ask.payer, ask.priority, ask.user, ask.app_instance);
            let is_inside =
                quota.scope.node == NodeScope::All && (quota.scope.pool.is_none() || quota.scope.pool == named);
            is_inside
                && (counts_gang || quota.asked(&facts) > 0)
                && quota.used_at_minute(quota.holder_of(ask), ask.now) > quota.in_parts(limit)
        })
    }

    /// The standing of an ask in the queue, in the minute of `now`.
    pub(crate) fn standing_of(&self, ask: &Ask<'_>) -> Standing {
        let standing = self.standing_by(ask.tenant, self.scarce(ask.node, ask.pool), ask.now);
        Standing { is_preferred: !self.is_lowered(ask), ..standing }
    }
}
