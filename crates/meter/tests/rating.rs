//! Which prices and policies hold when, against a look through all of them; and the vectors of SEMANTICS 2.

use ethnum::U256;
use leasehold_meter::timeline::{Keep, Lookup};
use leasehold_meter::{Money, Schedule, Segment, Timeline, Units, Wanted, Window, rate};
use leasehold_model::rate::{Charge, ChargePolicyPut, Charges, Decimal, Period, Prices, RateCardPut};
use leasehold_model::{ClassNo, ClassSpec, Instant, Name, PoolNo, Priority, ResourceKind, Span};
use proptest::prelude::*;

fn prices(gpu: u64) -> Prices {
    let mut prices = Prices::default_card();
    prices.kinds.0[0] = Decimal(gpu);
    prices
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Puts, replacements and withdrawals; two cards of one scope never start at once (the engine sees to it).
    #[test]
    fn a_schedule_is_its_cards(
        steps in prop::collection::vec((0..6u32, prop::option::of(0..2u32), 0..40u64, prop::bool::weighted(0.2)), 0..24),
        windows in prop::collection::vec((0..45u64, 0..45u64), 1..8),
    ) {
        let mut schedule = Schedule::default();
        let mut cards: Vec<RateCardPut> = Vec::new();
        for (place, (card, pool, from, gone)) in (1u64..).zip(&steps) {
            let (pool, from) = (pool.map(PoolNo), Instant(*from));
            if *gone {
                schedule.drop_card(*card);
                cards.retain(|known| known.card != *card);
            } else if !cards.iter().any(|known| known.card != *card && known.pool == pool && known.from == from) {
                let put = RateCardPut { card: *card, pool, from, prices: prices(place) };
                schedule.put_card(put.clone());
                cards.retain(|known| known.card != *card);
                cards.push(put);
            }
        }
        for (from, to) in windows {
            for pool in [PoolNo(0), PoolNo(1), PoolNo(2)] {
                let of = |scope: Option<PoolNo>| {
                    cards.iter().filter(|card| card.pool == scope && card.from.0 <= from).max_by_key(|card| card.from)
                };
                let expected = of(Some(pool)).or_else(|| of(None)).map(|card| card.prices.clone());
                let expected = expected.unwrap_or_else(Prices::default_card);
                prop_assert_eq!(schedule.prices_at(pool, Instant(from)), &expected);
                let changes = schedule.changes(pool, Window::new(Instant(from), Instant(to)));
                prop_assert!(changes.is_sorted_by(|a, b| a < b) && changes.iter().all(|at| at.0 > from && at.0 < to));
                // Between two neighbours nothing changes.
                let mut at = from;
                for instant in from..to.max(from) {
                    if changes.contains(&Instant(instant)) {
                        at = instant;
                    }
                    let (then, now) = (schedule.prices_at(pool, Instant(at)), schedule.prices_at(pool, Instant(instant)));
                    prop_assert_eq!(then, now, "at {}, as from {} on", instant, at);
                }
            }
        }
    }

    #[test]
    fn policies_hold_from_their_start(
        puts in prop::collection::vec((0..5u32, 0..40u64, 1..9u64), 0..12),
        at in 0..45u64,
    ) {
        let mut schedule = Schedule::default();
        let mut policies: Vec<ChargePolicyPut> = Vec::new();
        for (policy, from, minus) in puts {
            let charges = Charges { preempted: Charge::MinusLast(Span(minus)), ..Charges::DEFAULT };
            let put = ChargePolicyPut { policy, from: Instant(from), charges };
            if !policies.iter().any(|known| known.policy != policy && known.from == put.from) {
                schedule.put_policy(put.clone());
                policies.retain(|known| known.policy != policy);
                policies.push(put);
            }
        }
        let held = policies.iter().filter(|policy| policy.from.0 <= at).max_by_key(|policy| policy.from);
        prop_assert_eq!(schedule.charges_at(Instant(at)), &held.map_or(Charges::DEFAULT, |policy| policy.charges.clone()));
        prop_assert_eq!(schedule.has_exceptions(), !policies.is_empty());
    }
}

#[test]
fn a_factor_is_price_times_tier_times_priority() {
    let name = |text: &str| Name::new(text).expect("a name");
    let spec = |tier: Option<&str>| ClassSpec {
        name: name("gpu"),
        kind: ResourceKind::Gpu,
        tier: tier.map(name),
        quanta_per_unit: 7,
        premium: false,
    };
    let mut card = Prices::default_card();
    card.classes = vec![(ClassNo(3), Decimal(123_456_789))];
    card.tiers = vec![(name("h100"), Decimal(2_500_000_000))];
    let one = U256::new(1_000_000_000);
    for (class, tier, priority, expected) in [
        (0, None, Priority::Standard, U256::new(10_000_000) * one * one),
        (
            0,
            Some("h100"),
            Priority::Scavenger,
            U256::new(10_000_000) * U256::new(2_500_000_000) * U256::new(300_000_000),
        ),
        (3, Some("a100"), Priority::Guaranteed, U256::new(123_456_789) * one * U256::new(1_500_000_000)),
    ] {
        let found = rate(&card, ClassNo(class), &spec(tier), priority);
        assert_eq!((found.factor, found.divisor), (expected, 7));
    }
}

