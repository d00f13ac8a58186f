//! `leasehold audit checkpoint`: prints the newest signed checkpoint.

use super::{open, signers};
use crate::cli::CheckpointArgs;
use crate::output::{print, print_json};
use crate::problem::Problem;
use leasehold_journal::SignedHead;
use leasehold_model::hex;
use serde_json::{Value, json};

pub(super) fn run(args: &CheckpointArgs) -> Result<(), Problem> {
    let files = open(&args.journal)?;
    let signed = files.signed();
    if args.json { print_json(&checkpoint_json(signed)) } else { print(&signed.note.to_string()) }
}

fn checkpoint_json(signed: &SignedHead) -> Value {
    json!({
        "origin": signed.origin,
        "size": signed.head.size,
        "root": hex::encode(signed.checkpoint.root()),
        "head": hex::encode(&signed.head.hash),
        "epoch": signed.epoch,
        "key": signed.key.to_string(),
        "time": signed.time.to_string(),
        "signed_by": signers(&signed.note),
        "note": signed.note.to_string(),
    })
}
