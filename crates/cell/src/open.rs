//! Startup: loads a snapshot, replays the records after it, checks the clock, and seals a `started` record.

use crate::clock::{Clock, Stamper};
use crate::core::Core;
use crate::now::Now;
use crate::replay::replay;
use leasehold_engine::{Command, Engine, FoldError, Readers, Refusal, Request, Settings, State};
use leasehold_journal::{AppendError, Head, Journal, PrepareError, ReadError, SnapshotError};
use leasehold_model::body::{ClockAccepted, Genesis, Started};
use leasehold_model::{Batch, FORMAT_VERSION, Identity, Instant, Name, RULES_VERSION, Span};
use std::fmt;
use std::sync::Arc;

/// Options for the startup of a cell.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The name and version of the program, for the `started` record.
    pub software: Name,
    /// The public key for the genesis record of a new journal.
    pub public_key: [u8; 32],
    /// The engine's settings. They are recorded if they differ from those in force. `None` keeps those.
    pub settings: Option<Settings>,
    /// Whether to start although the wall clock is outside the accepted gap. The journal records that.
    pub accept_clock: bool,
    /// How far the wall clock may be after the last stamp.
    pub max_clock_gap: Span,
    /// The largest number of records in one batch.
    pub batch_records_max: u32,
    /// Bytes that are kept free in the journal, enough for any single command.
    pub headroom_bytes: u64,
}

impl StartOptions {
    pub fn new(software: Name, public_key: [u8; 32]) -> Self {
        Self {
            software,
            public_key,
            settings: None,
            accept_clock: false,
            max_clock_gap: Span::from_secs(7 * 86_400),
            batch_records_max: 1000,
            headroom_bytes: 1 << 20,
        }
    }
}

/// Why a cell did not start.
#[derive(Debug)]
pub enum StartError {
    Read(ReadError),
    Snapshot(SnapshotError),
    Fold(FoldError),
    /// The wall clock is before the last stamp, or too far after it.
    Clock {
        last_stamp: Instant,
        wall: Instant,
    },
    Append(AppendError),
    Prepare(PrepareError),
    Settings(Refusal),
    BadOrigin(String),
}

impl StartError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read(_) => "journal_unreadable",
            Self::Snapshot(_) => "snapshot_unreadable",
            Self::Fold(FoldError::UnknownKind { .. }) => "record_kind_unknown",
            Self::Fold(_) => "record_inconsistent",
            Self::Clock { .. } => "clock_gap",
            Self::Append(AppendError::Full) | Self::Prepare(PrepareError::Full(_)) => "journal_full",
            Self::Append(_) | Self::Prepare(_) => "journal_failed",
            Self::Settings(refusal) => refusal.code(),
            Self::BadOrigin(_) => "bad_origin",
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
            Self::Fold(error) => error.fmt(f),
            Self::Clock { last_stamp, wall } => write!(
                f,
                "the clock shows {wall}, but the last record was made at {last_stamp}; correct the clock, \
                 or start with --accept-clock, which is recorded in the journal"
            ),
            Self::Append(error) => error.fmt(f),
            Self::Prepare(error) => error.fmt(f),
            Self::Settings(refusal) => write!(f, "invalid settings: {refusal}"),
            Self::BadOrigin(why) => write!(f, "invalid origin of the journal: {why}"),
        }
    }
}
impl std::error::Error for StartError {}

/// What the startup found.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The number of records in the snapshot that was used; zero if there was none.
    pub snapshot_size: u64,
    /// The number of records that were replayed after it.
    pub replayed: u64,
    /// The snapshots that could not be used, with the reason for each.
    pub damaged_snapshots: Vec<String>,
}

/// The state of the newest usable snapshot with at most `size_max` records. Adds the unusable ones to `damaged`.
pub(crate) fn newest_state(
    journal: &dyn Journal,
    mut size_max: u64,
    damaged: &mut Vec<String>,
) -> Result<(State, Head), StartError> {
    loop {
        let loaded = journal.load_snapshot(size_max).map_err(StartError::Snapshot)?;
        damaged.extend(loaded.damaged.iter().map(|d| format!("snapshot at {}: {}", d.size, d.why)));
        let Some(snapshot) = loaded.snapshot else { return Ok((State::new(), Head::EMPTY)) };
        let head = snapshot.position.head;
        match State::from_snapshot(&snapshot.state) {
            Ok(state) if state.size() == head.size => return Ok((state, head)),
            Ok(_) => damaged.push(format!("snapshot at {}: it contains the state at another record", head.size)),
            Err(error) => damaged.push(format!("snapshot at {}: {error}", head.size)),
        }
        match head.size.checked_sub(1) {
            Some(older) => size_max = older,
            None => return Ok((State::new(), Head::EMPTY)),
        }
    }
}

