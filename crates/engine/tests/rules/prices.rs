//! Rate cards and charge policies (SEMANTICS 7): what is past is never rated again, and at every instant exactly one
//! card holds.

use crate::support::{STAGE, Story, check, check_on};
use expect_test::expect;
use leasehold_engine::{Refusal, State};
use leasehold_model::limits::{CARDS_WAITING_MAX, RATE_LINES_MAX};
use leasehold_model::rate::{BadPrices, Charge, Charges, Decimal, Prices};
use leasehold_model::{ClassNo, Instant, PoolNo, ResourceKind, Span};

#[test]
fn a_card_begins_now_or_later() {
    check(
        "
        10 op card gpu=0.02
        10 op card gpu=0.03 pool=main from=10
        10 op card gpu=0.04 from=9.999999999
        10 op card gpu=0.04 from=20
        11 op policy preempted=none from=10
        11 op policy preempted=none from=11
        12 op policy preempted=60s
        12 show prices
        ",
        expect![[r#"
            10 - card 0 from 10
            10 - card 1 of main from 10
            10 refused: start_in_past
            10 - card 2 from 20
            11 refused: start_in_past
            11 - policy 0 from 11
            12 - policy 1 from 12
              card 0 from 10 set 10: gpu 0.02
              card 1 of main from 10 set 10: gpu 0.03
              card 2 from 20 set 10: gpu 0.04
              policy 0 from 11 set 11: preempted none
              policy 1 from 12 set 12: preempted less the last 1m
        "#]],
    );
}

#[test]
fn what_waits_can_change_and_go_and_what_holds_cannot() {
    check(
        "
        0 op card gpu=0.02 from=100
        1 op card no=0 gpu=0.03 from=200 pool=main
        2 op card no=0 gpu=0.04 from=100
        99.999999999 op card no=0 gpu=0.05 from=100
        100 op card no=0 gpu=0.06 from=300
        100 op delete card 0
        100 op card gpu=0.06 from=300
        101 op delete card 1
        101 op delete card 1
        101 op card no=1 gpu=0.06 from=300
        101 op card gpu=0.06 from=300
        101 op policy from=300
        102 op policy no=0 fenced=none from=400
        400 op policy no=0 from=500
        400 op policy no=7 from=500
        400 show prices
        ",
        expect![[r#"
            0 - card 0 from 100
            1 - card 0 of main from 200
            2 - card 0 from 100
            99.999999999 - card 0 from 100
            100 refused: rate_card_in_force
            100 refused: rate_card_in_force
            100 - card 1 from 300
            101 - card 1 withdrawn
            101 refused: unknown_rate_card
            101 refused: unknown_rate_card
            101 - card 2 from 300
            101 - policy 0 from 300
            102 - policy 0 from 400
            400 refused: charge_policy_in_force
            400 refused: unknown_charge_policy
              card 0 from 100 set 99.999999999: gpu 0.05
              card 2 from 300 set 101: gpu 0.06
              policy 0 from 400 set 102: preempted full
        "#]],
    );
}

/// Two that begin at once could not be told apart; of different scopes they can.
#[test]
fn two_of_one_scope_never_begin_at_once() {
    check(
        "
        0 op pool other
        0 op card
        0 op card
        0 op card pool=main
        0 op card pool=other
        0 op card from=100
        0 op card from=100
        0 op card from=200
        0 op card no=4 from=100
        0 op card no=4 from=200 gpu=1
        0 op policy
        0 op policy from=0
        ",
        expect![[r#"
            0 - pool.put
            0 - card 0 from 0
            0 refused: same_start
            0 - card 1 of main from 0
            0 - card 2 of other from 0
            0 - card 3 from 100
            0 refused: same_start
            0 - card 4 from 200
            0 refused: same_start
            0 - card 4 from 200
            0 - policy 0 from 0
            0 refused: same_start
        "#]],
    );
}

#[test]
fn what_a_card_names_exists() {
    check(
        "
        0 op card class.gpu=0.05 class.core=0.001
        1 op card class.nothing=1
        1 op card pool=nothing
        1 op card no=9
        1 op policy fenced=0s
        1 op policy fenced=9000h
        2 op pool other
        2 op card pool=other from=100
        3 op delete pool other
        4 op card no=1 pool=other from=100
        5 op delete card 1
        ",
        expect![[r#"
            0 - card 0 from 0
            1 refused: unknown_class
            1 refused: unknown_pool
            1 refused: unknown_rate_card
            1 refused: setting_out_of_range
            1 refused: setting_out_of_range
            2 - pool.put
            2 - card 1 of other from 100
            3 - pool.deleted
            4 refused: unknown_pool
            5 - card 1 withdrawn
        "#]],
    );
}

#[test]
fn prices_that_cannot_be_name_their_field() {
    let mut story = Story::on(STAGE);
    for (line, field) in [
        ("0 op card gpu=1000000.000000001", "kinds.gpu"),
        ("0 op card net=1000001", "kinds.net"),
        ("0 op card class.gpu=1000000.1", "classes.0"),
        ("0 op card tier.h100=1000.1", "tiers.h100"),
        ("0 op card unsorted class.core=1 class.gpu=1", "classes"),
    ] {
        let answer = story.line(line).expect("a decision");
        let Err(refusal @ Refusal::BadPrices { .. }) = answer else { panic!("{line}: {answer:?}") };
        assert!(refusal.to_string().contains(field), "{line}: {refusal}");
    }
}

/// Too many lines cannot be hashed for a key; the answer is the same with one and without.
#[test]
fn too_many_lines_are_refused_with_and_without_a_key() {
    use leasehold_engine::command::PutRateCard;
    use leasehold_engine::{Command, Request};
    let mut story = Story::on(STAGE);
    let mut prices = Prices::default_card();
    prices.classes = (0..=5000).map(|class| (ClassNo(class), Decimal::ONE)).collect();
    assert!(prices.classes.len() > RATE_LINES_MAX);
    let command = Command::PutRateCard(PutRateCard { card: None, pool: None, from: None, prices });
    let why = BadPrices::TooManyLines { field: "classes" };
    let keyed = Request::once(Default::default(), command.clone(), b"k");
    assert_eq!(keyed, Err(Refusal::BadPrices { why: why.clone() }));
    let (plain, _) = story.world.decide(Instant(0), &Request::new(Default::default(), command));
    assert_eq!(plain, Err(Refusal::BadPrices { why }));
}

#[test]
fn few_may_wait() {
    let mut story = Story::on(STAGE);
    for n in 0..CARDS_WAITING_MAX {
        story.play(&format!("0 op card from={}\n0 op policy from={}", 100 + n, 100 + n));
    }
    story.text.clear();
    story.play(
        "
        1 op card from=1000
        1 op card pool=main from=1000
        1 op policy from=1000
        1 op card no=3 from=1000
        1 op card
        1 op policy
        100 op card from=1001
        100 op policy from=1001
        100 op policy from=1002
        ",
    );
    expect![[r#"
        1 refused: too_many_cards_waiting
        1 refused: too_many_cards_waiting
        1 refused: too_many_cards_waiting
        1 - card 3 from 1000
        1 - card 64 from 1
        1 - policy 64 from 1
        100 - card 65 from 1001
        100 - policy 65 from 1001
        100 refused: too_many_cards_waiting
    "#]]
    .assert_eq(&story.text);
}

fn gpu(state: &State, pool: Option<u32>, secs: u64) -> String {
    let prices = state.prices_at(pool.map(PoolNo), Instant::from_secs(secs));
    prices.price(ClassNo(0), ResourceKind::Gpu).to_string()
}

/// The pool's own card, however old, before the one for all; before both the default.
#[test]
fn at_every_instant_one_card_holds() {
    let mut story = Story::on(STAGE);
    story.play(
        "
        0 op pool other
        10 op card gpu=1 from=20
        10 op card gpu=2 from=40
        10 op card gpu=3 pool=main from=30
        10 op card gpu=4 pool=main from=50
        10 op policy preempted=none from=30
        ",
    );
    for state in [story.world.state().clone(), story.world.restored().state().clone(), (*story.world.readers).clone()] {
        let at = |secs| [gpu(&state, None, secs), gpu(&state, Some(0), secs), gpu(&state, Some(1), secs)].join(" ");
        assert_eq!(at(10), "0.01 0.01 0.01");
        assert_eq!(at(19), "0.01 0.01 0.01");
        assert_eq!(at(20), "1 1 1");
        assert_eq!(at(30), "1 3 1");
        assert_eq!(at(40), "2 3 2");
        assert_eq!(at(50), "2 4 2");
        assert_eq!(state.rate_card_at(PoolNo(0), Instant::from_secs(45)).map(|card| card.number), Some(2));
        assert_eq!(state.charges_at(Instant::from_secs(29)), &Charges::DEFAULT);
        assert_eq!(state.charges_at(Instant::from_secs(30)).preempted, Charge::None);
    }
}

#[test]
fn a_card_is_put_once_under_its_key() {
    check(
        "
        0 op card gpu=0.02 key=k
        1 op card gpu=0.02 key=k
        1 op card gpu=0.03 key=k
        ",
        expect![[r#"
            0 - card 0 from 0
            1 repeated: record 11
            1 refused: idempotency_mismatch
        "#]],
    );
}

#[test]
fn the_default_card_is_that_of_the_semantics() {
    let prices = Prices::default_card();
    assert_eq!(prices.check(), Ok(()));
    let kinds = prices.kinds.0.map(|price| price.to_string());
    assert_eq!(kinds, ["0.01", "0.002", "0.001", "0.0005", "0.0003"]);
    assert_eq!(prices.priorities.0.map(|factor| factor.to_string()), ["0.3", "1", "1.5"]);
    assert_eq!(Charges::DEFAULT.each().map(|(_, charge)| charge), [Charge::Full; 4]);
    assert!(Charge::MinusLast(Span::ZERO) != Charge::Full);
}

/// A price per hour has no exact price per second: one core for one second at 1.00 per hour is 277,777.77… billionths,
/// rounded up; 3,600 seconds are exactly 1. Prices per second, hour and day add up exactly within one lease.
#[test]
fn prices_per_hour_and_day_are_exact() {
    let stage = crate::ceilings::PRICED.replace("class.core=1", "class.core=1/h");
    check_on(
        &stage,
        "
        0 op ceiling a hard=10
        0 a grant core 1 ttl=1s
        0 a grant core 1 ttl=3600s
        0 show ceilings
        1 show ceilings
        1 op card class.core=24/d from=1801
        1 a grant core 8 ttl=3600s
        1 a grant core 7 ttl=3601s
        1 show ceilings
        1802 op card class.core=1
        1803 a release #1
        1803 show ceilings
        ",
        expect![[r#"
            0 a ceiling hard 10 EUR
            0 a granted #0 core 1 on n1 to 1
            0 a granted #1 core 1 on n1 to 3600
              a: hard 10, spent 0, reserved 1.000277778
            1 a expired #0, closed
              a: hard 10, spent 0.000277778, reserved 1
            1 - card 1 from 1801
            1 a granted #2 core 8 on n1 to 3601
            1 a denied: ceiling 10, spent 0.000277778, reserved 9, requested 7.001944445
              a: hard 10, spent 0.000277778, reserved 9
            1802 - card 2 from 1802
            1803 a released #1, closed
              a: hard 10, spent 1.500833334, reserved 8
        "#]],
    );
}
