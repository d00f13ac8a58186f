//! The bodies of records, one per kind. The table at the end is the registry of kinds.

mod admission;
mod allocations;
mod apps;
mod correlation;
mod custody;
mod entitlements;
mod lease_lists;
mod ledger;
mod losses;
mod nodes;
mod patterns;
mod policies;
mod prepaid;
mod sharing;
mod sinks;
mod statements;
mod usage;
mod windows;

pub use admission::{Asks, Denied, Granted, Member, Members, Particulars};
pub use allocations::{
    AllocationCancelled, AllocationChanged, AllocationCheckpointed, AllocationCheckpointing, AllocationCompleted,
    AllocationDenied, AllocationFailed, AllocationHoldCleared, AllocationHoldSet, AllocationPlaced, AllocationRequeued,
    AllocationStarted, AllocationSubmitted, AllocationSuspended, HeadProtected, PreemptionDecided, ReplicaPlacement,
    ReservationDropped, ReservationTakenOver,
};
pub use apps::{
    AppInstanceDeleted, AppInstancePut, AppTypeDeleted, AppTypePut, AttachmentEnded, AttachmentMade, UnitPricePut,
    UsageUnitPut,
};
pub use correlation::{BelongsTo, Correlation};
pub use custody::{
    NodeQuarantined, NodeWiped, Nodes, NodesClaimed, NodesReleased, QuarantineCleared, SensitiveChanged,
};
pub use entitlements::{
    EntitlementDeleted, EntitlementPut, EntitlementScope, EntitlementWarned, UsageRefused, UsedInMonth,
};
pub use lease_lists::{Leases, Renewal, Renewed, Reported, ReportedLeases};
pub use ledger::{
    CorrectedLine, HourSettled, InvoiceIssued, LedgerAdjusted, LedgerCorrected, LedgerDisputed, LedgerOpened,
    LedgerPosted, PaymentRecorded, PeriodClosed, PeriodClosing, PostedLine, TaxLine, TaxRatePut,
};
pub use losses::{ClaimEndCorrected, EndsCorrected, LossSettled};
pub use nodes::{
    AgentDetached, AgentRegistered, NodeCondition, NodeDeleted, NodeDrained, NodeEmpty, NodeLost, NodePut, NodeResumed,
    NodeReturned,
};
pub use policies::{AppPolicyPut, Attribution, PolicyScope};
pub use prepaid::{PrepaidApplied, PrepaidChanged, PrepaidLapsed, PrepaidPolicyPut, PrepaidToppedUp};
pub use sharing::{
    LedgerShared, ServiceTier, ServiceTiers, ShareWeight, SharedAs, Sharing, SharingBasis, SharingMethod, SharingPut,
};
pub use sinks::{AccountingReconciled, SinkDeleted, SinkDisabled, SinkDisabledCause, SinkPut, SinkSignature};
pub use statements::{PeriodStated, RecordSet};
pub use usage::{ReplacedUsage, UsageKey, UsageRecorded, UsageReport};
pub use windows::{WindowAnnounced, WindowEnded, WindowPut, WindowStarted};

use crate::access::{Role, TokenScope};
pub use crate::ceiling::{CeilingDeleted, CeilingPut};
use crate::class::ClassSpec;
use crate::codec::{DecodeError, Field, Reader};
use crate::id::{ClassNo, NodeNo, PoolNo, ProjectNo, QuotaNo, TenantNo, TokenNo, UserNo};
use crate::instant::{Instant, Span};
use crate::name::Name;
use crate::placement::Weights;
use crate::policy::{Budgets, PoolAccess, Priority, Strategy, TeardownCause};
pub use crate::quota::QuotaPut;
pub use crate::rate::{ChargePolicyPut, RateCardDeleted, RateCardPut};
pub use crate::tenant::{TenantSettings, TenantSettingsChange};
use crate::{fields, words};

fields! {
    /// The first record. It identifies the journal.
    pub struct Genesis {
        pub format_version: u32,
        pub origin: Name,
        pub public_key: [u8; 32],
        pub software: Name,
    }
}

