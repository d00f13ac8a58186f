//! The order of the nodes in a tree: a Morton curve through the free shares of each class. Nodes with
//! similar free capacity are close together on it, so a leaf of adjacent nodes has a narrow range in
//! every class.

use super::stock::Stock;

/// Bits per axis, by the number of axes. The resolution separates nodes that differ by one small lease,
/// so that equal nodes share leaves, and the search scores only one of those leaves.
const BITS: [u32; AXES + 1] = [0, 20, 15, 15, 15];
/// How many classes, or heat and classes, are axes of the curve; further classes do not affect the order.
const AXES: usize = 4;

/// The position of a node on the curve, by its free capacity and, for hot nodes, by its heat.
pub(crate) fn curve(stocks: &[Stock], heat: u16) -> u64 {
    let hot = usize::from(heat > 0);
    let count = (stocks.len() + hot).min(AXES);
    let bits = BITS[count];
    // Shares have 20 bits, the share of an empty node one more; heat has 10.
    let of_stock = |stock: &Stock| u64::from(stock.share >> (20 - bits)).min((1 << bits) - 1);
    let of_heat = (hot > 0).then(|| (u64::from(heat.min(1023)) << 10) >> (20 - bits));
    let axes = of_heat.into_iter().chain(stocks.iter().map(of_stock)).take(count);
    match count {
        0 | 1 => axes.sum(),
        2 => axes.fold(0, |word, axis| word << 1 | spread::<1>(axis)),
        3 => axes.fold(0, |word, axis| word << 1 | spread::<2>(axis)),
        _ => axes.fold(0, |word, axis| word << 1 | spread::<3>(axis)),
    }
}

/// A mask of groups of `bits` ones, each followed by `gap` times as many zeroes.
const fn groups(bits: u32, gap: u32) -> u64 {
    let mut mask = 0;
    let mut at = 0;
    while at < u64::BITS {
        mask |= ((1 << bits) - 1) << at;
        at += bits * (gap + 1);
    }
    mask
}

/// Inserts `GAP` zeroes between the bits of an axis. Each step moves the upper half of every group up,
/// which halves the length of the groups, until they are single bits.
const fn spread<const GAP: u32>(axis: u64) -> u64 {
    let axis = (axis | axis << (8 * GAP)) & const { groups(8, GAP) };
    let axis = (axis | axis << (4 * GAP)) & const { groups(4, GAP) };
    let axis = (axis | axis << (2 * GAP)) & const { groups(2, GAP) };
    (axis | axis << GAP) & const { groups(1, GAP) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_equals_moving_each_bit() {
        for axis in (0..1u64 << 15).step_by(37) {
            let bit_by_bit = |gap: u32| (0..15).fold(0, |word, bit| word | (axis >> bit & 1) << (bit * (gap + 1)));
            let expected = [1, 2, 3].map(bit_by_bit);
            assert_eq!([spread::<1>(axis), spread::<2>(axis), spread::<3>(axis)], expected, "{axis:#b}");
        }
    }
}
