//! `leasehold token …`.

use super::lease::instant;
use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::Role;
use leasehold_api::{Ttl, When};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token; its secret is shown once
    Issue(TokenIssueArgs),
    /// Tokens, without their secrets
    List(TokenListArgs),
    /// One token
    Show(TokenArgs),
    /// Revoke a token: whoever uses it is shut out at once
    Revoke(TokenChangeArgs),
    /// The token you are using
    Whoami,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold token issue ci --role project_member --tenant physics --project lattice --out ci.token
  leasehold token issue auditor --role auditor --expires-in 90d
  leasehold token issue node-17 --role node_agent --node gpu-17")]
pub(crate) struct TokenIssueArgs {
    /// What people call it
    pub(crate) name: String,
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) role: Role,
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// May be given more than once
    #[arg(long = "app-instance", value_name = "N")]
    pub(crate) app_instances: Vec<u64>,
    /// Until when it is good, such as 2026-03-01T12:00:00Z [default: for ever]
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) expires_at: Option<When>,
    /// The same from now on, such as 90d
    #[arg(long, value_name = "TIME", conflicts_with = "expires_at")]
    pub(crate) expires_in: Option<Ttl>,
    /// Write the secret to this new file, which only you may read, instead of showing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Its number
    pub(crate) token: u32,
}

#[derive(Debug, Args)]
pub(crate) struct TokenChangeArgs {
    /// Its number
    pub(crate) token: u32,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
