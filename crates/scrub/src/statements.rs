//! Making the statements about months again (ADR 25). They are made from the first record on, after the pass over the
//! segments has found them intact: what a record means for a bill depends on those before it, and where that stands does
//! not fit into what a pass saves.

use crate::pass::Finding;
use crate::tally::OPEN_MAX;
use leasehold_bill::{Failed, Found, recheck};
use leasehold_journal::{Journal, ReadError};
use std::ops::ControlFlow;

/// What the fold keeps of an open lease needs more memory than what the tally keeps.
const STATED_OPEN_MAX: usize = OPEN_MAX / 4;

/// What became of the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementsChecked {
    /// So many are what the records say.
    Compared(u64),
    /// One of them is not.
    Wrong(Finding),
    /// They could not be made again, for this reason.
    NotCompared(String),
    /// The caller did not want to go on.
    Stopped,
}

/// Makes the statements again. `go_on` is told how many bytes were read since it was asked last.
pub fn recheck_statements(
    journal: &dyn Journal,
    found: &Found,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> StatementsChecked {
    let mut stopped = false;
    let checked = recheck(found, STATED_OPEN_MAX, |from, visit| {
        let mut undecodable = None;
        journal.scan_batches(from, &mut |first, batch| {
            if !go_on(batch.bytes_total() as u64) {
                stopped = true;
                return ControlFlow::Break(());
            }
            for (raw, sequence) in batch.records().zip(first..).filter(|(_, sequence)| *sequence >= from) {
                let raw = raw.expect("the frames were looked at when the batch was read");
                match raw.decode() {
                    Ok(record) => visit(&record, &raw.hash())?,
                    Err(_) => {
                        undecodable = Some(sequence);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        undecodable.map_or(Ok(()), |sequence| Err(ReadError::BrokenChain { sequence }))
    });
    if stopped {
        return StatementsChecked::Stopped;
    }
    match checked {
        Ok(count) => StatementsChecked::Compared(count),
        Err(Failed::Wrong { sequence, wrong }) => {
            StatementsChecked::Wrong(Finding::Statement { sequence, what: wrong.to_string() })
        }
        Err(Failed::Unread(error)) => StatementsChecked::NotCompared(error.to_string()),
        Err(Failed::TooManyOpen) => StatementsChecked::NotCompared("more leases are open than fit the memory".into()),
    }
}
