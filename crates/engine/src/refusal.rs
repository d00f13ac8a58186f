//! Why a request is refused. A refused request changes nothing, and its idempotency key is not used.
//!
//! Each refusal has a stable code for programs (`docs/reference/codes.md`) and a message for people.

use crate::ceiling::CeilingScope;
use crate::naming::{ByNumber, Naming, Phrase as _};
use leasehold_model::activity::BadActivity;
use leasehold_model::body::{EntitlementScope, UsageRefused, UsedInMonth};
use leasehold_model::placement::BadWeights;
use leasehold_model::rate::{BadPrices, Currency, Decimal};
use leasehold_model::{
    AllocationNo, AllocationState, Amount, AppInstanceNo, AppTypeNo, AttachmentNo, ClassNo, ControlPlaneScope,
    Fraction, Instant, LeaseNo, Month, NodeNo, OperatingMode, PoolNo, Priority, ProjectNo, QuotaNo, ResourceKind, Role,
    SinkNo, Span, TenantNo, TokenNo, UnitNo, UnitQuantity, UserNo, WindowNo,
};
use leasehold_model::{Funds, Steps};
use std::fmt;

/// The generation of the registered agent, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredGeneration(pub Option<u64>);

impl fmt::Display for RegisteredGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(generation) => write!(f, "generation {generation} is registered"),
            None => write!(f, "no agent is registered"),
        }
    }
}

/// The class of a refusal; the server answers each class with one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalClass {
    /// The request is malformed.
    Malformed,
    /// The caller is unknown, or its token is no longer valid.
    Unauthenticated,
    /// An object of the request does not exist, or is not visible to the caller.
    NotFound,
    /// The request is impossible in the current state.
    Conflict,
    /// The request is impossible in any state.
    Invalid,
    /// There were too many requests; later ones may be accepted.
    TooMany,
}

