//! A pass as bytes, so that it goes on after a restart. Whoever keeps them authenticates them.

use crate::check::{BooksChecked, Check, Corrections};
use crate::tally::{Lease, OPEN_MAX, Phase, Sums, Tally};
use leasehold_bill::{Found, OfMonth};
use leasehold_books::{Balance, End};
use leasehold_journal::ScrubPlace;
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, ClassNo, Instant, Month, Steps, TenantNo};

/// Raised whenever the bytes change their meaning.
const VERSION: u64 = 6;
/// More payers and classes than any journal has.
const SUMS_MAX: usize = 1 << 24;
/// More allocations that are not over, or corrected ends, than any journal has.
const LIST_MAX: usize = 1 << 32;

pub(crate) fn put(place: &ScrubPlace, check: &Check, statements: &Found) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096 + check.tally.open.len() * 72);
    put_varint(VERSION, &mut out);
    place.put(&mut out);
    let Balance { size, stamp, closed, held, idle, accounts } = &check.balance;
    size.put(&mut out);
    stamp.put(&mut out);
    closed.put(&mut out);
    put_sums(&sums_of(held), &mut out);
    put_sums(&sums_of(idle), &mut out);
    put_list(accounts.iter().map(|(account, currency, balance)| ((*account, *currency), *balance)), &mut out);
    check.next_row.put(&mut out);
    put_sums(&check.idle, &mut out);
    match &check.state {
        BooksChecked::Comparing => out.push(0),
        BooksChecked::Compared => out.push(1),
        BooksChecked::GivenUp(why) => {
            out.push(2);
            put_text(why, &mut out);
        }
    }
    check.tally.closed.put(&mut out);
    put_sums(&check.tally.ended, &mut out);
    put_varint(check.tally.open.len() as u64, &mut out);
    for (number, lease) in &check.tally.open {
        put_varint(*number, &mut out);
        put_lease(lease, &mut out);
    }
    put_list(check.tally.corrected.iter().copied(), &mut out);
    put_list(check.tally.corrected_claims.iter().copied(), &mut out);
    put_list(check.tally.losses.iter().map(|(loss, at)| (*loss, *at)), &mut out);
    check.tally.evictor.put(&mut out);
    put_list(check.tally.allocations.iter().map(|(number, known)| (*number, *known)), &mut out);
    put_list(check.tally.accounts.iter().map(|(key, sum)| (*key, Steps(*sum))), &mut out);
    put_list(check.corrections.ends.iter().map(|(lease, end)| (*lease, *end)), &mut out);
    put_list(check.corrections.idle.iter().copied(), &mut out);
    put_list(statements.months().map(|(month, of)| (month, (of.stated, of.closed))), &mut out);
    out
}

pub(crate) fn get(bytes: &[u8]) -> Option<(ScrubPlace, Check, Found)> {
    let mut r = Reader::new(bytes);
    if r.varint().ok()? != VERSION {
        return None;
    }
    read(&mut r).ok()
}

