//! Evidence of a fork: what proves one, to whom, and every file that proves nothing.

mod common;

use common::{ORIGIN, Sample, key};
use leasehold_model::body::KeyRotated;
use leasehold_model::{Batch, Instant, Record};
use leasehold_tlog::{Checkpoint, ConsistencyBuilder, Frontier, Hash, Note, SigningKey, leaf_hash};
use leasehold_verify::Trust;
use leasehold_verify::evidence::{Evidence, Growth, NoEvidence, RotationRecord};
use sha2::{Digest, Sha256};
use std::fs;
use std::process::Command;

const FIRST: [u8; 32] = [1; 32];
const SECOND: [u8; 32] = [2; 32];

/// A log of so many records, of which those from `forked_at` on are another history's.
struct Log(Vec<Hash>);

impl Log {
    fn new(size: u64, forked_at: u64) -> Self {
        let leaf = |at: u64| leaf_hash(&Sha256::digest(format!("{at} {}", u8::from(at >= forked_at))).into());
        Self((0..size).map(leaf).collect())
    }

    fn note(&self, size: u64, key: &SigningKey) -> Note {
        let mut tree = Frontier::new();
        self.0.iter().take(usize::try_from(size).unwrap()).for_each(|leaf| tree.push(*leaf));
        Note::parse(&Checkpoint::new(ORIGIN, size, tree.root()).unwrap().sign(key)).unwrap()
    }

    /// What this log says about its first records.
    fn growth(&self, from: u64, to: u64) -> Growth {
        let mut builder = ConsistencyBuilder::new(from, to).unwrap();
        self.0.iter().take(usize::try_from(to).unwrap()).for_each(|leaf| builder.push(*leaf));
        let (proof, root, _) = builder.finish().unwrap();
        Growth { root, hashes: proof.hashes }
    }
}

fn trust() -> Trust {
    Trust::new(key(FIRST).verifier())
}

fn evidence(smaller: Note, larger: Note, growth: Option<Growth>) -> Evidence {
    Evidence { origin: ORIGIN.into(), rotations: Vec::new(), smaller, larger, growth }
}

/// The log was collected up to `m`, and its fork has `n` records.
fn fork(m: u64, n: u64, forked_at: u64) -> Evidence {
    let (seen, other) = (Log::new(m, u64::MAX), Log::new(n, forked_at));
    let growth = (m < n).then(|| other.growth(m, n));
    evidence(seen.note(m, &key(FIRST)), other.note(n, &key(FIRST)), growth)
}

/// The text with another `end` line, which anybody can compute.
fn closed(text: &str) -> String {
    let body = &text[..text.rfind("end ").unwrap()];
    format!("{body}end {}\n", leasehold_model::hex::encode(&Sha256::digest(body)))
}

fn why(evidence: &Evidence) -> &'static str {
    evidence.check(&trust()).expect_err("it proves nothing").code()
}

#[test]
fn every_fork_is_proved_at_every_size() {
    for n in 1..=17 {
        for m in 1..=n {
            for forked_at in 0..n {
                let evidence = fork(m, n, forked_at);
                assert_eq!(Evidence::parse(&evidence.to_text()), Ok(evidence.clone()));
                let checked = evidence.check(&trust());
                match forked_at < m {
                    true => {
                        let conflict = checked.unwrap();
                        assert_eq!((conflict.smaller.size, conflict.larger.size), (m, n));
                        assert_eq!(conflict.smaller.keys, [key(FIRST).verifier().id()]);
                        assert_ne!(conflict.other_root, conflict.smaller.root);
                    }
                    // They differ only after what the smaller one covers: one history.
                    false => assert_eq!(checked, Err(NoEvidence::Consistent { smaller: m, larger: n })),
                }
            }
        }
    }
}

