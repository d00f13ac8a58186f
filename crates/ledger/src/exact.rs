//! Exact signed amounts, in steps.

use crate::{Overflow, STEPS_PER_UNIT};
use leasehold_meter::Money;
use leasehold_model::Steps;
use leasehold_model::ledger::{ExactSteps, Magnitude};
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use std::cmp::Ordering;
use std::ops::{Add, Neg, Sub};

/// An exact amount in steps of a currency: a fraction in lowest terms, of any size. The lines of an hour have as many
/// denominators as there are units of classes and periods of prices, and no choice of these may stop a posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    numerator: BigInt,
    denominator: BigUint,
}

impl Amount {
    /// `numerator / denominator` steps.
    pub fn new(numerator: impl Into<BigInt>, denominator: impl Into<BigUint>) -> Self {
        let (numerator, denominator) = (numerator.into(), denominator.into());
        assert!(denominator != BigUint::ZERO, "a denominator is positive");
        let common = numerator.magnitude().gcd(&denominator);
        Self { numerator: numerator / BigInt::from(common.clone()), denominator: denominator / common }
    }

    /// An exact cost.
    pub fn of_money(money: &Money) -> Result<Self, Overflow> {
        let (numerator, denominator) = money.fraction()?;
        let wide = |number: ethnum::U256| BigUint::from_bytes_le(&number.to_le_bytes());
        Ok(Self::new(BigInt::from(wide(numerator) * STEPS_PER_UNIT), wide(denominator)))
    }

    /// As it is recorded; an error if it has too many digits.
    pub fn encoded(&self) -> Result<ExactSteps, Overflow> {
        let digits = |number: &BigUint| Magnitude::from_digits(&number.to_bytes_be()).ok_or(Overflow);
        Ok(ExactSteps {
            negative: self.numerator.sign() == Sign::Minus,
            numerator: digits(self.numerator.magnitude())?,
            denominator: digits(&self.denominator)?,
        })
    }

    /// From a record. `None` unless the fraction is in lowest terms, which is the only form that is written.
    pub fn decoded(exact: &ExactSteps) -> Option<Self> {
        let numerator = BigUint::from_bytes_be(exact.numerator.digits());
        let denominator = BigUint::from_bytes_be(exact.denominator.digits());
        let sign = if exact.negative { Sign::Minus } else { Sign::Plus };
        let amount = Self::new(BigInt::from_biguint(sign, numerator), denominator);
        (amount.encoded().as_ref() == Ok(exact)).then_some(amount)
    }

    /// As a fraction of the currency in lowest terms, such as `25/2`.
    pub fn in_currency(&self) -> String {
        let units = self.over(u128::from(STEPS_PER_UNIT));
        format!("{}/{}", units.numerator, units.denominator)
    }

    pub fn is_zero(&self) -> bool {
        self.numerator == BigInt::ZERO
    }

    pub fn zero() -> Self {
        Steps::ZERO.into()
    }

    pub fn numerator(&self) -> &BigInt {
        &self.numerator
    }

    pub fn denominator(&self) -> &BigUint {
        &self.denominator
    }

    /// The greatest number of whole steps that is not above it, and the fraction of a step that is left: at least 0 and
    /// less than 1.
    pub fn floor(&self) -> Result<(Steps, Self), Overflow> {
        let (whole, rest) = self.numerator.div_mod_floor(&BigInt::from(self.denominator.clone()));
        let whole = Some(Steps(i128::try_from(whole).map_err(|_| Overflow)?)).filter(|steps| steps.is_encodable());
        Ok((whole.ok_or(Overflow)?, Self::new(rest, self.denominator.clone())))
    }

    /// The nearest whole number; from the middle, the even one.
    pub(crate) fn half_even(&self) -> BigInt {
        let (whole, rest): (BigInt, BigInt) = self.numerator.div_mod_floor(&BigInt::from(self.denominator.clone()));
        let twice: BigInt = rest * 2u32;
        let up = match twice.cmp(&BigInt::from(self.denominator.clone())) {
            Ordering::Less => false,
            Ordering::Equal => whole.is_odd(),
            Ordering::Greater => true,
        };
        whole + i32::from(up)
    }

    pub(crate) fn over(&self, divisor: u128) -> Self {
        Self::new(self.numerator.clone(), &self.denominator * divisor)
    }

    pub(crate) fn times(&self, factor: u128) -> Self {
        Self::new(&self.numerator * factor, self.denominator.clone())
    }
}

impl From<Steps> for Amount {
    fn from(steps: Steps) -> Self {
        Self { numerator: steps.0.into(), denominator: 1u32.into() }
    }
}

impl Add<&Amount> for Amount {
    type Output = Self;

    fn add(self, other: &Amount) -> Self {
        if self.denominator == other.denominator {
            return Self::new(self.numerator + &other.numerator, self.denominator);
        }
        let own = self.numerator * BigInt::from(other.denominator.clone());
        let others = &other.numerator * BigInt::from(self.denominator.clone());
        Self::new(own + others, self.denominator * &other.denominator)
    }
}

impl Neg for Amount {
    type Output = Self;

    fn neg(self) -> Self {
        Self { numerator: -self.numerator, ..self }
    }
}

impl Sub<&Amount> for Amount {
    type Output = Self;

    fn sub(self, other: &Amount) -> Self {
        -((-self) + other)
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let own = &self.numerator * BigInt::from(other.denominator.clone());
        own.cmp(&(&other.numerator * BigInt::from(self.denominator.clone())))
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
