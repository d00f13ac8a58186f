//! `leasehold audit …`: reading, proving and verifying a journal from its files.

mod checkpoint;
mod collect;
mod export;
mod prove;
mod replay;
mod trust;

pub(crate) use collect::run as collect;
pub(crate) use trust::REMARK as TRUST_REMARK;

use crate::cli::{Audit, FolderArgs};
use crate::journal_files::Folder;
use crate::problem::{EXIT_OK, Problem};
use leasehold_tlog::KeyId;
use leasehold_verify::Trust;
use std::path::Path;

pub(crate) fn run(audit: Audit) -> Result<u8, Problem> {
    match audit {
        // The auditor's own program, under another name.
        Audit::Verify(args) => return Ok(leasehold_verify::cli::run(&args)),
        Audit::Trust(args) => trust::run(&args)?,
        Audit::Checkpoint(args) => checkpoint::run(&args)?,
        Audit::Prove(args) => prove::run(&args)?,
        Audit::Export(args) => export::run(&args)?,
        Audit::Replay(args) => return replay::run(&args),
        Audit::Records(_) | Audit::Collect(_) => unreachable!("these speak to a daemon"),
    }
    Ok(EXIT_OK)
}

fn open(args: &FolderArgs) -> Result<Folder, Problem> {
    let data = args.data.as_ref().expect("without it a daemon was asked");
    Folder::open(data, &args.archives)
}

/// More than any trust file or proof needs: a note alone is at most a mebibyte.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Reads a small text that the auditor keeps.
fn read_text(path: &Path, what: &str) -> Result<String, Problem> {
    let read =
        std::fs::metadata(path).and_then(|metadata| match metadata.is_file() && metadata.len() <= TEXT_BYTES_MAX {
            true => std::fs::read_to_string(path),
            false => Err(std::io::Error::other("not a file of a sensible size")),
        });
    read.map_err(|error| {
        Problem::usage("file_unreadable", format!("the {what} cannot be read: {error}"))
            .at(path)
            .advice("check the path")
    })
}

fn read_trust(path: &Path) -> Result<Trust, Problem> {
    Trust::parse(&read_text(path, "trust file")?).map_err(|error| {
        Problem::usage("trust_malformed", format!("the trust file is not in order: {error}"))
            .at(path)
            .advice("`leasehold audit trust` prints one")
    })
}

/// The ids of the keys whose signatures a note carries.
fn signers(note: &leasehold_tlog::Note) -> Vec<String> {
    note.signatures().iter().map(|signature| KeyId::to_string(&signature.key_id())).collect()
}
