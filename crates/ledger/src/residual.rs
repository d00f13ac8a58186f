//! What is exact and not yet posted.

use crate::{Amount, Overflow, Steps};

/// What a payer's exact costs have exceeded its postings by, so far: at most half a step, in units of 10^-30 of the
/// currency. It goes into the next posting, so that what was posted never differs from what is exact by more than that
/// (SEMANTICS 12, "Amounts"). It is not a balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Residual(i128);

/// Units of a residual in one step.
const PER_STEP: u128 = 1_000_000_000_000_000_000_000_000;
const HALF: i128 = PER_STEP.cast_signed() / 2;

impl Residual {
    pub const NONE: Self = Self(0);

    /// A residual of so many units, unless that is more than half a step.
    pub fn from_units(units: i128) -> Option<Self> {
        (-HALF..=HALF).contains(&units).then_some(Self(units))
    }

    pub fn units(self) -> i128 {
        self.0
    }

    /// In steps.
    pub fn amount(self) -> Amount {
        Amount::new(self.0, PER_STEP)
    }

    /// Rounds an exact amount to whole steps, half to even; what is left is the residual.
    pub(crate) fn after_rounding(exact: Amount) -> Result<(Steps, Self), Overflow> {
        let steps = Steps(i128::try_from(exact.half_even()).map_err(|_| Overflow)?);
        let left = Self::of(&(exact - &steps.into()));
        Ok((steps, left.expect("what is left after rounding is at most half a step")))
    }

    /// An amount in units, rounded half to even; `None` if it is more than half a step.
    pub(crate) fn of(amount: &Amount) -> Option<Self> {
        i128::try_from(amount.times(PER_STEP).half_even()).ok().and_then(Self::from_units)
    }
}
