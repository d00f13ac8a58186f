//! Allocations: gangs of leases for one workload, granted all or none (SEMANTICS 1 and 5).

use crate::body::Asks;
use crate::id::{AppInstanceNo, AttachmentNo, PoolNo, ProjectNo};
use crate::instant::Span;
use crate::name::Name;
use crate::placement::Profile;
use crate::policy::Priority;
use crate::{fields, words};

words! {
    /// The state of an allocation.
    pub enum AllocationState {
        /// Waiting in the queue.
        Pending = 1 "pending",
        /// Holds its capacity and prepares to run.
        Staging = 2 "staging",
        Running = 3 "running",
        /// Writing a checkpoint; it still holds its capacity.
        Checkpointing = 4 "checkpointing",
        /// Interrupted; it has a checkpoint and waits in the queue.
        Suspended = 5 "suspended",
        Completed = 6 "completed",
        Failed = 7 "failed",
        Cancelled = 8 "cancelled",
    }
}

impl AllocationState {
    /// Whether the allocation has ended.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
    pub const fn is_queued(self) -> bool {
        matches!(self, Self::Pending | Self::Suspended)
    }
    /// Whether it holds capacity.
    pub const fn is_placed(self) -> bool {
        matches!(self, Self::Staging | Self::Running | Self::Checkpointing)
    }
}

words! {
    /// A topology domain for the placement of a gang.
    pub enum Domain {
        Node = 1 "node",
        Rack = 2 "rack",
        Zone = 3 "zone",
    }
}

words! {
    /// Why an attempt ended before its work was done.
    pub enum AttemptEnd {
        /// Evicted by higher priority.
        Preempted = 1 "preempted",
        NodeLost = 2 "node_lost",
        /// Revoked by an operator, a quota, a budget or a policy.
        Revoked = 3 "revoked",
        /// A lease expired because it was not renewed.
        Expired = 4 "expired",
        /// The walltime is over.
        Walltime = 5 "walltime",
        /// The holder reported a failure of the work.
        Reported = 6 "reported",
        /// The agent of a node or an operator reported that the work could not be started.
        FailedStart = 7 "failed_start",
    }
}

words! {
    /// What becomes of an allocation that would exceed a quota when it is submitted.
    pub enum WhenOverQuota {
        /// It is denied.
        Refuse = 1 "refuse",
        /// It waits for quota headroom, unless it exceeds the base limit all by itself.
        Wait = 2 "wait",
    }
}

#[expect(clippy::derivable_impls, reason = "`words!` makes the enum and takes no default")]
impl Default for WhenOverQuota {
    fn default() -> Self {
        Self::Refuse
    }
}

fields! {
    /// A request for an allocation: `replicas` times the asks, each replica on one node.
    pub struct AllocationSpec {
        pub pool: Option<PoolNo>,
        pub asks: Asks,
        pub replicas: u32,
        pub priority: Priority,
        /// The longest time of one attempt; leases cannot be renewed beyond it. If absent, leases can be renewed
        /// without limit.
        pub walltime: Option<Span>,
        /// The first TTL of its leases; the walltime if absent.
        pub ttl: Option<Span>,
        /// It is staged first; its holder reports when it runs.
        pub staged: bool,
        /// Requeue instead of failing when interrupted without a checkpoint.
        pub requeue: bool,
        /// Required labels of its nodes.
        pub labels: Vec<(Name, Name)>,
        /// All replicas are placed within one such domain.
        pub together: Option<Domain>,
        /// No two replicas are placed within the same such domain.
        pub apart: Option<Domain>,
        /// The sensitivity profile of the workload at submission.
        pub profile: Option<Profile>,
        pub sensitive: bool,
        pub control_plane: bool,
        pub correlation: Option<u128>,
        pub app_instance: Option<AppInstanceNo>,
        pub attachment: Option<AttachmentNo>,
        pub source_project: Option<ProjectNo>,
    }
}

impl AllocationSpec {
    /// One replica, anywhere, at standard priority.
    pub fn of(asks: Asks) -> Self {
        Self {
            pool: None,
            asks,
            replicas: 1,
            priority: Priority::Standard,
            walltime: None,
            ttl: None,
            staged: false,
            requeue: false,
            labels: Vec::new(),
            together: None,
            apart: None,
            profile: None,
            sensitive: false,
            control_plane: false,
            correlation: None,
            app_instance: None,
            attachment: None,
            source_project: None,
        }
    }

    /// The number of its leases.
    pub fn leases(&self) -> u64 {
        u64::from(self.replicas) * self.asks.len() as u64
    }

    /// Whether `together` and `apart` contradict each other for more than one replica.
    pub fn contradicts_itself(&self) -> bool {
        let (Some(together), Some(apart)) = (self.together, self.apart) else { return false };
        self.replicas > 1 && apart >= together
    }
}
