//! Where the statements of a journal are, and what the end of each month says about their number.

use leasehold_model::{Body, Month, Record};
use std::collections::BTreeMap;

/// The statements of one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfMonth {
    /// The first and the last statement.
    pub stated: Option<(u64, u64)>,
    /// The first `period.closed`, and how many statements it counts.
    pub closed: Option<(u64, u64)>,
}

impl OfMonth {
    /// The first and the last record that has to be looked at.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        let closed = self.closed.map(|(sequence, _)| sequence);
        let first = self.stated.map(|(first, _)| first).into_iter().chain(closed).min()?;
        let last = self.stated.map(|(_, last)| last).into_iter().chain(closed).max()?;
        Some((first, last))
    }

    /// A month that was closed without statements leaves nothing to compare.
    fn is_nothing(&self) -> bool {
        self.stated.is_none() && self.closed.is_none_or(|(_, count)| count == 0)
    }
}

/// Where the statements of a journal are, by month.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    months: BTreeMap<Month, OfMonth>,
}

impl Found {
    /// Notes a record if it is a statement or the end of a month. The order does not matter.
    pub fn note(&mut self, record: &Record) {
        if let Body::PeriodStated(stated) = &record.body {
            let at = Some((record.sequence, record.sequence));
            self.add_month(stated.month, OfMonth { stated: at, closed: None });
        } else if let Body::PeriodClosed(closed) = &record.body {
            let at = Some((record.sequence, closed.statements.unwrap_or(0)));
            self.add_month(closed.month, OfMonth { stated: None, closed: at });
        }
    }

    /// Adds what was found of a month elsewhere.
    pub fn add_month(&mut self, month: Month, of: OfMonth) {
        let known = self.months.entry(month).or_default();
        known.stated = match (known.stated, of.stated) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        known.closed = known.closed.into_iter().chain(of.closed).min();
    }

    pub fn add(&mut self, other: &Self) {
        other.months.iter().for_each(|(month, of)| self.add_month(*month, *of));
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.months.values().all(OfMonth::is_nothing)
    }

    /// All months in order, also those without statements.
    pub fn months(&self) -> impl ExactSizeIterator<Item = (Month, OfMonth)> + '_ {
        self.months.iter().map(|(month, of)| (*month, *of))
    }

    /// The months that have something to compare, in order, with the first and the last record to look at.
    pub(crate) fn to_compare(&self) -> impl Iterator<Item = (Month, OfMonth, u64, u64)> + '_ {
        let due = self.months.iter().filter(|(_, of)| !of.is_nothing());
        due.filter_map(|(month, of)| of.range().map(|(first, last)| (*month, *of, first, last)))
    }
}