#[test]
fn what_proves_nothing_is_refused_with_its_reason() {
    let good = fork(6, 11, 4);
    good.check(&trust()).unwrap();
    let changed = |change: &dyn Fn(&mut Evidence)| {
        let mut evidence = good.clone();
        change(&mut evidence);
        evidence
    };
    let (stranger, seen, other) = (key([9; 32]), Log::new(6, u64::MAX), Log::new(11, 4));
    assert_eq!(why(&changed(&|e| std::mem::swap(&mut e.smaller, &mut e.larger))), "bad_evidence");
    assert_eq!(why(&changed(&|e| e.smaller = seen.note(6, &stranger))), "not_signed");
    assert_eq!(why(&changed(&|e| e.larger = other.note(11, &stranger))), "not_signed");
    assert_eq!(why(&changed(&|e| e.origin = "other.example".into())), "wrong_origin");
    // Signed by the right key under the name of another log.
    let foreign = SigningKey::from_seed("other.example", &FIRST).unwrap();
    let checkpoint = Checkpoint::new("other.example", 11, [3; 32]).unwrap();
    assert_eq!(why(&changed(&|e| e.larger = Note::parse(&checkpoint.sign(&foreign)).unwrap())), "not_signed");
    let under_ours = Note::parse(&checkpoint.sign(&key(FIRST))).unwrap();
    assert_eq!(why(&changed(&|e| e.larger = under_ours.clone())), "wrong_origin");

    // The same checkpoint twice, and a checkpoint of an honest log with a proof that is not its own.
    let twice = evidence(seen.note(6, &key(FIRST)), seen.note(6, &key(FIRST)), None);
    assert_eq!(why(&twice), "consistent");
    let honest = Log::new(11, u64::MAX);
    assert_eq!(why(&changed(&|e| e.larger = honest.note(11, &key(FIRST)))), "bad_proof");
    let consistent = evidence(seen.note(6, &key(FIRST)), honest.note(11, &key(FIRST)), Some(honest.growth(6, 11)));
    assert_eq!(why(&consistent), "consistent");
    let empty = evidence(seen.note(0, &key(FIRST)), honest.note(11, &key(FIRST)), Some(honest.growth(0, 11)));
    assert_eq!(why(&empty), "consistent");
    // A made-up root for the empty tree does not help either.
    let mut empty = empty;
    empty.growth = Some(Growth { root: [4; 32], hashes: Vec::new() });
    assert_eq!(why(&empty), "bad_proof");

    // A made-up root at a size where the proof does not contain it, and every changed hash.
    for (m, n) in [(6, 11), (8, 11), (1, 2), (7, 8)] {
        let honest = Log::new(n, u64::MAX);
        let pair = |growth| evidence(honest.note(m, &key(FIRST)), honest.note(n, &key(FIRST)), Some(growth));
        let mut growth = honest.growth(m, n);
        growth.root[0] ^= 1;
        assert_eq!(why(&pair(growth)), "bad_proof", "{m} {n}");
        for at in 0..honest.growth(m, n).hashes.len() {
            let mut growth = honest.growth(m, n);
            growth.hashes[at][7] ^= 1;
            assert_eq!(why(&pair(growth)), "bad_proof", "{m} {n}");
        }
        let mut growth = honest.growth(m, n);
        growth.hashes.push([0; 32]);
        assert_eq!(why(&pair(growth)), "bad_proof", "{m} {n}");
    }
    assert_eq!(why(&changed(&|e| e.growth = None)), "bad_evidence");
    assert_eq!(why(&Evidence { growth: Some(other.growth(6, 11)), ..fork(6, 6, 3) }), "bad_evidence");
}

#[test]
fn the_parser_takes_exactly_what_is_written() {
    let text = fork(6, 11, 4).to_text();
    let code = |text: &str| Evidence::parse(text).expect_err("it is no evidence").code();
    for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert_eq!(code(&text[..cut]), "bad_evidence", "cut at {cut}");
    }
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(flipped) = String::from_utf8(bytes) else { continue };
        let parsed = Evidence::parse(&flipped);
        assert!(parsed.is_err(), "byte {at}");
    }
    let wrong = |from: &str, to: &str| code(&closed(&text.replacen(from, to, 1)));
    assert_eq!(code(&text.replacen(" v1", " v2", 1)), "newer_format");
    assert_eq!(code("-----BEGIN SOMETHING-----\n"), "bad_evidence");
    for (from, to) in [
        ("origin ", "origin"),
        ("root ", "Root "),
        ("\nhash ", "\n\nhash "),
        ("\nhash ", "\r\nhash "),
        ("smaller\n", "smaller \n"),
        ("larger\n", "later\n"),
        ("\norigin", "\ncolour blue\norigin"),
        ("\n6\n", "\n06\n"),
        ("\n6\n", "\n99999999999999999999\n"),
    ] {
        assert_eq!(wrong(from, to), "bad_evidence", "{from:?} to {to:?}");
    }
    let hash = format!("\nhash {}", "00".repeat(32));
    assert_eq!(wrong("\nsmaller", &format!("{}\nsmaller", hash.repeat(64))), "bad_evidence");
    let rotation = format!("\nrotation 00 {}", "00".repeat(128));
    assert_eq!(wrong("\nroot", &format!("{}\nroot", rotation.repeat(33))), "bad_evidence");
    assert_eq!(
        wrong("\nroot", &format!("\nrotation {} {}\nroot", "00".repeat(2000), "00".repeat(128))),
        "bad_evidence"
    );
    assert_eq!(wrong("\nroot", "\nrotation 00 00\nroot"), "bad_evidence");
    assert_eq!(code(&(text.clone() + &"#".repeat(128 << 10))), "bad_evidence");
    // A changed signature is read, and found to be false.
    let at = text.rfind("— ").unwrap() + "— ".len() + ORIGIN.len() + 20;
    let other = if &text[at..=at] == "A" { "B" } else { "A" };
    let forged = closed(&[&text[..at], other, &text[at + 1..]].concat());
    assert_eq!(why(&Evidence::parse(&forged).unwrap()), "bad_signature");
}

