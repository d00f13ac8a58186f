//! Cost: amounts are split at every change of price and multiplied, without rounding.

use crate::ask::{Key, LINES_MAX, Question, Source, Workloads, payer_key, row_key};
use crate::facts::{Books, BooksError, Phase};
use crate::mix::MixMap;
use crate::row::{End, Row};
use crate::usage::{bucket_no, cut};
use ethnum::U256;
use leasehold_meter::{Money, Overflow, Rate, Window, billable_end, rate};
use leasehold_model::rate::{Charge, Currency, Prices};
use leasehold_model::{ClassNo, Instant, Name, PoolNo, Priority};
use std::collections::BTreeMap;

/// The cost of one class, for one key, over one interval of the question, in one currency.
#[derive(Clone, Debug, PartialEq)]
pub struct CostLine {
    pub key: Key,
    pub class: ClassNo,
    pub bucket: u32,
    pub currency: Currency,
    pub money: Money,
}

/// The hourly cost of the leases that are held now.
pub type LiveRate = CostLine;

/// The intervals of a question, split where the prices of a pool change.
struct Cuts<'b> {
    borders: Vec<Instant>,
    /// For each piece, its interval in the question and its prices.
    pieces: Vec<(u32, &'b Prices)>,
}

struct Pricing<'b> {
    books: &'b Books,
    borders: Vec<Instant>,
    of_pool: BTreeMap<PoolNo, Cuts<'b>>,
    rates: BTreeMap<(usize, ClassNo, Priority), Rate>,
    /// The last part of a key is the divisor of the rate: prices may be for different periods.
    sums: MixMap<(Key, ClassNo, u32, Currency, u64), U256>,
    overflow: bool,
}

/// What prices depend on: the group, the class and the priority.
#[derive(Clone, Copy)]
struct Priced {
    key: Key,
    class: ClassNo,
    pool: PoolNo,
    priority: Priority,
}

impl<'b> Pricing<'b> {
    fn new(books: &'b Books, borders: &[Instant]) -> Self {
        Self {
            books,
            borders: borders.to_vec(),
            of_pool: BTreeMap::new(),
            rates: BTreeMap::new(),
            sums: MixMap::default(),
            overflow: false,
        }
    }

