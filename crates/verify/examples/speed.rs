//! How fast a journal is verified, beside hashing the same records in memory.
//!
//! `cargo run --release -p leasehold-verify --example speed [RECORDS]`

use leasehold_model::body::{Genesis, Granted, Heartbeat, Member, Released, Reported, ReportedLeases};
use leasehold_model::frame::{NoKeys, record_hash};
use leasehold_model::{
    Batch, ClassNo, FORMAT_VERSION, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, Quanta, RawBatch,
    Record, Span, TenantNo,
};
use leasehold_tlog::{Checkpoint, Frontier, SigningKey, leaf_hash};
use leasehold_verify::{Options, Trust, verify};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant as Clock};

const ORIGIN: &str = "speed.example";
const SEGMENT_BYTES: usize = 64 << 20;
const BATCH_RECORDS: u64 = 200;
const ROUNDS: u32 = 8;

fn main() {
    let records = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = SigningKey::from_seed(ORIGIN, &[1; 32]).expect("a key");
    let segments = write_journal(folder.path(), &key, records);
    let bytes: usize = segments.iter().map(Vec::len).sum();
    println!("{records} records, {bytes} bytes in {} segments", segments.len());

    let verify_with = |threads| {
        let options = Options {
            data: folder.path().to_owned(),
            archives: Vec::new(),
            trust: Trust::new(key.verifier()),
            threads,
            progress: None,
        };
        assert_eq!(verify(&options).expect("an honest journal").records, records);
    };
    // In turn, and the best of each counts: other work on the machine must not favour one of them.
    let works: [(&str, &dyn Fn()); 3] = [
        ("plain hashing, 1 thread", &|| assert_eq!(hash_all(&segments).size(), records)),
        ("verify, 1 thread", &|| verify_with(1)),
        ("verify, 2 threads", &|| verify_with(2)),
    ];
    let mut best = [(Duration::MAX, u64::MAX); 3];
    for _ in 0..ROUNDS {
        for ((_, work), (wall, busy)) in works.iter().zip(&mut best) {
            let (took, worked) = timed(work);
            (*wall, *busy) = ((*wall).min(took), (*busy).min(worked));
        }
    }
    for ((what, _), took) in works.iter().zip(best) {
        report(what, records, took, best[0]);
    }
}

/// Time that passed, and hundredths of a second that the processors spent on it.
fn timed(work: impl FnOnce()) -> (Duration, u64) {
    let (began, busy) = (Clock::now(), busy());
    work();
    (began.elapsed(), self::busy() - busy)
}

/// Ticks of this process on any processor, ended threads included; 0 where the system does not say.
fn busy() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    after_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn report(what: &str, records: u64, (took, busy): (Duration, u64), (plain, _): (Duration, u64)) {
    let per_second = u128::from(records) * 1_000_000_000 / took.as_nanos();
    let percent = plain.as_nanos() * 100 / took.as_nanos();
    let milliseconds = took.as_millis();
    println!("{what:<26}{milliseconds:>7} ms  {per_second:>9} records/s  {percent:>3} % of plain  busy {busy}0 ms");
}

/// Chain and tree over the records, and nothing else.
fn hash_all(segments: &[Vec<u8>]) -> Frontier {
    let mut tree = Frontier::new();
    for segment in segments {
        let mut rest = &segment[96..];
        while !rest.is_empty() {
            let length = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
            let (batch, after) = rest.split_at(16 + length);
            let mut frames = &batch[16..];
            while !frames.is_empty() {
                let length = u32::from_le_bytes([frames[0], frames[1], frames[2], frames[3]]) as usize >> 2;
                tree.push(leaf_hash(&record_hash(&frames[4..4 + length])));
                frames = &frames[4 + length..];
            }
            rest = after;
        }
    }
    tree
}

