//! One lease, from its grant to for ever: closed leases are kept, usage asks for them.

use leasehold_model::{
    AllocationNo, AppInstanceNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, Span, TenantNo,
    UserNo,
};

/// Where a lease is in its life (SEMANTICS 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Active,
    /// Revoked; the holder has grace to get ready.
    Revoking,
    /// Released by the holder; teardown is not confirmed.
    Releasing,
    /// Past its deadline; teardown is not confirmed.
    Expired,
    /// Revoked and past its grace; teardown is not confirmed.
    TearingDown,
    /// Teardown was not confirmed in time.
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
    /// The holder still has it, and it is billed.
    pub(crate) const fn is_held(self) -> bool {
        matches!(self, Self::Active | Self::Revoking)
    }
    /// It ended, and the node has not confirmed.
    pub(crate) const fn is_tearing_down(self) -> bool {
        matches!(self, Self::Releasing | Self::Expired | Self::TearingDown)
    }
    /// It counts against its tenant's quotas: live or being torn down, not fenced (SEMANTICS 3, 4).
    pub(crate) const fn counts_for_quota(self) -> bool {
        self.is_held() || self.is_tearing_down()
    }
    /// It takes capacity from its node.
    pub(crate) const fn takes_capacity(self) -> bool {
        !matches!(self, Self::Closed)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) number: LeaseNo,
    /// The first lease of the grant it came with: the leases of one request are a gang.
    pub(crate) gang: LeaseNo,
    /// The allocation whose gang it belongs to.
    pub(crate) of: Option<AllocationNo>,
    pub(crate) sensitive: bool,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) user: Option<UserNo>,
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    pub(crate) class: ClassNo,
    pub(crate) quanta: u64,
    pub(crate) devices: u64,
    pub(crate) priority: Priority,
    /// The tenant's accounting tag as it was at the grant.
    pub(crate) tag: Option<Name>,
    pub(crate) granted_at: Instant,
    pub(crate) expires_at: Instant,
    pub(crate) phase: Phase,
    pub(crate) ended_at: Option<Instant>,
    /// The sequences of the records that granted it, and that said that it ended.
    pub(crate) granted_by: u64,
    pub(crate) ended_by: Option<u64>,
    /// The grace of its revocation, kept because a restart begins it afresh.
    pub(crate) grace: Span,
    /// When grace or the time for teardown is over.
    pub(crate) limit_at: Option<Instant>,
    /// Up to when its holder has reported activity.
    pub(crate) reported_to: Instant,
    /// The app instance that it was granted to.
    pub(crate) app_instance: Option<AppInstanceNo>,
    /// The sequence of the record that last set its deadline.
    pub(crate) reckoned_by: u64,
}

impl Lease {
    /// Ends the billable time. A node may have been last seen before the grant; the interval is
    /// then empty, never negative.
    pub(crate) fn end(&mut self, at: Instant, by: u64) {
        assert!(self.ended_at.is_none(), "{} ends once", self.number);
        self.ended_by = Some(by);
        self.ended_at = Some(at.min(self.expires_at).max(self.granted_at));
    }

    /// Either closed at once, or waiting for its node until `limit_at`.
    pub(crate) fn begin_teardown(&mut self, phase: Phase, closed: bool, limit_at: Instant) {
        self.phase = if closed { Phase::Closed } else { phase };
        self.limit_at = (!closed).then_some(limit_at);
    }

    pub(crate) fn close(&mut self) {
        self.phase = Phase::Closed;
        self.limit_at = None;
    }
}
