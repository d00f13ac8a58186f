//! Exact signed amounts, in steps.

use crate::small::{Small, gcd};
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
pub struct Amount(Form);

/// An amount has one form: the small one if it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Small(Small),
    Large { numerator: BigInt, denominator: BigUint },
}

impl From<Small> for Amount {
    fn from(small: Small) -> Self {
        Self(Form::Small(small))
    }
}

impl Amount {
    /// `numerator / denominator` steps.
    pub fn new(numerator: i128, denominator: u128) -> Self {
        match Small::new(numerator, denominator) {
            Some(small) => small.into(),
            None => Self::large(numerator.into(), denominator.into()),
        }
    }

    /// In lowest terms, and in the small form if it fits.
    fn large(numerator: BigInt, denominator: BigUint) -> Self {
        assert!(denominator != BigUint::ZERO, "a denominator is positive");
        let common = numerator.magnitude().gcd(&denominator);
        let (numerator, denominator) = (numerator / BigInt::from(common.clone()), denominator / common);
        let small = i128::try_from(&numerator).ok().zip(u128::try_from(&denominator).ok());
        match small.and_then(|(numerator, denominator)| Small::new(numerator, denominator)) {
            Some(small) => small.into(),
            None => Self(Form::Large { numerator, denominator }),
        }
    }

    fn small(&self) -> Option<Small> {
        match &self.0 {
            Form::Small(small) => Some(*small),
            Form::Large { .. } => None,
        }
    }

    /// Numerator and denominator as arbitrary integers.
    fn parts(&self) -> (BigInt, BigUint) {
        match &self.0 {
            Form::Small(small) => (small.numerator.into(), small.denominator.unsigned_abs().into()),
            Form::Large { numerator, denominator } => (numerator.clone(), denominator.clone()),
        }
    }

    /// An exact cost.
    pub fn of_money(money: &Money) -> Result<Self, Overflow> {
        let (numerator, denominator) = money.fraction()?;
        let small = || {
            let (numerator, denominator) = (u128::try_from(numerator).ok()?, u128::try_from(denominator).ok()?);
            let common = gcd(denominator, STEPS_PER_UNIT.into());
            let numerator = numerator.checked_mul(u128::from(STEPS_PER_UNIT) / common)?;
            Small::new(i128::try_from(numerator).ok()?, denominator / common)
        };
        let wide = |number: ethnum::U256| BigUint::from_bytes_le(&number.to_le_bytes());
        let large = || Self::large(BigInt::from(wide(numerator) * STEPS_PER_UNIT), wide(denominator));
        Ok(small().map_or_else(large, Self::from))
    }

    /// As it is recorded; an error if it has too many digits.
    pub fn encoded(&self) -> Result<ExactSteps, Overflow> {
        let digits = |bytes: &[u8]| Magnitude::from_digits(bytes).ok_or(Overflow);
        Ok(match &self.0 {
            Form::Small(Small { numerator, denominator }) => ExactSteps {
                negative: *numerator < 0,
                numerator: digits(&numerator.unsigned_abs().to_be_bytes())?,
                denominator: digits(&denominator.to_be_bytes())?,
            },
            Form::Large { numerator, denominator } => ExactSteps {
                negative: numerator.sign() == Sign::Minus,
                numerator: digits(&numerator.magnitude().to_bytes_be())?,
                denominator: digits(&denominator.to_bytes_be())?,
            },
        })
    }

    /// From a record. `None` unless the fraction is in lowest terms, which is the only form that is written.
    pub fn decoded(exact: &ExactSteps) -> Option<Self> {
        if exact.denominator.is_zero() || exact.negative && exact.numerator.is_zero() {
            return None;
        }
        if let Some((numerator, denominator)) = small_number(&exact.numerator).zip(small_number(&exact.denominator)) {
            let numerator = if exact.negative { -numerator } else { numerator };
            let small = Small::new(numerator, denominator.unsigned_abs())?;
            return (small == Small { numerator, denominator }).then_some(small.into());
        }
        let numerator = BigUint::from_bytes_be(exact.numerator.digits());
        let denominator = BigUint::from_bytes_be(exact.denominator.digits());
        let sign = if exact.negative { Sign::Minus } else { Sign::Plus };
        let amount = Self::large(BigInt::from_biguint(sign, numerator), denominator);
        (amount.encoded().as_ref() == Ok(exact)).then_some(amount)
    }

