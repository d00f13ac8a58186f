//! Moving old segments to an archive (`leasehold journal archive`), also while a daemon writes to the journal.
//!
//! A segment may go if a restart does not need it: everything in it is behind the signed checkpoint, the newest snapshot
//! and what the books have committed, and the segment after it has a tree file. Each one is copied, synced, read back and
//! compared before the original is removed, so that a kill at any point loses nothing and the next run continues.

use super::archive_copy::{Link, check_links, compare, copy};
use super::covered::Covered;
use super::layout::{JOURNAL, JournalFile, segment_path, tree_path, write_whole};
use super::read_only::ReadOnly;
use super::segment::{HEADER_BYTES, Header};
use super::tree_file::read_tree;
use crate::disk::{Access, Disk, DiskFile, DiskLock, read_full};
use crate::error::OpenError;
use crate::secret::Secret;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, io};

/// Held in both directories: one archiver at a time.
const LOCK: &str = "archive.lock";
/// Far more than a tree file can have.
const TREE_BYTES_MAX: u64 = 64 * 1024;

/// Which segments of a data directory may be moved away, and what decides about it.
#[derive(Clone, Debug)]
pub struct Plan {
    movable: Vec<Movable>,
    /// Begun segments that stay.
    pub kept: usize,
    /// Records that the newest checkpoint covers.
    pub signed: u64,
    /// Records that the newest usable snapshot covers, if there is one.
    pub snapshot: Option<u64>,
    /// Records that the books have committed.
    pub books: u64,
}

/// A segment that may go, and what its records must lead to.
#[derive(Clone, Copy, Debug)]
struct Movable {
    link: Link,
    bytes: u64,
}

impl Plan {
    /// Reads what is in the data directory. Without the secret, snapshots are not authenticated: a forged one could only
    /// move more segments to a place where the daemon still reads them.
    pub fn make(data: &Arc<dyn Disk>, secret: Option<&Secret>, books: u64) -> Result<Self, ArchiveError> {
        let journal = ReadOnly::open(Arc::clone(data), Vec::new()).map_err(ArchiveError::Open)?;
        let covered = Covered::read(data.as_ref(), journal.signed(), secret, books)?;
        let begun = headers(data.as_ref())?;
        let mut movable = Vec::new();
        for pair in begun.windows(2) {
            let (header, next) = (pair[0], pair[1]);
            if !covered.is_behind(&next) || next.number != header.number + 1 || !has_tree(data.as_ref(), &next)? {
                break;
            }
            let path = segment_path(header.number);
            let bytes = data.open(&path, Access::Read).and_then(|file| file.len()).map_err(io(&path))?;
            movable.push(Movable { link: Link { header, next }, bytes });
        }
        let kept = begun.len() - movable.len();
        let Covered { signed, snapshot, books } = covered;
        Ok(Self { movable, kept, signed, snapshot, books })
    }

    /// The numbers of the segments that may go, ascending.
    pub fn segments(&self) -> impl Iterator<Item = u32> + '_ {
        self.movable.iter().map(|movable| movable.link.header.number)
    }

    /// Their bytes in the data directory.
    pub fn bytes(&self) -> u64 {
        self.movable.iter().map(|movable| movable.bytes).sum()
    }
}

fn numbers(disk: &dyn Disk, of: impl Fn(JournalFile) -> Option<u32>) -> Result<BTreeSet<u32>, ArchiveError> {
    let names = disk.list(JOURNAL).map_err(io("listing the journal's segments"))?;
    Ok(names.iter().filter_map(|name| of(JournalFile::named(name))).collect())
}

pub(super) fn segments(disk: &dyn Disk) -> Result<BTreeSet<u32>, ArchiveError> {
    numbers(disk, |file| match file {
        JournalFile::Segment(number) => Some(number),
        JournalFile::Tree(_) | JournalFile::Temporary | JournalFile::Foreign => None,
    })
}

fn trees(disk: &dyn Disk) -> Result<BTreeSet<u32>, ArchiveError> {
    numbers(disk, |file| match file {
        JournalFile::Tree(number) => Some(number),
        JournalFile::Segment(_) | JournalFile::Temporary | JournalFile::Foreign => None,
    })
}

