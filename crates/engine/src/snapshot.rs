//! Encoding and decoding of snapshots, which a restart loads instead of replaying the whole journal.
//!
//! Only what cannot be derived is written, in order of number; counters, lists and timers are rebuilt. Equal states
//! have equal bytes, so two states can be compared by their snapshots.

mod allocations;
mod apps;
mod ceilings;
mod consistency;
mod custody;
mod gone;
mod keys;
mod ledger;
mod losses;
mod prepaid;
mod sinks;
mod usage;
mod windows;

use crate::budget::Spent;
use crate::heat::Heat;
use crate::holder::Named;
use crate::lease::{Lease, NONE, Phase};
use crate::node::{Agent, Condition, Node, NodeClass};
use crate::overage::{OVERAGE_MAX, Overage};
use crate::quota::{Episode, Quota};
use crate::rate::{ChargePolicy, RateCard};
use crate::state::{GONE_KEPT, Pool, Project, State, Tenant, User, class_no, entry, entry_mut};
use crate::token::{Token, Tokens};
use leasehold_model::body::QuotaPut;
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::limits::CLASSES_PER_NODE_MAX;
use leasehold_model::rate::Prices;
use leasehold_model::{
    Instant, LimitKind, Name, NodeNo, ProjectNo, Quanta, QuotaNo, TemporaryLimit, TenantNo, TenantSettings, TokenNo,
};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// The version of the encoding. A snapshot of another version is discarded and rebuilt.
const SNAPSHOT_VERSION: u32 = 27;

/// The smallest size of an encoded lease. It limits how much memory a forged count can make a reader allocate.
const LEASE_BYTES_MIN: usize = 60;

/// Why bytes are not a snapshot of this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadSnapshot {
    OtherVersion(u32),
    Decode(DecodeError),
    Inconsistent(&'static str),
}

impl fmt::Display for BadSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherVersion(version) => write!(f, "the snapshot has version {version}, expected {SNAPSHOT_VERSION}"),
            Self::Decode(error) => write!(f, "the snapshot cannot be decoded: {error}"),
            Self::Inconsistent(what) => write!(f, "the snapshot is inconsistent: {what}"),
        }
    }
}
impl std::error::Error for BadSnapshot {}

