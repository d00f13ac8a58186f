//! Every attack of SEMANTICS 6 on files that the real journal wrote.

mod common;

use common::*;
use leasehold_tlog::{Frontier, SigningKey, WitnessSigningKey, leaf_hash};
use leasehold_verify::{ProvedBy, Rotation, TornTail, Trust};
use std::fs;
use std::io::{Seek, SeekFrom, Write};

#[test]
fn an_honest_journal_is_in_order() {
    let sample = Sample::new();
    let report = sample.verify().unwrap();
    assert_eq!((report.records, report.first_sequence, report.checkpoint_size), (RECORDS, 0, ANCHORED));
    assert_eq!((report.complete_up_to, &report.proved_by), (ANCHORED, &ProvedBy::Anchor));
    assert_eq!(report.stamps, Some((stamp(0), stamp(RECORDS - 1))));
    let ids = [FIRST_SEED, SECOND_SEED].map(|seed| key(seed).verifier().id());
    assert_eq!(report.keys, ids);
    assert_eq!(report.rotations, [Rotation { sequence: ROTATED_AT, old_key: ids[0], new_key: ids[1] }]);
    assert!(report.segments.unwrap().1 >= 3 && report.torn_tail.is_none() && !report.anchor_slot_damaged);
    assert_eq!(report.newest_checkpoint, sample.note());

    let threaded = sample.verify_with(4).unwrap();
    assert_eq!((threaded.head, threaded.root, threaded.bytes), (report.head, report.root, report.bytes));
}

