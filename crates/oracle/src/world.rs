//! Everything that the records have said so far.

use crate::allocation::Allocation;
use crate::assurance::Assurances;
use crate::ceiling::{CardChange, Ceiling, Scope};
use crate::custody::Custody;
use crate::heat::Heating;
use crate::lease::Lease;
use crate::queue::Heads;
use leasehold_model::body::{
    ChargePolicyPut, NodePut, PoolPut, ProjectPut, QuotaPut, RateCardPut, SettingsChanged, TenantPut, TokenIssued,
    UserPut,
};
use leasehold_model::{
    AllocationNo, Budgets, ClassNo, ClassSpec, Instant, LeaseNo, Level, NodeNo, PoolNo, Priority, ProjectNo, QuotaNo,
    Span, TeardownMode, TenantNo, TokenNo, UserNo, Weighing, Weights,
};
use std::collections::{BTreeMap, BTreeSet};

use crate::violation::{Checked, demand};

/// Load, errors and whether it is throttled, as its agent last said.
pub(crate) type Condition = (Level, Level, bool);

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) put: NodePut,
    pub(crate) drained: bool,
    pub(crate) lost: bool,
    /// The generation and the instance of the agent that is registered.
    pub(crate) agent: Option<(u64, u128)>,
    pub(crate) last_generation: u64,
    pub(crate) condition: Condition,
    pub(crate) custody: Custody,
}

impl Node {
    pub(crate) fn new(put: NodePut) -> Self {
        let condition = (Level::Normal, Level::Normal, false);
        Self { put, drained: false, lost: false, agent: None, last_generation: 0, condition, custody: Custody::Open }
    }

    /// Neither drained nor lost.
    pub(crate) fn is_in_service(&self) -> bool {
        !self.drained && !self.lost
    }
    pub(crate) fn is_immediate(&self) -> bool {
        self.put.teardown == TeardownMode::Immediate
    }
    pub(crate) fn capacity(&self, class: ClassNo) -> u64 {
        self.put.capacity.iter().find(|(c, _)| *c == class).map_or(0, |(_, quanta)| quanta.0)
    }
}

/// A stretch of time that began when use passed the base of a burst quota (SEMANTICS 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Episode {
    pub(crate) started_at: Instant,
    /// Since when use has been at or below base, if it is.
    pub(crate) below_since: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Quota {
    pub(crate) put: QuotaPut,
    pub(crate) episode: Option<Episode>,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) settings: SettingsChanged,
    /// How many nodes may be claimed or being wiped, in all.
    pub(crate) sensitive_pool_size: Option<u64>,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    pub(crate) pools: BTreeMap<PoolNo, PoolPut>,
    /// Of the pools that have weights of their own.
    pub(crate) weights: BTreeMap<PoolNo, Weights>,
    pub(crate) tenants: BTreeMap<TenantNo, TenantPut>,
    pub(crate) projects: BTreeMap<ProjectNo, ProjectPut>,
    pub(crate) users: BTreeMap<UserNo, UserPut>,
    pub(crate) quotas: BTreeMap<QuotaNo, Quota>,
    /// Of tenants that were given any.
    pub(crate) budgets: BTreeMap<TenantNo, Budgets>,
    pub(crate) nodes: BTreeMap<NodeNo, Node>,
    /// Those that were not revoked, and had not expired when the last one came.
    pub(crate) tokens: BTreeMap<TokenNo, TokenIssued>,
    /// Those that were not withdrawn, with when they were last put.
    pub(crate) rate_cards: BTreeMap<u32, (RateCardPut, Instant)>,
    pub(crate) charge_policies: BTreeMap<u32, (ChargePolicyPut, Instant)>,
    /// Every rate card that was ever put or withdrawn, in order.
    pub(crate) card_changes: Vec<CardChange>,
    pub(crate) ceilings: BTreeMap<Scope, Ceiling>,
    /// Every lease that ever was, in order of number.
    pub(crate) leases: Vec<Lease>,
    /// All that ever heated a node, and how fast they cool.
    pub(crate) heatings: Vec<(Instant, Heating)>,
    /// Every allocation that ever was.
    pub(crate) allocations: BTreeMap<AllocationNo, Allocation>,
    /// For whom, when and how much was evicted.
    pub(crate) evictions: Vec<(TenantNo, Instant, u64)>,
    /// The heads of the queue and the minute in which it was looked at; none if something has changed for it since.
    pub(crate) looked: Option<(u64, Heads)>,
    /// The starts that heads of lines were assured of.
    pub(crate) assurances: Assurances,
    /// Those that were placed since the last command, or since time went on.
    pub(crate) placed_in_run: BTreeSet<AllocationNo>,
    /// The highest number handed out of each kind, deleted ones included.
    pub(crate) highest: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(settings: SettingsChanged) -> Self {
        Self {
            settings,
            sensitive_pool_size: None,
            classes: BTreeMap::new(),
            pools: BTreeMap::new(),
            weights: BTreeMap::new(),
            tenants: BTreeMap::new(),
            projects: BTreeMap::new(),
            users: BTreeMap::new(),
            quotas: BTreeMap::new(),
            budgets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            rate_cards: BTreeMap::new(),
            charge_policies: BTreeMap::new(),
            card_changes: Vec::new(),
            ceilings: BTreeMap::new(),
            leases: Vec::new(),
            heatings: Vec::new(),
            allocations: BTreeMap::new(),
            evictions: Vec::new(),
            looked: None,
            assurances: Assurances::new(),
            placed_in_run: BTreeSet::new(),
            highest: BTreeMap::new(),
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

    /// Numbers are handed out in order (model::id): a new one follows the highest there ever was.
    /// Whether counting begins with 0 or with 1 is left to the engine.
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

    /// How long a lease may live, renewals included; may be none (SEMANTICS 2).
    pub(crate) fn lifetime_max(&self, pool: PoolNo, priority: Priority) -> Option<Span> {
        self.pools.get(&pool).and_then(|pool| pool.lifetime_max.of(priority))
    }

    /// By which weights a pool's nodes are chosen.
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
