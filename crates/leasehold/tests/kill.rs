//! Kills a writer again and again in one data directory: every acknowledged record survives unchanged.
//!
//! `LEASEHOLD_KILL_ROUNDS` and `LEASEHOLD_KILL_SEED` make it a soak.

mod common;
#[path = "kill/settlement.rs"]
mod settlement;

use common::on;
use leasehold_journal::{FileJournal, Head, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::Instant;
use leasehold_verify::Trust;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const ROUNDS: u64 = 15;
const DRILL: &str = env!("CARGO_BIN_EXE_leasehold-drill");
const SUBMITTERS: &str = "4";

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// splitmix64, so that a run can be repeated from its seed.
fn draw(seed: u64, round: u64) -> u64 {
    let mut z = seed.wrapping_add((round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs the writer until this many records are acknowledged, kills it with SIGKILL, and returns them.
fn drill(data: &Path, acknowledged: u64, seed: u64) -> BTreeMap<u64, String> {
    let mut child = Command::new(DRILL)
        .arg(data)
        .args([SUBMITTERS, &seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut promised = BTreeMap::new();
    let mut line = String::new();
    // Lines still in the pipe were acknowledged as well; an incomplete line was not.
    while lines.read_line(&mut line).expect("lines") > 0 && line.ends_with('\n') {
        let (sequence, digest) = line.trim_end().split_once(' ').expect("sequence and digest");
        let before = promised.insert(sequence.parse().expect("a sequence"), digest.to_owned());
        assert_eq!(before, None, "one record answers one request");
        line.clear();
        if promised.len() as u64 == acknowledged {
            child.kill().expect("it was running");
        }
    }
    let status = child.wait().expect("it ended");
    assert_eq!(status.code(), None, "it ended by itself after {} acknowledgements", promised.len());
    promised
}

/// Every record of the journal, opened as the next start would open it, with recovery.
fn reopened(data: &Path) -> BTreeMap<u64, String> {
    let keys = Arc::new(Keys::load(&data.join("key")).expect("the key survives"));
    let options = Options { segment_bytes: 256 << 10, ..Options::default() };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    let now = Instant(now.try_into().expect("before 2554"));
    let secret = Secret::load(&data.join("local.secret")).expect("it can be read").expect("the secret survives");
    let opened = FileJournal::open(Arc::new(RealDisk::new(data)), options, keys, Local::new(secret), now);
    let (journal, recovered) = opened.unwrap_or_else(|error| panic!("it opens after a kill: {error}"));
    let mut records = BTreeMap::new();
    let end = journal
        .scan_verified(Head::EMPTY, &mut |sequence, raw, _| {
            raw.decode().expect("no half record");
            let digest = leasehold_model::hex::encode(&Sha256::digest(&raw.bytes[32..]));
            records.insert(sequence, digest);
            ControlFlow::Continue(())
        })
        .expect("every link holds");
    assert_eq!((end.size, recovered.size), (records.len() as u64, records.len() as u64));
    // Dropped without a clean shutdown: the next start finds a journal that was not closed.
    records
}

fn verify(data: &Path, trust: Trust) -> Trust {
    let options =
        leasehold_verify::Options { data: data.to_owned(), archives: vec![], trust, threads: 1, progress: None };
    let report = leasehold_verify::verify(&options).unwrap_or_else(|failure| panic!("not in order: {failure}"));
    report.updated_trust(&options.trust).expect("the same origin")
}

#[test]
fn acknowledged_records_survive_a_kill() {
    let rounds = setting("LEASEHOLD_KILL_ROUNDS").unwrap_or(ROUNDS);
    let seed = setting("LEASEHOLD_KILL_SEED").unwrap_or(20_261_115);
    println!("LEASEHOLD_KILL_ROUNDS={rounds} LEASEHOLD_KILL_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut promised: BTreeMap<u64, String> = BTreeMap::new();
    let mut trust: Option<Trust> = None;
    let mut size = 0;
    for round in 0..rounds {
        // Sometimes at once, sometimes after a segment or two.
        let drawn = draw(seed, round);
        let acknowledged = 1 + drawn % [20, 800, 4000][usize::try_from(round % 3).unwrap()];
        let new = drill(&data, acknowledged, drawn);
        let heard = new.len();
        promised.extend(new);

        // The data directory after the kill.
        let known = trust.unwrap_or_else(|| {
            let printed = on(&data, "audit trust --data {}").ok().out;
            Trust::parse(&printed).expect("a trust file")
        });
        let known = verify(&data, known);
        // The data directory at the next start.
        let records = reopened(&data);
        for (sequence, digest) in &promised {
            assert_eq!(records.get(sequence), Some(digest), "record {sequence} was acknowledged (round {round})");
        }
        assert!(records.len() as u64 > size, "the journal grows");
        size = records.len() as u64;
        trust = Some(verify(&data, known));
        println!("round {round}: killed after {acknowledged}, {heard} acknowledged, {size} records");
    }
}

#[test]
fn segments_are_read_in_order_and_may_be_archived() {
    let folder = tempfile::tempdir().unwrap();
    let (data, archive) = (folder.path().join("data"), folder.path().join("archive"));
    drill(&data, 6000, 1);
    let whole = on(&data, "audit export --data {}").ok();
    let records = whole.lines();
    assert!(records.iter().zip(0u64..).all(|(record, sequence)| record["sequence"] == sequence));
    assert!(data.join("journal/00000002.seg").exists(), "the drill goes over segments");

    std::fs::create_dir(&archive).unwrap();
    std::fs::rename(data.join("journal/00000001.seg"), archive.join("00000001.seg")).unwrap();
    let archived = format!("audit export --data {{}} --archive {}", archive.display());
    assert!(on(&data, &archived).ok().out == whole.out, "an archive is as good as the folder");
    for command in ["audit trust --data {}", "audit prove --data {} --sequence 5000"] {
        let said = on(&data, command);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("(journal_segment_missing)") && said.err.contains("--archive"), "{said:?}");
    }
    let rest = on(&data, "audit export --data {}").ok();
    assert!(rest.err.contains("are archived or deleted"), "{}", rest.err);
    assert!(whole.out.lines().last() == rest.out.lines().last() || !rest.out.is_empty());
    std::fs::remove_file(data.join("journal/00000002.seg")).unwrap();
    assert_ne!(on(&data, &archived).code, 0, "a segment in the middle is missed");
}

#[test]
fn a_journal_with_several_segments_can_be_read_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut child = Command::new(DRILL)
        .arg(&data)
        .args(["32", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    (0..20).for_each(|_| drop(lines.read_line(&mut line)));
    // The checkpoint that covers an acknowledged record follows a moment later.
    let signed = || on(&data, "audit checkpoint --data {} --json").ok().json()["size"].as_u64().unwrap();
    while signed() < 10 {}
    let reader = std::thread::spawn(move || lines.lines().count());
    let mut last = 0;
    while !data.join("journal/00000006.seg").exists() {
        on(&data, "audit export --data {} --kind journal").ok();
        let proved = on(&data, "audit prove --data {} --sequence 9 --json").ok().json();
        let size = proved["checkpoint"]["size"].as_u64().unwrap();
        assert!(size >= last, "checkpoints follow");
        last = size;
    }
    child.kill().expect("it was running");
    child.wait().expect("it ended");
    assert!(reader.join().expect("the reader ends") > 0);
    assert!(last > 1000, "it was read while it grew");
}
