//! Encoding and decoding of what the engine keeps of the ledger.

use super::BadSnapshot;
use crate::ledger::{Closing, Ledger, Payer, PayerIndex};
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::ledger::EntryId;
use leasehold_model::rate::Currency;
use leasehold_model::{InvoiceNo, Month, Name, Steps, TenantNo};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn put(ledger: &Ledger, out: &mut Vec<u8>) {
    ledger.opened.put(out);
    if ledger.opened.is_some() {
        ledger.settled_through.put(out);
        ledger.settled_size.put(out);
        ledger.first_open.put(out);
    }
    out.push(u8::from(ledger.closing.is_some()));
    if let Some(closing) = &ledger.closing {
        closing.cut.put(out);
        closing.invoices.put(out);
        closing.credit_notes.put(out);
        put_varint(closing.issued.len() as u64, out);
        closing.issued.iter().for_each(|of| of.put(out));
        put_varint(closing.stated.len() as u64, out);
        closing.stated.iter().for_each(|tenant| tenant.put(out));
    }
    put_varint(ledger.payers.len() as u64, out);
    for (key, payer) in &ledger.payers {
        key.put(out);
        payer.tenant.put(out);
        payer.last.put(out);
        payer.through.put(out);
        payer.as_of_size.put(out);
        payer.last_line.as_deref().cloned().put(out);
        payer.residual.put(out);
        payer.unbilled.put(out);
    }
    put_varint(ledger.invoiced.len() as u64, out);
    for (of, amount) in &ledger.invoiced {
        of.put(out);
        amount.put(out);
    }
    ledger.invoices.put(out);
    ledger.credit_notes.put(out);
    put_varint(ledger.issued_to.len() as u64, out);
    for (invoice, to) in &ledger.issued_to {
        invoice.put(out);
        to.put(out);
    }
    put_varint(ledger.payments.len() as u64, out);
    for (of, sequence) in &ledger.payments {
        of.put(out);
        sequence.put(out);
    }
    put_varint(ledger.tax_rates.len() as u64, out);
    for (of, rate) in &ledger.tax_rates {
        of.put(out);
        rate.put(out);
    }
    put_varint(ledger.disputed.len() as u64, out);
    ledger.disputed.iter().for_each(|entry| entry.put(out));
}

/// Reads a map whose keys are in order.
pub(super) fn get_map<K: Ord, V>(
    r: &mut Reader<'_>,
    mut entry: impl FnMut(&mut Reader<'_>) -> Result<(K, V), BadSnapshot>,
) -> Result<BTreeMap<K, V>, BadSnapshot> {
    let mut map = BTreeMap::new();
    for _ in 0..r.count(usize::MAX)? {
        let (key, value) = entry(r)?;
        if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(BadSnapshot::Inconsistent("the keys of a map are out of order"));
        }
        map.insert(key, value);
    }
    Ok(map)
}

pub(super) fn get_set<K: Ord + Field>(r: &mut Reader<'_>) -> Result<BTreeSet<K>, BadSnapshot> {
    Ok(get_map(r, |r| Ok((K::get(r)?, ())))?.into_keys().collect())
}

fn get_payer(size: u64, r: &mut Reader<'_>) -> Result<Payer, BadSnapshot> {
    let mut payer = Payer {
        tenant: Field::get(r)?,
        last: Field::get(r)?,
        through: Field::get(r)?,
        as_of_size: Field::get(r)?,
        complete: true,
        last_line: <Option<_>>::get(r)?.map(Box::new),
        residual: Field::get(r)?,
        unbilled: Field::get(r)?,
    };
    payer.complete = payer.last_line.is_none();
    let months = payer.unbilled.is_sorted_by(|a, b| a.0 < b.0);
    if !months || payer.unbilled.iter().any(|(_, amount)| *amount == Steps::ZERO) {
        return Err(BadSnapshot::Inconsistent("a payer's months are out of order or empty"));
    }
    if payer.last.is_some_and(|last| last >= size) || payer.as_of_size > size {
        return Err(BadSnapshot::Inconsistent("a payer's last posting is ahead of the journal"));
    }
    Ok(payer)
}

pub(super) fn get(size: u64, r: &mut Reader<'_>) -> Result<Ledger, BadSnapshot> {
    let mut ledger = Ledger { opened: Field::get(r)?, ..Ledger::default() };
    if ledger.opened.is_some() {
        ledger.settled_through = Field::get(r)?;
        ledger.settled_size = Field::get(r)?;
        ledger.first_open = Field::get(r)?;
    }
    if bool::get(r)? {
        let (cut, invoices, credit_notes) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let issued: BTreeSet<(TenantNo, Currency)> = get_set(r)?;
        if issued.len() as u64 != u64::saturating_add(invoices, credit_notes) || cut >= size {
            return Err(BadSnapshot::Inconsistent("the invoices of the month that is being closed are miscounted"));
        }
        let stated = get_set(r)?;
        let closing = Closing { month: ledger.first_open, cut, issued, invoices, credit_notes, stated };
        if closing.stated.iter().any(|tenant| !closing.has_invoice(*tenant)) {
            return Err(BadSnapshot::Inconsistent("a statement for a tenant without an invoice"));
        }
        ledger.closing = Some(closing);
    }
    ledger.payers = get_map(r, |r| Ok((Field::get(r)?, get_payer(size, r)?)))?;
    ledger.payer_index = PayerIndex::of(&ledger.payers);
    ledger.invoiced = get_map(r, |r| Ok((Field::get(r)?, Steps::get(r)?)))?;
    if ledger.invoiced.values().any(|amount| *amount == Steps::ZERO) {
        return Err(BadSnapshot::Inconsistent("a tenant that owes nothing"));
    }
    (ledger.invoices, ledger.credit_notes) = (Field::get(r)?, Field::get(r)?);
    ledger.issued_to = get_map(r, |r| Ok((InvoiceNo::get(r)?, Field::get(r)?)))?;
    if ledger.issued_to.len() as u64 != u64::saturating_add(ledger.invoices, ledger.credit_notes) {
        return Err(BadSnapshot::Inconsistent("the invoices are miscounted"));
    }
    ledger.payments = get_map(r, |r| Ok((<(TenantNo, Name)>::get(r)?, u64::get(r)?)))?;
    ledger.tax_rates = get_map(r, |r| Ok((<(TenantNo, Month)>::get(r)?, Field::get(r)?)))?;
    ledger.disputed = get_set::<EntryId>(r)?;
    if ledger.opened.is_none() && ledger != (Ledger { tax_rates: ledger.tax_rates.clone(), ..Ledger::default() }) {
        return Err(BadSnapshot::Inconsistent("a ledger with entries that is not open"));
    }
    Ok(ledger)
}
