//! The bytes of records, fixed. A journal is kept for years: if one of these changes, journals that
//! exist can no longer be read, and the format needs a new version beside this one
//! (docs/reference/journal-format.md). Never update the expected bytes of a version in use.

use crate::samples;
use crate::sealing::{FakeSigner, encode, hex};
use expect_test::expect;
use leasehold_model::{Batch, Body, RawBatch, Record};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Lines of at most 60 bytes.
fn in_lines(bytes: &[u8]) -> String {
    bytes.chunks(60).map(|line| format!("    {}\n", hex(line))).collect()
}

#[test]
fn the_samples_cover_every_kind() {
    let covered: BTreeSet<u32> = samples::every_kind().iter().map(|record| record.body.kind()).collect();
    let missing: Vec<_> = Body::KINDS.iter().filter(|(code, _)| !covered.contains(code)).collect();
    assert!(missing.is_empty(), "no sample of {missing:?}");
}

/// What follows the link, for each sample.
#[test]
fn every_kind_has_these_bytes() {
    let shown: String = samples::every_kind()
        .iter()
        .map(|record| format!("{} {}\n{}", record.body.kind(), record.body.word(), in_lines(&encode(record))))
        .collect();
    expect![[r#""#]].assert_eq(&shown);
}

fn show_batch(records: &[Record]) -> String {
    let mut batch = Batch::new(records[0].sequence);
    records.iter().for_each(|record| batch.push(record));
    let head = batch.seal(&[0; 32], &FakeSigner).expect("the signer signs for everyone");
    let mut shown = format!("header\n{}", in_lines(&batch.bytes()[..16]));
    let read = RawBatch::read(batch.bytes()).expect("a batch that was just sealed");
    for frame in read.records() {
        let frame = frame.expect("a good frame");
        let _ = write!(shown, "record\n{}", in_lines(frame.bytes));
        for signature in frame.signatures.chunks(64) {
            let _ = write!(shown, "signature\n{}", in_lines(signature));
        }
        let _ = write!(shown, "hash\n{}", in_lines(&frame.hash()));
    }
    assert!(shown.ends_with(&format!("hash\n{}", in_lines(&head))), "the head is the last record's hash");
    shown
}

#[test]
fn a_sealed_batch_has_these_bytes_and_hashes() {
    let records = &samples::every_kind()[..2];
    expect![[r#""#]].assert_eq(&show_batch(records));
}

#[test]
fn a_signed_key_rotation_has_these_bytes() {
    expect![[r#""#]].assert_eq(&show_batch(&[samples::key_rotation(300)]));
}
