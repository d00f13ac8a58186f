//! Reading durable records, beside the writer and without waiting for it.

use super::batches::BatchReader;
use super::index::{Index, Lookup, Mark, Marks, Stretch};
use super::layout::segment_path;
use super::segment::HEADER_BYTES_U64;
use crate::disk::{Access, Disk, DiskFile};
use crate::error::ReadError;
use crate::provider::VisitBatch;
use leasehold_model::{Damage, RawBatch};
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// Hands out the batches from the one that holds `from` on, up to the head at the time of the call.
pub(super) fn scan(
    disk: &dyn Disk,
    index: &Mutex<Index>,
    from: u64,
    visit: &mut VisitBatch<'_>,
) -> Result<(), ReadError> {
    let (size, spacing) = {
        let index = index.lock().expect("the index is whole");
        (index.head.size, index.spacing)
    };
    let mut next = from;
    while next < size {
        let lookup = index.lock().expect("the index is whole").lookup(next);
        match lookup {
            Lookup::Beyond => break,
            Lookup::Archived { segment } => return Err(ReadError::Archived { segment }),
            Lookup::Unindexed(stretch) => {
                let marks = index_segment(disk, stretch, spacing)?;
                let mut index = index.lock().expect("the index is whole");
                index.set_marks(stretch.segment, marks);
            }
            Lookup::Found { stretch, mark } => {
                let until = stretch.until.min(size);
                match scan_stretch(disk, stretch.segment, mark, next..until, visit)? {
                    ControlFlow::Continue(()) => next = until,
                    ControlFlow::Break(()) => break,
                }
            }
        }
    }
    Ok(())
}

/// Calls `visit` for the batches with records in `wanted`, reading from the batch at `mark` on.
fn scan_stretch(
    disk: &dyn Disk,
    segment: u32,
    mark: Mark,
    wanted: std::ops::Range<u64>,
    visit: &mut VisitBatch<'_>,
) -> Result<ControlFlow<()>, ReadError> {
    let mut batches = BatchReader::new(open_segment(disk, segment)?, mark.offset);
    let mut sequence = mark.sequence;
    while sequence < wanted.end {
        let batch = next_batch(&mut batches, segment, sequence)?;
        let after = sequence + u64::from(batch.count());
        // What is durable, and what a segment holds, ends between batches.
        assert!(after <= wanted.end, "a batch is durable as a whole");
        if after > wanted.start && visit(sequence, batch).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        sequence = after;
    }
    Ok(ControlFlow::Continue(()))
}

fn index_segment(disk: &dyn Disk, stretch: Stretch, spacing: u64) -> Result<Marks, ReadError> {
    let mut batches = BatchReader::new(open_segment(disk, stretch.segment)?, HEADER_BYTES_U64);
    let mut marks = Marks::default();
    let mut sequence = stretch.first_sequence;
    while sequence < stretch.until {
        let offset = batches.offset();
        let batch = next_batch(&mut batches, stretch.segment, sequence)?;
        marks.note(Mark { sequence, offset }, spacing);
        sequence += u64::from(batch.count());
    }
    Ok(marks)
}

pub(super) fn open_segment(disk: &dyn Disk, segment: u32) -> Result<Arc<dyn DiskFile>, ReadError> {
    disk.open(&segment_path(segment), Access::Read).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Archived { segment },
        _ => ReadError::Io(error),
    })
}

/// The next batch, which must be there and begin with the record `sequence`.
pub(super) fn next_batch(batches: &mut BatchReader, segment: u32, sequence: u64) -> Result<RawBatch<'_>, ReadError> {
    let offset = batches.offset();
    let corrupt = |why: String| ReadError::Corrupt { segment, offset, sequence, why };
    let batch = batches.next()?.map_err(|damage: Damage| corrupt(damage.to_string()))?;
    if !begins_with(&batch, sequence) {
        return Err(corrupt("the batch begins with another record".into()));
    }
    Ok(batch)
}

pub(super) fn begins_with(batch: &RawBatch<'_>, sequence: u64) -> bool {
    let first = batch.records().next();
    first.is_some_and(|first| first.is_ok_and(|record| record.sequence() == Ok(sequence)))
}
