//! Log lines of requests.
//!
//! Never logged: a token, an `Authorization` header, a query, a body.

mod request_id;
mod trace;

pub use crate::config::Requests as RequestLog;
pub use request_id::RequestId;
pub use trace::Trace;

use crate::listen::Peer;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use leasehold_api::Endpoint;
use leasehold_model::TokenNo;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Slower requests are logged even if they succeed.
pub const SLOW: Duration = Duration::from_secs(1);

/// Header of the request ID, in requests and answers.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request, as far as the log needs it.
#[derive(Clone, Copy, Debug)]
pub struct LoggedRequest {
    id: RequestId,
    trace: Option<Trace>,
    began: Instant,
    peer: Option<SocketAddr>,
    token: Option<TokenNo>,
}

impl LoggedRequest {
    pub fn begin(headers: &HeaderMap) -> Self {
        Self { id: RequestId::of(headers), trace: Trace::of(headers), began: Instant::now(), peer: None, token: None }
    }

    /// The same, with the address of the peer.
    pub fn of<B>(request: &Request<B>) -> Self {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.address);
        Self { peer, ..Self::begin(request.headers()) }
    }

    /// Sets the number of the token.
    pub fn set_token(&mut self, token: TokenNo) {
        self.token = Some(token);
    }

    pub fn id(&self) -> &str {
        self.id.as_str()
    }
    pub fn trace(&self) -> Option<Trace> {
        self.trace
    }
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Adds the request ID to the headers of the answer.
    pub fn set_request_id(&self, headers: &mut HeaderMap) {
        let value = HeaderValue::from_str(self.id()).expect("an id is visible ASCII");
        headers.insert(REQUEST_ID, value);
    }

    /// Logs the request if the setting includes it: errors of the daemon at level error, slow requests at level warn.
    pub fn log(&self, which: RequestLog, endpoint: &Endpoint, status: u16, code: Option<&str>) {
        self.log_as(which, endpoint.method.word(), endpoint.id, status, code);
    }

    /// As [`log`](Self::log), for a request that no endpoint of the table answered.
    pub fn log_as(&self, which: RequestLog, method: &str, endpoint: &str, status: u16, code: Option<&str>) {
        let took = self.elapsed();
        let refused = status >= 400;
        let wanted = match which {
            RequestLog::None => false,
            RequestLog::Refused => refused || took > SLOW,
            RequestLog::All => true,
        };
        if !wanted {
            return;
        }
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let trace_id = self.trace.map(|trace| tracing::field::display(trace.id()));
        let peer = self.peer.map(tracing::field::display);
        let token = self.token.map(tracing::field::display);
        macro_rules! line {
            ($level:ident) => {
                tracing::event!(
                    tracing::Level::$level,
                    request_id = self.id(),
                    method,
                    endpoint,
                    status,
                    code,
                    took_us,
                    trace_id,
                    peer,
                    token,
                    "request"
                )
            };
        }
        match status {
            500.. => line!(ERROR),
            _ if took > SLOW => line!(WARN),
            _ => line!(INFO),
        }
    }
}

#[cfg(test)]
mod tests;
