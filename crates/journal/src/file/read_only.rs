//! A journal's folder, read and never touched: no lock, no secret key, nothing written.
//!
//! It may be a copy, or the folder of a journal that is being written at this moment. What lies after the last good batch
//! is not there yet, or never will be (journal-format.md, "A torn end"): reading ends before it. Whether a journal may be
//! believed is for `leasehold-verify` to say.

use super::anchor::AnchorFile;
use super::batches::BatchReader;
use super::layout::{JOURNAL, JournalFile};
use super::segment::{HEADER_BYTES, HEADER_BYTES_U64, Header, HeaderFlaw, origin_hash};
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::error::OpenError;
use crate::provider::Head;
use leasehold_model::record::Hash;
use leasehold_model::{Damage, Instant, RawBatch, RawRecord};
use leasehold_tlog::{Checkpoint, KeyId, Note};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A folder with an anchor.
pub struct ReadOnly {
    disk: Arc<dyn Disk>,
    /// Folders with segments that were moved away.
    archives: Vec<Arc<dyn Disk>>,
    signed: SignedHead,
}

/// The newest head that the journal has signed for, as it lies in the anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    pub origin: String,
    pub epoch: u64,
    pub head: Head,
    /// The key that signed.
    pub key: KeyId,
    pub time: Instant,
    pub note: Note,
    pub checkpoint: Checkpoint,
}

/// One record as it lies in the journal.
pub struct Entry<'a> {
    pub sequence: u64,
    pub raw: RawRecord<'a>,
    pub hash: Hash,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scanned {
    /// The first record at hand: 0 unless earlier segments were moved away.
    pub first: u64,
    /// The sequence after the last record read.
    pub size: u64,
    /// Bytes of headers and batches; padding does not count.
    pub bytes: u64,
}

/// Is handed each record; a `Break` ends the reading.
type VisitEntry<'v> = dyn FnMut(&Entry<'_>) -> ControlFlow<()> + 'v;
/// Is handed each batch after its records were checked; a `Break` ends the reading.
type VisitBatch<'v> = dyn FnMut(&RawBatch<'_>) -> ControlFlow<()> + 'v;

/// Who is handed what is read.
enum Visit<'a, 'v> {
    Entries(&'a mut VisitEntry<'v>),
    /// Batches from this record on.
    Batches(u64, &'a mut VisitBatch<'v>),
}

/// A begun segment, and where its next batch begins.
struct Segment {
    number: u32,
    version: u32,
    file: Arc<dyn DiskFile>,
    offset: u64,
}

/// What a segment file is, by its first bytes.
enum Found {
    Begun(Header, Segment),
    /// Allocated ahead, or gone again: it holds nothing.
    Unbegun,
    /// Neither zeroes nor a header.
    Damaged,
}

impl ReadOnly {
    /// Reads the anchor. The records may be ahead of it, never behind: it is read first.
    pub fn open(disk: Arc<dyn Disk>, archives: Vec<Arc<dyn Disk>>) -> Result<Self, OpenError> {
        let Some(found) = AnchorFile::find(disk.as_ref(), Access::Read, None)? else {
            let names = disk.list(JOURNAL).unwrap_or_default();
            let records = names.iter().any(|name| matches!(JournalFile::named(name), JournalFile::Segment(_)));
            return Err(if records { OpenError::MissingAnchor } else { OpenError::NoJournal });
        };
        let anchor = found.anchor;
        let bad = |why: String| OpenError::BadAnchor { why };
        if found.file.is_too_long().map_err(OpenError::io("reading the anchor"))? {
            return Err(bad("the file is longer than two slots".into()));
        }
        let note = Note::parse(&anchor.note).map_err(|error| bad(error.to_string()))?;
        let checkpoint = Checkpoint::from_body(note.text()).map_err(|error| bad(error.to_string()))?;
        let fits = checkpoint.origin() == anchor.origin
            && checkpoint.size() == anchor.head.size
            && *checkpoint.root() == anchor.root;
        if !fits {
            return Err(bad("its checkpoint is of another origin, size or root".into()));
        }
        let signed = SignedHead {
            origin: anchor.origin,
            epoch: anchor.epoch,
            head: anchor.head,
            key: anchor.key,
            time: anchor.time,
            note,
            checkpoint,
        };
        Ok(Self { disk, archives, signed })
    }

    pub fn signed(&self) -> &SignedHead {
        &self.signed
    }