/// No segments: the vectors are short.
struct NoSegments;
impl Keep for NoSegments {
    fn put(&mut self, _: Segment) -> u64 {
        unreachable!("too few events for a segment")
    }
    fn drop(&mut self, _: u64) {}
}
impl Lookup for NoSegments {
    fn with<T>(&self, _: u64, _: impl FnOnce(&Segment) -> T) -> T {
        unreachable!("there are none")
    }
}

/// Unit-seconds of leases (quanta, from second, to second) within a window of seconds.
fn unit_seconds(leases: &[(u64, u64, u64)], quanta_per_unit: u64, window: (u64, u64)) -> String {
    let mut timeline = Timeline::default();
    let series = timeline.add();
    for (quanta, from, to) in leases {
        let quanta = i64::try_from(*quanta).expect("small");
        timeline.change(series, Instant::from_secs(*from), quanta, &mut NoSegments);
        timeline.change(series, Instant::from_secs(*to), -quanta, &mut NoSegments);
    }
    let borders = [Instant::from_secs(window.0), Instant::from_secs(window.1)];
    let mut amount = 0;
    timeline.amounts(&borders, Wanted::All, &NoSegments, |_, _, found| amount += found);
    Units::of(amount, quanta_per_unit).decimal(3).expect("small")
}

/// SEMANTICS 2, "Vectors".
#[test]
fn the_vectors_of_the_semantics() {
    const ALL: (u64, u64) = (0, 1_000_000);
    // One GPU for two minutes.
    assert_eq!(unit_seconds(&[(7, 1000, 1120)], 7, ALL), "120.000");
    // 80 GiB for an hour.
    assert_eq!(unit_seconds(&[(81_920, 1000, 4600)], 1024, ALL), "288000.000");
    // Ten hours on four nodes of four GPUs are 160 GPU-hours.
    assert_eq!(unit_seconds(&[(28, 10, 36_010); 4], 7, ALL), "576000.000");
    // 10:00 to 12:00, asked for over 11:00 to 13:00.
    assert_eq!(unit_seconds(&[(7, 36_000, 43_200)], 7, (39_600, 46_800)), "3600.000");
}

/// One standard GPU for an hour at the default price is 36; a third of a cent is not rounded on the way.
#[test]
fn money_is_exact() {
    let hour = 3600 * 1_000_000_000u128;
    let card = Prices::default_card();
    let name = Name::new("gpu").expect("a name");
    let spec = ClassSpec { name, kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 7, premium: false };
    let each = rate(&card, ClassNo(0), &spec, Priority::Standard);
    assert_eq!(Money::of(7 * hour, each).expect("small").decimal(6), Ok("36.000000".to_owned()));
    let seventh = Money::of(hour, each).expect("small");
    assert_eq!(seventh.decimal(6), Ok("5.142857".to_owned()));
    let mut seven = Money::default();
    (0..7).for_each(|_| seven.add_all(&seventh).expect("small"));
    assert_eq!(seven.decimal(6), Ok("36.000000".to_owned()));
}

/// 2.00 per GPU-hour has no exact price per second, and is exact; so are prices per day, and sums of all of them.
#[test]
fn prices_per_hour_and_day_are_exact() {
    let second = 1_000_000_000u128;
    let name = Name::new("gpu").expect("a name");
    let spec = ClassSpec { name, kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 7, premium: false };
    let cost = |price: u64, period: Period, quanta_ns: u128| {
        let mut card = Prices::default_card();
        (card.kinds.0[0], card.periods.kinds[0]) = (Decimal(price * 1_000_000_000), period);
        Money::of(quanta_ns, rate(&card, ClassNo(0), &spec, Priority::Standard)).expect("small")
    };
    let hour = cost(2, Period::Hour, 7 * 3600 * second);
    assert_eq!(hour.decimal(9), Ok("2.000000000".to_owned()));
    // 3,600 single seconds are an hour.
    let mut seconds = Money::default();
    (0..3600).for_each(|_| seconds.add_all(&cost(2, Period::Hour, 7 * second)).expect("small"));
    assert_eq!(seconds, hour);
    assert_eq!(cost(48, Period::Day, 7 * 3600 * second), hour);
    let mut sum = cost(2, Period::Hour, second);
    sum.add_all(&cost(1, Period::Day, second)).expect("small");
    sum.add_all(&cost(1, Period::Second, second)).expect("small");
    // 2/(7 × 3600) + 1/(7 × 86400) + 1/7.
    assert_eq!(sum.fraction(), Ok((U256::new(86_449), U256::new(604_800))));
}
