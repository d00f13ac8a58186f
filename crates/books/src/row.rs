//! One lease in the books.

use crate::facts::BillingKey;
use crate::trail::TrailStep;
use leasehold_meter::{Schedule, Window, billable_end};
use leasehold_model::body::Correlation;
use leasehold_model::rate::{Charge, Charges};
use leasehold_model::{
    Activity, AllocationNo, AppInstanceNo, AttachmentNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority,
    ProjectNo, Reason, Span, TenantNo, UserNo, fields, words,
};

words! {
    /// How a lease ended.
    pub enum End {
        /// It is still held.
        Held = 0 "held",
        Released = 1 "released",
        Expired = 2 "expired",
        /// Revoked for another reason than those below.
        Revoked = 3 "revoked",
        Preempted = 4 "preempted",
        NodeLost = 5 "node_lost",
        /// Not a lease: idle capacity of a claimed node.
        Idle = 6 "idle",
        /// Released by its holder within the grace of an eviction: charged as preempted (SEMANTICS 11).
        ReleasedEvicted = 7 "released_evicted",
        /// Its allocation could not be started, as the node's agent or an operator reported.
        FailedStart = 8 "failed_start",
        /// Evicted for a request of its own tenant: charged in full (SEMANTICS 11).
        EvictedByOwn = 9 "evicted_by_own",
        /// Released by its holder within the grace of such an eviction: charged in full, too.
        ReleasedByOwn = 10 "released_by_own",
    }
}

fields! {
    /// Fields that only questions about single leases need.
    #[derive(Copy, Default)]
    pub struct Life {
        /// The sequence of its grant.
        pub sequence: u64,
        /// Its index within its grant.
        pub member: u8,
        /// The devices as a bit set.
        pub devices: u64,
        pub sensitive: bool,
        /// The grant exceeded a soft quota.
        pub over_soft: bool,
        /// Its latest deadline.
        pub expires_at: Instant,
        /// The first record that announced its end.
        pub ending: Option<Ending>,
        /// When its capacity became free.
        pub closed_at: Option<Instant>,
        /// The sequence of the record that said so.
        pub closed_by: Option<u64>,
        pub renewed: Option<Renewals>,
    }
}

fields! {
    /// How often a lease was renewed, and the record of the last renewal.
    #[derive(Copy)]
    pub struct Renewals { pub count: u32, pub sequence: u64, pub at: Instant }
}

fields! {
    /// The first record that announced the end of a lease: a release, an expiry or a revocation.
    #[derive(Copy)]
    pub struct Ending { pub sequence: u64, pub at: Instant }
}

fields! {
    /// Fields that few leases have.
    #[derive(Default)]
    pub struct Rare {
        pub correlation: Option<u128>,
        /// The sequence from which its correlation ID is derived, where that is neither its allocation nor its grant.
        pub correlation_of: Option<u64>,
        /// Required labels of its node.
        pub labels: Vec<(Name, Name)>,
        /// The revocation in the record [`Life::ending`].
        pub revocation: Option<Revocation>,
        pub fenced_at: Option<Instant>,
        /// It runs the control plane of an app instance.
        pub control_plane: bool,
        pub attachment: Option<AttachmentNo>,
        /// Records that no other field names.
        pub trail: Vec<TrailStep>,
    }
}

fields! {
    #[derive(Copy)]
    pub struct Revocation {
        pub reason: Reason,
        pub grace: Span,
        /// It was not requested with a token but caused by an earlier end.
        pub by_itself: bool,
    }
}

/// All fields of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub lease: LeaseNo,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    /// Who pays: the project, or the one that lends it the capacity. Usage and cost are those of the payer.
    pub payer: ProjectNo,
    pub user: Option<UserNo>,
    pub pool: PoolNo,
    pub node: NodeNo,
    pub class: ClassNo,
    pub priority: Priority,
    /// Granted on a claimed node since rules version 4: priced as guaranteed, whatever its priority.
    pub by_claim: bool,
    /// The accounting tag at the grant, as an index into the list of tags.
    pub tag: Option<u32>,
    pub allocation: Option<AllocationNo>,
    pub app_instance: Option<AppInstanceNo>,
    pub workload: Option<Name>,
    pub quanta: u64,
    /// From the grant to the end of billing; to its deadline while it is held.
    pub held: Window,
    /// The end of billing when its row was written, if that was corrected since: its node had been lost by then.
    pub end_before: Option<Instant>,
    pub end: End,
    /// It was fenced.
    pub fenced: bool,
    /// The sum of its activity reports, if any.
    pub activity: Option<Box<Activity>>,
    pub life: Life,
    pub rare: Option<Box<Rare>>,
}

