//! Reads reported usage: JSON, one record or several, and CloudEvents 1.0 in all three modes.

use crate::body;
use crate::context::{media_type, percent_decoded};
use axum::http::HeaderMap;
use leasehold_api::endpoint::{CLOUD_EVENT, CLOUD_EVENTS};
use leasehold_api::{NewUsageRecord, NewUsageRecords, Problem, codes};
use serde::Deserialize;
use serde_json::Value;

/// The type of the events that are taken.
pub(crate) const EVENT_TYPE: &str = "leasehold.usage_record.v1";

/// What was sent.
pub(crate) enum Reports {
    One(Box<NewUsageRecord>),
    Several {
        /// Those that could be read, and why the others could not.
        records: Vec<Result<NewUsageRecord, Problem>>,
        atomic: bool,
    },
}

/// A CloudEvent in JSON. Attributes that are not named here are extensions, and allowed.
#[derive(Deserialize)]
struct CloudEvent {
    specversion: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    source: Option<String>,
    id: Option<String>,
    datacontenttype: Option<String>,
    data: Option<Value>,
}

fn bad_event(field: &str, why: &str) -> Problem {
    codes::BAD_CLOUD_EVENT.problem(format!("`{field}` {why}.")).with("field", field)
}

impl CloudEvent {
    /// The record in the data. An event of another kind is told by its attributes: its data can be anything.
    fn record(self) -> Result<NewUsageRecord, Problem> {
        self.check_kind()?;
        let data = self.data.as_ref().ok_or_else(|| bad_event("data", "is missing"))?;
        let bytes = serde_json::to_vec(data).map_err(|_| bad_event("data", "is not JSON"))?;
        let record = body::read(&bytes)?;
        self.into_record(record)
    }

    /// The same of an event whose data are the body of the request.
    fn record_in(self, bytes: &[u8]) -> Result<NewUsageRecord, Problem> {
        self.check_kind()?;
        let record = body::read(bytes)?;
        self.into_record(record)
    }

    /// Whether the event is a usage record.
    fn check_kind(&self) -> Result<(), Problem> {
        if self.specversion.as_deref() != Some("1.0") {
            return Err(bad_event("specversion", "must be 1.0"));
        }
        if self.kind.as_deref() != Some(EVENT_TYPE) {
            return Err(bad_event("type", &format!("must be {EVENT_TYPE}")));
        }
        let is_json = |media: &String| media.split(';').next().is_some_and(|m| m.trim() == "application/json");
        if !self.datacontenttype.as_ref().is_none_or(is_json) {
            return Err(bad_event("datacontenttype", "must be application/json"));
        }
        Ok(())
    }

    /// The data with the ID and the source of the event.
    fn into_record(self, mut record: NewUsageRecord) -> Result<NewUsageRecord, Problem> {
        let id = self.id.filter(|id| !id.is_empty()).ok_or_else(|| bad_event("id", "is missing"))?;
        let source =
            self.source.filter(|source| !source.is_empty()).ok_or_else(|| bad_event("source", "is missing"))?;
        if record.id.get_or_insert_with(|| id.clone()) != &id {
            return Err(bad_event("data.id", "differs from the id of the event"));
        }
        if record.source.get_or_insert_with(|| source.clone()) != &source {
            return Err(bad_event("data.source", "differs from the source of the event"));
        }
        Ok(record)
    }
}

