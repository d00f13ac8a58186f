//! Random commands about prices.

use crate::requests::{name, small};
use leasehold_engine::Command;
use leasehold_engine::command::{PutChargePolicy, PutRateCard};
use leasehold_model::limits::RATE_MAX;
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Period, Prices};
use leasehold_model::{ClassNo, Instant, PoolNo, Span};
use leasehold_oracle::Dice;

pub(crate) fn any(now: Instant, dice: &mut Dice) -> Command {
    match dice.below(8) {
        0..4 => Command::PutRateCard(PutRateCard {
            card: dice.one_in(3).then(|| small(dice, 8)),
            pool: dice.one_in(2).then(|| PoolNo(small(dice, 3))),
            from: start(now, dice),
            prices: prices(dice),
        }),
        4 => Command::DeleteRateCard(small(dice, 8)),
        _ => Command::PutChargePolicy(PutChargePolicy {
            policy: dice.one_in(3).then(|| small(dice, 6)),
            from: start(now, dice),
            charges: Charges {
                preempted: charge(dice),
                fenced: charge(dice),
                node_lost: charge(dice),
                failed_start: charge(dice),
            },
        }),
    }
}

/// Now, in the future, or just too late; on whole minutes, so that some starts collide.
fn start(now: Instant, dice: &mut Dice) -> Option<Instant> {
    const MINUTE: u64 = 60_000_000_000;
    match dice.below(6) {
        0 | 1 => None,
        2 => Some(now),
        3 => Some(Instant(now.0.saturating_sub(1 + dice.below(MINUTE)))),
        _ => Some(Instant((now.0 / MINUTE + 1 + dice.below(4)) * MINUTE)),
    }
}

fn prices(dice: &mut Dice) -> Prices {
    let mut prices = Prices::default_card();
    prices.currency = Currency::new(if dice.one_in(2) { "EUR" } else { "CHF" }).expect("three letters");
    for price in &mut prices.kinds.0 {
        *price = Decimal(dice.below(100_000_000));
    }
    if dice.one_in(12) {
        prices.kinds.0[0].0 = RATE_MAX.0 + dice.below(2);
    }
    for class in 0..4u16 {
        // The last one does not exist.
        if dice.one_in(if class < 3 { 3 } else { 12 }) {
            prices.classes.push((ClassNo(class), Decimal(dice.below(100_000_000))));
        }
    }
    if dice.one_in(12) {
        prices.classes.reverse();
    }
    // Some prices are for an hour or a day.
    if dice.one_in(2) {
        prices.periods.kinds = prices.periods.kinds.map(|_| *dice.pick(Period::ALL));
        let per = prices.classes.iter().map(|(class, _)| (*class, *dice.pick(Period::ALL)));
        prices.periods.classes = per.filter(|(_, period)| *period != Period::Second).collect();
    }
    prices.tiers = ["a100", "h100"].into_iter().map(|tier| (name(tier), Decimal(dice.below(1 << 32)))).collect();
    prices
}

fn charge(dice: &mut Dice) -> Charge {
    match dice.below(3) {
        0 => Charge::Full,
        1 => Charge::None,
        _ => Charge::MinusLast(Span::from_secs(dice.below(12))),
    }
}
