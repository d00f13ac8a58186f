//! The answers to lease requests: grants and denials.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{
    AllocationNo, AppInstanceNo, AttachmentNo, ClassNo, LeaseNo, NodeNo, PoolNo, ProjectNo, QuotaNo, WindowNo,
};
use crate::instant::Span;
use crate::limits::{CLASSES_PER_REQUEST_MAX, LABELS_PER_NODE_MAX, QUOTAS_PER_TENANT_MAX};
use crate::name::Name;
use crate::placement::{Profile, Weighing};
use crate::policy::{DenyCause, Priority};
use crate::quantity::Quanta;
use smallvec::SmallVec;

/// One lease of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub class: ClassNo,
    pub quanta: Quanta,
    /// The devices as a bit set; zero for kinds without devices.
    pub devices: u64,
}

/// The leases of a request; usually one to three.
pub type Members = SmallVec<[Member; 2]>;
/// The requested amounts.
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
    /// Set by the caller; if absent, it is derived from the record's sequence.
    pub correlation: Option<u128>,
    pub allocation: Option<AllocationNo>,
    pub app_instance: Option<AppInstanceNo>,
    pub attachment: Option<AttachmentNo>,
    pub source_project: Option<ProjectNo>,
    /// Soft quotas that this grant exceeded.
    pub over_soft: SmallVec<[QuotaNo; 1]>,
    /// The burst quota that shortened the TTL, if one did.
    pub capped_by: Option<QuotaNo>,
    /// The sensitivity profile of the workload, if known.
    pub profile: Option<Profile>,
    /// The weights by which the node was chosen; absent if the request named the node, and before rules version 2.
    pub weighing: Option<Weighing>,
    /// Required labels of the node. Those of a gang are in its allocation.
    pub labels: Vec<(Name, Name)>,
    /// The maintenance window that shortened the TTL, if one did.
    pub capped_by_window: Option<WindowNo>,
}

impl Granted {
    fn flags(&self) -> u64 {
        flags([
            self.sensitive,
            self.control_plane,
            self.correlation.is_some(),
            self.allocation.is_some(),
            self.app_instance.is_some(),
            self.attachment.is_some(),
            self.source_project.is_some(),
            !self.over_soft.is_empty(),
            self.capped_by.is_some(),
            self.profile.is_some(),
            self.weighing.is_some(),
            !self.labels.is_empty(),
            self.capped_by_window.is_some(),
        ])
    }
}

impl Field for Granted {
    fn put(&self, out: &mut Vec<u8>) {
        assert!((1..=CLASSES_PER_REQUEST_MAX).contains(&self.members.len()), "a grant of 1 to 16 leases");
        assert!(self.over_soft.len() <= QUOTAS_PER_TENANT_MAX, "at most as many quotas as a tenant can have");
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
        if let Some(profile) = self.profile {
            profile.put(out);
        }
        if let Some(weighing) = self.weighing {
            weighing.put(out);
        }
        if !self.labels.is_empty() {
            put_labels(&self.labels, out);
        }
        if let Some(window) = self.capped_by_window {
            window.put(out);
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::read::<true>(r)
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        Self::read::<false>(r).map(drop)
    }
}

impl Granted {
    /// Without `KEEP` the lists stay empty: their items are read and dropped.
    #[inline(always)]
    fn read<const KEEP: bool>(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
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
            profile: None,
            weighing: None,
            labels: Vec::new(),
            capped_by_window: None,
        };
        let members = r.count(CLASSES_PER_REQUEST_MAX)?;
        if members == 0 {
            return Err(DecodeError::Forbidden("a grant of nothing"));
        }
        for _ in 0..members {
            let member = Member { class: Field::get(r)?, quanta: Field::get(r)?, devices: Field::get(r)? };
            if KEEP {
                granted.members.push(member);
            }
        }
        let flags = r.varint()?;
        if flags >> 13 != 0 {
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
                let quota = Field::get(r)?;
                if KEEP {
                    granted.over_soft.push(quota);
                }
            }
        }
        if bit(8) {
            granted.capped_by = Some(Field::get(r)?);
        }
        if bit(9) {
            granted.profile = Some(Field::get(r)?);
        }
        if bit(10) {
            granted.weighing = Some(Field::get(r)?);
        }
        if bit(11) {
            granted.labels = get_labels(r)?;
        }
        if bit(12) {
            granted.capped_by_window = Some(Field::get(r)?);
        }
        Ok(granted)
    }
}

