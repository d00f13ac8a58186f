//! `leasehold claim …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ClaimCommand {
    /// Nodes that are claimed; to an operator also those being wiped or quarantined
    List,
    /// Claim nodes for a user's sensitive work, all or none; from here on they are paid for
    Make(ClaimMakeArgs),
    /// Give claimed nodes back; they are wiped before anyone gets them
    Release(ClaimReleaseArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold claim make gpu-17 gpu-18 --project genome --user ada
  leasehold lease request --gpu 8 --ttl 1h --sensitive --project genome --user ada

What lies idle of a claimed node is billed to the project at the guaranteed rate until its release.")]
pub(crate) struct ClaimMakeArgs {
    /// Their names or numbers
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    /// Whose claim it is; a tenant's token names it itself
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// What it is charged to; a project's token names it itself
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Who claims; a user's token names it itself
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimReleaseArgs {
    /// Their names or numbers
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
