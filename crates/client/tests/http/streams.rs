//! Event streams: reading, broken connections and resuming.

use crate::fake::{After, Fake, Reply};
use leasehold_api::codes;
use leasehold_client::EventFilter;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn event(sequence: u64) -> String {
    format!("id: {sequence}\nevent: lease.granted\ndata: {}\n\n", json!({ "sequence": sequence }))
}

/// The size of the journal when a stream of new records starts.
fn about() -> Reply {
    let json = json!({
        "origin": "o", "public_key": "", "genesis": "", "version": "0", "size": 6, "now": "2026-01-01T00:00:00Z",
    });
    Reply::Json(200, json)
}

fn now(text: impl Into<String>) -> (Duration, String) {
    (Duration::ZERO, text.into())
}

#[tokio::test]
async fn a_stream_resumes_after_the_last_event() {
    let fake = Fake::start(|before, _| match before {
        0 => about(),
        1 => Reply::Hangup,
        2 => {
            Reply::Stream(vec![now(format!("retry: 10\n: hello\n\n{}", event(7))), now(&event(8)[..20])], After::Close)
        }
        3 => Reply::Problem(codes::TOO_MANY_STREAMS.problem("later"), None),
        4 => Reply::Hangup,
        // An ID without an event moves the position as well.
        5 => Reply::Stream(vec![now(event(8)), now("id: 20\n\n")], After::Close),
        _ => Reply::Stream(vec![now(event(21))], After::Stay),
    })
    .await;
    let filter = EventFilter { kind: Some("lease".into()), tenant: Some("physics".into()), ..Default::default() };
    let broken = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&broken);
    let mut events = fake.client().events(&filter).unwrap().on_break(move |error, _| {
        told.lock().unwrap().push(error.code().to_owned());
    });
    for sequence in [7, 8, 21] {
        let event = events.next().await.unwrap();
        assert_eq!((event.sequence, event.kind.as_str()), (Some(sequence), "lease.granted"));
        assert_eq!(event.record, json!({ "sequence": sequence }));
    }
    let streams = fake.asked_for("/events");
    let last: Vec<Option<String>> = streams.iter().map(|asked| asked.headers.get("last-event-id").cloned()).collect();
    let expected = ["5", "5", "7", "7", "7", "20"].map(|id| Some(id.to_owned()));
    assert_eq!(last, expected);
    assert!(streams.iter().all(|asked| asked.path == "/api/v1/events?tenant=physics&kind=lease"));
    let broken = broken.lock().unwrap().clone();
    assert_eq!(broken, ["unreachable", "unreachable", "too_many_streams", "unreachable", "unreachable"]);
}

#[tokio::test]
async fn a_stream_starts_after_the_given_sequence() {
    let fake = Fake::start(|_, _| Reply::Stream(vec![now(event(12))], After::Stay)).await;
    let filter = EventFilter { after: Some(11), ..Default::default() };
    let mut events = fake.client().events(&filter).unwrap();
    events.next().await.unwrap();
    assert_eq!(events.last_sequence(), Some(12));
    assert_eq!(fake.asked()[0].path, "/api/v1/events?after=11");
}

#[tokio::test]
async fn a_refused_stream_is_not_retried() {
    let fake = Fake::start(|_, _| Reply::Problem(codes::ROLE_FORBIDS.problem("no"), None)).await;
    let filter = EventFilter { after: Some(1), ..Default::default() };
    let mut events = fake.client().events(&filter).unwrap();
    assert_eq!(events.next().await.unwrap_err().code(), "role_forbids");
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_journal_that_lost_records_ends_the_stream() {
    let fake = Fake::start(|before, _| match before {
        0 => Reply::Stream(vec![now(event(7))], After::Close),
        _ => Reply::Problem(codes::BEYOND_END.problem("The journal has 5 records.").with("size", 5), None),
    })
    .await;
    let filter = EventFilter { after: Some(6), ..Default::default() };
    let mut events = fake.client().events(&filter).unwrap();
    assert_eq!(events.next().await.unwrap().sequence, Some(7));
    let refused = events.next().await.unwrap_err();
    assert_eq!((refused.code(), refused.is_final()), ("beyond_end", true));
    assert_eq!(refused.problem().unwrap().members["size"], 5);
}

#[tokio::test]
async fn waiting_for_an_event_is_cancel_safe() {
    let fake = Fake::start(|_, _| {
        let text = event(1);
        let (one, two) = text.split_at(text.len() / 2);
        Reply::Stream(vec![now(one), (Duration::from_millis(100), two.into())], After::Stay)
    })
    .await;
    let filter = EventFilter { after: Some(0), ..Default::default() };
    let mut events = fake.client().events(&filter).unwrap();
    let event = loop {
        match tokio::time::timeout(Duration::from_millis(30), events.next()).await {
            Ok(event) => break event.unwrap(),
            Err(_) => continue,
        }
    };
    assert_eq!((event.sequence, fake.asked_for("/events").len()), (Some(1), 1));
}
