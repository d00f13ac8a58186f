//! `leasehold journal …`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Move old segments to an archive directory, after verifying each copy
    Archive(ArchiveArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  sudo -u leasehold leasehold journal archive --config /etc/leasehold/leasehold.yaml --to /srv/archive

The directory must be in `journal.archive` of the configuration, so that the daemon finds the segments there. The \
daemon may be running or stopped. A segment is moved once a signed checkpoint, a snapshot and the books have passed its \
end. Each one is copied, synced, read back and compared before the original is removed. The command can be interrupted \
at any time; the next run continues.")]
pub(crate) struct ArchiveArgs {
    /// The daemon's configuration file
    #[arg(long, value_name = "FILE", default_value = "/etc/leasehold/leasehold.yaml")]
    pub(crate) config: PathBuf,
    /// Data directory, if it is not the one in the configuration
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Directory to move segments to; one of `journal.archive`
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Only print which segments would be moved
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