    /// Hands out every record from the first at hand to the last good one, each checked against the one before it.
    ///
    /// That is at least up to the signed head, unless `visit` breaks off: records that were signed for and are not there
    /// are an error, what lies after them and is not whole is not.
    pub fn scan(&self, visit: &mut VisitEntry<'_>) -> Result<Scanned, OpenError> {
        self.scan_all(false, &mut Visit::Entries(visit))
    }

    /// As [`Self::scan`], for those who need the journal from its first record on.
    pub fn scan_from_genesis(&self, visit: &mut VisitEntry<'_>) -> Result<Scanned, OpenError> {
        self.scan_all(true, &mut Visit::Entries(visit))
    }

    /// As [`Self::scan_from_genesis`], batch by batch, from the batch on that begins with record `from`. What lies before
    /// it is read only as far as it shares a segment with it.
    pub fn scan_batches(&self, from: u64, visit: &mut VisitBatch<'_>) -> Result<Scanned, OpenError> {
        self.scan_all(true, &mut Visit::Batches(from, visit))
    }

    fn scan_all(&self, from_genesis: bool, visit: &mut Visit<'_, '_>) -> Result<Scanned, OpenError> {
        let (from_genesis, segments) = match visit {
            Visit::Batches(from, _) if *from > 0 => (false, self.segments_from(*from)?),
            Visit::Batches(..) | Visit::Entries(_) => (from_genesis, self.segments()?),
        };
        let mut cursor = Cursor { signed: &self.signed, scanned: Scanned::default(), head: [0; 32], begun: false };
        let mut current: Option<Segment> = None;
        for (number, (disk, path)) in segments {
            let (header, segment) = match open(disk, &path, number)? {
                Found::Begun(header, segment) => (header, segment),
                Found::Unbegun => break,
                Found::Damaged => return cursor.ended(number, 0, Some("its header is damaged".into())),
            };
            if from_genesis && current.is_none() && header.first_sequence > 0 {
                return Err(OpenError::MissingSegment { segment: 1 });
            }
            if let Some(before) = &mut current {
                if before.number + 1 != number {
                    return Err(OpenError::MissingSegment { segment: before.number + 1 });
                }
                // It may have grown between the look at its end and the look at this segment.
                if cursor.read(before, visit)?.is_break() {
                    return Ok(cursor.scanned);
                }
            }
            cursor.enter(&header, number, path)?;
            if cursor.read(current.insert(segment), visit)?.is_break() {
                return Ok(cursor.scanned);
            }
        }
        match current {
            None => cursor.ended(1, 0, None),
            Some(segment) => {
                let mut rest = segment.batches();
                let next = rest.next().map_err(reading(segment.number))?;
                let damage = next.err().filter(|damage| *damage != Damage::Nothing);
                cursor.ended(segment.number, segment.offset, damage.map(|damage| damage.to_string()))
            }
        }
    }

    /// The segment files from the one on that contains this record.
    fn segments_from(&self, sequence: u64) -> Result<BTreeMap<u32, (&dyn Disk, String)>, OpenError> {
        let mut segments = self.segments()?;
        let mut first = 0;
        for (number, (disk, path)) in &segments {
            match open(*disk, path, *number)? {
                Found::Begun(header, _) if header.first_sequence <= sequence => first = *number,
                Found::Begun(..) | Found::Unbegun | Found::Damaged => break,
            }
        }
        Ok(segments.split_off(&first))
    }

    /// The segment files by number; where several folders hold one, the first folder counts.
    fn segments(&self) -> Result<BTreeMap<u32, (&dyn Disk, String)>, OpenError> {
        let mut found = BTreeMap::new();
        let archives = self.archives.iter().map(|archive| (archive, ""));
        for (disk, dir) in std::iter::once((&self.disk, JOURNAL)).chain(archives) {
            for name in disk.list(dir).map_err(OpenError::io("listing the journal's segments"))? {
                if let JournalFile::Segment(number) = JournalFile::named(&name) {
                    let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
                    found.entry(number).or_insert((disk.as_ref(), path));
                }
            }
        }
        Ok(found)
    }
}

fn reading(number: u32) -> impl FnOnce(io::Error) -> OpenError {
    OpenError::io(format!("reading {number:08}.seg"))
}