impl Row {
    /// The charge for a lease that ended in this way.
    pub fn charge(&self, charges: &Charges) -> Charge {
        match self.end {
            End::Preempted | End::ReleasedEvicted => charges.preempted,
            End::NodeLost => charges.node_lost,
            End::FailedStart => charges.failed_start,
            End::EvictedByOwn | End::ReleasedByOwn => Charge::Full,
            _ if self.fenced => charges.fenced,
            _ => Charge::Full,
        }
    }

    /// The priority by whose price it is charged.
    pub fn priced(&self) -> Priority {
        priced(self.priority, self.by_claim)
    }

    /// The correlation ID that it shares with its request and its allocation.
    pub fn correlation(&self) -> Correlation {
        let rare = self.rare.as_deref();
        let derived = rare.and_then(|rare| rare.correlation_of).or(self.allocation.map(|allocation| allocation.0));
        Correlation::or_derived(rare.and_then(|rare| rare.correlation), derived.unwrap_or(self.life.sequence))
    }

    /// What its price and its payer depend on.
    pub(crate) fn billing_key(&self) -> BillingKey {
        let rare = self.rare.as_deref();
        BillingKey {
            tenant: self.tenant,
            project: self.project,
            tag: self.tag,
            class: self.class,
            pool: self.pool,
            priority: self.priority,
            priced: self.priced(),
            payer: self.payer,
            app_instance: self.app_instance,
            attachment: rare.and_then(|rare| rare.attachment),
            control_plane: self.is_control_plane(),
        }
    }

    /// Whether it runs the control plane of an app instance.
    pub fn is_control_plane(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.control_plane)
    }

    /// The part of its time that is not charged, because of the way it ended.
    pub(crate) fn forgiven(&self, schedule: &Schedule) -> Option<Window> {
        if !self.is_exception() || self.end == End::Held || self.end == End::Idle {
            return None;
        }
        let charge = self.charge(schedule.charges_at(self.held.to));
        Some(Window::new(billable_end(self.held, charge), self.held.to)).filter(|window| !window.is_empty())
    }

    /// The first lease of its grant.
    pub fn gang(&self) -> LeaseNo {
        LeaseNo(self.lease.0 - u64::from(self.life.member))
    }

    /// Why it was revoked, if it was.
    pub fn revocation(&self) -> Option<Revocation> {
        self.rare.as_ref()?.revocation
    }

    /// Whether it was held at some instant of the window. A lease that ended at the instant of its grant counts as
    /// held at that instant.
    pub fn meets(&self, window: Window) -> bool {
        let Window { from, to } = self.held;
        from < window.to && (to > window.from || from == to && from >= window.from)
    }

    /// Whether it is a lease, and not idle capacity of a claim.
    pub fn is_lease(&self) -> bool {
        self.end != End::Idle
    }

    /// Whether nothing explains its end better than that its allocation could not be started, where that was reported
    /// afterwards: it was not evicted, and its node was not lost.
    pub(crate) fn ended_plainly(&self) -> bool {
        let is_evicted = self.revocation().is_some_and(|found| matches!(found.reason, Reason::Preempted { .. }));
        matches!(self.end, End::Released | End::Expired | End::Revoked) && !is_evicted
    }

    /// Whether a charge policy can apply to it.
    pub fn is_exception(&self) -> bool {
        matches!(self.end, End::Preempted | End::ReleasedEvicted | End::NodeLost | End::FailedStart) || self.fenced
    }
}

/// The priority by whose price capacity is charged: on claimed nodes that of guaranteed work (SEMANTICS 11).
pub(crate) fn priced(priority: Priority, by_claim: bool) -> Priority {
    if by_claim { Priority::Guaranteed } else { priority }
}
