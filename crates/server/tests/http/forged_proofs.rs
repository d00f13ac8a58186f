//! Proof files that were changed: none of them is accepted, and none makes the verifier fail in another way.

use crate::invoice_proofs::explain;
use crate::ledger::Ledger;
use crate::proof_parts::{Part, Parts};
use leasehold_tlog::{Checkpoint, SigningKey, WitnessSigningKey};
use leasehold_verify::Trust;
use leasehold_verify::invoice::verify_invoice;

const HOUR: u64 = 3600;

/// Two closed invoices with their proofs.
struct Scene {
    trust: Trust,
    own: Vec<u8>,
    foreign: Vec<u8>,
}

impl Scene {
    async fn new() -> Self {
        let ledger = Ledger::open().await;
        ledger.pass(HOUR).await;
        ledger.close_january().await;
        let (_, own) = ledger.proof_of("physics").await;
        let (_, foreign) = ledger.proof_of("chemistry").await;
        let trust = ledger.trust().await;
        ledger.world.stop().await;
        Self { trust, own, foreign }
    }

    fn accepts(&self, file: &[u8]) -> bool {
        verify_invoice(file, &[], &self.trust).is_ok_and(|judged| judged.is_proved())
    }

    /// A file that was changed must not be accepted.
    #[track_caller]
    fn refuses(&self, what: &str, file: &[u8]) {
        assert_ne!(file, self.own, "{what}: nothing was changed");
        assert!(!self.accepts(file), "{what} is accepted");
    }

    #[track_caller]
    fn refuses_changed(&self, what: &str, change: impl FnOnce(&mut Parts)) {
        let mut parts = Parts::of(&self.own);
        change(&mut parts);
        self.refuses(what, &parts.bytes());
    }
}

fn insert(at: usize, part: &Part) -> impl FnOnce(&mut Parts) {
    let part = part.clone();
    move |parts| parts.records.insert(at, part)
}

/// Signs a checkpoint with another key of the same name.
fn signed_by_another(parts: &Parts) -> (String, SigningKey) {
    let body = parts.note.split_once("\n\n").expect("a note").0.to_owned() + "\n";
    let checkpoint = Checkpoint::from_body(&body).expect("a checkpoint");
    let key = SigningKey::from_seed(checkpoint.origin(), &[9; 32]).expect("a key");
    (checkpoint.sign(&key), key)
}

#[tokio::test]
async fn a_changed_file_is_refused_whatever_was_changed() {
    let scene = Scene::new().await;
    let judged = verify_invoice(&scene.own, &[], &scene.trust).expect("a proof");
    assert!(judged.is_proved(), "{}", explain(&judged));
    let parts = Parts::of(&scene.own);
    assert_eq!(parts.bytes(), scene.own, "the page describes the file");
    let foreign = Parts::of(&scene.foreign);
    let middle = parts.records.len() / 2;

    // The frame of the file.
    scene.refuses("an empty file", b"");
    scene.refuses("another first line", &scene.own[1..]);
    scene.refuses("a newer version", &[b"leasehold-invoice-proof v2\n", &scene.own[27..]].concat());
    scene.refuses("a byte at the end", &[&scene.own[..], &[0]].concat());
    scene.refuses("the file twice", &[&scene.own[..], &scene.own[..]].concat());
    scene.refuses("half of the file", &scene.own[..scene.own.len() / 2]);
    scene.refuses_changed("another number", |parts| parts.invoice[1] += 1);
    scene.refuses_changed("a credit note", |parts| parts.invoice[0] = 2);
    scene.refuses_changed("the number of another tenant", |parts| parts.invoice = foreign.invoice.clone());

    // The checkpoint.
    scene.refuses_changed("no checkpoint", |parts| parts.note.clear());
    scene.refuses_changed("another size", |parts| parts.note = parts.note.replacen('\n', "\n1", 1));
    scene.refuses_changed("another origin", |parts| parts.note = format!("x{}", parts.note));
    scene.refuses_changed("another key", |parts| parts.note = signed_by_another(parts).0);
    scene.refuses_changed("an older checkpoint of the other file", |parts| {
        parts.note = foreign.note.clone();
        parts.hashes = foreign.hashes.clone();
    });

    // Records.
    for at in [0, middle, parts.records.len() - 1] {
        scene.refuses_changed("a record missing", |parts| drop(parts.records.remove(at)));
        scene.refuses_changed("a record twice", insert(at, &parts.records[at]));
        scene.refuses_changed("a byte of a record", |parts| *parts.records[at].bytes.last_mut().expect("bytes") ^= 1);
        scene.refuses_changed("a byte more in a record", |parts| parts.records[at].bytes.push(0));
        scene.refuses_changed("a signature", |parts| parts.records[at].signatures = vec![0; 64]);
    }
    scene.refuses_changed("records in another order", |parts| parts.records.swap(middle, middle + 1));
    scene.refuses_changed("no records", |parts| parts.records.clear());
    scene.refuses_changed("another link", |parts| {
        let link = parts.records.iter_mut().find_map(|record| record.link.as_mut()).expect("a link");
        link[0] ^= 1;
    });
    let other = foreign.records.iter().find(|part| parts.records.iter().all(|own| own.sequence() != part.sequence()));
    let other = other.expect("a record of the other tenant");
    let place = parts.records.iter().position(|own| own.sequence() > other.sequence()).unwrap_or(parts.records.len());
    scene.refuses_changed("a record of another tenant", insert(place, other));

    // Lists.
    for at in 0..3 {
        scene.refuses_changed("an empty list", |parts| match parts.lists[at].is_empty() {
            true => parts.lists[at].push(0),
            false => parts.lists[at].clear(),
        });
        scene.refuses_changed("a byte more in a list", |parts| parts.lists[at].push(0));
        scene.refuses_changed("another byte in a list", |parts| parts.lists[at][0] ^= 1);
    }
    scene.refuses_changed("the list of another tenant", |parts| parts.lists[1] = foreign.lists[1].clone());
    scene.refuses_changed("lists in another order", |parts| parts.lists.swap(0, 1));

    // Hashes.
    scene.refuses_changed("a hash less", |parts| parts.hashes.truncate(parts.hashes.len() - 1));
    scene.refuses_changed("a hash more", |parts| parts.hashes.push([0; 32]));
    scene.refuses_changed("hashes in another order", |parts| parts.hashes.reverse());
    scene.refuses_changed("another hash", |parts| parts.hashes[0][0] ^= 1);
    scene.refuses_changed("no hashes", |parts| parts.hashes.clear());
}

