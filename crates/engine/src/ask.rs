//! A request for the capacity of one or more replicas. A lease request has one replica.
//!
//! Deciding, quoting, explaining and wait reasons all start from an [`Ask`].

use crate::allocation::Allocation;
use crate::assured_start::Stay;
use crate::command::RequestLease;
use crate::custody::Claimer;
use crate::node::Node;
use crate::queue::{Rank, ShapeKey};
use crate::quota::Verdict;
use crate::state::{Pool, State, entry};
use crate::tally::Count;
use leasehold_model::body::Asks;
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, DenyCause, Domain, Identity, Instant, Name, NodeNo, PoolNo, Priority,
    Profile, ProjectNo, QuotaNo, Span, TenantNo, UserNo,
};
use std::cmp::Reverse;

/// A filter for the nodes that may be used.
pub(crate) type Allow<'a> = &'a dyn Fn(&Node) -> bool;

#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    /// Who pays.
    pub(crate) payer: ProjectNo,
    /// Who asks, if the request says so.
    pub(crate) user: Option<UserNo>,
    /// The user whose claimed nodes it needs; `None` if it is not sensitive.
    pub(crate) claimer: Option<Claimer>,
    pub(crate) pool: Option<PoolNo>,
    /// The node that the request names.
    pub(crate) node: Option<NodeNo>,
    /// The classes and quanta of each replica.
    pub(crate) asks: &'a Asks,
    pub(crate) replicas: u32,
    pub(crate) priority: Priority,
    pub(crate) ttl: Option<Span>,
    pub(crate) walltime: Option<Span>,
    /// Labels that a node must have, all of them.
    pub(crate) labels: &'a [(Name, Name)],
    /// The sensitivity profile of the workload, if it is known.
    pub(crate) profile: Option<Profile>,
    pub(crate) together: Option<Domain>,
    pub(crate) apart: Option<Domain>,
    pub(crate) app_instance: Option<AppInstanceNo>,
    /// Whether it counts as an allocation in quotas, and may wait.
    pub(crate) is_allocation: bool,
    /// When and under which number it was submitted. If it was not submitted yet: now, and after all others.
    pub(crate) submitted_at: Instant,
    pub(crate) number: AllocationNo,
    pub(crate) now: Instant,
    /// When it would start; later than now where an assured start is computed.
    pub(crate) start: Instant,
    /// What will be freed in a quota before it starts, if it evicts for that.
    pub(crate) frees: Option<(QuotaNo, Count)>,
    /// The nodes that are not reserved for higher-ranked allocations; `None` allows all nodes.
    pub(crate) allow: Option<Allow<'a>>,
}

impl<'a> Ask<'a> {
    /// A lease that is requested now; `None` if the identity has no tenant or project. `asks` are in placement order.
    pub(crate) fn of_request(
        identity: &Identity,
        request: &'a RequestLease,
        asks: &'a Asks,
        now: Instant,
    ) -> Option<Self> {
        Some(Self {
            tenant: identity.tenant?,
            project: identity.project?,
            payer: request.source_project.or(identity.project)?,
            user: identity.user,
            claimer: Claimer::of(identity, request.sensitive),
            pool: request.pool,
            node: request.node,
            asks,
            replicas: 1,
            priority: request.priority,
            ttl: Some(request.ttl),
            walltime: None,
            labels: &request.labels,
            profile: request.profile,
            together: None,
            apart: None,
            app_instance: request.app_instance,
            is_allocation: false,
            submitted_at: now,
            number: AllocationNo(u64::MAX),
            now,
            start: now,
            frees: None,
            allow: None,
        })
    }

    /// An allocation that is submitted now; `None` if the identity has no tenant or project.
    pub(crate) fn of_spec(identity: &Identity, spec: &'a AllocationSpec, now: Instant) -> Option<Self> {
        let claimer = Claimer::of(identity, spec.sensitive);
        Some(Self { claimer, ..Self::gang(identity.tenant?, identity.project?, identity.user, spec, now) })
    }

    /// A submitted allocation.
    pub(crate) fn of(found: &'a Allocation, now: Instant) -> Self {
        Self {
            claimer: found.claimer(),
            node: found.node,
            submitted_at: found.submitted_at,
            number: found.number,
            payer: found.payer,
            ..Self::gang(found.tenant, found.project, found.user, &found.spec, now)
        }
    }

    fn gang(
        tenant: TenantNo,
        project: ProjectNo,
        user: Option<UserNo>,
        spec: &'a AllocationSpec,
        now: Instant,
    ) -> Self {
        Self {
            tenant,
            project,
            payer: spec.source_project.unwrap_or(project),
            user,
            claimer: None,
            pool: spec.pool,
            node: None,
            asks: &spec.asks,
            replicas: spec.replicas,
            priority: spec.priority,
            ttl: spec.ttl,
            walltime: spec.walltime,
            labels: &spec.labels,
            profile: spec.profile,
            together: spec.together,
            apart: spec.apart,
            app_instance: spec.app_instance,
            is_allocation: true,
            submitted_at: now,
            number: AllocationNo(u64::MAX),
            now,
            start: now,
            frees: None,
            allow: None,
        }
    }