fields! {
    /// The wall clock was outside the accepted gap, and the operator allowed it.
    pub struct ClockAccepted {
        pub last_stamp: Instant,
        pub wall_clock: Instant,
    }
}

fields! {
    /// A process became the writer.
    pub struct Started {
        pub epoch: u64,
        pub software: Name,
        pub rules_version: u32,
        pub clock_accepted: Option<ClockAccepted>,
    }
}

fields! {
    /// Shows that the engine was running although nothing happened.
    pub struct Heartbeat {}
}

fields! {
    /// From here on checkpoints are signed by `new_key`. The record is signed by both keys.
    pub struct KeyRotated {
        pub old_key: [u8; 32],
        pub new_key: [u8; 32],
    }
}

fields! {
    /// The wall clock jumped relative to the monotonic clock; the engine follows the monotonic clock.
    pub struct ClockJumped {
        pub wall_clock: Instant,
    }
}

fields! {
    /// From here on the journal is written in this format version. The first record of the first segment of that
    /// version, in a journal that was begun in an earlier one.
    pub struct Converted {
        pub format_version: u32,
    }
}

words! {
    /// What the operator decided about records that could not be authenticated.
    pub enum TailAction {
        /// They were discarded.
        Cut = 1 "cut",
        /// They count.
        Accepted = 2 "accepted",
    }
}

fields! {
    /// Records after the anchor could not be authenticated, and the operator decided what becomes of them
    /// (SEMANTICS 11, "Local authenticity").
    pub struct TailResolved {
        pub action: TailAction,
        /// Whole records among the bytes.
        pub records: u64,
        pub bytes: u64,
    }
}

fields! {
    /// The journal was restored from a copy, and goes on in another data directory. Sealed before the `started` record
    /// of the new epoch.
    pub struct Restored {
        /// Records that the copy contained.
        pub records: u64,
        /// When the copy was made. What was recorded after it is lost.
        pub copied_at: Instant,
    }
}

fields! {
    /// The engine's limits, recorded so that a replay uses the same.
    pub struct SettingsChanged {
        pub ttl_max: Span,
        pub grace_default: Span,
        pub teardown_deadline: Span,
        pub node_timeout: Span,
        pub idempotency_window: Span,
    }
}

fields! {
    /// How fast heat decays, recorded so that a replay chooses the same nodes.
    pub struct PlacementChanged {
        pub heat_half_life: Span,
    }
}

fields! {
    /// How long the head of a line waits before it is protected.
    pub struct QueueChanged {
        pub head_wait_max: Span,
    }
}

fields! {
    pub struct ClassPut {
        pub class: ClassNo,
        pub spec: ClassSpec,
    }
}

/// One value per priority, in the order scavenger, standard, guaranteed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerPriority(pub [Option<Span>; 3]);

impl PerPriority {
    pub const fn of(&self, priority: Priority) -> Option<Span> {
        self.0[priority.index()]
    }
}

impl Field for PerPriority {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|span| span.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self([Field::get(r)?, Field::get(r)?, Field::get(r)?]))
    }
}

fields! {
    pub struct PoolPut {
        pub pool: PoolNo,
        pub name: Name,
        pub strategy: Strategy,
        pub ttl_max: PerPriority,
        pub lifetime_max: PerPriority,
        pub grace: Option<Span>,
    }
}
fields! { pub struct PoolDeleted { pub pool: PoolNo } }
fields! {
    /// The placement weights of a pool from now on: its own, or those of its strategy.
    pub struct PoolPlacementPut { pub pool: PoolNo, pub weights: Option<Weights> }
}

fields! {
    /// When leases of a pool may be evicted, and how often an allocation is requeued.
    #[derive(Copy)]
    pub struct PoolQueue {
        /// A lease is not evicted before it was held for so long.
        pub min_runtime_before_eviction: Span,
        /// How often an allocation is requeued before it fails.
        pub requeue_limit: u32,
    }
}

impl Default for PoolQueue {
    fn default() -> Self {
        Self { min_runtime_before_eviction: Span::ZERO, requeue_limit: 10 }
    }
}

