//! Deleting archived segments for good (`leasehold journal delete`), also while a daemon writes to the journal.
//!
//! Segments go oldest first, so that what is left is the end of the same journal, and only from an archive. One is deleted
//! if its last record is old enough, if a restart does not need it, if deliveries have passed it, if every record in it
//! was read and leads to the next segment, and if nothing in it must be kept for sensitive work.
//!
//! The rule for sensitive work: from the first record on that tells of any, every record is taken to be about it, since
//! whatever is about it comes later than that record. Where the beginning of the journal is not known, every record is.
//! A segment with such records is kept until the retention period has passed since its last record.

use super::archive::{WithArchives, archived};
use super::archive_copy::{Link, check_links};
use super::archiver::{ArchiveError, Locks, Progress, archived_name, has_tree, header, io, lock, segments};
use super::batches::BatchReader;
use super::covered::Covered;
use super::deletion_state::{DeletionState, Stretch};
use super::layout::{JournalFile, segment_path, tree_path};
use super::read_only::{ReadOnly, SignedHead};
use super::segment::{HEADER_BYTES_U64, Header, origin_hash};
use crate::disk::{Access, Disk};
use crate::error::OpenError;
use crate::secret::Secret;
use leasehold_model::record::Hash;
use leasehold_model::{Instant, Record, Retention};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, io as std_io};

/// The directories of a journal.
#[derive(Clone)]
pub struct Places {
    pub data: Arc<dyn Disk>,
    /// From which segments are deleted.
    pub archive: Arc<dyn Disk>,
    /// The other archives, which are only read.
    pub others: Vec<Arc<dyn Disk>>,
}

/// What is to be deleted, and what decides about it.
pub struct Wanted<'a> {
    /// Only segments whose last record is stamped before this.
    pub before: Instant,
    pub wall_clock: Instant,
    /// For how long records of sensitive work are kept.
    pub sensitive: Retention,
    /// Whether a record tells by itself of sensitive work.
    pub tells: &'a dyn Fn(&Record) -> bool,
    /// Authenticates snapshots.
    pub secret: Option<&'a Secret>,
    /// Records that the books have committed.
    pub books: u64,
    /// The first record that deliveries still have to read, if there are any.
    pub deliveries: Option<u64>,
}

/// Whether a part of the journal can contain records of sensitive work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensitiveWork {
    /// There was none from the first record of the journal on.
    None,
    /// It can, from this record on, the first one that tells of sensitive work.
    Since(u64),
    /// It may: what came before was deleted, and nothing says what that was.
    Unknown,
}

/// Why a segment and those after it are not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is in the data directory, from which nothing is deleted.
    InData { segment: u32 },
    /// It is in another archive.
    InOther { segment: u32 },
    /// A restart may need it.
    Needed { segment: u32, signed: u64, snapshot: Option<u64>, books: u64 },
    /// Events of its records are not delivered yet.
    Undelivered { segment: u32, next: u64 },
    /// Its last record is too young.
    NotBefore { segment: u32, last: Instant },
    /// It can contain records of sensitive work, and its last record is too young for that.
    Sensitive { segment: u32, last: Instant, until: Instant, work: SensitiveWork },
}

/// Segments that may be deleted. Each of them was read and verified.
#[derive(Clone, Debug)]
pub struct DeletionPlan {
    origin: String,
    due: Vec<Due>,
    /// What an earlier run deleted and did not report.
    unreported: Option<Stretch>,
    /// Why the segment after them stays.
    pub kept: Option<Kept>,
    /// The time that counts as now: the newest signed stamp or the wall clock, whichever is earlier.
    pub clock: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    header: Header,
    stretch: Stretch,
    /// Up to its end.
    sensitive: SensitiveWork,
}

/// What was deleted, for those who have to prove that it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    pub origin: String,
    pub segments: std::ops::RangeInclusive<u32>,
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub first_stamp: Instant,
    pub last_stamp: Instant,
    /// The hash of the last record, which the first record that is left continues.
    pub last_hash: Hash,
    pub bytes: u64,
    /// Whether a part of it was deleted by a run that was interrupted.
    pub continued: bool,
}

