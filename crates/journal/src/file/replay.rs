//! Verifying the records from a start to the end of the journal, through the anchor's size.

use super::anchor::Anchor;
use super::batches::BatchReader;
use super::index::{Mark, Marks};
use super::reader::begins_with;
use super::segment::{HEADER_BYTES_U64, Header};
use super::survey::{Survey, open_segment};
use super::tail::{Tail, inspect};
use crate::admission::sequence_and_stamp;
use crate::disk::{Disk, DiskFile};
use crate::error::OpenError;
use crate::fold::Fold;
use crate::provider::Position;
use leasehold_model::record::Hash;
use leasehold_model::{Damage, RawBatch};
use std::sync::Arc;

/// The end of the journal, as verified.
pub(super) struct Replayed {
    pub(super) fold: Fold,
    /// The segment that holds the last record; none in an empty journal.
    pub(super) last: Option<LastSegment>,
    pub(super) torn: Option<Torn>,
    /// Segments that ended at or after the anchor's size.
    pub(super) passed: Vec<Passed>,
}

pub(super) struct LastSegment {
    pub(super) number: u32,
    pub(super) file: Arc<dyn DiskFile>,
    /// Where its last batch begins and ends.
    pub(super) last_batch: u64,
    pub(super) end: u64,
    pub(super) marks: Marks,
}

/// The torn end of a segment: bytes that do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Torn {
    pub(super) segment: u32,
    pub(super) offset: u64,
    pub(super) end: u64,
}

/// Where a segment ended, with what was verified up to there.
pub(super) struct Passed {
    pub(super) ended: u32,
    pub(super) end: u64,
    pub(super) began: u32,
    pub(super) fold: Fold,
}

/// Why a replay did not come to an end.
pub(super) enum Stop {
    Refused(OpenError),
    /// The start does not lead to the anchor. Another one may.
    Mismatch(&'static str),
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::Refused(error)
    }
}

/// The replay while it goes on.
pub(super) struct Replay<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) survey: &'a Survey,
    pub(super) anchor: &'a Anchor,
    /// The key that signed the anchor.
    pub(super) key: [u8; 32],
    pub(super) spacing: u64,
}

