//! Verifying the records from a start to the end of the journal, through the anchor's size.
//!
//! Up to the anchor's size the records are those that its checkpoint signs for. After it a batch counts only if this
//! daemon wrote it, which its MAC shows (SEMANTICS 11, "Local authenticity"); a clean stop leaves none.

use super::anchor::{Anchor, Authenticity};
use super::batches::BatchReader;
use super::index::{Mark, Marks};
use super::options::UnprovedTail;
use super::reader::begins_with;
use super::segment::{HEADER_BYTES_U64, Header};
use super::survey::{Survey, open_segment};
use super::tail::{Tail, end_of_bytes, inspect};
use crate::admission::{CONVERTED, head_of};
use crate::disk::{Disk, DiskFile};
use crate::error::{OpenError, Unproved};
use crate::fold::Fold;
use crate::provider::Position;
use crate::secret::MacKey;
use leasehold_model::frame::Authenticated;
use leasehold_model::record::Hash;
use leasehold_model::{Damage, RawBatch};
use std::sync::Arc;

/// The end of the journal, as verified.
pub(super) struct Replayed {
    pub(super) fold: Fold,
    /// The segment that contains the last record; none in an empty journal.
    pub(super) last: Option<LastSegment>,
    pub(super) torn: Option<Torn>,
    /// What could not be authenticated and is to be discarded.
    pub(super) cut: Option<CutTail>,
    /// Records that could not be authenticated and count because the operator accepted them, and their bytes.
    pub(super) accepted: (u64, u64),
    /// Segments that ended at or after the anchor's size.
    pub(super) passed: Vec<Passed>,
}

pub(super) struct LastSegment {
    pub(super) number: u32,
    pub(super) version: u32,
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

/// Everything from an offset of a segment on, with the segments after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutTail {
    pub(super) segment: u32,
    pub(super) offset: u64,
    /// Whole records among the bytes, and the bytes that are not zero.
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Where a segment ended, with what was verified up to there.
pub(super) struct Passed {
    pub(super) ended: u32,
    pub(super) end: u64,
    pub(super) began: u32,
    pub(super) fold: Fold,
}

/// Why a replay ended early.
pub(super) enum Stop {
    Refused(OpenError),
    /// The start does not lead to the anchor. Another one may.
    Mismatch(&'static str),
    /// From this offset of a segment on, nothing counts that follows the anchor.
    Beyond {
        segment: u32,
        offset: u64,
        why: Beyond,
    },
}

/// Why something after the anchor does not count.
pub(super) enum Beyond {
    Unproved(Unproved),
    Damaged(OpenError),
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::Refused(error)
    }
}

/// The replay while it runs.
pub(super) struct Replay<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) survey: &'a Survey,
    pub(super) anchor: &'a Anchor,
    pub(super) authenticity: Authenticity,
    /// The key that signed the anchor.
    pub(super) key: [u8; 32],
    /// Authenticates batches.
    pub(super) mac: &'a MacKey,
    pub(super) tail: UnprovedTail,
    pub(super) spacing: u64,
}