    fn cuts(&mut self, pool: PoolNo) -> &Cuts<'b> {
        let (books, borders) = (self.books, &self.borders);
        self.of_pool.entry(pool).or_insert_with(|| {
            let mut cuts = Cuts { borders: Vec::new(), pieces: Vec::new() };
            for (bucket, pair) in borders.windows(2).enumerate() {
                let window = Window::new(pair[0], pair[1]);
                let starts = std::iter::once(pair[0]).chain(books.schedule.changes(pool, window));
                for start in starts {
                    cuts.borders.push(start);
                    cuts.pieces.push((bucket_no(bucket), books.schedule.prices_at(pool, start)));
                }
            }
            cuts.borders.extend(borders.last());
            cuts
        })
    }

    /// Adds or subtracts an amount of one piece.
    fn book(&mut self, priced: Priced, bucket: u32, prices: &'b Prices, amount: u128, off: bool) {
        let class = priced.class;
        let Some(spec) = self.books.classes.get(&class).filter(|_| self.sums.len() <= LINES_MAX) else { return };
        let place = std::ptr::from_ref(prices).addr();
        let by_class = self.rates.entry((place, class, priced.priority));
        let each = *by_class.or_insert_with(|| rate(prices, class, spec, priced.priority));
        let Some(cost) = U256::from(amount).checked_mul(each.factor) else {
            self.overflow = true;
            return;
        };
        let sum = self.sums.entry((priced.key, class, bucket, prices.currency, each.divisor)).or_default();
        match if off { sum.checked_sub(cost) } else { sum.checked_add(cost) } {
            Some(changed) => *sum = changed,
            None => self.overflow = true,
        }
    }

    /// Adds the cost of quanta that were held over an interval.
    fn held(&mut self, priced: Priced, quanta: u64, held: Window, off: bool) {
        let mut pieces: smallvec::SmallVec<[(u32, &'b Prices, u64); 4]> = smallvec::SmallVec::new();
        let cuts = self.cuts(priced.pool);
        cut(&cuts.borders, held, |piece, length| {
            let (bucket, prices) = cuts.pieces[piece];
            pieces.push((bucket, prices, length));
        });
        for (bucket, prices, length) in pieces {
            self.book(priced, bucket, prices, u128::from(quanta) * u128::from(length), off);
        }
    }

    /// Subtracts the part of a lease that the charge policy does not charge.
    fn forgive(&mut self, key: Key, row: &Row) {
        let charge = row.charge(self.books.schedule.charges_at(row.held.to));
        if charge == Charge::Full {
            return;
        }
        let forgiven = Window::new(billable_end(row.held, charge), row.held.to);
        let priced = Priced { key, class: row.class, pool: row.pool, priority: row.priced() };
        self.held(priced, row.quanta, forgiven, true);
    }

    fn lines(self) -> Result<Vec<CostLine>, BooksError> {
        if self.sums.len() > LINES_MAX {
            return Err(BooksError::TooMuch);
        }
        if self.overflow {
            return Err(Overflow.into());
        }
        let line = |((key, class, bucket, currency, divisor), cost)| CostLine {
            key,
            class,
            bucket,
            currency,
            money: Money::new(divisor, cost),
        };
        let mut parts: Vec<CostLine> = self.sums.into_iter().map(line).filter(|line| !line.money.is_zero()).collect();
        let of = |line: &CostLine| (line.key, line.class, line.bucket, line.currency);
        parts.sort_unstable_by_key(of);
        let mut lines: Vec<CostLine> = Vec::with_capacity(parts.len());
        for part in parts {
            match lines.last_mut().filter(|last| of(last) == of(&part)) {
                Some(last) => last.money.add_all(&part.money)?,
                None => lines.push(part),
            }
        }
        Ok(lines)
    }
}

impl Books {
    /// The cost of the capacity in question, in order of key, class, interval and currency.
    pub fn cost(&self, question: &Question) -> Result<(Vec<CostLine>, Vec<Name>), BooksError> {
        self.afford(question)?;
        let mut pricing = Pricing::new(self, &question.borders);
        let mut workloads = self.workloads();
        if self.source(question) == Source::Billing {
            self.cost_by_series(question, &mut pricing);
        } else {
            self.scan(question, &mut workloads, |key, slice| {
                let brief = slice.brief;
                let priced = Priced { key, class: brief.class, pool: brief.pool, priority: brief.priced() };
                pricing.held(priced, slice.quanta, slice.held, false);
            })?;
        }
        if self.schedule.has_exceptions() {
            self.forgive(question, &mut pricing, &mut workloads)?;
        }
        self.sound(())?;
        Ok((pricing.lines()?, workloads.names))
    }

    fn cost_by_series<'b>(&'b self, question: &Question, pricing: &mut Pricing<'b>) {
        let Some((plan, timeline)) = self.plan(question) else { return };
        // One pass for all pools, split where the prices of any of them change.
        let mut pools: Vec<PoolNo> = plan.series.iter().map(|no| self.billing.keys[*no as usize].pool).collect();
        pools.sort_unstable();
        pools.dedup();
        let mut borders: Vec<Instant> = question.borders.clone();
        for pool in pools {
            borders.extend_from_slice(&pricing.cuts(pool).borders);
        }
        borders.sort_unstable();
        borders.dedup();
        if borders.len() < 2 {
            return;
        }
        timeline.amounts(&borders, plan.wanted(), &self.store, |piece, series, amount| {
            let key = &self.billing.keys[series as usize];
            let cuts = pricing.cuts(key.pool);
            let place = cuts.borders.partition_point(|border| *border <= borders[piece]) - 1;
            let (bucket, prices) = cuts.pieces[place];
            let (class, pool, priority) = (key.class, key.pool, key.priced);
            let priced = Priced { key: payer_key(&question.dims, key), class, pool, priority };
            pricing.book(priced, bucket, prices, amount, false);
        });
    }

    fn forgive<'b>(
        &'b self,
        question: &Question,
        pricing: &mut Pricing<'b>,
        workloads: &mut Workloads,
    ) -> Result<(), BooksError> {
        let (filter, dims) = (&question.filter, &question.dims[..]);
        let mut one = |row: &Row| {
            if row.is_exception() && filter.takes_row(row) {
                pricing.forgive(row_key(dims, row, workloads), row);
            }
        };
        let is_last = |row: &Row| self.failed_starts.contains(&row.lease);
        self.scan_rows(question.window(), true, |row| {
            if !is_last(row) {
                one(row)
            }
        })?;
        let ended = self.open.values().filter(|open| open.phase != Phase::Held && !is_last(&open.row));
        ended.for_each(|open| one(&open.row));
        for (mut row, _) in self.leases_of(self.failed_starts.iter().copied())? {
            if row.ended_plainly() {
                row.end = End::FailedStart;
            }
            if row.held.meets(question.window()) {
                one(&row);
            }
        }
        Ok(())
    }

    /// The forecast cost of held leases from `from` on: each up to its deadline or `to`, whichever is first; or up to
    /// `to` if they are assumed to be renewed.
    pub fn cost_ahead(
        &self,
        question: &Question,
        from: Instant,
        to: Instant,
        renewed: bool,
    ) -> Result<Vec<CostLine>, BooksError> {
        let mut pricing = Pricing::new(self, &[from, to.max(from)]);
        let mut workloads = self.workloads();
        for open in self.open.values().filter(|open| open.phase == Phase::Held && question.filter.takes_row(&open.row))
        {
            let row = &open.row;
            let end = if renewed { to } else { row.held.to.min(to) };
            let key = row_key(&question.dims, row, &mut workloads);
            let priced = Priced { key, class: row.class, pool: row.pool, priority: row.priced() };
            pricing.held(priced, row.quanta, Window::new(from, end.max(from)), false);
        }
        // A claim has no deadline: idle capacity is charged until the release.
        self.idle_rows(to, renewed, |row| {
            if question.filter.takes_row(row) {
                let key = row_key(&question.dims, row, &mut workloads);
                let priced = Priced { key, class: row.class, pool: row.pool, priority: row.priced() };
                pricing.held(priced, row.quanta, row.held, false);
            }
        });
        pricing.lines()
    }

    /// The hourly cost of held leases, at the prices of `at`.
    pub fn live_rate(&self, question: &Question, at: Instant) -> Result<(Vec<LiveRate>, Vec<Name>), BooksError> {
        const HOUR_NS: u128 = 3600 * 1_000_000_000;
        let mut pricing = Pricing::new(self, &[at, at]);
        let mut workloads = self.workloads();
        for open in self.open.values().filter(|open| open.phase == Phase::Held && question.filter.takes_row(&open.row))
        {
            let row = &open.row;
            let key = row_key(&question.dims, row, &mut workloads);
            let priced = Priced { key, class: row.class, pool: row.pool, priority: row.priced() };
            pricing.book(priced, 0, self.schedule.prices_at(row.pool, at), u128::from(row.quanta) * HOUR_NS, false);
        }
        self.idle_rows(Instant::MAX, true, |row| {
            if row.held.to == Instant::MAX && question.filter.takes_row(row) {
                let key = row_key(&question.dims, row, &mut workloads);
                let priced = Priced { key, class: row.class, pool: row.pool, priority: row.priced() };
                pricing.book(priced, 0, self.schedule.prices_at(row.pool, at), u128::from(row.quanta) * HOUR_NS, false);
            }
        });
        Ok((pricing.lines()?, workloads.names))
    }

    /// The cost of quanta of a class over an interval.
    pub fn price(
        &self,
        (class, pool, priority): (ClassNo, PoolNo, Priority),
        quanta: u64,
        held: Window,
    ) -> Result<Vec<(Currency, Money)>, BooksError> {
        let mut pricing = Pricing::new(self, &[held.from, held.to]);
        let key = [crate::ask::NONE; crate::ask::DIMS_MAX];
        pricing.held(Priced { key, class, pool, priority }, quanta, held, false);
        Ok(pricing.lines()?.into_iter().map(|line| (line.currency, line.money)).collect())
    }

    /// The cost of one lease within a window for all its held time. Charge policies apply to bills, not to waste.
    pub(crate) fn cost_of(&self, row: &Row, held: Window) -> Result<Vec<(Currency, Money)>, BooksError> {
        self.price((row.class, row.pool, row.priced()), row.quanta, held)
    }
}
