//! Whatever lies in the folder, the program answers: it does not panic, hang, or say yes to less than was pinned.

mod common;

use common::*;
use leasehold_verify::Trust;
use proptest::prelude::*;
use std::fs;

/// What someone or something did to a file.
#[derive(Clone, Debug)]
enum Mischief {
    Replace(Vec<u8>),
    Truncate(usize),
    Overwrite(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Copy { from: usize, to: usize, bytes: usize },
}

fn mischief() -> impl Strategy<Value = Mischief> {
    let noise = || prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        noise().prop_map(Mischief::Replace),
        any::<usize>().prop_map(Mischief::Truncate),
        (any::<usize>(), noise()).prop_map(|(at, bytes)| Mischief::Overwrite(at, bytes)),
        (any::<usize>(), noise()).prop_map(|(at, bytes)| Mischief::Insert(at, bytes)),
        (any::<usize>(), 0_usize..400).prop_map(|(at, bytes)| Mischief::Remove(at, bytes)),
        (any::<usize>(), any::<usize>(), 0_usize..400).prop_map(|(from, to, bytes)| Mischief::Copy { from, to, bytes }),
    ]
}

impl Mischief {
    fn apply(&self, file: &mut Vec<u8>) {
        let place = |at: usize| at % (file.len() + 1);
        let run = |at: usize, bytes: usize| place(at)..(place(at) + bytes).min(file.len());
        match self {
            Self::Replace(bytes) => *file = bytes.clone(),
            Self::Truncate(at) => file.truncate(place(*at)),
            Self::Overwrite(at, bytes) => {
                let run = run(*at, bytes.len());
                let length = run.len();
                file[run].copy_from_slice(&bytes[..length]);
            }
            Self::Insert(at, bytes) => {
                let at = place(*at);
                file.splice(at..at, bytes.iter().copied());
            }
            Self::Remove(at, bytes) => drop(file.drain(run(*at, *bytes))),
            Self::Copy { from, to, bytes } => {
                let piece = file[run(*from, *bytes)].to_vec();
                let run = run(*to, piece.len());
                file.splice(run, piece);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, ..ProptestConfig::default() })]
    #[test]
    fn a_damaged_folder_is_answered(all in prop::collection::vec(prop::collection::vec((any::<usize>(), mischief()), 1..4), 400)) {
        let mut sample = Sample::new();
        let note = sample.note();
        sample.trust.pin(&note).unwrap();
        let root = sample.verify().unwrap().root;
        let mut files = vec![sample.anchor()];
        files.extend(fs::read_dir(sample.path().join("journal")).unwrap().map(|entry| entry.unwrap().path()));
        files.sort();
        for damage in all {
            let good: Vec<_> = files.iter().map(|path| fs::read(path).unwrap()).collect();
            for (which, mischief) in &damage {
                let path = &files[which % files.len()];
                let mut bytes = fs::read(path).unwrap();
                mischief.apply(&mut bytes);
                put(path, &bytes);
            }
            match sample.verify_with(2) {
                Ok(report) => prop_assert!(report.records >= ANCHORED && (report.records < RECORDS || report.root == root)),
                Err(failure) => prop_assert!(!failure.to_string().is_empty() && !failure.is_unreadable()),
            }
            files.iter().zip(good).for_each(|(path, bytes)| put(path, &bytes));
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_a_trust_file_or_is_not(text in "(leasehold-trust v1\n)?(origin [a-c]\n|key .*\n|witness .*\n|checkpoint\n|#.*\n|.*\n){0,8}") {
        if let Ok(trust) = Trust::parse(&text) {
            prop_assert_eq!(Trust::parse(&trust.to_text()).unwrap(), trust);
        }
    }
}

#[test]
fn a_file_made_of_beginnings_of_batches_does_not_take_for_ever() {
    let sample = Sample::new();
    let last = sample.verify().unwrap().segments.unwrap().1;
    let mut bytes = Opened::read(&sample.segment(last)).encode();
    for _ in 0..300_000 {
        bytes.extend(b"LHB2");
        bytes.extend((12_000_000_u32).to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([7; 4]);
    }
    bytes.resize(bytes.len() + 13_000_000, 1);
    fs::write(sample.segment(last), bytes).unwrap();
    sample.must_fail("bad_checksum", Some(RECORDS));
}

#[cfg(unix)]
#[test]
fn things_that_are_not_files_are_not_read() {
    let sample = Sample::new();
    fs::remove_file(sample.segment(2)).unwrap();
    fs::create_dir(sample.segment(2)).unwrap();
    sample.must_fail("not_a_file", None);

    let sample = Sample::new();
    fs::remove_file(sample.anchor()).unwrap();
    std::os::unix::fs::symlink("/dev/zero", sample.anchor()).unwrap();
    sample.must_fail("not_a_file", None);

    let sample = Sample::new();
    fs::remove_file(sample.tree(2)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", sample.tree(2)).unwrap();
    sample.must_fail("not_a_file", None);

    // Names that are none of ours are passed over.
    let sample = Sample::new();
    for name in ["00000002.seg.tmp", "2.seg", "0000000x.seg", "00000000.seg", "notes.txt"] {
        fs::write(sample.path().join("journal").join(name), "x").unwrap();
    }
    sample.verify().unwrap();
}

#[test]
fn a_folder_without_a_journal_is_said_to_be_one() {
    let sample = Sample::new();
    fs::remove_dir_all(sample.path().join("journal")).unwrap();
    sample.must_fail("no_journal", None);
    fs::create_dir(sample.path().join("journal")).unwrap();
    sample.must_fail("anchor_ahead", Some(0));
}
