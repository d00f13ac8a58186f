//! What people type: names, lengths of time, quantities.

use crate::arbitrary::{names, spans};
use crate::samples::name;
use crate::sealing::cases;
use leasehold_model::codec::Field;
use leasehold_model::quantity::BadQuantity;
use leasehold_model::{ClassSpec, Name, Quanta, ResourceKind, Span, quantity};
use proptest::prelude::*;
use proptest::sample::select;

fn classes() -> impl Strategy<Value = ClassSpec> {
    let per_unit = prop_oneof![select(vec![1, 7, 10, 1000, 1024, 1 << 32]), any::<u64>()];
    (select(ResourceKind::ALL), per_unit).prop_map(|(kind, quanta_per_unit)| ClassSpec {
        name: name("c"),
        kind,
        tier: None,
        quanta_per_unit,
        premium: false,
    })
}

/// Texts made of the pieces quantities are made of.
fn near_quantities() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[0-9]{1,20}",
        3 => select(vec!["m", "KiB", "MiB", "GiB", "TiB", "PiB", "GB", "PB", "Gb", "Tb", "/s", "ps", "/", ".", " ", "-"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn no_text_makes_a_reader_panic(text: String) {
        let _ = text.parse::<Span>();
        if let Ok(name) = Name::new(&text) {
            prop_assert_eq!(name.as_str(), &text);
            prop_assert_eq!(Name::from_bytes(&name.to_bytes()), Ok(name));
        }
    }

    #[test]
    fn quantities_are_read_exactly_or_not_at_all(text in near_quantities(), class in classes()) {
        if let Ok(quanta) = quantity::parse(&text, &class) {
            prop_assert!(quanta.0 > 0);
            let shown = quantity::display(quanta, &class);
            // The reader takes 18 digits before the point and nine behind it, which is more than exists.
            if quanta.0 / class.quanta_per_unit < 1_000_000_000_000_000_000 && !shown.contains('/') {
                prop_assert_eq!(quantity::parse(&shown, &class), Ok(quanta));
            }
        }
    }

    #[test]
    fn every_amount_of_every_class_can_be_shown(quanta: u64, class in classes()) {
        prop_assert!(!quantity::display(Quanta(quanta), &class).is_empty());
    }

    #[test]
    fn spans_read_as_they_are_written(span in spans()) {
        prop_assert_eq!(span.to_string().parse(), Ok(span));
        prop_assert_eq!(Span::from_bytes(&span.to_bytes()), Ok(span));
    }

    #[test]
    fn near_spans_never_panic(text in "([0-9]{1,21}(d|h|m|s|ms|us|ns| |é)){0,4}") {
        if let Ok(span) = text.parse::<Span>() {
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }

    #[test]
    fn names_survive_their_bytes(name in names()) {
        prop_assert_eq!(Name::from_bytes(&name.to_bytes()), Ok(name));
    }
}

/// Bytes can hold a class that no engine makes.
#[test]
fn a_class_of_zero_quanta_to_the_unit_can_be_shown() {
    let class = ClassSpec { name: name("c"), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 0, premium: false };
    assert_eq!(quantity::display(Quanta(3), &class), "3/0");
    assert_eq!(quantity::parse("3", &class), Err(BadQuantity::Zero));
}
