//! The state of the model, from the records so far.

use crate::allocation::Allocation;
use crate::apps::Apps;
use crate::assurance::Assurances;
use crate::ceiling::{CardChange, Ceiling, Scope};
use crate::claim::Claim;
use crate::custody::Custody;
use crate::entitlements::Entitlements;
use crate::heat::Heating;
use crate::lease::Lease;
use crate::ledger::Ledger;
use crate::loss::Loss;
use crate::pool_access::MinuteUse;
use crate::prepaid::Prepaid;
use crate::queue::Heads;
use crate::sinks::SinkLine;
use crate::usage_records::Reports;
use crate::window::Window;
use leasehold_model::body::{
    AppPolicyPut, ChargePolicyPut, NodePut, PolicyScope, PoolPut, PoolQueue, ProjectPut, QuotaPut, RateCardPut,
    SettingsChanged, SharingPut, TenantPut, TokenIssued, UserPut,
};
use leasehold_model::{
    AllocationNo, Budgets, ClassNo, ClassSpec, Fraction, Instant, LeaseNo, Level, NodeNo, PoolAccess, PoolNo, Priority,
    ProjectNo, QuotaNo, SinkNo, Span, TeardownMode, TenantNo, TokenNo, UserNo, Weighing, Weights, WindowNo,
};
use std::collections::{BTreeMap, BTreeSet};

use crate::violation::{Checked, demand};

/// The last report of a node's agent: load, errors and throttling.
pub(crate) type Condition = (Level, Level, bool);

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) put: NodePut,
    pub(crate) drained: bool,
    pub(crate) lost: bool,
    /// Whether a maintenance window has begun on it.
    pub(crate) in_window: bool,
    /// The generation and the instance of the agent that is registered.
    pub(crate) agent: Option<(u64, u128)>,
    pub(crate) last_generation: u64,
    pub(crate) condition: Condition,
    pub(crate) custody: Custody,
    /// The last sealed sign of life (SEMANTICS 11, "Lost nodes").
    pub(crate) last_sign: Option<Instant>,
    /// Since when it was empty, by the last record that says so.
    pub(crate) noted_empty: Option<Instant>,
}

impl Node {
    pub(crate) fn new(put: NodePut) -> Self {
        let condition = (Level::Normal, Level::Normal, false);
        Self {
            put,
            drained: false,
            lost: false,
            in_window: false,
            agent: None,
            last_generation: 0,
            condition,
            custody: Custody::Open,
            last_sign: None,
            noted_empty: None,
        }
    }

    /// Whether it is neither drained nor lost.
    pub(crate) fn is_in_service(&self) -> bool {
        !self.drained && !self.lost && !self.in_window
    }
    pub(crate) fn is_immediate(&self) -> bool {
        self.put.teardown == TeardownMode::Immediate
    }
    pub(crate) fn capacity(&self, class: ClassNo) -> u64 {
        self.put.capacity.iter().find(|(c, _)| *c == class).map_or(0, |(_, quanta)| quanta.0)
    }
}

/// A burst: it starts when use exceeds the base limit of a burst quota (SEMANTICS 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Episode {
    pub(crate) started_at: Instant,
    /// Since when use has been at or below the base limit, if it is.
    pub(crate) below_since: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Quota {
    pub(crate) put: QuotaPut,
    pub(crate) episode: Option<Episode>,
    /// What was beyond the limit, and beyond the base limit, after each record, with the end of a temporary limit.
    pub(crate) beyond: Vec<Beyond>,
}

