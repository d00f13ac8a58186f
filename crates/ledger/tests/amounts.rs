//! Rounding, residuals, reversals and shares: examples by hand, and laws.

use ethnum::U256;
use leasehold_ledger::{Amount, Posted, Residual, Steps, reversed, rounded, shared};
use leasehold_meter::{Money, Rate};
use leasehold_model::ledger::Magnitude;
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use proptest::prelude::*;

fn amount(numerator: i128, denominator: u128) -> Amount {
    Amount::new(numerator, denominator)
}

const UNITS_PER_STEP: u128 = 10u128.pow(24);

fn of(residual: Residual) -> Amount {
    amount(residual.units(), UNITS_PER_STEP)
}

fn steps(posted: &Posted) -> Vec<i128> {
    posted.lines.iter().map(|line| line.0).collect()
}

/// Three lines of a third of a step each, hour after hour: one step an hour, on the first line, and nothing is left.
#[test]
fn missing_steps_go_to_the_largest_fractions_in_key_order() {
    let third = || amount(1, 3);
    let posted = rounded(Residual::NONE, &[third(), third(), third()]).expect("small");
    assert_eq!((steps(&posted), posted.residual.units()), (vec![1, 0, 0], 0));
    // 1.2 + 2.5 + 0.4 = 4.1 is 4: one step is missing, and 0.5 is the largest fraction.
    let posted = rounded(Residual::NONE, &[amount(12, 10), amount(25, 10), amount(4, 10)]).expect("small");
    assert_eq!((steps(&posted), posted.residual.units()), (vec![1, 3, 0], 100_000_000_000_000_000_000_000));
}

/// A third of a step an hour: nothing, one, nothing, and after three hours nothing is left but what 10^-30 cannot hold.
#[test]
fn a_residual_is_carried_into_the_next_posting() {
    let mut residual = Residual::NONE;
    let mut posted = Vec::new();
    for _ in 0..6 {
        let hour = rounded(residual, &[amount(1, 3)]).expect("small");
        posted.push(steps(&hour)[0]);
        residual = hour.residual;
    }
    assert_eq!(posted, [0, 1, 0, 0, 1, 0]);
    assert_eq!(residual.units(), -2, "each posting rounded what was left to 10^-30");
}

/// A surplus: the residual is -0.4, the lines are 0.1 and 0.2. The total is -0.1, so nothing is posted; with -0.5 and
/// nothing but 0.0 and 0.9 the total is 0.4: both are rounded down and nothing is missing.
#[test]
fn a_surplus_is_taken_from_the_smallest_fractions() {
    let posted = rounded(
        Residual::from_units(-400_000_000_000_000_000_000_000).expect("small"),
        &[amount(1, 10), amount(2, 10)],
    );
    assert_eq!(steps(&posted.expect("small")), [0, 0]);
    // -0.5 + 3.0 + 4.0 = 6.5, which is 6: one step too many, taken from the first of two equal fractions.
    let half = Residual::from_units(-500_000_000_000_000_000_000_000).expect("half a step");
    let posted = rounded(half, &[amount(3, 1), amount(4, 1)]).expect("small");
    assert_eq!((steps(&posted), posted.residual.units()), (vec![2, 4], 500_000_000_000_000_000_000_000));
}

#[test]
fn differences_are_negative_lines() {
    // -0.25 is rounded down to -1, and the total of 0 gives the step back.
    let posted = rounded(Residual::NONE, &[amount(-1, 4), amount(1, 4)]).expect("small");
    assert_eq!((steps(&posted), posted.residual.units()), (vec![0, 0], 0));
    // -0.75 + 0.25 = -0.5, which is 0: rounded down they are -1 and 0, and the first of two equal fractions gets the step.
    let posted = rounded(Residual::NONE, &[amount(-3, 4), amount(1, 4)]).expect("small");
    assert_eq!((steps(&posted), posted.residual.units()), (vec![0, 0], -500_000_000_000_000_000_000_000));
    // -1.5 is -2 (to the even one), and half a step is left.
    let posted = rounded(Residual::NONE, &[amount(-3, 2)]).expect("small");
    assert_eq!((steps(&posted), posted.residual.units()), (vec![-2], 500_000_000_000_000_000_000_000));
}