    /// As a fraction of the currency in lowest terms, such as `25/2`.
    pub fn in_currency(&self) -> String {
        let (numerator, denominator) = self.over(u128::from(STEPS_PER_UNIT)).parts();
        format!("{numerator}/{denominator}")
    }

    pub fn is_zero(&self) -> bool {
        *self == Self::zero()
    }

    pub fn zero() -> Self {
        Steps::ZERO.into()
    }

    /// The greatest number of whole steps that is not above it, and the fraction of a step that is left: at least 0 and
    /// less than 1.
    pub fn floor(&self) -> Result<(Steps, Self), Overflow> {
        let (whole, rest) = match &self.0 {
            Form::Small(small) => {
                let (whole, rest) = small.floor();
                (whole, rest.into())
            }
            Form::Large { numerator, denominator } => {
                let (whole, rest) = numerator.div_mod_floor(&BigInt::from(denominator.clone()));
                (i128::try_from(whole).map_err(|_| Overflow)?, Self::large(rest, denominator.clone()))
            }
        };
        let whole = Some(Steps(whole)).filter(|steps| steps.is_encodable());
        Ok((whole.ok_or(Overflow)?, rest))
    }

    /// The nearest whole number; from the middle, the even one.
    pub(crate) fn half_even(&self) -> Result<i128, Overflow> {
        let (numerator, denominator) = match &self.0 {
            Form::Small(small) => return Ok(small.half_even()),
            Form::Large { numerator, denominator } => (numerator, BigInt::from(denominator.clone())),
        };
        let (whole, rest): (BigInt, BigInt) = numerator.div_mod_floor(&denominator);
        let twice: BigInt = rest * 2u32;
        let up = match twice.cmp(&denominator) {
            Ordering::Less => false,
            Ordering::Equal => whole.is_odd(),
            Ordering::Greater => true,
        };
        i128::try_from(whole + i32::from(up)).map_err(|_| Overflow)
    }

    pub(crate) fn over(&self, divisor: u128) -> Self {
        self.small().and_then(|small| small.over(divisor)).map_or_else(
            || {
                let (numerator, denominator) = self.parts();
                Self::large(numerator, denominator * divisor)
            },
            Self::from,
        )
    }

    /// So many times the amount.
    pub fn times(&self, factor: u128) -> Self {
        self.small().and_then(|small| small.times(factor)).map_or_else(
            || {
                let (numerator, denominator) = self.parts();
                Self::large(numerator * factor, denominator)
            },
            Self::from,
        )
    }
}

/// A number of at most 127 bits.
fn small_number(magnitude: &Magnitude) -> Option<i128> {
    let digits = magnitude.digits();
    let mut bytes = [0; 16];
    bytes.get_mut(16usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
    i128::try_from(u128::from_be_bytes(bytes)).ok()
}

impl From<Steps> for Amount {
    fn from(steps: Steps) -> Self {
        Self::new(steps.0, 1)
    }
}

impl Add<&Amount> for Amount {
    type Output = Self;

    fn add(self, other: &Amount) -> Self {
        if let Some(sum) = self.small().zip(other.small()).and_then(|(own, other)| own.plus(other)) {
            return sum.into();
        }
        let ((own, denominator), (others, other)) = (self.parts(), other.parts());
        let sum = own * BigInt::from(other.clone()) + others * BigInt::from(denominator.clone());
        Self::large(sum, denominator * other)
    }
}

impl Neg for Amount {
    type Output = Self;

    fn neg(self) -> Self {
        Self(match self.0 {
            Form::Small(small) => Form::Small(Small { numerator: -small.numerator, ..small }),
            Form::Large { numerator, denominator } => Form::Large { numerator: -numerator, denominator },
        })
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
        let small = self.small().zip(other.small()).and_then(|(own, other)| own.compare(other));
        small.unwrap_or_else(|| {
            let ((own, denominator), (others, other)) = (self.parts(), other.parts());
            (own * BigInt::from(other)).cmp(&(others * BigInt::from(denominator)))
        })
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
