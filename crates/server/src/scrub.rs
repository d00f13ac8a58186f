//! The scrub of the daemon: a pass over the whole journal and the books from time to time, at the lowest priority.
//!
//! One thread waits until a pass is due and fixes what it compares; the pass itself runs on a thread of its own (`pass.rs`),
//! because a thread that has lowered its priority cannot raise it again. What a pass has found so far is in memory for
//! `audit status` and the metrics, and in a file for the next start (`progress.rs`).

mod describe;
mod pace;
mod pass;
mod progress;

pub(crate) use pass::run;

use crate::config;
use leasehold_api::{ScrubFinding, ScrubPass, ScrubState};
use leasehold_cell::Clock;
use leasehold_journal::{FileJournal, MacKey};
use leasehold_model::Instant;
use progress::{ProgressFile, Saved};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Findings of one pass that are kept; more are counted.
pub(crate) const FINDINGS_MAX: usize = 100;
/// After a start, before the first pass begins by itself: the daemon has better things to do.
const AFTER_START: Duration = Duration::from_secs(60);
/// How often the waiting thread looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is known about the passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) present: Option<ScrubPass>,
    pub(crate) last: Option<ScrubPass>,
}

/// The scrub, as the routes and the metrics see it.
pub(crate) struct ScrubService {
    pub(crate) journal: Arc<FileJournal>,
    clock: Arc<dyn Clock>,
    settings: config::Scrub,
    file: ProgressFile,
    known: Mutex<Known>,
    /// Somebody asked for a pass.
    asked: AtomicBool,
    stopping: AtomicBool,
    woken: (Mutex<()>, Condvar),
    /// Bytes that were read since the start.
    pub(crate) bytes: AtomicU64,
    /// Passes that were completed since the start.
    pub(crate) passes: AtomicU64,
}

impl ScrubService {
    pub(crate) fn new(
        data: &Path,
        key: MacKey,
        journal: Arc<FileJournal>,
        clock: Arc<dyn Clock>,
        settings: config::Scrub,
    ) -> Self {
        Self {
            journal,
            clock,
            settings,
            file: ProgressFile::new(data, key),
            known: Mutex::default(),
            asked: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            woken: (Mutex::new(()), Condvar::new()),
            bytes: AtomicU64::new(0),
            passes: AtomicU64::new(0),
        }
    }

    fn locked(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self) -> Known {
        self.locked().clone()
    }
    pub(crate) fn settings(&self) -> &config::Scrub {
        &self.settings
    }

