//! Words that can be chosen from, as they are typed: with hyphens, and their other half in the wire types.

use clap::ValueEnum;
use leasehold_api as api;

macro_rules! words {
    ($($name:ident { $($word:ident),* $(,)? })*) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum $name { $($word),* }

        impl From<$name> for api::$name {
            fn from(word: $name) -> Self {
                match word { $($name::$word => Self::$word),* }
            }
        }
    )*};
}

words! {
    Priority { Scavenger, Standard, Guaranteed }
    LeaseState { Active, Revoking, Releasing, Expired, TearingDown, Fenced, Closed }
    RevokeReason { Operator, Policy, Budget, DuplicateHolder }
    Kind { Gpu, Cpu, Mem, Block, Net }
    WasteClass { PremiumWaste, Idle, Overprovisioned, Fragmented, Healthy, Unknown }
    Strategy { Spread, BinPack }
    Teardown { Confirmed, Immediate }
    Measure { Quanta, Leases, Nodes, Allocations }
    AllocationState { Pending, Staging, Running, Checkpointing, Suspended, Completed, Failed, Cancelled }
    Domain { Node, Rack, Zone }
    Role { Operator, Auditor, TenantAdmin, ProjectMember, NodeAgent, AppOperator, BillingAuthority }
}
