//! Folding a journal into a state, with the chain verified on the way.

use crate::open::StartError;
use leasehold_engine::{FoldError, State};
use leasehold_journal::{Head, Journal};
use leasehold_model::Record;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

/// From this many records on, reading and folding take a core each.
const WORTH_A_THREAD: u64 = 20_000;
/// Records handed over at a time.
const CHUNK: usize = 256;

/// Folds the journal's records into `state`, from where it stands to the head, with the chain
/// verified from `from`.
pub fn replay(journal: &dyn Journal, state: &mut State, from: Head) -> Result<Head, StartError> {
    replay_to(journal, state, from, journal.head().size)
}

/// The same, up to the record before `size`.
pub(crate) fn replay_to(journal: &dyn Journal, state: &mut State, from: Head, size: u64) -> Result<Head, StartError> {
    if size.saturating_sub(from.size) < WORTH_A_THREAD {
        return read(journal, from, size, &mut |record| state.apply(&record).map_err(StartError::Fold));
    }
    let (to_fold, chunks) = sync_channel::<Vec<(Record, Option<u128>)>>(16);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut chunk = Vec::with_capacity(CHUNK);
            let end = read(journal, from, size, &mut |record| {
                let scope = State::scope_of(&record);
                chunk.push((record, scope));
                if chunk.len() == CHUNK {
                    let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK));
                    // A folder that has given up says why itself.
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
        reader.join().expect("reading does not panic")
    })
}

/// Stands for an error that the other side reports.
const GIVEN_UP: FoldError = FoldError::Inconsistent { sequence: 0, what: "folding ended early" };

/// Reads, verifies and decodes; hands each record on.
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
