//! What a record says, kind by kind. The table at the end is the registry of kinds.

use crate::activity::Activity;
use crate::class::ClassSpec;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::fields;
use crate::id::{
    AllocationNo, AppInstanceNo, AttachmentNo, ClassNo, LeaseNo, NodeNo, PoolNo, ProjectNo, QuotaNo, TenantNo, UserNo,
};
use crate::instant::{Instant, Span};
use crate::limits::{CLASSES_PER_REQUEST_MAX, LEASES_PER_RECORD_MAX, QUOTAS_PER_TENANT_MAX};
use crate::name::Name;
use crate::policy::{DenyCause, LimitKind, Measure, Priority, QuotaScope, Strategy, TeardownCause, TeardownMode};
use crate::quantity::Quanta;
use smallvec::SmallVec;

fields! {
    /// The first record: whose journal this is.
    pub struct Genesis {
        pub format_version: u32,
        pub origin: Name,
        pub public_key: [u8; 32],
        pub software: Name,
    }
}

fields! {
    /// The wall clock lay outside the gap that is accepted without a word from the operator.
    pub struct ClockAccepted {
        pub last_stamp: Instant,
        pub wall_clock: Instant,
    }
}

fields! {
    /// A process took over as the one writer.
    pub struct Started {
        pub epoch: u64,
        pub software: Name,
        pub rules_version: u32,
        pub clock_accepted: Option<ClockAccepted>,
    }
}

fields! {
    /// Nothing happened, and that is sealed too.
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
    /// The wall clock jumped against the monotonic one; the engine followed the latter.
    pub struct ClockJumped {
        pub wall_clock: Instant,
    }
}

fields! {
    /// The engine's own limits, sealed so that a replay has the same.
    pub struct SettingsChanged {
        pub ttl_max: Span,
        pub grace_default: Span,
        pub teardown_deadline: Span,
        pub node_timeout: Span,
        pub idempotency_window: Span,
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
    pub struct TenantPut {
        pub tenant: TenantNo,
        pub name: Name,
        pub accounting_tag: Option<Name>,
        pub max_priority: Priority,
        pub max_evicted_quanta_per_hour: Option<u64>,
    }
}
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

fields! {
    pub struct QuotaPut {
        pub quota: QuotaNo,
        pub scope: QuotaScope,
        pub measure: Measure,
        pub limit: LimitKind,
    }
}
fields! { pub struct QuotaDeleted { pub quota: QuotaNo } }

fields! {
    /// A burst quota was at or below its base for a whole `burst_ttl`: the next episode may begin.
    pub struct BurstEnded { pub quota: QuotaNo }
}

fields! {
    pub struct NodePut {
        pub node: NodeNo,
        pub name: Name,
        pub pool: PoolNo,
        pub rack: Option<Name>,
        pub zone: Option<Name>,
        pub labels: Vec<(Name, Name)>,
        pub teardown: TeardownMode,
        pub capacity: Vec<(ClassNo, Quanta)>,
    }
}
fields! { pub struct NodeDeleted { pub node: NodeNo } }
fields! { pub struct NodeDrained { pub node: NodeNo } }
fields! { pub struct NodeResumed { pub node: NodeNo } }
fields! {
    /// Declared lost; its leases end in the records that follow.
    pub struct NodeLost { pub node: NodeNo, pub last_seen: Instant }
}
fields! { pub struct NodeReturned { pub node: NodeNo } }

/// One lease of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub class: ClassNo,
    pub quanta: Quanta,
    /// Which devices, as a bit set; zero for kinds without devices.
    pub devices: u64,
}

/// The leases of a request: almost always one to three.
pub type Members = SmallVec<[Member; 2]>;
/// What was asked for.
pub type Asks = SmallVec<[(ClassNo, Quanta); 2]>;

/// Capacity was granted: lease `first_lease` for the first member, the next number for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    pub first_lease: LeaseNo,
    pub node: NodeNo,
    pub pool: PoolNo,
    /// The deadline is the record's stamp plus this.
    pub ttl: Span,
    pub priority: Priority,
    pub rules_version: u32,
    pub members: Members,
    pub sensitive: bool,
    pub control_plane: bool,
    /// Given by the caller; where absent it is made from the record's sequence.
    pub correlation: Option<u128>,
    pub allocation: Option<AllocationNo>,
    pub app_instance: Option<AppInstanceNo>,
    pub attachment: Option<AttachmentNo>,
    pub source_project: Option<ProjectNo>,
    /// Soft quotas that this grant passed.
    pub over_soft: SmallVec<[QuotaNo; 1]>,
    /// The burst quota that shortened the TTL, if one did.
    pub capped_by: Option<QuotaNo>,
}

