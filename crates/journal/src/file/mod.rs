//! The file provider: segments, an anchor and snapshots in a data directory (docs/reference/journal-format.md).

mod allocate;
mod anchor;
mod archive;
mod archive_copy;
mod archiver;
mod batches;
mod checkpointer;
mod covered;
mod deletion;
mod deletion_state;
mod index;
mod layout;
mod lock;
mod mirror;
mod mirror_state;
mod options;
mod read_only;
mod reader;
mod recovery;
mod replay;
mod scrub;
mod segment;
mod snapshot;
mod start;
mod survey;
mod tail;
mod tree_file;
mod writer;

pub use archiver::{ArchiveError, Archiver, Moved, Plan};
pub use deletion::{Deleted, Deleter, DeletionError, DeletionPlan, Kept, Places, SensitiveWork, Wanted};
pub use lock::in_use;
pub use mirror::Mirror;
pub use options::{Local, Options, UnprovedTail};
pub use read_only::{Entry, ReadOnly, Scanned, SignedHead};
pub use recovery::{Recovered, TornTail};
pub use scrub::{Scrub, ScrubDamage, ScrubPlace, ScrubPosition, ScrubStep};

use crate::admission::Admission;
use crate::disk::{Disk, is_full};
use crate::error::{AppendError, Failure, OpenError, PrepareError, ReadError, SnapshotError};
use crate::keyring::Keys;
use crate::provider::{Head, Journal, LoadedSnapshot, Position, SignedCheckpoint, VisitBatch};
use crate::retention::snapshots_to_remove;
use checkpointer::{Behind, Checkpointer};
use index::Index;
use leasehold_model::body::Body;
use leasehold_model::record::Hash;
use leasehold_model::{Batch, Instant};
use lock::Lock;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use writer::{Current, Prepared, Writer};

/// A journal in a data directory.
///
/// Locks are taken in the order of the fields below, and none but `writer` is held over a write or sync of records.
pub struct FileJournal {
    disk: Arc<dyn Disk>,
    options: Options,
    keys: Arc<Keys>,
    local: Local,
    epoch: u64,
    /// The hash of the first record, once it was needed.
    genesis: OnceLock<Hash>,
    /// What this start found out about the journal, to be sealed before anything else.
    to_seal: Vec<Body>,
    checkpointer: Mutex<Checkpointer>,
    writer: Mutex<Writer>,
    /// The number of the next segment to allocate; one thread allocates at a time. Not taken from the index: a segment
    /// that is just being begun is not in it yet.
    allocating: Mutex<u32>,
    prepared: Mutex<Option<Prepared>>,
    index: Mutex<Index>,
    checkpointed: Mutex<SignedCheckpoint>,
    room: AtomicU64,
    /// Nanoseconds of the last sync of a batch.
    sync_ns: AtomicU64,
    failure: OnceLock<Failure>,
    lock: Mutex<Option<Lock>>,
}

impl FileJournal {
    /// Creates an empty journal of the keys' origin. The first batch appended begins with its genesis record.
    pub fn create(
        disk: Arc<dyn Disk>,
        options: Options,
        keys: Arc<Keys>,
        local: Local,
        now: Instant,
    ) -> Result<Self, OpenError> {
        recovery::create(disk, options, keys, local, now)
    }

