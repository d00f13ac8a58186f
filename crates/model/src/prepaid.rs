//! Prepaid credit: what a tenant or a project paid in advance, and what happens when it comes to its end (SEMANTICS 12).

use crate::codec::{DecodeError, Field, Reader};
use crate::instant::Span;
use crate::ledger::{Steps, get_signed, put_signed};
use crate::rate::BILLION;
use crate::{fields, words};
use std::fmt;

/// Billionths in one step.
const PER_STEP: i128 = 1_000;

/// What is left of prepaid credit, in billionths of a currency: negative where more was used than was paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Funds(pub i128);

impl Funds {
    pub const ZERO: Self = Self(0);

    const MAX: i128 = 1 << 122;

    /// Larger amounts saturate.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0).clamp(-Self::MAX, Self::MAX))
    }
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).clamp(-Self::MAX, Self::MAX))
    }
    /// The whole steps in it, rounded down.
    pub const fn whole_steps(self) -> Steps {
        Steps(self.0.div_euclid(PER_STEP))
    }
}

impl From<Steps> for Funds {
    fn from(steps: Steps) -> Self {
        Self(steps.0.saturating_mul(PER_STEP).clamp(-Self::MAX, Self::MAX))
    }
}

impl From<crate::Amount> for Funds {
    fn from(amount: crate::Amount) -> Self {
        Self(i128::try_from(amount.0).unwrap_or(Self::MAX))
    }
}

/// With as few decimals as necessary.
impl fmt::Display for Funds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, all) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let (whole, part) = (all / u128::from(BILLION), all % u128::from(BILLION));
        let text = format!("{sign}{whole}.{part:09}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Field for Funds {
    fn put(&self, out: &mut Vec<u8>) {
        put_signed(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Some(Self(get_signed(r)?)).filter(|funds| funds.0.abs() <= Self::MAX).ok_or(DecodeError::BadInteger)
    }
}

words! {
    /// How much is left of prepaid credit, the most urgent state last.
    pub enum PrepaidState {
        /// There is enough.
        Enough = 1 "enough",
        /// Less is left than the policy's threshold.
        Low = 2 "low",
        /// It will be used up within the policy's window if everything goes on as it is.
        Pending = 3 "pending",
        /// Nothing is left.
        Depleted = 4 "depleted",
    }
}

words! {
    /// What happens while prepaid credit is low, will soon be used up, or is.
    pub enum PrepaidAction {
        /// The change is recorded and reported; nothing else happens.
        Alert = 1 "alert",
        /// New and waiting work gets the lowest priority.
        Downgrade = 2 "downgrade",
        /// New work is denied or waits.
        Block = 3 "block",
        /// New work is denied or waits, and leases are revoked.
        Drain = 4 "drain",
    }
}

words! {
    /// Where a credit comes from.
    pub enum CreditSource {
        /// It was paid for.
        Paid = 1 "paid",
        /// It is a gift of the operator.
        Granted = 2 "granted",
    }
}

fields! {
    /// When prepaid credit is low, and what happens in each state.
    #[derive(Copy)]
    pub struct PrepaidPolicy {
        /// It is low when less than this is left.
        pub low_below: Steps,
        /// It is pending when it would be used up within this time; zero for never.
        pub window: Span,
        pub low: PrepaidAction,
        pub pending: PrepaidAction,
        pub depleted: PrepaidAction,
        /// The grace of leases that are revoked; by default that of their pools.
        pub grace: Option<Span>,
    }
}

impl PrepaidPolicy {
    /// New work is blocked when nothing is left.
    pub const DEFAULT: Self = Self {
        low_below: Steps::ZERO,
        window: Span(0),
        low: PrepaidAction::Alert,
        pending: PrepaidAction::Alert,
        depleted: PrepaidAction::Block,
        grace: None,
    };

    /// What happens in a state.
    pub const fn action(&self, state: PrepaidState) -> PrepaidAction {
        match state {
            PrepaidState::Enough => PrepaidAction::Alert,
            PrepaidState::Low => self.low,
            PrepaidState::Pending => self.pending,
            PrepaidState::Depleted => self.depleted,
        }
    }
}

impl Default for PrepaidPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn funds_are_written_with_their_sign() {
        assert_eq!(Funds(-1_500_000_000).to_string(), "-1.5");
        assert_eq!(Funds::from(Steps(5_000_000)).to_string(), "5");
        assert_eq!(Funds(1).to_string(), "0.000000001");
    }

    #[test]
    fn whole_steps_are_rounded_down() {
        assert_eq!(Funds(1_999).whole_steps(), Steps(1));
        assert_eq!(Funds(-1).whole_steps(), Steps(-1));
    }
}
