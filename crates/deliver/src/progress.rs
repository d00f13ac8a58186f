//! What is durable about a sink: how far it came, what was set aside, what was skipped.

use crate::event::Place;
use crate::outcome::{Meaning, Outcome};
use crate::ranges::Ranges;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters since the sink was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub attempts: u64,
    pub delivered: u64,
    /// Attempts that did not deliver their event.
    pub failures: u64,
    /// Events that were ever set aside.
    pub dead: u64,
    /// Events that were ever skipped.
    pub dropped: u64,
    /// Skipped events that have not been sent by `reconcile`.
    pub dropped_open: u64,
}

/// How far a sink came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The record at which the sink was created: tells it from an earlier sink with the same number.
    pub created_at: u64,
    /// Everything before this place is acknowledged, dead or dropped.
    pub cursor: Place,
    /// What is acknowledged, dead or dropped after the cursor.
    pub done: Ranges,
    /// What was skipped.
    pub dropped: Ranges,
    /// The part of it that was not at hand when it should have been read. Nobody knows how many events it had.
    #[serde(default, skip_serializing_if = "Ranges::is_empty")]
    pub lost: Ranges,
    /// How many dead letters are stored: a missing one is noticed.
    pub dead: u64,
    pub counters: Counters,
    /// When an event was delivered last, in nanoseconds since 1970.
    #[serde(default)]
    pub last_success_ns: Option<u64>,
}

impl Progress {
    pub fn new(created_at: u64) -> Self {
        Self { created_at, cursor: Place::start_of(created_at), ..Self::default() }
    }
}

/// An event that was set aside. Its contents are in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub place: Place,
    pub id: String,
    pub kind: String,
    pub order: String,
    /// When the event happened, and when it was set aside, in nanoseconds since 1970.
    pub time_ns: u64,
    pub dead_at_ns: u64,
    pub attempts: u32,
    pub status: Option<u16>,
    pub reason: String,
}

/// One attempt, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began, in nanoseconds since 1970.
    pub at_ns: u64,
    pub event_id: String,
    pub kind: String,
    /// The status of the answer, or
    pub status: Option<u16>,
    /// why there was none.
    pub error: Option<String>,
    pub took_ns: u64,
}

impl Attempt {
    /// Why it did not deliver its event, if it did not.
    pub fn failure(&self) -> Option<String> {
        match self.status {
            Some(status) => {
                let answered = Outcome::Answered { status, retry_after: None };
                (answered.meaning() != Meaning::Delivered).then(|| answered.reason())
            }
            None => self.error.clone(),
        }
    }
}

/// What has to be written for a sink. Dead letters that are no longer there are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub progress: Progress,
    pub dead: BTreeMap<Place, Option<DeadLetter>>,
    /// The last attempts, if there were new ones.
    pub attempts: Option<Vec<Attempt>>,
}

/// What was stored for a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub progress: Progress,
    pub dead: Vec<Place>,
    pub attempts: Vec<Attempt>,
}