impl From<DecodeError> for BadSnapshot {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Encodes a table row by row. A deleted row is a zero byte.
fn put_table<T>(table: &[Option<T>], out: &mut Vec<u8>, mut row: impl FnMut(&T, &mut Vec<u8>)) {
    put_varint(table.len() as u64, out);
    for entry in table {
        out.push(u8::from(entry.is_some()));
        if let Some(value) = entry {
            row(value, out);
        }
    }
}

fn get_table<T>(
    r: &mut Reader<'_>,
    mut row: impl FnMut(u32, &mut Reader<'_>) -> Result<T, BadSnapshot>,
) -> Result<Vec<Option<T>>, BadSnapshot> {
    let n = r.count(usize::MAX)?;
    // A row needs more memory than its bytes: a forged count must not allocate all of that in advance.
    let mut table = Vec::with_capacity(n.min(1 << 16));
    for index in 0..n {
        let number = u32::try_from(index).map_err(|_| BadSnapshot::Inconsistent("a table is too long"))?;
        table.push(if bool::get(r)? { Some(row(number, r)?) } else { None });
    }
    Ok(table)
}

impl State {
    /// The canonical encoding of the whole state.
    pub fn to_snapshot(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.leases.len() * 72 + self.idempotency_keys.len() * 32);
        SNAPSHOT_VERSION.put(&mut out);
        self.size.put(&mut out);
        self.last_stamp.put(&mut out);
        self.origin.put(&mut out);
        self.public_key.put(&mut out);
        self.epoch.put(&mut out);
        self.rules_version.put(&mut out);
        self.settings.put(&mut out);
        put_varint(self.tags.len() as u64, &mut out);
        self.tags.iter().for_each(|tag| tag.put(&mut out));
        self.next_lease.put(&mut out);
        put_table(&self.classes, &mut out, |class, out| class.put(out));
        (0u32..).zip(&self.classes).for_each(|(number, _)| self.was_leased(class_no(number)).put(&mut out));
        put_table(&self.tenants, &mut out, put_tenant);
        put_table(&self.projects, &mut out, |p, out| ((p.tenant, p.name.clone()), p.last_use).put(out));
        put_table(&self.users, &mut out, |u, out| (u.tenant, u.name.clone()).put(out));
        put_table(&self.pools, &mut out, put_pool);
        put_table(&self.nodes, &mut out, put_node);
        put_table(&self.windows, &mut out, windows::put);
        losses::put(&self.open_losses, &mut out);
        put_table(&self.quotas, &mut out, put_quota);
        put_table(self.tokens.rows(), &mut out, |token, out| put_token(token, out));
        apps::put(&self.apps, &mut out);
        put_table(&self.rate_cards, &mut out, put_rate_card);
        put_table(&self.charge_policies, &mut out, put_charge_policy);
        put_varint(self.leases.len() as u64, &mut out);
        for lease in self.leases.in_order() {
            put_lease(lease, &mut out);
        }
        ceilings::put(&self.ceilings, &mut out);
        self.gpu_time.put(&mut out);
        self.core_time.put(&mut out);
        put_varint(self.pool_access.0.len() as u64, &mut out);
        for ((project, pool), access) in &self.pool_access.0 {
            project.put(&mut out);
            pool.put(&mut out);
            access.put(&mut out);
        }
        put_table(&self.gone, &mut out, gone::put);
        allocations::put(&self.allocations, &mut out);
        ledger::put(&self.ledger, &mut out);
        prepaid::put(&self.prepaids, &mut out);
        usage::put(self, &mut out);
        sinks::put(&self.sinks, &mut out);
        keys::put(&self.idempotency_keys, &mut out);
        out
    }

    /// The SHA-256 hash of the snapshot. Two states are equal if their digests are.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_snapshot()).into()
    }

    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, BadSnapshot> {
        let mut r = Reader::new(bytes);
        let version = u32::get(&mut r)?;
        if version != SNAPSHOT_VERSION {
            return Err(BadSnapshot::OtherVersion(version));
        }
        let mut state = Self {
            size: Field::get(&mut r)?,
            last_stamp: Field::get(&mut r)?,
            origin: Field::get(&mut r)?,
            public_key: Field::get(&mut r)?,
            epoch: Field::get(&mut r)?,
            rules_version: Field::get(&mut r)?,
            settings: Field::get(&mut r)?,
            ..Self::default()
        };
        let r = &mut r;
        for _ in 0..r.count(usize::MAX)? {
            state.tags.push(Field::get(r)?);
        }
        state.next_lease = Field::get(r)?;
        state.classes = get_table(r, |_, r| Ok(Field::get(r)?))?;
        state.check_classes()?;
        for _ in 0..state.classes.len() {
            state.leased.push(Field::get(r)?);
        }
        state.tenants = get_table(r, |no, r| get_tenant(TenantNo(no), &state.tags, r))?;
        state.projects = get_table(r, |_, r| {
            let ((tenant, name), last_use) = Field::get(r)?;
            Ok(Project { tenant, name, leases: 0, last_use })
        })?;
        state.users = get_table(r, |_, r| {
            let (tenant, name) = Field::get(r)?;
            Ok(User { tenant, name })
        })?;
        state.pools = get_table(r, |_, r| get_pool(r))?;
        state.nodes = get_table(r, |no, r| state.get_node(NodeNo(no), r))?;
        state.windows = get_table(r, windows::get)?;
        state.open_losses = losses::get(state.size, r)?;
        state.quotas = get_table(r, |no, r| get_quota(QuotaNo(no), r))?;
        let tokens = get_table(r, |no, r| get_token(TokenNo(no), r).map(Box::new))?;
        state.check_tokens(&tokens)?;
        state.tokens = Tokens::restore(tokens).map_err(BadSnapshot::Inconsistent)?;
        state.apps = apps::get(&state, r)?;
        state.rate_cards = get_table(r, get_rate_card)?;
        state.charge_policies = get_table(r, get_charge_policy)?;
        state.check_rates()?;
        state.rebuild_names();
        state.check_names()?;
        state.check_tenancy()?;
        state.check_nodes()?;
        state.rebuild_tenant_quotas()?;
        if !state.counts_in_right_parts() {
            return Err(BadSnapshot::Inconsistent("a quota that counts in wrong parts of a unit"));
        }
        state.check_custody()?;
        state.restore_windows()?;
        state.rebuild_claims();
        let mut last = None;
        let leases = r.count(usize::MAX)?;
        state.leases.reserve(leases.min(r.remaining() / LEASE_BYTES_MIN));
        for _ in 0..leases {
            let lease = get_lease(r)?;
            state.check_lease(last, &lease)?;
            last = Some(lease.number);
            state.restore_lease(lease);
        }
        state.check_leased()?;
        ceilings::get(&mut state, r)?;
        state.count_leases_in_quotas();
        state.count_claims_in_quotas();
        state.gpu_time = Field::get(r)?;
        state.core_time = Field::get(r)?;
        for _ in 0..r.count(usize::MAX)? {
            let (project, pool) = (Field::get(r)?, Field::get(r)?);
            state.pool_access.set(project, pool, Field::get(r)?);
        }
        if !state.meters_are_sound() {
            return Err(BadSnapshot::Inconsistent("usage is counted for leases that do not exist"));
        }
        state.gone = get_table(r, |_, r| gone::get(r))?;
        if !(state.gone.is_empty() || state.gone.len() == GONE_KEPT) {
            return Err(BadSnapshot::Inconsistent("the list of closed leases has the wrong length"));
        }
        allocations::get(&mut state, r)?;
        state.ledger = ledger::get(state.size, r)?;
        prepaid::get(&mut state, r)?;
        usage::get(&mut state, r)?;
        state.sinks = sinks::get(r)?;
        keys::get(&mut state, r)?;
        r.finish()?;
        state.count_pool_nodes();
        state.rebuild_queue();
        Ok(state)
    }

