//! What the page forbids, the decoder refuses: one line for each rule that is not a length.

use crate::samples::{self, NEW_YEAR};
use crate::sealing::{decode, encode};
use leasehold_model::body::{Denied, Granted, Heartbeat, Leases, Renewed, ReportedLeases};
use leasehold_model::codec::{DecodeError, Field};
use leasehold_model::limits::{FACTOR_MAX, RATE_MAX};
use leasehold_model::rate::{Charge, Currency, Decimal, Prices};
use leasehold_model::*;

use DecodeError::{BadCode, BadInteger, BadText, Forbidden, TrailingBytes, Truncated};

/// Decodes bytes as a value, which must fail.
fn refused<T: Field + std::fmt::Debug>(bytes: &[u8]) -> DecodeError {
    T::from_bytes(bytes).expect_err("bytes that the format forbids")
}

#[test]
fn integers_are_short_and_fit() {
    assert_eq!(refused::<u64>(&[0x80, 0x00]), BadInteger);
    assert_eq!(refused::<u64>(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), BadInteger);
    assert_eq!(refused::<u64>(&[0xff; 30]), BadInteger);
    assert_eq!(refused::<u64>(&[0x80]), Truncated);
    assert_eq!(refused::<TenantNo>(&[0x80, 0x80, 0x80, 0x80, 0x10]), BadInteger);
    assert_eq!(refused::<ClassNo>(&[0x80, 0x80, 0x04]), BadInteger);
    assert!(matches!(refused::<bool>(&[2]), BadCode { .. }));
    assert!(matches!(refused::<Priority>(&[0]), BadCode { .. }));
    assert!(matches!(refused::<Reason>(&[8]), BadCode { .. }));
}

#[test]
fn spans_are_in_their_coarsest_unit() {
    // 1000 ms, zero nanoseconds, and 2^64 nanoseconds.
    assert!(matches!(refused::<Span>(&[0xa1, 0x1f]), Forbidden(_)));
    assert!(matches!(refused::<Span>(&[3]), Forbidden(_)));
    let too_long = [0x83, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x08];
    assert_eq!(refused::<Span>(&too_long), BadInteger);
}

#[test]
fn text_is_visible_and_bounded() {
    assert_eq!(refused::<Name>(&[0]), BadText);
    assert_eq!(refused::<Name>(&[1, 0xff]), BadText);
    assert_eq!(refused::<Name>(b"\x03a\nb"), BadText);
    assert_eq!(refused::<Name>(b"\x02 a"), BadText);
    assert_eq!(refused::<Name>("\u{3}\u{200b}".as_bytes()), BadText);
    assert!(matches!(refused::<Name>(&[&[0x81, 0x01][..], &[b'a'; 129]].concat()), Forbidden(_)));
    assert_eq!(refused::<Name>(b"\x05four"), Truncated);
}

#[test]
fn lists_of_leases_are_neither_empty_nor_endless_and_rise() {
    assert!(matches!(refused::<Leases>(&[0]), Forbidden(_)));
    assert!(matches!(refused::<Leases>(&[&[0x81, 0x08][..], &[0; 1025]].concat()), Forbidden(_)));
    let last = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(refused::<Leases>(&[&[2][..], &last, &[0]].concat()), BadInteger);
    assert!(matches!(refused::<ReportedLeases>(&[0, 0]), Forbidden(_)));
    assert!(matches!(refused::<ReportedLeases>(&[1, 1, 42, 0]), Forbidden(_)), "a mark without activity");
    let renewed = |mark: u8, later: u8| [&[1, mark][..], &[0; 8], &[42, later], &[0][..usize::from(mark)]].concat();
    assert!(Renewed::from_bytes(&renewed(0, 0)).is_ok());
    assert!(matches!(refused::<Renewed>(&renewed(0, 4)), Forbidden(_)), "an earliest deadline that is nobody's");
    assert!(matches!(refused::<Renewed>(&renewed(1, 0)), Forbidden(_)), "a mark without activity");
}

#[test]
fn reports_do_not_write_zeroes_out() {
    assert!(Activity::from_bytes(&[4, 0, 0, 1, 4]).is_ok());
    assert!(matches!(refused::<Activity>(&[4, 0, 0, 1, 0]), Forbidden(_)));
    assert!(matches!(refused::<Activity>(&[4, 0, 0, 0x20, 4]), BadCode { .. }));
}

