//! What a quota counts and how much it allows (SEMANTICS 4 and 11).

use crate::class::ResourceKind;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{AppInstanceNo, ClassNo, NodeNo, PoolNo, ProjectNo, QuotaNo, TenantNo, UserNo};
use crate::instant::{Instant, Span};
use crate::policy::{Measure, Priority};

/// The nodes that a quota covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeScope {
    /// All nodes together.
    All,
    /// One node.
    One(NodeNo),
    /// Each node separately.
    Each,
}

impl Field for NodeScope {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::All => out.push(0),
            Self::One(node) => {
                out.push(1);
                node.put(out);
            }
            Self::Each => out.push(2),
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            0 => Self::All,
            1 => Self::One(Field::get(r)?),
            2 => Self::Each,
            code => {
                return Err(DecodeError::BadCode { field: "node scope", code: u64::from(code) });
            }
        })
    }
}

/// The users or app instances that a quota covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderScope<T> {
    /// This one.
    One(T),
    /// Each one separately.
    Each,
}

impl<T: Copy + PartialEq> HolderScope<T> {
    /// Whether the work of `holder` counts.
    pub fn covers(self, holder: T) -> bool {
        match self {
            Self::One(one) => one == holder,
            Self::Each => true,
        }
    }
}

impl<T: Field> Field for HolderScope<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Each => out.push(0),
            Self::One(holder) => {
                out.push(1);
                holder.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            0 => Self::Each,
            1 => Self::One(T::get(r)?),
            code => return Err(DecodeError::BadCode { field: "holder scope", code: u64::from(code) }),
        })
    }
}

/// The scope of a quota; absent parts match everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaScope {
    pub tenant: TenantNo,
    pub project: Option<ProjectNo>,
    pub class: Option<ClassNo>,
    pub pool: Option<PoolNo>,
    pub node: NodeScope,
    pub priority: Option<Priority>,
    pub further: FurtherScope,
}

impl QuotaScope {
    /// The whole tenant.
    pub const fn of_tenant(tenant: TenantNo) -> Self {
        Self {
            tenant,
            project: None,
            class: None,
            pool: None,
            node: NodeScope::All,
            priority: None,
            further: FurtherScope::NONE,
        }
    }

    /// Whether work of this priority counts.
    pub fn covers_priority(&self, priority: Priority) -> bool {
        match self.priority {
            None => true,
            Some(from) if self.further.and_above => priority >= from,
            Some(only) => priority == only,
        }
    }

    fn put_first_part(&self, out: &mut Vec<u8>) {
        self.tenant.put(out);
        self.project.put(out);
        self.class.put(out);
        self.pool.put(out);
        self.node.put(out);
        self.priority.put(out);
    }

    fn get_first_part(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            tenant: Field::get(r)?,
            project: Field::get(r)?,
            class: Field::get(r)?,
            pool: Field::get(r)?,
            node: Field::get(r)?,
            priority: Field::get(r)?,
            further: FurtherScope::NONE,
        })
    }
}

/// With the further parts, as commands and snapshots have it. The record has them at its end; see [`QuotaPut`].
impl Field for QuotaScope {
    fn put(&self, out: &mut Vec<u8>) {
        self.put_first_part(out);
        put_varint(self.further.bits(), out);
        self.further.put_parts(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut scope = Self::get_first_part(r)?;
        let bits = r.varint()?;
        if bits & !FURTHER_BITS != 0 {
            return Err(DecodeError::BadCode { field: "quota scope", code: bits });
        }
        scope.further = FurtherScope::get_parts(bits, r)?;
        Ok(scope)
    }
}

/// The parts of a scope that were added with rules version 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherScope {
    /// All classes of this kind together, in billing units.
    pub kind: Option<ResourceKind>,
    pub user: Option<HolderScope<UserNo>>,
    pub app_instance: Option<HolderScope<AppInstanceNo>>,
    /// Whether higher priorities than the named one count too.
    pub and_above: bool,
}

const KIND: u64 = 1;
const USER: u64 = 2;
const APP_INSTANCE: u64 = 4;
const AND_ABOVE: u64 = 8;
const FURTHER_BITS: u64 = KIND | USER | APP_INSTANCE | AND_ABOVE;
const TEMPORARY: u64 = 16;
const EVICT_OWN_LOWER: u64 = 32;

impl FurtherScope {
    pub const NONE: Self = Self { kind: None, user: None, app_instance: None, and_above: false };

    /// Whether it counts each user, or each app instance, separately.
    pub fn is_per_holder(&self) -> bool {
        self.user == Some(HolderScope::Each) || self.app_instance == Some(HolderScope::Each)
    }

    /// Whether it counts by user or by app instance, so that requests must name them.
    pub const fn counts_by_holder(&self) -> bool {
        self.user.is_some() || self.app_instance.is_some()
    }

