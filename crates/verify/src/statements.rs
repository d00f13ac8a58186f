//! Recomputing the statements about the records of months (ADR 25), in a second pass over the records, which a journal
//! without statements does not need. It goes in journal order, because what a record means for a bill depends on those
//! before it.

use crate::Progress;
use crate::chunks::{ChunkReader, Piece};
use crate::failure::{Failure, Why};
use crate::join::Joiner;
use crate::report::Statements;
use crate::segments::Segments;
use leasehold_bill::{Failed, Visit, recheck};
use leasehold_model::RawBatch;
use std::io;

/// Recomputes all statements of a journal that was verified. `None` if there are none.
pub(crate) fn recompute(
    joiner: &Joiner<'_>,
    segments: &Segments,
    progress: Option<&(dyn Fn(Progress) + Sync)>,
) -> Result<Option<Statements>, Failure> {
    if joiner.statements.is_empty() {
        return Ok(None);
    }
    if let Some(first) = joiner.first_sequence.filter(|first| *first > 0) {
        return Ok(Some(Statements::OutOfReach { first }));
    }
    let mut again = Again { segments, begins: &joiner.begins, size: joiner.size(), bytes: 0, progress };
    match recheck(&joiner.statements, usize::MAX, |from, visit| again.read(from, visit)) {
        Ok(count) => Ok(Some(Statements::Recomputed(count))),
        Err(Failed::Unread(failure)) => Err(failure),
        Err(Failed::TooManyOpen) => unreachable!("there is no limit"),
        Err(Failed::Wrong { sequence, wrong }) => {
            let mut failure = Failure::new(Why::BadStatement(wrong)).at_sequence(sequence);
            let file = &segments.files[again.segment_of(sequence)];
            (failure.segment, failure.file) = (Some(file.number), Some(file.path.clone()));
            failure.agreed_up_to = joiner.agreed_up_to;
            Err(failure)
        }
    }
}

/// Reads records that were verified before.
struct Again<'a> {
    segments: &'a Segments,
    /// The first sequence of each segment.
    begins: &'a [u64],
    /// Records that were verified.
    size: u64,
    bytes: u64,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Again<'_> {
    fn segment_of(&self, sequence: u64) -> usize {
        self.begins.partition_point(|begin| *begin <= sequence).saturating_sub(1)
    }

    fn read(&mut self, from: u64, visit: &mut Visit<'_>) -> Result<(), Failure> {
        let mut reader = ChunkReader::from_segment(self.segments, self.segment_of(from));
        let mut buffer = Vec::new();
        let mut next = from;
        while next < self.size
            && let Some(piece) = reader.next(std::mem::take(&mut buffer))
        {
            let chunk = match piece {
                Piece::Begin { .. } => continue,
                Piece::Flaw(flaw) => return Err(*flaw.failure),
                Piece::Batches(chunk) => chunk,
            };
            let mut sequence = chunk.first_sequence;
            let mut at = 0;
            while at < chunk.bytes.len() && next < self.size {
                let batch = RawBatch::read_version(&chunk.bytes[at..], chunk.version).map_err(|_| changed())?;
                at += batch.bytes_total();
                for raw in batch.records() {
                    let raw = raw.map_err(|_| changed())?;
                    if sequence >= from {
                        let record = raw.decode().map_err(|_| changed())?;
                        if visit(&record, &raw.hash()).is_break() {
                            return Ok(());
                        }
                        next = sequence + 1;
                    }
                    sequence += 1;
                }
            }
            self.bytes += chunk.bytes.len() as u64;
            if let Some(progress) = self.progress {
                progress(Progress { bytes: self.bytes, bytes_total: self.segments.bytes_total(), records: next });
            }
            buffer = chunk.bytes;
        }
        Ok(())
    }
}

/// What was intact a moment ago is not what is read now.
fn changed() -> Failure {
    Failure::new(Why::Unreadable(io::Error::other("the files changed while they were being verified")))
}
