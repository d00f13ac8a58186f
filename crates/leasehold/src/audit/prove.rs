//! `leasehold audit prove`: creates and checks proofs.

use super::{read_text, read_trust};
use crate::cli::ProveArgs;
use crate::journal_files::JournalFiles;
use crate::output::{failed, print, print_json};
use crate::problem::Problem;
use crate::term;
use leasehold_model::frame::record_hash;
use leasehold_model::hex;
use leasehold_model::{Hash, RawRecord};
use leasehold_tlog::limits::PROOF_EXTRA_BYTES_MAX;
use leasehold_tlog::{
    Checkpoint, ConsistencyBuilder, ConsistencyFile, InclusionBuilder, InclusionFile, ProofFileError, leaf_hash,
};
use leasehold_verify::Trust;
use leasehold_view::Directory;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;

pub(super) fn run(args: &ProveArgs) -> Result<(), Problem> {
    if let (Some(file), Some(trust)) = (&args.check, &args.trust) {
        return check(args, file, trust);
    }
    let data = args.data.as_ref().expect("without --data the daemon is asked");
    let files = JournalFiles::open(data, &args.archives)?;
    match (args.sequence, args.consistency_from) {
        (Some(sequence), _) => prove_record(args, &files, sequence),
        (_, Some(size)) => prove_growth(args, &files, size),
        _ => unreachable!("clap requires one of them"),
    }
}

/// Writes the proof to stdout or a file. The summary goes to the other stream.
fn deliver(args: &ProveArgs, proof: &str, summary: &str, mut object: Value) -> Result<(), Problem> {
    if let Some(path) = &args.out {
        std::fs::write(path, proof).map_err(|error| failed(&error).at(path))?;
        object["file"] = json!(path.display().to_string());
    }
    object["proof"] = json!(proof);
    match (args.json, &args.out) {
        (true, _) => print_json(&object),
        (false, Some(path)) => print(&format!("{summary}The proof is in {}.\n", path.display())),
        (false, None) => {
            term::say(summary);
            print(proof)
        }
    }
}

fn prove_record(args: &ProveArgs, files: &JournalFiles, sequence: u64) -> Result<(), Problem> {
    let signed = files.signed();
    let size = signed.head.size;
    let mut builder = InclusionBuilder::new(sequence, size).map_err(|_| beyond(sequence, size))?;
    let mut directory = Directory::new();
    let mut found: Option<(Vec<u8>, Hash, Value)> = None;
    leaves(files, &mut |index, raw, hash| {
        if index < sequence {
            directory.pass(raw, hash).map_err(|error| unreadable(index, &error))?;
        } else if index == sequence {
            let shown = directory.show(raw, hash).map_err(|error| unreadable(index, &error))?;
            found = Some((raw.bytes.to_vec(), *hash, shown));
        }
        builder.push(leaf_hash(hash));
        Ok(())
    })?;
    let (bytes, hash, shown) = found.ok_or_else(|| beyond(sequence, size))?;
    let (proof, root) = builder.finish().map_err(not_proved)?;
    same_root(&root, &signed.checkpoint)?;
    let extra = Some(bytes).filter(|bytes| bytes.len() <= PROOF_EXTRA_BYTES_MAX);
    let carried = extra.is_some();
    let file = InclusionFile::new(&proof, signed.note.clone(), extra).map_err(|error| no_proof(&error))?;
    let summary = format!(
        "Record {sequence} of {} is in the checkpoint of {size} records.\nhash {}\n{}",
        signed.origin,
        hex::encode(&hash),
        without_lease_events(&shown),
    );
    let object = json!({
        "proves": "inclusion",
        "origin": signed.origin,
        "sequence": sequence,
        "record_hash": hex::encode(&hash),
        "record": shown,
        "record_in_proof": carried,
        "checkpoint": { "size": size, "root": hex::encode(&root) },
    });
    deliver(args, &file.to_string(), &summary, object)
}

