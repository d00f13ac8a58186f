//! What can be asked of the engine.

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
    TenantSettingsChange, TokenNo, TokenScope, UserNo, Weights, fields,
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
        /// What the workload is known to depend on. Learned, not asked: see `put_payload`.
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

    /// The allocation that it becomes where others must make room first.
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
    /// One lease to renew, for `ttl` from now, with what its holder reports.
    pub struct RenewOne { pub lease: LeaseNo, pub ttl: Span, pub activity: Option<Activity> }
}
fields! {
    /// One lease to give back.
    pub struct ReleaseOne { pub lease: LeaseNo, pub activity: Option<Activity> }
}
/// Leases of one command; nearly always one.
pub type LeaseList = SmallVec<[LeaseNo; 2]>;

fields! {
    pub struct PutTenant { pub tenant: Option<TenantNo>, pub settings: TenantSettings }
}
fields! {
    /// Changes some of a tenant's settings. What is absent keeps its value; what is present and
    /// empty is cleared (SEMANTICS 4).
    pub struct UpdateTenant {
        pub tenant: TenantNo,
        /// A hard quota on the tenant's nodes, and one on its leases.
        pub max_nodes: Option<Option<u64>>,
        pub max_leases: Option<Option<u64>>,
        /// And one on its allocations that hold capacity.
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
        /// Absent: as they are. Present and empty: those of the strategy.
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
}

fields! {
    /// Prices from an instant on; from now on where none is given. `card` is one that waits, to be replaced.
    pub struct PutRateCard {
        pub card: Option<u32>,
        pub pool: Option<PoolNo>,
        pub from: Option<Instant>,
        pub prices: Prices,
    }
}
fields! {
    /// What is charged for leases that end badly, from an instant on; from now on where none is given.
    pub struct PutChargePolicy {
        pub policy: Option<u32>,
        pub from: Option<Instant>,
        pub charges: Charges,
    }
}

fields! {
    /// What a project, or one of its app instances, may cost from here on; put again, it keeps what was spent.
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
        /// One thing to do. Where a number is absent, the engine hands one out.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Command { $($(#[$meta])* $name($t),)* }

        /// What a command asks for, without the particulars: what the metrics count commands by.
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
    /// `generation` is the agent's that confirms; absent where an operator does.
    pub struct ConfirmTeardown { pub node: NodeNo, pub leases: LeaseList, pub generation: Option<u64> }
}
fields! {
    /// A process wants to be the node's agent. One that runs already is replaced only by `takeover`.
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
    /// A checkpoint of so many bytes was written, in that time.
    pub struct ReportCheckpoint { pub allocation: AllocationNo, pub bytes: u64, pub took: Span }
}
fields! {
    /// The work is done. An exit status above zero says that it failed.
    pub struct CompleteAllocation {
        pub allocation: AllocationNo,
        pub exit_status: Option<u32>,
        pub storage_written: u64,
    }
}
fields! {
    /// Whether a released node is clean. `generation` is the agent's that says so; absent where an operator does.
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
    /// The holder of revoked leases is ready before grace ends.
    5 Ready(LeaseList) "ready",
    /// The node has torn these down.
    6 ConfirmTeardown(ConfirmTeardown) "confirm_teardown",
    /// An operator vouches for fenced capacity.
    7 Unfence(LeaseList) "unfence",
    8 ReportActivity(SmallVec<[ReleaseOne; 1]>) "report_activity",
    10 SubmitAllocation(AllocationSpec) "submit_allocation",
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
    /// A user wants these for sensitive work.
    53 ClaimNodes(Vec<NodeNo>) "claim_nodes",
    54 ReleaseNodes(Vec<NodeNo>) "release_nodes",
    55 ReportWipe(ReportWipe) "report_wipe",
    /// An operator vouches that a quarantined node is clean.
    56 ClearQuarantine(NodeNo) "clear_quarantine",
    60 IssueToken(IssueToken) "issue_token",
    61 RevokeToken(TokenNo) "revoke_token",
}

/// A command with who asks and, if it may be sent twice, its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub identity: Identity,
    pub command: Command,
    pub(crate) claim: Option<Claim>,
}

/// An idempotency key, hashed where the request is made and not on the engine's one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) sealed: Idempotency,
    pub(crate) scope: u128,
}

impl Request {
    pub fn new(identity: Identity, command: Command) -> Self {
        Self { identity, command, claim: None }
    }

    /// The same, to be decided once however often it is sent. Keys belong to (tenant, principal).
    pub fn once(identity: Identity, command: Command, key: &[u8]) -> Result<Self, Refusal> {
        let sealed_key = Key::new(key).ok_or(Refusal::BadIdempotencyKey { bytes: key.len() })?;
        check_lengths(&command)?;
        let mut payload = Vec::with_capacity(128);
        put_payload(&command, &mut payload);
        // What the command acts on behalf of is part of what it says.
        identity.project.put(&mut payload);
        identity.user.put(&mut payload);
        identity.workload.put(&mut payload);
        let digest: [u8; 32] = Sha256::digest(&payload).into();
        let mut head = [0u8; 16];
        head.copy_from_slice(&digest[..16]);
        let sealed = Idempotency { owner: identity.tenant, key: sealed_key, payload: head };
        let scope = claim_scope(identity.tenant, identity.token, key);
        Ok(Self { identity, command, claim: Some(Claim { sealed, scope }) })
    }
}

