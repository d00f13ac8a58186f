//! The commands of the engine.

use leasehold_model::body::{Asks, PerPriority};
use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::limits::{
    APP_INSTANCES_PER_TOKEN_MAX, CLASSES_PER_NODE_MAX, CLASSES_PER_REQUEST_MAX, IDEMPOTENCY_KEY_BYTES_MAX,
    LABELS_PER_ALLOCATION_MAX, LABELS_PER_NODE_MAX, LEASES_PER_RECORD_MAX, NODES_PER_CLAIM_MAX, RATE_LINES_MAX,
};
use leasehold_model::rate::{Charges, Currency, Prices};
use leasehold_model::{
    Activity, AllocationNo, AllocationSpec, Amount, AppInstanceNo, AttachmentNo, CeilingMode, ClassNo, ClassSpec,
    Idempotency, Identity, Instant, Key, LeaseNo, Level, LimitKind, Measure, Name, NodeNo, PoolNo, Priority, Profile,
    ProjectNo, Quanta, QuotaNo, QuotaScope, Reason, Role, Span, Strategy, TeardownMode, TenantNo, TenantSettings,
    TenantSettingsChange, TokenNo, TokenScope, UserNo, Weights, WhenOverQuota, fields,
};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use crate::decide::TOO_MANY_APPS;
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
    }
}
impl PutQuota {
    /// A new quota, or one with another limit from now on.
    pub fn new(quota: Option<QuotaNo>, scope: QuotaScope, measure: Measure, limit: LimitKind) -> Self {
        Self { quota, scope, measure, limit, until: None, percent: None }
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
    /// Whether a released node is clean. `generation` is that of the reporting agent; absent if an operator reports.
    pub struct ReportWipe { pub node: NodeNo, pub generation: Option<u64>, pub clean: bool }
}
fields! { pub struct LoseNode { pub node: NodeNo, pub last_seen: Instant } }
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
    7 Unfence(LeaseList) "unfence",
    8 ReportActivity(SmallVec<[ReleaseOne; 1]>) "report_activity",
    10 SubmitAllocation(SubmitAllocation) "submit_allocation",
    11 StartAllocation(AllocationNo) "start_allocation",
    12 BeginCheckpoint(AllocationNo) "begin_checkpoint",
    13 ReportCheckpoint(ReportCheckpoint) "report_checkpoint",
    14 CompleteAllocation(CompleteAllocation) "complete_allocation",
    15 CancelAllocation(AllocationNo) "cancel_allocation",
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
    31 DrainNode(NodeNo) "drain_node",
    32 ResumeNode(NodeNo) "resume_node",
    33 LoseNode(LoseNode) "lose_node",
    34 ReturnNode(NodeNo) "return_node",
    35 PutQuota(PutQuota) "put_quota",
    36 DeleteQuota(QuotaNo) "delete_quota",
    37 UpdateTenant(UpdateTenant) "update_tenant",
    40 ChangeSettings(Settings) "change_settings",
    41 RotateKey(RotateKey) "rotate_key",
    42 Heartbeat(Nothing) "heartbeat",
    43 NoticeClockJump(NoticeClockJump) "notice_clock_jump",
    44 PutRateCard(PutRateCard) "put_rate_card",
    45 DeleteRateCard(u32) "delete_rate_card",
    46 PutChargePolicy(PutChargePolicy) "put_charge_policy",
    47 PutCeiling(PutCeiling) "put_ceiling",
    48 DeleteCeiling(DeleteCeiling) "delete_ceiling",
    50 RegisterAgent(RegisterAgent) "register_agent",
    51 ReportCondition(ReportCondition) "report_condition",
    /// An operator declares the node to be without an agent.
    52 DetachAgent(NodeNo) "detach_agent",
    /// A user claims nodes for sensitive work.
    53 ClaimNodes(Vec<NodeNo>) "claim_nodes",
    54 ReleaseNodes(Vec<NodeNo>) "release_nodes",
    55 ReportWipe(ReportWipe) "report_wipe",
    /// An operator confirms that a quarantined node is clean.
    56 ClearQuarantine(NodeNo) "clear_quarantine",
    60 IssueToken(IssueToken) "issue_token",
    61 RevokeToken(TokenNo) "revoke_token",
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
                | Kind::ResumeNode
                | Kind::ReturnNode
                | Kind::ReleaseNodes
                | Kind::ReportWipe
                | Kind::ClearQuarantine
        )
    }
}

