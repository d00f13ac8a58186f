//! `leasehold usage`, `cost`, `waste` and `sensitivity`.

use super::remote::{WatchArgs, WhoseArgs};
use crate::time_format;
use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use leasehold_api::{Kind, WasteClass, WasteOrder, When};
use leasehold_model::{Group, Instant, Span};

/// The time window of a report. A word such as `today` means its first instant, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WindowArgs {
    /// Start of the window: 2026-11-01, 2026-11-01T12:00:00Z, today, yesterday, month, last-month, or 7d for seven days
    /// ago [default: the start of this month]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) from: Option<When>,
    /// End of the window, exclusive, in the same formats [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) to: Option<When>,
}

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
    /// Only this app instance, by number
    #[arg(long, value_name = "NUMBER")]
    pub(crate) app_instance: Option<u64>,
    /// Only this workload
    #[arg(long, value_name = "TEXT")]
    pub(crate) workload: Option<String>,
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
    /// Time zone for the start of days and months, such as Europe/Tallinn [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
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
  leasehold usage --by tenant,class                                this month so far
  leasehold usage --from last-month --to month --by tenant --csv
  leasehold usage --from 7d --by class --bucket day --zone Europe/Tallinn --peak
  leasehold usage capacity --by pool                               use of all capacity")]
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
  leasehold cost --by tenant                                       this month so far
  leasehold cost --from 2026-11-01 --to 2026-12-01 --by tenant,project --csv
  leasehold cost rate --by tenant                                  current cost per hour
  leasehold cost forecast --tenant physics                         forecast for this month")]
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
    /// Time zone for the start of the month, such as Europe/Tallinn [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold waste --from 7d --by tenant
  leasehold waste --from 7d --by user,project --sort cost --top 10   who wasted most
  leasehold waste --headline idle --limit 20                       idle leases, the most wasteful first")]
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

pub(crate) fn moment(text: &str) -> Result<When, String> {
    at(text, time_format::now())
}

/// Parses a time relative to `now` or absolute; days and months begin in UTC.
fn at(text: &str, now: Instant) -> Result<When, String> {
    const DAY_NS: u64 = 86_400_000_000_000;
    let day = now.0 - now.0 % DAY_NS;
    match text {
        "now" => return Ok(When(now)),
        "today" => return Ok(When(Instant(day))),
        "yesterday" => return Ok(When(Instant(day.saturating_sub(DAY_NS)))),
        "month" => return Ok(month_of(now)),
        "last-month" => return Ok(month_of(Instant(month_of(now).0.0.saturating_sub(1)))),
        _ => {}
    }
    // Parts that are omitted at the end are zero, and the zone is UTC.
    let endings = ["", "Z", ":00Z", "T00:00:00Z"];
    let instant = endings.iter().find_map(|ending| format!("{text}{ending}").parse::<When>().ok());
    let ago = || text.parse::<Span>().map(|span| When(Instant(now.0.saturating_sub(span.0))));
    instant.map_or_else(ago, Ok).map_err(|_| {
        "expected 2026-11-01, 2026-11-01T12:00 (UTC), 2026-11-01T12:00:00Z, today, yesterday, month, last-month, or 7d for seven days ago"
            .into()
    })
}

/// The first instant of the month that contains `at`.
fn month_of(at: Instant) -> When {
    let text = When(at).to_string();
    let month = text.get(..7).map(|month| format!("{month}-01T00:00:00Z"));
    month.and_then(|month| month.parse().ok()).unwrap_or(When(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_said_in_many_ways() {
        let now: When = "2026-01-15T13:14:15.5Z".parse().unwrap();
        for (text, expected) in [
            ("now", "2026-01-15T13:14:15.5Z"),
            ("today", "2026-01-15T00:00:00Z"),
            ("yesterday", "2026-01-14T00:00:00Z"),
            ("month", "2026-01-01T00:00:00Z"),
            ("last-month", "2025-12-01T00:00:00Z"),
            ("7d", "2026-01-08T13:14:15.5Z"),
            ("1h30m", "2026-01-15T11:44:15.5Z"),
            ("2025-02-28", "2025-02-28T00:00:00Z"),
            ("2025-02-28T01:02:03.25Z", "2025-02-28T01:02:03.25Z"),
            ("2025-02-28T01:02", "2025-02-28T01:02:00Z"),
            ("2025-02-28T01:02:03", "2025-02-28T01:02:03Z"),
        ] {
            assert_eq!(at(text, now.0).map(|when| when.to_string()), Ok(expected.to_owned()), "{text}");
        }
        for text in ["", "tomorow", "2025-02-29", "2026-1-1", "7", "-7d", "2026-01-15T13:14:15+02:00"] {
            assert!(at(text, now.0).is_err(), "{text}");
        }
    }
}
