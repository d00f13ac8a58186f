//! Answers of the lease path, encoded directly into bytes: at hundreds of thousands per second, building values first
//! would cost more than deciding. A test decodes every one of them as the type of `leasehold_api`.

use crate::app::App;
use crate::problem::{denied, refused};
use crate::show_allocations::Ended;
use leasehold_api::{Problem, WRITTEN_MAX, When};
use leasehold_cell::Sealed;
use leasehold_engine::State;
use leasehold_model::body::{Body, Granted};
use leasehold_model::id::IdKind;
use leasehold_model::record::Hash;
use leasehold_model::{ClassSpec, Instant, LeaseNo, PublicId, Quanta, Record, quantity};
use std::io::Write as _;

/// Writing to a vector does not fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        write!($out, $($arg)*).expect("writing to a vector cannot fail")
    };
}

fn number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(n % 10).expect("a digit");
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn instant(out: &mut Vec<u8>, at: Instant) {
    out.push(b'"');
    out.extend_from_slice(When(at).write(&mut [0; WRITTEN_MAX]).as_bytes());
    out.push(b'"');
}

/// `lease-42` under `id`, and the 128-bit ID under `uid`.
fn lease_id(out: &mut Vec<u8>, genesis: &Hash, lease: u64) {
    out.extend_from_slice(b"\"id\":");
    short_id(out, lease);
    out.extend_from_slice(b",\"uid\":");
    public_id(out, genesis, IdKind::Lease, lease);
}

fn short_id(out: &mut Vec<u8>, lease: u64) {
    out.extend_from_slice(b"\"lease-");
    number(out, lease);
    out.push(b'"');
}