impl DeletionPlan {
    /// Reads everything that may be deleted, and one segment more. Changes nothing.
    pub fn make(places: &Places, wanted: &Wanted<'_>, progress: &mut Progress<'_>) -> Result<Self, DeletionError> {
        let journal = ReadOnly::open(Arc::clone(&places.data), Vec::new()).map_err(ArchiveError::Open)?;
        let signed = journal.signed();
        let survey = Survey::take(places)?;
        let covered = Covered::read(places.data.as_ref(), signed, wanted.secret, wanted.books)?;
        let clock = newest_stamp(&survey, signed)?.min(wanted.wall_clock);
        if wanted.before > clock {
            return Err(DeletionError::Future { before: wanted.before, clock });
        }
        let mut plan = Self { origin: signed.origin.clone(), due: Vec::new(), unreported: None, kept: None, clock };
        let Some(first) = survey.numbers.first().copied() else { return Ok(plan) };
        let first = survey.header(first, &signed.origin)?;
        let mut sensitive = plan.begin(places, &first)?;
        let mut done = 0;
        for number in survey.numbers.iter().copied() {
            let header = survey.header(number, &signed.origin)?;
            if !survey.in_archive.contains(&number) {
                plan.kept = Some(survey.kept_elsewhere(number)?);
                break;
            }
            // It would still be read there.
            if survey.in_data.contains(&number) || survey.elsewhere.contains(&number) {
                return Err(DeletionError::Copy { segment: number });
            }
            let next = survey.header(number + 1, &signed.origin)?;
            if !covered.is_behind(&next) || !has_tree(&survey.all, &next)? {
                let Covered { signed, snapshot, books } = covered;
                plan.kept = Some(Kept::Needed { segment: number, signed, snapshot, books });
                break;
            }
            if let Some(record) = wanted.deliveries.filter(|record| *record < next.first_sequence) {
                plan.kept = Some(Kept::Undelivered { segment: number, next: record });
                break;
            }
            let (stretch, told) = read(places.archive.as_ref(), &Link { header, next }, wanted.tells)?;
            if let (SensitiveWork::None, Some(sequence)) = (sensitive, told) {
                sensitive = SensitiveWork::Since(sequence);
            }
            if let Some(kept) = keeps(&stretch, sensitive, wanted, clock) {
                plan.kept = Some(kept);
                break;
            }
            plan.due.push(Due { header, stretch, sensitive });
            done += stretch.bytes;
            if !progress(done) {
                break;
            }
        }
        Ok(plan)
    }

