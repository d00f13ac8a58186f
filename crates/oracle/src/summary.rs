//! The whole state as plain data, to compare two models.

use crate::allocation::Allocation;
use crate::capacity::Parts;
use crate::ceiling::Ceiling;
use crate::custody::Custody;
use crate::entitlements::EntitlementLine;
use crate::oracle::Oracle;
use crate::reservation::Reservation;
use crate::sinks::SinkLine;
use crate::world::{Quota, World};
use leasehold_model::body::{
    AppInstancePut, AppPolicyPut, AppTypePut, AttachmentMade, CeilingPut, ChargePolicyPut, EntitlementScope,
    PolicyScope, PoolPut, ProjectPut, RateCardPut, SettingsChanged, SharingPut, TenantPut, TokenIssued, UnitPricePut,
    UsageUnitPut, UserPut,
};
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationNo, AllocationState, Amount, AppInstanceNo, AppTypeNo, AttachmentNo, AttemptEnd, Budgets, ClassNo,
    ClassSpec, Fraction, Instant, LeaseNo, Level, LimitKind, Name, NodeNo, NodeScope, PoolNo, Priority, ProjectNo,
    QuotaNo, SinkNo, TeardownMode, TenantNo, TokenNo, UnitNo, UserNo, Weights, WindowNo,
};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLine {
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub node: NodeNo,
    pub class: ClassNo,
    pub pool: PoolNo,
    pub quanta: u64,
    pub devices: u64,
    pub priority: Priority,
    pub tag: Option<Name>,
    pub granted_at: Instant,
    pub expires_at: Instant,
    /// `active`, `revoking`, `releasing`, `expired`, `tearing_down`, `fenced` or `closed`.
    pub phase: &'static str,
    /// The end of the billed interval.
    pub ended_at: Option<Instant>,
    /// The end of grace while revoking, the teardown deadline during teardown; else none.
    pub limit_at: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLine {
    pub name: Name,
    pub pool: PoolNo,
    pub teardown: TeardownMode,
    pub drained: bool,
    /// The next maintenance window, and whether one has begun.
    pub windows: (Option<(Instant, WindowNo)>, bool),
    pub lost: bool,
    /// The generation and the instance of the agent that is registered.
    pub agent: Option<(u64, u128)>,
    pub last_generation: u64,
    /// Load, errors and whether it is throttled.
    pub condition: (Level, Level, bool),
    pub custody: Custody,
    /// As of the last record.
    pub heat: u16,
}

/// The six parts of a node's capacity of one class (SEMANTICS 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityLine {
    pub held: u64,
    pub tearing_down: u64,
    pub reserved: u64,
    pub fenced: u64,
    pub offline: u64,
    pub idle: u64,
    pub capacity: u64,
    /// Used quanta of each device; empty for kinds without devices.
    pub device_use: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeLine {
    pub started_at: Instant,
    pub below_since: Option<Instant>,
}

/// The user, the app instance and the node that a quota counts separately, where it does.
pub type CountedFor = (Option<UserNo>, Option<AppInstanceNo>, Option<NodeNo>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLine {
    pub limit: LimitKind,
    /// What follows a temporary limit, and when.
    pub base: LimitKind,
    pub until: Option<Instant>,
    /// What was beyond a soft limit, times nanoseconds.
    pub overage: Fraction,
    /// By user and app instance if it counts each one, and by node if it counts each node; without zeros.
    pub used: BTreeMap<CountedFor, Fraction>,
    pub episode: Option<EpisodeLine>,
}

/// A cost ceiling with its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeilingLine {
    pub put: CeilingPut,
    pub since: Instant,
    /// The cost of ended leases and claims.
    pub spent: Amount,
    /// The reserved amount of each held lease.
    pub reserved: BTreeMap<LeaseNo, Amount>,
}

/// The standing of a tenant in the queue, at the minute of the last record (SEMANTICS 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingLine {
    pub factor: u128,
    pub deficit: i128,
    /// In 2^-20 GPUs or nodes, times nanoseconds.
    pub gpu_time: u128,
    pub node_time: u128,
    pub all_gpu_time: u128,
}

