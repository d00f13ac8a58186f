//! The times in the query of a request: words, local times and instants.

use super::books_query::bad_window;
use crate::context::Context;
use crate::problem::sentence;
use leasehold_api::{BadMoment, BadZone, Moment, Problem, Toward, Zone};
use leasehold_model::Instant;

/// How the times of a request are read: the present instant and the time zone. A word means the past.
pub(super) struct Times<'c> {
    context: &'c Context,
    now: Instant,
    zone: Zone,
}

impl<'c> Times<'c> {
    /// The time zone is `time_zone`, or `zone` where the endpoint has that name for it as well.
    pub(super) fn of(context: &'c Context) -> Result<Self, Problem> {
        let (field, name) = match (context.query("time_zone"), context.query("zone")) {
            (Some(_), Some(_)) => {
                return Err(bad_window("zone", "`zone` is another name of `time_zone`; give one of them."));
            }
            (None, Some(alias)) => ("zone", Some(alias)),
            (name, None) => ("time_zone", name),
        };
        let bad = |why: BadZone| bad_window(field, format!("{}.", sentence(&why.to_string())));
        let zone: Option<Zone> = name.map(str::parse).transpose().map_err(bad)?;
        Ok(Self { context, now: context.app.time(), zone: zone.unwrap_or_default() })
    }

    /// The IANA name.
    pub(super) fn zone_name(&self) -> String {
        self.zone.to_string()
    }

    fn read<T>(&self, name: &str, resolve: impl FnOnce(Moment) -> Result<T, BadMoment>) -> Result<Option<T>, Problem> {
        let Some(text) = self.context.query(name) else { return Ok(None) };
        let resolved = text.parse::<Moment>().and_then(resolve);
        resolved.map(Some).map_err(|why| bad_window(name, format!("`{name}`: {why}.")))
    }

    pub(super) fn instant(&self, name: &str) -> Result<Option<Instant>, Problem> {
        self.read(name, |moment| moment.instant(self.now, &self.zone, Toward::Past))
    }

    /// `from` and `to`, or both from `window`.
    pub(super) fn window(&self) -> Result<(Option<Instant>, Option<Instant>), Problem> {
        let (from, to) = (self.instant("from")?, self.instant("to")?);
        let period = self.read("window", |moment| moment.period(self.now, &self.zone, Toward::Past))?;
        match period {
            None => Ok((from, to)),
            Some(_) if from.is_some() || to.is_some() => {
                Err(bad_window("window", "Give either `window`, or `from` and `to`."))
            }
            Some((from, to)) => Ok((Some(from), Some(to))),
        }
    }
}