    fn rebuild_names(&mut self) {
        let names = &mut self.names;
        fn listed<T>(table: &[Option<T>]) -> impl Iterator<Item = (u32, &T)> {
            (0u32..).zip(table).filter_map(|(no, row)| Some((no, row.as_ref()?)))
        }
        names.tenants = listed(&self.tenants).map(|(no, t)| (t.settings.name.clone(), no)).collect();
        names.projects = listed(&self.projects).map(|(no, p)| ((p.tenant, p.name.clone()), no)).collect();
        names.users = listed(&self.users).map(|(no, u)| ((u.tenant, u.name.clone()), no)).collect();
        names.pools = listed(&self.pools).map(|(no, p)| (p.name.clone(), no)).collect();
        names.classes = listed(&self.classes).map(|(no, c)| (c.name.clone(), no)).collect();
        names.nodes = listed(&self.nodes).map(|(no, n)| (n.name.clone(), no)).collect();
    }

    fn rebuild_tenant_quotas(&mut self) -> Result<(), BadSnapshot> {
        for quota in self.quotas.iter().flatten() {
            let tenant = entry_mut(&mut self.tenants, quota.scope.tenant.0);
            tenant.ok_or(BadSnapshot::Inconsistent("a quota without a tenant"))?.quotas.push(quota.number);
        }
        Ok(())
    }

    /// Counts all leases in the quotas. The app instances of leases must be decoded already.
    fn count_leases_in_quotas(&mut self) {
        for lease in self.leases.in_any_order().filter(|lease| lease.phase != Phase::Fenced) {
            if self.is_counted_by_claim(lease) {
                continue;
            }
            let tenant = entry(&self.tenants, lease.tenant.0).expect("it was checked before");
            if tenant.quotas.is_empty() {
                continue;
            }
            let facts = self.facts_of(lease);
            for quota in &tenant.quotas {
                let quota = entry_mut(&mut self.quotas, quota.0).expect("a listed quota exists");
                quota.tally(lease, &facts, true);
            }
        }
    }