/// An allocation that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationLine {
    pub tenant: TenantNo,
    pub project: ProjectNo,
    pub state: AllocationState,
    pub submitted_at: Instant,
    pub attempts: u32,
    /// The number of its leases.
    pub held: usize,
    pub bound: Option<Instant>,
    pub checkpointed: bool,
    /// Why its attempt is interrupted.
    pub ends: Option<AttemptEnd>,
    /// The nodes of its reservation.
    pub kept_on: Vec<NodeNo>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number of records.
    pub size: u64,
    pub last_stamp: Option<Instant>,
    pub settings: SettingsChanged,
    pub sensitive_pool_size: Option<u64>,
    pub tenants: BTreeMap<TenantNo, TenantPut>,
    pub projects: BTreeMap<ProjectNo, ProjectPut>,
    pub users: BTreeMap<UserNo, UserPut>,
    pub pools: BTreeMap<PoolNo, PoolPut>,
    /// Pools that have their own weights.
    pub weights: BTreeMap<PoolNo, Weights>,
    pub classes: BTreeMap<ClassNo, ClassSpec>,
    pub nodes: BTreeMap<NodeNo, NodeLine>,
    /// One line for each class of a node.
    pub capacity: BTreeMap<(NodeNo, ClassNo), CapacityLine>,
    pub quotas: BTreeMap<QuotaNo, QuotaLine>,
    pub tokens: BTreeMap<TokenNo, TokenIssued>,
    /// With the instant of their last change.
    pub rate_cards: BTreeMap<u32, (RateCardPut, Instant)>,
    pub charge_policies: BTreeMap<u32, (ChargePolicyPut, Instant)>,
    /// By project and app instance.
    pub ceilings: BTreeMap<(ProjectNo, Option<AppInstanceNo>), CeilingLine>,
    pub leases: BTreeMap<LeaseNo, LeaseLine>,
    pub allocations: BTreeMap<AllocationNo, AllocationLine>,
    pub budgets: BTreeMap<TenantNo, Budgets>,
    pub standings: BTreeMap<TenantNo, StandingLine>,
    /// Units that the site has defined.
    pub units: BTreeMap<UnitNo, UsageUnitPut>,
    pub unit_prices: BTreeMap<u32, UnitPricePut>,
    pub app_types: BTreeMap<AppTypeNo, AppTypePut>,
    /// With their tenants.
    pub app_instances: BTreeMap<AppInstanceNo, (TenantNo, AppInstancePut)>,
    /// With their tenants and since when they hold.
    pub attachments: BTreeMap<AttachmentNo, (TenantNo, AttachmentMade, Instant)>,
    pub entitlements: BTreeMap<EntitlementScope, EntitlementLine>,
    pub sinks: BTreeMap<SinkNo, SinkLine>,
    pub policies: BTreeMap<PolicyScope, AppPolicyPut>,
    pub sharing: BTreeMap<PolicyScope, SharingPut>,
    /// The decisions about shares that the month which is being closed lacks.
    pub shares_due: BTreeMap<(AppInstanceNo, Currency), ()>,
}

impl Summary {
    /// The summary without closed leases, which the engine does not keep.
    #[must_use]
    pub fn without_closed(mut self) -> Self {
        self.leases.retain(|_, lease| lease.phase != "closed");
        self
    }

