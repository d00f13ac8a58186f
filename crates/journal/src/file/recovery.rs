//! Opening a journal: find out what is there, verify it, and only then put in order what a crash left.

use super::FileJournal;
use super::allocate::extend_segment;
use super::anchor::{AnchorFile, Authenticity, FoundAnchor};
use super::archive::WithArchives;
use super::checkpointer::{Boundary, Checkpointer};
use super::index::{Index, Segment};
use super::layout::{JOURNAL, SNAPSHOTS, remove_temporaries, segment_path, tree_path};
use super::lock::Lock;
use super::options::{Local, Options};
use super::replay::{CutTail, Passed, Replay, Replayed, Stop, Torn};
use super::segment::{HEADER_BYTES_U64, Header};
use super::snapshot::{self, Owner};
use super::start::starts;
use super::survey::Survey;
use super::tail::{cut, end_of_bytes, write_again};
use super::tree_file::TreeFile;
use super::writer::Current;
use crate::disk::{Disk, is_full};
use crate::error::{Failure, OpenError};
use crate::fold::Fold;
use crate::keyring::Keys;
use crate::provider::{Head, Position};
use leasehold_model::body::{Body, Converted, Restored, TailAction, TailResolved};
use leasehold_model::record::Hash;
use leasehold_model::{FORMAT_VERSION, Instant};
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
    /// The torn end of a batch that was never acknowledged, which was cut off.
    pub torn: Option<TornTail>,
    /// One slot of the anchor was damaged, as by a crash while it was written; the other one counted.
    pub anchor_slot_damaged: bool,
    /// The anchor that counted is not by the secret at hand, which was lost or replaced. Everything up to it is signed.
    pub secret_lost: bool,
    /// The journal was written in format version 1 so far.
    pub converted: bool,
    /// The directory of the snapshots was missing and was created again.
    pub snapshots_missing: bool,
    /// What the operator decided about records that could not be authenticated.
    pub tail_resolved: Option<TailResolved>,
}

impl Recovered {
    /// What has to be sealed before anything else.
    fn to_seal(&self) -> Vec<Body> {
        let converted = self.converted.then(|| Converted { format_version: FORMAT_VERSION }.into());
        converted.into_iter().chain(self.tail_resolved.clone().map(Body::from)).collect()
    }
}

/// Bytes that were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub segment: u32,
    pub offset: u64,
    pub bytes: u64,
}

/// Creates the directories and the anchor of an empty journal.
pub(super) fn create(
    disk: Arc<dyn Disk>,
    options: Options,
    keys: Arc<Keys>,
    local: Local,
    now: Instant,
) -> Result<FileJournal, OpenError> {
    options.check()?;
    let creating = || OpenError::io("creating the journal");
    disk.create_dir("").map_err(creating())?;
    let lock = Lock::take(disk.as_ref())?;
    disk.create_dir(JOURNAL).map_err(creating())?;
    disk.create_dir(SNAPSHOTS).map_err(creating())?;
    let survey = Survey::take(disk.as_ref(), &[], keys.origin())?;
    let begun = !survey.segments.is_empty() || survey.torn_beginning.is_some();
    match AnchorFile::open(disk.as_ref(), Some(&local.secret.anchor)) {
        // What is left of an interrupted creation may be created again.
        Ok(None) | Err(OpenError::BadAnchor { .. }) if !begun => {}
        Err(error @ OpenError::Io { .. }) => return Err(error),
        _ => return Err(OpenError::JournalExists),
    }
    let checkpointer = Checkpointer {
        fold: Fold::new(keys.origin(), Position::empty(), None),
        at: None,
        reading: None,
        anchor: AnchorFile::create(disk.as_ref(), Some(local.secret.anchor.clone())).map_err(creating())?,
        epoch: 1,
        boundaries: Vec::new(),
    };
    let index = Index { head: Head::EMPTY, segments: Vec::new(), missing: None, spacing: options.index_bytes };
    let journal = FileJournal::assemble(disk, options, keys, local, lock, checkpointer, index, None, Vec::new(), now)?;
    journal.disk.sync_dir("").map_err(creating())?;
    journal.allocate_next().map_err(creating())?;
    Ok(journal)
}