impl Core {
    /// Opens a cell on a journal. When it returns, the `started` record is durable and visible.
    pub fn open(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        options: &StartOptions,
    ) -> Result<(Self, Now, Opened), StartError> {
        let mut damaged_snapshots = Vec::new();
        let (mut state, from) = newest_state(&*journal, journal.head().size, &mut damaged_snapshots)?;
        // Without a usable snapshot every segment is needed; the first one missing is named.
        if let Some(segment) = journal.missing_segment().filter(|_| from == Head::EMPTY) {
            return Err(StartError::Read(ReadError::Archived { segment }));
        }
        let end = replay(&*journal, &mut state, from)?;
        let opened = Opened { snapshot_size: from.size, replayed: end.size - from.size, damaged_snapshots };

        let last_stamp = state.last_stamp();
        let clock_accepted = check_clock(&*clock, &state, options)?;
        let now_view = Now::new(Readers::beside(&mut state));
        let mut engine = Engine::new(state);
        let mut stamper = Stamper::start(&*clock, last_stamp);
        let mut batch = Batch::new(engine.state().size());
        let now = stamper.now(&*clock);
        if engine.state().size() == 0 {
            let origin = Name::new(journal.origin()).map_err(|why| StartError::BadOrigin(why.to_string()))?;
            let genesis = Genesis {
                format_version: FORMAT_VERSION,
                origin,
                public_key: options.public_key,
                software: options.software.clone(),
            };
            engine.genesis(now, genesis, &mut batch);
        }
        for found in journal.to_seal() {
            engine.recovered(now, found, &mut batch);
        }
        let started = Started {
            // Epochs grow, also where an older anchor was put back.
            epoch: journal.epoch().max(engine.state().epoch().saturating_add(1)),
            software: options.software.clone(),
            rules_version: RULES_VERSION,
            clock_accepted,
        };
        engine.started(now, started, &mut batch);
        // Allocating segments takes a while. Usually there is room, and the allocator thread makes more later.
        if journal.room() < options.headroom_bytes + batch.bytes().len() as u64 {
            journal.prepare().or_else(|error| match error {
                PrepareError::Full(_) => Ok(()),
                error => Err(StartError::Prepare(error)),
            })?;
        }
        append_and_show(&*journal, &now_view, &mut batch)?;
        if let Some(settings) = options.settings.clone().filter(|s| s != engine.state().settings()) {
            // Timers that came due while the daemon was not running go first, as before any command.
            loop {
                batch.reset(engine.state().size());
                let all_done = engine.advance(now, &mut batch, options.batch_records_max);
                if all_done {
                    break;
                }
                append_and_show(&*journal, &now_view, &mut batch)?;
            }
            let request = Request::new(Identity::default(), Command::ChangeSettings(settings));
            engine.decide(now, &request, &mut batch).map_err(StartError::Settings)?;
            append_and_show(&*journal, &now_view, &mut batch)?;
        }
        let core = Self::new(engine, journal, clock, stamper, options.headroom_bytes, options.batch_records_max);
        Ok((core, now_view, opened))
    }
}

/// Makes a batch of the startup durable and visible.
fn append_and_show(journal: &dyn Journal, now: &Now, batch: &mut Batch) -> Result<(), StartError> {
    journal.append(batch).map_err(StartError::Append)?;
    let sealed: Result<Vec<_>, _> = batch.frames().map(|f| f.expect("it was encoded above").decode()).collect();
    let sealed = sealed.expect("a batch that was just encoded can be decoded");
    now.publish(&sealed).map_err(StartError::Fold)
}

/// A wall clock before the last stamp, or too far after it, needs the operator's consent (SEMANTICS 2).
fn check_clock(clock: &dyn Clock, state: &State, options: &StartOptions) -> Result<Option<ClockAccepted>, StartError> {
    let (wall, last_stamp) = (clock.wall(), state.last_stamp());
    let fits = wall >= last_stamp && wall.since(last_stamp) <= options.max_clock_gap;
    if state.size() == 0 || fits {
        return Ok(None);
    }
    if options.accept_clock {
        return Ok(Some(ClockAccepted { last_stamp, wall_clock: wall }));
    }
    Err(StartError::Clock { last_stamp, wall })
}
