//! `leasehold entitlement …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum EntitlementCommand {
    /// List entitlements, with what was used in the last months
    List(EntitlementListArgs),
    /// Set how much of a usage unit may be used in a month; what was used already counts
    Set(EntitlementSetArgs),
    /// Delete an entitlement
    Delete(EntitlementDeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EntitlementListArgs {
    /// Only those of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only those of this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EntitlementArgs {
    /// Usage unit
    pub(crate) unit: String,
    /// Project whose usage is limited
    #[arg(long, value_name = "NAME", required_unless_present = "app_instance")]
    pub(crate) project: Option<String>,
    /// App instance on which usage is limited
    #[arg(long, value_name = "NAME")]
    pub(crate) app_instance: Option<String>,
    /// Tenant of the project or app instance [default: that of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold entitlement set requests --project chat --tenant physics --hard 1000000
  leasehold entitlement set job_hours --project lattice --soft 900 --hard 1000
  leasehold entitlement set tokens --project chat --app-instance llama --soft 5000000

Beyond the soft limit an alert is recorded once a month. Beyond the hard limit usage is refused, and kept in
the list of `leasehold usage-record refused`.")]
pub(crate) struct EntitlementSetArgs {
    #[command(flatten)]
    pub(crate) of: EntitlementArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[group(id = "limits", required = true, multiple = true)]
pub(crate) struct LimitArgs {
    /// Beyond this an alert is raised
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) soft: Option<String>,
    /// Beyond this usage is refused
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) hard: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EntitlementDeleteArgs {
    #[command(flatten)]
    pub(crate) of: EntitlementArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
