//! The memory provider: durable means stored. For tests, and for a demo that leaves nothing behind.

use crate::admission::Admission;
use crate::error::{AppendError, Failure, PrepareError, ReadError, SnapshotError};
use crate::fold::Fold;
use crate::keyring::Keys;
use crate::provider::{Head, Journal, LoadedSnapshot, Position, SignedCheckpoint, Snapshot, VisitBatch};
use crate::retention::snapshots_to_remove;
use leasehold_model::{Batch, Instant, RawBatch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A journal that lives as long as the process.
pub struct MemoryJournal {
    store: Arc<Mutex<Store>>,
    keys: Arc<Keys>,
    epoch: u64,
    closed: OnceLock<Failure>,
}

struct Store {
    head: Head,
    admission: Admission,
    /// Sealed batches, each with the sequence of its first record.
    batches: Vec<(u64, Arc<[u8]>)>,
    bytes: u64,
    /// Bytes that may be appended before `prepare` is asked for more.
    bytes_prepared: u64,
    bytes_step: Option<u64>,
    epoch: u64,
    fold: Fold,
    checkpointed: SignedCheckpoint,
    snapshots: BTreeMap<u64, Snapshot>,
}

impl MemoryJournal {
    /// An empty journal of the keys' origin, without a limit.
    pub fn new(keys: Arc<Keys>) -> Self {
        Self::with_steps(keys, None)
    }

    /// As [`MemoryJournal::new`], but it has to be prepared for each further `bytes`, as a file journal has to be for
    /// each segment.
    pub fn with_segments(keys: Arc<Keys>, bytes: u64) -> Self {
        Self::with_steps(keys, Some(bytes))
    }

    fn with_steps(keys: Arc<Keys>, bytes_step: Option<u64>) -> Self {
        let fold = Fold::new(keys.origin(), Position::empty(), None);
        let (note, _) = fold.sign(&keys).expect("a keyring has its oldest key");
        let store = Store {
            head: Head::EMPTY,
            admission: Admission::default(),
            batches: Vec::new(),
            bytes: 0,
            bytes_prepared: bytes_step.unwrap_or(u64::MAX),
            bytes_step,
            epoch: 1,
            checkpointed: SignedCheckpoint { position: Position::empty(), note },
            fold,
            snapshots: BTreeMap::new(),
        };
        Self { store: Arc::new(Mutex::new(store)), keys, epoch: 1, closed: OnceLock::new() }
    }

    /// The same records in the next epoch, as after a restart.
    pub fn reopen(&self) -> Self {
        let mut store = self.store();
        store.epoch += 1;
        Self { store: self.store.clone(), keys: self.keys.clone(), epoch: store.epoch, closed: OnceLock::new() }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("no one panics with the store")
    }

    fn working(&self) -> Result<(), Failure> {
        self.closed.get().map_or(Ok(()), |closed| Err(closed.clone()))
    }

    /// The batch that holds this record, with the sequence of its first one.
    fn batch_with(&self, sequence: u64, size: u64) -> Option<(u64, Arc<[u8]>)> {
        let store = self.store();
        let after = store.batches.partition_point(|(first, _)| *first <= sequence);
        (sequence < size).then(|| store.batches[after - 1].clone())
    }
}

impl Journal for MemoryJournal {
    fn origin(&self) -> &str {
        self.keys.origin()
    }
    fn epoch(&self) -> u64 {
        self.epoch
    }
    fn head(&self) -> Head {
        self.store().head
    }

    fn append(&self, batch: &mut Batch) -> Result<Head, AppendError> {
        self.working().map_err(AppendError::Failed)?;
        let mut store = self.store();
        assert!(!batch.is_empty(), "an empty batch is not appended");
        assert_eq!(batch.first_sequence(), store.head.size, "a batch continues the journal");
        let bytes = batch.bytes().len() as u64;
        if let Some(bytes_max) = store.bytes_step
            && bytes > bytes_max
        {
            return Err(AppendError::TooLarge { bytes, bytes_max });
        }
        if bytes > store.bytes_prepared - store.bytes {
            return Err(AppendError::Full);
        }
        let hash = batch.seal(&store.head.hash, self.keys.as_ref()).map_err(AppendError::MissingKey)?;
        store.admission = store.admission.after(batch, &self.keys)?;
        store.batches.push((batch.first_sequence(), batch.bytes().into()));
        store.bytes += bytes;
        store.head = Head { size: batch.next_sequence(), hash };
        Ok(store.head)
    }

    fn room(&self) -> u64 {
        let store = self.store();
        store.bytes_prepared - store.bytes
    }

    fn prepare(&self) -> Result<(), PrepareError> {
        self.working().map_err(PrepareError::Failed)?;
        let mut store = self.store();
        if let Some(step) = store.bytes_step {
            store.bytes_prepared = store.bytes_prepared.max(store.bytes + step);
        }
        Ok(())
    }

    fn scan_batches(&self, from: u64, visit: &mut VisitBatch<'_>) -> Result<(), ReadError> {
        let size = self.head().size;
        let mut next = from;
        while let Some((first, bytes)) = self.batch_with(next, size) {
            let batch = RawBatch::read(&bytes).expect("memory keeps what it was given");
            if visit(first, batch).is_break() {
                break;
            }
            next = first + u64::from(batch.count());
        }
        Ok(())
    }

    fn checkpoint(&self, _now: Instant) -> Result<Option<SignedCheckpoint>, Failure> {
        self.working()?;
        let mut fold = self.store().fold.clone();
        let mut broken = None;
        let from = fold.size();
        self.scan(from, &mut |_, record| match fold.take(record) {
            Ok(_) => std::ops::ControlFlow::Continue(()),
            Err(error) => {
                broken = Some(error);
                std::ops::ControlFlow::Break(())
            }
        })
        .map_err(Failure::mismatch)?;
        if let Some(broken) = broken {
            return Err(self.closed.get_or_init(|| Failure::mismatch(broken)).clone());
        }
        if fold.size() == from {
            return Ok(None);
        }
        let (note, _) = fold.sign(&self.keys)?;
        let checkpoint = SignedCheckpoint { position: fold.position().clone(), note };
        let mut store = self.store();
        store.fold = fold;
        store.checkpointed = checkpoint.clone();
        Ok(Some(checkpoint))
    }

    fn checkpointed(&self) -> SignedCheckpoint {
        self.store().checkpointed.clone()
    }

    fn put_snapshot(&self, at: &Position, state: &[u8]) -> Result<(), SnapshotError> {
        let mut store = self.store();
        if at.size() > store.checkpointed.size() {
            return Err(SnapshotError::NotCheckpointed { size: at.size() });
        }
        let snapshot = Snapshot { position: at.clone(), state: state.to_vec() };
        store.snapshots.insert(at.size(), snapshot);
        Ok(())
    }

    fn snapshots(&self) -> Result<Vec<u64>, SnapshotError> {
        Ok(self.store().snapshots.keys().copied().collect())
    }

    fn load_snapshot(&self, size_max: u64) -> Result<LoadedSnapshot, SnapshotError> {
        let store = self.store();
        let newest = store.snapshots.range(..=size_max).next_back();
        Ok(LoadedSnapshot { snapshot: newest.map(|(_, snapshot)| snapshot.clone()), damaged: Vec::new() })
    }

    fn prune_snapshots(&self) -> Result<Vec<u64>, SnapshotError> {
        let removed = snapshots_to_remove(&self.snapshots()?);
        self.store().snapshots.retain(|size, _| !removed.contains(size));
        Ok(removed)
    }

    fn close(&self, now: Instant) -> Result<(), Failure> {
        self.checkpoint(now)?;
        self.closed.get_or_init(Failure::closed);
        Ok(())
    }
}
