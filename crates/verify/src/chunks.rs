//! Cutting the journal into pieces that can be checked independently.
//!
//! The reader follows the lengths in the batch headers without checking them: a wrong length leads to a wrong checksum
//! when the piece is checked, and the first flaw in journal order is reported. So the reader may run ahead.

use crate::anchor_file::{ReadTree, TREE_BYTES_MAX, TreeFile, read_tree};
use crate::failure::{Failure, Why};
use crate::segments::{HEADER_BYTES, Header, HeaderFlaw, Segments, only_zeroes_left, read_small};
use leasehold_model::Damage;
use leasehold_model::frame::{BATCH_HEADER_BYTES, batch_magic, payload_bytes_min};
use leasehold_model::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of batches in a piece; a single batch may be larger. Large enough that passing it to a thread costs little,
/// small enough that every thread gets one soon.
const CHUNK_BYTES: usize = 1 << 20;
/// Half of the largest tree size: adding the records of any number of files cannot overflow.
const FIRST_SEQUENCE_MAX: u64 = leasehold_tlog::limits::TREE_SIZE_MAX / 2;

/// A problem and its location.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// Boxed, so that the result of every record's check stays small.
    pub(crate) failure: Box<Failure>,
    /// Where an interrupted write may begin; none for damage that a crash cannot cause.
    pub(crate) torn_from: Option<u64>,
}

impl Flaw {
    pub(crate) fn in_segment(number: u32, offset: u64, sequence: Option<u64>, why: Why) -> Self {
        let mut failure = Failure::new(why);
        (failure.segment, failure.offset, failure.sequence) = (Some(number), Some(offset), sequence);
        failure.into()
    }
    pub(crate) fn maybe_torn(mut self, from: u64) -> Self {
        self.torn_from = Some(from);
        self
    }
}

impl From<Failure> for Flaw {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure), torn_from: None }
    }
}

/// Consecutive batches of a segment, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) segment: u32,
    /// The format version of the segment.
    pub(crate) version: u32,
    /// Offset of the first batch in its file.
    pub(crate) offset: u64,
    pub(crate) first_sequence: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A piece of the journal.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The beginning of a segment.
    Begin {
        header: Header,
        trees: Vec<TreeFile>,
    },
    Batches(Chunk),
    /// Nothing is read after it.
    Flaw(Flaw),
}

/// Reads the segments that contain records, piece by piece.
pub(crate) struct ChunkReader<'a> {
    segments: &'a Segments,
    /// Index of the next segment to open.
    next: usize,
    open: Option<OpenSegment>,
    /// The sequence that the next record must have; none before the first segment's header.
    sequence: Option<u64>,
    ended: bool,
}

struct OpenSegment {
    number: u32,
    version: u32,
    file: File,
    offset: u64,
    empty: bool,
}

/// What follows in a segment, judged by the header of a batch alone.
enum Next {
    Batch {
        bytes: usize,
        records: u32,
    },
    /// A batch of this many bytes, which were not all read.
    More(usize),
    Zeroes,
    Damage(Damage),
}

