//! Encoding and decoding of what the engine keeps of reported usage.

mod entitlements;
mod sharing;

use super::BadSnapshot;
use crate::state::State;
use crate::usage::{MonthUse, RecentId, Unposted, Usage};
use ethnum::I256;
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::limits::{RECENT_USAGE_IDS, REFUSED_USAGE_MAX};
use leasehold_model::{AppInstanceNo, Month, ProjectNo, UnitNo, UnitQuantity};

pub(super) fn put(state: &State, out: &mut Vec<u8>) {
    let usage = &state.usage;
    usage.recent_from.put(out);
    usage.forgotten.put(out);
    put_varint(usage.recent.len() as u64, out);
    for id in &usage.recent {
        id.sequence.put(out);
        [id.key[0], id.key[1], id.payload].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    }
    put_varint(usage.replaced.len() as u64, out);
    for (replaced, by) in &usage.replaced {
        replaced.put(out);
        by.put(out);
    }
    put_varint(usage.months.len() as u64, out);
    for ((month, project, app, unit), used) in &usage.months {
        month.put(out);
        project.put(out);
        app.put(out);
        unit.put(out);
        out.extend_from_slice(&used.all.0.to_be_bytes());
        out.extend_from_slice(&used.billed.0.to_be_bytes());
    }
    put_varint(usage.unposted.len() as u64, out);
    for (of, unposted) in &usage.unposted {
        of.0.put(out);
        of.1.put(out);
        of.2.put(out);
        out.extend_from_slice(&unposted.accepted.to_be_bytes());
        out.extend_from_slice(&unposted.in_parts.to_be_bytes());
    }
    put_varint(usage.before_ledger.len() as u64, out);
    for (((tenant, project, currency), hour), sum) in &usage.before_ledger {
        tenant.put(out);
        project.put(out);
        currency.put(out);
        hour.put(out);
        out.extend_from_slice(&sum.to_be_bytes());
    }
    put_varint(usage.refusals.len() as u64, out);
    for (sequence, (key, payload)) in &usage.refusals {
        sequence.put(out);
        [key[0], key[1], *payload].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    }
    entitlements::put(state, out);
    sharing::put(&state.sharing, out);
}

fn bytes<const N: usize>(r: &mut Reader<'_>) -> Result<[u8; N], BadSnapshot> {
    Ok(r.take(N)?.try_into().expect("so many bytes were taken"))
}

pub(super) fn get(state: &mut State, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    let mut usage = Usage { recent_from: Field::get(r)?, forgotten: Field::get(r)?, ..Usage::default() };
    for _ in 0..r.count(RECENT_USAGE_IDS)? {
        let sequence: u64 = Field::get(r)?;
        let first = usage.recent.back().map_or(usage.recent_from, |last: &RecentId| last.sequence + 1);
        if sequence < first || sequence >= state.size {
            return Err(wrong("the IDs of usage records are out of order"));
        }
        let mut word = || bytes(r).map(u64::from_be_bytes);
        let (key, payload) = ([word()?, word()?], word()?);
        usage.recent.push_back(RecentId { key, payload, sequence });
    }
    for _ in 0..r.count(RECENT_USAGE_IDS)? {
        let (replaced, by) = (u64::get(r)?, u64::get(r)?);
        if usage.replaced.last_key_value().is_some_and(|(last, _)| *last >= replaced) || replaced >= by {
            return Err(wrong("replaced usage records are out of order"));
        }
        usage.replaced.insert(replaced, by);
    }
    usage.order_replaced();
    for _ in 0..r.count(usize::MAX)? {
        let of = (Month::get(r)?, ProjectNo::get(r)?, AppInstanceNo::get(r)?, UnitNo::get(r)?);
        if usage.months.last_key_value().is_some_and(|(last, _)| *last >= of) {
            return Err(wrong("the months of usage are out of order"));
        }
        let mut quantity = || bytes(r).map(|all| UnitQuantity(u128::from_be_bytes(all)));
        let used = MonthUse { all: quantity()?, billed: quantity()? };
        usage.months.insert(of, used);
    }
    for _ in 0..r.count(usize::MAX)? {
        let of = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        if usage.unposted.last_key_value().is_some_and(|(last, _)| *last >= of) {
            return Err(wrong("unposted usage is out of order"));
        }
        let (accepted, in_parts) = (I256::from_be_bytes(bytes(r)?), I256::from_be_bytes(bytes(r)?));
        usage.unposted.insert(of, Unposted { accepted, in_parts });
    }
    for _ in 0..r.count(usize::MAX)? {
        let of = ((Field::get(r)?, Field::get(r)?, Field::get(r)?), Field::get(r)?);
        if usage.before_ledger.last_key_value().is_some_and(|(last, _)| *last >= of) {
            return Err(wrong("usage before the ledger is out of order"));
        }
        usage.before_ledger.insert(of, I256::from_be_bytes(bytes(r)?));
    }
    for _ in 0..r.count(REFUSED_USAGE_MAX)? {
        let sequence: u64 = Field::get(r)?;
        if usage.refusals.last_key_value().is_some_and(|(last, _)| *last >= sequence) || sequence >= state.size {
            return Err(wrong("refused usage is out of order"));
        }
        let mut word = || bytes(r).map(u64::from_be_bytes);
        let (key, payload) = ([word()?, word()?], word()?);
        usage.remember_refused((key, payload), sequence);
    }
    state.usage = usage;
    entitlements::get(state, r)?;
    state.sharing = sharing::get(r)?;
    Ok(())
}
