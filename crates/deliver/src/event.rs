//! Events and sinks, as the server describes them.

use leasehold_model::{Instant, TenantNo};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One event, made from one record. Two processes make the same event from the same record, with the same ID.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The record that it was made from.
    pub sequence: u64,
    /// Its number among the events of that record.
    pub position: u16,
    pub id: String,
    /// For example `lease.granted` or `allocation.started`.
    pub kind: String,
    /// Events with the same value are delivered in order: an allocation, a lease or a node.
    pub order: String,
    pub subject: String,
    pub time: Instant,
    pub data: serde_json::Value,
}

impl Event {
    pub fn place(&self) -> Place {
        Place { sequence: self.sequence, position: self.position }
    }
}

/// Where an event is in the journal. Events are delivered in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(u64, u16)", into = "(u64, u16)")]
pub struct Place {
    pub sequence: u64,
    pub position: u16,
}

impl Place {
    /// Before every event of the record.
    pub const fn start_of(sequence: u64) -> Self {
        Self { sequence, position: 0 }
    }
    /// The first record of which no event lies before this place.
    pub const fn after_record(self) -> u64 {
        self.sequence.saturating_add((self.position > 0) as u64)
    }
    /// The next place at which an event can be.
    pub const fn after(self) -> Self {
        match self.position.checked_add(1) {
            Some(position) => Self { sequence: self.sequence, position },
            None => Self { sequence: self.sequence.saturating_add(1), position: 0 },
        }
    }
}

impl From<(u64, u16)> for Place {
    fn from((sequence, position): (u64, u16)) -> Self {
        Self { sequence, position }
    }
}
impl From<Place> for (u64, u16) {
    fn from(place: Place) -> Self {
        (place.sequence, place.position)
    }
}

/// The number of a sealed sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkId(pub u64);

impl fmt::Display for SinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("sink-{}", self.0))
    }
}

/// How requests to a sink are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureKind {
    /// HMAC-SHA256 with a shared secret (`v1`).
    #[default]
    Hmac,
    /// Ed25519 (`v1a`).
    Ed25519,
}

/// A sink as it was sealed. Its secrets are kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSpec {
    pub id: SinkId,
    pub name: String,
    /// Only events of this tenant; `None` is a sink of the operator.
    pub tenant: Option<TenantNo>,
    pub url: String,
    /// Kinds (`lease.granted`), families (`lease.*`) or `*`.
    pub events: Vec<String>,
    pub signature: SignatureKind,
    /// Events of records from this one on are due.
    pub created_at_sequence: u64,
    pub enabled: bool,
}

impl SinkSpec {
    /// Whether the sink gets events of this kind.
    pub fn wants(&self, kind: &str) -> bool {
        self.events.iter().any(|pattern| matches_kind(pattern, kind))
    }
}

/// Whether a kind is the one, or of the family, that `pattern` says.
pub fn matches_kind(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(family) => family.ends_with('.') && kind.len() > family.len() && kind.starts_with(family),
        None => pattern == kind,
    }
}

/// Events of consecutive whole records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// In order of their places.
    pub events: Vec<Event>,
    /// Where to read on. Larger than where this page begins, unless there was nothing to read.
    pub next: u64,
    /// How many more events of these records the counter of due events has counted than there are.
    pub overcounted: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_match_exactly_by_family_or_all() {
        for (pattern, kind, expected) in [
            ("*", "lease.granted", true),
            ("lease.*", "lease.granted", true),
            ("lease.*", "lease.", false),
            ("lease.*", "leases.granted", false),
            ("lease*", "lease.granted", false),
            ("lease.granted", "lease.granted", true),
            ("lease.granted", "lease.grante", false),
            ("lease", "lease.granted", false),
            ("", "lease.granted", false),
        ] {
            assert_eq!(matches_kind(pattern, kind), expected, "{pattern} {kind}");
        }
    }

    #[test]
    fn the_place_after_the_last_position_is_in_the_next_record() {
        assert_eq!(Place::from((7, 3)).after(), Place::from((7, 4)));
        assert_eq!(Place::from((7, u16::MAX)).after(), Place::start_of(8));
    }
}