#[tokio::test]
async fn the_trust_file_decides_whose_journal_it_is() {
    let scene = Scene::new().await;
    let code = |trust: &Trust| verify_invoice(&scene.own, &[], trust).err().map(|(_, why)| why.code());
    let origin = scene.trust.origin();
    let key = |name: &str, seed: u8| SigningKey::from_seed(name, &[seed; 32]).expect("a key");
    assert_eq!(code(&Trust::new(key(origin, 5).verifier())), Some("unknown_key"));
    assert_eq!(code(&Trust::new(key("other.example", 5).verifier())), Some("wrong_origin"));

    // A file that is right in itself, signed by somebody else, convinces only who trusts that key.
    let mut parts = Parts::of(&scene.own);
    let (note, forger) = signed_by_another(&parts);
    parts.note = note;
    scene.refuses("a checkpoint by another key", &parts.bytes());
    let believed = verify_invoice(&parts.bytes(), &[], &Trust::new(forger.verifier())).expect("a proof");
    assert!(believed.is_proved());

    // A pinned checkpoint of the same size with another root is a fork; one of another size cannot be compared.
    let size = believed.checked.size;
    let pin = |size: u64, root: [u8; 32]| {
        let mut trust = Trust::new(forger.verifier());
        trust.pin(&Checkpoint::new(origin, size, root).expect("a checkpoint").sign(&forger)).expect("a pin");
        verify_invoice(&parts.bytes(), &[], &trust).map(|judged| judged.is_proved()).map_err(|(_, why)| why.code())
    };
    assert_eq!(pin(size, [3; 32]), Err("fork"));
    assert_eq!(pin(size, believed.checked.root), Ok(true));
    assert_eq!(pin(size - 1, [3; 32]), Ok(true));

    let mut trust = scene.trust.clone();
    trust.add_witness(WitnessSigningKey::from_seed("w.example", &[4; 32]).expect("a key").verifier());
    assert_eq!(code(&trust), None);
    trust.require(1).expect("one witness");
    assert_eq!(code(&trust), Some("cosignatures"));
}

/// The other file is not an earlier one of the same tenant.
#[tokio::test]
async fn files_that_do_not_fit_together_are_refused() {
    let scene = Scene::new().await;
    for other in [&scene.own, &scene.foreign] {
        let judged = verify_invoice(&scene.own, std::slice::from_ref(other), &scene.trust).expect("proofs");
        assert!(!judged.is_proved() && !judged.broken.is_empty());
    }
    let broken = verify_invoice(&scene.own, &[b"x".to_vec()], &scene.trust).expect_err("a refusal");
    assert_eq!((broken.0, broken.1.code()), (1, "not_a_proof"));
}

/// Bytes flipped, cut out, inserted and doubled at thousands of places.
#[tokio::test]
async fn no_damage_is_accepted_and_none_makes_the_verifier_panic() {
    let scene = Scene::new().await;
    let length = scene.own.len();
    // Steps that have nothing in common with the sizes of records and hashes.
    for at in (0..length).step_by(1.max(length / 1500)) {
        let mut flipped = scene.own.clone();
        flipped[at] ^= 1 << (at % 8);
        scene.refuses(&format!("a bit flipped at {at}"), &flipped);
        scene.refuses(&format!("cut at {at}"), &scene.own[..at]);
        let mut inserted = scene.own.clone();
        inserted.insert(at, u8::try_from(at % 251).expect("a byte"));
        scene.refuses(&format!("a byte inserted at {at}"), &inserted);
        let mut removed = scene.own.clone();
        removed.remove(at);
        scene.refuses(&format!("a byte removed at {at}"), &removed);
        let piece = scene.own[at..length.min(at + 32 + at % 7)].to_vec();
        let doubled = [&scene.own[..at], &piece, &scene.own[at..]].concat();
        scene.refuses(&format!("{} bytes doubled at {at}", piece.len()), &doubled);
    }
}