/// 10.00 shared by three, as in the worked example of the issue: 3.333334, 3.333333, 3.333333.
#[test]
fn ten_shared_by_three_adds_up() {
    let parts = shared(Steps(10_000_000), &[1, 1, 1]).expect("small").expect("there is usage");
    assert_eq!(parts, [Steps(3_333_334), Steps(3_333_333), Steps(3_333_333)]);
    let back = shared(Steps(-10_000_000), &[1, 1, 1]).expect("small").expect("there is usage");
    assert_eq!(back, [Steps(-3_333_334), Steps(-3_333_333), Steps(-3_333_333)]);
    assert_eq!(shared(Steps(5), &[0, 0]), Ok(None));
}

/// One GPU for 2,000 s at 0.01 a second, priority factor 1.5: 30 units of the currency.
#[test]
fn an_exact_cost_is_an_amount() {
    let factor = U256::new(10_000_000) * U256::new(1_000_000_000) * U256::new(1_500_000_000);
    let money = Money::of(7 * 2_000_000_000_000, Rate { factor, divisor: 7 }).expect("small");
    assert_eq!(Amount::of_money(&money), Ok(Steps(30_000_000).into()));
}

fn amounts() -> impl Strategy<Value = Vec<Amount>> {
    let denominator =
        prop_oneof![Just(1u128), Just(2), Just(3), Just(7), Just(1000), Just(1024), Just(10u128.pow(30)), 1..5000u128];
    let numerator = prop_oneof![-2000..2000i128, -(1i128 << 90)..(1i128 << 90)];
    prop::collection::vec((numerator, denominator).prop_map(|(n, d)| amount(n, d)), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// However often is posted: posted and exact differ by the residual, up to what rounding the residual itself loses;
    /// and each line is less than two steps from its exact amount.
    #[test]
    fn posted_stays_within_half_a_step_of_exact(postings in prop::collection::vec(amounts(), 1..12)) {
        let (mut residual, mut left) = (Residual::NONE, Amount::zero());
        for lines in &postings {
            let posted = rounded(residual, lines).expect("small");
            residual = posted.residual;
            for (line, exact) in posted.lines.iter().zip(lines) {
                let off = Amount::from(*line) - exact;
                prop_assert!(off < amount(2, 1) && off > amount(-2, 1), "{off:?}");
                left = left - &off;
            }
        }
        // Each posting may round the residual by half of a unit.
        let lost = amount(postings.len() as i128, 2 * UNITS_PER_STEP);
        let off = left - &of(residual);
        prop_assert!(off <= lost && -off <= lost);
    }

    /// What is taken back is taken back: the residual and a rounding line account for the difference between posted and
    /// exact, and the residual stays within half a step.
    #[test]
    fn a_reversal_loses_nothing(before in amounts(), lines in amounts(), taken in any::<u8>()) {
        let residual = rounded(Residual::NONE, &before).expect("small").residual;
        let posted = rounded(residual, &lines).expect("small");
        let all = posted.lines.iter().copied().zip(lines.iter().cloned());
        let some: Vec<(Steps, Amount)> =
            all.enumerate().filter(|(n, _)| taken >> n & 1 == 1).map(|(_, line)| line).collect();
        let (rounding, left) = reversed(posted.residual, &some).expect("small");
        let expected = some.iter().fold(of(posted.residual), |sum, (posted, exact)| {
            sum - exact + &Amount::from(*posted)
        });
        let off = expected - &rounding.into() - &of(left);
        let lost = amount(1, 2 * UNITS_PER_STEP);
        prop_assert!(off <= lost && -off <= lost);
        prop_assert!(rounding.0.unsigned_abs() <= 2 * some.len() as u128);
        if some.is_empty() {
            prop_assert_eq!((rounding, left), (Steps::ZERO, posted.residual));
        }
    }

    #[test]
    fn shares_add_up(amount in any::<i64>(), weights in prop::collection::vec(0..1_000_000u128, 1..9)) {
        let amount = Steps(i128::from(amount));
        match shared(amount, &weights).expect("small") {
            Some(parts) => prop_assert_eq!(Steps::sum(parts), Some(amount)),
            None => prop_assert!(weights.iter().all(|weight| *weight == 0)),
        }
    }
}

/// A fraction of arbitrary integers, computed in the simplest way.
type Parts = (BigInt, BigInt);

fn parts(amount: &Amount) -> Parts {
    let exact = amount.encoded().expect("few digits");
    assert_eq!(Amount::decoded(&exact).as_ref(), Some(amount), "it can be read back");
    let number = |magnitude: &Magnitude| BigInt::from_bytes_be(Sign::Plus, magnitude.digits());
    let numerator = number(&exact.numerator);
    (if exact.negative { -numerator } else { numerator }, number(&exact.denominator))
}

fn is_equal((one, below): &Parts, (other, beneath): &Parts) -> bool {
    one * beneath == other * below
}

/// The nearest whole number; from the middle, the even one.
fn nearest((numerator, denominator): &Parts) -> BigInt {
    let (twice, two): (BigInt, BigInt) = (numerator * 2 + denominator, denominator * 2);
    let (up, rest) = twice.div_mod_floor(&two);
    if rest == BigInt::ZERO && up.is_odd() { up - 1 } else { up }
}

/// Fractions on both sides of what fits 128 bits.
fn wide() -> impl Strategy<Value = Amount> {
    let numerator = prop_oneof![Just(i128::MIN), Just(i128::MAX), any::<i128>(), any::<i64>().prop_map(i128::from)];
    let denominator =
        prop_oneof![Just(u128::MAX), Just(1 << 127), 1..=u128::MAX, 1..5000u128, Just(UNITS_PER_STEP), Just(3_600_000)];
    (numerator, denominator).prop_map(|(n, d)| amount(n, d))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Whether they fit 128 bits or not, amounts are computed as fractions of arbitrary integers are.
    #[test]
    fn amounts_of_any_size_are_exact(one in wide(), other in wide(), factor in any::<u128>()) {
        let ((a, b), (c, d)) = (parts(&one), parts(&other));
        prop_assert!(is_equal(&parts(&(one.clone() + &other)), &(&a * &d + &c * &b, &b * &d)));
        prop_assert!(is_equal(&parts(&(one.clone() - &other)), &(&a * &d - &c * &b, &b * &d)));
        prop_assert_eq!(one.cmp(&other), (&a * &d).cmp(&(&c * &b)));
        prop_assert!(is_equal(&parts(&one.times(factor)), &(&a * factor, b.clone())));
        if let Ok((whole, rest)) = one.floor() {
            prop_assert_eq!(BigInt::from(whole.0), a.div_floor(&b));
            prop_assert!(rest >= Amount::zero() && rest < amount(1, 1));
            prop_assert_eq!(Amount::from(whole) + &rest, one);
        }
    }

    /// The total of a posting is rounded half to even, and so is what is left of it.
    #[test]
    fn totals_are_rounded_half_to_even(before in amounts(), lines in prop::collection::vec(wide(), 0..5)) {
        let residual = rounded(Residual::NONE, &before).expect("small").residual;
        let mut total: Parts = (residual.units().into(), UNITS_PER_STEP.into());
        for (numerator, denominator) in lines.iter().map(parts) {
            total = (total.0 * &denominator + numerator * &total.1, total.1 * denominator);
        }
        let Ok(posted) = rounded(residual, &lines) else { return Ok(()) };
        let sum = nearest(&total);
        prop_assert_eq!(BigInt::from(Steps::sum(posted.lines).expect("they are posted").0), sum.clone());
        let left = nearest(&((&total.0 - sum * &total.1) * UNITS_PER_STEP, total.1.clone()));
        prop_assert_eq!(BigInt::from(posted.residual.units()), left);
    }
}
