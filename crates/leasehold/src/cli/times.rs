//! Options for times: the time zone, points in time, and windows.

use clap::Args;
use leasehold_api::{Moment, Zone};

/// The time zone of what is typed. Given anywhere on the command line.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TimeZoneArgs {
    /// Time zone of times without an offset, and of days, weeks and months, such as Europe/Tallinn [default: UTC]
    #[arg(long, global = true, value_name = "TIME ZONE", help_heading = "Connection and output")]
    pub(crate) time_zone: Option<Zone>,
}

/// The time window of a report. A word such as `today` means its first instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WindowArgs {
    /// Start of the window: 2026-11-01, 2026-11-01T12:00, today, yesterday, friday, week, last-week, month, last-month,
    /// "friday 18:00", or 7d for seven days ago [default: the start of this month]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    /// End of the window, exclusive, in the same formats [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<Moment>,
    /// The whole window as one word: a day, a week, a month such as last-month or 2026-11, or the last 7d
    #[arg(long, value_name = "PERIOD", conflicts_with_all = ["from", "to"])]
    pub(crate) window: Option<Moment>,
}

/// A point in time, or a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct PastArgs {
    /// Show the state at this time, such as 2026-11-12T14:03, "thursday 14:03", today, or 3h for three hours ago
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "until", "window"])]
    pub(crate) at: Option<Moment>,
    /// Start of the time window, in the same formats as --at
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Moment>,
    /// End of the time window, exclusive [default: now]
    #[arg(long, value_name = "TIME", alias = "to")]
    pub(crate) until: Option<Moment>,
    /// The whole window as one word: a day, a week, a month such as last-month or 2026-11, or the last 7d
    #[arg(long, value_name = "PERIOD", conflicts_with_all = ["from", "until"])]
    pub(crate) window: Option<Moment>,
}
