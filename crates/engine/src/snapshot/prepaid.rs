//! Encoding and decoding of prepaid credit. What held leases cost is computed again from the leases; only what has ended
//! is written.

use super::BadSnapshot;
use crate::prepaid::{Credit, Meter, Prepaid, PrepaidKey, PrepaidScope, Prepaids};
use crate::state::State;
use ethnum::{I256, U256};
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::limits::PREPAID_CREDITS_MAX;
use leasehold_model::{Funds, Name, PrepaidPolicy, PrepaidState, Steps};

fn put_scope(scope: PrepaidScope, out: &mut Vec<u8>) {
    match scope {
        PrepaidScope::Tenant(tenant) => {
            out.push(0);
            tenant.put(out);
        }
        PrepaidScope::Project(project) => {
            out.push(1);
            project.put(out);
        }
    }
}

fn get_scope(r: &mut Reader<'_>) -> Result<PrepaidScope, BadSnapshot> {
    Ok(match bool::get(r)? {
        false => PrepaidScope::Tenant(Field::get(r)?),
        true => PrepaidScope::Project(Field::get(r)?),
    })
}

fn put_wide(value: I256, out: &mut Vec<u8>) {
    (value < I256::ZERO).put(out);
    out.extend_from_slice(&value.unsigned_abs().to_be_bytes());
}

fn get_wide(r: &mut Reader<'_>) -> Result<I256, BadSnapshot> {
    let negative = bool::get(r)?;
    let bytes: [u8; 32] = r.take(32)?.try_into().expect("32 bytes");
    let size = I256::try_from(U256::from_be_bytes(bytes));
    let size = size.map_err(|_| BadSnapshot::Inconsistent("a cost beyond the limit"))?;
    Ok(if negative { -size } else { size })
}

fn put_account(account: &Prepaid, out: &mut Vec<u8>) {
    account.number.put(out);
    account.tenant.put(out);
    account.policy.put(out);
    account.state.put(out);
    [account.credited, account.lapsed, account.applied, account.posted].iter().for_each(|amount| amount.put(out));
    account.unbilled.put(out);
    let credits = &account.credits;
    credits.numbers.put(out);
    [credits.counted, credits.returned, credits.overdrawn].iter().for_each(|funds| funds.put(out));
    put_varint(credits.all().len() as u64, out);
    for credit in credits.all() {
        credit.number.put(out);
        credit.amount.put(out);
        credit.left.put(out);
        credit.priority.put(out);
        credit.expires_at.put(out);
    }
    put_varint(account.references.len() as u64, out);
    for (reference, sequence) in &account.references {
        reference.put(out);
        sequence.put(out);
    }
}

fn put_meter(meter: &Meter, out: &mut Vec<u8>) {
    meter.from.put(out);
    meter.parts.put(out);
    let ended = || meter.items.iter().filter(|(_, running)| !running.ended.is_empty());
    put_varint(ended().count() as u64, out);
    for (item, running) in ended() {
        item.pool.put(out);
        item.class.put(out);
        item.priority.put(out);
        put_varint(running.ended.len() as u64, out);
        for (hour, cost) in &running.ended {
            hour.put(out);
            put_wide(*cost, out);
        }
    }
    put_varint(meter.claims.len() as u64, out);
    for (node, since) in &meter.claims {
        node.put(out);
        since.put(out);
    }
}

pub(super) fn put(prepaids: &Prepaids, out: &mut Vec<u8>) {
    prepaids.timers_through.put(out);
    put_varint(prepaids.keys().len() as u64, out);
    put_varint(prepaids.iter().count() as u64, out);
    for ((scope, currency), account) in prepaids.iter() {
        put_scope(scope, out);
        currency.put(out);
        put_account(account, out);
    }
    put_varint(prepaids.meters.len() as u64, out);
    for (of, meter) in &prepaids.meters {
        of.0.put(out);
        of.1.put(out);
        of.2.put(out);
        put_meter(meter, out);
    }
}

