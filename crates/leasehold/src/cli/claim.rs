//! `leasehold claim …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::Moment;

#[derive(Debug, Subcommand)]
pub(crate) enum ClaimCommand {
    /// List claimed nodes; operators also see nodes that are being wiped or quarantined
    List,
    /// Claim nodes for the sensitive work of a user, all or none; the claim is billed from then on
    Make(ClaimMakeArgs),
    /// Release claimed nodes; they are wiped before anyone else can use them
    Release(ClaimReleaseArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold claim make gpu-17 gpu-18 --project genome --user ada
  leasehold claim make gpu-17 --project genome --user ada --until 'friday 18:00'
  leasehold lease request --gpu 8 --ttl 1h --sensitive --project genome --user ada

A claimed node is billed to the project whole, at the guaranteed rate, until it is released. It counts whole in \
quotas, budgets and cost ceilings; what runs on it adds nothing there.")]
pub(crate) struct ClaimMakeArgs {
    /// Names or numbers of the nodes
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    /// Tenant that makes the claim [default: the tenant of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Project that is charged [default: the project of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// User whose work may run on the nodes [default: the user of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// How long the nodes will be kept; required under a hard cost ceiling, which reserves the cost up to then. The
    /// claim does not end by itself
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimReleaseArgs {
    /// Names or numbers of the nodes
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
