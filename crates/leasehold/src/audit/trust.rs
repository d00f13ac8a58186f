//! `leasehold audit trust`: what an auditor keeps, read from the folder by someone who may.
//!
//! The file is worth what its way to the auditor is worth: a folder that vouches for itself proves nothing.

use super::open;
use crate::cli::TrustArgs;
use crate::journal_files::Folder;
use crate::output::{print, print_json};
use crate::problem::Problem;
use leasehold_model::Body;
use leasehold_model::hex;
use leasehold_tlog::{Checkpoint, VerifierKey};
use leasehold_verify::Trust;
use serde_json::json;
use std::ops::ControlFlow;

pub(crate) const REMARK: &str =
    "# Keep this where the operator cannot write. Compare the key with the operator over another channel.\n";

pub(super) fn run(args: &TrustArgs) -> Result<(), Problem> {
    let folder = open(&args.folder)?;
    let trust = trust_of(&folder)?;
    if !args.json {
        return print(&format!("{REMARK}{}", trust.to_text()));
    }
    let signed = folder.signed();
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

/// Origin and first key from the genesis record, the keys that followed by rotation, and the anchor's checkpoint, which
/// must be signed by the key in force at its size.
fn trust_of(folder: &Folder) -> Result<Trust, Problem> {
    let signed = folder.signed();
    let mut keys: Vec<VerifierKey> = Vec::new();
    folder.scan_from_genesis(&mut |entry| {
        // Keys that come after the checkpoint have not signed anything yet; the first one signs from the beginning.
        if entry.sequence >= signed.head.size.max(1) {
            return Ok(ControlFlow::Break(()));
        }
        let undecodable = |error| {
            let what = format!("record {} cannot be read: {error}", entry.sequence);
            Problem::not_verified("record_undecodable", what).advice("run leasehold audit verify")
        };
        let key = match (entry.sequence, entry.raw.decode().map_err(undecodable)?.body) {
            (0, Body::Genesis(genesis)) if genesis.origin.as_str() == signed.origin => genesis.public_key,
            (0, _) => return Err(not_ours("the first record does not name the anchor's origin")),
            (_, Body::KeyRotated(rotated)) => rotated.new_key,
            _ => return Ok(ControlFlow::Continue(())),
        };
        let key = VerifierKey::new(&signed.origin, &key).map_err(|error| not_ours(&error.to_string()))?;
        keys.push(key);
        Ok(ControlFlow::Continue(()))
    })?;
    let mut keys = keys.into_iter();
    let first = keys.next().ok_or_else(|| {
        Problem::refused("journal_empty", "the journal has no record yet").advice("try again in a moment")
    })?;
    let mut trust = Trust::new(first);
    for key in keys {
        trust.add_key(key).map_err(|error| not_ours(&error.to_string()))?;
    }
    let in_force = trust.keys().last().expect("there is a first key").clone();
    Checkpoint::open_note(&signed.note, &[in_force], &signed.origin)
        .map_err(|error| not_ours(&format!("the newest checkpoint is not signed by the key in force: {error}")))?;
    // A checkpoint of nothing says nothing.
    if signed.head.size > 0 {
        trust.pin(&signed.note.to_string()).map_err(|error| not_ours(&error.to_string()))?;
    }
    Ok(trust)
}

fn not_ours(why: &str) -> Problem {
    Problem::not_verified("trust_not_derivable", why).advice("segments and anchor do not belong together")
}
