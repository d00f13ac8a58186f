//! A record: its head, which all kinds have in common, and its body.

use crate::body::Body;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{ProjectNo, TenantNo, TokenNo, UserNo};
use crate::instant::{Instant, Span};
use crate::limits::{IDEMPOTENCY_KEY_BYTES_MAX, SIGNERS_MAX};
use crate::name::Name;
use crate::policy::Reason;
use smallvec::SmallVec;

/// SHA-256 of a record's bytes.
pub type Hash = [u8; 32];

/// On whose behalf a request was made, for which workload, and with which token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub tenant: Option<TenantNo>,
    pub project: Option<ProjectNo>,
    pub user: Option<UserNo>,
    pub workload: Option<Name>,
    pub token: Option<TokenNo>,
}

/// The bytes of an idempotency key, stored inline because every command carries one.
#[derive(Clone, Copy)]
pub struct Key {
    len: u8,
    bytes: [u8; IDEMPOTENCY_KEY_BYTES_MAX],
}

impl Key {
    /// `None` if there are none, or more than 64.
    pub fn new(key: &[u8]) -> Option<Self> {
        if key.is_empty() {
            return None;
        }
        let mut bytes = [0; IDEMPOTENCY_KEY_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { len: u8::try_from(key.len()).ok()?, bytes })
    }
}

impl std::ops::Deref for Key {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
impl Eq for Key {}
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

/// The idempotency key of a command, recorded in the same append as its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The owner of the key: the tenant of the caller, or none for an operator who acts on a tenant's lease.
    pub owner: Option<TenantNo>,
    pub key: Key,
    /// The first 16 bytes of SHA-256 of the command's canonical form.
    pub payload: [u8; 16],
}

/// One entry of the journal, without the link to the previous entry. The journal adds the link as the first bytes when
/// it seals the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub sequence: u64,
    pub stamp: Instant,
    /// When the change took effect; never after the stamp.
    pub effective_at: Instant,
    pub identity: Identity,
    pub reason: Option<Reason>,
    pub idempotency: Option<Idempotency>,
    pub hcl_entry: Option<Name>,
    pub dra_claim_id: Option<Name>,
    /// Public keys whose signatures must follow the record. They are part of the hashed bytes, so that a removed
    /// signature is detected.
    pub signers: SmallVec<[[u8; 32]; 1]>,
    /// The record belongs to the same command as the one before it.
    pub continues: bool,
    pub body: Body,
}

/// The optional parts of the head, by bit, in the order they are written.
mod part {
    pub(super) const EFFECTIVE_AT: u64 = 1 << 0;
    pub(super) const TENANT: u64 = 1 << 1;
    pub(super) const PROJECT: u64 = 1 << 2;
    pub(super) const USER: u64 = 1 << 3;
    pub(super) const TOKEN: u64 = 1 << 4;
    pub(super) const REASON: u64 = 1 << 5;
    pub(super) const IDEMPOTENCY: u64 = 1 << 6;
    pub(super) const WORKLOAD: u64 = 1 << 7;
    pub(super) const HCL_ENTRY: u64 = 1 << 8;
    pub(super) const DRA_CLAIM: u64 = 1 << 9;
    pub(super) const SIGNERS: u64 = 1 << 10;
    pub(super) const CONTINUES: u64 = 1 << 11;
    pub(super) const ALL: u64 = (1 << 12) - 1;
}

/// A fixed buffer for the first part of a record. Filling it and copying it once is faster than growing the output for
/// each field.
struct Head<'o> {
    bytes: &'o mut [u8; HEAD_BYTES_MAX],
    len: usize,
}

/// Larger than the longest head: seven integers of at most ten bytes, a stamp, a key and a payload hash. A power of
/// two, so that an index is masked without a division.
const HEAD_BYTES_MAX: usize = 256;

impl Head<'_> {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.len % HEAD_BYTES_MAX] = byte;
        self.len += 1;
    }
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "each group is seven bits")]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte((value as u8) | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }
    #[inline(always)]
    fn array<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.begin_array(bytes, N);
    }
    /// Appends the first `len` bytes. A fixed size is copied, which is faster; the rest is overwritten.
    #[inline(always)]
    fn begin_array<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        self.bytes[self.len..self.len + N].copy_from_slice(bytes);
        self.len += len;
    }
}

