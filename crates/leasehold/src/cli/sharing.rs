//! `leasehold sharing …`.

use super::policy::{PolicyArgs, PolicyListArgs};
use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::{SharedAs, SharingMethod};

#[derive(Debug, Subcommand)]
pub(crate) enum SharingCommand {
    /// List the sharing policies in force
    List(PolicyListArgs),
    /// Show all versions of a sharing policy
    History(PolicyArgs),
    /// Set how the cost of control planes is shared: of an app, of an app for a tenant, or of an app instance
    Set(SharingSetArgs),
    /// List the shares of a month; those of a month that is not closed are a draft
    Shares(SharesArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold sharing set slurm --tenant physics --app-instance cluster --method by-usage --unit job_hours
  leasehold sharing set slurm --tenant physics --method fixed --weight lattice=60 --weight plasma=40
  leasehold sharing set chat --app-instance llama --method by-tier --tier gold=3 --tier tin=1 --default-tier tin
  leasehold sharing set slurm --tenant physics --method even --result report
  leasehold sharing set chat --control-plane-billable false

The cost of a month is divided when the month is closed. What is not given is left to the policy of the next wider
scope: the tenant's, then the app's. Only operators set --control-plane-billable and --distributable.")]
pub(crate) struct SharingSetArgs {
    #[command(flatten)]
    pub(crate) of: PolicyArgs,
    /// How the cost is divided
    #[arg(long, value_name = "WORD")]
    pub(crate) method: Option<SharingMethod>,
    /// Whether the shares are booked, or only recorded
    #[arg(long, value_name = "WORD", default_value = "entries", requires = "method")]
    pub(crate) result: SharedAs,
    /// Usage unit, for by-usage and by-quota
    #[arg(long, value_name = "NAME", requires = "method")]
    pub(crate) unit: Option<String>,
    /// Percentage of a project, for fixed; may be repeated, and adds up to 100
    #[arg(long = "weight", value_name = "PROJECT=PERCENT", requires = "method")]
    pub(crate) weights: Vec<String>,
    /// Service tier with its weight, for by-tier; may be repeated
    #[arg(long = "tier", value_name = "NAME=WEIGHT", requires = "method")]
    pub(crate) tiers: Vec<String>,
    /// Service tier of a project, for by-tier; may be repeated
    #[arg(long = "project-tier", value_name = "PROJECT=TIER", requires = "method")]
    pub(crate) project_tiers: Vec<String>,
    /// Service tier of all other projects, for by-tier [default: they take no part]
    #[arg(long, value_name = "NAME", requires = "method")]
    pub(crate) default_tier: Option<String>,
    /// Whether the control plane is billed at all; if not, the operator bears its cost
    #[arg(long, value_name = "true|false")]
    pub(crate) control_plane_billable: Option<bool>,
    /// Whether the cost may be divided among projects
    #[arg(long, value_name = "true|false")]
    pub(crate) distributable: Option<bool>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SharesArgs {
    /// Month [default: the first one that is not closed]
    #[arg(long, value_name = "YYYY-MM")]
    pub(crate) month: Option<String>,
    /// Only the shares of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only the cost of this app instance
    #[arg(long, value_name = "NAME")]
    pub(crate) app_instance: Option<String>,
}
