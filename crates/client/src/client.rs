//! A connection pool to one daemon; sends requests, with retries, and reads answers and problems.

use crate::config::{Config, ConfigError, Timeouts};
use crate::connection_error::Cause;
use crate::error::Error;
use crate::retry::{Backoff, again_at, parse_retry_after};
use leasehold_api::{Method, PROBLEM_JSON, Problem};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Response, Url};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use zeroize::Zeroizing;

/// Larger than any answer that is read as a whole: the largest batch has ten thousand results.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How much of an invalid answer is quoted in the error.
const QUOTED_CHARS_MAX: usize = 200;

/// A client of one daemon. Clones share the connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
    timeouts: Timeouts,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Client").field(&self.url()).finish()
    }
}

impl Client {
    /// Creates a client. It connects when the first request is sent.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let base = parse_url(&config.url)?;
        let authorization = match &config.token {
            None => None,
            Some(token) => {
                // Allocated once, so that no part of it is left behind.
                let text = Zeroizing::new(["Bearer ", token.expose()].concat());
                let mut value = HeaderValue::from_str(&text).map_err(|_| {
                    let what = "the token contains invalid characters";
                    ConfigError::new("bad_token", what, "use the token exactly as it was printed when it was issued")
                })?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let http = http_client(config, &base)?;
        Ok(Self(Arc::new(Inner { http, base, authorization, timeouts: config.timeouts })))
    }

    /// The address of the daemon.
    pub fn url(&self) -> &str {
        self.0.base.as_str().trim_end_matches('/')
    }

    pub fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    /// The URL of an endpoint, with its path parameters filled in.
    pub(crate) fn endpoint(&self, template: &str, places: &[String]) -> Result<Url, Error> {
        let mut url = self.0.base.clone();
        let mut places = places.iter();
        let mut segments = url.path_segments_mut().expect("an http address has a path");
        segments.pop_if_empty();
        for part in template.split('/').skip(1) {
            let filled =
                if part.starts_with('{') { places.next().expect("a value for each path parameter") } else { part };
            // These cannot be path segments: they are removed when the URL is normalised.
            if matches!(filled, "" | "." | "..") {
                let detail = format!("`{filled}` cannot be used as a name in a path; use the number instead");
                return Err(leasehold_api::codes::BAD_NAME.problem(detail).into());
            }
            segments.push(filled);
        }
        drop(segments);
        Ok(url)
    }

    pub(crate) fn protocol(&self, what: impl Into<String>) -> Error {
        Error::Protocol { url: self.url().to_owned(), what: what.into() }
    }

    fn transport(&self, failure: Failure, sent: bool, key: Option<&str>) -> Error {
        match failure {
            Failure::Refused { error, .. } => error,
            Failure::Broken { what, .. } => {
                let unanswered = key.filter(|_| sent).map(str::to_owned);
                Error::Transport { url: self.url().to_owned(), what, unanswered }
            }
        }
    }

    /// Sends a request until it is answered or refused for good, or `total` has passed. `read` reads the answer.
    pub(crate) async fn send<T, R: Future<Output = Result<T, Failure>>>(
        &self,
        request: &Request,
        total: Duration,
        read: impl Fn(Response) -> R,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let deadline = begun + total;
        let mut backoff = Backoff::default();
        // Whether an attempt may have arrived, so that the change may have been made.
        let mut sent = false;
        loop {
            let attempt = async { read(self.attempt(request).await?).await };
            let patience = request.patience.unwrap_or(self.0.timeouts.answer);
            let limit = deadline.min(Instant::now() + patience);
            let failure = match tokio::time::timeout_at(limit, attempt).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Broken { what: "it did not answer in time".into(), arrived: true, again: true },
            };
            let (again, retry_after) = match &failure {
                Failure::Broken { arrived, again, .. } => {
                    sent |= arrived;
                    let no_listener = !sent && begun.elapsed() >= self.0.timeouts.listener;
                    (*again && !no_listener, None)
                }
                Failure::Refused { again, retry_after, .. } => (*again, *retry_after),
            };
            let now = Instant::now();
            match again_at(&mut backoff, now, deadline, retry_after).filter(|_| again) {
                Some(at) => tokio::time::sleep_until(at).await,
                None => return Err(self.transport(failure, sent, request.key.as_deref())),
            }
        }
    }

