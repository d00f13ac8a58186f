//! The state of the engine: the result of folding the journal, and nothing else.

mod allocations;
mod apps;
mod custody;
mod endings;
mod entitlements;
mod fold;
mod ledger;
mod lifetimes;
mod losses;
mod nodes;
mod owners;
mod policies;
mod prepaid;
mod sharing;
mod sinks;
mod usage;
mod windows;

use crate::allocation::{Allocation, Allocations, Over};
use crate::apps::Apps;
use crate::budget::{Meter, Spent};
use crate::ceiling::Ceilings;
use crate::custody::{ClaimedNodes, Claimer};
use crate::entitlement::Entitlements;
use crate::idempotency::RememberedKeys;
use crate::lease::{Lease, LeaseTable, Phase};
use crate::ledger::Ledger;
use crate::node::Node;
use crate::policy::Policies;
use crate::pool_access::PoolAccesses;
use crate::prepaid::Prepaids;
use crate::queue::{Queue, minute_begin};
use crate::quota::Quota;
use crate::rate::{ChargePolicy, RateCard};
use crate::sharing::SharedCosts;
use crate::sinks::Sink;
use crate::token::{Token, Tokens};
use crate::usage::Usage;
use crate::window::Window;
use leasehold_model::body::{PerPriority, PoolQueue};
use leasehold_model::codec::DecodeError;
use leasehold_model::{
    AllocationNo, Budgets, ClassNo, ClassSpec, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, QuotaNo,
    Span, Strategy, TenantNo, TenantSettings, TokenNo, UserNo, Weights, fields,
};
pub use losses::OpenLoss;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;

fields! {
    /// The engine's limits. They are recorded in the journal, so that a replay decides the same.
    pub struct Settings {
        /// The longest TTL in pools that set none.
        pub ttl_max: Span,
        /// Grace of a revocation if neither the request nor the pool sets one.
        pub grace_default: Span,
        /// How long a node has to confirm a teardown.
        pub teardown_deadline: Span,
        /// How long a node may go without a heartbeat before it counts as lost.
        pub node_timeout: Span,
        /// How long an idempotency key is remembered.
        pub idempotency_window: Span,
        /// The half-life of a node's heat.
        pub heat_half_life: Span,
        /// How many nodes may be claimed or in the wipe at the same time. `None`: no limit.
        pub sensitive_pool_size: Option<u64>,
        /// How long the head of a line waits before it is protected.
        pub head_wait_max: Span,
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl_max: Span::from_secs(24 * 3600),
            grace_default: Span::from_secs(60),
            teardown_deadline: Span::from_secs(120),
            node_timeout: Span::from_secs(60),
            idempotency_window: Span::from_secs(24 * 3600),
            heat_half_life: Span::from_secs(600),
            sensitive_pool_size: None,
            head_wait_max: Span::from_secs(3600),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub number: TenantNo,
    pub settings: TenantSettings,
    /// The accounting tag, as an index into the list of tags.
    pub tag: Option<u32>,
    pub(crate) quotas: Vec<QuotaNo>,
    pub leases: u32,
    /// Quanta evicted on its behalf that still count, with the instant of each eviction.
    pub(crate) evictions: Vec<(Instant, u64)>,
    pub budgets: Budgets,
    pub(crate) spent: Box<Spent>,
}

/// How long an eviction counts against the limit of the tenant that caused it.
const EVICTIONS_KEPT: Span = Span::from_secs(3600);

/// Whether an eviction still counts in the minute of `now`.
fn counts_in(eviction: Instant, now: Instant) -> bool {
    eviction.saturating_add(EVICTIONS_KEPT) > minute_begin(now)
}

impl Tenant {
    /// Quanta evicted on its behalf within the hour before the minute of `now`, and in that minute: the limit allows
    /// more only when a new minute begins.
    pub fn evicted(&self, now: Instant) -> u64 {
        let kept = self.evictions.iter().filter(|(at, _)| counts_in(*at, now));
        kept.map(|(_, quanta)| *quanta).fold(0, u64::saturating_add)
    }

    pub(crate) fn evict(&mut self, stamp: Instant, quanta: u64) {
        self.evictions.retain(|(at, _)| counts_in(*at, stamp));
        self.evictions.push((stamp, quanta));
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub tenant: TenantNo,
    pub name: Name,
    pub leases: u32,
    /// The last record by which its usage ended or changed.
    pub last_use: LastUse,
}

fields! {
    /// A record by which usage ended or changed.
    #[derive(Copy, Default)]
    pub struct LastUse { pub at: Instant, pub sequence: u64 }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub tenant: TenantNo,
    pub name: Name,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub name: Name,
    pub strategy: Strategy,
    pub ttl_max: PerPriority,
    pub lifetime_max: PerPriority,
    pub grace: Option<Span>,
    pub nodes: u32,
    /// How many of its nodes have GPUs.
    pub(crate) gpu_nodes: u32,
    /// Placement weights that replace those of the strategy.
    pub weights: Option<Weights>,
    pub queue: PoolQueue,
}

/// How a closed lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) lease: LeaseNo,
    pub(crate) tenant: TenantNo,
    pub(crate) phase: Phase,
    pub(crate) at: Instant,
}

/// How many closed leases are remembered, so that a repeated release gets a precise answer. Older leases are answered
/// as not found; the journal still has their records.
pub(crate) const GONE_KEPT: usize = 4096;

/// The largest number of classes. It is small because every node has a table that is indexed by class number.
pub(crate) const CLASSES_MAX: usize = 1024;

/// A record that this engine cannot fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldError {
    Decode {
        sequence: u64,
        error: DecodeError,
    },
    UnknownKind {
        sequence: u64,
        kind: u32,
    },
    OutOfOrder {
        expected: u64,
        found: u64,
    },
    StampBack {
        sequence: u64,
    },
    /// The record refers to something that does not exist or is in another state.
    Inconsistent {
        sequence: u64,
        what: &'static str,
    },
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode { sequence, error } => write!(f, "record {sequence} cannot be decoded: {error}"),
            Self::UnknownKind { sequence, kind } => write!(
                f,
                "record {sequence} is of kind {kind}, which this version does not know; run the version that wrote it"
            ),
            Self::OutOfOrder { expected, found } => {
                write!(f, "expected record {expected}, found record {found}")
            }
            Self::StampBack { sequence } => {
                write!(f, "the stamp of record {sequence} is before that of its predecessor")
            }
            Self::Inconsistent { sequence, what } => {
                write!(f, "record {sequence} contradicts the records before it: {what}")
            }
        }
    }
}
impl std::error::Error for FoldError {}

