//! Reading every segment again against a signed checkpoint, a batch at a time: the part of the scrub that knows files.
//!
//! A start verifies the records after the newest snapshot. Older ones are only read when somebody asks for them, so that a
//! byte that was altered there would not be noticed. A scrub goes through all segments from the first on, those in
//! archives too, and checks what a verifier checks, with the keys of the daemon. It changes nothing.

mod place;
mod trouble;

pub use place::{ScrubPlace, ScrubPosition};

use super::FileJournal;
use super::batches::BatchReader;
use super::layout::segment_path;
use super::locked;
use super::reader::begins_with;
use super::segment::{HEADER_BYTES_U64, Header, origin_hash};
use super::tail::end_of_bytes;
use super::tree_file::{SignedTree, TreeRead, read_signed_tree};
use crate::admission::{CONVERTED, head_of};
use crate::disk::{Access, Disk, DiskFile};
use crate::fold::Fold;
use crate::keyring::Keys;
use crate::provider::{Position, SignedCheckpoint, Visit};
use crate::secret::MacKey;
use leasehold_model::frame::Authenticated;
use leasehold_model::{Damage, RawBatch};
use leasehold_tlog::{Checkpoint, VerifierKey};
use std::io;
use std::sync::Arc;
use trouble::{Trouble, open_segment, read_header, read_trouble};

/// What one step of a scrub found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrubStep {
    /// Another part was read, and is right.
    Read {
        bytes: u64,
    },
    Damaged(ScrubDamage),
    /// Segments were moved away or deleted while the scrub ran; it goes on with the record `next`.
    MovedAway {
        next: u64,
    },
    /// Everything up to the checkpoint was read.
    Done,
}

/// Something that is not as it was written or signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubDamage {
    /// Relative to the data directory, or to an archive.
    pub file: String,
    pub segment: u32,
    /// Where the header or the batch begins that is wrong.
    pub offset: u64,
    /// The first record that is concerned.
    pub sequence: u64,
    pub why: String,
    /// The record from which on checking goes on: the next one that a signed tree file leads to.
    pub resumed_at: Option<u64>,
}

/// One pass over the segments, up to a checkpoint that was the newest when it began.
pub struct Scrub {
    disk: Arc<dyn Disk>,
    /// The last segment when the pass began. The checkpoint covers nothing after it.
    last_known: u32,
    keys: Arc<Keys>,
    mac: MacKey,
    target: SignedCheckpoint,
    fold: Fold,
    place: ScrubPlace,
    /// The segment that is being read; none before its header was checked.
    open: Option<(Arc<dyn DiskFile>, BatchReader)>,
    ended: bool,
}

impl FileJournal {
    /// Begins a scrub with the first segment at hand, or where an earlier one stood.
    ///
    /// The place must be authentic: what is before it is not read again.
    pub fn scrub(&self, from: Option<ScrubPlace>) -> Scrub {
        let target = locked(&self.checkpointed).clone();
        // Those that were deleted since the journal was opened are not there any more.
        let is_there = |number: &u32| !is_missing(self.disk.as_ref(), *number);
        let known: Vec<u32> = locked(&self.index).segments.iter().map(|segment| segment.number).collect();
        let first = known.iter().copied().find(is_there).or(known.first().copied()).unwrap_or(1);
        let resumed = from.and_then(|place| Some((place.fold(self.keys.origin())?, place)));
        let (fold, place) = resumed
            .filter(|(fold, _)| fold.size() <= target.size())
            .unwrap_or_else(|| (Fold::new(self.keys.origin(), Position::empty(), None), ScrubPlace::at_segment(first)));
        Scrub {
            disk: Arc::clone(&self.disk),
            last_known: known.last().copied().unwrap_or(1),
            keys: Arc::clone(&self.keys),
            mac: self.local.secret.batch.clone(),
            target,
            fold,
            place,
            open: None,
            ended: false,
        }
    }
}

impl Scrub {
    /// The checkpoint that the records are compared with.
    pub fn target(&self) -> &SignedCheckpoint {
        &self.target
    }
    /// The sequence of the next record.
    pub fn size(&self) -> u64 {
        self.fold.size()
    }
    /// The sequence of the first record that was read: 0 unless segments were moved away.
    pub fn first(&self) -> u64 {
        self.place.first
    }
    /// The number of the first segment that was read.
    pub fn first_segment(&self) -> u32 {
        self.place.first_segment
    }
    /// Bytes that were read since the pass began.
    pub fn bytes(&self) -> u64 {
        self.place.bytes
    }
    /// Batches whose MAC is not by the present secret, which was replaced since, or whose MAC was altered. Their records
    /// are covered by the signature all the same.
    pub fn foreign_macs(&self) -> u64 {
        self.place.foreign_macs
    }
    /// Where the pass stands, to go on from there after a restart.
    pub fn place(&self) -> ScrubPlace {
        ScrubPlace { position: ScrubPlace::position_of(&self.fold), ..self.place.clone() }
    }

