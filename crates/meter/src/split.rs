//! Splits that add up: by largest remainder, in the order of the keys.

use ethnum::U256;

/// Parts of `total` in the proportion of the weights; their sum is `total`. What the whole shares leave over goes, one
/// step each, to the largest remainders, and among equals to the first. With no weight at all the first part takes all.
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
