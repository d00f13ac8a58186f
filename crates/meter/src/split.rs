//! Splits an integer in proportion to weights, and rounds several amounts together, without loss, by the
//! largest-remainder method.

use ethnum::U256;

/// Splits `total` in proportion to the weights; the parts add up to `total`. The rest after rounding down is
/// distributed by one to the largest remainders, the first among equals. If all weights are zero, the first part gets
/// everything.
pub fn split(total: u128, weights: &[u128]) -> Vec<u128> {
    let sum: U256 = weights.iter().map(|weight| U256::from(*weight)).sum();
    let mut parts = vec![0; weights.len()];
    if sum == U256::ZERO {
        if let Some(first) = parts.first_mut() {
            *first = total;
        }
        return parts;
    }
    let mut remainders = Vec::with_capacity(weights.len());
    let mut left = total;
    for (place, weight) in weights.iter().enumerate() {
        // Both are below 2^128: the product fits, and a share is at most the total.
        let share = U256::from(total) * U256::from(*weight);
        parts[place] = (share / sum).as_u128();
        left -= parts[place];
        remainders.push((share % sum, place));
    }
    remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let steps = usize::try_from(left).expect("fewer than there are parts");
    for (_, place) in remainders.into_iter().take(steps) {
        parts[place] += 1;
    }
    parts
}

/// Rounds amounts to multiples of `step` so that they add up to their sum, which is rounded half to even; returns the
/// numbers of steps. Each amount is rounded down, and the steps that are missing then go to the largest remainders, the
/// first among equals.
pub fn round_together(amounts: &[u128], step: u128) -> Vec<u128> {
    let amounts: Vec<U256> = amounts.iter().map(|amount| U256::from(*amount)).collect();
    let parts = round_wide(&amounts, U256::from(step)).expect("the sum of 2^128 such amounts would fit");
    // Each is at most one more than its amount has steps; only steps of one could be too many, and those are exact.
    parts.iter().map(|part| part.as_u128()).collect()
}

/// Like [`round_together`]; `None` if the sum overflows.
pub(crate) fn round_wide(amounts: &[U256], step: U256) -> Option<Vec<U256>> {
    let sum = amounts.iter().try_fold(U256::ZERO, |sum, amount| sum.checked_add(*amount))?;
    let mut parts: Vec<U256> = amounts.iter().map(|amount| amount / step).collect();
    let down: U256 = parts.iter().sum();
    let left = usize::try_from((half_even(sum, step) - down).as_u128()).expect("at most one for each amount");
    let mut places: Vec<usize> = (0..amounts.len()).collect();
    places.sort_by(|a, b| (amounts[*b] % step).cmp(&(amounts[*a] % step)).then(a.cmp(b)));
    for place in places.into_iter().take(left) {
        parts[place] += U256::ONE;
    }
    Some(parts)
}

/// `amount / step`, rounded half to even.
pub(crate) fn half_even(amount: U256, step: U256) -> U256 {
    let (whole, rest) = (amount / step, amount % step);
    // Compares `rest` with the remaining part, because doubling could overflow.
    let other = step - rest;
    let up = rest > other || (rest == other && whole % U256::new(2) == U256::ONE);
    whole + U256::from(u8::from(up))
}
