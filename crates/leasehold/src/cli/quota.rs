//! `leasehold quota …`.

use super::remote::{ChangeArgs, WatchArgs};
use clap::{Args, Subcommand};
use leasehold_api::Ttl;
use leasehold_api::{Measure, Priority};

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Quotas, and what is used of them
    List(QuotaListArgs),
    /// One quota
    Show(QuotaArgs),
    /// Make a quota
    Create(QuotaCreateArgs),
    /// Change a quota's limit; what it applies to does not change
    Set(QuotaSetArgs),
    /// Delete a quota
    Delete(QuotaChangeArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct QuotaListArgs {
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QuotaArgs {
    /// Its number
    pub(crate) quota: u32,
}

#[derive(Debug, Args)]
pub(crate) struct QuotaChangeArgs {
    /// Its number
    pub(crate) quota: u32,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// How much, and how strictly. Amounts are in the class's units (8, 80GiB, 1/7), or a count of leases or nodes.
#[derive(Debug, Args)]
#[group(id = "limit", required = true, multiple = false)]
pub(crate) struct LimitArgs {
    /// Refuse what would go beyond
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) hard: Option<String>,
    /// Grant what goes beyond, mark it and count it
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) soft: Option<String>,
    /// Allow more for a while: up to --burst-limit for one --burst-ttl
    #[arg(long, value_name = "AMOUNT", requires_all = ["burst_limit", "burst_ttl"])]
    pub(crate) burst: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BurstArgs {
    /// The ceiling of a burst: all of it, not what comes on top
    #[arg(long, value_name = "AMOUNT", requires = "burst")]
    pub(crate) burst_limit: Option<String>,
    /// How long an episode may last
    #[arg(long, value_name = "TIME", requires = "burst")]
    pub(crate) burst_ttl: Option<Ttl>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold quota create --tenant physics --class gpu-h100 --hard 64
  leasehold quota create --tenant physics --class gpu-h100 --burst 16 --burst-limit 32 --burst-ttl 2h
  leasehold quota create --tenant physics --measure nodes --hard 200")]
pub(crate) struct QuotaCreateArgs {
    /// Whose it is
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
    /// Only of this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Of which class; needed unless leases, nodes or allocations are counted
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// Only in this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only on this node
    #[arg(long, value_name = "NAME", conflicts_with = "each_node")]
    pub(crate) node: Option<String>,
    /// On each node on its own
    #[arg(long)]
    pub(crate) each_node: bool,
    /// Only of this priority
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) priority: Option<Priority>,
    /// What is counted
    #[arg(long, value_enum, value_name = "WORD", default_value = "quanta")]
    pub(crate) measure: Measure,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    #[command(flatten)]
    pub(crate) burst: BurstArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold quota set 5 --hard 80")]
pub(crate) struct QuotaSetArgs {
    /// Its number
    pub(crate) quota: u32,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    #[command(flatten)]
    pub(crate) burst: BurstArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
