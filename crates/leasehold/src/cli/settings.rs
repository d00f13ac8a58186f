//! `leasehold settings …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::{Patch, Ttl};

fn number_or_none(text: &str) -> Result<Patch<u64>, String> {
    match text {
        "none" => Ok(Patch::Clear),
        text => text.parse().map(Patch::Set).map_err(|_| "expected a number or `none`".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show the current settings
    Show,
    /// Change settings; those that are not given keep their values
    Set(SettingsSetArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold settings set --grace-default 5m --node-timeout 2m")]
pub(crate) struct SettingsSetArgs {
    /// Longest TTL of a lease in pools that set none
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl_max: Option<Ttl>,
    /// Grace period of a revocation if neither the command nor the pool sets one
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace_default: Option<Ttl>,
    /// How long a node has to confirm a teardown before the capacity is fenced
    #[arg(long, value_name = "DURATION")]
    pub(crate) teardown_deadline: Option<Ttl>,
    /// How long a node may send no heartbeat before it counts as lost
    #[arg(long, value_name = "DURATION")]
    pub(crate) node_timeout: Option<Ttl>,
    /// How long an idempotency key is remembered
    #[arg(long, value_name = "DURATION")]
    pub(crate) idempotency_window: Option<Ttl>,
    /// Time in which the heat of a node halves
    #[arg(long, value_name = "DURATION")]
    pub(crate) heat_half_life: Option<Ttl>,
    /// Highest number of nodes that may be claimed or being wiped at the same time; `none` for no limit
    #[arg(long, value_name = "N", value_parser = number_or_none)]
    pub(crate) sensitive_pool_size: Option<Patch<u64>>,
    /// How long the head of a line waits before it is protected
    #[arg(long, value_name = "DURATION")]
    pub(crate) head_wait_max: Option<Ttl>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
