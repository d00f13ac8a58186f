//! Parts of postings: their place in the payer's chain, their lines, and rounding (SEMANTICS 12, "Amounts", "Posting").

use super::entry::{Entry, Line};
use super::fraction::{Fraction, split};
use super::{Ledger, payer_of};
use crate::violation::{Checked, demand, found};
use leasehold_model::Record;
use leasehold_model::body::LedgerPosted;
use leasehold_model::ledger::{Account, EntryId, HOUR_NS, Item, Month};
use leasehold_model::limits::LEDGER_LINES_MAX;
use num_bigint::BigInt;

impl Ledger {
    pub(crate) fn posted(&mut self, record: &Record, posted: &LedgerPosted) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let payer = self.payers.get(&(project, posted.currency)).cloned().unwrap_or_default();
        demand!(posted.previous == payer.last, "stale-posting", "{:?} after {:?}", posted.previous, payer.last);
        self.check_place(record, posted)?;
        let is_continued = payer.partial.is_some();
        if let Some((through, size, _)) = payer.partial {
            let same = (through, size) == (posted.through, posted.as_of_size);
            demand!(same, "posting-incomplete", "{through} of {size} lacks parts");
        }
        let mut before = None;
        // A posting that lacks nothing but its end is completed without lines.
        let says_something = !posted.lines.is_empty() || is_continued;
        demand!(says_something, "posting-lines", "there are none");
        demand!(posted.lines.len() <= LEDGER_LINES_MAX, "posting-lines", "{} lines", posted.lines.len());
        for line in &posted.lines {
            let key = &line.key;
            demand!(before.as_ref() < Some(key), "posting-lines", "{key:?} does not follow {before:?}");
            before = Some(key.clone());
            let from = found!(self.opened, "ledger-not-open", "it posts nothing");
            demand!(key.hour.0.is_multiple_of(HOUR_NS), "posting-lines", "{} is no hour", key.hour);
            demand!(key.hour >= from && key.hour < posted.through, "posting-lines", "{} is not covered", key.hour);
            let own = Month::of(key.hour);
            let month = match self.closing {
                Some((closing, cut)) if posted.as_of_size == cut => own.max(closing),
                _ => self.booked_in(own),
            };
            demand!(posted.month == month, "month", "{own} is booked in {}, not {month}", posted.month);
        }
        let mut exact = Vec::new();
        for line in &posted.lines {
            exact.push(found!(Fraction::read(&line.exact), "exact", "{} is not in lowest terms", line.exact));
        }
        let (amounts, left) = split(&exact, &Fraction::of_residual(payer.residual));
        let given: Vec<BigInt> = posted.lines.iter().map(|line| line.posted.0.into()).collect();
        demand!(given == amounts, "rounding", "{given:?} instead of {amounts:?}");
        demand!(left.residual() == Some(posted.residual), "residual", "{:?} instead of {left:?}", posted.residual);
        for ((position, line), exact) in (0..).zip(&posted.lines).zip(exact) {
            let revenue = match line.key.item {
                Item::Class(class) => Account::Revenue(class),
                Item::Unit(unit) => Account::UnitRevenue(unit),
            };
            let legs = [(Account::Receivable(project), line.posted), (revenue, -line.posted)];
            let entry = Entry {
                months: Some((posted.month, Month::of(line.key.hour))),
                line: Some(Line { key: line.key.clone(), usage: line.usage.0, exact }),
                ..Entry::plain(tenant, Some(project), posted.currency, &legs)
            };
            self.entries.insert(EntryId { sequence: record.sequence, position }, entry);
        }
        let payer = self.payers.entry((project, posted.currency)).or_default();
        (payer.last, payer.residual) = (Some(record.sequence), posted.residual);
        if let Some(last) = posted.lines.last() {
            payer.partial = Some((posted.through, posted.as_of_size, last.key.clone()));
        }
        payer.partial = payer.partial.take().filter(|_| !posted.complete);
        Ok(())
    }

    /// The lines of a posting are in order from one part to the next.
    pub(crate) fn check_order(&self, record: &Record, posted: &LedgerPosted) -> Checked {
        let (_, project) = payer_of(record)?;
        let before = self.payers.get(&(project, posted.currency)).and_then(|payer| payer.partial.as_ref());
        let follows = before.zip(posted.lines.first()).is_none_or(|((_, _, last), first)| *last < first.key);
        demand!(follows, "posting-lines", "a line does not follow {before:?}");
        Ok(())
    }

    /// It is about the next hour, once that is over, or it is the last one of the month that is being closed.
    fn check_place(&self, record: &Record, posted: &LedgerPosted) -> Checked {
        let (through, size) = (posted.through, posted.as_of_size);
        demand!(size <= record.sequence, "as-of-size", "{size} of {}", record.sequence);
        demand!(through.0.is_multiple_of(HOUR_NS), "hour-over", "{through} is no hour");
        let is_last = self.closing.is_some_and(|(_, cut)| cut == size);
        let place = if is_last { through <= self.settled } else { through.0 == self.settled.0 + HOUR_NS };
        demand!(place, "hours-in-order", "{through} is posted after {}", self.settled);
        demand!(through <= record.stamp, "hour-over", "{through} has not come");
        if let Some((month, cut)) = self.closing {
            demand!(size >= cut, "period-closing", "{size} is before the cut of {month} at {cut}");
            let is_shared = self.shared.iter().any(|(_, _, of)| *of == month);
            demand!(!is_last || !is_shared, "period-closing", "the costs of {month} are shared already");
        }
        Ok(())
    }
}