    fn restore_lease(&mut self, lease: Lease) {
        let tenant = entry_mut(&mut self.tenants, lease.tenant.0).expect("it was checked before");
        tenant.leases += 1;
        entry_mut(&mut self.projects, lease.project.0).expect("it was checked before").leases += 1;
        if lease.payer != lease.project {
            entry_mut(&mut self.projects, lease.payer.0).expect("it was checked before").leases += 1;
        }
        let node = entry_mut(&mut self.nodes, lease.node.0).expect("it was checked before");
        let class = node.class_mut(lease.class);
        match lease.phase {
            Phase::Fenced => class.fenced += lease.quanta.0,
            phase if phase.is_held() => {
                class.held += lease.quanta.0;
            }
            _ => class.tearing_down += lease.quanta.0,
        }
        class.occupy_devices(lease.devices, lease.quanta, true);
        if lease.phase == Phase::Revoking || lease.phase.is_tearing_down() {
            self.count_ending(lease.node, true);
        }
        if lease.phase.is_held() {
            self.follow_lifetime(&lease);
        }
        let slot = self.leases.insert(lease);
        self.chain_to_node(slot);
    }

    fn count_pool_nodes(&mut self) {
        for node in self.nodes.iter().flatten() {
            let pool = entry_mut(&mut self.pools, node.pool.0).expect("it was checked before");
            pool.nodes += 1;
            pool.gpu_nodes += u32::from(node.has_gpus());
        }
    }

    /// Decodes a node without its leases. The classes must be decoded already.
    fn get_node(&self, number: NodeNo, r: &mut Reader<'_>) -> Result<Node, BadSnapshot> {
        let mut node = Node::new(number, Field::get(r)?, Field::get(r)?);
        node.rack = Field::get(r)?;
        node.zone = Field::get(r)?;
        node.labels = Field::get(r)?;
        node.teardown = Field::get(r)?;
        node.drained = Field::get(r)?;
        node.drain_reason = Field::get(r)?;
        node.lost = Field::get(r)?;
        node.custody = custody::get(r)?;
        node.last_generation = Field::get(r)?;
        // A registered agent always has the last generation.
        let instance: Option<u128> = Field::get(r)?;
        node.agent = instance.map(|instance| Agent { generation: node.last_generation, instance });
        node.condition = Condition { load: Field::get(r)?, errors: Field::get(r)?, throttled: Field::get(r)? };
        node.heat = Heat { level: Field::get(r)?, step: Field::get(r)?, floor: Field::get(r)? };
        node.fenced_at = Field::get(r)?;
        node.claim_counted_since = Field::get(r)?;
        node.last_end = Field::get(r)?;
        node.last_sign = Field::get(r)?;
        node.empty_noted = Field::get(r)?;
        for _ in 0..r.count(CLASSES_PER_NODE_MAX)? {
            let (class, capacity, per_device) = (Field::get(r)?, Quanta::get(r)?, u64::get(r)?);
            self.check_capacity(node.classes.last().map(|c| c.class), class, capacity.0, per_device)?;
            node.classes.push(NodeClass::new(class, capacity, (per_device > 0).then_some(per_device)));
        }
        Ok(node)
    }
}

fn put_tenant(t: &Tenant, out: &mut Vec<u8>) {
    // With their length in front, because fields may be added to the end of the settings later.
    let settings = t.settings.to_bytes();
    put_varint(settings.len() as u64, out);
    out.extend_from_slice(&settings);
    // All evictions of an hour, which may be more than fit into one record.
    put_varint(t.evictions.len() as u64, out);
    t.evictions.iter().for_each(|eviction| eviction.put(out));
    t.budgets.put(out);
    t.spent.put(out);
}

fn get_tenant(number: TenantNo, tags: &[Name], r: &mut Reader<'_>) -> Result<Tenant, BadSnapshot> {
    let length = r.count(usize::MAX)?;
    let settings = TenantSettings::from_bytes(r.take(length)?)?;
    let tag = settings.accounting_tag.as_ref().map(|tag| {
        let index = tags.iter().position(|known| known == tag).and_then(|index| u32::try_from(index).ok());
        index.ok_or(BadSnapshot::Inconsistent("a tenant with a tag that is not in the list"))
    });
    let evictions = (0..r.count(usize::MAX)?).map(|_| Field::get(r)).collect::<Result<Vec<_>, _>>()?;
    let (budgets, spent) = (Field::get(r)?, Box::new(Spent::get(r)?));
    Ok(Tenant { number, settings, tag: tag.transpose()?, quotas: Vec::new(), leases: 0, evictions, budgets, spent })
}

