//! Rating: usage that is not posted yet, line by line, at its price.

use super::LedgerBook;
use crate::facts::{BillingKey, Books, BooksError};
use leasehold_ledger::{Amount, RatedLine};
use leasehold_meter::{Money, Wanted, Window, rate};
use leasehold_model::ledger::{HOUR_NS, hour_of};
use leasehold_model::rate::{Currency, Prices};
use leasehold_model::{ClassNo, Instant, Item, LineKey, Month, PoolNo, Priority, ProjectNo, TenantNo, UsageDelta};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The lines of a payer with the months in which they are booked, in order of month and key.
pub(crate) type PayerLines = Vec<(Month, RatedLine)>;

/// The lines of all payers, with their tenants.
pub(crate) type Rated = BTreeMap<(ProjectNo, Currency), (TenantNo, PayerLines)>;

/// The prices of a stretch of time.
#[derive(Clone, Copy)]
struct Piece<'b> {
    from: Instant,
    card: Option<u32>,
    prices: &'b Prices,
}

/// Usage by billing series, hour and card.
pub(super) struct Sums<'b> {
    books: &'b Books,
    pub(super) usage: BTreeMap<(u32, Instant, Option<u32>), i128>,
    pub(super) prices: BTreeMap<Option<u32>, &'b Prices>,
}

/// The end of the hour that contains an instant.
fn hour_end(at: Instant) -> Instant {
    Instant(hour_of(at).0.saturating_add(HOUR_NS))
}

impl<'b> Sums<'b> {
    pub(super) fn new(books: &'b Books) -> Self {
        Self { books, usage: BTreeMap::new(), prices: BTreeMap::new() }
    }

    fn piece(&self, pool: PoolNo, at: Instant) -> Piece<'b> {
        let (card, prices) = self.books.schedule.version_at(pool, at);
        Piece { from: at, card, prices }
    }

    fn add(&mut self, series: u32, piece: Piece<'b>, usage: i128) {
        self.prices.insert(piece.card, piece.prices);
        *self.usage.entry((series, hour_of(piece.from), piece.card)).or_default() += usage;
    }

    /// All usage of a window, as the records say now.
    fn add_window(&mut self, window: Window) {
        if window.is_empty() {
            return;
        }
        let books = self.books;
        let mut borders = vec![window.from];
        while let Some(last) = borders.last().copied().filter(|last| *last < window.to) {
            borders.push(hour_end(last).min(window.to));
        }
        let mut pools: Vec<PoolNo> = books.billing.keys.iter().map(|key| key.pool).collect();
        pools.sort_unstable();
        pools.dedup();
        pools.iter().for_each(|pool| borders.extend(books.schedule.changes(*pool, window)));
        borders.sort_unstable();
        borders.dedup();
        let signed = |amount: u128| i128::try_from(amount).expect("a century of quanta fits");
        books.billing.timeline.amounts(&borders, Wanted::All, &books.store, |piece, series, amount| {
            let pool = books.billing.keys[series as usize].pool;
            self.add(series, self.piece(pool, borders[piece]), signed(amount));
        });
        books.forgiven.timeline.amounts(&borders, Wanted::All, &books.store, |piece, number, amount| {
            let series = books.forgiven.keys[number as usize];
            let pool = books.billing.keys[series as usize].pool;
            self.add(series, self.piece(pool, borders[piece]), -signed(amount));
        });
    }

    /// The effect of steps, each from an instant on, within a window.
    pub(super) fn add_steps(&mut self, series: u32, mut steps: Vec<(Instant, i128)>, window: Window) {
        steps.sort_unstable_by_key(|(at, _)| *at);
        let pool = self.books.billing.keys[series as usize].pool;
        let mut level = 0;
        for (place, (at, by)) in steps.iter().enumerate() {
            level += by;
            let next = steps.get(place + 1).map_or(window.to, |(at, _)| *at);
            let Window { mut from, to } = Window::new(*at, next).clip(window);
            if level == 0 {
                continue;
            }
            while from < to {
                let hour = Window::new(from, hour_end(from).min(to));
                let first = self.books.schedule.changes(pool, hour).first().copied();
                let end = first.unwrap_or(hour.to);
                self.add(series, self.piece(pool, from), level * i128::from(end.since(from).0));
                from = end;
            }
        }
    }
}

/// The cost of usage, negative for what was charged too much.
pub(super) fn cost_of(usage: i128, each: leasehold_meter::Rate) -> Result<Amount, BooksError> {
    let cost = Amount::of_money(&Money::of(usage.unsigned_abs(), each)?)?;
    Ok(if usage < 0 { -cost } else { cost })
}