impl Replay<'_> {
    pub(super) fn run(&self, start: Position) -> Result<Replayed, Stop> {
        let mut replayed =
            Replayed { fold: Fold::new(&self.anchor.origin, start, None), last: None, torn: None, passed: Vec::new() };
        self.meet_anchor(&mut replayed.fold)?;
        let segments = &self.survey.segments;
        let size = replayed.fold.size();
        let first = segments.partition_point(|header| header.first_sequence <= size).saturating_sub(1);
        let mut sequence = 0;
        for (at, header) in segments.iter().enumerate().skip(first) {
            sequence = self.segment(&mut replayed, header, segments.get(at + 1))?;
        }
        if sequence < self.anchor.head.size {
            return Err(Stop::Refused(OpenError::AnchorAhead { anchor: self.anchor.head.size, journal: sequence }));
        }
        if let Some((segment, end)) = self.survey.torn_beginning {
            replayed.torn = Some(Torn { segment, offset: 0, end });
        }
        Ok(replayed)
    }

    /// Reads one segment to its end; returns the sequence that follows.
    fn segment(&self, replayed: &mut Replayed, header: &Header, next: Option<&Header>) -> Result<u64, Stop> {
        let fold = &mut replayed.fold;
        let file = open_segment(self.disk, header.number)?;
        let reading = || OpenError::io(format!("reading segment {:08}", header.number));
        let mut batches = BatchReader::new(file.clone(), HEADER_BYTES_U64);
        let mut sequence = header.first_sequence;
        let mut marks = Marks::default();
        let mut last_batch = None;
        let damage = loop {
            let offset = batches.offset();
            let batch = match batches.next().map_err(reading())? {
                Ok(batch) => batch,
                Err(damage) => break (offset, damage),
            };
            if !begins_with(&batch, sequence) {
                return Err(refuse(header, offset, sequence, "the batch begins with another record"));
            }
            if last_batch.is_none() && !links_to(&batch, &header.prev) {
                return Err(refuse(header, 0, sequence, "its header names another previous hash"));
            }
            self.batch(fold, &batch, header.number, offset, sequence)?;
            marks.note(Mark { sequence, offset }, self.spacing);
            sequence += u64::from(batch.count());
            last_batch = Some(offset);
        };
        let (end, damage) = damage;
        let tail = inspect(file.as_ref(), end, sequence).map_err(reading())?;
        match next {
            Some(next) => {
                if tail != Tail::Clean || sequence != next.first_sequence {
                    return Err(refuse(header, end, sequence, &why(&damage)));
                }
                // A start beyond these records is no reason to believe in them.
                if sequence != fold.size() {
                    return Err(Stop::Mismatch("size"));
                }
                if sequence >= self.anchor.head.size {
                    replayed.passed.push(Passed { ended: header.number, end, began: next.number, fold: fold.clone() });
                }
            }
            None => {
                replayed.torn = self.tail(header, tail, (end, &damage), sequence, last_batch)?;
                // A segment without a batch was not begun, so the one before it has not ended.
                replayed.passed.retain(|passed| last_batch.is_some() || passed.began != header.number);
            }
        }
        if let Some(last_batch) = last_batch {
            replayed.last = Some(LastSegment { number: header.number, file, last_batch, end, marks });
        } else if next.is_some() {
            return Err(refuse(header, end, sequence, "it holds no batch, and a later segment does"));
        }
        Ok(sequence)
    }

    /// Folds the records of a batch that lie after the start.
    fn batch(
        &self,
        fold: &mut Fold,
        batch: &RawBatch<'_>,
        segment: u32,
        offset: u64,
        first_sequence: u64,
    ) -> Result<(), Stop> {
        if first_sequence + u64::from(batch.count()) < fold.size() {
            return Ok(());
        }
        for (record, sequence) in batch.records().zip(first_sequence..) {
            let record = record.expect("the frames were looked at when the batch was read");
            if sequence < fold.size() {
                if let Some((_, stamp)) = sequence_and_stamp(record) {
                    fold.set_stamp(stamp);
                }
                continue;
            }
            fold.take(record).map_err(|broken| OpenError::broken(segment, offset, &broken))?;
            self.meet_anchor(fold)?;
        }
        Ok(())
    }

    /// At the anchor's size, the records must be those that it signs for.
    fn meet_anchor(&self, fold: &mut Fold) -> Result<(), Stop> {
        if fold.size() != self.anchor.head.size {
            return Ok(());
        }
        if fold.position().head.hash != self.anchor.head.hash {
            return Err(Stop::Mismatch("head"));
        }
        if fold.position().tree.root() != self.anchor.root {
            return Err(Stop::Mismatch("root"));
        }
        if fold.key().is_some_and(|key| key != self.key) {
            return Err(Stop::Mismatch("key"));
        }
        fold.set_key(self.key);
        Ok(())
    }

    /// Judges what lies after the last good batch of the last begun segment.
    fn tail(
        &self,
        header: &Header,
        tail: Tail,
        (end, damage): (u64, &Damage),
        sequence: u64,
        last_batch: Option<u64>,
    ) -> Result<Option<Torn>, Stop> {
        let torn_to = match tail {
            Tail::GoodBatch { offset } => {
                let why = format!("{}; a good batch begins later, at {offset}", why(damage));
                return Err(refuse(header, end, sequence, &why));
            }
            Tail::Torn { end } => end,
            // A header that nothing follows is what is left of a torn first batch.
            Tail::Clean if last_batch.is_none() => HEADER_BYTES_U64,
            Tail::Clean => return Ok(None),
        };
        if sequence < self.anchor.head.size {
            let why = format!("{}, at records that the anchor signs for", why(damage));
            return Err(refuse(header, end, sequence, &why));
        }
        if self.survey.torn_beginning.is_some() {
            let why = format!("{}, and a later segment was begun", why(damage));
            return Err(refuse(header, end, sequence, &why));
        }
        Ok(Some(Torn { segment: header.number, offset: last_batch.map_or(0, |_| end), end: torn_to }))
    }
}

fn links_to(batch: &RawBatch<'_>, prev: &Hash) -> bool {
    let first = batch.records().next();
    first.is_some_and(|first| first.is_ok_and(|record| record.prev_hash() == *prev))
}

/// Padding that is not zero is found where nothing should be.
fn why(damage: &Damage) -> String {
    match damage {
        Damage::Nothing => "there are bytes, or too few records, where the batches end".into(),
        damage => damage.to_string(),
    }
}

fn refuse(header: &Header, offset: u64, sequence: u64, why: &str) -> Stop {
    Stop::Refused(OpenError::Corrupt { segment: header.number, offset, sequence, why: why.into() })
}
