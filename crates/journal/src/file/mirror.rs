//! A copy of another's journal, kept without its keys: for a collector that follows the chain from afar.
//!
//! Records are verified as they are taken and lie in segments as the origin's do. A checkpoint of the origin that fits
//! proves all before it and becomes the copy's anchor, so that a verifier reads the folder like any other. What no
//! checkpoint has proved yet may be there too; it is dropped when something does not fit.

use super::anchor::{Anchor, AnchorFile};
use super::batches::BatchReader;
use super::layout::{ANCHOR, JOURNAL, JournalFile, remove_temporaries, segment_path, tree_path};
use super::lock::Lock;
use super::mirror_state::{COLLECTOR, State};
use super::options::Options;
use super::segment::{HEADER_BYTES, HEADER_BYTES_U64, Header, origin_hash};
use super::tail::write_again;
use super::tree_file::TreeFile;
use crate::admission::{CONVERTED, head_of};
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::error::{Failure, Misfit, OpenError};
use crate::fold::{Broken, Flaw, Fold};
use crate::provider::{Head, Position};
use leasehold_model::record::Hash;
use leasehold_model::{FORMAT_VERSION, Instant, RawBatch};
use leasehold_tlog::{Checkpoint, CheckpointError, Note, NoteError, VerifierKey};
use std::io;
use std::sync::Arc;

/// A new segment is begun where a checkpoint lies, so that it gets a tree file; a segment that is so many times its
/// length ends anywhere.
const SEGMENTS_UNSIGNED_MAX: u64 = 4;
/// One write at most is unsynced, and none is longer.
const WRITE_BYTES_MAX: u64 = 32 << 20;
/// Fits the slot of an anchor beside its other lines.
const NOTE_BYTES_MAX: usize = 3072;
/// The epoch in the anchor of a copy: nobody has opened it for writing.
const EPOCH: u64 = 0;

/// A copy that is open for writing by this process alone.
pub struct Mirror {
    disk: Arc<dyn Disk>,
    options: Options,
    /// The keys one of which the genesis record must pin.
    trusted: Vec<VerifierKey>,
    /// Everything taken.
    fold: Fold,
    /// What was taken and not written, all of one format version.
    pending: Vec<u8>,
    pending_version: u32,
    /// The end of what was written and synced.
    stored: Head,
    current: Option<Current>,
    /// What a checkpoint has proved.
    proved: State,
    anchor: Option<AnchorFile>,
    _lock: Lock,
}

/// The segment that is written to.
struct Current {
    number: u32,
    version: u32,
    file: Arc<dyn DiskFile>,
    /// Where the next batch goes.
    at: u64,
}