fields! {
    /// The queue settings of a pool from now on.
    pub struct PoolQueuePut { pub pool: PoolNo, pub queue: PoolQueue }
}

fields! {
    /// How the work of a project is admitted to a pool from now on.
    pub struct ProjectPoolPut { pub project: ProjectNo, pub pool: PoolNo, pub access: PoolAccess }
}

fields! { pub struct TenantPut { pub tenant: TenantNo, pub settings: TenantSettings } }
fields! { pub struct TenantDeleted { pub tenant: TenantNo } }

fields! {
    pub struct ProjectPut {
        pub project: ProjectNo,
        pub tenant: TenantNo,
        pub name: Name,
    }
}
fields! { pub struct ProjectDeleted { pub project: ProjectNo } }

fields! {
    pub struct UserPut {
        pub user: UserNo,
        pub tenant: TenantNo,
        pub name: Name,
    }
}
fields! { pub struct UserDeleted { pub user: UserNo } }

fields! { pub struct QuotaDeleted { pub quota: QuotaNo } }
fields! {
    /// The temporary limit of a quota ended; its base limit applies again. The effective instant is the end.
    pub struct QuotaUntilReached { pub quota: QuotaNo }
}

fields! {
    /// All budgets of a tenant.
    pub struct BudgetsPut { pub tenant: TenantNo, pub budgets: Budgets }
}

fields! {
    /// Usage was at or below the base limit of a burst quota for a whole `burst_ttl`: the next burst may start.
    pub struct BurstEnded { pub quota: QuotaNo }
}

fields! {
    /// The holder released leases. `closed`: the node has no agent, so they are closed at once.
    pub struct Released { pub leases: ReportedLeases, pub closed: bool }
}
fields! {
    /// Leases expired; the record's effective instant is their common deadline.
    pub struct Expired { pub leases: Leases, pub closed: bool }
    added { 1 pub belongs_to: Option<BelongsTo> }
}
fields! {
    /// Leases were revoked, with the reason in the record's head. The holder has `grace` to save its work.
    pub struct Revoked { pub leases: Leases, pub grace: Span }
    added { 1 pub belongs_to: Option<BelongsTo> }
}
fields! {
    /// The teardown of revoked leases started; billing stops at the record's effective instant.
    pub struct TeardownStarted { pub leases: Leases, pub cause: TeardownCause, pub closed: bool }
    added { 1 pub belongs_to: Option<BelongsTo> }
}
fields! {
    /// The node confirmed the teardown; the capacity is free again.
    pub struct TornDown { pub node: NodeNo, pub leases: Leases }
    added { 1 pub belongs_to: Option<BelongsTo> }
}
fields! {
    /// The teardown was not confirmed in time; the capacity is unavailable until an operator clears the fence.
    pub struct Fenced { pub leases: Leases }
    added { 1 pub belongs_to: Option<BelongsTo> }
}
fields! {
    /// An operator declared the capacity clean.
    pub struct Unfenced { pub leases: Leases }
    added {
        1 pub belongs_to: Option<BelongsTo>,
        /// What the operator gave as the reason.
        2 pub reason: Option<Name>,
    }
}
fields! {
    pub struct ActivityReported { pub leases: ReportedLeases }
}
fields! {
    /// An eviction in the first version of the format. No longer written; replaced by `preemption.decided`.
    pub struct Preempted { pub node: NodeNo, pub priority: Priority, pub rules_version: u32, pub victims: Leases }
}

fields! {
    /// A token was issued. Its secret is not in the journal; `hash` is its SHA-256.
    pub struct TokenIssued {
        pub token: TokenNo,
        pub name: Name,
        pub hash: [u8; 32],
        pub role: Role,
        pub scope: TokenScope,
        pub expires_at: Option<Instant>,
    }
}
fields! { pub struct TokenRevoked { pub token: TokenNo } }