    /// Finds out what came before the first segment that is there.
    fn begin(&mut self, places: &Places, first: &Header) -> Result<SensitiveWork, DeletionError> {
        let mut sensitive = if first.number == 1 { SensitiveWork::None } else { SensitiveWork::Unknown };
        let own = DeletionState::read(places.archive.as_ref()).map_err(io("reading deletion.state"))?;
        if let Some((state, fit)) = own.and_then(|state| Some((state.clone(), state.fit(&self.origin, first)?))) {
            self.unreported = state.unreported(&fit);
            // If the segment is there, this is what is known up to its end, which keeps no less.
            return Ok(state.sensitive);
        }
        for archive in &places.others {
            let state = DeletionState::read(archive.as_ref()).map_err(io("reading deletion.state"))?;
            if let Some(state) = state.filter(|state| state.fit(&self.origin, first).is_some()) {
                sensitive = state.sensitive;
            }
        }
        Ok(sensitive)
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What may be deleted now.
    pub fn planned(&self) -> Option<Deleted> {
        let all = self.due.iter().map(|due| due.stretch).reduce(Stretch::and);
        all.map(|all| self.told(&all, false))
    }

    fn told(&self, all: &Stretch, continued: bool) -> Deleted {
        Deleted {
            origin: self.origin.clone(),
            segments: all.first_segment..=all.last_segment,
            first_sequence: all.first_sequence,
            last_sequence: all.size - 1,
            first_stamp: all.first_stamp,
            last_stamp: all.last_stamp,
            last_hash: all.head,
            bytes: all.bytes,
            continued,
        }
    }
}

/// Why a segment that was read stays.
fn keeps(stretch: &Stretch, work: SensitiveWork, wanted: &Wanted<'_>, clock: Instant) -> Option<Kept> {
    let (segment, last) = (stretch.first_segment, stretch.last_stamp);
    if last >= wanted.before {
        return Some(Kept::NotBefore { segment, last });
    }
    let until = wanted.sensitive.until(last);
    (work != SensitiveWork::None && until > clock).then_some(Kept::Sensitive { segment, last, until, work })
}

/// Reads a segment and verifies it against the next one. Also answers with the first record that tells of sensitive work.
fn read(
    archive: &dyn Disk,
    link: &Link,
    tells: &dyn Fn(&Record) -> bool,
) -> Result<(Stretch, Option<u64>), DeletionError> {
    let path = segment_path(link.header.number);
    let name = archived_name(&path);
    let file = archive.open(name, Access::Read).map_err(io(name))?;
    let bytes = file.len().map_err(io(name))?;
    let (mut first, mut last, mut told) = (None, Instant(0), None);
    let checked = check_links(&file, link, &mut |raw| {
        let record = raw.decode().map_err(|error| format!("a record cannot be decoded: {error}"))?;
        first.get_or_insert(record.stamp);
        last = last.max(record.stamp);
        if told.is_none() && tells(&record) {
            told = Some(record.sequence);
        }
        Ok(())
    });
    checked.map_err(|why| damaged(link.header.number, why))?;
    let stretch = Stretch {
        first_segment: link.header.number,
        last_segment: link.header.number,
        first_sequence: link.header.first_sequence,
        size: link.next.first_sequence,
        first_stamp: first.unwrap_or(last),
        last_stamp: last,
        head: link.next.prev,
        bytes,
    };
    Ok((stretch, told))
}

fn damaged(segment: u32, why: impl Into<String>) -> DeletionError {
    DeletionError::Archive(ArchiveError::Damaged { segment, place: "archive", why: why.into() })
}

/// Which segments there are, and where.
struct Survey {
    all: WithArchives,
    /// Without gaps.
    numbers: BTreeSet<u32>,
    in_data: BTreeSet<u32>,
    in_archive: BTreeSet<u32>,
    elsewhere: BTreeSet<u32>,
}

impl Survey {
    fn take(places: &Places) -> Result<Self, DeletionError> {
        // Listed in the order in which segments are moved, so that one that is moved meanwhile is in one of them.
        let in_data = segments(places.data.as_ref())?;
        let own = places.archive.list("").map_err(io("listing the archive"))?;
        let in_archive: BTreeSet<u32> = own
            .iter()
            .filter_map(|name| match JournalFile::named(name) {
                JournalFile::Segment(number) => Some(number),
                _ => None,
            })
            .collect();
        let elsewhere = archived(&places.others).map_err(io("listing the archives"))?;
        let numbers: BTreeSet<u32> = in_data.iter().chain(&in_archive).chain(&elsewhere).copied().collect();
        for pair in numbers.iter().zip(numbers.iter().skip(1)) {
            if *pair.0 + 1 != *pair.1 {
                return Err(DeletionError::Hole { segment: pair.0 + 1 });
            }
        }
        let archives = std::iter::once(&places.archive).chain(&places.others).cloned().collect();
        let all = WithArchives { data: Arc::clone(&places.data), archives };
        Ok(Self { all, numbers, in_data, in_archive, elsewhere })
    }

    fn header(&self, number: u32, origin: &str) -> Result<Header, DeletionError> {
        let header = header(&self.all, number)?.ok_or_else(|| damaged(number, "its header is damaged"))?;
        if header.origin != origin_hash(origin) {
            return Err(damaged(number, "it belongs to another journal"));
        }
        Ok(header)
    }

