//! Writes the frozen journals of `tests/frozen/rules-4`, once:
//! `LEASEHOLD_FREEZE=1 cargo test -p leasehold-sim --test freeze`. `LEASEHOLD_TELL=NAME` prints one story instead.
//!
//! In a script, `from rules-3/money` goes on after that journal, `100 reopened` is a process that opens the journal
//! again, `100 restored=90` one that opens a copy that was made at that time, and `100 op settles [part]` is the daemon,
//! which settles a loss as the books have it; with `part` it names only one lease.

#[path = "../../engine/tests/rules/losses.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod losses;
#[path = "../../engine/tests/rules/support/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod support;

use leasehold_books::{EndedOnNode, Keeper, Row};
use leasehold_cell::take_snapshot;
use leasehold_engine::command::{EndedClaim, EndedLease, SettleLoss};
use leasehold_engine::{Command, Request};
use leasehold_journal::{FileJournal, Head, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::body::{BelongsTo, Body};
use leasehold_model::{Batch, Identity, Instant, Name, Record};
use leasehold_sim::tell_seed;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::Story;

const OPTIONS: Options = Options { segment_bytes: 8 << 10, index_bytes: 2 << 10 };

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen")
}

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

/// A journal that is being written.
struct Writer {
    data: PathBuf,
    journal: FileJournal,
    written: usize,
    snapshots: bool,
    since: usize,
}

impl Writer {
    fn new(data: PathBuf, snapshots: bool) -> Self {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).unwrap();
        let disk = Arc::new(RealDisk::new(&data));
        let local = Local::new(Secret::new([7; 32]));
        let journal = FileJournal::create(disk, OPTIONS, keys(), local, Instant(0)).unwrap();
        Self { data, journal, written: 0, snapshots, since: 0 }
    }

    /// Goes on with what lies in the directory.
    fn open(data: PathBuf, written: usize, snapshots: bool, restored: Option<Instant>) -> Self {
        fs::create_dir_all(data.join("snapshots")).unwrap();
        let disk = Arc::new(RealDisk::new(&data));
        let local = Local { restored, ..Local::new(Secret::new([7; 32])) };
        let (journal, _) = FileJournal::open(disk, OPTIONS, keys(), local, Instant(u64::MAX / 4)).unwrap();
        Self { data, journal, written, snapshots, since: 0 }
    }

    fn write(&mut self, all: &[Record]) {
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
                if self.snapshots {
                    take_snapshot(&self.journal).unwrap();
                }
            }
        }
    }

    fn close(self, last: Instant) {
        println!("{}: {} records", self.data.display(), self.journal.head().size);
        self.journal.close(last).unwrap();
        drop(self.journal);
        let _ = fs::remove_file(self.data.join("lock"));
        let _ = fs::remove_dir(self.data.join("snapshots"));
    }
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_files(&source, &target);
        } else {
            fs::copy(source, target).unwrap();
        }
    }
}

fn script_of(name: &str) -> String {
    let text = fs::read_to_string(root().join("rules-4").join(name).join("story.txt")).unwrap();
    text.split("\n----\n").next().unwrap().trim_end().to_owned()
}

