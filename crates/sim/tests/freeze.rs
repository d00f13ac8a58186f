//! Writes the frozen journals of `tests/frozen`, once: `LEASEHOLD_FREEZE=1 cargo test -p leasehold-sim --test freeze`.

#[path = "../../engine/tests/rules/support/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod support;

use leasehold_cell::take_snapshot;
use leasehold_journal::{FileJournal, Journal, Keys, Options, RealDisk};
use leasehold_model::body::{Body, Heartbeat, Preempted};
use leasehold_model::{Batch, Instant, Name, NodeNo, Priority, Record, Span};
use leasehold_sim::tell_seed;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::Story;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen")
}

fn keys() -> Keys {
    let keys = Keys::new("frozen.example", &[1; 32]).unwrap();
    keys.add(&[2; 32]).unwrap();
    keys.add(&[3; 32]).unwrap();
    keys
}

/// The keys of the journal in place of those of the story, whose bytes are all the same.
fn sealable(mut records: Vec<Record>, keys: &Keys) -> Vec<Record> {
    let public = keys.public_keys();
    let real = |key: &[u8; 32]| match key[0] {
        byte @ 1..=3 if key.iter().all(|other| *other == byte) => public[usize::from(byte) - 1],
        _ => public[0],
    };
    for record in &mut records {
        match &mut record.body {
            Body::Genesis(genesis) => {
                genesis.public_key = public[0];
                genesis.origin = Name::new(keys.origin()).unwrap();
            }
            Body::KeyRotated(rotated) => {
                (rotated.old_key, rotated.new_key) = (real(&rotated.old_key), real(&rotated.new_key));
                for signer in &mut record.signers {
                    *signer = real(signer);
                }
            }
            _ => {}
        }
    }
    records
}

fn write(folder: &Path, records: Vec<Record>, snapshots: bool) {
    let keys = Arc::new(keys());
    let records = sealable(records, &keys);
    let data = folder.join("data");
    let _ = fs::remove_dir_all(&data);
    fs::create_dir_all(&data).unwrap();
    let options = Options { segment_bytes: 8 << 10, index_bytes: 2 << 10 };
    let first = records[0].stamp;
    let journal = FileJournal::create(Arc::new(RealDisk::new(&data)), options, keys, first).unwrap();
    let mut acts: Vec<Vec<Record>> = Vec::new();
    for record in records {
        match acts.last_mut() {
            Some(act) if record.continues => act.push(record),
            _ => acts.push(vec![record]),
        }
    }
    let mut since = 0;
    for batch_of in acts.chunks(2) {
        let mut batch = Batch::new(batch_of[0][0].sequence);
        batch_of.iter().flatten().for_each(|record| batch.push(record));
        if journal.room() < batch.bytes().len() as u64 + 4096 {
            journal.prepare().unwrap();
        }
        journal.append(&mut batch).unwrap();
        let stamp = batch_of.last().unwrap().last().unwrap().stamp;
        since += batch_of.len();
        if since > 60 {
            since = 0;
            journal.checkpoint(stamp).unwrap();
            if snapshots {
                take_snapshot(&journal).unwrap();
            }
        }
    }
    let last = journal.head().size;
    journal.close(Instant(first.0 + 86_400_000_000_000)).unwrap();
    println!("{}: {last} records", folder.display());
    let _ = fs::remove_file(data.join("lock"));
}

fn with_rules(mut records: Vec<Record>, version: u32) -> Vec<Record> {
    for record in &mut records {
        match &mut record.body {
            Body::Started(body) => body.rules_version = version,
            Body::Granted(body) => body.rules_version = version,
            Body::Denied(body) => body.rules_version = version,
            Body::AllocationDenied(body) => body.rules_version = version,
            Body::AllocationPlaced(body) => body.rules_version = version,
            Body::PreemptionDecided(body) => body.rules_version = version,
            _ => {}
        }
    }
    records
}

#[test]
fn freeze() {
    if std::env::var_os("LEASEHOLD_FREEZE").is_none() {
        return;
    }
    for (name, snapshots) in [
        ("reservations", false),
        ("burst", false),
        ("gangs", true),
        ("custody", false),
        ("money", true),
        ("names", true),
    ] {
        let folder = root().join("rules-3").join(name);
        let script = fs::read_to_string(folder.join("story.txt")).unwrap();
        let script = script.split("\n----\n").next().unwrap();
        let mut story = Story::on("");
        story.play(script);
        fs::write(folder.join("story.txt"), format!("{}\n----\n{}", script.trim_end(), story.text)).unwrap();
        let records = story.world.told.clone();
        write(&folder, records.clone(), snapshots);
        match name {
            "gangs" => write(&root().join("rules-2").join(name), with_rules(records, 2), false),
            "burst" => write(&root().join("rules-1").join(name), with_rules(records, 1), false),
            _ => {}
        }
    }
    for seed in [20, 1471, 3589] {
        let (_, mut records) = tell_seed(seed, 500).unwrap();
        if let Body::Genesis(genesis) = &mut records[0].body {
            genesis.software = Name::new("leasehold").unwrap();
        }
        write(&root().join("rules-3").join(format!("seed-{seed}")), records, seed == 20);
    }
    let story = Story::on("0 op started");
    let mut records = story.world.told.clone();
    let preempted = Preempted {
        node: NodeNo(0),
        priority: Priority::Guaranteed,
        rules_version: 1,
        victims: [leasehold_model::LeaseNo(0)].into_iter().collect(),
    };
    let at = records[1].stamp.saturating_add(Span::from_secs(1));
    records.push(Record::new(2, at, preempted));
    records.push(Record::new(3, at, Heartbeat {}));
    write(&root().join("never-written/preempted"), records, false);
}