impl Mirror {
    /// Opens the copy in a folder, or begins one in an empty folder. `trust` is the caller's mark for what a new copy is
    /// held against. What was written and not proved is verified again, and cut where it does not stand.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        origin: &str,
        trusted: Vec<VerifierKey>,
        trust: Hash,
        now: Instant,
    ) -> Result<Self, OpenError> {
        options.check()?;
        let opening = || OpenError::io("opening the copy");
        disk.create_dir("").map_err(opening())?;
        let lock = Lock::take(disk.as_ref())?;
        disk.create_dir(JOURNAL).map_err(opening())?;
        let mut state = match State::read(disk.as_ref())? {
            Some(state) => state,
            None => begin(disk.as_ref(), State::new(origin, trust))?,
        };
        if state.origin != origin {
            return Err(OpenError::WrongOrigin { path: COLLECTOR.into(), expected: origin.into() });
        }
        remove_temporaries(disk.as_ref(), JOURNAL).map_err(opening())?;
        if state.position.size() == 0 && state.trust != trust {
            // Whose first key was trusted then need not be trusted now, and nothing was proved yet.
            cut(disk.as_ref(), None).map_err(opening())?;
            state = State::new(origin, trust);
            state.write(disk.as_ref()).map_err(opening())?;
        }
        let (fold, current) = recover(disk.as_ref(), &state)?;
        let mut mirror = Self {
            anchor: None,
            options,
            trusted,
            pending: Vec::new(),
            pending_version: FORMAT_VERSION,
            stored: fold.position().head,
            fold,
            current,
            proved: state,
            _lock: lock,
            disk,
        };
        mirror.open_anchor(now)?;
        Ok(mirror)
    }

    /// Records taken: proved, stored or neither yet.
    pub fn size(&self) -> u64 {
        self.fold.size()
    }
    /// Records that a checkpoint of the origin has proved.
    pub fn proved(&self) -> u64 {
        self.proved.position.size()
    }
    /// The checkpoint that proved them; empty where there is none yet.
    pub fn note(&self) -> &str {
        &self.proved.note
    }
    /// What was proved.
    pub fn proved_position(&self) -> &Position {
        &self.proved.position
    }
    /// The stamp of the last record taken.
    pub fn stamp(&self) -> Instant {
        self.fold.stamp()
    }
    /// The key that signs checkpoints of this size.
    pub fn key(&self) -> Option<VerifierKey> {
        VerifierKey::new(&self.proved.origin, &self.fold.key()?).ok()
    }
    /// The mark of what the copy was held against.
    pub fn trust(&self) -> Hash {
        self.proved.trust
    }

    /// Remembers that the copy was held against something else.
    pub fn set_trust(&mut self, trust: Hash) -> Result<(), Failure> {
        let state = State { trust, ..self.proved.clone() };
        state.write(self.disk.as_ref()).map_err(|error| Failure::new("writing what was collected", &error))?;
        self.proved = state;
        Ok(())
    }

    /// Verifies a batch that follows, and keeps it until [`flush`](Self::flush). If it does not fit, nothing of it is kept.
    pub fn take(&mut self, batch: &RawBatch<'_>) -> Result<(), Misfit> {
        let mut fold = self.fold.clone();
        for record in batch.records() {
            let record = record.expect("the frames were looked at when the batch was read");
            fold.take(record).map_err(Misfit::Record)?;
            if fold.size() == 1 {
                self.check_genesis(&fold)?;
            }
        }
        // A segment contains batches of one format version; a later one begins with the record that says so.
        let before = self.fold.format_version();
        let converts = batch.records().next().and_then(Result::ok).and_then(head_of).is_some_and(|h| h.2 == CONVERTED);
        let changes = before.is_some_and(|before| before != batch.version());
        if fold.format_version().is_some_and(|version| version != batch.version())
            || changes != (converts && before.is_some())
        {
            return Err(Misfit::Record(Broken { sequence: self.fold.size(), flaw: Flaw::Conversion }));
        }
        if self.pending_version != batch.version() {
            self.flush().map_err(Misfit::Failed)?;
            self.pending_version = batch.version();
        }
        fold.set_format_version(batch.version());
        self.fold = fold;
        self.pending.extend_from_slice(batch.bytes());
        Ok(())
    }

    /// The key that the genesis record pins must be one of the trusted ones: the log does not vouch for itself.
    fn check_genesis(&self, fold: &Fold) -> Result<(), Misfit> {
        let public_key = fold.key().expect("a genesis record pins a key");
        let key = VerifierKey::new(&self.proved.origin, &public_key).map_err(|_| Misfit::BadKey)?;
        if self.trusted.contains(&key) { Ok(()) } else { Err(Misfit::UnknownKey { key: key.id() }) }
    }

    /// Bytes that were taken and are not written yet.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Writes what was taken. If it returns `Ok`, that is durable.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.write().map_err(|error| Failure::new("writing the copy", &error))
    }

    fn write(&mut self) -> io::Result<()> {
        let proved = self.stored == self.proved.position.head;
        let full = |at: u64| {
            let most = self.options.segment_bytes;
            at >= most && proved || at >= most * SEGMENTS_UNSIGNED_MAX
        };
        let version = self.pending_version;
        match &mut self.current {
            Some(current) if !full(current.at) && current.version == version => {
                current.file.write_at(&self.pending, current.at)?;
                current.file.sync()?;
                current.at += self.pending.len() as u64;
            }
            _ => self.begin_segment(proved)?,
        }
        self.pending.clear();
        self.stored = self.fold.position().head;
        Ok(())
    }

    /// Begins the next segment with what is pending; `proved` says that it begins at the proved size.
    fn begin_segment(&mut self, proved: bool) -> io::Result<()> {
        let number = self.current.as_ref().map_or(1, |current| current.number + 1);
        let version = self.pending_version;
        let header = Header {
            version,
            number,
            first_sequence: self.stored.size,
            prev: self.stored.hash,
            origin: origin_hash(&self.proved.origin),
        };
        let bytes = [header.encode().as_slice(), &self.pending].concat();
        let file = self.disk.open(&segment_path(number), Access::Create)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        self.disk.sync_dir(JOURNAL)?;
        self.current = Some(Current { number, version, file, at: bytes.len() as u64 });
        if proved && number > 1 {
            let State { position, note, .. } = self.proved.clone();
            TreeFile { segment: number, position, note }.write(self.disk.as_ref())?;
        }
        Ok(())
    }

    /// The checkpoint in a note, if the key in force signed it and the records taken are those it signs for.
    ///
    /// # Panics
    /// If the note, as far as it can be read, is of another size than was taken.
    pub fn fits(&self, note: &Note) -> Result<Checkpoint, Misfit> {
        let size = self.size();
        let bad = |why: &str| Misfit::BadCheckpoint { size, why: why.to_owned() };
        let claimed = Checkpoint::from_body(note.text()).map_err(|error| bad(&error.to_string()))?;
        assert_eq!(claimed.size(), size, "a checkpoint is compared where it lies");
        let in_force = self.key().ok_or(Misfit::BadKey)?;
        let key = in_force.id();
        let opened = Checkpoint::open_note(note, &[in_force], &self.proved.origin);
        let checkpoint = opened.map_err(|error| match error {
            CheckpointError::Note(NoteError::NoKnownSignature) => Misfit::NotSigned { size, key },
            CheckpointError::Note(NoteError::BadSignature { key_id, .. }) => Misfit::BadSignature { size, key: key_id },
            CheckpointError::WrongOrigin { found, .. } => Misfit::WrongOrigin { found },
            error => bad(&error.to_string()),
        })?;
        if !checkpoint.extensions().is_empty() {
            return Err(bad("it has lines after its root"));
        }
        if note.to_string().len() > NOTE_BYTES_MAX {
            return Err(bad("its note is longer than an anchor holds"));
        }
        if *checkpoint.root() != self.fold.position().tree.root() {
            return Err(Misfit::Root { size, proved: self.proved() });
        }
        Ok(checkpoint)
    }

    /// Holds what was taken against a checkpoint of its size. If it returns `Ok`, all of it is proved, durable, and
    /// signed for in the copy's anchor.
    pub fn prove(&mut self, note: &Note, now: Instant) -> Result<(), Misfit> {
        self.prove_with_mark(note, now, self.proved.trust)
    }

    /// Does what [`Self::prove`] does, and changes the mark of the copy in the same write.
    pub fn prove_with_mark(&mut self, note: &Note, now: Instant, trust: Hash) -> Result<(), Misfit> {
        self.fits(note)?;
        self.flush().map_err(Misfit::Failed)?;
        let state = State {
            origin: self.proved.origin.clone(),
            trust,
            end: self.current.as_ref().map(|current| (current.number, current.at)),
            position: self.fold.position().clone(),
            stamp: self.fold.stamp(),
            key: self.fold.key(),
            note: note.to_string(),
        };
        if state == self.proved {
            return Ok(());
        }
        // The anchor after the state: what is cut later is cut at the state, and must not fall behind the anchor.
        let failed = |error: io::Error| Misfit::Failed(Failure::new("writing what was collected", &error));
        state.write(self.disk.as_ref()).map_err(failed)?;
        self.proved = state;
        self.write_anchor(now).map_err(failed)
    }

    fn write_anchor(&mut self, now: Instant) -> io::Result<()> {
        let state = &self.proved;
        let key = state.key.and_then(|key| VerifierKey::new(&state.origin, &key).ok());
        let anchor = Anchor {
            counter: 0,
            origin: state.origin.clone(),
            epoch: EPOCH,
            closed: false,
            head: state.position.head,
            root: state.position.tree.root(),
            key: key.expect("a usable key has signed the checkpoint").id(),
            time: now,
            note: state.note.clone(),
        };
        let new = self.anchor.is_none();
        let file = match &mut self.anchor {
            Some(file) => file,
            none => none.insert(AnchorFile::create(self.disk.as_ref(), None)?),
        };
        file.write(anchor)?;
        if new { self.disk.sync_dir("") } else { Ok(()) }
    }

    /// A crash may have come between the state and its anchor.
    fn open_anchor(&mut self, now: Instant) -> Result<(), OpenError> {
        let found = match AnchorFile::open(self.disk.as_ref(), None) {
            Err(OpenError::BadAnchor { .. }) => None,
            found => found?,
        };
        let current = found.as_ref().is_some_and(|found| found.anchor.note == self.proved.note);
        self.anchor = found.map(|found| found.file);
        if current || self.proved() == 0 {
            return Ok(());
        }
        self.write_anchor(now).map_err(OpenError::io("writing the anchor"))
    }

    /// Gives the copy up as a copy, so that it can be opened as a journal by whoever has its keys.
    pub fn give_up(mut self) -> io::Result<()> {
        self.forget_unproved().map_err(|failure| io::Error::new(failure.kind(), failure.to_string()))?;
        self.disk.remove(COLLECTOR)?;
        self.disk.sync_dir("")
    }

    /// Drops what was taken and not proved, in memory and on disk.
    pub fn forget_unproved(&mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::new("dropping what was not proved", &error);
        self.pending.clear();
        self.fold = self.proved.fold();
        self.stored = self.proved.position.head;
        self.current = cut(self.disk.as_ref(), self.proved.end).map_err(failed)?;
        Ok(())
    }
}

