//! Records as they become durable: a stream that goes on where it broke off.

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

/// Which records. The empty filter means all that the token may see, from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Begin after this sequence; with what comes next unless given.
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
    /// Its sequence, where it is a record.
    pub sequence: Option<u64>,
    /// What happened: `lease.granted`.
    pub kind: String,
    /// The record as JSON (`docs/reference/json-view.md`).
    pub record: Value,
}

type OnBreak = Box<dyn FnMut(&Error, Duration) + Send>;

/// A stream of events. A connection that breaks is made again, after a pause, from the last event that was seen.
pub struct Events {
    client: Client,
    request: Request,
    /// The last sequence that the stream has come to: nothing before it will be wanted again.
    last: Option<u64>,
    open: Option<Open>,
    ready: VecDeque<Event>,
    backoff: Backoff,
    /// Not before this; where the stream asked for a pause, at least that.
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
    /// Is told each time the connection breaks: why, and after which pause it is made again.
    #[must_use]
    pub fn on_break(mut self, told: impl FnMut(&Error, Duration) + Send + 'static) -> Self {
        self.on_break = Some(Box::new(told));
        self
    }

    /// The last sequence that the stream has come to.
    pub fn last_sequence(&self) -> Option<u64> {
        self.last
    }

    /// The next event, however long it takes. An error means that the daemon will not have it: no such tenant, a token
    /// that is not good. May be given up and called again without losing anything.
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
        if let Some(told) = &mut self.on_break {
            told(error, pause);
        }
    }

    /// Connects if need be, and reads one piece of the stream.
    async fn more(&mut self) -> Result<(), Failure> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                if let Some(at) = self.connect_at {
                    tokio::time::sleep_until(at).await;
                }
                if self.last.is_none() {
                    // From now on means from here on, also if the connection breaks before the first event.
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
        // The daemon sends a comment where there is nothing to say; longer silence means that nobody is there.
        let chunk = tokio::time::timeout(self.client.timeouts().silence, open.response.chunk());
        let chunk = match chunk.await {
            Err(_) => return Err(broken("the stream fell silent")),
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
