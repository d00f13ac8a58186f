//! The commands that speak to a daemon, and how it is named.

use super::alloc::AllocCommand;
use super::books::{CostArgs, SensitivityArgs, UsageArgs, WasteArgs};
use super::capacity::{ClassCommand, NodeCommand, PoolCommand};
use super::ceiling::CeilingCommand;
use super::claim::ClaimCommand;
use super::events::EventsArgs;
use super::lease::LeaseCommand;
use super::quota::QuotaCommand;
use super::rate::RateCommand;
use super::settings::SettingsCommand;
use super::tenancy::{ProjectCommand, TenantCommand, UserCommand};
use super::token::TokenCommand;
use clap::{Args, Subcommand};
use leasehold_api::{Priority, When};
use leasehold_model::Words;

pub(crate) use leasehold_terminal::DaemonArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum RemoteCommand {
    /// Ask for capacity, hold it, give it back
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Gangs of leases for one workload, and the queue they wait in
    #[command(subcommand)]
    Alloc(AllocCommand),
    /// Nodes of one's own for sensitive work
    #[command(subcommand)]
    Claim(ClaimCommand),
    /// Who pays
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// What a tenant's leases are charged to
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Who asks, within a tenant
    #[command(subcommand)]
    User(UserCommand),
    /// What can be leased, and in which pieces
    #[command(subcommand)]
    Class(ClassCommand),
    /// Sets of nodes with one placement strategy
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Machines: what they have, and taking them out and in
    #[command(subcommand)]
    Node(NodeCommand),
    /// Limits on what tenants may hold
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// What projects and their app instances may cost
    #[command(subcommand)]
    Ceiling(CeilingCommand),
    /// Who may do what
    #[command(subcommand)]
    Token(TokenCommand),
    /// Prices: rate cards, and what is charged for leases that end badly
    #[command(subcommand)]
    Rate(RateCommand),
    /// What was held, by whom; where all capacity was
    Usage(Box<UsageArgs>),
    /// What it cost; what is held now costs; what the month will have cost
    Cost(Box<CostArgs>),
    /// What was held and not used, what was idle, what is in pieces
    Waste(Box<WasteArgs>),
    /// What workloads depend on
    Sensitivity(Box<SensitivityArgs>),
    /// The engine's own limits
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Records as they become durable, one per line
    Events(EventsArgs),
    /// What operators do
    #[command(subcommand)]
    Admin(AdminCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// The same as `leasehold node`
    #[command(subcommand)]
    Node(NodeCommand),
}

/// A change, and the key that makes it safe to send again.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ChangeArgs {
    /// Send under this key: the same change under the same key is made once [default: a new one]
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// Of whom, and how urgent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WhoseArgs {
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only of this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Only of this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Only of this priority
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) priority: Option<Priority>,
}

/// As it was at an instant, or over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct PastArgs {
    /// As of this instant, such as 2026-11-12T14:03 (UTC), today, or 3h for that long ago
    #[arg(long, value_name = "TIME", value_parser = super::books::moment, conflicts_with_all = ["from", "until"])]
    pub(crate) at: Option<When>,
    /// Over the time from this instant on
    #[arg(long, value_name = "TIME", value_parser = super::books::moment)]
    pub(crate) from: Option<When>,
    /// Over the time up to, but without, this instant
    #[arg(long, value_name = "TIME", value_parser = super::books::moment, alias = "to")]
    pub(crate) until: Option<When>,
}

/// Over and over, on a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WatchArgs {
    /// Show it again every two seconds, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

/// One thing, by its name or its number.
#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// Its name or its number
    pub(crate) name: String,
}

/// A change of one thing that needs nothing more.
#[derive(Debug, Args)]
pub(crate) struct ChangeOneArgs {
    /// Its name or its number
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// A priority, by its word.
pub(super) fn priority(word: &str) -> Result<Priority, String> {
    Priority::from_word(word).ok_or_else(|| format!("the priorities are {}", Priority::WORDS.join(", ")))
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it like NAME=VALUE".into()),
    }
}
