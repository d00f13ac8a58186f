//! What the journal refuses to append: records that it would refuse when it reads them back.
//!
//! A record that breaks a rule of the chain would stop the checkpointer, and every start after it, for good. So the
//! few rules that can be checked without decoding every record are checked before anything is written.

use crate::error::AppendError;
use crate::fold::check_rotation;
use crate::keyring::Keys;
use leasehold_model::body::Body;
use leasehold_model::frame::MissingKey;
use leasehold_model::{Batch, FORMAT_VERSION, Field, Instant, RawBatch, RawRecord, Reader};

/// The end of what was admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) stamp: Instant,
    /// The key in force; none before the genesis record.
    pub(crate) key: Option<[u8; 32]>,
    /// The next batch begins the first segment of a new format version, and so with a `converted` record.
    pub(crate) conversion_due: bool,
}

impl Admission {
    /// Checks a sealed batch that would follow, and returns the end after it.
    pub(crate) fn after(self, batch: &Batch, keys: &Keys) -> Result<Self, AppendError> {
        let sealed = RawBatch::read(batch.bytes()).expect("a batch that was just sealed");
        assert_eq!(sealed.count(), batch.count());
        let mut admitted = self;
        for (record, sequence) in sealed.records().zip(batch.first_sequence()..) {
            let record = record.expect("a frame that was just sealed");
            admitted.take(sequence, record, keys)?;
        }
        Ok(admitted)
    }

    fn take(&mut self, sequence: u64, raw: RawRecord<'_>, keys: &Keys) -> Result<(), AppendError> {
        let refused = |why| AppendError::Refused { sequence, why };
        let (found, stamp, kind) = head_of(raw).expect("a record that was just encoded");
        assert_eq!(found, sequence, "records are pushed in order of sequence");
        if std::mem::take(&mut self.conversion_due) != (kind == CONVERTED) {
            return Err(refused("a conversion record begins the first segment of a new format version, and only that"));
        }
        if stamp < self.stamp {
            return Err(refused("its stamp lies before that of the record before it"));
        }
        self.stamp = stamp;
        // Only these can touch the keys, and they are rare: the others are not decoded here.
        if sequence == 0 || !raw.signatures.is_empty() {
            let record = raw.decode().expect("a record that was just encoded");
            if sequence == 0 {
                let Body::Genesis(genesis) = &record.body else {
                    return Err(refused("the first record is a genesis record"));
                };
                if genesis.origin.as_str() != keys.origin() {
                    return Err(refused("the genesis record is of another origin"));
                }
                if genesis.format_version != FORMAT_VERSION {
                    return Err(refused("the genesis record names another format version"));
                }
                self.key = Some(genesis.public_key);
                if keys.by_public_key(&genesis.public_key).is_none() {
                    return Err(AppendError::MissingKey(MissingKey(genesis.public_key)));
                }
            } else if let Body::KeyRotated(rotation) = &record.body {
                check_rotation(rotation, &record, self.key).map_err(|_| {
                    refused("a key rotation names the key in force and another one, and is signed by both")
                })?;
                self.key = Some(rotation.new_key);
            }
        }
        Ok(())
    }
}

/// The code of `journal.converted`.
pub(crate) const CONVERTED: u64 = 7;

/// Sequence, stamp and kind of a record, without decoding the rest.
pub(crate) fn head_of(raw: RawRecord<'_>) -> Option<(u64, Instant, u64)> {
    let mut r = Reader::new(raw.bytes.get(32..)?);
    Some((r.varint().ok()?, Instant::get(&mut r).ok()?, r.varint().ok()?))
}