fn put_pool(p: &Pool, out: &mut Vec<u8>) {
    p.name.put(out);
    p.strategy.put(out);
    p.ttl_max.put(out);
    p.lifetime_max.put(out);
    p.grace.put(out);
    p.weights.put(out);
    p.queue.put(out);
}

fn get_pool(r: &mut Reader<'_>) -> Result<Pool, BadSnapshot> {
    Ok(Pool {
        name: Field::get(r)?,
        strategy: Field::get(r)?,
        ttl_max: Field::get(r)?,
        lifetime_max: Field::get(r)?,
        grace: Field::get(r)?,
        weights: Field::get(r)?,
        queue: Field::get(r)?,
        nodes: 0,
        gpu_nodes: 0,
    })
}

fn put_node(n: &Node, out: &mut Vec<u8>) {
    n.name.put(out);
    n.pool.put(out);
    n.rack.put(out);
    n.zone.put(out);
    n.labels.put(out);
    n.teardown.put(out);
    n.drained.put(out);
    n.drain_reason.put(out);
    n.lost.put(out);
    custody::put(n.custody, out);
    n.last_generation.put(out);
    n.agent.map(|agent| agent.instance).put(out);
    n.condition.load.put(out);
    n.condition.errors.put(out);
    n.condition.throttled.put(out);
    n.heat.level.put(out);
    n.heat.step.put(out);
    n.heat.floor.put(out);
    n.fenced_at.put(out);
    n.claim_counted_since.put(out);
    n.last_end.put(out);
    n.last_sign.put(out);
    n.empty_noted.put(out);
    put_varint(n.classes.len() as u64, out);
    for class in &n.classes {
        class.class.put(out);
        class.capacity.put(out);
        class.per_device.put(out);
    }
}

fn put_token(t: &Token, out: &mut Vec<u8>) {
    t.name.put(out);
    t.hash.put(out);
    t.role.put(out);
    t.scope.put(out);
    t.expires_at.put(out);
}

fn get_token(number: TokenNo, r: &mut Reader<'_>) -> Result<Token, BadSnapshot> {
    Ok(Token {
        number,
        name: Field::get(r)?,
        hash: Field::get(r)?,
        role: Field::get(r)?,
        scope: Field::get(r)?,
        expires_at: Field::get(r)?,
    })
}

fn put_rate_card(c: &RateCard, out: &mut Vec<u8>) {
    c.pool.put(out);
    c.from.put(out);
    // With their length in front, because fields may be added to the end of prices later.
    let prices = c.prices.to_bytes();
    put_varint(prices.len() as u64, out);
    out.extend_from_slice(&prices);
    c.set_at.put(out);
}

fn get_rate_card(number: u32, r: &mut Reader<'_>) -> Result<RateCard, BadSnapshot> {
    let (pool, from) = (Field::get(r)?, Field::get(r)?);
    let length = r.count(usize::MAX)?;
    let prices = Prices::from_bytes(r.take(length)?)?;
    Ok(RateCard { number, pool, from, prices, set_at: Field::get(r)? })
}

fn put_charge_policy(p: &ChargePolicy, out: &mut Vec<u8>) {
    p.from.put(out);
    p.charges.put(out);
    p.set_at.put(out);
}

fn get_charge_policy(number: u32, r: &mut Reader<'_>) -> Result<ChargePolicy, BadSnapshot> {
    Ok(ChargePolicy { number, from: Field::get(r)?, charges: Field::get(r)?, set_at: Field::get(r)? })
}

fn put_quota(q: &Quota, out: &mut Vec<u8>) {
    q.scope.put(out);
    q.measure.put(out);
    q.base().put(out);
    q.temporary.map(|temporary| (q.limit, temporary.until)).put(out);
    q.evict_own_lower.put(out);
    q.episode.map(|e| (e.started_at, e.below_since)).put(out);
    q.per_unit.put(out);
    q.overage.sum.put(out);
    q.overage.since.put(out);
    q.marks.minute.put(out);
    put_varint(q.marks.used.len() as u64, out);
    for ((user, app_instance), used) in &q.marks.used {
        user.put(out);
        app_instance.put(out);
        used.put(out);
    }
}

