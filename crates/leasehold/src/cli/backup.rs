//! `leasehold backup` and `leasehold restore`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u leasehold leasehold backup /srv/backup/cluster-1                  # the data directory of /etc/leasehold/leasehold.yaml
  leasehold backup /srv/backup/cluster-1 --data ./cluster                   # another data directory
  leasehold backup ./cluster-1-secret --data ./cluster --with-secrets          # with the signing key and the tokens

The daemon may be running or stopped. All records up to the newest signed checkpoint are copied, each is verified while \
it is copied, and the finished copy is read again and verified. A directory with an earlier backup of the same journal \
is continued: only new records are copied. The command can be interrupted at any time; the next run continues, and \
until it ends the earlier backup stays valid. `leasehold-verify` verifies the backup, `leasehold restore` restores it.")]
pub(crate) struct BackupArgs {
    /// Directory for the backup: a new or empty one, or an earlier backup of the same journal
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Data directory, if it is not the one in the configuration
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The daemon's configuration file, for its data directory and archives [default: /etc/leasehold/leasehold.yaml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory with archived segments, in addition to those in the configuration; repeatable
    #[arg(long = "archive", value_name = "DIR")]
    pub(crate) archives: Vec<PathBuf>,
    /// Also copy the signing key, the local secret and the operator token. Whoever can read them can sign this journal
    #[arg(long)]
    pub(crate) with_secrets: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold restore /srv/backup/cluster-1 --data ./cluster --key ./cluster-1.key --only-copy
  leasehold restore ./cluster-1-secret --data ./cluster --only-copy                 # a backup made --with-secrets
  leasehold restore /srv/backup/cluster-1 --data ./cluster --key ./cluster-1.key --only-copy --collector /srv/collected

Records that were written after the backup are lost, and clients may have seen them. --only-copy states that the old data \
directory no longer runs and never will again: two directories that sign the same journal prove a fork. A copy of \
`audit collect` can be restored like a backup, and often contains more. The restored journal begins with the records \
`journal.restored` and `journal.started`, which name the new epoch. Event streams that are ahead of it are answered 410.")]
pub(crate) struct RestoreArgs {
    /// Directory with the backup, or with a copy that `audit collect` has made
    #[arg(value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Data directory to create; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// State that the old data directory no longer runs and will not be started again
    #[arg(long)]
    pub(crate) only_copy: bool,
    /// File with the signing key, if it is not in the backup: the file `key` of the old data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// A copy that `audit collect` has made; the restore is refused if it contains more than the backup. Repeatable
    #[arg(long = "collector", value_name = "DIR")]
    pub(crate) collectors: Vec<PathBuf>,
    /// Restore even if the clock is behind the last record or far ahead of it; this is recorded in the journal
    #[arg(long)]
    pub(crate) accept_clock: bool,
}