pub(super) fn open(
    disk: Arc<dyn Disk>,
    options: Options,
    keys: Arc<Keys>,
    local: Local,
    now: Instant,
) -> Result<(FileJournal, Recovered), OpenError> {
    options.check()?;
    let disk: Arc<dyn Disk> = match local.archives.is_empty() {
        true => disk,
        false => Arc::new(WithArchives { data: disk, archives: local.archives.clone() }),
    };
    let lock = Lock::take(disk.as_ref())?;
    let found = find(disk.as_ref(), &options, &keys, &local)?;
    let mut recovered = found.recovered();
    let epoch = found.anchor.anchor.epoch.max(found.replayed.fold.epoch());
    let epoch = epoch.checked_add(1).ok_or(OpenError::EpochsExhausted)?;
    // The directory that was copied may have been started again since. It counts its starts; nobody starts once a second.
    let epoch = if local.restored.is_some() { epoch.max(now.0 / 1_000_000_000) } else { epoch };

    // Everything was verified. From here on the directory is changed.
    recovered.snapshots_missing = create_snapshots(disk.as_ref()).map_err(OpenError::io("creating snapshots"))?;
    let current = put_in_order(disk.as_ref(), &options, &found)?;
    let Found { anchor, survey, replayed, genesis, .. } = found;
    let index = index_of(&survey, &replayed, options.index_bytes);
    let passed = replayed.passed.into_iter().filter(|passed| can_sign(&passed.fold, &keys));
    let boundaries = passed.map(|passed| boundary(passed, &keys)).collect::<Result<_, _>>().map_err(failed)?;
    let checkpointer = Checkpointer {
        at: replayed.last.as_ref().map(|last| (last.number, last.end)),
        fold: replayed.fold,
        reading: None,
        anchor: anchor.file,
        epoch,
        boundaries,
    };
    let mut to_seal = recovered.to_seal();
    to_seal.extend(local.restored.map(|copied_at| Restored { records: recovered.size, copied_at }.into()));
    let journal = FileJournal::assemble(disk, options, keys, local, lock, checkpointer, index, current, to_seal, now)?;
    if let Some(genesis) = genesis {
        journal.genesis.get_or_init(|| genesis);
    }
    if recovered.converted {
        journal.allocate_next().map_err(OpenError::io("allocating a segment of the new format version"))?;
    }
    Ok((journal, recovered))
}

/// Everything there is to know before anything is changed.
struct Found {
    anchor: FoundAnchor,
    survey: Survey,
    replayed: Replayed,
    verified_from: u64,
    genesis: Option<Hash>,
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
            secret_lost: self.anchor.authenticity == Authenticity::Unknown,
            converted: self.replayed.last.as_ref().is_some_and(|last| last.version < FORMAT_VERSION),
            snapshots_missing: false,
            tail_resolved: self.tail_resolved(),
        }
    }

    fn tail_resolved(&self) -> Option<TailResolved> {
        let resolved = |action, records, bytes| TailResolved { action, records, bytes };
        match (self.replayed.cut, self.replayed.accepted) {
            (Some(cut), _) => Some(resolved(TailAction::Cut, cut.records, cut.bytes)),
            (None, (0, _)) => None,
            (None, (records, bytes)) => Some(resolved(TailAction::Accepted, records, bytes)),
        }
    }
}

fn find(disk: &dyn Disk, options: &Options, keys: &Keys, local: &Local) -> Result<Found, OpenError> {
    let survey = match disk.list(JOURNAL) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Survey::default(),
        _ => Survey::take(disk, &local.archives, keys.origin())?,
    };
    let begun = !survey.segments.is_empty() || survey.torn_beginning.is_some();
    let anchor = match AnchorFile::open(disk, Some(&local.secret.anchor)) {
        Ok(Some(anchor)) => anchor,
        Ok(None) if begun => return Err(OpenError::MissingAnchor),
        // An interrupted creation is no journal yet.
        Ok(None) | Err(OpenError::BadAnchor { .. }) if !begun => return Err(OpenError::NoJournal),
        Ok(None) => unreachable!("begun or not"),
        Err(error) => return Err(error),
    };
    let key = anchor.anchor.check(keys)?;
    let (replayed, verified_from) = replay(disk, options, &survey, &anchor, key, local)?;
    // A rotation beyond the anchor may have put another key in force.
    if let Some(key) = replayed.fold.key()
        && keys.by_public_key(&key).is_none()
    {
        let key = VerifierKey::new(keys.origin(), &key).map_or(anchor.anchor.key, |key| key.id());
        return Err(OpenError::MissingKey { key });
    }
    let genesis = genesis(disk, &survey, keys.origin(), local)?;
    Ok(Found { anchor, survey, replayed, verified_from, genesis })
}

/// The hash of the first record where its segment was moved away: public IDs are derived from it. A snapshot contains it.
fn genesis(disk: &dyn Disk, survey: &Survey, origin: &str, local: &Local) -> Result<Option<Hash>, OpenError> {
    let Some(segment) = survey.missing else { return Ok(None) };
    let owner = Owner { origin, mac: Some(&local.secret.snapshot) };
    let reading = OpenError::io("reading the snapshots");
    snapshot::genesis(disk, &owner).map_err(reading)?.ok_or(OpenError::MissingSegment { segment }).map(Some)
}