fn records_in(journal: &FileJournal) -> Vec<Record> {
    let mut records = Vec::new();
    journal
        .scan_verified(Head::EMPTY, &mut |_, raw, _| {
            records.push(raw.decode().unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

fn tell_and_write(name: &str, snapshots: bool, data: PathBuf) -> String {
    let script = script_of(name);
    let mut story = Story::on("");
    let mut writer: Option<Writer> = None;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let reopens = words.get(1).is_some_and(|word| *word == "reopened" || word.starts_with("restored="));
        if let ["from", base] = words[..] {
            let _ = fs::remove_dir_all(&data);
            copy_files(&root().join(base).join("data"), &data);
            // It is opened when the story goes on, by the line `reopened`.
            let copy = std::env::temp_dir().join(format!("freeze-{name}"));
            let _ = fs::remove_dir_all(&copy);
            copy_files(&data, &copy);
            let read = Writer::open(copy, 0, false, None);
            story = Story::after(records_in(&read.journal));
            continue;
        }
        if reopens {
            let last = story.world.state().last_stamp();
            if let Some(mut before) = writer.take() {
                before.write(&story.world.records);
                before.close(last);
            } else if !data.join("anchor").exists() {
                let mut first = Writer::new(data.clone(), snapshots);
                first.write(&story.world.records);
                first.close(last);
            }
            let copied = words[1].strip_prefix("restored=").map(|at| Instant::from_secs(at.parse().unwrap()));
            let opened = Writer::open(data.clone(), story.world.records.len(), snapshots, copied);
            story.recovered(words[0], opened.journal.to_seal());
            writer = Some(opened);
            continue;
        }
        if words.get(1..3) == Some(&["op", "settles"]) {
            settle(&mut story, words[0], words.contains(&"part"));
            continue;
        }
        story.line(line);
    }
    let mut writer = writer.unwrap_or_else(|| Writer::new(data, snapshots));
    writer.write(&story.world.records);
    writer.close(story.world.state().last_stamp());
    format!("{script}\n----\n{}", story.text)
}

/// As `server/src/losses.rs` does it.
fn settle(story: &mut Story, time: &str, only_one: bool) {
    let mut books = Keeper::in_memory().books;
    story.world.records.iter().for_each(|record| books.apply(record).unwrap());
    let (loss, open) = story.world.state().open_losses().next().expect("an open loss");
    let EndedOnNode { leases, claims } = books.ended_after(open.node, open.last_seen).unwrap();
    let lease = |row: &Row| EndedLease {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        user: row.user,
        workload: row.workload.clone(),
        belongs_to: BelongsTo { allocation: row.allocation, correlation: row.correlation() },
    };
    let claim = |ended: &leasehold_books::EndedClaim| EndedClaim {
        claim: ended.claim,
        tenant: ended.tenant,
        project: ended.project,
        user: ended.user,
    };
    let settle = SettleLoss {
        loss,
        leases: leases.iter().take(if only_one { 1 } else { usize::MAX }).map(lease).collect(),
        claims: claims.iter().filter(|_| !only_one).map(claim).collect(),
        complete: !only_one,
    };
    story.decide(time, &Request::new(Identity::default(), Command::SettleLoss(settle)));
}

#[test]
fn freeze() {
    if let Ok(name) = std::env::var("LEASEHOLD_TELL") {
        let data = std::env::temp_dir().join(format!("told-{name}"));
        let _ = fs::remove_dir_all(&data);
        let text = tell_and_write(&name, false, data);
        println!("{}", text.split("\n----\n").nth(1).unwrap());
        return;
    }
    if std::env::var_os("LEASEHOLD_FREEZE").is_none() {
        return;
    }
    for (name, snapshots) in [
        ("reservations", true),
        ("waiting", false),
        ("quotas", true),
        ("windows", false),
        ("custody", true),
        ("losses", false),
        ("money", false),
        ("names", true),
        ("restored", false),
        ("upgraded", false),
        ("upgraded-burst", true),
    ] {
        let folder = root().join("rules-4").join(name);
        let data = folder.join("data");
        let _ = fs::remove_dir_all(&data);
        let text = tell_and_write(name, snapshots, data);
        fs::write(folder.join("story.txt"), text).unwrap();
    }
    for seed in SEEDS {
        let (_, records) = tell_seed(seed, 500).unwrap();
        let folder = root().join("rules-4").join(format!("seed-{seed}"));
        let last = records[records.len() - 1].stamp;
        let mut writer = Writer::new(folder.join("data"), seed == SEEDS[0]);
        writer.write(&records);
        writer.close(last);
    }
}

const SEEDS: [u64; 5] = [332, 385, 115, 599, 4580];
