//! The append path: seal and authenticate, one write, one sync. It allocates nothing and waits for no reader.

use super::index::{Index, Mark};
use super::segment::{HEADER_BYTES_U64, Header};
use crate::admission::Admission;
use crate::disk::DiskFile;
use crate::error::{AppendError, Failure};
use crate::keyring::Keys;
use crate::provider::Head;
use crate::secret::MacKey;
use leasehold_model::record::Hash;
use leasehold_model::{Batch, FORMAT_VERSION};
use std::sync::{Arc, Mutex, MutexGuard};

/// A segment that is filled with zeroes and waits to be begun.
pub(super) struct Prepared {
    pub(super) number: u32,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) capacity: u64,
}

pub(super) fn lock(prepared: &Mutex<Option<Prepared>>) -> MutexGuard<'_, Option<Prepared>> {
    prepared.lock().expect("no one panics with it")
}

/// The segment that is appended to.
pub(super) struct Current {
    pub(super) number: u32,
    pub(super) file: Arc<dyn DiskFile>,
    /// Where the next batch goes.
    pub(super) at: u64,
    /// Bytes of the file that are allocated.
    pub(super) capacity: u64,
}

impl Current {
    fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.at)
    }
}

/// The end of the journal as its only writer knows it.
pub(super) struct Writer {
    /// None before the first batch, and where the next one begins a segment of a new format version.
    pub(super) current: Option<Current>,
    pub(super) head: Head,
    pub(super) admission: Admission,
    pub(super) origin: Hash,
    /// Authenticates batches.
    pub(super) mac: MacKey,
    /// The largest batch that a new segment holds.
    pub(super) batch_bytes_max: u64,
    /// A header with the batch after it, so that both go out in one write.
    pub(super) beginning: Vec<u8>,
    /// How long the last sync took.
    pub(super) last_sync: std::time::Duration,
}

impl Writer {
    /// Bytes that fit without preparing anything more.
    pub(super) fn room(&self, prepared: Option<&Prepared>) -> u64 {
        let current = self.current.as_ref().map_or(0, Current::room);
        let next = prepared.map_or(0, |next| next.capacity - HEADER_BYTES_U64);
        current.max(next)
    }

    /// Appends a batch whose first record is the next one. See [`crate::Journal::append`].
    pub(super) fn append(
        &mut self,
        batch: &mut Batch,
        keys: &Keys,
        prepared: &Mutex<Option<Prepared>>,
        index: &Mutex<Index>,
    ) -> Result<Head, AppendError> {
        assert!(!batch.is_empty(), "an empty batch is not appended");
        assert_eq!(batch.first_sequence(), self.head.size, "a batch continues the journal");
        let bytes = batch.bytes().len() as u64;
        let fits = self.current.as_ref().is_some_and(|c| bytes <= c.room());
        if !fits && bytes > self.batch_bytes_max {
            return Err(AppendError::TooLarge { bytes, bytes_max: self.batch_bytes_max });
        }
        // Only appends take it away, and there is one append at a time: seen here, it is there below.
        if !fits && lock(prepared).is_none() {
            return Err(AppendError::Full);
        }
        let hash = batch
            .seal_with(&self.head.hash, keys, |bound| self.mac.batch_mac(bound))
            .map_err(AppendError::MissingKey)?;
        let admission = self.admission.after(batch, keys)?;

        // From here on a failure is final.
        let begins = !fits;
        if begins {
            let next = lock(prepared).take().expect("it was there a moment ago");
            self.current = Some(Current { number: next.number, file: next.file, at: 0, capacity: next.capacity });
        }
        let offset = self.write(batch, begins)?;
        let mark = Mark { sequence: self.head.size, offset };
        self.head = Head { size: batch.next_sequence(), hash };
        self.admission = admission;
        let number = self.current.as_ref().map_or(0, |c| c.number);
        let mut index = index.lock().expect("the index is whole");
        index.appended(number, mark, begins, self.head);
        Ok(self.head)
    }

    /// Writes and syncs; returns the offset of the batch.
    fn write(&mut self, batch: &Batch, begins: bool) -> Result<u64, AppendError> {
        let current = self.current.as_mut().expect("a segment to write to");
        let failed = |doing: &str| {
            let doing = format!("{doing} segment {:08}", current.number);
            move |error| AppendError::Failed(Failure::new(&doing, &error))
        };
        let (bytes, batch_at) = if begins {
            let header = Header {
                version: FORMAT_VERSION,
                number: current.number,
                first_sequence: self.head.size,
                prev: self.head.hash,
                origin: self.origin,
            };
            self.beginning.clear();
            self.beginning.extend_from_slice(&header.encode());
            self.beginning.extend_from_slice(batch.bytes());
            (self.beginning.as_slice(), HEADER_BYTES_U64)
        } else {
            (batch.bytes(), current.at)
        };
        current.file.write_at(bytes, current.at).map_err(failed("writing"))?;
        let began = std::time::Instant::now();
        current.file.sync().map_err(failed("syncing"))?;
        self.last_sync = began.elapsed();
        current.at += bytes.len() as u64;
        assert!(current.at <= current.capacity, "an append never allocates");
        Ok(batch_at)
    }
}