macro_rules! kinds {
    ($($code:literal $word:literal $kind:ident,)*) => {
        /// The typed body of a record.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $($kind($kind),)*
            /// A kind of a later version: its hash is checked and its bytes are shown, but the engine refuses it.
            Unknown { kind: u32, bytes: Vec<u8> },
        }

        impl Body {
            /// Every kind with its code and name.
            pub const KINDS: &'static [(u32, &'static str)] = &[$(($code, $word)),*];

            pub fn kind(&self) -> u32 {
                match self {
                    $(Self::$kind(_) => $code,)*
                    Self::Unknown { kind, .. } => *kind,
                }
            }

            /// The stable name of the kind, as the JSON view and metrics use it.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $word,)*
                    Self::Unknown { .. } => "unknown",
                }
            }

            pub(crate) fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$kind(body) => body.put(out),)*
                    Self::Unknown { kind, bytes } => {
                        let known = Self::KINDS.iter().any(|(code, _)| code == kind);
                        assert!(!known, "a known kind must not be encoded as unknown");
                        out.extend_from_slice(bytes);
                    }
                }
            }

            #[inline]
            pub(crate) fn get(kind: u32, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match kind {
                    $($code => {
                        let body = Self::$kind($kind::get(r)?);
                        r.finish()?;
                        Ok(body)
                    })*
                    kind => Ok(Self::Unknown { kind, bytes: r.take(r.remaining())?.to_vec() }),
                }
            }
        }

        impl Body {
            /// Fails where [`Self::get`] fails, with the same error, without building the body.
            #[inline]
            pub(crate) fn validate(kind: u32, r: &mut Reader<'_>) -> Result<(), DecodeError> {
                match kind {
                    $($code => $kind::validate(r)?,)*
                    _ => drop(r.take(r.remaining())?),
                }
                r.finish()
            }
        }

        $(impl $kind {
            /// The code of this kind of record.
            pub const KIND: u32 = $code;
        })*

        $(impl From<$kind> for Body {
            #[inline]
            fn from(body: $kind) -> Self {
                Self::$kind(body)
            }
        })*
    };
}