impl Granted {
    /// Which optional parts are present, one bit each, in the order they are written.
    fn flags(&self) -> u64 {
        [
            self.sensitive,
            self.control_plane,
            self.correlation.is_some(),
            self.allocation.is_some(),
            self.app_instance.is_some(),
            self.attachment.is_some(),
            self.source_project.is_some(),
            !self.over_soft.is_empty(),
            self.capped_by.is_some(),
        ]
        .into_iter()
        .enumerate()
        .fold(0, |flags, (bit, set)| flags | u64::from(set) << bit)
    }
}

impl Field for Granted {
    fn put(&self, out: &mut Vec<u8>) {
        assert!((1..=CLASSES_PER_REQUEST_MAX).contains(&self.members.len()), "a grant of 1 to 16 leases");
        assert!(self.over_soft.len() <= QUOTAS_PER_TENANT_MAX, "more quotas than a tenant has");
        self.first_lease.put(out);
        self.node.put(out);
        self.pool.put(out);
        self.ttl.put(out);
        self.priority.put(out);
        self.rules_version.put(out);
        put_varint(self.members.len() as u64, out);
        for member in &self.members {
            member.class.put(out);
            member.quanta.put(out);
            member.devices.put(out);
        }
        put_varint(self.flags(), out);
        if let Some(id) = self.correlation {
            out.extend_from_slice(&id.to_be_bytes());
        }
        if let Some(no) = self.allocation {
            no.put(out);
        }
        if let Some(no) = self.app_instance {
            no.put(out);
        }
        if let Some(no) = self.attachment {
            no.put(out);
        }
        if let Some(no) = self.source_project {
            no.put(out);
        }
        if !self.over_soft.is_empty() {
            put_varint(self.over_soft.len() as u64, out);
            self.over_soft.iter().for_each(|quota| quota.put(out));
        }
        if let Some(no) = self.capped_by {
            no.put(out);
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut granted = Self {
            first_lease: Field::get(r)?,
            node: Field::get(r)?,
            pool: Field::get(r)?,
            ttl: Field::get(r)?,
            priority: Field::get(r)?,
            rules_version: Field::get(r)?,
            members: SmallVec::new(),
            sensitive: false,
            control_plane: false,
            correlation: None,
            allocation: None,
            app_instance: None,
            attachment: None,
            source_project: None,
            over_soft: SmallVec::new(),
            capped_by: None,
        };
        let members = r.count(CLASSES_PER_REQUEST_MAX)?;
        if members == 0 {
            return Err(DecodeError::Forbidden("a grant of nothing"));
        }
        for _ in 0..members {
            granted.members.push(Member { class: Field::get(r)?, quanta: Field::get(r)?, devices: Field::get(r)? });
        }
        let flags = r.varint()?;
        if flags >> 9 != 0 {
            return Err(DecodeError::BadCode { field: "grant flags", code: flags });
        }
        let bit = |n: u32| flags >> n & 1 == 1;
        granted.sensitive = bit(0);
        granted.control_plane = bit(1);
        if bit(2) {
            granted.correlation = Some(u128::from_be_bytes(r.array()?));
        }
        if bit(3) {
            granted.allocation = Some(Field::get(r)?);
        }
        if bit(4) {
            granted.app_instance = Some(Field::get(r)?);
        }
        if bit(5) {
            granted.attachment = Some(Field::get(r)?);
        }
        if bit(6) {
            granted.source_project = Some(Field::get(r)?);
        }
        if bit(7) {
            let n = r.count(QUOTAS_PER_TENANT_MAX)?;
            if n == 0 {
                return Err(DecodeError::Forbidden("an empty list written out"));
            }
            for _ in 0..n {
                granted.over_soft.push(Field::get(r)?);
            }
        }
        if bit(8) {
            granted.capped_by = Some(Field::get(r)?);
        }
        Ok(granted)
    }
}

/// A valid request was refused, and that is sealed (SEMANTICS 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub pool: Option<PoolNo>,
    pub asks: Asks,
    pub ttl: Span,
    pub priority: Priority,
    pub rules_version: u32,
    pub cause: DenyCause,
}

