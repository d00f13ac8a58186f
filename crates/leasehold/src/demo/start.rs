//! The demo's cell.

use super::scene::Pace;
use crate::place::{Place, open_journal, software};
use crate::problem::Problem;
use leasehold_cell::{Cell, CellOptions, StartOptions, SystemClock};
use leasehold_engine::Settings;
use leasehold_journal::{Journal, Recovered};
use leasehold_model::Span;
use std::sync::Arc;

/// Says plainly what it is, in every signature.
pub(crate) const ORIGIN: &str = "demo.leasehold.local";

/// Small segments: a demo should not fill a disk, and may well go over from one to the next.
const SEGMENT_BYTES: u64 = 8 << 20;

/// A running cell, and what was found at its start.
pub(crate) struct Opened {
    pub(crate) cell: Cell,
    /// What was there before, if anything was.
    pub(crate) recovered: Option<Recovered>,
    pub(crate) snapshot_size: u64,
    pub(crate) replayed: u64,
    /// The first record of this run.
    pub(crate) first_sequence: u64,
}

pub(crate) fn open(place: &Place, pace: Pace) -> Result<Opened, Problem> {
    let clock = SystemClock::new();
    let keys = Arc::new(place.keys(ORIGIN)?);
    let public_key = keys.public_keys()[0];
    let (journal, recovered) = open_journal(place, keys, SEGMENT_BYTES, &clock)?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let first_sequence = journal.head().size;
    let mut start = StartOptions::new(software(), public_key);
    start.settings = Some(Settings {
        ttl_max: Span::from_secs(60),
        grace_default: pace.span(2500),
        // Limits on the players' threads: a busy machine must not lose nodes by itself.
        teardown_deadline: pace.span(1600).max(Span::from_millis(300)),
        node_timeout: pace.span(1500).max(Span::from_millis(400)),
        idempotency_window: Span::from_secs(3600),
    });
    let (cell, opened) = Cell::start(journal, Arc::new(clock), CellOptions::new(start))
        .map_err(|error| Problem::told(error.code(), &error).at(&place.data))?;
    let recovered = recovered.filter(|recovered| recovered.size > 0);
    Ok(Opened { cell, recovered, snapshot_size: opened.snapshot_size, replayed: opened.replayed, first_sequence })
}