fn record(sequence: u64) -> Record {
    let stamp = Instant(1_700_000_000_000_000_000 + sequence * 50_000);
    if sequence == 0 {
        let public_key = SigningKey::from_seed(ORIGIN, &[1; 32]).expect("a key").public_key();
        let name = |text| Name::new(text).expect("a name");
        return Record::new(
            0,
            stamp,
            Genesis { format_version: FORMAT_VERSION, origin: name(ORIGIN), public_key, software: name("speed") },
        );
    }
    let mut record = match sequence % 8 {
        0 => Record::new(sequence, stamp, Heartbeat {}),
        1..=4 => Record::new(sequence, stamp, grant(sequence)),
        _ => {
            let leases =
                ReportedLeases([Reported { lease: LeaseNo(sequence - 4), activity: None }].into_iter().collect());
            Record::new(sequence, stamp, Released { leases, closed: true })
        }
    };
    record.identity.tenant = Some(TenantNo((sequence % 50).try_into().expect("small")));
    record.identity.project = Some(ProjectNo((sequence % 300).try_into().expect("small")));
    record
}

fn grant(sequence: u64) -> Granted {
    Granted {
        first_lease: LeaseNo(sequence),
        node: NodeNo((sequence % 1000).try_into().expect("small")),
        pool: PoolNo(1),
        ttl: Span::from_secs(3600),
        priority: Priority::Standard,
        rules_version: 1,
        members: [Member { class: ClassNo(1), quanta: Quanta(7), devices: 1 }].into_iter().collect(),
        sensitive: false,
        control_plane: false,
        correlation: Some(u128::from(sequence)),
        allocation: None,
        app_instance: None,
        attachment: None,
        source_project: None,
        over_soft: Default::default(),
        capped_by: None,
        profile: None,
        weighing: None,
        labels: Vec::new(),
        capped_by_window: None,
    }
}

/// Writes a journal as the format page says, with an anchor, and returns its segments.
fn write_journal(data: &Path, key: &SigningKey, records: u64) -> Vec<Vec<u8>> {
    fs::create_dir(data.join("journal")).expect("a folder");
    let (mut head, mut sequence) = ([0; 32], 0);
    let mut segments: Vec<Vec<u8>> = Vec::new();
    let mut tree = Frontier::new();
    let mut batch = Batch::new(0);
    while sequence < records {
        batch.reset(sequence);
        let until = (sequence + BATCH_RECORDS).min(records);
        (sequence..until).for_each(|sequence| batch.push(&record(sequence)));
        let before = head;
        head = batch.seal(&before, &NoKeys).expect("nothing to sign");
        for raw in RawBatch::read(batch.bytes()).expect("a sealed batch").records() {
            tree.push(leaf_hash(&raw.expect("a frame").hash()));
        }
        if segments.last().is_none_or(|segment| segment.len() + batch.bytes().len() > SEGMENT_BYTES) {
            let number = u32::try_from(segments.len() + 1).expect("few segments");
            segments.push(header(number, sequence, &before));
        }
        segments.last_mut().expect("one is there").extend_from_slice(batch.bytes());
        sequence = until;
    }
    for (number, segment) in (1..).zip(&segments) {
        fs::write(data.join(format!("journal/{number:08}.seg")), segment).expect("a segment written");
    }
    fs::write(data.join("anchor"), anchor(&tree, &head, key)).expect("an anchor written");
    segments
}

fn header(number: u32, first_sequence: u64, prev: &[u8; 32]) -> Vec<u8> {
    let mut header = b"LHSEGMNT".to_vec();
    header.extend(FORMAT_VERSION.to_le_bytes());
    header.extend(number.to_le_bytes());
    header.extend(first_sequence.to_le_bytes());
    header.extend(prev);
    header.extend(Sha256::digest(ORIGIN));
    header.extend([0; 4]);
    header.extend(crc32fast::hash(&header).to_le_bytes());
    header
}

fn anchor(tree: &Frontier, head: &[u8; 32], key: &SigningKey) -> Vec<u8> {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string");
            text
        })
    };
    let note = Checkpoint::new(ORIGIN, tree.size(), tree.root()).expect("a checkpoint").sign(key);
    let (size, head, root, id) = (tree.size(), hex(head), hex(&tree.root()), key.verifier().id());
    let body = format!(
        "leasehold-anchor v1\ncounter 1\norigin {ORIGIN}\nepoch 1\nsize {size}\nhead {head}\nroot {root}\nkey {id}\ntime 0\ncheckpoint\n{note}"
    );
    let mut slot = format!("{body}end {}\n", hex(&Sha256::digest(&body))).into_bytes();
    slot.resize(8192, 0);
    slot
}
