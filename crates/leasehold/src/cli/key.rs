//! `leasehold key …`.

use super::JournalArgs;
use super::remote::ChangeArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Show the signing keys of the journal: the one in force and those before it
    Show(KeyShowArgs),
    /// Replace the signing key of a running daemon
    Rotate(KeyRotateArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold key show
  leasehold key show --data /var/lib/leasehold

The lines that begin with `key` have the form that a trust file needs. Compare the fingerprint with the operator \
through another channel before you put a key into a trust file.")]
pub(crate) struct KeyShowArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold key rotate
  leasehold key rotate --finish

The rotation is recorded in the journal and signed by both keys, so that collectors and verifiers which trust the old \
key accept the new one. Until --finish, both keys sign each checkpoint. --finish removes the old key from the key file. \
If the old key has leaked, finish at once; see docs/how-to/rotate-the-key.md. Both commands need an operator's token.")]
pub(crate) struct KeyRotateArgs {
    /// Finish the rotation: the old key stops signing, and its secret is removed from the key file
    #[arg(long)]
    pub(crate) finish: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
