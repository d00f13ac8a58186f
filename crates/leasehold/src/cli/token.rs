//! `leasehold token …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::Role;
use leasehold_api::{Moment, Ttl};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token and print its secret, once
    Issue(Box<TokenIssueArgs>),
    /// List tokens, without their secrets
    List(TokenListArgs),
    /// Show one token
    Show(TokenArgs),
    /// Revoke a token; it is rejected from then on
    Revoke(TokenChangeArgs),
    /// Show the token that you are using
    Whoami,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold token issue ci --role project_member --tenant physics --project lattice --out ci.token
  leasehold token issue auditor --role auditor --expires-in 90d
  leasehold token issue node-17 --role node_agent --node gpu-17")]
pub(crate) struct TokenIssueArgs {
    /// Name of the token
    pub(crate) name: String,
    /// What the token may do
    #[arg(long, value_enum, value_name = "ROLE")]
    pub(crate) role: Role,
    /// Limit the token to this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Limit the token to this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Limit the token to this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Limit the token to this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Limit the token to this app instance; repeatable
    #[arg(long = "app-instance", value_name = "NAME")]
    pub(crate) app_instances: Vec<String>,
    /// When the token expires, such as 2027-03-01, "2027-03-01 12:00" or friday [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<Moment>,
    /// How long the token is valid from now on, such as 90d
    #[arg(long, value_name = "DURATION", conflicts_with = "expires_at")]
    pub(crate) expires_in: Option<Ttl>,
    /// Write the secret to this new file, readable only by you, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Only tokens of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Number of the token
    pub(crate) token: u32,
}

#[derive(Debug, Args)]
pub(crate) struct TokenChangeArgs {
    /// Number of the token
    pub(crate) token: u32,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