/// Appends the head that `write` produces.
#[inline(always)]
fn put_head(out: &mut Vec<u8>, write: impl FnOnce(&mut Head<'_>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES_MAX]);
    let bytes = out[start..].first_chunk_mut().expect("just appended");
    let mut head = Head { bytes, len: 0 };
    write(&mut head);
    let len = head.len;
    out.truncate(start + len);
}

impl Record {
    /// A record that takes effect at its stamp, without an identity.
    pub fn new(sequence: u64, stamp: Instant, body: impl Into<Body>) -> Self {
        Self {
            sequence,
            stamp,
            effective_at: stamp,
            identity: Identity::default(),
            reason: None,
            idempotency: None,
            hcl_entry: None,
            dra_claim_id: None,
            signers: SmallVec::new(),
            continues: false,
            body: body.into(),
        }
    }

    fn parts(&self) -> u64 {
        let identity = &self.identity;
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        bit(self.effective_at != self.stamp, part::EFFECTIVE_AT)
            | bit(identity.tenant.is_some(), part::TENANT)
            | bit(identity.project.is_some(), part::PROJECT)
            | bit(identity.user.is_some(), part::USER)
            | bit(identity.token.is_some(), part::TOKEN)
            | bit(self.reason.is_some(), part::REASON)
            | bit(self.idempotency.is_some(), part::IDEMPOTENCY)
            | bit(identity.workload.is_some(), part::WORKLOAD)
            | bit(self.hcl_entry.is_some(), part::HCL_ENTRY)
            | bit(self.dra_claim_id.is_some(), part::DRA_CLAIM)
            | bit(!self.signers.is_empty(), part::SIGNERS)
            | bit(self.continues, part::CONTINUES)
    }

    /// Appends the hashed bytes without the previous record's hash.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        assert!(self.effective_at <= self.stamp, "a record cannot take effect after its stamp");
        let identity = &self.identity;
        put_head(out, |head| {
            head.varint(self.sequence);
            head.array(&self.stamp.0.to_le_bytes());
            head.varint(u64::from(self.body.kind()));
            head.varint(self.parts());
            if self.effective_at == self.stamp {
                put_numbers(identity, head);
                if self.reason.is_none() {
                    self.put_claim(head);
                }
            }
        });
        // The rare parts are encoded separately.
        if self.effective_at != self.stamp {
            self.stamp.since(self.effective_at).put(out);
            put_head(out, |head| put_numbers(identity, head));
        }
        if let Some(reason) = self.reason {
            reason.put(out);
        }
        if self.effective_at != self.stamp || self.reason.is_some() {
            put_head(out, |head| self.put_claim(head));
        }
        if let Some(workload) = &identity.workload {
            workload.put(out);
        }
        if let Some(entry) = &self.hcl_entry {
            entry.put(out);
        }
        if let Some(claim) = &self.dra_claim_id {
            claim.put(out);
        }
        if !self.signers.is_empty() {
            assert!(self.signers.len() <= SIGNERS_MAX, "at most two signers");
            put_varint(self.signers.len() as u64, out);
            self.signers.iter().for_each(|key| key.put(out));
        }
        self.body.put(out);
    }

    #[inline(always)]
    fn put_claim(&self, head: &mut Head<'_>) {
        if let Some(claim) = &self.idempotency {
            head.byte(u8::from(claim.owner.is_some()));
            if let Some(owner) = claim.owner {
                head.varint(u64::from(owner.0));
            }
            head.byte(claim.key.len);
            head.begin_array(&claim.key.bytes, usize::from(claim.key.len));
            head.array(&claim.payload);
        }
    }

    /// Decodes the hashed bytes after the previous record's hash; nothing may follow the record.
    ///
    /// Inlined: a record is large, and every return by value would copy it.
    #[inline(always)]
    pub fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let head = RawHead::get(r)?;
        let body = Body::get(head.kind, r)?;
        r.finish()?;
        let name = |text: &str| Name::new(text).expect("checked when the head was read");
        Ok(Self {
            sequence: head.sequence,
            stamp: head.stamp,
            effective_at: head.effective_at,
            identity: Identity {
                tenant: head.tenant,
                project: head.project,
                user: head.user,
                workload: head.workload.map(name),
                token: head.token,
            },
            reason: head.reason,
            idempotency: head.idempotency.map(|(owner, key, payload)| Idempotency {
                owner,
                key: Key::new(key).expect("checked when the head was read"),
                payload: *payload,
            }),
            hcl_entry: head.hcl_entry.map(name),
            dra_claim_id: head.dra_claim_id.map(name),
            signers: SmallVec::from_slice(head.signers),
            continues: head.continues,
            body,
        })
    }

    /// Fails where [`Self::get`] fails, with the same error, without building the record.
    #[inline(always)]
    pub fn validate(r: &mut Reader<'_>) -> Result<Outline, DecodeError> {
        let head = RawHead::get(r)?;
        Body::validate(head.kind, r)?;
        r.finish()?;
        Ok(Outline { sequence: head.sequence, stamp: head.stamp, kind: head.kind, signers: head.signers.len() })
    }
}

