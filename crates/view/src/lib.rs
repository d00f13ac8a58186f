//! The JSON view of records, for people and for other programs (docs/reference/json-view.md).
//!
//! In: records of the journal, in order. Out: one JSON object per record, with all fields of the audit record and one
//! lease event for each lease that it changes.
//!
//! Records contain numbers; the [`Directory`] has the names for them, from earlier records.
//!
//! The JSON is never hashed, signed or read back.

mod allocations;
mod apps;
mod body;
mod correlation;
mod directory;
mod entitlements;
mod lease_event;
mod ledger;
mod object;
mod placement;
mod prepaid;
mod rates;
mod record;
mod sharing;
mod sinks;

pub use directory::{Directory, KnownLease};

use leasehold_model::codec::DecodeError;
use leasehold_model::frame::RawRecord;
use leasehold_model::record::Hash;
use serde_json::Value;

impl Directory {
    /// Shows one record as JSON and learns its names for later records.
    ///
    /// `hash` is the hash of the record. A directory that did not see the start of the journal works too; unknown
    /// names are null.
    pub fn show(&mut self, raw: &RawRecord<'_>, hash: &Hash) -> Result<Value, DecodeError> {
        let record = raw.decode()?;
        self.learn(&record, hash);
        let shown = record::show(self, &record, raw, hash);
        self.forget(&record);
        Ok(shown)
    }

    /// Shows one record without learning its names, for readers that show old records after newer ones.
    pub fn show_known(&self, raw: &RawRecord<'_>, hash: &Hash) -> Result<Value, DecodeError> {
        Ok(record::show(self, &raw.decode()?, raw, hash))
    }

    /// Learns the names of a record without showing it, for readers that start to show later.
    pub fn pass(&mut self, raw: &RawRecord<'_>, hash: &Hash) -> Result<(), DecodeError> {
        let record = raw.decode()?;
        self.learn(&record, hash);
        self.forget(&record);
        Ok(())
    }
}