/// A rotation record as a journal contains it.
fn rotation(old: &SigningKey, new: &SigningKey) -> RotationRecord {
    struct Both<'a>([&'a SigningKey; 2]);
    impl leasehold_model::frame::Signer for Both<'_> {
        fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]> {
            self.0.iter().find(|key| key.public_key() == *public_key).map(|key| key.sign_raw(message))
        }
    }
    let body = KeyRotated { old_key: old.public_key(), new_key: new.public_key() };
    let mut record = Record::new(3, Instant(1), body);
    record.signers.extend([old.public_key(), new.public_key()]);
    let mut batch = Batch::new(3);
    batch.push(&record);
    batch.seal(&[5; 32], &Both([old, new])).unwrap();
    let raw = batch.frames().next().unwrap().unwrap();
    RotationRecord { bytes: raw.bytes.to_vec(), signatures: raw.signatures.to_vec() }
}

#[test]
fn a_rotation_leads_from_the_trusted_key_to_the_one_that_signed() {
    let (first, second, third) = (key(FIRST), key(SECOND), key([3; 32]));
    let forked = Log::new(11, 4);
    let seen = Log::new(6, u64::MAX).note(6, &second);
    let mut evidence = evidence(seen, forked.note(11, &third), Some(forked.growth(6, 11)));
    assert_eq!(why(&evidence), "not_signed");
    evidence.rotations = vec![rotation(&first, &second), rotation(&second, &third)];
    let conflict = Evidence::parse(&evidence.to_text()).unwrap().check(&trust()).unwrap();
    assert_eq!(conflict.rotated_to, [second.verifier().id(), third.verifier().id()]);

    let with = |rotations: Vec<RotationRecord>| why(&Evidence { rotations, ..evidence.clone() });
    assert_eq!(with(vec![rotation(&second, &third), rotation(&first, &second)]), "bad_rotation");
    assert_eq!(with(vec![rotation(&key([8; 32]), &third)]), "bad_rotation");
    let mut forged = rotation(&first, &second);
    forged.signatures[70] ^= 1;
    assert_eq!(with(vec![forged]), "bad_rotation");
    let mut other = rotation(&first, &second);
    *other.bytes.last_mut().unwrap() ^= 1;
    assert_eq!(with(vec![other]), "bad_rotation");
    assert_eq!(with(vec![RotationRecord { bytes: vec![1; 40], signatures: vec![0; 128] }]), "bad_rotation");
}

#[test]
fn on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let (file, trust_file) = (folder.path().join("fork.evidence"), folder.path().join("my.trust"));
    fs::write(&trust_file, trust().to_text()).unwrap();
    let ask = |text: &str, more: &[&str]| {
        fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-verify"));
        let output = command.arg("evidence").arg(&file).arg("--trust").arg(&trust_file).args(more).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, out, err) = ask(&fork(6, 11, 4).to_text(), &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("confirmed: the log cluster-1.example.org signed two conflicting histories\n"), "{out}");
    assert!(out.contains("6 records") && out.contains("11 records") && out.contains("key a76249b9"), "{out}");
    let (code, out, _) = ask(&fork(6, 6, 4).to_text(), &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &value["verdict"], &value["larger"]["size"]), (Some(0), &"confirmed".into(), &6.into()));
    let (code, out, _) = ask(&fork(6, 11, 7).to_text(), &[]);
    assert!(code == Some(3) && out.starts_with("not confirmed: ") && out.contains("consistent"), "{out}");
    let (code, out, _) = ask("something else", &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &value["code"]), (Some(3), &"bad_evidence".into()));
    fs::remove_file(&trust_file).unwrap();
    assert_eq!(ask("something else", &[]).0, Some(2));
    // A data directory is verified as before, and without arguments the usage is shown.
    let sample = Sample::new();
    fs::write(&trust_file, sample.trust.to_text()).unwrap();
    let run = |arguments: &[&std::ffi::OsStr]| {
        Command::new(env!("CARGO_BIN_EXE_leasehold-verify")).args(arguments).output().unwrap().status.code()
    };
    assert_eq!(run(&[sample.path().as_os_str(), "--trust".as_ref(), trust_file.as_os_str()]), Some(0));
    assert_eq!(run(&[]), Some(2));
    assert_eq!(run(&[sample.path().as_os_str()]), Some(2));
}
