//! Placement weights and profiles as JSON.

use super::Directory;
use super::object::Object;
use leasehold_model::class::ResourceKind;
use leasehold_model::placement::{Profile, Weighing, Weights};
use serde_json::{Map, Value};

/// Weights are strings, like all decimal numbers.
pub(super) fn weights(directory: &Directory, weights: Weights) -> Value {
    let decimal = |thousandths: u16| format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    Object::new(directory)
        .field("pressure", decimal(weights.pressure))
        .field("fit", decimal(weights.fit))
        .field("locality", decimal(weights.locality))
        .field("fragmentation", decimal(weights.fragmentation))
        .done()
}

/// The name of the strategy, or the pool's own weights.
pub(super) fn weighing(directory: &Directory, weighing: Weighing) -> Value {
    match weighing {
        Weighing::Strategy(strategy) => strategy.word().into(),
        Weighing::Custom(custom) => weights(directory, custom),
    }
}

pub(super) fn profile(profile: Profile) -> Value {
    let line = |kind: &ResourceKind| (kind.word().to_owned(), Value::from(profile.of(*kind).word()));
    ResourceKind::ALL.iter().map(line).collect::<Map<_, _>>().into()
}