/// What a soft quota had beyond its limit from a record on, in billing units or counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond {
    pub(crate) at: Instant,
    pub(crate) limit: Fraction,
    pub(crate) base: Fraction,
    pub(crate) until: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) settings: SettingsChanged,
    /// The rules version of the running process; none before the first start.
    pub(crate) rules_version: Option<u32>,
    /// The instant and the sequence of the first start with rules version 4.
    pub(crate) rules_4_since: Option<(Instant, u64)>,
    /// How long a head waits before it is protected.
    pub(crate) head_wait_max: Span,
    /// How the work of projects is admitted to pools, where that is not as usual.
    pub(crate) pool_access: BTreeMap<(ProjectNo, PoolNo), PoolAccess>,
    /// The minute of the last record, and what each quota's holders used before the first record of that minute.
    pub(crate) minute_use: (u64, MinuteUse),
    /// The most nodes that may be claimed or being wiped.
    pub(crate) sensitive_pool_size: Option<u64>,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    pub(crate) pools: BTreeMap<PoolNo, PoolPut>,
    /// Weights of pools that have their own.
    pub(crate) weights: BTreeMap<PoolNo, Weights>,
    /// Queue settings of pools that have their own.
    pub(crate) pool_queues: BTreeMap<PoolNo, PoolQueue>,
    pub(crate) tenants: BTreeMap<TenantNo, TenantPut>,
    pub(crate) projects: BTreeMap<ProjectNo, ProjectPut>,
    pub(crate) users: BTreeMap<UserNo, UserPut>,
    pub(crate) quotas: BTreeMap<QuotaNo, Quota>,
    /// Budgets of tenants that have any.
    pub(crate) budgets: BTreeMap<TenantNo, Budgets>,
    pub(crate) nodes: BTreeMap<NodeNo, Node>,
    /// Maintenance windows that have not ended.
    pub(crate) windows: BTreeMap<WindowNo, Window>,
    /// Tokens that were not revoked, and had not expired when the last one was issued.
    pub(crate) tokens: BTreeMap<TokenNo, TokenIssued>,
    /// Rate cards that were not deleted, with the instant of their last change.
    pub(crate) rate_cards: BTreeMap<u32, (RateCardPut, Instant)>,
    pub(crate) charge_policies: BTreeMap<u32, (ChargePolicyPut, Instant)>,
    /// Every change of a rate card, in order.
    pub(crate) card_changes: Vec<CardChange>,
    pub(crate) ceilings: BTreeMap<Scope, Ceiling>,
    /// All leases, closed ones included, in order of number.
    pub(crate) leases: Vec<Lease>,
    /// Losses after which something is still to be named, by the sequence of their records.
    pub(crate) losses: BTreeMap<u64, Loss>,
    /// All claims of nodes, ended ones included, in order of sequence.
    pub(crate) claims: Vec<Claim>,
    /// Everything that heated a node, and how fast heat decays.
    pub(crate) heatings: Vec<(Instant, Heating)>,
    /// The deadline of the last teardown that each node did not confirm in time.
    pub(crate) missed: BTreeMap<NodeNo, Instant>,
    /// All allocations, ended ones included.
    pub(crate) allocations: BTreeMap<AllocationNo, Allocation>,
    /// Evictions: for which tenant, when, and how many quanta.
    pub(crate) evictions: Vec<(TenantNo, Instant, u64)>,
    /// The heads and the minute of the last scheduling pass; none if something has changed since.
    pub(crate) looked: Option<(u64, Heads)>,
    /// The starts that heads of lines were assured of.
    pub(crate) assurances: Assurances,
    /// Allocations that were placed since the last command or the last change of time.
    pub(crate) placed_in_run: BTreeSet<AllocationNo>,
    /// The highest number of each kind, deleted ones included.
    pub(crate) highest: BTreeMap<&'static str, u64>,
    pub(crate) ledger: Ledger,
    pub(crate) prepaid: Prepaid,
    pub(crate) apps: Apps,
    pub(crate) reports: Reports,
    pub(crate) entitlements: Entitlements,
    pub(crate) sinks: BTreeMap<SinkNo, SinkLine>,
    /// Those in force.
    pub(crate) policies: BTreeMap<PolicyScope, AppPolicyPut>,
    /// Sharing policies in force, and those that were in force at the last cut of a month.
    pub(crate) sharing: BTreeMap<PolicyScope, SharingPut>,
    pub(crate) sharing_at_cut: BTreeMap<PolicyScope, SharingPut>,
}

