//! `leasehold status`.

use super::remote::WatchArgs;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold status
  leasehold status --watch
  leasehold status --json

It fits on a screen of 80 by 24: long lists are cut, and the line says how many more there are. The exit code is 3 if \
the scrub found damage.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}