fn open(disk: &dyn Disk, path: &str, number: u32) -> Result<Found, OpenError> {
    let file = match disk.open(path, Access::Read) {
        Ok(file) => file,
        // A clean stop removes the segment it had allocated ahead.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Unbegun),
        Err(error) => return Err(reading(number)(error)),
    };
    let mut bytes = [0; HEADER_BYTES];
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(reading(number))?;
    match Header::parse(&bytes[..read]) {
        Ok(header) => {
            let Header { version, .. } = header;
            Ok(Found::Begun(header, Segment { number, version, file, offset: HEADER_BYTES_U64 }))
        }
        Err(HeaderFlaw::NewerFormat(version)) => Err(OpenError::NewerFormat { path: path.to_owned(), version }),
        Err(HeaderFlaw::Damaged) if bytes[..read].iter().all(|byte| *byte == 0) => Ok(Found::Unbegun),
        Err(HeaderFlaw::Damaged) => Ok(Found::Damaged),
    }
}

impl Segment {
    /// The batches that are ahead.
    fn batches(&self) -> BatchReader {
        BatchReader::new(Arc::clone(&self.file), self.offset).of_version(self.version)
    }
}

/// Where reading stands.
struct Cursor<'a> {
    signed: &'a SignedHead,
    scanned: Scanned,
    head: Hash,
    begun: bool,
}

impl Cursor<'_> {
    fn corrupt(&self, segment: u32, offset: u64, why: String) -> OpenError {
        OpenError::Corrupt { segment, offset, sequence: self.scanned.size, why }
    }

    /// A segment's header must continue what was read.
    fn enter(&mut self, header: &Header, number: u32, path: String) -> Result<(), OpenError> {
        if header.origin != origin_hash(&self.signed.origin) {
            return Err(OpenError::WrongOrigin { path, expected: self.signed.origin.clone() });
        }
        if !self.begun {
            self.begun = true;
            self.head = header.prev;
            self.scanned = Scanned { first: header.first_sequence, size: header.first_sequence, bytes: 0 };
        }
        self.scanned.bytes += HEADER_BYTES_U64;
        if header.number != number || header.first_sequence != self.scanned.size || header.prev != self.head {
            return Err(self.corrupt(number, 0, "the segment does not continue the one before it".into()));
        }
        Ok(())
    }

    /// Reads the good batches that are ahead.
    fn read(&mut self, segment: &mut Segment, visit: &mut Visit<'_, '_>) -> Result<ControlFlow<()>, OpenError> {
        let mut batches = segment.batches();
        while let Ok(batch) = batches.next().map_err(reading(segment.number))? {
            let bytes = batch.bytes_total() as u64;
            if self.read_batch(&batch, segment, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.scanned.bytes += bytes;
            segment.offset += bytes;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_batch(
        &mut self,
        batch: &RawBatch<'_>,
        segment: &Segment,
        visit: &mut Visit<'_, '_>,
    ) -> Result<ControlFlow<()>, OpenError> {
        let first = self.scanned.size;
        for record in batch.records() {
            let corrupt = |cursor: &Self, why: String| Err(cursor.corrupt(segment.number, segment.offset, why));
            let raw = match record {
                Ok(raw) => raw,
                Err(damage) => return corrupt(self, damage.to_string()),
            };
            let sequence = self.scanned.size;
            if raw.sequence() != Ok(sequence) || raw.prev_hash() != self.head {
                return corrupt(self, format!("record {sequence} does not continue the one before it"));
            }
            let hash = raw.hash();
            self.head = hash;
            self.scanned.size += 1;
            if self.scanned.size == self.signed.head.size && hash != self.signed.head.hash {
                return Err(OpenError::AnchorMismatch { size: self.scanned.size, what: "head" });
            }
            if let Visit::Entries(visit) = visit
                && visit(&Entry { sequence, raw, hash }).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        match visit {
            Visit::Batches(from, visit) if first >= *from => Ok(visit(batch)),
            Visit::Batches(..) | Visit::Entries(_) => Ok(ControlFlow::Continue(())),
        }
    }

    /// There is no more: right only if everything that was signed for has been read.
    fn ended(&self, segment: u32, offset: u64, damage: Option<String>) -> Result<Scanned, OpenError> {
        let (anchor, journal) = (self.signed.head.size, self.scanned.size);
        match damage {
            _ if journal >= anchor => Ok(self.scanned),
            Some(why) => Err(self.corrupt(segment, offset, why)),
            None => Err(OpenError::AnchorAhead { anchor, journal }),
        }
    }
}