impl Field for Denied {
    fn put(&self, out: &mut Vec<u8>) {
        assert!(self.asks.len() <= CLASSES_PER_REQUEST_MAX, "a request for at most 16 classes");
        self.pool.put(out);
        put_varint(self.asks.len() as u64, out);
        for (class, quanta) in &self.asks {
            class.put(out);
            quanta.put(out);
        }
        self.ttl.put(out);
        self.priority.put(out);
        self.rules_version.put(out);
        self.cause.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let pool = Field::get(r)?;
        let n = r.count(CLASSES_PER_REQUEST_MAX)?;
        let mut asks = Asks::new();
        for _ in 0..n {
            asks.push(Field::get(r)?);
        }
        Ok(Self {
            pool,
            asks,
            ttl: Field::get(r)?,
            priority: Field::get(r)?,
            rules_version: Field::get(r)?,
            cause: Field::get(r)?,
        })
    }
}

/// Lease numbers in strictly rising order, written as distances: a thousand neighbours take a
/// thousand bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases(pub SmallVec<[LeaseNo; 2]>);

/// Begins a list of leases. What the decoder would refuse must never be sealed: no restart could
/// read it.
fn put_lease_count(n: usize, out: &mut Vec<u8>) {
    assert!((1..=LEASES_PER_RECORD_MAX).contains(&n), "a record names 1 to 1024 leases");
    put_varint(n as u64, out);
}

fn get_lease_count(r: &mut Reader<'_>) -> Result<usize, DecodeError> {
    match r.count(LEASES_PER_RECORD_MAX)? {
        0 => Err(DecodeError::Forbidden("an empty list of leases")),
        n => Ok(n),
    }
}

/// Writes the distance from `last` (exclusive) to `lease`; `None` stands before the first.
fn put_next(last: Option<LeaseNo>, lease: LeaseNo, out: &mut Vec<u8>) {
    match last {
        None => lease.put(out),
        Some(last) => {
            assert!(lease > last, "lease numbers in a record rise");
            put_varint(lease.0 - last.0 - 1, out);
        }
    }
}

fn get_next(last: Option<LeaseNo>, r: &mut Reader<'_>) -> Result<LeaseNo, DecodeError> {
    let word = r.varint()?;
    match last {
        None => Ok(LeaseNo(word)),
        Some(last) => {
            word.checked_add(1).and_then(|step| last.0.checked_add(step)).map(LeaseNo).ok_or(DecodeError::BadInteger)
        }
    }
}

impl Field for Leases {
    fn put(&self, out: &mut Vec<u8>) {
        put_lease_count(self.0.len(), out);
        let mut last = None;
        for lease in &self.0 {
            put_next(last, *lease, out);
            last = Some(*lease);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = get_lease_count(r)?;
        let mut leases = SmallVec::new();
        let mut last = None;
        for _ in 0..n {
            let lease = get_next(last, r)?;
            leases.push(lease);
            last = Some(lease);
        }
        Ok(Self(leases))
    }
}

impl FromIterator<LeaseNo> for Leases {
    fn from_iter<I: IntoIterator<Item = LeaseNo>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

/// A lease with what its holder reported, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    pub lease: LeaseNo,
    pub activity: Option<Activity>,
}

/// A lease with its new deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    pub lease: LeaseNo,
    pub expires_at: Instant,
    pub activity: Option<Activity>,
}

/// Deadlines were replaced. Written as the earliest deadline and each lease's distance from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    pub renewals: SmallVec<[Renewal; 1]>,
}

/// Whether any of the items carries activity decides if the record spends a byte on each.
fn put_activity(all: bool, activity: &Option<Activity>, out: &mut Vec<u8>) {
    if all {
        activity.put(out);
    }
}