/// Replays from the nearest start that leads to the anchor.
fn replay(
    disk: &dyn Disk,
    options: &Options,
    survey: &Survey,
    found: &FoundAnchor,
    key: [u8; 32],
    local: &Local,
) -> Result<(Replayed, u64), OpenError> {
    let anchor = &found.anchor;
    let replay = Replay {
        disk,
        survey,
        anchor,
        authenticity: found.authenticity,
        key,
        mac: &local.secret.batch,
        tail: local.tail,
        spacing: options.index_bytes,
    };
    let owner = Owner { origin: &anchor.origin, mac: Some(&local.secret.snapshot) };
    let mut mismatch = "tree";
    for start in starts(disk, survey, &owner, anchor.head.size)? {
        let reading = OpenError::io("reading where verification can begin");
        let Some(position) = start.position(disk, &owner).map_err(reading)? else {
            continue;
        };
        let verified_from = position.size();
        match replay.run(position) {
            Ok(replayed) => return Ok((replayed, verified_from)),
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Mismatch(what)) => mismatch = what,
            Err(Stop::Beyond { .. }) => unreachable!("a replay decides about it"),
        }
    }
    Err(OpenError::AnchorMismatch { size: anchor.head.size, what: mismatch })
}

/// Snapshots can be deleted at any time, also with their directory. Returns whether it was missing.
fn create_snapshots(disk: &dyn Disk) -> io::Result<bool> {
    match disk.list(SNAPSHOTS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.create_dir(SNAPSHOTS)?;
            disk.sync_dir("").map(|()| true)
        }
        listed => listed.map(|_| false),
    }
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
    if let Some(tail) = replayed.cut {
        discard(disk, &found.survey, replayed, tail).map_err(repairing())?;
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
    // A segment of an earlier version keeps its bytes: nothing is appended to it.
    match last.version {
        FORMAT_VERSION => Ok(Some(ready(last, options).map_err(repairing())?)),
        _ => Ok(None),
    }
}

fn cut_off(disk: &dyn Disk, replayed: &Replayed, torn: Torn) -> io::Result<()> {
    match &replayed.last {
        Some(last) if last.number == torn.segment => cut(last.file.as_ref(), torn.offset, torn.end),
        // Not even its first batch is intact: the segment was not begun.
        _ => {
            disk.remove(&segment_path(torn.segment))?;
            disk.sync_dir(JOURNAL)
        }
    }
}

/// Removes a tail that could not be authenticated, from its end backwards: a crash in between leaves no gap.
fn discard(disk: &dyn Disk, survey: &Survey, replayed: &Replayed, tail: CutTail) -> io::Result<()> {
    let last = replayed.last.as_ref().map_or(0, |last| last.number);
    for number in survey.trees.iter().rev().filter(|number| **number > last) {
        disk.remove(&tree_path(*number))?;
    }
    let begun = survey.segments.iter().map(|header| header.number);
    let segments: Vec<_> = begun.chain(survey.torn_beginning.map(|(number, _)| number)).collect();
    for number in segments.into_iter().rev().filter(|number| *number > last) {
        disk.remove(&segment_path(number))?;
    }
    disk.sync_dir(JOURNAL)?;
    match &replayed.last {
        Some(last) if last.number == tail.segment => match end_of_bytes(last.file.as_ref(), tail.offset)? {
            Some(end) => cut(last.file.as_ref(), tail.offset, end),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The last segment, allocated to its full length again. On a full disk it is as long as it is.
fn ready(last: &super::replay::LastSegment, options: &Options) -> io::Result<Current> {
    let (file, end) = (last.file.as_ref(), last.end);
    let had = file.len()?.max(end);
    let mut capacity = had;
    if had < options.segment_bytes {
        // What the stop left after the last record is written again first, so that it is allocated for certain.
        for (from, to) in [(end, had), (had, options.segment_bytes)] {
            match extend_segment(file, from, to) {
                Ok(()) => capacity = to,
                Err(error) if is_full(&error) => {
                    capacity = file.len()?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Current { number: last.number, file: last.file.clone(), at: end, capacity })
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
        missing: survey.missing,
        spacing,
    }
}

/// Whether the key in force at a position is held. One that was retired cannot sign any more: the segment that begins
/// there then has no tree file, which it needs only if everything before it is moved away.
fn can_sign(fold: &Fold, keys: &Keys) -> bool {
    fold.key().is_none_or(|key| keys.by_public_key(&key).is_some())
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
