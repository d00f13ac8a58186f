//! The order of a tree: a curve through what is free of each class, on which nodes that have much
//! the same free lie close together (Morton's). A tree cut into pieces along it has pieces that are
//! small in every class, whichever of them a request asks for.

use super::stock::Stock;

/// Bits of an axis, by how many there are. Fine enough to keep nodes apart that differ by one small
/// lease: where many are equal, a leaf of equals is looked at once.
const BITS: [u32; AXES + 1] = [0, 20, 15, 15, 15];
/// Classes on the curve; the rest do not matter for the order.
const AXES: usize = 4;

/// The place of a node by what is free, and, among hot ones, by its heat.
pub(crate) fn curve(stocks: &[Stock], heat: u16) -> u64 {
    let hot = usize::from(heat > 0);
    let count = (stocks.len() + hot).min(AXES);
    let bits = BITS[count];
    // Shares have 20 bits, and a whole one has one more; heat has 10.
    let of_stock = |stock: &Stock| u64::from(stock.share >> (20 - bits)).min((1 << bits) - 1);
    let of_heat = (hot > 0).then(|| (u64::from(heat.min(1023)) << 10) >> (20 - bits));
    let axes = of_heat.into_iter().chain(stocks.iter().map(of_stock)).take(count);
    match count {
        0 | 1 => axes.sum(),
        2 => axes.fold(0, |place, axis| place << 1 | spread::<1>(axis)),
        3 => axes.fold(0, |place, axis| place << 1 | spread::<2>(axis)),
        _ => axes.fold(0, |place, axis| place << 1 | spread::<3>(axis)),
    }
}

/// Groups of `bits` ones, with `gap` times as many zeroes after each.
const fn groups(bits: u32, gap: u32) -> u64 {
    let mut mask = 0;
    let mut at = 0;
    while at < u64::BITS {
        mask |= ((1 << bits) - 1) << at;
        at += bits * (gap + 1);
    }
    mask
}

/// The bits of an axis with `GAP` zeroes between each and the next: every other half of the groups
/// moves up, and the groups become half as long, until they are single bits.
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
    fn bits_are_spread_as_if_one_by_one() {
        for axis in (0..1u64 << 15).step_by(37) {
            let slowly = |gap: u32| (0..15).fold(0, |word, bit| word | (axis >> bit & 1) << (bit * (gap + 1)));
            assert_eq!([spread::<1>(axis), spread::<2>(axis), spread::<3>(axis)], [1, 2, 3].map(slowly), "{axis:#b}");
        }
    }
}
