//! Records of sinks and of what was delivered to them.

use super::object::Object;
use leasehold_model::Name;
use leasehold_model::body::{AccountingReconciled, SinkPut};
use serde_json::Value;

pub(super) fn put<'d>(object: Object<'d>, put: &SinkPut) -> Object<'d> {
    object
        .field("webhook_id", put.sink.0)
        .named("tenant", put.tenant)
        .field("name", put.name.as_str())
        .field("url", put.url.as_str())
        .field("events", put.events.iter().map(Name::as_str).collect::<Value>())
        .field("signature", put.signature.word())
}

pub(super) fn reconciled<'d>(object: Object<'d>, done: &AccountingReconciled) -> Object<'d> {
    object
        .field("webhook_id", done.sink.0)
        .instant("since", done.since)
        .instant("until", done.until)
        .count("due", done.due)
        .count("acknowledged", done.acknowledged)
        .count("pending", done.pending)
        .count("sent", done.sent)
        .count("failed", done.failed)
}
