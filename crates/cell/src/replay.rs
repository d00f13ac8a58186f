//! Replay: folds a journal into a state and verifies its hash chain.

use crate::open::StartError;
use leasehold_engine::{FoldError, State};
use leasehold_journal::{Head, Journal};
use leasehold_model::Record;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

/// From this many records on, reading and folding run in two threads.
const WORTH_A_THREAD: u64 = 20_000;
/// How many records are passed between the threads at a time.
const CHUNK: usize = 256;
/// How many records are folded at a time where there is one thread. What they need is prefetched together.
const FOLDED_TOGETHER: usize = 32;

/// Folds the records that `state` does not have yet, up to the head of the journal. The hash chain is verified from
/// `from` on.
pub fn replay(journal: &dyn Journal, state: &mut State, from: Head) -> Result<Head, StartError> {
    replay_to(journal, state, from, journal.head().size)
}

/// Like `replay`, up to the record before `size`.
pub(crate) fn replay_to(journal: &dyn Journal, state: &mut State, from: Head, size: u64) -> Result<Head, StartError> {
    if size.saturating_sub(from.size) < WORTH_A_THREAD {
        return read(journal, from, size, &mut |record| state.apply(&record).map_err(StartError::Fold));
    }
    let (to_fold, chunks) = sync_channel::<Vec<(Record, Option<u64>)>>(16);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut chunk = Vec::with_capacity(CHUNK);
            let end = read(journal, from, size, &mut |record| {
                let scope = State::scope_of(&record);
                chunk.push((record, scope));
                if chunk.len() == CHUNK {
                    let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK));
                    // If the folding thread has stopped, it reports the reason itself.
                    to_fold.send(full).map_err(|_| StartError::Fold(GIVEN_UP))?;
                }
                Ok(())
            })?;
            let _ = to_fold.send(chunk);
            Ok(end)
        });
        for chunk in &chunks {
            state.apply_many(&chunk).map_err(StartError::Fold)?;
        }
        drop(chunks);
        reader.join().expect("the reading thread does not panic")
    })
}

/// Folds the records that `state` does not have yet, up to the record before `size`, in this thread alone. The hash
/// chain is not verified again: `size` must be covered by a checkpoint of this process, which verified it.
pub(crate) fn fold_checkpointed(journal: &dyn Journal, state: &mut State, size: u64) -> Result<(), StartError> {
    let mut chunk: Vec<(Record, Option<u64>)> = Vec::with_capacity(FOLDED_TOGETHER);
    let mut failed = None;
    let from = state.size();
    journal
        .scan(from, &mut |sequence, raw| {
            if sequence >= size {
                return ControlFlow::Break(());
            }
            match raw.decode() {
                Ok(record) => {
                    let scope = State::scope_of(&record);
                    chunk.push((record, scope));
                }
                Err(error) => failed = Some(FoldError::Decode { sequence, error }),
            }
            if failed.is_none() && chunk.len() == FOLDED_TOGETHER {
                failed = state.apply_many(&chunk).err();
                chunk.clear();
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(StartError::Read)?;
    match failed {
        Some(error) => Err(StartError::Fold(error)),
        None => state.apply_many(&chunk).map_err(StartError::Fold),
    }
}

/// A placeholder for an error that the other thread reports.
const GIVEN_UP: FoldError = FoldError::Inconsistent { sequence: 0, what: "folding ended early" };

/// Reads, verifies and decodes records, and passes each one to `take`.
fn read(
    journal: &dyn Journal,
    from: Head,
    size: u64,
    take: &mut dyn FnMut(Record) -> Result<(), StartError>,
) -> Result<Head, StartError> {
    let mut failed = None;
    let mut end = from;
    journal
        .scan_verified(from, &mut |sequence, raw, hash| {
            if sequence >= size {
                return ControlFlow::Break(());
            }
            end = Head { size: sequence + 1, hash: *hash };
            let decoded = raw.decode().map_err(|error| StartError::Fold(FoldError::Decode { sequence, error }));
            match decoded.and_then(&mut *take) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
        .map_err(StartError::Read)?;
    failed.map_or(Ok(end), Err)
}