    /// Why a segment stays that is not in the archive. Those of another archive go first if they are older.
    fn kept_elsewhere(&self, segment: u32) -> Result<Kept, DeletionError> {
        let is_oldest = self.numbers.first() == Some(&segment);
        match self.in_data.contains(&segment) {
            true => Ok(Kept::InData { segment }),
            false if is_oldest && !self.in_archive.is_empty() => Err(DeletionError::Elsewhere { segment }),
            false => Ok(Kept::InOther { segment }),
        }
    }
}

/// The stamp of the last record that the newest checkpoint covers.
fn newest_stamp(survey: &Survey, signed: &SignedHead) -> Result<Instant, DeletionError> {
    let Some(last) = signed.head.size.checked_sub(1) else { return Ok(Instant(0)) };
    let mismatch = || ArchiveError::Open(OpenError::AnchorMismatch { size: signed.head.size, what: "head" });
    for number in survey.numbers.iter().rev() {
        // The newest one may be allocated and not begun.
        let Some(header) = header(&survey.all, *number)?.filter(|header| header.first_sequence <= last) else {
            continue;
        };
        let path = segment_path(*number);
        let file = survey.all.open(&path, Access::Read).map_err(io(&path))?;
        let mut batches = BatchReader::new(file, HEADER_BYTES_U64).of_version(header.version);
        while let Ok(batch) = batches.next().map_err(io(&path))? {
            for raw in batch.records().filter_map(Result::ok) {
                if raw.sequence() == Ok(last) {
                    let stamp = raw.decode().map(|record| record.stamp);
                    return stamp.ok().filter(|_| raw.hash() == signed.head.hash).ok_or_else(|| mismatch().into());
                }
            }
        }
        break;
    }
    Err(mismatch().into())
}

/// Deletes segments from an archive.
pub struct Deleter {
    places: Places,
    _locks: Locks,
}

impl Deleter {
    /// Fails if another process moves or deletes segments in one of the directories.
    pub fn new(places: Places) -> Result<Self, DeletionError> {
        let locks = lock(&places.data, &places.archive)?;
        Ok(Self { places, _locks: locks })
    }

    /// Deletes the segments of a plan, which must have been made after the lock was taken. What is known about each is
    /// durable before it is removed, so that a run that is killed can be continued.
    pub fn run(&self, plan: &DeletionPlan) -> Result<Option<Deleted>, DeletionError> {
        let archive = self.places.archive.as_ref();
        self.finish_removal(plan)?;
        let mut gone = plan.unreported;
        for due in &plan.due {
            let number = due.header.number;
            let state = DeletionState {
                origin: plan.origin.clone(),
                last: due.stretch,
                sensitive: due.sensitive,
                before: gone,
                reported: false,
            };
            state.write(archive).map_err(io("writing deletion.state"))?;
            // The segment first: a tree file without its segment does no harm.
            let (segment, tree) = (segment_path(number), tree_path(number));
            archive.remove(archived_name(&segment)).map_err(io(&segment))?;
            self.remove_tree(archived_name(&tree))?;
            archive.sync_dir("").map_err(io("the archive"))?;
            gone = Some(gone.map_or(due.stretch, |before| before.and(due.stretch)));
        }
        Ok(gone.map(|all| plan.told(&all, plan.unreported.is_some())))
    }

    /// What was deleted was reported: the next run begins a new report.
    pub fn reported(&self) -> Result<(), DeletionError> {
        let archive = self.places.archive.as_ref();
        let state = DeletionState::read(archive).map_err(io("reading deletion.state"))?;
        if let Some(state) = state.filter(|state| !state.reported) {
            let state = DeletionState { before: None, reported: true, ..state };
            state.write(archive).map_err(io("writing deletion.state"))?;
        }
        Ok(())
    }

    /// A run that was killed may have left the tree file of the segment that it had removed.
    fn finish_removal(&self, plan: &DeletionPlan) -> Result<(), DeletionError> {
        let archive = self.places.archive.as_ref();
        let state = DeletionState::read(archive).map_err(io("reading deletion.state"))?;
        let Some(state) = state.filter(|state| state.origin == plan.origin) else { return Ok(()) };
        let (segment, tree) = (segment_path(state.last.last_segment), tree_path(state.last.last_segment));
        let is_gone = archive.open(archived_name(&segment), Access::Read);
        if is_gone.is_err_and(|error| error.kind() == std_io::ErrorKind::NotFound) {
            self.remove_tree(archived_name(&tree))?;
            archive.sync_dir("").map_err(io("the archive"))?;
        }
        Ok(())
    }

