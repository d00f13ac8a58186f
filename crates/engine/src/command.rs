//! The commands of the engine.

mod payload;

use payload::{check_lengths, put_payload};
pub(crate) use payload::{key_scope, payload_hash};

use leasehold_model::body::{AccountingReconciled, Asks, EntitlementScope, PerPriority, PoolQueue};
use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::rate::{Charges, Currency, Prices};
use leasehold_model::{
    Activity, AllocationNo, AllocationSpec, Amount, AppInstanceNo, AppTypeNo, AttachmentNo, CeilingMode, ClassNo,
    ClassSpec, Idempotency, Identity, Instant, Key, LeaseNo, Level, LimitKind, Measure, Month, Name, NodeNo,
    PoolAccess, PoolNo, Priority, Profile, ProjectNo, Quanta, QuotaNo, QuotaScope, Reason, Role, SinkNo, Span,
    Strategy, TeardownMode, TenantNo, TenantSettings, TenantSettingsChange, TokenNo, TokenScope, UserNo, Weights,
    WhenOverQuota, WindowNo, fields,
};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use crate::refusal::Refusal;
use crate::state::Settings;

fields! {
    /// Asks for one or several classes on one node, all or none.
    pub struct RequestLease {
        pub pool: Option<PoolNo>,
        pub node: Option<NodeNo>,
        pub asks: Asks,
        pub ttl: Span,
        pub priority: Priority,
        pub sensitive: bool,
        pub control_plane: bool,
        pub correlation: Option<u128>,
        pub allocation: Option<AllocationNo>,
        pub app_instance: Option<AppInstanceNo>,
        pub attachment: Option<AttachmentNo>,
        pub source_project: Option<ProjectNo>,
        pub hcl_entry: Option<Name>,
        pub dra_claim_id: Option<Name>,
        /// Labels that the node must have.
        pub labels: Vec<(Name, Name)>,
        /// What the workload depends on, as measured. It is no part of what the caller sent: see `put_payload`.
        pub profile: Option<Profile>,
    }
}

impl RequestLease {
    /// A plain request for one class, anywhere, at standard priority.
    pub fn of(class: ClassNo, quanta: Quanta, ttl: Span) -> Self {
        Self {
            pool: None,
            node: None,
            asks: SmallVec::from_slice(&[(class, quanta)]),
            ttl,
            priority: Priority::Standard,
            sensitive: false,
            control_plane: false,
            correlation: None,
            allocation: None,
            app_instance: None,
            attachment: None,
            source_project: None,
            hcl_entry: None,
            dra_claim_id: None,
            labels: Vec::new(),
            profile: None,
        }
    }

    /// The allocation that the request becomes if it has to wait for an eviction.
    pub(crate) fn as_allocation(&self, asks: &Asks) -> AllocationSpec {
        AllocationSpec {
            pool: self.pool,
            priority: self.priority,
            ttl: Some(self.ttl),
            sensitive: self.sensitive,
            control_plane: self.control_plane,
            correlation: self.correlation,
            app_instance: self.app_instance,
            attachment: self.attachment,
            source_project: self.source_project,
            labels: self.labels.clone(),
            profile: self.profile,
            ..AllocationSpec::of(asks.clone())
        }
    }
}

fields! {
    /// An allocation to submit, with references of the caller that its records carry.
    pub struct SubmitAllocation { pub spec: AllocationSpec }
    added { 1 pub hcl_entry: Option<Name>, 2 pub dra_claim_id: Option<Name>, 4 pub when_over_quota: Option<WhenOverQuota> }
}

impl From<AllocationSpec> for SubmitAllocation {
    fn from(spec: AllocationSpec) -> Self {
        Self { spec, hcl_entry: None, dra_claim_id: None, when_over_quota: None }
    }
}

