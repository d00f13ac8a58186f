//! `leasehold unit …`, `app …`, `app-instance …` and `attachment …`.

use super::remote::{ChangeArgs, ChangeOneArgs, OneArgs};
use super::tenancy::{MemberArgs, MemberChangeArgs, MemberRenameArgs, TenantFilterArgs};
use clap::{Args, Subcommand};
use leasehold_api::{AllocationId, AppOrigin, ControlPlaneScope, Moment, OperatingMode, RuntimeBackend, UnitMeasure};

#[derive(Debug, Subcommand)]
pub(crate) enum UnitCommand {
    /// List the units in which app runtimes report usage
    List,
    /// Define a unit of this site; it cannot be changed or deleted
    Create(UnitCreateArgs),
    /// List the prices of units: past, in force and scheduled
    Prices,
    /// Set the price of a unit from now or from a later time on
    Price(UnitPriceArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold unit create images --measure count
  leasehold unit create licence_hours --measure time")]
pub(crate) struct UnitCreateArgs {
    /// Name of the unit
    pub(crate) name: String,
    /// Whether it measures time or counts pieces
    #[arg(long, value_enum, value_name = "MEASURE")]
    pub(crate) measure: UnitMeasure,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold unit price requests 0.0004                       # for all apps
  leasehold unit price job_hours 0.25 --app slurm --from 2026-12-01")]
pub(crate) struct UnitPriceArgs {
    /// Name of the unit
    pub(crate) unit: String,
    /// Price of one unit, for instance of an hour or of a request
    #[arg(value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) price: String,
    /// Only for this app [default: all apps that have no price of their own]
    #[arg(long, value_name = "SLUG")]
    pub(crate) app: Option<String>,
    /// When it takes effect [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    /// Currency code of three capital letters [default: the currency of the prices of capacity]
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    /// List the kinds of apps
    List,
    /// Show one kind of app
    Show(OneArgs),
    /// Register a kind of app
    Create(AppCreateArgs),
    /// Change the origin or the units of a kind of app
    Set(AppSetArgs),
    /// Delete a kind of app that has no instances
    Delete(ChangeOneArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold app create slurm --origin internal --unit job_hours --unit gpu_hours")]
pub(crate) struct AppCreateArgs {
    /// Short name of the app; it cannot be changed
    pub(crate) slug: String,
    /// Whether the operator or somebody else makes it; both are billed the same way
    #[arg(long, value_enum, value_name = "ORIGIN")]
    pub(crate) origin: AppOrigin,
    /// Unit in which its instances report usage; repeatable
    #[arg(long = "unit", value_name = "NAME")]
    pub(crate) units: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AppSetArgs {
    /// Slug or number of the app
    pub(crate) app: String,
    /// Whether the operator or somebody else makes it
    #[arg(long, value_enum, value_name = "ORIGIN")]
    pub(crate) origin: Option<AppOrigin>,
    /// Unit in which its instances report usage, in place of those it has; repeatable
    #[arg(long = "unit", value_name = "NAME")]
    pub(crate) units: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppInstanceCommand {
    /// List runtimes: those of projects, and those of the platform
    List(OfProjectArgs),
    /// Show one runtime
    Show(MemberArgs),
    /// Register a runtime of a project
    Create(Box<AppInstanceCreateArgs>),
    /// Rename a runtime; nothing else of it can change
    Set(MemberRenameArgs),
    /// Delete a runtime that has no leases, allocations or attachments
    Delete(MemberChangeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OfProjectArgs {
    #[command(flatten)]
    pub(crate) of: TenantFilterArgs,
    /// Only of this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold app-instance create slurm-dev --project lattice --app slurm --backend slurm
  leasehold app-instance create slurm-shared --project hpc --app slurm --backend slurm --scope tenant
  leasehold app-instance create inference --project platform --app serving --backend serving --mode platform-managed")]
pub(crate) struct AppInstanceCreateArgs {
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    /// Project that owns it
    #[arg(long, value_name = "NAME")]
    pub(crate) project: String,
    /// The app, by its slug
    #[arg(long, value_name = "SLUG")]
    pub(crate) app: String,
    /// What runs its work
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: RuntimeBackend,
    /// For whom it is operated [default: tenant_dedicated]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<OperatingMode>,
    /// Whose control plane it has [default: project, or platform if the platform manages it]
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub(crate) scope: Option<ControlPlaneScope>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AttachmentCommand {
    /// List what projects lend to shared runtimes
    List(OfProjectArgs),
    /// Show one attachment that has not ended
    Show(AttachmentArgs),
    /// Lend to a shared runtime of the tenant: the project pays for what the owner holds by it
    Make(AttachmentMakeArgs),
    /// End an attachment: what waits on its account is cancelled, what runs is no longer renewed
    End(AttachmentEndArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AttachmentArgs {
    /// Number of the attachment, such as 7 or attachment-7
    pub(crate) attachment: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold attachment make slurm-shared --project lattice
  leasehold alloc submit --app-instance slurm-shared --attachment 7 --class gpu-h100=8 --replicas 4 --project hpc")]
pub(crate) struct AttachmentMakeArgs {
    /// Name or number of the shared runtime
    pub(crate) app_instance: String,
    /// Project that lends and pays [default: the project of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Tenant of both, needed if several tenants have an app instance of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// An allocation of the project that it lends as it is
    #[arg(long, value_name = "ID")]
    pub(crate) allocation: Option<AllocationId>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AttachmentEndArgs {
    /// Number of the attachment, such as 7 or attachment-7
    pub(crate) attachment: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
