//! A stream of records as they become durable, which resumes after a broken connection.

use crate::client::{Client, Failure, Request};
use crate::error::Error;
use crate::retry::Backoff;
use crate::sse::Parser;
use leasehold_api::Method;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Selects records. An empty filter selects all new records that the token may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Start after this sequence number; by default with the next new record.
    pub after: Option<u64>,
    pub tenant: Option<String>,
    /// A kind or a family of kinds: `lease.revoked`, `lease`.
    pub kind: Option<String>,
    pub node: Option<String>,
    pub lease: Option<String>,
}

/// One record of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The sequence number of the record.
    pub sequence: Option<u64>,
    /// The kind of the record, such as `lease.granted`.
    pub kind: String,
    /// The record as JSON (`docs/reference/json-view.md`).
    pub record: Value,
}

type OnBreak = Box<dyn FnMut(&Error, Duration) + Send>;

/// A stream of events. If the connection breaks, it reconnects after a pause and continues after the last event.
pub struct Events {
    client: Client,
    request: Request,
    /// The last sequence number that the stream has reached, to continue from.
    last: Option<u64>,
    open: Option<Open>,
    ready: VecDeque<Event>,
    backoff: Backoff,
    /// The earliest time to connect again.
    connect_at: Option<Instant>,
    retry_min: Duration,
    on_break: Option<OnBreak>,
}

struct Open {
    response: reqwest::Response,
    parser: Parser,
}

impl Client {
    /// Records as they become durable.
    pub fn events(&self, filter: &EventFilter) -> Result<Events, Error> {
        let mut url = self.endpoint(leasehold_api::endpoint::by_id::events.path, &[])?;
        let after = filter.after.map(|after| after.to_string());
        let parameters = [
            ("after", &after),
            ("tenant", &filter.tenant),
            ("kind", &filter.kind),
            ("node", &filter.node),
            ("lease", &filter.lease),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let request = Request {
            method: Method::Get,
            url,
            accept: "text/event-stream",
            key: None,
            last_event_id: None,
            body: None,
            patience: None,
        };
        Ok(Events {
            client: self.clone(),
            request,
            last: filter.after,
            open: None,
            ready: VecDeque::new(),
            backoff: Backoff::new(FIRST_PAUSE, PAUSE_MAX),
            connect_at: None,
            retry_min: Duration::ZERO,
            on_break: None,
        })
    }
}

impl Events {
    /// Sets a function that is called each time the connection breaks, with the reason and the pause before the next
    /// attempt.
    #[must_use]
    pub fn on_break(mut self, callback: impl FnMut(&Error, Duration) + Send + 'static) -> Self {
        self.on_break = Some(Box::new(callback));
        self
    }

    /// The last sequence number that the stream has reached.
    pub fn last_sequence(&self) -> Option<u64> {
        self.last
    }

    /// Waits for the next event. An error is final: the daemon refused the request, because of an unknown tenant or an
    /// invalid token, for example. Cancel safe.
    pub async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.more().await {
                Ok(()) => {}
                Err(Failure::Refused { error, again: false, .. }) => return Err(error),
                Err(Failure::Refused { error, retry_after, .. }) => self.broke(&error, retry_after),
                Err(Failure::Broken { what, again, .. }) => {
                    let error = Error::Transport { url: self.client.url().to_owned(), what, unanswered: None };
                    if !again {
                        return Err(error);
                    }
                    self.broke(&error, None);
                }
            }
        }
    }

    fn broke(&mut self, error: &Error, retry_after: Option<Duration>) {
        self.open = None;
        let pause = self.backoff.pause().max(self.retry_min) + retry_after.unwrap_or_default();
        self.connect_at = Some(Instant::now() + pause);
        if let Some(callback) = &mut self.on_break {
            callback(error, pause);
        }
    }

    /// Connects if necessary, and reads one piece of the stream.
    async fn more(&mut self) -> Result<(), Failure> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                if let Some(at) = self.connect_at {
                    tokio::time::sleep_until(at).await;
                }
                if self.last.is_none() {
                    // Fix the start now, so that no record is lost if the connection breaks before the first event.
                    let size = self.client.about().within(self.client.timeouts().answer).await.map_err(ended)?.size;
                    self.last = size.checked_sub(1);
                }
                self.request.last_event_id = self.last;
                let limit = self.client.timeouts().answer;
                let attempt = tokio::time::timeout(limit, self.client.attempt(&self.request));
                let response = attempt.await.unwrap_or_else(|_| Err(broken("it did not answer in time")))?;
                self.open.insert(Open { response, parser: Parser::default() })
            }
        };
        // The daemon sends comments while there are no events, so that a longer silence means a broken connection.
        let chunk = tokio::time::timeout(self.client.timeouts().silence, open.response.chunk());
        let chunk = match chunk.await {
            Err(_) => return Err(broken("the stream sent nothing for too long")),
            Ok(Err(error)) => return Err(Failure::broken(&error)),
            Ok(Ok(None)) => return Err(broken("the stream ended")),
            Ok(Ok(Some(chunk))) => chunk,
        };
        self.backoff.reset();
        let mut frames = Vec::new();
        let bad = |client: &Client, what: &str| {
            let error = client.protocol(what);
            Failure::Refused { error, again: false, retry_after: None }
        };
        open.parser.push(&chunk, &mut frames).map_err(|_| bad(&self.client, "an event is too long"))?;
        self.retry_min = open.parser.retry_ms.map_or(self.retry_min, Duration::from_millis).min(PAUSE_MAX);
        for frame in frames {
            let record = serde_json::from_str(&frame.data).map_err(|_| bad(&self.client, "an event is not JSON"))?;
            let sequence = frame.id.as_deref().and_then(|id| id.parse().ok());
            self.ready.push_back(Event { sequence, kind: frame.event, record });
        }
        self.last = open.parser.position.as_deref().and_then(|id| id.parse().ok()).or(self.last);
        Ok(())
    }
}

fn ended(error: Error) -> Failure {
    let again = !error.is_final() && error.code() != "bad_answer";
    Failure::Refused { error, again, retry_after: None }
}

fn broken(what: &str) -> Failure {
    Failure::Broken { what: what.into(), arrived: true, again: true }
}