/// Refuses what is too long to be written down, with the answer that deciding it would give.
fn check_lengths(command: &Command) -> Result<(), Refusal> {
    let leases = match command {
        Command::Renew(list) => list.len(),
        Command::Release(list) | Command::ReportActivity(list) => list.len(),
        Command::Revoke(revoke) => revoke.leases.len(),
        Command::ConfirmTeardown(confirm) => confirm.leases.len(),
        Command::Ready(list) | Command::Unfence(list) => list.len(),
        Command::ClaimNodes(nodes) | Command::ReleaseNodes(nodes) if nodes.len() > NODES_PER_CLAIM_MAX => {
            return Err(Refusal::TooManyNodes { named: nodes.len(), limit: NODES_PER_CLAIM_MAX });
        }
        Command::Request(request) if request.asks.len() > CLASSES_PER_REQUEST_MAX => {
            return Err(Refusal::TooManyClasses { asked: request.asks.len(), limit: CLASSES_PER_REQUEST_MAX });
        }
        Command::SubmitAllocation(spec) if spec.asks.len() > CLASSES_PER_REQUEST_MAX => {
            return Err(Refusal::TooManyClasses { asked: spec.asks.len(), limit: CLASSES_PER_REQUEST_MAX });
        }
        Command::SubmitAllocation(spec) if spec.labels.len() > LABELS_PER_ALLOCATION_MAX => {
            return Err(Refusal::TooManyLabels { limit: LABELS_PER_ALLOCATION_MAX });
        }
        Command::Request(request) if request.labels.len() > LABELS_PER_NODE_MAX => {
            return Err(Refusal::TooManyLabels { limit: LABELS_PER_NODE_MAX });
        }
        Command::PutNode(put) if put.labels.len() > LABELS_PER_NODE_MAX => {
            return Err(Refusal::TooManyLabels { limit: LABELS_PER_NODE_MAX });
        }
        Command::PutNode(put) if put.capacity.len() > CLASSES_PER_NODE_MAX => {
            return Err(Refusal::TooManyNodeClasses { limit: CLASSES_PER_NODE_MAX });
        }
        Command::IssueToken(issue) if issue.scope.app_instances.len() > APP_INSTANCES_PER_TOKEN_MAX => {
            return Err(Refusal::BadTokenScope { role: issue.role, why: TOO_MANY_APPS });
        }
        Command::PutRateCard(put) if put.prices.classes.len().max(put.prices.tiers.len()) > RATE_LINES_MAX => {
            put.prices.check().map_err(|why| Refusal::BadPrices { why })?;
            0
        }
        _ => 0,
    };
    if leases > LEASES_PER_RECORD_MAX {
        return Err(Refusal::TooManyLeases { named: leases, limit: LEASES_PER_RECORD_MAX });
    }
    Ok(())
}

/// The command as it is hashed. A report of more busy time than the format can write is refused
/// when it is decided, and alone; for the hash it is the most that can be written.
fn put_payload(command: &Command, payload: &mut Vec<u8>) {
    let absurd = |activity: &Option<Activity>| activity.is_some_and(|a| a.busy > BUSY_WRITTEN_MAX);
    let tame = |activity: &mut Option<Activity>| {
        if let Some(activity) = activity {
            activity.busy = activity.busy.min(BUSY_WRITTEN_MAX);
        }
    };
    match command {
        Command::Renew(list) if list.iter().any(|one| absurd(&one.activity)) => {
            let mut list = list.clone();
            list.iter_mut().for_each(|one| tame(&mut one.activity));
            Command::Renew(list).put(payload);
        }
        Command::Release(list) | Command::ReportActivity(list) if list.iter().any(|one| absurd(&one.activity)) => {
            let mut list = list.clone();
            list.iter_mut().for_each(|one| tame(&mut one.activity));
            let is_release = matches!(command, Command::Release(_));
            let tamed = if is_release { Command::Release(list) } else { Command::ReportActivity(list) };
            tamed.put(payload);
        }
        // What is known of a workload changes between two sendings of one request.
        Command::Request(request) if request.profile.is_some() => {
            Command::Request(RequestLease { profile: None, ..request.clone() }).put(payload);
        }
        // The secret is drawn anew each time a request is sent, so it is not part of what is asked.
        Command::IssueToken(issue) => Command::IssueToken(IssueToken { hash: [0; 32], ..issue.clone() }).put(payload),
        // What is known of the workload is ours, not part of what is asked.
        Command::SubmitAllocation(spec) if spec.profile.is_some() => {
            Command::SubmitAllocation(AllocationSpec { profile: None, ..spec.clone() }).put(payload);
        }
        _ => command.put(payload),
    }
}

/// Scaled numbers leave room for their unit (`codec::put_scaled`).
const BUSY_WRITTEN_MAX: u128 = (1 << 120) - 1;

/// Where a key is looked up. A cryptographic hash, so that no tenant can make a key that meets
/// another tenant's.
pub(crate) fn claim_scope(owner: Option<TenantNo>, token: Option<TokenNo>, key: &[u8]) -> u128 {
    // 17 bytes of scope and at most 64 of key: fixed places, so two claims never spell the same.
    let mut bytes = [0u8; 17 + IDEMPOTENCY_KEY_BYTES_MAX];
    let mut put = |at: usize, number: Option<u32>| {
        let word = number.map_or(0, |n| u64::from(n) + 1).to_le_bytes();
        bytes[at..at + 8].copy_from_slice(&word);
    };
    put(0, owner.map(|t| t.0));
    put(8, token.map(|t| t.0));
    bytes[16] = u8::try_from(key.len()).expect("a key's length was checked");
    bytes[17..17 + key.len()].copy_from_slice(key);
    let digest: [u8; 32] = Sha256::digest(&bytes[..17 + key.len()]).into();
    let mut scope = [0u8; 16];
    scope.copy_from_slice(&digest[..16]);
    u128::from_be_bytes(scope)
}
