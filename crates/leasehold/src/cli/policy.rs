//! `leasehold policy …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::Attribution;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the policies in force
    List(PolicyListArgs),
    /// Show all versions of a policy
    History(PolicyArgs),
    /// Set the policy of an app, of an app for a tenant, or of an app instance, as a whole
    Set(PolicySetArgs),
    /// Set the policies, sharing policies and entitlements in a YAML file; what is so already is left alone
    Apply(PolicyApplyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyListArgs {
    /// Only those of this tenant, and those for all tenants
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Slug of the app
    pub(crate) app: String,
    /// Tenant that uses the app [default: that of the token; an operator's is for all tenants]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// One app instance
    #[arg(long, value_name = "NAME")]
    pub(crate) app_instance: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold policy set chat --unit requests --unit tokens
  leasehold policy set chat --tenant physics --attribution caller
  leasehold policy set chat --tenant physics --app-instance llama --attribution owner
  leasehold policy set slurm --tenant physics --billed-work job_hours

What is not given is left to the policy of the next wider scope: the tenant's, then the app's.")]
pub(crate) struct PolicySetArgs {
    #[command(flatten)]
    pub(crate) of: PolicyArgs,
    /// Unit that is accepted, among those of the app; may be repeated [default: all]
    #[arg(long = "unit", value_name = "NAME")]
    pub(crate) units: Vec<String>,
    /// Whose the usage of a project's own runtime is
    #[arg(long, value_name = "WORD")]
    pub(crate) attribution: Option<Attribution>,
    /// Unit in which work on a runtime that a tenant shares is charged to the project that submits it; may be repeated
    /// [default: it is only reported]
    #[arg(long = "billed-work", value_name = "UNIT")]
    pub(crate) billed_work: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example of a file:
  policies:
    - app: chat
      usage_units: [requests, tokens]
    - app: chat
      tenant: physics
      attribution: caller
  sharing:
    - app: slurm
      tenant: physics
      sharing: {method: by_usage, result: entries, usage_unit: job_hours}
  entitlements:
    - tenant: physics
      project: lattice
      usage_unit: requests
      soft: 900000
      hard: 1000000

What is not in the file stays as it is.")]
pub(crate) struct PolicyApplyArgs {
    /// The file, or - for standard input
    pub(crate) file: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