fn get_quota(number: QuotaNo, r: &mut Reader<'_>) -> Result<Quota, BadSnapshot> {
    let (scope, measure, limit) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
    let temporary: Option<(LimitKind, Instant)> = Field::get(r)?;
    let temporary = temporary.map(|(limit, until)| TemporaryLimit { limit, until });
    let evict_own_lower = Field::get(r)?;
    let mut quota = Quota::new(&QuotaPut { quota: number, scope, measure, limit, temporary, evict_own_lower });
    let episode: Option<(Instant, Option<Instant>)> = Field::get(r)?;
    quota.episode = episode.map(|(started_at, below_since)| Episode { started_at, below_since });
    quota.per_unit = Field::get(r)?;
    quota.overage = Overage { sum: Field::get(r)?, since: Field::get(r)? };
    if quota.overage.sum >= OVERAGE_MAX {
        return Err(BadSnapshot::Inconsistent("more use beyond a soft limit than there can be"));
    }
    quota.marks.minute = Field::get(r)?;
    for _ in 0..r.count(usize::MAX)? {
        quota.marks.used.insert((Field::get(r)?, Field::get(r)?), Field::get(r)?);
    }
    Ok(quota)
}

/// Encodes a lease without its timer and its neighbours on the node, which are derived.
fn put_lease(l: &Lease, out: &mut Vec<u8>) {
    l.number.put(out);
    (l.number.0 - l.gang.0).put(out);
    l.gang_len.put(out);
    l.quanta.put(out);
    l.devices.put(out);
    l.granted_at.put(out);
    l.expires_at.put(out);
    l.ended_at.put(out);
    l.limit_at.put(out);
    l.grace.put(out);
    l.reported_to.put(out);
    l.tenant.put(out);
    l.project.put(out);
    l.user.put(out);
    l.node.put(out);
    l.pool.put(out);
    l.tag.put(out);
    l.class.put(out);
    l.phase.put(out);
    l.priority.put(out);
    l.sensitive.put(out);
    l.over_soft.put(out);
    l.counts_cores.put(out);
    l.of.put(out);
    l.crowd.put(out);
    l.request.put(out);
    l.workload().cloned().put(out);
    l.named.as_ref().and_then(|named| named.correlation).put(out);
    (l.payer != l.project).then_some(l.payer).put(out);
}

fn get_lease(r: &mut Reader<'_>) -> Result<Lease, BadSnapshot> {
    let number = leasehold_model::LeaseNo::get(r)?;
    let gang = number
        .0
        .checked_sub(u64::get(r)?)
        .ok_or(BadSnapshot::Inconsistent("a gang that begins after one of its members"))?;
    let mut lease = Lease {
        number,
        gang: leasehold_model::LeaseNo(gang),
        gang_len: Field::get(r)?,
        quanta: Field::get(r)?,
        devices: Field::get(r)?,
        granted_at: Field::get(r)?,
        expires_at: Field::get(r)?,
        ended_at: Field::get(r)?,
        limit_at: Field::get(r)?,
        grace: Field::get(r)?,
        reported_to: Field::get(r)?,
        tenant: Field::get(r)?,
        project: Field::get(r)?,
        payer: ProjectNo(0),
        user: Field::get(r)?,
        node: Field::get(r)?,
        pool: Field::get(r)?,
        tag: Field::get(r)?,
        class: Field::get(r)?,
        phase: Field::get(r)?,
        priority: Field::get(r)?,
        sensitive: Field::get(r)?,
        over_soft: Field::get(r)?,
        counts_cores: Field::get(r)?,
        of: Field::get(r)?,
        crowd: Field::get(r)?,
        node_next: NONE,
        node_prev: NONE,
        request: Field::get(r)?,
        named: None,
    };
    let named = Named { workload: Field::get(r)?, correlation: Field::get(r)? };
    lease.named = (named != Named::default()).then(|| Arc::new(named));
    let lent_by = Option::<ProjectNo>::get(r)?;
    if lent_by == Some(lease.project) {
        return Err(BadSnapshot::Inconsistent("a lease that its own project lends"));
    }
    lease.payer = lent_by.unwrap_or(lease.project);
    Ok(lease)
}
