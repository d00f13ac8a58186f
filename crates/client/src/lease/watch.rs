//! Watches the records about a lease, so that a revocation is noticed immediately and not at the next renewal.

use super::keeper::{Deadline, length};
use crate::client::Client;
use crate::events::{Event, EventFilter, Events};
use leasehold_api::Granted;
use leasehold_model::Span;
use serde_json::Value;
use tokio::time::Instant;

/// An event that the holder of a lease must know about.
pub(super) enum Sign {
    Revoked { reason: Option<String>, until: Instant },
    Ended { kind: String },
}

/// The event stream, if there is one. Otherwise the next renewal fails after a revocation.
pub(super) enum Watch {
    On(Box<Events>),
    Off,
}

impl Watch {
    /// Watches the first lease of a grant: a revocation applies to the whole gang.
    pub(super) fn begin(client: &Client, granted: &Granted) -> Self {
        let Some(first) = granted.leases.first() else { return Self::Off };
        let filter = EventFilter {
            after: Some(granted.sequence),
            kind: Some("lease".into()),
            lease: Some(first.id.clone()),
            ..EventFilter::default()
        };
        client.events(&filter).map_or(Self::Off, |events| Self::On(Box::new(events)))
    }

    /// The next relevant event. Never resolves without a stream.
    pub(super) async fn next(&mut self, deadline: &Deadline) -> Sign {
        loop {
            let event = match self {
                Self::Off => std::future::pending().await,
                Self::On(events) => events.next().await,
            };
            match event {
                Ok(event) => {
                    if let Some(sign) = read(event, deadline) {
                        return sign;
                    }
                }
                // The daemon refused the stream, for example because the token may not read records.
                Err(_) => *self = Self::Off,
            }
        }
    }
}

fn read(event: Event, deadline: &Deadline) -> Option<Sign> {
    match event.kind.as_str() {
        "lease.revoked" => {
            let number = |value: Option<&Value>| value.and_then(Value::as_str).and_then(|text| text.parse().ok());
            let stamp = number(event.record.get("timestamp_ns").or_else(|| event.record.get("timestamp")));
            let stamp = stamp.map(leasehold_model::Instant);
            let grace = number(event.record.pointer("/body/grace_ns")).map(Span).unwrap_or_default();
            // The grace period counts from the stamp of the record, not from its arrival.
            let until = stamp.map_or(Instant::now(), |stamp| deadline.local(stamp) + length(grace));
            let reason = event.record.get("reason").and_then(Value::as_str).map(str::to_owned);
            Some(Sign::Revoked { reason, until })
        }
        "lease.released" | "lease.expired" | "lease.teardown_started" | "lease.torn_down" | "lease.fenced" => {
            Some(Sign::Ended { kind: event.kind })
        }
        _ => None,
    }
}