/// Commands without lists and without anything that the caller did not send. A new command is added here, or to the
/// functions below.
macro_rules! plain_commands {
    () => {
        Command::StartAllocation(_)
            | Command::BeginCheckpoint(_)
            | Command::ReportCheckpoint(_)
            | Command::CompleteAllocation(_)
            | Command::CancelAllocation(_)
            | Command::PutTenant(_)
            | Command::DeleteTenant(_)
            | Command::UpdateTenant(_)
            | Command::PutProject(_)
            | Command::DeleteProject(_)
            | Command::PutUser(_)
            | Command::DeleteUser(_)
            | Command::PutPool(_)
            | Command::DeletePool(_)
            | Command::PutClass(_)
            | Command::DeleteNode(_)
            | Command::DrainNode(_)
            | Command::ResumeNode(_)
            | Command::LoseNode(_)
            | Command::ReturnNode(_)
            | Command::PutQuota(_)
            | Command::DeleteQuota(_)
            | Command::ChangeSettings(_)
            | Command::RotateKey(_)
            | Command::Heartbeat(_)
            | Command::NoticeClockJump(_)
            | Command::DeleteRateCard(_)
            | Command::PutChargePolicy(_)
            | Command::PutCeiling(_)
            | Command::DeleteCeiling(_)
            | Command::RegisterAgent(_)
            | Command::ReportCondition(_)
            | Command::DetachAgent(_)
            | Command::ReportWipe(_)
            | Command::ClearQuarantine(_)
            | Command::RevokeToken(_)
    };
}

/// Refuses commands that are too long to be encoded, with the same refusal that deciding them would give.
fn check_lengths(command: &Command) -> Result<(), Refusal> {
    let refuse_if = |too_long: bool, refusal: Refusal| if too_long { Err(refusal) } else { Ok(()) };
    let check_leases = |named: usize| {
        let limit = LEASES_PER_RECORD_MAX;
        refuse_if(named > limit, Refusal::TooManyLeases { named, limit })
    };
    let check_asks = |asks: &Asks| {
        let (asked, limit) = (asks.len(), CLASSES_PER_REQUEST_MAX);
        refuse_if(asked > limit, Refusal::TooManyClasses { asked, limit })
    };
    let check_labels =
        |labels: &[(Name, Name)], limit: usize| refuse_if(labels.len() > limit, Refusal::TooManyLabels { limit });
    match command {
        Command::Renew(list) => check_leases(list.len()),
        Command::Release(list) | Command::ReportActivity(list) => check_leases(list.len()),
        Command::Revoke(revoke) => check_leases(revoke.leases.len()),
        Command::ConfirmTeardown(confirm) => check_leases(confirm.leases.len()),
        Command::Ready(list) | Command::Unfence(list) => check_leases(list.len()),
        Command::ClaimNodes(nodes) | Command::ReleaseNodes(nodes) => {
            let (named, limit) = (nodes.len(), NODES_PER_CLAIM_MAX);
            refuse_if(named > limit, Refusal::TooManyNodes { named, limit })
        }
        Command::Request(request) => {
            check_asks(&request.asks)?;
            check_labels(&request.labels, LABELS_PER_NODE_MAX)
        }
        Command::SubmitAllocation(submit) => {
            check_asks(&submit.spec.asks)?;
            check_labels(&submit.spec.labels, LABELS_PER_ALLOCATION_MAX)
        }
        Command::PutNode(put) => {
            check_labels(&put.labels, LABELS_PER_NODE_MAX)?;
            let limit = CLASSES_PER_NODE_MAX;
            refuse_if(put.capacity.len() > limit, Refusal::TooManyNodeClasses { limit })
        }
        Command::IssueToken(issue) => {
            let too_many = issue.scope.app_instances.len() > APP_INSTANCES_PER_TOKEN_MAX;
            refuse_if(too_many, Refusal::BadTokenScope { role: issue.role, why: TOO_MANY_APPS })
        }
        Command::PutRateCard(put) => {
            let lines = put.prices.classes.len().max(put.prices.tiers.len());
            let checked = if lines > RATE_LINES_MAX { put.prices.check() } else { Ok(()) };
            checked.map_err(|why| Refusal::BadPrices { why })
        }
        plain_commands!() => Ok(()),
    }
}

