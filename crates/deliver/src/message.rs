//! An event as it waits in memory: the bytes that are sent (CloudEvents 1.0, structured mode) and what is needed to
//! order it. The bytes are the same for every attempt.

use crate::event::{Event, Place};
use bytes::Bytes;
use leasehold_model::Instant;
use std::sync::Arc;

/// What an event takes in memory besides its bytes; an estimate.
const OVERHEAD_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub place: Place,
    pub id: String,
    pub kind: String,
    pub order: Arc<str>,
    pub time: Instant,
    /// The JSON of the CloudEvent.
    pub body: Bytes,
}

impl Message {
    /// `source` is the CloudEvents attribute, `leasehold://ORIGIN`.
    pub fn new(event: Event, source: &str) -> Self {
        let place = event.place();
        let Event { id, kind, order, subject, time, data, .. } = event;
        let body = serde_json::json!({
            "specversion": "1.0",
            "id": id,
            "source": source,
            "type": kind,
            "subject": subject,
            "time": time.to_string(),
            "datacontenttype": "application/json",
            "data": data,
        });
        Self { place, id, kind, order: order.into(), time, body: body.to_string().into() }
    }

    /// About how many bytes of memory it takes.
    pub fn size(&self) -> usize {
        self.body.len() + self.id.len() + self.kind.len() + self.order.len() + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_a_cloud_event() {
        let event = Event {
            sequence: 7,
            position: 1,
            id: "01JZ".to_owned(),
            kind: "lease.granted".to_owned(),
            order: "lease-3".to_owned(),
            subject: "lease-3".to_owned(),
            time: Instant(1_774_000_000_500_000_000),
            data: serde_json::json!({"uid": "18446744073709551616"}),
        };
        let message = Message::new(event, "leasehold://cell.example");
        assert_eq!(
            std::str::from_utf8(&message.body).expect("JSON"),
            "{\"specversion\":\"1.0\",\"id\":\"01JZ\",\"source\":\"leasehold://cell.example\",\
             \"type\":\"lease.granted\",\"subject\":\"lease-3\",\"time\":\"2026-03-20T09:46:40.5Z\",\
             \"datacontenttype\":\"application/json\",\"data\":{\"uid\":\"18446744073709551616\"}}"
        );
    }
}
