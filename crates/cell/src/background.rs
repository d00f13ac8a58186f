//! The threads in the background: checkpoints, allocation ahead, snapshots.

use crate::core::is_too_full;
use crate::notice::Notice;
use crate::runtime::Shared;
use crate::snapshot::take_snapshot;
use leasehold_journal::PrepareError;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

pub(crate) fn checkpointer(shared: &Shared, every: Duration) {
    loop {
        let going_on = shared.rest(every);
        if shared.has_failed() {
            return;
        }
        let (now, size) = (shared.clock.wall(), shared.journal.head().size);
        match shared.journal.checkpoint(now) {
            Ok(signed) => {
                shared.stats.checkpoints.fetch_add(u64::from(signed.is_some()), Ordering::Relaxed);
                // It is less if the checkpoint has to wait for a file that can be opened.
                if shared.journal.checkpointed().size() >= size {
                    shared.stats.checkpoint_covered_at_ns.store(now.0, Ordering::Relaxed);
                }
            }
            Err(failure) => {
                shared.fail(&format!("the checkpoint failed: {failure}"));
                return;
            }
        }
        if !going_on {
            return;
        }
    }
}

/// How allocating ahead goes.
#[derive(Debug, Default)]
pub(crate) struct Allocation {
    /// Why it fails, and since when.
    failing: Option<(String, Stopwatch)>,
    /// Whether it was announced that commands are refused for that reason.
    announced_full: bool,
}

impl Shared {
    fn allocation(&self) -> MutexGuard<'_, Allocation> {
        self.allocation.lock().expect("no thread panics while it holds the lock")
    }

    /// Why the journal takes no commands, if it does not.
    pub(crate) fn full(&self) -> Option<String> {
        let too_full = is_too_full(&*self.journal, self.headroom_bytes);
        self.allocation().failing.as_ref().filter(|_| too_full).map(|(why, _)| why.clone())
    }

    /// Keeps that allocating failed, and announces each change once.
    fn allocation_failed(&self, why: &str) {
        let (room, too_full) = (self.journal.room(), is_too_full(&*self.journal, self.headroom_bytes));
        let mut notices = Vec::new();
        {
            let mut allocation = self.allocation();
            if allocation.failing.is_none() {
                allocation.failing = Some((why.to_owned(), Stopwatch::now()));
                notices.push(Notice::AllocationFails { why: why.to_owned(), room });
            }
            if too_full && !allocation.announced_full {
                allocation.announced_full = true;
                notices.push(Notice::Full { why: why.to_owned() });
            }
        }
        notices.into_iter().for_each(|notice| (self.on_notice)(notice));
    }

    fn allocated(&self) {
        let before = std::mem::take(&mut *self.allocation());
        if let Some((_, since)) = before.failing {
            (self.on_notice)(Notice::RoomAgain { after: since.elapsed() });
        }
    }
}

pub(crate) fn allocator(shared: &Shared) {
    while shared.rest(Duration::from_millis(20)) {
        match shared.journal.prepare() {
            Ok(()) => shared.allocated(),
            Err(PrepareError::Failed(failure)) => {
                shared.fail(&failure.to_string());
                return;
            }
            // Not fatal: commands are answered `journal_full` until there is room again (SEMANTICS 6).
            Err(error @ (PrepareError::Full(_) | PrepareError::Io(_))) => {
                shared.stats.allocation_failures.fetch_add(1, Ordering::Relaxed);
                shared.allocation_failed(&error.to_string());
                if !shared.rest(Duration::from_secs(1)) {
                    return;
                }
            }
        }
    }
}

pub(crate) fn snapshotter(shared: &Shared, every: u64) {
    // Folding uses a processor for a while, so this thread gets a low priority. If that is not permitted, snapshots are
    // taken anyway.
    let _ = rustix::process::setpriority_process(None, 19);
    let mut last = shared.journal.snapshots().ok().and_then(|sizes| sizes.last().copied()).unwrap_or(0);
    while shared.rest(Duration::from_millis(200)) {
        if shared.journal.checkpointed().size() < last.saturating_add(every) {
            continue;
        }
        match take_snapshot(&*shared.journal) {
            Ok(taken) => {
                last = taken.unwrap_or(last);
                shared.stats.snapshots.fetch_add(u64::from(taken.is_some()), Ordering::Relaxed);
            }
            Err(error) => {
                shared.stats.snapshot_failures.fetch_add(1, Ordering::Relaxed);
                (shared.on_notice)(Notice::SnapshotFailed { why: error.to_string() });
                // Snapshots only speed up the startup: try again after more records.
                last = shared.journal.checkpointed().size();
            }
        }
    }
}
