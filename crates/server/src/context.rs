//! One request in a route: its caller, path, query and body.

use crate::access::{Caller, authenticate};
use crate::app::App;
use crate::body;
use crate::key_memory::KeyMemory;
use axum::body::Body;
use axum::extract::RawPathParams;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use leasehold_api::endpoint::by_id;
use leasehold_api::{Endpoint, PROBLEM_JSON, Problem, codes, limits};
use leasehold_cell::Sealed;
use leasehold_engine::Command;
use leasehold_model::Identity;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

pub(crate) type Answer = Result<Response<Body>, Problem>;

/// A request that was authenticated and read.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    caller: Option<Caller>,
    path: Vec<String>,
    query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    pub(crate) key_memory: KeyMemory,
}

impl Context {
    /// Checks a request, in this order: headers, token, role, query, body.
    pub(crate) async fn read(
        app: Arc<App>,
        endpoint: &Endpoint,
        path: &RawPathParams,
        request: Request<Body>,
        key_memory: KeyMemory,
    ) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        sent_once(&parts.headers)?;
        let open = endpoint.roles.is_empty() || (app.settings.metrics_open() && endpoint.id == by_id::metrics.id);
        let caller = if open { None } else { Some(let_in(&app, endpoint, &parts.headers)?) };
        // Nothing after this needs the token, and it is not kept as long as the request takes.
        parts.headers.remove(AUTHORIZATION);
        let query = query(parts.uri.query().unwrap_or(""), endpoint)?;
        let body =
            if endpoint.is_mutation() { body_bytes(&app, endpoint, &parts.headers, body).await? } else { Bytes::new() };
        let path = path.iter().map(|(_, value)| value.to_owned()).collect();
        Ok(Self { app, caller, path, query, headers: parts.headers, body, key_memory })
    }

    /// The caller. Only endpoints without roles have none.
    pub(crate) fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the endpoint requires a token")
    }

    /// The number of the token, if the endpoint requires one.
    pub(crate) fn token(&self) -> Option<leasehold_model::TokenNo> {
        self.caller.as_ref().map(|caller| caller.token)
    }

    /// The first parameter of the path.
    pub(crate) fn subject(&self) -> &str {
        &self.path[0]
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.query(name) else { return Ok(None) };
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|n| plain && *n <= limits::INTEGER_MAX);
        number.map(Some).ok_or_else(|| codes::BAD_QUERY.problem(format!("`{name}` must be an integer below 2^53.")))
    }

    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let limit = self.number("limit")?.map_or(limits::PAGE_DEFAULT, |n| usize::try_from(n).unwrap_or(usize::MAX));
        if (1..=limits::PAGE_MAX).contains(&limit) {
            return Ok(limit);
        }
        Err(codes::BAD_QUERY.problem(format!("`limit` must be between 1 and {}.", limits::PAGE_MAX)))
    }

    /// The number after which the page begins.
    pub(crate) fn cursor(&self) -> Result<Option<u64>, Problem> {
        let Some(cursor) = self.query("cursor") else { return Ok(None) };
        let number = cursor.strip_prefix('c').and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let known = number.filter(|number| cursor_after(*number) == cursor);
        known
            .map(Some)
            .ok_or_else(|| codes::BAD_CURSOR.problem("The cursor was not issued by this daemon; begin without one."))
    }

    /// The decoded body. An empty body means `{}`, where the endpoint allows that.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        body::read(bytes)
    }

    /// The body as it was sent.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// The idempotency key, if one was sent.
    pub(crate) fn key(&self) -> Result<Option<&[u8]>, Problem> {
        let mut all = self.headers.get_all("idempotency-key").iter();
        let key = all.next().map(HeaderValue::as_bytes);
        match all.next() {
            None => Ok(key),
            Some(_) => Err(codes::BAD_REQUEST.problem("The Idempotency-Key header was sent twice.")),
        }
    }

    /// Submits a command with the identity of the caller.
    pub(crate) async fn seal(&self, command: Command) -> Result<Sealed, Problem> {
        self.seal_for(self.caller().identity(), command).await
    }

    /// Submits a command with the identity that the request named.
    pub(crate) async fn seal_for(&self, identity: Identity, command: Command) -> Result<Sealed, Problem> {
        let key = self.key()?;
        let sealed = self.app.seal(self.caller(), identity, command, key).await?;
        key.into_iter().for_each(|_| self.key_memory.add(&sealed));
        Ok(sealed)
    }
}

/// Two of these would leave it to chance which one counts, here and in every proxy on the way.
fn sent_once(headers: &HeaderMap) -> Result<(), Problem> {
    for name in [AUTHORIZATION, HOST] {
        if headers.get_all(&name).iter().nth(1).is_some() {
            let name = if name == HOST { "Host" } else { "Authorization" };
            return Err(codes::BAD_REQUEST.problem(format!("The {name} header was sent twice.")));
        }
    }
    Ok(())
}