/// The headers of the begun segments, ascending, up to one that is not begun or damaged.
fn headers(disk: &dyn Disk) -> Result<Vec<Header>, ArchiveError> {
    let mut headers = Vec::new();
    for number in segments(disk)? {
        match header(disk, number)? {
            Some(header) => headers.push(header),
            None => break,
        }
    }
    Ok(headers)
}

/// The header of a segment; none if it is not begun or damaged.
pub(super) fn header(disk: &dyn Disk, number: u32) -> Result<Option<Header>, ArchiveError> {
    let path = segment_path(number);
    let mut bytes = [0; HEADER_BYTES];
    let file = disk.open(&path, Access::Read).map_err(io(&path))?;
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(io(&path))?;
    Ok(Header::parse(&bytes[..read]).ok().filter(|header| header.number == number))
}

/// Whether the segment can be the first one here: its tree file says what precedes it.
pub(super) fn has_tree(disk: &dyn Disk, header: &Header) -> Result<bool, ArchiveError> {
    let tree = read_tree(disk, header.number).map_err(io(tree_path(header.number)))?;
    Ok(tree.is_some_and(|at| at.head.size == header.first_sequence && at.head.hash == header.prev))
}

/// Held while segments are moved or deleted.
pub(super) type Locks = [Box<dyn DiskLock>; 2];

/// Locks a data directory and an archive against others that move or delete segments.
pub(super) fn lock(data: &Arc<dyn Disk>, archive: &Arc<dyn Disk>) -> Result<Locks, ArchiveError> {
    let lock = |disk: &Arc<dyn Disk>| {
        disk.lock(LOCK).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => ArchiveError::InUse,
            _ => io("locking the archive")(error),
        })
    };
    Ok([lock(data)?, lock(archive)?])
}

/// Moves segments from a data directory to an archive.
pub struct Archiver {
    data: Arc<dyn Disk>,
    to: Arc<dyn Disk>,
    _locks: Locks,
}

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub segments: Vec<u32>,
    /// Bytes that were freed in the data directory.
    pub bytes: u64,
}

/// Is called with the number of bytes done so far, and returns whether to go on.
pub(super) type Progress<'p> = dyn FnMut(u64) -> bool + 'p;

impl Archiver {
    /// `to` must exist. Fails if another archiver works in one of the directories.
    pub fn new(data: Arc<dyn Disk>, to: Arc<dyn Disk>) -> Result<Self, ArchiveError> {
        let locks = lock(&data, &to)?;
        Ok(Self { data, to, _locks: locks })
    }

    /// Moves the segments of the plan, oldest first. Each byte counts twice for `progress`: copied, and read back.
    pub fn run(&self, plan: &Plan, progress: &mut Progress<'_>) -> Result<Moved, ArchiveError> {
        self.finish_removal()?;
        let mut moved = Moved::default();
        for movable in &plan.movable {
            let number = movable.link.header.number;
            let before = moved.bytes * 2;
            self.put_tree(number)?;
            if !self.put_segment(&movable.link, &mut |done| progress(before + done))? {
                break;
            }
            self.remove(number)?;
            moved.segments.push(number);
            moved.bytes += movable.bytes;
        }
        Ok(moved)
    }

    /// Brings a verified copy of a segment into the archive. Returns false if `progress` asked to stop.
    fn put_segment(&self, link: &Link, progress: &mut Progress<'_>) -> Result<bool, ArchiveError> {
        let number = link.header.number;
        let damaged = |place: &'static str| move |why: String| ArchiveError::Damaged { segment: number, place, why };
        let path = segment_path(number);
        let name = archived_name(&path);
        let source = self.data.open(&path, Access::Read).map_err(io(&path))?;
        let end = check_links(&source, link, &mut |_| Ok(())).map_err(damaged("data directory"))?;
        if let Some(there) = self.existing(name)? {
            // The rest of a run that was interrupted, or a copy that somebody made.
            let same = compare(source.as_ref(), there.as_ref(), end, &mut |_| true).map_err(io(name))?;
            return if same { Ok(true) } else { Err(ArchiveError::Differs { name: name.to_owned() }) };
        }
        let temporary = format!("{name}.tmp");
        let made = self.to.open(&temporary, Access::Create).map_err(io(&temporary))?;
        if !copy(source.as_ref(), made.as_ref(), end, progress).map_err(io(&temporary))? {
            return self.to.remove(&temporary).map_err(io(&temporary)).map(|()| false);
        }
        drop(made);
        let read_back = self.to.open(&temporary, Access::Read).map_err(io(&temporary))?;
        let same = compare(source.as_ref(), read_back.as_ref(), end, &mut |done| progress(end + done));
        if !same.map_err(io(&temporary))? {
            return Err(damaged("archive")("what was read back is not what was written".into()));
        }
        check_links(&read_back, link, &mut |_| Ok(())).map_err(damaged("archive"))?;
        self.to.rename(&temporary, name).and_then(|()| self.to.sync_dir("")).map_err(io(name))?;
        Ok(true)
    }

