//! What of reported usage is not posted yet.
//!
//! A posting is computed from the records up to some size, and recorded later. What was reported in between is kept one by
//! one for a while, so that the amounts of any recent size can be told.

use super::Contribution;
use crate::correlations::LinePart;
use crate::facts::{Books, BooksError};
use crate::ledger::{LineOfStory, PayerLines, Rated};
use leasehold_ledger::{Amount, RatedLine};
use leasehold_model::body::LedgerPosted;
use leasehold_model::limits::POSTING_RECORDS_MAX;
use leasehold_model::rate::Currency;
use leasehold_model::{Instant, Item, LineKey, Priority, ProjectNo, UnitQuantity, UsageCharge, UsageDelta};
use std::collections::{BTreeMap, VecDeque};

/// Amounts by series and hour; none is zero.
pub(crate) type Lines = BTreeMap<(u32, Instant), i128>;

fn add(lines: &mut Lines, of: (u32, Instant), by: i128) {
    let sum = lines.entry(of).or_default();
    *sum += by;
    if *sum == 0 {
        lines.remove(&of);
    }
}

#[derive(Default)]
pub(crate) struct Unposted {
    /// What is not posted.
    pub(crate) lines: Lines,
    /// The last contributions to it, with the sequences of their records.
    pub(crate) recent: VecDeque<(u64, Contribution)>,
    /// What was not posted at the cut of the month that is being closed.
    pub(crate) at_cut: Option<Lines>,
}

impl Unposted {
    pub(super) fn add(&mut self, sequence: u64, part: Contribution, opened: Option<Instant>) {
        // What is older than the ledger is never posted; what was reported before it was opened is added then.
        if opened.is_none_or(|from| part.hour < from) {
            return;
        }
        add(&mut self.lines, (part.series, part.hour), part.by);
        self.recent.push_back((sequence, part));
    }

    /// Forgets contributions that no posting can leave out any more: `begun` is the size of one that is not over.
    fn forget(&mut self, sequence: u64, begun: impl FnOnce() -> Option<u64>) {
        let oldest = sequence.saturating_sub(POSTING_RECORDS_MAX);
        if self.recent.front().is_none_or(|(of, _)| *of >= oldest) {
            return;
        }
        let from = begun().map_or(oldest, |begun| begun.min(oldest));
        while self.recent.front().is_some_and(|(of, _)| *of < from) {
            self.recent.pop_front();
        }
    }

    /// What was not posted as of the first so many records.
    fn as_of(&self, size: u64) -> Lines {
        let mut lines = self.lines.clone();
        for (_, part) in self.recent.iter().rev().take_while(|(sequence, _)| *sequence >= size) {
            add(&mut lines, (part.series, part.hour), -part.by);
        }
        lines
    }

    fn posted(&mut self, of: (u32, Instant), usage: i128) {
        add(&mut self.lines, of, -usage);
        if let Some(at_cut) = &mut self.at_cut {
            add(at_cut, of, -usage);
        }
    }
}

impl Books {
    pub(super) fn forget_contributions(&mut self, sequence: u64) {
        let ledger = &self.ledger;
        self.units.unposted.forget(sequence, || ledger.begun().map(|(_, size)| size).min());
    }

    /// The ledger was opened: what was reported for its hours is to be posted.
    pub(crate) fn open_units(&mut self, from: Instant) -> Result<(), &'static str> {
        let mut lines = Lines::new();
        let units = &self.units;
        let found = units.hours.used(from..Instant::MAX, &self.store, |hour, series, used| {
            let of = &units.series[series as usize];
            if of.charge == UsageCharge::Billed && of.price.is_some() {
                add(&mut lines, (series, hour), used);
            }
        });
        found.map_err(|_| "what was reported cannot be read")?;
        self.units.unposted.lines = lines;
        Ok(())
    }

    /// Lines of a posting are no longer unposted.
    pub(crate) fn units_posted(&mut self, project: ProjectNo, posted: &LedgerPosted) {
        for line in &posted.lines {
            let Item::Unit(unit) = line.key.item else { continue };
            let key = &line.key;
            let Some(app_instance) = key.app_instance else { continue };
            let tenant = self.ledger.payers.get(&(project, posted.currency)).map(|payer| payer.tenant);
            let Some(tenant) = tenant else { continue };
            let series = super::UnitSeries {
                tenant,
                project: key.project,
                payer: project,
                app_instance,
                attachment: key.attachment,
                control_plane: key.control_plane,
                unit,
                price: key.card,
                charge: UsageCharge::Billed,
            };
            // A line that no report explains leaves a difference, which the next posting takes back.
            let series = self.units.number(series);
            self.units.unposted.posted((series, key.hour), line.usage.0);
        }
    }

    fn unit_line_key(&self, series: &super::UnitSeries, hour: Instant) -> LineKey {
        LineKey {
            hour,
            project: series.project,
            pool: LineKey::NO_POOL,
            item: Item::Unit(series.unit),
            priority: Priority::Standard,
            priced: Priority::Standard,
            tag: None,
            app_instance: Some(series.app_instance),
            attachment: series.attachment,
            control_plane: series.control_plane,
            card: series.price,
        }
    }

    /// The line to which a part of a usage record contributes, if it is charged.
    pub(crate) fn line_of_part(&self, part: LinePart) -> Option<LineOfStory> {
        let series = self.units.series.get(part.series as usize)?;
        let price = self.units.price(series.price?).filter(|_| series.charge == UsageCharge::Billed)?;
        Some(LineOfStory {
            tenant: series.tenant,
            payer: series.payer,
            currency: price.currency,
            key: self.unit_line_key(series, part.hour),
            usage: 0,
            cost: Amount::zero().encoded().ok()?,
            at: part.hour,
        })
    }

    /// Adds what was reported for hours before an instant and is not posted, as of the first so many records.
    pub(crate) fn add_unit_lines(&self, rated: &mut Rated, until: Instant, as_of: u64) -> Result<(), BooksError> {
        let units = &self.units;
        let cut = self.ledger.closing.filter(|cut| cut.sequence == as_of);
        let lines = match (cut, &units.unposted.at_cut) {
            (Some(_), Some(at_cut)) => at_cut.clone(),
            _ => units.unposted.as_of(as_of),
        };
        let mut touched: Vec<(ProjectNo, Currency)> = Vec::new();
        for ((series, hour), usage) in lines.into_iter().filter(|((_, hour), _)| *hour < until) {
            let of = &units.series[series as usize];
            let Some(price) = of.price.and_then(|number| units.price(number)) else { continue };
            let exact = unit_cost(usage, price.price.0).encoded()?;
            let payer = (of.payer, price.currency);
            let (_, lines) = rated.entry(payer).or_insert_with(|| (of.tenant, PayerLines::new()));
            let line = RatedLine { key: self.unit_line_key(of, hour), usage: UsageDelta(usage), exact };
            lines.push((self.ledger.booked_in(hour), line));
            touched.push(payer);
        }
        for payer in touched {
            if let Some((_, lines)) = rated.get_mut(&payer) {
                lines.sort_unstable_by(|(month, line), (other, next)| (month, &line.key).cmp(&(other, &next.key)));
            }
        }
        Ok(())
    }
}

/// The exact cost of so many parts of a unit at a price in billionths.
fn unit_cost(parts: i128, price: u64) -> Amount {
    // A part and a price have 27 decimals together, six of which are steps.
    let each = Amount::new(i128::from(price), UnitQuantity::LINE_PARTS * 1_000);
    let cost = each.times(parts.unsigned_abs());
    if parts < 0 { -cost } else { cost }
}
