//! The JSON view of records, for people and for other programs (docs/reference/json-view.md).
//!
//! In: records as they lie in the journal, in order. Out: one JSON object per record, with every
//! field of the audit record and, where leases are touched, one lease event for each of them.
//!
//! Records speak in numbers, so whoever shows them must have read what the numbers mean: that is
//! the [`Directory`].
//!
//! Never: hashed, signed or read back; the bytes are the journal.

mod allocations;
mod body;
mod directory;
mod lease_event;
mod object;
mod placement;
mod rates;
mod record;

pub use directory::{Directory, KnownLease};

use leasehold_model::codec::DecodeError;
use leasehold_model::frame::RawRecord;
use leasehold_model::record::Hash;
use serde_json::Value;

impl Directory {
    /// Shows one record as JSON and remembers what it says for those that follow.
    ///
    /// `hash` is the record's own: whoever reads the journal has computed it already. A directory
    /// that did not see the journal's beginning works too; names it has not met are null then.
    pub fn show(&mut self, raw: &RawRecord<'_>, hash: &Hash) -> Result<Value, DecodeError> {
        let record = raw.decode()?;
        self.learn(&record, hash);
        let shown = record::show(self, &record, raw, hash);
        self.forget(&record);
        Ok(shown)
    }

    /// Shows one record by what is known already, learning nothing: for a reader that shows old records
    /// after newer ones.
    pub fn show_known(&self, raw: &RawRecord<'_>, hash: &Hash) -> Result<Value, DecodeError> {
        Ok(record::show(self, &raw.decode()?, raw, hash))
    }

    /// Remembers what a record says without showing it, for readers that begin to show later.
    pub fn pass(&mut self, raw: &RawRecord<'_>, hash: &Hash) -> Result<(), DecodeError> {
        let record = raw.decode()?;
        self.learn(&record, hash);
        self.forget(&record);
        Ok(())
    }
}
