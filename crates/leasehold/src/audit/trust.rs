//! `leasehold audit trust`: prints a trust file for an auditor.
//!
//! The trust file is only as trustworthy as the channel through which the auditor gets it: a journal cannot prove its own
//! authenticity.

use super::keys::{history, not_derivable};
use super::open;
use crate::cli::TrustArgs;
use crate::journal_files::JournalFiles;
use crate::output::{print, print_json};
use crate::problem::Problem;
use leasehold_model::hex;
use leasehold_tlog::Checkpoint;
use leasehold_verify::Trust;
use serde_json::json;

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
    // Keys that follow the checkpoint have not signed anything yet.
    let mut keys = history(files, signed.head.size)?.into_iter().map(|since| since.key);
    let first = keys.next().expect("there is a first key");
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