    /// The differences, one per line.
    pub fn diff(&self, other: &Self) -> String {
        let mut out = String::new();
        diff_one("size", &self.size, &other.size, &mut out);
        diff_one("last stamp", &self.last_stamp, &other.last_stamp, &mut out);
        diff_one("settings", &self.settings, &other.settings, &mut out);
        diff_one("sensitive pool", &self.sensitive_pool_size, &other.sensitive_pool_size, &mut out);
        diff_maps("tenant", &self.tenants, &other.tenants, &mut out);
        diff_maps("project", &self.projects, &other.projects, &mut out);
        diff_maps("user", &self.users, &other.users, &mut out);
        diff_maps("pool", &self.pools, &other.pools, &mut out);
        diff_maps("weights of pool", &self.weights, &other.weights, &mut out);
        diff_maps("class", &self.classes, &other.classes, &mut out);
        diff_maps("node", &self.nodes, &other.nodes, &mut out);
        diff_maps("capacity", &self.capacity, &other.capacity, &mut out);
        diff_maps("quota", &self.quotas, &other.quotas, &mut out);
        diff_maps("token", &self.tokens, &other.tokens, &mut out);
        diff_maps("rate card", &self.rate_cards, &other.rate_cards, &mut out);
        diff_maps("charge policy", &self.charge_policies, &other.charge_policies, &mut out);
        diff_maps("ceiling", &self.ceilings, &other.ceilings, &mut out);
        diff_maps("lease", &self.leases, &other.leases, &mut out);
        diff_maps("allocation", &self.allocations, &other.allocations, &mut out);
        diff_maps("standing", &self.standings, &other.standings, &mut out);
        diff_maps("unit", &self.units, &other.units, &mut out);
        diff_maps("unit price", &self.unit_prices, &other.unit_prices, &mut out);
        diff_maps("app", &self.app_types, &other.app_types, &mut out);
        diff_maps("app instance", &self.app_instances, &other.app_instances, &mut out);
        diff_maps("attachment", &self.attachments, &other.attachments, &mut out);
        diff_maps("entitlement", &self.entitlements, &other.entitlements, &mut out);
        diff_maps("sink", &self.sinks, &other.sinks, &mut out);
        diff_maps("policy", &self.policies, &other.policies, &mut out);
        diff_maps("sharing policy", &self.sharing, &other.sharing, &mut out);
        diff_maps("share", &self.shares_due, &other.shares_due, &mut out);
        diff_maps("budgets", &self.budgets, &other.budgets, &mut out);
        assert_eq!(out.is_empty(), self == other, "a difference that no line shows");
        out
    }
}

fn diff_one<T: Debug + PartialEq>(what: &str, ours: &T, theirs: &T, out: &mut String) {
    if ours != theirs {
        writeln!(out, "{what}:\n  - {ours:?}\n  + {theirs:?}").expect("a string takes all");
    }
}

fn diff_maps<K: Debug + Ord, V: Debug + PartialEq>(
    what: &str,
    ours: &BTreeMap<K, V>,
    theirs: &BTreeMap<K, V>,
    out: &mut String,
) {
    for (key, value) in ours {
        diff_one(&format!("{what} {key:?}"), &Some(value), &theirs.get(key), out);
    }
    for (key, value) in theirs.iter().filter(|(key, _)| !ours.contains_key(key)) {
        diff_one(&format!("{what} {key:?}"), &None, &Some(value), out);
    }
}

impl Oracle {
    pub fn summary(&self) -> Summary {
        let world = &self.world;
        Summary {
            size: self.size,
            last_stamp: self.last_stamp,
            settings: world.settings.clone(),
            sensitive_pool_size: world.sensitive_pool_size,
            tenants: world.tenants.clone(),
            projects: world.projects.clone(),
            users: world.users.clone(),
            pools: world.pools.clone(),
            weights: world.weights.clone(),
            classes: world.classes.clone(),
            nodes: world.node_lines(self.last_stamp.unwrap_or(Instant(0))),
            capacity: world.capacity_lines(),
            quotas: world.quotas.iter().map(|(number, quota)| (*number, world.quota_line(quota))).collect(),
            tokens: world.tokens.clone(),
            rate_cards: world.rate_cards.clone(),
            charge_policies: world.charge_policies.clone(),
            ceilings: world.ceiling_lines(),
            leases: world.lease_lines(),
            allocations: world.allocation_lines(),
            standings: world.standing_lines(self.last_stamp.unwrap_or_default()),
            units: world.apps.units.iter().map(|put| (put.unit, put.clone())).collect(),
            unit_prices: world.apps.prices.iter().map(|put| (put.price_no, put.clone())).collect(),
            app_types: world.apps.types.clone(),
            app_instances: world.apps.instances.clone(),
            attachments: world.apps.attachments.clone(),
            entitlements: world.entitlement_lines(),
            sinks: world.sinks.clone(),
            policies: world.policies.clone(),
            sharing: world.sharing.clone(),
            shares_due: world.shares_due().into_iter().map(|due| (due, ())).collect(),
            budgets: world.tenants.keys().map(|no| (*no, world.budgets.get(no).cloned().unwrap_or_default())).collect(),
        }
    }
}

impl World {
    fn node_lines(&self, now: Instant) -> BTreeMap<NodeNo, NodeLine> {
        let line = |number: NodeNo, node: &crate::world::Node| NodeLine {
            name: node.put.name.clone(),
            pool: node.put.pool,
            teardown: node.put.teardown,
            drained: node.drained,
            windows: (self.next_window(number), node.in_window),
            lost: node.lost,
            agent: node.agent,
            last_generation: node.last_generation,
            condition: node.condition,
            custody: node.custody,
            heat: self.heat(number, now),
        };
        self.nodes.iter().map(|(number, node)| (*number, line(*number, node))).collect()
    }

