//! One lease as the books remember it once it is over.

use leasehold_meter::Window;
use leasehold_model::rate::{Charge, Charges};
use leasehold_model::{
    Activity, AllocationNo, AppInstanceNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo,
    Reason, Span, TenantNo, UserNo, fields, words,
};

words! {
    /// How a lease stopped being held.
    pub enum End {
        /// It is held still.
        Held = 0 "held",
        Released = 1 "released",
        Expired = 2 "expired",
        /// Taken back for any reason but those below.
        Revoked = 3 "revoked",
        Preempted = 4 "preempted",
        NodeLost = 5 "node_lost",
        /// No lease: what lay idle of a claimed node.
        Idle = 6 "idle",
    }
}

fields! {
    /// What only questions about single leases need.
    #[derive(Copy, Default)]
    pub struct Life {
        /// The record that granted it.
        pub sequence: u64,
        /// How many leases of the same grant have lower numbers.
        pub member: u8,
        /// Which devices of its node, as a bit set.
        pub devices: u64,
        pub sensitive: bool,
        /// The grant exceeded a soft quota.
        pub over_soft: bool,
        /// Its deadline, as it was set last.
        pub expires_at: Instant,
        /// The first record that said that it ends.
        pub ending: Option<Ending>,
        /// When its capacity was free again; none while it is not.
        pub closed_at: Option<Instant>,
    }
}

fields! {
    /// The first record that said that a lease ends: a release, an expiry or a revocation.
    #[derive(Copy)]
    pub struct Ending { pub sequence: u64, pub at: Instant }
}

fields! {
    /// What few leases have.
    #[derive(Default)]
    pub struct Rare {
        pub correlation: Option<u128>,
        /// Labels that its node had to have.
        pub labels: Vec<(Name, Name)>,
        /// By the record in [`Life::ending`].
        pub revocation: Option<Revocation>,
        pub fenced_at: Option<Instant>,
    }
}

fields! {
    #[derive(Copy)]
    pub struct Revocation {
        pub reason: Reason,
        pub grace: Span,
        /// No token asked for it: it follows from what ended before.
        pub by_itself: bool,
    }
}

/// Everything that the books know of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub lease: LeaseNo,
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub user: Option<UserNo>,
    pub pool: PoolNo,
    pub node: NodeNo,
    pub class: ClassNo,
    pub priority: Priority,
    /// The accounting tag at the grant, by its place in the books' list.
    pub tag: Option<u32>,
    pub allocation: Option<AllocationNo>,
    pub app_instance: Option<AppInstanceNo>,
    pub workload: Option<Name>,
    pub quanta: u64,
    /// From the grant to where billing stopped; to its deadline while it is held.
    pub held: Window,
    pub end: End,
    /// Its teardown was never confirmed by its node.
    pub fenced: bool,
    /// The sum of what its holder reported, if it did.
    pub activity: Option<Box<Activity>>,
    pub life: Life,
    pub rare: Option<Box<Rare>>,
}

impl Row {
    /// What the policy says of a lease that ended like this.
    pub fn charge(&self, charges: &Charges) -> Charge {
        match self.end {
            End::Preempted => charges.preempted,
            End::NodeLost => charges.node_lost,
            _ if self.fenced => charges.fenced,
            _ => Charge::Full,
        }
    }

    /// The first lease of the grant that it came with.
    pub fn gang(&self) -> LeaseNo {
        LeaseNo(self.lease.0 - u64::from(self.life.member))
    }

    /// Why it was revoked, if it was.
    pub fn revocation(&self) -> Option<Revocation> {
        self.rare.as_ref()?.revocation
    }

    /// Whether it was held at some instant of the window. One that ended as it began was held at that instant alone.
    pub fn meets(&self, window: Window) -> bool {
        let Window { from, to } = self.held;
        from < window.to && (to > window.from || from == to && from >= window.from)
    }

    /// Whether it was leased, and not only claimed.
    pub fn is_lease(&self) -> bool {
        self.end != End::Idle
    }

    /// Whether a policy may charge it otherwise than by what was held.
    pub fn is_exception(&self) -> bool {
        matches!(self.end, End::Preempted | End::NodeLost) || self.fenced
    }
}
