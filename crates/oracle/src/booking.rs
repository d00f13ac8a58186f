//! How a usage record is divided, priced and booked (SEMANTICS 13, "Booking"), by the simplest means.

use ethnum::U256;
use leasehold_model::app::STANDARD_UNITS;
use leasehold_model::body::{UnitPricePut, UsageReport, UsageUnitPut};
use leasehold_model::ledger::hour_of;
use leasehold_model::rate::Currency;
use leasehold_model::{AppTypeNo, Instant, Month, UnitMeasure, UnitNo};

/// A part of a reported quantity that has one price and is booked in one hour.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) hour: Instant,
    /// In 10^-18 units.
    pub(crate) quantity: u128,
    pub(crate) price: Option<&'a UnitPricePut>,
}

impl Part<'_> {
    /// The exact cost, in 10^-27 of the currency of its price.
    pub(crate) fn cost(&self) -> U256 {
        self.price.map_or(U256::ZERO, |put| U256::from(self.quantity) * U256::from(put.price.0))
    }
    pub(crate) fn is_in(&self, currency: Currency) -> bool {
        self.price.is_some_and(|put| put.currency == currency)
    }
}

/// 10^-27 of a currency in a billionth of it.
pub(crate) const PER_BILLIONTH: u128 = 1_000_000_000_000_000_000;

/// How a unit measures; none if there is no such unit.
pub(crate) fn measure_of(unit: UnitNo, defined: &[UsageUnitPut]) -> Option<UnitMeasure> {
    let standard = STANDARD_UNITS.iter().find(|(number, ..)| *number == unit).map(|(.., measure)| *measure);
    standard.or_else(|| defined.iter().find(|put| put.unit == unit).map(|put| put.measure))
}

/// The prices that may hold for a unit of an app, in the order in which they were set.
fn prices_of(prices: &[UnitPricePut], unit: UnitNo, app: AppTypeNo) -> impl Iterator<Item = &UnitPricePut> {
    prices.iter().filter(move |put| put.unit == unit && put.app_type.is_none_or(|of| of == app))
}

/// The price with the latest start, and of those the last one set; that of the app goes before that for all.
fn price_at(prices: &[UnitPricePut], unit: UnitNo, app: AppTypeNo, at: Instant) -> Option<&UnitPricePut> {
    let begun = prices_of(prices, unit, app).filter(|put| put.from <= at);
    begun.max_by_key(|put| (put.app_type.is_some(), put.from, put.price_no))
}

/// The parts of a report, by the prices that are known.
pub(crate) fn parts<'a>(
    report: &UsageReport,
    measure: UnitMeasure,
    app: AppTypeNo,
    prices: &'a [UnitPricePut],
) -> Vec<Part<'a>> {
    let (from, to) = (report.from, report.to);
    let price = |at: Instant| price_at(prices, report.unit, app, at);
    let whole = report.quantity.in_line_parts();
    if measure == UnitMeasure::Count {
        return vec![Part { hour: hour_of(to), quantity: whole, price: price(to) }];
    }
    let mut cuts = vec![from, to];
    let mut month = Month::of(from);
    while month.end() < to {
        cuts.push(month.end());
        month = month.next();
    }
    // Wherever the price of the unit may change: also at the start of a price for another app.
    let starts = prices.iter().filter(|put| put.unit == report.unit).map(|put| put.from);
    cuts.extend(starts.filter(|at| *at > from && *at < to));
    cuts.sort_unstable();
    cuts.dedup();
    let all = U256::from(to.0 - from.0);
    let mut parts = Vec::new();
    let mut rests: Vec<(U256, usize)> = Vec::new();
    for (place, pair) in cuts.windows(2).enumerate() {
        let share = U256::from(whole) * U256::from(pair[1].0 - pair[0].0);
        rests.push((share % all, place));
        // The last instant of the month's part of the interval.
        let last = Instant(to.min(Month::of(pair[0]).end()).0 - 1);
        parts.push(Part { hour: hour_of(last), quantity: (share / all).as_u128(), price: price(pair[0]) });
    }
    let missing = whole - parts.iter().map(|part| part.quantity).sum::<u128>();
    rests.sort_by(|(one, first), (other, second)| other.cmp(one).then(first.cmp(second)));
    for (_, place) in rests.into_iter().take(usize::try_from(missing).expect("fewer than there are parts")) {
        parts[place].quantity += 1;
    }
    parts
}