fn peek(bytes: &[u8], version: u32) -> Next {
    let Some(header) = bytes.first_chunk::<BATCH_HEADER_BYTES>() else {
        return Next::More(BATCH_HEADER_BYTES);
    };
    if header[..4] != batch_magic(version) {
        let zeroes = header.iter().all(|b| *b == 0);
        return if zeroes { Next::Zeroes } else { Next::Damage(Damage::NoMagic) };
    }
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let records = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    let possible = length <= BATCH_BYTES_MAX
        && (1..=BATCH_RECORDS_MAX).contains(&records)
        && length >= payload_bytes_min(version, records);
    match BATCH_HEADER_BYTES + length {
        _ if !possible => Next::Damage(Damage::BadHeader),
        total if total > bytes.len() => Next::More(total),
        total => Next::Batch { bytes: total, records },
    }
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(segments: &'a Segments) -> Self {
        Self::from_segment(segments, 0)
    }

    /// Begins with the segment at this place among those that were found.
    pub(crate) fn from_segment(segments: &'a Segments, next: usize) -> Self {
        Self { segments, next, open: None, sequence: None, ended: false }
    }

    /// The next piece, read into `buffer`.
    pub(crate) fn next(&mut self, buffer: Vec<u8>) -> Option<Piece> {
        if self.ended {
            return None;
        }
        let piece = match self.open.is_some() {
            true => self.read_batches(buffer),
            false => self.begin_segment(),
        };
        match piece {
            Ok(Some(piece)) => Some(piece),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(flaw) => {
                self.ended = true;
                Some(Piece::Flaw(flaw))
            }
        }
    }

    fn begin_segment(&mut self) -> Result<Option<Piece>, Flaw> {
        let Some(segment) = self.segments.files[..self.segments.begun].get(self.next) else {
            return Ok(None);
        };
        if let Some(before) = self.next.checked_sub(1).map(|at| self.segments.files[at].number)
            && before + 1 != segment.number
        {
            return Err(Failure::new(Why::MissingSegment(before + 1)).into());
        }
        let flaw = |why| Flaw::in_segment(segment.number, 0, self.sequence, why);
        let mut bytes = Vec::new();
        let file = File::open(&segment.path).and_then(|mut file| {
            (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
            Ok(file)
        });
        let file = file.map_err(|error| flaw(Why::Unreadable(error)))?;
        let header = Header::parse(&bytes).map_err(|found| match found {
            HeaderFlaw::Torn(why) => flaw(Why::BadSegmentHeader(why)).maybe_torn(0),
            HeaderFlaw::Made(why) => flaw(Why::BadSegmentHeader(why)),
            HeaderFlaw::NewerFormat(version) => flaw(Why::NewerFormat(version)),
        })?;
        if header.number != segment.number {
            return Err(flaw(Why::BadSegmentHeader("its number differs from that of its file")));
        }
        if (header.number == 1) != (header.first_sequence == 0) {
            return Err(flaw(Why::BadSegmentHeader("the first segment must begin with record 0, and no other may")));
        }
        if header.first_sequence > FIRST_SEQUENCE_MAX {
            return Err(flaw(Why::BadSegmentHeader("the number of its first record is too large")));
        }
        match self.sequence {
            Some(expected) if header.first_sequence > expected => {
                return Err(flaw(Why::Gap { found: header.first_sequence }));
            }
            Some(expected) if header.first_sequence < expected => {
                return Err(flaw(Why::OutOfOrder { found: header.first_sequence }));
            }
            _ => {}
        }
        let trees = read_trees(self.segments, segment.number)?;
        self.sequence = Some(header.first_sequence);
        self.next += 1;
        let offset = HEADER_BYTES as u64;
        self.open = Some(OpenSegment { number: segment.number, version: header.version, file, offset, empty: true });
        Ok(Some(Piece::Begin { header, trees }))
    }

    fn read_batches(&mut self, mut buffer: Vec<u8>) -> Result<Option<Piece>, Flaw> {
        let open = self.open.as_mut().expect("a segment is open");
        let first_sequence = self.sequence.expect("known since the first header");
        let flaw = |offset, why| Flaw::in_segment(open.number, offset, Some(first_sequence), why);
        let offset = open.offset;
        let unreadable = |error| flaw(offset, Why::Unreadable(error));
        let damaged = |damage| flaw(offset, Why::Damaged(damage)).maybe_torn(offset);

        let mut want = CHUNK_BYTES;
        let (taken, records) = loop {
            read_at(&mut open.file, offset, want, &mut buffer).map_err(unreadable)?;
            let (taken, records, stopped) = whole_batches(&buffer, open.version);
            match stopped {
                _ if taken > 0 => break (taken, records),
                Next::More(bytes) if bytes > want => want = bytes,
                // The file ends here. Fewer zeroes than a header are padding too.
                Next::More(_) if buffer.len() >= BATCH_HEADER_BYTES => return Err(damaged(Damage::Truncated)),
                Next::More(_) if buffer.iter().any(|b| *b != 0) => return Err(damaged(Damage::NoMagic)),
                Next::More(_) | Next::Zeroes => {
                    open.file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
                    let zeroes = only_zeroes_left(&mut open.file).map_err(unreadable)?;
                    return if zeroes { self.end_segment() } else { Err(damaged(Damage::NoMagic)) };
                }
                Next::Damage(damage) => return Err(damaged(damage)),
                Next::Batch { .. } => unreachable!("whole batches are taken"),
            }
        };
        buffer.truncate(taken);
        open.offset += taken as u64;
        open.empty = false;
        self.sequence = Some(first_sequence + records);
        Ok(Some(Piece::Batches(Chunk {
            segment: open.number,
            version: open.version,
            offset,
            first_sequence,
            bytes: buffer,
        })))
    }

    fn end_segment(&mut self) -> Result<Option<Piece>, Flaw> {
        let ended = self.open.take().expect("a segment is open");
        if ended.empty && self.next < self.segments.begun {
            return Err(Flaw::in_segment(ended.number, ended.offset, self.sequence, Why::EmptySegment));
        }
        self.begin_segment()
    }
}

/// The number of bytes and records in complete batches, and what follows them.
fn whole_batches(bytes: &[u8], version: u32) -> (usize, u64, Next) {
    let (mut taken, mut total) = (0, 0);
    loop {
        match peek(&bytes[taken..], version) {
            Next::Batch { bytes, records } => {
                taken += bytes;
                total += u64::from(records);
            }
            next => return (taken, total, next),
        }
    }
}

fn read_at(file: &mut File, offset: u64, bytes: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    file.seek(SeekFrom::Start(offset))?;
    file.take(bytes as u64).read_to_end(buffer)?;
    Ok(())
}

/// The tree files of a segment: none, one, or a copy in each of several directories.
pub(crate) fn read_trees(segments: &Segments, number: u32) -> Result<Vec<TreeFile>, Failure> {
    let mut trees = Vec::new();
    for path in segments.trees.get(&number).into_iter().flatten() {
        let flaw = |why| {
            let mut failure = Failure::new(why).in_file(path);
            failure.segment = Some(number);
            failure
        };
        let Some(bytes) = read_small(path, TREE_BYTES_MAX)? else {
            continue;
        };
        match read_tree(&bytes) {
            _ if number == 1 => return Err(flaw(Why::BadTreeFile("the first segment has no tree file"))),
            ReadTree::Good(tree) => trees.push(*tree),
            ReadTree::NewerFormat(version) => return Err(flaw(Why::NewerFormat(version))),
            ReadTree::Bad(why) => return Err(flaw(Why::BadTreeFile(why))),
        }
    }
    Ok(trees)
}
