//! Checking one piece of the journal by itself: checksums, strict decoding, sequences, links, timestamps and record
//! signatures inside it, and the subtrees over it (journal-format.md, "What a verifier checks", 1 to 3 and 5).
//!
//! What depends on earlier pieces (the hash before the first record, the key in force) is checked in [`crate::join`].

use crate::chunks::{Chunk, Flaw};
use crate::failure::Why;
use crate::tree::{GrowingRun, Run};
use leasehold_bill::Found;
use leasehold_model::body::{Converted, Genesis, KeyRotated, PeriodClosed, PeriodStated, Started};
use leasehold_model::frame::{BATCH_HEADER_BYTES, Frames, signed_message};
use leasehold_model::{Body, Damage, DecodeError, Hash, Instant, RawBatch, RawRecord, Reader, Record};
use leasehold_tlog::verify_raw;

const FRAME_HEADER_BYTES: u64 = 4;
const HASH_BYTES: usize = 32;

/// Where a record begins in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPosition {
    pub(crate) sequence: u64,
    pub(crate) segment: u32,
    pub(crate) offset: u64,
}

impl RecordPosition {
    pub(crate) fn flaw(self, why: Why) -> Flaw {
        Flaw::in_segment(self.segment, self.offset, Some(self.sequence), why)
    }
}

/// What the checks of the neighbouring records need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked {
    pub(crate) position: RecordPosition,
    pub(crate) stamp: Instant,
    /// The hash of the record before, as this record states it.
    pub(crate) link: Hash,
    pub(crate) hash: Hash,
}

/// A record that brings a signing key, an epoch or a format version into force.
#[derive(Debug)]
pub(crate) enum KeyEvent {
    Genesis(Box<Genesis>),
    /// Signed by both keys; whether the old one was in force is checked when the pieces are joined.
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

/// The result of checking a piece, up to its first flaw.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) first: Option<Linked>,
    /// The link of the second record, to find out which end of a broken link was altered.
    pub(crate) second_link: Option<Hash>,
    pub(crate) last: Option<Linked>,
    /// Cut at every size at which a root is needed, each with the hash of its last record.
    pub(crate) runs: Vec<(Run, Hash)>,
    pub(crate) events: Vec<(RecordPosition, KeyEvent)>,
    /// Where statements are: they are recomputed when the whole journal was read.
    pub(crate) statements: Found,
    pub(crate) flaw: Option<Flaw>,
    /// End of the last valid batch in the file.
    pub(crate) end: u64,
}

/// Checks the records of a piece. `marks` are the sizes at which the tree's root is needed.
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
    run: GrowingRun,
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
            run: GrowingRun::new(chunk.first_sequence),
            checked: Checked { end: chunk.offset, ..Checked::default() },
        }
    }

    fn take_batch(&mut self, batch: RawBatch<'_>, offset: u64, after: &[u8]) -> Result<(), Flaw> {
        let mut frames = batch.records();
        let mut offset = offset + batch.frames_at() as u64;
        while let Some(frame) = frames.next() {
            let position = RecordPosition { sequence: self.sequence, segment: self.segment, offset };
            let raw = frame.map_err(|damage| position.flaw(Why::Damaged(damage)))?;
            self.take(raw, position, &frames, after)?;
            offset += FRAME_HEADER_BYTES + raw.bytes.len() as u64 + raw.signatures.len() as u64;
        }
        Ok(())
    }

    #[inline]
    fn take(
        &mut self,
        raw: RawRecord<'_>,
        position: RecordPosition,
        later: &Frames<'_>,
        after: &[u8],
    ) -> Result<(), Flaw> {
        // Hashed first: the processor decodes while it hashes, since neither depends on the other.
        let hash = raw.hash();
        let record = match Record::validate(&mut after_link(raw)) {
            Ok(outline) => outline,
            Err(error) => return Err(undecodable(position, error)),
        };
        if record.sequence > position.sequence {
            return Err(position.flaw(Why::Gap { found: record.sequence }));
        }
        if record.sequence < position.sequence {
            return Err(position.flaw(Why::OutOfOrder { found: record.sequence }));
        }
        let this = Linked { position, stamp: record.stamp, link: raw.prev_hash(), hash };
        if let Some(before) = &self.checked.last {
            // Kept before it is checked: if it is wrong, it may show that the first record was altered.
            self.checked.second_link.get_or_insert(this.link);
            check_follows(before, &this, || link_of_next(later, after))?;
        }
        if record.signers > 0 || !raw.signatures.is_empty() {
            check_signatures(raw, &this)?;
        }
        // The format lets no other kind of record change what is checked: kinds of later versions pass here unread.
        let kinds = [Genesis::KIND, KeyRotated::KIND, Started::KIND, Converted::KIND];
        if position.sequence == 0 || kinds.contains(&record.kind) {
            let event = key_event(raw, position)?;
            self.checked.events.push((position, event));
        }
        if [PeriodStated::KIND, PeriodClosed::KIND].contains(&record.kind) {
            self.checked.statements.note(&decode(raw, position)?);
        }
        self.push(this);
        Ok(())
    }

    #[inline]
    fn push(&mut self, this: Linked) {
        self.checked.first.get_or_insert(this);
        self.checked.last = Some(this);
        self.run.push(this.hash);
        self.sequence += 1;
        if let [mark, later @ ..] = self.marks
            && *mark == self.sequence
        {
            self.marks = later;
            self.cut(this.hash);
        }
    }

    fn cut(&mut self, head: Hash) {
        self.checked.runs.push((self.run.finish(), head));
    }

    /// The flaw of a damaged batch. If only the checksum is wrong, the links inside the batch may still show which record
    /// was altered.
    fn damaged(&self, damage: Damage, bytes: &[u8], offset: u64) -> Flaw {
        let batch = RecordPosition { sequence: self.sequence, segment: self.segment, offset };
        let position = match damage {
            Damage::BadChecksum => with_right_checksum(bytes).and_then(|bytes| {
                let (segment, version) = (self.segment, self.version);
                let chunk = Chunk { segment, version, offset, first_sequence: self.sequence, bytes };
                let failure = check(&chunk, &[]).flaw?.failure;
                Some(RecordPosition { sequence: failure.sequence?, segment: self.segment, offset: failure.offset? })
            }),
            _ => None,
        };
        let torn = damage != Damage::BadFrame;
        let flaw = position.unwrap_or(batch).flaw(Why::Damaged(damage));
        if torn { flaw.maybe_torn(offset) } else { flaw }
    }

    fn finish(mut self) -> Checked {
        if let Some(last) = self.checked.last.filter(|_| !self.run.is_empty()) {
            self.cut(last.hash);
        }
        self.checked
    }
}