macro_rules! refusals {
    ($(
        $(#[$meta:meta])* $variant:ident $({ $($field:ident : $t:ty),* })? $class:ident $code:literal $text:literal,
    )*) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Refusal { $($(#[$meta])* $variant $({ $($field: $t),* })?,)* }

        impl Refusal {
            /// Every code, in the order of the reference page.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            pub fn code(&self) -> &'static str {
                match self { $(Self::$variant $({ $($field: _),* })? => $code,)* }
            }

            pub fn class(&self) -> RefusalClass {
                match self { $(Self::$variant $({ $($field: _),* })? => RefusalClass::$class,)* }
            }
        }

        impl Refusal {
            /// The message, with names from `naming`.
            pub fn message(&self, naming: &dyn Naming) -> String {
                match self {$(
                    Self::$variant $({ $($field),* })? => {
                        $($(let $field = $field.phrase(naming);)*)?
                        format!($text)
                    }
                )*}
            }
        }
    };
}

refusals! {
    TokenNotLive { token: TokenNo } Unauthenticated "token_not_live" "{token} was revoked or has expired, or its tenant, project, user or node was deleted; authenticate with another token",

    BadIdempotencyKey { bytes: usize } Malformed "bad_idempotency_key" "an idempotency key must have 1 to 64 bytes; this one has {bytes}",
    IdempotencyMismatch { sequence: u64 } Conflict "idempotency_mismatch" "this idempotency key was used for another request, sealed as record {sequence}; use a new key",
    TooManyIdempotencyKeys { limit: u32 } TooMany "too_many_idempotency_keys" "the tenant has used {limit} idempotency keys within ten minutes; wait a moment, or send fewer requests with keys",

    UnknownTenant { tenant: TenantNo } NotFound "unknown_tenant" "there is no {tenant}",
    UnknownProject { project: ProjectNo } NotFound "unknown_project" "there is no {project} of this tenant",
    UnknownUser { user: UserNo } NotFound "unknown_user" "there is no {user} of this tenant",
    UnknownPool { pool: PoolNo } NotFound "unknown_pool" "there is no {pool}",
    UnknownNode { node: NodeNo } NotFound "unknown_node" "there is no {node}",
    UnknownClass { class: ClassNo } NotFound "unknown_class" "there is no {class}",
    UnknownQuota { quota: QuotaNo } NotFound "unknown_quota" "there is no {quota}",
    UnknownWindow { window: WindowNo } NotFound "unknown_window" "there is no {window}; it may have ended",
    UnknownToken { token: TokenNo } NotFound "unknown_token" "there is no {token}",
    UnknownRateCard { card: u32 } NotFound "unknown_rate_card" "there is no rate card {card}",
    UnknownChargePolicy { policy: u32 } NotFound "unknown_charge_policy" "there is no charge policy {policy}",
    /// Also for leases of other tenants, so that a tenant cannot find out whether they exist.
    LeaseNotFound { lease: LeaseNo } NotFound "lease_not_found" "there is no {lease} here",

    TenantRequired Invalid "tenant_required" "a lease request needs a tenant; name one",
    ProjectRequired Invalid "project_required" "every charge belongs to a project; name one",
    WrongHolder { lease: LeaseNo, project: ProjectNo } NotFound "wrong_holder" "{lease} is held by another project, not by {project}",

    NothingAsked Invalid "nothing_asked" "the request names no class; request at least one",
    TooManyClasses { asked: usize, limit: usize } Invalid "too_many_classes" "the request names {asked} classes; at most {limit} are allowed",
    DuplicateClass { class: ClassNo } Invalid "duplicate_class" "{class} is requested twice; add up the two amounts",
    ZeroQuantity { class: ClassNo } Invalid "zero_quantity" "the quantity of {class} is zero; request at least one quantum",
    QuantityTooLarge { class: ClassNo, limit: u64 } Invalid "quantity_too_large" "no node can hold that much of {class}; at most {limit} quanta can be requested",
    NotWholeDevices { class: ClassNo, per_device: u64 } Invalid "not_whole_devices" "more than one device of {class} can be requested only as whole devices: a multiple of {per_device} quanta",
    ZeroTtl Invalid "zero_ttl" "the TTL is zero; give a positive duration",
    TtlTooLong { limit: Span } Invalid "ttl_too_long" "the TTL is longer than the {limit} allowed here",
    PriorityAboveMax { limit: Priority } Invalid "priority_above_max" "the highest priority that the tenant may request is {limit}",
    SensitiveNeedsUser Invalid "sensitive_needs_user" "sensitive work must name its user",
    SensitiveNeedsClaim Invalid "sensitive_needs_claim" "sensitive work runs only on nodes that its user has claimed",

    ImpossibleLabels Invalid "impossible_labels" "no node that the request may use has all of these labels; remove some, or label a node",
    NodeNotInPool { node: NodeNo, pool: PoolNo } Invalid "node_not_in_pool" "{node} is not in {pool}; name one of the two, or a node of that pool",

    LeaseExpired { lease: LeaseNo, at: Instant } Conflict "lease_expired" "{lease} expired at {at}; request a new lease",
    LeaseReleased { lease: LeaseNo, at: Instant } Conflict "lease_released" "{lease} was released at {at}",
    LeaseRevoked { lease: LeaseNo, at: Instant } Conflict "lease_revoked" "{lease} was revoked and ended at {at}",
    LeaseRevoking { lease: LeaseNo } Conflict "lease_revoking" "{lease} is being revoked; it can be released, not renewed or revoked again",
    LeaseFenced { lease: LeaseNo } Conflict "lease_fenced" "{lease} is fenced; only an operator can clear it",
    LeaseClosed { lease: LeaseNo, at: Instant } Conflict "lease_closed" "{lease} ended at {at}; it was fenced and an operator has cleared it",
    LeaseNotRevoking { lease: LeaseNo } Conflict "lease_not_revoking" "{lease} is not being revoked, so its holder cannot report that it is ready",
    LeaseNotTearingDown { lease: LeaseNo } Conflict "lease_not_tearing_down" "{lease} is not being torn down",
    LeaseNotFenced { lease: LeaseNo } Conflict "lease_not_fenced" "{lease} is not fenced",
    LeaseElsewhere { lease: LeaseNo, node: NodeNo } NotFound "lease_elsewhere" "{lease} is not on {node}",
    LifetimeReached { lease: LeaseNo, at: Instant } Conflict "lifetime_reached" "{lease} reaches its maximum lifetime at {at}; request a new lease",
    CeilingExceeded { lease: LeaseNo, of: CeilingScope, requested: Amount, used: Amount, amount: Amount, currency: Currency } Conflict "ceiling_exceeded" "renewing {lease} would cost {requested} {currency} more; the cost ceiling of {of} is {amount} {currency}, and {used} {currency} are already spent or reserved",
    WindowReached { lease: LeaseNo, window: WindowNo, at: Instant } Conflict "window_reached" "{lease} cannot be renewed past {at}: its node is reserved for maintenance by {window}",
    BurstOver { lease: LeaseNo, quota: QuotaNo, at: Instant } Conflict "burst_over" "{lease} cannot be renewed past {at} while {quota} is over its base limit",
    NoLeases Invalid "no_leases" "the command names no lease",
    TooManyLeases { named: usize, limit: usize } Invalid "too_many_leases" "the command names {named} leases; at most {limit} are allowed",
    DuplicateLease { lease: LeaseNo } Invalid "duplicate_lease" "{lease} is named twice",
    GraceTooLong { limit: Span } Invalid "grace_too_long" "the grace period is longer than {limit}",
    BadActivityReport { lease: LeaseNo, why: BadActivity } Invalid "bad_activity" "the report on {lease} {why}",

    AllocationNotFound { allocation: AllocationNo } NotFound "allocation_not_found" "there is no {allocation} here",
    AllocationOver { allocation: AllocationNo, state: AllocationState, at: Instant } Conflict "allocation_over" "{allocation} is over: {state} at {at}",
    AllocationNotRunning { allocation: AllocationNo, state: AllocationState } Conflict "allocation_not_running" "{allocation} is {state}; this is possible only while it is running",
    AllocationNotOnNode { allocation: AllocationNo, node: NodeNo } Conflict "allocation_not_on_node" "{allocation} holds nothing on {node}",
    AllocationNotStaging { allocation: AllocationNo, state: AllocationState } Conflict "allocation_not_staging" "{allocation} is {state}, not staging, so it cannot start running",
    AllocationNotWaiting { allocation: AllocationNo, state: AllocationState } Conflict "allocation_not_waiting" "{allocation} is {state}; this is possible only while it waits",
    AllocationOnHold { allocation: AllocationNo } Conflict "allocation_on_hold" "{allocation} is on hold already",
    AllocationNotOnHold { allocation: AllocationNo } Conflict "allocation_not_on_hold" "{allocation} is not on hold",
    HeldByOperator { allocation: AllocationNo } Conflict "held_by_operator" "an operator has put {allocation} on hold; only an operator can release it",
    AllocationUnchanged { allocation: AllocationNo } Invalid "allocation_unchanged" "the change of {allocation} changes nothing",
    CheckpointTooLong { allocation: AllocationNo, ran: Span } Invalid "checkpoint_too_long" "{allocation} has run for {ran}; a checkpoint cannot have taken longer",
    BadExitStatus { limit: u32 } Invalid "bad_exit_status" "an exit status must be between 0 and {limit}",
    LeaseOfAllocation { lease: LeaseNo, allocation: AllocationNo } Conflict "lease_of_allocation" "{lease} belongs to {allocation}; complete or cancel the allocation instead",
    NoReplicas Invalid "no_replicas" "an allocation needs at least one replica",
    GangTooManyLeases { leases: u64, limit: usize } Invalid "gang_too_many_leases" "the gang would have {leases} leases; an allocation can have at most {limit}",
    GangTooLarge { replicas: u32, most: u64 } Invalid "gang_too_large" "the allocation has {replicas} replicas, but the nodes that it may use could hold only {most}, even if they were empty",
    ContradictoryAffinity Invalid "contradictory_affinity" "`together` and `apart` contradict each other; remove one of them, or widen `together`",
    WalltimeTooLong Invalid "walltime_too_long" "the walltime is longer than the maximum lifetime in every pool that the allocation may use",
    WalltimeBeyondBurst { quota: QuotaNo } Invalid "walltime_beyond_burst" "it exceeds the base limit of {quota} all by itself, and its walltime is longer than a burst lasts; request less, or a shorter walltime",
    PoolPaused { project: ProjectNo } Conflict "pool_paused" "{project} is paused on every pool that the request may use; ask an operator to resume it, or name another pool",
    TooManyPending { limit: u64 } Conflict "too_many_pending" "the tenant already has {limit} waiting allocations, which is its limit; wait until some have started, or cancel some",
    TenantHasAllocations { tenant: TenantNo } Conflict "tenant_has_allocations" "{tenant} still has allocations; complete or cancel them first",
    ProjectHasAllocations { project: ProjectNo } Conflict "project_has_allocations" "{project} still has allocations; complete or cancel them first",
    AllocationsScope Invalid "allocations_scope" "a quota on allocations can be limited to a project or a priority, but not to a class, a pool or a node",

    NameTaken Conflict "name_taken" "that name is taken; choose another",
    TenantHasLeases { tenant: TenantNo } Conflict "tenant_has_leases" "{tenant} still has live leases; release or revoke them first",
    ProjectHasLeases { project: ProjectNo } Conflict "project_has_leases" "{project} still has live leases; release or revoke them first",
    NodeHasLeases { node: NodeNo } Conflict "node_has_leases" "{node} still has live leases; drain it and wait, or revoke them",
    PoolHasNodes { pool: PoolNo } Conflict "pool_has_nodes" "{pool} still has nodes; move or delete them first",
    NodeTooSmall { class: ClassNo, used: u64, capacity: u64 } Conflict "node_smaller_than_leased" "{used} quanta of {class} are in use on the node; its capacity cannot become {capacity}",
    TooManyDevices { class: ClassNo, limit: u64 } Invalid "too_many_devices" "a node has at most {limit} devices of {class}",
    TooManyNodeClasses { limit: usize } Invalid "too_many_node_classes" "a node has at most {limit} classes",
    TooManyLabels { limit: usize } Invalid "too_many_labels" "a node has at most {limit} labels",
    DuplicateLabel Invalid "duplicate_label" "a label key is given twice",
    ClassInUse { class: ClassNo } Conflict "class_in_use" "{class} is on a node or was leased; its kind, tier and quanta_per_unit cannot change",
    BadClass { quanta_per_unit: u64 } Invalid "bad_class" "quanta_per_unit is {quanta_per_unit}; it must be 1 to 4294967296",
    ClassLimit { limit: usize } Invalid "too_many_resource_classes" "there are at most {limit} classes",
    BadWeights { why: BadWeights } Invalid "bad_weights" "{why}; give four weights that add up to one",
    NodeAlready { node: NodeNo, state: &'static str } Conflict "node_already" "{node} is already {state}",
    AgentAlreadyRunning { node: NodeNo, generation: u64 } Conflict "agent_already_running" "another agent is registered on {node}, as generation {generation}; stop it, or take over from it",
    StaleGeneration { node: NodeNo, generation: u64, registered: RegisteredGeneration } Conflict "stale_generation" "generation {generation} is no longer the agent of {node}: {registered}; register again",
    ConditionUnchanged { node: NodeNo } Conflict "condition_unchanged" "{node} already has this condition; report changes only",
    NoNodes Invalid "no_nodes" "the command names no node",
    TooManyNodes { named: usize, limit: usize } Invalid "too_many_nodes" "the command names {named} nodes; at most {limit} are allowed",
    DuplicateNode { node: NodeNo } Invalid "duplicate_node" "{node} is named twice",
    /// The server adds the holder for callers that may know it.
    NodeClaimed { node: NodeNo } Conflict "node_claimed" "{node} is already claimed, and claims are not queued; claim another node",
    NodeNotReady { node: NodeNo, state: &'static str } Conflict "node_not_ready" "{node} is {state}; claim another node, or wait until it is ready",
    NodeInUse { node: NodeNo } Conflict "node_in_use" "{node} runs other work or has capacity reserved; drain it first, or claim an empty node",
    NodeInWindow { node: NodeNo, window: WindowNo } Conflict "node_in_window" "{node} is reserved for maintenance by {window}; cancel that window, or wait until it has ended",
    WindowOnClaim { node: NodeNo } Conflict "window_on_claim" "{node} is claimed for sensitive work; it can be reserved for maintenance after it was released",
    WindowInPast Invalid "window_in_past" "a maintenance window cannot begin in the past; leave out `from` to begin now",
    WindowEmpty Invalid "window_empty" "a maintenance window must end after it begins",
    TooManyWindows { limit: usize } Conflict "too_many_windows" "there are at most {limit} maintenance windows that have not ended; cancel some",
    NodeNotClaimed { node: NodeNo } NotFound "node_not_claimed" "{node} is not claimed by the caller",
    ClaimsDiffer Conflict "claims_differ" "the nodes are claimed by different users or projects; release them one holder at a time",
    SensitivePoolFull { used: u64, requested: u64, limit: u64 } Conflict "sensitive_pool_full" "the system would exceed sensitive_pool_size (used {used}, requested {requested}, limit {limit})",
    ClaimOverQuota { tenant: TenantNo, quota: QuotaNo, used: Fraction, requested: Fraction, limit: u64 } Conflict "claim_over_quota" "{tenant} would exceed {quota} (used {used}, requested {requested}, limit {limit})",
    ClaimUntilPast { until: Instant } Invalid "claim_until_past" "a claim cannot be expected to end at {until}, which has passed; give a later `until`",
    ClaimNeedsUntil { of: CeilingScope } Invalid "claim_needs_until" "{of} has a hard cost ceiling, so a claim must say until when its cost is to be reserved; give `until`",
    ClaimOverCeiling { of: CeilingScope, requested: Amount, used: Amount, amount: Amount, currency: Currency } Conflict "claim_over_ceiling" "the claim would cost {requested} {currency}; the cost ceiling of {of} is {amount} {currency}, and {used} {currency} are already spent or reserved",
    NodeNotWiping { node: NodeNo } Conflict "node_not_wiping" "{node} is not being wiped",
    NodeNotQuarantined { node: NodeNo } Conflict "node_not_quarantined" "{node} is not quarantined",
    NodeInCustody { node: NodeNo, state: &'static str } Conflict "node_in_custody" "{node} is {state}; until that ends, its pool and capacity cannot change and it cannot be deleted",
    TenantHasClaims { tenant: TenantNo } Conflict "tenant_has_claims" "{tenant} still has claimed nodes; release them first",
    ProjectHasClaims { project: ProjectNo } Conflict "project_has_claims" "{project} still pays for claimed nodes; release them first",
    UserHasClaims { user: UserNo } Conflict "user_has_claims" "{user} still has claimed nodes; release them first",
    SeenSince { node: NodeNo, at: Instant } Conflict "seen_since" "{node} was last seen at {at} or later, as its agent's records show; give that instant or a later one",
    NoOpenLoss { loss: u64 } Conflict "no_open_loss" "no loss of a node is open under record {loss}",
    LastSeenInFuture Invalid "last_seen_in_future" "a node cannot have been last seen in the future",

    TooManyQuotas { limit: usize } Conflict "too_many_quotas" "a tenant has at most {limit} quotas",
    BurstBelowBase { limit: u64, burst_limit: u64 } Invalid "burst_below_base" "the burst limit {burst_limit} is below the base limit {limit}; it is a total, not an addition to the base limit",
    ZeroBurstTtl Invalid "zero_burst_ttl" "burst_ttl is zero; give a positive duration",
    QuantaNeedClass Invalid "quanta_need_class" "a quota on quanta must name a class or a kind, because quanta of different kinds do not add up",
    QuotaExists { quota: QuotaNo } Conflict "quota_exists" "{quota} already counts exactly this, with the same type of limit; change that limit instead",
    KindAndClass Invalid "kind_and_class" "a quota counts one class or all classes of a kind; name one of them",
    KindHasNoCommonPart { kind: ResourceKind } Conflict "kind_has_no_common_part" "the classes of kind {kind} divide their units into too many different parts to be counted together; use a quota for each class",
    AboveNeedsPriority Invalid "above_needs_priority" "name the lowest priority that the quota counts",
    BurstPerHolder Invalid "burst_per_holder" "a burst quota counts all users and app instances together or one of them; it cannot count each one separately",
    UntilPast { now: Instant } Invalid "until_past" "a temporary limit must end after the current time, {now}",
    UntilNeedsBase Invalid "until_needs_base" "a new quota has no base limit to return to; create it without an end, then set the temporary limit",
    EvictOwnLowerUnsuitable Invalid "evict_own_lower_unsuitable" "only a hard or burst limit on quanta, leases or allocations, not for each node on its own, can let requests evict",
    PercentNeedsBase Invalid "percent_needs_base" "a new quota has no base limit of which a percentage could be taken; give an amount",
    PercentTooLarge Invalid "percent_too_large" "the percentage of the base limit is too large",
    QuotaNeedsUser { quota: QuotaNo } Invalid "quota_needs_user" "{quota} counts by user, so the request must name its user",
    QuotaNeedsAppInstance { quota: QuotaNo } Invalid "quota_needs_app_instance" "{quota} counts by app instance, so the request must name its app instance",
    BurstPerNode Invalid "burst_per_node" "a burst quota counts all nodes together or one node; it cannot count each node separately",
    NodesPerNode Invalid "nodes_per_node" "a quota on nodes counts all nodes together; it cannot count each node separately",
    SettingOutOfRange { setting: &'static str, min: Span, max: Span } Invalid "setting_out_of_range" "{setting} must be between {min} and {max}",
    BadBudget { field: &'static str, min: u64, max: u64 } Invalid "bad_budget" "{field} must be between {min} and {max}",
    ScopeFixed { quota: QuotaNo } Conflict "scope_fixed" "the scope and the measure of {quota} cannot change; delete it and create another",
    TenantFixed Conflict "tenant_fixed" "projects and users cannot move to another tenant",
    BadTokenScope { role: Role, why: &'static str } Invalid "bad_token_scope" "a token for the role {role} {why}",
    TokenExpiryPast { now: Instant } Invalid "token_expiry_past" "the expiry of the token is not after the current time, {now}",
    TokenExists Conflict "token_exists" "a token with that hash exists; generate a new secret",
    TooManyTokens { of: &'static str, limit: u32 } Conflict "too_many_tokens" "{of} has {limit} tokens that are neither revoked nor expired; revoke those that are no longer used",
    SameKey Conflict "same_key" "the new key is already the current key",
    Numbers Invalid "numbers_exhausted" "all numbers for objects of this kind are used up",

    BadPrices { why: BadPrices } Invalid "bad_prices" "invalid prices: {why}",
    StartInPast { now: Instant } Invalid "start_in_past" "it would take effect in the past, but past usage is never rated again; the current time is {now}",
    SameStart { what: &'static str, number: u32 } Conflict "same_start" "{what} {number} takes effect at the same instant; replace it, or choose another instant",
    RateCardInForce { card: u32, from: Instant } Conflict "rate_card_in_force" "rate card {card} took effect at {from}; it cannot be changed or deleted, only replaced by a new one",
    ChargePolicyInForce { policy: u32, from: Instant } Conflict "charge_policy_in_force" "charge policy {policy} took effect at {from}; it cannot be changed, only replaced by a new one",
    UnknownCeiling { project: ProjectNo } NotFound "unknown_ceiling" "{project} has no such cost ceiling",
    BadCeiling { max: Amount } Invalid "bad_ceiling" "a ceiling must be above zero and at most {max}",
    CurrencyFixed { currency: Currency } Conflict "currency_fixed" "the ceiling and the amount spent under it are in {currency}; delete it and create another",
    TooManyCeilings { limit: usize } Conflict "too_many_ceilings" "a tenant has at most {limit} cost ceilings",
    TooManyCardsWaiting { limit: usize } Conflict "too_many_cards_waiting" "{limit} of these have not taken effect yet, which is the limit; replace one of them",

    LedgerNotOpen Conflict "ledger_not_open" "the ledger is not open; open it with `leasehold ledger open`",
    LedgerAlreadyOpen { from: Instant } Conflict "ledger_already_open" "the ledger is open already; it posts usage from {from} on",
    LedgerInFuture { now: Instant } Invalid "ledger_in_future" "the ledger cannot be opened for a time that has not come; it is {now}",
    NotAnHour { at: Instant } Invalid "not_an_hour" "{at} is not the start of an hour in UTC",
    StalePosting { project: ProjectNo } Conflict "stale_posting" "something else was posted for {project} meanwhile; read the ledger again and repeat the request",
    PostingIncomplete { project: ProjectNo } Conflict "posting_incomplete" "an hour is being settled, and {project} is posted only in part or ahead of others; the daemon completes it within seconds, so try again",
    HourOutOfOrder { through: Instant, settled: Instant } Conflict "hour_out_of_order" "hours are settled in order, each when it is over: {through} does not follow {settled}",
    PeriodIsClosing { month: Month } Conflict "period_is_closing" "{month} is being closed; try again when that is done",
    PeriodIsClosed { month: Month } Conflict "period_closed" "{month} is closed; corrections are booked in the open month",
    NoSuchPeriod { month: Month } NotFound "no_such_period" "{month} is no period of the ledger: it was not open then, or the month has not begun",
    PeriodNotOver { month: Month, at: Instant } Conflict "period_not_over" "{month} is not over before {at}",
    PeriodOutOfOrder { month: Month } Conflict "period_out_of_order" "months are closed in order; close {month} first",
    PeriodNotSettled { month: Month, settled: Instant } Conflict "period_not_settled" "{month} is settled only up to {settled}; settle its hours first",
    NoPeriodIsClosing Conflict "no_period_closing" "no such month is being closed",
    BadPostingLines Invalid "bad_posting_lines" "the lines of a posting must be in order, within the hours it covers, and in the month in which it is booked",
    TooManyLines { limit: usize } Invalid "too_many_posting_lines" "a part of a posting has at most {limit} lines",
    TooManyLegs { limit: usize } Invalid "too_many_legs" "an entry has at most {limit} legs",
    BadExactAmount Invalid "bad_exact_amount" "an exact amount is not a fraction in lowest terms",
    AmountTooLarge Invalid "amount_too_large" "an amount is too large for the ledger",
    Unbalanced Invalid "unbalanced" "the legs of an entry must sum to zero, and there must be some",
    OtherProjectsAccount { project: ProjectNo } Invalid "other_projects_account" "an entry of {project} cannot use the accounts of another project",
    AccountNotByHand { account: &'static str } Invalid "account_not_by_hand" "the account `{account}` changes only by invoices, payments, prepaid credit and shares",
    EntryDisputed Conflict "entry_disputed" "the entry is disputed already",
    EntryNotDisputed Conflict "entry_not_disputed" "the entry is not disputed",
    InvoiceExists { tenant: TenantNo } Conflict "invoice_exists" "{tenant} has an invoice of this month and currency already",
    InvoiceMismatch { tenant: TenantNo } Conflict "invoice_mismatch" "the invoice of {tenant} does not agree with what was posted",
    InvoiceMissing { tenant: TenantNo } Conflict "invoice_missing" "{tenant} has no invoice of the month yet",
    StatementExists { tenant: TenantNo } Conflict "statement_exists" "{tenant} has a statement of this month already",
    StatementMismatch { tenant: TenantNo } Conflict "statement_mismatch" "the statement for {tenant} is about other records than those of the month that is being closed",
    UnknownInvoice NotFound "unknown_invoice" "there is no such invoice",
    PaymentExists { sequence: u64 } Conflict "payment_exists" "a payment with this reference was recorded already, as record {sequence}; use another reference for another payment",
    TopUpExists { sequence: u64 } Conflict "top_up_exists" "a credit with this reference was added already, as record {sequence}; use another reference for another one",
    BadTopUp { max: Steps } Invalid "bad_top_up" "a credit must be above zero and at most {max}",
    CreditExpired { at: Instant } Invalid "credit_expired" "the credit would have expired at {at} already; choose a later instant, or none",
    NoPrepaidAccount Conflict "no_prepaid_account" "there is no prepaid credit in this currency; add some first, then say what happens when it comes to its end",
    TooManyCredits { limit: usize } Conflict "too_many_credits" "the account has {limit} credits that are not used up, which is the limit",
    UnknownCredit { credit: u64 } NotFound "unknown_credit" "the account has no credit {credit} of which anything is left",
    BadPrepaidThreshold { max: Steps } Invalid "bad_prepaid_threshold" "the threshold must not be negative, and at most {max}",
    PrepaidWindowTooLong { limit: Span } Invalid "prepaid_window_too_long" "the window may be at most {limit}",
    PrepaidExhausted { lease: LeaseNo, requested: Amount, available: Funds, currency: Currency } Conflict "prepaid_exhausted" "renewing {lease} would cost {requested} {currency} more, but only {available} {currency} of the prepaid credit are left; top it up, or ask for less time",
    ClaimNeedsEnd { project: ProjectNo } Invalid "claim_needs_end" "{project} uses prepaid credit, so a claim must say until when its cost is to be reserved; give `until`",
    ClaimNotCovered { requested: Amount, available: Funds, currency: Currency } Conflict "claim_not_covered" "the claim would cost {requested} {currency}, but only {available} {currency} of the prepaid credit are left; top it up, or claim less",
    BadPaymentAmount Invalid "bad_payment_amount" "the amount of a payment must not be zero",
    PaymentInFuture Invalid "payment_in_future" "a payment cannot have been received in the future",
    BadTaxRate { limit: Decimal } Invalid "bad_tax_rate" "a tax rate is a factor such as 0.19, and at most {limit}",
    UnpostedUsage { project: ProjectNo } Conflict "unposted_usage" "{project} has usage that is not posted yet; try again after the present hour was settled",
    ProjectHasBalance { project: ProjectNo } Conflict "project_has_balance" "{project} owes something that was not invoiced yet; close the month first",
    UnknownUnit { unit: UnitNo } NotFound "unknown_usage_unit" "{unit} does not exist; `leasehold unit list` shows the usage units",
    UnknownAppType { app_type: AppTypeNo } NotFound "unknown_app" "{app_type} does not exist",
    UnknownAppInstance { app_instance: AppInstanceNo } NotFound "unknown_app_instance" "{app_instance} does not exist",
    UnknownAttachment { attachment: AttachmentNo } NotFound "unknown_attachment" "{attachment} does not exist, or has ended",
    RegistryFull { what: &'static str, limit: usize } Conflict "registry_full" "there can be at most {limit} {what}",
    BadUnitPrice { max: Decimal } Invalid "bad_unit_price" "the price of a usage unit can be at most {max}",
    AppFixed { what: &'static str } Conflict "app_fixed" "{what} cannot change, because usage was recorded under it; register another one",
    AppTypeInUse { app_type: AppTypeNo } Conflict "app_in_use" "{app_type} has instances; delete them first",
    AppInstanceInUse { app_instance: AppInstanceNo, by: &'static str } Conflict "app_instance_in_use" "{app_instance} still has {by}; end them first",
    UnpostedAppUsage { app_instance: AppInstanceNo } Conflict "unposted_app_usage" "{app_instance} was used in hours that are not posted yet; try again after the present hour was settled",
    UnsharedCost { app_instance: AppInstanceNo, month: Month } Conflict "unshared_cost" "what the control plane of {app_instance} cost in {month} is still to be shared; delete it after that month was closed",
    LimitsInUse { unit: UnitNo } Conflict "limits_in_use" "the cost of the month that is being closed is divided by the limits on {unit}; try again after its shares are made",
    BadModeAndScope { mode: OperatingMode, scope: ControlPlaneScope } Invalid "bad_mode_and_scope" "no app instance has the mode {mode} with a control plane of scope {scope}; there are tenant_dedicated with project or tenant, and platform_managed with platform",
    PlatformByOperator Invalid "platform_by_operator" "only an operator registers runtimes of the platform",
    AppOfOtherProject { app_instance: AppInstanceNo, project: ProjectNo } Invalid "app_of_other_project" "{app_instance} belongs to {project}, and its capacity is held by that project; request it there",
    NotShared { app_instance: AppInstanceNo } Invalid "app_not_shared" "{app_instance} is not shared within its tenant, so nothing can be lent to it; its control plane would have to be of scope tenant",
    OwnAttachment { app_instance: AppInstanceNo } Invalid "own_attachment" "{app_instance} belongs to this project, which pays for its own capacity already",
    AllocationLent { allocation: AllocationNo } Conflict "allocation_lent" "{allocation} is lent already; end that attachment first",
    SourceNeedsAttachment Invalid "source_needs_attachment" "another project pays only for what it lends by an attachment; name that",
    AttachmentNeedsAllocation Invalid "attachment_needs_allocation" "lent capacity is held by allocations, so that its usage can name one; submit an allocation instead of requesting a lease",
    AttachmentMismatch { attachment: AttachmentNo } Invalid "attachment_mismatch" "{attachment} lends to another app instance, or another project lends by it",
    AttachmentEnded { attachment: AttachmentNo } Conflict "attachment_ended" "{attachment} has ended, so nobody pays for a renewal; the lease ends at its deadline",
    ProjectHasAppInstances { project: ProjectNo } Conflict "project_has_app_instances" "{project} has app instances; delete them first",
    ProjectHasAttachments { project: ProjectNo } Conflict "project_has_attachments" "{project} lends to app instances; end these attachments first",
    UnitNotEnabled { unit: UnitNo, app_type: AppTypeNo } Invalid "unit_not_enabled" "{app_type} does not report {unit}; an operator enables it with `leasehold app set`",
    UsageOfOwner { app_instance: AppInstanceNo, project: ProjectNo } Invalid "usage_of_owner" "this usage of {app_instance} is that of its owner, {project}; name it in project_id",
    UsageQuantityTooLarge Invalid "usage_quantity_too_large" "a usage record has at most 1000000000000 units; report shorter times",
    NoUsageTime { unit: UnitNo } Invalid "no_usage_time" "{unit} is a unit of time, so `to` must be after `from`",
    UsageEndsFirst Invalid "usage_ends_first" "the usage ends before it begins; `to` must not be before `from`",
    UsageInFuture { now: Instant } Invalid "usage_in_future" "the usage ends in the future; here it is {now}, and usage is reported when it is over",
    UsageTooLong { limit: Span } Invalid "usage_too_long" "a usage record covers at most {limit}; report shorter times",
    UsageTooLate { until: Instant } Invalid "too_late" "usage of that time was accepted until {until}; an operator can still book it with `leasehold ledger post`",
    TooMuchUsage { unit: UnitNo, month: Month } Invalid "too_much_usage" "the project would have used more than 1000000000000000 of {unit} in {month}",
    UnitNotAccepted { unit: UnitNo, app_instance: AppInstanceNo } Invalid "unit_not_accepted" "a policy does not accept {unit} for {app_instance}; see `leasehold policy list`",
    EntitlementOfNobody Invalid "entitlement_of_nobody" "an entitlement names a project, an app instance, or both",
    BadEntitlement Invalid "bad_entitlement" "an entitlement has a soft limit, a hard limit, or both; the soft one is not above the hard one, and both are at most 1000000000000 units",
    UnknownEntitlement NotFound "unknown_entitlement" "there is no entitlement for this project, app instance and unit",
    EntitlementExceeded { of: EntitlementScope, month: Month, used: UsedInMonth, hard: UnitQuantity } Invalid "entitlement_exceeded" "{of} is limited to {hard} in {month}, of which {used} are used",
    PolicyByOperator Invalid "policy_by_operator" "only an operator sets the policy of an app for all tenants; name a tenant",
    AttributionFixed { app_instance: AppInstanceNo } Invalid "attribution_fixed" "{app_instance} is shared, and its usage is that of the project that submits; attribution can be set for runtimes of one project",
    SharingByOperator Invalid "sharing_by_operator" "only an operator decides what is billable or distributable, and how cost is shared between tenants",
    NotDistributable Conflict "not_distributable" "the operator does not allow that this cost is divided; choose none or owner",
    BadShares { limit: usize } Invalid "bad_shares" "the percentages of a sharing policy are above zero, for at most {limit} projects, each named once, and add up to 100",
    BadTiers Invalid "bad_tiers" "a sharing policy by service tier has at least one tier with a weight above zero, each name once, and every project has one of these tiers",
    NothingToShare { app_instance: AppInstanceNo } Conflict "nothing_to_share" "the month that is being closed has no cost of {app_instance} that is still to be shared",
    SharesPending { app_instance: AppInstanceNo } Conflict "shares_pending" "the cost of {app_instance} in this month has not been shared yet; that is done by the settlement",
    WorkIsBilled { app_instance: AppInstanceNo } Invalid "work_is_billed" "{app_instance} is not shared by a tenant, and its work is billed in any case; billed_work is for runtimes that a tenant shares",
    AllocationNotLent { allocation: AllocationNo, attachment: AttachmentNo } Invalid "allocation_not_lent" "{allocation} is no allocation that is lent by {attachment}; name the one that holds the worker",
    LentUsageNeedsBoth Invalid "lent_usage_needs_both" "usage of a lent worker names both attachment_id and allocation_id",
    UsageIdTaken { sequence: u64 } Conflict "usage_id_taken" "this id was used for another usage record, {sequence}; send the same content, or use another id",
    UnknownUsage Conflict "unknown_usage_record" "this source has reported no usage record with the id in `supersedes`, or too long ago; name the newest record of its chain",
    SupersedesOtherTenant Invalid "supersedes_other_tenant" "the usage record in `supersedes` is that of another tenant; supersede it by one of that tenant with the quantity 0, and report the other by itself",
    UsageSuperseded { by: u64 } Conflict "usage_superseded" "the usage record in `supersedes` was superseded by record {by} already; name the newest one",
    TooManyUsageRecords { limit: usize } Malformed "too_many_usage_records" "1 to {limit} usage records are recorded together",
    UsageBatchRefused { place: usize, why: Box<Refusal> } Invalid "usage_batch_refused" "record {place} of these usage records, counted from 0, was refused, so none was recorded: {why}",
    UsageTwice Invalid "usage_twice" "two of the usage records have the same id, or supersede the same record",
    UsageKnown Conflict "usage_known" "all of these usage records were recorded before",
    UsageIdsBehind { known_to: u64 } Conflict "usage_ids_behind" "the books are behind and have to reach record {known_to} before this usage can be accepted; try again",
    UnknownSink { sink: SinkNo } NotFound "unknown_webhook" "{sink} does not exist",
    SinkDisabled { sink: SinkNo } Conflict "webhook_disabled" "{sink} is disabled already; `leasehold webhook set` enables it",
    SinkOwnerFixed { sink: SinkNo } Invalid "webhook_owner_fixed" "{sink} belongs to another owner, which cannot change; make another webhook",
    BadSinkEvents { limit: usize } Invalid "bad_webhook_events" "a webhook names 1 to {limit} types of events or families of them",
    BadReconciliation Invalid "bad_reconciliation" "a reconciliation ends after it begins",
    TenantHasBalance { tenant: TenantNo } Conflict "tenant_has_balance" "{tenant} owes something, or has credit; close the month and record its payments first",
}

impl Refusal {
    /// Usage was refused by an entitlement.
    pub(crate) fn not_entitled(refused: &UsageRefused) -> Self {
        let UsageRefused { of, month, used, hard, .. } = *refused;
        Self::EntitlementExceeded { of, month, used, hard }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(&ByNumber))
    }
}
impl std::error::Error for Refusal {}
