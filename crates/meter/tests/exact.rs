//! Fractions, rounding and splits, against what they are by definition.

use ethnum::U256;
use leasehold_meter::Window;
use leasehold_meter::exact::decimal_text;
use leasehold_meter::{Exact, Money, Rate, Units, billable_end, split};
use leasehold_model::rate::Charge;
use leasehold_model::{Instant, Span};
use proptest::prelude::*;

fn gcd(a: U256, b: U256) -> U256 {
    if b == U256::ZERO { a } else { gcd(b, a % b) }
}

fn ten(power: u32) -> U256 {
    U256::new(10).pow(power)
}

fn denominator() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1u64), Just(7), Just(10), Just(1000), Just(1024), Just(12), Just(1_000_000), 1..5000u64]
}

/// Parts whose common denominator and its multiples stay far inside 256 bits.
fn parts() -> impl Strategy<Value = Vec<(u64, u128)>> {
    let numerator = prop_oneof![1 => Just(0u128), 3 => 0..2000u128, 3 => 0..(1u128 << 90), 2 => (0..50_000u128).prop_map(|n| n * 1_000_000_000)];
    prop::collection::vec((denominator(), numerator), 0..5)
}

/// The sum over the product of all denominators, times 10^9.
fn plainly(parts: &[(u64, u128)]) -> (U256, U256) {
    let product: U256 = parts.iter().map(|(denominator, _)| U256::from(*denominator)).product();
    let share = |(denominator, numerator): &(u64, u128)| U256::from(*numerator) * (product / U256::from(*denominator));
    (parts.iter().map(share).sum(), product * ten(9))
}

