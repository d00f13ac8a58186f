//! Webhooks: one HTTP request for each event, signed, to an address that was checked.

use crate::event::SinkSpec;
use crate::guard::{Endpoint, Guard};
use crate::http::{Client, HttpError, certificates};
use crate::limits::Limits;
use crate::message::Message;
use crate::outcome::{Outcome, retry_after};
use crate::signature::signatures;
use crate::transport::{Sending, Transport};
use crate::webhook_secrets::WebhookSecrets;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use leasehold_model::{Instant, Span};
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::Semaphore;
use url::Host;

const AGENT: &str = concat!("leasehold/", env!("CARGO_PKG_VERSION"));
const CONTENT: &str = "application/cloudevents+json; charset=utf-8";

/// How many names are resolved at the same time.
static LOOKUPS: Semaphore = Semaphore::const_new(32);

pub struct Webhook {
    client: Client,
    guard: Guard,
    secrets: Arc<WebhookSecrets>,
    timeout: Span,
}

impl Webhook {
    /// `ca_pem`: certificates that are trusted besides those of the system.
    pub fn new(
        guard: Guard,
        secrets: Arc<WebhookSecrets>,
        limits: &Limits,
        ca_pem: Option<&[u8]>,
    ) -> Result<Self, HttpError> {
        let roots = ca_pem.map(certificates).transpose()?.unwrap_or_default();
        // A third of the time of an attempt.
        let body_time = Span(limits.timeout.0 / 3).into();
        Ok(Self { client: Client::new(roots, body_time)?, guard, secrets, timeout: limits.timeout })
    }

    async fn attempt(&self, sink: &SinkSpec, message: &Message, now: Instant) -> Result<Outcome, String> {
        let signers = self.secrets.signers(sink.id, now);
        if signers.is_empty() {
            return Err("the webhook has no secret to sign with; rotate its secret".to_owned());
        }
        let endpoint = Endpoint::parse(&sink.url).map_err(|refused| refused.to_string())?;
        let addresses = resolve(&endpoint).await?;
        self.guard.check(endpoint.is_tls, &addresses).map_err(|refused| refused.to_string())?;
        let name = endpoint.is_tls.then(|| server_name(&endpoint)).transpose()?;
        let seconds = now.0 / 1_000_000_000;
        let request = Request::post(&endpoint.path)
            .header(HOST, &endpoint.authority)
            .header(CONTENT_TYPE, CONTENT)
            .header(USER_AGENT, AGENT)
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signatures(&signers, &message.id, seconds, &message.body))
            .body(Full::<Bytes>::new(message.body.clone()))
            .map_err(|_| "the request cannot be written: its URL or ID has characters that are not allowed")?;
        let answer = self.client.send(&addresses, name, request).await.map_err(|error| error.to_string())?;
        let retry_after = answer.retry_after.as_deref().and_then(|header| retry_after(header, now));
        Ok(Outcome::Answered { status: answer.status, retry_after })
    }
}

/// The addresses of the host, resolved once.
pub(crate) async fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, String> {
    if let Some(address) = endpoint.literal() {
        return Ok(vec![address]);
    }
    let (host, port) = (endpoint.host.to_string(), endpoint.port);
    // A name server that does not answer keeps a thread for longer than the attempt lasts: the thread gives back the
    // permit. Otherwise a tenant with many slow names could take all threads that block, of which requests need some.
    let permit = LOOKUPS.acquire().await.map_err(|_| "the daemon stops".to_owned())?;
    let name = host.clone();
    let look = move || {
        let _permit = permit;
        (name.as_str(), port).to_socket_addrs().map(Iterator::collect)
    };
    let found = tokio::task::spawn_blocking(look).await.map_err(|_| "the daemon stops".to_owned())?;
    found.map_err(|error: std::io::Error| format!("the name {host} cannot be resolved: {error}"))
}

pub(crate) fn server_name(endpoint: &Endpoint) -> Result<ServerName<'static>, String> {
    match &endpoint.host {
        Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|_| format!("{name} is not a name that a certificate can have"))
        }
    }
}

impl Transport for Webhook {
    fn send<'a>(&'a self, sink: &'a SinkSpec, message: &'a Message, now: Instant) -> Sending<'a> {
        Box::pin(async move {
            match tokio::time::timeout(self.timeout.into(), self.attempt(sink, message, now)).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(error)) => Outcome::Failed(error),
                Err(_) => Outcome::Failed(format!("no answer within {}", self.timeout)),
            }
        })
    }
}
