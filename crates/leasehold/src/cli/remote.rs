//! The commands that call a daemon, and the options that several of them share.

use super::alloc::AllocCommand;
use super::apps::{AppCommand, AppInstanceCommand, AttachmentCommand, UnitCommand};
use super::books::{CostArgs, SensitivityArgs, UsageArgs, WasteArgs};
use super::capacity::{ClassCommand, NodeCommand, PoolCommand};
use super::ceiling::CeilingCommand;
use super::claim::ClaimCommand;
use super::deliveries::{AccountingCommand, DeliveriesCommand};
use super::entitlement::EntitlementCommand;
use super::events::EventsArgs;
use super::lease::LeaseCommand;
use super::ledger::{InvoiceCommand, LedgerCommand, PaymentCommand, PeriodCommand, TaxCommand};
use super::policy::PolicyCommand;
use super::prepaid::PrepaidCommand;
use super::quota::QuotaCommand;
use super::rate::RateCommand;
use super::settings::SettingsCommand;
use super::sharing::SharingCommand;
use super::status::StatusArgs;
use super::tenancy::{ProjectCommand, TenantCommand, UserCommand};
use super::timeline::TimelineArgs;
use super::token::TokenCommand;
use super::usage_record::UsageRecordCommand;
use super::webhook::WebhookCommand;
use clap::{Args, Subcommand};
use leasehold_api::Priority;
use leasehold_model::Words;

pub(crate) use leasehold_terminal::DaemonArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum RemoteCommand {
    /// Show what is going on now: capacity, tenants, queue, fences, disk, checkpoint and scrub
    Status(StatusArgs),
    /// Request, renew, release and inspect leases
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Submit and follow allocations: gangs of leases that can wait in the queue
    #[command(subcommand)]
    Alloc(AllocCommand),
    /// Claim whole nodes for sensitive work
    #[command(subcommand)]
    Claim(ClaimCommand),
    /// Manage tenants: who pays
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Manage projects: what the leases of a tenant are charged to
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Manage the users of tenants
    #[command(subcommand)]
    User(UserCommand),
    /// Manage usage units of app runtimes, and their prices
    #[command(subcommand)]
    Unit(UnitCommand),
    /// Manage kinds of apps
    #[command(subcommand)]
    App(AppCommand),
    /// Manage app instances: the runtimes of projects, and those of the platform
    #[command(subcommand)]
    AppInstance(AppInstanceCommand),
    /// Lend capacity of a project to a shared runtime of its tenant
    #[command(subcommand)]
    Attachment(AttachmentCommand),
    /// Report usage of app runtimes, and look it up
    #[command(subcommand)]
    UsageRecord(UsageRecordCommand),
    /// Manage resource classes: what can be leased
    #[command(subcommand)]
    Class(ClassCommand),
    /// Manage pools: sets of nodes with one placement strategy
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Manage nodes: their capacity and their state
    #[command(subcommand)]
    Node(NodeCommand),
    /// Manage quotas: limits on what tenants may hold
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Manage cost ceilings of projects and app instances
    #[command(subcommand)]
    Ceiling(CeilingCommand),
    /// Limit how much of a usage unit may be used in a month
    #[command(subcommand)]
    Entitlement(EntitlementCommand),
    /// Set policies about the usage of app runtimes, also from a file
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Share the cost of control planes among the projects that use them
    #[command(subcommand)]
    Sharing(SharingCommand),
    /// Issue, list and revoke tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Manage prices: rate cards, and charges for leases that end early
    #[command(subcommand)]
    Rate(RateCommand),
    /// Report usage: what was held, and where all capacity was
    Usage(Box<UsageArgs>),
    /// Cost so far, current hourly rate, forecast for the month
    Cost(Box<CostArgs>),
    /// Report waste: held but unused, idle and fragmented capacity
    Waste(Box<WasteArgs>),
    /// Report how much workloads depend on each kind of resource
    Sensitivity(Box<SensitivityArgs>),
    /// Show and correct the ledger: what was posted, and where it comes from
    #[command(subcommand)]
    Ledger(Box<LedgerCommand>),
    /// Show and close the months of the ledger
    #[command(subcommand)]
    Period(PeriodCommand),
    /// Show invoices and credit notes, and drafts of them
    #[command(subcommand)]
    Invoice(InvoiceCommand),
    /// Record and list payments of tenants
    #[command(subcommand)]
    Payment(PaymentCommand),
    /// Show and add prepaid credit, and say what happens when it comes to its end
    #[command(subcommand)]
    Prepaid(Box<PrepaidCommand>),
    /// Show and set the tax rates of tenants
    #[command(subcommand)]
    Tax(TaxCommand),
    /// Tell everything about a correlation ID in order: requests, decisions, leases, usage, entries and invoices
    Timeline(TimelineArgs),
    /// Show and change the daemon's scheduling limits and timeouts
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Manage webhooks: where events are delivered to
    #[command(subcommand)]
    Webhook(Box<WebhookCommand>),
    /// Show how deliveries to webhooks go, and send events again
    #[command(subcommand)]
    Deliveries(DeliveriesCommand),
    /// Print journal records, one per line, also as they become durable
    Events(EventsArgs),
    /// Commands for operators
    #[command(subcommand)]
    Admin(AdminCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Alias of `leasehold node`
    #[command(subcommand)]
    Node(NodeCommand),
    /// Show how events reach accounting systems, and send what is missing
    #[command(subcommand)]
    Accounting(AccountingCommand),
}

/// The idempotency key of a change.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ChangeArgs {
    /// Idempotency key: a change that is sent again with the same key is made only once [default: random]
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// Filters by owner and priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WhoseArgs {
    /// Only this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Only this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Only this priority class
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) priority: Option<Priority>,
}

/// Repeated output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WatchArgs {
    /// Refresh the output every two seconds until Ctrl-C; needs a terminal
    #[arg(long)]
    pub(crate) watch: bool,
}

/// One object, by name or number.
#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// Name or number
    pub(crate) name: String,
}

/// A change of one object that takes no further options.
#[derive(Debug, Args)]
pub(crate) struct ChangeOneArgs {
    /// Name or number
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Parses a priority class.
pub(super) fn priority(word: &str) -> Result<Priority, String> {
    Priority::from_word(word).ok_or_else(|| format!("expected one of {}", Priority::WORDS.join(", ")))
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
