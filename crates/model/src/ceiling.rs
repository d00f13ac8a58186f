//! Amounts of money, and cost ceilings (SEMANTICS 4).

use crate::codec::{DecodeError, Field, Reader, get_scaled, put_scaled};
use crate::id::{AppInstanceNo, ProjectNo};
use crate::limits::CEILING_AMOUNT_MAX;
use crate::rate::{BILLION, BadDecimal, Currency, billionths};
use crate::{fields, words};
use std::fmt;
use std::str::FromStr;

/// An amount of money in some currency: never negative, with up to nine decimals, stored in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(pub u128);

impl Amount {
    pub const ZERO: Self = Self(0);
    /// The largest amount that can be encoded (`codec::put_scaled`).
    pub const MAX: Self = Self((1 << 120) - 1);

    /// Larger amounts saturate.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0).min(Self::MAX.0))
    }
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The product with a count.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(u128::from(count)).min(Self::MAX.0))
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl FromStr for Amount {
    type Err = BadDecimal;

    fn from_str(text: &str) -> Result<Self, BadDecimal> {
        Some(Self(billionths(text)?)).filter(|sum| *sum <= Self::MAX).ok_or(BadDecimal::TooLarge)
    }
}

/// With as few decimals as necessary.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / u128::from(BILLION), self.0 % u128::from(BILLION));
        let text = format!("{whole}.{part:09}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Field for Amount {
    fn put(&self, out: &mut Vec<u8>) {
        put_scaled(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        get_scaled(r).map(Self)
    }
}

words! {
    /// Whether a ceiling is enforced.
    pub enum CeilingMode {
        /// Requests that would exceed it are denied.
        Hard = 1 "hard",
        /// It is reported but denies nothing.
        Soft = 2 "soft",
    }
}

fields! {
    /// The most that a project, or one of its app instances, may cost. Updating a ceiling keeps the amount already
    /// spent.
    pub struct CeilingPut {
        pub project: ProjectNo,
        pub app_instance: Option<AppInstanceNo>,
        pub amount: Amount,
        pub currency: Currency,
        pub mode: CeilingMode,
    }
}
fields! {
    /// A ceiling was deleted; a ceiling that is created later starts with nothing spent.
    pub struct CeilingDeleted { pub project: ProjectNo, pub app_instance: Option<AppInstanceNo> }
}

/// Whether the amount is within the limit for ceilings.
pub fn can_be_a_ceiling(amount: Amount) -> bool {
    amount > Amount::ZERO && amount <= CEILING_AMOUNT_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_they_are_written() {
        for (text, billionths) in
            [("0", 0), ("1", 1_000_000_000), ("0.000000001", 1), ("1000000.5", 1_000_000_500_000_000)]
        {
            assert_eq!(text.parse(), Ok(Amount(billionths)), "{text}");
            assert_eq!(Amount(billionths).to_string(), text);
        }
        assert_eq!("1.50".parse(), Ok(Amount(1_500_000_000)));
        assert_eq!(Amount::MAX.to_string().parse(), Ok(Amount::MAX));
        for (text, why) in [
            ("-1", BadDecimal::Negative),
            ("", BadDecimal::NotANumber),
            ("1e3", BadDecimal::NotANumber),
            ("1.", BadDecimal::NotANumber),
            ("0.0000000001", BadDecimal::TooPrecise),
            ("1329227995784915872903807061", BadDecimal::TooLarge),
            ("999999999999999999999999999999999999999999", BadDecimal::TooLarge),
        ] {
            assert_eq!(text.parse::<Amount>(), Err(why), "{text}");
        }
    }

    #[test]
    fn sums_stay_within_what_can_be_written() {
        assert_eq!(Amount::MAX.saturating_add(Amount(1)), Amount::MAX);
        assert_eq!(Amount(1 << 119).times(3), Amount::MAX);
        assert_eq!(Amount(1).saturating_sub(Amount(2)), Amount::ZERO);
        assert_eq!([Amount(1), Amount(2)].into_iter().sum::<Amount>(), Amount(3));
    }
}