fields! {
    /// One lease to renew for `ttl` from now, with its activity report.
    pub struct RenewOne { pub lease: LeaseNo, pub ttl: Span, pub activity: Option<Activity> }
}
fields! {
    /// One lease to release, with its activity report.
    pub struct ReleaseOne { pub lease: LeaseNo, pub activity: Option<Activity> }
}
/// The leases of one command, usually a single one.
pub type LeaseList = SmallVec<[LeaseNo; 2]>;

fields! {
    pub struct PutTenant { pub tenant: Option<TenantNo>, pub settings: TenantSettings }
}
fields! {
    /// Changes some settings of a tenant. An absent field keeps its value; a field that is present and empty is cleared
    /// (SEMANTICS 4).
    pub struct UpdateTenant {
        pub tenant: TenantNo,
        /// Hard quotas on the tenant's nodes, leases, and allocations that hold capacity.
        pub max_nodes: Option<Option<u64>>,
        pub max_leases: Option<Option<u64>>,
        pub max_concurrent_allocations: Option<Option<u64>>,
        /// Budgets over a rolling window, which order the queue.
        pub gpu_hours_budget: Option<Option<u64>>,
        pub node_hours_budget: Option<Option<u64>>,
        pub budget_period_days: Option<Option<u64>>,
        /// In thousandths.
        pub fair_share_target: Option<Option<u64>>,
        pub burst_allowance: Option<Option<u64>>,
        pub max_pending: Option<Option<u64>>,
        pub settings: TenantSettingsChange,
    }
}

impl UpdateTenant {
    /// An update that changes nothing yet.
    pub fn of(tenant: TenantNo) -> Self {
        Self {
            tenant,
            max_nodes: None,
            max_leases: None,
            max_concurrent_allocations: None,
            gpu_hours_budget: None,
            node_hours_budget: None,
            budget_period_days: None,
            fair_share_target: None,
            burst_allowance: None,
            max_pending: None,
            settings: TenantSettingsChange::default(),
        }
    }
}

fields! { pub struct PutProject { pub project: Option<ProjectNo>, pub tenant: TenantNo, pub name: Name } }
fields! { pub struct SetPoolAccess { pub project: ProjectNo, pub pool: PoolNo, pub access: PoolAccess } }
fields! { pub struct PutUser { pub user: Option<UserNo>, pub tenant: TenantNo, pub name: Name } }
fields! {
    pub struct PutPool {
        pub pool: Option<PoolNo>,
        pub name: Name,
        pub strategy: Strategy,
        pub ttl_max: PerPriority,
        pub lifetime_max: PerPriority,
        pub grace: Option<Span>,
        /// Absent: unchanged. Present and empty: those of the strategy.
        pub weights: Option<Option<Weights>>,
        /// Absent: unchanged.
        pub queue: Option<PoolQueue>,
    }
}
fields! { pub struct PutClass { pub class: Option<ClassNo>, pub spec: ClassSpec } }
fields! {
    pub struct PutNode {
        pub node: Option<NodeNo>,
        pub name: Name,
        pub pool: PoolNo,
        pub rack: Option<Name>,
        pub zone: Option<Name>,
        pub labels: Vec<(Name, Name)>,
        pub teardown: TeardownMode,
        pub capacity: Vec<(ClassNo, Quanta)>,
    }
}
fields! {
    pub struct PutQuota {
        pub quota: Option<QuotaNo>,
        pub scope: QuotaScope,
        pub measure: Measure,
        pub limit: LimitKind,
    }
    added {
        /// The limit replaces the base limit only until this instant.
        1 pub until: Option<Instant>,
        /// Which amounts of the limit are percentages of the base limit.
        2 pub percent: Option<Percent>,
        /// Whether requests may evict leases of lower priority that the quota counts; absent keeps what it is.
        4 pub evict_own_lower: Option<bool>,
    }
}
impl PutQuota {
    /// A new quota, or one with another limit from now on.
    pub fn new(quota: Option<QuotaNo>, scope: QuotaScope, measure: Measure, limit: LimitKind) -> Self {
        Self { quota, scope, measure, limit, until: None, percent: None, evict_own_lower: None }
    }
}
fields! { pub struct Percent { pub limit: bool, pub burst_limit: bool } }