/// Entries by number. Numbers are assigned in rising order and never reused.
pub(crate) type Table<T> = Vec<Option<T>>;

pub(crate) fn entry<T>(table: &[Option<T>], number: u32) -> Option<&T> {
    table.get(number as usize)?.as_ref()
}
pub(crate) fn entry_mut<T>(table: &mut [Option<T>], number: u32) -> Option<&mut T> {
    table.get_mut(number as usize)?.as_mut()
}

/// The state after some record. Equal journals give equal states, bit for bit.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Records folded so far: the sequence of the next one.
    pub(crate) size: u64,
    pub(crate) last_stamp: Instant,
    pub(crate) origin: Option<Name>,
    pub(crate) public_key: [u8; 32],
    pub(crate) epoch: u64,
    /// The rules version of the process that writes the journal, from its `Started` record.
    pub(crate) rules_version: Option<u32>,
    pub(crate) settings: Settings,
    pub(crate) tenants: Table<Tenant>,
    pub(crate) projects: Table<Project>,
    pub(crate) users: Table<User>,
    pub(crate) pools: Table<Pool>,
    pub(crate) classes: Table<ClassSpec>,
    /// Whether a class was ever leased, by class number. After that the size of its quantum cannot change.
    pub(crate) leased: Vec<bool>,
    pub(crate) nodes: Table<Node>,
    pub(crate) claimed: ClaimedNodes,
    /// Maintenance windows; those that have ended are empty.
    pub(crate) windows: Table<Window>,
    pub(crate) open_losses: BTreeMap<u64, OpenLoss>,
    pub(crate) quotas: Table<Quota>,
    pub(crate) tokens: Tokens,
    pub(crate) rate_cards: Table<RateCard>,
    pub(crate) charge_policies: Table<ChargePolicy>,
    pub(crate) ceilings: Ceilings,
    pub(crate) ledger: Ledger,
    pub(crate) prepaids: Prepaids,
    pub(crate) apps: Apps,
    pub(crate) usage: Usage,
    pub(crate) entitlements: Entitlements,
    pub(crate) policies: Policies,
    pub(crate) sharing: SharedCosts,
    pub(crate) sinks: Table<Sink>,
    pub(crate) tags: Vec<Name>,
    pub(crate) next_lease: u64,
    pub(crate) leases: LeaseTable,
    pub(crate) allocations: Allocations,
    /// The waiting allocations.
    pub(crate) queue: Queue,
    /// The end of the walltime of each placed allocation that has one.
    pub(crate) bounds: BTreeSet<(Instant, AllocationNo)>,
    /// When the held leases of pools with a longest lifetime reach it.
    pub(crate) lifetimes: BTreeSet<(Instant, LeaseNo)>,
    /// Nodes on which leases are ending.
    pub(crate) ending: BTreeSet<NodeNo>,
    /// GPU time of all tenants.
    pub(crate) gpu_time: Meter,
    /// Core time of all tenants on pools without GPUs.
    pub(crate) core_time: Meter,
    pub(crate) pool_access: PoolAccesses,
    pub(crate) gone: Vec<Option<Gone>>,
    pub(crate) idempotency_keys: RememberedKeys,
    pub(crate) names: Names,
}