kinds! {
    1 "journal.genesis" Genesis,
    2 "journal.started" Started,
    3 "journal.heartbeat" Heartbeat,
    4 "journal.key_rotated" KeyRotated,
    5 "journal.clock_jumped" ClockJumped,
    6 "settings.changed" SettingsChanged,
    7 "journal.converted" Converted,
    8 "journal.tail_resolved" TailResolved,
    10 "class.put" ClassPut,
    11 "pool.put" PoolPut,
    12 "pool.deleted" PoolDeleted,
    13 "tenant.put" TenantPut,
    14 "tenant.deleted" TenantDeleted,
    15 "project.put" ProjectPut,
    16 "project.deleted" ProjectDeleted,
    17 "user.put" UserPut,
    18 "user.deleted" UserDeleted,
    19 "quota.updated" QuotaPut,
    20 "quota.deleted" QuotaDeleted,
    21 "quota.burst_ended" BurstEnded,
    22 "rate_card.put" RateCardPut,
    23 "rate_card.deleted" RateCardDeleted,
    24 "charge_policy.put" ChargePolicyPut,
    25 "quota.budgets_updated" BudgetsPut,
    26 "pool.placement_put" PoolPlacementPut,
    27 "settings.placement_changed" PlacementChanged,
    28 "settings.sensitive_changed" SensitiveChanged,
    30 "node.put" NodePut,
    31 "node.deleted" NodeDeleted,
    32 "node.drained" NodeDrained,
    33 "node.resumed" NodeResumed,
    34 "node.lost" NodeLost,
    35 "node.returned" NodeReturned,
    36 "node.condition" NodeCondition,
    37 "node.agent_registered" AgentRegistered,
    38 "node.agent_detached" AgentDetached,
    40 "lease.granted" Granted,
    41 "lease.denied" Denied,
    42 "lease.renewed" Renewed,
    43 "lease.released" Released,
    44 "lease.expired" Expired,
    45 "lease.revoked" Revoked,
    46 "lease.teardown_started" TeardownStarted,
    47 "lease.torn_down" TornDown,
    48 "lease.fenced" Fenced,
    49 "lease.unfenced" Unfenced,
    50 "lease.activity" ActivityReported,
    51 "lease.preempted" Preempted,
    52 "preemption.decided" PreemptionDecided,
    53 "reservation.dropped" ReservationDropped,
    60 "token.issued" TokenIssued,
    61 "token.revoked" TokenRevoked,
    70 "allocation.submitted" AllocationSubmitted,
    71 "allocation.denied" AllocationDenied,
    72 "allocation.placed" AllocationPlaced,
    73 "allocation.started" AllocationStarted,
    74 "allocation.checkpointing" AllocationCheckpointing,
    75 "allocation.checkpointed" AllocationCheckpointed,
    76 "allocation.suspended" AllocationSuspended,
    77 "allocation.requeued" AllocationRequeued,
    78 "allocation.completed" AllocationCompleted,
    79 "allocation.failed" AllocationFailed,
    80 "allocation.cancelled" AllocationCancelled,
    90 "node.claimed" NodesClaimed,
    91 "node.released" NodesReleased,
    92 "node.wiped" NodeWiped,
    93 "node.quarantined" NodeQuarantined,
    94 "node.quarantine_cleared" QuarantineCleared,
    100 "ceiling.put" CeilingPut,
    101 "ceiling.deleted" CeilingDeleted,
    110 "reservation.taken_over" ReservationTakenOver,
    111 "head.protected" HeadProtected,
    112 "pool.queue_put" PoolQueuePut,
    113 "settings.queue_changed" QueueChanged,
    114 "project.pool_put" ProjectPoolPut,
    115 "lease.end_corrected" EndsCorrected,
    116 "quota.until_reached" QuotaUntilReached,
    117 "claim.end_corrected" ClaimEndCorrected,
    118 "allocation.hold_set" AllocationHoldSet,
    119 "allocation.hold_cleared" AllocationHoldCleared,
    120 "allocation.changed" AllocationChanged,
    121 "node.empty" NodeEmpty,
    122 "node.loss_settled" LossSettled,
    123 "window.put" WindowPut,
    124 "window.started" WindowStarted,
    125 "window.ended" WindowEnded,
    126 "lease.window_announced" WindowAnnounced,
    130 "journal.restored" Restored,
    140 "ledger.opened" LedgerOpened,
    141 "ledger.posted" LedgerPosted,
    142 "ledger.hour_settled" HourSettled,
    143 "ledger.corrected" LedgerCorrected,
    144 "ledger.adjusted" LedgerAdjusted,
    145 "ledger.disputed" LedgerDisputed,
    150 "period.closing" PeriodClosing,
    151 "invoice.issued" InvoiceIssued,
    152 "period.closed" PeriodClosed,
    153 "payment.recorded" PaymentRecorded,
    154 "tax_rate.put" TaxRatePut,
    155 "prepaid.topped_up" PrepaidToppedUp,
    156 "prepaid.policy_put" PrepaidPolicyPut,
    157 "prepaid.lapsed" PrepaidLapsed,
    158 "prepaid.changed" PrepaidChanged,
    159 "prepaid.applied" PrepaidApplied,
    160 "usage_unit.put" UsageUnitPut,
    161 "unit_price.put" UnitPricePut,
    162 "app_type.put" AppTypePut,
    163 "app_type.deleted" AppTypeDeleted,
    164 "app_instance.put" AppInstancePut,
    165 "app_instance.deleted" AppInstanceDeleted,
    166 "attachment.made" AttachmentMade,
    167 "attachment.ended" AttachmentEnded,
    168 "usage.recorded" UsageRecorded,
    169 "usage.refused" UsageRefused,
    170 "entitlement.put" EntitlementPut,
    171 "entitlement.deleted" EntitlementDeleted,
    172 "entitlement.warned" EntitlementWarned,
    173 "app_policy.put" AppPolicyPut,
    174 "sharing.put" SharingPut,
    175 "ledger.shared" LedgerShared,
    176 "period.stated" PeriodStated,
    177 "sink.put" SinkPut,
    178 "sink.deleted" SinkDeleted,
    179 "sink.disabled" SinkDisabled,
    180 "accounting.reconciled" AccountingReconciled,
}
