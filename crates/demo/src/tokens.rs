//! Tokens that the demo issues, each in a file that only its owner can read. A file with a valid token is kept, so
//! that tokens survive a restart.

use super::cluster::name;
use crate::problem::Problem;
use leasehold_cell::{Cell, Reply, Unsealed};
use leasehold_engine::Command;
use leasehold_engine::command::IssueToken;
use leasehold_model::{Role, TokenScope};
use leasehold_server::{new_secret, secret_hash};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(crate) fn ensure(cell: &Cell, file: &Path, who: &str, role: Role, scope: TokenScope) -> Result<(), Problem> {
    let is_valid = |secret: String| cell.now().read(|state| state.token_by_hash(&secret_hash(secret.trim())).is_some());
    if fs::read_to_string(file).is_ok_and(is_valid) {
        return Ok(());
    }
    // The secret of an earlier token is lost, so the token is revoked.
    let lost = cell.now().read(|state| {
        let same = state.tokens().filter(|token| token.role == role && token.name.as_str() == who);
        same.map(|token| token.number).collect::<Vec<_>>()
    });
    for token in lost {
        sealed(cell.operate(Command::RevokeToken(token)))?;
    }
    let no_randomness =
        |error| Problem::refused("no_randomness", format!("cannot get random bytes for a token: {error}"));
    let secret = new_secret().map_err(no_randomness)?;
    // The file is written first: after a crash in between, the file is invalid and the next start replaces it.
    write(file, &secret)
        .map_err(|error| Problem::refused("token_not_written", format!("cannot write the token: {error}")).at(file))?;
    let hash = secret_hash(&secret);
    sealed(cell.operate(Command::IssueToken(IssueToken { name: name(who), hash, role, scope, expires_at: None })))
}

fn write(file: &Path, secret: &str) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{secret}")
}

fn sealed(reply: Reply) -> Result<(), Problem> {
    match reply {
        Ok(_) => Ok(()),
        Err(Unsealed::Refused(refusal)) => Err(Problem::told(refusal.code(), &refusal)),
        _ => Err(Problem::refused("cell_stopped", "the daemon stopped while tokens were issued")),
    }
}