#[test]
fn grants_and_denials_are_bounded() {
    let grant = |members: u8, tail: &[u8]| {
        [&[42, 0, 0, 4, 2, 1, members][..], &[0, 1, 0].repeat(usize::from(members)), tail].concat()
    };
    assert!(Granted::from_bytes(&grant(16, &[0])).is_ok());
    assert!(matches!(refused::<Granted>(&grant(0, &[0])), Forbidden(_)));
    assert!(matches!(refused::<Granted>(&grant(17, &[0])), Forbidden(_)));
    assert!(matches!(refused::<Granted>(&grant(1, &[0x80, 0x01, 0])), Forbidden(_)), "no quotas, written out");
    assert!(matches!(refused::<Granted>(&grant(1, &[0x80, 0x40])), BadCode { .. }), "flag 13");
    assert!(matches!(refused::<Granted>(&grant(1, &[0x80, 0x10, 0])), Forbidden(_)), "no labels, written out");
    let denied = |asks: u8| [&[0, asks][..], &[0, 1].repeat(usize::from(asks)), &[4, 2, 1, 3, 0, 1, 0]].concat();
    assert!(Denied::from_bytes(&denied(16)).is_ok());
    assert!(matches!(refused::<Denied>(&denied(17)), Forbidden(_)));
    let with = |tail: &[u8]| [&denied(1), tail].concat();
    assert!(Denied::from_bytes(&with(&[1])).is_ok());
    assert!(matches!(refused::<Denied>(&with(&[0])), BadCode { .. }), "nothing else, written out");
    assert!(matches!(refused::<Denied>(&with(&[0x40])), BadCode { .. }), "flag 6");
    assert!(matches!(refused::<Denied>(&with(&[4, 0])), Forbidden(_)), "no labels, written out");
}

#[test]
fn what_a_choice_rests_on_is_bounded() {
    let custom = |weights: [&[u8]; 4]| [&[3][..], &weights.concat()].concat();
    let (fifth, whole) = (&[0xc8, 0x01][..], &[0xe8, 0x07][..]);
    assert!(Weighing::from_bytes(&custom([whole, &[0], &[0], &[0]])).is_ok());
    assert!(matches!(refused::<Weighing>(&custom([fifth, fifth, fifth, fifth])), Forbidden(_)), "not one");
    assert!(matches!(refused::<Weighing>(&custom([whole, whole, whole, whole])), Forbidden(_)), "more than one");
    assert!(matches!(refused::<Weighing>(&[0]), BadCode { .. }) && matches!(refused::<Weighing>(&[4]), BadCode { .. }));
    assert!(Profile::from_bytes(&[0]).is_ok() && Profile::from_bytes(&[4]).is_ok());
    assert!(matches!(refused::<Profile>(&[5]), BadCode { .. }), "a sixth level");
    assert!(matches!(refused::<Profile>(&[0x80, 0x80, 0x02]), BadCode { .. }), "a sixth kind");
}

#[test]
fn tokens_and_conditions_are_bounded() {
    let scope = |apps: u8| [&[0, 0, 0, 0, apps][..], &vec![7; usize::from(apps)]].concat();
    assert!(TokenScope::from_bytes(&scope(64)).is_ok());
    assert!(matches!(refused::<TokenScope>(&scope(65)), Forbidden(_)));
    assert_eq!(refused::<TokenScope>(&[0, 0, 0, 0, 2, 7]), Truncated);
    assert!(matches!(refused::<TokenScope>(&[2, 0, 0, 0, 0]), BadCode { .. }));
    assert!(matches!(refused::<Role>(&[0]), BadCode { .. }) && matches!(refused::<Role>(&[8]), BadCode { .. }));
    assert!(Level::from_bytes(&[0]).is_ok());
    assert!(matches!(refused::<Level>(&[3]), BadCode { .. }));
}

#[test]
fn prices_are_bounded_and_in_order() {
    let change = |change: fn(&mut Prices)| {
        let mut prices = samples::prices();
        change(&mut prices);
        Prices::from_bytes(&prices.to_bytes())
    };
    assert_eq!(change(|_| {}), Ok(samples::prices()));
    let wrong: [fn(&mut Prices); 8] = [
        |prices| prices.kinds.0[4].0 = RATE_MAX.0 + 1,
        |prices| prices.classes[0].1.0 = RATE_MAX.0 + 1,
        |prices| prices.tiers[1].1.0 = FACTOR_MAX.0 + 1,
        |prices| prices.priorities.0[0].0 = FACTOR_MAX.0 + 1,
        |prices| prices.classes.reverse(),
        |prices| prices.classes[1].0 = prices.classes[0].0,
        |prices| prices.tiers.reverse(),
        |prices| prices.classes = (0..1025).map(|class| (ClassNo(class), Decimal(0))).collect(),
    ];
    for wrong in wrong {
        assert!(matches!(change(wrong), Err(Forbidden(_))));
    }
    assert!(matches!(refused::<Currency>(b"EUr"), Forbidden(_)));
    assert_eq!(refused::<Currency>(b"EU"), Truncated);
    assert!(matches!(refused::<Charge>(&[0]), BadCode { .. }) && matches!(refused::<Charge>(&[4]), BadCode { .. }));
}

