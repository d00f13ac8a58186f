//! `leasehold rate …`.

use super::remote::{ChangeArgs, pair, priority};
use clap::{Args, Subcommand};
use leasehold_api::{Charge, When};

#[derive(Debug, Subcommand)]
pub(crate) enum RateCommand {
    /// Rate cards: what holds, what held, and what waits for its day
    List(RateListArgs),
    /// One rate card
    Show(RateShowArgs),
    /// The card by which this second is rated
    Current(RateCurrentArgs),
    /// Set prices from now or from a later day on; what is not given is as in the card in force
    Set(Box<RateSetArgs>),
    /// Withdraw a card that waits
    Delete(RateDeleteArgs),
    /// What is charged for leases that end badly
    #[command(subcommand)]
    Policy(PolicyCommand),
}

#[derive(Debug, Args)]
pub(crate) struct RateListArgs {
    /// Only of this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RateShowArgs {
    /// Its number, or `built-in`
    pub(crate) card: String,
}

#[derive(Debug, Args)]
pub(crate) struct RateCurrentArgs {
    /// In this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RateDeleteArgs {
    /// Its number
    pub(crate) card: u32,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Prices are per second of a whole unit: a GPU, a core, a GiB of memory or disk, a Gb/s.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold rate set --from 2026-12-01T00:00Z --gpu 0.012 --tier h100=2 --priority scavenger=0.3
  leasehold rate set --pool training --class gpu-h100=0.02 --currency EUR
  leasehold rate set --card 3 --gpu 0.013                      change a card that waits

What has begun is never changed: a wrong price is succeeded by the right one.")]
pub(crate) struct RateSetArgs {
    /// Change this card, which waits, instead of making one
    #[arg(long, value_name = "NUMBER")]
    pub(crate) card: Option<u32>,
    /// Only for this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// For all pools that have no card of their own, instead of the pool it was for
    #[arg(long, requires = "card", conflicts_with = "pool")]
    pub(crate) all_pools: bool,
    /// From when on, such as 2026-12-01T00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = start)]
    pub(crate) from: Option<When>,
    /// Three capital letters
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Price of a GPU-second
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) gpu: Option<String>,
    /// Price of a core-second
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) cpu: Option<String>,
    /// Price of a GiB-second of memory
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) mem: Option<String>,
    /// Price of a GiB-second of disk
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) block: Option<String>,
    /// Price of a second of 1 Gb/s
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    pub(crate) net: Option<String>,
    /// Price of one class instead of its kind's; may be given more than once
    #[arg(long = "class", value_name = "NAME=PRICE", value_parser = pair)]
    pub(crate) classes: Vec<(String, String)>,
    /// No price of its own for this class any more; may be given more than once
    #[arg(long = "no-class", value_name = "NAME")]
    pub(crate) no_classes: Vec<String>,
    /// Factor of one tier; may be given more than once
    #[arg(long = "tier", value_name = "NAME=FACTOR", value_parser = pair)]
    pub(crate) tiers: Vec<(String, String)>,
    /// No factor for this tier any more; may be given more than once
    #[arg(long = "no-tier", value_name = "NAME")]
    pub(crate) no_tiers: Vec<String>,
    /// Factor of a priority, such as scavenger=0.3; may be given more than once
    #[arg(long = "priority", value_name = "WORD=FACTOR", value_parser = factor)]
    pub(crate) priorities: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Charge policies: what holds, what held, and what waits for its day
    List,
    /// Set what is charged from now or from a later day on; what is not given is as in the policy in force
    Set(PolicySetArgs),
}

/// A charge is `full`, `none`, or a time: what was held less its last stretch of that length.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  leasehold rate policy set --preempted 10m --node-lost 10m --failed-start none")]
pub(crate) struct PolicySetArgs {
    /// Change this policy, which waits, instead of making one
    #[arg(long, value_name = "NUMBER")]
    pub(crate) policy: Option<u32>,
    /// From when on, such as 2026-12-01T00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = start)]
    pub(crate) from: Option<When>,
    /// Of leases that were evicted for others
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) preempted: Option<Charge>,
    /// Of leases whose teardown nobody confirmed
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) fenced: Option<Charge>,
    /// Of leases whose node was lost
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) node_lost: Option<Charge>,
    /// Of leases that failed at their start
    #[arg(long, value_name = "CHARGE", value_parser = charge)]
    pub(crate) failed_start: Option<Charge>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// An instant; seconds, and the whole time of the day, may be left out.
fn start(text: &str) -> Result<When, String> {
    let parsed = text.parse::<When>();
    let without_seconds = || text.strip_suffix(['Z', 'z']).and_then(|text| format!("{text}:00Z").parse().ok());
    let of_day = || format!("{text}T00:00:00Z").parse().ok();
    parsed.or_else(|error| without_seconds().or_else(of_day).ok_or_else(|| error.to_string()))
}

fn factor(text: &str) -> Result<(String, String), String> {
    let (word, factor) = pair(text)?;
    Ok((priority(&word)?.word().to_owned(), factor))
}

fn charge(text: &str) -> Result<Charge, String> {
    match text {
        "full" => Ok(Charge::Full),
        "none" => Ok(Charge::None),
        time => time.parse().map(Charge::MinusLast).map_err(|_| "write full, none, or a time such as 10m".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_written_short_or_long() {
        let all = ["2026-12-01", "2026-12-01T00:00Z", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00.0Z"];
        for text in all {
            assert_eq!(start(text).map(|when| when.to_string()), Ok("2026-12-01T00:00:00Z".to_owned()), "{text}");
        }
        for text in ["", "now", "2026-12-01T00Z", "2026-12-32", "2026-12-01T00:00"] {
            assert!(start(text).is_err(), "{text}");
        }
    }
}
