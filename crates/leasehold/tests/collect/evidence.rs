//! Forks, the evidence of them that a collector keeps, and missing witnesses.

use crate::common::{self, leasehold};
use crate::daemon::Origin;
use crate::proxy::{Proxy, Tamper};
use crate::{Auditor, ORIGIN};
use leasehold_tlog::{Checkpoint, Note, WitnessSigningKey};
use serde_json::{Value, json};

impl Auditor {
    /// The evidence that was stored for the checkpoint of this size, confirmed away from everything else.
    pub(crate) fn confirms(&self, seen: u64, sizes: (u64, u64)) -> Value {
        let elsewhere = tempfile::tempdir().expect("a folder");
        let file = elsewhere.path().join("evidence");
        std::fs::copy(self.data().join(format!("fork-{seen}.evidence")), &file).expect("evidence");
        let words = ["audit", "evidence", file.to_str().unwrap(), "--trust", self.trust.to_str().unwrap(), "--json"];
        let told = leasehold(words).ok().json();
        assert_eq!(told["verdict"], "confirmed");
        let size = |which: &str| told[which]["size"].as_u64().expect("a size");
        assert_eq!((size("smaller"), size("larger")), sizes, "{told}");
        told
    }
    /// The same auditor without the evidence, after another refusal.
    fn again(&self, fork: &Origin) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        common::copy(self.folder.path(), folder.path());
        let again = Self { trust: folder.path().join("trust"), token: folder.path().join("token"), folder };
        for entry in std::fs::read_dir(again.data()).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "evidence") {
                std::fs::remove_file(path).expect("a file");
            }
        }
        assert_eq!(again.refuses(&fork.url()).0, "forked");
        again
    }
}

/// Someone with the key continues from an old copy of the data directory.
#[test]
fn a_fork_is_detected_at_any_position() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(5);
    let forked = origin.copy();
    let size = origin.seal(8).size;
    let auditor = Auditor::of(&origin);
    auditor.collect(&origin.url()).ok();
    let pinned = Auditor::with(&origin, true);
    origin.stop();

    let mut fork = Origin::in_folder(forked, ORIGIN, 1000);
    let mut shorter = fork.seal(1).size;
    let first = shorter;
    assert!(first < size);
    // The copy contains what the fork contradicts; the trust file alone contains only a root.
    assert_eq!(auditor.refuses(&fork.url()).0, "forked");
    auditor.confirms(size, (first, size));
    assert_eq!(pinned.refuses(&fork.url()).0, "pinned_ahead");
    while shorter < size {
        shorter = fork.seal(1).size;
    }
    assert_eq!(shorter, size, "the fork is as long as what was collected");
    let (code, sentence) = auditor.refuses(&fork.url());
    assert_eq!(code, "forked", "{sentence}");
    // The evidence that was stored first is kept, and another auditor stores its own.
    auditor.confirms(size, (first, size));
    let same_size = auditor.again(&fork);
    same_size.confirms(size, (size, size));
    let (code, sentence) = pinned.refuses(&fork.url());
    assert_eq!(code, "forked", "{sentence}");
    pinned.confirms(size, (size, size));
    let longer = fork.seal(3).size;
    let (code, sentence) = auditor.refuses(&fork.url());
    assert_eq!(code, "forked", "{sentence}");
    assert!(sentence.contains(&format!("record {size} ")), "{sentence}");
    let later = auditor.again(&fork);
    later.confirms(size, (size, longer));
    assert_eq!(pinned.refuses(&fork.url()).0, "forked");

    // Without the proof of the daemon there is nothing that convinces others.
    let unproved: Tamper =
        Box::new(|path, body| Some(if path.contains("/audit/proofs") { b"{}".to_vec() } else { body }));
    let proxy = Proxy::before(fork.address, unproved);
    assert_eq!(later.refuses(&proxy.url()).0, "broken_link");
    fork.stop();
}

/// After a rotation neither checkpoint is signed by the key in the trust file: the evidence contains the rotation.
#[test]
fn evidence_leads_from_the_trusted_key_to_the_ones_that_signed() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(3);
    let auditor = Auditor::of(&origin);
    let run = |origin: &Origin, more: &[&str]| {
        let (url, token) = (origin.url(), origin.token_file());
        leasehold([&["key", "rotate", "--url", &url, "--token-file", token.to_str().unwrap()], more].concat()).ok();
    };
    auditor.collect(&origin.url()).ok();
    run(&origin, &[]);
    origin.seal(2);
    auditor.collect(&origin.url()).ok();
    run(&origin, &["--finish"]);
    let forked = origin.copy();
    let size = origin.seal(5).size;
    let collected = auditor.collect(&origin.url()).ok().json();
    assert_eq!(collected["evidence"], json!([]));
    assert_eq!(auditor.verify()["rotations"].as_array().map(Vec::len), Some(1));
    origin.stop();
    let mut fork = Origin::in_folder(forked, ORIGIN, 1000);
    let shorter = fork.seal(1).size;
    assert_eq!(auditor.refuses(&fork.url()).0, "forked");
    let confirmed = auditor.confirms(size, (shorter, size));
    assert_eq!(confirmed["rotated_to"].as_array().map(Vec::len), Some(1), "{confirmed}");
    fork.stop();
}

#[test]
fn missing_witnesses_are_named_and_required_ones_needed() {
    let mut origin = Origin::named(ORIGIN);
    origin.seal(3);
    let auditor = Auditor::of(&origin);
    let witness = WitnessSigningKey::from_seed("w.example", &[9; 32]).expect("a key");
    let trust = std::fs::read_to_string(&auditor.trust).expect("a file");
    let trust = format!("{trust}witness {}\n", witness.verifier());
    std::fs::write(&auditor.trust, &trust).expect("a file");
    let said = auditor.collect(&origin.url()).ok();
    assert_eq!(said.json()["missing_witnesses"], json!(["w.example"]));
    assert!(said.err.contains("witness w.example has not cosigned"), "{said:?}");
    assert_eq!(auditor.verify()["missing_witnesses"], json!(["w.example"]));

    let strict = Auditor::of(&origin);
    std::fs::write(&strict.trust, format!("{trust}require 1\n")).expect("a file");
    let (code, sentence) = strict.refuses(&origin.url());
    assert_eq!(code, "missing_cosignatures", "{sentence}");
    let cosigning: Tamper = Box::new(move |path, body| {
        if !path.contains("/audit/checkpoint") {
            return Some(body);
        }
        let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
        let mut note = Note::parse(answer["note"].as_str().expect("a note")).expect("a note");
        let checkpoint = Checkpoint::from_body(note.text()).expect("a checkpoint");
        note.add_signature(witness.cosign(&checkpoint, 1_700_000_000).expect("a time")).expect("room");
        answer["note"] = note.to_string().into();
        Some(answer.to_string().into_bytes())
    });
    let proxy = Proxy::before(origin.address, cosigning);
    let told = strict.collect(&proxy.url()).ok().json();
    assert_eq!((&told["witnesses"], &told["missing_witnesses"]), (&json!(["w.example"]), &json!([])));
    assert_eq!(strict.verify()["proved_by"]["kind"], "witness");
    origin.seal(1);
    assert_eq!(strict.refuses(&origin.url()).0, "missing_cosignatures");
    origin.stop();
}
