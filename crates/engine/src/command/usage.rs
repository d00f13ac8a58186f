//! Reported usage of app runtimes (SEMANTICS 9 and 12).

use leasehold_model::body::{ReplacedUsage, UsageReport};
use leasehold_model::{AttachmentNo, ProjectNo, TenantNo, UserNo, fields};

fields! {
    /// A runtime reports usage. Whoever sends this has asked the books for the ID.
    pub struct RecordUsage {
        /// Whose usage it is.
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub user: Option<UserNo>,
        pub report: UsageReport,
        /// The record that the report supersedes, if the books have it.
        pub replaces: Option<ReplacedUsage>,
        /// The project that was credited with what that record cost.
        pub replaced_creditor: Option<ProjectNo>,
        /// The allocation that the report names, if the books have it. The engine knows only those that live.
        pub named: Option<NamedAllocation>,
        /// The number of records that the books had when they were asked.
        pub known_to: u64,
    }
}

fields! {
    /// Whose capacity an allocation holds. It never changes.
    #[derive(Copy)]
    pub struct NamedAllocation {
        pub project: ProjectNo,
        /// The attachment on whose account it was submitted, and the project that pays.
        pub attachment: Option<AttachmentNo>,
        pub source_project: Option<ProjectNo>,
    }
}
