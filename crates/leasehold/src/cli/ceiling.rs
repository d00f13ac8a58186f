//! `leasehold ceiling …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum CeilingCommand {
    /// List the ceilings of a project and its app instances, with the amounts spent and reserved
    List(CeilingListArgs),
    /// Show one ceiling
    Show(CeilingArgs),
    /// Set the ceiling of a project or of one app instance; updating a ceiling keeps the amount already spent
    Set(CeilingSetArgs),
    /// Delete a ceiling and its spent amount
    Delete(CeilingDeleteArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CeilingListArgs {
    /// Name or number of the project
    pub(crate) project: String,
    /// Tenant of the project, needed if several tenants have a project of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CeilingArgs {
    /// Name or number of the project
    pub(crate) project: String,
    /// Tenant of the project, needed if several tenants have a project of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The ceiling of this app instance instead of the whole project
    #[arg(long, value_name = "NAME")]
    pub(crate) app_instance: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ceiling set lattice --hard 1500              # deny requests that would exceed 1500
  leasehold ceiling set lattice --soft 1200 --tenant physics
  leasehold ceiling set lattice --hard 200 --app-instance slurm-dev

A grant reserves the cost of the lease up to its deadline. What the lease did not use is returned when it ends.")]
pub(crate) struct CeilingSetArgs {
    #[command(flatten)]
    pub(crate) of: CeilingArgs,
    #[command(flatten)]
    pub(crate) amount: AmountArgs,
    /// Currency code of three capital letters [default: the currency of the prices]
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[group(id = "amount", required = true, multiple = false)]
pub(crate) struct AmountArgs {
    /// Hard ceiling: deny requests that would exceed this total
    #[arg(long, value_name = "MONEY", allow_hyphen_values = true)]
    pub(crate) hard: Option<String>,
    /// Soft ceiling: deny nothing, but show when this total is exceeded
    #[arg(long, value_name = "MONEY", allow_hyphen_values = true)]
    pub(crate) soft: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CeilingDeleteArgs {
    #[command(flatten)]
    pub(crate) of: CeilingArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
