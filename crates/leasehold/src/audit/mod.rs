//! `leasehold audit …`: reading, proving and verifying a journal from its files.

mod checkpoint;
mod collect;
mod export;
mod keys;
mod prove;
mod replay;
mod trust;

pub(crate) use collect::run as collect;
pub(crate) use keys::list as keys;
pub(crate) use trust::REMARK as TRUST_REMARK;

use crate::cli::{Audit, JournalArgs};
use crate::journal_files::JournalFiles;
use crate::problem::{EXIT_OK, Problem};
use leasehold_tlog::KeyId;
use leasehold_verify::Trust;
use std::path::Path;

pub(crate) fn run(audit: Audit) -> Result<u8, Problem> {
    match audit {
        // The same program as `leasehold-verify`.
        Audit::Verify(args) => return Ok(leasehold_verify::cli::run(&args)),
        Audit::Evidence(args) => return Ok(leasehold_verify::evidence::run(&args)),
        Audit::Trust(args) => trust::run(&args)?,
        Audit::Checkpoint(args) => checkpoint::run(&args)?,
        Audit::Prove(args) => prove::run(&args)?,
        Audit::Export(args) => export::run(&args)?,
        Audit::Replay(args) => return replay::run(&args),
        Audit::Records(_) | Audit::Status(_) | Audit::Scrub(_) | Audit::Collect(_) => {
            unreachable!("these commands call a daemon")
        }
    }
    Ok(EXIT_OK)
}

fn open(args: &JournalArgs) -> Result<JournalFiles, Problem> {
    let data = args.data.as_ref().expect("without --data the daemon is asked");
    JournalFiles::open(data, &args.archives)
}

/// Larger than any trust file or proof: a note has at most one MiB.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Reads a trust file or a proof.
fn read_text(path: &Path, what: &str) -> Result<String, Problem> {
    let read =
        std::fs::metadata(path).and_then(|metadata| match metadata.is_file() && metadata.len() <= TEXT_BYTES_MAX {
            true => std::fs::read_to_string(path),
            false => Err(std::io::Error::other("it is not a regular file, or larger than 4 MiB")),
        });
    read.map_err(|error| {
        Problem::usage("file_unreadable", format!("the {what} cannot be read: {error}"))
            .at(path)
            .advice("check the path")
    })
}

fn read_trust(path: &Path) -> Result<Trust, Problem> {
    Trust::parse(&read_text(path, "trust file")?).map_err(|error| {
        Problem::usage("trust_malformed", format!("the trust file is invalid: {error}"))
            .at(path)
            .advice("`leasehold audit trust` prints one")
    })
}

/// The IDs of the keys that signed a note.
fn signers(note: &leasehold_tlog::Note) -> Vec<String> {
    note.signatures().iter().map(|signature| KeyId::to_string(&signature.key_id())).collect()
}
