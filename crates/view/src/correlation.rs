//! What leases belong to, as JSON: their allocation and their correlation ID.

use super::Directory;
use super::object::Object;
use leasehold_model::body::{BelongsTo, Correlation};
use leasehold_model::id::CorrelationId;
use leasehold_model::name::Name;
use serde_json::Value;

/// The correlation ID as a UUID; null if it is derived and the journal's genesis is not known.
pub(super) fn correlation_id(directory: &Directory, correlation: Correlation) -> Value {
    let id = match (correlation, directory.genesis()) {
        (Correlation::Given(id), _) => Some(CorrelationId(id)),
        (derived, Some(genesis)) => Some(derived.id(genesis)),
        (Correlation::Derived(_), None) => None,
    };
    id.map(|id| id.to_string()).into()
}

/// Records of earlier versions, and those that the holder of the leases caused, do not carry it.
pub(super) fn belongs_to<'a>(shown: Object<'a>, directory: &'a Directory, said: Option<BelongsTo>) -> Object<'a> {
    shown
        .field("allocation_id", said.and_then(|said| said.allocation).map(|number| number.to_string()))
        .field("correlation_id", said.map(|said| correlation_id(directory, said.correlation)))
}

/// The reason that an operator gave, if any.
pub(super) fn with_reason<'a>(shown: Object<'a>, reason: Option<&Name>) -> Object<'a> {
    match reason {
        Some(reason) => shown.field("operator_reason", reason.as_str()),
        None => shown,
    }
}