fn prove_growth(args: &ProveArgs, files: &JournalFiles, old_size: u64) -> Result<(), Problem> {
    let signed = files.signed();
    let size = signed.head.size;
    let mut builder = ConsistencyBuilder::new(old_size, size).map_err(|_| beyond_size(old_size, size))?;
    leaves(files, &mut |_, _, hash| {
        builder.push(leaf_hash(hash));
        Ok(())
    })?;
    let (proof, old_root, root) = builder.finish().map_err(not_proved)?;
    same_root(&root, &signed.checkpoint)?;
    let file = ConsistencyFile::new(&proof, signed.note.clone()).map_err(|error| no_proof(&error))?;
    let summary = format!(
        "The first {old_size} records of {} are unchanged in its {size} records.\nold root {}\nnew root {}\n",
        signed.origin,
        hex::encode(&old_root),
        hex::encode(&root),
    );
    let object = json!({
        "proves": "consistency",
        "origin": signed.origin,
        "old": { "size": old_size, "root": hex::encode(&old_root) },
        "checkpoint": { "size": size, "root": hex::encode(&root) },
    });
    deliver(args, &file.to_string(), &summary, object)
}

/// The record without its lease events, which repeat the body for each lease.
fn without_lease_events(shown: &Value) -> String {
    let mut shown = shown.clone();
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("lease_events");
    }
    format!("{shown:#}\n")
}