/// The attributes of an event in binary mode, if the headers have one.
fn in_headers(headers: &HeaderMap) -> Result<Option<CloudEvent>, Problem> {
    if !headers.keys().any(|name| name.as_str().starts_with("ce-")) {
        return Ok(None);
    }
    let attribute = |name: &str| -> Result<Option<String>, Problem> {
        let mut all = headers.get_all(format!("ce-{name}")).iter();
        let Some(value) = all.next() else { return Ok(None) };
        if all.next().is_some() {
            return Err(bad_event(name, "was sent twice"));
        }
        let text = value.to_str().map_err(|_| bad_event(name, "must be percent-encoded where it is not ASCII"))?;
        percent_decoded(text, |byte| byte).map(Some).ok_or_else(|| bad_event(name, "is not percent-encoded UTF-8"))
    };
    Ok(Some(CloudEvent {
        specversion: attribute("specversion")?,
        kind: attribute("type")?,
        source: attribute("source")?,
        id: attribute("id")?,
        // In binary mode it is the type of the body, which was checked.
        datacontenttype: None,
        data: None,
    }))
}

/// Each item of a list by itself: one that cannot be read does not spoil the others.
fn each(items: Vec<Value>) -> Vec<Result<NewUsageRecord, Problem>> {
    let one = |item: Value| {
        let bytes = serde_json::to_vec(&item).map_err(|_| codes::BAD_BODY.problem("A record cannot be read."))?;
        body::read(&bytes)
    };
    items.into_iter().map(one).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Loose {
    records: Vec<Value>,
    #[serde(default)]
    atomic: bool,
}

/// Whether the body is about several records.
#[derive(Deserialize)]
struct Probe {
    records: Option<serde::de::IgnoredAny>,
}

pub(crate) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<Reports, Problem> {
    let media = media_type(headers).unwrap_or_default();
    if media.eq_ignore_ascii_case(CLOUD_EVENTS) {
        let events: Vec<Value> = body::read(bytes)?;
        let one = |event: Value| {
            let bytes = serde_json::to_vec(&event).map_err(|_| bad_event("data", "is not JSON"))?;
            body::read::<CloudEvent>(&bytes)?.record()
        };
        return Ok(Reports::Several { records: events.into_iter().map(one).collect(), atomic: false });
    }
    if media.eq_ignore_ascii_case(CLOUD_EVENT) {
        return body::read::<CloudEvent>(bytes)?.record().map(Box::new).map(Reports::One);
    }
    if let Some(event) = in_headers(headers)? {
        return event.record_in(bytes).map(Box::new).map(Reports::One);
    }
    let is_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if is_list {
        return Ok(Reports::Several { records: each(body::read(bytes)?), atomic: false });
    }
    let probe: Result<Probe, _> = serde_json::from_slice(bytes);
    if probe.is_ok_and(|probe| probe.records.is_none()) {
        return body::read(bytes).map(Box::new).map(Reports::One);
    }
    match body::read::<NewUsageRecords>(bytes) {
        Ok(NewUsageRecords { records, atomic }) => {
            Ok(Reports::Several { records: records.into_iter().map(Ok).collect(), atomic })
        }
        Err(problem) => match body::read::<Loose>(bytes) {
            Ok(Loose { records, atomic }) => Ok(Reports::Several { records: each(records), atomic }),
            // It is not about single records.
            Err(_) => Err(problem),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use serde_json::json;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let one = |(name, value): &(&'static str, &str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"))
        };
        all.iter().map(one).collect()
    }

    fn one(headers: &HeaderMap, body: &Value) -> Result<NewUsageRecord, String> {
        match read(headers, body.to_string().as_bytes()) {
            Ok(Reports::One(record)) => Ok(*record),
            Ok(Reports::Several { .. }) => Err("several".into()),
            Err(problem) => {
                Err(format!("{} {}", problem.code, problem.members.get("field").and_then(Value::as_str).unwrap_or("")))
            }
        }
    }

    const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");

    #[test]
    fn an_event_is_the_same_record_in_every_mode() {
        let data = json!({ "usage_unit": "requests", "quantity": "3" });
        let plain = json!({ "id": "r 1", "source": "/serving", "usage_unit": "requests", "quantity": "3" });
        let record = one(&headers(&[JSON]), &plain).expect("a record");
        let event = json!({
            "specversion": "1.0", "type": EVENT_TYPE, "source": "/serving", "id": "r 1", "time": "2026-11-02T10:00:00Z",
            "traceparent": "an extension", "data": data
        });
        let structured = headers(&[("content-type", "application/cloudevents+json")]);
        assert_eq!(one(&structured, &event), Ok(record.clone()));
        let binary = headers(&[
            JSON,
            ("ce-specversion", "1.0"),
            ("ce-type", EVENT_TYPE),
            ("ce-source", "/serving"),
            ("ce-id", "r%201"),
        ]);
        assert_eq!(one(&binary, &data), Ok(record.clone()));
        let batch = headers(&[("content-type", CLOUD_EVENTS)]);
        let other = json!({ "specversion": "1.0", "type": "other", "source": "/serving", "id": "2", "data": data });
        let Ok(Reports::Several { records, atomic: false }) =
            read(&batch, json!([event, other]).to_string().as_bytes())
        else {
            panic!("several events")
        };
        assert_eq!(records[0], Ok(record));
        assert_eq!(records[1].as_ref().map_err(|problem| problem.code.as_str()), Err("bad_cloud_event"));
    }

    #[test]
    fn an_event_that_is_not_ours_is_refused_by_name() {
        let structured = headers(&[("content-type", CLOUD_EVENT)]);
        let event = |change: &str, to: Value| {
            let mut event =
                json!({ "specversion": "1.0", "type": EVENT_TYPE, "source": "s", "id": "1", "data": { "id": "1" } });
            event[change] = to;
            one(&structured, &event)
        };
        for (change, to, told) in [
            ("type", json!("com.example.other"), "bad_cloud_event type"),
            ("specversion", json!("0.3"), "bad_cloud_event specversion"),
            ("id", json!(""), "bad_cloud_event id"),
            ("source", json!(null), "bad_cloud_event source"),
            ("data", json!(null), "bad_cloud_event data"),
            ("data", json!({ "id": "2" }), "bad_cloud_event data.id"),
            ("data", json!({ "color": "red" }), "bad_body color"),
            ("datacontenttype", json!("text/xml"), "bad_cloud_event datacontenttype"),
        ] {
            assert_eq!(event(change, to), Err(told.to_owned()), "{change}");
        }
        let twice = headers(&[JSON, ("ce-id", "1"), ("ce-type", "%zz")]);
        assert_eq!(one(&twice, &json!({})), Err("bad_cloud_event type".into()));
        // The data of such an event are nothing that we know.
        let other = json!({ "specversion": "1.0", "type": "com.example.other", "source": "s", "id": "1",
            "data": { "color": "red" } });
        assert_eq!(one(&structured, &other), Err("bad_cloud_event type".into()));
        let binary = [JSON, ("ce-specversion", "1.0"), ("ce-type", "other"), ("ce-source", "s"), ("ce-id", "1")];
        assert_eq!(one(&headers(&binary), &json!({ "color": "red" })), Err("bad_cloud_event type".into()));
    }

    #[test]
    fn a_record_that_cannot_be_read_does_not_spoil_the_others() {
        let json = headers(&[JSON]);
        let good = json!({ "id": "1" });
        let bad = json!({ "id": "2", "quantity": true });
        for body in [json!({ "records": [good, bad] }), json!([good, bad])] {
            let Ok(Reports::Several { records, .. }) = read(&json, body.to_string().as_bytes()) else {
                panic!("several records")
            };
            assert!(records[0].is_ok());
            assert_eq!(records[1].as_ref().map_err(|problem| problem.code.as_str()), Err("bad_body"));
        }
        let atomic = json!({ "records": [good], "atomic": true });
        assert!(matches!(read(&json, atomic.to_string().as_bytes()), Ok(Reports::Several { atomic: true, .. })));
        for bad in [json!({ "records": 7 }), json!({ "records": [], "atomic": 1 }), json!(7)] {
            assert!(read(&json, bad.to_string().as_bytes()).is_err(), "{bad}");
        }
    }
}
