//! Encoding of the ledger in the state of the books; entries and invoices have entries of their own in the file.

use super::{InvoiceLine, InvoiceLineKey, LateChange, LedgerBook, PayerBook};
use crate::bytes::{get_list, put_list};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::ledger::EntryId;
use leasehold_model::{Month, Steps};

impl Field for LedgerBook {
    fn put(&self, out: &mut Vec<u8>) {
        self.opened.put(out);
        self.settled_through.put(out);
        // The default is no month.
        self.opened.map(|_| self.first_open).put(out);
        self.closing.put(out);
        put_list(self.payers.iter().map(|(key, payer)| (*key, payer.clone())), out);
        put_varint(self.late.len() as u64, out);
        for (series, changes) in &self.late {
            series.put(out);
            put_list(changes.iter().copied(), out);
        }
        put_list(self.balances.iter().map(|(key, balance)| (*key, *balance)), out);
        put_varint(self.months.len() as u64, out);
        for ((month, tenant, currency), lines) in &self.months {
            month.put(out);
            tenant.put(out);
            currency.put(out);
            put_list(lines.iter().map(|(key, line)| (key.clone(), *line)), out);
        }
        put_list(self.tax_rates.iter().map(|(key, rate)| (*key, *rate)), out);
        put_list(self.corrected.iter().map(|(entry, by)| (*entry, *by)), out);
        put_varint(self.corrected_lines.len() as u64, out);
        for (project, currency, key) in &self.corrected_lines {
            project.put(out);
            currency.put(out);
            key.put(out);
        }
        put_list(self.changed_lines.iter().copied(), out);
        put_list(self.disputed.iter().copied(), out);
        put_list(self.invoices.iter().cloned(), out);
        put_list(self.payments.iter().cloned(), out);
        put_list(self.prepaid.iter().cloned(), out);
        put_list(self.closed.iter().map(|(month, at)| (*month, *at)), out);
        put_list(self.stated.iter().map(|(of, sequence)| (*of, *sequence)), out);
        self.entries.put(out);
        self.kept.put(out);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (opened, settled_through) = (Field::get(r)?, Field::get(r)?);
        let first_open: Option<Month> = Field::get(r)?;
        let mut ledger = Self {
            opened,
            settled_through,
            first_open: first_open.unwrap_or_default(),
            closing: Field::get(r)?,
            payers: get_list::<(_, PayerBook)>(r)?.into_iter().collect(),
            ..Self::default()
        };
        for _ in 0..r.count(1 << 40)? {
            ledger.late.insert(Field::get(r)?, get_list::<LateChange>(r)?);
        }
        ledger.balances = get_list::<(_, Steps)>(r)?.into_iter().collect();
        for _ in 0..r.count(1 << 40)? {
            let key = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
            let lines = get_list::<(InvoiceLineKey, InvoiceLine)>(r)?.into_iter().collect();
            ledger.months.insert(key, lines);
        }
        ledger.tax_rates = get_list(r)?.into_iter().collect();
        ledger.corrected = get_list::<(EntryId, u64)>(r)?.into_iter().collect();
        for _ in 0..r.count(1 << 40)? {
            ledger.corrected_lines.insert((Field::get(r)?, Field::get(r)?, Field::get(r)?));
        }
        ledger.changed_lines = get_list(r)?;
        ledger.disputed = get_list(r)?.into_iter().collect();
        ledger.invoices = get_list(r)?;
        ledger.payments = get_list(r)?;
        ledger.prepaid = get_list(r)?;
        ledger.closed = get_list(r)?.into_iter().collect();
        ledger.stated = get_list(r)?.into_iter().collect();
        (ledger.entries, ledger.kept) = (Field::get(r)?, Field::get(r)?);
        Ok(ledger)
    }
}
