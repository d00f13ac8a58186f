//! Resolves the times of the command line with the clock of this machine and `--time-zone`.

use crate::cli::times::{PastArgs, TimeZoneArgs, WindowArgs};
use crate::problem::Problem;
use crate::time_format;
use leasehold_api::{BadMoment, Moment, Toward, When, Zone};
use leasehold_model::Instant;

#[derive(Clone, Debug)]
pub(super) struct Times {
    now: Instant,
    /// As it was given.
    zone: Option<Zone>,
}

/// The ends of a window, as far as they were given.
pub(super) type Ends = (Option<When>, Option<When>);

fn wrong(option: &str, why: &BadMoment) -> Problem {
    Problem::told("usage", &format_args!("{option}: {why}")).is_usage()
}

impl Times {
    pub(super) fn new(args: &TimeZoneArgs) -> Self {
        args.time_zone.clone().into_iter().for_each(time_format::show_in);
        Self { now: time_format::now(), zone: args.time_zone.clone() }
    }

    /// In the time zone of `--zone`, where that is an alias of `--time-zone`.
    pub(super) fn in_zone(&self, zone: Option<&Zone>) -> Self {
        zone.cloned().into_iter().for_each(time_format::show_in);
        Self { now: self.now, zone: zone.cloned().or_else(|| self.zone.clone()) }
    }

    /// The name of the time zone, if one was given.
    pub(super) fn zone_name(&self) -> Option<String> {
        self.zone.as_ref().map(Zone::to_string)
    }

    fn zone(&self) -> Zone {
        self.zone.clone().unwrap_or_default()
    }

    fn at(&self, option: &str, moment: Option<&Moment>, toward: Toward) -> Result<Option<When>, Problem> {
        let Some(moment) = moment else { return Ok(None) };
        let at = moment.instant(self.now, &self.zone(), toward);
        at.map(|at| Some(When(at))).map_err(|why| wrong(option, &why))
    }

    /// A time of the past: `friday` is the last one, and `7d` means seven days ago.
    pub(super) fn past(&self, option: &str, moment: Option<&Moment>) -> Result<Option<When>, Problem> {
        self.at(option, moment, Toward::Past)
    }

    /// A time to come: `friday` is the next one, and `7d` means in seven days.
    pub(super) fn future(&self, option: &str, moment: Option<&Moment>) -> Result<Option<When>, Problem> {
        self.at(option, moment, Toward::Future)
    }

    fn period(&self, moment: &Moment) -> Result<Ends, Problem> {
        let period = moment.period(self.now, &self.zone(), Toward::Past);
        period.map(|(from, to)| (Some(When(from)), Some(When(to)))).map_err(|why| wrong("--window", &why))
    }

    pub(super) fn window(&self, args: &WindowArgs) -> Result<Ends, Problem> {
        match &args.window {
            Some(window) => self.period(window),
            None => Ok((self.past("--from", args.from.as_ref())?, self.past("--to", args.to.as_ref())?)),
        }
    }

    /// The point in time, and the ends of the window.
    pub(super) fn listed(&self, args: &PastArgs) -> Result<(Option<When>, Ends), Problem> {
        let ends = match &args.window {
            Some(window) => self.period(window)?,
            None => (self.past("--from", args.from.as_ref())?, self.past("--until", args.until.as_ref())?),
        };
        Ok((self.past("--at", args.at.as_ref())?, ends))
    }
}
