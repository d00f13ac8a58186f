//! Word lists of decisions: priorities, reasons, quotas, strategies.

use crate::ceiling::Amount;
use crate::codec::{DecodeError, Field, Reader};
use crate::id::{AppInstanceNo, ClassNo, QuotaNo};
use crate::instant::Instant;
use crate::prepaid::{Funds, PrepaidState};
use crate::quantity::{Fraction, Quanta};
use crate::{fields, words};

// The order of the codes is the order of rank (SEMANTICS 5).
words! {
    /// Priority class; a higher class may preempt a lower one.
    pub enum Priority {
        Scavenger = 1 "scavenger",
        Standard = 2 "standard",
        Guaranteed = 3 "guaranteed",
    }
}

#[expect(clippy::derivable_impls, reason = "`words!` makes the enum and takes no default")]
impl Default for Priority {
    fn default() -> Self {
        Self::Standard
    }
}

impl Priority {
    /// Position in a table with one row per priority.
    pub const fn index(self) -> usize {
        self as usize - 1
    }
}

words! {
    /// The placement strategy of a pool.
    pub enum Strategy {
        Spread = 1 "spread",
        BinPack = 2 "bin_pack",
    }
}

words! {
    /// How the work of a project is admitted to a pool.
    pub enum PoolAccess {
        /// As that of others.
        Normal = 1 "normal",
        /// It waits behind the work of others of the same priority.
        Deprioritised = 2 "deprioritised",
        /// Nothing new is admitted.
        Paused = 3 "paused",
    }
}

words! {
    /// How the capacity of an ended lease becomes free.
    pub enum TeardownMode as "Teardown" {
        /// An agent on the node confirms each teardown.
        Confirmed = 1 "confirmed",
        /// The node has no agent; capacity is free as soon as a lease ends.
        Immediate = 2 "immediate",
    }
}

words! {
    /// What a quota counts.
    pub enum Measure {
        /// Quanta of one class.
        Quanta = 1 "quanta",
        /// The number of leases.
        Leases = 2 "leases",
        /// The number of nodes with leases.
        Nodes = 3 "nodes",
        /// The number of allocations that hold capacity.
        Allocations = 4 "allocations",
    }
}

words! {
    /// Why the teardown of a revoked lease started.
    pub enum TeardownCause {
        /// The holder reported that it was ready.
        Ready = 1 "ready",
        /// Grace ended.
        GraceEnded = 2 "grace_ended",
    }
}

words! {
    /// Why a node was quarantined.
    pub enum QuarantineCause {
        WipeFailed = 1 "wipe_failed",
        WipeTimedOut = 2 "wipe_timed_out",
    }
}

words! {
    /// The level of load or errors that an agent reports.
    pub enum Level {
        Normal = 0 "normal",
        High = 1 "high",
        Critical = 2 "critical",
    }
}

#[expect(clippy::derivable_impls, reason = "`words!` makes the enum and takes no default")]
impl Default for Level {
    fn default() -> Self {
        Self::Normal
    }
}

/// Why a lease ended without its holder's request. There is no free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Evicted by the decision recorded at that sequence.
    Preempted {
        by: u64,
    },
    Quota {
        quota: QuotaNo,
    },
    Budget,
    Operator,
    NodeLost,
    Policy,
    DuplicateHolder,
}

impl Reason {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Preempted { .. } => "preempted",
            Self::Quota { .. } => "quota",
            Self::Budget => "budget",
            Self::Operator => "operator",
            Self::NodeLost => "node_lost",
            Self::Policy => "policy",
            Self::DuplicateHolder => "duplicate_holder",
        }
    }
}

impl Field for Reason {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Preempted { by } => {
                out.push(1);
                by.put(out);
            }
            Self::Quota { quota } => {
                out.push(2);
                quota.put(out);
            }
            Self::Budget => out.push(3),
            Self::Operator => out.push(4),
            Self::NodeLost => out.push(5),
            Self::Policy => out.push(6),
            Self::DuplicateHolder => out.push(7),
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::Preempted { by: Field::get(r)? },
            2 => Self::Quota { quota: Field::get(r)? },
            3 => Self::Budget,
            4 => Self::Operator,
            5 => Self::NodeLost,
            6 => Self::Policy,
            7 => Self::DuplicateHolder,
            code => {
                return Err(DecodeError::BadCode { field: "reason", code: u64::from(code) });
            }
        })
    }
}

