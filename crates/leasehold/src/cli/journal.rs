//! `leasehold journal …`.

use clap::{Args, Subcommand};
use leasehold_api::Moment;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Move old segments to an archive directory, after verifying each copy
    Archive(ArchiveArgs),
    /// Delete archived segments for good, oldest first; records of sensitive work only after their retention period
    Delete(DeleteArgs),
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

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u leasehold leasehold journal delete --archive /srv/archive --before 2019-11-01          # shows what would go
  sudo -u leasehold leasehold journal delete --archive /srv/archive --before 2019-11-01 --yes

Only archived segments are deleted, and never files of the data directory. A segment is deleted if its last record is \
older than --before, if a restart does not need it, if deliveries have passed it, and if all of its records were read \
and lead to the next segment. From the first record of sensitive work on, records are kept for \
`journal.sensitive_retention` (7y), whatever --before says. The result names what was deleted, with the hash of the \
last record: keep it. The daemon may be running or stopped. The command can be interrupted at any time; the next run \
continues, and reports both.")]
pub(crate) struct DeleteArgs {
    /// The daemon's configuration file
    #[arg(long, value_name = "FILE", default_value = "/etc/leasehold/leasehold.yaml")]
    pub(crate) config: PathBuf,
    /// Data directory, if it is not the one in the configuration
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Directory to delete segments from; one of `journal.archive`
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: PathBuf,
    /// Delete segments whose last record is older than this, such as 2019-11-01 or 3650d for ten years ago
    #[arg(long, value_name = "TIME")]
    pub(crate) before: Moment,
    /// Delete. Without it, the command only prints what would be deleted
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only print what would be deleted, as without --yes
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