    /// Reads and checks the next part, at most one batch, and hands out its records.
    ///
    /// # Errors
    /// If a file cannot be opened or read for a reason that says nothing about its content.
    pub fn step(&mut self, visit: &mut Visit<'_>) -> io::Result<ScrubStep> {
        if self.ended {
            return Ok(ScrubStep::Done);
        }
        if self.fold.size() >= self.target.size() {
            self.ended = true;
            let checked = self.meet_target();
            return checked.map_or_else(|trouble| self.report(trouble), |()| Ok(ScrubStep::Done));
        }
        let read = match self.open.take() {
            None => self.enter(),
            Some((file, batches)) => self.read_batch(file, batches, visit),
        };
        match read {
            Ok(bytes) => {
                self.place.bytes += bytes;
                Ok(ScrubStep::Read { bytes })
            }
            Err(trouble) => self.report(trouble),
        }
    }

    /// Reads the header of the segment, and the tree file beside it.
    fn enter(&mut self) -> Result<u64, Trouble> {
        let number = self.place.segment;
        let file = open_segment(self.disk.as_ref(), number)?;
        let header = read_header(file.as_ref(), number)?;
        let begins = self.place.offset == 0;
        if begins {
            if self.begins_late() {
                let missing = Trouble::Tree { segment: number, why: "it is missing, and so is what is before it" };
                let tree = self.read_tree(number)?.ok_or(missing)?;
                self.begin_at(tree);
            }
            self.check_header(&header)?;
            self.place.offset = HEADER_BYTES_U64;
        }
        self.place.version = header.version;
        let batches = BatchReader::new(Arc::clone(&file), self.place.offset).of_version(header.version);
        self.open = Some((file, batches));
        // Last: a wrong tree file says nothing about the segment, which is read on.
        if begins && self.read_tree(number)?.is_some_and(|tree| tree.position != *self.fold.position()) {
            let why = "it does not describe the records before its segment";
            return Err(Trouble::Tree { segment: number, why });
        }
        Ok(HEADER_BYTES_U64)
    }

    /// Whether what is before the first segment was moved away: its signed tree file stands in for that.
    fn begins_late(&self) -> bool {
        self.place.segment == self.place.first_segment && self.place.segment > 1 && self.fold.size() == 0
    }

    fn check_header(&self, header: &Header) -> Result<(), Trouble> {
        let number = self.place.segment;
        let wrong = |why: &str| Err(Trouble::Damage { segment: number, offset: 0, why: why.to_owned() });
        if header.number != number || header.origin != origin_hash(self.keys.origin()) {
            return wrong("its header has another number or origin");
        }
        if header.first_sequence > self.fold.size() && number > self.place.first_segment {
            let why = format!("it ends before record {}, with which the next segment begins", header.first_sequence);
            return Err(Trouble::Damage { segment: number - 1, offset: self.place.end_before, why });
        }
        if header.first_sequence != self.fold.size() || header.prev != self.fold.position().head.hash {
            return wrong("its header does not continue the segment before it");
        }
        if header.version < self.place.version {
            return wrong("it is of an earlier format version than the segment before it");
        }
        Ok(())
    }

    /// The tree file of a segment, if there is one: whole, and signed by the key in force.
    fn read_tree(&self, segment: u32) -> Result<Option<SignedTree>, Trouble> {
        match read_signed_tree(self.disk.as_ref(), segment)? {
            TreeRead::Absent => Ok(None),
            TreeRead::Malformed => Err(Trouble::Tree { segment, why: "it is not a tree file, or it was altered" }),
            TreeRead::Whole(tree) if self.signer(&tree).is_none() => {
                Err(Trouble::Tree { segment, why: "its checkpoint is not signed by the journal's key" })
            }
            TreeRead::Whole(tree) => Ok(Some(tree)),
        }
    }

    /// The key that signed a tree file: the one in force if that is known, and otherwise one of the journal's own.
    fn signer(&self, tree: &SignedTree) -> Option<[u8; 32]> {
        let keys = self.fold.key().map_or_else(|| self.keys.public_keys(), |key| vec![key]);
        keys.into_iter().find(|key| {
            VerifierKey::new(self.keys.origin(), key)
                .is_ok_and(|key| Checkpoint::open_note(&tree.note, &[key], self.keys.origin()).is_ok())
        })
    }

    /// Goes on from a signed tree file. What is before it was not read.
    fn begin_at(&mut self, tree: SignedTree) {
        let key = self.signer(&tree);
        if self.fold.size() == 0 {
            self.place.first = tree.position.head.size;
        }
        self.fold = Fold::new(self.keys.origin(), tree.position, key);
    }