fields! {
    /// Prices that apply from an instant on, by default from now on. `card` is a card that has not begun, to be
    /// replaced.
    pub struct PutRateCard {
        pub card: Option<u32>,
        pub pool: Option<PoolNo>,
        pub from: Option<Instant>,
        pub prices: Prices,
    }
}
fields! {
    /// What is charged for leases that were interrupted, from an instant on, by default from now on.
    pub struct PutChargePolicy {
        pub policy: Option<u32>,
        pub from: Option<Instant>,
        pub charges: Charges,
    }
}

fields! {
    /// The most that a project or one of its app instances may cost. Updating a ceiling keeps the amount already spent.
    pub struct PutCeiling {
        pub project: ProjectNo,
        pub app_instance: Option<AppInstanceNo>,
        pub amount: Amount,
        pub currency: Currency,
        pub mode: CeilingMode,
    }
}
fields! { pub struct DeleteCeiling { pub project: ProjectNo, pub app_instance: Option<AppInstanceNo> } }

macro_rules! commands {
    ($($(#[$meta:meta])* $code:literal $name:ident($t:ty) $word:literal,)*) => {
        /// One command. The engine assigns a number if an entry is put without one.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Command { $($(#[$meta])* $name($t),)* }

        /// The kind of a command, for metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CommandKind { $($name),* }

        impl CommandKind {
            /// In the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
        }

        impl Command {
            pub const fn kind(&self) -> CommandKind {
                match self { $(Self::$name(_) => CommandKind::$name),* }
            }
        }

        impl Field for Command {
            fn put(&self, out: &mut Vec<u8>) {
                match self { $(Self::$name(body) => { out.push($code); body.put(out); })* }
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match r.byte()? {
                    $($code => Ok(Self::$name(Field::get(r)?)),)*
                    code => Err(DecodeError::BadCode { field: "command", code: u64::from(code) }),
                }
            }
        }
    };
}

fields! {
    /// Takes a node out of service, or back into it. The record keeps the operator's reason.
    pub struct NodeService { pub node: NodeNo }
    added { 1 pub reason: Option<Name> }
}
impl From<NodeNo> for NodeService {
    fn from(node: NodeNo) -> Self {
        Self { node, reason: None }
    }
}
fields! {
    /// Confirms that fenced capacity is clean. The record keeps the operator's reason.
    pub struct Unfence { pub leases: LeaseList }
    added { 1 pub reason: Option<Name> }
}
impl From<LeaseList> for Unfence {
    fn from(leases: LeaseList) -> Self {
        Self { leases, reason: None }
    }
}
impl From<Vec<LeaseNo>> for Unfence {
    fn from(leases: Vec<LeaseNo>) -> Self {
        LeaseList::from(leases).into()
    }
}
fields! { pub struct Revoke { pub leases: LeaseList, pub reason: Reason, pub grace: Option<Span> } }
fields! {
    /// `generation` is that of the confirming agent; absent if an operator confirms.
    pub struct ConfirmTeardown { pub node: NodeNo, pub leases: LeaseList, pub generation: Option<u64> }
}
fields! {
    /// A process registers as the agent of a node. With `takeover` it replaces an agent that is registered already.
    pub struct RegisterAgent { pub node: NodeNo, pub instance: u128, pub takeover: bool }
}
fields! {
    pub struct ReportCondition {
        pub node: NodeNo,
        pub generation: u64,
        pub load: Level,
        pub errors: Level,
        pub throttled: bool,
    }
}
fields! {
    /// `hash` is the SHA-256 of the secret, which the engine never sees.
    pub struct IssueToken {
        pub name: Name,
        pub hash: [u8; 32],
        pub role: Role,
        pub scope: TokenScope,
        pub expires_at: Option<Instant>,
    }
}
fields! {
    /// A checkpoint was written: its size, and how long that took.
    pub struct ReportCheckpoint { pub allocation: AllocationNo, pub bytes: u64, pub took: Span }
}
fields! {
    /// The work is done. An exit status above zero means that it failed.
    pub struct CompleteAllocation {
        pub allocation: AllocationNo,
        pub exit_status: Option<u32>,
        pub storage_written: u64,
    }
}
fields! {
    /// Puts a waiting allocation on hold.
    pub struct HoldAllocation { pub allocation: AllocationNo, pub reason: Option<Name> }
}
fields! {
    /// Changes what a waiting allocation asks for. An absent field keeps its value; a field that is present and empty
    /// is cleared.
    pub struct ChangeAllocation {
        pub allocation: AllocationNo,
        pub priority: Option<Priority>,
        pub pool: Option<Option<PoolNo>>,
        pub walltime: Option<Option<Span>>,
        pub ttl: Option<Option<Span>>,
        pub requeue: Option<bool>,
    }
}
fields! {
    /// Reports that the work of an allocation could not be started. With `generation` the agent of `node` reports it,
    /// else an operator.
    pub struct FailStart { pub allocation: AllocationNo, pub node: Option<NodeNo>, pub generation: Option<u64> }
}
fields! {
    /// A node has been empty since that instant, by the books.
    pub struct NoteEmptyNode { pub node: NodeNo, pub since: Instant }
}
mod apps;
mod entitlements;
mod ledger;
mod nodes;
mod prepaid;
mod sharing;
mod sinks;
mod usage;
pub use apps::{MakeAttachment, PutAppInstance, PutAppType, PutUnitPrice, PutUsageUnit};
pub use entitlements::{PutAppPolicy, PutEntitlement};
pub use ledger::{
    AdjustLedger, CorrectEntry, DisputeEntry, IssueInvoice, OpenLedger, PostUsage, PutTaxRate, RatedLine,
    RecordPayment, SettleHour, StatePeriod,
};
pub use nodes::{ClaimNodes, EndedClaim, EndedLease, LoseNode, ReportWipe, ReserveNodes, SettleLoss};
pub use prepaid::{EndCredit, PutPrepaidPolicy, TopUp};
pub use sharing::{PutSharing, ShareCost};
pub use sinks::{DisableSink, PutSink};
pub use usage::{NamedAllocation, RecordUsage};

fields! { pub struct RotateKey { pub new_key: [u8; 32] } }
fields! { pub struct Nothing {} }
fields! { pub struct NoticeClockJump { pub wall_clock: Instant } }

commands! {
    1 Request(RequestLease) "request",
    2 Renew(SmallVec<[RenewOne; 1]>) "renew",
    3 Release(SmallVec<[ReleaseOne; 1]>) "release",
    4 Revoke(Revoke) "revoke",
    /// The holder of revoked leases is ready for the teardown before the grace period ends.
    5 Ready(LeaseList) "ready",
    /// The node has torn these down.
    6 ConfirmTeardown(ConfirmTeardown) "confirm_teardown",
    /// An operator confirms that fenced capacity is clean.
    7 Unfence(Unfence) "unfence",
    8 ReportActivity(SmallVec<[ReleaseOne; 1]>) "report_activity",
    10 SubmitAllocation(SubmitAllocation) "submit_allocation",
    11 StartAllocation(AllocationNo) "start_allocation",
    12 BeginCheckpoint(AllocationNo) "begin_checkpoint",
    13 ReportCheckpoint(ReportCheckpoint) "report_checkpoint",
    14 CompleteAllocation(CompleteAllocation) "complete_allocation",
    15 CancelAllocation(AllocationNo) "cancel_allocation",
    16 HoldAllocation(HoldAllocation) "hold_allocation",
    17 ReleaseHold(AllocationNo) "release_hold",
    18 ChangeAllocation(ChangeAllocation) "change_allocation",
    /// The agent of a node or an operator reports that the work could not be started.
    19 FailStart(FailStart) "fail_start",
    20 PutTenant(PutTenant) "put_tenant",
    21 DeleteTenant(TenantNo) "delete_tenant",
    22 PutProject(PutProject) "put_project",
    23 DeleteProject(ProjectNo) "delete_project",
    24 PutUser(PutUser) "put_user",
    25 DeleteUser(UserNo) "delete_user",
    26 PutPool(PutPool) "put_pool",
    27 DeletePool(PoolNo) "delete_pool",
    28 PutClass(PutClass) "put_class",
    29 PutNode(PutNode) "put_node",
    30 DeleteNode(NodeNo) "delete_node",
    31 DrainNode(NodeService) "drain_node",
    32 ResumeNode(NodeService) "resume_node",
    33 LoseNode(LoseNode) "lose_node",
    34 ReturnNode(NodeNo) "return_node",
    35 PutQuota(PutQuota) "put_quota",
    36 DeleteQuota(QuotaNo) "delete_quota",
    37 UpdateTenant(UpdateTenant) "update_tenant",
    38 SetPoolAccess(SetPoolAccess) "set_pool_access",
    /// The daemon names what ended on a lost node after it was last seen.
    39 SettleLoss(SettleLoss) "settle_loss",
    40 ChangeSettings(Settings) "change_settings",
    41 RotateKey(RotateKey) "rotate_key",
    42 Heartbeat(Nothing) "heartbeat",
    43 NoticeClockJump(NoticeClockJump) "notice_clock_jump",
    44 PutRateCard(PutRateCard) "put_rate_card",
    45 DeleteRateCard(u32) "delete_rate_card",
    46 PutChargePolicy(PutChargePolicy) "put_charge_policy",
    47 PutCeiling(PutCeiling) "put_ceiling",
    48 DeleteCeiling(DeleteCeiling) "delete_ceiling",
    49 NoteEmptyNode(NoteEmptyNode) "note_empty_node",
    50 RegisterAgent(RegisterAgent) "register_agent",
    51 ReportCondition(ReportCondition) "report_condition",
    /// An operator declares the node to be without an agent.
    52 DetachAgent(NodeNo) "detach_agent",
    /// A user claims nodes for sensitive work.
    53 ClaimNodes(ClaimNodes) "claim_nodes",
    54 ReleaseNodes(Vec<NodeNo>) "release_nodes",
    55 ReportWipe(ReportWipe) "report_wipe",
    /// An operator confirms that a quarantined node is clean.
    56 ClearQuarantine(NodeNo) "clear_quarantine",
    /// An operator reserves nodes for maintenance.
    57 ReserveNodes(ReserveNodes) "reserve_nodes",
    /// Cancels a maintenance window.
    58 UnreserveNodes(WindowNo) "unreserve_nodes",
    /// An operator claims nodes for a user. Nodes that are drained and empty can be claimed too; the claim resumes them.
    59 ClaimForUser(ClaimNodes) "claim_for_user",
    60 IssueToken(IssueToken) "issue_token",
    61 RevokeToken(TokenNo) "revoke_token",
    /// Posts usage from an hour on.
    70 OpenLedger(OpenLedger) "open_ledger",
    /// The daemon posts what a payer owes, as the books know it.
    71 PostUsage(PostUsage) "post_usage",
    /// All payers of an hour are posted.
    72 SettleHour(SettleHour) "settle_hour",
    73 CorrectEntry(CorrectEntry) "correct_entry",
    /// An entry by hand.
    74 AdjustLedger(AdjustLedger) "adjust_ledger",
    75 DisputeEntry(DisputeEntry) "dispute_entry",
    /// Makes the cut of a month.
    76 ClosePeriod(Month) "close_period",
    77 IssueInvoice(IssueInvoice) "issue_invoice",
    /// All invoices of the month that is being closed are issued.
    78 FinishPeriod(Month) "finish_period",
    79 RecordPayment(RecordPayment) "record_payment",
    80 PutTaxRate(PutTaxRate) "put_tax_rate",
    81 TopUp(TopUp) "top_up",
    82 PutPrepaidPolicy(PutPrepaidPolicy) "put_prepaid_policy",
    83 EndCredit(EndCredit) "end_credit",
    84 PutUsageUnit(PutUsageUnit) "put_usage_unit",
    85 PutUnitPrice(PutUnitPrice) "put_unit_price",
    86 PutAppType(PutAppType) "put_app_type",
    87 DeleteAppType(AppTypeNo) "delete_app_type",
    88 PutAppInstance(PutAppInstance) "put_app_instance",
    89 DeleteAppInstance(AppInstanceNo) "delete_app_instance",
    /// A project lends to a shared runtime.
    90 MakeAttachment(MakeAttachment) "make_attachment",
    91 EndAttachment(AttachmentNo) "end_attachment",
    92 RecordUsage(RecordUsage) "record_usage",
    /// All of them or none.
    93 RecordUsageTogether(Vec<RecordUsage>) "record_usage_together",
    94 PutEntitlement(PutEntitlement) "put_entitlement",
    95 DeleteEntitlement(EntitlementScope) "delete_entitlement",
    96 PutAppPolicy(PutAppPolicy) "put_app_policy",
    97 PutSharing(PutSharing) "put_sharing",
    98 ShareCost(ShareCost) "share_cost",
    /// The daemon states what the records of a month say about a tenant.
    99 StatePeriod(StatePeriod) "state_period",
    100 PutSink(PutSink) "put_sink",
    101 DeleteSink(SinkNo) "delete_sink",
    102 DisableSink(DisableSink) "disable_sink",
    /// The daemon states the result of a reconciliation.
    103 RecordReconciliation(AccountingReconciled) "record_reconciliation",
}

/// A command with the identity of its caller and an optional idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub identity: Identity,
    pub command: Command,
    pub(crate) key: Option<RequestKey>,
}

/// An idempotency key with its hashes. They are computed by the caller, not on the engine's single thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestKey {
    pub(crate) sealed: Idempotency,
    pub(crate) scope: u64,
}