    /// Copies the tree file of a segment, if it has one.
    fn put_tree(&self, number: u32) -> Result<(), ArchiveError> {
        let path = tree_path(number);
        let Some(bytes) = small_file(self.data.as_ref(), &path)? else { return Ok(()) };
        let name = archived_name(&path);
        match small_file(self.to.as_ref(), name)? {
            Some(there) if there == bytes => Ok(()),
            Some(_) => Err(ArchiveError::Differs { name: name.to_owned() }),
            None => write_whole(self.to.as_ref(), "", name, &[&bytes]).map_err(io(name)),
        }
    }

    /// Removes the original. The segment first: a tree file without its segment does no harm.
    fn remove(&self, number: u32) -> Result<(), ArchiveError> {
        let path = segment_path(number);
        self.data.remove(&path).map_err(io(&path))?;
        self.remove_tree(number)?;
        self.data.sync_dir(JOURNAL).map_err(io(JOURNAL))
    }

    fn remove_tree(&self, number: u32) -> Result<(), ArchiveError> {
        let path = tree_path(number);
        match self.data.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io(&path)(error)),
            _ => Ok(()),
        }
    }

    /// A run that was killed may have left the tree file of a segment that it had removed.
    fn finish_removal(&self) -> Result<(), ArchiveError> {
        let Some(first) = segments(self.data.as_ref())?.first().copied() else { return Ok(()) };
        for number in trees(self.data.as_ref())?.into_iter().filter(|number| *number < first) {
            let path = tree_path(number);
            let archived = small_file(self.to.as_ref(), archived_name(&path))?;
            if archived.is_some() && archived == small_file(self.data.as_ref(), &path)? {
                self.remove_tree(number)?;
            }
        }
        Ok(())
    }

    fn existing(&self, name: &str) -> Result<Option<Arc<dyn DiskFile>>, ArchiveError> {
        match self.to.open(name, Access::Read) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io(name)(error)),
        }
    }
}

/// The name of a journal file in an archive, which has no directory `journal`.
pub(super) fn archived_name(path: &str) -> &str {
    path.strip_prefix(JOURNAL).and_then(|rest| rest.strip_prefix('/')).expect("a file of the journal")
}

pub(super) fn small_file(disk: &dyn Disk, path: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
    let file = match disk.open(path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(io(path))?,
    };
    let length = file.len().map_err(io(path))?.min(TREE_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(length).expect("64 KiB")];
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(io(path))?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Why segments were not moved. Those that were moved before stay in the archive; a later run continues.
#[derive(Debug)]
pub enum ArchiveError {
    /// The data directory is not one, or cannot be read.
    Open(OpenError),
    /// Another archiver is at work.
    InUse,
    /// The archive has another file of that name.
    Differs {
        name: String,
    },
    /// The segment is not what the segment after it continues.
    Damaged {
        segment: u32,
        place: &'static str,
        why: String,
    },
    Io {
        doing: String,
        error: io::Error,
    },
}

pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> ArchiveError {
    let doing = doing.into();
    move |error| ArchiveError::Io { doing, error }
}

impl ArchiveError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open(error) => error.code(),
            Self::InUse => "archive_in_use",
            Self::Differs { .. } => "archive_differs",
            Self::Damaged { .. } => "archive_damaged",
            Self::Io { .. } => "archive_io",
        }
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::InUse => {
                write!(f, "another `leasehold journal archive` or `delete` is running here; wait until it ends")
            }
            Self::Differs { name } => write!(
                f,
                "the archive contains {name} with other content than the data directory; nothing was overwritten; \
                 check which one is right with leasehold-verify, and move the other one away"
            ),
            Self::Damaged { segment, place, why } => write!(
                f,
                "{segment:08}.seg in the {place} is damaged: {why}; the original was not removed; run leasehold-verify"
            ),
            Self::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}
impl std::error::Error for ArchiveError {}
