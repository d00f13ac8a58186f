//! The order of a shelf: a curve through what is free of each class, on which nodes that have much
//! the same free lie close together (Morton's). A shelf cut into pieces along it has pieces that are
//! small in every class, whichever of them a request asks for.

use super::stock::Stock;

/// Bits of a class on the curve: four classes fit one word.
const BITS: u32 = 15;
/// Classes on the curve; the rest do not matter for the order.
const CLASSES: usize = 4;

/// The place of a node by what is free, and, among hot ones, by its heat.
pub(crate) fn curve(stocks: &[Stock], heat: u16) -> u64 {
    let mut axes = [0u64; CLASSES];
    let mut count = 0;
    if heat > 0 {
        axes[0] = u64::from(heat) << 5;
        count = 1;
    }
    for stock in stocks.iter().take(CLASSES - count) {
        // Less than 2^48 quanta, so that nothing is lost.
        axes[count] = (stock.free << BITS) / (stock.total + 1);
        count += 1;
    }
    let axes = &axes[..count];
    match count {
        0 => 0,
        1 => axes[0],
        2 => axes.iter().fold(0, |place, axis| place << 1 | spread::<1>(*axis)),
        3 => axes.iter().fold(0, |place, axis| place << 1 | spread::<2>(*axis)),
        _ => axes.iter().fold(0, |place, axis| place << 1 | spread::<3>(*axis)),
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
        for axis in (0..1 << BITS).step_by(37) {
            let slowly = |gap: u32| (0..BITS).fold(0, |word, bit| word | (axis >> bit & 1) << (bit * (gap + 1)));
            assert_eq!([spread::<1>(axis), spread::<2>(axis), spread::<3>(axis)], [1, 2, 3].map(slowly), "{axis:#b}");
        }
    }
}
