//! One lease as the books remember it once it is over.

use leasehold_meter::Window;
use leasehold_model::rate::{Charge, Charges};
use leasehold_model::{
    Activity, AllocationNo, AppInstanceNo, ClassNo, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, TenantNo,
    UserNo, words,
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

/// Everything that usage, cost and waste ask of a lease.
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

    /// Whether it was leased, and not only claimed.
    pub fn is_lease(&self) -> bool {
        self.end != End::Idle
    }

    /// Whether a policy may charge it otherwise than by what was held.
    pub fn is_exception(&self) -> bool {
        matches!(self.end, End::Preempted | End::NodeLost) || self.fenced
    }
}
