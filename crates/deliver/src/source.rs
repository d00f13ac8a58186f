//! Where events come from. The server implements it over the journal.

use crate::event::{Page, SinkSpec};
use leasehold_model::Instant;
use std::fmt;

/// The events that are due to sinks. Reading twice gives the same events.
pub trait Source: Send + Sync + 'static {
    /// The sequence after the last durable record.
    fn head(&self) -> u64;

    /// Events that are due to the sink, from this record on, at most about `most`: all events of a record are in one
    /// page. May end before `head` with few events or none, if many records had to be looked at; the caller then reads
    /// on at `next`. Ends before records that are not at hand. Blocks.
    fn read(&self, sink: &SinkSpec, from: u64, most: usize) -> Result<Page, SourceError>;

    /// How many events are due to the sink from the records in [from, to) that are at hand. Blocks.
    fn count(&self, sink: &SinkSpec, from: u64, to: u64) -> Result<u64, SourceError>;

    /// A counter that grows by one with each event that becomes due to the sink while this process runs. Cheap: it is
    /// kept by whoever publishes records, and it tells how far a sink is behind without reading.
    fn due(&self, sink: &SinkSpec) -> u64;

    /// The first record that is stamped at or after this instant; `head` if there is none. Blocks.
    fn sequence_at(&self, at: Instant) -> Result<u64, SourceError>;
}

/// Why the journal could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceError {
    /// It is tried again later.
    Later(String),
    /// The records from where reading should begin up to this one are not at hand: they were archived or deleted.
    Gone { until: u64 },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(why) => write!(f, "the events could not be read from the journal: {why}"),
            Self::Gone { until } => write!(f, "the records before {until} were archived or deleted"),
        }
    }
}
impl std::error::Error for SourceError {}
