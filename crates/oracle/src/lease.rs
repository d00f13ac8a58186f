//! One lease. Closed leases are kept for usage.

use leasehold_model::body::{Correlation, Granted};
use leasehold_model::{
    AllocationNo, AppInstanceNo, AttachmentNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo,
    Span, TenantNo, UserNo,
};

/// The phase of a lease (SEMANTICS 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Active,
    /// Revoked, within grace.
    Revoking,
    /// Released by the holder; the teardown is not confirmed yet.
    Releasing,
    /// Past its deadline; the teardown is not confirmed yet.
    Expired,
    /// Revoked and past its grace; the teardown is not confirmed yet.
    TearingDown,
    /// The teardown was not confirmed in time.
    Fenced,
    Closed,
}

impl Phase {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Revoking => "revoking",
            Self::Releasing => "releasing",
            Self::Expired => "expired",
            Self::TearingDown => "tearing_down",
            Self::Fenced => "fenced",
            Self::Closed => "closed",
        }
    }
    /// Whether it is held and billed.
    pub(crate) const fn is_held(self) -> bool {
        matches!(self, Self::Active | Self::Revoking)
    }
    /// Whether it ended and the teardown is not confirmed yet.
    pub(crate) const fn is_tearing_down(self) -> bool {
        matches!(self, Self::Releasing | Self::Expired | Self::TearingDown)
    }
    /// Whether it counts against its tenant's quotas: live or being torn down, but not fenced (SEMANTICS 3, 4).
    pub(crate) const fn counts_for_quota(self) -> bool {
        self.is_held() || self.is_tearing_down()
    }
    /// Whether it uses capacity of its node.
    pub(crate) const fn takes_capacity(self) -> bool {
        !matches!(self, Self::Closed)
    }
}

/// The priority by which granted leases are priced (SEMANTICS 11, "Claims").
pub(crate) fn priced_as(granted: &Granted) -> Priority {
    if granted.sensitive && granted.rules_version >= 4 { Priority::Guaranteed } else { granted.priority }
}

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) number: LeaseNo,
    /// Whether its pool had no GPUs when it was granted, under rules that count cores there.
    pub(crate) on_pool_without_gpus: bool,
    /// The first lease of its grant; the leases of one request are a gang.
    pub(crate) gang: LeaseNo,
    /// Its allocation, if any.
    pub(crate) of: Option<AllocationNo>,
    pub(crate) sensitive: bool,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    /// The project that pays: the one that lends it, or else its own (SEMANTICS 13).
    pub(crate) payer: ProjectNo,
    pub(crate) user: Option<UserNo>,
    pub(crate) workload: Option<Name>,
    pub(crate) correlation: Correlation,
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    pub(crate) class: ClassNo,
    pub(crate) quanta: u64,
    pub(crate) devices: u64,
    pub(crate) priority: Priority,
    /// The priority by which it is priced: guaranteed for sensitive leases since rules version 4.
    pub(crate) priced_as: Priority,
    /// The tenant's accounting tag at the grant.
    pub(crate) tag: Option<Name>,
    pub(crate) granted_at: Instant,
    pub(crate) expires_at: Instant,
    pub(crate) phase: Phase,
    pub(crate) ended_at: Option<Instant>,
    /// The effective instant of its end, which may lie before its grant if its node was lost.
    pub(crate) end_effective: Option<Instant>,
    /// Its node turned out to be lost before its end: it is billed up to this instant only.
    pub(crate) billed_to: Option<Instant>,
    /// The sequences of its grant and of the record of its end.
    pub(crate) granted_by: u64,
    pub(crate) ended_by: Option<u64>,
    /// The grace of its revocation; a restart begins it again.
    pub(crate) grace: Span,
    /// The end of grace, or the teardown deadline.
    pub(crate) limit_at: Option<Instant>,
    /// The end of the last activity report.
    pub(crate) reported_to: Instant,
    /// Its app instance.
    pub(crate) app_instance: Option<AppInstanceNo>,
    /// The attachment by which it is lent.
    pub(crate) attachment: Option<AttachmentNo>,
    /// The sequence of the record that last set its deadline.
    pub(crate) reckoned_by: u64,
}

impl Lease {
    /// Ends the billed interval. If the node was last seen before the grant, the interval is empty.
    pub(crate) fn end(&mut self, at: Instant, by: u64) {
        assert!(self.ended_at.is_none(), "{} ends once", self.number);
        self.ended_by = Some(by);
        self.end_effective = Some(at);
        self.ended_at = Some(at.min(self.expires_at).max(self.granted_at));
    }

    /// Closed at once, or waiting for the teardown until `limit_at`.
    pub(crate) fn begin_teardown(&mut self, phase: Phase, closed: bool, limit_at: Instant) {
        self.phase = if closed { Phase::Closed } else { phase };
        self.limit_at = (!closed).then_some(limit_at);
    }

    pub(crate) fn close(&mut self) {
        self.phase = Phase::Closed;
        self.limit_at = None;
    }
}
