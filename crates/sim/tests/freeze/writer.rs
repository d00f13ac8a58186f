//! A journal that is being written, with the keys and the secret of all frozen journals.

use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::body::Body;
use leasehold_model::{Batch, Instant, Name, Record};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const OPTIONS: Options = Options { segment_bytes: 8 << 10, index_bytes: 2 << 10 };

fn keys() -> Arc<Keys> {
    let keys = Keys::new("frozen.example", &[1; 32]).unwrap();
    keys.add(&[2; 32]).unwrap();
    keys.add(&[3; 32]).unwrap();
    Arc::new(keys)
}

/// The keys of the journal in place of those of the story, whose bytes are all the same.
fn sealable(record: &Record) -> Record {
    let keys = keys();
    let public = keys.public_keys();
    let real = |key: &[u8; 32]| match key[0] {
        byte @ 1..=3 if key.iter().all(|other| *other == byte) => public[usize::from(byte) - 1],
        _ => public[0],
    };
    let mut record = record.clone();
    match &mut record.body {
        Body::Genesis(genesis) => {
            genesis.public_key = public[0];
            genesis.origin = Name::new(keys.origin()).unwrap();
            genesis.software = Name::new("leasehold").unwrap();
        }
        Body::KeyRotated(rotated) => {
            (rotated.old_key, rotated.new_key) = (real(&rotated.old_key), real(&rotated.new_key));
            for signer in &mut record.signers {
                *signer = real(signer);
            }
        }
        _ => {}
    }
    record
}

pub(crate) struct Writer {
    data: PathBuf,
    pub(crate) journal: FileJournal,
    written: usize,
    /// What takes a snapshot, if there are any.
    snapshot: Option<fn(&FileJournal)>,
    since: usize,
}

impl Writer {
    pub(crate) fn new(data: PathBuf, snapshot: Option<fn(&FileJournal)>) -> Self {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).unwrap();
        let disk = Arc::new(RealDisk::new(&data));
        let local = Local::new(Secret::new([7; 32]));
        let journal = FileJournal::create(disk, OPTIONS, keys(), local, Instant(0)).unwrap();
        Self { data, journal, written: 0, snapshot, since: 0 }
    }

    /// Goes on with what lies in the directory.
    pub(crate) fn open(data: PathBuf, written: usize, snapshot: Option<fn(&FileJournal)>) -> Self {
        fs::create_dir_all(data.join("snapshots")).unwrap();
        let disk = Arc::new(RealDisk::new(&data));
        let local = Local::new(Secret::new([7; 32]));
        let (journal, _) = FileJournal::open(disk, OPTIONS, keys(), local, Instant(u64::MAX / 4)).unwrap();
        Self { data, journal, written, snapshot, since: 0 }
    }

    pub(crate) fn write(&mut self, all: &[Record]) {
        let mut acts: Vec<Vec<Record>> = Vec::new();
        for record in all[self.written..].iter().map(sealable) {
            match acts.last_mut() {
                Some(act) if record.continues => act.push(record),
                _ => acts.push(vec![record]),
            }
        }
        self.written = all.len();
        // What a start found out is in one batch with the start.
        let first = self.journal.to_seal().len().max(1) + 1;
        let (start, rest) = acts.split_at(first.min(acts.len()));
        for batch_of in [start].into_iter().chain(rest.chunks(2)).filter(|batch| !batch.is_empty()) {
            let mut batch = Batch::new(batch_of[0][0].sequence);
            batch_of.iter().flatten().for_each(|record| batch.push(record));
            if self.journal.room() < batch.bytes().len() as u64 + 4096 {
                self.journal.prepare().unwrap();
            }
            self.journal.append(&mut batch).unwrap();
            let stamp = batch_of.last().unwrap().last().unwrap().stamp;
            self.since += batch_of.len();
            if self.since > 60 {
                self.since = 0;
                self.journal.checkpoint(stamp).unwrap();
                if let Some(take) = self.snapshot {
                    take(&self.journal);
                }
            }
        }
    }

    pub(crate) fn close(self, last: Instant) {
        println!("{}: {} records", self.data.display(), self.journal.head().size);
        self.journal.close(last).unwrap();
        drop(self.journal);
        let _ = fs::remove_file(self.data.join("lock"));
        let _ = fs::remove_dir(self.data.join("snapshots"));
    }
}