fn get_account(size: u64, r: &mut Reader<'_>) -> Result<Prepaid, BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    let mut account = Prepaid::new(Field::get(r)?, Field::get(r)?);
    account.policy = PrepaidPolicy::get(r)?;
    account.state = PrepaidState::get(r)?;
    for amount in [&mut account.credited, &mut account.lapsed, &mut account.applied, &mut account.posted] {
        *amount = Steps::get(r)?;
    }
    account.unbilled = Field::get(r)?;
    let months = account.unbilled.is_sorted_by(|a, b| a.0 < b.0);
    if !months || account.unbilled.iter().any(|(_, amount)| *amount == Steps::ZERO) {
        return Err(wrong("the months of prepaid credit are out of order or empty"));
    }
    let credits = &mut account.credits;
    credits.numbers = Field::get(r)?;
    for funds in [&mut credits.counted, &mut credits.returned, &mut credits.overdrawn] {
        *funds = Funds::get(r)?;
    }
    for _ in 0..r.count(PREPAID_CREDITS_MAX)? {
        let credit = Credit {
            number: Field::get(r)?,
            amount: Field::get(r)?,
            left: Field::get(r)?,
            priority: Field::get(r)?,
            expires_at: Field::get(r)?,
        };
        let known = credit.number > credits.numbers || credits.get(credit.number).is_some();
        if known || credit.left <= Funds::ZERO || credit.left > credit.amount.into() {
            return Err(wrong("a credit that is unknown, listed twice or used up"));
        }
        credits.restore(credit);
    }
    for _ in 0..r.count(usize::MAX)? {
        let (reference, sequence) = (Name::get(r)?, u64::get(r)?);
        if sequence >= size || account.references.last_key_value().is_some_and(|(last, _)| *last >= reference) {
            return Err(wrong("the references of credits are out of order"));
        }
        account.references.insert(reference, sequence);
    }
    Ok(account)
}

fn get_meter(state: &State, r: &mut Reader<'_>) -> Result<Meter, BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    let mut meter = Meter { from: Field::get(r)?, parts: Field::get(r)?, ..Meter::default() };
    for _ in 0..r.count(usize::MAX)? {
        let item = crate::prepaid::Item { pool: Field::get(r)?, class: Field::get(r)?, priority: Field::get(r)? };
        if state.class(item.class).is_none() {
            return Err(wrong("a cost of a class that does not exist"));
        }
        let running = meter.items.entry(item).or_default();
        for _ in 0..r.count(usize::MAX)? {
            let hour = Field::get(r)?;
            if running.ended.insert(hour, get_wide(r)?).is_some() {
                return Err(wrong("a cost is listed twice"));
            }
        }
    }
    for _ in 0..r.count(usize::MAX)? {
        let (node, since) = (Field::get(r)?, Field::get(r)?);
        if state.claimed_node(node).is_none() || meter.claims.insert(node, since).is_some() {
            return Err(wrong("a claim that does not exist, or is listed twice"));
        }
    }
    Ok(meter)
}

/// Decodes prepaid credit into a state. Its leases and claims must be decoded already.
pub(super) fn get(state: &mut State, r: &mut Reader<'_>) -> Result<(), BadSnapshot> {
    let wrong = BadSnapshot::Inconsistent;
    let mut prepaids = Prepaids::default();
    prepaids.timers_through = Field::get(r)?;
    prepaids.reserve_numbers(r.count(usize::MAX)?);
    for _ in 0..r.count(usize::MAX)? {
        let key: PrepaidKey = (get_scope(r)?, Field::get(r)?);
        let account = get_account(state.size, r)?;
        let owner = match key.0 {
            PrepaidScope::Tenant(tenant) => state.tenant(tenant).map(|found| found.number),
            PrepaidScope::Project(project) => state.project(project).map(|found| found.tenant),
        };
        if owner != Some(account.tenant) {
            return Err(wrong("prepaid credit of someone who does not exist"));
        }
        prepaids.restore(key, account).ok_or(wrong("a prepaid account is listed twice"))?;
    }
    for _ in 0..r.count(usize::MAX)? {
        let of = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let meter = get_meter(state, r)?;
        if prepaids.key_for(of.0, of.1, of.2).is_none() || prepaids.meters.insert(of, meter).is_some() {
            return Err(wrong("a meter without an account, or listed twice"));
        }
    }
    state.prepaids = prepaids;
    state.restore_meters()
}
