//! `leasehold prepaid …`.

use super::ledger::OwnerArgs;
use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::{CreditSource, Moment, PrepaidAction, Ttl};

#[derive(Debug, Subcommand)]
pub(crate) enum PrepaidCommand {
    /// List prepaid credit, with what is left and what is reserved
    List(OwnerArgs),
    /// Show the prepaid credit of a tenant or a project, with its credits and its policy
    Show(PrepaidOwnerArgs),
    /// Add credit
    TopUp(TopUpArgs),
    /// Set when credit is low, and what happens when it comes to its end
    Policy(PrepaidPolicyArgs),
    /// End a credit before it expires: what is not spent of it lapses
    End(CreditEndArgs),
}

/// Whose credit.
#[derive(Clone, Debug, Args)]
pub(crate) struct PrepaidOwnerArgs {
    /// Name or number of the tenant
    #[arg(long, value_name = "NAME", required_unless_present = "project")]
    pub(crate) tenant: Option<String>,
    /// Name or number of the project, if the credit is for that project alone
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Currency code of three capital letters [default: the currency of the prices]
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold prepaid top-up 5000 --tenant physics --reference \"order 4711\"
  leasehold prepaid top-up 200 --project lattice --reference \"welcome\" --source granted --expires 2026-12-31

The same reference with the same figures changes nothing and shows the account; with another amount it is refused.
Credits with a lower --priority are used first, then those that expire first.")]
pub(crate) struct TopUpArgs {
    /// Amount, without tax
    #[arg(allow_hyphen_values = true)]
    pub(crate) amount: String,
    #[command(flatten)]
    pub(crate) of: PrepaidOwnerArgs,
    /// Reference, such as that of the order; unique within the account
    #[arg(long, value_name = "TEXT")]
    pub(crate) reference: String,
    /// Credits of a lower number are used first
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) priority: u32,
    /// When what is not spent of it lapses [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<Moment>,
    /// Whether it was paid for or is a gift [default: paid]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) source: Option<CreditSource>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold prepaid policy --tenant physics --low-below 500 --window 24h
  leasehold prepaid policy --project lattice --pending downgrade --depleted drain --grace 10m

Actions: alert records and reports the change; downgrade gives new and waiting work the lowest priority; block denies new
work; drain also revokes the leases that are paid by it. With block or drain for --depleted, all work must be covered.
What is not given stays as it is.")]
pub(crate) struct PrepaidPolicyArgs {
    #[command(flatten)]
    pub(crate) of: PrepaidOwnerArgs,
    /// It is low when less than this is left
    #[arg(long, value_name = "MONEY", allow_hyphen_values = true)]
    pub(crate) low_below: Option<String>,
    /// It is pending when what is held now would use it up within this time; 0s for never
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<Ttl>,
    /// What happens while it is low
    #[arg(long, value_enum, value_name = "ACTION")]
    pub(crate) low: Option<PrepaidAction>,
    /// What happens while it is pending
    #[arg(long, value_enum, value_name = "ACTION")]
    pub(crate) pending: Option<PrepaidAction>,
    /// What happens when nothing is left
    #[arg(long, value_enum, value_name = "ACTION")]
    pub(crate) depleted: Option<PrepaidAction>,
    /// Time that leases have when they are revoked [default: the grace of their pools]
    #[arg(long, value_name = "TIME")]
    pub(crate) grace: Option<Ttl>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CreditEndArgs {
    /// Number of the credit
    pub(crate) credit: u64,
    #[command(flatten)]
    pub(crate) of: PrepaidOwnerArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
