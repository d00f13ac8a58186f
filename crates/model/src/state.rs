//! Words for what is derived from records and shown, or asked for, but not sealed as such.

use crate::words;

words! {
    /// Where a lease is in its life.
    pub enum LeaseState {
        Active "active",
        /// Revoked, within grace: still held and billed.
        Revoking "revoking",
        /// Given back; teardown is not confirmed.
        Releasing "releasing",
        /// The deadline passed; teardown is not confirmed.
        Expired "expired",
        /// Revoked and grace is over; teardown is not confirmed.
        TearingDown "tearing_down",
        /// Teardown was not confirmed in time.
        Fenced "fenced",
        Closed "closed",
    }
}

words! {
    /// Why an operator takes a lease back.
    pub enum RevokeReason {
        Operator "operator",
        Policy "policy",
        Budget "budget",
        DuplicateHolder "duplicate_holder",
    }
}

words! {
    /// Whose a node is.
    pub enum CustodyState {
        /// Anyone's work may run there, but for sensitive work.
        Open "open",
        /// One user's sensitive work, and nothing else.
        Claimed "claimed",
        /// Released, and not yet known to be clean.
        Wiping "wiping",
        /// Its wipe failed, or took too long: nothing runs there until an operator clears it.
        Quarantined "quarantined",
    }
}

words! {
    /// What was made of a lease. The first that matches, in this order, is its headline.
    pub enum WasteClass {
        /// Expensive hardware, less than a quarter of it used.
        PremiumWaste "premium_waste",
        /// Active for less than a tenth of the time.
        Idle "idle",
        /// Less than a quarter of what is held is used.
        Overprovisioned "overprovisioned",
        /// One of very many small leases of its holder.
        Fragmented "fragmented",
        Healthy "healthy",
        /// Reports cover less than half of the time.
        Unknown "unknown",
    }
}

words! {
    /// What the lines of a report are grouped by.
    pub enum Group {
        Tenant "tenant",
        Project "project",
        User "user",
        Pool "pool",
        Node "node",
        Priority "priority",
        Tag "tag",
        Allocation "allocation",
        AppInstance "app_instance",
        Workload "workload",
        HeldAs "held_as",
        Class "class",
        Kind "kind",
        Tier "tier",
    }
}
