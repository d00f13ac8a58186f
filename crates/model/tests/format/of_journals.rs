//! Arbitrary records about the journal itself.

use leasehold_model::Instant;
use leasehold_model::body::{Body, Converted, Restored, TailAction, TailResolved};
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};
use proptest::sample::select;

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    prop_oneof![
        any::<u32>().prop_map(|format_version| Body::from(Converted { format_version })),
        (select(TailAction::ALL), any::<u64>(), any::<u64>()).prop_map(|(action, records, bytes)| TailResolved {
            action,
            records,
            bytes
        }
        .into()),
        (any::<u64>(), any::<u64>()).prop_map(|(records, at)| Restored { records, copied_at: Instant(at) }.into()),
    ]
    .boxed()
}
