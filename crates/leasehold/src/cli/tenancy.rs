//! `leasehold tenant …`, `project …` and `user …`.

use super::remote::{ChangeArgs, ChangeOneArgs, OneArgs};
use super::words::Priority;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// All tenants that you may see
    List,
    /// One tenant
    Show(OneArgs),
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
    /// The highest priority it may ask for [default: standard]
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) max_priority: Option<Priority>,
    /// How much it may have evicted in an hour, in quanta
    #[arg(long, value_name = "N")]
    pub(crate) max_evicted_quanta_per_hour: Option<u64>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TenantField {
    AccountingTag,
    MaxPriority,
    MaxEvictedQuantaPerHour,
    MaxNodes,
    MaxLeases,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold tenant set physics --max-nodes 200 --max-leases 5000
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
