//! Checking one piece of the journal on its own: checksums, strict decoding, sequences, links, stamps and record
//! signatures inside it, and the subtrees over it (journal-format.md, "What a verifier checks", 1 to 3 and 5).
//!
//! What a piece cannot know (the hash before its first record, the key in force) it hands on to [`crate::join`].

use crate::chunks::{Chunk, Flaw};
use crate::failure::Why;
use crate::tree::Run;
use leasehold_model::body::Genesis;
use leasehold_model::frame::{BATCH_HEADER_BYTES, Frames, signed_message};
use leasehold_model::{Body, Damage, Hash, Instant, RawBatch, RawRecord, Reader, Record};
use leasehold_tlog::{leaf_hash, verify_raw};

const FRAME_HEADER_BYTES: u64 = 4;
const HASH_BYTES: usize = 32;

/// Where a record begins in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) segment: u32,
    pub(crate) offset: u64,
}

impl Place {
    pub(crate) fn flaw(self, why: Why) -> Flaw {
        Flaw::in_segment(self.segment, self.offset, Some(self.sequence), why)
    }
}

/// One record as its neighbours see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked {
    pub(crate) place: Place,
    pub(crate) stamp: Instant,
    /// The hash it carries of the record before.
    pub(crate) link: Hash,
    pub(crate) hash: Hash,
}

/// A record that changes what is checked: who signs, which epoch and which format version it is.
#[derive(Debug)]
pub(crate) enum KeyEvent {
    Genesis(Box<Genesis>),
    /// Signed by both keys; whether the old one was in force shows when the pieces are joined.
    Rotation {
        old_key: [u8; 32],
        new_key: [u8; 32],
    },
    /// A process took over as the one writer.
    Started {
        epoch: u64,
    },
    /// From here on the journal is written in this format version.
    Converted {
        format_version: u32,
    },
}

/// What a piece turned out to be, up to its first flaw.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) first: Option<Linked>,
    /// The link of the second record, to tell which end of a broken link was altered.
    pub(crate) second_link: Option<Hash>,
    pub(crate) last: Option<Linked>,
    /// Cut at every size at which a root is wanted, each with the hash of its last record.
    pub(crate) runs: Vec<(Run, Hash)>,
    pub(crate) events: Vec<(Place, KeyEvent)>,
    pub(crate) flaw: Option<Flaw>,
    /// End of the last good batch in the file.
    pub(crate) end: u64,
}

/// Checks the records of a piece. `marks` are the sizes at which the tree's root is wanted.
pub(crate) fn check(chunk: &Chunk, marks: &[u64]) -> Checked {
    let mut walk = Walk::new(chunk, marks);
    let mut at = 0;
    while at < chunk.bytes.len() && walk.checked.flaw.is_none() {
        let offset = chunk.offset + at as u64;
        match RawBatch::read_version(&chunk.bytes[at..], chunk.version) {
            Ok(batch) => {
                at += batch.bytes_total();
                let whole = walk.take_batch(batch, offset, &chunk.bytes[at..]);
                walk.checked.flaw = whole.err();
                walk.checked.end = chunk.offset + at as u64;
            }
            Err(damage) => walk.checked.flaw = Some(walk.damaged(damage, &chunk.bytes[at..], offset)),
        }
    }
    walk.finish()
}

struct Walk<'a> {
    segment: u32,
    version: u32,
    sequence: u64,
    marks: &'a [u64],
    run: Run,
    checked: Checked,
}

impl<'a> Walk<'a> {
    fn new(chunk: &Chunk, marks: &'a [u64]) -> Self {
        let passed = marks.partition_point(|mark| *mark <= chunk.first_sequence);
        Self {
            segment: chunk.segment,
            version: chunk.version,
            sequence: chunk.first_sequence,
            marks: &marks[passed..],
            run: Run::new(chunk.first_sequence),
            checked: Checked { end: chunk.offset, ..Checked::default() },
        }
    }

    fn take_batch(&mut self, batch: RawBatch<'_>, offset: u64, after: &[u8]) -> Result<(), Flaw> {
        let mut frames = batch.records();
        let mut offset = offset + batch.frames_at() as u64;
        while let Some(frame) = frames.next() {
            let place = Place { sequence: self.sequence, segment: self.segment, offset };
            let raw = frame.map_err(|damage| place.flaw(Why::Damaged(damage)))?;
            self.take(raw, place, &frames, after)?;
            offset += FRAME_HEADER_BYTES + raw.bytes.len() as u64 + raw.signatures.len() as u64;
        }
        Ok(())
    }

    #[inline]
    fn take(&mut self, raw: RawRecord<'_>, place: Place, later: &Frames<'_>, after: &[u8]) -> Result<(), Flaw> {
        // First, so that the processor decodes while it hashes: neither waits for the other.
        let hash = raw.hash();
        let record = match Record::get(&mut Reader::new(&raw.bytes[HASH_BYTES..])) {
            Ok(record) => record,
            Err(error) => return Err(place.flaw(Why::Undecodable(error))),
        };
        if record.sequence > place.sequence {
            return Err(place.flaw(Why::Gap { found: record.sequence }));
        }
        if record.sequence < place.sequence {
            return Err(place.flaw(Why::OutOfOrder { found: record.sequence }));
        }
        let this = Linked { place, stamp: record.stamp, link: raw.prev_hash(), hash };
        if let Some(before) = &self.checked.last {
            // Before it is checked: if it does not fit, that says something of the first record.
            self.checked.second_link.get_or_insert(this.link);
            check_follows(before, &this, || link_of_next(later, after))?;
        }
        if !record.signers.is_empty() || !raw.signatures.is_empty() {
            check_signatures(&record, raw, &this)?;
        }
        if let Some(event) = key_event(&record, place)? {
            self.checked.events.push((place, event));
        }
        self.push(this);
        Ok(())
    }