fields! {
    /// Budgets of a tenant over a rolling window (SEMANTICS 4). They order the queue and deny nothing, except for
    /// `max_pending`.
    pub struct Budgets {
        pub gpu_hours: Option<u64>,
        pub node_hours: Option<u64>,
        /// The window, in days.
        pub period_days: u32,
        /// The target share of all GPU time, in thousandths.
        pub fair_share: Option<u32>,
        /// GPU hours beyond the budget that are tolerated.
        pub burst_allowance: Option<u64>,
        /// The most waiting allocations.
        pub max_pending: Option<u64>,
    }
}

impl Budgets {
    pub const NONE: Self = Self {
        gpu_hours: None,
        node_hours: None,
        period_days: 90,
        fair_share: None,
        burst_allowance: None,
        max_pending: None,
    };
}

impl Default for Budgets {
    fn default() -> Self {
        Self::NONE
    }
}

/// Why a valid request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyCause {
    /// A quota would be exceeded (SEMANTICS 4).
    Quota { quota: QuotaNo, used: u64, requested: u64, limit: u64 },
    /// The burst is used up, or the lease would not end before it is.
    BurstOver { quota: QuotaNo, ends_at: Instant },
    /// No node has enough free capacity; `class` is the scarcest.
    Capacity { class: ClassNo, requested: Quanta, most_free: Quanta },
    /// A hard cost ceiling would be exceeded: that of the project, or of one of its app instances.
    Ceiling { app_instance: Option<AppInstanceNo>, spent: Amount, reserved: Amount, requested: Amount, amount: Amount },
    /// A quota on a kind would be exceeded; in billing units of that kind.
    KindQuota { quota: QuotaNo, used: Fraction, requested: Fraction, limit: u64 },
    /// Prepaid credit does not cover it, or is blocked: that of the tenant, or of the project.
    Prepaid { of_tenant: bool, state: PrepaidState, available: Funds, requested: Amount },
}

impl Field for DenyCause {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Quota { quota, used, requested, limit } => {
                out.push(1);
                quota.put(out);
                used.put(out);
                requested.put(out);
                limit.put(out);
            }
            Self::BurstOver { quota, ends_at } => {
                out.push(2);
                quota.put(out);
                ends_at.put(out);
            }
            Self::Capacity { class, requested, most_free } => {
                out.push(3);
                class.put(out);
                requested.put(out);
                most_free.put(out);
            }
            Self::Ceiling { app_instance, spent, reserved, requested, amount } => {
                out.push(4);
                app_instance.put(out);
                spent.put(out);
                reserved.put(out);
                requested.put(out);
                amount.put(out);
            }
            Self::KindQuota { quota, used, requested, limit } => {
                out.push(5);
                quota.put(out);
                used.put(out);
                requested.put(out);
                limit.put(out);
            }
            Self::Prepaid { of_tenant, state, available, requested } => {
                out.push(6);
                of_tenant.put(out);
                state.put(out);
                available.put(out);
                requested.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::Quota {
                quota: Field::get(r)?,
                used: Field::get(r)?,
                requested: Field::get(r)?,
                limit: Field::get(r)?,
            },
            2 => Self::BurstOver { quota: Field::get(r)?, ends_at: Field::get(r)? },
            3 => Self::Capacity { class: Field::get(r)?, requested: Field::get(r)?, most_free: Field::get(r)? },
            4 => Self::Ceiling {
                app_instance: Field::get(r)?,
                spent: Field::get(r)?,
                reserved: Field::get(r)?,
                requested: Field::get(r)?,
                amount: Field::get(r)?,
            },
            5 => Self::KindQuota {
                quota: Field::get(r)?,
                used: Field::get(r)?,
                requested: Field::get(r)?,
                limit: Field::get(r)?,
            },
            6 => Self::Prepaid {
                of_tenant: Field::get(r)?,
                state: Field::get(r)?,
                available: Field::get(r)?,
                requested: Field::get(r)?,
            },
            code => {
                return Err(DecodeError::BadCode { field: "denial", code: u64::from(code) });
            }
        })
    }
}