/// The other parts of a request that a decision depends on, so that a denial can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Particulars {
    pub sensitive: bool,
    /// The requested node.
    pub node: Option<NodeNo>,
    /// Required labels of the node.
    pub labels: Vec<(Name, Name)>,
    pub profile: Option<Profile>,
    pub app_instance: Option<AppInstanceNo>,
    /// The correlation ID that the caller gave. No decision depends on it; the request is found by it.
    pub correlation: Option<u128>,
}

impl Particulars {
    fn flags(&self) -> u64 {
        flags([
            self.sensitive,
            self.node.is_some(),
            !self.labels.is_empty(),
            self.profile.is_some(),
            self.app_instance.is_some(),
            self.correlation.is_some(),
        ])
    }

    /// Reads to the end of the body: an empty part takes no bytes, as in earlier versions.
    fn put(&self, out: &mut Vec<u8>) {
        let flags = self.flags();
        if flags == 0 {
            return;
        }
        put_varint(flags, out);
        if let Some(no) = self.node {
            no.put(out);
        }
        if !self.labels.is_empty() {
            put_labels(&self.labels, out);
        }
        if let Some(profile) = self.profile {
            profile.put(out);
        }
        if let Some(no) = self.app_instance {
            no.put(out);
        }
        if let Some(id) = self.correlation {
            id.put(out);
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut particulars = Self::default();
        if r.remaining() == 0 {
            return Ok(particulars);
        }
        let flags = r.varint()?;
        if flags == 0 || flags >> 6 != 0 {
            return Err(DecodeError::BadCode { field: "denial flags", code: flags });
        }
        let bit = |n: u32| flags >> n & 1 == 1;
        particulars.sensitive = bit(0);
        if bit(1) {
            particulars.node = Some(Field::get(r)?);
        }
        if bit(2) {
            particulars.labels = get_labels(r)?;
        }
        if bit(3) {
            particulars.profile = Some(Field::get(r)?);
        }
        if bit(4) {
            particulars.app_instance = Some(Field::get(r)?);
        }
        if bit(5) {
            particulars.correlation = Some(Field::get(r)?);
        }
        Ok(particulars)
    }
}

fn put_labels(labels: &[(Name, Name)], out: &mut Vec<u8>) {
    assert!(labels.len() <= LABELS_PER_NODE_MAX, "at most as many labels as a request can have");
    put_varint(labels.len() as u64, out);
    labels.iter().for_each(|label| label.put(out));
}

fn get_labels(r: &mut Reader<'_>) -> Result<Vec<(Name, Name)>, DecodeError> {
    match r.count(LABELS_PER_NODE_MAX)? {
        0 => Err(DecodeError::Forbidden("an empty list written out")),
        n => (0..n).map(|_| Field::get(r)).collect(),
    }
}

/// Which optional parts are present, one bit each, in the order they are written.
fn flags<const N: usize>(present: [bool; N]) -> u64 {
    present.into_iter().enumerate().fold(0, |flags, (bit, set)| flags | u64::from(set) << bit)
}

/// A valid request was denied (SEMANTICS 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub pool: Option<PoolNo>,
    pub asks: Asks,
    pub ttl: Span,
    pub priority: Priority,
    pub rules_version: u32,
    pub cause: DenyCause,
    pub particulars: Particulars,
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
        self.particulars.put(out);
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
            particulars: Particulars::get(r)?,
        })
    }
}