/// A heartbeat with this set of parts and these bytes for them.
fn head(parts: &[u8], rest: &[u8]) -> Vec<u8> {
    [&[0][..], &NEW_YEAR.0.to_le_bytes(), &[3], parts, rest].concat()
}

#[test]
fn heads_have_known_parts_within_bounds() {
    assert!(decode(&head(&[0], &[])).is_ok());
    assert_eq!(decode(&head(&[0], &[7])), Err(TrailingBytes(1)));
    assert!(matches!(decode(&head(&[0x80, 0x20], &[])), Err(BadCode { .. })), "part 12");
    assert!(matches!(decode(&head(&[1], &[0])), Err(Forbidden(_))), "effective at the stamp, written out");
    let after_1970 = Span(NEW_YEAR.0 + 1).to_bytes();
    assert_eq!(decode(&head(&[1], &after_1970)), Err(BadInteger), "effective before 1970");
    let key = |n: u8| head(&[0x40], &[&[0, n][..], &vec![b'k'; usize::from(n)], &[0; 16]].concat());
    assert!(decode(&key(64)).is_ok());
    assert!(decode(&key(0)).is_err() && decode(&key(65)).is_err());
    let signers = |n: u8| head(&[0x80, 0x08], &[&[n][..], &vec![1; 32 * usize::from(n)]].concat());
    assert!(decode(&signers(2)).is_ok());
    assert!(decode(&signers(0)).is_err() && decode(&signers(3)).is_err());
}

#[test]
fn a_record_comes_with_the_signatures_it_names_and_no_others() {
    let rotation = [&[0; 32][..], &encode(&samples::key_rotation(1))].concat();
    let heartbeat = [&[0; 32][..], &encode(&Record::new(1, NEW_YEAR, Heartbeat {}))].concat();
    for (bytes, signatures, stands) in [
        (&rotation, 128, true),
        (&rotation, 64, false),
        (&rotation, 0, false),
        (&heartbeat, 0, true),
        (&heartbeat, 64, false),
    ] {
        let raw = RawRecord { bytes, signatures: &vec![0; signatures] };
        assert_eq!(raw.decode().is_ok(), stands, "{signatures} bytes of signatures");
    }
}

/// A key that no decoder would take back cannot even be said.
#[test]
fn keys_have_one_to_sixty_four_bytes() {
    assert!(leasehold_model::Key::new(b"").is_none() && leasehold_model::Key::new(&[7; 65]).is_none());
    assert_eq!(&*leasehold_model::Key::new(&[7; 64]).expect("a key"), &[7; 64]);
}

/// What no decoder would take back must never reach a disk.
#[test]
fn what_would_be_refused_cannot_be_sealed() {
    let too_many: Leases = (0..1025).map(LeaseNo).collect();
    let mut granted = samples::granted();
    granted.members.clear();
    let scope = TokenScope { app_instances: (0..65).map(AppInstanceNo).collect(), ..TokenScope::default() };
    let (token, hash, role) = (TokenNo(1), [0; 32], Role::AppOperator);
    let wide = body::TokenIssued { token, name: samples::name("wide"), hash, role, scope, expires_at: None };
    let mut prices = samples::prices();
    prices.kinds.0[0].0 += 1;
    let dear = body::RateCardPut { card: 0, pool: None, from: NEW_YEAR, prices };
    for record in [
        Record::new(0, NEW_YEAR, body::Fenced { leases: Leases::default(), belongs_to: None }),
        Record::new(0, NEW_YEAR, body::Fenced { leases: too_many, belongs_to: None }),
        Record::new(0, NEW_YEAR, body::ActivityReported { leases: ReportedLeases::default() }),
        Record::new(0, NEW_YEAR, granted),
        Record::new(0, NEW_YEAR, wide),
        Record::new(0, NEW_YEAR, dear),
        Record::new(0, NEW_YEAR, Body::Unknown { kind: 3, bytes: vec![] }),
    ] {
        let kind = record.body.word();
        let sealed = std::panic::catch_unwind(|| Batch::new(0).push(&record));
        assert!(sealed.is_err(), "{kind} was sealed");
    }
}
