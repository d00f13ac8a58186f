//! How a reported quantity of a usage unit is divided: at the borders of months and where the price changes.
//!
//! A quantity of time is spread evenly over its interval, and booked in the hour in which its part of a month ends. A count
//! is booked at the end of the interval, whole.

use ethnum::U256;
use leasehold_model::ledger::{Month, hour_of};
use leasehold_model::{Instant, UnitMeasure, UnitQuantity};

/// A part of a reported quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitPart {
    /// The hour in which it is booked.
    pub hour: Instant,
    /// An instant at which the price of the part is in force.
    pub priced_at: Instant,
    /// In parts of a line: a billionth of a billionth of a unit.
    pub quantity: u128,
}

/// The parts of a quantity that was used from one instant to another. `changes` are the instants at which the price may
/// change, in any order. The parts add up to the quantity; what does not divide goes to the largest remainders, the
/// earlier part first.
pub fn unit_parts(
    measure: UnitMeasure,
    quantity: UnitQuantity,
    (from, to): (Instant, Instant),
    changes: impl IntoIterator<Item = Instant>,
) -> Vec<UnitPart> {
    let all = quantity.in_line_parts();
    if measure == UnitMeasure::Count || to <= from {
        return vec![UnitPart { hour: hour_of(to), priced_at: to, quantity: all }];
    }
    let mut borders = vec![from, to];
    let mut month = Month::of(from).next();
    while month.start() < to {
        borders.push(month.start());
        month = month.next();
    }
    borders.extend(changes.into_iter().filter(|at| *at > from && *at < to));
    borders.sort_unstable();
    borders.dedup();
    let length = U256::from(to.since(from).0);
    let mut parts = Vec::with_capacity(borders.len() - 1);
    let mut remainders = Vec::with_capacity(borders.len() - 1);
    let mut missing = all;
    for (place, border) in borders.windows(2).enumerate() {
        let share = U256::from(all) * U256::from(border[1].since(border[0]).0);
        let quantity = (share / length).as_u128();
        missing -= quantity;
        remainders.push((std::cmp::Reverse(share % length), place));
        let end = Month::of(border[0]).end().min(to);
        parts.push(UnitPart { hour: hour_of(Instant(end.0 - 1)), priced_at: border[0], quantity });
    }
    remainders.sort_unstable();
    for (_, place) in remainders.into_iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        parts[place].quantity += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_model::ledger::HOUR_NS as HOUR;

    /// The start of 2026-11-01.
    const NOVEMBER: u64 = 1_793_491_200 * 1_000_000_000;

    fn parts(measure: UnitMeasure, units: u64, from: u64, to: u64, changes: &[u64]) -> Vec<(u64, u64, u128)> {
        let changes = changes.iter().map(|at| Instant(*at));
        let all = unit_parts(measure, UnitQuantity::of_whole(units), (Instant(from), Instant(to)), changes);
        all.into_iter().map(|part| (part.hour.0, part.priced_at.0, part.quantity)).collect()
    }

    #[test]
    fn a_count_is_booked_whole_at_its_end() {
        let one = UnitQuantity::LINE_PARTS;
        let (from, to) = (NOVEMBER - HOUR, NOVEMBER);
        assert_eq!(parts(UnitMeasure::Count, 7, from, to, &[NOVEMBER - 1]), [(NOVEMBER, NOVEMBER, 7 * one)]);
        assert_eq!(parts(UnitMeasure::Count, 7, to, to, &[]), [(NOVEMBER, NOVEMBER, 7 * one)]);
    }

    #[test]
    fn time_is_divided_at_months_and_prices_and_booked_where_its_month_ends() {
        let one = UnitQuantity::LINE_PARTS;
        let (from, to) = (NOVEMBER - 4 * HOUR, NOVEMBER + 4 * HOUR);
        let expected = [
            (NOVEMBER - HOUR, from, 4 * one),
            (NOVEMBER + 3 * HOUR, NOVEMBER, one),
            (NOVEMBER + 3 * HOUR, NOVEMBER + HOUR, 3 * one),
        ];
        assert_eq!(parts(UnitMeasure::Time, 8, from, to, &[NOVEMBER + HOUR, to, from]), expected);
    }

    #[test]
    fn what_does_not_divide_goes_to_the_largest_remainder() {
        let (from, to) = (NOVEMBER, NOVEMBER + 3);
        let got = parts(UnitMeasure::Time, 1, from, to, &[NOVEMBER + 1]);
        let third = UnitQuantity::LINE_PARTS / 3;
        // A third has the remainder 1/3, two thirds have 2/3.
        assert_eq!(got, [(NOVEMBER, NOVEMBER, third), (NOVEMBER, NOVEMBER + 1, 2 * third + 1)]);
        assert_eq!(got.iter().map(|(.., quantity)| quantity).sum::<u128>(), UnitQuantity::LINE_PARTS);
    }
}
