//! The usage of some leases, line by line: what they add to the lines of their payers.

use super::rating::{Sums, cost_of};
use crate::facts::{Books, BooksError};
use crate::row::{End, Row};
use leasehold_meter::{Window, rate};
use leasehold_model::ledger::{ExactSteps, HOUR_NS};
use leasehold_model::rate::Currency;
use leasehold_model::{Instant, LineKey, ProjectNo, TenantNo};
use std::collections::BTreeMap;

/// A line to which leases contribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineOfStory {
    pub(crate) tenant: TenantNo,
    pub(crate) payer: ProjectNo,
    pub(crate) currency: Currency,
    pub(crate) key: LineKey,
    /// Charged quanta × nanoseconds of these leases.
    pub(crate) usage: u128,
    pub(crate) cost: ExactSteps,
    /// When the usage was complete: at the end of the hour, or when the last of the leases ended.
    pub(crate) at: Instant,
}

pub(crate) type StoryLines = Vec<LineOfStory>;

/// What the leases of one billing series hold.
#[derive(Default)]
struct OfSeries {
    charged: Vec<(Instant, i128)>,
    /// What was ever known to be held: lines of time that was corrected since were posted, too.
    held: Vec<(Instant, i128)>,
    ended: Instant,
}

impl Books {
    /// The lines of these leases, as they are known now, in order.
    pub(crate) fn story_lines(&self, rows: &[Row]) -> Result<StoryLines, BooksError> {
        let mut all: BTreeMap<u32, OfSeries> = BTreeMap::new();
        for row in rows {
            let Some(number) = self.billing.known(&row.billing_key()) else { continue };
            let series = all.entry(number).or_default();
            let (from, quanta) = (row.held.from, i128::from(row.quanta));
            // What is held now is known up to the last record.
            let to = if row.end == End::Held { row.held.to.min(self.last_stamp.max(from)) } else { row.held.to };
            let mut add = |from: Instant, to: Instant, by: i128| series.charged.extend([(from, by), (to, -by)]);
            add(from, to, quanta);
            if let Some(forgiven) = self.forgiven(row) {
                add(forgiven.from, forgiven.to, -quanta);
            }
            let corrected = self.end_corrections.get(&row.lease).and_then(|correction| correction.before);
            let known = [row.end_before, corrected].into_iter().flatten().fold(to, Instant::max);
            series.held.extend([(from, quanta), (known, -quanta)]);
            series.ended = series.ended.max(known);
        }
        let always = Window::new(Instant(0), Instant::MAX);
        let (mut charged, mut held) = (Sums::new(self), Sums::new(self));
        let mut ends = BTreeMap::new();
        for (number, series) in all {
            charged.add_steps(number, series.charged, always);
            held.add_steps(number, series.held, always);
            ends.insert(number, series.ended);
        }
        let mut lines = Vec::new();
        for (number, hour, card) in held.usage.keys().copied() {
            let of = &self.billing.keys[number as usize];
            let (prices, usage) = (held.prices[&card], charged.usage.get(&(number, hour, card)).copied());
            let Some(spec) = self.classes.get(&of.class) else { continue };
            let usage = usage.unwrap_or(0).max(0);
            lines.push(LineOfStory {
                tenant: of.tenant,
                payer: of.payer,
                currency: prices.currency,
                key: self.line_key(of, hour, card),
                usage: usage.unsigned_abs(),
                cost: cost_of(usage, rate(prices, of.class, spec, of.priced))?.encoded()?,
                at: Instant(hour.0.saturating_add(HOUR_NS)).min(ends[&number]),
            });
        }
        lines.sort_by(|a, b| (a.payer, a.currency, &a.key).cmp(&(b.payer, b.currency, &b.key)));
        Ok(lines)
    }
}