impl LedgerBook {
    /// The month in which a line is booked: its own, or the first open one if that is closed.
    pub(crate) fn booked_in(&self, hour: Instant) -> Month {
        Month::of(hour).max(self.first_open)
    }
}

impl Books {
    pub(super) fn line_key(&self, key: &BillingKey, hour: Instant, card: Option<u32>) -> LineKey {
        LineKey {
            hour,
            project: key.project,
            pool: key.pool,
            item: Item::Class(key.class),
            priority: key.priority,
            priced: key.priced,
            tag: key.tag.and_then(|tag| self.tag(tag).cloned()),
            app_instance: key.app_instance,
            attachment: key.attachment,
            control_plane: key.control_plane,
            card,
        }
    }

    /// What each payer owes for a new window and has not been posted for earlier hours, as of the first `as_of` records.
    pub(super) fn rated(&self, new: Window, as_of: u64) -> Result<Rated, BooksError> {
        let mut sums = Sums::new(self);
        sums.add_window(new);
        let Some(opened) = self.ledger.opened else { return Ok(Rated::new()) };
        let earlier = Window::new(opened, new.from);
        for (series, changes) in &self.ledger.late {
            // What later records say of the new window is not known yet.
            let later = changes.iter().filter(|change| change.sequence >= as_of);
            let undone: Vec<_> = later.map(|change| (change.at, -change.by())).collect();
            if !undone.is_empty() {
                sums.add_steps(*series, undone, new);
            }
            self.add_differences(&mut sums, *series, changes, earlier, as_of);
        }
        self.sound(())?;
        self.priced_lines(sums)
    }

    /// What records since a payer's last posting say of hours that were posted before. A payer has one chain of postings
    /// for each currency, so each is looked at alone.
    fn add_differences<'b>(
        &'b self,
        sums: &mut Sums<'b>,
        series: u32,
        changes: &[super::LateChange],
        earlier: Window,
        as_of: u64,
    ) {
        let payer = self.billing.keys[series as usize].payer;
        let of_payer = self.ledger.payers.range((payer, Currency::FIRST)..);
        let of_payer = of_payer.take_while(|((project, _), _)| *project == payer);
        let known: Vec<(Currency, u64)> = of_payer.map(|((_, currency), book)| (*currency, book.as_of_size)).collect();
        let from = |currency: Currency| known.iter().find(|(of, _)| *of == currency).map_or(0, |(_, size)| *size);
        let mut starts: Vec<u64> = known.iter().map(|(_, size)| *size).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        for start in starts {
            let due = changes.iter().filter(|change| change.sequence >= start && change.sequence < as_of);
            let due: Vec<_> = due.map(|change| (change.at, change.by())).collect();
            if due.is_empty() {
                continue;
            }
            let mut part = Sums::new(self);
            part.add_steps(series, due, earlier);
            for ((series, hour, card), usage) in part.usage {
                let prices = part.prices[&card];
                if from(prices.currency) == start {
                    sums.prices.insert(card, prices);
                    *sums.usage.entry((series, hour, card)).or_default() += usage;
                }
            }
        }
    }

    fn priced_lines(&self, sums: Sums<'_>) -> Result<Rated, BooksError> {
        let mut payers = Rated::new();
        // There are few prices, and a cost is so many times one of them.
        let mut unit_costs: BTreeMap<(Option<u32>, ClassNo, Priority), Amount> = BTreeMap::new();
        for ((series, hour, card), usage) in sums.usage.into_iter().filter(|(_, usage)| *usage != 0) {
            let key = &self.billing.keys[series as usize];
            let prices = sums.prices[&card];
            let Some(spec) = self.classes.get(&key.class) else { continue };
            let unit_cost = match unit_costs.entry((card, key.class, key.priced)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let each = rate(prices, key.class, spec, key.priced);
                    new.insert(Amount::of_money(&Money::of(1, each)?)?)
                }
            };
            let cost = unit_cost.times(usage.unsigned_abs());
            let exact = if usage < 0 { -cost } else { cost }.encoded()?;
            let (_, lines) =
                payers.entry((key.payer, prices.currency)).or_insert_with(|| (key.tenant, PayerLines::new()));
            let line = RatedLine { key: self.line_key(key, hour, card), usage: UsageDelta(usage), exact };
            lines.push((self.ledger.booked_in(hour), line));
        }
        for (_, lines) in payers.values_mut() {
            lines.sort_unstable_by(|(month, line), (other, next)| (month, &line.key).cmp(&(other, &next.key)));
            // There is one series for each set of line attributes.
            debug_assert!(lines.is_sorted_by(|a, b| (a.0, &a.1.key) < (b.0, &b.1.key)), "two series for one line");
        }
        Ok(payers)
    }
}