    fn bits(&self) -> u64 {
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        bit(self.kind.is_some(), KIND)
            | bit(self.user.is_some(), USER)
            | bit(self.app_instance.is_some(), APP_INSTANCE)
            | bit(self.and_above, AND_ABOVE)
    }

    fn put_parts(&self, out: &mut Vec<u8>) {
        if let Some(kind) = self.kind {
            kind.put(out);
        }
        if let Some(user) = self.user {
            user.put(out);
        }
        if let Some(app_instance) = self.app_instance {
            app_instance.put(out);
        }
    }

    fn get_parts(bits: u64, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        fn part<T: Field>(is_set: bool, r: &mut Reader<'_>) -> Result<Option<T>, DecodeError> {
            if is_set { T::get(r).map(Some) } else { Ok(None) }
        }
        Ok(Self {
            kind: part(bits & KIND != 0, r)?,
            user: part(bits & USER != 0, r)?,
            app_instance: part(bits & APP_INSTANCE != 0, r)?,
            and_above: bits & AND_ABOVE != 0,
        })
    }
}

/// The kind of a limit (SEMANTICS 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// Requests beyond the limit are denied.
    Hard { limit: u64 },
    /// Requests beyond the limit are granted, marked and counted.
    Soft { limit: u64 },
    /// Up to `burst_limit` for the time `burst_ttl`.
    Burst { limit: u64, burst_limit: u64, burst_ttl: Span },
}

impl LimitKind {
    /// The base limit.
    pub const fn limit(self) -> u64 {
        match self {
            Self::Hard { limit } | Self::Soft { limit } | Self::Burst { limit, .. } => limit,
        }
    }
    /// The most that can be held under it: the burst limit, or else the limit.
    pub const fn highest(self) -> u64 {
        match self {
            Self::Hard { limit } | Self::Soft { limit } => limit,
            Self::Burst { burst_limit, .. } => burst_limit,
        }
    }
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hard { .. } => "hard",
            Self::Soft { .. } => "soft",
            Self::Burst { .. } => "burst",
        }
    }
}

impl Field for LimitKind {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Hard { limit } => {
                out.push(1);
                limit.put(out);
            }
            Self::Soft { limit } => {
                out.push(2);
                limit.put(out);
            }
            Self::Burst { limit, burst_limit, burst_ttl } => {
                out.push(3);
                limit.put(out);
                burst_limit.put(out);
                burst_ttl.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::Hard { limit: Field::get(r)? },
            2 => Self::Soft { limit: Field::get(r)? },
            3 => Self::Burst { limit: Field::get(r)?, burst_limit: Field::get(r)?, burst_ttl: Field::get(r)? },
            code => {
                return Err(DecodeError::BadCode { field: "limit", code: u64::from(code) });
            }
        })
    }
}

/// A limit that replaces the base limit of a quota until an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemporaryLimit {
    pub limit: LimitKind,
    pub until: Instant,
}

impl Field for TemporaryLimit {
    fn put(&self, out: &mut Vec<u8>) {
        self.limit.put(out);
        self.until.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { limit: Field::get(r)?, until: Field::get(r)? })
    }
}

/// A quota from now on.
///
/// The further parts of the scope and the temporary limit are encoded at the end, after a varint with a bit for each and
/// one for `evict_own_lower`; the varint is absent if none is set (as in [`crate::fields`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPut {
    pub quota: QuotaNo,
    pub scope: QuotaScope,
    pub measure: Measure,
    /// The base limit.
    pub limit: LimitKind,
    pub temporary: Option<TemporaryLimit>,
    /// Whether a request that fails on this quota alone may evict leases of lower priority that the quota counts.
    pub evict_own_lower: bool,
}

impl Field for QuotaPut {
    fn put(&self, out: &mut Vec<u8>) {
        self.quota.put(out);
        self.scope.put_first_part(out);
        self.measure.put(out);
        self.limit.put(out);
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        let bits = self.scope.further.bits()
            | bit(self.temporary.is_some(), TEMPORARY)
            | bit(self.evict_own_lower, EVICT_OWN_LOWER);
        if bits != 0 {
            put_varint(bits, out);
        }
        self.scope.further.put_parts(out);
        if let Some(temporary) = &self.temporary {
            temporary.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let quota = Field::get(r)?;
        let mut scope = QuotaScope::get_first_part(r)?;
        let (measure, limit) = (Field::get(r)?, Field::get(r)?);
        let bits = r.added(FURTHER_BITS | TEMPORARY | EVICT_OWN_LOWER)?;
        scope.further = FurtherScope::get_parts(bits, r)?;
        let temporary = if bits & TEMPORARY == 0 { None } else { Some(Field::get(r)?) };
        let evict_own_lower = bits & EVICT_OWN_LOWER != 0;
        Ok(Self { quota, scope, measure, limit, temporary, evict_own_lower })
    }
}
