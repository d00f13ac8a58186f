//! Rounding the lines of one part of a posting, and taking them back.

use crate::residual::{after_rounding, as_amount, of};
use crate::{Amount, Overflow};
use leasehold_model::{Residual, Steps};
use std::cmp::Reverse;

/// Lines in whole steps, and what is left for the payer's next posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// One for each exact amount, in their order.
    pub lines: Vec<Steps>,
    pub residual: Residual,
}

/// Rounds the lines of one part of a posting, which are in the order of their keys (SEMANTICS 12, "Amounts").
///
/// The lines add up to the exact total with the residual of the payer's last posting, rounded half to even. Each line is
/// rounded down; the steps that are missing then go to the lines with the largest fractions, and a surplus is taken from
/// those with the smallest, in both cases the first among equals.
pub fn rounded(residual: Residual, exact: &[Amount]) -> Result<Posted, Overflow> {
    // The residual has many digits, and is added last.
    let total = exact.iter().fold(Amount::zero(), |sum, line| sum + line) + &as_amount(residual);
    let (Steps(posted), residual) = after_rounding(total)?;
    let floors = exact.iter().map(Amount::floor).collect::<Result<Vec<_>, _>>()?;
    let mut lines: Vec<Steps> = floors.iter().map(|(steps, _)| *steps).collect();
    let Steps(down) = Steps::sum(lines.iter().copied()).ok_or(Overflow)?;
    let missing = posted.checked_sub(down).ok_or(Overflow)?;
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // Sorting is stable, so equal fractions stay in the order of their keys.
    if missing > 0 {
        order.sort_by_key(|line| Reverse(&floors[*line].1));
    } else {
        order.sort_by_key(|line| &floors[*line].1);
    }
    let count = usize::try_from(missing.unsigned_abs()).map_err(|_| Overflow)?;
    assert!(count <= lines.len(), "at most one step for each line is missing or too many");
    for line in order.into_iter().take(count) {
        lines[line] = lines[line].checked_add(Steps(missing.signum())).ok_or(Overflow)?;
    }
    Ok(Posted { lines, residual })
}

/// Takes lines back: each posted and each exact amount is negated. Posted and exact differ in each line, so the payer's
/// residual changes; where it would be more than half a step, the returned number of steps is posted as a rounding line
/// beside them.
pub fn reversed(residual: Residual, lines: &[(Steps, Amount)]) -> Result<(Steps, Residual), Overflow> {
    let left = lines.iter().fold(as_amount(residual), |sum, (posted, exact)| sum - exact + &Amount::from(*posted));
    match of(&left) {
        Some(residual) => Ok((Steps::ZERO, residual)),
        None => after_rounding(left),
    }
}
