//! Exact amounts in steps, and how they are rounded.

use ethnum::U256;
use leasehold_model::ledger::{ExactSteps, Magnitude, Residual};
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use std::cmp::Ordering;

/// In lowest terms; the denominator is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) numerator: BigInt,
    denominator: BigInt,
}

impl Fraction {
    pub(crate) fn new(numerator: BigInt, denominator: BigInt) -> Self {
        let gcd = numerator.gcd(&denominator);
        Self { numerator: numerator / &gcd, denominator: denominator / gcd }
    }
    pub(crate) fn integer(steps: i128) -> Self {
        Self { numerator: steps.into(), denominator: 1.into() }
    }
    pub(crate) fn of_residual(residual: Residual) -> Self {
        Self::new(residual.units().into(), Residual::PER_STEP.into())
    }
    pub(crate) fn of_parts(negative: bool, numerator: U256, denominator: U256) -> Self {
        let number = |value: U256| BigInt::from_bytes_be(Sign::Plus, &value.to_be_bytes());
        let numerator = number(numerator);
        Self::new(if negative { -numerator } else { numerator }, number(denominator))
    }

    /// `None` unless it is in lowest terms.
    pub(crate) fn read(exact: &ExactSteps) -> Option<Self> {
        let number = |magnitude: &Magnitude| BigInt::from_bytes_be(Sign::Plus, magnitude.digits());
        let numerator = number(&exact.numerator);
        let numerator = if exact.negative { -numerator } else { numerator };
        let denominator = number(&exact.denominator);
        let lowest = Self::new(numerator.clone(), denominator.clone());
        (lowest.numerator == numerator && lowest.denominator == denominator).then_some(lowest)
    }

    /// As records have it.
    pub(crate) fn write(&self) -> ExactSteps {
        let digits = |number: &BigInt| Magnitude::from_digits(&number.to_bytes_be().1).expect("not too long");
        ExactSteps {
            negative: self.numerator.sign() == Sign::Minus,
            numerator: digits(&self.numerator),
            denominator: digits(&self.denominator),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let numerator = &self.numerator * &other.denominator + &other.numerator * &self.denominator;
        Self::new(numerator, &self.denominator * &other.denominator)
    }
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }
    pub(crate) fn negated(&self) -> Self {
        Self { numerator: -&self.numerator, denominator: self.denominator.clone() }
    }
    pub(crate) fn times(&self, factor: impl Into<BigInt>) -> Self {
        Self::new(&self.numerator * factor.into(), self.denominator.clone())
    }
    pub(crate) fn divided(&self, by: impl Into<BigInt>) -> Self {
        Self::new(self.numerator.clone(), &self.denominator * by.into())
    }

    pub(crate) fn floor(&self) -> BigInt {
        self.numerator.div_floor(&self.denominator)
    }

    /// The nearest integer; of two that are equally near, the even one.
    pub(crate) fn half_even(&self) -> BigInt {
        let (below, rest) = self.numerator.div_mod_floor(&self.denominator);
        let twice: BigInt = rest * 2;
        let up = twice > self.denominator || twice == self.denominator && below.is_odd();
        if up { below + 1 } else { below }
    }

    /// What is kept of it as a residual; `None` if it is more than half a step.
    pub(crate) fn residual(&self) -> Option<Residual> {
        let units = self.times(Residual::PER_STEP).half_even();
        i128::try_from(units).ok().and_then(Residual::from_units)
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }
}
impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Splits the rounded sum of amounts and a residual: each is rounded down, and the missing steps go to the largest
/// fractions, or a surplus is taken from the smallest; of equal ones, the first counts (SEMANTICS 12, "Amounts").
pub(crate) fn split(amounts: &[Fraction], residual: &Fraction) -> (Vec<BigInt>, Fraction) {
    let sum = amounts.iter().fold(residual.clone(), |sum, amount| sum.plus(amount));
    let total = sum.half_even();
    let mut parts: Vec<BigInt> = amounts.iter().map(Fraction::floor).collect();
    let missing: BigInt = &total - parts.iter().sum::<BigInt>();
    let fraction = |place: usize| amounts[place].minus(&Fraction::new(amounts[place].floor(), 1.into()));
    let mut order: Vec<usize> = (0..amounts.len()).collect();
    let step = if missing < BigInt::from(0) {
        order.sort_by_key(|place| fraction(*place));
        -1
    } else {
        order.sort_by_key(|place| fraction(*place).negated());
        1
    };
    let count = usize::try_from(missing * step).expect("not more than there are lines");
    order.into_iter().take(count).for_each(|place| parts[place] += step);
    (parts, sum.minus(&Fraction::new(total, 1.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numerator: i64, denominator: i64) -> Fraction {
        Fraction::new(numerator.into(), denominator.into())
    }

    /// 10.00 shared by three, in steps; negative thirds; a surplus by a negative residual.
    #[test]
    fn amounts_are_split_by_the_largest_fraction() {
        for (amounts, residual, parts, left) in [
            (vec![of(10_000_000, 3); 3], of(0, 1), vec![3_333_334, 3_333_333, 3_333_333], of(0, 1)),
            (vec![of(-1, 3); 2], of(0, 1), vec![0, -1], of(1, 3)),
            (vec![of(3, 2)], of(0, 1), vec![2], of(-1, 2)),
            (vec![of(5, 2)], of(0, 1), vec![2], of(1, 2)),
            (vec![of(3, 1), of(4, 1)], of(-1, 2), vec![2, 4], of(1, 2)),
        ] {
            let parts: Vec<BigInt> = parts.into_iter().map(BigInt::from).collect();
            assert_eq!(split(&amounts, &residual), (parts, left));
        }
    }
}