#[test]
fn every_byte_counts() {
    let sample = Sample::new();
    let report = sample.verify().unwrap();
    let last = report.segments.unwrap().1;
    // Of the last segment, the batch after the anchor and the padding may be torn; a segment not begun is padding.
    let last_segment = Opened::read(&sample.segment(last));
    let anchored = last_segment.batches.iter().take_while(|batch| batch[0].sequence() < ANCHORED);
    let counts_up_to = 96 + anchored.map(|batch| encode_batch(batch).len()).sum::<usize>();
    let mut files = vec![(sample.anchor(), 0)];
    for entry in fs::read_dir(sample.path().join("journal")).unwrap() {
        let path = entry.unwrap().path();
        let excused_from = match &path {
            path if *path == sample.segment(last) => counts_up_to,
            path if *path == sample.segment(last + 1) => 0,
            _ => usize::MAX,
        };
        files.push((path, excused_from));
    }
    assert!(files.iter().any(|(path, _)| path.extension().is_some_and(|e| e == "tree")));
    for (path, excused_from) in files {
        let good = fs::read(&path).unwrap();
        // Zeroes after zeroes are all alike.
        let flips = (0..good.len()).filter(|at| good[*at] != 0 || at % 61 == 0 || good[at.saturating_sub(1)] != 0);
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut set = |at: usize, byte: u8| {
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        for at in flips {
            set(at, good[at] ^ 0x04);
            let place = format!("{} byte {at}", path.display());
            match sample.verify() {
                Err(failure) => assert!(!failure.is_unreadable(), "{place}: {failure}"),
                // The other slot of the anchor counts then, and that is said.
                Ok(report) if path == sample.anchor() => assert!(report.anchor_slot_damaged, "{place}"),
                Ok(report) => {
                    assert!(at >= excused_from, "{place} was not noticed");
                    assert!(report.torn_tail.is_some() && report.records >= ANCHORED, "{place}");
                }
            }
            set(at, good[at]);
        }
    }
    sample.verify().unwrap();
}

#[test]
fn an_altered_record_is_named() {
    for sequence in 1..RECORDS {
        let sample = Sample::new();
        // The last byte of a workload's name, or of an unknown body.
        sample.edit_record(sequence, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
        match sequence {
            NOTARISED_AT | ROTATED_AT => drop(sample.must_fail("bad_record_signature", Some(sequence))),
            // Nothing follows it, and the anchor does not reach that far: it would be a different last record.
            last if last == RECORDS - 1 => assert_eq!(sample.verify().unwrap().records, RECORDS),
            _ => drop(sample.must_fail("altered_record", Some(sequence))),
        }
    }
}

#[test]
fn an_altered_byte_without_a_fitting_checksum_is_still_named() {
    let sample = Sample::new();
    let path = sample.segment(1);
    let mut bytes = fs::read(&path).unwrap();
    // Three records to a batch: this is the middle one of the second.
    let at = bytes.windows(5).position(|window| window == b"job 4").unwrap() + 4;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    sample.must_fail("bad_checksum", Some(4));
}

#[test]
fn an_altered_link_is_named() {
    for sequence in [0, 4, 6, 20] {
        let sample = Sample::new();
        sample.edit_record(sequence, |frame| frame.bytes[3] ^= 1);
        sample.must_fail("broken_link", Some(sequence));
    }
}

#[test]
fn a_removed_record_is_missed() {
    for sequence in 0..RECORDS - 1 {
        let sample = Sample::new();
        sample.edit(sample.segment_of(sequence), |segment| {
            let (batch, frame) = segment.find(sequence).unwrap();
            segment.batches[batch].remove(frame);
        });
        sample.must_fail("gap", Some(sequence));
    }
}

#[test]
fn an_inserted_record_stands_out() {
    let sample = Sample::new();
    sample.edit(sample.segment_of(10), |segment| {
        let (batch, frame) = segment.find(10).unwrap();
        let mut forged = segment.batches[batch][frame].clone();
        *forged.bytes.last_mut().unwrap() ^= 1;
        segment.batches[batch].insert(frame, forged);
    });
    sample.must_fail("out_of_order", Some(11));
}

#[test]
fn swapped_records_stand_out() {
    let sample = Sample::new();
    sample.edit(sample.segment_of(4), |segment| segment.batches[1].swap(0, 1));
    sample.must_fail("gap", Some(3));

    let sample = Sample::new();
    sample.edit(1, |segment| segment.batches.swap(1, 2));
    sample.must_fail("gap", Some(3));
}

/// Cuts every record from `sequence` on, and every later segment.
fn cut(sample: &Sample, sequence: u64) {
    let segment = sample.segment_of(sequence);
    for later in segment + 1..20 {
        let _ = fs::remove_file(sample.segment(later));
        let _ = fs::remove_file(sample.tree(later));
    }
    sample.edit(segment, |opened| {
        for batch in &mut opened.batches {
            batch.retain(|frame| frame.sequence() < sequence);
        }
    });
}

#[test]
fn a_cut_tail_shows_in_the_anchor() {
    for sequence in [1, 13, 20, ANCHORED - 1] {
        let sample = Sample::new();
        cut(&sample, sequence);
        sample.must_fail("anchor_ahead", Some(sequence));
    }
    // Records that nobody signed for can be cut; the report says that it would not show.
    let sample = Sample::new();
    cut(&sample, ANCHORED);
    assert_eq!(sample.verify().unwrap().records, ANCHORED);
}

/// Puts an anchor of a smaller size in place, properly signed: an old one, or one by whoever has the key.
fn roll_back_anchor(sample: &Sample, size: u64) {
    let mut tree = Frontier::new();
    let mut head = [0; 32];
    for sequence in 0..size {
        let opened = Opened::read(&sample.segment(sample.segment_of(sequence)));
        let (batch, frame) = opened.find(sequence).unwrap();
        head = opened.batches[batch][frame].hash();
        tree.push(leaf_hash(&head));
    }
    let seed = if size > ROTATED_AT { SECOND_SEED } else { FIRST_SEED };
    write_anchor(sample, &tree, &head, &key(seed));
}

#[test]
fn a_tail_cut_with_an_older_anchor_shows_in_the_pinned_checkpoint() {
    let mut sample = Sample::new();
    let note = sample.note();
    roll_back_anchor(&sample, 20);
    cut(&sample, 20);
    let report = sample.verify().unwrap();
    assert_eq!((report.records, report.proved_by), (20, ProvedBy::Anchor));

    sample.trust.pin(&note).unwrap();
    sample.must_fail("pinned_ahead", Some(20));
}

#[test]
fn a_tree_file_left_behind_betrays_a_cut() {
    let sample = Sample::new();
    let last = sample.verify().unwrap().segments.unwrap().1;
    let first = Opened::read(&sample.segment(last)).batches[0][0].sequence();
    roll_back_anchor(&sample, first);
    let tree = fs::read(sample.tree(last)).unwrap();
    cut(&sample, first);
    fs::remove_file(sample.segment(last)).unwrap();
    fs::remove_file(sample.tree(last)).unwrap();
    sample.verify().unwrap();
    fs::write(sample.tree(last), &tree).unwrap();
    sample.must_fail("missing_segment", None);

    roll_back_anchor(&sample, first - 1);
    cut(&sample, first - 1);
    fs::write(sample.tree(last), &tree).unwrap();
    sample.must_fail("tree_ahead", None);
}

/// A rewrite that changes what record 20 says.
fn change_record_20(frames: &mut [Frame]) {
    for frame in frames.iter_mut().filter(|frame| frame.sequence() == 20) {
        *frame.bytes.last_mut().unwrap() ^= 1;
    }
}

#[test]
fn a_rehashed_rewrite_without_the_key_fails_at_a_signature() {
    // Signed with a key of the attacker's own.
    let sample = Sample::new();
    rewrite(&sample, &[SigningKey::from_seed(ORIGIN, &[77; 32]).unwrap()], change_record_20);
    sample.must_fail("not_signed", None);

    // The signed texts left as they were.

    let sample = Sample::new();
    let (anchor, trees) = (fs::read(sample.anchor()).unwrap(), [2, 3, 4].map(|n| fs::read(sample.tree(n)).ok()));
    rewrite(&sample, &operator_keys(), change_record_20);
    fs::write(sample.anchor(), anchor).unwrap();
    for (number, tree) in (2..).zip(trees) {
        if let Some(tree) = tree {
            fs::write(sample.tree(number), tree).unwrap();
        }
    }
    let failure = sample.must_fail("root_mismatch", None);
    assert!(failure.agreed_up_to <= 20, "{failure}");

    // The root in the anchor made to fit, the signature not.
    let root = sample.copy();
    (2..6).for_each(|n| drop(fs::remove_file(root.tree(n))));
    let forged = {
        let mut tree = Frontier::new();
        let mut head = [0; 32];
        for sequence in 0..ANCHORED {
            let opened = Opened::read(&root.segment(root.segment_of(sequence)));
            let (batch, frame) = opened.find(sequence).unwrap();
            head = opened.batches[batch][frame].hash();
            tree.push(leaf_hash(&head));
        }
        let honest = root.anchor_text();
        let signature = honest.lines().find(|line| line.starts_with('—')).unwrap().to_owned();
        write_anchor(&root, &tree, &head, &key(SECOND_SEED));
        let text = root.anchor_text();
        let own = text.lines().find(|line| line.starts_with('—')).unwrap().to_owned();
        text.replace(&own, &signature)
    };
    root.forge_anchor(&forged);
    root.must_fail("bad_signature", None);
}

#[test]
fn a_rewrite_with_the_operators_key_shows_in_the_pinned_checkpoint() {
    let mut sample = Sample::new();
    let note = sample.note();
    rewrite(&sample, &operator_keys(), change_record_20);
    let report = sample.verify().unwrap();
    assert_eq!(report.proved_by, ProvedBy::Anchor, "whoever has the key can rewrite what nobody has pinned");

    sample.trust.pin(&note).unwrap();
    sample.must_fail("pinned_mismatch", None);
}

#[test]
fn a_fork_shows_whichever_side_was_pinned() {
    let mut ours = Sample::new();
    let mut theirs = ours.copy();
    rewrite(&theirs, &operator_keys(), change_record_20);
    let (our_note, their_note) = (ours.note(), theirs.note());
    ours.verify().unwrap();
    theirs.verify().unwrap();
    ours.trust.pin(&our_note).unwrap();
    theirs.trust.pin(&their_note).unwrap();
    assert_eq!(ours.verify().unwrap().proved_by, ProvedBy::Pinned);
    assert_eq!(theirs.verify().unwrap().proved_by, ProvedBy::Pinned);
    // The other side holds all records under its checkpoint, this one a few less.
    ours.trust.pin(&their_note).unwrap();
    theirs.trust.pin(&our_note).unwrap();
    ours.must_fail("pinned_mismatch", None);
    theirs.must_fail("pinned_mismatch", None);
}

#[test]
fn a_stripped_signature_is_missed() {
    for sequence in [NOTARISED_AT, ROTATED_AT] {
        let sample = Sample::new();
        sample.edit_record(sequence, |frame| frame.signatures.clear());
        sample.must_fail("stripped_signature", Some(sequence));
    }
    let sample = Sample::new();
    sample.edit_record(ROTATED_AT, |frame| frame.signatures.truncate(64));
    sample.must_fail("stripped_signature", Some(ROTATED_AT));

    let sample = Sample::new();
    sample.edit_record(3, |frame| frame.signatures = vec![0; 64]);
    sample.must_fail("stray_signature", Some(3));
}

/// Gives the rotation record another body and other signers, everything else as it was.
fn replace_rotation(sample: &Sample, forged: &leasehold_model::Record, keys: &[SigningKey]) {
    let mut batch = leasehold_model::Batch::new(forged.sequence);
    batch.push(forged);
    let bytes = batch.bytes()[48..].to_vec();
    let word = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let frame = Frame { bytes: bytes[4..4 + (word >> 2)].to_vec(), signatures: vec![0; 64 * (word & 3)] };
    rewrite(sample, keys, |frames| {
        for old in frames.iter_mut().filter(|old| old.sequence() == forged.sequence) {
            *old = frame.clone();
        }
    });
}

#[test]
fn a_rotation_counts_only_if_both_keys_sign_and_the_old_one_is_in_force() {
    let mut keys = operator_keys();
    let mallory = SigningKey::from_seed(ORIGIN, &[77; 32]).unwrap();
    keys.push(mallory.clone());

    // By nobody.
    let sample = Sample::new();
    let mut forged = rotation(ROTATED_AT);
    forged.signers.clear();
    replace_rotation(&sample, &forged, &keys);
    sample.must_fail("bad_rotation", Some(ROTATED_AT));

    // By the new key alone.
    let sample = Sample::new();
    let mut forged = rotation(ROTATED_AT);
    forged.signers.remove(0);
    replace_rotation(&sample, &forged, &keys);
    sample.must_fail("bad_rotation", Some(ROTATED_AT));

    // From a key that was never in force.
    let sample = Sample::new();
    let (old_key, new_key) = (mallory.public_key(), key(SECOND_SEED).public_key());
    let mut forged = rotation(ROTATED_AT);
    forged.body = leasehold_model::body::KeyRotated { old_key, new_key }.into();
    forged.signers = [old_key, new_key].into_iter().collect();
    replace_rotation(&sample, &forged, &keys);
    sample.must_fail("bad_rotation", Some(ROTATED_AT));

    // With a false signature in the old key's name.
    let sample = Sample::new();
    sample.edit_record(ROTATED_AT, |frame| frame.signatures[5] ^= 1);
    sample.must_fail("bad_record_signature", Some(ROTATED_AT));
}

#[test]
fn the_old_key_does_not_sign_after_its_rotation() {
    let sample = Sample::new();
    let text = sample.anchor_text();
    let checkpoint = leasehold_tlog::Checkpoint::from_body(leasehold_tlog::Note::parse(&sample.note()).unwrap().text());
    let forged = checkpoint.unwrap().sign(&key(FIRST_SEED));
    sample.forge_anchor(&text.replace(&sample.note(), &forged));
    sample.must_fail("not_signed", None);
}

#[test]
fn a_wrong_origin_is_refused() {
    let mut sample = Sample::new();
    let stranger = SigningKey::from_seed("other.example", &FIRST_SEED).unwrap();
    sample.trust = Trust::new(stranger.verifier());
    sample.must_fail("wrong_origin", None);

    // The anchor says what the trust file does; the segments do not.
    let text = sample.anchor_text().replace(ORIGIN, "other.example");
    sample.forge_anchor(&text);
    let failure = sample.must_fail("wrong_origin", None);
    assert_eq!(failure.segment, Some(1));

    // The segments' headers too; the genesis record does not.
    for number in 1..=sample_segments(&sample) {
        sample.edit(number, |segment| {
            use sha2::Digest;
            segment.header[56..88].copy_from_slice(&sha2::Sha256::digest("other.example"));
        });
    }
    sample.must_fail("wrong_origin", Some(0));
}

fn sample_segments(sample: &Sample) -> u32 {
    (1..).find(|n| fs::read(sample.segment(n + 1)).map_or(true, |b| b.iter().all(|b| *b == 0))).unwrap()
}

#[test]
fn a_key_that_is_not_trusted_is_refused() {
    let mut sample = Sample::new();
    sample.trust = Trust::new(key(SECOND_SEED).verifier());
    sample.must_fail("unknown_key", Some(0));
}

#[test]
fn a_newer_format_is_told_apart_from_damage() {
    let sample = Sample::new();
    sample.edit(2, |segment| segment.header[8] = 3);
    assert_eq!(sample.must_fail("newer_format", Some(sample_first(&sample, 2))).segment, Some(2));

    let sample = Sample::new();
    let text = sample.anchor_text().replace("leasehold-anchor v2", "leasehold-anchor v3");
    sample.forge_anchor(&text);
    sample.must_fail("newer_format", None);

    let sample = Sample::new();
    sample.edit(2, |segment| segment.header[8] = 0);
    sample.must_fail("bad_segment_header", Some(sample_first(&sample, 2)));
}

fn sample_first(sample: &Sample, segment: u32) -> u64 {
    Opened::read(&sample.segment(segment)).batches[0][0].sequence()
}

#[test]
fn a_missing_segment_is_missed() {
    let sample = Sample::new();
    fs::remove_file(sample.segment(2)).unwrap();
    sample.must_fail("missing_segment", None);

    let sample = Sample::new();
    fs::write(sample.segment(2), [0; 1200]).unwrap();
    sample.must_fail("bad_segment_header", Some(sample_first(&Sample::new(), 2)));

    let sample = Sample::new();
    sample.edit(2, |segment| segment.batches.clear());
    sample.must_fail("empty_segment", Some(sample_first(&Sample::new(), 2)));

    // A number that no journal reaches, at the very beginning.
    let sample = Sample::new();
    (1..3).for_each(|n| fs::remove_file(sample.segment(n)).unwrap());
    sample.edit(3, |segment| segment.header[16..24].fill(0xff));
    sample.must_fail("bad_segment_header", None);

    // A copy of one segment in the place of another.
    let sample = Sample::new();
    fs::copy(sample.segment(3), sample.segment(2)).unwrap();
    sample.must_fail("bad_segment_header", Some(sample_first(&Sample::new(), 2)));
}

#[test]
fn archived_segments_are_found_or_done_without() {
    let mut sample = Sample::new();
    let whole = sample.verify().unwrap();
    let archive = tempfile::tempdir().unwrap();
    fs::rename(sample.segment(1), archive.path().join("00000001.seg")).unwrap();
    let first = sample_first(&sample, 2);
    let report = sample.verify().unwrap();
    assert_eq!((report.first_sequence, report.root), (first, whole.root));

    sample.archives.push(archive.path().to_owned());
    let report = sample.verify().unwrap();
    assert_eq!((report.first_sequence, report.root, report.bytes), (0, whole.root, whole.bytes));

    // A copy in both places is said; a damaged one in the archive is not read then.
    fs::copy(archive.path().join("00000001.seg"), sample.segment(1)).unwrap();
    assert_eq!(sample.verify().unwrap().duplicate_segments, [1]);
}

#[test]
fn what_headers_and_tree_files_say_of_the_record_before_is_checked() {
    let sample = Sample::new();
    let first = sample_first(&sample, 2);
    sample.edit(2, |segment| segment.header[30] ^= 1);
    sample.must_fail("bad_segment_header", Some(first));

    let sample = Sample::new();
    let text = fs::read_to_string(sample.tree(2)).unwrap();
    let head = text.lines().find(|line| line.starts_with("head ")).unwrap();
    fs::write(sample.tree(2), with_fitting_end(&text.replace(head, &format!("head {}", "0".repeat(64))))).unwrap();
    sample.must_fail("head_mismatch", None);

    // As the beginning of what is at hand it leads nowhere.
    fs::remove_file(sample.segment(1)).unwrap();
    sample.must_fail("broken_link", Some(first));
}

#[test]
fn a_rewrite_after_the_last_tree_file_shows_in_the_anchor() {
    let sample = Sample::new();
    let anchor = fs::read(sample.anchor()).unwrap();
    rewrite(&sample, &operator_keys(), |frames| {
        for frame in frames.iter_mut().filter(|frame| frame.sequence() == ANCHORED - 1) {
            *frame.bytes.last_mut().unwrap() ^= 1;
        }
    });
    put(&sample.anchor(), &anchor);
    let failure = sample.must_fail("root_mismatch", None);
    assert_eq!(failure.agreed_up_to, sample_first(&sample, sample_segments(&sample)));
}

#[test]
fn a_batch_with_a_fitting_checksum_is_not_torn() {
    let sample = Sample::new();
    let last = sample_segments(&sample);
    sample.edit(last, |segment| {
        let frames = segment.batches.last_mut().unwrap();
        // A frame inside a frame: the number of records no longer fits the number of frames.
        let inner = frames.pop().unwrap();
        frames.last_mut().unwrap().signatures.extend(inner.bytes);
    });
    sample.must_fail("bad_frame", Some(ANCHORED));
}

#[test]
fn a_late_beginning_needs_its_tree_file_and_a_key_in_force_there() {
    let mut sample = Sample::new();
    let pinned = sample.note();
    let last = sample_segments(&sample);
    (1..last).for_each(|n| fs::remove_file(sample.segment(n)).unwrap());
    assert!(sample_first(&sample, last) > ROTATED_AT);
    // The rotation is out of sight: that the first key still signs says nothing about the second.
    sample.must_fail("unknown_key", None);
    sample.trust.add_key(key(SECOND_SEED).verifier()).unwrap();
    assert_eq!(sample.verify().unwrap().keys, [key(SECOND_SEED).verifier().id()]);

    sample.trust.pin(&pinned).unwrap();
    sample.verify().unwrap();
    let earlier = leasehold_tlog::Checkpoint::new(ORIGIN, 3, [0; 32]).unwrap().sign(&key(FIRST_SEED));
    sample.trust.pin(&earlier).unwrap();
    sample.must_fail("pinned_out_of_reach", None);
    sample.trust.pin(&pinned).unwrap();

    // A tree file whose parts are made up does not lead to a signed root.
    let tree = fs::read_to_string(sample.tree(last)).unwrap();
    fs::write(sample.tree(last), tree.replacen("part ", "part 0", 1)).unwrap();
    sample.must_fail("bad_tree_file", None);
    fs::remove_file(sample.tree(last)).unwrap();
    sample.must_fail("missing_tree_file", None);
}

#[test]
fn an_anchor_older_than_the_first_record_here_is_refused() {
    let sample = Sample::new();
    roll_back_anchor(&sample, 3);
    fs::remove_file(sample.segment(1)).unwrap();
    sample.must_fail("anchor_too_old", None);
}

#[test]
fn a_torn_end_is_reported_and_does_not_count() {
    let sample = Sample::new();
    let last = sample_segments(&sample);
    let honest = fs::read(sample.segment(last)).unwrap();
    let opened = Opened::read(&sample.segment(last));
    let good = opened.encode().len() - encode_batch(opened.batches.last().unwrap()).len();
    let torn = |bytes: u64| Some(TornTail { segment: last, offset: good as u64, bytes });

    // Cut short, with and without padding after it.
    fs::write(sample.segment(last), &honest[..good + 30]).unwrap();
    let report = sample.verify().unwrap();
    assert_eq!((report.records, report.torn_tail), (ANCHORED, torn(30)));
    let mut padded = honest[..good + 30].to_vec();
    padded.resize(1200, 0);
    fs::write(sample.segment(last), padded).unwrap();
    assert_eq!(sample.verify().unwrap().torn_tail, torn(30));

    // Its first sector was never written, its second was.
    let mut late = honest.clone();
    late[good..good + 40].fill(0);
    fs::write(sample.segment(last), &late).unwrap();
    assert_eq!(sample.verify().unwrap().records, ANCHORED);
    assert!(sample.verify().unwrap().torn_tail.is_some());

    // A good batch after it: nothing was torn there, something was damaged.
    let mut damaged = honest[..good + 30].to_vec();
    damaged.extend(encode_batch(opened.batches.last().unwrap()));
    fs::write(sample.segment(last), damaged).unwrap();
    sample.must_fail("bad_checksum", Some(ANCHORED));

    // Below the anchor nothing is torn.
    let mut short = honest.clone();
    short.truncate(good - 10);
    fs::write(sample.segment(last), short).unwrap();
    sample.must_fail("cut_batch", Some(ANCHORED - 3));

    // Nor below the pinned checkpoint.
    fs::write(sample.segment(last), &honest[..good + 30]).unwrap();
    let mut pinned = sample.copy();
    let tree_size = RECORDS;
    let note = leasehold_tlog::Checkpoint::new(ORIGIN, tree_size, [1; 32]).unwrap().sign(&key(SECOND_SEED));
    pinned.trust.pin(&note).unwrap();
    pinned.must_fail("cut_batch", Some(ANCHORED));
}

#[test]
fn a_torn_beginning_of_a_segment_is_reported_too() {
    let sample = Sample::new();
    let next = sample_segments(&sample) + 1;
    let mut bytes = vec![0; 1200];
    bytes[..8].copy_from_slice(b"LHSEGMNT");
    fs::write(sample.segment(next), &bytes).unwrap();
    let report = sample.verify().unwrap();
    assert_eq!((report.records, report.torn_tail), (RECORDS, Some(TornTail { segment: next, offset: 0, bytes: 8 })));

    // With a good batch in it, it is not torn; and what lies before it is not the end.
    let last = sample.segment(next - 1);
    bytes.extend(encode_batch(Opened::read(&last).batches.last().unwrap()).iter());
    fs::write(sample.segment(next), &bytes).unwrap();
    assert!(sample.verify().unwrap().torn_tail.is_some(), "a batch of earlier records is not a later batch");
    let mut later = Opened::read(&last).batches.last().unwrap().clone();
    later.iter_mut().for_each(|frame| frame.bytes[32] += 3);
    bytes.extend(encode_batch(&later));
    fs::write(sample.segment(next), &bytes).unwrap();
    sample.must_fail("bad_segment_header", Some(RECORDS));
}

#[test]
fn the_anchor_is_needed_and_must_be_whole() {
    let sample = Sample::new();
    let honest = sample.anchor_text();
    fs::remove_file(sample.anchor()).unwrap();
    sample.must_fail("no_anchor", None);
    for bytes in [&[][..], &[0; 8192], b"rubbish", &[b'x'; 9000]] {
        fs::write(sample.anchor(), bytes).unwrap();
        sample.must_fail("bad_anchor", None);
    }
    let forge = |from: &str, to: &str| sample.forge_anchor(&honest.replacen(from, to, 1));
    forge("\nsize 27", "\nsize 26");
    sample.must_fail("bad_anchor", None);
    forge("\nhead ", "\nhead 0");
    sample.must_fail("bad_anchor", None);
    let id = key(SECOND_SEED).verifier().id().to_string();
    forge(&format!("\nkey {id}"), "\nkey 00000000");
    sample.must_fail("bad_anchor", None);
    let head = honest.lines().find(|line| line.starts_with("head ")).unwrap();
    forge(head, &format!("head {}", "0".repeat(64)));
    sample.must_fail("head_mismatch", None);
    forge("\ntime ", "\ntime ");
    sample.verify().unwrap();
}

#[test]
fn a_stamp_must_not_go_back() {
    let sample = Sample::new();
    let keys = operator_keys();
    rewrite(&sample, &keys, |frames| {
        for frame in frames.iter_mut().filter(|frame| frame.sequence() == 18) {
            frame.bytes[33..41].copy_from_slice(&stamp(16).0.to_le_bytes());
        }
    });
    sample.must_fail("stamp_goes_back", Some(18));
}

#[test]
fn what_does_not_decode_is_named() {
    let sample = Sample::new();
    sample.edit_record(9, |frame| frame.bytes.push(0));
    sample.must_fail("undecodable", Some(9));
}

#[test]
fn the_first_of_several_wrong_things_is_told() {
    let sample = Sample::new();
    for sequence in [4, 11, 22] {
        sample.edit_record(sequence, |frame| *frame.bytes.last_mut().unwrap() ^= 1);
    }
    fs::remove_file(sample.segment(sample_segments(&sample) - 1)).unwrap();
    sample.must_fail("altered_record", Some(4));
}

#[test]
fn a_witness_proves_completeness_up_to_what_it_saw() {
    let mut sample = Sample::new();
    let witness = WitnessSigningKey::from_seed("w.example.net", &[9; 32]).unwrap();
    let mut note = leasehold_tlog::Note::parse(&sample.note()).unwrap();
    let checkpoint = leasehold_tlog::Checkpoint::from_body(note.text()).unwrap();
    note.add_signature(witness.cosign(&checkpoint, 1_700_000_100).unwrap()).unwrap();
    let text = sample.anchor_text().replace(&sample.note(), &note.to_string());
    sample.forge_anchor(&text);
    assert_eq!(sample.verify().unwrap().proved_by, ProvedBy::Anchor, "nobody trusts that witness");

    sample.trust.add_witness(witness.verifier());
    let report = sample.verify().unwrap();
    assert!(matches!(&report.proved_by, ProvedBy::Witness(w) if w.name == "w.example.net" && w.size == ANCHORED));

    // What it cosigned was something else.
    let other = leasehold_tlog::Checkpoint::new(ORIGIN, 3, [0; 32]).unwrap();
    let mut forged = leasehold_tlog::Note::parse(&sample.note()).unwrap();
    forged.add_signature(witness.cosign(&other, 5).unwrap()).unwrap();
    let text = sample.anchor_text().replace(&sample.note(), &forged.to_string());
    sample.forge_anchor(&text);
    sample.must_fail("bad_cosignature", None);
}

#[test]
fn a_pinned_checkpoint_is_believed_only_with_its_signature() {
    let mut sample = Sample::new();
    let mallory = SigningKey::from_seed(ORIGIN, &[77; 32]).unwrap();
    let honest = leasehold_tlog::Checkpoint::from_body(leasehold_tlog::Note::parse(&sample.note()).unwrap().text());
    sample.trust.pin(&honest.unwrap().sign(&mallory)).unwrap();
    sample.must_fail("not_signed", None);
}

#[test]
fn an_empty_journal_is_in_order() {
    use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    let keys = Arc::new(Keys::new(ORIGIN, &FIRST_SEED).unwrap());
    let layout = Options { segment_bytes: 1200, ..Options::default() };
    let disk = Arc::new(RealDisk::new(folder.path()));
    let journal = FileJournal::create(disk, layout, keys, Local::new(Secret::new([7; 32])), stamp(0)).unwrap();
    journal.prepare().unwrap();
    let sample = Sample { folder, trust: Trust::new(key(FIRST_SEED).verifier()), archives: Vec::new() };
    let report = sample.verify().unwrap();
    assert_eq!((report.records, report.stamps, report.segments), (0, None, None));
}