    /// When the next pass begins by itself; none while one runs, and if none will.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let known = self.locked();
        let idle = self.settings.enabled && known.present.is_none();
        let due = known.last.as_ref().map(|last| last.began_at.0.saturating_add(self.settings.every));
        idle.then(|| due.unwrap_or_default().max(self.clock.wall()))
    }

    /// Asks for a pass now. False if one is running.
    pub(crate) fn begin(&self) -> bool {
        if self.locked().present.is_some() {
            return false;
        }
        self.asked.store(true, Ordering::Relaxed);
        self.wake();
        true
    }

    fn wake(&self) {
        let _lock = self.woken.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.woken.1.notify_all();
    }

    /// Asks the threads to save where they stand and to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.wake();
    }
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Waits, but not when the daemon stops. A request for a pass ends the wait as well.
    pub(crate) fn wait(&self, length: Duration) {
        let lock = self.woken.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopping() && !self.asked.load(Ordering::Relaxed) {
            drop(self.woken.1.wait_timeout(lock, length));
        }
    }

    /// Whether a pass should begin, by itself or because somebody asked.
    fn is_due(&self, since_start: Duration) -> bool {
        if self.asked.swap(false, Ordering::Relaxed) {
            return true;
        }
        let Some(due) = self.next_at() else { return false };
        since_start >= AFTER_START && due <= self.clock.wall()
    }

    /// Changes what is known about the present pass.
    fn update(&self, change: impl FnOnce(&mut ScrubPass)) {
        if let Some(present) = &mut self.locked().present {
            change(present);
        }
    }

    /// Adds what a pass found, and logs what the last one had not found already.
    fn found(&self, findings: Vec<ScrubFinding>) {
        let mut known = self.locked();
        let Known { present: Some(present), last } = &mut *known else { return };
        for finding in findings {
            if last.as_ref().is_none_or(|last| !last.damage.contains(&finding)) {
                describe::log(&finding);
            }
            present.damage_count += 1;
            if present.damage.len() < FINDINGS_MAX {
                present.damage.push(finding);
            }
        }
    }

    /// The present pass has ended, and becomes the last one.
    fn ended(&self, state: ScrubState, error: Option<String>) {
        let mut known = self.locked();
        let Some(mut pass) = known.present.take() else { return };
        (pass.state, pass.error, pass.ended_at) = (state, error, Some(self.clock.wall().into()));
        let (records, bytes, damage) = (pass.records, pass.bytes, pass.damage_count);
        match (&pass.error, damage) {
            (Some(error), _) => tracing::error!(error, "the scrub could not be finished; it begins again later"),
            (None, 0) => tracing::info!(records, bytes, "the scrub has read the whole journal and found no damage"),
            (None, _) => {
                tracing::error!(records, bytes, damage, "the scrub has found damage: see `leasehold audit status`");
            }
        }
        known.last = Some(pass);
        drop(known);
        self.passes.fetch_add(u64::from(state == ScrubState::Complete), Ordering::Relaxed);
        self.save(None);
    }

    /// Writes what is known, and where the present pass stands.
    fn save(&self, pass: Option<Vec<u8>>) {
        let Known { present, last } = self.known();
        let present = present.zip(pass);
        if let Err(error) = self.file.write(&Saved { last, present }) {
            tracing::warn!(%error, "cannot write the progress of the scrub; after a restart the pass begins anew");
        }
    }

    /// Reads what the last run of the daemon left.
    fn load(&self) -> Option<Vec<u8>> {
        let saved = match self.file.read() {
            Ok(saved) => saved?,
            Err(why) => {
                tracing::warn!(why, "the progress of the scrub is discarded; the next pass begins anew");
                self.file.remove();
                return None;
            }
        };
        let mut known = self.locked();
        known.last = saved.last;
        let (mut pass, bytes) = saved.present?;
        pass.resumed += 1;
        known.present = Some(pass);
        Some(bytes)
    }

    /// What the metrics show: whether a pass runs, how far it is, and the damage that is known.
    pub(crate) fn figures(&self) -> Figures {
        let Known { present, last } = self.known();
        let of = |pass: &Option<ScrubPass>, figure: fn(&ScrubPass) -> u64| pass.as_ref().map_or(0, figure);
        let complete = last.as_ref().filter(|last| last.state == ScrubState::Complete);
        Figures {
            enabled: self.settings.enabled,
            running: present.is_some(),
            records: of(&present, |pass| pass.records),
            damage: of(&present, |pass| pass.damage_count).max(of(&last, |pass| pass.damage_count)),
            completed_at: complete.and_then(|last| last.ended_at).map(|at| at.0),
            bytes: self.bytes.load(Ordering::Relaxed),
            passes: self.passes.load(Ordering::Relaxed),
        }
    }

    /// A pass begins; it waits for the books first.
    fn announce(&self) {
        let began_at = self.clock.wall().into();
        self.locked().present = Some(ScrubPass { began_at, ..ScrubPass::default() });
    }

    /// The pass that was announced did not begin.
    fn forget(&self) {
        self.locked().present = None;
    }
}

/// The scrub in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub enabled: bool,
    pub running: bool,
    /// Records that the present pass has read.
    pub records: u64,
    /// Findings of the last pass, or of the present one if there are more.
    pub damage: u64,
    /// When the last pass ended that read everything.
    pub completed_at: Option<Instant>,
    pub bytes: u64,
    pub passes: u64,
}
