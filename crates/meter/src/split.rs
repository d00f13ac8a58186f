//! Splits an integer in proportion to weights, without loss, by the largest-remainder method.

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