/// Encodes a command for its payload hash. Busy time that is too large for the encoding is refused when the report is
/// decided; for the hash it is replaced by the largest value that can be encoded.
fn put_payload(command: &Command, payload: &mut Vec<u8>) {
    let too_large = |activity: &Option<Activity>| activity.is_some_and(|a| a.busy > BUSY_WRITTEN_MAX);
    let limit = |activity: &mut Option<Activity>| {
        if let Some(activity) = activity {
            activity.busy = activity.busy.min(BUSY_WRITTEN_MAX);
        }
    };
    match command {
        Command::Renew(list) if list.iter().any(|one| too_large(&one.activity)) => {
            let mut list = list.clone();
            list.iter_mut().for_each(|one| limit(&mut one.activity));
            Command::Renew(list).put(payload);
        }
        Command::Release(list) | Command::ReportActivity(list) if list.iter().any(|one| too_large(&one.activity)) => {
            let mut list = list.clone();
            list.iter_mut().for_each(|one| limit(&mut one.activity));
            let is_release = matches!(command, Command::Release(_));
            let limited = if is_release { Command::Release(list) } else { Command::ReportActivity(list) };
            limited.put(payload);
        }
        // The profile is measured, not sent by the caller, and may change before the request is sent again.
        Command::Request(request) if request.profile.is_some() => {
            Command::Request(RequestLease { profile: None, ..request.clone() }).put(payload);
        }
        Command::SubmitAllocation(submit) if submit.spec.profile.is_some() => {
            let mut submit = submit.clone();
            submit.spec.profile = None;
            Command::SubmitAllocation(submit).put(payload);
        }
        // A new secret is generated each time the request is sent.
        Command::IssueToken(issue) => Command::IssueToken(IssueToken { hash: [0; 32], ..issue.clone() }).put(payload),
        Command::Renew(_)
        | Command::Release(_)
        | Command::ReportActivity(_)
        | Command::Request(_)
        | Command::SubmitAllocation(_)
        | Command::Revoke(_)
        | Command::Ready(_)
        | Command::ConfirmTeardown(_)
        | Command::Unfence(_)
        | Command::ClaimNodes(_)
        | Command::ReleaseNodes(_)
        | Command::PutNode(_)
        | Command::PutRateCard(_)
        | plain_commands!() => command.put(payload),
    }
}

/// The largest busy time that can be encoded: scaled numbers need some bits for their unit (`codec::put_scaled`).
const BUSY_WRITTEN_MAX: u128 = (1 << 120) - 1;

/// The hash under which an idempotency key is remembered. It is cryptographic, so that no tenant can construct a key
/// that collides with one of another tenant.
///
/// 64 bits are enough: to be answered by mistake, a request would have to collide in the payload as well.
pub(crate) fn key_scope(owner: Option<TenantNo>, token: Option<TokenNo>, key: &[u8]) -> u64 {
    // 17 bytes for owner, token and length, then at most 64 for the key: different keys never have the same encoding.
    let mut bytes = [0u8; 17 + IDEMPOTENCY_KEY_BYTES_MAX];
    let mut put = |at: usize, number: Option<u32>| {
        let word = number.map_or(0, |n| u64::from(n) + 1).to_le_bytes();
        bytes[at..at + 8].copy_from_slice(&word);
    };
    put(0, owner.map(|t| t.0));
    put(8, token.map(|t| t.0));
    bytes[16] = u8::try_from(key.len()).expect("the length of the key was checked");
    bytes[17..17 + key.len()].copy_from_slice(key);
    let digest: [u8; 32] = Sha256::digest(&bytes[..17 + key.len()]).into();
    first_half(&digest)
}

/// What is remembered of the hash of a command.
pub(crate) fn payload_hash(payload: &[u8; 16]) -> u64 {
    first_half(payload)
}

fn first_half(hash: &[u8]) -> u64 {
    u64::from_be_bytes(hash[..8].try_into().expect("a hash has at least eight bytes"))
}
