//! `leasehold settings …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::{Patch, Ttl};

fn number_or_none(text: &str) -> Result<Patch<u64>, String> {
    match text {
        "none" => Ok(Patch::Clear),
        text => text.parse().map(Patch::Set).map_err(|_| "a number, or `none`".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// What holds now
    Show,
    /// Change some; what is not named stays as it is
    Set(SettingsSetArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold settings set --grace-default 5m --node-timeout 2m")]
pub(crate) struct SettingsSetArgs {
    /// The longest TTL where a pool sets none
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl_max: Option<Ttl>,
    /// The grace of a revocation where neither it nor the pool says
    #[arg(long, value_name = "TIME")]
    pub(crate) grace_default: Option<Ttl>,
    /// How long a node has to confirm a teardown
    #[arg(long, value_name = "TIME")]
    pub(crate) teardown_deadline: Option<Ttl>,
    /// How long a node may be silent
    #[arg(long, value_name = "TIME")]
    pub(crate) node_timeout: Option<Ttl>,
    /// How long an idempotency key is remembered
    #[arg(long, value_name = "TIME")]
    pub(crate) idempotency_window: Option<Ttl>,
    /// In what time a node's heat halves
    #[arg(long, value_name = "TIME")]
    pub(crate) heat_half_life: Option<Ttl>,
    /// How many nodes may be claimed or being wiped, in all; `none` for no limit
    #[arg(long, value_name = "N", value_parser = number_or_none)]
    pub(crate) sensitive_pool_size: Option<Patch<u64>>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
