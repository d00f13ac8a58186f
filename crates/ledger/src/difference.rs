//! Why a line of one invoice differs from the same line of another: more or less usage, another price, or both.
//!
//! The parts of a difference add up exactly. What usage explains is priced with the average price of the earlier line, and
//! the price explains the rest.

use crate::{Amount, Overflow, Steps};

/// A line as it stands on an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// In a unit that both sides have in common; none for entries by hand.
    pub usage: Option<i128>,
    pub amount: Steps,
}

/// What a part of a difference comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The line is only on the later invoice.
    New,
    /// The line is only on the earlier invoice.
    Gone,
    MoreUsage,
    LessUsage,
    HigherPrice,
    LowerPrice,
    /// Too little for another price: the lines of each hour are rounded by themselves.
    Rounding,
    /// The amount changed, and there is no usage to compare.
    OtherAmount,
}

/// Below this a difference that usage does not explain is rounding. Each of the up to 744 hours of a month is rounded to a
/// step by itself, on either side.
const ROUNDING_MAX: Steps = Steps(2 * 744);

/// The causes of the difference between two lines, with what each makes up. A line that is on neither side, or did not
/// change, has none.
pub fn causes(before: Option<Side>, after: Option<Side>) -> Result<Vec<(Cause, Steps)>, Overflow> {
    if [before, after].iter().flatten().any(|side| !side.amount.is_encodable()) {
        return Err(Overflow);
    }
    let (before, after) = match (before, after) {
        (None, None) => return Ok(Vec::new()),
        (None, Some(after)) => return Ok(vec![(Cause::New, after.amount)]),
        (Some(before), None) => return Ok(vec![(Cause::Gone, -before.amount)]),
        (Some(before), Some(after)) => (before, after),
    };
    let all = after.amount.checked_add(-before.amount).ok_or(Overflow)?;
    let by_usage = match (before.usage, after.usage) {
        (Some(old), Some(new)) => priced(before.amount, old, new)?,
        _ => None,
    };
    let Some((by_usage, grew)) = by_usage else {
        return Ok(if all == Steps::ZERO { Vec::new() } else { vec![(Cause::OtherAmount, all)] });
    };
    let by_price = all.checked_add(-by_usage).ok_or(Overflow)?;
    let price = match by_price {
        small if small.0.abs() <= ROUNDING_MAX.0 => Cause::Rounding,
        more if more.0 > 0 => Cause::HigherPrice,
        _ => Cause::LowerPrice,
    };
    let usage = if grew { Cause::MoreUsage } else { Cause::LessUsage };
    Ok([(usage, by_usage), (price, by_price)].into_iter().filter(|(_, amount)| *amount != Steps::ZERO).collect())
}

/// What the change of usage costs at the average price of the earlier line, and whether it grew. Without earlier usage
/// there is no average price.
fn priced(amount: Steps, old: i128, new: i128) -> Result<Option<(Steps, bool)>, Overflow> {
    let Some(divisor) = u128::try_from(old).ok().filter(|old| *old > 0) else {
        return Ok(None);
    };
    let change = new.checked_sub(old).ok_or(Overflow)?;
    let exact = Amount::from(amount).times(change.unsigned_abs()).over(divisor);
    let steps = Some(Steps(exact.half_even()?)).filter(|steps| steps.is_encodable()).ok_or(Overflow)?;
    Ok(Some((if change < 0 { -steps } else { steps }, change > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(usage: i128, amount: i128) -> Option<Side> {
        Some(Side { usage: Some(usage), amount: Steps(amount) })
    }
    fn check(before: Option<Side>, after: Option<Side>, expected: &[(Cause, i128)]) {
        let found = causes(before, after).expect("small numbers");
        assert_eq!(found, expected.iter().map(|(cause, steps)| (*cause, Steps(*steps))).collect::<Vec<_>>());
        let amount = |side: Option<Side>| side.map_or(0, |side| side.amount.0);
        assert_eq!(found.iter().map(|(_, steps)| steps.0).sum::<i128>(), amount(after) - amount(before));
    }

    /// 10 hours at 2.00 become 15 hours at 3.00: 5 × 2.00 for usage, 15 × 1.00 for the price.
    #[test]
    fn usage_and_price_are_told_apart_and_add_up() {
        let ten = side(10_000_000, 20_000_000);
        check(ten, side(15_000_000, 45_000_000), &[(Cause::MoreUsage, 10_000_000), (Cause::HigherPrice, 15_000_000)]);
        check(ten, side(15_000_000, 30_000_000), &[(Cause::MoreUsage, 10_000_000)]);
        check(ten, side(4_000_000, 8_000_000), &[(Cause::LessUsage, -12_000_000)]);
        check(ten, side(10_000_000, 15_000_000), &[(Cause::LowerPrice, -5_000_000)]);
        check(ten, side(0, 0), &[(Cause::LessUsage, -20_000_000)]);
        check(ten, ten, &[]);
    }

    #[test]
    fn what_cannot_be_compared_is_named_as_it_is() {
        let by_hand = |amount| Some(Side { usage: None, amount: Steps(amount) });
        check(None, side(5, 7), &[(Cause::New, 7)]);
        check(side(5, 7), None, &[(Cause::Gone, -7)]);
        check(None, None, &[]);
        check(by_hand(7), by_hand(9), &[(Cause::OtherAmount, 2)]);
        check(by_hand(7), by_hand(7), &[]);
        check(side(0, 7), side(5, 9), &[(Cause::OtherAmount, 2)]);
    }

    /// A third of a unit more at 1.000001: the price explains no more than rounding.
    #[test]
    fn a_few_steps_are_rounding() {
        check(
            side(3_000_000, 3_000_003),
            side(4_000_000, 4_000_005),
            &[(Cause::MoreUsage, 1_000_001), (Cause::Rounding, 1)],
        );
        let limit = 2 * 744;
        check(side(1_000_000, 0), side(1_000_000, limit), &[(Cause::Rounding, limit)]);
        check(side(1_000_000, 0), side(1_000_000, limit + 1), &[(Cause::HigherPrice, limit + 1)]);
        check(side(1_000_000, limit + 1), side(1_000_000, 0), &[(Cause::LowerPrice, -limit - 1)]);
    }

    #[test]
    fn amounts_of_any_size_do_not_panic() {
        for usage in [0, 1, -1, i128::MAX, i128::MIN] {
            for amount in [0, 1, i128::MAX, i128::MIN + 1] {
                let _ = causes(side(usage, amount), side(1, 1));
                let _ = causes(side(1, 1), side(usage, amount));
            }
        }
    }
}
