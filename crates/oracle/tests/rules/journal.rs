//! The heads of records: sequence, stamps, effective instants, commands, keys (SEMANTICS 2, 4, 6).

use crate::language::{check, record};
use leasehold_model::{Body, Instant, Record};
use leasehold_oracle::Oracle;

#[test]
fn sequences_have_no_gap() {
    check("1 heartbeat", "ok");
    check("1 heartbeat sequence=14", "sequence");
    check("1 heartbeat sequence=12", "sequence");
}

#[test]
fn genesis_comes_first_and_only_first() {
    check("1 genesis", "genesis");
    let violation = Oracle::new().observe(&record("0 heartbeat", 0)).expect_err("no genesis");
    assert_eq!(violation.rule, "genesis");
    assert_eq!(violation.to_string(), "record 0 breaks `genesis`: journal.heartbeat at 0");
}

#[test]
fn stamps_never_go_back() {
    check("5 heartbeat\n5 heartbeat", "ok");
    check("5 heartbeat\n4 heartbeat", "stamp");
}

#[test]
fn commands_take_effect_as_they_are_stamped() {
    check("5 heartbeat @6", "effective");
    check("5 heartbeat @4", "effective");
    check("5 grant 1 1:7:1 @4", "effective");
}

#[test]
fn a_record_continues_only_one_of_the_same_stamp() {
    check("5 heartbeat\n5 > heartbeat", "ok");
    check("5 heartbeat\n6 > heartbeat", "continues");
    let violation = Oracle::new().observe(&record("0 > genesis", 0)).expect_err("continues nothing");
    assert_eq!(violation.rule, "continues");
}

#[test]
fn an_idempotency_key_is_claimed_once_within_its_window() {
    check("10 grant 1 1:1:1 key=a\n20 release 1 key=b", "ok");
    check("10 grant 1 1:1:1 key=a\n1009 release 1 key=a", "idempotency");
    check("10 grant 1 1:1:1 ttl=5000 key=a\n1010 release 1 key=a", "ok");
    // Keys belong to (tenant, principal).
    check("10 grant 1 1:1:1 key=a\n20 grant 2 tenant=2 1:1:1 key=a", "ok");
    let two = "5 token 1 role=operator hash=1\n5 token 2 role=operator hash=2\n";
    check(&format!("{two} 10 grant 1 1:1:1 key=a token=1\n20 release 1 key=a token=2"), "ok");
    check(&format!("{two} 10 grant 1 1:1:1 key=a token=1\n20 release 1 key=a token=1"), "idempotency");
    // A shorter window forgets earlier.
    check("10 grant 1 1:1:1 key=a\n20 settings window=50\n60 release 1 key=a", "ok");
}

#[test]
fn keys_and_epochs_follow_on() {
    check("5 rotate old=1 new=2\n6 rotate old=2 new=3", "ok");
    check("5 rotate old=1 new=2\n6 rotate old=1 new=3", "key");
    check("5 rotate old=1 new=1", "key");
    check("5 started epoch=1\n6 started epoch=2", "ok");
    check("5 started epoch=2\n6 started epoch=2", "epoch");
}

#[test]
fn kinds_it_does_not_know_are_refused() {
    let mut oracle = Oracle::new();
    oracle.observe(&record("0 genesis", 0)).expect("a genesis");
    let unknown = Record::new(1, Instant(0), Body::Unknown { kind: 99, bytes: Vec::new() });
    assert_eq!(oracle.observe(&unknown).expect_err("an unknown kind").rule, "unknown-kind");
}
