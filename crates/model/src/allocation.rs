//! Allocations: gangs of leases for one workload, granted all or none (SEMANTICS 1 and 5).

use crate::body::Asks;
use crate::id::{AppInstanceNo, AttachmentNo, PoolNo, ProjectNo};
use crate::instant::Span;
use crate::name::Name;
use crate::placement::Profile;
use crate::policy::Priority;
use crate::{fields, words};

words! {
    /// Where an allocation is in its life.
    pub enum AllocationState {
        /// Waits in the queue.
        Pending = 1 "pending",
        /// Has its capacity, and gets ready to run.
        Staging = 2 "staging",
        Running = 3 "running",
        /// Writes a checkpoint; it holds its capacity meanwhile.
        Checkpointing = 4 "checkpointing",
        /// Gave its capacity up against its will, has a checkpoint, and waits in the queue.
        Suspended = 5 "suspended",
        Completed = 6 "completed",
        Failed = 7 "failed",
        Cancelled = 8 "cancelled",
    }
}

impl AllocationState {
    /// Nothing will happen to it any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
    pub const fn is_queued(self) -> bool {
        matches!(self, Self::Pending | Self::Suspended)
    }
    /// Holds capacity.
    pub const fn is_placed(self) -> bool {
        matches!(self, Self::Staging | Self::Running | Self::Checkpointing)
    }
}

words! {
    /// How wide the places of a gang are told apart.
    pub enum Domain {
        Node = 1 "node",
        Rack = 2 "rack",
        Zone = 3 "zone",
    }
}

words! {
    /// Why an attempt ended before its work was done.
    pub enum AttemptEnd {
        /// Evicted for one of higher priority.
        Preempted = 1 "preempted",
        NodeLost = 2 "node_lost",
        /// Revoked by an operator, a quota, a budget or a policy.
        Revoked = 3 "revoked",
        /// A lease was not renewed in time.
        Expired = 4 "expired",
        /// It ran for as long as it may.
        Walltime = 5 "walltime",
        /// Its own work failed, as its holder reports.
        Reported = 6 "reported",
    }
}

fields! {
    /// What is asked for: `replicas` times the asks, each replica on one node.
    pub struct AllocationSpec {
        pub pool: Option<PoolNo>,
        pub asks: Asks,
        pub replicas: u32,
        pub priority: Priority,
        /// How long an attempt may run in all; renewal stops there. None: as long as it is renewed.
        pub walltime: Option<Span>,
        /// What its leases are granted for at first; the walltime where absent.
        pub ttl: Option<Span>,
        /// It is staged first, and says itself when it runs.
        pub staged: bool,
        /// What cannot be suspended goes back into the queue instead of failing.
        pub requeue: bool,
        /// Labels that its nodes must carry.
        pub labels: Vec<(Name, Name)>,
        /// All replicas within one of these.
        pub together: Option<Domain>,
        /// No two replicas within one of these.
        pub apart: Option<Domain>,
        /// What the workload depends on, as it was known when it was submitted.
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

    /// How many leases it takes.
    pub fn leases(&self) -> u64 {
        u64::from(self.replicas) * self.asks.len() as u64
    }

    /// Whether no gang can lie so: two replicas within one domain and in two of them.
    pub fn contradicts_itself(&self) -> bool {
        let (Some(together), Some(apart)) = (self.together, self.apart) else { return false };
        self.replicas > 1 && apart >= together
    }
}
