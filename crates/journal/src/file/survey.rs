//! The contents of the directory `journal`: which segments there are, which are begun, and whether they follow each
//! other.

use super::archive::archived;
use super::layout::{JOURNAL, JournalFile, segment_path};
use super::segment::{HEADER_BYTES, Header, HeaderFlaw, origin_hash};
use super::tail::{Tail, end_of_bytes, inspect};
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::error::OpenError;
use leasehold_model::FORMAT_VERSION;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The directory as it was found. Nothing in it was changed.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The begun segments, ascending, without gaps, with sound headers.
    pub(super) segments: Vec<Header>,
    /// After them: a segment whose first bytes are torn, with how many there are.
    pub(super) torn_beginning: Option<(u32, u64)>,
    /// Segments that were allocated and not begun.
    pub(super) unbegun: Vec<u32>,
    pub(super) trees: BTreeSet<u32>,
    /// The lowest number of a segment that is neither here nor in an archive, if one before those above is missing.
    pub(super) missing: Option<u32>,
}

/// One segment file.
enum Found {
    Unbegun,
    Begun(Header),
    /// Not zeroes, and not a header. `end` is the end of the bytes that are not zero.
    Damaged {
        end: u64,
        good_batch: Option<u64>,
    },
}

impl Survey {
    /// Segments that were moved away count if they are in an archive.
    pub(super) fn take(disk: &dyn Disk, archives: &[Arc<dyn Disk>], origin: &str) -> Result<Self, OpenError> {
        let mut survey = Self::default();
        let mut numbers = BTreeSet::new();
        let names = disk.list(JOURNAL).map_err(OpenError::io("listing the journal's segments"))?;
        for name in names {
            match JournalFile::named(&name) {
                JournalFile::Segment(number) => {
                    numbers.insert(number);
                }
                JournalFile::Tree(number) => {
                    survey.trees.insert(number);
                }
                JournalFile::Temporary => {}
                JournalFile::Foreign => {
                    let path = format!("{JOURNAL}/{name}");
                    return Err(OpenError::ForeignFile { path });
                }
            }
        }
        // Listed after the data directory: a segment that is being moved away meanwhile is in one of the two.
        let archived = archived(archives).map_err(OpenError::io("listing the segments in journal.archive"))?;
        // Those right before the first one here; a gap ends them.
        if let Some(mut first) = numbers.first().copied() {
            while first > 1 && archived.contains(&(first - 1)) {
                first -= 1;
                numbers.insert(first);
                survey.trees.insert(first);
            }
            survey.missing = (1..first).find(|number| !archived.contains(number));
        }
        for number in numbers {
            survey.add(disk, number, origin)?;
        }
        Ok(survey)
    }

    fn add(&mut self, disk: &dyn Disk, number: u32, origin: &str) -> Result<(), OpenError> {
        let sequence = self.segments.last().map_or(0, |last| last.first_sequence);
        let corrupt = |segment: u32, offset: u64, why: String| OpenError::Corrupt { segment, offset, sequence, why };
        // Batches of version 1 cannot follow those of version 2.
        let versions: &[u32] = match self.segments.last() {
            Some(last) if last.version > 1 => &[FORMAT_VERSION],
            _ => &[1, FORMAT_VERSION],
        };
        let found = look(disk, number, sequence, versions)?;
        if let Found::Unbegun = found {
            self.unbegun.push(number);
            return Ok(());
        }
        // Only the last begun segment may be torn, and none before it unbegun.
        if let Some(unbegun) = self.unbegun.first() {
            let why = "it contains nothing, and a later segment does";
            return Err(corrupt(*unbegun, 0, why.into()));
        }
        if let Some((torn, _)) = self.torn_beginning {
            let why = "its header is damaged, and a later segment was begun";
            return Err(corrupt(torn, 0, why.into()));
        }
        if let Some(last) = self.segments.last()
            && last.number + 1 != number
        {
            let segment = last.number + 1;
            return Err(OpenError::MissingSegment { segment });
        }
        match found {
            Found::Unbegun => unreachable!("returned above"),
            Found::Damaged { good_batch: Some(offset), .. } => {
                let why = format!("its header is damaged, and a good batch begins at {offset}");
                Err(corrupt(number, 0, why))
            }
            Found::Damaged { end, .. } => {
                self.torn_beginning = Some((number, end));
                Ok(())
            }
            Found::Begun(header) => {
                self.check(&header, number, origin)?;
                self.segments.push(header);
                Ok(())
            }
        }
    }

    fn check(&self, header: &Header, number: u32, origin: &str) -> Result<(), OpenError> {
        let corrupt =
            |why: String| Err(OpenError::Corrupt { segment: number, offset: 0, sequence: header.first_sequence, why });
        if header.origin != origin_hash(origin) {
            return Err(OpenError::WrongOrigin { path: segment_path(number), expected: origin.into() });
        }
        if header.number != number {
            return corrupt(format!("its header has the number {}", header.number));
        }
        let begins_the_journal = header.first_sequence == 0 && header.prev == [0; 32];
        if (number == 1) != begins_the_journal {
            return corrupt("its header does not fit its place".into());
        }
        if let Some(last) = self.segments.last()
            && last.first_sequence >= header.first_sequence
        {
            return corrupt("it begins before the segment before it ends".into());
        }
        if let Some(last) = self.segments.last()
            && last.version > header.version
        {
            return corrupt(format!("it is of version {}, after one of version {}", header.version, last.version));
        }
        Ok(())
    }
}

pub(super) fn open_segment(disk: &dyn Disk, number: u32) -> Result<Arc<dyn DiskFile>, OpenError> {
    let path = segment_path(number);
    disk.open(&path, Access::Update).map_err(OpenError::io(format!("opening {path}")))
}

fn look(disk: &dyn Disk, number: u32, sequence: u64, versions: &[u32]) -> Result<Found, OpenError> {
    let path = segment_path(number);
    let reading = || OpenError::io(format!("reading {path}"));
    let file = disk.open(&path, Access::Read).map_err(OpenError::io(format!("opening {path}")))?;
    let mut bytes = [0; HEADER_BYTES];
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(reading())?;
    match Header::parse(&bytes[..read]) {
        Ok(header) => Ok(Found::Begun(header)),
        Err(HeaderFlaw::NewerFormat(version)) => Err(OpenError::NewerFormat { path, version }),
        Err(HeaderFlaw::Damaged) => {
            let Some(end) = end_of_bytes(file.as_ref(), 0).map_err(reading())? else {
                return Ok(Found::Unbegun);
            };
            let tail = inspect(file.as_ref(), 0, sequence, versions).map_err(reading())?;
            let good_batch = match tail {
                Tail::GoodBatch { offset } => Some(offset),
                Tail::Clean | Tail::Torn { .. } => None,
            };
            Ok(Found::Damaged { end, good_batch })
        }
    }
}