/// Begins a copy where there is nothing yet.
fn begin(disk: &dyn Disk, state: State) -> Result<State, OpenError> {
    let looking = || OpenError::io("looking into the folder");
    let anchor = match disk.open(ANCHOR, Access::Read) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(looking()(error)),
    };
    let (segments, _) = files(disk).map_err(looking())?;
    if anchor || !segments.is_empty() {
        return Err(OpenError::NotACopy);
    }
    state.write(disk).map_err(OpenError::io("beginning the copy"))?;
    Ok(state)
}

/// The numbers of the segments and of the tree files, ascending.
fn files(disk: &dyn Disk) -> io::Result<(Vec<u32>, Vec<u32>)> {
    let (mut segments, mut trees) = (Vec::new(), Vec::new());
    for name in disk.list(JOURNAL)? {
        match JournalFile::named(&name) {
            JournalFile::Segment(number) => segments.push(number),
            JournalFile::Tree(number) => trees.push(number),
            JournalFile::Temporary | JournalFile::Foreign => {}
        }
    }
    segments.sort_unstable();
    trees.sort_unstable();
    Ok((segments, trees))
}

/// Takes what stands after the proved end, and cuts the rest.
fn recover(disk: &dyn Disk, state: &State) -> Result<(Fold, Option<Current>), OpenError> {
    let recovering = || OpenError::io("reading the copy");
    let (segments, _) = files(disk).map_err(recovering())?;
    let mut fold = state.fold();
    let mut end = state.end;
    if let Some((segment, offset)) = end {
        if !segments.contains(&segment) {
            return Err(OpenError::MissingSegment { segment });
        }
        let file = disk.open(&segment_path(segment), Access::Read).map_err(recovering())?;
        if file.len().map_err(recovering())? < offset {
            return Err(OpenError::BadCopy { why: format!("segment {segment:08} is shorter than what was proved") });
        }
        if let Some(version) = version_of(disk, segment).map_err(recovering())? {
            fold.set_format_version(version);
        }
        end = Some((segment, read_on(disk, segment, offset, &mut fold).map_err(recovering())?));
    }
    loop {
        let next = end.map_or(1, |(number, _)| number + 1);
        if !segments.contains(&next) || !continues(disk, next, &fold, &state.origin).map_err(recovering())? {
            break;
        }
        match read_on(disk, next, HEADER_BYTES_U64, &mut fold).map_err(recovering())? {
            HEADER_BYTES_U64 => break,
            offset => end = Some((next, offset)),
        }
    }
    let current = cut(disk, end).map_err(recovering())?;
    // The sync of the last write may have failed: what can be read must also be durable before it is proved.
    if let Some(current) = &current
        && end != state.end
    {
        let proved = state.end.filter(|(segment, _)| *segment == current.number).map_or(0, |(_, offset)| offset);
        let from = proved.max(current.at.saturating_sub(WRITE_BYTES_MAX));
        write_again(current.file.as_ref(), from, current.at).map_err(recovering())?;
        disk.sync_dir(JOURNAL).map_err(recovering())?;
    }
    Ok((fold, current))
}

