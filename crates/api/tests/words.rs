//! Closed lists of words on the wire: written with underscores, read with hyphens as well.

use leasehold_api::{
    AllocationState, AttemptEnd, CeilingMode, CustodyState, Domain, Kind, LeaseState, Level, Measure, Priority,
    QuarantineCause, RevokeReason, Role, Sensitivity, Strategy, Teardown, WasteClass,
};
use leasehold_model::{Group, Words};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Debug;

fn check<T: Words + PartialEq + Debug + Serialize + DeserializeOwned>() {
    let read = |text: &str| serde_json::from_value::<T>(json!(text));
    let mut words = BTreeSet::new();
    for &one in T::ALL {
        let word = one.word();
        assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{word}");
        assert!(words.insert(word), "{word} twice");
        assert_eq!(serde_json::to_value(one).expect("a word can be written"), json!(word));
        assert_eq!(read(word).expect("as it is written"), one);
        assert_eq!(read(&word.replace('_', "-")).expect("with hyphens"), one);
        assert!(read(&word.to_uppercase()).is_err(), "{word} in capitals");
    }
    let error = read("no such word").expect_err("an unknown word").to_string();
    assert!(T::WORDS.iter().all(|word| error.contains(word)), "{error}");
    assert!(serde_json::from_value::<T>(json!(1)).is_err(), "a number");
}

#[test]
fn words_are_written_with_underscores_and_read_with_hyphens_too() {
    check::<AllocationState>();
    check::<AttemptEnd>();
    check::<CeilingMode>();
    check::<CustodyState>();
    check::<Domain>();
    check::<Group>();
    check::<Kind>();
    check::<LeaseState>();
    check::<Level>();
    check::<Measure>();
    check::<Priority>();
    check::<QuarantineCause>();
    check::<RevokeReason>();
    check::<Role>();
    check::<Sensitivity>();
    check::<Strategy>();
    check::<Teardown>();
    check::<WasteClass>();
}
