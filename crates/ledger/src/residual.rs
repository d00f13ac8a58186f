//! What is exact and not yet posted.

use crate::{Amount, Overflow};
use leasehold_model::{Residual, Steps};

/// In steps.
pub(crate) fn as_amount(residual: Residual) -> Amount {
    Amount::new(residual.units(), Residual::PER_STEP)
}

/// Rounds an exact amount to whole steps, half to even; what is left is the residual.
pub(crate) fn after_rounding(exact: Amount) -> Result<(Steps, Residual), Overflow> {
    let steps = Steps(exact.half_even()?);
    if !steps.is_encodable() {
        return Err(Overflow);
    }
    let left = of(&(exact - &steps.into()));
    Ok((steps, left.expect("what is left after rounding is at most half a step")))
}

/// An amount as a residual, rounded half to even; `None` if it is more than half a step.
pub(crate) fn of(amount: &Amount) -> Option<Residual> {
    amount.times(Residual::PER_STEP).half_even().ok().and_then(Residual::from_units)
}
