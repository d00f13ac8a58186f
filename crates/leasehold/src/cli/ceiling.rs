//! `leasehold ceiling …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum CeilingCommand {
    /// The ceilings of a project and its app instances, and what counts against them
    List(CeilingListArgs),
    /// One ceiling
    Show(CeilingArgs),
    /// Set what a project, or one of its app instances, may cost; what was spent stays
    Set(CeilingSetArgs),
    /// Delete a ceiling; what was spent under it is forgotten
    Delete(CeilingDeleteArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CeilingListArgs {
    /// The project: its name or its number
    pub(crate) project: String,
    /// Whose project, where several tenants have one of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CeilingArgs {
    /// The project: its name or its number
    pub(crate) project: String,
    /// Whose project, where several tenants have one of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Of this app instance instead of the whole project
    #[arg(long, value_name = "NUMBER")]
    pub(crate) app_instance: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold ceiling set lattice --hard 1500              refuse what would cost more
  leasehold ceiling set lattice --soft 1200 --tenant physics
  leasehold ceiling set lattice --hard 200 --app-instance 7

Money is kept back when a lease is granted, for all of its time; what it does not use returns when it ends.")]
pub(crate) struct CeilingSetArgs {
    #[command(flatten)]
    pub(crate) of: CeilingArgs,
    #[command(flatten)]
    pub(crate) amount: AmountArgs,
    /// Three capital letters [default: that of the prices]
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[group(id = "amount", required = true, multiple = false)]
pub(crate) struct AmountArgs {
    /// Refuse what would cost more than this in all
    #[arg(long, value_name = "MONEY", allow_hyphen_values = true)]
    pub(crate) hard: Option<String>,
    /// Refuse nothing; show when it costs more
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
