//! Sharing an amount among several payers.

use crate::Overflow;
use leasehold_meter::split;
use leasehold_model::Steps;

/// Shares an amount in proportion to weights, in whole steps that add up to it: the largest remainders get the steps that
/// are left, the first among equals. `None` if all weights are zero: then its owner keeps the amount.
pub fn shared(amount: Steps, weights: &[u128]) -> Result<Option<Vec<Steps>>, Overflow> {
    if weights.iter().all(|weight| *weight == 0) {
        return Ok(None);
    }
    let parts = split(amount.0.unsigned_abs(), weights).into_iter().map(|part| {
        let part = Steps(i128::try_from(part).map_err(|_| Overflow)?);
        Ok(if amount < Steps::ZERO { -part } else { part })
    });
    parts.collect::<Result<_, _>>().map(Some)
}
