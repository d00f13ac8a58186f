//! What the parsers take and refuse. Nothing a stranger writes makes them panic, and what they take prints
//! as the same bytes again: one meaning, one spelling.

use leasehold_tlog::limits::{EXTENSION_LINES_MAX, NOTE_BYTES_MAX, NOTE_SIGNATURES_MAX, PROOF_HASHES_MAX};
use leasehold_tlog::{
    Checkpoint, CheckpointError, ConsistencyFile, InclusionFile, Note, NoteError, NoteSignature, SigningKey,
    VerifierKey, WitnessKey, empty_root,
};
use proptest::prelude::*;

const GOOD_NOTE: &str = "text\n\n— example.com/log AAAAAAA=\n";
const ROOT: &str = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";

/// Parses `text` as everything there is; whatever takes it must print it again unchanged. How many took it.
fn check_round_trips(text: &str) -> usize {
    let printed = [
        Note::parse(text).ok().map(|it| it.to_string()),
        NoteSignature::parse(text).map(|it| it.to_string()),
        Checkpoint::from_body(text).ok().map(|it| it.body()),
        InclusionFile::parse(text).ok().map(|it| it.to_string()),
        ConsistencyFile::parse(text).ok().map(|it| it.to_string()),
        text.parse::<VerifierKey>().ok().map(|it| it.to_string()),
        text.parse::<WitnessKey>().ok().map(|it| it.to_string()),
    ];
    printed.into_iter().flatten().inspect(|printed| assert_eq!(printed, text)).count()
}