/// A JSON string. Names contain no control characters, but may contain quotes and backslashes.
fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().any(|b| b == b'"' || b == b'\\' || b < 0x20) {
        let escaped = serde_json::to_vec(text).expect("a string is valid JSON");
        out.extend_from_slice(&escaped[1..escaped.len() - 1]);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

fn public_id(out: &mut Vec<u8>, genesis: &Hash, kind: IdKind, n: u64) {
    hex_id(out, PublicId::new(genesis, kind, 0, n).0);
}

fn hex_id(out: &mut Vec<u8>, id: u128) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in id.to_be_bytes() {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}

fn units(out: &mut Vec<u8>, quanta: Quanta, class: &ClassSpec) {
    if class.quanta_per_unit > 0 && quanta.0.is_multiple_of(class.quanta_per_unit) {
        out.push(b'"');
        number(out, quanta.0 / class.quanta_per_unit);
        out.push(b'"');
    } else {
        string(out, &quantity::display(quanta, class));
    }
}

fn devices(out: &mut Vec<u8>, mut set: u64) {
    out.push(b'[');
    while set != 0 {
        number(out, u64::from(set.trailing_zeros()));
        set &= set - 1;
        if set != 0 {
            out.push(b',');
        }
    }
    out.push(b']');
}

fn begin(out: &mut Vec<u8>, sealed: &Sealed) {
    out.extend_from_slice(b"{\"sequence\":");
    number(out, sealed.sequence());
}

/// A grant, or a waiting allocation if leases must be evicted first. Returns the status, or a problem if the request
/// was denied.
pub(crate) fn granted(
    app: &App,
    state: &State,
    sealed: &Sealed,
    ended: &Ended,
    out: &mut Vec<u8>,
) -> Result<u16, Problem> {
    let record = sealed.first();
    if let Body::Granted(granted) = &record.body {
        grant(app, state, sealed, record, granted, out);
        return Ok(201);
    }
    if let Body::Denied(body) = &record.body {
        return Err(denied(state, record, body));
    }
    // Anything else is a waiting allocation; `submitted` refuses other records.
    let submitted = crate::show_allocations::submitted(app, state, sealed, ended)?;
    serde_json::to_writer(out, &submitted).expect("an answer is valid JSON");
    Ok(202)
}

fn grant(app: &App, state: &State, sealed: &Sealed, record: &Record, granted: &Granted, out: &mut Vec<u8>) {
    begin(out, sealed);
    out.extend_from_slice(b",\"leases\":[");
    for (place, member) in (0u64..).zip(&granted.members) {
        out.extend_from_slice(if place > 0 { b",{".as_slice() } else { b"{".as_slice() });
        lease_id(out, &app.genesis, granted.first_lease.0 + place);
        out.extend_from_slice(b",\"class\":");
        if let Some(class) = state.class(member.class) {
            string(out, class.name.as_str());
            out.extend_from_slice(b",\"quantity\":");
            units(out, member.quanta, class);
        } else {
            out.extend_from_slice(b"\"\",\"quantity\":\"\"");
        }
        out.extend_from_slice(b",\"quanta\":");
        number(out, member.quanta.0);
        out.extend_from_slice(b",\"devices\":");
        devices(out, member.devices);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"node\":");
    string(out, state.node(granted.node).map_or("", |node| node.name.as_str()));
    out.extend_from_slice(b",\"pool\":");
    string(out, state.pool(granted.pool).map_or("", |pool| pool.name.as_str()));
    out.extend_from_slice(b",\"priority\":");
    string(out, granted.priority.word());
    out.extend_from_slice(b",\"granted_at\":");
    instant(out, record.stamp);
    out.extend_from_slice(b",\"expires_at\":");
    instant(out, record.stamp.saturating_add(granted.ttl));
    out.extend_from_slice(b",\"correlation_id\":");
    put!(out, "\"{}\"", granted.correlation_of(record.sequence).id(&app.genesis));
    if !granted.over_soft.is_empty() {
        let ids: Vec<u32> = granted.over_soft.iter().map(|quota| quota.0).collect();
        put!(out, ",\"over_soft_quota_ids\":{ids:?}");
    }
    if let Some(window) = granted.capped_by_window {
        put!(out, ",\"capped_by_window_id\":{}", window.0);
    }
    if let Some(quota) = granted.capped_by {
        put!(out, ",\"capped_by_quota_id\":{}", quota.0);
    }
    out.push(b'}');
}

/// Adds the problem of an activity report that was refused; the command itself succeeded.
fn activity_problem(sealed: &Sealed, out: &mut Vec<u8>) {
    if let Some((_, why)) = sealed.refused.first() {
        out.extend_from_slice(b",\"activity_problem\":");
        serde_json::to_writer(out, &refused(why)).expect("a problem is valid JSON");
    }
}

fn with_id(app: &App, sealed: &Sealed, lease: LeaseNo, out: &mut Vec<u8>) {
    begin(out, sealed);
    out.push(b',');
    lease_id(out, &app.genesis, lease.0);
}

pub(crate) fn renewed(app: &App, sealed: &Sealed, lease: LeaseNo, out: &mut Vec<u8>) {
    with_id(app, sealed, lease, out);
    let expires_at = sealed.records.iter().find_map(|record| {
        let Body::Renewed(renewed) = &record.body else { return None };
        renewed.renewals.iter().find(|one| one.lease == lease).map(|one| one.expires_at)
    });
    out.extend_from_slice(b",\"expires_at\":");
    instant(out, expires_at.unwrap_or_default());
    activity_problem(sealed, out);
    out.push(b'}');
}

pub(crate) fn released(app: &App, sealed: &Sealed, lease: LeaseNo, out: &mut Vec<u8>) {
    // If the whole gang is released, the record of its completion comes first.
    let record = sealed.records.iter().find(|record| matches!(record.body, Body::Released(_)));
    let record = record.unwrap_or_else(|| sealed.first());
    let closed = matches!(&record.body, Body::Released(released) if released.closed);
    out.extend_from_slice(b"{\"sequence\":");
    number(out, record.sequence);
    out.push(b',');
    lease_id(out, &app.genesis, lease.0);
    out.extend_from_slice(if closed { b",\"state\":\"closed\"" } else { b",\"state\":\"releasing\"" });
    out.extend_from_slice(b",\"ended_at\":");
    instant(out, record.effective_at);
    activity_problem(sealed, out);
    out.push(b'}');
}

pub(crate) fn revoked(app: &App, sealed: &Sealed, out: &mut Vec<u8>) {
    begin(out, sealed);
    let revocations = sealed.records.iter().filter_map(|record| {
        let Body::Revoked(revoked) = &record.body else { return None };
        Some(revoked)
    });
    let leases = || revocations.clone().flat_map(|revoked| revoked.leases.0.iter().copied());
    list(out, b",\"ids\":[", leases(), |out, lease| short_id(out, lease.0));
    list(out, b",\"uids\":[", leases(), |out, lease| public_id(out, &app.genesis, IdKind::Lease, lease.0));
    let grace = revocations.clone().next().map(|revoked| revoked.grace);
    put!(out, ",\"grace\":\"{}\"}}", grace.unwrap_or_default());
}

fn list(out: &mut Vec<u8>, begin: &[u8], leases: impl Iterator<Item = LeaseNo>, write: impl Fn(&mut Vec<u8>, LeaseNo)) {
    out.extend_from_slice(begin);
    for (place, lease) in leases.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, lease);
    }
    out.push(b']');
}

pub(crate) fn ready(app: &App, sealed: &Sealed, lease: LeaseNo, out: &mut Vec<u8>) {
    with_id(app, sealed, lease, out);
    out.extend_from_slice(b",\"ended_at\":");
    instant(out, sealed.first().effective_at);
    out.push(b'}');
}

/// An answer with sequence and ID only.
pub(crate) fn plain(app: &App, sealed: &Sealed, lease: LeaseNo, out: &mut Vec<u8>) {
    with_id(app, sealed, lease, out);
    out.push(b'}');
}

/// The leases that a confirmation closed.
pub(crate) fn torn_down(sealed: &Sealed) -> impl Iterator<Item = LeaseNo> + '_ {
    let torn_down = sealed.records.iter().filter_map(|record| {
        let Body::TornDown(torn) = &record.body else { return None };
        Some(torn.leases.0.iter().copied())
    });
    torn_down.flatten()
}
