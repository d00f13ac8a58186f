//! Commands about whole nodes: claims, maintenance, and what a loss means for what ended there.

use leasehold_model::body::BelongsTo;
use leasehold_model::{Instant, LeaseNo, Name, NodeNo, ProjectNo, TenantNo, UserNo, fields};

fields! {
    /// Whether a released node is clean. `generation` is that of the reporting agent; absent if an operator reports.
    pub struct ReportWipe { pub node: NodeNo, pub generation: Option<u64>, pub clean: bool }
}
fields! {
    /// Reserves nodes for maintenance, by default from now on.
    pub struct ReserveNodes {
        pub nodes: Vec<NodeNo>,
        pub from: Option<Instant>,
        pub until: Instant,
        pub reason: Option<Name>,
    }
}
fields! { pub struct LoseNode { pub node: NodeNo, pub last_seen: Instant } }
fields! {
    /// A lease that ended on a lost node after the node was last seen, with whose it was.
    pub struct EndedLease {
        pub lease: LeaseNo,
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub user: Option<UserNo>,
        pub workload: Option<Name>,
        pub belongs_to: BelongsTo,
    }
}
fields! {
    /// A claim that ended on a lost node after the node was last seen. `claim` is the sequence of its record.
    pub struct EndedClaim { pub claim: u64, pub tenant: TenantNo, pub project: ProjectNo, pub user: UserNo }
}
fields! {
    /// Names what ended on a lost node after it was last seen. The books know it, because the engine forgets closed
    /// leases. `loss` is the sequence of the record that declared the node lost, and `complete` says that nothing else
    /// is left to name.
    pub struct SettleLoss {
        pub loss: u64,
        pub leases: Vec<EndedLease>,
        pub claims: Vec<EndedClaim>,
        pub complete: bool,
    }
}
fields! {
    /// Claims nodes for sensitive work. Under a hard cost ceiling a claim reserves its cost up to `until`.
    pub struct ClaimNodes { pub nodes: Vec<NodeNo> }
    added { 1 pub until: Option<Instant> }
}
impl From<Vec<NodeNo>> for ClaimNodes {
    fn from(nodes: Vec<NodeNo>) -> Self {
        Self { nodes, until: None }
    }
}
