//! Fractions whose parts fit 128 bits: nearly all amounts are such, and computing with them allocates nothing. Whatever
//! does not fit is computed with arbitrary integers instead (`exact.rs`).

use num_integer::Integer;
use std::cmp::Ordering;

/// A fraction in lowest terms. The denominator is positive, and neither part is `i128::MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Small {
    pub(crate) numerator: i128,
    pub(crate) denominator: i128,
}

pub(crate) fn gcd(one: u128, other: u128) -> u128 {
    match (u64::try_from(one), u64::try_from(other)) {
        (Ok(one), Ok(other)) => one.gcd(&other).into(),
        _ => one.gcd(&other),
    }
}

/// The greatest common divisor of a number and a positive one, which it therefore does not exceed.
fn common(number: i128, positive: i128) -> i128 {
    let divisor = gcd(number.unsigned_abs(), positive.unsigned_abs());
    i128::try_from(divisor).expect("a divisor of a positive number is not greater")
}

impl Small {
    /// In lowest terms; `None` if a part does not fit.
    pub(crate) fn new(numerator: i128, denominator: u128) -> Option<Self> {
        let denominator = i128::try_from(denominator).ok().filter(|denominator| *denominator > 0)?;
        if numerator == i128::MIN {
            return None;
        }
        let common = common(numerator, denominator);
        Some(Self { numerator: numerator / common, denominator: denominator / common })
    }

    fn reduced(numerator: i128, denominator: i128) -> Option<Self> {
        Self::new(numerator, denominator.unsigned_abs())
    }

    /// Over the least common denominator.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        if self.denominator == other.denominator {
            return Self::reduced(self.numerator.checked_add(other.numerator)?, self.denominator);
        }
        let common = common(self.denominator, other.denominator);
        let (own, others) = (self.denominator / common, other.denominator / common);
        let left = self.numerator.checked_mul(others)?;
        let sum = left.checked_add(other.numerator.checked_mul(own)?)?;
        Self::reduced(sum, self.denominator.checked_mul(others)?)
    }

    pub(crate) fn times(self, factor: u128) -> Option<Self> {
        let factor = i128::try_from(factor).ok()?;
        let common = common(factor, self.denominator);
        Self::reduced(self.numerator.checked_mul(factor / common)?, self.denominator / common)
    }

    pub(crate) fn over(self, divisor: u128) -> Option<Self> {
        let divisor = i128::try_from(divisor).ok()?;
        Self::reduced(self.numerator, self.denominator.checked_mul(divisor)?)
    }

    /// The greatest whole number that is not above it, and what is left.
    pub(crate) fn floor(self) -> (i128, Self) {
        let (whole, rest) = self.numerator.div_mod_floor(&self.denominator);
        // A fraction stays in lowest terms without its whole part.
        let rest = if rest == 0 { Self { numerator: 0, denominator: 1 } } else { Self { numerator: rest, ..self } };
        (whole, rest)
    }

    /// The nearest whole number; from the middle, the even one.
    pub(crate) fn half_even(self) -> i128 {
        let (whole, rest) = self.numerator.div_mod_floor(&self.denominator);
        // The rest is less than the denominator, so that neither difference overflows.
        let up = match rest.cmp(&(self.denominator - rest)) {
            Ordering::Less => false,
            Ordering::Equal => whole.is_odd(),
            Ordering::Greater => true,
        };
        whole + i128::from(up)
    }

    /// `None` if the products do not fit.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        let own = self.numerator.checked_mul(other.denominator)?;
        Some(own.cmp(&other.numerator.checked_mul(self.denominator)?))
    }
}
