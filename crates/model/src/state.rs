//! Word lists for values that are derived from records or used in requests, but are not part of records.

use crate::words;

words! {
    /// The state of a lease.
    pub enum LeaseState {
        Active "active",
        /// Revoked, within its grace period; still held and billed.
        Revoking "revoking",
        /// Released; the teardown is not confirmed yet.
        Releasing "releasing",
        /// The deadline passed; the teardown is not confirmed yet.
        Expired "expired",
        /// Revoked, and grace is over; the teardown is not confirmed yet.
        TearingDown "tearing_down",
        /// The teardown was not confirmed in time.
        Fenced "fenced",
        Closed "closed",
    }
}

words! {
    /// Why an operator revokes a lease.
    pub enum RevokeReason {
        Operator "operator",
        Policy "policy",
        Budget "budget",
        DuplicateHolder "duplicate_holder",
    }
}

words! {
    /// Who may use a node.
    pub enum CustodyState {
        /// Open to all work except sensitive work.
        Open "open",
        /// Claimed by one user for sensitive work.
        Claimed "claimed",
        /// Released; the wipe is not confirmed yet.
        Wiping "wiping",
        /// The wipe failed or took too long; nothing runs there until an operator clears the node.
        Quarantined "quarantined",
    }
}

words! {
    /// How well a lease was used. The first class that matches, in this order, is its main class.
    pub enum WasteClass {
        /// A premium class, of which less than a quarter is used.
        PremiumWaste "premium_waste",
        /// Active for less than a tenth of the time.
        Idle "idle",
        /// Less than a quarter of the held capacity is used.
        Overprovisioned "overprovisioned",
        /// One of many small leases of the same holder.
        Fragmented "fragmented",
        Healthy "healthy",
        /// Activity reports cover less than half of the time.
        Unknown "unknown",
    }
}

words! {
    /// The order of the groups in a report on waste.
    pub enum WasteOrder {
        Name "name",
        /// The highest cost of what was wasted first.
        Cost "cost",
        /// The most leases first.
        Leases "leases",
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
        ControlPlane "control_plane",
        App "app",
        OperatingMode "operating_mode",
        ControlPlaneScope "control_plane_scope",
        RuntimeBackend "runtime_backend",
        Class "class",
        Kind "kind",
        Tier "tier",
    }
}

words! {
    /// Whether a month of the ledger is closed.
    pub enum PeriodState {
        /// Entries are booked in it, or will be.
        Open "open",
        /// What belongs to it is fixed; its invoices are being issued.
        Closing "closing",
        /// Nothing is booked in it any more.
        Closed "closed",
    }
}

words! {
    /// Whether an invoice is paid.
    pub enum InvoiceStatus {
        /// Something is owed, and it is not due yet.
        Open "open",
        /// Nothing is owed.
        Paid "paid",
        /// Something is owed, and it was due.
        Overdue "overdue",
    }
}