/// Names in use, by the kind of thing they name. Names of projects and users are unique within their tenant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) tenants: BTreeMap<Name, u32>,
    pub(crate) projects: BTreeMap<(TenantNo, Name), u32>,
    pub(crate) users: BTreeMap<(TenantNo, Name), u32>,
    pub(crate) pools: BTreeMap<Name, u32>,
    pub(crate) classes: BTreeMap<Name, u32>,
    pub(crate) nodes: BTreeMap<Name, u32>,
}

impl State {
    pub fn new() -> Self {
        Self::default()
    }

    /// Records folded so far.
    pub fn size(&self) -> u64 {
        self.size
    }
    pub fn last_stamp(&self) -> Instant {
        self.last_stamp
    }
    /// Whether the process that writes the journal has the rules of this version. What an earlier one wrote is folded
    /// as it was.
    pub(crate) fn follows_rules(&self, version: u32) -> bool {
        self.rules_version.is_none_or(|own| own >= version)
    }
    pub fn origin(&self) -> Option<&Name> {
        self.origin.as_ref()
    }
    /// The public key that signs checkpoints at present.
    pub fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    pub fn tenant(&self, tenant: TenantNo) -> Option<&Tenant> {
        entry(&self.tenants, tenant.0)
    }
    pub fn project(&self, project: ProjectNo) -> Option<&Project> {
        entry(&self.projects, project.0)
    }
    pub fn user(&self, user: UserNo) -> Option<&User> {
        entry(&self.users, user.0)
    }
    pub fn pool(&self, pool: PoolNo) -> Option<&Pool> {
        entry(&self.pools, pool.0)
    }
    pub fn class(&self, class: ClassNo) -> Option<&ClassSpec> {
        entry(&self.classes, u32::from(class.0))
    }
    pub fn node(&self, node: NodeNo) -> Option<&Node> {
        entry(&self.nodes, node.0)
    }
    pub fn quota(&self, quota: QuotaNo) -> Option<&Quota> {
        entry(&self.quotas, quota.0)
    }
    pub fn lease(&self, lease: LeaseNo) -> Option<&Lease> {
        self.leases.get(lease)
    }
    /// Leases that are not closed.
    pub fn live_leases(&self) -> usize {
        self.leases.len()
    }
    /// Every lease that is not closed, by number. Sorts all of them; see [`crate::Readers::leases_after`] for pages.
    pub fn leases(&self) -> Vec<&Lease> {
        self.leases.in_order()
    }
    /// A live allocation, one that has not ended.
    pub fn allocation(&self, allocation: AllocationNo) -> Option<&Allocation> {
        self.allocations.get(allocation)
    }
    /// Live allocations with a higher number than `after`, by number.
    pub fn allocations_after(&self, after: Option<AllocationNo>) -> impl Iterator<Item = &Allocation> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.allocations.live.range((from, Bound::Unbounded)).map(|(_, allocation)| &**allocation)
    }
    /// How an allocation ended, if it is still remembered.
    pub fn allocation_over(&self, allocation: AllocationNo) -> Option<&Over> {
        self.allocations.over(allocation)
    }
    /// The number of waiting allocations.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
    /// The nodes that a user has claimed, by number.
    pub fn claimed_by(&self, claimer: Claimer) -> impl Iterator<Item = NodeNo> + '_ {
        self.claimed.nodes_of(claimer)
    }
    /// Nodes that are claimed or being wiped, which `sensitive_pool_size` limits.
    pub fn sensitive_pool(&self) -> u64 {
        self.claimed.sensitive_pool()
    }
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flatten()
    }
    pub fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.iter().flatten()
    }
    pub fn quotas(&self) -> impl Iterator<Item = &Quota> {
        self.quotas.iter().flatten()
    }
    /// The quotas of one tenant, by number.
    pub fn quotas_of(&self, tenant: TenantNo) -> impl Iterator<Item = &Quota> {
        let listed = self.tenant(tenant).map_or(&[][..], |tenant| &tenant.quotas);
        listed.iter().filter_map(|quota| self.quota(*quota))
    }
    /// A token that was not revoked. An expired one may be missing, because expired tokens are removed after a while.
    pub fn token(&self, token: TokenNo) -> Option<&Token> {
        self.tokens.get(token)
    }
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter()
    }
    /// The token whose secret has this SHA-256 hash. It may have expired.
    pub fn token_by_hash(&self, hash: &[u8; 32]) -> Option<TokenNo> {
        self.tokens.by_hash(hash)
    }
    pub fn pools(&self) -> impl Iterator<Item = (PoolNo, &Pool)> {
        numbered(&self.pools).map(|(n, p)| (PoolNo(n), p))
    }
    pub fn projects(&self) -> impl Iterator<Item = (ProjectNo, &Project)> {
        numbered(&self.projects).map(|(n, p)| (ProjectNo(n), p))
    }
    pub fn users(&self) -> impl Iterator<Item = (UserNo, &User)> {
        numbered(&self.users).map(|(n, u)| (UserNo(n), u))
    }
    pub fn classes(&self) -> impl Iterator<Item = (ClassNo, &ClassSpec)> {
        numbered(&self.classes).map(|(n, c)| (class_no(n), c))
    }
    pub fn tag(&self, tag: u32) -> Option<&Name> {
        self.tags.get(tag as usize)
    }
    pub fn tenant_named(&self, name: &str) -> Option<TenantNo> {
        Name::new(name).ok().and_then(|name| self.names.tenants.get(&name)).map(|n| TenantNo(*n))
    }
    pub fn project_named(&self, tenant: TenantNo, name: &str) -> Option<ProjectNo> {
        Name::new(name).ok().and_then(|name| self.names.projects.get(&(tenant, name))).map(|n| ProjectNo(*n))
    }
    pub fn user_named(&self, tenant: TenantNo, name: &str) -> Option<UserNo> {
        Name::new(name).ok().and_then(|name| self.names.users.get(&(tenant, name))).map(|n| UserNo(*n))
    }
    pub fn class_named(&self, name: &str) -> Option<ClassNo> {
        Name::new(name).ok().and_then(|name| self.names.classes.get(&name)).map(|n| class_no(*n))
    }
    pub fn pool_named(&self, name: &str) -> Option<PoolNo> {
        Name::new(name).ok().and_then(|name| self.names.pools.get(&name)).map(|n| PoolNo(*n))
    }
    pub fn node_named(&self, name: &str) -> Option<NodeNo> {
        Name::new(name).ok().and_then(|name| self.names.nodes.get(&name)).map(|n| NodeNo(*n))
    }

    /// A node's heat as of the last record.
    pub fn heat_now(&self, node: &Node) -> u16 {
        node.heat.at(self.last_stamp, self.settings.heat_half_life)
    }

    pub(crate) fn was_leased(&self, class: ClassNo) -> bool {
        self.leased.get(class.0 as usize).copied().unwrap_or(false)
    }

    pub(crate) fn mark_leased(&mut self, class: ClassNo) {
        let index = class.0 as usize;
        if self.leased.len() <= index {
            self.leased.resize(index + 1, false);
        }
        self.leased[index] = true;
    }

    /// The longest TTL that a grant in `pool` may have.
    pub(crate) fn ttl_max(&self, pool: &Pool, priority: Priority) -> Span {
        let ttl_max = pool.ttl_max.of(priority).unwrap_or(self.settings.ttl_max);
        pool.lifetime_max.of(priority).map_or(ttl_max, |lifetime| lifetime.min(ttl_max))
    }

    pub(crate) fn gone(&self, lease: LeaseNo) -> Option<&Gone> {
        let index = usize::try_from(lease.0 % GONE_KEPT as u64).ok()?;
        self.gone.get(index)?.as_ref().filter(|gone| gone.lease == lease)
    }
}

fn numbered<T>(table: &[Option<T>]) -> impl Iterator<Item = (u32, &T)> {
    (0u32..).zip(table).filter_map(|(n, entry)| Some((n, entry.as_ref()?)))
}

pub(crate) fn class_no(number: u32) -> ClassNo {
    ClassNo(u16::try_from(number).expect("class numbers fit 16 bits"))
}
