//! `leasehold tenant …`, `project …` and `user …`.

use super::remote::{ChangeArgs, ChangeOneArgs, OneArgs};
use clap::{Args, Subcommand, ValueEnum};
use leasehold_api::Priority;

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// All tenants that you may see
    List,
    /// One tenant
    Show(OneArgs),
    /// What a tenant used of its budgets, and how that counts in the queue
    Usage(TenantUsageArgs),
    /// Make a tenant
    Create(TenantCreateArgs),
    /// Change a tenant and its limits; what is not named stays as it is
    Set(TenantSetArgs),
    /// Delete a tenant that has no leases
    Delete(ChangeOneArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold tenant create physics --accounting-tag cost-4711 --max-priority guaranteed")]
pub(crate) struct TenantCreateArgs {
    pub(crate) name: String,
    /// Inherited by every lease and every charge
    #[arg(long, value_name = "TAG")]
    pub(crate) accounting_tag: Option<String>,
    /// Whom to write to or call about this tenant, such as an email address
    #[arg(long, value_name = "TEXT")]
    pub(crate) contact: Option<String>,
    /// The highest priority it may ask for [default: standard]
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) max_priority: Option<Priority>,
    /// How much it may have evicted in an hour, in quanta
    #[arg(long, value_name = "N")]
    pub(crate) max_evicted_quanta_per_hour: Option<u64>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold tenant usage physics --days 30")]
pub(crate) struct TenantUsageArgs {
    /// Its name or its number
    pub(crate) tenant: String,
    /// How many days back [default: the tenant's budget period, 90 unless set]
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TenantField {
    AccountingTag,
    Contact,
    MaxPriority,
    MaxEvictedQuantaPerHour,
    MaxNodes,
    MaxLeases,
    MaxConcurrentAllocations,
    GpuHoursBudget,
    NodeHoursBudget,
    BudgetPeriodDays,
    FairShareTarget,
    BurstAllowance,
    MaxPending,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold tenant set physics --max-nodes 200 --max-leases 5000
  leasehold tenant set physics --gpu-hours-budget 50000 --fair-share-target 0.25
  leasehold tenant set physics --clear accounting-tag")]
pub(crate) struct TenantSetArgs {
    /// Its name or its number
    pub(crate) tenant: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Inherited by every new lease and its charges
    #[arg(long, value_name = "TAG")]
    pub(crate) accounting_tag: Option<String>,
    /// Whom to write to or call about this tenant, such as an email address
    #[arg(long, value_name = "TEXT")]
    pub(crate) contact: Option<String>,
    /// The highest priority it may ask for
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) max_priority: Option<Priority>,
    /// How much it may have evicted in an hour, in quanta
    #[arg(long, value_name = "N")]
    pub(crate) max_evicted_quanta_per_hour: Option<u64>,
    /// The most distinct nodes it may hold something on
    #[arg(long, value_name = "N")]
    pub(crate) max_nodes: Option<u64>,
    /// The most leases it may hold
    #[arg(long, value_name = "N")]
    pub(crate) max_leases: Option<u64>,
    /// The most allocations that may hold capacity at once
    #[arg(long, value_name = "N")]
    pub(crate) max_concurrent_allocations: Option<u64>,
    /// GPU hours within the budget period; beyond 80 % of them its work waits longer
    #[arg(long, value_name = "HOURS")]
    pub(crate) gpu_hours_budget: Option<u64>,
    /// Node hours likewise
    #[arg(long, value_name = "HOURS")]
    pub(crate) node_hours_budget: Option<u64>,
    /// The rolling window of the budgets [default: 90]
    #[arg(long, value_name = "DAYS")]
    pub(crate) budget_period_days: Option<u64>,
    /// The share of all GPU time that it is meant to have, such as 0.25
    #[arg(long, value_name = "FRACTION")]
    pub(crate) fair_share_target: Option<String>,
    /// GPU hours beyond the budget that are not held against it
    #[arg(long, value_name = "HOURS")]
    pub(crate) burst_allowance: Option<u64>,
    /// The most allocations that may wait
    #[arg(long, value_name = "N")]
    pub(crate) max_pending: Option<u64>,
    /// Take this setting away; may be given more than once
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<TenantField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// What is said of projects is said of users.
macro_rules! within_tenant {
    ($command:ident, $what:literal) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum $command {
            #[doc = concat!("All ", $what, "s that you may see")]
            List(TenantFilterArgs),
            #[doc = concat!("One ", $what)]
            Show(MemberArgs),
            #[doc = concat!("Make a ", $what)]
            Create(MemberChangeArgs),
            #[doc = concat!("Rename a ", $what)]
            Set(MemberRenameArgs),
            #[doc = concat!("Delete a ", $what)]
            Delete(MemberChangeArgs),
        }
    };
}
within_tenant!(ProjectCommand, "project");
within_tenant!(UserCommand, "user");

#[derive(Debug, Args)]
pub(crate) struct TenantFilterArgs {
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MemberArgs {
    /// Its name or its number
    pub(crate) name: String,
    /// The tenant it belongs to; a tenant's token names it itself
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MemberChangeArgs {
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MemberRenameArgs {
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    /// The new name
    #[arg(long = "name", value_name = "NAME", required = true)]
    pub(crate) new_name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
