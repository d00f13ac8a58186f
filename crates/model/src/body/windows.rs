//! Maintenance windows: nodes that are out of service from one instant until another (SEMANTICS 11).

use super::{BelongsTo, Leases, Nodes};
use crate::fields;
use crate::id::WindowNo;
use crate::instant::Instant;
use crate::name::Name;

fields! {
    /// An operator reserved nodes for maintenance. Nothing is granted or renewed there past `from`.
    pub struct WindowPut {
        pub window: WindowNo,
        pub nodes: Nodes,
        pub from: Instant,
        pub until: Instant,
        pub reason: Option<Name>,
    }
}
fields! {
    /// A maintenance window began: its nodes are drained, and what still runs there is revoked by the records that
    /// follow. The effective instant is `from` of the window.
    pub struct WindowStarted { pub window: WindowNo, pub nodes: Nodes }
}
fields! {
    /// A maintenance window ended at its `until`, or an operator cancelled it. Its nodes return to service unless
    /// something else keeps them out of it. `begun`: it had begun, so that the nodes were drained by it.
    pub struct WindowEnded { pub window: WindowNo, pub nodes: Nodes, pub begun: bool, pub cancelled: bool }
}
fields! {
    /// Tells a holder that these leases are on nodes that were reserved for maintenance, or that this was cancelled.
    pub struct WindowAnnounced {
        pub window: WindowNo,
        pub from: Instant,
        pub until: Instant,
        pub reason: Option<Name>,
        pub leases: Leases,
        pub belongs_to: BelongsTo,
    }
    added {
        /// Present and true if the window was cancelled.
        1 pub cancelled: Option<bool>,
    }
}