fn header_of(disk: &dyn Disk, number: u32) -> io::Result<Option<Header>> {
    let file = disk.open(&segment_path(number), Access::Read)?;
    let mut bytes = [0; HEADER_BYTES];
    let read = read_full(file.as_ref(), &mut bytes, 0)?;
    Ok(Header::parse(&bytes[..read]).ok())
}

/// The format version of a segment, if its header is intact.
fn version_of(disk: &dyn Disk, number: u32) -> io::Result<Option<u32>> {
    Ok(header_of(disk, number)?.map(|header| header.version))
}

/// Whether the segment begins at the fold's position.
fn continues(disk: &dyn Disk, number: u32, fold: &Fold, origin: &str) -> io::Result<bool> {
    let Some(header) = header_of(disk, number)? else { return Ok(false) };
    let Head { size, hash } = fold.position().head;
    let expected =
        Header { version: header.version, number, first_sequence: size, prev: hash, origin: origin_hash(origin) };
    Ok(header == expected)
}

/// Takes the intact batches from `offset` on; returns where they end.
fn read_on(disk: &dyn Disk, number: u32, offset: u64, fold: &mut Fold) -> io::Result<u64> {
    let version = version_of(disk, number)?.unwrap_or(FORMAT_VERSION);
    let mut batches = BatchReader::new(disk.open(&segment_path(number), Access::Read)?, offset).of_version(version);
    loop {
        let end = batches.offset();
        let Ok(batch) = batches.next()? else { return Ok(end) };
        let mut further = fold.clone();
        let mut records = batch.records();
        if records.any(|record| record.is_ok_and(|record| further.take(record).is_err())) {
            return Ok(end);
        }
        further.set_format_version(version);
        *fold = further;
    }
}

/// Removes everything after `end`. If it returns `Ok`, that is durable.
fn cut(disk: &dyn Disk, end: Option<(u32, u64)>) -> io::Result<Option<Current>> {
    let last = end.map_or(0, |(number, _)| number);
    let (segments, trees) = files(disk)?;
    let after = |numbers: Vec<u32>| numbers.into_iter().filter(move |number| *number > last);
    let mut removed = false;
    // A tree file without its segment is a journal that was cut; the other way round is none. From the last one down:
    // a crash in between leaves no gap.
    for path in after(trees).map(tree_path).chain(after(segments).rev().map(segment_path)) {
        disk.remove(&path)?;
        removed = true;
    }
    if removed {
        disk.sync_dir(JOURNAL)?;
    }
    let Some((number, at)) = end else { return Ok(None) };
    let file = disk.open(&segment_path(number), Access::Update)?;
    if file.len()? > at {
        file.set_len(at)?;
        file.sync()?;
    }
    let version = version_of(disk, number)?.unwrap_or(FORMAT_VERSION);
    Ok(Some(Current { number, version, file, at }))
}
