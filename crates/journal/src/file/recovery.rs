//! Opening a journal: find out what is there, verify it, and only then put in order what a crash left.

use super::FileJournal;
use super::allocate::extend_segment;
use super::anchor::{Anchor, AnchorFile, FoundAnchor};
use super::checkpointer::{Boundary, Checkpointer};
use super::index::{Index, Segment};
use super::layout::{JOURNAL, LOCK, SNAPSHOTS, remove_temporaries, segment_path};
use super::options::Options;
use super::replay::{Passed, Replay, Replayed, Stop, Torn};
use super::segment::{HEADER_BYTES_U64, Header};
use super::start::starts;
use super::survey::Survey;
use super::tail::{cut, write_again};
use super::tree_file::TreeFile;
use super::writer::Current;
use crate::disk::{Disk, DiskLock, is_full};
use crate::error::{Failure, OpenError};
use crate::fold::Fold;
use crate::keyring::Keys;
use crate::provider::{Head, Position};
use leasehold_model::Instant;
use leasehold_tlog::VerifierKey;
use std::io;
use std::sync::Arc;

/// What was found when the journal was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Records that are there.
    pub size: u64,
    /// The records that were verified at this start: from here to `size`.
    pub verified_from: u64,
    /// Records beyond the last checkpoint, which were verified and count.
    pub rolled_forward: u64,
    /// The torn end of a batch that nobody was told about, which was cut off.
    pub torn: Option<TornTail>,
    /// One slot of the anchor was damaged, as by a crash while it was written; the other one counted.
    pub anchor_slot_damaged: bool,
}

/// Bytes that were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub segment: u32,
    pub offset: u64,
    pub bytes: u64,
}

pub(super) fn take_lock(disk: &dyn Disk) -> Result<Box<dyn DiskLock>, OpenError> {
    disk.lock(LOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse,
        io::ErrorKind::NotFound => OpenError::NoJournal,
        _ => OpenError::io("locking the journal")(error),
    })
}

/// Makes the folders and the anchor of an empty journal.
pub(super) fn create(
    disk: Arc<dyn Disk>,
    options: Options,
    keys: Arc<Keys>,
    now: Instant,
) -> Result<FileJournal, OpenError> {
    options.check()?;
    let creating = || OpenError::io("creating the journal");
    disk.create_dir("").map_err(creating())?;
    let lock = take_lock(disk.as_ref())?;
    disk.create_dir(JOURNAL).map_err(creating())?;
    disk.create_dir(SNAPSHOTS).map_err(creating())?;
    let survey = Survey::take(disk.as_ref(), keys.origin())?;
    let begun = !survey.segments.is_empty() || survey.torn_beginning.is_some();
    match AnchorFile::open(disk.as_ref()) {
        // What is left of a creation that did not come to its end may be created again.
        Ok(None) | Err(OpenError::BadAnchor { .. }) if !begun => {}
        Err(error @ OpenError::Io { .. }) => return Err(error),
        _ => return Err(OpenError::JournalExists),
    }
    let checkpointer = Checkpointer {
        fold: Fold::new(keys.origin(), Position::empty(), None),
        at: None,
        anchor: AnchorFile::create(disk.as_ref()).map_err(creating())?,
        epoch: 1,
        boundaries: Vec::new(),
    };
    let index = Index { head: Head::EMPTY, segments: Vec::new(), spacing: options.index_bytes };
    let journal = FileJournal::assemble(disk, options, keys, lock, checkpointer, index, None, now)?;
    journal.disk.sync_dir("").map_err(creating())?;
    journal.allocate_next().map_err(creating())?;
    Ok(journal)
}

pub(super) fn open(
    disk: Arc<dyn Disk>,
    options: Options,
    keys: Arc<Keys>,
    now: Instant,
) -> Result<(FileJournal, Recovered), OpenError> {
    options.check()?;
    let lock = take_lock(disk.as_ref())?;
    let found = find(disk.as_ref(), &options, &keys)?;
    let recovered = found.recovered();

    // Everything was verified. From here on the folder is changed.
    let current = put_in_order(disk.as_ref(), &options, &found)?;
    let Found { anchor, survey, replayed, .. } = found;
    let index = index_of(&survey, &replayed, options.index_bytes);
    let boundaries =
        replayed.passed.into_iter().map(|passed| boundary(passed, &keys)).collect::<Result<_, _>>().map_err(failed)?;
    let checkpointer = Checkpointer {
        at: replayed.last.as_ref().map(|last| (last.number, last.end)),
        fold: replayed.fold,
        anchor: anchor.file,
        epoch: anchor.anchor.epoch + 1,
        boundaries,
    };
    let journal = FileJournal::assemble(disk, options, keys, lock, checkpointer, index, current, now)?;
    Ok((journal, recovered))
}

/// Everything there is to know before anything is changed.
struct Found {
    anchor: FoundAnchor,
    survey: Survey,
    replayed: Replayed,
    verified_from: u64,
}

impl Found {
    fn recovered(&self) -> Recovered {
        let size = self.replayed.fold.size();
        Recovered {
            size,
            verified_from: self.verified_from,
            rolled_forward: size - self.anchor.anchor.head.size,
            torn: self.replayed.torn.map(|torn| TornTail {
                segment: torn.segment,
                offset: torn.offset,
                bytes: torn.end - torn.offset,
            }),
            anchor_slot_damaged: self.anchor.slot_damaged,
        }
    }
}

