//! Server-sent events: records after a sequence, then records as they become durable.

use crate::app::App;
use crate::context::{Answer, Context};
use crate::live::{Event, Listening};
use crate::names;
use crate::records::Filter;
use crate::scans::scan_on;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use bytes::{Bytes, BytesMut};
use leasehold_api::{Problem, codes, limits};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// A comment is sent after this time without events, so that dead connections are noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Keep-alive comments are sent at whole multiples of this, so that one wake-up serves all streams that are due. Ten
/// thousand streams with their own instants would wake the runtime hundreds of times a second.
const BEAT: Duration = Duration::from_millis(250);

/// When a stream without events is due for a keep-alive comment; instants are counted from the start of the daemon.
fn keep_alive_due(now: Duration) -> Duration {
    let beats = (now + KEEP_ALIVE).as_nanos().div_ceil(BEAT.as_nanos());
    BEAT * u32::try_from(beats).unwrap_or(u32::MAX)
}
/// Events in one piece while catching up.
const CAUGHT_UP_AT_ONCE: usize = 256;

pub(super) fn filter(context: &Context) -> Result<Filter, Problem> {
    let (app, caller) = (&context.app, context.caller());
    let lease = match context.query("lease") {
        None => None,
        Some(text) => Some(app.lease_number(text).ok_or_else(|| super::leases::no_lease(text))?),
    };
    let (tenant, node) = app.now.read(|state| {
        let tenant = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let node = context.query("node").map(|text| names::node_for_request(state, text)).transpose()?;
        Ok::<_, Problem>((tenant, node))
    })?;
    let kind = context.query("kind").map(str::to_owned);
    if let Some(kind) = &kind {
        let known = leasehold_model::Body::KINDS.iter().map(|(_, word)| *word);
        if !known.clone().any(|word| word == kind || word.split_once('.').is_some_and(|(family, _)| family == kind)) {
            return Err(names::not_found("kind", kind, known));
        }
    }
    Ok(Filter { caller: caller.clone(), tenant, kind, node, lease })
}

struct Reader {
    app: Arc<App>,
    listening: Listening,
    /// The next sequence to read.
    next: u64,
    catching_up: bool,
    greeted: bool,
}

/// The number of durable records. A reader that has seen more than there are is refused, so that it notices a restore.
pub(super) fn exists(app: &App, last_seen: Option<u64>) -> Result<u64, Problem> {
    let size = app.journal.head().size;
    match last_seen.filter(|seen| *seen >= size) {
        None => Ok(size),
        Some(seen) => Err(codes::BEYOND_END
            .problem(format!(
                "The journal has {size} records, 0 to {}, and none with the number {seen}. It was restored from an \
                 older copy, or it is another journal.",
                size.saturating_sub(1)
            ))
            .with("size", size)),
    }
}

pub(super) async fn events(context: Context) -> Answer {
    let filter = filter(&context)?;
    let last_seen = match context.headers.get("last-event-id") {
        None => context.number("after")?,
        Some(id) => {
            let number = id.to_str().ok().and_then(|text| text.parse::<u64>().ok());
            Some(
                number
                    .ok_or_else(|| codes::BAD_REQUEST.problem("The Last-Event-ID header is not the ID of an event."))?,
            )
        }
    };
    let head = exists(&context.app, last_seen)?;
    let listening = context.app.live.listen(filter)?;
    let next = last_seen.map_or(head, |seen| seen + 1);
    let app = context.app.clone();
    let reader = Reader { app, listening, next, catching_up: last_seen.is_some(), greeted: false };
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let piece = reader.next_piece().await?;
        Some((Ok::<Bytes, Infallible>(piece), reader))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

impl Reader {
    /// The next bytes to send; `None` ends the stream.
    async fn next_piece(&mut self) -> Option<Bytes> {
        if !self.greeted {
            // Sends the headers at once, so that the reader knows that it is connected.
            self.greeted = true;
            return Some(Bytes::from_static(b": leasehold\nretry: 1000\n\n"));
        }
        loop {
            if self.app.live.is_stopping() || !self.is_still_authorised() {
                return None;
            }
            if self.catching_up {
                let piece = self.catch_up().await?;
                if !piece.is_empty() {
                    return Some(piece);
                }
                continue;
            }
            match self.listening.stream.take() {
                None => self.catching_up = true,
                Some(events) => {
                    let fresh: Vec<Event> = events.into_iter().filter(|event| event.sequence >= self.next).collect();
                    if let Some(last) = fresh.last() {
                        self.next = last.sequence + 1;
                        return Some(together(fresh));
                    }
                    let began = self.app.live.began;
                    let due = began + keep_alive_due(began.elapsed());
                    let woken = tokio::time::timeout_at(due, self.listening.stream.woken.notified()).await;
                    if woken.is_err() {
                        return Some(Bytes::from_static(b": keep-alive\n\n"));
                    }
                }
            }
        }
    }

    /// Streams end when their token is revoked or expires.
    fn is_still_authorised(&self) -> bool {
        let now = self.app.time();
        let token = self.listening.stream.filter.caller.token;
        self.app.now.read(|state| state.token(token).is_some_and(|token| token.is_live(state, now)))
    }

    /// Reads a part of the journal; empty if no event in it is wanted.
    async fn catch_up(&mut self) -> Option<Bytes> {
        let (filter, from) = (self.listening.stream.filter.clone(), self.next);
        let caller = filter.caller.clone();
        let read = scan_on(&self.app, &caller, move |app| stretch(app, &filter, from, CAUGHT_UP_AT_ONCE)).await;
        match read {
            Ok((events, next, at_head)) => {
                self.next = next;
                self.catching_up = !at_head;
                Some(together(events))
            }
            Err(problem) => {
                tracing::warn!(%problem, "an event stream failed");
                None
            }
        }
    }
}

fn together(mut events: Vec<Event>) -> Bytes {
    if events.len() == 1 {
        return events.remove(0).text;
    }
    let mut all = BytesMut::with_capacity(events.iter().map(|event| event.text.len()).sum());
    events.iter().for_each(|event| all.extend_from_slice(&event.text));
    all.freeze()
}

/// The wanted events from `from` on, the next sequence, and whether it is the end of the durable records.
fn stretch(app: &App, filter: &Filter, from: u64, events_max: usize) -> Result<(Vec<Event>, u64, bool), Problem> {
    let mut directory = app.live.names();
    let (mut events, mut next, mut failed, mut at_head) = (Vec::new(), from, None, true);
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if events.len() >= events_max || sequence - from >= limits::RECORDS_SCANNED_MAX {
            at_head = false;
            return ControlFlow::Break(());
        }
        match filter.show(app, &mut directory, &raw) {
            Ok(Some((record, shown))) => events.push(Event::new(sequence, record.body.word(), &shown)),
            Ok(None) => {}
            Err(problem) => {
                failed = Some(problem);
                return ControlFlow::Break(());
            }
        }
        next = sequence + 1;
        ControlFlow::Continue(())
    });
    scanned.map_err(|error| crate::scans::unreadable(&error))?;
    failed.map_or(Ok((events, next, at_head)), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alive_comments_are_aligned_and_never_early() {
        let ms = Duration::from_millis;
        assert_eq!(keep_alive_due(ms(0)), ms(15_000));
        assert_eq!(keep_alive_due(ms(1)), ms(15_250));
        assert_eq!(keep_alive_due(ms(249)), ms(15_250));
        assert_eq!(keep_alive_due(ms(250)), ms(15_250));
        assert_eq!(keep_alive_due(ms(251)), ms(15_500));
    }
}
