//! `leasehold-verify evidence FILE` and `leasehold audit evidence FILE`.

use super::{Conflict, EVIDENCE_BYTES_MAX, Evidence, NoEvidence, SignedRoot};
use crate::cli::{EXIT_NO, EXIT_YES, Unanswered, print, print_json, read_trust, unanswered};
use crate::progress::thousands;
use leasehold_model::hex;
use leasehold_tlog::KeyId;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = "\
Example:
  leasehold-verify evidence fork-12345.evidence --trust my.trust

A collector writes such a file when a log contradicts what it has signed
before. Nothing else is needed to confirm it: neither journal nor network.

Exit codes:
  0  confirmed: the log signed two conflicting histories
  3  not confirmed: the report says why the file proves nothing
  2  the question could not be answered (arguments, trust file, file)";

/// Confirm evidence that a log signed two conflicting histories
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct EvidenceArgs {
    /// Evidence file, written by a collector
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Your own trust file: the origin and its key
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// Print the report as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// Checks the evidence, prints the result, and returns the exit code.
pub fn run(args: &EvidenceArgs) -> u8 {
    answer(args).unwrap_or_else(|why| unanswered(&why, args.json))
}

fn answer(args: &EvidenceArgs) -> Result<u8, Unanswered> {
    let trust = read_trust(&args.trust)?;
    let text = read(&args.file)?;
    match Evidence::parse(&text).and_then(|evidence| evidence.check(&trust)) {
        Ok(conflict) => {
            match args.json {
                true => print_json(&conflict_json(&conflict)),
                false => print(&receipt(&conflict)),
            }
            Ok(EXIT_YES)
        }
        Err(why) => {
            match args.json {
                true => print_json(&refusal_json(&why)),
                false => print(&format!("not confirmed: {why}\n\n  code        {}\n", why.code())),
            }
            Ok(EXIT_NO)
        }
    }
}

fn read(path: &Path) -> Result<String, Unanswered> {
    let metadata = fs::metadata(path);
    let read = metadata.and_then(|metadata| match metadata.is_file() && metadata.len() <= EVIDENCE_BYTES_MAX as u64 {
        true => fs::read(path),
        false => Err(io::Error::other("not a regular file, or too large")),
    });
    let bytes = read.map_err(|error| Unanswered(format!("{} cannot be read: {error}", path.display())))?;
    // What is not text is not evidence: the parser says so.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn keys(keys: &[KeyId]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn receipt(conflict: &Conflict) -> String {
    let Conflict { origin, smaller, larger, other_root, rotated_to } = conflict;
    let signed = |signed: &SignedRoot| {
        let (size, by) = (thousands(signed.size), keys(&signed.keys).join(", "));
        format!("{size} records, root {}, signed by key {by}", hex::encode(&signed.root))
    };
    let mut text = format!("confirmed: the log {origin} signed two conflicting histories\n\n");
    let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<12}{value}\n"));
    line("first", &signed(smaller));
    line("second", &signed(larger));
    match smaller.size == larger.size {
        true => line("conflict", "the same size with different roots"),
        false => {
            let size = thousands(smaller.size);
            line(
                "conflict",
                &format!("the first {size} records of the second have the root {}", hex::encode(other_root)),
            );
        }
    }
    if !rotated_to.is_empty() {
        line(
            "rotated",
            &format!("key {} is trusted because a trusted key has signed for it", keys(rotated_to).join(", ")),
        );
    }
    text
}

fn conflict_json(conflict: &Conflict) -> Value {
    let signed = |signed: &SignedRoot| json!({ "size": signed.size, "root": hex::encode(&signed.root), "keys": keys(&signed.keys) });
    json!({
        "verdict": "confirmed",
        "origin": conflict.origin,
        "smaller": signed(&conflict.smaller),
        "larger": signed(&conflict.larger),
        "other_root": hex::encode(&conflict.other_root),
        "rotated_to": keys(&conflict.rotated_to),
    })
}

fn refusal_json(why: &NoEvidence) -> Value {
    json!({ "verdict": "not_confirmed", "code": why.code(), "sentence": why.to_string() })
}