    fn remove_tree(&self, name: &str) -> Result<(), DeletionError> {
        match self.places.archive.remove(name) {
            Err(error) if error.kind() != std_io::ErrorKind::NotFound => Err(io(name)(error).into()),
            _ => Ok(()),
        }
    }
}

/// Why nothing more was deleted. What was deleted before stays deleted; the next run reports it.
#[derive(Debug)]
pub enum DeletionError {
    Archive(ArchiveError),
    /// The time lies after the clock.
    Future {
        before: Instant,
        clock: Instant,
    },
    /// A segment is in none of the directories, and later ones are.
    Hole {
        segment: u32,
    },
    /// The oldest segment is in another archive.
    Elsewhere {
        segment: u32,
    },
    /// The segment is also in the data directory or in another archive.
    Copy {
        segment: u32,
    },
}

impl From<ArchiveError> for DeletionError {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl DeletionError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Archive(error) => error.code(),
            Self::Future { .. } => "deletion_in_future",
            Self::Hole { .. } => "archive_incomplete",
            Self::Elsewhere { .. } => "archive_not_oldest",
            Self::Copy { .. } => "archive_has_copy",
        }
    }
}

impl fmt::Display for DeletionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => error.fmt(f),
            Self::Future { before, clock } => write!(
                f,
                "{before} is later than {clock}, the earlier of this machine's clock and the newest signed record; give \
                 an earlier time"
            ),
            Self::Hole { segment } => write!(
                f,
                "{segment:08}.seg is missing, and earlier and later segments are here; bring it back, or add its \
                 directory to journal.archive"
            ),
            Self::Elsewhere { segment } => write!(
                f,
                "the oldest segment, {segment:08}.seg, is in another directory of journal.archive; segments are deleted \
                 oldest first, so delete those of the other directory before these"
            ),
            Self::Copy { segment } => write!(
                f,
                "{segment:08}.seg is also in the data directory or in another archive, and would still be read there; \
                 run `leasehold journal archive`, or remove the copy"
            ),
        }
    }
}
impl std::error::Error for DeletionError {}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InData { segment } => {
                write!(f, "{segment:08} is in the data directory (`leasehold journal archive` moves old segments)")
            }
            Self::InOther { segment } => write!(f, "{segment:08} is in another directory of journal.archive"),
            Self::Needed { segment, signed, snapshot, books } => write!(
                f,
                "{segment:08} may be needed for a restart: the newest checkpoint covers {signed} records, the newest \
                 snapshot {}, the books {books}",
                snapshot.unwrap_or(0)
            ),
            Self::Undelivered { segment, next } => {
                write!(f, "{segment:08} has events that are not delivered yet, from record {next} on")
            }
            Self::NotBefore { segment, last } => write!(f, "the last record of {segment:08} is stamped {last}"),
            Self::Sensitive { segment, last, until, work } => {
                let why = match work {
                    SensitiveWork::None => unreachable!("nothing else is kept for sensitive work"),
                    SensitiveWork::Since(record) => {
                        format!("record {record} tells of sensitive work, and any record after it may be about it")
                    }
                    SensitiveWork::Unknown => {
                        "what was before the oldest segment is not known, and may have been sensitive work".to_owned()
                    }
                };
                write!(
                    f,
                    "{segment:08} is kept until {until} (journal.sensitive_retention): its last record is stamped \
                     {last}, and {why}"
                )
            }
        }
    }
}

impl Kept {
    /// A stable word for the reason.
    pub fn word(&self) -> &'static str {
        match self {
            Self::InData { .. } => "in_data_directory",
            Self::InOther { .. } => "in_other_archive",
            Self::Needed { .. } => "needed_for_restart",
            Self::Undelivered { .. } => "undelivered",
            Self::NotBefore { .. } => "not_before",
            Self::Sensitive { .. } => "sensitive",
        }
    }

    pub fn segment(&self) -> u32 {
        match self {
            Self::InData { segment }
            | Self::InOther { segment }
            | Self::Needed { segment, .. }
            | Self::Undelivered { segment, .. }
            | Self::NotBefore { segment, .. }
            | Self::Sensitive { segment, .. } => *segment,
        }
    }
}
