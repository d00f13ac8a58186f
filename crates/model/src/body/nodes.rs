//! Records about nodes and their agents.

use crate::fields;
use crate::id::{ClassNo, NodeNo, PoolNo};
use crate::instant::Instant;
use crate::name::Name;
use crate::policy::{Level, TeardownMode};
use crate::quantity::Quanta;

fields! {
    pub struct NodePut {
        pub node: NodeNo,
        pub name: Name,
        pub pool: PoolNo,
        pub rack: Option<Name>,
        pub zone: Option<Name>,
        pub labels: Vec<(Name, Name)>,
        pub teardown: TeardownMode,
        pub capacity: Vec<(ClassNo, Quanta)>,
    }
}
fields! { pub struct NodeDeleted { pub node: NodeNo } }
fields! {
    pub struct NodeDrained { pub node: NodeNo }
    added {
        /// What the operator gave as the reason.
        1 pub reason: Option<Name>,
    }
}
fields! {
    pub struct NodeResumed { pub node: NodeNo }
    added { 1 pub reason: Option<Name> }
}
fields! {
    /// The node was declared lost; its leases end in the records that follow.
    pub struct NodeLost { pub node: NodeNo, pub last_seen: Instant }
}
fields! { pub struct NodeReturned { pub node: NodeNo } }
fields! {
    /// The node's agent reported a new level of load, errors or throttling.
    pub struct NodeCondition { pub node: NodeNo, pub load: Level, pub errors: Level, pub throttled: bool }
}
fields! {
    /// A process registered as the agent of the node. Generations of a node are counted from one.
    pub struct AgentRegistered { pub node: NodeNo, pub generation: u64, pub instance: u128 }
}
fields! {
    /// An operator declared the node to be without an agent.
    pub struct AgentDetached { pub node: NodeNo }
}

fields! {
    /// The node has had no leases, reservations and claims since that instant, for longer than the daemon was told to
    /// wait before it says so.
    pub struct NodeEmpty { pub node: NodeNo, pub since: Instant }
}