impl Replay<'_> {
    pub(super) fn run(&self, start: Position) -> Result<Replayed, Stop> {
        let (segments, size) = (&self.survey.segments, start.size());
        let first = segments.partition_point(|header| header.first_sequence <= size).saturating_sub(1);
        let replayed = self.run_from(first, start.clone())?;
        if replayed.last.is_some() || size == 0 {
            return Ok(replayed);
        }
        // Nothing counts in the segment that begins at the start: the last record is in the one before it.
        match first.checked_sub(1) {
            Some(before) => self.run_from(before, start),
            None => Err(Stop::Refused(OpenError::MissingSegment { segment: segments[first].number - 1 })),
        }
    }

    /// Replays from a start that lies in this segment or at its end.
    fn run_from(&self, first: usize, start: Position) -> Result<Replayed, Stop> {
        let mut replayed = Replayed {
            fold: Fold::new(&self.anchor.origin, start, None),
            last: None,
            torn: None,
            cut: None,
            accepted: (0, 0),
            passed: Vec::new(),
        };
        self.meet_anchor(&mut replayed.fold)?;
        let segments = &self.survey.segments;
        let mut sequence = 0;
        for (at, header) in segments.iter().enumerate().skip(first) {
            match self.segment(&mut replayed, header, segments.get(at + 1)) {
                Ok(next) => sequence = next,
                Err(Stop::Beyond { segment, offset, why }) if replayed.fold.size() >= self.anchor.head.size => {
                    replayed.cut = Some(self.discard(segment, offset, why)?);
                    return Ok(replayed);
                }
                // The batch at the anchor's size goes on after it, and cannot be cut.
                Err(Stop::Beyond { segment, offset, .. }) => {
                    let (sequence, why) = (replayed.fold.size(), "the anchor's size is inside a batch".into());
                    return Err(Stop::Refused(OpenError::Corrupt { segment, offset, sequence, why }));
                }
                Err(stop) => return Err(stop),
            }
        }
        if sequence < self.anchor.head.size {
            return Err(Stop::Refused(OpenError::AnchorAhead { anchor: self.anchor.head.size, journal: sequence }));
        }
        if let Some((segment, end)) = self.survey.torn_beginning {
            if self.was_closed() {
                replayed.cut = Some(self.discard(segment, 0, Beyond::Unproved(Unproved::CleanStop))?);
            } else {
                replayed.torn = Some(Torn { segment, offset: 0, end });
            }
        }
        Ok(replayed)
    }

    /// Whether the anchor is authentic and says that nothing follows it.
    fn was_closed(&self) -> bool {
        self.authenticity == Authenticity::Own && self.anchor.closed
    }

    /// Discards what follows the anchor and does not count, if the operator says so.
    fn discard(&self, segment: u32, offset: u64, why: Beyond) -> Result<CutTail, Stop> {
        let (records, bytes) = self.measure(segment, offset)?;
        match why {
            _ if self.tail == UnprovedTail::Cut => Ok(CutTail { segment, offset, records, bytes }),
            Beyond::Unproved(why) => {
                Err(Stop::Refused(OpenError::UnprovedTail { segment, offset, records, bytes, why }))
            }
            Beyond::Damaged(error) => Err(Stop::Refused(error)),
        }
    }

    /// Whole records, and bytes that are not zero, from there to the end of the last segment.
    fn measure(&self, segment: u32, offset: u64) -> Result<(u64, u64), OpenError> {
        let (mut records, mut bytes) = (0, 0);
        let begun = self.survey.segments.iter().map(|header| (header.number, header.version));
        let torn = self.survey.torn_beginning.iter().map(|(number, _)| (*number, 0));
        for (number, version) in begun.chain(torn).filter(|(number, _)| *number >= segment) {
            let from = if number == segment { offset } else { 0 };
            let reading = || OpenError::io(format!("reading segment {number:08}"));
            let file = open_segment(self.disk, number)?;
            bytes += end_of_bytes(file.as_ref(), from).map_err(reading())?.map_or(0, |end| end - from);
            let mut batches = BatchReader::new(file, from.max(HEADER_BYTES_U64)).of_version(version);
            while let Ok(batch) = batches.next().map_err(reading())? {
                records += u64::from(batch.count());
            }
        }
        Ok((records, bytes))
    }

    /// What is wrong at this place: damage where the anchor signs, and otherwise something that does not count.
    fn damaged(&self, header: &Header, offset: u64, sequence: u64, why: &str) -> Stop {
        let error = OpenError::Corrupt { segment: header.number, offset, sequence, why: why.into() };
        if sequence < self.anchor.head.size {
            return Stop::Refused(error);
        }
        let why = match self.was_closed() {
            true => Beyond::Unproved(Unproved::CleanStop),
            false => Beyond::Damaged(error),
        };
        Stop::Beyond { segment: header.number, offset, why }
    }

    /// Reads one segment to its end; returns the sequence that follows.
    fn segment(&self, replayed: &mut Replayed, header: &Header, next: Option<&Header>) -> Result<u64, Stop> {
        let file = open_segment(self.disk, header.number)?;
        let mut read = Read { sequence: header.first_sequence, marks: Marks::default(), last_batch: None };
        let mut batches = BatchReader::new(file.clone(), HEADER_BYTES_U64).of_version(header.version);
        let ended = self.batches(replayed, header, &mut batches, &mut read);
        let (sequence, last_batch) = (read.sequence, read.last_batch);
        let end = match &ended {
            Ok((end, _)) | Err(Stop::Beyond { offset: end, .. }) => *end,
            Err(_) => 0,
        };
        let judged = ended.and_then(|(end, damage)| {
            let reading = OpenError::io(format!("reading segment {:08}", header.number));
            let tail = inspect(file.as_ref(), end, sequence, &[header.version]).map_err(reading)?;
            match next {
                Some(next) if tail != Tail::Clean || sequence != next.first_sequence => {
                    Err(self.damaged(header, end, sequence, &why(&damage)))
                }
                Some(_) if last_batch.is_none() => {
                    Err(self.damaged(header, end, sequence, "it contains no batch, and a later segment does"))
                }
                // A start beyond these records is no reason to believe them.
                Some(_) if sequence != replayed.fold.size() => Err(Stop::Mismatch("size")),
                Some(_) => Ok(None),
                None => self.tail(header, tail, (end, &damage), sequence, last_batch),
            }
        });
        if let Some(last_batch) = last_batch {
            let Header { number, version, .. } = *header;
            replayed.last = Some(LastSegment { number, version, file, last_batch, end, marks: read.marks });
        } else {
            // A segment without a batch was not begun, so the one before it has not ended.
            replayed.passed.retain(|passed| passed.began != header.number);
        }
        let torn = judged.map_err(|stop| match stop {
            // Not even its first batch counts: the segment is removed as a whole.
            Stop::Beyond { segment, why, .. } if last_batch.is_none() => Stop::Beyond { segment, offset: 0, why },
            stop => stop,
        })?;
        replayed.torn = torn;
        if let Some(next) = next
            && sequence >= self.anchor.head.size
        {
            let fold = replayed.fold.clone();
            replayed.passed.push(Passed { ended: header.number, end, began: next.number, fold });
        }
        Ok(sequence)
    }

    /// Reads the batches of a segment; returns where they end, and why.
    fn batches(
        &self,
        replayed: &mut Replayed,
        header: &Header,
        batches: &mut BatchReader,
        read: &mut Read,
    ) -> Result<(u64, Damage), Stop> {
        loop {
            let offset = batches.offset();
            let reading = OpenError::io(format!("reading segment {:08}", header.number));
            let batch = match batches.next().map_err(reading)? {
                Ok(batch) => batch,
                Err(damage) => return Ok((offset, damage)),
            };
            let sequence = read.sequence;
            if !begins_with(&batch, sequence) {
                return Err(self.damaged(header, offset, sequence, "the batch begins with another record"));
            }
            if read.last_batch.is_none() && !links_to(&batch, &header.prev) {
                return Err(self.damaged(header, 0, sequence, "its header contains another previous hash"));
            }
            self.batch(replayed, &batch, header, offset, sequence)?;
            read.marks.note(Mark { sequence, offset }, self.spacing);
            read.sequence += u64::from(batch.count());
            read.last_batch = Some(offset);
        }
    }

    /// Folds the records of a batch that come after the start.
    fn batch(
        &self,
        replayed: &mut Replayed,
        batch: &RawBatch<'_>,
        header: &Header,
        offset: u64,
        first_sequence: u64,
    ) -> Result<(), Stop> {
        let end = first_sequence + u64::from(batch.count());
        if end < replayed.fold.size() {
            return Ok(());
        }
        let beyond = end > self.anchor.head.size;
        if beyond {
            match self.authenticate(batch, first_sequence) {
                Ok(()) => {}
                Err(_) if self.accepts() => {
                    replayed.accepted.0 += u64::from(batch.count());
                    replayed.accepted.1 += batch.bytes_total() as u64;
                }
                Err(why) => {
                    return Err(Stop::Beyond { segment: header.number, offset, why: Beyond::Unproved(why) });
                }
            }
        }
        // What follows the anchor counts as a whole batch or not at all.
        let mut fold = replayed.fold.clone();
        for (record, sequence) in batch.records().zip(first_sequence..) {
            let record = record.expect("the frames were checked when the batch was read");
            if sequence < fold.size() {
                if let Some((_, stamp, _)) = head_of(record) {
                    fold.set_stamp(stamp);
                }
                continue;
            }
            let before = fold.format_version();
            fold.take(record).map_err(|broken| match beyond {
                false => OpenError::broken(header.number, offset, &broken).into(),
                true => self.damaged(header, offset, sequence, &broken.flaw.to_string()),
            })?;
            // The first record of the first segment of a new version, and no other, says so.
            let converted = head_of(record).is_some_and(|(.., kind)| kind == CONVERTED);
            let begins = sequence == header.first_sequence && before.is_none_or(|before| before < header.version);
            if converted && !begins || before.is_some_and(|before| before != header.version) && !converted {
                return Err(self.damaged(header, offset, sequence, "the segment is of another format version"));
            }
            self.meet_anchor(&mut fold)?;
        }
        replayed.fold = fold;
        Ok(())
    }

    /// Whether this daemon wrote the batch, as the last run left it.
    fn authenticate(&self, batch: &RawBatch<'_>, first_sequence: u64) -> Result<(), Unproved> {
        if self.was_closed() {
            return Err(Unproved::CleanStop);
        }
        let last = batch.records().last().and_then(Result::ok).map(|record| record.hash());
        let bound = Authenticated { first_sequence, count: batch.count(), last_hash: last.unwrap_or_default() };
        let own = batch.mac().is_some_and(|mac| self.mac.fits(&[&bound.message()], mac));
        match self.authenticity {
            _ if own => Ok(()),
            Authenticity::Own => Err(Unproved::WrongMac),
            Authenticity::Version1 => Err(Unproved::Version1),
            Authenticity::Unknown => Err(Unproved::SecretLost),
        }
    }

    /// Whether the operator may accept what cannot be authenticated, and did.
    fn accepts(&self) -> bool {
        self.tail == UnprovedTail::Accept && self.authenticity != Authenticity::Own
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

    /// Judges what follows the last good batch of the last begun segment.
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
                return Err(self.damaged(header, end, sequence, &why));
            }
            Tail::Torn { end } => end,
            // A header that nothing follows is what is left of a torn first batch.
            Tail::Clean if last_batch.is_none() => HEADER_BYTES_U64,
            Tail::Clean => return Ok(None),
        };
        if sequence < self.anchor.head.size || self.was_closed() {
            let why = format!("{}, at records that the anchor signs for", why(damage));
            return Err(self.damaged(header, end, sequence, &why));
        }
        if self.survey.torn_beginning.is_some() {
            let why = format!("{}, and a later segment was begun", why(damage));
            return Err(self.damaged(header, end, sequence, &why));
        }
        Ok(Some(Torn { segment: header.number, offset: last_batch.map_or(0, |_| end), end: torn_to }))
    }
}

/// What was read of a segment.
struct Read {
    sequence: u64,
    marks: Marks,
    last_batch: Option<u64>,
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