/// What a reader that checks records without keeping them needs to know about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    pub sequence: u64,
    pub stamp: Instant,
    /// The code of the body's kind.
    pub kind: u32,
    /// How many signatures must accompany the record.
    pub signers: usize,
}

/// Owner, key and payload of an idempotency key, as they were read.
type RawKey<'a> = (Option<TenantNo>, &'a [u8], &'a [u8; 16]);

/// The head of a record, checked, with its texts and keys still in the bytes that were read.
struct RawHead<'a> {
    sequence: u64,
    stamp: Instant,
    kind: u32,
    effective_at: Instant,
    tenant: Option<TenantNo>,
    project: Option<ProjectNo>,
    user: Option<UserNo>,
    token: Option<TokenNo>,
    reason: Option<Reason>,
    idempotency: Option<RawKey<'a>>,
    workload: Option<&'a str>,
    hcl_entry: Option<&'a str>,
    dra_claim_id: Option<&'a str>,
    signers: &'a [[u8; 32]],
    continues: bool,
}

impl<'a> RawHead<'a> {
    #[inline(always)]
    fn get(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let sequence = r.varint()?;
        let stamp = Instant::get(r)?;
        let kind = u32::get(r)?;
        let parts = r.varint()?;
        if parts & !part::ALL != 0 {
            return Err(DecodeError::BadCode { field: "head", code: parts });
        }
        let has = |bit: u64| parts & bit != 0;
        let effective_at = if has(part::EFFECTIVE_AT) {
            let before = Span::get(r)?;
            if before == Span::ZERO {
                return Err(DecodeError::Forbidden("an effective instant equal to the stamp"));
            }
            Instant(stamp.0.checked_sub(before.0).ok_or(DecodeError::BadInteger)?)
        } else {
            stamp
        };
        Ok(Self {
            sequence,
            stamp,
            kind,
            effective_at,
            tenant: get_if(has(part::TENANT), r)?,
            project: get_if(has(part::PROJECT), r)?,
            user: get_if(has(part::USER), r)?,
            token: get_if(has(part::TOKEN), r)?,
            reason: get_if(has(part::REASON), r)?,
            idempotency: has(part::IDEMPOTENCY).then(|| get_key(r)).transpose()?,
            workload: has(part::WORKLOAD).then(|| Name::borrow(r)).transpose()?,
            hcl_entry: has(part::HCL_ENTRY).then(|| Name::borrow(r)).transpose()?,
            dra_claim_id: has(part::DRA_CLAIM).then(|| Name::borrow(r)).transpose()?,
            signers: if has(part::SIGNERS) { get_signers(r)? } else { &[] },
            continues: has(part::CONTINUES),
        })
    }
}

#[inline(always)]
fn get_key<'a>(r: &mut Reader<'a>) -> Result<RawKey<'a>, DecodeError> {
    let owner = Field::get(r)?;
    let n = r.count(IDEMPOTENCY_KEY_BYTES_MAX)?;
    let key = r.take(n)?;
    if key.is_empty() {
        return Err(DecodeError::Forbidden("an empty idempotency key"));
    }
    Ok((owner, key, r.array_ref()?))
}

fn get_signers<'a>(r: &mut Reader<'a>) -> Result<&'a [[u8; 32]], DecodeError> {
    let n = r.count(SIGNERS_MAX)?;
    if n == 0 {
        return Err(DecodeError::Forbidden("an empty list of signers"));
    }
    Ok(r.take(32 * n)?.as_chunks().0)
}

#[inline(always)]
fn put_numbers(identity: &Identity, head: &mut Head<'_>) {
    if let Some(tenant) = identity.tenant {
        head.varint(u64::from(tenant.0));
    }
    if let Some(project) = identity.project {
        head.varint(u64::from(project.0));
    }
    if let Some(user) = identity.user {
        head.varint(u64::from(user.0));
    }
    if let Some(token) = identity.token {
        head.varint(u64::from(token.0));
    }
}

#[inline]
fn get_if<T: Field>(present: bool, r: &mut Reader<'_>) -> Result<Option<T>, DecodeError> {
    present.then(|| T::get(r)).transpose()
}
