//! `leasehold tenant …`, `project …` and `user …`.

use super::remote::{ChangeArgs, ChangeOneArgs, OneArgs};
use clap::{Args, Subcommand, ValueEnum};
use leasehold_api::{PoolAccess, Priority, WhenOverQuota};

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// List the tenants that you may see
    List,
    /// Show one tenant
    Show(OneArgs),
    /// Show how much of its budgets a tenant has used, and its factors in the queue
    Usage(TenantUsageArgs),
    /// Create a tenant
    Create(TenantCreateArgs),
    /// Change a tenant and its limits; options that are not given keep their values
    Set(TenantSetArgs),
    /// Delete a tenant that has no leases
    Delete(ChangeOneArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold tenant create physics --accounting-tag cost-4711 --max-priority guaranteed")]
pub(crate) struct TenantCreateArgs {
    /// Name of the tenant
    pub(crate) name: String,
    /// Tag for your own accounting; leases inherit it, and costs can be grouped by it
    #[arg(long, value_name = "TAG")]
    pub(crate) accounting_tag: Option<String>,
    /// Contact of the tenant, such as an email address
    #[arg(long, value_name = "TEXT")]
    pub(crate) contact: Option<String>,
    /// Address for invoices; lines are separated by semicolons, such as "Physics Department; Main Street 1; 12345 Town"
    #[arg(long, value_name = "LINES", value_parser = lines)]
    pub(crate) billing_address: Option<AddressLines>,
    /// Number with the tax authority, printed on invoices
    #[arg(long, value_name = "TEXT")]
    pub(crate) tax_id: Option<String>,
    /// Highest priority class that the tenant may request [default: standard]
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) max_priority: Option<Priority>,
    /// Highest number of quanta per hour that may be evicted for the tenant [default: no limit]
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
    /// Name or number of the tenant
    pub(crate) tenant: String,
    /// Number of days to look back [default: the tenant's budget period, which is 90 unless set]
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
}

/// The lines of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressLines(pub(crate) Vec<String>);

fn lines(text: &str) -> Result<AddressLines, String> {
    let lines: Vec<String> = text.split([';', '\n']).map(|line| line.trim().to_owned()).collect();
    if lines.iter().any(String::is_empty) {
        return Err("a line of the address is empty; separate lines by semicolons".into());
    }
    Ok(AddressLines(lines))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TenantField {
    AccountingTag,
    Contact,
    BillingAddress,
    TaxId,
    WhenOverQuota,
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
  leasehold tenant set physics --billing-address \"Physics Department; Main Street 1; 12345 Town\" --tax-id EE123456789
  leasehold tenant set physics --clear accounting-tag")]
pub(crate) struct TenantSetArgs {
    /// Name or number of the tenant
    pub(crate) tenant: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Tag for your own accounting; new leases inherit it
    #[arg(long, value_name = "TAG")]
    pub(crate) accounting_tag: Option<String>,
    /// Contact of the tenant, such as an email address
    #[arg(long, value_name = "TEXT")]
    pub(crate) contact: Option<String>,
    /// Address for invoices; lines are separated by semicolons, such as "Physics Department; Main Street 1; 12345 Town"
    #[arg(long, value_name = "LINES", value_parser = lines)]
    pub(crate) billing_address: Option<AddressLines>,
    /// Number with the tax authority, printed on invoices
    #[arg(long, value_name = "TEXT")]
    pub(crate) tax_id: Option<String>,
    /// What becomes of allocations that would exceed a quota and do not say it themselves
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) when_over_quota: Option<WhenOverQuota>,
    /// Highest priority class that the tenant may request
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) max_priority: Option<Priority>,
    /// Highest number of quanta per hour that may be evicted for the tenant [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) max_evicted_quanta_per_hour: Option<u64>,
    /// Highest number of nodes on which the tenant may hold leases
    #[arg(long, value_name = "N")]
    pub(crate) max_nodes: Option<u64>,
    /// Highest number of leases that the tenant may hold
    #[arg(long, value_name = "N")]
    pub(crate) max_leases: Option<u64>,
    /// Highest number of allocations that may hold capacity at the same time
    #[arg(long, value_name = "N")]
    pub(crate) max_concurrent_allocations: Option<u64>,
    /// GPU hours per budget period; above 80 % of the budget, the tenant is ranked lower in the queue
    #[arg(long, value_name = "HOURS")]
    pub(crate) gpu_hours_budget: Option<u64>,
    /// Node hours per budget period, with the same effect
    #[arg(long, value_name = "HOURS")]
    pub(crate) node_hours_budget: Option<u64>,
    /// Length of the rolling window of the budgets, in days [default: 90]
    #[arg(long, value_name = "DAYS")]
    pub(crate) budget_period_days: Option<u64>,
    /// Fair share of all GPU time as a fraction, such as 0.25; tenants below their share are ranked higher
    #[arg(long, value_name = "FRACTION")]
    pub(crate) fair_share_target: Option<String>,
    /// GPU hours that are added to the GPU budget
    #[arg(long, value_name = "HOURS")]
    pub(crate) burst_allowance: Option<u64>,
    /// Highest number of allocations that may wait in the queue
    #[arg(long, value_name = "N")]
    pub(crate) max_pending: Option<u64>,
    /// Remove this setting; repeatable
    #[arg(long, value_enum, value_name = "FIELD")]
    pub(crate) clear: Vec<TenantField>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Projects and users have the same commands.
macro_rules! within_tenant {
    ($command:ident, $what:literal $(, $(#[$meta:meta])* $extra:ident($args:ty))*) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum $command {
            #[command(about = concat!("List the ", $what, "s that you may see"))]
            List(TenantFilterArgs),
            #[command(about = concat!("Show one ", $what))]
            Show(MemberArgs),
            #[command(about = concat!("Create a ", $what))]
            Create(MemberChangeArgs),
            #[command(about = concat!("Rename a ", $what))]
            Set(MemberRenameArgs),
            #[command(about = concat!("Delete a ", $what))]
            Delete(MemberChangeArgs),
            $($(#[$meta])* $extra($args),)*
        }
    };
}
within_tenant!(
    ProjectCommand,
    "project",
    /// Set how the work of a project is admitted to a pool
    Access(PoolAccessArgs)
);
within_tenant!(UserCommand, "user");

#[derive(Debug, Args)]
pub(crate) struct TenantFilterArgs {
    /// Only those of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MemberArgs {
    /// Name or number
    pub(crate) name: String,
    /// Tenant that it belongs to [default: the tenant of the token]
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
    /// New name
    #[arg(long = "name", value_name = "NAME", required = true)]
    pub(crate) new_name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold project access lattice --pool training --access paused          # admit nothing new
  leasehold project access lattice --pool training --access deprioritised   # wait behind others of the same priority
  leasehold project access lattice --pool training --access normal")]
pub(crate) struct PoolAccessArgs {
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    /// Pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: String,
    /// How its work is admitted to the pool
    #[arg(long, value_enum, value_name = "ACCESS")]
    pub(crate) access: PoolAccess,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
