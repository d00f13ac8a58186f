//! Rate cards and charge policies: what may be sealed, and which answers are foretold.

use crate::language::{check, play};
use leasehold_model::rate::{Charges, Prices};
use leasehold_model::{Instant, PoolNo};
use leasehold_oracle::{Caller, Foretold, Wish};

#[test]
fn cards_begin_when_they_are_sealed_or_later() {
    check("5 card 1 from=5", "ok");
    check("5 card 1 from=4", "rate-card-start");
    check("5 card 1 from=5\n5 card 2 from=5", "rate-card-start");
    check("5 card 1 from=5\n5 card 2 from=5 pool=1", "ok");
    check("5 card 1 from=9\n6 card 1 from=8\n8 card 1 from=10", "rate-card-start");
    check("5 card 1 from=9\n6 card 3 from=10", "number");
    check("5 policy 1 from=4", "charge-policy-start");
    check("5 policy 1 from=6\n6 policy 1 from=7", "charge-policy-start");
    check("5 policy 1 from=6\n5 policy 2 from=6", "charge-policy-start");
}

#[test]
fn cards_are_withdrawn_while_they_wait() {
    check("5 card 1 from=9\n8 uncard 1\n8 card 2 from=9", "ok");
    check("5 card 1 from=9\n8 uncard 1\n8 card 1 from=9", "number");
    check("5 card 1 from=9\n9 uncard 1", "rate-card-in-force");
    check("5 uncard 1", "unknown-rate-card");
}

#[test]
fn prices_can_be_and_name_what_exists() {
    check("5 card 1 from=5 1:0 2:0", "ok");
    check("5 card 1 from=5 3:0", "unknown-class");
    check("5 card 1 from=5 2:0 1:0", "prices");
    check("5 card 1 from=5 gpu=1000000000000001", "prices");
    check("5 card 1 from=5 pool=9", "unknown-pool");
    check("5 policy 1 from=5 less=0", "charges");
}

#[test]
fn refusals_are_foretold() {
    let history = "5 card 1 from=50\n5 card 2 from=200\n5 policy 1 from=50\n5 policy 2 from=200";
    let oracle = play(history).map_err(|(violation, _)| violation).expect("a legal history");
    let at = |secs| Some(Instant::from_secs(secs));
    let card = |card, pool: Option<u32>, from| {
        let wish = Wish::PutRateCard { card, pool: pool.map(PoolNo), from, prices: Prices::default_card() };
        oracle.foretell(&Caller::default(), &wish, Instant::from_secs(100))
    };
    assert_eq!(card(Some(1), None, at(300)), Foretold::Refused("rate_card_in_force"));
    assert_eq!(card(Some(9), None, at(300)), Foretold::Refused("unknown_rate_card"));
    assert_eq!(card(None, None, at(99)), Foretold::Refused("start_in_past"));
    assert_eq!(card(None, None, at(200)), Foretold::Refused("same_start"));
    assert_eq!(card(None, Some(9), at(300)), Foretold::Refused("unknown_pool"));
    assert!(matches!(card(Some(2), None, at(200)), Foretold::Sealed { .. }));
    assert!(matches!(card(None, Some(1), at(200)), Foretold::Sealed { .. }));
    assert!(matches!(card(None, None, None), Foretold::Sealed { .. }));
    let policy = |policy, from| {
        let wish = Wish::PutChargePolicy { policy, from, charges: Charges::DEFAULT };
        oracle.foretell(&Caller::default(), &wish, Instant::from_secs(100))
    };
    assert_eq!(policy(Some(1), at(300)), Foretold::Refused("charge_policy_in_force"));
    assert_eq!(policy(None, at(200)), Foretold::Refused("same_start"));
    assert!(matches!(policy(Some(2), None), Foretold::Sealed { .. }));
}