impl Field for Renewed {
    fn put(&self, out: &mut Vec<u8>) {
        let earliest = self.renewals.iter().map(|r| r.expires_at).min();
        let earliest = earliest.expect("a renewal names at least one lease");
        let reported = self.renewals.iter().any(|r| r.activity.is_some());
        put_lease_count(self.renewals.len(), out);
        reported.put(out);
        earliest.put(out);
        let mut last = None;
        for renewal in &self.renewals {
            put_next(last, renewal.lease, out);
            last = Some(renewal.lease);
            renewal.expires_at.since(earliest).put(out);
            put_activity(reported, &renewal.activity, out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = get_lease_count(r)?;
        let reported = bool::get(r)?;
        let earliest = Instant::get(r)?;
        let mut renewals: SmallVec<[Renewal; 1]> = SmallVec::new();
        for _ in 0..n {
            let lease = get_next(renewals.last().map(|last| last.lease), r)?;
            let later = Span::get(r)?;
            let expires_at = earliest.checked_add(later).ok_or(DecodeError::BadInteger)?;
            let activity = if reported { Field::get(r)? } else { None };
            renewals.push(Renewal { lease, expires_at, activity });
        }
        if renewals.iter().all(|r| r.expires_at != earliest) {
            return Err(DecodeError::Forbidden("an earliest deadline that no lease has"));
        }
        if reported && renewals.iter().all(|r| r.activity.is_none()) {
            return Err(DecodeError::Forbidden("an activity mark without activity"));
        }
        Ok(Self { renewals })
    }
}

/// A list of leases, each with an optional report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedLeases(pub SmallVec<[Reported; 1]>);

impl ReportedLeases {
    pub fn leases(&self) -> impl Iterator<Item = LeaseNo> + '_ {
        self.0.iter().map(|r| r.lease)
    }
}

impl Field for ReportedLeases {
    fn put(&self, out: &mut Vec<u8>) {
        let reported = self.0.iter().any(|r| r.activity.is_some());
        put_lease_count(self.0.len(), out);
        reported.put(out);
        let mut last = None;
        for item in &self.0 {
            put_next(last, item.lease, out);
            last = Some(item.lease);
            put_activity(reported, &item.activity, out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = get_lease_count(r)?;
        let reported = bool::get(r)?;
        let mut items: SmallVec<[Reported; 1]> = SmallVec::new();
        for _ in 0..n {
            let lease = get_next(items.last().map(|last| last.lease), r)?;
            let activity = if reported { Field::get(r)? } else { None };
            items.push(Reported { lease, activity });
        }
        if reported && items.iter().all(|r| r.activity.is_none()) {
            return Err(DecodeError::Forbidden("an activity mark without activity"));
        }
        Ok(Self(items))
    }
}

fields! {
    /// The holder gave leases back. `closed`: the node has no agent, so they are closed at once.
    pub struct Released { pub leases: ReportedLeases, pub closed: bool }
}
fields! {
    /// Deadlines passed; the record's effective instant is the deadline they shared.
    pub struct Expired { pub leases: Leases, pub closed: bool }
}
fields! {
    /// The reason stands in the record's head. The holder has `grace` to get ready.
    pub struct Revoked { pub leases: Leases, pub grace: Span }
}
fields! {
    /// After a revocation: billing stops at the record's effective instant.
    pub struct TeardownStarted { pub leases: Leases, pub cause: TeardownCause, pub closed: bool }
}
fields! {
    /// The node confirmed: the capacity is back in the pool.
    pub struct TornDown { pub node: NodeNo, pub leases: Leases }
}
fields! {
    /// Teardown was not confirmed in time: the capacity is lost until an operator acts.
    pub struct Fenced { pub leases: Leases }
}
fields! {
    /// An operator vouches that the capacity is clean.
    pub struct Unfenced { pub leases: Leases }
}
fields! {
    pub struct ActivityReported { pub leases: ReportedLeases }
}
fields! {
    /// A decision to evict. Its requester's grant and its victims' revocations cite it by sequence.
    pub struct Preempted { pub node: NodeNo, pub priority: Priority, pub rules_version: u32, pub victims: Leases }
}

macro_rules! kinds {
    ($($code:literal $word:literal $kind:ident,)*) => {
        /// The typed body of a record.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $($kind($kind),)*
            /// A kind of a later version: checked by hash, shown as bytes, refused by an engine.
            Unknown { kind: u32, bytes: Vec<u8> },
        }

        impl Body {
            /// Every kind with its code and its word.
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
                        assert!(!known, "bytes of a known kind passed off as unknown");
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
    30 "node.put" NodePut,
    31 "node.deleted" NodeDeleted,
    32 "node.drained" NodeDrained,
    33 "node.resumed" NodeResumed,
    34 "node.lost" NodeLost,
    35 "node.returned" NodeReturned,
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
}