fn read(r: &mut Reader<'_>) -> Result<(ScrubPlace, Check, Found), DecodeError> {
    let place = ScrubPlace::get(r)?;
    let (size, stamp, closed) = (u64::get(r)?, Instant::get(r)?, u64::get(r)?);
    let (held, idle) = (list_of(get_sums(r)?), list_of(get_sums(r)?));
    let accounts = get_list::<((Account, Currency), Steps)>(r)?.into_iter();
    let accounts = accounts.map(|((account, currency), balance)| (account, currency, balance)).collect();
    let balance = Balance { size, stamp, closed, held, idle, accounts };
    let (next_row, idle) = (u64::get(r)?, get_sums(r)?);
    let state = match r.byte()? {
        0 => BooksChecked::Comparing,
        1 => BooksChecked::Compared,
        _ => BooksChecked::GivenUp(get_text(r)?),
    };
    let mut tally = Tally { closed: u64::get(r)?, ended: get_sums(r)?, ..Tally::default() };
    for _ in 0..r.count(OPEN_MAX)? {
        let number = r.varint()?;
        tally.open.insert(number, get_lease(r)?);
    }
    tally.corrected = get_list(r)?;
    tally.corrected_claims = get_list(r)?;
    tally.losses = get_list(r)?.into_iter().collect();
    tally.evictor = Field::get(r)?;
    tally.allocations = get_list(r)?.into_iter().collect();
    tally.accounts = get_list::<(_, Steps)>(r)?.into_iter().map(|(key, sum)| (key, sum.0)).collect();
    let corrections = Corrections { ends: get_list(r)?.into_iter().collect(), idle: get_list(r)? };
    let mut statements = Found::default();
    for (month, (stated, closed)) in get_list::<(Month, (Option<(u64, u64)>, Option<(u64, u64)>))>(r)? {
        statements.add_month(month, OfMonth { stated, closed });
    }
    r.finish()?;
    Ok((place, Check::at(balance, tally, (next_row, idle, corrections), state), statements))
}

fn put_list<T: Field>(list: impl ExactSizeIterator<Item = T>, out: &mut Vec<u8>) {
    put_varint(list.len() as u64, out);
    list.for_each(|one| one.put(out));
}
fn get_list<T: Field>(r: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
    (0..r.count(LIST_MAX)?).map(|_| T::get(r)).collect()
}

type Line = (TenantNo, ClassNo, u128);

fn sums_of(lines: &[Line]) -> Sums {
    lines.iter().map(|(tenant, class, amount)| ((*tenant, *class), *amount)).collect()
}
fn list_of(sums: Sums) -> Vec<Line> {
    sums.into_iter().map(|((tenant, class), amount)| (tenant, class, amount)).collect()
}

fn put_sums(sums: &Sums, out: &mut Vec<u8>) {
    put_varint(sums.len() as u64, out);
    for ((tenant, class), amount) in sums {
        tenant.put(out);
        class.put(out);
        amount.put(out);
    }
}
fn get_sums(r: &mut Reader<'_>) -> Result<Sums, DecodeError> {
    (0..r.count(SUMS_MAX)?).map(|_| Ok(((TenantNo::get(r)?, ClassNo::get(r)?), u128::get(r)?))).collect()
}

/// A sentence: why the books were not compared.
fn put_text(text: &str, out: &mut Vec<u8>) {
    put_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}
fn get_text(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    let length = r.count(4096)?;
    Ok(String::from_utf8_lossy(r.take(length)?).into_owned())
}

fn put_lease(lease: &Lease, out: &mut Vec<u8>) {
    let Lease { from, to, quanta, granted, others, tenant, project, node, class, phase, end, revoked, fenced } = lease;
    from.put(out);
    to.put(out);
    quanta.put(out);
    granted.put(out);
    others.put(out);
    tenant.put(out);
    project.put(out);
    node.put(out);
    class.put(out);
    out.extend([*phase as u8, *end as u8, *revoked as u8, u8::from(*fenced)]);
}

fn get_lease(r: &mut Reader<'_>) -> Result<Lease, DecodeError> {
    let (from, to, quanta, granted) = (Field::get(r)?, Field::get(r)?, Field::get(r)?, Field::get(r)?);
    let (others, tenant, project) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
    let (node, class) = (Field::get(r)?, Field::get(r)?);
    let phase = match r.byte()? {
        0 => Phase::Held,
        1 => Phase::TearingDown,
        _ => Phase::Fenced,
    };
    let (end, revoked, fenced) = (get_end(r)?, get_end(r)?, bool::get(r)?);
    Ok(Lease { from, to, quanta, granted, others, tenant, project, node, class, phase, end, revoked, fenced })
}

fn get_end(r: &mut Reader<'_>) -> Result<End, DecodeError> {
    let code = r.byte()?;
    Ok(End::ALL.iter().copied().find(|end| *end as u8 == code).unwrap_or(End::Held))
}