    fn read_batch(
        &mut self,
        file: Arc<dyn DiskFile>,
        mut batches: BatchReader,
        visit: &mut Visit<'_>,
    ) -> Result<u64, Trouble> {
        let (segment, offset) = (self.place.segment, batches.offset());
        let wrong = |why: String| Trouble::Damage { segment, offset, why };
        let batch = match batches.next().map_err(|error| read_trouble(error, segment, offset))? {
            Ok(batch) => batch,
            Err(damage) => return self.leave(file.as_ref(), offset, &damage),
        };
        if !begins_with(&batch, self.fold.size()) {
            return Err(wrong(format!("the batch does not begin with record {}", self.fold.size())));
        }
        self.check_mac(&batch);
        for record in batch.records() {
            // The checkpoint may have been signed before the rest of the batch; it is read in the next pass.
            if self.fold.size() == self.target.size() {
                break;
            }
            let record = record.expect("the frames were checked when the batch was read");
            let sequence = self.fold.size();
            let before = self.fold.format_version();
            self.fold.take(record).map_err(|broken| wrong(broken.to_string()))?;
            let converted = head_of(record).is_some_and(|(.., kind)| kind == CONVERTED);
            if before.is_some_and(|before| before != self.place.version) && !converted {
                return Err(wrong(format!("record {sequence} is in a segment of another format version")));
            }
            // Nobody breaks off a scrub from here: a step is short.
            let _ = visit(sequence, record);
        }
        let bytes = batch.bytes_total() as u64;
        self.place.offset = batches.offset();
        self.open = Some((file, batches));
        Ok(bytes)
    }

    /// Counts batches whose MAC is not by the present secret.
    fn check_mac(&mut self, batch: &RawBatch<'_>) {
        let last = batch.records().last().and_then(Result::ok).map(|record| record.hash());
        let bound = Authenticated {
            first_sequence: self.fold.size(),
            count: batch.count(),
            last_hash: last.unwrap_or_default(),
        };
        // Batches of version 1 have none.
        let foreign = batch.mac().is_some_and(|mac| !self.mac.fits(&[&bound.message()], mac));
        self.place.foreign_macs += u64::from(foreign);
    }

    /// No batch begins here: the segment ends, with zeroes only, and the next one follows.
    fn leave(&mut self, file: &dyn DiskFile, offset: u64, damage: &Damage) -> Result<u64, Trouble> {
        let segment = self.place.segment;
        let rest = end_of_bytes(file, offset).map_err(|error| read_trouble(error, segment, offset))?;
        if *damage != Damage::Nothing || rest.is_some() {
            let why = match damage {
                Damage::Nothing => "there are bytes where its batches end".to_owned(),
                damage => damage.to_string(),
            };
            return Err(Trouble::Damage { segment, offset, why });
        }
        // With a later one there, the next one is what was lost. Where this one is gone as well, they were deleted.
        let disk = self.disk.as_ref();
        if is_missing(disk, segment + 1) && is_missing(disk, segment + 2) && !is_missing(disk, segment) {
            let why = format!("it ends before record {}, which was signed for", self.fold.size());
            return Err(Trouble::Damage { segment, offset, why });
        }
        self.place.end_before = offset;
        self.place.segment += 1;
        self.place.offset = 0;
        Ok(0)
    }

    /// At the size of the checkpoint the records must lead to its root, and the key in force must have signed it.
    fn meet_target(&self) -> Result<(), Trouble> {
        let (segment, offset) = (self.place.segment, self.place.offset);
        let wrong = |why: &str| Err(Trouble::Damage { segment, offset, why: why.to_owned() });
        if self.target.size() == 0 {
            return Ok(());
        }
        let position = self.fold.position();
        if position.head != self.target.position.head || position.tree.root() != self.target.position.tree.root() {
            return wrong("the records up to here do not lead to the root of the signed checkpoint");
        }
        let key = self.fold.key().filter(|key| self.keys.by_public_key(key).is_some());
        let key = key.and_then(|key| VerifierKey::new(self.keys.origin(), &key).ok());
        let signed = key.and_then(|key| Checkpoint::open(&self.target.note, &[key], self.keys.origin()).ok());
        let fits = |signed: &Checkpoint| signed.size() == position.size() && *signed.root() == position.tree.root();
        if signed.as_ref().is_some_and(fits) {
            Ok(())
        } else {
            wrong("the signed checkpoint of these records is not signed by the key in force")
        }
    }
}

fn is_missing(disk: &dyn Disk, segment: u32) -> bool {
    disk.open(&segment_path(segment), Access::Read).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
