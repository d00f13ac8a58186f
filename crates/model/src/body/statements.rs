//! What the records of a month say about one tenant, stated when the month is closed (ADR 25).

use crate::fields;
use crate::ledger::Month;
use crate::record::Hash;

fields! {
    /// A count of records, and the RFC 6962 root of their hashes.
    #[derive(Copy)]
    pub struct RecordSet { pub count: u64, pub root: Hash }
}

fields! {
    /// What proves the invoices of a tenant for a month. The tenant is the one in the record's head.
    #[derive(Copy)]
    pub struct PeriodStated {
        pub month: Month,
        /// The first record of the range: the first one stamped at or after the first instant of the month.
        pub from: u64,
        /// The first record of the range of the next month.
        pub border: u64,
        /// The record `period.closing`, before which the range ends.
        pub cut: u64,
        /// The tenant's records in the range.
        pub records: RecordSet,
        /// The records in the range on which all bills depend.
        pub common: RecordSet,
        /// The SHA-256 of the lists before the first record of the range, and before that of the next range.
        pub list_at_start: Hash,
        pub list_at_border: Hash,
        pub common_at_start: Hash,
        pub common_at_border: Hash,
        /// The SHA-256 of the list of nodes that the tenant claimed in the range.
        pub claimed_nodes: Hash,
    }
}