    #[inline]
    fn push(&mut self, this: Linked) {
        self.checked.first.get_or_insert(this);
        self.checked.last = Some(this);
        self.run.push(leaf_hash(&this.hash));
        self.sequence += 1;
        if let [mark, later @ ..] = self.marks
            && *mark == self.sequence
        {
            self.marks = later;
            self.cut(this.hash);
        }
    }

    fn cut(&mut self, head: Hash) {
        self.checked.runs.push((std::mem::replace(&mut self.run, Run::new(self.sequence)), head));
    }

    /// What to say of a batch that is not whole. Where only the checksum fails, the links inside the batch may still
    /// show which record it is.
    fn damaged(&self, damage: Damage, bytes: &[u8], offset: u64) -> Flaw {
        let batch = Place { sequence: self.sequence, segment: self.segment, offset };
        let place = match damage {
            Damage::BadChecksum => mend(bytes).and_then(|mended| {
                let (segment, version) = (self.segment, self.version);
                let chunk = Chunk { segment, version, offset, first_sequence: self.sequence, bytes: mended };
                let failure = check(&chunk, &[]).flaw?.failure;
                Some(Place { sequence: failure.sequence?, segment: self.segment, offset: failure.offset? })
            }),
            _ => None,
        };
        let torn = damage != Damage::BadFrame;
        let flaw = place.unwrap_or(batch).flaw(Why::Damaged(damage));
        if torn { flaw.maybe_torn(offset) } else { flaw }
    }

    fn finish(mut self) -> Checked {
        if let Some(last) = self.checked.last.filter(|_| !self.run.is_empty()) {
            self.cut(last.hash);
        }
        self.checked
    }
}

/// The batch at the beginning of `bytes` with the checksum that it should have.
fn mend(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    let mut batch = bytes.get(..BATCH_HEADER_BYTES + length)?.to_vec();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&batch[4..12]);
    crc.update(&batch[BATCH_HEADER_BYTES..]);
    batch[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
    Some(batch)
}

/// Checks link and stamp between two neighbours. Of a broken link the altered end is the one that does not fit its
/// other neighbour either; `link_after` is what the record after `this` carries.
pub(crate) fn check_follows(
    before: &Linked,
    this: &Linked,
    link_after: impl FnOnce() -> Option<Hash>,
) -> Result<(), Flaw> {
    if this.link != before.hash {
        return Err(match link_after() {
            Some(link) if link != this.hash => this.place.flaw(Why::BrokenLink),
            _ => before.place.flaw(Why::AlteredRecord),
        });
    }
    if this.stamp < before.stamp {
        return Err(this.place.flaw(Why::StampGoesBack));
    }
    Ok(())
}

fn link_of_next(later: &Frames<'_>, after: &[u8]) -> Option<Hash> {
    let next = later.clone().next().or_else(|| RawBatch::read(after).ok()?.records().next());
    Some(next?.ok()?.prev_hash())
}

fn check_signatures(record: &Record, raw: RawRecord<'_>, this: &Linked) -> Result<(), Flaw> {
    let message = signed_message(&this.hash);
    for (index, key) in record.signers.iter().enumerate() {
        let signature = raw.signature(index).ok_or_else(|| this.place.flaw(Why::StrippedSignature))?;
        verify_raw(key, &message, &signature).map_err(|_| this.place.flaw(Why::BadRecordSignature))?;
    }
    match raw.signature(record.signers.len()) {
        None => Ok(()),
        Some(_) => Err(this.place.flaw(Why::StraySignature)),
    }
}

fn key_event(record: &Record, place: Place) -> Result<Option<KeyEvent>, Flaw> {
    match &record.body {
        Body::Genesis(_) if record.continues => {
            Err(place.flaw(Why::BadGenesis("it says that it continues the record before it, and there is none")))
        }
        Body::Genesis(genesis) if place.sequence == 0 => Ok(Some(KeyEvent::Genesis(Box::new(genesis.clone())))),
        Body::Genesis(_) => Err(place.flaw(Why::BadGenesis("a second genesis record"))),
        _ if place.sequence == 0 => Err(place.flaw(Why::BadGenesis("the first record is not a genesis record"))),
        Body::KeyRotated(rotation) => match record.signers.as_slice() {
            [old, new] if *old == rotation.old_key && *new == rotation.new_key => {
                Ok(Some(KeyEvent::Rotation { old_key: rotation.old_key, new_key: rotation.new_key }))
            }
            _ => Err(place.flaw(Why::BadRotation("it does not name the old and the new key as its signers"))),
        },
        Body::Started(started) => Ok(Some(KeyEvent::Started { epoch: started.epoch })),
        Body::Converted(converted) => Ok(Some(KeyEvent::Converted { format_version: converted.format_version })),
        _ => Ok(None),
    }
}
