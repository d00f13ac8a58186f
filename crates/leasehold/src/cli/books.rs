//! `leasehold usage`, `cost`, `waste` and `sensitivity`.

use super::remote::{WatchArgs, WhoseArgs};
use super::times::WindowArgs;
use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use leasehold_api::{Kind, WasteClass, WasteOrder, Zone};
use leasehold_model::Group;

/// Filters of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Only this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only this class
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// Only this kind of resource
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Only this tier
    #[arg(long, value_name = "NAME")]
    pub(crate) tier: Option<String>,
    /// Only this accounting tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Only this allocation, by number
    #[arg(long, value_name = "NUMBER")]
    pub(crate) allocation: Option<u64>,
    /// Only this app instance
    #[arg(long, value_name = "NAME")]
    pub(crate) app_instance: Option<String>,
    /// Only this workload
    #[arg(long, value_name = "TEXT")]
    pub(crate) workload: Option<String>,
    /// Only control planes of app instances (true), or only workloads (false)
    #[arg(long, value_name = "BOOLEAN")]
    pub(crate) control_plane: Option<bool>,
}

/// Grouping of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct GroupArgs {
    /// Group by (comma-separated), such as tenant,class
    #[arg(long, value_name = "DIMENSIONS", value_delimiter = ',', value_parser = EnumValueParser::<Group>::new().map(|group| group.word().to_owned()))]
    pub(crate) by: Vec<String>,
}

/// Division of the window into buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct CutArgs {
    /// Print one line per minute, hour, day or month
    #[arg(long, value_name = "BUCKET", value_parser = ["minute", "hour", "day", "month"])]
    pub(crate) bucket: Option<String>,
    /// Alias of --time-zone
    #[arg(long, value_name = "TIME ZONE", conflicts_with = "time_zone", hide = true)]
    pub(crate) zone: Option<Zone>,
}

/// Output for a spreadsheet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct CsvArgs {
    /// Print comma-separated values with exact figures; an apostrophe precedes text that a spreadsheet would run as a
    /// formula
    #[arg(long)]
    csv: bool,
    /// Like --csv, but print all text unchanged, for programs that are not spreadsheets
    #[arg(long, conflicts_with = "csv")]
    csv_raw: bool,
}

/// What happens to text that a spreadsheet would run as a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Csv {
    Neutralised,
    Raw,
}

impl CsvArgs {
    pub(crate) fn form(self) -> Option<Csv> {
        match self {
            Self { csv_raw: true, .. } => Some(Csv::Raw),
            Self { csv: true, .. } => Some(Csv::Neutralised),
            Self { .. } => None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct AskedArgs {
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) cut: CutArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold usage --by tenant,class                                # this month so far
  leasehold usage --from last-month --to month --by tenant --csv
  leasehold usage --from 7d --by class --bucket day --time-zone Europe/Tallinn --peak
  leasehold usage capacity --by pool                               # use of all capacity")]
pub(crate) struct UsageArgs {
    #[command(flatten)]
    pub(crate) asked: AskedArgs,
    /// Also show the highest amount that was held at the same time
    #[arg(long)]
    pub(crate) peak: bool,
    /// Also show how much of it was busy, according to the activity reports of its leases
    #[arg(long)]
    pub(crate) utilisation: bool,
    #[command(subcommand)]
    pub(crate) of: Option<UsageCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// Show how all capacity was used: held, tearing down, reserved, fenced, offline or idle
    Capacity(CapacityArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Group by pool or node in addition to class
    #[arg(long, value_name = "DIMENSION", value_parser = ["pool", "node"])]
    pub(crate) by: Option<String>,
    /// Only this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Only this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only this class
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold cost --by tenant                                       # this month so far
  leasehold cost --from 2026-11-01 --to 2026-12-01 --by tenant,project --csv
  leasehold cost rate --by tenant                                  # current cost per hour
  leasehold cost forecast --tenant physics                         # forecast for this month")]
pub(crate) struct CostArgs {
    #[command(flatten)]
    pub(crate) asked: AskedArgs,
    #[command(subcommand)]
    pub(crate) of: Option<CostCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CostCommand {
    /// Show the current cost per hour of all leases that are held now
    Rate(CostRateArgs),
    /// Forecast the cost of this month: so far, up to the deadlines, and up to the end of the month
    Forecast(ForecastArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CostRateArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForecastArgs {
    /// Alias of --time-zone
    #[arg(long, value_name = "TIME ZONE", conflicts_with = "time_zone", hide = true)]
    pub(crate) zone: Option<Zone>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold waste --window last-week --by tenant
  leasehold waste --window last-week --by user,project --sort cost --top 10   # who wasted most
  leasehold waste --headline idle --limit 20                       # idle leases, the most wasteful first")]
pub(crate) struct WasteArgs {
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Order of the groups; the largest cost or number of leases comes first [default: name]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) sort: Option<WasteOrder>,
    /// Show only this number of groups, the first in the order
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: Option<u16>,
    /// Only leases whose waste has this main cause
    #[arg(long, value_enum, value_name = "HEADLINE")]
    pub(crate) headline: Option<WasteClass>,
    /// Highest number of leases to list
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SensitivityArgs {
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}
