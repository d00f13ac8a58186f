//! `leasehold quota …`.

use super::remote::{ChangeArgs, WatchArgs};
use clap::{Args, Subcommand};
use leasehold_api::Ttl;
use leasehold_api::{Kind, Measure, Moment, Priority};

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// List quotas and their use
    List(QuotaListArgs),
    /// Show one quota
    Show(QuotaArgs),
    /// Create a quota
    Create(QuotaCreateArgs),
    /// Change the limit of a quota, or whether requests may evict; its scope cannot change
    Set(QuotaSetArgs),
    /// Delete a quota
    Delete(QuotaChangeArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct QuotaListArgs {
    /// Only quotas of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QuotaArgs {
    /// Number of the quota
    pub(crate) quota: u32,
}

#[derive(Debug, Args)]
pub(crate) struct QuotaChangeArgs {
    /// Number of the quota
    pub(crate) quota: u32,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// The limit. Amounts are in units of the class (8, 80GiB, 1/7), or a count of leases, nodes or allocations.
#[derive(Debug, Args)]
#[group(id = "limit", multiple = false)]
pub(crate) struct LimitArgs {
    /// Hard limit: deny requests that would exceed this amount (8, 80GiB, 1/7, or a count; for `quota set` also a
    /// percentage of the base limit, as in +20%)
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) hard: Option<String>,
    /// Soft limit: grant requests above this amount, but mark and count them
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) soft: Option<String>,
    /// Base limit of a burst quota; it may be exceeded up to --burst-limit for --burst-ttl
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true, requires_all = ["burst_limit", "burst_ttl"])]
    pub(crate) burst: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BurstArgs {
    /// Highest total amount during a burst
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true, requires = "burst")]
    pub(crate) burst_limit: Option<String>,
    /// How long a burst may last
    #[arg(long, value_name = "DURATION", requires = "burst")]
    pub(crate) burst_ttl: Option<Ttl>,
}

#[derive(Debug, Args)]
pub(crate) struct EvictArgs {
    /// Let a request that fails on this quota alone evict leases of lower priority that the quota counts
    /// (--evict-own-lower=false turns it off)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) evict_own_lower: Option<bool>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold quota create --tenant physics --class gpu-h100 --hard 64
  leasehold quota create --tenant physics --class gpu-h100 --hard 64 --evict-own-lower
  leasehold quota create --tenant physics --class gpu-h100 --burst 16 --burst-limit 32 --burst-ttl 2h
  leasehold quota create --tenant physics --measure nodes --hard 200
  leasehold quota create --tenant physics --kind gpu --each-user --hard 8
  leasehold quota create --tenant physics --kind gpu --priority standard --and-above --hard 48")]
pub(crate) struct QuotaCreateArgs {
    /// Tenant that the quota limits
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
    /// Count only this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Class that the quota limits; this or --kind is required unless --measure counts leases, nodes or allocations
    #[arg(long, value_name = "NAME", conflicts_with = "kind")]
    pub(crate) class: Option<String>,
    /// Count all classes of this kind together, whatever their model; the limit is in GPUs, cores, GiB or Gb/s
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Count only this user
    #[arg(long, value_name = "NAME", conflicts_with = "each_user")]
    pub(crate) user: Option<String>,
    /// Apply the limit to each user separately
    #[arg(long)]
    pub(crate) each_user: bool,
    /// Count only this app instance
    #[arg(long, value_name = "NAME", conflicts_with = "each_app_instance")]
    pub(crate) app_instance: Option<String>,
    /// Apply the limit to each app instance separately
    #[arg(long)]
    pub(crate) each_app_instance: bool,
    /// Count only this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Count only this node
    #[arg(long, value_name = "NAME", conflicts_with = "each_node")]
    pub(crate) node: Option<String>,
    /// Apply the limit to each node separately
    #[arg(long)]
    pub(crate) each_node: bool,
    /// Count only this priority class
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) priority: Option<Priority>,
    /// Count higher priority classes than --priority too
    #[arg(long, requires = "priority")]
    pub(crate) and_above: bool,
    /// What the quota counts
    #[arg(long, value_enum, value_name = "MEASURE", default_value = "quanta")]
    pub(crate) measure: Measure,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    #[command(flatten)]
    pub(crate) burst: BurstArgs,
    #[command(flatten)]
    pub(crate) evict: EvictArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold quota set 5 --hard 80
  leasehold quota set 5 --evict-own-lower
  leasehold quota set 5 --hard +20% --until friday")]
pub(crate) struct QuotaSetArgs {
    /// Number of the quota
    pub(crate) quota: u32,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    /// Apply the limit only until then: a time, a date, a weekday, tomorrow, or a duration from now (2d, 12h). The base
    /// limit stays and applies again afterwards. Without this, the limit becomes the base limit
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
    #[command(flatten)]
    pub(crate) burst: BurstArgs,
    #[command(flatten)]
    pub(crate) evict: EvictArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
