//! `leasehold audit checkpoint`: the newest signed head, as it lies in the anchor.

use super::{open, signers};
use crate::cli::CheckpointArgs;
use crate::folder::Anchor;
use crate::numbers::hex;
use crate::output::{print, print_json};
use crate::problem::Problem;
use serde_json::{Value, json};

pub(super) fn run(args: &CheckpointArgs) -> Result<(), Problem> {
    let folder = open(&args.folder)?;
    let anchor = folder.anchor();
    if args.json { print_json(&checkpoint_json(anchor)) } else { print(&anchor.note.to_string()) }
}

fn checkpoint_json(anchor: &Anchor) -> Value {
    json!({
        "origin": anchor.origin,
        "size": anchor.size,
        "root": hex(anchor.checkpoint.root()),
        "head": hex(&anchor.head),
        "epoch": anchor.epoch,
        "key": anchor.key,
        "time": anchor.time.to_string(),
        "signed_by": signers(&anchor.note),
        "note": anchor.note.to_string(),
    })
}
