//! Books that somebody with the secret of the data directory made from altered records.

use leasehold_books::Keeper;
use leasehold_journal::{
    AppendError, Failure, FileJournal, Head, Journal, Keys, LoadedSnapshot, Local, Options, Position, PrepareError,
    ReadError, RealDisk, Secret, SignedCheckpoint, SnapshotError, Visit, VisitBatch,
};
use leasehold_model::body::Body;
use leasehold_model::{Batch, Instant, Quanta, RawBatch, RawRecord};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// A journal that is read with one grant altered.
struct Altered {
    journal: FileJournal,
    keys: Arc<Keys>,
}

impl Altered {
    /// The record as it is read: the last grant of two quanta on the third node has three.
    fn altered(&self, raw: RawRecord<'_>, wanted: u64) -> Option<Batch> {
        let mut record = raw.decode().expect("a record");
        if record.sequence != wanted {
            return None;
        }
        let Body::Granted(granted) = &mut record.body else { panic!("a grant was wanted") };
        granted.members.iter_mut().for_each(|member| member.quanta = Quanta(3));
        let mut batch = Batch::new(record.sequence);
        batch.push(&record);
        batch.seal(&raw.prev_hash(), self.keys.as_ref()).expect("nothing to sign");
        Some(batch)
    }

    fn last_grant(&self) -> u64 {
        let mut last = 0;
        let scanned = self.journal.scan(0, &mut |sequence, raw| {
            if matches!(raw.decode().expect("a record").body, Body::Granted(_)) {
                last = sequence;
            }
            ControlFlow::Continue(())
        });
        scanned.expect("a scan");
        last
    }
}

impl Journal for Altered {
    fn scan(&self, from: u64, visit: &mut Visit<'_>) -> Result<(), ReadError> {
        let wanted = self.last_grant();
        self.journal.scan(from, &mut |sequence, raw| match self.altered(raw, wanted) {
            None => visit(sequence, raw),
            Some(batch) => {
                let read = RawBatch::read(batch.bytes()).expect("a batch");
                visit(sequence, read.records().next().expect("one record").expect("a frame"))
            }
        })
    }

    fn origin(&self) -> &str {
        self.journal.origin()
    }
    fn epoch(&self) -> u64 {
        self.journal.epoch()
    }
    fn head(&self) -> Head {
        self.journal.head()
    }
    fn append(&self, batch: &mut Batch) -> Result<Head, AppendError> {
        self.journal.append(batch)
    }
    fn room(&self) -> u64 {
        self.journal.room()
    }
    fn prepare(&self) -> Result<(), PrepareError> {
        self.journal.prepare()
    }
    fn scan_batches(&self, from: u64, visit: &mut VisitBatch<'_>) -> Result<(), ReadError> {
        self.journal.scan_batches(from, visit)
    }
    fn checkpoint(&self, now: Instant) -> Result<Option<SignedCheckpoint>, Failure> {
        self.journal.checkpoint(now)
    }
    fn checkpointed(&self) -> SignedCheckpoint {
        self.journal.checkpointed()
    }
    fn put_snapshot(&self, at: &Position, state: &[u8]) -> Result<(), SnapshotError> {
        self.journal.put_snapshot(at, state)
    }
    fn snapshots(&self) -> Result<Vec<u64>, SnapshotError> {
        self.journal.snapshots()
    }
    fn load_snapshot(&self, size_max: u64) -> Result<LoadedSnapshot, SnapshotError> {
        self.journal.load_snapshot(size_max)
    }
    fn prune_snapshots(&self) -> Result<Vec<u64>, SnapshotError> {
        self.journal.prune_snapshots()
    }
    fn close(&self, now: Instant) -> Result<(), Failure> {
        self.journal.close(now)
    }
}

/// Replaces the books of a stopped daemon.
pub(crate) fn forge_books(data: &Path) {
    let keys = Arc::new(Keys::load(&data.join("key")).expect("the key"));
    let secret = Secret::load(&data.join("local.secret")).expect("readable").expect("a secret");
    let books_key = secret.books().clone();
    let disk = Arc::new(RealDisk::new(data));
    let options = Options { segment_bytes: 4 << 20, ..Options::default() };
    let opened = FileJournal::open(disk, options, Arc::clone(&keys), Local::new(secret), Instant(0));
    let journal = Altered { journal: opened.expect("the journal").0, keys };
    let path = data.join("books.redb");
    std::fs::remove_file(&path).expect("the books");
    let (mut keeper, _) = Keeper::open(&path, &journal, &books_key).expect("new books");
    while keeper.follow(&journal, 1000).expect("followed") > 0 {}
    keeper.commit(&journal).expect("committed");
    drop(keeper);
    journal.close(Instant(0)).expect("closed");
}