    /// Sends a request once. Returns when the headers of a successful answer have arrived.
    pub(crate) async fn attempt(&self, request: &Request) -> Result<Response, Failure> {
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut builder = self.0.http.request(method, request.url.clone()).header(ACCEPT, request.accept);
        if let Some(authorization) = &self.0.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(key) = &request.key {
            builder = builder.header("Idempotency-Key", key);
        }
        if let Some(last) = request.last_event_id {
            builder = builder.header("Last-Event-ID", last);
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let response = builder.send().await.map_err(|error| Failure::broken(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    async fn refusal(&self, response: Response) -> Failure {
        let status = response.status();
        let again = matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header(RETRY_AFTER).and_then(parse_retry_after);
        let is_problem = header(CONTENT_TYPE).is_some_and(|media| media.starts_with(PROBLEM_JSON));
        let body = match self.whole(response).await {
            Ok(body) => body,
            Err(failure) => return failure,
        };
        let error = match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if is_problem => problem.into(),
            _ => {
                let text = String::from_utf8_lossy(&body);
                let quoted: String = text.trim().chars().take(QUOTED_CHARS_MAX).collect();
                self.protocol(format!("it answered {status} {quoted}").trim_end())
            }
        };
        Failure::Refused { error, again, retry_after }
    }

    /// The whole body, up to a size limit.
    pub(crate) async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| Failure::broken(&error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                let error = self.protocol("its answer is too large");
                return Err(Failure::Refused { error, again: false, retry_after: None });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// A request, which may be sent several times.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
    pub(crate) key: Option<String>,
    pub(crate) last_event_id: Option<u64>,
    pub(crate) body: Option<Vec<u8>>,
    /// How long one attempt may take, if not as configured.
    pub(crate) patience: Option<Duration>,
}

/// Why an attempt failed, and whether another one may succeed.
pub(crate) enum Failure {
    Refused {
        error: Error,
        again: bool,
        retry_after: Option<Duration>,
    },
    Broken {
        what: String,
        /// Whether the request may have arrived.
        arrived: bool,
        again: bool,
    },
}

impl Failure {
    pub(crate) fn broken(error: &reqwest::Error) -> Self {
        let cause = Cause::of(error);
        Self::Broken { what: cause.what, arrived: !error.is_connect(), again: cause.again }
    }
}

fn parse_url(text: &str) -> Result<Url, ConfigError> {
    let wrong = |why: &str| {
        let what = format!("`{text}` is not the address of a daemon: {why}");
        ConfigError::new("bad_url", what, "write it like http://127.0.0.1:8420 or https://leasehold.example.org")
    };
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it begins with neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it contains more than a scheme, host, port and path"));
    }
    Ok(url)
}

/// Whether the address is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn http_client(config: &Config, base: &Url) -> Result<reqwest::Client, ConfigError> {
    // Another part of the program may have installed the same provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(config.timeouts.connect)
        // A redirect could send a change to another server.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tcp_nodelay(true);
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    if base.scheme() == "http" {
        // Plain HTTP needs no root certificates, and must work on machines without any.
        builder = builder.tls_certs_only([]);
    } else if let Some(path) = &config.ca_file {
        let unreadable = |why: String| {
            let what = format!("the CA file {} cannot be used: {why}", path.display());
            ConfigError::new("bad_ca_file", what, "give a PEM file with the certificates to trust")
        };
        let pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| unreadable(error.to_string()))?;
        if certificates.is_empty() {
            return Err(unreadable("it contains no certificate".into()));
        }
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| {
        let what = format!("TLS cannot be set up: {}", Cause::of(&error).what);
        ConfigError::new("tls_failed", what, "give a CA file with the certificates to trust")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_keep_their_path_and_fill_in_parameters() {
        let url = |base: &str, template: &str, places: &[&str]| {
            let client = Client::new(&Config::new(base)).expect("a client");
            let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
            client.endpoint(template, &places).map(|url| url.to_string()).map_err(|error| error.code().to_owned())
        };
        assert_eq!(url("http://h:1", "/api/v1/about", &[]).unwrap(), "http://h:1/api/v1/about");
        assert_eq!(url("http://h/prefix/", "/healthz", &[]).unwrap(), "http://h/prefix/healthz");
        let tenant = url("http://h", "/api/v1/tenants/{tenant}", &["a b/ö?"]);
        assert_eq!(tenant.unwrap(), "http://h/api/v1/tenants/a%20b%2F%C3%B6%3F");
        for name in ["", ".", ".."] {
            assert_eq!(url("http://h", "/api/v1/tenants/{tenant}", &[name]), Err("bad_name".into()));
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for text in ["", "localhost:8420", "ftp://h", "http://user:secret@h", "http://h/?a=b", "http://"] {
            assert_eq!(Client::new(&Config::new(text)).unwrap_err().code, "bad_url", "{text}");
        }
    }

    #[test]
    fn loopback_addresses_are_recognised() {
        let is = |text| is_loopback(&Url::parse(text).unwrap());
        assert!(is("http://localhost:1") && is("http://127.0.0.2") && is("http://[::1]:1"));
        assert!(!is("http://10.0.0.1") && !is("http://localhost.example.org"));
    }
}
