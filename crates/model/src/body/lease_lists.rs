//! Lists of leases, encoded compactly because thousands of leases can be renewed at once.

use crate::activity::Activity;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::LeaseNo;
use crate::instant::{Instant, Span};
use crate::limits::LEASES_PER_RECORD_MAX;
use smallvec::SmallVec;

/// Lease numbers in strictly increasing order, encoded as differences: a thousand consecutive numbers take a thousand
/// bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases(pub SmallVec<[LeaseNo; 2]>);

/// Writes the length of a list of leases. The assertion prevents sealing what the decoder would refuse, because no
/// restart could read it.
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

/// Writes the difference between `lease` and the number after `last`; `last` is `None` for the first.
fn put_next(last: Option<LeaseNo>, lease: LeaseNo, out: &mut Vec<u8>) {
    match last {
        None => lease.put(out),
        Some(last) => {
            assert!(lease > last, "lease numbers in a record increase");
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
        let mut leases = SmallVec::new();
        get_leases(r, |lease| leases.push(lease))?;
        Ok(Self(leases))
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        get_leases(r, |_| {})
    }
}

impl Leases {
    /// Encodes a list that may be empty.
    pub(super) fn put_any(&self, out: &mut Vec<u8>) {
        if self.0.is_empty() { put_varint(0, out) } else { self.put(out) }
    }

    pub(super) fn get_any(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut leases, mut last) = (SmallVec::new(), None);
        for _ in 0..r.count(LEASES_PER_RECORD_MAX)? {
            let lease = get_next(last, r)?;
            leases.push(lease);
            last = Some(lease);
        }
        Ok(Self(leases))
    }
}

#[inline(always)]
fn get_leases(r: &mut Reader<'_>, mut each: impl FnMut(LeaseNo)) -> Result<(), DecodeError> {
    let mut last = None;
    for _ in 0..get_lease_count(r)? {
        let lease = get_next(last, r)?;
        each(lease);
        last = Some(lease);
    }
    Ok(())
}

impl FromIterator<LeaseNo> for Leases {
    fn from_iter<I: IntoIterator<Item = LeaseNo>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

/// A lease with an optional activity report.
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

/// Leases were renewed. Encoded as the earliest deadline and each lease's difference from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    pub renewals: SmallVec<[Renewal; 1]>,
}

/// Whether any item has activity; only then does each item take a byte for it.
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
        let mut renewals = SmallVec::new();
        get_renewals(r, |renewal| renewals.push(renewal))?;
        Ok(Self { renewals })
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        get_renewals(r, |_| {})
    }
}

#[inline(always)]
fn get_renewals(r: &mut Reader<'_>, mut each: impl FnMut(Renewal)) -> Result<(), DecodeError> {
    let n = get_lease_count(r)?;
    let reported = bool::get(r)?;
    let earliest = Instant::get(r)?;
    let (mut last, mut any_earliest, mut any_activity) = (None, false, false);
    for _ in 0..n {
        let lease = get_next(last, r)?;
        let later = Span::get(r)?;
        let expires_at = earliest.checked_add(later).ok_or(DecodeError::BadInteger)?;
        let activity: Option<Activity> = if reported { Field::get(r)? } else { None };
        any_earliest |= expires_at == earliest;
        any_activity |= activity.is_some();
        each(Renewal { lease, expires_at, activity });
        last = Some(lease);
    }
    if !any_earliest {
        return Err(DecodeError::Forbidden("an earliest deadline that no lease has"));
    }
    check_reported(reported, any_activity)
}

fn check_reported(reported: bool, any_activity: bool) -> Result<(), DecodeError> {
    if reported && !any_activity {
        return Err(DecodeError::Forbidden("an activity mark without activity"));
    }
    Ok(())
}

/// A list of leases, each with an optional activity report.
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
        let mut items = SmallVec::new();
        get_reports(r, |item| items.push(item))?;
        Ok(Self(items))
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        get_reports(r, |_| {})
    }
}

#[inline(always)]
fn get_reports(r: &mut Reader<'_>, mut each: impl FnMut(Reported)) -> Result<(), DecodeError> {
    let n = get_lease_count(r)?;
    let reported = bool::get(r)?;
    let (mut last, mut any_activity) = (None, false);
    for _ in 0..n {
        let lease = get_next(last, r)?;
        let activity: Option<Activity> = if reported { Field::get(r)? } else { None };
        any_activity |= activity.is_some();
        each(Reported { lease, activity });
        last = Some(lease);
    }
    check_reported(reported, any_activity)
}