/// Texts made of the pieces the formats are made of, so that a good part of them parses.
fn near_texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        2 => Just("— example.com/log AAAAAAA=\n".to_owned()),
        2 => Just(format!("{ROOT}\n")),
        1 => Just("c2sp.org/tlog-proof@v1\n".to_owned()),
        1 => Just("extra AA==\n".to_owned()),
        1 => (0_u64..200).prop_map(|n| format!("index {n}\n")),
        1 => (0_u64..200).prop_map(|n| format!("old {n}\n")),
        1 => (0_u64..200).prop_map(|n| format!("{n}\n")),
        1 => Just("origin\n".to_owned()),
        1 => "\\PC{0,6}",
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_round_trip_or_fail(bytes: Vec<u8>) {
        check_round_trips(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn near_texts_round_trip_or_fail(text in near_texts()) {
        check_round_trips(&text);
    }

    /// A file that parses, with one character changed, still parses to itself or not at all.
    #[test]
    fn slightly_wrong_files_round_trip_or_fail(at: prop::sample::Index, to: char, hashes in 0_usize..4) {
        let lines = format!("{ROOT}\n").repeat(hashes);
        for good in [
            GOOD_NOTE.to_owned(),
            format!("log\n7\n{ROOT}\nmore\n"),
            format!("c2sp.org/tlog-proof@v1\nextra AA==\nindex 3\n{lines}\n{GOOD_NOTE}"),
            format!("old 3\n{lines}\n{GOOD_NOTE}"),
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW".to_owned(),
        ] {
            assert!(check_round_trips(&good) > 0, "{good:?}");
            let mut characters: Vec<char> = good.chars().collect();
            let at = at.index(characters.len());
            characters[at] = to;
            check_round_trips(&characters.iter().collect::<String>());
            characters.remove(at);
            check_round_trips(&characters.into_iter().collect::<String>());
        }
    }

    #[test]
    fn what_is_made_can_be_read(origin in "[!-~]{1,40}", size in 1_u64..=(1 << 62), root: [u8; 32], seed: [u8; 32],
                                extensions in prop::collection::vec("[ -~]{1,20}", 0..4)) {
        let mut checkpoint = Checkpoint::new(&origin, size, root).unwrap();
        extensions.iter().for_each(|line| checkpoint.add_extension(line).unwrap());
        let key = SigningKey::from_seed("example.com/log", &seed).unwrap();
        let note = checkpoint.sign(&key);
        prop_assert_eq!(Checkpoint::open(&note, &[key.verifier()], &origin).unwrap(), checkpoint);
        assert_eq!(check_round_trips(&note), 1);
        assert_eq!(check_round_trips(&key.verifier().to_string()), 1);
    }

    /// Wherever a bit flips in a signed checkpoint, it is no longer believed.
    #[test]
    fn a_flipped_bit_is_seen(at: prop::sample::Index, bit in 0_u8..8) {
        let key = SigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
        let checkpoint = Checkpoint::new("example.com/log", 12, [5; 32]).unwrap();
        let mut bytes = checkpoint.sign(&key).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(text) = String::from_utf8(bytes) {
            prop_assert!(Checkpoint::open(&text, &[key.verifier()], "example.com/log").is_err());
        }
    }
}

#[test]
fn notes_out_of_order() {
    use NoteError as E;
    let cases = [
        ("", E::NoSignatures),
        ("text\n", E::NoSignatures),
        ("text\n\n", E::NoSignatures),
        ("text\n— example.com/log AAAAAAA=\n", E::NoSignatures),
        ("text\n\n— example.com/log AAAAAAA=", E::NoSignatures),
        ("te\txt\n\n— example.com/log AAAAAAA=\n", E::ControlCharacter),
        ("text\r\n\n— example.com/log AAAAAAA=\n", E::ControlCharacter),
        ("text\n\n- example.com/log AAAAAAA=\n", E::MalformedSignature { line: 1 }),
        ("text\n\n— example.com/log AAAAAAA=\nmore\n", E::MalformedSignature { line: 2 }),
        ("text\n\n— a+b AAAAAAA=\n", E::MalformedSignature { line: 1 }),
        ("text\n\n—  AAAAAAA=\n", E::MalformedSignature { line: 1 }),
        ("text\n\n— a\u{a0}b AAAAAAA=\n", E::MalformedSignature { line: 1 }),
        // Only a key id; missing padding; stray bits in the last character; trailing space.
        ("text\n\n— log AAAAAA==\n", E::MalformedSignature { line: 1 }),
        ("text\n\n— log AAAAAAA\n", E::MalformedSignature { line: 1 }),
        ("text\n\n— log AAAAAAB=\n", E::MalformedSignature { line: 1 }),
        ("text\n\n— log AAAAAAA= \n", E::MalformedSignature { line: 1 }),
    ];
    for (text, expected) in cases {
        assert_eq!(Note::parse(text), Err(expected), "{text:?}");
    }
    assert_eq!(Note::unsigned("no newline"), Err(E::UnfinishedText));

    let blank_lines = "a\n\n\nb\n\n\n— log AAAAAAA=\n";
    assert_eq!(Note::parse(blank_lines).unwrap().text(), "a\n\n\nb\n\n");
}

#[test]
fn notes_at_their_limits() {
    let line = "— log AAAAAAA=\n";
    let most = format!("text\n\n{}", line.repeat(NOTE_SIGNATURES_MAX));
    let mut note = Note::parse(&most).unwrap();
    assert_eq!(Note::parse(&format!("{most}{line}")), Err(NoteError::TooManySignatures));
    let one_more = NoteSignature::parse(line.trim_end()).unwrap();
    assert_eq!(note.add_signature(one_more.clone()), Err(NoteError::TooManySignatures));
    assert_eq!(note.to_string(), most);

    let longest = "x".repeat(NOTE_BYTES_MAX - line.len() - 2) + "\n\n" + line;
    assert!(Note::parse(&longest).is_ok());
    assert_eq!(Note::parse(&format!("x{longest}")), Err(NoteError::TooLong { bytes: NOTE_BYTES_MAX + 1 }));
    let mut full = Note::unsigned(&("x".repeat(NOTE_BYTES_MAX - 1) + "\n")).unwrap();
    assert!(matches!(full.add_signature(one_more), Err(NoteError::TooLong { .. })));
    assert!(full.signatures().is_empty());
}

#[test]
fn signatures_known_unknown_and_false() {
    let ours = SigningKey::from_seed("example.com/log", &[1; 32]).unwrap();
    let theirs = SigningKey::from_seed("example.com/witness", &[2; 32]).unwrap();
    // The same name with another key is another key.
    let namesake = SigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
    let text = "text\n";
    let note = |lines: &[NoteSignature]| {
        let mut note = Note::unsigned(text).unwrap();
        lines.iter().for_each(|line| note.add_signature(line.clone()).unwrap());
        note
    };
    let keys = [ours.verifier()];
    let (good, other, same_name) =
        (ours.sign_note_text(text), theirs.sign_note_text(text), namesake.sign_note_text(text));
    let false_one = ours.sign_note_text("another text\n");

    assert_eq!(note(&[other.clone(), same_name.clone(), good.clone()]).verify(&keys).unwrap(), [&keys[0]]);
    assert_eq!(note(&[good.clone(), good.clone()]).verify(&keys).unwrap().len(), 1);
    assert_eq!(note(&[other, same_name]).verify(&keys), Err(NoteError::NoKnownSignature));
    assert_eq!(note(&[]).verify(&keys), Err(NoteError::NoKnownSignature));
    let refusal = NoteError::BadSignature { name: "example.com/log".to_owned(), key_id: keys[0].id() };
    assert_eq!(note(&[good, false_one]).verify(&keys), Err(refusal));
}

#[test]
fn key_names() {
    for good in ["a", "example.com/log42", "ключ", "a-b_c.d"] {
        assert!(SigningKey::from_seed(good, &[0; 32]).is_ok(), "{good:?}");
    }
    for bad in ["", " ", "a b", "a+b", "a\nb", "a\u{2003}b", "a\u{1}b", &"x".repeat(256)] {
        assert!(SigningKey::from_seed(bad, &[0; 32]).is_err(), "{bad:?}");
    }
}

#[test]
fn verifier_keys_out_of_order() {
    let good = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    assert!(good.parse::<VerifierKey>().is_ok());
    for bad in [
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        "PeterNeumann+c74f20a3+",
        "PeterNeumann+c74f20a3+AQ==",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PaterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW ",
    ] {
        assert!(bad.parse::<VerifierKey>().is_err(), "{bad:?}");
    }
}

#[test]
fn checkpoints_out_of_order() {
    use CheckpointError as E;
    let cases = [
        (String::new(), E::MissingLine),
        ("\n".to_owned(), E::MissingLine),
        ("log\n7\n".to_owned(), E::MissingLine),
        (format!("log\n7\n{ROOT}"), E::MissingLine),
        (format!("\n7\n{ROOT}\n"), E::BadOrigin),
        (format!("{}\n7\n{ROOT}\n", "x".repeat(256)), E::BadOrigin),
        (format!("log\n07\n{ROOT}\n"), E::BadSize),
        (format!("log\n+7\n{ROOT}\n"), E::BadSize),
        (format!("log\n-7\n{ROOT}\n"), E::BadSize),
        (format!("log\n\n{ROOT}\n"), E::BadSize),
        (format!("log\n7 \n{ROOT}\n"), E::BadSize),
        (format!("log\n٧\n{ROOT}\n"), E::BadSize),
        (format!("log\n18446744073709551616\n{ROOT}\n"), E::BadSize),
        (format!("log\n18446744073709551615\n{ROOT}\n"), E::BadSize),
        ("log\n7\nAAAA\n".to_owned(), E::BadRoot),
        (format!("log\n7\n {ROOT}\n"), E::BadRoot),
        (format!("log\n7\n{}\n", ROOT.trim_end_matches('=')), E::BadRoot),
        (format!("log\n7\n{ROOT}\n\n"), E::BadExtension),
        (format!("log\n7\n{ROOT}\n{}", "x\n".repeat(EXTENSION_LINES_MAX + 1)), E::BadExtension),
        (format!("log\n0\n{ROOT}\n"), E::EmptyTreeWithARoot),
    ];
    for (body, expected) in cases {
        assert_eq!(Checkpoint::from_body(&body), Err(expected), "{body:?}");
    }
    assert!(Checkpoint::new("log", 0, empty_root()).is_ok());
    assert_eq!(Checkpoint::new("two\nlines", 1, [0; 32]), Err(E::BadOrigin));
    let extended = Checkpoint::from_body(&format!("log\n7\n{ROOT}\none\n two \n")).unwrap();
    assert_eq!(extended.extensions(), ["one", " two "]);
}

#[test]
fn proof_files_out_of_order() {
    let header = "c2sp.org/tlog-proof@v1\n";
    let lines = |n: usize| format!("{ROOT}\n").repeat(n);
    assert!(InclusionFile::parse(&format!("{header}index 0\n\n{GOOD_NOTE}")).is_ok());
    assert!(InclusionFile::parse(&format!("{header}index 0\n{}\n{GOOD_NOTE}", lines(PROOF_HASHES_MAX))).is_ok());
    for bad in [
        format!("c2sp.org/tlog-proof@v2\nindex 0\n\n{GOOD_NOTE}"),
        format!("{header}\n{GOOD_NOTE}"),
        format!("{header}index 00\n\n{GOOD_NOTE}"),
        format!("{header}index  0\n\n{GOOD_NOTE}"),
        format!("{header}index 0\nextra AA==\n\n{GOOD_NOTE}"),
        format!("{header}extra \nindex 0\n\n{GOOD_NOTE}"),
        format!("{header}extra AB==\nindex 0\n\n{GOOD_NOTE}"),
        format!("{header}index 0\nAAAA\n\n{GOOD_NOTE}"),
        format!("{header}index 0\n{}\n{GOOD_NOTE}", lines(PROOF_HASHES_MAX + 1)),
        format!("{header}index 0\n{}", lines(1)),
        format!("{header}index 0\n\ntext\n"),
    ] {
        assert!(InclusionFile::parse(&bad).is_err(), "{bad:?}");
    }
    assert!(ConsistencyFile::parse(&format!("old 0\n\n{GOOD_NOTE}")).is_ok());
    for bad in [
        format!("new 0\n\n{GOOD_NOTE}"),
        format!("old -1\n\n{GOOD_NOTE}"),
        format!("old 1\n{}\n{GOOD_NOTE}", lines(PROOF_HASHES_MAX + 1)),
        format!("\n\n{GOOD_NOTE}"),
    ] {
        assert!(ConsistencyFile::parse(&bad).is_err(), "{bad:?}");
    }
}