/// The batch at the beginning of `bytes` with its checksum corrected.
fn with_right_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    let mut batch = bytes.get(..BATCH_HEADER_BYTES + length)?.to_vec();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&batch[4..12]);
    crc.update(&batch[BATCH_HEADER_BYTES..]);
    batch[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
    Some(batch)
}

/// Checks link and timestamp between two neighbours. If the link is broken, the altered record is the one that does not
/// match its other neighbour either; `link_after` is the link of the record after `this`.
pub(crate) fn check_follows(
    before: &Linked,
    this: &Linked,
    link_after: impl FnOnce() -> Option<Hash>,
) -> Result<(), Flaw> {
    if this.link != before.hash {
        return Err(match link_after() {
            Some(link) if link != this.hash => this.position.flaw(Why::BrokenLink),
            _ => before.position.flaw(Why::AlteredRecord),
        });
    }
    if this.stamp < before.stamp {
        return Err(this.position.flaw(Why::StampGoesBack));
    }
    Ok(())
}

fn link_of_next(later: &Frames<'_>, after: &[u8]) -> Option<Hash> {
    let next = later.clone().next().or_else(|| RawBatch::read(after).ok()?.records().next());
    Some(next?.ok()?.prev_hash())
}

/// The bytes of a record that follow the hash of the record before it. A frame is never shorter than that hash.
fn after_link<'a>(raw: RawRecord<'a>) -> Reader<'a> {
    Reader::new(&raw.bytes[HASH_BYTES..])
}

fn undecodable(position: RecordPosition, error: DecodeError) -> Flaw {
    position.flaw(Why::Undecodable(error))
}

fn decode(raw: RawRecord<'_>, position: RecordPosition) -> Result<Record, Flaw> {
    Record::get(&mut after_link(raw)).map_err(|error| undecodable(position, error))
}

fn check_signatures(raw: RawRecord<'_>, this: &Linked) -> Result<(), Flaw> {
    let signers = decode(raw, this.position)?.signers;
    let message = signed_message(&this.hash);
    for (index, key) in signers.iter().enumerate() {
        let signature = raw.signature(index).ok_or_else(|| this.position.flaw(Why::StrippedSignature))?;
        verify_raw(key, &message, &signature).map_err(|_| this.position.flaw(Why::BadRecordSignature))?;
    }
    match raw.signature(signers.len()) {
        None => Ok(()),
        Some(_) => Err(this.position.flaw(Why::StraySignature)),
    }
}

/// What the first record, a rotation, a start or a conversion brings into force.
fn key_event(raw: RawRecord<'_>, position: RecordPosition) -> Result<KeyEvent, Flaw> {
    let record = decode(raw, position)?;
    let bad_genesis = |why| Err(position.flaw(Why::BadGenesis(why)));
    if let Body::Genesis(genesis) = record.body {
        if record.continues {
            return bad_genesis("it is marked as a continuation, but there is no record before it");
        }
        if position.sequence > 0 {
            return bad_genesis("a second genesis record");
        }
        return Ok(KeyEvent::Genesis(Box::new(genesis)));
    }
    if position.sequence == 0 {
        return bad_genesis("the first record is not a genesis record");
    }
    if let Body::Started(started) = record.body {
        return Ok(KeyEvent::Started { epoch: started.epoch });
    }
    if let Body::Converted(converted) = record.body {
        return Ok(KeyEvent::Converted { format_version: converted.format_version });
    }
    let Body::KeyRotated(KeyRotated { old_key, new_key }) = record.body else {
        return bad_genesis("a record of a kind that brings nothing into force");
    };
    if record.signers.as_slice() != [old_key, new_key] {
        return Err(position.flaw(Why::BadRotation("it does not name the old and the new key as its signers")));
    }
    Ok(KeyEvent::Rotation { old_key, new_key })
}