impl World {
    pub(crate) fn new(settings: SettingsChanged) -> Self {
        Self {
            settings,
            rules_version: None,
            rules_4_since: None,
            head_wait_max: Span::from_secs(3600),
            pool_access: BTreeMap::new(),
            minute_use: (0, MinuteUse::new()),
            sensitive_pool_size: None,
            classes: BTreeMap::new(),
            pools: BTreeMap::new(),
            weights: BTreeMap::new(),
            pool_queues: BTreeMap::new(),
            tenants: BTreeMap::new(),
            projects: BTreeMap::new(),
            users: BTreeMap::new(),
            quotas: BTreeMap::new(),
            budgets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            windows: BTreeMap::new(),
            tokens: BTreeMap::new(),
            rate_cards: BTreeMap::new(),
            charge_policies: BTreeMap::new(),
            card_changes: Vec::new(),
            ceilings: BTreeMap::new(),
            leases: Vec::new(),
            claims: Vec::new(),
            losses: BTreeMap::new(),
            heatings: Vec::new(),
            missed: BTreeMap::new(),
            allocations: BTreeMap::new(),
            evictions: Vec::new(),
            looked: None,
            assurances: Assurances::new(),
            placed_in_run: BTreeSet::new(),
            highest: BTreeMap::new(),
            ledger: Ledger::default(),
            prepaid: Prepaid::default(),
            apps: Apps::default(),
            reports: Reports::default(),
            entitlements: Entitlements::default(),
            sinks: BTreeMap::new(),
            policies: BTreeMap::new(),
            sharing: BTreeMap::new(),
            sharing_at_cut: BTreeMap::new(),
        }
    }

    pub(crate) fn lease(&self, number: LeaseNo) -> Option<&Lease> {
        let at = self.leases.binary_search_by_key(&number, |lease| lease.number).ok()?;
        Some(&self.leases[at])
    }

    pub(crate) fn lease_mut(&mut self, number: LeaseNo) -> &mut Lease {
        let at = self.leases.binary_search_by_key(&number, |lease| lease.number);
        &mut self.leases[at.expect("the lease was looked up before")]
    }

    /// Numbers are assigned in order (model::id): a new number follows the highest one so far. Counting may start with
    /// 0 or 1.
    pub(crate) fn check_new_number(&self, noun: &'static str, number: u64) -> Checked {
        match self.highest.get(noun) {
            None => demand!(number <= 1, "number", "the first {noun} has the number {number}"),
            Some(highest) => {
                demand!(number == highest + 1, "number", "a new {noun} has the number {number} after {highest}");
            }
        }
        Ok(())
    }

    pub(crate) fn take_number(&mut self, noun: &'static str, number: u64) {
        let highest = self.highest.entry(noun).or_insert(number);
        *highest = number.max(*highest);
    }

    /// The longest TTL for that priority: the pool's own cap, else the setting (SEMANTICS 4).
    pub(crate) fn ttl_max(&self, pool: PoolNo, priority: Priority) -> Span {
        let own = self.pools.get(&pool).and_then(|pool| pool.ttl_max.of(priority));
        own.unwrap_or(self.settings.ttl_max)
    }

    /// The longest lifetime of a lease with renewals, if limited (SEMANTICS 2).
    pub(crate) fn lifetime_max(&self, pool: PoolNo, priority: Priority) -> Option<Span> {
        self.pools.get(&pool).and_then(|pool| pool.lifetime_max.of(priority))
    }

    /// When leases of a pool may be evicted, and how often its allocations are requeued.
    pub(crate) fn pool_queue(&self, pool: PoolNo) -> PoolQueue {
        self.pool_queues.get(&pool).copied().unwrap_or_default()
    }

    /// The placement weights of a pool.
    pub(crate) fn weighing(&self, pool: PoolNo) -> Weighing {
        match self.weights.get(&pool) {
            Some(own) => Weighing::Custom(*own),
            None => Weighing::Strategy(self.pools[&pool].strategy),
        }
    }

    /// The longest TTL of a grant.
    pub(crate) fn grant_ttl_max(&self, pool: PoolNo, priority: Priority) -> Span {
        let ttl = self.ttl_max(pool, priority);
        self.lifetime_max(pool, priority).map_or(ttl, |life| life.min(ttl))
    }

    pub(crate) fn teardown_limit(&self, from: Instant) -> Instant {
        from.saturating_add(self.settings.teardown_deadline)
    }
}