    fn capacity_lines(&self) -> BTreeMap<(NodeNo, ClassNo), CapacityLine> {
        let mut lines = BTreeMap::new();
        for (number, node) in &self.nodes {
            for (class, _) in &node.put.capacity {
                let mut p = self.parts(*number, node, *class);
                if node.lost {
                    // Of a lost node everything is offline.
                    p = Parts { capacity: p.capacity, offline: p.capacity, ..Parts::default() };
                }
                let line = CapacityLine {
                    held: p.held,
                    tearing_down: p.tearing_down,
                    reserved: p.reserved,
                    fenced: p.fenced,
                    offline: p.offline,
                    idle: p.idle,
                    capacity: p.capacity,
                    device_use: self.device_use(*number, node, *class),
                };
                lines.insert((*number, *class), line);
            }
        }
        lines
    }

    fn quota_line(&self, quota: &Quota) -> QuotaLine {
        let nodes: Vec<Option<NodeNo>> = match quota.put.scope.node {
            NodeScope::Each => self.nodes.keys().copied().map(Some).collect(),
            NodeScope::All | NodeScope::One(_) => vec![None],
        };
        let mut used = BTreeMap::new();
        for who in self.everybody(quota) {
            for node in &nodes {
                let count = self.used(quota, *node, who);
                if count > 0 {
                    used.insert((who.0, who.1, *node), Fraction::new(count, self.unit_parts(quota)));
                }
            }
        }
        let episode = quota.episode.map(|e| EpisodeLine { started_at: e.started_at, below_since: e.below_since });
        let until = quota.put.temporary.map(|temporary| temporary.until);
        QuotaLine { limit: quota.limit(), base: quota.put.limit, until, overage: self.overage(quota), used, episode }
    }

    fn ceiling_lines(&self) -> BTreeMap<(ProjectNo, Option<AppInstanceNo>), CeilingLine> {
        let line = |scope, ceiling: &Ceiling| CeilingLine {
            put: ceiling.put.clone(),
            since: ceiling.since,
            spent: self.spent_by_ended(scope, ceiling),
            reserved: self.reserved(scope, ceiling),
        };
        self.ceilings.iter().map(|(scope, ceiling)| (*scope, line(*scope, ceiling))).collect()
    }

    fn standing_lines(&self, now: Instant) -> BTreeMap<TenantNo, StandingLine> {
        let line = |tenant: TenantNo| {
            let (factor, deficit) = self.standing(tenant, now);
            let (gpu_time, node_time, all_gpu_time) = self.spending(tenant, now);
            StandingLine { factor, deficit, gpu_time, node_time, all_gpu_time }
        };
        self.tenants.keys().map(|tenant| (*tenant, line(*tenant))).collect()
    }

    fn allocation_lines(&self) -> BTreeMap<AllocationNo, AllocationLine> {
        let line = |found: &Allocation| AllocationLine {
            tenant: found.tenant,
            project: found.project,
            state: found.state,
            submitted_at: found.submitted_at,
            attempts: found.attempts,
            held: if found.state.is_placed() { self.held_of(found).len() } else { 0 },
            bound: found.bound(),
            checkpointed: found.checkpointed,
            ends: found.ends,
            kept_on: found.reservation.iter().flat_map(Reservation::nodes).collect(),
        };
        let live = self.allocations.iter().filter(|(_, found)| !found.state.is_over());
        live.map(|(number, found)| (*number, line(found))).collect()
    }

    fn lease_lines(&self) -> BTreeMap<LeaseNo, LeaseLine> {
        let line = |lease: &crate::lease::Lease| LeaseLine {
            tenant: lease.tenant,
            project: lease.project,
            node: lease.node,
            class: lease.class,
            pool: lease.pool,
            quanta: lease.quanta,
            devices: lease.devices,
            priority: lease.priority,
            tag: lease.tag.clone(),
            granted_at: lease.granted_at,
            expires_at: lease.expires_at,
            phase: lease.phase.word(),
            ended_at: lease.billed_to.or(lease.ended_at),
            limit_at: lease.limit_at,
        };
        self.leases.iter().map(|lease| (lease.number, line(lease))).collect()
    }
}