fn let_in(app: &App, endpoint: &Endpoint, headers: &HeaderMap) -> Result<Caller, Problem> {
    let caller = authenticate(app, headers)?;
    // A batch is counted by its operations, and usage by its records.
    if ![by_id::batch.id, by_id::record_usage.id].contains(&endpoint.id) {
        rate(app, &caller, 1)?;
    }
    if endpoint.roles.contains(&caller.role) {
        return Ok(caller);
    }
    let who: Vec<&str> = endpoint.roles.iter().map(|role| role.word()).collect();
    Err(codes::ROLE_FORBIDS.problem(format!(
        "The role {} does not allow this; it requires one of: {}.",
        caller.role,
        who.join(", ")
    )))
}

/// Counts operations against the rate limit of the token.
pub(crate) fn rate(app: &App, caller: &Caller, operations: u32) -> Result<(), Problem> {
    app.rate.take(caller.token, operations).map_err(|retry| {
        let seconds = retry.0.as_secs() + u64::from(retry.0.subsec_nanos() > 0);
        codes::RATE_LIMITED
            .problem(format!("The token has used up its operations for now; try again in {seconds} s."))
            .with("retry_after", seconds)
    })
}

/// The cursor of the page after this number.
pub(crate) fn cursor_after(number: u64) -> String {
    format!("c{number:x}")
}

fn query(text: &str, endpoint: &Endpoint) -> Result<Vec<(String, String)>, Problem> {
    let mut all: Vec<(String, String)> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decode(name), decode(value)) else {
            return Err(codes::BAD_QUERY.problem("The query is not percent-encoded UTF-8."));
        };
        if !endpoint.query().any(|known| known.name == name) {
            let names: Vec<&str> = endpoint.query().map(|known| known.name).collect();
            let takes = if names.is_empty() { "takes none".to_owned() } else { format!("takes {}", names.join(", ")) };
            return Err(codes::BAD_QUERY
                .problem(format!("Unknown query parameter `{}`; the endpoint {takes}.", name.escape_debug())));
        }
        if all.iter().any(|(before, _)| *before == name) {
            return Err(codes::BAD_QUERY.problem(format!("`{name}` is given twice.")));
        }
        if value.is_empty() {
            return Err(codes::BAD_QUERY.problem(format!("`{name}` is empty; leave it out.")));
        }
        all.push((name, value));
    }
    Ok(all)
}

/// Decodes percent-encoding. `form_urlencoded` accepts malformed escapes and invalid UTF-8, and a query that was
/// damaged on its way must not be answered as if it were a different one.
fn decode(text: &str) -> Option<String> {
    percent_decoded(text, |byte| if byte == b'+' { b' ' } else { byte })
}

/// `plain` says what a byte that is not escaped stands for.
pub(crate) fn percent_decoded(text: &str, plain: impl Fn(u8) -> u8) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => plain(byte),
        });
    }
    String::from_utf8(bytes).ok()
}

async fn body_bytes(app: &App, endpoint: &Endpoint, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let takes_many = [by_id::batch.id, by_id::record_usage.id].contains(&endpoint.id);
    let most = if takes_many { app.settings.batch_body_bytes() } else { app.settings.body_bytes() };
    let too_large = || {
        codes::BODY_TOO_LARGE
            .problem(format!("The body is larger than {most} bytes."))
            .with("limit", most.to_string())
            .with("unit", "byte")
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let bytes = match Limited::new(body, most).collect().await {
        Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
        Err(_) => return Err(codes::BAD_REQUEST.problem("The body could not be read completely.")),
        Ok(collected) => collected.to_bytes(),
    };
    if endpoint.body.is_none() && !bytes.is_empty() && !is_empty_object(&bytes) {
        return Err(codes::BAD_BODY.problem("The endpoint accepts no body."));
    }
    let is_taken = |media: &str| {
        let mut all = std::iter::once("application/json").chain(endpoint.also_taken().iter().copied());
        all.any(|taken| taken.eq_ignore_ascii_case(media))
    };
    if endpoint.body.is_some() && !bytes.is_empty() && !media_type(headers).is_some_and(is_taken) {
        return Err(codes::NOT_JSON.problem("Send the body as `Content-Type: application/json`."));
    }
    if endpoint.body.is_some() && bytes.is_empty() && !endpoint.body_optional {
        return Err(codes::BAD_JSON.problem("The endpoint requires a JSON body; none was sent."));
    }
    Ok(bytes)
}

/// The media type of the body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or("").trim())
}

fn is_empty_object(bytes: &[u8]) -> bool {
    bytes.iter().filter(|b| !b.is_ascii_whitespace()).eq(b"{}")
}

/// A JSON answer.
pub(crate) fn json<T: Serialize>(status: u16, value: &T) -> Answer {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| codes::INTERNAL.problem(format!("Cannot encode the answer: {error}.")))?;
    Ok(json_bytes(status, bytes))
}

pub(crate) fn json_bytes(status: u16, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = StatusCode::from_u16(status).expect("a valid status");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A problem in the format of RFC 9457.
pub(crate) fn problem_response(problem: &Problem) -> Response<Body> {
    let bytes = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = json_bytes(problem.status, bytes);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if problem.status == 401 {
        response.headers_mut().insert("www-authenticate", HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = problem.members.get("retry_after").and_then(serde_json::Value::as_u64) {
        response.headers_mut().insert("retry-after", HeaderValue::from(seconds));
    }
    response
}
