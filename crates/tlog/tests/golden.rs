//! Bytes made by others: Certificate Transparency's test tree, Go's note package, and texts signed by
//! Python's `cryptography` from the written formats.

mod naive;

use leasehold_tlog::{
    Checkpoint, CheckpointError, ConsistencyBuilder, ConsistencyFile, CosignatureError, Frontier, InclusionBuilder,
    InclusionFile, KeyError, Note, NoteError, ProofFileError, SigningKey, VerifierKey, WitnessKey, WitnessSigningKey,
    leaf_hash, verify_raw,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_tree_of_certificate_transparency() {
    let leaves_and_roots = [
        ("", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
        ("00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
        ("10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
        ("2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
        ("3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
        ("40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
        ("5051525354555657", "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
        ("606162636465666768696a6b6c6d6e6f", "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
    ];
    let mut frontier = Frontier::new();
    assert_eq!(hex(&frontier.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (data, root) in leaves_and_roots {
        frontier.push(naive::leaf_of(&unhex(data)));
        assert_eq!(hex(&frontier.root()), root);
    }
}

const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
/// The seed in Go's published example of a private key.
const PETER_SEED: &str = "810a1402d5146c8d84f2443330f54080ebf98ee17d9c74f6252fc5d5c7283173";
const PETERS_TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETERS_LINE: &str =
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";

#[test]
fn the_note_of_go() {
    let key: VerifierKey = PETER.parse().unwrap();
    assert_eq!(key.to_string(), PETER);
    let text = format!("{PETERS_TEXT}\n{PETERS_LINE}\n");
    let note = Note::parse(&text).unwrap();
    assert_eq!(note.text(), PETERS_TEXT);
    assert_eq!(note.to_string(), text);
    assert_eq!(note.verify(std::slice::from_ref(&key)).unwrap(), [&key]);

    // Ed25519 is deterministic: signing again gives the same line.
    let signer = SigningKey::from_seed("PeterNeumann", &unhex(PETER_SEED).try_into().unwrap()).unwrap();
    assert_eq!(signer.verifier(), key);
    assert_eq!(signer.sign_note_text(PETERS_TEXT).to_string(), PETERS_LINE);

    let forged = text.replace("don't know", "know");
    assert!(matches!(Note::parse(&forged).unwrap().verify(&[key]), Err(NoteError::BadSignature { .. })));
}

/// The witness key of a running witness, as the transparency.dev tests have it.
const REMORA: &str = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2";

#[test]
fn the_key_types_do_not_mix() {
    assert_eq!(REMORA.parse::<WitnessKey>().unwrap().to_string(), REMORA);
    assert_eq!(REMORA.parse::<VerifierKey>(), Err(KeyError::WrongType { expected: 0x01, found: 0x04 }));
    assert_eq!(PETER.parse::<WitnessKey>(), Err(KeyError::WrongType { expected: 0x04, found: 0x01 }));
}

const ORIGIN: &str = "example.com/leasehold";
const LOG_KEY: &str = "example.com/leasehold+97e214f4+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
const WITNESS_KEY: &str = "witness.example/w1+24b5d9fe+BP0XJDhaoMdbZPt4zWAvodmR/ev3axPFjtcC6sg16fYY";
const WITNESSED_AT: u64 = 1_679_315_147;
/// Over the records 00…00, 01…01 and 02…02; the seeds are 32 bytes of 7 (log) and of 9 (witness).
const CHECKPOINT: &str = "\
example.com/leasehold
3
uo2Ut/vOyue4HEyAV0/iRzSmkXv5wezWb/Pgw06tRiA=

— example.com/leasehold l+IU9M7/ZeDyQYEcIcybT4sFG/NFqWkpy9W2K0mU8wDlQahVUrLSHldflYV7y4ykLKBEVwztXFUr9MDNUH76fHxbRA0=
— witness.example/w1 JLXZ/gAAAABkGFDLPgQ4dx3UxwwGFHXLRzqs/00XGgYHQhSQqsxNBWuz2UHtc1lOinwrhbZ0GR0epLwWojMWOfdHmhOp0JMVLqA7AA==
";
const INCLUSION_OF_1: &str = "\
c2sp.org/tlog-proof@v1
index 1
f5yeMayCVsovJYWD3yYtvH1vaPKgMEPVyZpK5ac5bOk=
y6jFlhIL22neu9kj2Sy6lIvefH0GpGWhu32Y0xFgOPo=

";
const CONSISTENCY_FROM_2: &str = "\
old 2
y6jFlhIL22neu9kj2Sy6lIvefH0GpGWhu32Y0xFgOPo=

";

fn log_keys() -> [VerifierKey; 1] {
    [LOG_KEY.parse().unwrap()]
}

fn tree_of(size: u8) -> Frontier {
    let mut tree = Frontier::new();
    (0..size).for_each(|i| tree.push(leaf_hash(&[i; 32])));
    tree
}

#[test]
fn a_checkpoint_with_a_witness() {
    let checkpoint = Checkpoint::new(ORIGIN, 3, tree_of(3).root()).unwrap();
    assert_eq!(Checkpoint::open(CHECKPOINT, &log_keys(), ORIGIN).as_ref(), Ok(&checkpoint));

    let log = SigningKey::from_seed(ORIGIN, &[7; 32]).unwrap();
    let witness = WitnessSigningKey::from_seed("witness.example/w1", &[9; 32]).unwrap();
    let mut note = Note::parse(&checkpoint.sign(&log)).unwrap();
    note.add_signature(witness.cosign(&checkpoint, WITNESSED_AT).unwrap()).unwrap();
    assert_eq!(note.to_string(), CHECKPOINT);

    let witness_key: WitnessKey = WITNESS_KEY.parse().unwrap();
    assert_eq!(witness.verifier(), witness_key);
    assert_eq!(witness_key.verify(&note), Ok(WITNESSED_AT));
}

#[test]
fn a_checkpoint_is_refused() {
    let stranger = SigningKey::from_seed(ORIGIN, &[8; 32]).unwrap();
    assert_eq!(
        Checkpoint::open(CHECKPOINT, &[stranger.verifier()], ORIGIN),
        Err(CheckpointError::Note(NoteError::NoKnownSignature))
    );
    assert!(matches!(
        Checkpoint::open(CHECKPOINT, &log_keys(), "example.com/other"),
        Err(CheckpointError::WrongOrigin { .. })
    ));
    assert!(matches!(
        Checkpoint::open(&CHECKPOINT.replace("\n3\n", "\n4\n"), &log_keys(), ORIGIN),
        Err(CheckpointError::Note(NoteError::BadSignature { .. }))
    ));
}

#[test]
fn a_cosignature_is_refused() {
    let witness: WitnessKey = WITNESS_KEY.parse().unwrap();
    let verify = |text: &str| witness.verify(&Note::parse(text).unwrap());
    let name = witness.name().to_owned();
    assert_eq!(verify(&CHECKPOINT.replace("\n3\n", "\n4\n")), Err(CosignatureError::Bad { name: name.clone() }));
    // One second later, with the signature of the second before.
    let later = CHECKPOINT.replace("AAAABkGFDL", "AAAABkGFDM");
    assert_ne!(later, CHECKPOINT);
    assert_eq!(verify(&later), Err(CosignatureError::Bad { name: name.clone() }));
    let unwitnessed: String = CHECKPOINT.lines().take(5).map(|line| format!("{line}\n")).collect();
    assert_eq!(verify(&unwitnessed), Err(CosignatureError::Missing { name }));
    assert!(matches!(
        verify("Not a checkpoint.\n\n— witness.example/w1 JLXZ/gAAAABk\n"),
        Err(CosignatureError::NotACheckpoint(_))
    ));
    let signer = WitnessSigningKey::from_seed("w", &[9; 32]).unwrap();
    let checkpoint = Checkpoint::open(CHECKPOINT, &log_keys(), ORIGIN).unwrap();
    assert!(signer.cosign(&checkpoint, u64::MAX).is_err());
}

#[test]
fn a_proof_file_of_a_record() {
    let text = format!("{INCLUSION_OF_1}{CHECKPOINT}");
    let file = InclusionFile::parse(&text).unwrap();
    assert_eq!(file.to_string(), text);
    assert_eq!(file.verify(&leaf_hash(&[1; 32]), &log_keys(), ORIGIN).unwrap().size(), 3);
    assert!(file.verify(&leaf_hash(&[2; 32]), &log_keys(), ORIGIN).is_err());
    assert!(
        InclusionFile::parse(&text.replace("index 1", "index 0"))
            .unwrap()
            .verify(&leaf_hash(&[1; 32]), &log_keys(), ORIGIN)
            .is_err()
    );

    let mut builder = InclusionBuilder::new(1, 3).unwrap();
    (0..3).for_each(|i| builder.push(leaf_hash(&[i; 32])));
    let (proof, _) = builder.finish().unwrap();
    assert_eq!(InclusionFile::new(&proof, file.note().clone(), None).unwrap(), file);

    let with_extra = InclusionFile::new(&proof, file.note().clone(), Some(b"lease 17".to_vec())).unwrap();
    assert_eq!(with_extra.to_string(), text.replace("index", "extra bGVhc2UgMTc=\nindex"));
    assert_eq!(InclusionFile::parse(&with_extra.to_string()).unwrap(), with_extra);
}

#[test]
fn a_proof_file_of_growth() {
    let text = format!("{CONSISTENCY_FROM_2}{CHECKPOINT}");
    let file = ConsistencyFile::parse(&text).unwrap();
    assert_eq!(file.to_string(), text);

    let old = Checkpoint::new(ORIGIN, 2, tree_of(2).root()).unwrap();
    assert_eq!(file.verify(&old, &log_keys()).unwrap().size(), 3);
    let fork = Checkpoint::new(ORIGIN, 2, [0; 32]).unwrap();
    assert!(file.verify(&fork, &log_keys()).is_err());
    let elsewhere = Checkpoint::new("example.com/other", 2, tree_of(2).root()).unwrap();
    assert!(file.verify(&elsewhere, &log_keys()).is_err());
    let earlier = Checkpoint::new(ORIGIN, 1, tree_of(1).root()).unwrap();
    let refusal = ProofFileError::WrongOldSize { expected: 1, found: 2 };
    assert_eq!(file.verify(&earlier, &log_keys()), Err(refusal));

    let mut builder = ConsistencyBuilder::new(2, 3).unwrap();
    (0..3).for_each(|i| builder.push(leaf_hash(&[i; 32])));
    let (proof, ..) = builder.finish().unwrap();
    assert_eq!(ConsistencyFile::new(&proof, file.note().clone()).unwrap(), file);
}

/// RFC 8032, 7.1, TEST 2.
#[test]
fn a_raw_signature() {
    let seed = unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb").try_into().unwrap();
    let key = SigningKey::from_seed("rfc8032", &seed).unwrap();
    let public = unhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    assert_eq!(key.public_key().as_slice(), public);
    assert_eq!(key.secret_seed(), seed);
    let signature = key.sign_raw(&[0x72]);
    assert_eq!(
        hex(&signature),
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    );
    assert!(verify_raw(&key.public_key(), &[0x72], &signature).is_ok());
    assert!(key.verifier().verify_raw(&[0x72], &signature).is_ok());
    assert!(verify_raw(&key.public_key(), &[0x73], &signature).is_err());
    let debug = format!("{key:?}");
    assert!(!debug.contains("76, 205") && !debug.contains("4ccd"), "{debug}");
}

/// The point of order one: under the ordinary equation, one signature holds for every message.
#[test]
fn a_weak_key_is_refused() {
    let mut identity = [0; 32];
    identity[0] = 1;
    let mut signature = [0; 64];
    signature[0] = 1;
    assert!(verify_raw(&identity, b"anything", &signature).is_err());
    assert_eq!(VerifierKey::new("weak", &identity), Err(KeyError::BadPublicKey));
}
