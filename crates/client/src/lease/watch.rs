//! Watches the records about a lease, so that a revocation is noticed at once and not at the next renewal.

use super::keeper::{Deadline, length};
use crate::client::Client;
use crate::events::{Event, EventFilter, Events};
use leasehold_api::Granted;
use leasehold_model::Span;
use serde_json::Value;
use tokio::time::Instant;

/// What a record says about a lease that its holder must know.
pub(super) enum Sign {
    Revoked { reason: Option<String>, until: Instant },
    Ended { kind: String },
}

/// The stream, or nothing where there is none: renewals then tell, later.
pub(super) enum Watch {
    On(Box<Events>),
    Off,
}

impl Watch {
    /// Watches the first lease of a grant: what is done to one against the holder's will is done to all.
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

    /// The next sign that matters. Waits for ever where there is no stream.
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
                // The daemon will not have it: a token without the right to read, for one.
                Err(_) => *self = Self::Off,
            }
        }
    }
}

fn read(event: Event, deadline: &Deadline) -> Option<Sign> {
    match event.kind.as_str() {
        "lease.revoked" => {
            let number = |value: Option<&Value>| value.and_then(Value::as_str).and_then(|text| text.parse().ok());
            let stamp = number(event.record.get("timestamp")).map(leasehold_model::Instant);
            let grace = number(event.record.pointer("/body/grace_ns")).map(Span).unwrap_or_default();
            // From the stamp, and not from when it was heard of; but not before now.
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