    /// What all waiting allocations of one shape have in common; the rank is a placeholder, and so are the tenant and,
    /// for tenants without shapes of their own, the project and the holder.
    pub(crate) fn of_shape(key: &'a ShapeKey, now: Instant) -> Self {
        Self {
            tenant: TenantNo(0),
            project: key.project.unwrap_or(ProjectNo(u32::MAX)),
            payer: key.payer.unwrap_or(ProjectNo(u32::MAX)),
            user: key.holder.0,
            claimer: key.claimer,
            pool: key.pool,
            node: key.node,
            asks: &key.asks,
            replicas: key.replicas,
            priority: key.priority,
            ttl: key.ttl,
            walltime: key.walltime,
            labels: &key.labels,
            profile: None,
            together: key.together,
            apart: key.apart,
            app_instance: key.holder.1,
            is_allocation: true,
            submitted_at: now,
            number: AllocationNo(u64::MAX),
            now,
            start: now,
            frees: None,
            allow: None,
        }
    }

    /// For how long it stays where it is placed.
    pub(crate) fn stay(&self) -> Stay {
        Stay { walltime: self.walltime, priority: self.priority, number: self.number, evicts: false }
    }

    /// The same, if others are evicted for it.
    pub(crate) fn stay_after_eviction(&self) -> Stay {
        Stay { evicts: true, ..self.stay() }
    }

    /// The verdict of a quota on this ask. A gang must fit into what is left of a burst for its whole walltime, or else
    /// it waits (SEMANTICS 11).
    pub(crate) fn heed(&self, quota: QuotaNo, verdict: Verdict) -> Verdict {
        match (verdict, self.walltime) {
            (Verdict::Until(ends_at), Some(walltime)) if self.now.saturating_add(walltime) > ends_at => {
                Verdict::Refused(DenyCause::BurstOver { quota, ends_at })
            }
            (verdict, _) => verdict,
        }
    }

    /// The sort of domain that all replicas must share; `None` if there is only one replica.
    pub(crate) fn home(&self) -> Option<Domain> {
        self.together.filter(|_| self.replicas > 1)
    }
}

impl State {
    /// Whether a pool allows the TTL and the walltime.
    #[inline]
    fn allows(&self, pool: &Pool, ask: &Ask<'_>) -> bool {
        let too_long = |walltime| pool.lifetime_max.of(ask.priority).is_some_and(|lifetime| walltime > lifetime);
        ask.ttl.is_none_or(|ttl| ttl <= self.ttl_max(pool, ask.priority)) && !ask.walltime.is_some_and(too_long)
    }

    /// The TTL of leases in a pool, before quotas shorten it; `None` if the pool does not allow the request.
    pub(crate) fn ttl_in(&self, pool: &Pool, ask: &Ask<'_>) -> Option<Span> {
        if !self.allows(pool, ask) {
            return None;
        }
        let longest = self.ttl_max(pool, ask.priority);
        let asked = ask.ttl.or(ask.walltime).unwrap_or(longest).min(longest);
        Some(ask.walltime.map_or(asked, |walltime| asked.min(walltime)))
    }

    /// The longest TTL that a priority can get in a pool, or in any pool.
    pub(crate) fn longest_ttl(&self, pool: Option<PoolNo>, priority: Priority) -> Span {
        let pools = self.pools().filter(|(number, _)| pool.is_none_or(|pool| pool == *number));
        pools.map(|(_, pool)| self.ttl_max(pool, priority)).max().unwrap_or(self.settings.ttl_max)
    }

    /// Whether a pool is the requested one and allows the TTL and the walltime.
    #[inline]
    pub(crate) fn pool_suits(&self, number: PoolNo, ask: &Ask<'_>) -> bool {
        ask.pool.is_none_or(|asked| asked == number)
            && !self.pool_access.is_paused(ask.project, number)
            && self.allows(entry(&self.pools, number.0).expect("a node's pool exists"), ask)
    }

    /// Whether a node may be used, regardless of its free capacity.
    pub(crate) fn suits(&self, node: &Node, ask: &Ask<'_>) -> bool {
        node.is_open_to(ask.claimer)
            && ask.node.is_none_or(|named| named == node.number)
            && node.is_free_of_windows(ask.start, ask.walltime)
            && self.pool_suits(node.pool, ask)
            && ask.labels.iter().all(|label| node.labels.contains(label))
            && ask.allow.is_none_or(|allow| allow(node))
    }

    /// Its rank in the queue, or the rank that it would have.
    pub(crate) fn rank(&self, ask: &Ask<'_>) -> Rank {
        let standing = self.standing_of(ask);
        (Reverse(ask.priority), Reverse(standing), ask.submitted_at, ask.number)
    }
}
