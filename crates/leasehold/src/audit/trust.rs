//! `leasehold audit trust`: prints a trust file for an auditor.
//!
//! The trust file is only as trustworthy as the channel through which the auditor gets it: a journal cannot prove its own
//! authenticity.

use super::open;
use crate::cli::TrustArgs;
use crate::journal_files::JournalFiles;
use crate::output::{print, print_json};
use crate::problem::Problem;
use leasehold_model::Body;
use leasehold_model::hex;
use leasehold_tlog::{Checkpoint, VerifierKey};
use leasehold_verify::Trust;
use serde_json::json;
use std::ops::ControlFlow;

pub(crate) const REMARK: &str =
    "# Keep this file where the operator cannot write. Compare the key with the operator through another channel.\n";

pub(super) fn run(args: &TrustArgs) -> Result<(), Problem> {
    let files = open(&args.journal)?;
    let trust = trust_of(&files)?;
    if !args.json {
        return print(&format!("{REMARK}{}", trust.to_text()));
    }
    let signed = files.signed();
    print_json(&json!({
        "origin": trust.origin(),
        "keys": trust.keys().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "checkpoint": {
            "size": signed.head.size,
            "root": hex::encode(signed.checkpoint.root()),
            "note": signed.note.to_string(),
        },
        "trust_file": trust.to_text(),
    }))
}

/// The origin and first key from the genesis record, the keys of later rotations, and the checkpoint of the anchor, which
/// must be signed by the key in force at its size.
fn trust_of(files: &JournalFiles) -> Result<Trust, Problem> {
    let signed = files.signed();
    let mut keys: Vec<VerifierKey> = Vec::new();
    files.scan_from_genesis(&mut |entry| {
        // Keys that follow the checkpoint have not signed anything yet; the first key is needed even for an empty one.
        if entry.sequence >= signed.head.size.max(1) {
            return Ok(ControlFlow::Break(()));
        }
        let undecodable = |error| {
            let what = format!("record {} cannot be read: {error}", entry.sequence);
            Problem::not_verified("record_undecodable", what).advice("run leasehold audit verify")
        };
        let body = entry.raw.decode().map_err(undecodable)?.body;
        let key = if entry.sequence == 0 {
            let Body::Genesis(genesis) = body else {
                return Err(not_derivable("the first record is not a genesis record"));
            };
            if genesis.origin.as_str() != signed.origin {
                return Err(not_derivable("the first record does not name the anchor's origin"));
            }
            genesis.public_key
        } else if let Body::KeyRotated(rotated) = body {
            rotated.new_key
        } else {
            return Ok(ControlFlow::Continue(()));
        };
        let key = VerifierKey::new(&signed.origin, &key).map_err(|error| not_derivable(&error.to_string()))?;
        keys.push(key);
        Ok(ControlFlow::Continue(()))
    })?;
    let mut keys = keys.into_iter();
    let first = keys.next().ok_or_else(|| {
        Problem::refused("journal_empty", "the journal has no record yet").advice("try again in a moment")
    })?;
    let mut trust = Trust::new(first);
    for key in keys {
        trust.add_key(key).map_err(|error| not_derivable(&error.to_string()))?;
    }
    let in_force = trust.keys().last().expect("there is a first key").clone();
    Checkpoint::open_note(&signed.note, &[in_force], &signed.origin)
        .map_err(|error| not_derivable(&format!("the newest checkpoint is not signed by the key in force: {error}")))?;
    // A checkpoint of size 0 proves nothing.
    if signed.head.size > 0 {
        trust.pin(&signed.note.to_string()).map_err(|error| not_derivable(&error.to_string()))?;
    }
    Ok(trust)
}

fn not_derivable(why: &str) -> Problem {
    Problem::not_verified("trust_not_derivable", why).advice("the segments do not belong to this anchor")
}