fn sum(parts: &[(u64, u128)]) -> Units {
    let mut sum = Units::default();
    for (denominator, numerator) in parts {
        sum.add(*denominator, U256::from(*numerator)).expect("small");
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn a_fraction_is_the_sum_in_lowest_terms(parts in parts()) {
        let (numerator, denominator) = sum(&parts).fraction().expect("small");
        let (plain, over) = plainly(&parts);
        let common = gcd(plain, over);
        prop_assert_eq!((numerator, denominator), (plain / common, over / common));
    }

    /// Half a step away at most, and to the even one from the middle.
    #[test]
    fn rounding_is_half_to_even(parts in parts(), decimals in 0..12u32) {
        let rounded = sum(&parts).rounded(decimals).expect("small");
        let (plain, over) = plainly(&parts);
        let exact = plain * ten(decimals);
        let steps = rounded * over;
        let (distance, two) = (if steps > exact { steps - exact } else { exact - steps }, U256::new(2));
        prop_assert!(distance * two <= over, "{rounded} steps for {plain}/{over}");
        prop_assert!(distance * two < over || rounded % two == U256::ZERO, "{rounded} is odd, from the middle");
    }

    /// However it is parted, by class, by holder or by time: the sum of the parts is the whole.
    #[test]
    fn parts_add_up(parts in parts(), places in prop::collection::vec(0..3usize, 5)) {
        let mut holders = vec![Units::default(); 3];
        for (part, place) in parts.iter().zip(&places) {
            holders[*place].add(part.0, U256::from(part.1)).expect("small");
        }
        let mut whole = Units::default();
        holders.iter().for_each(|part| whole.add_all(part).expect("small"));
        prop_assert!(whole == sum(&parts));
        let mut backwards = parts.clone();
        backwards.reverse();
        prop_assert!(whole == sum(&backwards));
    }

    #[test]
    fn a_decimal_text_is_its_digits(steps in any::<u128>(), decimals in 0..10u32) {
        let text = decimal_text(U256::from(steps), decimals);
        let digits: String = text.chars().filter(|c| *c != '.').collect();
        prop_assert_eq!(digits.parse::<u128>().expect("digits"), steps);
        let after = text.split_once('.').map_or(0, |(_, part)| part.len());
        prop_assert_eq!(after, decimals as usize);
    }

    #[test]
    fn a_split_adds_up_and_is_fair(
        total in prop_oneof![0..1000u128, any::<u128>()],
        weights in prop::collection::vec(prop_oneof![Just(0u128), 0..50u128, 0..(1u128 << 100)], 1..9),
    ) {
        let parts = split(total, &weights);
        prop_assert_eq!(parts.iter().map(|part| U256::from(*part)).sum::<U256>(), U256::from(total));
        let sum: U256 = weights.iter().map(|weight| U256::from(*weight)).sum();
        if sum == U256::ZERO {
            prop_assert_eq!(parts[0], total);
            return Ok(());
        }
        for (part, weight) in parts.iter().zip(&weights) {
            // Less than one step from the exact share, both ways.
            let whole = (U256::from(total) * U256::from(*weight)) / sum;
            let rest = (U256::from(total) * U256::from(*weight)) % sum;
            let part = U256::from(*part);
            prop_assert!(part == whole || (part == whole + U256::ONE && rest > U256::ZERO));
        }
        // Nobody gets a step more while one with a larger remainder, or an equal one before it, does not.
        let remainder = |i: usize| (U256::from(total) * U256::from(weights[i])) % sum;
        let up = |i: usize| U256::from(parts[i]) > (U256::from(total) * U256::from(weights[i])) / sum;
        for i in 0..parts.len() {
            for j in 0..parts.len() {
                if up(i) && !up(j) {
                    prop_assert!(remainder(i) > remainder(j) || (remainder(i) == remainder(j) && i < j));
                }
            }
        }
    }

    #[test]
    fn a_bill_ends_within_what_was_held(from in 0..1000u64, length in 0..1000u64, minus in 0..2000u64) {
        let held = Window::new(Instant(from), Instant(from + length));
        prop_assert_eq!(billable_end(held, Charge::Full), held.to);
        prop_assert_eq!(billable_end(held, Charge::None), held.from);
        let end = billable_end(held, Charge::MinusLast(Span(minus)));
        prop_assert_eq!(end, Instant(from + length.saturating_sub(minus)));
    }
}

/// The six parts of a capacity, or the lines of a report: rounded, they add up to their rounded total.
#[test]
fn what_is_rounded_together_adds_up() {
    let third = Units::of(1, 3);
    // 0.333…, three times, in billionths of billionths: each is a third of a step.
    assert_eq!(Units::rounded_together(&[&third, &third, &third], 9), Ok(vec![U256::ONE, U256::ZERO, U256::ZERO]));
    for seed in 0..500u64 {
        let amount = |i: u64| u128::from((seed * 7919 + i * 104_729) % 1_000_003) * 1_000_003;
        let sums: Vec<Units> = (0..1 + seed % 9).map(|i| Units::of(amount(i), 1 + (seed + i) % 11)).collect();
        let refs: Vec<&Units> = sums.iter().collect();
        let mut total = Units::default();
        sums.iter().for_each(|sum| total.add_all(sum).expect("small"));
        for decimals in [0, 2, 9] {
            let parts = Units::rounded_together(&refs, decimals).expect("small");
            assert_eq!(parts.iter().sum::<U256>(), total.rounded(decimals).expect("small"), "seed {seed}");
            for (part, sum) in parts.iter().zip(&sums) {
                let exact = sum.rounded(decimals).expect("small");
                assert!(part.abs_diff(exact) <= U256::ONE, "no part is off by a step or more");
            }
        }
    }
}

/// A numerator that shares its factors with both the class's denominator and the power of ten.
#[test]
fn ten_over_ten_is_not_nothing() {
    assert_eq!(Units::of(10, 10).fraction(), Ok((U256::ONE, ten(9))));
    assert_eq!(Units::of(3_600_000_000_000 * 7, 7).fraction(), Ok((U256::new(3600), U256::ONE)));
    assert_eq!(Units::of(0, 7).fraction(), Ok((U256::ZERO, U256::ONE)));
    assert!(Units::of(10, 10) == Units::of(1, 1));
}

#[test]
fn halves_go_to_the_even_step() {
    for (thousandths, rounded) in [(500u128, 0u64), (1500, 2), (2500, 2), (3500, 4), (2501, 3), (2499, 2)] {
        assert_eq!(Units::of(thousandths * 1_000_000, 1).rounded(0), Ok(U256::from(rounded)), "{thousandths}");
    }
    assert_eq!(Units::of(1_234_567_890, 1).decimal(6), Ok("1.234568".to_owned()));
    assert_eq!(Units::of(5, 1).decimal(9), Ok("0.000000005".to_owned()));
}

/// Overflow is an error, never a wrap (SEMANTICS 7).
#[test]
fn what_does_not_fit_says_so() {
    let mut sum: Exact<9> = Exact::new(1, U256::MAX);
    assert!(sum.add(1, U256::ONE).is_err());
    assert!(Money::of(u128::MAX, Rate { factor: U256::MAX, divisor: 1 }).is_err());
    let mut wide: Exact<9> = Exact::new(7, U256::MAX);
    wide.add(11, U256::ONE).expect("another denominator");
    assert!(wide.fraction().is_err() && wide.rounded(6).is_err());
    // What only fits once it is reduced does.
    let reducible: Exact<36> = Exact::new(1 << 32, ((U256::MAX / ten(36)) >> 40) * ten(36));
    assert!(reducible.fraction().is_ok());
}

#[test]
fn shares_of_a_sum_have_one_denominator() {
    let (third, sixth) = (Units::of(1, 3), Units::of(1, 6));
    let shares = Exact::over_one_denominator(&[&third, &sixth]).expect("small");
    assert_eq!(shares, [U256::new(2), U256::new(1)]);
}