fn find(disk: &dyn Disk, options: &Options, keys: &Keys) -> Result<Found, OpenError> {
    let survey = match disk.list(JOURNAL) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Survey::default(),
        _ => Survey::take(disk, keys.origin())?,
    };
    let begun = !survey.segments.is_empty() || survey.torn_beginning.is_some();
    let anchor = match AnchorFile::open(disk) {
        Ok(Some(anchor)) => anchor,
        Ok(None) if begun => return Err(OpenError::MissingAnchor),
        // A creation that did not come to its end is no journal yet.
        Ok(None) | Err(OpenError::BadAnchor { .. }) if !begun => return Err(OpenError::NoJournal),
        Ok(None) => unreachable!("begun or not"),
        Err(error) => return Err(error),
    };
    let key = anchor.anchor.check(keys)?;
    let (replayed, verified_from) = replay(disk, options, &survey, &anchor.anchor, key)?;
    // A rotation beyond the anchor may have put another key in force.
    if let Some(key) = replayed.fold.key()
        && keys.by_public_key(&key).is_none()
    {
        let key = VerifierKey::new(keys.origin(), &key).map_or(anchor.anchor.key, |key| key.id());
        return Err(OpenError::MissingKey { key });
    }
    Ok(Found { anchor, survey, replayed, verified_from })
}

/// Replays from the nearest start that leads to the anchor.
fn replay(
    disk: &dyn Disk,
    options: &Options,
    survey: &Survey,
    anchor: &Anchor,
    key: [u8; 32],
) -> Result<(Replayed, u64), OpenError> {
    let replay = Replay { disk, survey, anchor, key, spacing: options.index_bytes };
    let mut mismatch = "tree";
    for start in starts(disk, survey, &anchor.origin, anchor.head.size)? {
        let reading = OpenError::io("reading where verification can begin");
        let Some(position) = start.position(disk, &anchor.origin).map_err(reading)? else {
            continue;
        };
        let verified_from = position.size();
        match replay.run(position) {
            Ok(replayed) => return Ok((replayed, verified_from)),
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Mismatch(what)) => mismatch = what,
        }
    }
    Err(OpenError::AnchorMismatch { size: anchor.head.size, what: mismatch })
}

/// Cuts the torn end, makes the last batch durable, removes leftovers, and makes the last segment ready.
fn put_in_order(disk: &dyn Disk, options: &Options, found: &Found) -> Result<Option<Current>, OpenError> {
    let repairing = || OpenError::io("putting the journal in order");
    let replayed = &found.replayed;
    remove_temporaries(disk, JOURNAL).map_err(repairing())?;
    remove_temporaries(disk, SNAPSHOTS).map_err(repairing())?;
    if let Some(torn) = replayed.torn {
        cut_off(disk, replayed, torn).map_err(repairing())?;
    }
    let Some(last) = &replayed.last else {
        return Ok(None);
    };
    // With a torn batch after it, or an anchor over it, the last good batch was synced when it was written.
    if replayed.torn.is_none() && replayed.fold.size() > found.anchor.anchor.head.size {
        let from = match last.last_batch {
            HEADER_BYTES_U64 => 0,
            offset => offset,
        };
        write_again(last.file.as_ref(), from, last.end).map_err(repairing())?;
    }
    Ok(Some(ready(last, options).map_err(repairing())?))
}

fn cut_off(disk: &dyn Disk, replayed: &Replayed, torn: Torn) -> io::Result<()> {
    match &replayed.last {
        Some(last) if last.number == torn.segment => cut(last.file.as_ref(), torn.offset, torn.end),
        // Not even its first batch is whole: the segment was not begun.
        _ => {
            disk.remove(&segment_path(torn.segment))?;
            disk.sync_dir(JOURNAL)
        }
    }
}

/// The last segment, allocated to its full length again. On a full disk it is as long as it is.
fn ready(last: &super::replay::LastSegment, options: &Options) -> io::Result<Current> {
    let mut capacity = last.file.len()?;
    if capacity < options.segment_bytes {
        match extend_segment(last.file.as_ref(), last.end, options.segment_bytes) {
            Ok(()) => capacity = options.segment_bytes,
            Err(error) if is_full(&error) => capacity = last.file.len()?,
            Err(error) => return Err(error),
        }
    }
    Ok(Current { number: last.number, file: last.file.clone(), at: last.end, capacity })
}

fn index_of(survey: &Survey, replayed: &Replayed, spacing: u64) -> Index {
    let last = replayed.last.as_ref();
    let holds_records = |header: &&Header| last.is_some_and(|last| header.number <= last.number);
    let segments = survey.segments.iter().filter(holds_records);
    Index {
        head: replayed.fold.position().head,
        segments: segments
            .map(|header| Segment {
                number: header.number,
                first_sequence: header.first_sequence,
                marks: last.filter(|last| last.number == header.number).map(|last| last.marks.clone()),
            })
            .collect(),
        spacing,
    }
}

fn boundary(passed: Passed, keys: &Keys) -> Result<Boundary, Failure> {
    let (note, _) = passed.fold.sign(keys)?;
    Ok(Boundary {
        ended: passed.ended,
        end: passed.end,
        tree: TreeFile { segment: passed.began, position: passed.fold.position().clone(), note },
    })
}

pub(super) fn failed(failure: Failure) -> OpenError {
    OpenError::Io {
        doing: "signing for the journal".into(),
        error: io::Error::new(failure.kind(), failure.to_string()),
    }
}
