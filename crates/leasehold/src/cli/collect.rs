//! `leasehold audit collect`, as it is typed.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold audit collect https://leasehold.example.org --trust cluster-1.trust --data ./cluster-1 --token-file auditor.token
  leasehold audit collect https://leasehold.example.org --trust cluster-1.trust --data ./cluster-1 --token-file auditor.token --follow
  leasehold-verify ./cluster-1 --trust cluster-1.trust

The copy goes on where it stopped, also after a crash. What does not fit what was collected before, or the trust file, \
is named and not taken (exit code 3); what was proved before stays. The token is one of role auditor or operator.")]
pub(crate) struct CollectArgs {
    /// The daemon's address
    #[arg(value_name = "URL")]
    pub(crate) from: String,
    /// Your own trust file: the origin, its key, and the checkpoint you saw last
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: PathBuf,
    /// The folder of the copy; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// A folder with segments of the copy that were moved away; may be given more than once
    #[arg(long = "archive", value_name = "DIR")]
    pub(crate) archives: Vec<PathBuf>,
    /// Go on until Ctrl-C: look for new records every second
    #[arg(long)]
    pub(crate) follow: bool,
}