    /// Opens a journal for writing: verifies from a trusted place on, rolls forward past the anchor what it
    /// authenticates, cuts off a torn end, and signs for all records. What is neither authentic nor the trace of a crash
    /// it refuses, having changed nothing. A journal of format version 1 is converted.
    ///
    /// The first batch appended begins with the records of [`Journal::to_seal`]. Call [`Journal::prepare`] before the
    /// current segment is full.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        keys: Arc<Keys>,
        local: Local,
        now: Instant,
    ) -> Result<(Self, Recovered), OpenError> {
        recovery::open(disk, options, keys, local, now)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a journal, named once")]
    fn assemble(
        disk: Arc<dyn Disk>,
        options: Options,
        keys: Arc<Keys>,
        local: Local,
        lock: Lock,
        mut checkpointer: Checkpointer,
        index: Index,
        current: Option<Current>,
        to_seal: Vec<Body>,
        now: Instant,
    ) -> Result<Self, OpenError> {
        // Durable before the first append: an anchor that says that the journal is open.
        let checkpoint = checkpointer.seal(disk.as_ref(), &keys, now, false).map_err(recovery::failed)?;
        let conversion_due = to_seal.iter().any(|body| matches!(body, Body::Converted(_)));
        let writer = Writer {
            current,
            head: index.head,
            admission: Admission { stamp: checkpointer.fold.stamp(), key: checkpointer.fold.key(), conversion_due },
            origin: segment::origin_hash(keys.origin()),
            mac: local.secret.batch.clone(),
            batch_bytes_max: options.segment_bytes - segment::HEADER_BYTES_U64,
            beginning: Vec::new(),
            last_sync: std::time::Duration::ZERO,
        };
        Ok(Self {
            room: AtomicU64::new(writer.room(None)),
            sync_ns: AtomicU64::new(0),
            disk,
            options,
            keys,
            local,
            epoch: checkpointer.epoch,
            genesis: OnceLock::new(),
            to_seal,
            checkpointer: Mutex::new(checkpointer),
            writer: Mutex::new(writer),
            allocating: Mutex::new(index.segments.last().map_or(1, |last| last.number + 1)),
            prepared: Mutex::new(None),
            index: Mutex::new(index),
            checkpointed: Mutex::new(checkpoint),
            failure: OnceLock::new(),
            lock: Mutex::new(Some(lock)),
        })
    }

    fn working(&self) -> Result<(), Failure> {
        match self.failure.get() {
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        }
    }

    /// Stops the journal for good; the first failure is the one that is reported.
    fn stop(&self, failure: Failure) -> Failure {
        self.failure.get_or_init(|| failure).clone()
    }

    /// Stops the journal if the directory is no longer the one that was locked: another process may write there.
    fn check_lock(&self) -> Result<(), Failure> {
        let lock = locked(&self.lock);
        lock.as_ref().map_or(Ok(()), Lock::check).map_err(|failure| self.stop(failure))
    }

    /// Allocates the next segment if none is ready, and completes one that is shorter than it should be.
    fn allocate_next(&self) -> io::Result<()> {
        let mut allocating = locked(&self.allocating);
        let capacity = self.options.segment_bytes;
        let ready = locked(&self.prepared).as_ref().map(|next| (next.number, Arc::clone(&next.file), next.capacity));
        let (number, file, had) = match ready {
            Some((_, _, had)) if had >= capacity => return Ok(()),
            Some(short) => short,
            None => {
                let next = allocate::allocate_segment(self.disk.as_ref(), *allocating, capacity)?;
                *allocating += 1;
                let ready = (next.number, Arc::clone(&next.file), next.capacity);
                self.set_prepared(next);
                ready
            }
        };
        if had < capacity {
            // An append may begin the segment meanwhile: it uses what was there before.
            allocate::extend_segment(file.as_ref(), had, capacity)?;
            let mut prepared = locked(&self.prepared);
            if let Some(next) = prepared.as_mut().filter(|next| next.number == number) {
                next.capacity = capacity;
                self.room.fetch_max(capacity - segment::HEADER_BYTES_U64, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn set_prepared(&self, next: Prepared) {
        // The room is set with the lock held, here and in `append`: it must not be less than what is ready.
        let mut prepared = locked(&self.prepared);
        self.room.fetch_max(next.capacity - segment::HEADER_BYTES_U64, Ordering::Relaxed);
        *prepared = Some(next);
    }

    fn try_checkpoint(&self, now: Instant) -> Result<Option<SignedCheckpoint>, Failure> {
        let mut checkpointer = locked(&self.checkpointer);
        self.working()?;
        if self.head().size == locked(&self.checkpointed).size() {
            return Ok(None);
        }
        self.check_lock()?;
        match checkpointer.catch_up(self.disk.as_ref(), &self.index, &self.keys) {
            Ok(()) => {}
            Err(Behind::OutOfFiles(_)) => return Ok(None),
            Err(Behind::Failed(failure)) => return Err(failure),
        }
        let checkpoint = checkpointer.seal(self.disk.as_ref(), &self.keys, now, false)?;
        *locked(&self.checkpointed) = checkpoint.clone();
        Ok(Some(checkpoint))
    }

    fn owner(&self) -> snapshot::Owner<'_> {
        snapshot::Owner { origin: self.origin(), mac: Some(&self.local.secret.snapshot) }
    }

    /// Ends appends, unless the journal has failed or was closed before.
    fn end_appends(&self) -> Result<(), Failure> {
        // With the lock held, so that no append is under way when the last checkpoint is made.
        let _writer = locked(&self.writer);
        self.working()?;
        self.failure.get_or_init(Failure::closed);
        Ok(())
    }

    /// Signs for everything, and marks the stop as clean: nothing may follow this anchor.
    fn seal_closed(&self, now: Instant) -> Result<(), Failure> {
        let mut checkpointer = locked(&self.checkpointer);
        let caught_up = checkpointer.catch_up(self.disk.as_ref(), &self.index, &self.keys);
        caught_up.map_err(Behind::into_failure)?;
        self.trim().map_err(|error| Failure::new("trimming the journal", &error))?;
        *locked(&self.checkpointed) = checkpointer.seal(self.disk.as_ref(), &self.keys, now, true)?;
        Ok(())
    }

    /// Gives the space back that was allocated ahead, but for a reserve: if the disk is full at the next start, the records
    /// of that start must fit. It is a short segment that is not begun, or, if the disk is full already, what was allocated
    /// after the last record.
    fn trim(&self) -> io::Result<()> {
        let writer = locked(&self.writer);
        let number = locked(&self.allocating);
        let reserve = self.options.reserve_bytes();
        let bytes = segment::HEADER_BYTES_U64 + reserve;
        let next = locked(&self.prepared).take();
        let kept = match next {
            Some(next) => next.file.set_len(next.capacity.min(bytes)).and_then(|()| next.file.sync()),
            None => allocate::allocate_segment(self.disk.as_ref(), *number, bytes).map(drop),
        };
        let padding = match kept {
            Ok(()) => 0,
            Err(error) if is_full(&error) => reserve,
            Err(error) => return Err(error),
        };
        if let Some(current) = &writer.current {
            current.file.set_len(current.capacity.min(current.at + padding))?;
            current.file.sync()?;
        }
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no one panics with this lock held")
}

impl Journal for FileJournal {
    fn origin(&self) -> &str {
        self.keys.origin()
    }
    fn epoch(&self) -> u64 {
        self.epoch
    }
    fn head(&self) -> Head {
        locked(&self.index).head
    }

    fn append(&self, batch: &mut Batch) -> Result<Head, AppendError> {
        let mut writer = locked(&self.writer);
        self.working().map_err(AppendError::Failed)?;
        let appended = writer.append(batch, &self.keys, &self.prepared, &self.index);
        let prepared = locked(&self.prepared);
        self.room.store(writer.room(prepared.as_ref()), Ordering::Relaxed);
        self.sync_ns.store(u64::try_from(writer.last_sync.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        appended.map_err(|error| match error {
            AppendError::Failed(failure) => AppendError::Failed(self.stop(failure)),
            error => error,
        })
    }

    fn last_sync(&self) -> Option<std::time::Duration> {
        Some(std::time::Duration::from_nanos(self.sync_ns.load(Ordering::Relaxed)))
    }

    fn room(&self) -> u64 {
        self.room.load(Ordering::Relaxed)
    }

    fn prepare(&self) -> Result<(), PrepareError> {
        self.working().map_err(PrepareError::Failed)?;
        let ready = locked(&self.prepared).as_ref().is_some_and(|next| next.capacity >= self.options.segment_bytes);
        if !ready {
            self.check_lock().map_err(PrepareError::Failed)?;
        }
        self.allocate_next().map_err(|error| match is_full(&error) {
            true => PrepareError::Full(error),
            false => PrepareError::Io(error),
        })
    }

    fn scan_batches(&self, from: u64, visit: &mut VisitBatch<'_>) -> Result<(), ReadError> {
        reader::scan(self.disk.as_ref(), &self.index, from, visit)
    }

    fn checkpoint(&self, now: Instant) -> Result<Option<SignedCheckpoint>, Failure> {
        self.try_checkpoint(now).map_err(|failure| self.stop(failure))
    }

    fn checkpointed(&self) -> SignedCheckpoint {
        locked(&self.checkpointed).clone()
    }

    fn put_snapshot(&self, at: &Position, state: &[u8]) -> Result<(), SnapshotError> {
        if at.size() > locked(&self.checkpointed).size() {
            return Err(SnapshotError::NotCheckpointed { size: at.size() });
        }
        let genesis = self.genesis().map_err(SnapshotError::Read)?.unwrap_or_default();
        Ok(snapshot::write(self.disk.as_ref(), &self.owner(), &genesis, at, state)?)
    }

    fn snapshots(&self) -> Result<Vec<u64>, SnapshotError> {
        Ok(snapshot::list(self.disk.as_ref())?)
    }

    fn load_snapshot(&self, size_max: u64) -> Result<LoadedSnapshot, SnapshotError> {
        let size_max = size_max.min(self.head().size);
        Ok(snapshot::load(self.disk.as_ref(), &self.owner(), size_max)?)
    }

    fn prune_snapshots(&self) -> Result<Vec<u64>, SnapshotError> {
        let mut usable = Vec::new();
        let mut removed = Vec::new();
        for size in self.snapshots()? {
            match snapshot::position(self.disk.as_ref(), &self.owner(), size)? {
                Some(_) => usable.push(size),
                None => removed.push(size),
            }
        }
        // Those that cannot be used are removed once there is another: until then the secret may be restored.
        if usable.is_empty() {
            return Ok(Vec::new());
        }
        removed.extend(snapshots_to_remove(&usable));
        for size in &removed {
            self.disk.remove(&layout::snapshot_path(*size))?;
        }
        Ok(removed)
    }

    fn missing_segment(&self) -> Option<u32> {
        locked(&self.index).missing
    }

    fn genesis(&self) -> Result<Option<Hash>, ReadError> {
        if let Some(known) = self.genesis.get() {
            return Ok(Some(*known));
        }
        let first = self.record(0)?;
        Ok(first.map(|first| *self.genesis.get_or_init(|| first.raw().hash())))
    }

    fn to_seal(&self) -> Vec<Body> {
        self.to_seal.clone()
    }

    fn close(&self, now: Instant) -> Result<(), Failure> {
        let closed = self.end_appends().and_then(|()| self.seal_closed(now));
        locked(&self.lock).take();
        closed
    }
}