/// Visits the records that the newest checkpoint covers.
fn leaves(
    files: &JournalFiles,
    visit: &mut dyn FnMut(u64, &RawRecord<'_>, &Hash) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let size = files.signed().head.size;
    files.scan_from_genesis(&mut |entry| {
        if entry.sequence >= size {
            return Ok(ControlFlow::Break(()));
        }
        visit(entry.sequence, &entry.raw, &entry.hash).map(ControlFlow::Continue)
    })?;
    Ok(())
}

fn same_root(root: &Hash, checkpoint: &Checkpoint) -> Result<(), Problem> {
    if root == checkpoint.root() {
        return Ok(());
    }
    let what = format!("the root hash of the first {} records is not the one that was signed", checkpoint.size());
    Err(Problem::not_verified("root_mismatch", what).advice("run leasehold audit verify"))
}

/// Checks a proof against the auditor's trust file.
fn check(args: &ProveArgs, file: &Path, trust: &Path) -> Result<(), Problem> {
    let trust = read_trust(trust)?;
    let text = read_text(file, "proof")?;
    let (summary, object) =
        if text.starts_with("old ") { check_growth(&text, &trust) } else { check_record(args, &text, &trust) }
            .map_err(|problem| problem.at(file))?;
    if args.json { print_json(&object) } else { print(&summary) }
}

fn check_record(args: &ProveArgs, text: &str, trust: &Trust) -> Result<(String, Value), Problem> {
    let proof = InclusionFile::parse(text).map_err(|error| malformed(&error))?;
    let named = match &args.record_hash {
        None => None,
        Some(hash) => Some(
            hex::decode_hash(hash)
                .ok_or_else(|| Problem::usage("bad_hash", "--record-hash takes 64 lower-case hexadecimal digits"))?,
        ),
    };
    let carried = proof.unauthenticated_extra();
    let hash = match (carried.map(record_hash), named) {
        (Some(carried), Some(named)) if carried != named => {
            let what = format!("the proof is for the record with the hash {}", hex::encode(&carried));
            return Err(Problem::not_verified("record_mismatch", what)
                .advice("it proves nothing about the record that you named"));
        }
        (Some(hash), _) | (None, Some(hash)) => hash,
        (None, None) => {
            return Err(Problem::usage("record_hash_needed", "the proof does not contain its record")
                .advice("name the record with --record-hash"));
        }
    };
    let checkpoint = proof.verify(&leaf_hash(&hash), trust.keys(), trust.origin()).map_err(not_proved)?;
    let index = proof.index();
    // The leaf hash covers the record, which contains its sequence: the index of the proof must be the same.
    let record = carried.map(|bytes| RawRecord { bytes, signatures: &[] });
    if record.is_some_and(|raw| raw.sequence() != Ok(index)) {
        return Err(Problem::not_verified(
            "record_mismatch",
            "the record in the proof has another sequence number than the proof",
        ));
    }
    let shown = record.and_then(|raw| Directory::new().show(&raw, &hash).ok());
    let mut summary = format!(
        "Proved: record {index} of {} is in the checkpoint of {} records.\nhash {}\n",
        trust.origin(),
        checkpoint.size(),
        hex::encode(&hash)
    );
    if let Some(shown) = &shown {
        summary.push_str(&without_lease_events(shown));
    }
    let object = json!({
        "verdict": "proved",
        "proves": "inclusion",
        "origin": trust.origin(),
        "sequence": index,
        "record_hash": hex::encode(&hash),
        "record": shown,
        "checkpoint": { "size": checkpoint.size(), "root": hex::encode(checkpoint.root()) },
    });
    Ok((summary, object))
}

fn check_growth(text: &str, trust: &Trust) -> Result<(String, Value), Problem> {
    let proof = ConsistencyFile::parse(text).map_err(|error| malformed(&error))?;
    let pinned = trust.pinned().ok_or_else(|| {
        Problem::usage("checkpoint_needed", "the trust file contains no checkpoint to compare with")
            .advice("a consistency proof starts from the newest checkpoint that you have seen")
    })?;
    let old = Checkpoint::open_note(&pinned.note, trust.keys(), trust.origin()).map_err(|error| {
        Problem::usage("trust_malformed", format!("the checkpoint in the trust file is invalid: {error}"))
    })?;
    if old.size() != proof.old_size() {
        let what = format!("the proof starts from {} records", proof.old_size());
        return Err(Problem::refused("other_size", what).advice(format!(
            "the checkpoint in the trust file has {0} records; create the proof with --consistency-from {0}",
            old.size()
        )));
    }
    let new = proof.verify(&old, trust.keys()).map_err(not_proved)?;
    let summary = format!(
        "Proved: the {} records that you have seen of {} are unchanged in its {} records.\n",
        old.size(),
        trust.origin(),
        new.size()
    );
    let object = json!({
        "verdict": "proved",
        "proves": "consistency",
        "origin": trust.origin(),
        "old": { "size": old.size(), "root": hex::encode(old.root()) },
        "checkpoint": { "size": new.size(), "root": hex::encode(new.root()) },
    });
    Ok((summary, object))
}

fn beyond(sequence: u64, size: u64) -> Problem {
    let what = format!("there is no record {sequence} in the newest checkpoint");
    let advice = match size {
        0 => "no record is covered by a checkpoint yet; try again in a moment".to_owned(),
        size => format!("it covers records 0 to {}", size - 1),
    };
    Problem::refused("record_not_found", what).advice(advice)
}

fn beyond_size(old_size: u64, size: u64) -> Problem {
    Problem::refused("journal_shorter", format!("the newest checkpoint has {size} records, fewer than {old_size}"))
        .advice("if you have seen a checkpoint of that size, records were removed from the journal")
}

fn unreadable(sequence: u64, error: &dyn std::fmt::Display) -> Problem {
    Problem::not_verified("record_undecodable", format!("record {sequence} cannot be read: {error}"))
        .advice("run leasehold audit verify")
}

fn no_proof(error: &ProofFileError) -> Problem {
    Problem::refused("no_proof", format!("the proof cannot be written: {error}"))
}

fn malformed(error: &ProofFileError) -> Problem {
    Problem::usage("proof_malformed", format!("the file is not a proof: {error}"))
}

fn not_proved(error: impl std::fmt::Display) -> Problem {
    Problem::not_verified("not_proved", format!("the proof is not valid: {error}"))
}
