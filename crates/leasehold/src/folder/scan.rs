//! Reading the records, in order, with every link checked.

use super::segments::{Found, Header, Segment, list, open};
use super::{Anchor, Folder};
use crate::problem::Problem;
use leasehold_model::{Damage, Hash, RawBatch, RawRecord};
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::path::Path;

/// One record as it lies in the journal.
pub(crate) struct Entry<'a> {
    pub(crate) sequence: u64,
    pub(crate) raw: RawRecord<'a>,
    pub(crate) hash: Hash,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scanned {
    /// The first record at hand: 0 unless earlier segments were moved away.
    pub(crate) first: u64,
    /// The sequence after the last record read.
    pub(crate) size: u64,
    /// Bytes of headers and batches; padding does not count.
    pub(crate) bytes: u64,
}

/// Is handed each record; a `Break` ends the reading.
type Visit<'v> = dyn FnMut(&Entry<'_>) -> Result<ControlFlow<()>, Problem> + 'v;

/// Where reading stands.
struct Cursor<'a> {
    anchor: &'a Anchor,
    scanned: Scanned,
    head: Hash,
    begun: bool,
}

impl Folder {
    /// Hands out every record from the first at hand to the last good one.
    ///
    /// That is at least up to the anchor's size, unless `visit` breaks off: records that were signed for and are not
    /// there are an error, what lies after them and is not whole is not.
    pub(crate) fn scan(&self, visit: &mut Visit<'_>) -> Result<Scanned, Problem> {
        let files = list(&self.data, &self.archives)?;
        let mut cursor = Cursor { anchor: &self.anchor, scanned: Scanned::default(), head: [0; 32], begun: false };
        let mut current: Option<(u32, Segment)> = None;
        for (number, path) in &files {
            let (header, segment) = match open(path)? {
                Found::Begun(header, segment) => (header, segment),
                Found::Unbegun => break,
                Found::Damaged => return cursor.ended(path, 0, Some("its header is damaged".into())),
            };
            if let Some((last, before)) = &mut current {
                if *last + 1 != *number {
                    return Err(missing(*last + 1));
                }
                // It may have grown between the look at its end and the look at this segment.
                before.look_again();
                if cursor.read(before, visit)?.is_break() {
                    return Ok(cursor.scanned);
                }
            }
            cursor.enter(&header, *number, path)?;
            let (_, segment) = current.insert((*number, segment));
            if cursor.read(segment, visit)?.is_break() {
                return Ok(cursor.scanned);
            }
        }
        match &mut current {
            None => cursor.ended(&self.data.join("journal"), 0, None),
            Some((_, segment)) => {
                let damage = segment.batch()?.err().filter(|damage| *damage != Damage::Nothing);
                cursor.ended(&segment.path, segment.offset(), damage.map(|damage| damage.to_string()))
            }
        }
    }

    /// As [`Self::scan`], for those who need the journal from its first record on.
    pub(crate) fn scan_from_genesis(&self, visit: &mut Visit<'_>) -> Result<Scanned, Problem> {
        let mut at_the_beginning = true;
        self.scan(&mut |entry| {
            if std::mem::take(&mut at_the_beginning) && entry.sequence > 0 {
                return Err(missing(1));
            }
            visit(entry)
        })
    }
}

fn missing(segment: u32) -> Problem {
    Problem::refused("journal_segment_missing", format!("segment {segment:08}.seg is not here"))
        .advice("if it was moved away, name its folder with --archive")
}

fn corrupt(path: &Path, offset: u64, why: &str) -> Problem {
    Problem::not_verified("journal_corrupt", format!("damaged at offset {offset}: {why}"))
        .at(path)
        .advice("run leasehold audit verify, and bring the file back from a copy")
}

impl Cursor<'_> {
    /// A segment's header must continue what was read.
    fn enter(&mut self, header: &Header, number: u32, path: &Path) -> Result<(), Problem> {
        if header.origin != <[u8; 32]>::from(Sha256::digest(self.anchor.origin.as_bytes())) {
            return Err(Problem::not_verified("journal_wrong_origin", "the segment is not of the anchor's origin")
                .at(path)
                .advice("segments and anchor of two journals were mixed"));
        }
        if !self.begun {
            self.begun = true;
            self.head = header.prev;
            self.scanned = Scanned { first: header.first_sequence, size: header.first_sequence, bytes: 0 };
        }
        self.scanned.bytes += 96;
        if header.number != number || header.first_sequence != self.scanned.size || header.prev != self.head {
            return Err(corrupt(path, 0, "the segment does not continue the one before it"));
        }
        Ok(())
    }

    /// Reads the good batches that are ahead.
    fn read(&mut self, segment: &mut Segment, visit: &mut Visit<'_>) -> Result<ControlFlow<()>, Problem> {
        loop {
            let (path, offset) = (segment.path.clone(), segment.offset());
            let Ok(batch) = segment.batch()? else { return Ok(ControlFlow::Continue(())) };
            let bytes = batch.bytes_total();
            if self.read_batch(&batch, &path, offset, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.scanned.bytes += bytes as u64;
            segment.pass(bytes);
        }
    }

    fn read_batch(
        &mut self,
        batch: &RawBatch<'_>,
        path: &Path,
        offset: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Problem> {
        for record in batch.records() {
            let raw = record.map_err(|damage| corrupt(path, offset, &damage.to_string()))?;
            let sequence = self.scanned.size;
            if raw.sequence() != Ok(sequence) || raw.prev_hash() != self.head {
                let why = format!("record {sequence} does not continue the one before it");
                return Err(corrupt(path, offset, &why));
            }
            let hash = raw.hash();
            self.head = hash;
            self.scanned.size += 1;
            if self.scanned.size == self.anchor.size && hash != self.anchor.head {
                let what = format!("record {sequence} is not the one that the anchor signs for");
                return Err(Problem::not_verified("journal_anchor_mismatch", what)
                    .at(path)
                    .advice("run leasehold audit verify"));
            }
            if visit(&Entry { sequence, raw, hash })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// There is no more: right only if everything that was signed for has been read.
    fn ended(&self, path: &Path, offset: u64, damage: Option<String>) -> Result<Scanned, Problem> {
        let (signed, read) = (self.anchor.size, self.scanned.size);
        match damage {
            _ if read >= signed => Ok(self.scanned),
            Some(why) => Err(corrupt(path, offset, &why)),
            None => {
                let what = format!("the anchor signs for {signed} records and only {read} are here");
                Err(Problem::not_verified("journal_cut_off", what)
                    .at(path)
                    .advice("the end was cut off, or an old copy was put back; run leasehold audit verify"))
            }
        }
    }
}
