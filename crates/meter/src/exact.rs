//! Exact sums of fractions: one numerator for each denominator.
//!
//! Each class has its own number of quanta per unit, so amounts of several classes have several denominators. There
//! are few of them. Numerators are added as integers; fractions are reduced or rounded only for output.

use crate::rating::Rate;
use crate::split::{half_even, round_wide};
use ethnum::U256;
use smallvec::SmallVec;
use std::fmt;

/// A number did not fit into 256 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a figure does not fit into 256 bits; use a shorter window or a narrower filter")
    }
}
impl std::error::Error for Overflow {}

/// The sum of `numerator / (denominator × 10^DECIMALS)` over its parts.
#[derive(Clone, Debug)]
pub struct Exact<const DECIMALS: u32> {
    /// In order of denominator; no numerator is zero.
    parts: SmallVec<[(u64, U256); 2]>,
}

/// Unit-seconds: quanta × nanoseconds, divided by quanta per unit and nanoseconds per second.
pub type Units = Exact<9>;
/// Money: unit-seconds times a price and two factors of nine decimals each.
pub type Money = Exact<36>;

impl<const DECIMALS: u32> Default for Exact<DECIMALS> {
    fn default() -> Self {
        Self { parts: SmallVec::new() }
    }
}

/// The default number of decimals in output.
pub const SCALE: u32 = 6;

fn gcd(mut a: U256, mut b: U256) -> U256 {
    while b != U256::ZERO {
        (a, b) = (b, a % b);
    }
    a
}

fn power_of_ten(exponent: u32) -> U256 {
    U256::new(10).pow(exponent)
}

impl<const DECIMALS: u32> Exact<DECIMALS> {
    pub fn new(denominator: u64, numerator: U256) -> Self {
        let mut sum = Self::default();
        sum.add(denominator, numerator).expect("one part does not overflow");
        sum
    }

    pub fn is_zero(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds `numerator / (denominator × 10^DECIMALS)`.
    pub fn add(&mut self, denominator: u64, numerator: U256) -> Result<(), Overflow> {
        assert!(denominator > 0, "a class has at least one quantum per unit");
        if numerator == U256::ZERO {
            return Ok(());
        }
        match self.parts.binary_search_by_key(&denominator, |part| part.0) {
            Ok(place) => {
                let sum = &mut self.parts[place].1;
                *sum = sum.checked_add(numerator).ok_or(Overflow)?;
            }
            Err(place) => self.parts.insert(place, (denominator, numerator)),
        }
        Ok(())
    }

    pub fn add_all(&mut self, other: &Self) -> Result<(), Overflow> {
        other.parts.iter().try_for_each(|(denominator, numerator)| self.add(*denominator, *numerator))
    }

    /// The least common multiple of the denominators.
    fn common_denominator<'e>(sums: impl Iterator<Item = &'e Self>) -> Result<U256, Overflow> {
        let mut common = U256::ONE;
        for (part, _) in sums.flat_map(|sum| &sum.parts) {
            let part = U256::from(*part);
            common = (common / gcd(common, part)).checked_mul(part).ok_or(Overflow)?;
        }
        Ok(common)
    }

    /// The numerator over a common multiple of the denominators, without the power of ten.
    fn numerator_over(&self, denominator: U256) -> Result<U256, Overflow> {
        let mut numerator = U256::ZERO;
        for (part, value) in &self.parts {
            let share = value.checked_mul(denominator / U256::from(*part)).ok_or(Overflow)?;
            numerator = numerator.checked_add(share).ok_or(Overflow)?;
        }
        Ok(numerator)
    }

    /// The numerators of several sums over a common denominator, for exact comparison.
    pub fn over_one_denominator(sums: &[&Self]) -> Result<Vec<U256>, Overflow> {
        let denominator = Self::common_denominator(sums.iter().copied())?;
        sums.iter().map(|sum| sum.numerator_over(denominator)).collect()
    }

    /// The sum as one fraction in lowest terms.
    pub fn fraction(&self) -> Result<(U256, U256), Overflow> {
        let denominator = Self::common_denominator(std::iter::once(self))?;
        let numerator = self.numerator_over(denominator)?;
        if numerator == U256::ZERO {
            return Ok((U256::ZERO, U256::ONE));
        }
        // Each factor of the denominator is reduced separately, because the product may not fit before.
        let scale = power_of_ten(DECIMALS);
        let of_scale = gcd(numerator, scale);
        let (numerator, scale) = (numerator / of_scale, scale / of_scale);
        let of_parts = gcd(numerator, denominator);
        let (numerator, denominator) = (numerator / of_parts, denominator / of_parts);
        Ok((numerator, denominator.checked_mul(scale).ok_or(Overflow)?))
    }

    /// The sum in units of `10^-decimals`, rounded half to even.
    pub fn rounded(&self, decimals: u32) -> Result<U256, Overflow> {
        let (numerator, denominator) = self.fraction()?;
        let common = gcd(power_of_ten(decimals), denominator);
        let (numerator, denominator) =
            (numerator.checked_mul(power_of_ten(decimals) / common).ok_or(Overflow)?, denominator / common);
        Ok(half_even(numerator, denominator))
    }

    /// Several sums in units of `10^-decimals`, so that they add up to their total, which is rounded half to even.
    pub fn rounded_together(sums: &[&Self], decimals: u32) -> Result<Vec<U256>, Overflow> {
        assert!(decimals <= DECIMALS, "no more decimals than the sums have");
        let denominator = Self::common_denominator(sums.iter().copied())?;
        let step = denominator.checked_mul(power_of_ten(DECIMALS - decimals)).ok_or(Overflow)?;
        let amounts = sums.iter().map(|sum| sum.numerator_over(denominator)).collect::<Result<Vec<_>, _>>()?;
        round_wide(&amounts, step).ok_or(Overflow)
    }

    /// The sum as a decimal number, rounded half to even.
    pub fn decimal(&self, decimals: u32) -> Result<String, Overflow> {
        Ok(decimal_text(self.rounded(decimals)?, decimals))
    }
}

/// Formats units of `10^-decimals` as a decimal number.
pub fn decimal_text(steps: U256, decimals: u32) -> String {
    if decimals == 0 {
        return steps.to_string();
    }
    let places = decimals as usize;
    let digits = format!("{steps:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    format!("{whole}.{part}")
}

/// Two sums are equal if they have the same value.
impl<const DECIMALS: u32> PartialEq for Exact<DECIMALS> {
    fn eq(&self, other: &Self) -> bool {
        match (self.fraction(), other.fraction()) {
            (Ok(one), Ok(other)) => one == other,
            _ => self.parts == other.parts,
        }
    }
}

impl Units {
    pub fn of(quanta_ns: u128, quanta_per_unit: u64) -> Self {
        Self::new(quanta_per_unit, U256::from(quanta_ns))
    }
}

impl Money {
    /// The cost of an amount at a [`rate`](crate::rating::rate).
    pub fn of(quanta_ns: u128, rate: Rate) -> Result<Self, Overflow> {
        Ok(Self::new(rate.divisor, U256::from(quanta_ns).checked_mul(rate.factor).ok_or(Overflow)?))
    }
}