impl Request {
    pub fn new(identity: Identity, command: Command) -> Self {
        Self { identity, command, key: None }
    }

    /// A request with an idempotency key: it is decided once, however often it is sent. Keys belong to (tenant,
    /// principal).
    pub fn once(identity: Identity, command: Command, key: &[u8]) -> Result<Self, Refusal> {
        let sealed_key = Key::new(key).ok_or(Refusal::BadIdempotencyKey { bytes: key.len() })?;
        check_lengths(&command)?;
        let mut payload = Vec::with_capacity(128);
        put_payload(&command, &mut payload);
        // The project, the user and the workload are part of the request.
        identity.project.put(&mut payload);
        identity.user.put(&mut payload);
        identity.workload.put(&mut payload);
        let digest: [u8; 32] = Sha256::digest(&payload).into();
        let mut head = [0u8; 16];
        head.copy_from_slice(&digest[..16]);
        let sealed = Idempotency { owner: identity.tenant, key: sealed_key, payload: head };
        let scope = key_scope(identity.tenant, identity.token, key);
        Ok(Self { identity, command, key: Some(RequestKey { sealed, scope }) })
    }
}

impl Command {
    /// Whether it is accepted however many idempotency keys are in use: it can be repeated without harm, or gives
    /// capacity back.
    pub(crate) fn is_always_accepted(&self) -> bool {
        use CommandKind as Kind;
        matches!(
            self.kind(),
            Kind::Renew
                | Kind::Release
                | Kind::Ready
                | Kind::ReportActivity
                | Kind::Revoke
                | Kind::ConfirmTeardown
                | Kind::Unfence
                | Kind::CompleteAllocation
                | Kind::CancelAllocation
                | Kind::FailStart
                | Kind::ResumeNode
                | Kind::ReturnNode
                | Kind::ReleaseNodes
                | Kind::ReportWipe
                | Kind::ClearQuarantine
                | Kind::UnreserveNodes
        )
    }
}
