//! `leasehold audit collect`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold audit collect https://leasehold.example.org --trust cluster-1.trust --data ./cluster-1 --token-file auditor.token
  leasehold audit collect https://leasehold.example.org --trust cluster-1.trust --data ./cluster-1 --token-file auditor.token --follow
  leasehold-verify ./cluster-1 --trust cluster-1.trust

A later run continues the copy, also after a crash. Records that contradict the copy or the trust file are reported \
and not stored (exit code 3); what was verified before is kept. If the daemon has signed two conflicting histories, the \
evidence is written to a file fork-SIZE.evidence in the directory of the copy (exit code 4), which \
`leasehold-verify evidence` confirms on any machine. The token needs the role auditor or operator.")]
pub(crate) struct CollectArgs {
    /// URL of the daemon
    #[arg(value_name = "URL")]
    pub(crate) from: String,
    /// Trust file with the origin, its keys and the newest checkpoint that you have seen
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: PathBuf,
    /// Directory for the copy; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Directory with archived segments of the copy; repeatable
    #[arg(long = "archive", value_name = "DIR")]
    pub(crate) archives: Vec<PathBuf>,
    /// Continue until Ctrl-C, and fetch new records every second
    #[arg(long)]
    pub(crate) follow: bool,
}
