//! `leasehold rate …`.

use super::remote::{ChangeArgs, pair, priority};
use clap::{Args, Subcommand};
use leasehold_api::{Charge, Moment};

#[derive(Debug, Subcommand)]
pub(crate) enum RateCommand {
    /// List rate cards: past, in force and scheduled
    List(RateListArgs),
    /// Show one rate card
    Show(RateShowArgs),
    /// Show the rate card that is in force now
    Current(RateCurrentArgs),
    /// Set prices from now or from a later time on; those that are not given are taken from the card in force
    Set(Box<RateSetArgs>),
    /// Withdraw a scheduled card
    Delete(RateDeleteArgs),
    /// Manage what is charged for leases that end early
    #[command(subcommand)]
    Policy(PolicyCommand),
}

#[derive(Debug, Args)]
pub(crate) struct RateListArgs {
    /// Only cards of this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RateShowArgs {
    /// Number of the card, or `built-in`
    pub(crate) card: String,
}

#[derive(Debug, Args)]
pub(crate) struct RateCurrentArgs {
    /// The card for this pool [default: the card for all pools]
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RateDeleteArgs {
    /// Number of the card
    pub(crate) card: u32,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Set prices from now or from a later time on. Prices are per unit (a GPU, a core, a GiB of memory or disk, one Gb/s)
/// and per second, or with `/h` per hour and with `/d` per day. Prices that are not given are taken from the card in
/// force.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold rate set --from 2026-12-01 --gpu 0.012 --tier h100=2 --priority scavenger=0.3
  leasehold rate set --gpu 2.00/h --cpu 0.05/h                 # per GPU-hour and core-hour, exact
  leasehold rate set --pool training --class gpu-h100=0.02 --currency EUR
  leasehold rate set --card 3 --gpu 0.013                      # change a scheduled card

A card that is or was in force cannot be changed. To correct a price, set a new card.")]
pub(crate) struct RateSetArgs {
    /// Change this scheduled card instead of creating one
    #[arg(long, value_name = "NUMBER")]
    pub(crate) card: Option<u32>,
    /// The card applies only to this pool [default: all pools without a card of their own]
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Change a card for one pool into a card for all pools without a card of their own
    #[arg(long, requires = "card", conflicts_with = "pool")]
    pub(crate) all_pools: bool,
    /// When the prices take effect, such as 2026-12-01, next-month or "friday 18:00" [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    /// Currency code of three capital letters
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Price of a GPU, such as 2.00/h
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) gpu: Option<String>,
    /// Price of a core
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) cpu: Option<String>,
    /// Price of a GiB of memory
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) mem: Option<String>,
    /// Price of a GiB of disk
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) block: Option<String>,
    /// Price of 1 Gb/s
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) net: Option<String>,
    /// Price of one class, instead of the price of its kind; repeatable
    #[arg(long = "class", value_name = "NAME=PRICE", value_parser = pair)]
    pub(crate) classes: Vec<(String, String)>,
    /// Remove the price of this class, so that the price of its kind applies; repeatable
    #[arg(long = "no-class", value_name = "NAME")]
    pub(crate) no_classes: Vec<String>,
    /// Price factor of one tier; repeatable
    #[arg(long = "tier", value_name = "NAME=FACTOR", value_parser = pair)]
    pub(crate) tiers: Vec<(String, String)>,
    /// Remove the price factor of this tier; repeatable
    #[arg(long = "no-tier", value_name = "NAME")]
    pub(crate) no_tiers: Vec<String>,
    /// Price factor of a priority class, such as scavenger=0.3; repeatable
    #[arg(long = "priority", value_name = "PRIORITY=FACTOR", value_parser = factor)]
    pub(crate) priorities: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List charge policies: past, in force and scheduled
    List,
    /// Set a charge policy from now or from a later time on; charges that are not given are taken from the policy in force
    Set(PolicySetArgs),
}

/// Set a charge policy from now or from a later time on. A charge is `full`, `none`, or a duration: everything that was
/// held except the last stretch of that length. Charges that are not given are taken from the policy in force.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold rate policy set --preempted 10m --node-lost 10m --failed-start none")]
pub(crate) struct PolicySetArgs {
    /// Change this scheduled policy instead of creating one
    #[arg(long, value_name = "NUMBER")]
    pub(crate) policy: Option<u32>,
    /// When the policy takes effect, such as 2026-12-01, next-month or "friday 18:00" [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    /// Charge for leases that were evicted: full, none, or a duration such as 10m to subtract
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) preempted: Option<Charge>,
    /// Charge for leases whose teardown was not confirmed
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) fenced: Option<Charge>,
    /// Charge for leases whose node was lost
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) node_lost: Option<Charge>,
    /// Charge for leases that failed to start
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) failed_start: Option<Charge>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

fn factor(text: &str) -> Result<(String, String), String> {
    let (word, factor) = pair(text)?;
    Ok((priority(&word)?.word().to_owned(), factor))
}

fn charge(text: &str) -> Result<Charge, String> {
    match text {
        "full" => Ok(Charge::Full),
        "none" => Ok(Charge::None),
        time => {
            time.parse().map(Charge::MinusLast).map_err(|_| "expected full, none, or a duration such as 10m".into())
        }
    }
}
